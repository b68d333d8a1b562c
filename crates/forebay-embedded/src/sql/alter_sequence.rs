//! ALTER SEQUENCE, read here because the parser does not know it.
//!
//! Promises: PostgreSQL's grammar of what changes a sequence's numbers and its owner; another owner, name or schema is refused by name.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::error::{SqlError, character_position};
use super::functions::SequenceChange;
use super::lexer::Kind;
use super::token_cursor::TokenCursor;

/// ALTER SEQUENCE, understood.
#[derive(Debug)]
pub(crate) struct AlterSequence {
    pub(super) if_exists: bool,
    pub(super) name: ObjectName,
    /// The type as it was written.
    pub(super) kind: Option<String>,
    pub(super) change: SequenceChange,
    pub(super) owner: Option<Owner>,
}

/// Whose it is to be.
#[derive(Debug)]
pub(crate) enum Owner {
    Nobody,
    Column { table: ObjectName, column: String },
}

impl AlterSequence {
    /// The statement at the cursor; `None` for any other.
    ///
    /// # Errors
    /// PostgreSQL's syntax errors; 0A000 for what is no option of a sequence.
    pub(super) fn understand(cursor: &TokenCursor<'_>) -> Result<Option<Self>, SqlError> {
        let mut cursor = cursor.clone();
        if !cursor.take_words(&["ALTER", "SEQUENCE"]) {
            return Ok(None);
        }
        let if_exists = cursor.take_words(&["IF", "EXISTS"]);
        let mut read = Self {
            if_exists,
            name: named(&names(&mut cursor)?),
            kind: None,
            change: SequenceChange::default(),
            owner: None,
        };
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let at = cursor
                .peek()
                .map(|token| character_position(cursor.source, token.range.start));
            let option = read.option(&mut cursor)?;
            if seen.contains(&option) {
                return Err(SqlError::Syntax {
                    message: "conflicting or redundant options".to_owned(),
                    position: at,
                });
            }
            seen.push(option);
            if cursor.is_at_end() {
                return Ok(Some(read));
            }
        }
    }

    /// Reads one option: what it sets.
    fn option(&mut self, cursor: &mut TokenCursor<'_>) -> Result<&'static str, SqlError> {
        for words in [
            ["OWNER", "TO"].as_slice(),
            &["RENAME", "TO"],
            &["SET", "SCHEMA"],
            &["SET", "LOGGED"],
            &["SET", "UNLOGGED"],
            &["SEQUENCE", "NAME"],
        ] {
            if cursor.take_words(words) {
                return Err(SqlError::unsupported(format!("ALTER SEQUENCE … {}", words.join(" "))));
            }
        }
        let change = &mut self.change;
        Ok(if cursor.take_words(&["AS"]) {
            self.kind = Some(cursor.name("a type")?);
            "AS"
        } else if cursor.take_words(&["INCREMENT"]) {
            cursor.take_words(&["BY"]);
            change.increment = Some(number(cursor)?);
            "INCREMENT"
        } else if cursor.take_words(&["MINVALUE"]) {
            change.minimum = Some(Some(number(cursor)?));
            "MINVALUE"
        } else if cursor.take_words(&["NO", "MINVALUE"]) {
            change.minimum = Some(None);
            "MINVALUE"
        } else if cursor.take_words(&["MAXVALUE"]) {
            change.maximum = Some(Some(number(cursor)?));
            "MAXVALUE"
        } else if cursor.take_words(&["NO", "MAXVALUE"]) {
            change.maximum = Some(None);
            "MAXVALUE"
        } else if cursor.take_words(&["START"]) {
            cursor.take_words(&["WITH"]);
            change.start = Some(number(cursor)?);
            "START"
        } else if cursor.take_words(&["RESTART"]) {
            let with = cursor.take_words(&["WITH"]);
            let numbered = cursor
                .peek()
                .is_some_and(|token| token.kind == Kind::Number || matches!(token.text(cursor.source), "-" | "+"));
            change.restart = Some(if with || numbered { Some(number(cursor)?) } else { None });
            "RESTART"
        } else if cursor.take_words(&["CACHE"]) {
            change.cache = Some(number(cursor)?);
            "CACHE"
        } else if cursor.take_words(&["CYCLE"]) {
            change.cycle = Some(true);
            "CYCLE"
        } else if cursor.take_words(&["NO", "CYCLE"]) {
            change.cycle = Some(false);
            "CYCLE"
        } else if cursor.take_words(&["OWNED", "BY"]) {
            self.owner = Some(owner(cursor)?);
            "OWNED"
        } else if cursor.is_at_end() {
            return Err(SqlError::Syntax {
                message: "syntax error at end of input".to_owned(),
                position: None,
            });
        } else {
            return cursor.expected("an option of a sequence");
        })
    }
}

fn owner(cursor: &mut TokenCursor<'_>) -> Result<Owner, SqlError> {
    if cursor.take_words(&["NONE"]) {
        return Ok(Owner::Nobody);
    }
    let mut names = names(cursor)?;
    let column = names.pop().unwrap_or_default();
    if names.is_empty() {
        return Err(SqlError::Fault {
            sqlstate: "42601",
            message: "invalid OWNED BY option".to_owned(),
            detail: None,
            hint: Some("Specify OWNED BY table.column or OWNED BY NONE.".to_owned()),
            position: None,
        });
    }
    Ok(Owner::Column {
        table: named(&names),
        column,
    })
}

fn names(cursor: &mut TokenCursor<'_>) -> Result<Vec<String>, SqlError> {
    let mut names = vec![cursor.name("a name")?];
    while cursor.take_sign(".") {
        names.push(cursor.name("a name")?);
    }
    Ok(names)
}

fn named(names: &[String]) -> ObjectName {
    let parts = names.iter().map(|name| Ident::with_quote('"', name));
    ObjectName(parts.map(ObjectNamePart::Identifier).collect())
}

fn number(cursor: &mut TokenCursor<'_>) -> Result<i64, SqlError> {
    let negative = cursor.take_sign("-");
    if !negative {
        cursor.take_sign("+");
    }
    let Some(token) = cursor.peek().filter(|token| token.kind == Kind::Number) else {
        return cursor.expected("a number");
    };
    let written = token.text(cursor.source);
    cursor.next();
    let signed = if negative {
        format!("-{written}")
    } else {
        written.to_owned()
    };
    signed.parse().map_err(|_| {
        let (sqlstate, message) = if written.bytes().all(|byte| byte.is_ascii_digit()) {
            ("22003", format!("value \"{signed}\" is out of range for type bigint"))
        } else {
            ("22P02", format!("invalid input syntax for type bigint: \"{signed}\""))
        };
        SqlError::Fault {
            sqlstate,
            message,
            detail: None,
            hint: None,
            position: None,
        }
    })
}
