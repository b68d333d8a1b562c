//! What a statement's own caller is told when it has succeeded.

use super::Value;

/// The outcome of one statement: its own, never a neighbour's or the batch's.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Rows that this statement inserted, updated or deleted, as the database counted them; rows that triggers or
    /// foreign-key actions changed are not counted. 0 for statements that change no rows.
    pub rows_affected: u64,
    /// The id that the database tells of this statement's INSERT: SQLite's is the last row's, MariaDB's and MySQL's the first
    /// row's that it numbered, PostgreSQL has none (use RETURNING). None if no row was inserted, or it has no such id.
    pub last_insert_id: Option<i64>,
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// The rows of RETURNING, in the database's order.
    pub rows: Vec<Vec<Value>>,
}

impl Outcome {
    /// Of a statement that returned no rows.
    pub fn counted(rows_affected: u64, last_insert_id: Option<i64>) -> Self {
        Self {
            rows_affected,
            last_insert_id,
            ..Self::default()
        }
    }

    /// The same, with rows.
    #[must_use]
    pub fn returning(self, columns: Vec<String>, rows: Vec<Vec<Value>>) -> Self {
        Self { columns, rows, ..self }
    }
}
