//! The changes that wait to be sent to one tier: one per key, the latest.
//!
//! Promises:
//! - A change replaces the one before it, and takes over what that one owed. What is owed leaves only by an acknowledgement, or
//!   into a clear, which is owed in turn.
//! - Taken in the order of arrival, what is owed first. At most one batch, or one clear, is out at a time; a clear goes before
//!   the changes that came after it.
//! - While something is owed of a key, waiting or out, the key is barred: not to be read.
//! - A failed put that stood for a deletion becomes that deletion. A failed offer is dropped. While the tier refuses puts (full,
//!   read-only) deletions go on; while it refuses deletions nothing is offered. One that refuses to invalidate tags holds up
//!   nothing else.
//! - Where others change the tier too, a value that cannot be sent at once is not sent later: it may be older than what they have put there by then.
//!   Only the deletion is owed.
//! - Bounded: waiting and out together are at most `max` keys. Over it offers are dropped, oldest first if something owed needs the
//!   place; with no offer left, everything is emptied into one clear and a watermark.
//!
//! - Where a key's own code panics a change may be lost, and which is not known: everything is emptied into one clear then, too.
//! - What waits of values, or is out, is weighed as long as it does ([`Held`]).
//!
//! Does not know tiers or tasks: it is told the time, what became of a batch, and what is to change. Its lock is its owner's; of user
//! code it runs only `Hash`, `Eq` and `Clone` of keys: values that are done with are handed out, to be dropped elsewhere.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::settings::WallClock;
use super::{Kept, Put};
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

/// Keys a batch, or tags.
pub(super) const BATCH_MAX: usize = 512;
/// Batches of tags that are remembered when they have been acknowledged, for the reads that began before.
const TAGS_REMEMBERED: usize = 16;

/// A value, and until when it is worth keeping.
pub(super) struct Offer<V> {
    pub(super) kept: Kept<V>,
    pub(super) until: Instant,
    /// As [`Put::since`] and [`Put::lease`].
    pub(super) since: u64,
    pub(super) lease: Option<u64>,
    /// The tier may have an older one: where this is not worth keeping any more by the time it is sent, that one is deleted in its place, if the tier takes
    /// that.
    pub(super) replaces: bool,
    pub(super) held: Held,
}

/// A value's weight among all that waits for a tier; as long as this is there.
pub(super) struct Held {
    all: Arc<AtomicU64>,
    weight: u64,
}

impl Held {
    /// So much more of at most so much; none where that is more. What is heavier than all waits alone.
    pub(super) fn of(all: &Arc<AtomicU64>, weight: u64, max: u64) -> Option<Self> {
        let held = Self {
            all: Arc::clone(all),
            weight,
        };
        let before = all.fetch_add(weight, Relaxed);
        (before == 0 || before.saturating_add(weight) <= max).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.weight, Relaxed);
    }
}

/// What a tier is to do of a key: keep this, or else forget it.
struct Change<V> {
    put: Option<Offer<V>>,
    /// Whether an older value must be gone.
    owed: bool,
    /// When the oldest change arose that this one stands for; unique, and its place in line.
    since: u64,
}

/// A key that is out.
struct Sent {
    owed: bool,
    /// A value is on its way; else a deletion.
    is_put: bool,
    since: u64,
}

/// When to try again.
struct Backoff {
    after: (Duration, Duration),
    failures: u32,
    until: Option<Instant>,
}

/// See the module.
pub(super) struct Queue<K, V> {
    max: usize,
    /// Whether others change the tier too.
    others_change: bool,
    wall_clock: WallClock,
    changes: HashMap<K, Change<V>>,
    /// Keys of the changes that are owed, by `since`; those that are not are in `offered`.
    owed: BTreeMap<u64, K>,
    offered: BTreeMap<u64, K>,
    out: HashMap<K, Sent>,
    /// The least `since` in `out`.
    out_since: Option<u64>,
    /// Tags whose invalidation is owed, and that is out, with when it arose.
    tags: HashMap<Arc<str>, u64>,
    /// The first of them by that.
    tags_in_line: BTreeMap<u64, Arc<str>>,
    tags_out: HashMap<Arc<str>, u64>,
    /// How many batches of tags were acknowledged, and the last of these.
    tags_told: u64,
    tags_told_last: VecDeque<HashMap<Arc<str>, u64>>,
    /// A clear is owed, since then.
    clear: Option<u64>,
    clear_out: Option<u64>,
    /// What was fetched at this moment or before must not be read from the tier.
    watermark: Option<SystemTime>,
    /// Of deletions and clears.
    deletions: Backoff,
    /// Of tags: a tier that refuses them may take deletions.
    tag_changes: Backoff,
    puts: Backoff,
    /// The number of the latest change.
    latest: u64,
    /// Whether a task empties it.
    pub(super) is_draining: bool,
}

