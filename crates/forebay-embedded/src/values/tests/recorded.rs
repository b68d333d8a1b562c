//! What PostgreSQL 15.18 made of texts: its text and its binary format (`numeric_send` and so on), or its SQLSTATE.

use super::*;

/// Zone, type, what was given, and either what PostgreSQL writes and the bytes it sends in hexadecimal, or `!` and an SQLSTATE.
const ANSWERS: &str = include_str!("recorded.txt");

fn type_of(name: &str) -> Type {
    let internal = match name.strip_suffix("[]") {
        Some(element) => format!("_{}", element.trim_matches('"')),
        None => name.trim_matches('"').to_owned(),
    };
    Type::from_oid(forebay_pg_values::Type::from_name(&internal).expect("a type").oid()).expect("a type")
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

#[test]
fn both_formats_are_postgresqls() {
    let mut answers = 0;
    let mut different = Vec::new();
    for line in ANSWERS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (environment, kind, given) = (in_zone(fields[0]), type_of(fields[1]), fields[2]);
        let stored = decode_parameter(&kind, 0, Some(given.as_bytes()), &environment);
        answers += 1;
        match fields[3..] {
            [refusal] => {
                let sqlstate = refusal.strip_prefix('!').expect("a refusal");
                // What PostgreSQL refuses may be refused here as not supported.
                match stored {
                    Err(error) if error.sqlstate == sqlstate || error.sqlstate == "0A000" => {}
                    other => different.push(format!("{line}: {other:?}")),
                }
            }
            [text, hex] => match stored {
                Ok(stored) => {
                    let bytes = bytes_of(hex);
                    let again = decode_parameter(&kind, 1, Some(&bytes), &environment);
                    let written = encode_in(&environment, &kind, 0, &stored);
                    let sent = encode_in(&environment, &kind, 1, &stored);
                    if written.as_deref() != Ok(text.as_bytes())
                        || sent.as_deref() != Ok(&bytes)
                        || again.as_ref() != Ok(&stored)
                    {
                        different.push(format!("{line}: {stored:?}, {written:?}, {sent:?}, {again:?}"));
                    }
                }
                Err(error) => different.push(format!("{line}: {error}")),
            },
            _ => panic!("{line}"),
        }
    }
    assert!(answers > 250, "the answers are there");
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}
