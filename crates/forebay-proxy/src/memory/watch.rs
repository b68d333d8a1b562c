//! Watch: what the transaction that is under way has done to rows.
//!
//! Promises: one that began while nothing was remembered is taken for one that may have done anything.

use super::does::Does;

/// What the transaction that is under way has done so far.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) does: Does,
    /// It is watched since it began.
    pub(crate) is_whole: bool,
}
