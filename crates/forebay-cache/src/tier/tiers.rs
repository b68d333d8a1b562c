//! All tiers below memory, in order, with what guards them; the contract is the parent module's.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::breaker::Breaker;
use super::drain;
use super::guarded::guarded;
use super::queue::{Held, Offer, Queue, Taken};
use super::settings::{CENTURY, TierSettings};
use super::shared::{FindRuntime, Level, Scales, Shared, State};
use super::stats::{Counters, TierStats, add};
use super::stripes::Stripes;
use super::{Grant, Kept, Lease, Tier, TierError};
use forebay_batch::load::Key;
use forebay_batch::panics::{or_message, quietly};

/// So many leases are asked for at a time.
const LEASES_A_REQUEST: usize = 512;
/// So many keys are read at a time.
const KEYS_A_READ: usize = 1_024;

/// A handle to all tiers; the last one dropped gives up what cannot be delivered at once.
pub(crate) struct Tiers<K, V> {
    handle: Arc<Handles<K, V>>,
}

struct Handles<K, V> {
    shared: Arc<Shared<K, V>>,
}

/// A value on its way to every tier.
pub(crate) struct Prepared<K, V> {
    key: K,
    /// Until when it is worth keeping.
    until: Instant,
    /// One for each tier, the lowest first; none for one that is not to have it, or for which too much waits.
    offers: Vec<Option<Offer<V>>>,
}

/// What a tier has of a key.
#[derive(Debug)]
pub(crate) struct Found<V> {
    pub(crate) kept: Kept<V>,
    /// The tier is one that other processes change too: what they have changed is not there any more.
    pub(crate) is_shared: bool,
}

/// What was known of the tiers before a value was fetched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// Each tier's moment.
    moments: Vec<u64>,
}

/// Who has made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// This process: all tiers are to hear of it.
    This,
    /// Another one: those that are shared have heard of it.
    Another,
    /// Another one, which may have told nobody's but its own.
    AnotherAlone,
}

/// Whether what a tier has of the key in this place will do, so that no tier below it is asked; and whether that tier is shared.
pub(crate) type IsEnough<'a, V> = dyn Fn(usize, &Kept<V>, bool) -> bool + Send + Sync + 'a;

impl<K: 'static, V: 'static> Level<K, V> {
    fn is_shared(&self) -> bool {
        self.tier.abilities().shared
    }

    fn concerns(&self, by: By) -> bool {
        by != By::Another || !self.is_shared()
    }
}

/// What became of the wish to fetch a key for all who share a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It is this process's to fetch; with a lease, if there is one to be had.
    Own(Option<u64>),
    /// Somebody else fetches it.
    Others,
    /// A value has come, or one is there that was not good enough.
    Nobodys,
}

/// Values that will not be sent after all. Theirs is user code: to be dropped where no lock is held.
#[must_use = "it is to be dropped where no lock is held"]
pub(crate) struct Replaced<V> {
    _offers: Vec<Offer<V>>,
}

/// What became of a fetched value.
#[must_use = "it is to be dropped where no lock is held"]
pub(crate) struct Filled<V> {
    _replaced: Replaced<V>,
    /// A put is on its way that ends the lease; else nothing is.
    pub(crate) ends_lease: bool,
}

fn one_of<V>(offers: &mut Vec<Option<Offer<V>>>) -> Option<Offer<V>> {
    offers.pop().expect("one for each tier was made")
}

impl<K, V> Clone for Tiers<K, V> {
    fn clone(&self) -> Self {
        let handle = Arc::clone(&self.handle);
        Self { handle }
    }
}

impl<K, V> Drop for Handles<K, V> {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, SeqCst);
        for level in &self.shared.levels {
            level.wake.notify_one();
        }
    }
}

