//! What is known of a value beside the value: said by whoever gave it, and kept with it wherever it goes.
//!
//! Promises: plain data. Does not know entries, sources or tiers.

use std::sync::Arc;
use std::time::Duration;

/// What the source says of a value beside the value; all of it may be left out. See [`Fetched`](super::Fetched) for how to say it.
///
/// ```
/// use std::time::Duration;
/// use forebay::cache::Fetched;
///
/// let said = Fetched::of(12).fresh_for(Duration::from_secs(5)).tag("prices").details;
/// assert_eq!((said.fresh_for, &*said.tags[0]), (Some(Duration::from_secs(5)), "prices"));
/// assert_eq!((said.weight, said.validator), (None, None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// How long it is fresh, instead of [`CacheBuilder::fresh_for`](super::CacheBuilder::fresh_for).
    pub fresh_for: Option<Duration>,
    /// How long it is stale after that, instead of [`CacheBuilder::stale_for`](super::CacheBuilder::stale_for).
    pub stale_for: Option<Duration>,
    /// What it weighs, instead of what [`CacheBuilder::weigher`](super::CacheBuilder::weigher) says.
    pub weight: Option<u32>,
    /// What it is about, for [`Cache::invalidate_tag`](super::Cache::invalidate_tag).
    pub tags: Vec<Arc<str>>,
    /// By what the source tells whether the value has changed: an entity tag, a version, the time of the last change.
    pub validator: Option<Arc<str>>,
}

impl Details {
    /// These, where there is something in them.
    pub(super) fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}
