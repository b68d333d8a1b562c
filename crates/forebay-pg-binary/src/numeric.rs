//! numeric: decimal numbers of any length, between their text and the binary format: digits of base 10,000, the weight of the first,
//! a sign, and how many decimal digits stand behind the point.
//!
//! Promises: exact, digits and scale, both ways. What is written is a number that PostgreSQL has; what is read is checked as its
//! `numeric_recv` checks it, and printed as its `numeric_out` prints it. Knows no arithmetic.

use bytes::BufMut;

/// PostgreSQL's numerics have at most so many digits before the point.
pub const WHOLE_DIGITS_MAX: usize = 131_072;
/// PostgreSQL's numerics have at most so many digits behind the point.
pub const SCALE_MAX: u16 = 0x3fff;
/// Larger exponents are not read here.
const EXPONENT_MAX: i32 = 1_000;

const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;
/// PostgreSQL's infinities have a bit of their own where the scale is.
const INFINITY_SCALE: u16 = 0x20;
/// How many decimal digits are in one of base 10,000.
const GROUP: i32 = 4;
/// One more than the largest digit of base 10,000.
const BASE: u16 = 10_000;

/// Why bytes are no numeric, in PostgreSQL's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than the header says.
    #[error("insufficient data left in message")]
    Short,
    /// More bytes than the header says.
    #[error("incorrect binary data format")]
    Long,
    /// No sign that there is.
    #[error("invalid sign in external \"numeric\" value")]
    Sign,
    /// More than [`SCALE_MAX`].
    #[error("invalid scale in external \"numeric\" value")]
    Scale,
    /// A digit above 9,999.
    #[error("invalid digit in external \"numeric\" value")]
    Digit,
}

/// What numeric has beside numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// `NaN`
    NotANumber,
    /// `Infinity`
    Infinity,
    /// `-Infinity`
    NegativeInfinity,
}

impl Special {
    /// The one that PostgreSQL writes so.
    pub fn of(text: &str) -> Option<Self> {
        match text {
            "NaN" => Some(Self::NotANumber),
            "Infinity" => Some(Self::Infinity),
            "-Infinity" => Some(Self::NegativeInfinity),
            _ => None,
        }
    }

    /// Appends its binary format.
    pub fn put(self, out: &mut impl BufMut) {
        let (sign, scale) = match self {
            Self::NotANumber => (NAN, 0),
            Self::Infinity => (INFINITY, INFINITY_SCALE),
            Self::NegativeInfinity => (NEGATIVE_INFINITY, INFINITY_SCALE),
        };
        put_header(0, 0, sign, scale, out);
    }
}

fn put_header(groups: u16, weight: i16, sign: u16, scale: u16, out: &mut impl BufMut) {
    out.put_u16(groups);
    out.put_i16(weight);
    out.put_u16(sign);
    out.put_u16(scale);
}

/// Appends the binary format of an integer.
pub fn put_integer(integer: i64, out: &mut impl BufMut) {
    // 10,000^5 is more than any of them.
    let mut groups = [0_u16; 5];
    let mut left = integer.unsigned_abs();
    let mut count = 0;
    while left > 0 {
        groups[count] = u16::try_from(left % u64::from(BASE)).expect("a remainder of 10,000");
        left /= u64::from(BASE);
        count += 1;
    }
    // Groups of zeros at the end are the weight's to tell.
    let lowest = groups[..count].iter().take_while(|group| **group == 0).count();
    let sign = if integer < 0 { NEGATIVE } else { POSITIVE };
    let length = u16::try_from(count - lowest).expect("at most 5");
    let weight = i16::try_from(count).expect("at most 5") - i16::from(count > 0);
    put_header(length, weight, sign, 0, out);
    for group in groups[lowest..count].iter().rev() {
        out.put_u16(*group);
    }
}

/// `±whole.fraction e exponent`, of a size that PostgreSQL has.
pub struct Decimal<'a> {
    negative: bool,
    /// ASCII digits, as those of `fraction`; not both are empty.
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
}

