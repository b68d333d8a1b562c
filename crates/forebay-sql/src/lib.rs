//! Shape: what a real SQL parser shows of a statement.
//!
//! Promises: what is said here was read off a syntax tree; where the parser does not understand a text, or sees more than is
//! asked for, the answer is "not shown", never a guess. Knows dialects' grammar; knows no connection, table or value.

mod bound;
mod commit;
mod insert;
mod lateral;
mod lexer;
mod listed;
mod opening;
mod role;
mod session;
mod syntax;
mod verb;

pub use bound::{asks_of_before, has_parameters, locks_what_it_reads, reads, uses_its_session};
pub use commit::{commits_before, may_commit_within};
pub use insert::insert;
pub use lateral::{Lateral, Parameter, lateral};
pub use listed::{Listed, listed};
pub use role::{Role, role};
pub use session::{belongs_to_a_transaction, changes_session};
pub use verb::{Verb, verb};

/// Whose grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: `$1`, `"name"`.
    Postgres,
    /// MariaDB and MySQL: `?`, `` `name` ``.
    MySql,
}

impl Dialect {
    fn is_mysql(self) -> bool {
        match self {
            Self::Postgres => false,
            Self::MySql => true,
        }
    }
}

/// `INSERT INTO table (columns) VALUES (one row) [RETURNING list]`, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// The table, as it stands in SQL.
    pub table: String,
    /// The columns that are given, each as it stands in SQL.
    pub columns: Vec<String>,
    /// What each of them is given.
    pub cells: Vec<Cell>,
    /// How many parameters the statement has; each stands in the text exactly once.
    pub parameters: usize,
    /// What is to be returned, as it stands in SQL, one text an expression.
    pub returning: Option<Vec<String>>,
}

/// What a column is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A bare parameter, the first is 0.
    Parameter(usize),
    /// A literal, as it stands in SQL.
    Constant(String),
    /// The word DEFAULT.
    Default,
}
