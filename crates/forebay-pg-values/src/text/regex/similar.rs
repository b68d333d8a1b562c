//! SIMILAR TO: its pattern as a regular expression.

use crate::text::like::invalid_escape;
use crate::{Result, ValueError};

/// The regular expression that means what a pattern of SIMILAR TO means, with an escape of one character or none.
///
/// In `a#"b#"c` the part between the two escaped quotes is what `substring` gives back: the part before it takes as little as it can.
pub fn similar_to_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut escapes = escape.chars();
    let escape = escapes.next();
    if escapes.next().is_some() {
        return Err(invalid_escape());
    }
    let mut out = String::from("^(?:");
    let (mut escaped, mut in_brackets, mut quotes) = (false, false, 0);
    for character in pattern.chars() {
        if std::mem::take(&mut escaped) {
            if character == '"' && !in_brackets {
                out.push_str(match quotes {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => {
                        let words =
                            "SQL regular expression may not contain more than two escape-double-quote separators";
                        return Err(ValueError::new("2200C", words));
                    }
                });
                quotes += 1;
            } else {
                out.push('\\');
                out.push(character);
            }
        } else if Some(character) == escape {
            escaped = true;
        } else if in_brackets {
            if character == '\\' {
                out.push('\\');
            }
            out.push(character);
            in_brackets = character != ']';
        } else {
            match character {
                '[' => {
                    out.push('[');
                    in_brackets = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(character);
                }
                plain => out.push(plain),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}