impl<'a> Decimal<'a> {
    /// A text that is a plain decimal number and nothing else, also without blanks around it.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let (negative, text) = signed(text);
        let (whole, text) = digits(text);
        let (fraction, text) = match text.split_first() {
            Some((b'.', rest)) => digits(rest),
            _ => (&text[..0], text),
        };
        let exponent = match text.split_first() {
            None => 0,
            Some((b'e' | b'E', rest)) => {
                let (below_one, rest) = signed(rest);
                let (digits, rest) = digits(rest);
                if !rest.is_empty() || !(1..=4).contains(&digits.len()) {
                    return None;
                }
                let size = digits.iter().fold(0, |size, digit| size * 10 + i32::from(digit - b'0'));
                if below_one { -size } else { size }
            }
            Some(_) => return None,
        };
        let decimal = Self {
            negative,
            whole,
            fraction,
            exponent,
        };
        let fits = decimal.digit_count() > 0
            && whole.len() <= WHOLE_DIGITS_MAX
            && fraction.len() <= usize::from(SCALE_MAX)
            && exponent.abs() <= EXPONENT_MAX
            && decimal.whole_digits() <= size(WHOLE_DIGITS_MAX)
            && decimal.scale() <= i32::from(SCALE_MAX);
        fits.then_some(decimal)
    }

    /// How many digits its text has.
    pub fn digit_count(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// Digits before the point when there is no exponent any more; below 0, as many zeros stand behind the point first.
    fn whole_digits(&self) -> i32 {
        size(self.whole.len()) + self.exponent
    }

    /// Digits behind the point when there is no exponent any more.
    fn scale(&self) -> i32 {
        (size(self.fraction.len()) - self.exponent).max(0)
    }

    fn digit(&self, index: usize) -> u8 {
        let digit = match index.checked_sub(self.whole.len()) {
            None => self.whole[index],
            Some(index) => self.fraction[index],
        };
        digit - b'0'
    }

    /// Appends its binary format.
    pub fn put(&self, out: &mut impl BufMut) {
        let scale = u16::try_from(self.scale()).expect("at most SCALE_MAX");
        let first = (0..self.digit_count()).find(|&index| self.digit(index) != 0);
        let last = (0..self.digit_count()).rfind(|&index| self.digit(index) != 0);
        let (Some(first), Some(last)) = (first, last) else {
            return put_header(0, 0, POSITIVE, scale, out);
        };
        let top = self.whole_digits();
        let power = |index: usize| top - 1 - size(index);
        let weight = power(first).div_euclid(GROUP);
        let lowest = power(last).div_euclid(GROUP);
        let within = "WHOLE_DIGITS_MAX and SCALE_MAX are less than 40,000 groups, and the first of these than 32,769";
        put_header(
            u16::try_from(weight - lowest + 1).expect(within),
            i16::try_from(weight).expect(within),
            if self.negative { NEGATIVE } else { POSITIVE },
            scale,
            out,
        );
        for group in (lowest..=weight).rev() {
            let mut value = 0;
            for power in (group * GROUP..(group + 1) * GROUP).rev() {
                let digit = usize::try_from(top - 1 - power)
                    .ok()
                    .filter(|index| (first..=last).contains(index))
                    .map_or(0, |index| self.digit(index));
                value = value * 10 + u16::from(digit);
            }
            out.put_u16(value);
        }
    }
}

fn size(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX / 2)
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(length)
}

/// The text of a binary numeric, as PostgreSQL prints it. Digits behind the scale are cut off, as PostgreSQL does.
pub fn text(raw: &[u8]) -> Result<String, Malformed> {
    let (header, digits) = raw.split_first_chunk::<8>().ok_or(Malformed::Short)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (count, weight, sign, scale) = (usize::from(word(0)), word(2).cast_signed(), word(4), word(6));
    if !matches!(sign, POSITIVE | NEGATIVE | NAN | INFINITY | NEGATIVE_INFINITY) {
        return Err(Malformed::Sign);
    }
    if scale > SCALE_MAX {
        return Err(Malformed::Scale);
    }
    let (groups, rest) = digits.as_chunks::<2>();
    if digits.len() < count * 2 {
        return Err(Malformed::Short);
    }
    if groups.len() > count || !rest.is_empty() {
        return Err(Malformed::Long);
    }
    if groups.iter().any(|group| u16::from_be_bytes(*group) >= BASE) {
        return Err(Malformed::Digit);
    }
    Ok(match sign {
        NAN => "NaN".to_owned(),
        INFINITY => "Infinity".to_owned(),
        NEGATIVE_INFINITY => "-Infinity".to_owned(),
        _ => finite(sign == NEGATIVE, groups, weight.into(), scale.into()),
    })
}

fn finite(negative: bool, groups: &[[u8; 2]], weight: i32, scale: usize) -> String {
    let group = |position: i32| {
        usize::try_from(weight - position)
            .ok()
            .and_then(|index| groups.get(index))
            .map_or(0, |group| u16::from_be_bytes(*group))
    };
    let whole_groups = usize::try_from(weight + 1).unwrap_or(0);
    let mut text = String::with_capacity(whole_groups * 4 + scale + 3);
    if negative {
        text.push('-');
    }
    // Zeros in front are not printed, but for the one before the point.
    let mut begun = false;
    for position in (0..=weight).rev() {
        let digits = group(position);
        if begun || digits != 0 {
            push_group(digits, begun, &mut text);
            begun = true;
        }
    }
    if !begun {
        text.push('0');
    }
    if scale > 0 {
        text.push('.');
        let end = text.len() + scale;
        let mut position = -1;
        while text.len() < end {
            push_group(group(position), true, &mut text);
            position -= 1;
        }
        text.truncate(end);
    }
    // There is no negative zero.
    if negative && !text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        text.remove(0);
    }
    text
}