/// What became of a change.
#[must_use]
pub(super) enum Taken<V> {
    /// It waits, in place of the value in here if there was one.
    Waits(Option<Offer<V>>),
    /// It was dropped.
    Dropped(Offer<V>),
    /// There was no room left: all was emptied into a clear.
    Overflowed(Vec<Offer<V>>),
}

/// What to do next.
pub(super) enum Work<K, V> {
    Nothing,
    Wait(Instant),
    Clear,
    Tags(Vec<Arc<str>>),
    Batch(Batch<K, V>),
}

/// To be sent, deletions first.
pub(super) struct Batch<K, V> {
    pub(super) deletes: Vec<K>,
    pub(super) puts: Vec<Put<K, V>>,
    held: Vec<Held>,
}

impl<K: Key, V> Queue<K, V> {
    pub(super) fn new(
        max: usize,
        others_change: bool,
        retry_after: (Duration, Duration),
        wall_clock: WallClock,
    ) -> Self {
        Self {
            max: max.max(1),
            others_change,
            wall_clock,
            changes: HashMap::new(),
            owed: BTreeMap::new(),
            offered: BTreeMap::new(),
            out: HashMap::new(),
            out_since: None,
            tags: HashMap::new(),
            tags_in_line: BTreeMap::new(),
            tags_out: HashMap::new(),
            tags_told: 0,
            tags_told_last: VecDeque::new(),
            clear: None,
            clear_out: None,
            watermark: None,
            deletions: Backoff::new(retry_after),
            tag_changes: Backoff::new(retry_after),
            puts: Backoff::new(retry_after),
            latest: 0,
            is_draining: false,
        }
    }

