//! Writes a laid out number by the items of a picture.

use super::picture::{Description, Item, Pattern, SignPlace};
use crate::{Result, ValueError};

/// Digits, and the sign that was split off them.
pub(super) struct Signed {
    pub(super) sign: u8,
    pub(super) digits: String,
}

/// A number before the items take from it.
pub(super) struct Laid {
    /// Digits around a point, or hashes, or a Roman numeral.
    pub(super) number: String,
    /// How many digits of the picture stand before the number's first.
    pub(super) spaces: usize,
    /// `+` or `-`; 0 for a Roman numeral.
    pub(super) sign: u8,
}

/// A Roman numeral, or hashes beyond 1 to 3999.
pub(super) fn roman(integer: i64) -> String {
    const NUMERALS: &[(i64, &str)] = &[
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3999).contains(&integer) {
        return "#".repeat(15);
    }
    let mut rest = integer;
    let mut text = String::new();
    for (value, numeral) in NUMERALS {
        while rest >= *value {
            text.push_str(numeral);
            rest -= value;
        }
    }
    text
}

/// The state of PostgreSQL's NUM_processor.
struct Writer {
    description: Description,
    number: Vec<u8>,
    spaces: usize,
    sign: u8,
    sign_written: bool,
    /// The digits of the picture, less one.
    count: usize,
    /// Which digit of the picture is next.
    current: usize,
    /// Which digit of the number is next.
    position: usize,
    /// The last digit that fill mode shows.
    last_relevant: Option<usize>,
    /// Whether a digit of the number has been written.
    inside: bool,
    out: Vec<u8>,
}

