//! The command tag: the word or words with which a statement's completion is announced.
//!
//! Promises: those that carry a count render it as PostgreSQL does, the others are their words alone. Knows nothing of how
//! a statement runs.

use std::borrow::Cow;

use super::lexer;
use super::token_cursor::TokenCursor;

/// What kind of statement has completed, as clients read it from the completion message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tag {
    /// `INSERT 0 n`: rows inserted. REPLACE counts here.
    Insert,
    /// `UPDATE n`.
    Update,
    /// `DELETE n`.
    Delete,
    /// `SELECT n`: rows returned. VALUES counts here.
    Select,
    /// `FETCH n`: rows returned.
    Fetch,
    /// `MOVE n`: rows that FETCH would have returned.
    Move,
    /// `SELECT n`: rows of a table that CREATE TABLE … AS has made.
    CreateTableAs,
    /// Anything else: its words, in upper case, without a count.
    Words(Cow<'static, str>),
}

impl Tag {
    /// The tag with its count: rows returned for [`Tag::Select`] and its like, rows changed for the writes, unused for others.
    pub fn render(&self, rows: u64) -> String {
        let counted = |words: &str| [words, " ", itoa::Buffer::new().format(rows)].concat();
        match self {
            Self::Insert => counted("INSERT 0"),
            Self::Update | Self::Delete | Self::Select | Self::Fetch | Self::Move => counted(self.words()),
            Self::CreateTableAs => counted("SELECT"),
            Self::Words(words) => words.to_string(),
        }
    }

    /// The words without a count.
    pub fn words(&self) -> &str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Select => "SELECT",
            Self::Fetch => "FETCH",
            Self::Move => "MOVE",
            Self::CreateTableAs => "CREATE TABLE AS",
            Self::Words(words) => words,
        }
    }
}

/// The tag of a statement that is no session command, from its first words.
pub(super) fn tag_of(cursor: &TokenCursor<'_>) -> Tag {
    let mut cursor = cursor.clone();
    let mut first = cursor.peek_word();
    if first == "WITH" {
        first = main_verb(cursor.clone());
    }
    match first.as_str() {
        "INSERT" | "REPLACE" => Tag::Insert,
        "UPDATE" => Tag::Update,
        "DELETE" => Tag::Delete,
        "SELECT" | "VALUES" | "TABLE" | "" => Tag::Select,
        "CREATE" | "DROP" | "ALTER" => {
            cursor.next();
            cursor.take_words(&["OR", "REPLACE"]);
            let mut object = cursor.peek_word();
            while matches!(object.as_str(), "UNIQUE" | "VIRTUAL" | "TEMP" | "TEMPORARY") {
                cursor.next();
                object = cursor.peek_word();
            }
            if first == "CREATE" && object == "TABLE" && is_filled(cursor) {
                return Tag::CreateTableAs;
            }
            Tag::Words(format!("{first} {object}").into())
        }
        "TRUNCATE" | "LOCK" => Tag::Words(format!("{first} TABLE").into()),
        _ => Tag::Words(first.into()),
    }
}

/// Whether a query stands behind the AS of a CREATE TABLE, whose columns are no more than named.
fn is_filled(mut cursor: TokenCursor<'_>) -> bool {
    let mut depth = 0_usize;
    while let Some(token) = cursor.next() {
        match token.kind {
            lexer::Kind::Open => depth += 1,
            lexer::Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 && token.is_word(cursor.source, "AS") => return true,
            _ => {}
        }
    }
    false
}

/// The verb behind a WITH clause: the first one outside parentheses.
fn main_verb(mut cursor: TokenCursor<'_>) -> String {
    let mut depth = 0_usize;
    loop {
        let word = cursor.peek_word();
        let Some(token) = cursor.next() else {
            return String::new();
        };
        match token.kind {
            lexer::Kind::Open => depth += 1,
            lexer::Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0
                && matches!(
                    word.as_str(),
                    "SELECT" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "VALUES"
                ) =>
            {
                return word;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn only_the_counting_tags_count() {
        assert_eq!(Tag::Insert.render(3), "INSERT 0 3");
        assert_eq!(Tag::Update.render(0), "UPDATE 0");
        assert_eq!(Tag::Delete.render(7), "DELETE 7");
        assert_eq!(Tag::Select.render(1), "SELECT 1");
        assert_eq!(Tag::Fetch.render(2), "FETCH 2");
        assert_eq!(Tag::Move.render(4), "MOVE 4");
        assert_eq!(Tag::CreateTableAs.render(3), "SELECT 3");
        assert_eq!(Tag::Words("CREATE TABLE".into()).render(9), "CREATE TABLE");
    }
}