    /// What a key's code has left undone is a clear.
    fn whole<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        catch_unwind(AssertUnwindSafe(|| change(self))).unwrap_or_else(|panic| {
            let wall = (self.wall_clock)();
            quietly(|| drop(self.owe_clear(wall)));
            resume_unwind(panic)
        })
    }

    /// A value that may be kept.
    pub(super) fn offer(&mut self, key: K, offer: Offer<V>, now: Instant) -> Taken<V> {
        self.whole(|queue| queue.try_offer(key, offer, now))
    }

    fn try_offer(&mut self, key: K, offer: Offer<V>, now: Instant) -> Taken<V> {
        if self.deletions.is_on(now) || self.puts.is_on(now) {
            return Taken::Dropped(offer);
        }
        if let Some(change) = self.changes.get_mut(&key) {
            self.latest += 1;
            return Taken::Waits(change.put.replace(offer));
        }
        if self.len() >= self.max {
            return Taken::Dropped(offer);
        }
        self.latest += 1;
        self.line_up(key, Some(offer), false, self.latest);
        Taken::Waits(None)
    }

    /// Whether nothing is told for now, as the tier has just failed.
    pub(super) fn is_held_back(&self, now: Instant) -> bool {
        self.deletions.is_on(now)
    }

    /// Whether a value would not be sent at once, and others may put a newer one there before it is.
    pub(super) fn forgoes_puts(&self, now: Instant) -> bool {
        self.others_change && (self.deletions.is_on(now) || self.puts.is_on(now))
    }

    /// The key's value must go; in its place comes this, if any.
    pub(super) fn owe(&mut self, key: K, put: Option<Offer<V>>, wall: SystemTime) -> Taken<V> {
        self.whole(|queue| queue.try_owe(key, put, wall))
    }

    fn try_owe(&mut self, key: K, put: Option<Offer<V>>, wall: SystemTime) -> Taken<V> {
        self.latest += 1;
        if let Some(change) = self.changes.get_mut(&key) {
            let before = mem::replace(&mut change.put, put);
            if !change.owed {
                change.owed = true;
                self.offered.remove(&change.since);
                self.owed.insert(change.since, key);
            }
            return Taken::Waits(before);
        }
        let mut before = None;
        if self.len() >= self.max {
            let Some((_, oldest)) = self.offered.pop_first() else {
                let mut dropped = self.owe_clear(wall);
                dropped.extend(put);
                return Taken::Overflowed(dropped);
            };
            before = self.changes.remove(&oldest).and_then(|change| change.put);
        }
        self.line_up(key, put, true, self.latest);
        Taken::Waits(before)
    }

    /// What carries the tag must go.
    pub(super) fn owe_tag(&mut self, tag: Arc<str>, wall: SystemTime) -> Vec<Offer<V>> {
        self.latest += 1;
        if self.tags.len() >= self.max && !self.tags.contains_key(&tag) {
            return self.owe_clear(wall);
        }
        self.line_up_tag(tag, self.latest);
        Vec::new()
    }

    /// Everything must go. Returns the values that need not be kept any more.
    pub(super) fn owe_clear(&mut self, wall: SystemTime) -> Vec<Offer<V>> {
        self.latest += 1;
        let waiting = self.first_waiting().unwrap_or(self.latest);
        self.clear = Some(self.clear.unwrap_or(waiting).min(waiting));
        self.watermark = self.watermark.max(Some(wall));
        self.forget_tags();
        self.empty()
    }

    /// Of every key of which a value waits, or is out, the value must go: what it was fetched before has changed. Returns the values that
    /// need not be kept any more.
    pub(super) fn owe_puts(&mut self, wall: SystemTime) -> Vec<Offer<V>> {
        self.whole(|queue| queue.try_owe_puts(wall))
    }

    fn try_owe_puts(&mut self, wall: SystemTime) -> Vec<Offer<V>> {
        let put_out = self.out.iter().filter(|(_, sent)| sent.is_put);
        let out: Vec<K> = put_out.map(|(key, _)| key.clone()).collect();
        let mut dropped = self.forgo_puts();
        for key in out {
            match self.try_owe(key, None, wall) {
                Taken::Waits(before) => dropped.extend(before),
                Taken::Dropped(offer) => dropped.push(offer),
                Taken::Overflowed(offers) => {
                    dropped.extend(offers);
                    break;
                }
            }
        }
        dropped
    }

    /// What waits is from now on to be deleted, each in its place. Returns the values.
    fn forgo_puts(&mut self) -> Vec<Offer<V>> {
        self.owed.append(&mut self.offered);
        let waiting = self.changes.values_mut();
        let forgone = waiting.filter_map(|change| {
            change.owed = true;
            change.put.take()
        });
        forgone.collect()
    }

    /// Nothing waits any more. Returns the values that did.
    fn empty(&mut self) -> Vec<Offer<V>> {
        // All are out before a key is dropped, whose code may panic.
        let (_owed, _offered, changes) = (
            mem::take(&mut self.owed),
            mem::take(&mut self.offered),
            mem::take(&mut self.changes),
        );
        // One by one: a map that once was full would keep its room.
        changes.into_values().filter_map(|change| change.put).collect()
    }

    /// Whether nothing must be read: a clear is owed, and what would be newer waits behind it. By when it was fetched that is not told, since clocks are set
    /// back. Where others change the tier there may be something newer all the same.
    pub(super) fn bars_all(&self) -> bool {
        !self.others_change && (self.clear.is_some() || self.clear_out.is_some())
    }

    /// Whether the key must not be read.
    pub(super) fn is_barred(&self, key: &K) -> bool {
        self.bars_all()
            || self.out.get(key).is_some_and(|sent| sent.owed)
            || self.changes.get(key).is_some_and(|change| change.owed)
    }

    /// How many batches of tags were acknowledged; see [`bars_tag`](Self::bars_tag).
    pub(super) fn tags_told(&self) -> u64 {
        self.tags_told
    }

    /// Whether what carries the tag must not be read, by who began to read when so many batches of tags were `told`.
    pub(super) fn bars_tag(&self, tag: &str, told: u64) -> bool {
        let since = usize::try_from(self.tags_told - told).unwrap_or(usize::MAX);
        let mut told_since = self.tags_told_last.iter().take(since);
        self.tags.contains_key(tag)
            || self.tags_out.contains_key(tag)
            // So many that some are forgotten.
            || since > self.tags_told_last.len()
            || told_since.any(|tags| tags.contains_key(tag))
    }

    /// Whether a change of the key waits or is out.
    pub(super) fn has_change(&self, key: &K) -> bool {
        self.out.contains_key(key) || self.changes.contains_key(key)
    }

    /// What was fetched then or before must not be read. Until the clear is acknowledged, nor what another process may have fetched before, whose clock is
    /// ahead by as much as that.
    pub(super) fn watermark(&self, max_clock_skew: Duration) -> Option<SystemTime> {
        let is_owed = self.clear.is_some() || self.clear_out.is_some();
        let ahead = if is_owed && self.others_change {
            max_clock_skew
        } else {
            Duration::ZERO
        };
        self.watermark.map(|watermark| watermark + ahead)
    }

    /// What is owed now.
    pub(super) fn owed(&self) -> usize {
        let out = self.out.values().filter(|sent| sent.owed).count();
        let tags = self.tags.len() + self.tags_out.len();
        self.owed.len() + out + tags + usize::from(self.clear.is_some()) + usize::from(self.clear_out.is_some())
    }

    /// The number of the latest change.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// Whether all changes up to this number were acknowledged or given up.
    pub(super) fn is_settled(&self, number: u64) -> bool {
        let first_tag = self.tags_in_line.first_key_value().map(|(since, _)| *since);
        let waiting = [
            self.first_waiting(),
            self.out_since,
            first_tag,
            self.clear,
            self.clear_out,
        ];
        let tags_out = self.tags_out.values().copied();
        waiting
            .into_iter()
            .flatten()
            .chain(tags_out)
            .all(|since| since > number)
    }

    /// What to do next; it is out from now until [`finished`](Self::finished) or [`cleared`](Self::cleared). Values that were
    /// given up are put into `dropped`. `Nothing` also ends the draining.
    pub(super) fn take(&mut self, now: Instant, dropped: &mut Vec<(K, Offer<V>)>) -> Work<K, V> {
        self.whole(|queue| queue.try_take(now, dropped))
    }

    fn try_take(&mut self, now: Instant, dropped: &mut Vec<(K, Offer<V>)>) -> Work<K, V> {
        debug_assert!(
            self.out.is_empty() && self.tags_out.is_empty() && self.clear_out.is_none(),
            "one batch at a time"
        );
        let owes = self.clear.is_some() || !self.owed.is_empty();
        if self.deletions.is_on(now) && owes {
            self.drop_offers(dropped);
            return Work::Wait(self.deletions.until.unwrap_or(now));
        }
        if let Some(since) = self.clear.take() {
            self.clear_out = Some(since);
            return Work::Clear;
        }
        if !self.tags.is_empty() && !self.tag_changes.is_on(now) {
            while self.tags_out.len() < BATCH_MAX
                && let Some((since, tag)) = self.tags_in_line.pop_first()
            {
                self.tags.remove(&tag);
                self.tags_out.insert(tag, since);
            }
            return Work::Tags(self.tags_out.keys().cloned().collect());
        }
        if self.puts.is_on(now) {
            self.drop_offers(dropped);
        }
        let mut batch = Batch {
            deletes: Vec::new(),
            puts: Vec::new(),
            held: Vec::new(),
        };
        while self.out.len() < BATCH_MAX
            && let Some((since, key)) = self.owed.pop_first().or_else(|| self.offered.pop_first())
        {
            let change = self.changes.remove(&key).expect("what is in line has a change");
            let mut is_put = false;
            match change.put {
                Some(offer) if offer.until > now && !self.puts.is_on(now) => {
                    batch.puts.push(Put {
                        key: key.clone(),
                        kept: offer.kept,
                        keep_for: offer.until - now,
                        since: offer.since,
                        // What is owed is kept whoever fetches.
                        lease: offer.lease.filter(|_| !change.owed),
                    });
                    batch.held.push(offer.held);
                    is_put = true;
                }
                worthless => {
                    let replaces = worthless.as_ref().is_some_and(|offer| offer.replaces);
                    dropped.extend(worthless.map(|offer| (key.clone(), offer)));
                    if !change.owed && !replaces {
                        continue;
                    }
                    batch.deletes.push(key.clone());
                }
            }
            let owed = change.owed;
            self.out.insert(key, Sent { owed, is_put, since });
        }
        self.out_since = self.out.values().map(|sent| sent.since).min();
        if self.out.is_empty() {
            if !self.tags.is_empty() {
                return Work::Wait(self.tag_changes.until.unwrap_or(now));
            }
            self.is_draining = false;
            return Work::Nothing;
        }
        Work::Batch(batch)
    }

    /// The batch is back: of the deletions and of the puts, where there were any, whether they were acknowledged. Returns how many
    /// offers that dropped.
    pub(super) fn finished(
        &mut self,
        batch: &Batch<K, V>,
        deletes: Option<bool>,
        puts: Option<bool>,
        now: Instant,
    ) -> usize {
        self.deletions.note(deletes, now);
        self.puts.note(puts, now);
        self.whole(|queue| queue.try_finish(batch, deletes, puts))
    }

    fn try_finish(&mut self, batch: &Batch<K, V>, deletes: Option<bool>, puts: Option<bool>) -> usize {
        let failed_deletes = batch.deletes.iter().filter(|_| deletes != Some(true));
        let failed_puts = batch.puts.iter().map(|put| &put.key).filter(|_| puts != Some(true));
        let mut out = mem::take(&mut self.out);
        let failed: Vec<(K, Sent)> = failed_deletes
            .chain(failed_puts)
            .filter_map(|key| out.remove_entry(key))
            .collect();
        self.take_back(failed)
    }

    /// The clear is back.
    pub(super) fn cleared(&mut self, acknowledged: bool, now: Instant) {
        self.deletions.note(Some(acknowledged), now);
        let since = self.clear_out.take();
        if !acknowledged {
            self.clear = since.or(self.clear);
        }
    }

    /// The tags are back.
    pub(super) fn tags_finished(&mut self, acknowledged: bool, now: Instant) {
        self.tag_changes.note(Some(acknowledged), now);
        if acknowledged {
            self.tags_told += 1;
            self.tags_told_last.truncate(TAGS_REMEMBERED - 1);
            self.tags_told_last.push_front(mem::take(&mut self.tags_out));
        } else {
            self.take_tags_back();
        }
    }

    /// What was out of the tags is owed still, or goes with the clear that was asked for meanwhile.
    fn take_tags_back(&mut self) {
        for (tag, since) in mem::take(&mut self.tags_out) {
            match &mut self.clear {
                Some(clear) => *clear = since.min(*clear),
                None => self.line_up_tag(tag, since),
            }
        }
    }

    /// Nobody knows what became of what is out: the task that had it is gone. Its owed keys wait again. Returns the values that need not be
    /// kept any more: who knows when there is another.
    pub(super) fn abandoned(&mut self) -> Vec<Offer<V>> {
        if let Some(since) = self.clear_out.take() {
            self.clear = Some(since);
        }
        self.is_draining = false;
        self.take_tags_back();
        let out = mem::take(&mut self.out);
        self.whole(|queue| queue.take_back(out));
        match self.others_change {
            true => self.forgo_puts(),
            false => Vec::new(),
        }
    }

    /// All is given up: nobody is left who would read.
    pub(super) fn give_up(&mut self) -> Vec<Offer<V>> {
        self.clear = None;
        self.forget_tags();
        self.is_draining = false;
        self.empty()
    }

    /// The tier works again, as its reads say: what waits need not wait longer. Returns whether something did.
    pub(super) fn recovered(&mut self) -> bool {
        self.puts.until = None;
        let tags_waited = self.tag_changes.until.take().is_some();
        self.deletions.until.take().is_some() || tags_waited
    }

    fn len(&self) -> usize {
        self.changes.len() + self.out.len()
    }

    fn first_waiting(&self) -> Option<u64> {
        let first = |line: &BTreeMap<u64, K>| line.first_key_value().map(|(since, _)| *since);
        match (first(&self.owed), first(&self.offered)) {
            (Some(owed), Some(offered)) => Some(owed.min(offered)),
            (owed, offered) => owed.or(offered),
        }
    }

    /// The tag is owed since then, or longer.
    fn line_up_tag(&mut self, tag: Arc<str>, since: u64) {
        let owed = self.tags.entry(Arc::clone(&tag)).or_insert(since);
        if since < *owed {
            self.tags_in_line.remove(owed);
            *owed = since;
        }
        if since == *owed {
            self.tags_in_line.insert(since, tag);
        }
    }

    fn forget_tags(&mut self) {
        self.tags.clear();
        self.tags_in_line.clear();
    }

    fn line_up(&mut self, key: K, put: Option<Offer<V>>, owed: bool, since: u64) {
        let line = if owed { &mut self.owed } else { &mut self.offered };
        line.insert(since, key.clone());
        self.changes.insert(key, Change { put, owed, since });
    }

    /// These are back that were out, and nothing else is out; what was owed of them is owed still. Returns how many offers that dropped.
    fn take_back(&mut self, failed: impl IntoIterator<Item = (K, Sent)>) -> usize {
        self.out_since = None;
        let mut dropped = 0;
        for (key, sent) in failed {
            if !sent.owed {
                dropped += 1;
                continue;
            }
            if let Some(since) = self.clear {
                // The clear that was asked for meanwhile takes it along.
                self.clear = Some(since.min(sent.since));
            } else if let Some(change) = self.changes.get_mut(&key) {
                let line = if change.owed { &mut self.owed } else { &mut self.offered };
                line.remove(&change.since);
                change.owed = true;
                change.since = sent.since;
                self.owed.insert(sent.since, key);
            } else {
                self.line_up(key, None, true, sent.since);
            }
        }
        dropped
    }

    /// The tier takes none now. With them go the values of which a deletion is owed, if others change the tier too.
    fn drop_offers(&mut self, dropped: &mut Vec<(K, Offer<V>)>) {
        for key in mem::take(&mut self.offered).into_values() {
            let put = self.changes.remove(&key).and_then(|change| change.put);
            dropped.extend(put.map(|offer| (key, offer)));
        }
        if !self.others_change {
            return;
        }
        for (key, change) in &mut self.changes {
            if change.put.is_some() {
                let key = key.clone();
                dropped.extend(change.put.take().map(|offer| (key, offer)));
            }
        }
    }

    /// What must hold between calls.
    #[cfg(all(test, not(forebay_loom)))]
    pub(super) fn validate(&self) {
        assert_eq!(self.changes.len(), self.owed.len() + self.offered.len());
        for (line, owed) in [(&self.owed, true), (&self.offered, false)] {
            for (since, key) in line {
                let change = &self.changes[key];
                assert_eq!((change.owed, change.since), (owed, *since));
                assert!(change.owed || change.put.is_some(), "an offer of nothing");
                assert!(*since <= self.latest);
            }
        }
        assert!(self.len() <= self.max, "{} keys of {}", self.len(), self.max);
        assert!(self.out.len() <= BATCH_MAX);
        assert_eq!(self.out_since, self.out.values().map(|sent| sent.since).min());
        assert!(self.out.is_empty() || self.clear_out.is_none());
        assert!(self.tags.len() <= self.max + BATCH_MAX);
        assert!(self.tags_in_line.iter().all(|(since, tag)| self.tags[tag] == *since));
        assert_eq!(self.tags.len(), self.tags_in_line.len());
        assert!(self.tags_out.len() <= BATCH_MAX && self.tags_told_last.len() <= TAGS_REMEMBERED);
        assert!(self.tags_out.is_empty() || (self.out.is_empty() && self.clear_out.is_none()));
    }
}

