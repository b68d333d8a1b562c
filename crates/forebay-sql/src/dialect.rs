//! Dialect: whose SQL a text is.

/// Whose grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: `$1`, `"name"`.
    Postgres,
    /// MariaDB and MySQL: `?`, `` `name` ``.
    MySql,
}

impl Dialect {
    pub(super) fn is_mysql(self) -> bool {
        match self {
            Self::Postgres => false,
            Self::MySql => true,
        }
    }
}
