//! Commit: which statements commit by themselves, where that is not at their end.
//!
//! Promises: told by words of the text; what is not known counts as one that does. Does not see what a procedure does.

use super::dialect::Dialect;
use super::opening::{begins_with, has_word};
use super::role::{Role, role};

/// Statements of PostgreSQL that run outside of a transaction and are nevertheless done whole or not at all.
const WHOLE: [&str; 4] = ["CREATE", "DROP", "ALTER", "VACUUM"];

/// Statements of MariaDB and MySQL that run outside of a batch and do not commit.
const LEAVE_OPEN: [&str; 8] = ["CALL", "CHECKSUM", "DESC", "DESCRIBE", "DO", "EXPLAIN", "HELP", "SHOW"];

/// Whether a statement that PostgreSQL runs outside of a transaction may commit before it has come to its end, so that it must
/// not be run again.
pub fn may_commit_within(sql: &str) -> bool {
    !begins_with(Dialect::Postgres, sql, &WHOLE) || has_word(Dialect::Postgres, sql, "CONCURRENTLY")
}

/// Whether a statement commits, on MariaDB and MySQL, what was done before it in the same transaction.
pub fn commits_before(sql: &str) -> bool {
    role(Dialect::MySql, sql) == Role::Alone && !begins_with(Dialect::MySql, sql, &LEAVE_OPEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_whole_on_postgres_is_known_behind_comments() {
        for sql in [
            "CREATE TABLE t (n int)",
            "-- name: widen\nALTER TABLE t ADD COLUMN m int",
            "/* CONCURRENTLY */ drop index \"concurrently\"",
            "/*+ hint */ ;VACUUM t",
        ] {
            assert!(!may_commit_within(sql), "{sql}");
        }
        for sql in [
            "CALL p()",
            "-- CREATE\nDO $$ BEGIN COMMIT; END $$",
            "CREATE INDEX/**/CONCURRENTLY i ON t (n)",
            "alter table t detach partition p concurrently",
            "creates",
            "",
        ] {
            assert!(may_commit_within(sql), "{sql}");
        }
    }

    #[test]
    fn what_commits_what_was_before_it_on_mysql_is_known_behind_comments() {
        for sql in [
            "CREATE TABLE t (n INT)",
            "-- SHOW\nTRUNCATE t",
            "# CALL p()\nANALYZE TABLE t",
            "/* DO 1 */ x",
        ] {
            assert!(commits_before(sql), "{sql}");
        }
        for sql in [
            "SHOW TABLES",
            "-- name: x\nSHOW TABLES",
            "# x\ncall p()",
            "/* x */ explain SELECT 1",
            "SELECT 1",
        ] {
            assert!(!commits_before(sql), "{sql}");
        }
    }
}
