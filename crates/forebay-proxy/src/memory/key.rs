//! Key: the columns by which one row of a table is told from all others, and how a row is called by their values.
//!
//! Promises: two values that the database takes for equal, of columns and parameters of the types that are [asked for](COLUMNS), are called alike, or one of them
//! is not called at all: then whoever asks has to take it for any row. Knows no statement.
//!
//! Numbers of types are those of every PostgreSQL (`pg_type.dat`). Values are called by what PostgreSQL writes for them as a text, and what is not
//! written so is not called.

use std::borrow::Cow;
use std::sync::Arc;

/// Whole numbers.
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
/// Texts, equal only where all of their bytes are.
const TEXT: u32 = 25;
const VARCHAR: u32 = 1043;
const UUID: u32 = 2950;

/// Types whose values are called.
const CALLED: [u32; 6] = [INT8, INT2, INT4, TEXT, VARCHAR, UUID];

/// Longer texts are not called.
const TEXT_BYTES_MAX: usize = 128;

/// Asks for the columns of the table `c` that its replica identity goes by, or its primary key where that is whole rows: a line each, of the type's
/// number and the name. NULL where there are none, where a collation takes texts for equal that are not, where one is made of others, which change it without a word, and where other tables have
/// that name or rows of this one.
pub(crate) const COLUMNS: &str = "(SELECT pg_catalog.string_agg(pg_catalog.concat(a.atttypid, ' ', a.attname), pg_catalog.chr(10) ORDER BY a.attnum) \
     FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid \
     AND a.attnum = ANY((CAST(i.indkey AS pg_catalog.int2[]))[0:i.indnkeyatts - 1]) \
     LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation \
     WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate AND c.relkind = 'r' AND NOT c.relhassubclass \
     AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false ELSE i.indisprimary END \
     AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class o WHERE o.relname = c.relname AND o.relkind IN ('r', 'p') \
     AND o.relpersistence <> 't') = 1 \
     HAVING pg_catalog.bool_and(coalesce(l.collisdeterministic, true) AND a.attgenerated OPERATOR(pg_catalog.=) '' AND pg_catalog.strpos(a.attname, pg_catalog.chr(10)) = 0))";

/// The columns of a key, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    columns: Box<[Column]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Column {
    name: Box<str>,
    of: u32,
}

/// A value that a column is compared with, or is given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    /// Digits that stand in a text.
    Digits(&'a str),
    /// What stands in a text between two quotes.
    String(&'a str),
    /// Of a parameter that was given this type, or none; which stands there as a value of that other type, or as it is.
    Bound {
        given: u32,
        cast: Option<u32>,
        is_binary: bool,
        bytes: &'a [u8],
    },
}

impl Key {
    /// What these [columns](COLUMNS) are, where values of all of their types are called.
    pub(crate) fn parse(lines: &str) -> Option<Self> {
        let column = |line: &str| {
            let (of, name) = line.split_once(' ')?;
            let (name, of) = (name.into(), of.parse().ok()?);
            CALLED.contains(&of).then_some(Column { name, of })
        };
        let columns: Box<[Column]> = lines.split('\n').map(column).collect::<Option<_>>()?;
        Some(Self { columns })
    }

    /// The names and types of its columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, u32)> {
        self.columns.iter().map(|column| (&*column.name, column.of))
    }

    /// How the row is called that has these values in its columns; none where it is not.
    pub(crate) fn row<'a>(&self, mut value: impl FnMut(&str) -> Option<Value<'a>>) -> Option<Arc<str>> {
        self.called(|column| canonical(column.of, value(&column.name)?))
    }

    /// The same, by what the database writes for each column, in their order.
    pub(crate) fn row_of_texts<'a>(&self, mut texts: impl Iterator<Item = Option<&'a str>>) -> Option<Arc<str>> {
        self.called(|column| of_text(column.of, texts.next()??))
    }

    fn called<'a>(&self, mut value: impl FnMut(&Column) -> Option<Cow<'a, str>>) -> Option<Arc<str>> {
        let mut row = String::new();
        for column in &self.columns {
            // Neither has a zero in it.
            row.extend([&*column.name, "\0", &*value(column)?, "\0"]);
        }
        Some(row.into())
    }
}

/// A value of a column of this type, as PostgreSQL writes it; none where that is not certain.
fn canonical(of: u32, value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        // To a text it is not compared.
        Value::Digits(digits) => is_number(of).then(|| of_text(of, digits)).flatten(),
        Value::String(text) if text.contains('\'') => Some(of_text(of, &text.replace("''", "'"))?.into_owned().into()),
        Value::String(text) => of_text(of, text),
        Value::Bound {
            given,
            cast,
            is_binary,
            bytes,
        } => {
            let given = match given {
                0 => cast.unwrap_or(of),
                given => given,
            };
            if !is_alike(of, given) || !is_alike(of, cast.unwrap_or(given)) {
                return None;
            }
            match is_binary {
                true => of_binary(given, bytes),
                false => of_text(of, std::str::from_utf8(bytes).ok()?),
            }
        }
    }
}

fn is_number(of: u32) -> bool {
    [INT2, INT4, INT8].contains(&of)
}

/// Whether a column of the one is equal to a value of the other where both are written alike.
fn is_alike(of: u32, other: u32) -> bool {
    let is_text = |of: u32| [TEXT, VARCHAR].contains(&of);
    of == other || (is_number(of) && is_number(other)) || (is_text(of) && is_text(other))
}

