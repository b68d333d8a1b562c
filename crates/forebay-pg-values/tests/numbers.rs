//! Numbers, against answers that PostgreSQL 15 gave: `numbers.txt` holds them, one a line.
//!
//! A line has columns with tabs between: a function's symbol, `%` and an aggregate's, or `@` and a type modifier for the text of a type;
//! the type of the result; the arguments as `type=text`, of an aggregate one column a row with semicolons between its arguments, of a
//! text the text alone; the answer, or `E:SQLSTATE:message|detail`. `N` and `NULL` are NULL; `\n` and `\t` stand for what they say.

use forebay_pg_values::aggregate::accumulator;
use forebay_pg_values::{Arguments, Datum, Environment, Kind, Owned, Type, ValueError, function, text_form};
use jiff::tz::TimeZone;

type Outcome = Result<Owned, ValueError>;

fn kind(name: &str) -> Kind {
    match Type::from_name(name) {
        Some(Type::Scalar(kind)) => kind,
        _ => panic!("{name} is not a scalar type"),
    }
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t")
}

fn argument(word: &str, environment: &Environment) -> Outcome {
    match word.split_once('=') {
        None => Ok(Owned::Null),
        Some(("text", text)) => Ok(Owned::Text(unescaped(text))),
        Some((name, text)) => text_form::parse(kind(name), -1, text, environment),
    }
}

fn arguments(words: &[&str], environment: &Environment) -> Result<Vec<Owned>, ValueError> {
    words.iter().map(|word| argument(word, environment)).collect()
}

fn evaluate(columns: &[&str], environment: &Environment) -> Outcome {
    let (subject, result) = (columns[0], columns[1]);
    if let Some(typmod) = subject.strip_prefix('@') {
        let typmod = typmod.parse().expect("a modifier");
        return text_form::parse(kind(result), typmod, &unescaped(columns[2]), environment);
    }
    if let Some(symbol) = subject.strip_prefix('%') {
        let mut accumulator = accumulator(symbol).unwrap_or_else(|| panic!("no {symbol}"));
        for row in &columns[2..] {
            let values = arguments(&row.split(';').collect::<Vec<_>>(), environment)?;
            let values: Vec<Datum<'_>> = values.iter().map(Owned::as_datum).collect();
            accumulator.add(Arguments {
                values: &values,
                types: &[],
                environment,
            })?;
        }
        return accumulator.finish();
    }
    let values = arguments(&columns[2..], environment)?;
    let values: Vec<Datum<'_>> = values.iter().map(Owned::as_datum).collect();
    let function = function(subject).unwrap_or_else(|| panic!("no {subject}"));
    function.call(Arguments {
        values: &values,
        types: &[],
        environment,
    })
}

fn shown(columns: &[&str], environment: &Environment) -> Result<String, ValueError> {
    let value = evaluate(columns, environment)?;
    match (&value, columns[1]) {
        (Owned::Null, _) => Ok("NULL".to_owned()),
        (Owned::Text(text), "text") => Ok(text.clone()),
        (_, name) => {
            let mut out = String::new();
            text_form::write(kind(name), value.as_datum(), environment, &mut out)?;
            Ok(out)
        }
    }
}

#[test]
fn as_postgresql_answered() {
    let environment = Environment::new(TimeZone::UTC, 0);
    let mut different = Vec::new();
    let mut count = 0;
    for line in include_str!("numbers.txt").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (expected, columns) = columns.split_last().expect("a line is not empty");
        let found = shown(columns, &environment).unwrap_or_else(|error| {
            let detail = error.detail.map_or(String::new(), |detail| format!("|{detail}"));
            format!("E:{}:{}{detail}", error.sqlstate, error.message)
        });
        if found != unescaped(expected) {
            different.push(format!("{line}\n  found {found}"));
        }
        count += 1;
    }
    assert!(
        different.is_empty(),
        "{} of {count} differ:\n{}",
        different.len(),
        different.join("\n")
    );
    assert!(count > 1_000, "the file of answers has {count}");
}
