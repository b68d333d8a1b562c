//! Changes: bytes with errors in them, by chance.
//!
//! Promises: the same seed gives the same errors; many of them are where a message begins, and lengths are. Knows no protocol but
//! that.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// What a length, or what is taken for one, is made: nothing, one, as much as there is of either sign, in either order of bytes.
const NUMBERS: [[u8; 4]; 10] = [
    [0, 0, 0, 0],
    [0, 0, 0, 1],
    [0, 0, 0, 4],
    [0x7f, 0xff, 0xff, 0xff],
    [0x80, 0, 0, 0],
    [0xff, 0xff, 0xff, 0xff],
    [0xff, 0xff, 0xff, 0xfe],
    [0x40, 0, 0, 0],
    [0xff, 0xff, 0x7f, 0],
    [0xfe, 0xff, 0xff, 0],
];
/// What means something in one protocol or the other.
const BYTES: [u8; 9] = [0, 1, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfe, 0xff];

/// These bytes with up to three changes, and the place of the first one. Messages begin at `starts`.
pub(crate) fn changed(random: &mut StdRng, bytes: &[u8], starts: &[usize]) -> (Vec<u8>, usize) {
    let mut changed = bytes.to_vec();
    let mut first = bytes.len();
    for _ in 0..random.random_range(1..=3) {
        if changed.is_empty() {
            break;
        }
        let place = match random.random_bool(0.5) {
            // In a header, or at the beginning of a body, where counts are.
            true => starts
                .choose(random)
                .map_or(0, |start| start + random.random_range(0..10)),
            false => random.random_range(0..changed.len()),
        };
        let place = place.min(changed.len() - 1);
        change(random, &mut changed, place);
        first = first.min(place);
    }
    (changed, first)
}

fn change(random: &mut StdRng, bytes: &mut Vec<u8>, place: usize) {
    let behind = (place + random.random_range(1..20)).min(bytes.len());
    match random.random_range(0..8) {
        0 => bytes[place] ^= 1 << random.random_range(0..8),
        1 => bytes[place] = *BYTES.choose(random).expect("there are some"),
        2 => bytes[place] = bytes[place].wrapping_add(1),
        3 => bytes[place] = bytes[place].wrapping_sub(1),
        4 => {
            let number = NUMBERS.choose(random).expect("there are some");
            let room = number.len().min(bytes.len() - place);
            bytes[place..place + room].copy_from_slice(&number[..room]);
        }
        5 => drop(bytes.drain(place..behind)),
        6 => {
            let again = bytes[place..behind].to_vec();
            drop(bytes.splice(place..place, again));
        }
        _ => random.fill(&mut bytes[place..behind]),
    }
}
