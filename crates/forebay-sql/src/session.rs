//! Session: whether a statement may change the session that it runs in, so that the connection's next user would notice.
//!
//! Promises: told by words of the text outside comments; only the names of functions that change a session are looked for
//! everywhere. Does not see what a function of the user's own does: of those only CALL and DO are taken to change the session.

use super::bound::uses_its_session;
use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};
use super::opening::{begins_with, statement};
use super::role::{Role, role};
use super::verb::{Verb, verb};

/// Functions that change the session they are called in.
const FUNCTIONS: [&str; 6] = [
    "set_config",
    "setseed",
    "pg_advisory_lock",
    "pg_try_advisory_lock",
    "dblink_connect",
    "dblink_open",
];

/// Statements that are nothing for shared connections, and right inside of somebody's own transaction.
const OF_A_TRANSACTION: [&str; 7] = ["SET", "RESET", "LOCK", "DECLARE", "FETCH", "MOVE", "CLOSE"];

/// Statements of MariaDB and MySQL that run outside of a transaction and leave the session as it was.
const LEAVE_SESSION: [&str; 18] = [
    "ALTER", "ANALYZE", "CHECK", "CHECKSUM", "CREATE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FLUSH", "GRANT", "KILL",
    "OPTIMIZE", "RENAME", "REPAIR", "REVOKE", "SHOW", "TRUNCATE",
];

/// Whether a statement may leave a setting, a variable, a lock or a temporary table in its session.
pub fn changes_session(dialect: Dialect, sql: &str) -> bool {
    match dialect {
        Dialect::Postgres => changes_session_of_postgres(sql),
        Dialect::MySql => {
            uses_its_session(sql) || (role(dialect, sql) == Role::Alone && !begins_with(dialect, sql, &LEAVE_SESSION))
        }
    }
}

fn changes_session_of_postgres(sql: &str) -> bool {
    // Anywhere: also in a string, which a function may take for a statement, and in what is a comment to this lexer only because the
    // server reads backslashes in strings.
    let lower = sql.to_ascii_lowercase();
    let words = Words::of(sql);
    FUNCTIONS.iter().any(|function| lower.contains(function))
        || words.first_is(&["CALL", "DO"])
        || (verb(Dialect::Postgres, sql) == Verb::Reads
            && words.any_pair(&["INTO"], &["TEMP", "TEMPORARY", "LOCAL", "GLOBAL"]))
}

/// Whether a statement that is refused elsewhere has its place in a transaction of the caller's own.
pub fn belongs_to_a_transaction(sql: &str) -> bool {
    let words = Words::of(sql);
    words.first_is(&OF_A_TRANSACTION) || words.any_pair(&["CREATE", "LOCAL", "GLOBAL"], &["TEMP", "TEMPORARY"])
}

struct Words<'t> {
    tokens: Vec<Token<'t>>,
}

impl<'t> Words<'t> {
    fn of(sql: &'t str) -> Self {
        Self {
            tokens: statement(Dialect::Postgres, sql).map_while(Result::ok).collect(),
        }
    }

    fn first_is(&self, words: &[&str]) -> bool {
        self.tokens.first().is_some_and(|token| is_one_of(token, words))
    }

    fn any_pair(&self, first: &[&str], second: &[&str]) -> bool {
        let mut pairs = self.tokens.windows(2);
        pairs.any(|pair| is_one_of(&pair[0], first) && is_one_of(&pair[1], second))
    }
}

/// Statements that answer with no rows.
const WITHOUT_ROWS: [&str; 39] = [
    "ABORT",
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DISCARD",
    "DO",
    "DROP",
    "END",
    "GRANT",
    "IMPORT",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SECURITY",
    "SET",
    "START",
    "TRUNCATE",
    "UNLISTEN",
    "VACUUM",
];

/// Statements that answer with rows only by RETURNING.
const RETURNING: [&str; 4] = ["DELETE", "INSERT", "MERGE", "UPDATE"];

