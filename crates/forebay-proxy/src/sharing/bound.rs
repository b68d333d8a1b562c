//! Bound: what is bound for one who asks, taken apart.
//!
//! Promises: what does not follow the protocol to its last byte is not taken apart; the server is to refuse it. Knows no statement.

use std::borrow::Cow;

use forebay_sql::Literal;

use super::shape::Shape;

const INT4: u32 = 23;
const INT8: u32 = 20;

/// What is bound for one who asks: the body of its Bind behind the name, taken apart; of a simple query what would be.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    /// As they stand there, with their count.
    pub(crate) formats: &'a [u8],
    pub(crate) values: Vec<Option<Cow<'a, [u8]>>>,
    /// The same, of results.
    pub(crate) results: &'a [u8],
}

const NONE: [u8; 2] = [0, 0];

impl<'a> Bound<'a> {
    /// Of a Bind. None where a NULL stands beside texts: what NULL is in a list is for a setting to say.
    pub(crate) fn of(bound: &'a [u8]) -> Option<Self> {
        let (formats, rest) = codes(bound)?;
        let (count, mut rest) = rest.split_first_chunk::<2>()?;
        let mut values = Vec::with_capacity(usize::from(u16::from_be_bytes(*count)));
        for _ in 0..u16::from_be_bytes(*count) {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            rest = behind;
            values.push(match u32::from_be_bytes(*length) {
                u32::MAX if is_binary(formats, values.len())? => None,
                u32::MAX => return None,
                length => {
                    let (value, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                    rest = behind;
                    Some(Cow::Borrowed(value))
                }
            });
        }
        let (results, rest) = codes(rest)?;
        rest.is_empty().then_some(Self {
            formats,
            values,
            results,
        })
    }

    /// Of the literals of a simple query that are parameters in the shape's text, where all others are as in its own; their types, too.
    pub(crate) fn of_literals(shape: &Shape, own: &[Box<str>], literals: &[Literal<'a>]) -> Option<(Self, Vec<u32>)> {
        let mut types = Vec::with_capacity(shape.literals().len());
        let mut values = Vec::with_capacity(shape.literals().len());
        let mut of_shape = shape.literals().iter().peekable();
        if literals.len() != own.len() {
            return None;
        }
        for (at, (literal, own)) in literals.iter().zip(own).enumerate() {
            if of_shape.next_if_eq(&&at).is_none() {
                if literal.0 == &**own {
                    continue;
                }
                return None;
            }
            let (number, value) = match (literal.digits(), literal.string()) {
                // A longer one is of no integer type.
                (Some(digits), _) if digits.parse::<i32>().is_ok() => (INT4, Cow::Borrowed(digits.as_bytes())),
                (Some(digits), _) if digits.parse::<i64>().is_ok() => (INT8, Cow::Borrowed(digits.as_bytes())),
                (_, Some(text)) if text.contains('\'') => (0, Cow::Owned(text.replace("''", "'").into_bytes())),
                (_, Some(text)) => (0, Cow::Borrowed(text.as_bytes())),
                _ => return None,
            };
            types.push(number);
            values.push(Some(value));
        }
        let bound = Self {
            formats: &NONE,
            values,
            results: &NONE,
        };
        Some((bound, types))
    }
}

/// What is bound for the parameter of this number, and whether it is binary; none where it is NULL, or not there.
pub(crate) fn parameter(bound: &[u8], number: usize) -> Option<(bool, &[u8])> {
    let (formats, rest) = codes(bound)?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    if number >= usize::from(u16::from_be_bytes(*count)) {
        return None;
    }
    for _ in 0..number {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length);
        let length = if length == u32::MAX { 0 } else { length };
        rest = behind.get(usize::try_from(length).ok()?..)?;
    }
    let (length, behind) = rest.split_first_chunk::<4>()?;
    // NULL is longer than all there is.
    let value = behind.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((is_binary(formats, number)?, value))
}

/// A count of codes and the codes, as they stand, and what is behind them.
fn codes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = u16::from_be_bytes(*bytes.first_chunk::<2>()?);
    bytes.split_at_checked(2 + 2 * usize::from(count))
}

