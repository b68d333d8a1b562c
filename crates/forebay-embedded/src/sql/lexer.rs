//! Cuts SQL text into tokens that both SQLite and PostgreSQL would agree on, with the bytes each came from.
//!
//! Promises: the tokens' ranges are in order and do not overlap, whatever lies between them is white space, and no text makes the lexer
//! panic or take more than linear time. Where the two disagree: `[x]` and `` `x` `` are names (SQLite), block comments nest, `E'…'` and
//! `$tag$…$tag$` are strings (PostgreSQL). It knows nothing of grammar.

use std::ops::Range;

use super::error::{SqlError, character_position};

/// More tokens than this in one statement are refused: a tree of them takes some hundred bytes each.
pub(super) const TOKENS_MAX: usize = 1_000_000;

/// What a token is; its text is the slice of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare word: keyword or name.
    Word,
    /// `"x"`, `` `x` `` or `[x]`.
    QuotedName,
    /// `'…'`.
    Text,
    /// `E'…'`, with backslash escapes.
    EscapedText,
    /// `$$…$$` or `$tag$…$tag$`.
    DollarText,
    /// `x'…'`.
    Blob,
    /// Any numeric literal.
    Number,
    /// `$1`, `?1`, `?`, `:name`, `@name`, `$name`.
    Parameter,
    /// `-- …` up to the end of the line, or `/* … */`. `nested`: holds another one, which SQLite would misread.
    Comment {
        /// Whether a comment opens inside it.
        nested: bool,
    },
    /// `;`
    Semicolon,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// Any other operator, one token each.
    Operator,
}

/// One token and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

impl Token {
    /// The token as written.
    pub(crate) fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.range.clone()]
    }

    /// Whether this is that bare word, in any case.
    pub(crate) fn is_word(&self, source: &str, word: &str) -> bool {
        self.kind == Kind::Word && self.text(source).eq_ignore_ascii_case(word)
    }

    /// Whether this is a comment.
    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::Comment { .. })
    }
}

/// All tokens of a text, comments included; more than `most` are an error.
pub(crate) fn tokens(source: &str, most: usize) -> Result<Vec<Token>, SqlError> {
    Lexer::starting_at(source, 0, most).collect()
}

/// The tokens of a text, comments included, one at a time; more than `most` are an error, unless they are counted anew. Behind an error comes nothing of use.
pub(crate) struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    most: usize,
    found: usize,
}

impl<'a> Lexer<'a> {
    /// From that byte on, which must be where a token begins or white space is.
    pub(crate) fn starting_at(source: &'a str, at: usize, most: usize) -> Self {
        Self {
            source,
            bytes: source.as_bytes(),
            at,
            most,
            found: 0,
        }
    }

    /// From here on there may be `most` again.
    pub(crate) fn count_anew(&mut self) {
        self.found = 0;
    }
}

