//! Restriction: the rows of a table that a statement is restricted to, by what it was given.
//!
//! Promises: they are told only where the statement's text restricts it to rows that have one of a few values in each column of the table's key, does not change them, and what was
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
        let (given, is_binary, bytes) = self.bound(number)?;
        Some(Value::Bound {
            given,
            cast,
            is_binary,
            bytes,
        })
    }

    /// What is in the array that is the parameter of this number.
    fn elements(&self, number: usize, cast: Option<u32>) -> Option<Vec<Value<'a>>> {
        let (given, is_binary, array) = self.bound(number)?;
        elements(element_of(given)?, cast, is_binary, array)
    }

    /// The type that this parameter was given, or zero; whether it is binary; and itself.
    fn bound(&self, number: usize) -> Option<(u32, bool, &'a [u8])> {
        let Self::Bound { definition, bound } = self else {
            return None;
        };
        let (_, types) = frames::zero_terminated(definition)?;
        let given = types.get(2 + 4 * number..6 + 4 * number);
        let given = given.map_or(0, |given| u32::from_be_bytes(given.try_into().expect("four")));
        let (is_binary, bytes) = parameter(bound, number)?;
        Some((given, is_binary, bytes))
    }
}

/// More rows are not told one by one.
pub(crate) const ROWS_MAX: usize = 1000;

/// The rows that a statement is restricted to, in a table with this key.
pub(crate) fn rows(restricted: &Restricted, key: &Key, given: &Given<'_>) -> Option<Vec<Arc<str>>> {
    let is_assigned = |(name, _): (&str, u32)| restricted.assigned.iter().any(|assigned| assigned == name);
    if key.columns().any(is_assigned) {
        return None;
    }
    let mut known: Option<Vec<Literal<'_>>> = None;
    let mut count: usize = 1;
    let mut values = Vec::new();
    for (name, _) in key.columns() {
        let to = &restricted.columns.iter().find(|known| known.column == name)?.to;
        let mut of_column = Vec::with_capacity(to.len());
        for to in to {
            match *to {
                To::Parameter(number) => of_column.push(given.parameter(number, None)?),
                To::Cast(number, of) => of_column.push(given.parameter(number, Some(of))?),
                To::Elements(number, of) => of_column.extend(given.elements(number, of)?),
                To::Literal(number) => {
                    if known.is_none() {
                        known = Some(literals(given.text()?)?);
                    }
                    let literal = known.as_ref()?.get(number)?;
                    let value = literal.digits().map(Value::Digits);
                    of_column.push(value.or(literal.string().map(Value::String))?);
                }
            }
        }
        count = count.checked_mul(of_column.len()).filter(|count| *count <= ROWS_MAX)?;
        values.push((name, of_column));
    }
    let row = |mut number: usize| {
        let chosen: Vec<(&str, Value<'_>)> = values
            .iter()
            .map(|(name, values)| {
                let value = values[number % values.len()];
                number /= values.len();
                (*name, value)
            })
            .collect();
        key.row(|column| chosen.iter().find(|(name, _)| *name == column).map(|(_, value)| *value))
    };
    (0..count).map(row).collect()
}

/// Types of keys in whose arrays NULL is nothing else: `int8`, `int2`, `int4`, `uuid`.
const NO_TEXTS: [u32; 4] = [20, 21, 23, 2950];

/// What is in an array of this form, of which NULL is nothing; none where that is not certain.
fn elements<'a>(of: u32, cast: Option<u32>, is_binary: bool, array: &'a [u8]) -> Option<Vec<Value<'a>>> {
    let value = |given, bytes| Value::Bound {
        given,
        cast,
        is_binary,
        bytes,
    };
    if !is_binary {
        let inside = std::str::from_utf8(array).ok()?.strip_prefix('{')?.strip_suffix('}')?;
        // What is quoted, or in an array of its own, and what the server leaves out.
        if inside.contains(|char: char| {
            matches!(char, '{' | '}' | '"' | '\\') || char.is_ascii_whitespace() || !char.is_ascii()
        }) {
            return None;
        }
        let all = inside.split(',').filter(|_| !inside.is_empty());
        // Of texts it is one, where `array_nulls` is off.
        let has_nulls = NO_TEXTS.contains(&of);
        let all = all.filter(|element| !(has_nulls && element.eq_ignore_ascii_case("null")));
        return all
            .map(|element| (!element.is_empty()).then(|| value(of, element.as_bytes())))
            .collect();
    }
    let mut rest = array;
    let mut number = || {
        let (number, behind) = rest.split_first_chunk()?;
        rest = behind;
        Some(i32::from_be_bytes(*number))
    };
    let (dimensions, _, own) = (number()?, number()?, u32::from_be_bytes(number()?.to_be_bytes()));
    if dimensions == 0 {
        return Some(Vec::new());
    }
    if dimensions != 1 || (of != 0 && of != own) {
        return None;
    }
    let (count, _) = (
        usize::try_from(number()?).ok().filter(|count| *count <= ROWS_MAX)?,
        number()?,
    );
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, behind) = rest.split_first_chunk()?;
        rest = behind;
        // That of NULL is below zero.
        if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
            let (element, behind) = rest.split_at_checked(length)?;
            rest = behind;
            all.push(value(own, element));
        }
    }
    rest.is_empty().then_some(all)
}

