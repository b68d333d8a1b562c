//! Lanes: as many Batchers as batches may be in flight, and which of them a write goes to.
//!
//! Promises: each lane has one batch in flight, so that what is in one lane is committed in the order of its arrival. What must
//! stay in order is in one lane, whatever the others do. What needs no order goes where it finishes soonest. While there are no
//! more calls than lanes, as was seen of late, each has a lane to itself, and costs what it would cost alone. Of more, a few go to
//! idle lanes among those that are for sharing, unless they share well with those in their own, which are of the same text and are not held
//! up; the rest to one lane, where a row costs next to nothing beside others of its text; many to all that are for sharing. Knows no database, and not what must stay in order.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay_batch::batch::{self, Alone, Batcher};

use super::Write;
use super::database::Sharing;

/// A writer's lanes. Clones are handles to the same ones.
pub(super) struct Lanes<T>(Arc<All<T>>);

struct All<T> {
    lanes: Box<[Lane<T>]>,
    /// So many of them, the first ones, are for sharing.
    shared: usize,
    traffic: Traffic,
    apart: Counts,
}

/// Writes that need no lane.
#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A write beside all lanes, until this is dropped.
pub(super) struct Apart<T>(Lanes<T>);

impl<T> Drop for Apart<T> {
    fn drop(&mut self) {
        self.0.0.apart.ended.fetch_add(1, Ordering::Relaxed);
    }
}

struct Lane<T> {
    batcher: Batcher<Write, T>,
    /// Calls that wait here, or whose batch is in flight. A hint: nothing but speed depends on it.
    calls: AtomicUsize,
    /// The number of the last one that came here. A hint as well.
    last: AtomicU64,
    pace: Pace,
}

/// Whether calls are answered as soon as usual. A hint as well.
struct Pace {
    /// What is counted from.
    origin: Instant,
    /// Microseconds since then when a call was last answered, or the first one came to where others had been answered; 0 before that.
    moved: AtomicU64,
}

/// A lane in which nobody was answered for so long is held up, mostly by somebody's lock: longer than a commit takes.
const HELD_UP_AFTER: Duration = Duration::from_millis(5);

impl Pace {
    fn new() -> Self {
        Self {
            origin: Instant::now(),
            moved: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// A call was answered.
    fn answered(&self) {
        self.moved.store(self.now().max(1), Ordering::Relaxed);
    }

    /// A call comes, and there is no other.
    fn begun(&self) {
        if self.moved.load(Ordering::Relaxed) > 0 {
            self.answered();
        }
    }

    fn is_held_up(&self) -> bool {
        match self.moved.load(Ordering::Relaxed) {
            0 => true,
            moved => Duration::from_micros(self.now().saturating_sub(moved)) > HELD_UP_AFTER,
        }
    }
}

/// How many calls there are at a time. Hints: nothing but speed depends on them.
#[derive(Default)]
struct Traffic {
    /// In all lanes.
    calls: AtomicUsize,
    /// The most of late, in [parts](PARTS) of a call. A batch that ends answers all its callers at once: how many there are now says
    /// little.
    peak: AtomicUsize,
}

const PARTS: usize = 256;
/// No more than so many calls of a lane go by its pace: the others have company in any case.
const FEW_MAX: usize = 64;

impl Traffic {
    /// Another call; how many there were at a time of late, with it. With each that is not among the most, a 256th is forgotten.
    fn enter(&self) -> usize {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let before = self.peak.load(Ordering::Relaxed);
        let peak = (before - before.div_ceil(PARTS)).max(calls.saturating_mul(PARTS));
        if peak != before {
            self.peak.store(peak, Ordering::Relaxed);
        }
        peak.div_ceil(PARTS)
    }

    fn leave(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Which lane a write belongs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    /// With all that has the same number.
    Ordered(u64),
    /// Anywhere, but best with those of the same number where there are more than a few.
    Free(u64, Sharing),
}

/// A call in its lane, until it is dropped.
pub(super) struct InLane<'a, T> {
    lane: &'a Lane<T>,
    /// None where there is but one lane.
    traffic: Option<&'a Traffic>,
    /// Whether it matters to the next whether this one was answered.
    sets_pace: bool,
    is_apart: bool,
}

impl<T> InLane<'_, T> {
    /// Whether there are so few calls that this one, which is in nobody's order and has its lane to itself, needs none.
    pub(super) fn is_apart(&self) -> bool {
        self.is_apart
    }

    pub(super) fn batcher(&self) -> &Batcher<Write, T> {
        &self.lane.batcher
    }
}

impl<T> Drop for InLane<'_, T> {
    fn drop(&mut self) {
        let before = self.lane.calls.fetch_sub(1, Ordering::Relaxed);
        if self.sets_pace && before <= FEW_MAX {
            self.lane.pace.answered();
        }
        if let Some(traffic) = self.traffic {
            traffic.leave();
        }
    }
}

