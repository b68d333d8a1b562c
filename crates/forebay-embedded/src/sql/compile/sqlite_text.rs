//! SQLite's text: how names and literals are written, and what is found in it.
//!
//! Promises: SQLite reads a name or literal written here back as it was given. Looks at what the compiler has written, never at a client's text.

use std::borrow::Cow;

use forebay_pg_values::{Owned, Type};

use super::fault::{Fault, Result};

/// What stands for the parameter with which a statement is told of its session; replaced by its number when all others are known.
pub(super) const ENVIRONMENT: char = '\u{1}';
const ENVIRONMENT_BYTE: u8 = ENVIRONMENT as u8;

/// What gives another value each time it is asked, a sequence's next number aside.
const MOVING: [&str; 5] = [
    "\"forebay_random\"",
    "\"forebay_uuid\"",
    "\"forebay_clock\"",
    "\"forebay_setval\"",
    "\"forebay_lastval\"",
];

/// A name as SQLite's grammar has it.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for (index, part) in text.split('\'').enumerate() {
        if index > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
    out.push('\'');
    out
}

/// A constant as SQLite's grammar has it.
pub(super) fn literal(value: &Owned) -> String {
    match value {
        Owned::Null => "NULL".to_owned(),
        // Written so that no sign stands in front of a number: -9223372036854775808 is no integer to SQLite's grammar.
        Owned::Integer(i64::MIN) => "(-9223372036854775807-1)".to_owned(),
        Owned::Integer(integer) if *integer < 0 => format!("({integer})"),
        Owned::Integer(integer) => integer.to_string(),
        Owned::Real(real) if *real == f64::INFINITY => "9e999".to_owned(),
        Owned::Real(real) if *real == f64::NEG_INFINITY => "(-9e999)".to_owned(),
        Owned::Real(real) if *real < 0.0 || real.is_sign_negative() => format!("({real:?})"),
        Owned::Real(real) => format!("{real:?}"),
        Owned::Text(text) => quoted(text),
        Owned::Blob(bytes) => {
            use std::fmt::Write;
            let mut out = String::with_capacity(bytes.len() * 2 + 3);
            out.push_str("x'");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.push('\'');
            out
        }
    }
}

/// The name under which a function of PostgreSQL's is known to SQLite.
pub(crate) fn function_name(symbol: &str) -> String {
    identifier(&format!("pg:{symbol}"))
}

/// The type's internal name: `int4`, `_int4`.
pub(crate) fn type_label(kind: Type) -> String {
    match kind {
        Type::Scalar(kind) => kind.name().to_owned(),
        Type::Array(kind) => format!("_{}", kind.name()),
    }
}

/// The name of a relation as SQLite is given it.
pub(super) fn relation_name(number: usize) -> String {
    identifier(&format!("r{number}"))
}

/// Whether a text of SQLite's holds this name, as the compiler writes names.
pub(super) fn text_names(sql: &str, name: &str) -> bool {
    sql.contains(&identifier(name))
}

/// Whether a column stands in a text of SQLite's.
pub(super) fn has_column(sql: &str) -> bool {
    let bytes = sql.as_bytes();
    bytes
        .windows(3)
        .any(|three| three[0] == b'"' && matches!(three[1], b'r' | b'w') && three[2].is_ascii_digit())
}

/// Whether a text of SQLite's has another value each time.
pub(super) fn moves(sql: &str) -> bool {
    MOVING.iter().any(|moving| sql.contains(moving))
}

/// Whether there is a query in SQLite's text.
pub(super) fn has_query(sql: &str) -> bool {
    code(sql).any(|(at, byte)| byte == b'S' && sql[at..].starts_with("SELECT "))
}

/// The text with the number of the parameter that is told the environment.
pub(super) fn with_environment(sql: &str, number: usize) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut done = 0;
    for (at, _) in code(sql).filter(|(_, byte)| *byte == ENVIRONMENT_BYTE) {
        out.push_str(&sql[done..at]);
        out.push('?');
        out.push_str(&number.to_string());
        done = at + 1;
    }
    out.push_str(&sql[done..]);
    out
}

