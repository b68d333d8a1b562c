//! What is kept of a key: its value, or that there is none; since when; what was said of it; and when the source may next be asked in
//! the background.
//!
//! Promises: the state of an entry is a function of its age, of the windows (its own, or the cache's), of whether it was marked stale, of
//! whether one of its tags was invalidated, and of whether news may have been missed since it was learnt. A refresh is
//! claimed by one reader at a time, and after failures not before the back-off has passed. All by relaxed atomics, for a
//! record's own words order nothing else. How it lies in memory is in `compact`.

mod compact;
mod more;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::whole_ms;
use super::details::Details;
use super::tags::Tagged;
use compact::{Compact, MARKED, RARE, TIME_SHIFT};
pub(super) use more::More;

/// What an entry is good for.
///
/// By a rule of one's own ([`CacheBuilder::staleness`](super::CacheBuilder::staleness)):
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Staleness};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let order = |id: u64| async move { Ok::<_, Infallible>(Some(if id == 1 { "delivered" } else { "on its way" })) };
/// let orders = Cache::builder(order)
///     .staleness(|status, age| match status {
///         Some(&"delivered") => Staleness::Fresh, // That does not change any more.
///         _ if age < Duration::from_secs(5) => Staleness::Stale,
///         _ => Staleness::Expired,
///     })
///     .build();
/// orders.get(&1).await?;
/// orders.get(&2).await?;
/// assert!(orders.get_if_fresh(&1).is_some() && orders.get_if_fresh(&2).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Staleness {
    /// Served.
    Fresh,
    /// Served, and refreshed in the background.
    Stale,
    /// Not served; but see `CacheBuilder::stale_if_error_for`.
    Expired,
}

/// A rule of one's own: what an entry of that value (`None`: missing) and age is good for.
pub(super) type Rule<V> = Box<dyn Fn(Option<&V>, Duration) -> Staleness + Send + Sync>;

/// How long an entry is fresh, and then stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) fresh_ms: u64,
    pub(super) stale_ms: u64,
}

/// By what the state of entries is told.
pub(super) struct Terms<V> {
    pub(super) present: Windows,
    pub(super) missing: Windows,
    pub(super) stale_if_error_ms: u64,
    /// How much of the fresh window is taken off at most, in 1/1024.
    pub(super) jitter: u64,
    /// From which part of the fresh window on a hit refreshes ahead, in 1/1024; 1024 is never.
    pub(super) ahead: u64,
    pub(super) rule: Option<Rule<V>>,
    /// Below this age (ms) an entry is fresh and needs no refresh, whatever its share of the jitter: `[missing, present]`. All
    /// that a hit has to look at.
    pub(super) surely_fresh_ms: [u64; 2],
    /// Back-off after the first failure, doubled by each further one up to the second.
    pub(super) retry_after_ms: (u64, u64),
    /// How long a claimed refresh keeps others from being claimed, should it never end.
    pub(super) lease_ms: u64,
    /// Since when what is known may have been changed elsewhere without a word.
    pub(super) news: News,
}

/// How far news from other processes can be relied upon. Where there are no others, always.
pub(super) struct News {
    /// What was learnt before that may have been changed, and it would not have been heard. Only grows.
    since_ms: AtomicU64,
    /// Until then all that was changed has been heard, as far as it counts.
    until_ms: AtomicU64,
    /// For how long what is changed may go unheard.
    max_lag_ms: u64,
}

impl News {
    /// Nobody else changes anything.
    pub(super) fn none() -> Self {
        Self {
            since_ms: AtomicU64::new(0),
            until_ms: AtomicU64::new(u64::MAX),
            max_lag_ms: u64::MAX,
        }
    }

    /// News come from others, and have not begun to come.
    pub(super) fn within(max_lag: Duration) -> Self {
        Self {
            until_ms: AtomicU64::new(0),
            max_lag_ms: whole_ms(max_lag),
            ..Self::none()
        }
    }

    /// What was changed from this moment on will be heard; what was changed before may have been missed.
    pub(super) fn begin_at(&self, now_ms: u64) {
        self.since_ms.fetch_max(now_ms.saturating_add(1), Ordering::Relaxed);
    }

    pub(super) fn since_ms(&self) -> u64 {
        self.since_ms.load(Ordering::Relaxed)
    }

    /// What was changed up to this moment has been heard.
    pub(super) fn heard_up_to(&self, at_ms: u64) {
        self.until_ms
            .fetch_max(at_ms.saturating_add(self.max_lag_ms), Ordering::Relaxed);
    }