/// Whether number `at` is binary by these codes, of which none is for texts, and one for all; none where it is neither.
pub(crate) fn is_binary(codes: &[u8], at: usize) -> Option<bool> {
    let code = match codes.len() {
        2 => return Some(false),
        4 => &codes[2..4],
        _ => codes.get(2 + 2 * at..4 + 2 * at)?,
    };
    match code {
        [0, 0] => Some(false),
        [0, 1] => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};

    use super::*;

    fn bind(formats: &[u16], values: &[Option<&[u8]>], results: &[u16]) -> BytesMut {
        let mut body = BytesMut::new();
        let put_codes = |body: &mut BytesMut, codes: &[u16]| {
            body.put_u16(u16::try_from(codes.len()).unwrap());
            codes.iter().for_each(|code| body.put_u16(*code));
        };
        put_codes(&mut body, formats);
        body.put_u16(u16::try_from(values.len()).unwrap());
        for value in values {
            match value {
                Some(value) => {
                    body.put_u32(u32::try_from(value.len()).unwrap());
                    body.extend_from_slice(value);
                }
                None => body.put_u32(u32::MAX),
            }
        }
        put_codes(&mut body, results);
        body
    }

    #[test]
    fn what_is_bound_is_taken_apart_or_not_at_all() {
        let values = [Some(&b"5"[..]), Some(b""), None];
        assert!(Bound::of(&bind(&[], &values, &[])).is_none(), "of a text");
        let of_texts = bind(&[], &[None, Some(b"7")], &[]);
        assert_eq!(parameter(&of_texts, 1), Some((false, &b"7"[..])));
        assert_eq!((parameter(&of_texts, 0), parameter(&of_texts, 2)), (None, None));
        let body = bind(&[1, 0, 1], &values, &[1]);
        let bound = Bound::of(&body).unwrap();
        assert!(bound.values.iter().map(Option::as_deref).eq(values));
        let formats: Vec<_> = (0..3).map(|at| is_binary(bound.formats, at)).collect();
        assert_eq!(formats, [Some(true), Some(false), Some(true)]);
        assert_eq!(is_binary(bound.results, 7), Some(true), "one is for all");
        for length in 0..body.len() {
            assert!(Bound::of(&body[..length]).is_none(), "{length}");
        }
        assert!(Bound::of(&[&body[..], &[0]].concat()).is_none());
        assert_eq!(is_binary(&[0, 1, 0, 2], 0), None, "no format");
        assert_eq!(is_binary(&[0, 0], 3), Some(false));
        assert_eq!(is_binary(&[0, 2, 0, 0, 0, 1], 2), None);
    }

    #[test]
    fn literals_become_values_where_all_others_are_alike() {
        let shown = |text: &str, of: &'static str| {
            let shape = Shape::of(text).unwrap();
            let own: Vec<Box<str>> = forebay_sql::literals(text)
                .unwrap()
                .iter()
                .map(|literal| literal.0.into())
                .collect();
            let (bound, types) = Bound::of_literals(&shape, &own, &forebay_sql::literals(of).unwrap())?;
            let values = bound.values.iter().map(|value| value.clone().unwrap().into_owned());
            Some((values.collect::<Vec<_>>(), types))
        };
        let text = "SELECT a FROM t WHERE id = 5 AND name = '$$x$$' AND n > 7";
        let of = |of: &'static str| shown(text, of);
        assert_eq!(
            of("SELECT a FROM t WHERE id = 3000000000 AND name = '$$x$$' AND n > 7"),
            Some((vec![b"3000000000".to_vec()], vec![INT8]))
        );
        for other in [
            "SELECT a FROM t WHERE id = 5 AND name = '$$x$$' AND n > 8",
            "SELECT a FROM t WHERE id = 5 AND name = $$x$$ AND n > 7",
            "SELECT a FROM t WHERE id = 5 AND name = 'x' AND n > 7",
            "SELECT a FROM t WHERE id = 99999999999999999999 AND name = '$$x$$' AND n > 7",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(
            shown(
                "INSERT INTO t VALUES (1, 'x', 1.5)",
                "INSERT INTO t VALUES (7, 'it''s', 1.5)"
            ),
            Some((vec![b"7".to_vec(), b"it's".to_vec()], vec![INT4, 0]))
        );
        let long = format!("SELECT a AS {} FROM t WHERE id = 5", "n".repeat(64));
        assert!(Shape::of(&long).is_none(), "its client is told that it is cut");
    }
}
