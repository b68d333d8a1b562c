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
    let (mut escaped, mut quotes) = (false, 0);
    // How many brackets are open, and where in the innermost: 1 at its start, 2 after a caret there, 3 further. At the start a closing
    // bracket is a plain character.
    let (mut brackets, mut bracket_place) = (0_usize, 0);
    for character in pattern.chars() {
        if std::mem::take(&mut escaped) {
            if character == '"' && brackets == 0 {
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
                bracket_place = 3;
            }
        } else if Some(character) == escape {
            escaped = true;
        } else if brackets > 0 {
            if character == '\\' {
                out.push('\\');
            }
            out.push(character);
            match character {
                ']' if bracket_place > 2 => brackets -= 1,
                '[' => brackets += 1,
                _ => {}
            }
            bracket_place = if character == '^' { bracket_place + 1 } else { 3 };
        } else {
            match character {
                '[' => {
                    out.push('[');
                    brackets = 1;
                    bracket_place = 1;
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