/// The text, in which rows of VALUES can be read by several at once. SQLite reads the rows of a list in FROM from one coroutine, which
/// is made while the list is parsed; where a UNION ALL beside it is taken apart, its branches are merged by ORDER BY, and each takes rows
/// from that one coroutine, which then are missing in the others (SQLite from 3.46 on). In a statement that has had a WITH it makes none.
pub(super) fn with_rows_apart(sql: &str) -> Cow<'_, str> {
    let has = |word: &str| code(sql).any(|(at, _)| sql.as_bytes()[at..].starts_with(word.as_bytes()));
    if sql.starts_with("WITH ") || !sql.contains("UNION ALL") || !has("(VALUES ") || !has("UNION ALL") {
        return sql.into();
    }
    let changes = ["SELECT ", "INSERT ", "UPDATE ", "DELETE "];
    if !changes.iter().any(|verb| sql.starts_with(verb)) {
        return sql.into();
    }
    format!("WITH \"forebay_none\" AS (SELECT 1) {sql}").into()
}

/// The text as SQLite is to have it, and the highest number of a parameter in it. The environment is the first parameter, if any step
/// asks for it, and the statement's own follow. A parameter whose number is the next one goes without it: SQLite looks for numbers one
/// by one in a list of all it has seen, which the environment, behind all others, would make it do for each of them.
pub(super) fn numbered(sql: &str, asks_for_environment: bool) -> (String, usize) {
    let first = usize::from(asks_for_environment);
    let mut out = String::with_capacity(sql.len());
    let (mut done, mut highest) = (0, 0);
    for (at, byte) in code(sql).filter(|(_, byte)| matches!(*byte, b'?' | ENVIRONMENT_BYTE)) {
        let digits = sql[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, end) = if byte == ENVIRONMENT_BYTE {
            (1, at + 1)
        } else {
            let number: usize = sql[at + 1..at + 1 + digits].parse().unwrap_or(0);
            (number + first, at + 1 + digits)
        };
        out.push_str(&sql[done..at]);
        out.push('?');
        if number != highest + 1 {
            out.push_str(&number.to_string());
        }
        done = end;
        highest = highest.max(number);
    }
    out.push_str(&sql[done..]);
    (out, highest)
}

/// The bytes of SQLite's text outside of literals, names and comments, each with its place.
pub(super) fn code(sql: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = sql.as_bytes();
    // What ends what is open: a quote, or the slash behind a star not before that place.
    let (mut closing, mut from) = (None, 0);
    bytes
        .iter()
        .copied()
        .enumerate()
        .filter(move |&(at, byte)| match closing {
            Some(b'/') => {
                if byte == b'/' && at >= from && bytes[at - 1] == b'*' {
                    closing = None;
                }
                false
            }
            Some(quote) => {
                if byte == quote {
                    closing = None;
                }
                false
            }
            None => {
                closing = match byte {
                    b'\'' | b'"' => Some(byte),
                    b'/' if bytes.get(at + 1) == Some(&b'*') => {
                        from = at + 3;
                        Some(b'/')
                    }
                    _ => None,
                };
                closing.is_none()
            }
        })
}

pub(super) fn refuse_session(sql: &str, what: &str) -> Result<()> {
    if sql.contains(ENVIRONMENT) {
        return Err(Fault::unsupported(format!(
            "an expression that depends on the session or the moment in {what}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_outside_of_literals_names_and_comments() {
        let environment = ENVIRONMENT;
        for (sql, expected, highest) in [
            ("SELECT ?1, ?2, ?1", "SELECT ?, ?, ?1".to_owned(), 2),
            ("SELECT ?2, ?1, ?3", "SELECT ?2, ?1, ?".to_owned(), 3),
            (
                "SELECT '?1' || \"?2\" /* ?3 it's */ || ?1",
                "SELECT '?1' || \"?2\" /* ?3 it's */ || ?".to_owned(),
                1,
            ),
            ("SELECT /*/ ?1 */ ?1", "SELECT /*/ ?1 */ ?".to_owned(), 1),
            ("SELECT 'it''s ?1', ?1", "SELECT 'it''s ?1', ?".to_owned(), 1),
            (
                &format!("SELECT '{environment}', \"{environment}\", f({environment}), ?1"),
                format!("SELECT '{environment}', \"{environment}\", f(?), ?"),
                2,
            ),
            (
                &format!("SELECT ?1, ?2, f({environment}), ?3"),
                "SELECT ?2, ?, f(?1), ?".to_owned(),
                4,
            ),
        ] {
            assert_eq!(numbered(sql, sql.contains(environment)), (expected, highest));
        }
    }
}
