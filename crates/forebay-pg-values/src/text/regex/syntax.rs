//! The syntax of PostgreSQL's advanced regular expressions, read as PostgreSQL's own parser reads it.
//!
//! Promises: what PostgreSQL refuses is refused with its words (2201B); what it takes is read in full, except back references,
//! lookaround, named collating elements and basic or extended expressions by option, which are refused by name (0A000).

use std::rc::Rc;

use crate::text::characters::{Class, normalized, to_lower, to_upper};
use crate::{Result, ValueError};

/// Characters that one place takes: ranges of code points in order.
pub(super) type Set = Rc<Vec<(u32, u32)>>;

/// How an expression is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own in PostgreSQL"
)]
pub struct Options {
    /// Whatever the case.
    pub ignore_case: bool,
    /// White space and comments mean nothing.
    pub expanded: bool,
    /// `.` and `[^…]` do not take a line feed.
    pub newline_stops: bool,
    /// `^` and `$` match at line feeds.
    pub newline_anchors: bool,
    /// The expression is a plain text.
    pub literal: bool,
}

/// What holds between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assertion {
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NoWordBoundary,
}

/// Whether the longest or the shortest match is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

/// Branches with `|` between them.
#[derive(Debug)]
pub(super) struct Alternation {
    pub branches: Vec<Vec<Piece>>,
}

/// A step of a branch.
#[derive(Debug)]
pub(super) enum Piece {
    Assertion(Assertion),
    Repeated {
        atom: Atom,
        min: u16,
        /// None: no end.
        max: Option<u16>,
        preference: Option<Preference>,
    },
}

#[derive(Debug)]
pub(super) enum Atom {
    One(Set),
    Group {
        /// The number of a capturing group, from 1.
        number: Option<usize>,
        content: Alternation,
    },
}

/// What was read.
#[derive(Debug)]
pub(super) struct Expression {
    pub content: Alternation,
    pub groups: usize,
    /// With the options that the expression itself sets.
    pub options: Options,
}

/// The largest count in braces.
const COUNT_MAX: u16 = 255;
/// Groups and repetitions together, each of which may be a level of the tree.
const PARTS_MAX: usize = 250;
/// Parentheses in parentheses, so that no expression overflows the stack.
const DEPTH_MAX: usize = 100;

fn invalid(words: &str) -> ValueError {
    ValueError::new("2201B", format!("invalid regular expression: {words}"))
}

const BAD_ESCAPE: &str = "invalid escape \\ sequence";
const BAD_QUANTIFIER: &str = "quantifier operand invalid";
const BAD_COUNT: &str = "invalid repetition count(s)";
const BAD_RANGE: &str = "invalid character range";
const UNBALANCED_BRACKETS: &str = "brackets [] not balanced";
const UNBALANCED_PARENTHESES: &str = "parentheses () not balanced";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Plain(char),
    Class {
        class: Class,
        complement: bool,
    },
    Assertion(Assertion),
    /// The least, whether there is no most, and greed, of `*`, `+`, `?`.
    Quantifier(u16, Option<u16>, Preference),
    BraceOpen,
    Open {
        capture: bool,
    },
    Close,
    Bracket {
        complement: bool,
    },
    Any,
    Bar,
}

/// Reads an expression.
pub(super) fn parse(text: &str, options: Options) -> Result<Expression> {
    let mut parser = Parser {
        rest: text,
        options,
        groups: 0,
        depth: 0,
        parts: 0,
        token: Token::End,
    };
    if options.literal && (options.expanded || options.newline_stops || options.newline_anchors) {
        return Err(invalid("invalid argument to regex function"));
    }
    parser.read_prefix()?;
    if parser.options.literal {
        let pieces = parser
            .rest
            .chars()
            .map(|character| one(parser.single(character)))
            .collect();
        return Ok(Expression {
            content: Alternation { branches: vec![pieces] },
            groups: 0,
            options: parser.options,
        });
    }
    parser.next()?;
    let content = parser.alternation(false)?;
    Ok(Expression {
        content,
        groups: parser.groups,
        options: parser.options,
    })
}

fn one(set: Set) -> Piece {
    Piece::Repeated {
        atom: Atom::One(set),
        min: 1,
        max: Some(1),
        preference: None,
    }
}