impl Backoff {
    fn new(after: (Duration, Duration)) -> Self {
        Self {
            after,
            failures: 0,
            until: None,
        }
    }

    fn is_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }

    fn note(&mut self, acknowledged: Option<bool>, now: Instant) {
        match acknowledged {
            None => {}
            Some(true) => (self.failures, self.until) = (0, None),
            Some(false) => {
                let (first, longest) = self.after;
                let pause = first.saturating_mul(1 << self.failures.min(20)).min(longest);
                self.failures += 1;
                // Many processes that lost the same server must not come back to it in step.
                self.until = Some(now + pause.mul_f64(rand::random_range(0.5..=1.0)));
            }
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};

    use super::*;

    thread_local! {
        /// After so many uses of a key its code panics, once.
        static FUSE: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    fn burn() {
        let left = FUSE.get();
        FUSE.set(left.saturating_sub(1));
        if left == 0 {
            FUSE.set(usize::MAX);
            panic!("told to panic");
        }
    }

    #[derive(Debug)]
    struct Touchy(u64);

    impl Clone for Touchy {
        fn clone(&self) -> Self {
            burn();
            Self(self.0)
        }
    }

    impl PartialEq for Touchy {
        fn eq(&self, other: &Self) -> bool {
            burn();
            self.0 == other.0
        }
    }

    impl Eq for Touchy {}

    impl Hash for Touchy {
        fn hash<H: Hasher>(&self, state: &mut H) {
            burn();
            self.0.hash(state);
        }
    }

    fn offer() -> Offer<u64> {
        Offer {
            kept: Kept {
                value: Some(1),
                fetched_at: SystemTime::UNIX_EPOCH,
                details: None,
            },
            until: Instant::now() + Duration::from_secs(60),
            since: 0,
            lease: None,
            replaces: false,
            held: Held::of(&Arc::default(), 0, 0).expect("it weighs nothing"),
        }
    }

    /// Wherever its code panics: what had been owed of a key before is owed still, by itself or by a clear.
    #[test]
    fn what_is_owed_is_owed_though_a_keys_code_panics() {
        let wall: WallClock = Arc::new(SystemTime::now);
        let mut panics = 0;
        for fuse in 0..400 {
            for was_done in [false, true] {
                let mut queue = Queue::new(4, fuse % 2 == 0, (Duration::ZERO, Duration::ZERO), Arc::clone(&wall));
                // Those whose deletion was asked for and has not been acknowledged.
                let mut owed = Vec::new();
                let mut quietly = |queue: &mut Queue<Touchy, u64>, step: &mut dyn FnMut(&mut Queue<Touchy, u64>)| {
                    let is_done = catch_unwind(AssertUnwindSafe(|| step(queue))).is_ok();
                    panics += usize::from(!is_done);
                    is_done
                };
                FUSE.set(fuse);
                for round in 0..3_u64 {
                    for key in 0..5 {
                        if quietly(&mut queue, &mut |queue| {
                            let put = (key % 2 == 0).then(offer);
                            drop(queue.owe(Touchy(key), put, SystemTime::now()));
                        }) {
                            owed.push(key);
                        }
                        quietly(&mut queue, &mut |queue| {
                            drop(queue.offer(Touchy(key + round + 2), offer(), Instant::now()));
                        });
                    }
                    let mut work = Work::Nothing;
                    let mut dropped = Vec::new();
                    if !quietly(&mut queue, &mut |queue| work = queue.take(Instant::now(), &mut dropped)) {
                        quietly(&mut queue, &mut |queue| drop(queue.abandoned()));
                        continue;
                    }
                    match &work {
                        Work::Clear => {
                            queue.cleared(was_done, Instant::now());
                            if was_done {
                                owed.clear();
                            }
                        }
                        Work::Batch(batch) => {
                            let done = Some(was_done);
                            let is_back = quietly(&mut queue, &mut |queue| {
                                queue.finished(batch, done, done, Instant::now());
                            });
                            if !is_back {
                                quietly(&mut queue, &mut |queue| drop(queue.abandoned()));
                            }
                            if was_done {
                                owed.clear();
                            }
                        }
                        Work::Nothing | Work::Wait(_) | Work::Tags(_) => {}
                    }
                }
                FUSE.set(usize::MAX);
                queue.validate();
                for key in owed {
                    assert!(
                        queue.is_barred(&Touchy(key)) || queue.clear.is_some(),
                        "{key} is lost where the code panics at its use {fuse}"
                    );
                }
            }
        }
        assert!(panics > 100, "{panics}");
    }

    /// One that panics when it is dropped, once.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Bomb(u64);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if FUSE.replace(usize::MAX) == 0 {
                panic!("told to panic");
            }
        }
    }

    #[test]
    fn nothing_is_left_behind_a_clear_though_a_keys_drop_panics() {
        for gives_up in [false, true] {
            let mut queue: Queue<Bomb, u64> =
                Queue::new(9, false, (Duration::ZERO, Duration::ZERO), Arc::new(SystemTime::now));
            for key in 0..3 {
                drop(queue.owe(Bomb(key), Some(offer()), SystemTime::now()));
                drop(queue.offer(Bomb(key + 5), offer(), Instant::now()));
            }
            FUSE.set(0);
            let ended = catch_unwind(AssertUnwindSafe(|| match gives_up {
                true => drop(queue.give_up()),
                false => drop(queue.owe_clear(SystemTime::now())),
            }));
            assert!(ended.is_err(), "it has panicked");
            queue.validate();
            assert!(!queue.has_change(&Bomb(1)) && !queue.has_change(&Bomb(6)));
            assert_eq!(queue.clear.is_some(), !gives_up);
        }
    }
}
