//! uuid: input in all of PostgreSQL's spellings, stored and written as 36 characters in lower case.

use crate::{Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("uuid_in", |arguments| Ok(Owned::Text(parse(arguments.text(0)?)?))),
    Function::new("uuid_out", |arguments| Ok(arguments.text(0)?.into())),
];

/// Sixteen pairs of hexadecimal digits, a hyphen after any even number of pairs, braces around.
pub fn parse(text: &str) -> Result<String> {
    read(text.as_bytes()).ok_or_else(|| ValueError::invalid_text("22P02", "uuid", text))
}

fn read(text: &[u8]) -> Option<String> {
    let mut rest = match text {
        [b'{', inner @ .., b'}'] => inner,
        _ => text,
    };
    let mut out = String::with_capacity(36);
    for pair in 0..16 {
        let [high, low, after @ ..] = rest else { return None };
        if !high.is_ascii_hexdigit() || !low.is_ascii_hexdigit() {
            return None;
        }
        out.push(char::from(high.to_ascii_lowercase()));
        out.push(char::from(low.to_ascii_lowercase()));
        if matches!(pair, 3 | 5 | 7 | 9) {
            out.push('-');
        }
        rest = match after {
            [b'-', after @ ..] if pair % 2 == 1 && pair < 15 => after,
            _ => after,
        };
    }
    rest.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let plain = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(parse(text).as_deref(), Ok(plain));
        }
        for text in [
            "",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11-",
            "a-0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(parse(text).expect_err("no uuid").sqlstate, "22P02");
        }
    }
}