fn of_text(of: u32, text: &str) -> Option<Cow<'_, str>> {
    let is_it = match of {
        INT2 | INT4 | INT8 => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
        // What is written otherwise in another encoding, and what is cut where it is too long.
        TEXT | VARCHAR => text.is_ascii() && text.len() <= TEXT_BYTES_MAX && !text.ends_with(' '),
        _ => is_uuid(text),
    };
    is_it.then_some(Cow::Borrowed(text))
}

fn is_uuid(text: &str) -> bool {
    let is_it = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_it)
}

fn of_binary(of: u32, bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = match of {
        INT2 => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        INT4 => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        INT8 => i64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        TEXT | VARCHAR => return of_text(of, std::str::from_utf8(bytes).ok()?),
        UUID => {
            let bytes: &[u8; 16] = bytes.try_into().ok()?;
            let digits = format!("{:032x}", u128::from_be_bytes(*bytes));
            let part = |from, to| &digits[from..to];
            [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
        }
        _ => return None,
    };
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(lines: &str) -> Key {
        Key::parse(lines).unwrap()
    }

    fn bound(given: u32, cast: Option<u32>, bytes: &[u8]) -> Value<'_> {
        Value::Bound {
            given,
            cast,
            is_binary: false,
            bytes,
        }
    }

    fn binary(given: u32, bytes: &[u8]) -> Value<'_> {
        Value::Bound {
            given,
            cast: None,
            is_binary: true,
            bytes,
        }
    }

    #[test]
    fn equal_values_are_called_alike() {
        const ID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        let id = u128::from_str_radix(&ID.replace('-', ""), 16).unwrap().to_be_bytes();
        for (of, text, values) in [
            (
                INT4,
                "-5",
                &[
                    Value::String("-5"),
                    bound(0, None, b"-5"),
                    bound(INT8, None, b"-5"),
                    bound(0, Some(INT2), b"-5"),
                    binary(0, &(-5_i32).to_be_bytes()),
                    binary(INT8, &(-5_i64).to_be_bytes()),
                    binary(INT2, &(-5_i16).to_be_bytes()),
                ][..],
            ),
            (
                INT8,
                "5",
                &[Value::Digits("5"), Value::String("5"), binary(INT4, &[0, 0, 0, 5])],
            ),
            (
                VARCHAR,
                "it's",
                &[
                    Value::String("it''s"),
                    bound(0, None, b"it's"),
                    binary(TEXT, b"it's"),
                    bound(TEXT, None, b"it's"),
                ],
            ),
            (
                UUID,
                ID,
                &[Value::String(ID), bound(0, None, ID.as_bytes()), binary(UUID, &id)],
            ),
        ] {
            let key = key(&format!("{of} a"));
            let row = key.row_of_texts([Some(text)].into_iter()).unwrap();
            for value in values {
                assert_eq!(key.row(|_| Some(*value)).as_ref(), Some(&row), "{value:?}");
            }
        }
    }

    #[test]
    fn what_may_be_equal_to_what_is_written_otherwise_is_not_called() {
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        for (of, value) in [
            (INT4, Value::Digits("05")),
            (INT4, Value::Digits("9223372036854775808")),
            (INT4, Value::String(" 5")),
            (INT4, Value::String("+5")),
            (INT4, Value::String("-0")),
            (INT4, Value::String("0x5")),
            (INT4, Value::String("5_0")),
            (INT4, bound(1700, None, b"5")),
            (INT4, bound(701, None, b"5")),
            (INT4, bound(0, Some(1700), b"5")),
            (INT4, bound(TEXT, Some(INT4), b"5")),
            (INT4, binary(0, &[0; 8])),
            (INT4, binary(701, &[0; 8])),
            (TEXT, Value::Digits("5")),
            (TEXT, Value::String("ä")),
            (TEXT, Value::String("a ")),
            (TEXT, Value::String(&long)),
            (TEXT, bound(1042, None, b"a")),
            (TEXT, bound(INT4, None, b"5")),
            (TEXT, binary(0, b"\xff")),
            (UUID, Value::String("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")),
            (UUID, Value::String("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}")),
            (UUID, Value::String("a0eebc999c0b4ef8bb6d6bb9bd380a11")),
            (UUID, binary(UUID, &[0; 15])),
        ] {
            assert_eq!(key(&format!("{of} a")).row(|_| Some(value)), None, "{of} {value:?}");
        }
    }

    #[test]
    fn all_columns_of_a_key_are_called_by_their_names() {
        let key = key("23 a b\n25 c");
        assert!(key.columns().eq([("a b", INT4), ("c", TEXT)]));
        let value = |column: &str| match column {
            "a b" => Some(Value::Digits("5")),
            _ => Some(Value::String("x")),
        };
        assert_eq!(key.row(value).as_deref(), Some("a b\x005\0c\0x\0"));
        assert_eq!(key.row(|column| value(column).filter(|_| column == "c")), None);
        assert_eq!(key.row_of_texts([Some("5"), None].into_iter()), None);
        for lines in ["", "x a", "23", "1700 a", "23 a\n1042 b"] {
            assert_eq!(Key::parse(lines), None, "{lines}");
        }
    }
}
