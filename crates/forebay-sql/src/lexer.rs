//! Lexer: the tokens of a text, as the dialect's server cuts them.
//!
//! Promises: what stands in quotes, dollar quotes or comments is never taken for a word, a parameter or a `;`. Ordinary comments
//! and white space are skipped; those that a server may read (optimizer hints, MariaDB's executable comments) are tokens.
//! Every token is a piece of the text, none is lost.
//!
//! Reads texts by the servers' default settings (`standard_conforming_strings` on, no `NO_BACKSLASH_ESCAPES`, no
//! `ANSI_QUOTES`). Knows no grammar.

use super::dialect::{Dialect, Lexis, Placeholders};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, or a name without quotes.
    Word,
    /// A name in quotes.
    QuotedName,
    /// A string of whatever form.
    Text,
    /// Digits.
    Digits,
    /// `$1`, `?`.
    Parameter,
    /// Any other character.
    Symbol,
    /// `/*+ … */`
    Hint,
    /// `/*! … */`, `/*M! … */`: MariaDB and MySQL execute what stands in it.
    Executable,
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
}

impl Token<'_> {
    /// Whether it is this word without quotes, in whatever case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this symbol.
    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }
}

/// A quote or comment has no end; nothing after it can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclosed;

/// Gives the tokens of a text. After [`Unclosed`] there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexer<'t> {
    lexis: &'static Lexis,
    rest: &'t str,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(dialect: Dialect, text: &'t str) -> Self {
        Self {
            lexis: dialect.lexis(),
            rest: text,
        }
    }

    /// Takes that many bytes, which must end between two characters.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// The length of a comment that begins here, and what it is if the server may read it.
    fn comment(&self) -> Option<Result<(usize, Option<Kind>), Unclosed>> {
        let (lexis, rest) = (self.lexis, self.rest);
        let to_line_end = || rest.find(['\n', '\r']).unwrap_or(rest.len());
        if let Some(after) = rest.strip_prefix("--") {
            let begins = !lexis.needs_blank_after_dashes || after.bytes().next().is_none_or(|byte| byte <= b' ');
            return begins.then(|| Ok((to_line_end(), None)));
        }
        if lexis.has_hash_comments && rest.starts_with('#') {
            return Some(Ok((to_line_end(), None)));
        }
        if !rest.starts_with("/*") {
            return None;
        }
        let kind = match &rest.as_bytes()[2..] {
            [b'+', ..] => Some(Kind::Hint),
            [b'!', ..] | [b'M', b'!', ..] if lexis.executes_comments => Some(Kind::Executable),
            _ => None,
        };
        let length = if lexis.nests_comments {
            nested_comment(rest)
        } else {
            rest[2..].find("*/").map(|at| at + 4)
        };
        Some(length.map(|length| (length, kind)).ok_or(Unclosed))
    }

    /// The kind and length of the token that begins here with `first`; no length if it has no end.
    fn token(&self, first: u8) -> (Kind, Option<usize>) {
        let (lexis, rest) = (self.lexis, self.rest);
        match first {
            b'\'' => (Kind::Text, quoted(rest, 0, lexis.has_backslashes_in_strings)),
            _ if first == lexis.name_quote => (Kind::QuotedName, quoted(rest, 0, false)),
            b'"' => (Kind::Text, quoted(rest, 0, lexis.has_backslashes_in_strings)),
            b'?' if lexis.placeholders == Placeholders::InOrder => (Kind::Parameter, Some(1)),
            b'$' if !lexis.has_words_of_digits => self.dollar(),
            _ if is_word_start(first) || (lexis.has_words_of_digits && matches!(first, b'$' | b'0'..=b'9')) => {
                self.word()
            }
            b'0'..=b'9' => (Kind::Digits, Some(run(rest, |byte| byte.is_ascii_digit()))),
            _ => (Kind::Symbol, Some(1)),
        }
    }

    fn word(&self) -> (Kind, Option<usize>) {
        let length = run(self.rest, is_word_part);
        let word = &self.rest[..length];
        if self.lexis.has_escape_strings && word.eq_ignore_ascii_case("e") && self.rest[length..].starts_with('\'') {
            return (Kind::Text, quoted(self.rest, length, true));
        }
        let kind = if word.bytes().all(|byte| byte.is_ascii_digit()) {
            Kind::Digits
        } else {
            Kind::Word
        };
        (kind, Some(length))
    }

    /// A parameter, or a string in dollar quotes.
    fn dollar(&self) -> (Kind, Option<usize>) {
        let rest = self.rest;
        let digits = run(&rest[1..], |byte| byte.is_ascii_digit());
        if digits > 0 && self.lexis.placeholders == Placeholders::Numbered {
            return (Kind::Parameter, Some(1 + digits));
        }
        let tag = run(&rest[1..], |byte| is_word_part(byte) && byte != b'$');
        if !self.lexis.has_dollar_quotes || rest.as_bytes().get(1 + tag) != Some(&b'$') {
            return (Kind::Symbol, Some(1));
        }
        let quotes = &rest[..tag + 2];
        let length = rest[quotes.len()..].find(quotes).map(|at| at + 2 * quotes.len());
        (Kind::Text, length)
    }
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Result<Token<'t>, Unclosed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let first = *self.rest.as_bytes().first()?;
            if matches!(first, b' ' | b'\t'..=b'\r') {
                self.take(1);
                continue;
            }
            let (kind, length) = match self.comment() {
                Some(Ok((length, None))) => {
                    self.take(length);
                    continue;
                }
                Some(Ok((length, Some(kind)))) => (kind, Some(length)),
                Some(Err(Unclosed)) => (Kind::Symbol, None),
                None => self.token(first),
            };
            return Some(match length {
                Some(length) => Ok(Token {
                    kind,
                    text: self.take(length),
                }),
                None => {
                    self.rest = "";
                    Err(Unclosed)
                }
            });
        }
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_word_part(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// How many bytes from the start are part of it. All non-ASCII bytes are alike to `part`, so no character is cut.
fn run(text: &str, part: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !part(byte)).unwrap_or(text.len())
}

