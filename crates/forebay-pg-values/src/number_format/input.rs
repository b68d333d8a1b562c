//! Reads a number by the items of a picture (to_number).

use super::picture::{self, Description, Item, Pattern, SignPlace};
use crate::numeric::{self, Number};
use crate::{Arguments, Owned, Result, ValueError};

/// The state of PostgreSQL's NUM_processor when it reads.
struct Reader<'a> {
    description: Description,
    input: &'a str,
    /// The byte that is next.
    at: usize,
    /// A blank or a sign.
    sign: u8,
    /// Digits, and a point.
    digits: String,
    read_pre: usize,
    read_post: usize,
    read_point: bool,
}

impl Reader<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.input.as_bytes().get(at).copied()
    }

    fn next(&self) -> Option<u8> {
        self.byte(self.at)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|byte| byte.is_ascii_digit())
    }

    /// To the character after the next.
    fn skip_character(&mut self) {
        // A picture may have led into the middle of a character; PostgreSQL counts from its bytes.
        let length = match self.next() {
            None => return,
            Some(..0xC0) => 1,
            Some(0xC0..0xE0) => 2,
            Some(0xE0..0xF0) => 3,
            Some(0xF0..) => 4,
        };
        self.at += length;
    }

    /// Over so many characters, unless they could be of a number.
    fn skip_foreign(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                None | Some(b'0'..=b'9' | b'.' | b',' | b'+' | b'-') => break,
                Some(_) => self.skip_character(),
            }
        }
    }

    /// Takes a sign that is next.
    fn take_sign(&mut self) -> bool {
        match self.next() {
            Some(sign @ (b'-' | b'+')) => {
                self.sign = sign;
                self.at += 1;
                true
            }
            _ => false,
        }
    }

    /// A digit or point of the picture (NUM_numpart_from_char); stands on the last byte it took.
    fn digit(&mut self, is_digit: bool) {
        if self.next() == Some(b' ') {
            self.at += 1;
        }
        if self.next().is_none() {
            return;
        }
        if self.sign == b' ' && is_digit && self.read_pre + self.read_post == 0 {
            if self.description.sign_place != Some(SignPlace::Before)
                && self.description.brackets
                && self.next() == Some(b'<')
            {
                self.sign = b'-';
                self.at += 1;
            } else {
                self.take_sign();
            }
        }
        let Some(next) = self.next() else {
            return;
        };
        let mut read = false;
        if next.is_ascii_digit() {
            if self.read_point && self.read_post == self.description.post {
                return;
            }
            self.digits.push(char::from(next));
            if self.read_point {
                self.read_post += 1;
            } else {
                self.read_pre += 1;
            }
            read = true;
        } else if self.description.point && !self.read_point && next == b'.' {
            self.digits.push('.');
            self.read_point = true;
            read = true;
        }
        if self.sign == b' ' && self.read_pre + self.read_post > 0 {
            self.sign_behind(read);
        }
    }

    fn sign_behind(&mut self, read: bool) {
        if self.description.sign_place.is_some()
            && read
            && self.at + 1 < self.input.len()
            && !self.is_digit(self.at + 1)
        {
            if let Some(sign @ (b'-' | b'+')) = self.byte(self.at + 1) {
                self.sign = sign;
                self.at += 1;
            }
        } else if !read
            && self.description.sign_place.is_none()
            && (self.description.plus || self.description.minus)
            && let Some(sign @ (b'-' | b'+')) = self.next()
        {
            self.sign = sign;
        }
    }

    fn pattern(&mut self, pattern: Pattern) {
        match pattern {
            Pattern::Nine | Pattern::Zero => {
                self.digit(true);
                self.at += 1;
            }
            Pattern::Point | Pattern::LocalPoint => {
                self.digit(false);
                self.at += 1;
            }
            // Never inside of the number, as far as it knows when it reads.
            Pattern::Comma | Pattern::Group if !self.description.fill_mode && self.next() == Some(b',') => self.at += 1,
            Pattern::Currency => self.skip_foreign(1),
            Pattern::Ordinal | Pattern::SmallOrdinal if !self.description.point => self.skip_foreign(2),
            Pattern::Minus => self.sign_or_skip(b"-"),
            Pattern::Plus => self.sign_or_skip(b"+"),
            Pattern::PlusMinus => self.sign_or_skip(b"-+"),
            _ => {}
        }
    }

    fn sign_or_skip(&mut self, signs: &[u8]) {
        match self.next() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = sign;
                self.at += 1;
            }
            _ => self.skip_foreign(1),
        }
    }
}

/// See the module.
pub(super) fn to_number(arguments: Arguments<'_>) -> Result<Owned> {
    let (input, picture) = (arguments.text(0)?, arguments.text(1)?);
    if picture.is_empty() {
        return Ok(Owned::Null);
    }
    let (items, description) = picture::parse(picture)?;
    let unsupported = |what: &str| Err(ValueError::new("0A000", format!("\"{what}\" not supported for input")));
    if description.scientific {
        return unsupported("EEEE");
    }
    if description.roman {
        return unsupported("RN");
    }
    let mut reader = Reader {
        description,
        input,
        at: 0,
        sign: b' ',
        digits: String::new(),
        read_pre: 0,
        read_post: 0,
        read_point: false,
    };
    for item in items {
        if reader.next().is_none() {
            break;
        }
        match item {
            Item::Pattern(pattern) => reader.pattern(pattern),
            Item::Character(_) => reader.skip_character(),
        }
    }
    let digits = reader.digits.strip_suffix('.').unwrap_or(&reader.digits);
    let text = format!("{}{digits}", char::from(reader.sign));
    let description = reader.description;
    let precision = description.pre + description.multiplied + reader.read_post;
    let typmod = i32::try_from(precision << 16 | reader.read_post)
        .map_err(|_| ValueError::unsupported("so long a format is"))?
        .saturating_add(4);
    let number = numeric::parse(&text, typmod)?;
    if !description.multiply {
        return Ok(number);
    }
    let Owned::Text(text) = number else {
        unreachable!("a numeric is stored as text");
    };
    let places = i64::try_from(description.multiplied).unwrap_or(i64::MAX);
    let power = Number::from(10).power(&Number::from(-places))?;
    Number::stored(&text)?.multiply(&power).store()
}
