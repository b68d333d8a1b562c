//! Role: whether a statement shares a transaction with its neighbours, runs alone, or is refused.
//!
//! Promises:
//! - Told by the first words of the text, and by nothing that is guessed: what begins as nothing known shares, on PostgreSQL,
//!   and runs alone on MariaDB and MySQL, where most statements commit implicitly; the server then says what it thinks of it.
//! - Refused, with what to use instead: what begins or ends transactions, what would change a connection that others use after
//!   it or depends on one, and texts of no or several statements.
//!
//! Does not see what a function does (`set_config`, `GET_LOCK`). A text of several statements is told here so that the error is
//! clear; what keeps one from being executed is that statements are prepared, which servers do for one at a time.

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};
use super::opening::{has_word, statement};

/// What may be done with a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It shares a transaction.
    Shares,
    /// It runs outside of a transaction, or ends one.
    Alone,
    /// It is not taken; the text says why, and what to use instead.
    Refused(String),
}

/// Tells a statement's role.
pub fn role(dialect: Dialect, sql: &str) -> Role {
    let opening = match Opening::read(dialect, sql) {
        Ok(opening) => opening,
        Err(reason) => return Role::Refused(reason.to_owned()),
    };
    let (role, several) = match dialect {
        Dialect::Postgres => (of_postgres(&opening, sql), several_of_postgres(sql)),
        Dialect::MySql => (
            of_mysql(&opening, sql),
            !is_program(&opening, sql) && several_of_mysql(sql),
        ),
    };
    match role {
        Role::Shares | Role::Alone if several => Role::Refused(SEVERAL.to_owned()),
        role => role,
    }
}

const EMPTY: &str = "there is no statement in the text";
const SEVERAL: &str = "there is more than one statement in the text; execute each by itself, or use Writer::begin for those that \
                       belong together";
const TEMPORARY: &str =
    "temporary objects are refused: they belong to a connection, and connections are shared; use an ordinary table";

fn transaction(word: &str) -> Role {
    Role::Refused(format!(
        "{word} is not a statement for the writer, which commits by itself; use Writer::begin for a transaction"
    ))
}

fn connection(word: &str, instead: &str) -> Role {
    Role::Refused(format!("{word} is refused: connections are shared; {instead}"))
}

/// `CREATE OR REPLACE GLOBAL TEMPORARY …` is the longest opening that is looked at.
const OPENING_LENGTH: usize = 5;

/// Whether a statement that begins with this word does not commit on MariaDB and MySQL, whatever follows.
fn shares_on_mysql(word: &str) -> bool {
    [
        "INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT", "WITH", "VALUES", "TABLE",
    ]
    .iter()
    .any(|shares| word.eq_ignore_ascii_case(shares))
}

/// How a statement begins.
struct Opening<'t> {
    /// The words up to the first token that is none; parentheses before them are left out.
    words: [&'t str; OPENING_LENGTH],
}

