//! quote_ident, quote_literal, quote_nullable; unistr, which takes escapes away.

use crate::{Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("quote_ident", |arguments| {
        Ok(Owned::Text(identifier(arguments.text(0)?)))
    }),
    Function::new("quote_literal", |arguments| {
        Ok(Owned::Text(literal(arguments.text(0)?)))
    }),
    Function::new("quote_nullable", |arguments| {
        Ok(Owned::Text(if arguments.is_null(0) {
            "NULL".to_owned()
        } else {
            literal(arguments.text(0)?)
        }))
    })
    .called_on_null(),
    Function::new("unistr", |arguments| {
        Ok(Owned::Text(without_escapes(arguments.text(0)?)?))
    }),
];

/// PostgreSQL 15's key words that are no plain names (`pg_get_keywords()` without those of category U), in order.
const KEY_WORDS: &str = "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case \
    cast char character check coalesce collate collation column concurrently constraint create cross current_catalog current_date \
    current_role current_schema current_time current_timestamp current_user dec decimal default deferrable desc distinct do else end \
    except exists extract false fetch float for foreign freeze from full grant greatest group grouping having ilike in initially inner \
    inout int integer intersect interval into is isnull join lateral leading least left like limit localtime localtimestamp national \
    natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay placing position \
    precision primary real references returning right row select session_user setof similar smallint some substring symmetric table \
    tablesample then time timestamp to trailing treat trim true union unique user using values varchar variadic verbose when where \
    window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// A name as it must stand in a statement: in quotes unless it is plain.
pub fn identifier(name: &str) -> String {
    let plain = name.starts_with(|first: char| first == '_' || first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !KEY_WORDS.split_ascii_whitespace().any(|word| word == name);
    if plain {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as it must stand in a statement, with backslashes safe whatever the session's settings.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// A text in which `\\XXXX`, `\\uXXXX`, `\\+XXXXXX` and `\\UXXXXXXXX` were characters by their code points, maybe in pairs of halves.
fn without_escapes(text: &str) -> Result<String> {
    let unpaired = || ValueError::new("42601", "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut high: Option<u32> = None;
    while let Some(first) = rest.chars().next() {
        if first != '\\' || rest.starts_with("\\\\") {
            if high.is_some() {
                return Err(unpaired());
            }
            out.push(first);
            rest = &rest[if first == '\\' { 2 } else { first.len_utf8() }..];
            continue;
        }
        let (code, width) = read_escape(rest).ok_or_else(|| {
            ValueError::new("42601", "invalid Unicode escape")
                .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
        })?;
        rest = &rest[width..];
        if code == 0 || code > 0x10_ffff {
            return Err(ValueError::new(
                "22023",
                format!("invalid Unicode code point: {code:04X}"),
            ));
        }
        let is_low = (0xdc00..=0xdfff).contains(&code);
        let code = match (high.take(), is_low) {
            (Some(high), true) => 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (None, false) => code,
            _ => return Err(unpaired()),
        };
        match char::from_u32(code) {
            Some(character) => out.push(character),
            // The first half of a pair.
            None => high = Some(code),
        }
    }
    if high.is_some() { Err(unpaired()) } else { Ok(out) }
}

/// The code point of the escape at a text's start, and how long that is.
fn read_escape(text: &str) -> Option<(u32, usize)> {
    let (start, digits) = match text.as_bytes().get(1)? {
        b'u' => (2, 4),
        b'+' => (2, 6),
        b'U' => (2, 8),
        _ => (1, 4),
    };
    let digits = text
        .get(start..start + digits)
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, start + digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        assert_eq!(identifier("foo_1"), "foo_1");
        assert_eq!(identifier("select"), "\"select\"");
        assert_eq!(identifier("name"), "name");
        assert_eq!(identifier("Foo\"bar"), "\"Foo\"\"bar\"");
        assert_eq!(identifier(""), "\"\"");
        assert_eq!(identifier("1a"), "\"1a\"");
        assert_eq!(literal("a\\b'c"), "E'a\\\\b''c'");
        assert_eq!(literal("O'Reilly"), "'O''Reilly'");
    }
}