fn push_group(group: u16, padded: bool, text: &mut String) {
    let mut divisor = 1_000;
    let mut leading = !padded;
    while divisor > 0 {
        let digit = group / divisor % 10;
        leading &= digit == 0 && divisor > 1;
        if !leading {
            text.push(char::from(b'0' + u8::try_from(digit).expect("a remainder of 10")));
        }
        divisor /= 10;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn binary(number: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        Decimal::of(number.as_bytes())?.put(&mut out);
        Some(out)
    }

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn a_number_is_written_as_postgresql_sends_it() {
        // What `numeric_send` of PostgreSQL 15 gives.
        for (number, expected) in [
            ("0", &[0, 0, 0, 0][..]),
            ("0.00", &[0, 0, 0, 2]),
            ("-0.0", &[0, 0, 0, 1]),
            ("1", &[1, 0, 0, 0, 1]),
            ("-12.50", &[2, 0, NEGATIVE, 2, 12, 5_000]),
            ("10000", &[1, 1, 0, 0, 1]),
            ("0.00001", &[1, 0xfffe, 0, 5, 1_000]),
            ("123456.789", &[3, 1, 0, 3, 12, 3_456, 7_890]),
            ("1.5e3", &[1, 0, 0, 0, 1_500]),
            ("1.5e-3", &[1, 0xffff, 0, 4, 15]),
        ] {
            assert_eq!(binary(number), Some(words(expected)), "{number}");
        }
    }

    #[test]
    fn what_postgresql_has_not_is_not_written() {
        let nines = |count: usize| "9".repeat(count);
        for number in ["", ".", "-", "1e", "1e99999", "1 ", "0x1", "1e1001", "NaN", "1.2.3"] {
            assert_eq!(binary(number), None, "{number}");
        }
        assert!(binary(&nines(WHOLE_DIGITS_MAX)).is_some());
        assert!(binary(&nines(WHOLE_DIGITS_MAX + 1)).is_none());
        assert!(binary(&format!("{}e1", nines(WHOLE_DIGITS_MAX))).is_none());
        let scale = usize::from(SCALE_MAX);
        assert!(binary(&format!("0.{}", nines(scale))).is_some());
        assert!(binary(&format!("0.{}", nines(scale + 1))).is_none());
        assert!(binary(&format!("0.{}e-1", nines(scale))).is_none());
    }

    #[test]
    fn what_is_no_number_goes_both_ways() {
        for name in ["NaN", "Infinity", "-Infinity"] {
            let mut out = Vec::new();
            Special::of(name).unwrap().put(&mut out);
            assert_eq!(text(&out).as_deref(), Ok(name));
        }
        assert_eq!(Special::of("nan"), None);
    }

    #[test]
    fn malformed_bytes_are_told_apart() {
        for (raw, expected) in [
            (&[][..], Malformed::Short),
            (&[1, 0, 0, 0], Malformed::Short),
            (&[0, 0, 0, 0, 1], Malformed::Long),
            (&[0, 0, 1, 0], Malformed::Sign),
            (&[0, 0, 0, SCALE_MAX + 1], Malformed::Scale),
            (&[1, 0, 0, 0, BASE], Malformed::Digit),
        ] {
            assert_eq!(text(&words(raw)), Err(expected), "{raw:?}");
        }
        let odd = [words(&[0, 0, 0, 0]), vec![0]].concat();
        assert_eq!(text(&odd), Err(Malformed::Long));
    }

    #[test]
    fn groups_that_no_postgresql_sends_are_read_as_it_reads_them() {
        for (raw, expected) in [
            (&[2, 1, 0, 0, 0, 7][..], "7"),
            (&[1, 0, 0, 0, 0], "0"),
            (&[0, 5, 0, 1], "0.0"),
            (&[1, 0xffff, NEGATIVE, 1, 99], "0.0"),
            (&[0, 0, NEGATIVE, 0], "0"),
            (&[1, 1, NEGATIVE, 0, 3], "-30000"),
        ] {
            assert_eq!(text(&words(raw)).as_deref(), Ok(expected), "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back(whole in "0|[1-9][0-9]{0,40}", fraction in "(\\.[0-9]{1,40})?", negative: bool) {
            let unsigned = format!("{whole}{fraction}");
            let is_zero = !unsigned.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
            let number = if negative && !is_zero { format!("-{unsigned}") } else { unsigned };
            prop_assert_eq!(text(&binary(&number).unwrap()), Ok(number));
        }

        #[test]
        fn an_integer_is_written_as_its_text_is(any: i64, zeros in 0_u32..19) {
            let integer = any - any % 10_i64.pow(zeros);
            let mut out = Vec::new();
            put_integer(integer, &mut out);
            prop_assert_eq!(Some(out), binary(&integer.to_string()));
        }
    }
}