/// The length up to the end of the quotes that open at `at`: doubled, they stand for themselves.
fn quoted(text: &str, at: usize, backslashes: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = bytes[at];
    let mut at = at + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if backslashes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The length of a comment with those inside of it.
fn nested_comment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at..at + 2)? {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(dialect: Dialect, text: &str) -> Vec<&str> {
        Lexer::new(dialect, text)
            .map(|token| token.map_or("UNCLOSED", |token| token.text))
            .collect()
    }

    #[test]
    fn postgres_is_cut_as_the_server_cuts_it() {
        for (text, expected) in [
            ("SELECT 1", &["SELECT", "1"][..]),
            ("a/* /* ; */ ; */b", &["a", "b"]),
            ("a /* /* */", &["a", "UNCLOSED"]),
            ("a--b;\nc", &["a", "c"]),
            ("a --b\rc", &["a", "c"]),
            (r"'a\';'b'", &[r"'a\'", ";", "'b'"]),
            (r"E'a\';' ;", &[r"E'a\';'", ";"]),
            (r"e'\\' ;", &[r"e'\\'", ";"]),
            (r"ae'\' ;", &["ae", r"'\'", ";"]),
            ("'it''s;';", &["'it''s;'", ";"]),
            ("\"a;\"\"b\" ;", &["\"a;\"\"b\"", ";"]),
            ("$$;'$$ $1", &["$$;'$$", "$1"]),
            ("$tag$ ;$$; $tag$;", &["$tag$ ;$$; $tag$", ";"]),
            ("$ä$;$ä$", &["$ä$;$ä$"]),
            ("a$b$c;$b$", &["a$b$c", ";", "UNCLOSED"]),
            ("$tag$ ;", &["UNCLOSED"]),
            ("$1$2", &["$1", "$2"]),
            ("'open ;", &["UNCLOSED"]),
            ("E'open\\", &["UNCLOSED"]),
            ("größe=$1", &["größe", "=", "$1"]),
            ("a # b ? c", &["a", "#", "b", "?", "c"]),
            ("1e5", &["1", "e5"]),
            ("/*+ hint */a", &["/*+ hint */", "a"]),
            ("/*! a */b", &["b"]),
            ("`a;`", &["`", "a", ";", "`"]),
            ("\u{a0}x", &["\u{a0}x"]),
            ("/", &["/"]),
            ("/*", &["UNCLOSED"]),
        ] {
            assert_eq!(tokens(Dialect::Postgres, text), expected, "{text}");
        }
    }

    #[test]
    fn mysql_is_cut_as_the_server_cuts_it() {
        for (text, expected) in [
            ("a--b;c", &["a", "-", "-", "b", ";", "c"][..]),
            ("a-- b;\nc", &["a", "c"]),
            ("a--\tb", &["a"]),
            ("a--", &["a"]),
            ("a#b;\nc", &["a", "c"]),
            ("a/* /* ; */b", &["a", "b"]),
            (r"'a\';'b", &[r"'a\';'", "b"]),
            (r#""a\";"" b";"#, &[r#""a\";"" b""#, ";"]),
            ("`a;``'` ;", &["`a;``'`", ";"]),
            (r"`a\` ;", &[r"`a\`", ";"]),
            ("?,?1", &["?", ",", "?", "1"]),
            ("$$;$$", &["$$", ";", "$$"]),
            ("1a 12 0x1F", &["1a", "12", "0x1F"]),
            ("/*!40000 a */b", &["/*!40000 a */", "b"]),
            ("/*M!100100 a */b", &["/*M!100100 a */", "b"]),
            ("/*+ a */b", &["/*+ a */", "b"]),
            ("'open\\'", &["UNCLOSED"]),
            ("@a := 1", &["@", "a", ":", "=", "1"]),
            ("größe", &["größe"]),
        ] {
            assert_eq!(tokens(Dialect::MySql, text), expected, "{text}");
        }
    }
}
