//! JSON as text: what PostgreSQL takes for JSON (RFC 8259 with its own words for what is wrong), and its parts without a tree.
//!
//! Promises: [`parse`] accepts what PostgreSQL accepts, down to [`DEPTH_MAX`] levels; [`members`] and [`elements`] look at one level of a
//! text and give its parts as they stand there. No text makes anything here panic.
//!
//! Knows nothing of jsonb.

use std::borrow::Cow;

use crate::{Result, ValueError};

/// How deep arrays and objects may nest. PostgreSQL's limit is the size of its stack; ours is one that every thread's stack has.
pub const DEPTH_MAX: usize = 512;

/// What a JSON text is at its top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Shape {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl Shape {
    /// The word of `json_typeof`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }
}

/// A token, as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Punctuation(u8),
    /// With its quotes and escapes.
    String(&'a str),
    Number(&'a str),
    True,
    False,
    Null,
    End,
}

/// What is made of a text while it is read.
pub(crate) trait Builder<'a> {
    /// The value of a part.
    type Node;
    /// One of the four tokens that are values.
    fn scalar(&mut self, token: Token<'a>) -> Result<Self::Node>;
    /// An array.
    fn array(&mut self, elements: Vec<Self::Node>) -> Result<Self::Node>;
    /// An object; keys with their quotes and escapes.
    fn object(&mut self, members: Vec<(&'a str, Self::Node)>) -> Result<Self::Node>;
}

/// Builds nothing.
pub(crate) struct Nothing;

impl<'a> Builder<'a> for Nothing {
    type Node = ();
    fn scalar(&mut self, _: Token<'a>) -> Result<()> {
        Ok(())
    }
    fn array(&mut self, _: Vec<()>) -> Result<()> {
        Ok(())
    }
    fn object(&mut self, _: Vec<(&'a str, ())>) -> Result<()> {
        Ok(())
    }
}

/// Whether this is JSON, as the type json takes it: escapes are well formed, and need not mean a character.
pub fn validate(text: &str) -> Result<()> {
    parse(text, false, &mut Nothing)
}

/// Whether every escape in a text that is JSON means a character. Functions that give out parts of a json ask this of all of it.
pub(crate) fn validate_escapes(text: &str) -> Result<()> {
    if text.contains("\\u") {
        parse(text, true, &mut Nothing)
    } else {
        Ok(())
    }
}

/// Reads a whole text. With `escapes`, every escape must mean a character.
pub(crate) fn parse<'a, B: Builder<'a>>(text: &'a str, escapes: bool, builder: &mut B) -> Result<B::Node> {
    let mut parser = Parser {
        text,
        at: 0,
        start: 0,
        token: Token::End,
        escapes,
    };
    parser.advance()?;
    let node = parser.value(builder)?;
    match parser.token {
        Token::End => Ok(node),
        _ => Err(parser.expected("end of input")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Behind the token.
    at: usize,
    /// Where the token begins.
    start: usize,
    token: Token<'a>,
    escapes: bool,
}

/// An array or object whose end is still to come.
enum Open<'a, Node> {
    Array(Vec<Node>),
    /// And the key that the next value belongs to.
    Object(Vec<(&'a str, Node)>, &'a str),
}

impl<'a> Parser<'a> {
    /// Reads a value. Keeps what is open in a list of its own, so that depth costs no stack.
    fn value<B: Builder<'a>>(&mut self, builder: &mut B) -> Result<B::Node> {
        let mut open: Vec<Open<'a, B::Node>> = Vec::new();
        loop {
            let token = self.token;
            if matches!(token, Token::Punctuation(b'{' | b'[')) && open.len() >= DEPTH_MAX {
                return Err(too_deep());
            }
            let mut node = match token {
                Token::Punctuation(b'{') => {
                    self.advance()?;
                    if self.token != Token::Punctuation(b'}') {
                        let key = self.key("string or \"}\"")?;
                        open.push(Open::Object(Vec::new(), key));
                        continue;
                    }
                    self.advance()?;
                    builder.object(Vec::new())?
                }
                Token::Punctuation(b'[') => {
                    self.advance()?;
                    if self.token != Token::Punctuation(b']') {
                        open.push(Open::Array(Vec::new()));
                        continue;
                    }
                    self.advance()?;
                    builder.array(Vec::new())?
                }
                Token::Punctuation(_) | Token::End => return Err(self.expected("JSON value")),
                _ => {
                    self.advance()?;
                    builder.scalar(token)?
                }
            };
            // A value ends here, and so may those that it is the last part of.
            loop {
                node = match open.pop() {
                    None => return Ok(node),
                    Some(Open::Array(mut elements)) => {
                        elements.push(node);
                        match self.token {
                            Token::Punctuation(b',') => {
                                self.advance()?;
                                open.push(Open::Array(elements));
                                break;
                            }
                            Token::Punctuation(b']') => {
                                self.advance()?;
                                builder.array(elements)?
                            }
                            _ => return Err(self.expected("\",\" or \"]\"")),
                        }
                    }
                    Some(Open::Object(mut members, key)) => {
                        members.push((key, node));
                        match self.token {
                            Token::Punctuation(b',') => {
                                self.advance()?;
                                let key = self.key("string")?;
                                open.push(Open::Object(members, key));
                                break;
                            }
                            Token::Punctuation(b'}') => {
                                self.advance()?;
                                builder.object(members)?
                            }
                            _ => return Err(self.expected("\",\" or \"}\"")),
                        }
                    }
                };
            }
        }
    }

    /// Passes a key and its colon.
    fn key(&mut self, wanted: &str) -> Result<&'a str> {
        let Token::String(key) = self.token else {
            return Err(self.expected(wanted));
        };
        self.advance()?;
        if self.token != Token::Punctuation(b':') {
            return Err(self.expected("\":\""));
        }
        self.advance()?;
        Ok(key)
    }

    /// The next token.
    fn advance(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.start = self.at;
        self.token = match bytes.get(self.at) {
            None => Token::End,
            Some(&mark @ (b'{' | b'}' | b'[' | b']' | b',' | b':')) => {
                self.at += 1;
                Token::Punctuation(mark)
            }
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => {
                self.skip_word();
                match &self.text[self.start..self.at] {
                    "true" => Token::True,
                    "false" => Token::False,
                    "null" => Token::Null,
                    _ => {
                        if self.at == self.start {
                            // A byte that begins no token is less than 0x80, or it would be part of a word.
                            self.at += 1;
                        }
                        return Err(self.invalid_token());
                    }
                }
            }
        };
        Ok(())
    }

    fn skip_word(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| is_word(**byte)).count();
    }

    fn string(&mut self) -> Result<Token<'a>> {
        let bytes = self.text.as_bytes();
        let mut high_surrogate = false;
        self.at += 1;
        loop {
            let Some(&byte) = bytes.get(self.at) else {
                return Err(self.invalid_token());
            };
            if byte == b'\\' {
                let unit = self.escape()?;
                if self.escapes {
                    high_surrogate = match unit {
                        Some(0) => return Err(code_point_zero()),
                        Some(0xD800..=0xDBFF) if high_surrogate => {
                            return Err(invalid("Unicode high surrogate must not follow a high surrogate."));
                        }
                        Some(0xD800..=0xDBFF) => true,
                        Some(0xDC00..=0xDFFF) if high_surrogate => false,
                        Some(0xDC00..=0xDFFF) => return Err(low_surrogate()),
                        _ if high_surrogate => return Err(low_surrogate()),
                        _ => false,
                    };
                }
                continue;
            }
            if high_surrogate {
                return Err(low_surrogate());
            }
            self.at += 1;
            match byte {
                b'"' => return Ok(Token::String(&self.text[self.start..self.at])),
                0..=0x1F => return Err(invalid(format!("Character with value 0x{byte:02x} must be escaped."))),
                _ => {}
            }
        }
    }

    /// Passes an escape; if it is of the form `\u`, its number.
    fn escape(&mut self) -> Result<Option<u32>> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        match bytes.get(self.at) {
            None => Err(self.invalid_token()),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(None)
            }
            Some(b'u') => {
                self.at += 1;
                let mut unit = 0;
                for _ in 0..4 {
                    let Some(&byte) = bytes.get(self.at) else {
                        return Err(self.invalid_token());
                    };
                    let Some(digit) = char::from(byte).to_digit(16) else {
                        return Err(invalid("\"\\u\" must be followed by four hexadecimal digits."));
                    };
                    unit = unit * 16 + digit;
                    self.at += 1;
                }
                Ok(Some(unit))
            }
            Some(_) => {
                let character = self.text[self.at..].chars().next().unwrap_or_default();
                Err(invalid(format!("Escape sequence \"\\{character}\" is invalid.")))
            }
        }
    }

    fn number(&mut self) -> Result<Token<'a>> {
        let (length, whole) = number_length(&self.text.as_bytes()[self.at..]);
        self.at += length;
        // A number ends where no letter and no digit follows.
        let end = self.at;
        self.skip_word();
        if !whole || self.at != end {
            return Err(self.invalid_token());
        }
        Ok(Token::Number(&self.text[self.start..self.at]))
    }

    fn invalid_token(&self) -> ValueError {
        let token = self.text.get(self.start..self.at).unwrap_or_default();
        invalid(format!("Token \"{token}\" is invalid."))
    }

    fn expected(&self, what: &str) -> ValueError {
        if self.token == Token::End {
            return invalid("The input string ended unexpectedly.");
        }
        let found = &self.text[self.start..self.at];
        invalid(format!("Expected {what}, but found \"{found}\"."))
    }
}

