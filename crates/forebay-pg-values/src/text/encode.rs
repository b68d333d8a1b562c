//! encode and decode (hex, base64, escape), to_hex, check sums, conversion between encodings, and PostgreSQL's hash of a text.

use sha2::Digest;

use crate::{Arguments, Function, Owned, Result, ValueError, bytea};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("binary_encode", |arguments| {
        Ok(Owned::Text(encode(arguments.blob(0)?, arguments.text(1)?)?))
    }),
    Function::new("binary_decode", |arguments| {
        Ok(Owned::Blob(decode(arguments.text(0)?, arguments.text(1)?)?))
    }),
    Function::new("to_hex32", |arguments| {
        // The two's complement of an int4.
        Ok(Owned::Text(format!("{:x}", arguments.integer(0)? & 0xffff_ffff)))
    }),
    Function::new("to_hex64", |arguments| {
        Ok(Owned::Text(format!("{:x}", arguments.integer(0)?)))
    }),
    Function::new("md5_text", |arguments| {
        Ok(Owned::Text(md5(arguments.text(0)?.as_bytes())))
    }),
    Function::new("md5_bytea", |arguments| Ok(Owned::Text(md5(arguments.blob(0)?)))),
    Function::new("sha224_bytea", |arguments| {
        Ok(Owned::Blob(sha2::Sha224::digest(arguments.blob(0)?).to_vec()))
    }),
    Function::new("sha256_bytea", |arguments| {
        Ok(Owned::Blob(sha2::Sha256::digest(arguments.blob(0)?).to_vec()))
    }),
    Function::new("sha384_bytea", |arguments| {
        Ok(Owned::Blob(sha2::Sha384::digest(arguments.blob(0)?).to_vec()))
    }),
    Function::new("sha512_bytea", |arguments| {
        Ok(Owned::Blob(sha2::Sha512::digest(arguments.blob(0)?).to_vec()))
    }),
    Function::new("pg_convert_from", |arguments| {
        only_utf8(arguments.text(1)?, "source")?;
        Ok(super::input::from_utf8(arguments.blob(0)?)?.into())
    }),
    Function::new("pg_convert_to", |arguments| {
        only_utf8(arguments.text(1)?, "destination")?;
        Ok(Owned::Blob(arguments.text(0)?.as_bytes().to_vec()))
    }),
    Function::new("length_in_encoding", |arguments| {
        only_utf8(arguments.text(1)?, "")?;
        Ok(super::length(super::input::from_utf8(arguments.blob(0)?)?).into())
    }),
    Function::new("hashtext", |arguments| {
        let (_, low) = hash(arguments.text(0)?.as_bytes(), 0);
        Ok(signed(low).into())
    }),
    Function::new("hashtextextended", hash_with_seed),
    Function::new("hashbpchar", |arguments| {
        let (_, low) = hash(arguments.text(0)?.trim_end_matches(' ').as_bytes(), 0);
        Ok(signed(low).into())
    }),
    Function::new("hashname", |arguments| {
        let (_, low) = hash(arguments.text(0)?.as_bytes(), 0);
        Ok(signed(low).into())
    }),
];

fn md5(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(32);
    bytea::write_hex(&md5::Md5::digest(bytes), &mut hex);
    hex
}

fn encode(bytes: &[u8], form: &str) -> Result<String> {
    let mut out = String::with_capacity(bytes.len() * 2);
    match form.to_ascii_lowercase().as_str() {
        "hex" => bytea::write_hex(bytes, &mut out),
        "base64" => write_base64(bytes, &mut out),
        "escape" => write_escape(bytes, &mut out),
        _ => return Err(unrecognized(form)),
    }
    Ok(out)
}

fn decode(text: &str, form: &str) -> Result<Vec<u8>> {
    match form.to_ascii_lowercase().as_str() {
        "hex" => bytea::parse_hex(text),
        "base64" => parse_base64(text),
        "escape" => bytea::parse_escape(text),
        _ => Err(unrecognized(form)),
    }
}

fn unrecognized(form: &str) -> ValueError {
    ValueError::new("22023", format!("unrecognized encoding: \"{form}\""))
}

/// As bytea's old output: what is not ASCII, and zero, as `\ooo`.
fn write_escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            1..=127 => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 2045's base64: a line feed after every 76 characters, also at the very end.
fn write_base64(bytes: &[u8], out: &mut String) {
    let mut in_line = 0;
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            out.push(if place <= chunk.len() {
                char::from(BASE64[(word >> (18 - 6 * place)) as usize & 63])
            } else {
                '='
            });
        }
        in_line += 4;
        // PostgreSQL does not break the line after a padded end.
        if in_line == 76 && chunk.len() == 3 {
            out.push('\n');
            in_line = 0;
        }
    }
}

