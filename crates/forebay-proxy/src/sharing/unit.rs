//! Unit: what a client asks for in one go and somebody else may carry: one simple query, or one statement by the extended protocol up to
//! its Sync.
//!
//! Promises: what is taken for a unit is all that the client has sent, whole; its portal has no name and is run once, to its end or for so many rows. Anything
//! else is no unit. Knows no statement.

use crate::frames::{self, HEADER_BYTES};

/// A longer one is nobody else's to carry.
pub(crate) const UNIT_BYTES_MAX: usize = 16 * 1024;

/// One message of a unit, by what it asks, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Parse,
    DescribeStatement,
    Bind,
    DescribePortal,
    Execute,
}

impl Step {
    const LETTERS: [(Self, char); 5] = [
        (Self::Parse, 'P'),
        (Self::DescribeStatement, 'S'),
        (Self::Bind, 'B'),
        (Self::DescribePortal, 'D'),
        (Self::Execute, 'E'),
    ];

    /// By which it is written down.
    pub(crate) fn letter(self) -> char {
        let mut letters = Self::LETTERS.iter();
        letters.find(|(step, _)| *step == self).expect("each has one").1
    }

    pub(crate) fn of_letter(letter: char) -> Option<Self> {
        let mut letters = Self::LETTERS.iter();
        letters.find(|(_, known)| *known == letter).map(|(step, _)| *step)
    }
}

/// The messages of a statement by the extended protocol: each once at most, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Steps {
    /// A bit for each.
    set: u8,
    /// So many rows are asked for; 0 for all.
    rows_max: u16,
}

impl Steps {
    /// The same and this one, which may be there.
    pub(crate) fn with(self, step: Step) -> Self {
        let set = self.set | 1 << step as u8;
        Self { set, ..self }
    }

    /// None where it does not come behind those that are there.
    fn push(&mut self, step: Step) -> Option<()> {
        let is_behind = self.set < 1 << step as u8;
        *self = self.with(step);
        is_behind.then_some(())
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Step> {
        let all = Step::LETTERS.iter().map(|(step, _)| *step);
        all.filter(move |step| self.has(*step))
    }

    pub(crate) fn has(self, step: Step) -> bool {
        self.set & 1 << step as u8 != 0
    }

    /// The same for so many rows; 0 for all.
    pub(crate) fn for_rows(self, rows_max: u16) -> Self {
        Self { rows_max, ..self }
    }

    /// For how many rows it is; 0 for all.
    pub(crate) fn rows_max(self) -> u16 {
        self.rows_max
    }

    /// The body of its Execute.
    pub(crate) fn execute(self) -> [u8; 5] {
        let [high, low] = self.rows_max.to_be_bytes();
        [0, 0, 0, high, low]
    }

    /// Whether whoever asks like this is told which columns the rows have.
    pub(crate) fn tell_columns(self) -> bool {
        self.has(Step::DescribeStatement) || self.has(Step::DescribePortal)
    }
}

/// What is asked in one go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unit<'a> {
    /// A text.
    Simple(&'a [u8]),
    Extended(Extended<'a>),
}

/// A statement by the extended protocol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extended<'a> {
    /// The body of its Parse behind the name, which is the empty one.
    pub(crate) definition: Option<&'a [u8]>,
    /// The name of what is bound.
    pub(crate) name: &'a [u8],
    /// The body of its Bind behind that name.
    pub(crate) bound: &'a [u8],
    pub(crate) steps: Steps,
}

/// The unit that this is, if it is one.
pub(crate) fn unit(input: &[u8]) -> Option<Unit<'_>> {
    if input.len() > UNIT_BYTES_MAX {
        return None;
    }
    let (tag, body, mut rest) = message(input)?;
    if tag == b'Q' {
        let text = body.strip_suffix(&[0])?;
        return rest.is_empty().then_some(Unit::Simple(text));
    }
    let mut definition = None;
    let mut described = None;
    let mut bound = None;
    let mut steps = Steps::default();
    let mut next = Some((tag, body));
    loop {
        let (tag, body) = match next.take() {
            Some(first) => first,
            None => {
                let (tag, body, behind) = message(rest)?;
                rest = behind;
                (tag, body)
            }
        };
        let step = match tag {
            b'P' if steps == Steps::default() => {
                let (name, behind) = frames::zero_terminated(body)?;
                if !name.is_empty() {
                    return None;
                }
                definition = Some(behind);
                Step::Parse
            }
            b'B' if bound.is_none() => {
                let (portal, behind) = frames::zero_terminated(body)?;
                let (name, behind) = frames::zero_terminated(behind)?;
                if !portal.is_empty() || (definition.is_some() && !name.is_empty()) {
                    return None;
                }
                bound = Some((name, behind));
                Step::Bind
            }
            b'D' => match (body.split_first()?, bound) {
                ((b'S', name), None) if described.is_none() => {
                    described = Some(name.strip_suffix(&[0])?);
                    Step::DescribeStatement
                }
                ((b'P', [0]), Some(_)) if !steps.has(Step::DescribePortal) => Step::DescribePortal,
                _ => return None,
            },
            b'E' if bound.is_some() => {
                let (b"", rows_max) = frames::zero_terminated(body)? else {
                    return None;
                };
                let rows_max = u32::from_be_bytes(rows_max.try_into().ok()?);
                steps = steps.for_rows(u16::try_from(rows_max).ok()?);
                steps.push(Step::Execute)?;
                let (tag, _, behind) = message(rest)?;
                let (name, bound) = bound?;
                let is_whole = tag == b'S' && behind.is_empty() && described.is_none_or(|described| described == name);
                return is_whole.then_some(Unit::Extended(Extended {
                    definition,
                    name,
                    bound,
                    steps,
                }));
            }
            _ => return None,
        };
        steps.push(step)?;
    }
}