/// Whether PostgreSQL describes what this prepares by no parameter and no column. No where that is not certain.
pub fn describes_nothing(sql: &str) -> bool {
    if sql.contains('\\') || sql.contains("&\"") {
        return false;
    }
    let tokens: Result<Vec<_>, _> = Lexer::new(Dialect::Postgres, sql).collect();
    let Ok(tokens) = tokens else { return false };
    if tokens.iter().any(|token| token.kind == Kind::Parameter) {
        return false;
    }
    match tokens.split_first() {
        None => true,
        Some((first, _)) if is_one_of(first, &WITHOUT_ROWS) => true,
        Some((first, rest)) => is_one_of(first, &RETURNING) && !rest.iter().any(|token| token.is_word("RETURNING")),
    }
}

/// The name of the prepared statement that the text deallocates, if that is all that it does.
pub fn deallocates(sql: &str) -> Option<String> {
    let tokens = one_statement(sql)?;
    let (first, rest) = tokens.split_first()?;
    let name = match rest {
        [name] => name,
        [prepare, name] if prepare.is_word("PREPARE") => name,
        _ => return None,
    };
    match first.is_word("DEALLOCATE") && !name.is_word("ALL") {
        true => name_of(name),
        false => None,
    }
}

/// The name of the prepared statement that this executes, if it is one `EXECUTE` and nothing else, and its name is read in one way only.
pub fn executes(sql: &str) -> Option<String> {
    let begins = sql.trim_ascii_start().get(..b"EXECUTE".len())?;
    if !begins.eq_ignore_ascii_case("EXECUTE") {
        return None;
    }
    let tokens = one_statement(sql)?;
    let [execute, name, rest @ ..] = tokens.as_slice() else {
        return None;
    };
    let is_whole =
        rest.first().is_none_or(|first| first.is_symbol("(")) && !rest.iter().any(|token| token.is_symbol(";"));
    match execute.is_word("EXECUTE") && is_whole {
        true => name_of(name),
        false => None,
    }
}

/// The tokens of a text, without the semicolon at its end; none where it may be read in two ways.
fn one_statement(sql: &str) -> Option<Vec<Token<'_>>> {
    // By the setting of standard_conforming_strings, and as an escaped name.
    if sql.contains('\\') || sql.contains("&\"") {
        return None;
    }
    let mut tokens: Vec<_> = Lexer::new(Dialect::Postgres, sql).collect::<Result<_, _>>().ok()?;
    if tokens.last().is_some_and(|last| last.is_symbol(";")) {
        tokens.pop();
    }
    Some(tokens)
}

/// The name that a token is.
fn name_of(token: &Token<'_>) -> Option<String> {
    let quoted = token.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(quoted) => Some(quoted.replace("\"\"", "\"")),
        // What is not ASCII is folded as the server's locale has it.
        None => (token.kind == Kind::Word && token.text.is_ascii()).then(|| token.text.to_ascii_lowercase()),
    }
}

