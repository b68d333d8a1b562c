//! Tiers: where the cache keeps values below its memory, so that another process or the next start finds them.
//!
//! Promises, of all tiers together (`Tiers`):
//! - A tier never fails a reader. One that errs, hangs past its timeout, panics, miscounts or is known to be down is skipped
//!   and counted; what it answered in part is not used.
//! - What was invalidated, replaced or cleared is not read again from any tier, from the moment the call returns: not while the
//!   deletion waits for a tier that is down, not by a read that began before, not by a lower tier's value carried up meanwhile.
//! - What carries a tag that was invalidated is not read either; a tier that does not keep tags is cleared instead.
//! - A deletion is owed until the tier acknowledged it, however often that takes. A fetched value is offered once, and dropped
//!   where the tier fails.
//! - Of several changes of a key the latest wins; at most one batch is in flight to a tier, so they arrive in order.
//! - Bounded: changes per tier, keys per batch, time per call. Where more deletions are owed than the bound, the tier is cleared
//!   instead, and what was fetched before that moment is never read from it again.
//! - A value's age goes with it. One from the future is no value: a clock is wrong, and nobody knows how old it is.
//!
//! Promises, of each tier here: bytes that are truncated, altered, foreign, of another key or of another version are a miss and
//! counted, never a panic and never a wrong value.
//!
//! Does not know: sources, flights, which values are fresh. A tier that is shared is changed at once for all; of what other processes change
//! the tiers that are not shared are told.
//!
//! How it is built: `tiers` asks tier after tier, each behind a `breaker`, and puts changes into each tier's `queue`, which a task
//! (`drain`) empties; what both need is `shared`. `envelope` and `codec` make bytes of values, `key` of keys, for the tiers that need bytes: `redis`, `sqlite`.

mod breaker;
mod drain;
mod error;
mod guarded;
mod queue;
mod settings;
mod shared;
mod stats;
mod stripes;
mod tiers;

// The features that only say how values are written are of use to tiers, which are features of their own: alone they are dead code.
#[cfg(feature = "tier-codec")]
mod codec;
#[cfg(feature = "tier-codec")]
#[cfg_attr(not(any(feature = "redis", feature = "tier-sqlite")), allow(dead_code))]
mod envelope;
#[cfg(feature = "tier-codec")]
#[cfg_attr(not(any(feature = "redis", feature = "tier-sqlite")), allow(dead_code))]
mod form;
#[cfg(feature = "tier-codec")]
#[cfg_attr(not(any(feature = "redis", feature = "tier-sqlite")), allow(dead_code))]
mod key;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "tier-sqlite")]
pub mod sqlite;

#[cfg(all(test, not(forebay_loom)))]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::details::Details;

pub use error::{OpenError, TierError};
pub(crate) use guarded::guarded;
#[cfg(feature = "redis")]
pub(crate) use key::check_namespace;
pub use settings::TierSettings;
pub use stats::{BreakerState, LATENCY_BOUNDS, Latency, TierStats};
pub(crate) use tiers::{Before, By, Found, Prepared, Tiers, Whose};

#[cfg(feature = "tier-codec")]
pub use codec::{Codec, CodecError, Json, Postcard};
#[cfg(feature = "tier-codec")]
pub use envelope::Compression;
#[cfg(feature = "tier-codec")]
pub use form::Form;
#[cfg(feature = "tier-codec")]
pub use key::KeyForm;

/// What a tier keeps of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept<V> {
    /// The value; `None` when the source has none, which is worth keeping too.
    pub value: Option<V>,
    /// When it was fetched from the source, by the wall clock. It goes with the value from tier to tier; tiers that store it
    /// outside this process may cut it to milliseconds.
    pub fetched_at: SystemTime,
    /// What was said of it.
    pub details: Option<Arc<Details>>,
}

impl<V> Kept<V> {
    /// A value of which nothing else is known.
    pub fn new(value: Option<V>, fetched_at: SystemTime) -> Self {
        Self {
            value,
            fetched_at,
            details: None,
        }
    }
}

/// What a tier is to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Put<K, V> {
    /// For this key.
    pub key: K,
    /// This.
    pub kept: Kept<V>,
    /// For so long from now; afterwards the tier may drop it. Zero is not kept at all.
    pub keep_for: Duration,
    /// The tier's [`moment`](Tier::moment) before it was fetched: what its tags are compared with.
    pub since: u64,
    /// If there is one, it is kept only while that lease is held, and ends it. Without one it is kept whoever fetches the key.
    pub lease: Option<u64>,
}

