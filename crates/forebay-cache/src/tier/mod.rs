//! Tiers: where the cache keeps values below its memory, so that another process or the next start finds them.
//!
//! Promises, of all tiers together (`Tiers`):
//! - A tier never fails a reader. One that errs, hangs past its timeout, panics, miscounts or is known to be down is skipped
//!   and counted; what it answered in part is not used.
//! - What was invalidated, replaced or cleared is not read again from any tier, from the moment the call returns: not while the
//!   deletion waits for a tier that is down, not by a read that began before, not by a lower tier's value carried up meanwhile.
//! - What only this process keeps is not carried up into a tier that is shared: others' changes may not have reached it.
//! - What carries a tag that was invalidated is not read either; a tier that does not keep tags is cleared instead.
//! - A deletion is owed until the tier acknowledged it, however often that takes. A fetched value is offered once, and dropped
//!   where the tier fails. What is inserted while a shared tier fails is not put there later, behind what others have written: only the deletion of
//!   what was there is owed.
//! - What waits for a shared tier, or is on its way there, when another process has changed its key or cleared all, was fetched before that: it is
//!   deleted there.
//! - Of several changes of a key the latest wins; at most one batch is in flight to a tier, so they arrive in order.
//! - Bounded: changes per tier, keys per batch, time per call. Where more deletions are owed than the bound, the tier is cleared
//!   instead, and what was fetched before that moment is never read from it again. As long as a clear is owed to a tier that nobody else changes, nothing is read
//!   from it.
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
pub(crate) use settings::CENTURY;
pub use settings::TierSettings;
pub(crate) use shared::{Scales, Weigher};
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
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use forebay::cache::tier::Kept;
///
/// let now = SystemTime::now();
/// let (value, none) = (Kept::new(Some(144), now), Kept::<u64>::new(None, now));
/// assert!(value.details.is_none() && none.value.is_none()); // That there is none is kept, too.
/// assert!(value.fetched_at.elapsed()? < Duration::from_secs(60)); // Its age, wherever it comes from.
/// # Ok::<_, std::time::SystemTimeError>(())
/// ```
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
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use forebay::cache::tier::{Kept, Put};
///
/// /// When the tier may drop it; `None`: it need not keep it at all.
/// fn expires_at(put: &Put<u64, u64>) -> Option<SystemTime> {
///     (put.keep_for > Duration::ZERO).then(|| SystemTime::now().checked_add(put.keep_for)).flatten()
/// }
///
/// let kept = Kept::new(Some(144), SystemTime::now());
/// assert!(expires_at(&Put::new(12, kept.clone(), Duration::from_secs(60))).unwrap() > kept.fetched_at);
/// assert_eq!(expires_at(&Put::new(12, kept, Duration::ZERO)), None);
/// ```
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
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use forebay::cache::tier::{Kept, Lease, Put};
///
/// /// What is to be kept of a key that was fetched, by what became of the wish to be the one.
/// fn put(lease: Lease, key: u64, value: u64) -> Option<Put<u64, u64>> {
///     let Lease::Granted(number) = lease else { return None }; // Another brings it, or it is there.
///     let mut put = Put::new(key, Kept::new(Some(value), SystemTime::now()), Duration::from_secs(60));
///     put.lease = Some(number); // If it was taken away meanwhile, this is not kept.
///     Some(put)
/// }
///
/// assert_eq!(put(Lease::Granted(7), 12, 144).unwrap().lease, Some(7));
/// assert_eq!(put(Lease::Held, 12, 144), None);
/// ```
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
///
/// ```
/// use forebay::cache::tier::{Grant, Lease};
///
/// /// What a tier answers, by what it has of the key.
/// fn answer(grant: Grant, is_kept: bool, is_held: bool, next: u64) -> Lease {
///     match grant {
///         Grant::IfNothingIsKept if is_kept => Lease::Kept,
///         Grant::IfNothingIsKept | Grant::IfNobodyHasIt if is_held => Lease::Held,
///         _ => Lease::Granted(next),
///     }
/// }
///
/// assert_eq!(answer(Grant::IfNothingIsKept, true, false, 7), Lease::Kept);
/// assert_eq!(answer(Grant::IfNobodyHasIt, true, false, 7), Lease::Granted(7)); // What is kept is too old.
/// assert_eq!(answer(Grant::Anyway, true, true, 8), Lease::Granted(8)); // Whoever had it is too slow.
/// ```
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
///
/// ```
/// use forebay::cache::tier::Abilities;
///
/// // What a tier answers that other processes read, and that keeps neither tags nor leases.
/// let mut abilities = Abilities::default();
/// abilities.shared = true;
/// assert!(!abilities.tags && !abilities.leases);
/// ```
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
/// ```
/// use std::{collections::HashMap, convert::Infallible, future::ready};
/// use std::sync::{Arc, Mutex};
/// use forebay::cache::{Cache, tier::{Kept, Put, Tier, TierError}};
/// use futures_util::future::BoxFuture;
///
/// /// In this process, for as long as somebody has it.
/// #[derive(Clone, Default)]
/// struct Shelf(Arc<Mutex<HashMap<u64, Kept<u64>>>>);
///
/// impl Tier<u64, u64> for Shelf {
///     fn name(&self) -> &str {
///         "shelf"
///     }
///
///     fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
///         let kept = self.0.lock().unwrap();
///         Box::pin(ready(Ok(keys.iter().map(|key| kept.get(key).cloned()).collect())))
///     }
///
///     fn put_many<'a>(&'a self, entries: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
///         self.0.lock().unwrap().extend(entries.iter().map(|put| (put.key, put.kept.clone())));
///         Box::pin(ready(Ok(())))
///     }
///
///     fn delete_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
///         self.0.lock().unwrap().retain(|key, _| !keys.contains(key));
///         Box::pin(ready(Ok(())))
///     }
///
///     fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
///         self.0.lock().unwrap().clear();
///         Box::pin(ready(Ok(())))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shelf = Shelf::default();
/// let over_the_shelf = || Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) }).tier(shelf.clone()).build();
/// let before = over_the_shelf();
/// before.get(&12).await?;
/// before.settled().await;
///
/// let after = over_the_shelf(); // It begins with an empty memory.
/// assert_eq!(after.get(&12).await?, Some(144));
/// assert_eq!((after.stats().fetches, after.stats().flights_by_tier), (0, 1));
/// after.invalidate(&12).await;
/// assert!(shelf.0.lock().unwrap().is_empty());
/// # Ok(())
/// # }
/// ```
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
