//! Plan: what a statement's text alone tells of how it is to be run; kept by text.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::set::Set;
use crate::write::Sql;
use crate::write::shape::{self, Dialect, Role, role};

/// How many texts' plans are kept.
const PLANS_MAX: usize = 1024;

/// Statements that run outside of a transaction and leave the session as it was.
const LEAVE_SESSION: [&str; 18] = [
    "ALTER", "ANALYZE", "CHECK", "CHECKSUM", "CREATE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FLUSH", "GRANT", "KILL",
    "OPTIMIZE", "RENAME", "REPAIR", "REVOKE", "SHOW", "TRUNCATE",
];

/// Statements that read.
const READ: [&str; 10] = [
    "CHECKSUM", "DESC", "DESCRIBE", "EXPLAIN", "HELP", "SELECT", "SHOW", "TABLE", "VALUES", "WITH",
];

/// Functions whose answer is of the statement before on the same connection, which is somebody else's.
const OF_THE_STATEMENT_BEFORE: [&str; 3] = ["last_insert_id", "row_count", "found_rows"];

/// Variables of the same kind.
const TOLD_BY_THE_STATEMENT_BEFORE: [&str; 4] = ["last_insert_id", "identity", "warning_count", "error_count"];

/// How statements of one text are run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) role: Role,
    /// Whether it is a statement that reads.
    pub(super) reads: bool,
    /// Whether it may leave something in the session: a variable, a lock.
    pub(super) changes_session: bool,
    /// Why strangers who share a connection cannot be given it, if so.
    depends: Option<String>,
    /// Its shape, if it is one that can be written many rows at a time.
    pub(super) set: Option<Set>,
}

impl Plan {
    fn of(sql: &str) -> Self {
        let role = role(Dialect::MySql, sql);
        let lower = sql.to_ascii_lowercase();
        let changes_session = lower.contains('@')
            || lower.contains("get_lock")
            || (role == Role::Alone && !LEAVE_SESSION.contains(&first_word(sql).as_str()));
        Self {
            role,
            reads: READ.contains(&first_word(sql).as_str()),
            changes_session,
            depends: OF_THE_STATEMENT_BEFORE
                .into_iter()
                .find(|function| is_asked_for(&lower, function))
                .map(|function| format!("{function}()"))
                .or_else(|| variable_of_the_statement_before(&lower)),
            set: shape::insert(Dialect::MySql, sql).and_then(Set::new),
        }
    }

    /// Why strangers who share a connection are not given it.
    pub(super) fn refusal(&self) -> Option<String> {
        match (&self.role, &self.depends) {
            (Role::Refused(reason), _) => Some(reason.clone()),
            (_, Some(asked)) => Some(format!(
                "{asked} is of the statement before on the same connection, which is somebody else's: use RETURNING, the \
                 outcome's own count and id, or a transaction of Writer::begin"
            )),
            _ => None,
        }
    }
}

/// The first word, in capitals.
pub(super) fn first_word(sql: &str) -> String {
    sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(')
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect::<String>()
        .to_ascii_uppercase()
}

/// Whether the function is called without an argument: with one it tells nothing of before.
fn is_asked_for(lower: &str, function: &str) -> bool {
    lower.match_indices(function).any(|(at, _)| {
        let rest = lower[at + function.len()..].trim_start();
        rest.strip_prefix('(')
            .is_some_and(|rest| rest.trim_start().starts_with(')'))
    })
}

/// The variable that tells of before, if one is read.
fn variable_of_the_statement_before(lower: &str) -> Option<String> {
    lower.match_indices("@@").find_map(|(at, _)| {
        let mut rest = lower[at + 2..].trim_start();
        for scope in ["session", "local"] {
            let after = rest.strip_prefix(scope).map(str::trim_start);
            if let Some(variable) = after.and_then(|after| after.strip_prefix('.')) {
                rest = variable.trim_start();
            }
        }
        let name: String = rest
            .trim_start_matches('`')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        TOLD_BY_THE_STATEMENT_BEFORE
            .contains(&&*name)
            .then(|| format!("@@{name}"))
    })
}

/// Plans by text.
#[derive(Default)]
pub(super) struct Plans {
    by_text: Mutex<HashMap<Arc<str>, Arc<Plan>>>,
}

impl Plans {
    pub(super) fn of(&self, sql: &Sql) -> Arc<Plan> {
        let mut by_text = self.by_text.lock();
        if let Some(plan) = by_text.get(&**sql) {
            return Arc::clone(plan);
        }
        if by_text.len() >= PLANS_MAX {
            // Texts made at run time, each once: none of them is worth more than another.
            by_text.clear();
        }
        let plan = Arc::new(Plan::of(sql));
        by_text.insert(Arc::from(&**sql), Arc::clone(&plan));
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_the_statement_before_is_refused() {
        for sql in [
            "INSERT INTO c VALUES (LAST_INSERT_ID())",
            "SELECT row_count ( )",
            "SELECT FOUND_ROWS()",
            "INSERT INTO c VALUES (@@identity)",
            "SELECT @@Session . `Last_insert_id`",
        ] {
            assert!(Plan::of(sql).refusal().is_some(), "{sql}");
        }
        for sql in [
            "INSERT INTO c VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
            "SELECT 1",
            "SELECT @@identity_insert, @identity, @@session.sql_mode",
        ] {
            assert_eq!(Plan::of(sql).refusal(), None, "{sql}");
        }
    }

    #[test]
    fn what_may_leave_something_in_the_session_is_known() {
        for sql in ["SELECT 1 INTO @a", "SELECT GET_LOCK('a', 1)", "CALL p()", "DO 1"] {
            assert!(Plan::of(sql).changes_session, "{sql}");
        }
        for sql in [
            "SELECT 1",
            "CREATE TABLE t (a INT)",
            "SHOW TABLES",
            "INSERT INTO t VALUES (?)",
        ] {
            assert!(!Plan::of(sql).changes_session, "{sql}");
        }
    }
}