    /// Whether what was learnt then is known to hold, by a glance.
    #[inline]
    fn surely_cover(&self, learnt_ms: u64, now_ms: u64) -> bool {
        learnt_ms >= self.since_ms.load(Ordering::Relaxed) && now_ms < self.until_ms.load(Ordering::Relaxed)
    }

    /// Whether what was learnt then may still be believed.
    pub(super) fn cover(&self, learnt_ms: u64, now_ms: u64) -> bool {
        let is_young = || now_ms.saturating_sub(learnt_ms) < self.max_lag_ms;
        learnt_ms >= self.since_ms.load(Ordering::Relaxed)
            && (now_ms < self.until_ms.load(Ordering::Relaxed) || is_young())
    }
}

/// How an entry stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) staleness: Staleness,
    /// Whether it would do when the source fails. Always so while it is served.
    pub(super) rescues: bool,
    /// Whether the source should be asked in the background, if nobody does already.
    pub(super) refresh: bool,
}

/// An entry. Its time: when it was fetched (48 bits, ms), and its share of the jitter (13 bits).
pub(super) struct Record<V>(Compact<V>);

const JITTER_BITS: u32 = 13;
const JITTER_MAX: u64 = (1 << JITTER_BITS) - 1;
/// In the word.
const AT_SHIFT: u32 = JITTER_BITS + TIME_SHIFT;
const AT_MAX: u64 = (1 << 48) - 1;
/// Of `retry`: when the source may be asked again in the background (48 bits, ms), whether it is asked until then (1 bit), and failures in
/// a row (15 bits).
const RETRY_SHIFT: u32 = 16;
const CLAIMED: u64 = 1 << 15;
const FAILURES: u64 = CLAIMED - 1;