fn is_one_of(token: &Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execute_alone_tells_whose_name_it_is() {
        for (sql, name) in [
            ("EXECUTE named", Some("named")),
            (" execute NaMed ;", Some("named")),
            ("execute \"Na\"\"med\" (1, f(2), 'x;')", Some("Na\"med")),
            ("EXECUTE named; SELECT 1", None),
            ("EXECUTE named (1); SELECT 1", None),
            ("CREATE TABLE t AS EXECUTE named", None),
            ("EXECUTE named AS x", None),
            ("EXECUTE", None),
            ("executes named", None),
            ("EXECUTE named ('\\')", None),
        ] {
            assert_eq!(executes(sql).as_deref(), name, "{sql}");
        }
    }

    #[test]
    fn what_has_neither_parameters_nor_columns_is_known() {
        for (sql, nothing) in [
            ("", true),
            ("-- nothing", true),
            ("commit", true),
            ("SET a = 'b'", true),
            ("copy (select 1) to stdout", true),
            ("copy t from stdin", true),
            ("move 1 from c", true),
            ("vacuum", true),
            ("do $$begin end$$", true),
            ("copy (select $1::int) to stdout", false),
            ("insert into t values (1)", true),
            ("insert into t values (1) returning a", false),
            ("insert into t values ($1)", false),
            ("select 1", false),
            ("(select 1)", false),
            ("show all", false),
            ("fetch c", false),
            ("with a as (select 1) insert into t select 1", false),
        ] {
            assert_eq!(describes_nothing(sql), nothing, "{sql}");
        }
    }

    #[test]
    fn the_name_that_is_deallocated_is_told() {
        for (sql, name) in [
            ("DEALLOCATE one", Some("one")),
            ("deallocate PREPARE One ;", Some("one")),
            (r#"/* x */ DEALLOCATE "One ""more"" x""#, Some("One \"more\" x")),
            (r#"DEALLOCATE "all""#, Some("all")),
            ("DEALLOCATE prepare", Some("prepare")),
            ("DEALLOCATE ALL", None),
            ("DEALLOCATE PREPARE ALL", None),
            ("DEALLOCATE one; SELECT 1", None),
            ("DEALLOCATE 'one'", None),
            ("DEALLOCATE one two", None),
            ("SELECT one", None),
            ("DEALLOCATE", None),
            ("DEALLOCATE 1", None),
            ("", None),
        ] {
            assert_eq!(deallocates(sql).as_deref(), name, "{sql}");
        }
    }

    #[test]
    fn what_stays_in_the_session_is_known() {
        for sql in [
            "SELECT set_config('app.user', $1, false)",
            "select Pg_Advisory_Lock(5)",
            "INSERT INTO t SELECT pg_try_advisory_lock_shared(1)",
            "SELECT 1 AS n INTO TEMP kept",
            "SELECT 1 AS n INTO LOCAL TEMPORARY kept",
            "CALL tidy()",
            "DO $$ BEGIN END $$",
            "/*+ hint */ CALL tidy()",
            "; -- name: tidy\nDO $$ BEGIN END $$",
            "SELECT 1 AS n INTO /*+ hint */ TEMP kept",
            // A call where backslashes escape in strings, and part of a comment where they do not.
            r"SELECT 'it\'s -- x', set_config('role', 'admin', false)",
            "SELECT query_to_xml('SELECT set_config(1, 2, false)', true, true, '')",
        ] {
            assert!(changes_session(Dialect::Postgres, sql), "{sql}");
        }
        for sql in [
            "INSERT INTO temp (temporary) VALUES ($1)",
            "INSERT INTO readings (temp) VALUES ($1) RETURNING temp",
            "SELECT temp FROM readings",
            "UPDATE t SET n = $1",
            "SELECT pg_advisory_xact_lock($1)",
            "-- CALL tidy()\nUPDATE t SET n = $1",
        ] {
            assert!(!changes_session(Dialect::Postgres, sql), "{sql}");
        }
    }

    #[test]
    fn what_stays_in_the_session_of_mysql_is_known() {
        for sql in [
            "SELECT 1 INTO @a",
            "SELECT GET_LOCK('a', 1)",
            "CALL p()",
            "DO 1",
            "-- SHOW\nCALL p()",
        ] {
            assert!(changes_session(Dialect::MySql, sql), "{sql}");
        }
        for sql in [
            "SELECT 1",
            "CREATE TABLE t (a INT)",
            "SHOW TABLES",
            "-- name: tables\nSHOW TABLES",
            "# all\n/* of them */ show tables",
            "INSERT INTO t VALUES (?)",
            "INSERT INTO t VALUES ('ann@example.org')",
        ] {
            assert!(!changes_session(Dialect::MySql, sql), "{sql}");
        }
    }

    #[test]
    fn what_belongs_to_a_transaction_is_known() {
        for sql in [
            "SET LOCAL statement_timeout = 5",
            "set transaction isolation level serializable",
            "LOCK TABLE t",
            "DECLARE c CURSOR FOR SELECT 1",
            "CREATE TEMP TABLE t (n int)",
            "CREATE LOCAL TEMPORARY TABLE t (n int)",
            "/*+ hint */ SET LOCAL statement_timeout = 5",
        ] {
            assert!(belongs_to_a_transaction(sql), "{sql}");
        }
        for sql in [
            "COMMIT",
            "ROLLBACK",
            "PREPARE TRANSACTION 'a'",
            "LISTEN a",
            "DISCARD ALL",
            "COPY t FROM STDIN",
        ] {
            assert!(!belongs_to_a_transaction(sql), "{sql}");
        }
    }
}