impl<T: Send + 'static> Lanes<T> {
    /// Of these the first `shared`, at least one, are for sharing.
    pub(super) fn new(batchers: impl Iterator<Item = Batcher<Write, T>>, shared: usize) -> Self {
        let lane = |batcher| Lane {
            batcher,
            calls: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            pace: Pace::new(),
        };
        let lanes: Box<[_]> = batchers.map(lane).collect();
        assert!((1..=lanes.len()).contains(&shared), "there is a lane to share");
        Self(Arc::new(All {
            lanes,
            shared,
            traffic: Traffic::default(),
            apart: Counts::default(),
        }))
    }

    /// Whether there is but one, for all writes.
    pub(super) fn is_one(&self) -> bool {
        self.0.lanes.len() == 1
    }

    /// As [`Batcher::alone`], where there is but one.
    pub(super) fn alone(&self) -> Option<Alone<'_, Write, T, Infallible>> {
        match &*self.0.lanes {
            [lane] => lane.batcher.alone(),
            _ => None,
        }
    }

    /// Enters the lane that a write belongs into.
    pub(super) fn enter(&self, affinity: Affinity) -> InLane<'_, T> {
        let All {
            lanes, shared, traffic, ..
        } = &*self.0;
        let traffic = (lanes.len() > 1).then_some(traffic);
        let at_a_time = traffic.map_or(1, Traffic::enter);
        let calls = |lane: usize| lanes[lane].calls.load(Ordering::Relaxed);
        // With more than there are lanes, those that are for sharing are all.
        let open = if at_a_time <= lanes.len() { lanes.len() } else { *shared };
        let (Affinity::Ordered(number) | Affinity::Free(number, _)) = affinity;
        let suits = |lane: usize| {
            let lane = &lanes[lane];
            lane.last.load(Ordering::Relaxed) == number && !lane.pace.is_held_up()
        };
        let lane = &lanes[choose(affinity, *shared, open, calls, suits)];
        let sets_pace = matches!(affinity, Affinity::Free(_, sharing) if sharing.few_alike < sharing.few);
        lane.last.store(number, Ordering::Relaxed);
        let is_first = lane.calls.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first && sets_pace {
            lane.pace.begun();
        }
        let wants_company = !matches!(affinity, Affinity::Free(_, Sharing { few: 1.., .. }));
        InLane {
            lane,
            traffic,
            sets_pace,
            // Those whose callers have gone are in no lane any more, and still at work.
            is_apart: is_first && !wants_company && at_a_time.max(self.running_apart() + 1) <= lanes.len(),
        }
    }

    fn running_apart(&self) -> usize {
        // In this order: none ends that has not begun.
        let ended = self.0.apart.ended.load(Ordering::Acquire);
        let begun = self.0.apart.begun.load(Ordering::Acquire).max(ended);
        usize::try_from(begun - ended).unwrap_or(usize::MAX)
    }

    /// Counts a write that [needs no lane](InLane::is_apart) as a batch.
    pub(super) fn apart(&self) -> Apart<T> {
        self.0.apart.begun.fetch_add(1, Ordering::Relaxed);
        Apart(self.clone())
    }

    /// As [`Batcher::drain`], of all.
    pub(super) async fn drain(&self) {
        futures_util::future::join_all(self.0.lanes.iter().map(|lane| lane.batcher.drain())).await;
    }

    /// What all of them have done so far.
    pub(super) fn stats(&self) -> batch::Stats {
        let lanes = self.0.lanes.iter().map(|lane| lane.batcher.stats());
        let mut stats = lanes.fold(batch::Stats::default(), batch::Stats::and);
        let begun = self.0.apart.begun.load(Ordering::Relaxed);
        stats.calls += begun;
        stats.batches += begun;
        stats.in_flight += self.running_apart();
        stats
    }
}