impl<K: Key, V: Clone + Send + Sync + 'static> Tiers<K, V> {
    /// The tiers, the uppermost first.
    pub(crate) fn new(
        tiers: Vec<Arc<dyn Tier<K, V>>>,
        settings: TierSettings,
        scales: Option<Scales<K, V>>,
        runtime: FindRuntime,
    ) -> Self {
        let settings = settings.within_reason();
        let queue = |tier: &Arc<dyn Tier<K, V>>| {
            Queue::new(
                settings.max_owed,
                tier.abilities().shared,
                settings.retry_after,
                Arc::clone(&settings.wall_clock),
            )
        };
        let queues: Vec<_> = tiers.iter().map(queue).collect();
        let levels = tiers.into_iter().map(|tier| Level {
            tier,
            counters: Counters::default(),
            wake: Notify::new(),
            waiting: Arc::default(),
            breaker: Breaker::new(settings.failures_to_open, settings.pause),
        });
        let shared = Arc::new(Shared {
            levels: levels.collect(),
            state: Mutex::new(State {
                cleared_for_tag: vec![0; queues.len()],
                queues,
                stripes: Stripes::new(),
            }),
            settings,
            scales,
            settling: Notify::new(),
            is_closed: AtomicBool::new(false),
            is_stranded: AtomicBool::new(false),
            runtime,
        });
        let handle = Arc::new(Handles { shared });
        Self { handle }
    }

    /// What is known of the tiers now, for what is fetched from now on.
    pub(crate) fn before(&self) -> Before {
        let moments = self.shared().levels.iter().map(|level| level.tier.moment()).collect();
        Before { moments }
    }

    /// Whether one process fetches for all: if so, for how long it may be the only one.
    pub(crate) fn lease_for(&self) -> Option<Duration> {
        self.leasing().and(self.shared().settings.lease_for)
    }

    /// The tier that gives leases: the lowest that can, if that is asked for.
    fn leasing(&self) -> Option<usize> {
        let shared = self.shared();
        shared.settings.lease_for?;
        shared.levels.iter().rposition(|level| level.tier.abilities().leases)
    }

    /// Whose turn it is to fetch these keys, in their order. Waits until the tier has heard of what was invalidated here, as far as that takes no
    /// longer than a read may. Where the tier cannot tell, everybody fetches for himself.
    ///
    /// # Cancel safety
    /// Dropped, a lease may have been granted, which nobody uses until its time is over.
    pub(crate) async fn turns(&self, keys: &[K], grant: Grant) -> Vec<Whose> {
        let mut turns = Vec::with_capacity(keys.len());
        // A script a key: all at once could take the server longer than a read may.
        for some in keys.chunks(LEASES_A_REQUEST) {
            let Some(granted) = self.turns_at_once(some, grant).await else {
                break;
            };
            turns.extend(granted);
        }
        turns.resize(keys.len(), Whose::Own(None));
        turns
    }

    /// The same of some. `None`: the tier cannot tell.
    async fn turns_at_once(&self, keys: &[K], grant: Grant) -> Option<Vec<Whose>> {
        let shared = self.shared();
        let (at, hold_for) = (self.leasing()?, shared.settings.lease_for?);
        let level = &shared.levels[at];
        let limit = shared.settings.timeout;
        let leave = level.breaker.admit()?;
        let heard = tokio::time::timeout(limit, shared.heard(at, keys));
        if !heard.await.unwrap_or_default() {
            return None;
        }
        let begun = Instant::now();
        let leases = guarded(limit, async || level.tier.lease_many(keys, hold_for, grant).await).await;
        level.counters.read_latency.add(begun.elapsed());
        match leases {
            Ok(leases) if leases.len() == keys.len() => {
                leave.succeeded();
                let turn = |lease| match lease {
                    Lease::Granted(number) => Whose::Own(Some(number)),
                    Lease::Held => Whose::Others,
                    Lease::Kept => Whose::Nobodys,
                };
                Some(leases.into_iter().map(turn).collect())
            }
            outcome => {
                leave.failed();
                match outcome.err() {
                    Some(TierError::TimedOut { .. }) => level.counters.timeouts.fetch_add(1, Relaxed),
                    _ => level.counters.errors.fetch_add(1, Relaxed),
                };
                None
            }
        }
    }

    /// Nothing will come of this lease.
    pub(crate) async fn end_lease(&self, key: K, lease: u64) {
        let shared = self.shared();
        let Some(at) = self.leasing() else { return };
        let level = &shared.levels[at];
        let ended = guarded(shared.settings.change_timeout, async || {
            level.tier.end_lease(&key, lease).await
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(tier = level.tier.name(), %error, "a lease was not ended before its time");
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.shared().levels.is_empty()
    }

    /// What the tiers have of these keys, in their order: the uppermost tier that has something that `is_enough`, by the key's place, or else the newest of
    /// all. Whatever is wrong with a tier costs at most the timeout, and the keys it alone had.
    ///
    /// # Cancel safety
    /// Dropped, it has read and nothing else.
    pub(crate) async fn get_many(&self, keys: &[K], is_enough: &IsEnough<'_, V>) -> Vec<Option<Found<V>>> {
        let shared = self.shared();
        // By key: what was found, and in which tier.
        let mut found: Vec<Option<(usize, Kept<V>)>> = keys.iter().map(|_| None).collect();
        if keys.is_empty() || self.is_empty() {
            return keys.iter().map(|_| None).collect();
        }
        let begun = shared.state.lock().stripes.now();
        let before = self.before();
        let mut wanted: Vec<usize> = (0..keys.len()).collect();
        for (at, level) in shared.levels.iter().enumerate() {
            if wanted.is_empty() {
                break;
            }
            for (place, kept) in shared.read(at, level, keys, wanted.clone()).await {
                // One above that will not do is better where it is newer.
                if found[place]
                    .as_ref()
                    .is_none_or(|(_, above)| above.fetched_at <= kept.fetched_at)
                {
                    found[place] = Some((at, kept));
                }
            }
            if at + 1 < shared.levels.len() {
                let is_shared = level.is_shared();
                wanted.retain(|place| match &found[*place] {
                    Some((from, kept)) if *from == at => !is_enough(*place, kept, is_shared),
                    _ => true,
                });
            }
        }
        self.take_what_still_holds(keys, found, begun, &before)
    }

    /// Throws away what was changed meanwhile, and offers what a lower tier had to the ones above it. What a tier had that others' changes do not
    /// reach at once may be older than they are: into one that is shared it is not carried.
    fn take_what_still_holds(
        &self,
        keys: &[K],
        found: Vec<Option<(usize, Kept<V>)>>,
        begun: u64,
        before: &Before,
    ) -> Vec<Option<Found<V>>> {
        let shared = self.shared();
        let leasing = self.leasing();
        let (now, wall) = (Instant::now(), (shared.settings.wall_clock)());
        // Clones of values are made outside the lock, and dropped there.
        let mut upwards: Vec<Vec<(usize, Offer<V>)>> = shared.levels.iter().map(|_| Vec::new()).collect();
        for (place, entry) in found.iter().enumerate() {
            let Some((from, kept)) = entry else { continue };
            let keep_for = shared.settings.keep_for_from_here(kept, wall);
            if keep_for.is_zero() {
                continue;
            }
            let from_all = shared.levels[*from].is_shared();
            for (at, offers) in upwards[..*from]
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| Some(*at) != leasing && (from_all || !shared.levels[*at].is_shared()))
            {
                let until = now + keep_for;
                let offer = shared.offer(at, &keys[place], || kept.clone(), until, before.moments[at]);
                offers.extend(offer.map(|offer| (place, offer)));
            }
        }
        let mut left = Vec::new();
        let mut to_drain = Vec::new();
        let mut state = shared.state.lock();
        let State {
            queues,
            stripes,
            cleared_for_tag,
        } = &mut *state;
        let is_as_it_was = |at: usize| cleared_for_tag[at] <= begun;
        let still_holds = |(key, entry): (&K, &Option<(usize, Kept<V>)>)| {
            let is_there = entry.as_ref().is_none_or(|(at, _)| is_as_it_was(*at));
            is_there && !stripes.is_changed_since(key, begun)
        };
        let holds: Vec<bool> = keys.iter().zip(&found).map(still_holds).collect();
        for (at, offers) in upwards.into_iter().enumerate() {
            for (place, offer) in offers {
                let key = &keys[place];
                if !holds[place] || !is_as_it_was(at) || queues[at].has_change(key) {
                    left.push(offer);
                    continue;
                }
                match queues[at].offer(key.clone(), offer, now) {
                    Taken::Waits(before) => left.extend(before),
                    Taken::Dropped(offer) => {
                        add(&shared.levels[at].counters.dropped, 1);
                        left.push(offer);
                    }
                    Taken::Overflowed(_) => unreachable!("an offer is dropped rather"),
                }
            }
            to_drain.extend(begin_draining(&mut queues[at], at));
        }
        drop(state);
        self.drain(to_drain);
        drop(left);
        let found = found.into_iter().zip(holds);
        found
            .map(|(entry, holds)| {
                let (at, kept) = entry?;
                let level = &shared.levels[at];
                let counters = &level.counters;
                add(if holds { &counters.hits } else { &counters.misses }, 1);
                let is_shared = level.is_shared();
                holds.then_some(Found { kept, is_shared })
            })
            .collect()
    }

    /// What [`fill`](Self::fill) and [`insert`](Self::insert) take: the value, once for each tier. Runs the user's `Clone`.
    pub(crate) fn prepare(&self, key: K, kept: Kept<V>, keep_for: Duration, before: &Before) -> Prepared<K, V> {
        let until = Instant::now() + keep_for.min(CENTURY);
        let kept = std::iter::repeat_n(kept, self.shared().levels.len());
        let moments = before.moments.iter().enumerate().rev();
        let offer =
            |(kept, (at, since)): (Kept<V>, (usize, &u64))| self.shared().offer(at, &key, || kept, until, *since);
        let offers = kept.zip(moments).map(offer).collect();
        Prepared { key, until, offers }
    }

    /// A fetched value: offered to every tier. To one that gives leases only with one, which nobody has taken away since: else it may be older
    /// than what others have written there.
    /// Where it `replaces` what tiers may have, and is not worth keeping, that goes, as far as the tier takes deletions: it is older.
    /// `still_holds` is asked when nothing can be invalidated meanwhile: a tier that keeps no tags would not forget it.
    pub(crate) fn fill(
        &self,
        prepared: Prepared<K, V>,
        lease: Option<u64>,
        replaces: bool,
        still_holds: impl Fn() -> bool,
    ) -> Filled<V> {
        let Prepared { key, until, mut offers } = prepared;
        if let Some(at) = self.leasing() {
            let place = offers.len() - 1 - at;
            offers[place] = offers[place]
                .take()
                .filter(|_| lease.is_some())
                .map(|offer| Offer { lease, ..offer });
        }
        let now = Instant::now();
        let mut ends_lease = false;
        let replaced = self.change(key, |queue, key| match one_of(&mut offers) {
            Some(offer) if !still_holds() => Taken::Waits(Some(offer)),
            Some(mut offer) => {
                offer.replaces = replaces || queue.has_change(&key);
                let is_put = until > now;
                // By the time it came there it would be nothing.
                if !is_put && !offer.replaces {
                    return Taken::Waits(Some(offer));
                }
                let has_lease = offer.lease.is_some();
                let taken = queue.offer(key, offer, now);
                ends_lease |= is_put && has_lease && matches!(taken, Taken::Waits(_));
                taken
            }
            None => Taken::Waits(None),
        });
        Filled {
            _replaced: replaced,
            ends_lease,
        }
    }

    /// The application's own value: no older one is read from now on.
    pub(crate) fn insert(&self, prepared: Prepared<K, V>) -> Replaced<V> {
        let Prepared { key, mut offers, .. } = prepared;
        let (now, wall) = (Instant::now(), (self.shared().settings.wall_clock)());
        let mut forgone = Vec::new();
        let mut replaced = self.change(key, |queue, key| {
            let mut offer = one_of(&mut offers);
            if queue.forgoes_puts(now) {
                forgone.extend(offer.take());
            }
            queue.owe(key, offer, wall)
        });
        replaced._offers.extend(forgone);
        replaced
    }

    /// The key's value is not read from now on.
    pub(crate) fn invalidate(&self, key: K, by: By) -> Replaced<V> {
        let wall = (self.shared().settings.wall_clock)();
        self.change_where(key, by, |queue, key| queue.owe(key, None, wall))
    }

    /// What carries the tag is not read from now on: where tiers keep none, nothing is.
    pub(crate) fn invalidate_tag(&self, tag: &Arc<str>, by: By) -> Replaced<V> {
        let shared = self.shared();
        let wall = (shared.settings.wall_clock)();
        let (mut dropped, mut to_drain) = (Vec::new(), Vec::new());
        let mut state = shared.state.lock();
        let State {
            queues,
            stripes,
            cleared_for_tag,
        } = &mut *state;
        for (at, queue) in queues.iter_mut().enumerate() {
            let keeps_tags = shared.levels[at].tier.abilities().tags;
            if !shared.levels[at].concerns(by) {
                // One that keeps none was cleared by who invalidated it. One that does knows which values come late.
                if !keeps_tags {
                    dropped.extend(queue.owe_puts(wall));
                    to_drain.extend(begin_draining(queue, at));
                }
                continue;
            }
            if keeps_tags {
                dropped.extend(queue.owe_tag(Arc::clone(tag), wall));
            } else {
                // What the others have is as it was: it carries its tags.
                cleared_for_tag[at] = stripes.next();
                dropped.extend(queue.owe_clear(wall));
            }
            to_drain.extend(begin_draining(queue, at));
        }
        drop(state);
        self.drain(to_drain);
        Replaced { _offers: dropped }
    }

    /// Nothing is read from now on that is there now.
    pub(crate) fn clear(&self, by: By) -> Replaced<V> {
        let shared = self.shared();
        let wall = (shared.settings.wall_clock)();
        let (mut dropped, mut to_drain) = (Vec::new(), Vec::new());
        let mut state = shared.state.lock();
        let State { queues, stripes, .. } = &mut *state;
        stripes.all_changed();
        for (at, queue) in queues.iter_mut().enumerate() {
            // What waits for a tier that others have cleared was fetched before they did.
            dropped.extend(match shared.levels[at].concerns(by) {
                true => queue.owe_clear(wall),
                false => queue.owe_puts(wall),
            });
            to_drain.extend(begin_draining(queue, at));
        }
        drop(state);
        self.drain(to_drain);
        Replaced { _offers: dropped }
    }

    /// Others' changes may not have been heard: what waits for the tiers that they change too, or is out, may be older than those are.
    pub(crate) fn missed_changes(&self) -> Replaced<V> {
        let shared = self.shared();
        let wall = (shared.settings.wall_clock)();
        let (mut dropped, mut to_drain) = (Vec::new(), Vec::new());
        let mut state = shared.state.lock();
        for (at, queue) in state.queues.iter_mut().enumerate() {
            if shared.levels[at].is_shared() {
                dropped.extend(queue.owe_puts(wall));
                to_drain.extend(begin_draining(queue, at));
            }
        }
        drop(state);
        self.drain(to_drain);
        Replaced { _offers: dropped }
    }

    /// Somebody has a runtime: what could not be sent is.
    pub(crate) fn has_runtime(&self, runtime: impl FnOnce() -> Option<Handle>) {
        let shared = self.shared();
        if shared.is_stranded.load(SeqCst)
            && let Some(runtime) = runtime()
            && shared.is_stranded.swap(false, SeqCst)
        {
            shared.drain_all(Some(runtime));
        }
    }

    /// Completes when all that was asked before this call was acknowledged by every tier or, as fetched values may be, given up.
    /// For as long as a tier is down, something owed to it is neither. It is a handle too: as long as it is kept, nothing owed
    /// is given up.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + use<K, V> {
        let handle = Arc::clone(&self.handle);
        let shared = &handle.shared;
        let numbers: Vec<u64> = shared.state.lock().queues.iter().map(Queue::latest).collect();
        // Where no runtime was at hand when it was asked.
        shared.drain_all((shared.runtime)());
        async move {
            let is_settled = |state: &State<K, V>| {
                let mut queues = state.queues.iter().zip(&numbers);
                queues.all(|(queue, number)| queue.is_settled(*number))
            };
            handle.shared.until(is_settled).await;
        }
    }

    /// What can be asked any time to wait, as [`settled`](Self::settled) does, for what was asked before; no handle, and done at once when the last
    /// one is gone. Says whether they were told, as far as is known.
    pub(crate) fn when_settled(&self) -> Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync> {
        let (handle, has_none) = (Arc::downgrade(&self.handle), self.is_empty());
        Box::new(move || match handle.upgrade() {
            None => Box::pin(std::future::ready(has_none)),
            Some(handle) => Box::pin(Self { handle }.settled().map(|()| true)),
        })
    }

    /// Each tier's counters.
    pub(crate) fn stats(&self) -> Vec<TierStats> {
        let shared = self.shared();
        let owed: Vec<usize> = shared.state.lock().queues.iter().map(Queue::owed).collect();
        let levels = shared.levels.iter().zip(owed);
        levels
            .map(|(level, owed)| {
                let mut stats = level.counters.read(level.tier.name());
                stats.owed = owed;
                stats.undecodable += level.tier.undecodable();
                stats.breaker = level.breaker.state();
                stats
            })
            .collect()
    }

    /// What must hold between calls.
    #[cfg(all(test, not(forebay_loom)))]
    pub(super) fn validate(&self) {
        self.shared().state.lock().queues.iter().for_each(Queue::validate);
    }

    fn shared(&self) -> &Arc<Shared<K, V>> {
        &self.handle.shared
    }

    /// Puts a change of the key into every tier's queue, at one moment.
    fn change(&self, key: K, change: impl FnMut(&mut Queue<K, V>, K) -> Taken<V>) -> Replaced<V> {
        self.change_where(key, By::This, change)
    }

    fn change_where(&self, key: K, by: By, mut change: impl FnMut(&mut Queue<K, V>, K) -> Taken<V>) -> Replaced<V> {
        let shared = self.shared();
        let mut dropped = Vec::new();
        if self.is_empty() {
            return Replaced { _offers: dropped };
        }
        let mut to_drain = Vec::new();
        let mut state = shared.state.lock();
        let State { queues, stripes, .. } = &mut *state;
        // A key's code may panic: what is in a queue by then is sent all the same.
        let changed = catch_unwind(AssertUnwindSafe(|| {
            stripes.changed(&key);
            let keys = std::iter::repeat_n(key, queues.len());
            for (at, (queue, key)) in queues.iter_mut().zip(keys).enumerate() {
                // What waits for a tier that others have changed was fetched before they did.
                if !shared.levels[at].concerns(by) && !queue.has_change(&key) {
                    continue;
                }
                let counters = &shared.levels[at].counters;
                match change(queue, key) {
                    Taken::Waits(before) => dropped.extend(before),
                    Taken::Dropped(offer) => {
                        add(&counters.dropped, 1);
                        dropped.push(offer);
                    }
                    Taken::Overflowed(offers) => {
                        add(&counters.overflows, 1);
                        dropped.extend(offers);
                        stripes.all_changed();
                    }
                }
            }
        }));
        for (at, queue) in queues.iter_mut().enumerate() {
            to_drain.extend(begin_draining(queue, at));
        }
        drop(state);
        self.drain(to_drain);
        if let Err(panic) = changed {
            quietly(|| drop(dropped));
            resume_unwind(panic);
        }
        Replaced { _offers: dropped }
    }

    fn drain(&self, to_drain: Vec<usize>) {
        self.shared().drain(to_drain);
    }
}

