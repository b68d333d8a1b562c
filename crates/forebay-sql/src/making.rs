//! Making: whether a text may make a table by what is a query: `CREATE TABLE … AS`, `SELECT … INTO`, whose tags are those of queries; and whether it may change
//! tables by what is none.
//!
//! Promises: none is missed that stands in the text; what only looks like one in a text that cannot be read is taken for one. A text that has none of the words
//! in it costs one pass over its bytes.

use super::dialect::Dialect;
use super::lexer::Lexer;

/// Whether the text may make a table without its tag saying so.
#[must_use]
pub fn may_make_tables(sql: &str) -> bool {
    let is_at = |at: usize, word: &str| {
        let part = sql.as_bytes().get(at..at + word.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    let may = sql.bytes().enumerate().any(|(at, byte)| match byte {
        b'c' | b'C' => is_at(at, "create"),
        b'i' | b'I' => is_at(at, "into"),
        _ => false,
    });
    may && has_word_for_it(sql)
}

/// What statements begin with that change tables, or may.
const CHANGING: [&str; 6] = ["ALTER", "CALL", "CREATE", "DO", "DROP", "IMPORT"];

/// Whether the text may change tables that are there, by a statement whose tag says so. Does not see what a query's function does.
#[must_use]
pub fn may_change_tables(sql: &str) -> bool {
    let has_more = sql.contains(';');
    let mut begins = true;
    let mut commits = false;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let Ok(token) = token else { return true };
        if std::mem::take(&mut commits) && token.is_word("PREPARED") {
            return true;
        }
        if token.is_symbol(";") {
            begins = true;
        } else if std::mem::take(&mut begins) {
            commits = token.is_word("COMMIT");
            if CHANGING.iter().any(|word| token.is_word(word)) {
                return true;
            }
            if !has_more && !commits {
                return false;
            }
        }
    }
    false
}

/// Both words are reserved: no name is written so without quotes.
fn has_word_for_it(sql: &str) -> bool {
    let mut is_behind_a_change = false;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let Ok(token) = token else { return true };
        if token.is_word("CREATE") || (token.is_word("INTO") && !is_behind_a_change) {
            return true;
        }
        is_behind_a_change = token.is_word("INSERT") || token.is_word("MERGE");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_table_without_saying_so_in_its_tag_is_known() {
        for text in [
            "create table t as select 1",
            "/* x */ SELECT a INTO t FROM u WHERE b = E'\\n'",
            "INSERT INTO t SELECT 1; SELECT 1 INTO u",
            "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
            "SELECT 1 INTO t -- '",
            "SELECT 'created",
        ] {
            assert!(may_make_tables(text), "{text}");
        }
        for text in [
            "INSERT INTO t SELECT 1",
            "insert /* x */ into t values ('create', 'x into y')",
            "MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING",
            "SELECT created_at, \"into\" FROM t WHERE action = 'create'",
            "SELECT f() -- create",
            "CALL p()",
            "COPY t FROM STDIN",
            "c",
            "",
        ] {
            assert!(!may_make_tables(text), "{text}");
        }
    }

    #[test]
    fn what_changes_tables_is_known_by_how_its_statements_begin() {
        for text in [
            "ALTER TABLE t ADD a int",
            "/* x */ drop table t",
            "BEGIN; create index on t (a)",
            "SELECT 1; -- x\n DO $$ BEGIN END $$",
            "CALL p()",
            "COMMIT PREPARED 'x'",
            "SELECT ';' ; IMPORT FOREIGN SCHEMA s FROM SERVER f INTO t",
            "SELECT 1; SELECT 'ALTER",
        ] {
            assert!(may_change_tables(text), "{text}");
        }
        for text in [
            "SELECT alter FROM t",
            "COMMIT",
            "COMMIT; SELECT prepared FROM t",
            "BEGIN; SELECT 'x; DROP TABLE t'",
            "INSERT INTO t VALUES (1); /* ALTER */",
            "",
        ] {
            assert!(!may_change_tables(text), "{text}");
        }
    }
}
