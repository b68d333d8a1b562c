//! Joint: many reads or changes of one row each by its key, or many INSERTs of a row each, asked as one statement, which the server parses, plans
//! and begins once.
//!
//! Promises: the rows are those that each statement would have had or made by itself, at one moment of the server's, in the same columns, formats and
//! order; which value a row is of is told by the value's place in a list, never by the row. A statement has a joint form only where the
//! catalog says that its columns are a key of an ordinary table, and that no row of a table that it changes can tell of another; and where the
//! server describes both alike: by the same parameters, and by the same columns, types and origins. Of those who change the same row
//! one does. What fails in the joint form, a read that has a row or a notice more than it can have, and a change that has
//! found no row is asked again each by itself; what is noticed of changes is told to the first, as of a transaction.
//!
//! The joint text is [`forebay_sql::lateral`], [`forebay_sql::keyed_many`], or [`forebay_sql::rows`], of the statement's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;

use super::bound::{Bound, is_binary};
use super::shape::Verb;
use super::unit::{Step, Steps};
use crate::frames::{self, HEADER_BYTES};
use crate::statements::Statement;

/// A form that has failed is not tried for so long, and twice as long each time again.
const FAILED_FOR: Duration = Duration::from_secs(10);
const FAILED_FOR_MAX: Duration = Duration::from_secs(600);
/// Behind a value that made all of them fail each is asked by itself, on so many trips.
const SINGLY: u32 = 16;
/// A form is asked about again after so long.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Where there was no time to ask it is not asked again for so long.
const NOT_ASKED_FOR: Duration = Duration::from_secs(1);

/// What is known of the joint form of one statement.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Known,
    /// So often there was nothing to be had, or it failed, since one did well to its end.
    failures: u32,
    /// The types of its parameters as the server described it first: those it has for whoever prepared it then.
    elements: Option<Vec<u32>>,
}

#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    /// Somebody asks.
    Asked,
    /// It has none.
    None,
    /// It has one, and is asked about again after that: its columns may be of other types, or no key any more.
    Form(Arc<Form>, Instant),
    /// It is not asked about before that.
    NotBefore(Instant),
}

impl State {
    fn is_not_asked_for(&mut self, time: Duration) {
        let time = (time * (1 << self.failures.min(16))).min(FAILED_FOR_MAX);
        self.known = Known::NotBefore(Instant::now() + time);
        self.failures += 1;
    }
}

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Found {
    Form(Arc<Form>),
    None,
    /// Nothing: it was refused.
    Refused,
}

/// How many are asked as one.
#[derive(Debug)]
pub(crate) struct Form {
    /// The first column of what it tells is the place, but of an INSERT.
    pub(crate) statement: Arc<Statement>,
    pub(crate) verb: Verb,
    /// Rows are told to those who are asked.
    pub(crate) tells_row: bool,
    /// Which parameters tell the rows apart that are changed; none where that does not matter.
    pub(crate) keys: Option<Vec<usize>>,
    /// Of the table whose rows it changes, as it was when this was found.
    pub(crate) mark: Option<Arc<str>>,
    /// On so many trips each is asked by itself.
    pub(crate) singly: AtomicU32,
    /// The numbers of its parameters' elements.
    pub(crate) elements: Vec<u32>,
}

impl Joint {
    /// The form, if it is known for a table of this mark; `is_to_ask` is said to one who is to ask about it.
    pub(crate) fn form(&self, mark: Option<&Arc<str>>, is_to_ask: &mut bool) -> Option<Arc<Form>> {
        let mut state = self.state.lock();
        match &state.known {
            Known::Form(form, until) if form.mark.as_ref() == mark && *until > Instant::now() => {
                let less = |left: u32| left.checked_sub(1);
                let is_single = form
                    .singly
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                    .is_ok();
                return (!is_single).then(|| Arc::clone(form));
            }
            // It has done well for all of its time.
            Known::Form(_, until) if *until <= Instant::now() => state.failures = 0,
            Known::Form(..) | Known::Nothing => {}
            Known::NotBefore(until) if *until <= Instant::now() => {}
            Known::Asked | Known::None | Known::NotBefore(_) => return None,
        }
        *is_to_ask = true;
        state.known = Known::Asked;
        None
    }

    /// Whether it is known to have no form.
    pub(crate) fn has_none(&self) -> bool {
        matches!(&self.state.lock().known, Known::None)
    }

    /// What one of those who asked has bound made all fail: it may do so again.
    pub(crate) fn was_given_a_bad_value(form: &Form) {
        form.singly.store(SINGLY, Ordering::Relaxed);
    }