struct Parser<'a> {
    rest: &'a str,
    options: Options,
    groups: usize,
    depth: usize,
    parts: usize,
    token: Token,
}

impl Parser<'_> {
    /// Directors (`***=`) and options (`(?i)`) at the start.
    fn read_prefix(&mut self) -> Result<()> {
        if self.options.literal {
            return Ok(());
        }
        if let Some(after) = self.rest.strip_prefix("***") {
            if let Some(after) = after.strip_prefix('=') {
                self.rest = after;
                self.options.literal = true;
                return Ok(());
            }
            self.rest = after.strip_prefix(':').ok_or_else(|| invalid(BAD_QUANTIFIER))?;
        }
        let mut letters = self.rest.chars();
        if (letters.next(), letters.next()) != (Some('('), Some('?'))
            || !letters.next().is_some_and(|letter| Class::Alpha.contains(letter))
        {
            return Ok(());
        }
        self.rest = &self.rest[2..];
        while let Some(letter) = self.rest.chars().next().filter(|letter| Class::Alpha.contains(*letter)) {
            self.rest = &self.rest[letter.len_utf8()..];
            if !self.options.set(letter)? {
                return Err(invalid("invalid embedded option"));
            }
        }
        self.rest = self
            .rest
            .strip_prefix(')')
            .ok_or_else(|| invalid("invalid embedded option"))?;
        Ok(())
    }

    fn take(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let found = self.rest.starts_with(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    /// White space and comments, in expanded syntax.
    fn skip(&mut self) {
        if !self.options.expanded {
            return;
        }
        loop {
            self.rest = self
                .rest
                .trim_start_matches(|character| Class::Space.contains(character));
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
        }
    }

    /// The next token, outside of brackets and braces.
    fn next(&mut self) -> Result<()> {
        loop {
            self.skip();
            let Some(character) = self.take() else {
                self.token = Token::End;
                return Ok(());
            };
            self.token = match character {
                '|' => Token::Bar,
                '*' => Token::Quantifier(0, None, self.greed()),
                '+' => Token::Quantifier(1, None, self.greed()),
                '?' => Token::Quantifier(0, Some(1), self.greed()),
                '{' => {
                    self.skip();
                    if self.rest.starts_with(|next: char| next.is_ascii_digit()) {
                        Token::BraceOpen
                    } else {
                        Token::Plain('{')
                    }
                }
                '(' if self.take_if('?') => match self.take() {
                    Some(':') => Token::Open { capture: false },
                    Some('#') => {
                        self.rest = self.rest.find(')').map_or("", |end| &self.rest[end + 1..]);
                        continue;
                    }
                    Some('=' | '!') => return Err(lookaround()),
                    Some('<') if self.rest.starts_with(['=', '!']) => return Err(lookaround()),
                    _ => return Err(invalid(BAD_QUANTIFIER)),
                },
                '(' => Token::Open { capture: true },
                ')' => Token::Close,
                '[' => {
                    if let Some(after) = self.rest.strip_prefix("[:<:]]") {
                        self.rest = after;
                        Token::Assertion(Assertion::WordStart)
                    } else if let Some(after) = self.rest.strip_prefix("[:>:]]") {
                        self.rest = after;
                        Token::Assertion(Assertion::WordEnd)
                    } else {
                        Token::Bracket {
                            complement: self.take_if('^'),
                        }
                    }
                }
                '.' => Token::Any,
                '^' => Token::Assertion(Assertion::LineStart),
                '$' => Token::Assertion(Assertion::LineEnd),
                '\\' => self.escape()?,
                plain => Token::Plain(plain),
            };
            return Ok(());
        }
    }

    fn greed(&mut self) -> Preference {
        if self.take_if('?') {
            Preference::Shortest
        } else {
            Preference::Longest
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<Token> {
        let start = self.rest;
        let character = self.take().ok_or_else(|| invalid(BAD_ESCAPE))?;
        if !character.is_ascii_alphanumeric() {
            return Ok(Token::Plain(character));
        }
        let class = |class, complement| Ok(Token::Class { class, complement });
        let plain = |code: u32| match char::from_u32(code) {
            Some(character) => Ok(Token::Plain(character)),
            None => Err(ValueError::unsupported(
                "characters beyond Unicode in regular expressions are",
            )),
        };
        match character {
            'a' => plain(7),
            'A' => Ok(Token::Assertion(Assertion::TextStart)),
            'b' => plain(8),
            'B' => plain(u32::from('\\')),
            'c' => {
                let control = self.take().ok_or_else(|| invalid(BAD_ESCAPE))?;
                plain(u32::from(control) & 0o37)
            }
            'd' => class(Class::Digit, false),
            'D' => class(Class::Digit, true),
            'e' => plain(0x1b),
            'f' => plain(0x0c),
            'm' => Ok(Token::Assertion(Assertion::WordStart)),
            'M' => Ok(Token::Assertion(Assertion::WordEnd)),
            'n' => plain(0x0a),
            'r' => plain(0x0d),
            's' => class(Class::Space, false),
            'S' => class(Class::Space, true),
            't' => plain(9),
            'u' => plain(self.digits(16, 4, 4)?),
            'U' => plain(self.digits(16, 8, 8)?),
            'v' => plain(0x0b),
            'w' => class(Class::Word, false),
            'W' => class(Class::Word, true),
            'x' => plain(self.digits(16, 1, 255)?),
            'y' => Ok(Token::Assertion(Assertion::WordBoundary)),
            'Y' => Ok(Token::Assertion(Assertion::NoWordBoundary)),
            'Z' => Ok(Token::Assertion(Assertion::TextEnd)),
            '1'..='9' => {
                self.rest = start;
                let number = self.digits(10, 1, 255)?;
                if start.len() - self.rest.len() == 1 || (number as usize) <= self.groups {
                    return Err(ValueError::unsupported("back references in regular expressions are"));
                }
                // No such group: an octal number after all.
                self.rest = start;
                plain(self.octal()?)
            }
            '0' => {
                self.rest = start;
                plain(self.octal()?)
            }
            _ => Err(invalid(BAD_ESCAPE)),
        }
    }

    fn octal(&mut self) -> Result<u32> {
        let start = self.rest;
        let code = self.digits(8, 1, 3)?;
        if code <= 0xff {
            return Ok(code);
        }
        // One digit too many was taken.
        self.rest = &start[2..];
        Ok(code >> 3)
    }

    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32> {
        let mut number = 0_u32;
        let mut count = 0;
        while let Some(digit) = self
            .rest
            .chars()
            .next()
            .and_then(|next| next.to_digit(base))
            .filter(|_| count < most)
        {
            number = number.saturating_mul(base).saturating_add(digit);
            self.rest = &self.rest[1..];
            count += 1;
        }
        if count < least {
            Err(invalid(BAD_ESCAPE))
        } else {
            Ok(number)
        }
    }

    /// Branches, to the end or to the parenthesis that closes a group. That token remains.
    fn alternation(&mut self, in_group: bool) -> Result<Alternation> {
        let mut branches = Vec::new();
        loop {
            branches.push(self.branch(in_group)?);
            if self.token != Token::Bar {
                break;
            }
            self.next()?;
        }
        if in_group && self.token == Token::End {
            return Err(invalid(UNBALANCED_PARENTHESES));
        }
        Ok(Alternation { branches })
    }

    fn branch(&mut self, in_group: bool) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        loop {
            match self.token {
                Token::Bar | Token::End => return Ok(pieces),
                Token::Close if in_group => return Ok(pieces),
                Token::Close => return Err(invalid(UNBALANCED_PARENTHESES)),
                Token::Assertion(assertion) => {
                    pieces.push(Piece::Assertion(assertion));
                    self.next()?;
                }
                Token::Quantifier(..) | Token::BraceOpen => return Err(invalid(BAD_QUANTIFIER)),
                Token::Plain(_) | Token::Class { .. } | Token::Bracket { .. } | Token::Any | Token::Open { .. } => {
                    let atom = self.atom()?;
                    pieces.push(self.quantified(atom)?);
                }
            }
        }
    }

    fn atom(&mut self) -> Result<Atom> {
        let set = match self.token {
            Token::Plain(character) => self.single(character),
            Token::Class {
                class,
                complement: false,
            } => Rc::new(self.class(class)),
            Token::Class {
                class,
                complement: true,
            } => Rc::new(complement(&self.class(class))),
            Token::Any if self.options.newline_stops => Rc::new(complement(&[(10, 10)])),
            Token::Any => Rc::new(complement(&[])),
            Token::Bracket { complement } => Rc::new(self.bracket(complement)?),
            Token::Open { capture } => {
                self.count_part()?;
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(ValueError::unsupported("regular expressions of this depth are"));
                }
                let number = capture.then(|| {
                    self.groups += 1;
                    self.groups
                });
                self.next()?;
                let content = self.alternation(true)?;
                self.depth -= 1;
                self.next()?;
                return Ok(Atom::Group { number, content });
            }
            _ => unreachable!("the caller saw an atom"),
        };
        self.next()?;
        Ok(Atom::One(set))
    }

    fn quantified(&mut self, atom: Atom) -> Result<Piece> {
        let (min, max, preference) = match self.token {
            Token::Quantifier(min, max, preference) => {
                self.next()?;
                (min, max, Some(preference))
            }
            Token::BraceOpen => {
                let bounds = self.bounds()?;
                self.next()?;
                bounds
            }
            _ => (1, Some(1), None),
        };
        if (min, max) != (1, Some(1)) {
            self.count_part()?;
        }
        Ok(Piece::Repeated {
            atom,
            min,
            max,
            preference,
        })
    }

    fn count_part(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(ValueError::unsupported("regular expressions of this size are"));
        }
        Ok(())
    }

    /// What stands in braces, and the brace that closes them.
    fn bounds(&mut self) -> Result<(u16, Option<u16>, Option<Preference>)> {
        let min = self.count()?;
        let mut max = Some(min);
        let ranged = self.take_if_in_braces(',')?;
        if ranged {
            self.skip();
            max = if self.rest.starts_with(|next: char| next.is_ascii_digit()) {
                Some(self.count()?)
            } else {
                None
            };
            if max.is_some_and(|max| max < min) {
                return Err(invalid(BAD_COUNT));
            }
        }
        if !self.take_if_in_braces('}')? {
            return Err(invalid(BAD_COUNT));
        }
        let preference = self.greed();
        // `{m}` has no preference of its own.
        Ok((min, max, ranged.then_some(preference)))
    }

    fn take_if_in_braces(&mut self, wanted: char) -> Result<bool> {
        self.skip();
        if self.rest.is_empty() {
            return Err(invalid("braces {} not balanced"));
        }
        Ok(self.take_if(wanted))
    }

    fn count(&mut self) -> Result<u16> {
        let mut count = 0_u16;
        loop {
            self.skip();
            let Some(digit) = self.rest.chars().next().and_then(|next| next.to_digit(10)) else {
                return Ok(count);
            };
            if count >= COUNT_MAX {
                return Err(invalid(BAD_COUNT));
            }
            self.rest = &self.rest[1..];
            count = count * 10 + u16::try_from(digit).expect("a digit");
            if count > COUNT_MAX && !self.rest.is_empty() {
                return Err(invalid(BAD_COUNT));
            }
        }
    }

    /// A character, in both cases if case means nothing.
    fn single(&self, character: char) -> Set {
        let code = u32::from(character);
        if !self.options.ignore_case {
            return Rc::new(vec![(code, code)]);
        }
        let (lower, upper) = (u32::from(to_lower(character)), u32::from(to_upper(character)));
        Rc::new(normalized(vec![(lower, lower), (upper, upper)]))
    }

    fn class(&self, class: Class) -> Vec<(u32, u32)> {
        let class = match class {
            Class::Upper | Class::Lower if self.options.ignore_case => Class::Alpha,
            class => class,
        };
        class.ranges().to_vec()
    }

    /// What stands in brackets, and the bracket that closes them.
    fn bracket(&mut self, complemented: bool) -> Result<Vec<(u32, u32)>> {
        let mut ranges = Vec::new();
        let mut first = true;
        loop {
            let part = self.bracket_part(first)?;
            first = false;
            match part {
                Part::Close => break,
                Part::Dash => return Err(invalid(BAD_RANGE)),
                Part::Ranges(more) => {
                    ranges.extend(more);
                    if self.dash_of_range() {
                        return Err(invalid(BAD_RANGE));
                    }
                }
                Part::One(start) => {
                    if !self.dash_of_range() {
                        ranges.extend_from_slice(&self.single(start));
                        continue;
                    }
                    self.rest = &self.rest[1..];
                    if self.rest.starts_with("[:") || self.rest.starts_with("[=") {
                        return Err(invalid(BAD_RANGE));
                    }
                    let end = match self.bracket_part(false)? {
                        Part::One(end) => end,
                        Part::Dash => '-',
                        Part::Close | Part::Ranges(_) => return Err(invalid(BAD_RANGE)),
                    };
                    if end < start {
                        return Err(self.error_after(BAD_RANGE));
                    }
                    ranges.push((u32::from(start), u32::from(end)));
                    if self.options.ignore_case {
                        for character in start..=end {
                            for other in [to_lower(character), to_upper(character)] {
                                if other != character {
                                    ranges.push((u32::from(other), u32::from(other)));
                                }
                            }
                        }
                    }
                }
            }
        }
        let ranges = normalized(ranges);
        if !complemented {
            return Ok(ranges);
        }
        if self.options.newline_stops {
            let with_newline = normalized(ranges.into_iter().chain([(10, 10)]).collect());
            return Ok(complement(&with_newline));
        }
        Ok(complement(&ranges))
    }

    /// An error in brackets that PostgreSQL sees with the next part already read, whose own error comes first.
    fn error_after(&mut self, words: &str) -> ValueError {
        if ["[:", "[=", "[."].iter().any(|start| self.rest.starts_with(start)) {
            // Of a class it has seen no more than the start.
            return invalid(words);
        }
        self.bracket_part(false).err().unwrap_or_else(|| invalid(words))
    }

    /// Whether a dash follows that is not the last in its brackets.
    fn dash_of_range(&self) -> bool {
        self.rest.starts_with('-') && !self.rest.starts_with("-]")
    }

    fn bracket_part(&mut self, first: bool) -> Result<Part> {
        let unbalanced = || invalid(UNBALANCED_BRACKETS);
        match self.take().ok_or_else(unbalanced)? {
            ']' if !first => Ok(Part::Close),
            '-' if !first && !self.rest.starts_with(']') => Ok(Part::Dash),
            '\\' => match self.escape()? {
                Token::Plain(character) => Ok(Part::One(character)),
                Token::Class {
                    class,
                    complement: false,
                } => Ok(Part::Ranges(self.class(class))),
                Token::Class {
                    class,
                    complement: true,
                } => Ok(Part::Ranges(complement(&self.class(class)))),
                _ => Err(invalid(BAD_ESCAPE)),
            },
            '[' => match self.rest.chars().next().ok_or_else(unbalanced)? {
                ':' => {
                    let (name, after) = self.rest[1..].split_once(":]").ok_or_else(unbalanced)?;
                    self.rest = after;
                    let Some(class) = Class::from_name(name) else {
                        return Err(self.error_after("invalid character class"));
                    };
                    Ok(Part::Ranges(self.class(class)))
                }
                '.' | '=' => Err(ValueError::unsupported("collating elements in regular expressions are")),
                _ => Ok(Part::One('[')),
            },
            character => Ok(Part::One(character)),
        }
    }
}

enum Part {
    Close,
    Dash,
    One(char),
    Ranges(Vec<(u32, u32)>),
}

fn lookaround() -> ValueError {
    ValueError::unsupported("lookaround in regular expressions is")
}

/// All other characters.
fn complement(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::with_capacity(ranges.len() + 1);
    let mut next = 0;
    for (first, last) in ranges {
        if next < *first {
            out.push((next, first - 1));
        }
        next = last + 1;
    }
    if next <= 0x10_ffff {
        out.push((next, 0x10_ffff));
    }
    out
}

impl Options {
    /// Sets an option by its letter; false: there is none of that letter.
    pub fn set(&mut self, letter: char) -> Result<bool> {
        match letter {
            'c' => self.ignore_case = false,
            'i' => self.ignore_case = true,
            'm' | 'n' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'q' => self.literal = true,
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            't' => self.expanded = false,
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            'x' => self.expanded = true,
            'b' | 'e' => {
                return Err(ValueError::unsupported(format!(
                    "the regular expression option \"{letter}\" is"
                )));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
