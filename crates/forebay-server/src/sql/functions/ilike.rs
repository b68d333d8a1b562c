//! ILIKE: a pattern of `%` and `_` against a text, whatever the case of their letters, in all of Unicode.
//!
//! Contract: `%` is any run of characters, `_` any one; the escape character takes the next one literally. Takes at most the product of
//! the lengths in time. `None` for a pattern that ends in its escape character.

enum Part {
    Any,
    One,
    Character(char),
}

/// Whether the whole text matches the pattern.
pub(super) fn matches(text: &str, pattern: &str, escape: Option<char>) -> Option<bool> {
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let mut parts = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            parts.extend(characters.next()?.to_lowercase().map(Part::Character));
        } else {
            match character {
                '%' => parts.push(Part::Any),
                '_' => parts.push(Part::One),
                other => parts.extend(other.to_lowercase().map(Part::Character)),
            }
        }
    }
    Some(matches_parts(&text, &parts))
}

/// On a mismatch only the last `%` is asked to take one character more: an earlier one could not do better.
fn matches_parts(text: &[char], parts: &[Part]) -> bool {
    let (mut at, mut part) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while at < text.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                last_any = Some((part, at));
                part += 1;
                continue;
            }
            Some(Part::One) => {
                at += 1;
                part += 1;
                continue;
            }
            Some(Part::Character(character)) if *character == text[at] => {
                at += 1;
                part += 1;
                continue;
            }
            _ => {}
        }
        let Some((any, from)) = last_any else {
            return false;
        };
        last_any = Some((any, from + 1));
        at = from + 1;
        part = any + 1;
    }
    parts[part..].iter().all(|part| matches!(part, Part::Any))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_postgresql_has_them() {
        for (text, pattern, expected) in [
            ("Straße", "straß%", true),
            ("ÄRGER", "ärger", true),
            ("abc", "a_c", true),
            ("abc", "a_", false),
            ("a%c", r"A\%C", true),
            ("abc", r"a\%c", false),
            ("", "%", true),
            ("", "_", false),
            ("mississippi", "%ss%pp%", true),
            ("mississippi", "%ss%zz%", false),
            ("aaa", "%a", true),
        ] {
            assert_eq!(
                matches(text, pattern, Some('\\')),
                Some(expected),
                "{text} ILIKE {pattern}"
            );
        }
        assert_eq!(matches("a", "a\\", Some('\\')), None);
        assert_eq!(matches("a\\", "a\\", None), Some(true));
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        let text = "a".repeat(3_000);
        let pattern = format!("{}b", "%a".repeat(300));
        assert_eq!(matches(&text, &pattern, None), Some(false));
    }
}
