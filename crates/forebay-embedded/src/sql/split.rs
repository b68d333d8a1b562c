//! Cuts a script into statements, and reads the hints that comments give.
//!
//! Promises: a statement ends at a semicolon outside literals and comments; the body of a CREATE TRIGGER is not cut at its inner
//! semicolons; stretches that hold no token but comments are no statement. A hint counts only inside a real comment: never in a literal,
//! a quoted name or a dollar quote. It knows nothing of what statements mean.

use std::ops::Range;

use super::error::SqlError;
use super::lexer::{Kind, Lexer, Token};

/// What a client may ask of the batch its statement goes into, written in a comment: `/* batch:5 */`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Hints {
    /// `batch:n`: the statement may wait up to n milliseconds for others to share its commit.
    pub batch_ms: Option<u64>,
}

/// One statement of a script: its bytes from the first token that is no comment to the last, and its tokens.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) range: Range<usize>,
    /// Without comments.
    pub(crate) tokens: Vec<Token>,
    pub(crate) hints: Hints,
}

/// The statements of a script, in order, each cut when it is asked for: only the tokens of one are in memory.
pub(crate) struct Segments<'a> {
    source: &'a str,
    tokens: Lexer<'a>,
    /// Where what was not cut yet begins.
    at: usize,
    failed: bool,
}

impl<'a> Segments<'a> {
    /// The statements from that byte on, which must be the beginning or [`Self::at`] of another. The tokens of one are at most
    /// `tokens_max`.
    pub(crate) fn starting_at(source: &'a str, at: usize, tokens_max: usize) -> Self {
        Self {
            source,
            tokens: Lexer::starting_at(source, at, tokens_max),
            at,
            failed: false,
        }
    }

    /// Where the next statement, or what is before it, begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }
}

impl Iterator for Segments<'_> {
    type Item = Result<Segment, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut open = Open::default();
        while !self.failed {
            let token = match self.tokens.next() {
                Some(Ok(token)) => token,
                Some(Err(error)) => {
                    self.failed = true;
                    return Some(Err(error));
                }
                None => break,
            };
            let end = token.range.end;
            if token.kind == Kind::Semicolon && open.ends_here(self.source) {
                self.at = end;
                self.tokens.count_anew();
                if let Some(segment) = open.close(self.source) {
                    return Some(Ok(segment));
                }
                open = Open::default();
            } else {
                open.push(self.source, token);
            }
        }
        self.at = self.source.len();
        // A hint after the last semicolon, on the same line as the statement, has no statement to belong to and is dropped.
        open.close(self.source).map(Ok)
    }
}

/// The statement being gathered. Nothing is looked at twice, so that a script of any shape is cut in linear time.
#[derive(Default)]
struct Open {
    tokens: Vec<Token>,
    comments: Vec<Token>,
    begin_seen: bool,
}

impl Open {
    fn push(&mut self, source: &str, token: Token) {
        if token.is_comment() {
            self.comments.push(token);
        } else {
            self.begin_seen |= token.is_word(source, "BEGIN");
            self.tokens.push(token);
        }
    }

    /// Whether a semicolon after these tokens ends the statement. Only the body of a trigger goes on, up to `; END`.
    fn ends_here(&self, source: &str) -> bool {
        if !self.begin_seen || !starts_trigger(source, &self.tokens) {
            return true;
        }
        let mut backwards = self.tokens.iter().rev();
        backwards.next().is_some_and(|token| token.is_word(source, "END"))
            && backwards.next().is_some_and(|token| token.kind == Kind::Semicolon)
    }

    fn close(self, source: &str) -> Option<Segment> {
        let mut hints = Hints::default();
        let range = self.tokens.first()?.range.start..self.tokens.last()?.range.end;
        for comment in &self.comments {
            read_hints(comment.text(source), &mut hints);
        }
        Some(Segment {
            range,
            tokens: self.tokens,
            hints,
        })
    }
}

/// Whether these tokens open a CREATE TRIGGER, perhaps explained, perhaps temporary.
pub(crate) fn starts_trigger(source: &str, tokens: &[Token]) -> bool {
    let mut words = tokens.iter().map(|token| {
        if token.kind == Kind::Word {
            token.text(source)
        } else {
            ""
        }
    });
    let mut next = words.next().unwrap_or("");
    if next.eq_ignore_ascii_case("EXPLAIN") {
        next = words.next().unwrap_or("");
        if next.eq_ignore_ascii_case("QUERY") {
            words.next();
            next = words.next().unwrap_or("");
        }
    }
    if !next.eq_ignore_ascii_case("CREATE") {
        return false;
    }
    next = words.next().unwrap_or("");
    if next.eq_ignore_ascii_case("TEMP") || next.eq_ignore_ascii_case("TEMPORARY") {
        next = words.next().unwrap_or("");
    }
    next.eq_ignore_ascii_case("TRIGGER")
}

/// `key:value` words of a comment, in any order and beside unknown ones; the last `batch` wins.
fn read_hints(comment: &str, hints: &mut Hints) {
    let body = match comment.strip_prefix("--") {
        Some(line) => line,
        None => comment.trim_start_matches("/*").trim_end_matches("*/"),
    };
    for word in body.split_ascii_whitespace() {
        if let Some(milliseconds) = word.strip_prefix("batch:").and_then(|value| value.parse().ok()) {
            hints.batch_ms = Some(milliseconds);
        }
    }
}
