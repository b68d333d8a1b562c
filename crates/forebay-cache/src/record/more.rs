//! What few entries have beside a value and its time.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::super::details::Details;
use super::super::tags::Tagged;

/// What else there is to an entry.
#[derive(Default)]
pub(in super::super) struct More {
    /// What was said of it but for its tags.
    pub(in super::super) details: Option<Arc<Details>>,
    /// Its tags.
    pub(in super::super) tagged: Option<Tagged>,
    /// When it was learnt (ms), where that is not when it was fetched: from a tier.
    pub(in super::super) learnt_ms: Option<NonZeroU64>,
}
