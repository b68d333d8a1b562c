//! Columns: those that a statement has, told apart from others.
//!
//! Promises: what PostgreSQL takes for another result is another one here, but for one in four thousand million. Knows no statement.

use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroU32;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::frames::{Frame, HEADER_BYTES, frame, zero_terminated};

/// The columns that a statement has: a hash of their names, types and modifiers, by which PostgreSQL tells whether a plan has another result
/// (`equalRowTypes`). It is the same behind a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Columns(NonZeroU32);

impl Columns {
    /// What has none has none whatever its tables are like.
    pub(crate) const NONE: Self = Self(NonZeroU32::MIN);

    /// By a RowDescription, or by what stands in its place; none where that is malformed.
    pub(crate) fn by(tag: u8, body: &[u8]) -> Option<Self> {
        const BEHIND_NAME: usize = 18;
        if tag != b'T' {
            return Some(Self::NONE);
        }
        let (count, mut rest) = body.split_first_chunk()?;
        let mut hasher = FixedState::with_seed(0).build_hasher();
        for _ in 0..u16::from_be_bytes(*count) {
            let (name, behind) = zero_terminated(rest)?;
            let (described, behind) = behind.split_first_chunk::<BEHIND_NAME>()?;
            // Its table, place and size, and the format are no part of the type.
            (name, &described[6..10], &described[12..16]).hash(&mut hasher);
            rest = behind;
        }
        let hash = u32::try_from(hasher.finish() >> u32::BITS).expect("its upper half");
        let is_some = NonZeroU32::new(hash).filter(|hash| *hash != Self::NONE.0);
        rest.is_empty().then_some(Self(is_some.unwrap_or(NonZeroU32::MAX)))
    }

    /// By an answer in which they are described; none where they are not.
    pub(crate) fn told_in(answer: &[u8]) -> Option<Self> {
        let (tag, body) = first(answer, |tag| matches!(tag, b'T' | b'n'))?;
        Self::by(tag, body)
    }
}

/// The body of the ParameterDescription in an answer.
pub(crate) fn types_told_in(answer: &[u8]) -> Option<&[u8]> {
    Some(first(answer, |tag| tag == b't')?.1)
}

/// The first message of such a kind, and its body.
fn first(mut answer: &[u8], is_it: impl Fn(u8) -> bool) -> Option<(u8, &[u8])> {
    loop {
        let Frame { tag, length } = frame(answer).ok()??;
        let (message, rest) = answer.split_at_checked(length)?;
        if is_it(tag) {
            return Some((tag, &message[HEADER_BYTES..]));
        }
        answer = rest;
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::frames::put;

    fn description(columns: &[(&str, u32, i32)]) -> BytesMut {
        let mut body = BytesMut::new();
        body.extend_from_slice(&u16::try_from(columns.len()).unwrap().to_be_bytes());
        for (at, (name, kind, modifier)) in (0_u16..).zip(columns) {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(&[0]);
            // Its table and place, its type, size, modifier and format.
            body.extend_from_slice(&[&[7, 7, 7, 7][..], &at.to_be_bytes()].concat());
            body.extend_from_slice(&[&kind.to_be_bytes()[..], &[0, 4], &modifier.to_be_bytes(), &[0, 0]].concat());
        }
        body
    }

    #[test]
    fn names_types_and_modifiers_tell_columns_apart_and_nothing_else_does() {
        let of = |columns: &[(&str, u32, i32)]| Columns::by(b'T', &description(columns)).unwrap();
        let one = of(&[("a", 23, -1), ("b", 25, -1)]);
        for other in [
            of(&[("b", 25, -1), ("a", 23, -1)]),
            of(&[("a", 23, -1)]),
            of(&[("a", 20, -1), ("b", 25, -1)]),
            of(&[("a", 23, 8), ("b", 25, -1)]),
            of(&[("ab", 23, -1), ("", 25, -1)]),
            of(&[]),
            Columns::NONE,
        ] {
            assert_ne!(one, other);
        }
        let mut elsewhere = description(&[("a", 23, -1), ("b", 25, -1)]);
        // Of another table, and in another format.
        elsewhere[4] = 9;
        *elsewhere.last_mut().unwrap() = 1;
        assert_eq!(Columns::by(b'T', &elsewhere), Some(one));
        assert_eq!(Columns::by(b'n', &[]), Some(Columns::NONE));
    }

    #[test]
    fn what_is_malformed_is_none_and_what_was_told_is_found() {
        let body = description(&[("a", 23, -1)]);
        for length in 0..body.len() {
            assert_eq!(Columns::by(b'T', &body[..length]), None);
        }
        let mut answer = BytesMut::new();
        put(&mut answer, b'2', &[]);
        assert_eq!(Columns::told_in(&answer), None);
        put(&mut answer, b'T', &[&body]);
        put(&mut answer, b'D', &[&[0, 0]]);
        assert_eq!(Columns::told_in(&answer), Columns::by(b'T', &body));
    }
}