/// How many bytes the number takes that stands at the beginning, and whether nothing is missing from it.
fn number_length(bytes: &[u8]) -> (usize, bool) {
    let digits = |at: usize| {
        bytes[at.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    at += match bytes.get(at) {
        Some(b'0') => 1,
        _ => digits(at),
    };
    if !bytes[..at].iter().any(u8::is_ascii_digit) {
        return (at, false);
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        at += 1 + fraction;
        if fraction == 0 {
            return (at, false);
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        at += 1 + sign + exponent;
        if exponent == 0 {
            return (at, false);
        }
    }
    (at, true)
}

/// Whether all of it is one JSON number.
pub(crate) fn is_number(text: &str) -> bool {
    number_length(text.as_bytes()) == (text.len(), true)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn invalid(detail: impl Into<String>) -> ValueError {
    ValueError::new("22P02", "invalid input syntax for type json").with_detail(detail)
}

pub(crate) fn too_deep() -> ValueError {
    ValueError::unsupported(format_args!("json with more than {DEPTH_MAX} levels is"))
}

fn low_surrogate() -> ValueError {
    invalid("Unicode low surrogate must follow a high surrogate.")
}

fn code_point_zero() -> ValueError {
    ValueError::new("22P05", "unsupported Unicode escape sequence").with_detail("\\u0000 cannot be converted to text.")
}

/// The text that a string with its quotes and escapes means. Escapes that mean no character become U+FFFD: whoever must not let them
/// pass has asked for it when reading.
pub(crate) fn unquote(string: &str) -> Cow<'_, str> {
    let inner = string.strip_prefix('"').unwrap_or(string);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(mark) = rest.chars().next() else { break };
        rest = &rest[mark.len_utf8()..];
        match mark {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let mut unit = take_unit(&mut rest);
                if (0xD800..0xDC00).contains(&unit)
                    && let Some(mut behind) = rest.strip_prefix("\\u")
                {
                    let low = take_unit(&mut behind);
                    if (0xDC00..0xE000).contains(&low) {
                        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                        rest = behind;
                    }
                }
                out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn take_unit(rest: &mut &str) -> u32 {
    match rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(unit) => {
            *rest = &rest[4..];
            unit
        }
        None => 0xFFFD,
    }
}

/// Writes a text as a JSON string, as PostgreSQL does.
pub(crate) fn quote(text: &str, out: &mut String) {
    use std::fmt::Write;
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            8 => "\\b",
            12 => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1F => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if short.is_empty() {
            write!(out, "\\u{byte:04x}").expect("a String takes everything");
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// What a text that is JSON is at its top.
pub fn shape(text: &str) -> Result<Shape> {
    match trim(text).as_bytes().first() {
        Some(b'{') => Ok(Shape::Object),
        Some(b'[') => Ok(Shape::Array),
        Some(b'"') => Ok(Shape::String),
        Some(b't' | b'f') => Ok(Shape::Boolean),
        Some(b'n') => Ok(Shape::Null),
        Some(b'-' | b'0'..=b'9') => Ok(Shape::Number),
        _ => Err(damaged()),
    }
}

/// Without the white space around it.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// A stored text that is not what its type says.
pub(crate) fn damaged() -> ValueError {
    ValueError::new("XX001", "a stored json is not one")
}

/// The elements of an array, as they stand in a text that is JSON.
pub fn elements(text: &str) -> Result<Vec<&str>> {
    let mut parts = Parts::new(text, b'[', b']')?;
    let mut elements = Vec::new();
    while parts.more()? {
        elements.push(parts.value()?);
    }
    Ok(elements)
}

/// The members of an object, as they stand in a text that is JSON: keys with quotes and escapes.
pub fn members(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut parts = Parts::new(text, b'{', b'}')?;
    let mut members = Vec::new();
    while parts.more()? {
        let key = parts.value()?;
        parts.skip_space();
        if parts.peek() != Some(b':') {
            return Err(damaged());
        }
        parts.at += 1;
        members.push((key, parts.value()?));
    }
    Ok(members)
}

/// Walks over one level.
struct Parts<'a> {
    text: &'a str,
    at: usize,
    close: u8,
    first: bool,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str, open: u8, close: u8) -> Result<Self> {
        let text = trim(text);
        if text.as_bytes().first() != Some(&open) {
            return Err(damaged());
        }
        Ok(Self {
            text,
            at: 1,
            close,
            first: true,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Whether another part follows; passes the comma before it.
    fn more(&mut self) -> Result<bool> {
        self.skip_space();
        let first = std::mem::replace(&mut self.first, false);
        match self.peek() {
            Some(byte) if byte == self.close => Ok(false),
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => Err(damaged()),
        }
    }

    /// The value that stands here.
    fn value(&mut self) -> Result<&'a str> {
        self.skip_space();
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string()?;
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.checked_sub(1).ok_or_else(damaged)?;
                    self.at += 1;
                }
                Some(b',' | b':') if depth == 0 => return Err(damaged()),
                Some(_) if depth == 0 => {
                    self.at += bytes[self.at..]
                        .iter()
                        .take_while(|byte| is_word(**byte) || matches!(byte, b'-' | b'+' | b'.'))
                        .count()
                        .max(1);
                }
                Some(_) => self.at += 1,
                None => return Err(damaged()),
            }
            if depth == 0 {
                // Only bytes below 0x80 end a part, so these are borders of characters in a text that is JSON.
                return self.text.get(start..self.at).ok_or_else(damaged);
            }
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            let rest = bytes.get(self.at..).ok_or_else(damaged)?;
            self.at += memchr::memchr2(b'"', b'\\', rest).ok_or_else(damaged)?;
            if bytes[self.at] == b'"' {
                self.at += 1;
                return Ok(());
            }
            self.at += 2;
        }
    }
}
