//! What the handles to the tiers and the tasks that empty their queues share.
//!
//! One lock over all queues and stamps, held for a few map operations: a change is seen by all tiers at one moment, so a read
//! that compares before and after misses none. No tier is called, and no value dropped, under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Tier;
use super::breaker::Breaker;
use super::queue::Queue;
use super::settings::TierSettings;
use super::stats::Counters;
use super::stripes::Stripes;

/// Finds the runtime that changes are sent on, when there is something to send.
pub(crate) type FindRuntime = Arc<dyn Fn() -> Option<Handle> + Send + Sync>;

/// What an entry weighs.
pub(crate) type Weigher<K, V> = Arc<dyn Fn(&K, Option<&V>) -> u32 + Send + Sync>;

/// By what values are weighed that wait for a tier, and what they may weigh together.
pub(crate) struct Scales<K, V> {
    pub(crate) weigher: Weigher<K, V>,
    pub(crate) max: u64,
}

pub(super) struct Shared<K, V> {
    pub(super) levels: Vec<Level<K, V>>,
    pub(super) state: Mutex<State<K, V>>,
    pub(super) settings: TierSettings,
    /// None: their number is bound enough.
    pub(super) scales: Option<Scales<K, V>>,
    /// Told whenever something was acknowledged or given up.
    pub(super) settling: Notify,
    /// No handle is left.
    pub(super) is_closed: AtomicBool,
    /// Something waits, and nobody sends it: there was no runtime, or it has ended.
    pub(super) is_stranded: AtomicBool,
    pub(super) runtime: FindRuntime,
}

/// One tier.
pub(super) struct Level<K, V> {
    pub(super) tier: Arc<dyn Tier<K, V>>,
    pub(super) counters: Counters,
    /// Ends the pause of the task that empties its queue.
    pub(super) wake: Notify,
    /// What waits for it weighs so much.
    pub(super) waiting: Arc<AtomicU64>,
    pub(super) breaker: Breaker,
}

pub(super) struct State<K, V> {
    /// One a level.
    pub(super) queues: Vec<Queue<K, V>>,
    /// When each was last cleared for a tag that it does not keep, by the moments of `stripes`.
    pub(super) cleared_for_tag: Vec<u64>,
    pub(super) stripes: Stripes,
}
