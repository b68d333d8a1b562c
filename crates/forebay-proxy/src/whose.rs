//! Whose: the user and the database that a pool is of.

use std::sync::Arc;

/// Whose connections a pool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whose {
    /// Who he is there.
    pub(crate) user: Arc<str>,
    /// What clients call the database.
    pub(crate) database: Arc<str>,
}
