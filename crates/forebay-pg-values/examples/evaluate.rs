//! Calls functions by symbol, one a line, so that scripts can hold them against PostgreSQL.
//!
//! A line is `symbol<TAB>types<TAB>value<TAB>value…`: types are internal names with commas between, or nothing; a value is `N` for
//! NULL, or `i:1`, `r:1.5`, `t:text`, `b:00ff`, with `\n`, `\t` and `\\` escaped in texts and messages. The answer is a value in the same spelling,
//! or `E:SQLSTATE:message`, or `?` for a function that is not there. TIME_ZONE in the environment names the session's zone.

use std::io::{BufRead, Write};

use forebay_pg_values::{Arguments, Datum, Environment, Owned, Type, function};
use jiff::tz::TimeZone;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let zone = std::env::var("TIME_ZONE").map_or(Ok(TimeZone::UTC), |name| TimeZone::get(&name))?;
    let environment = Environment::new(zone, 1_700_000_000_123_456);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut parts = line.split('\t');
        let (symbol, types) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let types: Vec<Type> = types.split(',').filter_map(Type::from_name).collect();
        let values: Vec<Owned> = parts.map(read).collect::<Result<_, _>>()?;
        let values: Vec<Datum<'_>> = values.iter().map(Owned::as_datum).collect();
        let arguments = Arguments {
            values: &values,
            types: &types,
            environment: &environment,
        };
        match function(symbol).map(|function| function.call(arguments)) {
            None => writeln!(out, "?")?,
            Some(Ok(value)) => writeln!(out, "{}", write(&value))?,
            Some(Err(error)) => writeln!(out, "E:{}:{}", error.sqlstate, escape(&error.message))?,
        }
    }
    Ok(())
}

fn read(word: &str) -> Result<Owned, Box<dyn std::error::Error>> {
    Ok(match word.split_once(':') {
        Some(("i", integer)) => Owned::Integer(integer.parse()?),
        Some(("r", real)) => Owned::Real(real.parse()?),
        Some(("t", text)) => Owned::Text(unescape(text)),
        Some(("b", hex)) => Owned::Blob(
            (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16))
                .collect::<Result<_, _>>()?,
        ),
        _ => Owned::Null,
    })
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => '\\',
            },
            (other, false) => other,
        });
    }
    out
}

fn write(value: &Owned) -> String {
    match value {
        Owned::Null => "N".to_owned(),
        Owned::Integer(integer) => format!("i:{integer}"),
        Owned::Real(real) => format!("r:{real:?}"),
        Owned::Text(text) => format!("t:{}", escape(text)),
        Owned::Blob(bytes) => bytes
            .iter()
            .fold("b:".to_owned(), |out, byte| format!("{out}{byte:02x}")),
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}
