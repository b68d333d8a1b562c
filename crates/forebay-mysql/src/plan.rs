//! Plan: what a statement's text alone tells of how it is to be run; kept by text.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::set::Set;
use forebay_sql::{Dialect, Role, role};
use forebay_write::Sql;

/// How many texts' plans are kept.
const PLANS_MAX: usize = 1024;

/// Statements that run outside of a transaction and leave the session as it was.
const LEAVE_SESSION: [&str; 18] = [
    "ALTER", "ANALYZE", "CHECK", "CHECKSUM", "CREATE", "DESC", "DESCRIBE", "DROP", "EXPLAIN", "FLUSH", "GRANT", "KILL",
    "OPTIMIZE", "RENAME", "REPAIR", "REVOKE", "SHOW", "TRUNCATE",
];

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
        let changes_session = forebay_sql::uses_its_session(sql)
            || (role == Role::Alone && !LEAVE_SESSION.contains(&first_word(sql).as_str()));
        Self {
            role,
            reads: forebay_sql::reads(sql),
            changes_session,
            depends: forebay_sql::asks_of_before(sql),
            set: forebay_sql::insert(Dialect::MySql, sql).and_then(Set::new),
        }
    }

    /// Why strangers who share a connection are not given it.
    pub(super) fn refusal(&self) -> Option<String> {
        match (&self.role, &self.depends) {
            (Role::Refused(reason), _) => Some(reason.clone()),
            (_, Some(asked)) => Some(format!(
                "{asked} tells of the statement before on the same connection, which may be another caller's: use RETURNING, \
                 the outcome's own count and id, or a transaction of Writer::begin"
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
        assert!(Plan::of("INSERT INTO c VALUES (LAST_INSERT_ID())").refusal().is_some());
        assert_eq!(Plan::of("INSERT INTO c VALUES ('LAST_INSERT_ID()')").refusal(), None);
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
            "INSERT INTO t VALUES ('ann@example.org')",
        ] {
            assert!(!Plan::of(sql).changes_session, "{sql}");
        }
    }
}