/// The queue's place, if a task must be started to empty it.
fn begin_draining<K: Key, V>(queue: &mut Queue<K, V>, at: usize) -> Option<usize> {
    let must_begin = !queue.is_draining && !queue.is_settled(queue.latest());
    queue.is_draining |= must_begin;
    must_begin.then_some(at)
}

impl TierSettings {
    /// For how long a value that came from a lower tier is kept in the ones above.
    fn keep_for_from_here<V>(&self, kept: &Kept<V>, wall: SystemTime) -> Duration {
        let in_all = match kept.value {
            Some(_) => self.keep_for,
            None => self.keep_missing_for,
        };
        in_all.saturating_sub(wall.duration_since(kept.fetched_at).unwrap_or_default())
    }
}

impl<K: Key, V: Clone + Send + Sync + 'static> Shared<K, V> {
    /// A value that is to wait for the tier at this place; none where as much waits as may, or the user's code panics: its weigher runs here, and its
    /// `Clone`.
    fn offer(
        &self,
        at: usize,
        key: &K,
        kept: impl FnOnce() -> Kept<V>,
        until: Instant,
        since: u64,
    ) -> Option<Offer<V>> {
        let level = &self.levels[at];
        let make = || {
            let kept = kept();
            let (weight, max) = match &self.scales {
                None => (0, u64::MAX),
                Some(scales) => {
                    let said = kept.details.as_ref().and_then(|details| details.weight);
                    let weight = said.unwrap_or_else(|| (scales.weigher)(key, kept.value.as_ref()));
                    (u64::from(weight), scales.max)
                }
            };
            let held = Held::of(&level.waiting, weight, max)?;
            Some(Offer {
                kept,
                until,
                since,
                lease: None,
                replaces: false,
                held,
            })
        };
        let offer = or_message(make).ok().flatten();
        if offer.is_none() {
            add(&level.counters.dropped, 1);
        }
        offer
    }

    /// Waits until that is so. Who waits has sent what nobody else sends.
    async fn until(self: &Arc<Self>, is_so: impl Fn(&State<K, V>) -> bool) {
        let mut runtime = (self.runtime)();
        loop {
            let mut told = std::pin::pin!(self.settling.notified());
            // Before the look, so that what happens after it is heard of.
            told.as_mut().enable();
            if is_so(&self.state.lock()) {
                return;
            }
            // The one that emptied a queue may be gone, with its runtime.
            if runtime.is_some() {
                self.drain_all(runtime.clone());
            }
            let is_left = |queue: &Queue<K, V>| !queue.is_draining && !queue.is_settled(queue.latest());
            if self.state.lock().queues.iter().any(is_left) {
                // And so may the one be that was named for it.
                runtime = Handle::try_current().ok();
            }
            told.await;
            // One that is shutting down drops what is begun at once, and tells so.
            tokio::task::yield_now().await;
        }
    }

    /// Starts the tasks that empty the queues in which something waits, where none does.
    fn drain_all(self: &Arc<Self>, runtime: Option<Handle>) {
        let mut to_drain = Vec::new();
        for (at, queue) in self.state.lock().queues.iter_mut().enumerate() {
            to_drain.extend(begin_draining(queue, at));
        }
        self.drain_in(runtime, to_drain);
    }

    /// Starts the tasks that empty these queues. Not under the lock: a runtime that has shut down drops the task at once.
    fn drain(self: &Arc<Self>, to_drain: Vec<usize>) {
        if !to_drain.is_empty() {
            self.drain_in((self.runtime)(), to_drain);
        }
    }

    fn drain_in(self: &Arc<Self>, runtime: Option<Handle>, to_drain: Vec<usize>) {
        match runtime {
            Some(runtime) => {
                for at in to_drain {
                    drain::begin(self, at, &runtime);
                }
            }
            // Whoever comes next with a runtime takes these along.
            None => {
                let mut state = self.state.lock();
                for at in to_drain {
                    state.queues[at].is_draining = false;
                }
                drop(state);
                // Behind that: who takes note of it begins to empty them.
                self.is_stranded.store(true, SeqCst);
                self.settling.notify_waiters();
            }
        }
    }

    /// Waits until the tier has heard of what was written of these keys. False where it does not hear for now.
    async fn heard(self: &Arc<Self>, at: usize, keys: &[K]) -> bool {
        let has_heard = |state: &State<K, V>| !keys.iter().any(|key| state.queues[at].is_barred(key));
        let is_deaf = |state: &State<K, V>| state.queues[at].is_held_back(Instant::now());
        self.until(|state| has_heard(state) || is_deaf(state)).await;
        has_heard(&self.state.lock())
    }

    /// What one tier has of the wanted keys and may be used, by their places. A tier that answers in time is read to the end, however many keys
    /// there are; what it has not answered by then is not asked for any more.
    async fn read(&self, at: usize, level: &Level<K, V>, keys: &[K], wanted: Vec<usize>) -> Vec<(usize, Kept<V>)> {
        let mut found = Vec::new();
        // All at once could take the tier longer than a read may, and nobody else would be served meanwhile.
        for some in wanted.chunks(KEYS_A_READ) {
            let Some(read) = self.read_at_once(at, level, keys, some.to_vec()).await else {
                break;
            };
            found.extend(read);
        }
        found
    }

    /// The same of so few that a read may take them. None: the tier was not read.
    async fn read_at_once(
        &self,
        at: usize,
        level: &Level<K, V>,
        keys: &[K],
        mut wanted: Vec<usize>,
    ) -> Option<Vec<(usize, Kept<V>)>> {
        let counters = &level.counters;
        add(&counters.gets, wanted.len());
        let all = wanted.len();
        let skew = self.settings.max_clock_skew;
        let (tags_told, watermark_before) = {
            let queue = &self.state.lock().queues[at];
            wanted.retain(|place| !queue.is_barred(&keys[*place]));
            (queue.tags_told(), queue.watermark(skew))
        };
        add(&counters.barred, all - wanted.len());
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Some(Vec::new());
        };
        let Some(leave) = level.breaker.admit() else {
            add(&counters.skipped, 1);
            return None;
        };
        let some: Vec<K>;
        let asked = if wanted.len() == last - first + 1 {
            &keys[*first..=*last]
        } else {
            some = wanted.iter().map(|place| keys[*place].clone()).collect();
            &some
        };
        let begun = Instant::now();
        let answers = guarded(self.settings.timeout, async || {
            let answers = level.tier.get_many(asked).await?;
            let (asked, answered) = (asked.len(), answers.len());
            let is_whole = asked == answered;
            is_whole
                .then_some(answers)
                .ok_or(TierError::Miscounted { asked, answered })
        })
        .await;
        counters.read_latency.add(begun.elapsed());
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                leave.failed();
                match error {
                    TierError::TimedOut { .. } => counters.timeouts.fetch_add(1, Relaxed),
                    _ => counters.errors.fetch_add(1, Relaxed),
                };
                tracing::debug!(tier = level.tier.name(), %error, "the tier was not read");
                return None;
            }
        };
        // What waits for the tier to work again need not wait longer.
        if leave.succeeded() && self.state.lock().queues[at].recovered() {
            level.wake.notify_one();
        }
        let latest = (self.settings.wall_clock)() + skew;
        let (watermark, barred) = {
            // Tags may be owed without end: only those are looked up that were read.
            let queue = &self.state.lock().queues[at];
            let is_barred = |kept: &Kept<V>| {
                let tags = kept.details.as_ref().map_or(&[][..], |details| &details.tags);
                tags.iter().any(|tag| queue.bars_tag(tag, tags_told))
            };
            let barred = answers.iter().map(|kept| kept.as_ref().is_some_and(is_barred));
            // A clear that was owed when the tier was asked may be done by now.
            (
                queue.watermark(skew).max(watermark_before),
                barred.collect::<Vec<bool>>(),
            )
        };
        let is_usable = |kept: &Kept<V>| {
            if kept.fetched_at > latest {
                add(&counters.future, 1);
                return false;
            }
            watermark.is_none_or(|watermark| kept.fetched_at > watermark)
        };
        let usable = |((place, kept), is_barred): ((usize, Option<Kept<V>>), bool)| {
            Some((place, kept.filter(|kept| !is_barred && is_usable(kept))?))
        };
        let asked = wanted.len();
        let found: Vec<_> = wanted.into_iter().zip(answers).zip(barred).filter_map(usable).collect();
        add(&counters.misses, asked - found.len());
        Some(found)
    }
}