/// Writes the number by the items.
pub(super) fn write(items: &[Item], description: Description, laid: Laid) -> Result<String> {
    let mut writer = Writer::new(description, laid);
    for item in items {
        match item {
            Item::Pattern(pattern) => writer.pattern(*pattern)?,
            Item::Character(character) => {
                writer
                    .out
                    .extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    // Where the number had no digit left PostgreSQL writes a zero byte, which ends its text.
    let end = writer
        .out
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(writer.out.len());
    writer.out.truncate(end);
    Ok(String::from_utf8(writer.out).expect("characters and ASCII"))
}

/// The last digit behind the point that is not zero, or the point.
fn last_relevant_digit(number: &[u8]) -> Option<usize> {
    let point = number.iter().position(|byte| *byte == b'.')?;
    number[point + 1..]
        .iter()
        .rposition(|byte| *byte != b'0')
        .map_or(Some(point), |at| Some(point + 1 + at))
}

impl Writer {
    fn new(mut description: Description, laid: Laid) -> Self {
        let number = laid.number.into_bytes();
        description.zero_start = description.zero_start.saturating_sub(1);
        let mut spaces = laid.spaces;
        if description.roman {
            description = Description {
                fill_mode: description.fill_mode,
                roman: true,
                zero_start: description.zero_start,
                zero_end: description.zero_end,
                multiplied: description.multiplied,
                ..Description::default()
            };
            spaces = 0;
        }
        let negative = laid.sign == b'-';
        let mut sign_written = false;
        if description.plus || description.minus {
            // MI and SG write the sign themselves.
            sign_written = description.minus;
        } else {
            if !negative && description.fill_mode {
                description.brackets = false;
            }
            sign_written |= laid.sign == b'+' && description.fill_mode && description.sign_place.is_none();
            if description.sign_place == Some(SignPlace::Before) && description.pre == description.pre_at_sign {
                description.sign_place = Some(SignPlace::After);
            }
        }
        let mut last_relevant = None;
        if description.fill_mode && description.point {
            last_relevant = last_relevant_digit(&number);
            if let Some(last) = last_relevant
                && description.zero_end > spaces
            {
                let last_zero = (number.len() - 1).min(description.zero_end - spaces);
                last_relevant = Some(last.max(last_zero));
            }
        }
        // One less than the digits, and one more for a sign that has no blank to stand in.
        let mut count = (description.post + description.pre).wrapping_sub(1);
        if !sign_written && spaces == 0 {
            count = count.wrapping_add(1);
        }
        Self {
            description,
            number,
            spaces,
            sign: laid.sign,
            sign_written,
            count,
            current: 0,
            position: 0,
            last_relevant,
            inside: false,
            out: Vec::new(),
        }
    }

    /// The next digit; zero behind the last.
    fn next(&self) -> u8 {
        self.number.get(self.position).copied().unwrap_or(0)
    }

    fn last_relevant_is_point(&self) -> bool {
        self.last_relevant.is_some_and(|at| self.number.get(at) == Some(&b'.'))
    }

    /// A zero before the point that 9.9 shows as a blank.
    fn is_leading_zero(&self) -> bool {
        !self.description.zero && self.position == 0 && self.next() == b'0' && self.description.post != 0
    }

    fn sign_character(&self) -> u8 {
        if self.sign == b'-' { b'-' } else { b'+' }
    }

    /// A digit or a point of the picture (NUM_numpart_to_char).
    fn digit(&mut self, zero: bool) {
        if self.description.roman {
            return;
        }
        self.inside = false;
        let blank = self.current < self.spaces;
        let from_here = self.description.zero && self.description.zero_start == self.current;
        if !self.sign_written && (!blank || from_here) && (!self.is_leading_zero() || self.last_relevant_is_point()) {
            self.write_sign();
        }
        if blank && (self.description.zero_start > self.current || !self.description.zero) {
            if !self.description.fill_mode {
                self.out.push(b' ');
            }
        } else if blank && self.description.zero {
            self.out.push(b'0');
            self.inside = true;
        } else {
            self.write_next(zero);
            if self.next() != 0 {
                self.position += 1;
            }
        }
        let mut end = self
            .count
            .wrapping_add(usize::from(self.spaces > 0))
            .wrapping_add(usize::from(self.description.point));
        if self.last_relevant == Some(self.position) {
            end = self.current;
        }
        if self.current + 1 == end {
            if self.sign_written && self.description.brackets {
                self.out.push(if self.sign == b'+' { b' ' } else { b'>' });
            } else if self.description.sign_place == Some(SignPlace::After) {
                self.out.push(self.sign_character());
            }
        }
        self.current += 1;
    }

    fn write_sign(&mut self) {
        match self.description.sign_place {
            Some(SignPlace::Before) => {
                self.out.push(self.sign_character());
                self.sign_written = true;
            }
            Some(SignPlace::After) => {}
            None if self.description.brackets => {
                self.out.push(if self.sign == b'+' { b' ' } else { b'<' });
                self.sign_written = true;
            }
            None => {
                match self.sign {
                    b'+' if self.description.fill_mode => {}
                    b'+' => self.out.push(b' '),
                    _ => self.out.push(b'-'),
                }
                self.sign_written = true;
            }
        }
    }

    fn write_next(&mut self, zero: bool) {
        if self.next() == b'.' {
            if !self.last_relevant_is_point() || self.description.fill_mode {
                self.out.push(b'.');
            }
        } else if self.last_relevant.is_some_and(|last| self.position > last) && !zero {
            // Fill mode leaves out what is behind the last digit.
        } else if self.is_leading_zero() {
            if !self.description.fill_mode {
                self.out.push(b' ');
            } else if self.last_relevant_is_point() {
                self.out.push(b'0');
            }
        } else {
            self.out.push(self.next());
            self.inside = true;
        }
    }

    /// A character, or a blank in its stead, which fill mode leaves out.
    fn character_if(&mut self, shown: bool, character: u8) {
        if shown {
            self.out.push(character);
        } else if !self.description.fill_mode {
            self.out.push(b' ');
        }
    }

    fn pattern(&mut self, pattern: Pattern) -> Result<()> {
        match pattern {
            Pattern::Nine | Pattern::Point | Pattern::LocalPoint => self.digit(false),
            Pattern::Zero => self.digit(true),
            Pattern::Comma | Pattern::Group => self.character_if(self.inside, b','),
            Pattern::Currency => self.out.push(b' '),
            Pattern::Roman => self.numeral(false),
            Pattern::SmallRoman => self.numeral(true),
            Pattern::Ordinal => self.ordinal(false)?,
            Pattern::SmallOrdinal => self.ordinal(true)?,
            Pattern::Minus => self.character_if(self.sign == b'-', b'-'),
            Pattern::Plus => self.character_if(self.sign == b'+', b'+'),
            // Zero for a Roman numeral, which ends the text.
            Pattern::PlusMinus => self.out.push(self.sign),
            _ => {}
        }
        Ok(())
    }

    fn numeral(&mut self, small: bool) {
        let mut numeral = String::from_utf8_lossy(&self.number[self.position..]).into_owned();
        if small {
            numeral.make_ascii_lowercase();
        }
        if !self.description.fill_mode {
            numeral = format!("{numeral:>15}");
        }
        self.out.extend_from_slice(numeral.as_bytes());
    }

    fn ordinal(&mut self, small: bool) -> Result<()> {
        if self.description.roman || self.number.first() == Some(&b'#') || self.sign == b'-' || self.description.point {
            return Ok(());
        }
        let last = self.number.last().copied().unwrap_or(0);
        if !last.is_ascii_digit() {
            let number = String::from_utf8_lossy(&self.number);
            return Err(ValueError::new("22P02", format!("\"{number}\" is not a number")));
        }
        let teen = self.number.len() > 1 && self.number[self.number.len() - 2] == b'1';
        let suffix = match (last, teen) {
            (b'1', false) => "ST",
            (b'2', false) => "ND",
            (b'3', false) => "RD",
            _ => "TH",
        };
        let suffix = if small {
            suffix.to_ascii_lowercase()
        } else {
            suffix.to_owned()
        };
        self.out.extend_from_slice(suffix.as_bytes());
        Ok(())
    }
}