/// The type of what is in arrays of this type; of no type at all, none.
fn element_of(array: u32) -> Option<u32> {
    Some(match array {
        0 => 0,
        1005 => 21,
        1007 => 23,
        1009 => 25,
        1015 => 1043,
        1016 => 20,
        2951 => 2950,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use forebay_sql::restricted;

    use super::*;

    fn row_of(text: &str, lines: &str, given: &Given<'_>) -> Option<String> {
        Some(rows(&restricted(text)?, &Key::parse(lines).unwrap(), given)?.join(" "))
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
            (
                "DELETE FROM t WHERE a = 7 AND id IN (5, '6')",
                Some("id\x005\0 id\x006\0"),
            ),
            ("DELETE FROM t WHERE id IN (5, 06)", None),
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
        let told = rows(&known, &Key::parse("23 id\n25 b").unwrap(), &other);
        assert_eq!(told.as_deref(), Some(&["id\x0077\0b\0y\0".into()][..]));
    }

    #[test]
    fn of_several_columns_each_may_have_each_of_its_values() {
        let text = "SELECT a FROM t WHERE b IN (1, 2, 3) AND id IN (5, 6)";
        let told = row_of(text, "23 id\n23 b", &Given::Text(text.as_bytes())).unwrap();
        let mut told: Vec<&str> = told.split(' ').collect();
        told.sort_unstable();
        let all = [5, 6].map(|id| [1, 2, 3].map(|b| format!("id\0{id}\0b\0{b}\0")));
        assert_eq!(told, all.concat());
        let list = (0..40).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        let text = format!("SELECT a FROM t WHERE b IN ({list}) AND id IN ({list})");
        assert_eq!(row_of(&text, "23 id\n23 b", &Given::Text(text.as_bytes())), None);
        assert!(row_of(&text, "23 id", &Given::Text(text.as_bytes())).is_some());
    }

    #[test]
    fn the_rows_of_an_array_are_told_by_what_is_in_it() {
        let count = |of| elements(of, None, false, b"{NULL,a}").map(|values| values.len());
        assert_eq!(count(23), Some(1));
        // By `array_nulls = off` it is a text like others.
        assert_eq!((count(25), count(1043), count(0)), (Some(2), Some(2), Some(2)));
        let key = Key::parse("23 id").unwrap();
        let told = |of, cast, is_binary, array: &[u8]| {
            let values = elements(element_of(of)?, cast, is_binary, array)?;
            let rows = values.into_iter().map(|value| key.row(|_| Some(value)));
            Some(rows.collect::<Option<Vec<_>>>()?.join(" "))
        };
        for (of, cast, array, rows) in [
            (0, None, "{5,-6}", Some("id\x005\0 id\0-6\0")),
            (1016, Some(21), "{5,NULL,null}", Some("id\x005\0")),
            (1007, None, "{}", Some("")),
            (1231, None, "{5}", None),
            (0, Some(25), "{5}", None),
            (1007, None, "{05}", None),
            (1007, None, "{5,}", None),
            (1007, None, "{ 5}", None),
            (1007, None, "{\"5\"}", None),
            (1007, None, "{{5}}", None),
            (1007, None, "[1:1]={5}", None),
            (1007, None, "5", None),
            (1007, None, "", None),
        ] {
            assert_eq!(told(of, cast, false, array.as_bytes()).as_deref(), rows, "{of} {array}");
        }
        let binary = |of: u32, dimensions: i32, elements: &[Option<&[u8]>]| {
            let count = i32::try_from(elements.len()).unwrap();
            let mut array = [dimensions, 1, of.cast_signed(), count, 1]
                .map(i32::to_be_bytes)
                .concat();
            for element in elements {
                let length = element.map_or(-1, |element| i32::try_from(element.len()).unwrap());
                array.extend(length.to_be_bytes());
                array.extend(element.unwrap_or_default());
            }
            array
        };
        let (five, six) = (5_i64.to_be_bytes(), 6_i32.to_be_bytes());
        let array = binary(20, 1, &[Some(&five), None, Some(&five)]);
        assert_eq!(told(1016, None, true, &array).as_deref(), Some("id\x005\0 id\x005\0"));
        assert_eq!(told(0, Some(21), true, &array).as_deref(), Some("id\x005\0 id\x005\0"));
        for length in 0..array.len() {
            assert_eq!(told(1016, None, true, &array[..length]), None, "{length}");
        }
        assert_eq!(told(1016, None, true, &[&array[..], &[0]].concat()), None);
        assert_eq!(told(1007, None, true, &array), None, "it is of another type");
        assert_eq!(told(1007, None, true, &binary(23, 2, &[Some(&six)])), None);
        assert_eq!(told(1007, None, true, &binary(23, 0, &[])[..12]).as_deref(), Some(""));
        assert_eq!(told(1007, None, true, &binary(23, 1, &[Some(&five)])), None);
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
