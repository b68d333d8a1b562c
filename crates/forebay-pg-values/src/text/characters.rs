//! What PostgreSQL holds of each character in the C.UTF-8 locale: its classes, and its other case.
//!
//! The facts stand in `characters.txt`, recorded from PostgreSQL 15 with glibc 2.36: a line a class with ranges of code points in
//! hexadecimal, and two lines with `first-last/step+distance` for the mappings. They are not taken from Rust's own tables, because
//! those follow a version of Unicode that changes with the compiler.

use std::sync::OnceLock;

/// A class of characters, as regular expressions name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Letters, and the digits of other scripts.
    Alpha,
    /// 0 to 9.
    Digit,
    /// Letters and digits.
    Alnum,
    /// Upper case.
    Upper,
    /// Lower case.
    Lower,
    /// Neither letter nor digit nor space, but seen.
    Punct,
    /// White space.
    Space,
    /// Seen.
    Graph,
    /// Seen, or spaces.
    Print,
    /// Control characters.
    Cntrl,
    /// Hexadecimal digits.
    Xdigit,
    /// Space and tab.
    Blank,
    /// Letters, digits, underscore.
    Word,
}

impl Class {
    /// The class of that name in `[[:name:]]`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "alpha" => Self::Alpha,
            "digit" => Self::Digit,
            "alnum" => Self::Alnum,
            "upper" => Self::Upper,
            "lower" => Self::Lower,
            "punct" => Self::Punct,
            "space" => Self::Space,
            "graph" => Self::Graph,
            "print" => Self::Print,
            "cntrl" => Self::Cntrl,
            "xdigit" => Self::Xdigit,
            "blank" => Self::Blank,
            "word" => Self::Word,
            _ => return None,
        })
    }

    /// Its characters, as ranges in order that neither meet nor overlap.
    pub fn ranges(self) -> &'static [(u32, u32)] {
        &tables().classes[self as usize]
    }

    /// Whether a character is in it.
    pub fn contains(self, character: char) -> bool {
        within(self.ranges(), u32::from(character))
    }
}

/// Whether a code point lies in one of some ranges in order.
pub fn within(ranges: &[(u32, u32)], code: u32) -> bool {
    let after = ranges.partition_point(|range| range.0 <= code);
    after > 0 && code <= ranges[after - 1].1
}

/// Ranges in order that neither meet nor overlap, of any ranges.
pub fn normalized(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match out.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

/// Lower case, one character to one.
pub fn to_lower(character: char) -> char {
    if character.is_ascii() {
        character.to_ascii_lowercase()
    } else {
        mapped(&tables().to_lower, character)
    }
}

/// Upper case, one character to one.
pub fn to_upper(character: char) -> char {
    if character.is_ascii() {
        character.to_ascii_uppercase()
    } else {
        mapped(&tables().to_upper, character)
    }
}

/// Every `step`th code point from `first` to `last` has its other case at that distance.
struct Mapping {
    first: u32,
    last: u32,
    step: u32,
    distance: i64,
}

struct Tables {
    /// By the number of the class.
    classes: [Vec<(u32, u32)>; 13],
    to_upper: Vec<Mapping>,
    to_lower: Vec<Mapping>,
}

fn mapped(mappings: &[Mapping], character: char) -> char {
    let code = u32::from(character);
    let after = mappings.partition_point(|mapping| mapping.first <= code);
    // Ranges with steps may interleave with those after them.
    mappings[..after]
        .iter()
        .rev()
        .take(4)
        .find(|mapping| code <= mapping.last && (code - mapping.first) % mapping.step == 0)
        .and_then(|mapping| char::from_u32(u32::try_from(i64::from(code) + mapping.distance).ok()?))
        .unwrap_or(character)
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables {
            classes: Default::default(),
            to_upper: Vec::new(),
            to_lower: Vec::new(),
        };
        for line in include_str!("characters.txt").lines() {
            let (name, rows) = line.split_once(' ').expect("a name before its ranges");
            match name {
                "toupper" => tables.to_upper = rows.split(' ').map(read_mapping).collect(),
                "tolower" => tables.to_lower = rows.split(' ').map(read_mapping).collect(),
                _ => {
                    let class = Class::from_name(name).expect("the file names classes");
                    tables.classes[class as usize] = rows.split(' ').map(read_range).collect();
                }
            }
        }
        let union = |classes: &[Class], more: &[(u32, u32)]| {
            let all = classes
                .iter()
                .flat_map(|class| &tables.classes[*class as usize])
                .chain(more);
            normalized(all.copied().collect())
        };
        let alnum = union(&[Class::Alpha, Class::Digit], &[]);
        let graph = union(&[Class::Alpha, Class::Digit, Class::Punct], &[]);
        let word = union(&[Class::Alpha, Class::Digit], &[(0x5f, 0x5f)]);
        tables.classes[Class::Alnum as usize] = alnum;
        tables.classes[Class::Graph as usize] = graph;
        tables.classes[Class::Word as usize] = word;
        tables
    })
}

fn read_range(text: &str) -> (u32, u32) {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    (read_code(first), read_code(last))
}

fn read_mapping(text: &str) -> Mapping {
    let (range, mapping) = text.split_once('/').expect("a range, then a mapping");
    let sign = mapping.find(['+', '-']).expect("a distance has a sign");
    let (first, last) = read_range(range);
    Mapping {
        first,
        last,
        step: mapping[..sign].parse().expect("a step is a number"),
        distance: mapping[sign..].parse().expect("a distance is a number"),
    }
}

fn read_code(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("a code point is hexadecimal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_one_character_to_one() {
        for (lower, upper) in [
            ('a', 'A'),
            ('é', 'É'),
            ('ß', 'ß'),
            ('ÿ', 'Ÿ'),
            ('σ', 'Σ'),
            ('ж', 'Ж'),
            ('ﬁ', 'ﬁ'),
        ] {
            assert_eq!((to_upper(lower), to_lower(upper)), (upper, lower));
        }
        assert_eq!(
            (to_upper('ς'), to_lower('ẞ'), to_lower('\u{212a}'), to_upper('ı')),
            ('Σ', 'ß', 'k', 'I')
        );
        assert_eq!((to_upper('ǅ'), to_lower('ǅ')), ('Ǆ', 'ǆ'));
    }

    #[test]
    fn classes_are_those_of_the_locale() {
        assert!(Class::Alpha.contains('é') && Class::Alpha.contains('٣') && !Class::Digit.contains('٣'));
        assert!(
            Class::Space.contains('\u{3000}') && !Class::Space.contains('\u{a0}') && !Class::Space.contains('\u{85}')
        );
        assert!(Class::Word.contains('_') && !Class::Alnum.contains('_'));
        assert!(Class::Cntrl.contains('\u{85}') && !Class::Print.contains('\u{85}'));
    }
}
