//! The first step of reading a date, time or interval: words, numbers, and what looks like a date, a clock or an offset. PostgreSQL's
//! documentation gives the rules ("Date/Time Input Interpretation"). Knows of meanings only that some words are keywords of dates.

/// What a token looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Digits, perhaps with a point.
    Number,
    /// Digits and colons.
    Clock,
    /// Parts with separators, or a zone's name.
    Date,
    /// A sign and digits.
    Offset,
    /// Letters.
    Word,
    /// A sign and letters.
    Special,
}

/// A token, its letters in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) shape: Shape,
    pub(crate) text: String,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not in the syntax.
    Syntax,
    /// A field is too large or too small.
    Field,
    /// Month or day may have been taken for one another.
    MonthOrDay,
    /// An offset is too large.
    Offset,
    /// An error with words of its own.
    Value(crate::ValueError),
}

/// As many tokens as PostgreSQL reads.
const TOKENS_MAX: usize = 25;
/// As many bytes as PostgreSQL keeps of the tokens of an interval, each with a byte at its end.
const BYTES_MAX: usize = 256;
/// The same of the type that it keeps the fewest for.
const BYTES_MAX_OF_ALL: usize = 129;

/// Whether tokens are too long for some of PostgreSQL's types, though not for all.
pub(crate) fn are_long(tokens: &[Token]) -> bool {
    bytes(tokens) > BYTES_MAX_OF_ALL
}

fn bytes(tokens: &[Token]) -> usize {
    tokens.iter().map(|token| token.text.len() + 1).sum()
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        token: String::new(),
    };
    while let Some(byte) = scanner.peek() {
        scanner.token.clear();
        let shape = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                scanner.at += 1;
                continue;
            }
            b'0'..=b'9' => scanner.number(),
            b'.' => {
                scanner.take();
                scanner.take_while(|byte| byte.is_ascii_digit());
                Shape::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' => scanner.word(),
            b'+' | b'-' => scanner.signed()?,
            _ if byte.is_ascii_punctuation() => {
                scanner.at += 1;
                continue;
            }
            _ => return Err(Fault::Syntax),
        };
        if tokens.len() == TOKENS_MAX {
            return Err(Fault::Syntax);
        }
        tokens.push(Token {
            shape,
            text: scanner.token.clone(),
        });
    }
    if bytes(&tokens) > BYTES_MAX {
        return Err(Fault::Syntax);
    }
    Ok(tokens)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    token: String,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next_is(&self, test: impl Fn(u8) -> bool) -> bool {
        self.peek().is_some_and(test)
    }

    fn take(&mut self) {
        if let Some(byte) = self.peek() {
            self.token.push(char::from(byte.to_ascii_lowercase()));
            self.at += 1;
        }
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.next_is(&test) {
            self.take();
        }
    }

    fn number(&mut self) -> Shape {
        self.take_while(|byte| byte.is_ascii_digit());
        match self.peek() {
            Some(b':') => {
                self.take_while(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.');
                Shape::Clock
            }
            Some(separator @ (b'-' | b'/' | b'.')) => {
                self.take();
                if !self.next_is(|byte| byte.is_ascii_digit()) {
                    self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == separator);
                    return Shape::Date;
                }
                self.take_while(|byte| byte.is_ascii_digit());
                if self.next_is(|byte| byte == separator) {
                    self.take_while(|byte| byte.is_ascii_digit() || byte == separator);
                    return Shape::Date;
                }
                if separator == b'.' { Shape::Number } else { Shape::Date }
            }
            _ => Shape::Number,
        }
    }

    fn word(&mut self) -> Shape {
        self.take_while(|byte| byte.is_ascii_alphabetic());
        let goes_on = match self.peek() {
            Some(b'-' | b'/' | b'.') => true,
            Some(byte) if byte == b'+' || byte.is_ascii_digit() => super::keywords::keyword(&self.token).is_none(),
            _ => false,
        };
        if !goes_on {
            return Shape::Word;
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte));
        Shape::Date
    }

    fn signed(&mut self) -> Result<Shape, Fault> {
        self.take();
        while self.next_is(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
            self.at += 1;
        }
        match self.peek() {
            Some(byte) if byte.is_ascii_digit() => {
                self.take_while(|byte| byte.is_ascii_digit() || b":.-".contains(&byte));
                Ok(Shape::Offset)
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.take_while(|byte| byte.is_ascii_alphabetic());
                Ok(Shape::Special)
            }
            _ => Err(Fault::Syntax),
        }
    }
}

/// A whole number at the beginning of a text and what follows it, as C's `strtol` reads; 0 where there is none.
pub(crate) fn leading_integer(text: &str) -> Result<(i64, &str), Fault> {
    let digits_from = usize::from(text.starts_with(['+', '-']));
    let end = text[digits_from..]
        .find(|next: char| !next.is_ascii_digit())
        .map_or(text.len(), |at| at + digits_from);
    if end == digits_from {
        return Ok((0, text));
    }
    let value = text[..end].parse().map_err(|_| Fault::Field)?;
    Ok((value, &text[end..]))
}

/// The same within PostgreSQL's `int`.
pub(crate) fn leading_int(text: &str) -> Result<(i32, &str), Fault> {
    let (value, rest) = leading_integer(text)?;
    Ok((i32::try_from(value).map_err(|_| Fault::Field)?, rest))
}

/// The value of `.25`, which must be all there is.
pub(crate) fn fraction(text: &str) -> Result<f64, Fault> {
    let digits = text.strip_prefix('.').ok_or(Fault::Syntax)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    if digits.is_empty() {
        return Ok(0.0);
    }
    format!("0{text}").parse().map_err(|_| Fault::Syntax)
}

/// The microseconds of `.25`.
#[allow(clippy::cast_possible_truncation, reason = "a fraction of a million")]
pub(crate) fn fraction_micros(text: &str) -> Result<i64, Fault> {
    Ok((fraction(text)? * 1_000_000.0).round_ties_even() as i64)
}
