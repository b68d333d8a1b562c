//! Answers of PostgreSQL 15 to generated calls, kept beside the functions and asked again in tests.
//!
//! A line is as for the example `evaluate`: symbol, types, values, then `=` and the answer, with tabs between.

use crate::{Arguments, Datum, Environment, Owned, Type, function};

fn value(word: &str) -> Owned {
    match word.split_once(':') {
        Some(("i", integer)) => Owned::Integer(integer.parse().expect("an integer")),
        Some(("r", real)) => Owned::Real(real.parse().expect("a float")),
        Some(("t", text)) => Owned::Text(unescape(text)),
        Some(("b", hex)) => Owned::Blob(crate::bytea::parse_hex(hex).expect("hexadecimal digits")),
        _ => Owned::Null,
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    out
}

/// Asks all of them.
pub(crate) fn check(recorded: &str) {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let mut wrong = Vec::new();
    for line in recorded.lines() {
        let (call, expected) = line.rsplit_once("\t=\t").expect("a call and its answer");
        let mut words = call.split('\t');
        let symbol = words.next().expect("a symbol");
        let types: Vec<Type> = words
            .next()
            .expect("types")
            .split(',')
            .filter_map(Type::from_name)
            .collect();
        let values: Vec<Owned> = words.map(value).collect();
        let values: Vec<Datum<'_>> = values.iter().map(Owned::as_datum).collect();
        let answer = function(symbol).expect(symbol).call(Arguments {
            values: &values,
            types: &types,
            environment: &environment,
        });
        let is_right = match (&answer, expected.strip_prefix("E:")) {
            (Err(error), Some(expected)) => format!("{}:{}", error.sqlstate, error.message) == unescape(expected),
            (Ok(answer), None) => *answer == value(expected),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{line}\n    but {answer:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(recorded.lines().count() > 300, "the record is there");
}
