//! Plan: what a statement's text alone tells of how it is to be run.
//!
//! Promises: all of it is read off tokens and trees. Knows no connection.

use super::set::Set;
use forebay_sql::{Dialect, Role};
use forebay_write::Sql;

/// Plans by text.
pub(super) type Plans = forebay_remote::plans::Plans<Plan>;

/// How statements of one text are run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) role: Role,
    /// Whether it commits what was done before it in its transaction.
    pub(super) commits_before: bool,
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
    pub(super) fn of(sql: &Sql) -> Self {
        Self {
            role: forebay_sql::role(Dialect::MySql, sql),
            commits_before: forebay_sql::commits_before(sql),
            reads: forebay_sql::reads(sql),
            changes_session: forebay_sql::changes_session(Dialect::MySql, sql),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_the_statement_before_is_refused() {
        assert!(
            Plan::of(&"INSERT INTO c VALUES (LAST_INSERT_ID())".into())
                .refusal()
                .is_some()
        );
        let plan = Plan::of(&"INSERT INTO c VALUES ('LAST_INSERT_ID()')".into());
        assert_eq!(plan.refusal(), None);
    }
}
