//! Restriction: the one row of a table that a statement is restricted to, by what it was given.
//!
//! Promises: it is told only where the statement's text restricts it to rows that have one value in each column of the table's key, does not change them, and what was
//! given for them is [called](crate::memory::key) as the database calls it. Knows no connection.

use std::sync::Arc;

use forebay_sql::{Literal, Restricted, To, literals};

use super::ask::Ask;
use super::bound::parameter;
use crate::frames;
use crate::memory::key::{Key, Value};

/// What a statement is asked with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    /// A text by itself.
    Text(&'a [u8]),
    /// The body of a Parse and of a Bind, both behind the name.
    Bound { definition: &'a [u8], bound: &'a [u8] },
}

impl<'a> Given<'a> {
    /// With that it is asked for somebody; of a statement that was prepared, by its definition.
    pub(crate) fn of(ask: &'a Ask, definition: Option<&'a [u8]>) -> Option<Self> {
        Some(match ask {
            Ask::Simple(text) => Self::Text(text),
            Ask::Extended { bound, .. } => Self::Bound {
                definition: definition?,
                bound,
            },
        })
    }

    fn text(&self) -> Option<&'a str> {
        let text = match self {
            Self::Text(text) => text,
            Self::Bound { definition, .. } => frames::zero_terminated(definition)?.0,
        };
        std::str::from_utf8(text).ok()
    }

    /// The parameter of this number, and the type that it was given.
    fn parameter(&self, number: usize, cast: Option<u32>) -> Option<Value<'a>> {
        let Self::Bound { definition, bound } = self else {
            return None;
        };
        let (_, types) = frames::zero_terminated(definition)?;
        let given = types.get(2 + 4 * number..6 + 4 * number);
        let (is_binary, bytes) = parameter(bound, number)?;
        Some(Value::Bound {
            given: given.map_or(0, |given| u32::from_be_bytes(given.try_into().expect("four"))),
            cast,
            is_binary,
            bytes,
        })
    }
}

/// The row that a statement is restricted to, in a table with this key.
pub(crate) fn row(restricted: &Restricted, key: &Key, given: &Given<'_>) -> Option<Arc<str>> {
    let is_assigned = |(name, _): (&str, u32)| restricted.assigned.iter().any(|assigned| assigned == name);
    if key.columns().any(is_assigned) {
        return None;
    }
    let mut known: Option<Vec<Literal<'_>>> = None;
    key.row(|column| {
        let to = restricted.columns.iter().find(|known| known.column == column)?.to;
        match to {
            To::Parameter(number) => given.parameter(number, None),
            To::Cast(number, of) => given.parameter(number, Some(of)),
            To::Literal(number) => {
                if known.is_none() {
                    known = Some(literals(given.text()?)?);
                }
                let literal = known.as_ref()?.get(number)?;
                literal
                    .digits()
                    .map(Value::Digits)
                    .or(literal.string().map(Value::String))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use forebay_sql::restricted;

    use super::*;

    fn row_of(text: &str, lines: &str, given: &Given<'_>) -> Option<String> {
        row(&restricted(text)?, &Key::parse(lines).unwrap(), given).map(|row| row.to_string())
    }

    /// A Parse of this text and types, and a Bind of these values, of which the last is binary.
    fn with(text: &str, types: &[u32], values: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let count = |count: usize| u16::try_from(count).unwrap().to_be_bytes();
        let types_of: Vec<u8> = types.iter().flat_map(|of| of.to_be_bytes()).collect();
        let definition = [text.as_bytes(), &[0], &count(types.len()), &types_of].concat();
        let mut bound = count(values.len()).to_vec();
        (0..values.len()).for_each(|at| bound.extend(count(usize::from(at + 1 == values.len()))));
        bound.extend(count(values.len()));
        for value in values {
            bound.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
            bound.extend(*value);
        }
        bound.extend(count(0));
        (definition, bound)
    }

    #[test]
    fn the_row_of_a_text_is_told_by_its_own_literals() {
        for (text, row) in [
            ("SELECT 7, a FROM t WHERE id = 5", Some("id\x005\0")),
            ("SELECT 7, a FROM t WHERE b = 7 AND id = '-5'", Some("id\0-5\0")),
            ("SELECT a FROM t WHERE b = 5", None),
            ("UPDATE t SET a = 7 WHERE id = 5", Some("id\x005\0")),
            ("UPDATE t SET id = 7 WHERE id = 5", None),
            ("DELETE FROM t WHERE id = 5", Some("id\x005\0")),
            ("INSERT INTO t (a, id) VALUES (7, 5)", Some("id\x005\0")),
            ("INSERT INTO t (a) VALUES (7)", None),
        ] {
            assert_eq!(
                row_of(text, "23 id", &Given::Text(text.as_bytes())).as_deref(),
                row,
                "{text}"
            );
        }
        // Known of one, asked of another.
        let known = restricted("SELECT a FROM t WHERE b = 'x' AND id = 5").unwrap();
        let other = Given::Text(b"SELECT a FROM t WHERE b = 'y' AND id = 77");
        let told = row(&known, &Key::parse("23 id\n25 b").unwrap(), &other);
        assert_eq!(told.as_deref(), Some("id\x0077\0b\0y\0"));
    }

    #[test]
    fn the_row_of_parameters_is_told_by_what_is_bound() {
        let text = "SELECT a FROM t WHERE b = $1 AND id = $2::int8 AND c = 'x'";
        let lines = "20 id\n25 b\n25 c";
        let (definition, bound) = with(text, &[25], &[b"it", &[0, 0, 0, 0, 0, 0, 0, 9]]);
        let given = |bound| Given::Bound {
            definition: &definition,
            bound,
        };
        let told = row_of(text, lines, &given(&bound));
        assert_eq!(told.as_deref(), Some("id\x009\0b\0it\0c\0x\0"));
        for length in 0..bound.len() - 2 {
            assert_eq!(row_of(text, lines, &given(&bound[..length])), None, "{length}");
        }
        let (_, null) = with(text, &[25], &[b"it"]);
        assert_eq!(row_of(text, lines, &given(&null)), None);
    }
}