    /// The form has failed by itself.
    pub(crate) fn failed(&self, form: &Form) {
        let mut state = self.state.lock();
        if matches!(&state.known, Known::Form(of_now, _) if Arc::ptr_eq(&of_now.statement, &form.statement)) {
            state.is_not_asked_for(FAILED_FOR);
        }
    }

    /// Who was to ask about it does not.
    pub(crate) fn is_not_asked(&self) {
        let mut state = self.state.lock();
        if let Known::Asked = &state.known {
            state.is_not_asked_for(NOT_ASKED_FOR);
        }
    }

    /// What came of asking whether the statement has one.
    pub(crate) fn learn(&self, found: Found) {
        let mut state = self.state.lock();
        match found {
            // Who prepared it before has parameters of the types of then.
            Found::Form(form) if state.elements.as_ref().is_some_and(|before| *before != form.elements) => {
                state.known = Known::None;
            }
            Found::Form(form) => {
                state.elements = Some(form.elements.clone());
                state.known = Known::Form(form, Instant::now() + KNOWN_FOR);
            }
            Found::None => state.known = Known::None,
            Found::Refused => state.is_not_asked_for(FAILED_FOR),
        }
    }
}

/// The body of a RowDescription without its first column.
pub(crate) fn without_place(body: &[u8]) -> Option<Bytes> {
    let (count, rest) = body.split_first_chunk::<2>()?;
    let (_, rest) = frames::zero_terminated(rest)?;
    // Its table and column, type, size, modifier and format.
    let rest = rest.get(18..)?;
    let count = u16::from_be_bytes(*count).checked_sub(1)?;
    Some([&count.to_be_bytes()[..], rest].concat().into())
}

/// What those have in common who may be asked as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Likeness<'a> {
    number: u64,
    /// None of a simple query.
    steps: Option<Steps>,
    formats: &'a [u8],
    results: &'a [u8],
}

impl<'a> Likeness<'a> {
    /// None where it is to be told something of the statement by itself, or that there may be more rows.
    pub(crate) fn of(statement: &Statement, steps: Option<Steps>, bound: &Bound<'a>) -> Option<Self> {
        let tells_more = |steps: Steps| steps.has(Step::DescribeStatement) || steps.rows_max() > 0;
        (!steps.is_some_and(tells_more)).then_some(Self {
            number: statement.number(),
            steps,
            formats: bound.formats,
            results: bound.results,
        })
    }
}

/// Those who are asked as one, until each has its answer.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) form: Arc<Form>,
    pub(crate) jobs: Vec<usize>,
    /// Whose form it is.
    of: Arc<Joint>,
    has_bind: bool,
    pub(crate) has_description: bool,
    is_place_binary: bool,
    /// What tells the columns.
    description: Bytes,
    /// Where the one row of each is, if it has one.
    rows: Vec<Option<(usize, usize)>>,
    held: BytesMut,
    /// What the server has noticed: of a transaction that it was the first of, which is told to one.
    notices: BytesMut,
    /// What came is nobody's: each is asked by itself.
    pub(crate) is_void: bool,
}

