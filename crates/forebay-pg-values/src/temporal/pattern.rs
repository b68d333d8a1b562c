//! The patterns of `to_char`, `to_date` and `to_timestamp`, taken apart (PostgreSQL's documentation, "Data Type Formatting Functions").

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A field.
    Field {
        /// As it is written in the list below.
        name: &'static str,
        /// `FM`: without padding.
        fill: bool,
        /// `TM`: in the language of the session.
        translated: bool,
        /// `TH`, `th`.
        ordinal: Option<Ordinal>,
    },
    /// A space or a separator outside quotes.
    Separator(char),
    /// Any other character.
    Text(char),
}

/// Letters behind a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ordinal {
    Upper,
    Lower,
}

/// The first that a pattern begins with is meant: longer names stand before those they begin with.
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF",
    "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
    "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd", "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24",
    "hh12", "hh", "iddd", "id", "iw", "iyyy", "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm",
    "sssss", "ssss", "ss", "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

/// The pieces of a pattern.
pub(super) fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (mut fill, mut translated) = (false, false);
        if let Some(after) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (fill, rest) = (true, after);
        } else if let Some(after) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm")) {
            (translated, rest) = (true, after);
        }
        if let Some(&name) = FIELDS.iter().find(|name| rest.starts_with(**name)) {
            rest = &rest[name.len()..];
            let mut ordinal = None;
            if let Some(after) = rest.strip_prefix("TH") {
                (ordinal, rest) = (Some(Ordinal::Upper), after);
            } else if let Some(after) = rest.strip_prefix("th") {
                (ordinal, rest) = (Some(Ordinal::Lower), after);
            } else if let Some(after) = rest.strip_prefix("SP") {
                // Spelled numbers are a suffix without a meaning.
                rest = after;
            }
            pieces.push(Piece::Field {
                name,
                fill,
                translated,
                ordinal,
            });
        } else if let Some(quoted) = rest.strip_prefix('"') {
            rest = quote(quoted, &mut pieces);
        } else {
            if rest.starts_with("\\\"") {
                rest = &rest[1..];
            }
            let Some(character) = rest.chars().next() else { break };
            rest = &rest[character.len_utf8()..];
            pieces.push(if is_separator(character) || is_space(character) {
                Piece::Separator(character)
            } else {
                Piece::Text(character)
            });
        }
    }
    pieces
}

/// Text up to a quote, in which a backslash keeps what follows it.
fn quote<'a>(quoted: &'a str, pieces: &mut Vec<Piece>) -> &'a str {
    let mut characters = quoted.chars();
    while let Some(mut character) = characters.next() {
        if character == '"' {
            break;
        }
        if character == '\\' {
            character = characters.next().unwrap_or('\\');
        }
        pieces.push(Piece::Text(character));
    }
    characters.as_str()
}

/// Whether it may stand between fields.
pub(super) fn is_separator(character: char) -> bool {
    character.is_ascii_graphic() && !character.is_ascii_alphanumeric()
}

/// C's `isspace`.
pub(super) fn is_space(character: char) -> bool {
    character.is_ascii_whitespace() || character == '\x0b'
}
