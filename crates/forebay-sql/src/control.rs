//! Control: statements that do nothing to rows, and nothing that others see but by what was done before them.
//!
//! Promises: told by the first words of each statement of a text; what begins as nothing known does not only control. Where there are several, none of them
//! begins or ends a transaction: what was done in it would be known to others in the midst of the text.

use super::dialect::Dialect;
use super::lexer::{Lexer, Token};

/// How those begin that are of the session. `EXPLAIN` is none: it may do what it explains; nor are cursors, which run a query.
const OF_THE_SESSION: [&str; 10] = [
    "CHECKPOINT",
    "CLOSE",
    "DEALLOCATE",
    "DISCARD",
    "LISTEN",
    "NOTIFY",
    "RESET",
    "SET",
    "SHOW",
    "UNLISTEN",
];

/// And those of its transaction.
const OF_THE_TRANSACTION: [&str; 9] = [
    "ABORT",
    "BEGIN",
    "COMMIT",
    "END",
    "LOCK",
    "RELEASE",
    "ROLLBACK",
    "SAVEPOINT",
    "START",
];

/// Whether a text of PostgreSQL's only begins or ends a transaction, or changes or shows its session.
#[must_use]
pub fn only_controls(sql: &str) -> bool {
    let mut tokens = Lexer::new(Dialect::Postgres, sql);
    let (mut statements, mut are_of_the_session) = (0, true);
    loop {
        let first = match tokens.next() {
            None => return statements == 1 || (statements > 1 && are_of_the_session),
            Some(Err(_)) => return false,
            Some(Ok(token)) if token.is_symbol(";") => continue,
            Some(Ok(token)) => token,
        };
        let is_one_of = |words: &[&str]| words.iter().any(|word| first.is_word(word));
        let is_of_the_session = is_one_of(&OF_THE_SESSION);
        // What was prepared is another transaction.
        let is_of_another = matches!(tokens.clone().next(), Some(Ok(second)) if second.is_word("PREPARED"));
        if !(is_of_the_session || is_one_of(&OF_THE_TRANSACTION)) || is_of_another {
            return false;
        }
        statements += 1;
        are_of_the_session &= is_of_the_session;
        loop {
            match tokens.next() {
                Some(Ok(token)) if !token.is_symbol(";") => {}
                Some(Err(_)) => return false,
                None | Some(Ok(_)) => break,
            }
        }
    }
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
            "SET a = 'x;y'; ; RESET b; LISTEN c; UNLISTEN c; DISCARD PLANS",
        ] {
            assert!(only_controls(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "SELECT 1",
            "BEGIN; SET LOCAL a = 'x'",
            "SET a = 'x'; COMMIT",
            "SET a = 'x'; DELETE FROM t",
            "SET a = 'x'; ROLLBACK PREPARED 'x'",
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
