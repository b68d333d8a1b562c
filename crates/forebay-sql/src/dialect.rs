//! Dialect: whose SQL a text is, and in what its tokens differ from those of others.
//!
//! Promises: what only the lexer has to know of a dialect stands here as data, and nowhere else is one dialect told from *the other*:
//! who adds a third is led by the compiler to all that has to be said of it. Knows no statement.

use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect};

/// Whose grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: `$1`, `"name"`.
    Postgres,
    /// MariaDB and MySQL: `?`, `` `name` ``.
    MySql,
}

/// How parameters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholders {
    /// `$1`, `$2`, …
    Numbered,
    /// `?`, in order.
    InOrder,
}

/// How a server cuts a text into tokens.
#[derive(Debug)]
pub(super) struct Lexis {
    pub(super) placeholders: Placeholders,
    /// What a name is quoted by. If that is not `"`, then `"…"` is a string (by default; a setting of the server may change that).
    pub(super) name_quote: u8,
    /// Whether `\` in an ordinary string takes away the meaning of what follows it.
    pub(super) has_backslashes_in_strings: bool,
    /// Whether `E'…'` is a string with backslashes.
    pub(super) has_escape_strings: bool,
    /// Whether `$tag$…$tag$` is a string.
    pub(super) has_dollar_quotes: bool,
    /// Whether a word may begin with a digit or `$`.
    pub(super) has_words_of_digits: bool,
    /// Whether `--` begins a comment only if a blank follows, or nothing.
    pub(super) needs_blank_after_dashes: bool,
    /// Whether `#` begins a comment.
    pub(super) has_hash_comments: bool,
    /// Whether `/* /* */ */` is one comment.
    pub(super) nests_comments: bool,
    /// Whether what stands in `/*! … */` and `/*M! … */` is executed.
    pub(super) executes_comments: bool,
}

const POSTGRES: Lexis = Lexis {
    placeholders: Placeholders::Numbered,
    name_quote: b'"',
    has_backslashes_in_strings: false,
    has_escape_strings: true,
    has_dollar_quotes: true,
    has_words_of_digits: false,
    needs_blank_after_dashes: false,
    has_hash_comments: false,
    nests_comments: true,
    executes_comments: false,
};

const MYSQL: Lexis = Lexis {
    placeholders: Placeholders::InOrder,
    name_quote: b'`',
    has_backslashes_in_strings: true,
    has_escape_strings: false,
    has_dollar_quotes: false,
    has_words_of_digits: true,
    needs_blank_after_dashes: true,
    has_hash_comments: true,
    nests_comments: false,
    executes_comments: true,
};

impl Dialect {
    /// How its server cuts a text.
    pub(super) fn lexis(self) -> &'static Lexis {
        match self {
            Self::Postgres => &POSTGRES,
            Self::MySql => &MYSQL,
        }
    }

    /// What the parser calls it.
    pub(super) fn grammar(self) -> &'static dyn Grammar {
        match self {
            Self::Postgres => &PostgreSqlDialect {},
            Self::MySql => &MySqlDialect {},
        }
    }
}

impl Lexis {
    /// Whether `"…"` is a string.
    pub(super) fn has_strings_in_double_quotes(&self) -> bool {
        self.name_quote != b'"'
    }
}