/// Which of the lanes that are open, the first `shared` of them for sharing, by the calls that are in each and whether those suit it.
fn choose(
    affinity: Affinity,
    shared: usize,
    open: usize,
    calls: impl Fn(usize) -> usize,
    suits: impl Fn(usize) -> bool,
) -> usize {
    let home = |number: u64| usize::try_from(number % shared as u64).expect("less than there are lanes");
    let from = |home: usize, lanes: usize| (0..lanes).map(move |step| (home + step) % lanes);
    match affinity {
        Affinity::Ordered(number) => home(number),
        Affinity::Free(number, Sharing { few, few_alike, many }) => {
            let home = home(number);
            let in_home = calls(home);
            let goes_apart = in_home < few && (in_home < few_alike || !suits(home));
            let elsewhere = if goes_apart {
                from(home, open).find(|lane| calls(*lane) == 0)
            } else if in_home >= many {
                from(home, shared).min_by_key(|lane| calls(*lane))
            } else {
                None
            };
            elsewhere.unwrap_or(home)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(affinity: Affinity, calls: &[usize]) -> usize {
        choose(affinity, calls.len(), calls.len(), |lane| calls[lane], |_| true)
    }

    /// With two lanes for sharing.
    fn chosen_of_two(affinity: Affinity, calls: &[usize]) -> usize {
        choose(affinity, 2, calls.len(), |lane| calls[lane], |_| true)
    }

    const MANY: usize = 512;
    const FREE: Affinity = free(16, MANY);

    const fn free(few: usize, many: usize) -> Affinity {
        let few_alike = few;
        Affinity::Free(5, Sharing { few, few_alike, many })
    }

    #[test]
    fn what_must_stay_in_order_stays_in_its_lane() {
        for calls in [[0, 0, 0, 0], [0, 1, 0, 0], [0, 15, 0, 0], [0, 10_000, 0, 0]] {
            assert_eq!(chosen(Affinity::Ordered(5), &calls), 1);
        }
    }

    #[test]
    fn a_few_go_to_lanes_that_are_idle() {
        assert_eq!(chosen(FREE, &[0, 0, 0, 0]), 1, "its own, if that is");
        assert_eq!(chosen(FREE, &[0, 1, 0, 0]), 2);
        assert_eq!(chosen(FREE, &[0, 15, 1, 1]), 0);
        assert_eq!(chosen(FREE, &[1, 15, 1, 1]), 1, "none is idle");
        assert_eq!(chosen(free(0, MANY), &[0, 1, 0, 0]), 1);
    }

    #[test]
    fn a_few_that_suit_one_another_stay_together_sooner_than_with_others() {
        let sharing = Sharing {
            few: 16,
            few_alike: 2,
            many: MANY,
        };
        let chosen = |calls: [usize; 4], suit| choose(Affinity::Free(5, sharing), 4, 4, |lane| calls[lane], |_| suit);
        assert_eq!(chosen([0, 1, 0, 0], true), 2);
        assert_eq!(chosen([0, 2, 0, 0], true), 1);
        assert_eq!(chosen([0, 2, 0, 0], false), 2);
        assert_eq!(chosen([0, 0, 0, 0], false), 1);
        assert_eq!(chosen([0, 16, 0, 0], false), 1);
    }

    #[test]
    fn a_lane_is_held_up_until_one_was_answered_and_when_none_was_for_long() {
        let pace = Pace::new();
        pace.begun();
        assert!(pace.is_held_up());
        pace.answered();
        assert!(!pace.is_held_up());
        let long = u64::try_from(HELD_UP_AFTER.as_micros()).unwrap() + 1;
        let pace = Pace {
            origin: Instant::now() - 10 * HELD_UP_AFTER,
            moved: AtomicU64::new(1),
        };
        assert!(pace.is_held_up() && pace.now() > long);
        pace.begun();
        assert!(!pace.is_held_up());
    }

    #[test]
    fn more_than_a_few_stay_together() {
        assert_eq!(chosen(FREE, &[0, 16, 0, 0]), 1);
        assert_eq!(chosen(FREE, &[0, MANY - 1, 0, 0]), 1);
        assert_eq!(chosen(free(16, usize::MAX), &[0, 10 * MANY, 0, 0]), 1);
    }

    #[test]
    fn many_go_where_the_fewest_are() {
        assert_eq!(chosen(FREE, &[2, MANY, 3, 1]), 3);
        assert_eq!(chosen(FREE, &[MANY, MANY, MANY, MANY]), 1);
        assert_eq!(chosen(FREE, &[MANY, MANY + 1, MANY - 1, MANY]), 2);
    }

    #[test]
    fn how_many_there_are_is_remembered_beyond_their_answers_and_forgotten_in_time() {
        let traffic = Traffic::default();
        for count in 1..=50 {
            assert_eq!(traffic.enter(), count);
        }
        for _ in 0..50 {
            traffic.leave();
        }
        // As many again, after all were answered at once: none of them sees fewer than most of them.
        for _ in 0..50 {
            assert!((40..=50).contains(&traffic.enter()));
        }
        for _ in 0..50 {
            traffic.leave();
        }
        let alone = |_| {
            let at_a_time = traffic.enter();
            traffic.leave();
            at_a_time
        };
        assert_eq!((0..2_000).map(alone).last(), Some(1));
        assert!((0..1_000).map(alone).all(|at_a_time| at_a_time == 1));
    }

    #[test]
    fn lanes_that_are_not_for_sharing_have_a_call_at_a_time() {
        assert_eq!(chosen_of_two(FREE, &[0, 1, 0, 0]), 2);
        assert_eq!(chosen_of_two(FREE, &[1, 1, 1, 0]), 3);
        assert_eq!(chosen_of_two(FREE, &[1, 1, 1, 1]), 1, "none is idle");
        assert_eq!(chosen_of_two(FREE, &[0, 16, 0, 0]), 1);
        assert_eq!(chosen_of_two(FREE, &[MANY - 1, MANY, 0, 0]), 0);
        for number in 0..10 {
            assert!(chosen_of_two(Affinity::Ordered(number), &[9, 9, 0, 0]) < 2);
        }
    }

    #[tokio::test]
    async fn few_calls_have_a_lane_each_and_more_share_those_for_sharing() {
        let batcher =
            || Batcher::<Write, ()>::new(|batch: Vec<Write>| async move { Ok::<_, Infallible>(vec![(); batch.len()]) });
        let lanes = Lanes::new((0..4).map(|_| batcher()), 2);
        let calls = || -> Vec<usize> {
            let lanes = lanes.0.lanes.iter();
            lanes.map(|lane| lane.calls.load(Ordering::Relaxed)).collect()
        };
        let few: Vec<InLane<'_, ()>> = (0..4).map(|_| lanes.enter(free(4, MANY))).collect();
        assert_eq!(calls(), [1, 1, 1, 1]);
        let more = lanes.enter(free(4, MANY));
        assert_eq!(calls().iter().skip(2).sum::<usize>(), 2, "{:?}", calls());
        drop((few, more));
        assert_eq!(calls(), [0, 0, 0, 0]);
        // There were five at a time a moment ago.
        let again: Vec<InLane<'_, ()>> = (0..4).map(|_| lanes.enter(free(4, MANY))).collect();
        assert_eq!(calls().iter().skip(2).sum::<usize>(), 0, "{:?}", calls());
        drop(again);
    }
}