impl Iterator for Lexer<'_> {
    type Item = Result<Token, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let token = self.next_token().transpose()?;
        self.found += 1;
        if self.found > self.most {
            let most = self.most;
            return Some(Err(SqlError::TooComplex {
                what: format!("more than {most} words and signs"),
            }));
        }
        Some(token)
    }
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || byte == b'$'
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next_token(&mut self) -> Result<Option<Token>, SqlError> {
        // U+FEFF is what some editors put before the first statement; SQLite skips it as well.
        while self.at < self.bytes.len() {
            if self.byte(0).is_ascii_whitespace() || self.byte(0) == 0x0b {
                self.at += 1;
            } else if self.source[self.at..].starts_with('\u{feff}') {
                self.at += 3;
            } else {
                break;
            }
        }
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let kind = match self.byte(0) {
            b'-' if self.byte(1) == b'-' => self.line_comment(),
            b'/' if self.byte(1) == b'*' => self.block_comment(start)?,
            b'\'' => self.quoted(start, b'\'', Kind::Text, "unterminated quoted string")?,
            b'"' => self.quoted_name(start)?,
            b'u' | b'U' if self.byte(1) == b'&' && self.byte(2) == b'"' => {
                return Err(SqlError::unsupported("an identifier with Unicode escapes (U&\"…\")"));
            }
            b'[' | b']' => self.take(1, Kind::Operator),
            b'e' | b'E' if self.byte(1) == b'\'' => self.escaped(start)?,
            b'x' | b'X' if self.byte(1) == b'\'' => {
                self.at += 1;
                self.quoted(start, b'\'', Kind::Blob, "unterminated hexadecimal string literal")?
            }
            b'$' => self.dollar(start)?,
            byte if starts_name(byte) => {
                let length = self.bytes[start..]
                    .iter()
                    .take_while(|byte| continues_name(**byte))
                    .count();
                self.take(length, Kind::Word)
            }
            byte if byte.is_ascii_digit() || (byte == b'.' && self.byte(1).is_ascii_digit()) => self.number(start)?,
            b';' => self.take(1, Kind::Semicolon),
            b'(' => self.take(1, Kind::Open),
            b')' => self.take(1, Kind::Close),
            b',' => self.take(1, Kind::Comma),
            b'.' => self.take(1, Kind::Dot),
            _ => self.operator(),
        };
        Ok(Some(Token {
            kind,
            range: start..self.at,
        }))
    }

    fn take(&mut self, length: usize, kind: Kind) -> Kind {
        self.at += length;
        kind
    }

    fn malformed<T>(&self, start: usize, message: impl Into<String>) -> Result<T, SqlError> {
        Err(SqlError::Syntax {
            message: message.into(),
            position: Some(character_position(self.source, start)),
        })
    }

    fn line_comment(&mut self) -> Kind {
        let length = self.source[self.at..].find('\n').unwrap_or(self.bytes.len() - self.at);
        self.take(length, Kind::Comment { nested: false })
    }

    fn block_comment(&mut self, start: usize) -> Result<Kind, SqlError> {
        let (mut depth, mut nested) = (0_usize, false);
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => {
                    nested |= depth > 0;
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(Kind::Comment { nested });
                    }
                }
                _ => self.at += 1,
            }
        }
        self.malformed(start, "unterminated /* comment")
    }

    /// From the opening quote at `self.at`; a doubled quote stands for itself.
    fn quoted(&mut self, start: usize, quote: u8, kind: Kind, message: &str) -> Result<Kind, SqlError> {
        self.at += 1;
        while let Some(length) = self.source[self.at..].find(char::from(quote)) {
            self.at += length;
            if self.byte(1) != quote {
                return Ok(self.take(1, kind));
            }
            self.at += 2;
        }
        self.at = self.bytes.len();
        self.malformed(start, message)
    }

    fn quoted_name(&mut self, start: usize) -> Result<Kind, SqlError> {
        let kind = self.quoted(start, b'"', Kind::QuotedName, "unterminated quoted identifier")?;
        if self.at - start == 2 {
            return self.malformed(start, "zero-length delimited identifier at or near \"\"\"\"");
        }
        Ok(kind)
    }

    fn escaped(&mut self, start: usize) -> Result<Kind, SqlError> {
        self.at += 2;
        while self.at < self.bytes.len() {
            match (self.byte(0), self.byte(1)) {
                (b'\\', _) | (b'\'', b'\'') => self.at += 2,
                (b'\'', _) => return Ok(self.take(1, Kind::EscapedText)),
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
        self.malformed(start, "unterminated quoted string")
    }

    fn dollar(&mut self, start: usize) -> Result<Kind, SqlError> {
        if self.byte(1).is_ascii_digit() {
            let kind = self.parameter(|byte| byte.is_ascii_digit());
            if starts_name(self.byte(0)) {
                return self.trailing_junk(start, "parameter");
            }
            return Ok(kind);
        }
        let tag = self.bytes[start + 1..]
            .iter()
            .take_while(|byte| continues_name(**byte) && **byte != b'$')
            .count();
        if self.byte(tag + 1) == b'$' {
            let delimiter = &self.source[start..start + tag + 2];
            let body = start + delimiter.len();
            return match self.source[body..].find(delimiter) {
                Some(length) => {
                    self.at = body + length + delimiter.len();
                    Ok(Kind::DollarText)
                }
                None => self.malformed(start, "unterminated dollar-quoted string"),
            };
        }
        if tag == 0 {
            return Ok(self.take(1, Kind::Operator));
        }
        Ok(self.parameter(continues_name))
    }

    fn parameter(&mut self, belongs: impl Fn(u8) -> bool) -> Kind {
        let length = self.bytes[self.at + 1..]
            .iter()
            .take_while(|byte| belongs(**byte))
            .count();
        self.take(length + 1, Kind::Parameter)
    }

    /// Digits, a point among them, an exponent; nothing else may stand right behind.
    fn number(&mut self, start: usize) -> Result<Kind, SqlError> {
        self.digits();
        if self.byte(0) == b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        match self.byte(0) {
            b'.' => {
                let message = format!("syntax error at or near \"{}\"", &self.source[self.at..=self.at]);
                self.malformed(self.at, message)
            }
            byte if starts_name(byte) => self.trailing_junk(start, "numeric literal"),
            _ => Ok(Kind::Number),
        }
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    /// What begins at `start` has ended, and goes on like a name.
    fn trailing_junk(&self, start: usize, what: &str) -> Result<Kind, SqlError> {
        let behind = self.bytes[self.at..].iter();
        let end = self.at + behind.take_while(|byte| continues_name(**byte)).count();
        let message = format!("trailing junk after {what} at or near \"{}\"", &self.source[start..end]);
        self.malformed(start, message)
    }

    /// As PostgreSQL reads operators: all their characters that stand together, up to a comment; a sign at the end belongs to what
    /// follows, unless the operator has a character that no sign of arithmetic has.
    fn operator(&mut self) -> Kind {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"::") {
            return self.take(2, Kind::Operator);
        }
        let run = rest
            .iter()
            .take_while(|byte| b"+-*/<>=~!@#%^&|`?".contains(byte))
            .count();
        let comment = (1..run).find(|at| rest[*at..].starts_with(b"--") || rest[*at..].starts_with(b"/*"));
        let mut length = comment.unwrap_or(run);
        if !rest[..length].iter().any(|byte| b"~!@#%^&|`?".contains(byte)) {
            while length > 1 && matches!(rest[length - 1], b'+' | b'-') {
                length -= 1;
            }
        }
        if length == 0 {
            length = self.source[self.at..].chars().next().map_or(1, char::len_utf8);
        }
        self.take(length, Kind::Operator)
    }
}

/// What a string token stands for, whichever way it is quoted. Blobs and names are not strings.
pub(crate) fn string_value(kind: Kind, text: &str) -> Option<Result<String, SqlError>> {
    match kind {
        Kind::Text => Some(Ok(text[1..text.len() - 1].replace("''", "'"))),
        Kind::EscapedText => Some(unescape(&text[2..text.len() - 1])),
        Kind::DollarText => {
            let delimiter = text[1..].find('$').map_or(0, |length| length + 2);
            Some(Ok(text[delimiter..text.len() - delimiter].to_owned()))
        }
        _ => None,
    }
}

/// The name a word or quoted name stands for, as it is written.
pub(crate) fn name_value(kind: Kind, text: &str) -> Option<String> {
    match kind {
        Kind::Word => Some(text.to_owned()),
        Kind::QuotedName => {
            let quote = &text[..1];
            Some(text[1..text.len() - 1].replace(&quote.repeat(2), quote))
        }
        _ => None,
    }
}

fn unescape(body: &str) -> Result<String, SqlError> {
    let invalid = |what: &str| SqlError::Syntax {
        message: format!("invalid {what} in an E'…' string"),
        position: None,
    };
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == '\'' {
            // The lexer let only doubled quotes through.
            rest = &rest[rest.len().min(1)..];
            bytes.push(b'\'');
            continue;
        }
        if character != '\\' {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some(escaped) = rest.chars().next() else {
            return Err(invalid("escape"));
        };
        rest = &rest[escaped.len_utf8()..];
        let digits = |rest: &str, most: usize, radix: u32| {
            rest.bytes()
                .take(most)
                .take_while(|byte| char::from(*byte).is_digit(radix))
                .count()
        };
        match escaped {
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            '0'..='7' => {
                let more = digits(rest, 2, 8);
                let text = format!("{escaped}{}", &rest[..more]);
                rest = &rest[more..];
                let value = u32::from_str_radix(&text, 8).map_err(|_| invalid("octal escape"))?;
                bytes.push(u8::try_from(value & 0xff).map_err(|_| invalid("octal escape"))?);
            }
            'x' if digits(rest, 2, 16) > 0 => {
                let length = digits(rest, 2, 16);
                bytes.push(u8::from_str_radix(&rest[..length], 16).map_err(|_| invalid("hexadecimal escape"))?);
                rest = &rest[length..];
            }
            'u' | 'U' => {
                let length = if escaped == 'u' { 4 } else { 8 };
                if digits(rest, length, 16) != length {
                    return Err(invalid("Unicode escape"));
                }
                let character = u32::from_str_radix(&rest[..length], 16)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or_else(|| invalid("Unicode escape"))?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[length..];
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if bytes.contains(&0) {
        return Err(invalid("zero byte"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("UTF-8"))
}