impl<'t> Opening<'t> {
    fn read(dialect: Dialect, sql: &'t str) -> Result<Self, &'static str> {
        let mut words = [""; OPENING_LENGTH];
        let mut count = 0;
        let mut any = false;
        for token in statement(dialect, sql) {
            let Ok(token) = token else {
                any = true;
                break;
            };
            match token.kind {
                Kind::Executable if shares_on_mysql(words[0]) => break,
                Kind::Executable => {
                    return Err(
                        "the statement begins with a comment that the server executes; write its content without the comment",
                    );
                }
                Kind::Symbol if count == 0 && token.text == "(" => any = true,
                Kind::Word if count < OPENING_LENGTH => {
                    any = true;
                    words[count] = token.text;
                    count += 1;
                }
                _ => {
                    any = true;
                    break;
                }
            }
        }
        if any { Ok(Self { words }) } else { Err(EMPTY) }
    }

    /// The first word, in capitals; empty if the text begins otherwise.
    fn first(&self) -> String {
        self.words[0].to_ascii_uppercase()
    }

    /// Whether the second word is this.
    fn then(&self, word: &str) -> bool {
        self.words[1].eq_ignore_ascii_case(word)
    }

    /// Whether this is among the words after the first.
    fn has(&self, word: &str) -> bool {
        self.words[1..].iter().any(|found| found.eq_ignore_ascii_case(word))
    }

    /// Whether something is made or dropped that lives as long as its connection.
    fn is_temporary(&self) -> bool {
        // After the words that may stand before it, so that a table may be called temp.
        self.words[1..]
            .iter()
            .find(|word| {
                !["OR", "REPLACE", "LOCAL", "GLOBAL"]
                    .iter()
                    .any(|skipped| word.eq_ignore_ascii_case(skipped))
            })
            .is_some_and(|word| word.eq_ignore_ascii_case("TEMP") || word.eq_ignore_ascii_case("TEMPORARY"))
    }
}

const SETTINGS: &str = "set it where the connection is configured, or for the role or the database";
const PREPARED: &str = "statements are prepared and kept by the writer itself; execute the statement";
const CURSOR: &str = "read with a query; a cursor needs a connection of your own";
const LOCK: &str = "lock rows with SELECT … FOR UPDATE in a transaction of Writer::begin";

fn of_postgres(opening: &Opening<'_>, sql: &str) -> Role {
    let first = opening.first();
    let word = first.as_str();
    match word {
        "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" | "SAVEPOINT" | "RELEASE" => transaction(word),
        "PREPARE" if opening.then("TRANSACTION") => transaction("PREPARE TRANSACTION"),
        "SET" | "RESET" | "DISCARD" => connection(word, SETTINGS),
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => connection(word, PREPARED),
        "DECLARE" | "FETCH" | "MOVE" | "CLOSE" => connection(word, CURSOR),
        "LISTEN" | "UNLISTEN" => connection(word, "listen on a connection of your own"),
        "LOCK" => connection(word, LOCK),
        "LOAD" => connection(word, "let the server load it, by session_preload_libraries"),
        "COPY" => connection(
            word,
            "execute an INSERT a row: those that come together are written together",
        ),
        "CREATE" if opening.is_temporary() => Role::Refused(TEMPORARY.to_owned()),
        "VACUUM" | "CALL" | "CHECKPOINT" | "CLUSTER" | "REINDEX" => Role::Alone,
        "CREATE" | "ALTER" | "DROP"
            if ["DATABASE", "TABLESPACE", "SUBSCRIPTION"]
                .iter()
                .any(|kind| opening.then(kind)) =>
        {
            Role::Alone
        }
        // A value that is added to an enum cannot be used before the commit.
        "ALTER" if opening.then("SYSTEM") || opening.then("TYPE") => Role::Alone,
        "CREATE" | "ALTER" | "DROP" if has_word(Dialect::Postgres, sql, "CONCURRENTLY") => Role::Alone,
        _ => Role::Shares,
    }
}

fn of_mysql(opening: &Opening<'_>, sql: &str) -> Role {
    let first = opening.first();
    let word = first.as_str();
    let has = |word| has_word(Dialect::MySql, sql, word);
    match word {
        _ if shares_on_mysql(word) => Role::Shares,
        "START" if !opening.then("TRANSACTION") => Role::Alone,
        "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" => transaction(word),
        "SET" | "RESET" => connection(word, SETTINGS),
        "USE" => connection(
            word,
            "name the database in the connection's address, or before the table's name",
        ),
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => connection(word, PREPARED),
        "DROP" if opening.then("PREPARE") => connection("DROP PREPARE", PREPARED),
        "DECLARE" | "FETCH" | "CLOSE" | "HANDLER" => connection(word, CURSOR),
        "LOCK" | "UNLOCK" | "BACKUP" => connection(word, LOCK),
        "FLUSH" if has("LOCK") || has("EXPORT") => connection("FLUSH … with a lock", LOCK),
        "LOAD" if has("LOCAL") => connection(
            word,
            "execute an INSERT a row: those that come together are written together",
        ),
        "DELIMITER" => connection(word, "it is a command of the mysql program; leave it out"),
        "CREATE" | "DROP" if opening.is_temporary() => Role::Refused(TEMPORARY.to_owned()),
        _ => Role::Alone,
    }
}

/// Whether `token` ends a statement and anything follows it.
fn ends_early(token: &Token<'_>, rest: Lexer<'_>) -> bool {
    let mut rest = rest;
    token.is_symbol(";") && rest.any(|token| !token.is_ok_and(|token| token.is_symbol(";") || token.kind == Kind::Hint))
}

/// Whether a second statement follows. Not those of a rule (in parentheses) or a function (`BEGIN ATOMIC … END`).
fn several_of_postgres(sql: &str) -> bool {
    let mut lexer = Lexer::new(Dialect::Postgres, sql);
    let mut parentheses = 0_usize;
    let mut blocks = 0_usize;
    let mut begins = false;
    let mut is_first = true;
    while let Some(Ok(token)) = lexer.next() {
        if is_first && (token.is_symbol(";") || token.kind == Kind::Hint) {
            continue;
        }
        is_first = false;
        if token.is_symbol("(") {
            parentheses += 1;
        } else if token.is_symbol(")") {
            parentheses = parentheses.saturating_sub(1);
        } else if (begins && token.is_word("ATOMIC")) || (blocks > 0 && token.is_word("CASE")) {
            blocks += 1;
        } else if blocks > 0 && token.is_word("END") {
            blocks -= 1;
        } else if parentheses == 0 && blocks == 0 && ends_early(&token, lexer) {
            return true;
        }
        begins = token.is_word("BEGIN");
    }
    false
}

fn several_of_mysql(sql: &str) -> bool {
    let mut lexer = Lexer::new(Dialect::MySql, sql);
    let mut is_first = true;
    while let Some(Ok(token)) = lexer.next() {
        if is_first && (token.is_symbol(";") || token.kind == Kind::Hint) {
            continue;
        }
        is_first = false;
        if ends_early(&token, lexer) {
            return true;
        }
    }
    false
}

/// Whether it makes a stored program, whose body has statements of its own.
fn is_program(opening: &Opening<'_>, sql: &str) -> bool {
    let first = opening.first();
    (first == "CREATE" || first == "ALTER")
        && ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"]
            .iter()
            .any(|kind| opening.has(kind) || (opening.has("DEFINER") && has_word(Dialect::MySql, sql, kind)))
}

#[cfg(test)]
mod tests;
