//! What a statement's own caller is told when it has succeeded.

use super::Value;

/// The outcome of one statement: its own, never a neighbour's or the batch's.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Rows that this statement inserted, updated or deleted, as the database counted them; rows that triggers or
    /// foreign-key actions changed are not counted. 0 for statements that change no rows.
    pub rows_affected: u64,
    /// The id of the last row that this statement inserted; none if it inserted none, or the table has no such ids.
    pub last_insert_id: Option<i64>,
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// The rows of RETURNING, in the database's order.
    pub rows: Vec<Vec<Value>>,
}
