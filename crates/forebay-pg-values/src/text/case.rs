//! lower, upper, initcap.

use super::characters::{Class, to_lower, to_upper};
use crate::{Function, Owned};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("lower", |arguments| Ok(Owned::Text(lower(arguments.text(0)?)))),
    Function::new("upper", |arguments| Ok(Owned::Text(upper(arguments.text(0)?)))),
    Function::new("initcap", |arguments| Ok(Owned::Text(initcap(arguments.text(0)?)))),
];

/// Every character in lower case.
pub fn lower(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().map(to_lower).collect()
    }
}

/// Every character in upper case.
pub fn upper(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_uppercase()
    } else {
        text.chars().map(to_upper).collect()
    }
}

/// The first character of each word in upper case, the others in lower case; words are of letters and digits.
pub fn initcap(text: &str) -> String {
    let mut in_word = false;
    text.chars()
        .map(|character| {
            let mapped = if in_word {
                to_lower(character)
            } else {
                to_upper(character)
            };
            in_word = Class::Alnum.contains(mapped);
            mapped
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers() {
        assert_eq!(upper("straße ﬁ ǆ"), "STRAßE ﬁ Ǆ");
        assert_eq!(lower("ÉCOLE ΣΑΣ İ"), "école σασ i");
        assert_eq!(
            initcap("hello wORLD it's éCOLE 1st x_y"),
            "Hello World It'S École 1st X_Y"
        );
    }
}
