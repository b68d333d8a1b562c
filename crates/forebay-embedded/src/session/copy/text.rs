//! Lines of COPY's text format: values between delimiters, with backslashes before what would be misread.
//!
//! Promises: a value that was written is read back as it was, NULL and the empty string apart. Knows nothing of the values' types.

use bytes::{BufMut, BytesMut};

/// Cuts a line into values; `None` is NULL.
pub(super) fn split(line: &[u8], delimiter: u8, null: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let start = at;
        let mut value = Vec::new();
        let ended = loop {
            let Some(&byte) = line.get(at) else { break true };
            at += 1;
            if byte == delimiter {
                break false;
            }
            if byte != b'\\' {
                value.push(byte);
                continue;
            }
            // A backslash behind which nothing comes is passed over, as PostgreSQL has it.
            let Some(&escaped) = line.get(at) else { break true };
            at += 1;
            value.push(match escaped {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                b'0'..=b'7' => {
                    let mut octal = u32::from(escaped - b'0');
                    for _ in 0..2 {
                        let Some(digit @ b'0'..=b'7') = line.get(at) else { break };
                        octal = octal * 8 + u32::from(digit - b'0');
                        at += 1;
                    }
                    u8::try_from(octal & 0xff).expect("only eight bits are left")
                }
                b'x' => match line.get(at).and_then(hex_digit) {
                    None => b'x',
                    Some(first) => {
                        at += 1;
                        match line.get(at).and_then(hex_digit) {
                            None => first,
                            Some(second) => {
                                at += 1;
                                first * 16 + second
                            }
                        }
                    }
                },
                other => other,
            });
        };
        let end = if ended { at } else { at - 1 };
        fields.push((line[start..end] != *null).then_some(value));
        if ended {
            return fields;
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "slices give references")]
fn hex_digit(byte: &u8) -> Option<u8> {
    char::from(*byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Appends a value.
pub(super) fn write(value: &[u8], delimiter: u8, out: &mut BytesMut) {
    for &byte in value {
        let escaped = match byte {
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            b'\\' => b'\\',
            byte if byte == delimiter => byte,
            byte => {
                out.put_u8(byte);
                continue;
            }
        };
        out.put_slice(&[b'\\', escaped]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let values: [&[u8]; 6] = [b"", b"\\N", b"a\tb\\c\nd\x08\x0b\x0c\r", b"|", "ä".as_bytes(), b"."];
        for delimiter in [b'\t', b'|'] {
            let mut line = BytesMut::new();
            for value in values {
                write(value, delimiter, &mut line);
                line.put_u8(delimiter);
            }
            line.put_slice(b"\\N");
            let mut wanted: Vec<Option<Vec<u8>>> = values.iter().map(|value| Some(value.to_vec())).collect();
            wanted.push(None);
            assert_eq!(split(&line, delimiter, b"\\N"), wanted);
        }
    }

    #[test]
    fn escapes_are_postgresqls() {
        let fields = split(b"\\x41\\101\\q\\x\\xg\\\t\\0\t", b'\t', b"\\N");
        assert_eq!(fields, [Some(b"AAqxxg\t\0".to_vec()), Some(Vec::new())]);
        assert_eq!(split(b"a\\", b'\t', b"\\N"), [Some(b"a".to_vec())]);
        assert_eq!(split(b"a\\", b'\t', b"a\\"), [None]);
    }
}
