//! Control: statements that do nothing to rows, and nothing that others see but by what was done before them.
//!
//! Promises: told by the first words of a text that is one statement; what begins as nothing known does not only control.

use super::dialect::Dialect;
use super::lexer::{Lexer, Token};

/// How those begin. `EXPLAIN` is none: it may do what it explains; nor are cursors, which run a query.
const CONTROLS: [&str; 18] = [
    "ABORT",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "LISTEN",
    "LOCK",
    "NOTIFY",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHOW",
    "START",
];

/// Whether a text of PostgreSQL's only begins or ends a transaction, or changes or shows its session.
#[must_use]
pub fn only_controls(sql: &str) -> bool {
    let mut tokens = Lexer::new(Dialect::Postgres, sql);
    let Some(Ok(first)) = tokens.next() else { return false };
    let second = tokens.clone().next();
    // What was prepared is another transaction.
    let is_of_another = matches!(second, Some(Ok(second)) if second.is_word("PREPARED"));
    let mut behind = tokens.skip_while(|token| matches!(token, Ok(token) if !token.is_symbol(";")));
    let is_end = |token: Token<'_>| token.is_symbol(";");
    CONTROLS.iter().any(|word| first.is_word(word)) && !is_of_another && behind.all(|token| token.is_ok_and(is_end))
}

/// Whether a text of PostgreSQL's begins a transaction, and says nothing of its isolation or that it is READ COMMITTED.
#[must_use]
pub fn begins_read_committed(sql: &str) -> bool {
    let mut words = Vec::new();
    let mut is_over = false;
    for token in Lexer::new(Dialect::Postgres, sql) {
        match token {
            Ok(token) if token.is_symbol(";") => is_over = true,
            Ok(token) if token.is_symbol(",") && !is_over => {}
            Ok(token) if !is_over => words.push(token),
            _ => return false,
        }
    }
    let is = |words: &[Token<'_>], wanted: &[&str]| {
        words.len() >= wanted.len() && words.iter().zip(wanted).all(|(word, wanted)| word.is_word(wanted))
    };
    let beginnings: [&[&str]; 4] = [
        &["BEGIN", "WORK"],
        &["BEGIN", "TRANSACTION"],
        &["BEGIN"],
        &["START", "TRANSACTION"],
    ];
    let modes: [&[&str]; 5] = [
        &["ISOLATION", "LEVEL", "READ", "COMMITTED"],
        &["READ", "WRITE"],
        &["READ", "ONLY"],
        &["DEFERRABLE"],
        &["NOT", "DEFERRABLE"],
    ];
    let Some(beginning) = beginnings.iter().find(|beginning| is(&words, beginning)) else {
        return false;
    };
    let mut rest = &words[beginning.len()..];
    while let Some(mode) = modes.iter().find(|mode| is(rest, mode)) {
        rest = &rest[mode.len()..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_is_told_by_how_it_begins() {
        for sql in [
            "BEGIN",
            "/* x */ begin isolation level serializable;",
            "COMMIT;;",
            "SET search_path = app",
            "SHOW ALL",
            "LOCK TABLE t",
        ] {
            assert!(only_controls(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "SELECT 1",
            "BEGIN; DELETE FROM t",
            "COMMIT; SELECT 1;",
            "COMMIT PREPARED 'x'",
            "PREPARE TRANSACTION 'x'",
            "EXPLAIN ANALYZE DELETE FROM t",
            "EXECUTE p",
            "CALL p()",
            "\"begin\"",
            "SET a = 'x",
        ] {
            assert!(!only_controls(sql), "{sql}");
        }
    }

    #[test]
    fn what_begins_under_read_committed_says_nothing_else() {
        for sql in [
            "BEGIN",
            "begin;",
            "/* app */ BEGIN WORK ;;",
            "START TRANSACTION READ ONLY",
            "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE",
            "BEGIN ISOLATION LEVEL read committed READ ONLY",
        ] {
            assert!(begins_read_committed(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "START",
            "BEGIN; SELECT 1",
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
            "BEGIN ISOLATION LEVEL READ UNCOMMITTED",
            "BEGIN ISOLATION LEVEL READ",
            "BEGIN READ ONLY, ISOLATION LEVEL SERIALIZABLE",
            "BEGIN PREPARED",
            "COMMIT AND CHAIN",
            "\"begin\"",
            "BEGIN 'x",
        ] {
            assert!(!begins_read_committed(sql), "{sql}");
        }
    }
}
