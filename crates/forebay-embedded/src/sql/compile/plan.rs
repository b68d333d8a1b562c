//! What a statement is compiled to: its steps, its parameters and the columns of its result.
//!
//! Knows nothing of how it came about, nor of who runs it.

use std::sync::Arc;

use forebay_sqlite::connection::SchemaEdit;

use super::sqlite_text::{ENVIRONMENT, code};
use super::types::TypeName;
use crate::sql::facts::Oid;

/// The highest number of a parameter, which PostgreSQL's protocol has too.
pub(crate) const PARAMETERS_MAX: usize = 65_535;

/// A statement, compiled.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is to be done: one step, or several in one transaction.
    pub steps: Vec<Step>,
    /// The types of the parameters.
    pub parameters: Vec<Oid>,
    /// The highest number of a parameter in what SQLite runs, the environment's among them: less than there are where a parameter's
    /// value does not matter.
    pub used: usize,
    /// The statement asks for the session's environment: the first parameter that SQLite is given tells it, the statement's own follow.
    pub environment: bool,
    /// The columns of its result.
    pub columns: Vec<ResultColumn>,
    /// Whether it writes, so that a connection that reads cannot run it.
    pub writes: bool,
    /// FOR UPDATE and its like: what is read must not change before the transaction ends.
    pub locks: Option<Locks>,
    /// Holds for sessions in this time zone only.
    pub zone_bound: bool,
    /// Holds for this session only, and now.
    pub session_bound: bool,
    /// Holds for the settings as they are now.
    pub reads_settings: bool,
    /// What to tell the client beside the result.
    pub notices: Vec<String>,
    /// The columns of the result, if the session carries some of them out.
    pub session_columns: Vec<SessionColumn>,
    /// Tables that it makes or truncates, by their names in the file.
    pub empties: Vec<String>,
    /// Tables that it changes rows of, also by foreign keys, or adds rows to, by their names in the file.
    pub changes: Vec<String>,
    /// Tables that it reads, by their names in the file.
    pub tables_read: Vec<String>,
    /// Tables that no query of the session may be open on while it is carried out, by their names in the file.
    pub reshapes: Vec<String>,
}

impl Plan {
    /// Steps without parameters and columns.
    pub(crate) fn of_steps(steps: Vec<Step>) -> Self {
        Self {
            steps,
            parameters: Vec::new(),
            used: 0,
            environment: false,
            columns: Vec::new(),
            writes: false,
            locks: None,
            zone_bound: false,
            session_bound: false,
            reads_settings: false,
            notices: Vec::new(),
            session_columns: Vec::new(),
            empties: Vec::new(),
            changes: Vec::new(),
            tables_read: Vec::new(),
            reshapes: Vec::new(),
        }
    }

    /// The text of the first step; empty if it is none of SQLite's.
    pub fn first_sql(&self) -> Arc<str> {
        self.steps.first().and_then(Step::sql).cloned().unwrap_or_default()
    }
}

/// What is to be done at once.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement for SQLite.
    Run {
        /// Its text.
        sql: Arc<str>,
        /// Whether it asks for the session's environment.
        environment: bool,
    },
    /// The schema's own texts are changed: nothing that a client can say by itself.
    Edit(SchemaEdit),
    /// Foreign keys are looked at behind the last step, not behind each.
    DeferForeignKeys,
}

impl From<String> for Step {
    fn from(sql: String) -> Self {
        let environment = code(&sql).any(|(_, byte)| byte == ENVIRONMENT as u8);
        Self::Run {
            sql: sql.into(),
            environment,
        }
    }
}

impl Step {
    /// The statement, if it is one.
    pub fn sql(&self) -> Option<&Arc<str>> {
        match self {
            Self::Run { sql, .. } => Some(sql),
            Self::Edit(_) | Self::DeferForeignKeys => None,
        }
    }
}

pub(super) fn steps_of(statements: Vec<String>) -> Vec<Step> {
    statements.into_iter().map(Step::from).collect()
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    pub(crate) name: String,
    pub(crate) kind: TypeName,
    pub(crate) not_null: bool,
    pub(crate) origin: Option<Origin>,
}

impl ResultColumn {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// PostgreSQL's number for its type.
    pub fn type_oid(&self) -> u32 {
        self.kind.oid
    }

    /// The modifier of its type, -1 for none.
    pub fn typmod(&self) -> i32 {
        self.kind.typmod
    }
}

/// The column of a table that a column of a result is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    pub(crate) table: Arc<str>,
    /// Counted from 1.
    pub(crate) number: usize,
}

/// What a statement that locks does while another transaction has the right to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locks {
    /// It waits for it.
    Wait,
    /// It fails; this is what it could not lock.
    Refuse(String),
    /// It has no rows: all that it could have are locked.
    Skip,
}

/// A column of a result in which the session has a part.
#[derive(Debug, Clone)]
pub enum SessionColumn {
    /// The column of that number of what SQLite computes.
    Computed(usize),
    /// What a function returns that the session carries out.
    Call {
        /// Its name.
        name: &'static str,
        /// The place of its first argument among the columns of what SQLite computes.
        first: usize,
        /// How many arguments there are.
        count: usize,
        /// NULL among the arguments makes it NULL.
        strict: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_asks_for_the_environment_outside_of_literals() {
        for (sql, asks) in [
            (format!("SELECT '{ENVIRONMENT}'"), false),
            (format!("SELECT f({ENVIRONMENT})"), true),
        ] {
            assert!(matches!(Step::from(sql), Step::Run { environment, .. } if environment == asks));
        }
    }
}