impl<K, V> Put<K, V> {
    /// A value without tags, whoever fetches the key.
    pub fn new(key: K, kept: Kept<V>, keep_for: Duration) -> Self {
        Self {
            key,
            kept,
            keep_for,
            since: 0,
            lease: None,
        }
    }
}

/// What became of the wish to be the one who fetches a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It is granted, by this number, which [`Put::lease`] takes.
    Granted(u64),
    /// Somebody else has it.
    Held,
    /// A value is there: there is nothing to fetch.
    Kept,
}

/// When to grant a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// If nobody has it and no value is there.
    IfNothingIsKept,
    /// If nobody has it: the value that is there is of no use.
    IfNobodyHasIt,
    /// In any case; it is taken away from whoever has it.
    Anyway,
}

/// What a tier can do beyond keeping values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// It keeps tags: [`Tier::moment`] and [`Tier::invalidate_tags`]. One that does not is cleared where a tag is invalidated.
    pub tags: bool,
    /// It gives leases: [`Tier::lease_many`].
    pub leases: bool,
    /// Other processes read and change it too, and each sees to its own changes. One that is not shared is told of what others change.
    pub shared: bool,
}

/// A place to keep values in.
///
/// # What the cache sees to
/// At most one of [`put_many`](Self::put_many), [`delete_many`](Self::delete_many), [`clear`](Self::clear) runs at a time,
/// with at most 512 keys, all different. Reads run at any time. A future that takes too long is dropped.
///
/// # What a tier sees to
/// - A value is stored with its `fetched_at` and read back with it.
/// - An acknowledged deletion is seen by every later read, and survives the end of this process.
/// - A change whose future was dropped, or that failed, may have happened or not; but it does not happen after a later change
///   that was acknowledged.
/// - A value that cannot be kept (too large) is an acknowledged put that leaves nothing: the value before it must be gone.
/// - After its backend was away it works again by itself.
/// - Its futures do not block the thread.
pub trait Tier<K, V>: Send + Sync + 'static {
    /// What to call it in counters and logs.
    fn name(&self) -> &str;

    /// What it keeps of these keys: one answer per key, in their order.
    ///
    /// # Errors
    /// When the backend cannot be asked. A single value that cannot be read is a `None`, and counted.
    fn get_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<Vec<Option<Kept<V>>>, TierError>>;

    /// Keeps these, each instead of what was kept of its key.
    ///
    /// # Errors
    /// When at least one may not have been kept; what was kept of their keys before may then still be there.
    fn put_many<'a>(&'a self, entries: &'a [Put<K, V>]) -> BoxFuture<'a, Result<(), TierError>>;

    /// Forgets what it keeps of these keys.
    ///
    /// # Errors
    /// When at least one may still be there.
    fn delete_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Result<(), TierError>>;

    /// Forgets everything. Where it keeps tags this invalidates all of them: what carries one and was fetched at a moment before the present one is
    /// not read again, also if it is put later.
    ///
    /// # Errors
    /// When something may still be there.
    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>>;

    /// What else it can do. Default: nothing.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// The latest moment, by a count of its own, that it knows of at once: not later than the present one.
    fn moment(&self) -> u64 {
        0
    }

    /// What carries one of these tags and was fetched at a moment before the present one is not read again, also if it is put later.
    ///
    /// # Errors
    /// When something may still be read.
    fn invalidate_tags<'a>(&'a self, tags: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), TierError>> {
        let _ = tags;
        self.clear()
    }

    /// Who is to fetch these keys, for all that share the tier: one answer a key. A lease ends with the put that has its number, with the
    /// deletion of the key, or after `hold_for`.
    ///
    /// # Errors
    /// When the backend cannot be asked.
    fn lease_many<'a>(
        &'a self,
        keys: &'a [K],
        hold_for: Duration,
        grant: Grant,
    ) -> BoxFuture<'a, Result<Vec<Lease>, TierError>> {
        let _ = (hold_for, grant);
        let granted = vec![Lease::Granted(0); keys.len()];
        Box::pin(std::future::ready(Ok(granted)))
    }

    /// Nothing will come of this lease of the key's: another may have one. Default: its time ends it.
    ///
    /// # Errors
    /// When it may still be held.
    fn end_lease<'a>(&'a self, key: &'a K, lease: u64) -> BoxFuture<'a, Result<(), TierError>> {
        let _ = (key, lease);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Stored values met so far that could not be read: truncated, altered, foreign. Each was a miss.
    fn undecodable(&self) -> u64 {
        0
    }
}
