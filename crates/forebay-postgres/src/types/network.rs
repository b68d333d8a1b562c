//! Addresses of networks, from the server's binary form to the text that it prints.

use std::{fmt::Write, net::Ipv4Addr};

const VERSION_4: u8 = 2;
const VERSION_6: u8 = 3;

/// inet, or cidr, which always shows how long its prefix is; `None` if it is neither.
pub(super) fn read_address(raw: &[u8], is_cidr: bool) -> Option<String> {
    let (&[family, bits, _, length], address) = raw.split_first_chunk::<4>()?;
    if address.len() != usize::from(length) {
        return None;
    }
    let (mut text, bits_max) = match family {
        VERSION_4 => (Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).to_string(), 32),
        VERSION_6 => (version_6(<[u8; 16]>::try_from(address).ok()?), 128),
        _ => return None,
    };
    if is_cidr || bits != bits_max {
        write!(text, "/{bits}").expect("a String grows as it must");
    }
    Some(text)
}

/// The longest run of zero words, of two or more, is `::`; what stands for an address of version 4 ends with that. Other
/// than Rust's own text, this holds for all addresses that begin with 96 zero bits too.
fn version_6(bytes: [u8; 16]) -> String {
    let words: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let (mut start, mut length) = (8, 0);
    for first in 0..8 {
        let run = words[first..].iter().take_while(|word| **word == 0).count();
        if run > length {
            (start, length) = (first, run);
        }
    }
    if length < 2 {
        (start, length) = (8, 0);
    }
    let mut text = String::with_capacity(40);
    let mut index = 0;
    while index < 8 {
        if index == start {
            text.push_str("::");
            index += length;
            continue;
        }
        if index == 6 && start == 0 && (length == 6 || (length == 5 && words[5] == 0xffff)) {
            let [.., a, b, c, d] = bytes;
            write!(text, "{}", Ipv4Addr::new(a, b, c, d)).expect("a String grows as it must");
            return text;
        }
        if index != 0 && index != start + length {
            text.push(':');
        }
        write!(text, "{:x}", words[index]).expect("a String grows as it must");
        index += 1;
        if index == 6 && start == 0 && length == 5 && words[5] == 0xffff {
            text.push(':');
        }
    }
    text
}

/// macaddr and macaddr8.
pub(super) fn read_hardware(raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len() * 3);
    for byte in raw {
        let colon = if text.is_empty() { "" } else { ":" };
        write!(text, "{colon}{byte:02x}").expect("a String grows as it must");
    }
    text
}
