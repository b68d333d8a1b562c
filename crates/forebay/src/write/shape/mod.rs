//! Shape: what a real SQL parser shows of a statement.
//!
//! Promises: what is said here was read off a syntax tree; where the parser does not understand a text, or sees more than is
//! asked for, the answer is "not shown", never a guess. Knows dialects' grammar; knows no connection, table or value.

#[cfg(feature = "mysql")]
mod bound;
mod insert;
#[cfg(feature = "postgres")]
mod lateral;
mod lexer;
#[cfg(feature = "mysql")]
mod listed;
mod role;
#[cfg(feature = "postgres")]
mod session;
mod syntax;
mod verb;

#[cfg(feature = "mysql")]
pub(crate) use bound::{asks_of_before, locks_what_it_reads, reads, uses_its_session};
pub(crate) use insert::insert;
#[cfg(feature = "postgres")]
pub(crate) use lateral::{Lateral, Parameter, lateral};
#[cfg(feature = "mysql")]
pub(crate) use listed::{Listed, listed};
pub(crate) use role::{Role, role};
#[cfg(feature = "postgres")]
pub(crate) use session::{belongs_to_a_transaction, changes_session};
#[cfg(feature = "postgres")]
pub(crate) use verb::{Verb, verb};

/// Whose grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// PostgreSQL: `$1`, `"name"`.
    #[cfg(feature = "postgres")]
    Postgres,
    /// MariaDB and MySQL: `?`, `` `name` ``.
    #[cfg(feature = "mysql")]
    MySql,
}

impl Dialect {
    fn is_mysql(self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => false,
            #[cfg(feature = "mysql")]
            Self::MySql => true,
        }
    }
}

/// `INSERT INTO table (columns) VALUES (one row) [RETURNING list]`, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insert {
    /// The table, as it stands in SQL.
    pub(crate) table: String,
    /// The columns that are given, each as it stands in SQL.
    pub(crate) columns: Vec<String>,
    /// What each of them is given.
    pub(crate) cells: Vec<Cell>,
    /// How many parameters the statement has; each stands in the text exactly once.
    pub(crate) parameters: usize,
    /// What is to be returned, as it stands in SQL, one text an expression.
    pub(crate) returning: Option<Vec<String>>,
}

/// What a column is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A bare parameter, the first is 0.
    Parameter(usize),
    /// A literal, as it stands in SQL.
    Constant(String),
    /// The word DEFAULT.
    Default,
}