/// The message that begins here, if it is whole: its first byte, its body, and what is behind it.
fn message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let frame = frames::frame(bytes).ok()??;
    let (message, rest) = bytes.split_at_checked(frame.length)?;
    Some((frame.tag, &message[HEADER_BYTES..], rest))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn messages(all: &[(u8, &[u8])]) -> BytesMut {
        let mut out = BytesMut::new();
        for (tag, body) in all {
            frames::put(&mut out, *tag, &[body]);
        }
        out
    }

    const PARSE: (u8, &[u8]) = (b'P', b"\0SELECT $1\0\0\0");
    const BIND: (u8, &[u8]) = (b'B', b"\0\0rest");
    const BIND_NAMED: (u8, &[u8]) = (b'B', b"\0one\0rest");
    const DESCRIBE_PORTAL: (u8, &[u8]) = (b'D', b"P\0");
    const DESCRIBE_STATEMENT: (u8, &[u8]) = (b'D', b"S\0");
    const EXECUTE: (u8, &[u8]) = (b'E', b"\0\0\0\0\0");
    const SYNC: (u8, &[u8]) = (b'S', b"");

    #[test]
    fn one_query_or_one_statement_up_to_its_sync_is_a_unit() {
        let simple = messages(&[(b'Q', b"SELECT 1\0")]);
        assert_eq!(unit(&simple), Some(Unit::Simple(b"SELECT 1")));
        for (all, name, definition, count) in [
            (&[PARSE, BIND, DESCRIBE_PORTAL, EXECUTE, SYNC][..], &b""[..], true, 4),
            (&[PARSE, DESCRIBE_STATEMENT, BIND, EXECUTE, SYNC], b"", true, 4),
            (&[BIND_NAMED, EXECUTE, SYNC], b"one", false, 2),
            (&[(b'D', b"Sone\0"), BIND_NAMED, EXECUTE, SYNC], b"one", false, 3),
            (&[BIND_NAMED, DESCRIBE_PORTAL, EXECUTE, SYNC], b"one", false, 3),
            (&[BIND, EXECUTE, SYNC], b"", false, 2),
        ] {
            let input = messages(all);
            let Some(Unit::Extended(extended)) = unit(&input) else {
                panic!("no unit: {all:?}");
            };
            assert_eq!(extended.name, name);
            assert_eq!(extended.bound, b"rest");
            assert_eq!(extended.definition.is_some(), definition);
            assert_eq!(extended.steps.iter().count(), count);
            for length in 0..input.len() {
                assert_eq!(unit(&input[..length]), None, "its end has not come");
            }
        }
    }

    #[test]
    fn it_may_be_for_some_rows() {
        let input = messages(&[BIND, (b'E', b"\0\0\0\x01\x02"), SYNC]);
        let Some(Unit::Extended(extended)) = unit(&input) else {
            panic!("no unit");
        };
        assert_eq!(extended.steps.rows_max(), 258);
        assert_eq!(extended.steps.execute(), *b"\0\0\0\x01\x02");
    }

    #[test]
    fn nothing_else_is_a_unit() {
        for all in [
            &[(b'Q', &b"SELECT 1\0"[..]), (b'Q', b"SELECT 2\0")][..],
            &[PARSE, SYNC],
            &[BIND, SYNC],
            &[EXECUTE, SYNC],
            &[(b'P', b"one\0SELECT 1\0\0\0"), BIND_NAMED, EXECUTE, SYNC],
            &[PARSE, BIND_NAMED, EXECUTE, SYNC],
            &[(b'B', b"portal\0\0rest"), EXECUTE, SYNC],
            &[BIND, (b'E', b"\0\0\x01\0\0"), SYNC],
            &[BIND, (b'E', b"\0\xff\xff\xff\xff"), SYNC],
            &[BIND, (b'E', b"\0\0\0\0"), SYNC],
            &[BIND, (b'E', b"portal\0\0\0\0\0"), SYNC],
            &[BIND, EXECUTE, BIND, EXECUTE, SYNC],
            &[BIND, EXECUTE, (b'H', b""), SYNC],
            &[BIND, EXECUTE, SYNC, SYNC],
            &[BIND, BIND, EXECUTE, SYNC],
            &[BIND, PARSE, EXECUTE, SYNC],
            &[BIND, DESCRIBE_STATEMENT, EXECUTE, SYNC],
            &[(b'D', b"Sone\0"), BIND, EXECUTE, SYNC],
            &[DESCRIBE_PORTAL, BIND, EXECUTE, SYNC],
            &[BIND, DESCRIBE_PORTAL, DESCRIBE_PORTAL, EXECUTE, SYNC],
            &[(b'D', b"S")],
            &[(b'D', b"")],
            &[(b'F', b"anything")],
            &[SYNC],
        ] {
            assert_eq!(unit(&messages(all)), None, "{all:?}");
        }
        let long = vec![b' '; UNIT_BYTES_MAX];
        assert_eq!(unit(&messages(&[(b'Q', &[&long[..], &[0]].concat())])), None);
    }
}