fn parse_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut place, mut padding) = (0_u32, 0, 0);
    for character in text.chars() {
        let sextet = match character {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if padding == 0 {
                    padding = match place {
                        2 => 1,
                        3 => 2,
                        _ => {
                            let words = "unexpected \"=\" while decoding base64 sequence";
                            return Err(ValueError::new("22023", words));
                        }
                    };
                }
                0
            }
            _ => match BASE64.iter().position(|symbol| char::from(*symbol) == character) {
                Some(sextet) => u32::try_from(sextet).expect("below 64"),
                None => {
                    let words = format!("invalid symbol \"{character}\" found while decoding base64 sequence");
                    return Err(ValueError::new("22023", words));
                }
            },
        };
        word = (word << 6) | sextet;
        place += 1;
        if place == 4 {
            let bytes = word.to_be_bytes();
            // Padding is remembered to the end, also of what follows it.
            out.extend_from_slice(match padding {
                0 => &bytes[1..],
                1 => &bytes[1..2],
                _ => &bytes[1..3],
            });
            (word, place) = (0, 0);
        }
    }
    if place != 0 {
        return Err(ValueError::new("22023", "invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

/// PostgreSQL reads names of encodings without punctuation and case.
fn only_utf8(name: &str, role: &str) -> Result<()> {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    if matches!(plain.as_str(), "utf8" | "unicode") {
        return Ok(());
    }
    const FAMILIES: &[&str] = &[
        "abc", "alt", "big5", "euc", "gb", "iso", "johab", "koi8", "latin", "mule", "mskanji", "shiftjis", "sjis",
        "sqlascii", "tcvn", "uhc", "vscii", "win", "windows",
    ];
    if FAMILIES.iter().any(|family| plain.starts_with(family)) {
        return Err(ValueError::unsupported(format!("encoding \"{name}\" is")));
    }
    let words = if role.is_empty() {
        format!("invalid encoding name \"{name}\"")
    } else {
        format!("invalid {role} encoding name \"{name}\"")
    };
    Err(ValueError::new("22023", words))
}

fn signed(hash: u32) -> i64 {
    i64::from(hash.cast_signed())
}

fn hash_with_seed(arguments: Arguments<'_>) -> Result<Owned> {
    let (high, low) = hash(arguments.text(0)?.as_bytes(), arguments.integer(1)?.cast_unsigned());
    Ok(((u64::from(high) << 32) | u64::from(low)).cast_signed().into())
}

/// Bob Jenkins' lookup3 (public domain, <http://burtleburtle.net/bob/hash/doobs.html>) with PostgreSQL's start values, where the lowest
/// byte of the last word stays free for the length. Its second and third words.
fn hash(bytes: &[u8], seed: u64) -> (u32, u32) {
    let length = u32::try_from(bytes.len()).expect("a text is below 4 GiB");
    let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
    let mut words = [start; 3];
    if seed != 0 {
        words[0] = words[0].wrapping_add((seed >> 32) as u32);
        words[1] = words[1].wrapping_add((seed & 0xffff_ffff) as u32);
        mix(&mut words);
    }
    let mut chunks = bytes.chunks_exact(12);
    let word = |four: &[u8]| {
        four.iter()
            .rev()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
    };
    for chunk in &mut chunks {
        for (place, four) in chunk.chunks(4).enumerate() {
            words[place] = words[place].wrapping_add(word(four));
        }
        mix(&mut words);
    }
    for (place, four) in chunks.remainder().chunks(4).enumerate() {
        let last = if place == 2 { word(four) << 8 } else { word(four) };
        words[place] = words[place].wrapping_add(last);
    }
    finish(&mut words);
    (words[1], words[2])
}

/// lookup3's `mix`: reversible.
fn mix(words: &mut [u32; 3]) {
    for (round, rotation) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        let (a, b, c) = (round % 3, (round + 1) % 3, (round + 2) % 3);
        words[a] = words[a].wrapping_sub(words[c]) ^ words[c].rotate_left(rotation);
        words[c] = words[c].wrapping_add(words[b]);
    }
}

/// lookup3's `final`: every bit of the input reaches every bit of the last word.
fn finish(words: &mut [u32; 3]) {
    for (round, rotation) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (to, from) = ((round + 2) % 3, (round + 1) % 3);
        words[to] = (words[to] ^ words[from]).wrapping_sub(words[from].rotate_left(rotation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_lines() {
        assert_eq!(encode(b"Hello", "BASE64").as_deref(), Ok("SGVsbG8="));
        assert_eq!(
            encode(&[0; 57], "base64").as_deref(),
            Ok(format!("{}\n", "A".repeat(76)).as_str())
        );
        assert_eq!(decode("SGV\nsbG8=", "base64").as_deref(), Ok(b"Hello".as_slice()));
        assert_eq!(decode("a=", "base64").expect_err("too early").sqlstate, "22023");
        assert_eq!(
            decode("abc", "base64").expect_err("cut").message,
            "invalid base64 end sequence"
        );
        assert_eq!(
            decode("z", "foo").expect_err("no such").message,
            "unrecognized encoding: \"foo\""
        );
    }
}