/// What an entry's share of the jitter is chosen by (the finalizer of `SplitMix64`, Steele et al., 2014).
pub(super) fn jitter_seed(hash: u64, now_ms: u64) -> u64 {
    let mixed = hash ^ now_ms.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl<V> Record<V> {
    /// `jitter_seed`: any number, by which this entry's share of the jitter is chosen.
    pub(super) fn new(value: Option<V>, fetched_at_ms: u64, jitter_seed: u64) -> Self {
        let share = jitter_seed >> (u64::BITS - JITTER_BITS);
        Self(Compact::new(value, fetched_at_ms.min(AT_MAX) << JITTER_BITS | share))
    }

    /// The same entry, of which there is more.
    pub(super) fn with(mut self, more: More) -> Self {
        *self.0.more_mut() = more;
        self
    }

    /// The same entry, learnt at that moment (ms) though it was fetched before.
    pub(super) fn learnt_at(mut self, learnt_ms: u64) -> Self {
        if learnt_ms > self.fetched_at_ms() {
            self.0.more_mut().learnt_ms = NonZeroU64::new(learnt_ms);
        }
        self
    }

    /// The value; `None`: the source has none.
    #[inline]
    pub(super) fn value(&self) -> Option<&V> {
        self.0.value()
    }

    fn more(&self) -> Option<&More> {
        self.0.rare().map(|rare| &rare.more)
    }

    /// When it was learnt (ms).
    pub(super) fn learnt_at_ms(&self) -> u64 {
        let learnt_ms = self.more().and_then(|more| more.learnt_ms);
        learnt_ms.map_or_else(|| self.fetched_at_ms(), NonZeroU64::get)
    }

    /// What was said of it but for its tags.
    fn untagged(&self) -> Option<&Details> {
        self.more()?.details.as_deref()
    }

    /// What was said of it.
    pub(super) fn details(&self) -> Details {
        let untagged = self.untagged().cloned().unwrap_or_default();
        let tags = self.tagged().map(Tagged::names);
        untagged.with_tags(tags.unwrap_or_default())
    }

    /// What it weighs by what was said of it.
    pub(super) fn weight(&self) -> Option<u32> {
        self.untagged()?.weight
    }

    /// Its tags.
    pub(super) fn tagged(&self) -> Option<&Tagged> {
        self.more()?.tagged.as_ref()
    }

    /// Whether none of its tags was invalidated.
    pub(super) fn holds(&self) -> bool {
        self.tagged().is_none_or(Tagged::holds)
    }

    pub(super) fn fetched_at_ms(&self) -> u64 {
        self.0.time() >> AT_SHIFT
    }

    /// Whether the entry is fresh and needs no refresh, by a glance. If it cannot tell, it says no.
    #[inline]
    pub(super) fn surely_fresh(&self, now_ms: u64, terms: &Terms<V>) -> bool {
        let word = self.0.word();
        let fetched_at_ms = word >> AT_SHIFT;
        let age_ms = now_ms.saturating_sub(fetched_at_ms);
        word & (MARKED | RARE) == 0
            && age_ms < terms.surely_fresh_ms[usize::from(self.value().is_some())]
            && terms.news.surely_cover(fetched_at_ms, now_ms)
    }

    /// How old the entry is at that moment.
    #[inline]
    pub(super) fn age(&self, now_ms: u64) -> Duration {
        Duration::from_millis(now_ms.saturating_sub(self.fetched_at_ms()))
    }

    /// How the entry stands at that moment.
    pub(super) fn standing(&self, now_ms: u64, terms: &Terms<V>) -> Standing {
        if !self.holds() {
            return Standing {
                staleness: Staleness::Expired,
                rescues: false,
                refresh: false,
            };
        }
        let time = self.0.time();
        let fetched_at_ms = time >> AT_SHIFT;
        let age_ms = now_ms.saturating_sub(fetched_at_ms);
        let windows = terms.windows(self.value().is_none(), self.untagged());
        let share = (time >> TIME_SHIFT) & JITTER_MAX;
        let taken_off = parts_of_1024(windows.fresh_ms, terms.jitter);
        let fresh_ms = windows.fresh_ms - ((u128::from(taken_off) * u128::from(share)) >> JITTER_BITS) as u64;
        let served_ms = windows.fresh_ms.saturating_add(windows.stale_ms);
        let by_rule = match &terms.rule {
            Some(rule) => rule(self.value(), Duration::from_millis(age_ms)),
            None if age_ms < fresh_ms => Staleness::Fresh,
            None if age_ms < served_ms => Staleness::Stale,
            None => Staleness::Expired,
        };
        let marked = time & MARKED != 0;
        let is_sure = terms.news.cover(self.learnt_at_ms(), now_ms);
        let staleness = match by_rule {
            _ if !is_sure => Staleness::Expired,
            Staleness::Fresh if marked => Staleness::Stale,
            other => other,
        };
        let refresh = match staleness {
            Staleness::Fresh => terms.ahead < 1024 && age_ms >= parts_of_1024(fresh_ms, terms.ahead),
            Staleness::Stale => true,
            Staleness::Expired => false,
        };
        let rescue_ms = served_ms.saturating_add(terms.stale_if_error_ms);
        let may_rescue = is_sure || terms.stale_if_error_ms > 0;
        Standing {
            staleness,
            rescues: staleness != Staleness::Expired || (may_rescue && age_ms < rescue_ms),
            refresh,
        }
    }

    /// Makes a fresh entry stale, to be refreshed by the next reader.
    pub(super) fn mark_stale(&self) {
        self.0.mark();
        if let Some(rare) = self.0.rare() {
            rare.retry.store(0, Ordering::Relaxed);
        }
    }

    fn retry(&self) -> u64 {
        self.0.rare().map_or(0, |rare| rare.retry.load(Ordering::Relaxed))
    }

    /// Whether the back-off after a failure still lasts.
    pub(super) fn backs_off(&self, now_ms: u64, terms: &Terms<V>) -> bool {
        let retry = self.retry();
        retry & CLAIMED == 0 && retry & FAILURES > 0 && Self::waits(retry, now_ms, terms)
    }

    /// Claims the refresh; whoever gets `true` is the one to ask the source.
    pub(super) fn claim(&self, now_ms: u64, terms: &Terms<V>) -> bool {
        let retry = self.retry();
        if Self::waits(retry, now_ms, terms) {
            return false;
        }
        let until = now_ms.saturating_add(terms.lease_ms).min(AT_MAX);
        let claimed = until << RETRY_SHIFT | CLAIMED | retry & FAILURES;
        self.0
            .rare_or_new()
            .retry
            .compare_exchange(retry, claimed, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes a claim back, if there is one: nothing comes of it.
    pub(super) fn unclaim(&self) {
        let Some(rare) = self.0.rare() else { return };
        let unclaimed = |retry: u64| (retry & CLAIMED > 0).then_some(retry & FAILURES);
        // Where it fails there is none.
        let _ = rare.retry.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unclaimed);
    }

    /// The source failed: it may be asked again after the back-off.
    pub(super) fn failed(&self, now_ms: u64, terms: &Terms<V>) {
        let retry = &self.0.rare_or_new().retry;
        let failures = (retry.load(Ordering::Relaxed) & FAILURES) + 1;
        let (first, most) = terms.retry_after_ms;
        let doubled = first.saturating_mul(1_u64.checked_shl(failures as u32 - 1).unwrap_or(u64::MAX));
        let until = now_ms.saturating_add(doubled.min(most)).min(AT_MAX);
        retry.store(until << RETRY_SHIFT | failures.min(FAILURES), Ordering::Relaxed);
    }

    /// Whether that word says to wait. A wait longer than any that is given comes from a clock that went back, and is none.
    fn waits(retry: u64, now_ms: u64, terms: &Terms<V>) -> bool {
        let longest = terms.lease_ms.max(terms.retry_after_ms.1);
        let left = (retry >> RETRY_SHIFT).saturating_sub(now_ms);
        left > 0 && left <= longest
    }
}

/// So many of 1,024 parts of a time; all of one that is for ever is for ever.
#[inline]
fn parts_of_1024(time_ms: u64, parts: u64) -> u64 {
    if parts == 1024 {
        time_ms
    } else {
        ((u128::from(time_ms) * u128::from(parts)) >> 10) as u64
    }
}

/// For how long others should keep a value of that age: until it could not even rescue.
pub(super) fn keep_for<V>(missing: bool, details: Option<&Details>, age_ms: u64, terms: &Terms<V>) -> Duration {
    let windows = terms.windows(missing, details);
    let whole = windows
        .fresh_ms
        .saturating_add(windows.stale_ms)
        .saturating_add(terms.stale_if_error_ms);
    Duration::from_millis(whole.saturating_sub(age_ms))
}

impl<V> Terms<V> {
    /// The windows of an entry.
    fn windows(&self, missing: bool, details: Option<&Details>) -> Windows {
        let mut windows = if missing { self.missing } else { self.present };
        if let Some(details) = details {
            let said = |said: Option<Duration>, else_ms| said.map_or(else_ms, whole_ms);
            windows.fresh_ms = said(details.fresh_for, windows.fresh_ms);
            windows.stale_ms = said(details.stale_for, windows.stale_ms);
        }
        windows
    }

    /// These terms, with what follows from them.
    pub(super) fn complete(mut self) -> Self {
        let sure = |windows: Windows| {
            let sure_ms = windows.fresh_ms - parts_of_1024(windows.fresh_ms, self.jitter);
            parts_of_1024(sure_ms, self.ahead)
        };
        self.surely_fresh_ms = match self.rule {
            None => [sure(self.missing), sure(self.present)],
            Some(_) => [0, 0],
        };
        self
    }
}

impl Windows {
    pub(super) fn new(fresh_for: Duration, stale_for: Duration) -> Self {
        Self {
            fresh_ms: whole_ms(fresh_for),
            stale_ms: whole_ms(stale_for),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(fresh_ms: u64, stale_ms: u64) -> Terms<u64> {
        Terms {
            present: Windows { fresh_ms, stale_ms },
            missing: Windows {
                fresh_ms: fresh_ms / 10,
                stale_ms: stale_ms / 10,
            },
            stale_if_error_ms: 50,
            jitter: 0,
            ahead: 1024,
            rule: None,
            surely_fresh_ms: [0, 0],
            retry_after_ms: (100, 1_000),
            lease_ms: 5_000,
            news: News::none(),
        }
        .complete()
    }

    const NOW: u64 = 1 << 41;

    fn record() -> Record<u64> {
        Record::new(Some(1), NOW, 0)
    }

    #[test]
    fn a_claim_is_no_back_off_and_to_take_it_back_ends_none() {
        let (record, terms) = (record(), terms(100, 100));
        record.failed(NOW, &terms);
        assert!(record.backs_off(NOW, &terms));
        record.unclaim();
        assert!(record.backs_off(NOW, &terms), "there was no claim");
        let later = NOW + terms.retry_after_ms.1;
        assert!(record.claim(later, &terms) && !record.claim(later, &terms));
        assert!(!record.backs_off(later, &terms), "it is asked again just now");
        record.unclaim();
        assert!(record.claim(later, &terms));
    }

    #[test]
    fn one_claims_a_refresh_at_a_time_and_a_lost_claim_ends_with_its_lease() {
        let (record, terms) = (record(), terms(100, 100));
        assert!(record.claim(NOW, &terms));
        assert!(!record.claim(NOW, &terms) && !record.claim(NOW + 4_999, &terms));
        assert!(!record.backs_off(NOW, &terms), "a claim is no failure");
        assert!(record.claim(NOW + 5_000, &terms));
        record.unclaim();
        assert!(record.claim(NOW + 5_000, &terms));
        record.mark_stale();
        assert!(record.claim(NOW + 5_000, &terms));
    }

    #[test]
    fn the_back_off_doubles_up_to_its_limit_and_never_overflows() {
        let (record, terms) = (record(), terms(100, 100));
        for expected_ms in [100, 200, 400, 800, 1_000, 1_000] {
            record.failed(NOW, &terms);
            assert!(record.backs_off(NOW + expected_ms - 1, &terms));
            assert!(!record.claim(NOW + expected_ms - 1, &terms));
            assert!(!record.backs_off(NOW + expected_ms, &terms));
        }
        for _ in 0..70_000 {
            record.failed(NOW, &terms);
        }
        assert!(record.backs_off(NOW + 999, &terms) && !record.backs_off(NOW + 1_000, &terms));
        assert!(record.claim(NOW + 1_000, &terms));
        record.unclaim();
        assert_eq!(record.fetched_at_ms(), NOW, "neighbouring bits are as they were");
    }

    #[test]
    fn a_wait_from_the_future_is_none() {
        let (record, terms) = (record(), terms(100, 100));
        record.failed(NOW + 1_000_000, &terms);
        assert!(!record.backs_off(NOW, &terms) && record.claim(NOW, &terms));
    }

    #[test]
    fn what_was_marked_is_stale_and_nothing_else_of_it_changes() {
        let (record, terms) = (record(), terms(100, 100));
        record.mark_stale();
        let at = |age_ms| record.standing(NOW + age_ms, &terms);
        assert!(!record.surely_fresh(NOW, &terms));
        assert_eq!((at(0).staleness, at(0).refresh), (Staleness::Stale, true));
        assert_eq!(at(199).staleness, Staleness::Stale);
        assert_eq!(
            (at(200).staleness, at(200).refresh, at(200).rescues),
            (Staleness::Expired, false, true)
        );
        assert!(at(249).rescues && !at(250).rescues);
        assert_eq!(
            (record.fetched_at_ms(), record.age(NOW + 7)),
            (NOW, Duration::from_millis(7))
        );
    }

    #[test]
    fn times_beyond_what_a_record_can_hold_are_the_last_that_it_can() {
        let record = Record::new(Some(1), u64::MAX, u64::MAX);
        assert_eq!(record.fetched_at_ms(), AT_MAX);
        assert_eq!(record.standing(AT_MAX, &terms(100, 100)).staleness, Staleness::Fresh);
    }

    #[test]
    fn others_keep_a_value_until_it_could_not_even_rescue() {
        let terms = terms(100, 100);
        assert_eq!(keep_for(false, None, 0, &terms), Duration::from_millis(250));
        assert_eq!(keep_for(false, None, 249, &terms), Duration::from_millis(1));
        assert_eq!(keep_for(false, None, 300, &terms), Duration::ZERO);
        assert_eq!(keep_for(true, None, 0, &terms), Duration::from_millis(70));
    }

    fn window() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 1_u64..2_000, Just(u64::MAX)]
    }

    proptest! {
        /// Whatever the windows and the seed: the states follow one another, jitter only shortens, and by no more than asked;
        /// and what is surely fresh by a glance is so by a second one.
        #[test]
        fn states_follow_one_another_and_jitter_only_shortens(
            fresh in window(), stale in window(), jitter in 0_u64..=1024, ahead in 0_u64..=1024, seed: u64, age in 0_u64..5_000,
            missing: bool,
        ) {
            let windows = Windows { fresh_ms: fresh, stale_ms: stale };
            let mut terms = terms(0, 0);
            (terms.present, terms.missing, terms.jitter, terms.ahead) = (windows, windows, jitter, ahead);
            let terms = terms.complete();
            let record = Record::new((!missing).then_some(1), NOW, seed);
            let standing = record.standing(NOW + age, &terms);
            match standing.staleness {
                Staleness::Fresh => prop_assert!(age < fresh),
                Staleness::Stale => prop_assert!(age < fresh.saturating_add(stale) && standing.refresh),
                Staleness::Expired => prop_assert!(age >= fresh.saturating_add(stale) && !standing.refresh),
            }
            if age < fresh - parts_of_1024(fresh, jitter) {
                prop_assert_eq!(standing.staleness, Staleness::Fresh);
            }
            if record.surely_fresh(NOW + age, &terms) {
                prop_assert_eq!((standing.staleness, standing.refresh), (Staleness::Fresh, false));
            }
            prop_assert!(standing.rescues || standing.staleness == Staleness::Expired);
        }
    }
}