impl Group {
    /// Of these jobs, with what is bound for each, in an encoding that may be UTF-8; and the Bind behind the name. None where they cannot be bound
    /// as one.
    pub(crate) fn new(
        of: &Arc<Joint>,
        form: Arc<Form>,
        likeness: &Likeness<'_>,
        members: &[(usize, Bound<'_>)],
        is_utf8: bool,
    ) -> Option<(Self, BytesMut)> {
        let count = form.elements.len();
        // What the server refuses of one it refuses by its own words.
        let has_codes = |codes: &[u8]| [2, 4, 2 + 2 * count].contains(&codes.len());
        if !has_codes(likeness.formats) || members.iter().any(|(_, bound)| bound.values.len() != count) {
            return None;
        }
        let mut body = BytesMut::new();
        body.put_u16(u16::try_from(count).ok()?);
        for at in 0..count {
            body.put_u16(u16::from(is_binary(likeness.formats, at)?));
        }
        body.put_u16(u16::try_from(count).ok()?);
        for (at, element) in form.elements.iter().enumerate() {
            let values = members
                .iter()
                .map(|(_, bound)| bound.values.get(at).map(Option::as_deref));
            let values = values.collect::<Option<Vec<_>>>()?;
            let begin = body.len();
            body.put_u32(0);
            match is_binary(likeness.formats, at)? {
                true => put_binary(&mut body, *element, &values)?,
                false => put_text(&mut body, &values, is_utf8)?,
            }
            let length = u32::try_from(body.len() - begin - 4).ok()?;
            body[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        }
        let has_place = form.verb != Verb::Insert;
        let is_place_binary = match likeness.results.len() {
            length if !has_place || length <= 4 => {
                body.extend_from_slice(likeness.results);
                has_place && is_binary(likeness.results, 0)?
            }
            length => {
                // One more, for the place.
                body.put_u16(u16::try_from(length / 2).ok()?);
                body.put_u16(0);
                body.extend_from_slice(&likeness.results[2..]);
                false
            }
        };
        let group = Self {
            jobs: members.iter().map(|(job, _)| *job).collect(),
            of: Arc::clone(of),
            has_bind: likeness.steps.is_some(),
            has_description: match likeness.steps {
                Some(steps) => steps.has(Step::DescribePortal),
                // Of a text it is not said that it tells no rows.
                None => form.tells_row,
            },
            is_place_binary,
            description: Bytes::new(),
            rows: vec![None; members.len()],
            held: BytesMut::new(),
            notices: BytesMut::new(),
            is_void: false,
            form,
        };
        Some((group, body))
    }

    /// Its form has failed by itself.
    pub(crate) fn fails(&self) {
        self.of.failed(&self.form);
    }

    /// Whether the one at this place has found no row to change. Whether the server would have said so, or that something else is wrong, is not
    /// known.
    pub(crate) fn has_missed(&self, at: usize) -> bool {
        matches!(self.form.verb, Verb::Update | Verb::Delete) && self.rows[at].is_none()
    }

    /// What the server says of all of them. True at its last word.
    pub(crate) fn take(&mut self, tag: u8, message: &[u8]) -> bool {
        match tag {
            b'2' => {}
            b'T' if !self.form.tells_row => self.describe(b'n', &[]),
            b'T' => match without_place(&message[HEADER_BYTES..]) {
                Some(body) => self.describe(b'T', &body),
                None => self.is_void = true,
            },
            b'D' => match row_of(&message[HEADER_BYTES..], self.is_place_binary) {
                Some((place, count, columns)) if self.rows.get(place).is_some_and(Option::is_none) => {
                    let begin = self.held.len();
                    if self.form.tells_row {
                        frames::put(&mut self.held, b'D', &[&count, columns]);
                    }
                    self.rows[place] = Some((begin, self.held.len()));
                }
                _ => self.is_void = true,
            },
            b'N' if self.form.verb != Verb::Select => self.notices.extend_from_slice(message),
            b'n' => self.describe(b'n', &[]),
            b'C' => {
                let count = match self.form.verb {
                    Verb::Insert => self.jobs.len(),
                    _ => self.rows.iter().flatten().count(),
                };
                self.is_void |= message[HEADER_BYTES..] != *self.form.verb.tag(count).as_bytes();
                return true;
            }
            // Whose that is nobody knows.
            _ => self.is_void = true,
        }
        false
    }

    fn describe(&mut self, tag: u8, body: &[u8]) {
        let mut description = BytesMut::new();
        frames::put(&mut description, tag, &[body]);
        self.description = description.freeze();
    }

    /// Writes all that is told to the one at this place, who has not [missed](Self::has_missed) it.
    pub(crate) fn put_answer(&self, at: usize, out: &mut BytesMut) {
        if self.has_bind {
            frames::put(out, b'2', &[]);
        }
        out.extend_from_slice(&self.description);
        if !self.notices.is_empty() && !(0..at).any(|before| !self.has_missed(before)) {
            out.extend_from_slice(&self.notices);
        }
        let row = self.rows[at];
        if let Some((begin, end)) = row {
            out.extend_from_slice(&self.held[begin..end]);
        }
        let verb = self.form.verb;
        let count = usize::from(verb == Verb::Insert || row.is_some());
        frames::put(out, b'C', &[verb.tag(count).as_bytes()]);
    }
}

/// The place that a row begins with, from 0 on, the count of the columns behind it, and those.
fn row_of(body: &[u8], is_binary: bool) -> Option<(usize, [u8; 2], &[u8])> {
    let (count, rest) = body.split_first_chunk::<2>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (place, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let place = match is_binary {
        true => u64::from_be_bytes(*place.first_chunk::<8>()?),
        false => std::str::from_utf8(place).ok()?.parse().ok()?,
    };
    let count = u16::from_be_bytes(*count).checked_sub(1)?;
    Some((usize::try_from(place).ok()?.checked_sub(1)?, count.to_be_bytes(), rest))
}

/// A list in the binary format: one dimension, from 1 on.
fn put_binary(body: &mut BytesMut, element: u32, values: &[Option<&[u8]>]) -> Option<()> {
    body.put_u32(1);
    body.put_u32(u32::from(values.contains(&None)));
    body.put_u32(element);
    body.put_u32(u32::try_from(values.len()).ok()?);
    body.put_u32(1);
    for value in values {
        match value {
            Some(value) => {
                body.put_u32(u32::try_from(value.len()).ok()?);
                body.extend_from_slice(value);
            }
            None => body.put_u32(u32::MAX),
        }
    }
    Some(())
}

/// A list as text. None where a byte may be a sign of the list's, or half a letter in an encoding other than UTF-8.
fn put_text(body: &mut BytesMut, values: &[Option<&[u8]>], is_utf8: bool) -> Option<()> {
    body.put_u8(b'{');
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            body.put_u8(b',');
        }
        let Some(value) = value else {
            body.extend_from_slice(b"NULL");
            continue;
        };
        let has_signs = value.iter().any(|byte| matches!(byte, b'"' | b'\\'));
        if has_signs && !value.is_ascii() && !(is_utf8 && std::str::from_utf8(value).is_ok()) {
            return None;
        }
        body.put_u8(b'"');
        for &byte in *value {
            if matches!(byte, b'"' | b'\\') {
                body.put_u8(b'\\');
            }
            body.put_u8(byte);
        }
        body.put_u8(b'"');
    }
    body.put_u8(b'}');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_fails_is_asked_about_less_and_less_until_one_does_well() {
        let joint = Joint::default();
        let asks = || {
            let mut is_to_ask = false;
            assert!(joint.form(None, &mut is_to_ask).is_none());
            is_to_ask
        };
        let waits = || match &joint.state.lock().known {
            Known::NotBefore(until) => until
                .saturating_duration_since(Instant::now())
                .as_millis()
                .div_ceil(1000),
            known => panic!("{known:?}"),
        };
        let forget = || joint.state.lock().known = Known::NotBefore(Instant::now());
        assert!(asks() && !asks(), "one of them");
        for seconds in [10, 20, 40] {
            joint.learn(Found::Refused);
            assert!(waits() == seconds && !asks());
            forget();
            assert!(asks());
        }
        joint.is_not_asked();
        assert_eq!(waits(), 8);
        joint.is_not_asked();
        assert_eq!(waits(), 8, "nobody was to");
        joint.state.lock().known = Known::None;
        assert!(joint.has_none() && !asks());
    }

    #[test]
    fn lists_have_each_value_as_it_was() {
        let mut body = BytesMut::new();
        let values = [Some(&b"a"[..]), None, Some(b"NULL"), Some(b""), Some(b"\"\\,{}")];
        put_text(&mut body, &values, false).unwrap();
        assert_eq!(&body[..], br#"{"a",NULL,"NULL","","\"\\,{}"}"#);
        // A byte of a letter that looks like a sign.
        for (value, is_utf8, may) in [
            (&b"\x81\x5c"[..], false, false),
            (b"\x81\x5c", true, false),
            ("\u{fc}\"".as_bytes(), true, true),
            ("\u{fc}\"".as_bytes(), false, false),
            ("\u{fc}".as_bytes(), false, true),
        ] {
            let put = put_text(&mut BytesMut::new(), &[Some(value)], is_utf8);
            assert_eq!(put.is_some(), may, "{value:?} {is_utf8}");
        }
        let mut body = BytesMut::new();
        put_binary(&mut body, 23, &[Some(&[0, 0, 0, 7]), None]).unwrap();
        let wanted = [
            [0, 0, 0, 1],
            [0, 0, 0, 1],
            [0, 0, 0, 23],
            [0, 0, 0, 2],
            [0, 0, 0, 1],
            [0, 0, 0, 4],
            [0, 0, 0, 7],
            [255; 4],
        ];
        assert_eq!(body[..], wanted.concat());
    }

    #[test]
    fn a_row_tells_its_place_and_is_told_without() {
        let text = b"\x00\x03\x00\x00\x00\x0212\x00\x00\x00\x01x\xff\xff\xff\xff";
        let (place, count, rest) = row_of(text, false).unwrap();
        assert_eq!((place, count, rest), (11, [0, 2], &text[8..]));
        let binary = b"\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x03";
        assert_eq!(row_of(binary, true), Some((2, [0, 0], &[][..])));
        assert_eq!(
            row_of(b"\x00\x01\x00\x00\x00\x010", false),
            None,
            "they are counted from 1"
        );
        assert_eq!(row_of(&text[..7], false), None);
        let described = [&b"\x00\x02place\x00"[..], &[1; 18], b"other\x00", &[2; 18]].concat();
        let rest = without_place(&described).unwrap();
        assert_eq!(rest[..], [&b"\x00\x01other\x00"[..], &[2; 18]].concat());
        assert_eq!(without_place(b"\x00\x00"), None);
    }
}
