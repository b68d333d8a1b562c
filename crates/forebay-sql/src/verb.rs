//! Verb: what kind of statement a text is, by the word that says what it does.
//!
//! Promises: told by the first word, or by the one that follows the parts of a WITH; never by a word in quotes, comments or
//! parentheses, nor by what only some servers execute. Does not see what a function does.

use super::dialect::Dialect;
use super::lexer::Token;
use super::opening::statement;

/// What a statement does with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Returns rows.
    Reads,
    /// Changes rows, and may return some.
    Changes,
    /// Something else: it changes the schema, or what this does not know.
    Other,
}

const READS: [&str; 3] = ["SELECT", "VALUES", "TABLE"];
const CHANGES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"];

/// Tells a statement's verb.
pub fn verb(dialect: Dialect, sql: &str) -> Verb {
    let mut depth = 0_usize;
    // How deep in parentheses a WITH stood: its parts are deeper.
    let mut with = None;
    for token in statement(dialect, sql) {
        let Ok(token) = token else { return Verb::Other };
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
        } else if with.is_some_and(|with| depth > with) {
            // Inside a part of the WITH.
        } else if is_one_of(token, &READS) {
            return Verb::Reads;
        } else if is_one_of(token, &CHANGES) {
            return Verb::Changes;
        } else if token.is_word("WITH") {
            with = Some(depth);
        } else if with.is_none() {
            return Verb::Other;
        }
    }
    Verb::Other
}

fn is_one_of(token: Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_by_the_word_that_says_what_is_done() {
        let told = |sql| verb(Dialect::Postgres, sql);
        for sql in [
            "SELECT 1",
            "/* INSERT */ select 1",
            "(SELECT 1) UNION SELECT 2",
            "VALUES (1)",
            "TABLE t",
            "(WITH a AS (DELETE FROM t RETURNING id) SELECT * FROM a)",
            "WITH \"insert\" AS (INSERT INTO t VALUES (1) RETURNING id), b(x) AS (SELECT 1) SELECT * FROM b",
        ] {
            assert_eq!(told(sql), Verb::Reads, "{sql}");
        }
        for sql in [
            "INSERT INTO t SELECT 1",
            "-- SELECT\nUPDATE t SET a = 1",
            "/*+ IndexScan(t) */ UPDATE t SET a = 1",
            "; UPDATE t SET a = 1",
            "WITH /*+ hint */ a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "WITH RECURSIVE a AS NOT MATERIALIZED (SELECT ')') MERGE INTO t USING a ON true WHEN MATCHED THEN DO NOTHING",
        ] {
            assert_eq!(told(sql), Verb::Changes, "{sql}");
        }
        for sql in [
            "CREATE TABLE t AS SELECT 1",
            "DO $$ INSERT $$",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "",
            "'SELECT'",
        ] {
            assert_eq!(told(sql), Verb::Other, "{sql}");
        }
    }

    #[test]
    fn told_behind_comments_of_mysql() {
        let told = |sql| verb(Dialect::MySql, sql);
        for sql in [
            "-- name: add\nINSERT INTO t VALUES (1) RETURNING a",
            "# SELECT\nINSERT INTO t VALUES (1)",
            "/* SELECT */ replace INTO t VALUES (1)",
            "/*+ hint */ DELETE FROM t",
            "INSERT /*!80000 IGNORE */ INTO t VALUES (1)",
            "WITH a AS (SELECT 1) UPDATE t, a SET t.b = 1",
        ] {
            assert_eq!(told(sql), Verb::Changes, "{sql}");
        }
        assert_eq!(told("# INSERT\n((SELECT 1))"), Verb::Reads);
        for sql in ["/*! INSERT */ INTO t VALUES (1)", "--INSERT", "CALL p()"] {
            assert_eq!(told(sql), Verb::Other, "{sql}");
        }
    }
}
