//! Who may fetch next, when only so many may at a time: whoever has been waited for most.
//!
//! Promises:
//! - Never more than `limit` turns are out.
//! - A turn that is given back goes to the item whose waiters have waited longest, all their times added up, the first waiter's
//!   [`FIRST_COUNTS`] times. So of items that have waited equally long, the one that most wait for goes first, and one that a
//!   single reader wants is not overtaken for ever. Among equals: more waiters, then the first to ask. What nobody waits for
//!   goes last.
//! - Taking part costs O(log n); giving a turn back O(m log n), with m different numbers of waiters in line.
//!
//! Does not know flights: what waits is any `T`, named by a number.
//!
//! How: an item whose waiters have the weight w has waited for w·t + c in all at the time t, and c changes only when w does. So
//! among those with the same w the order stands still; the first of each are compared when a turn is given.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// As how many the first who waits for an item counts. With 1 a key of a single reader is overtaken too often: measured by the
/// longest waits of a cold start; with many more a stampede waits behind all who came before it.
const FIRST_COUNTS: i64 = 4;

/// A limited number of turns, and the line for them.
pub(super) struct Turns<T> {
    limit: usize,
    began: Instant,
    state: Mutex<State<T>>,
}

struct State<T> {
    out: usize,
    /// An item is in `line` exactly if its number is in `ranks`.
    line: BTreeMap<Rank, T>,
    ranks: HashMap<u64, Rank>,
    asked: u64,
}

/// Ordered so that of the same waiters who has waited longest comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    weight: i64,
    /// The negative of c, in microseconds.
    handicap: i64,
    asked: u64,
}

impl<T> Turns<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            began: Instant::now(),
            state: Mutex::new(State {
                out: 0,
                line: BTreeMap::new(),
                ranks: HashMap::new(),
                asked: 0,
            }),
        }
    }

    /// A turn, if there is one now.
    pub(super) fn take(&self) -> bool {
        self.state.lock().take(self.limit)
    }

    /// Gives the item back if it may have a turn now; else it waits in line under that number, which must be its own, as if it had waited there since that
    /// moment. `waiters` counts them, under the lock: who comes later tells [`waiters`](Self::waiters) so.
    pub(super) fn ask(
        &self,
        number: u64,
        mut item: T,
        since: Option<Instant>,
        waiters: impl FnOnce(&mut T) -> usize,
    ) -> Option<T> {
        let now_us = self.now_us();
        let mut state = self.state.lock();
        if state.take(self.limit) {
            return Some(item);
        }
        let rank = Rank {
            weight: weight(waiters(&mut item)),
            handicap: 0,
            asked: state.asked,
        };
        let waited_us = since.map_or(0, |since| micros(since.elapsed()));
        let rank = rank.with(rank.weight.saturating_mul(waited_us), rank.weight, now_us);
        state.asked += 1;
        let before = state.ranks.insert(number, rank);
        debug_assert!(before.is_none(), "two items with one number");
        state.line.insert(rank, item);
        None
    }

    /// Others wait for it now than before, if it waits in line: `waiters` counts them, under the lock; none leaves it at what was known. Who has left
    /// takes an equal share of the time waited.
    pub(super) fn waiters(&self, number: u64, waiters: impl FnOnce(&mut T) -> Option<usize>) {
        let now_us = self.now_us();
        let mut state = self.state.lock();
        if let Some(waiters) = state.item(number).and_then(waiters) {
            state.weighs(number, weight(waiters), now_us);
        }
    }

    /// Takes a part of it, if it waits in line under that number, and then tells by `waiters` how many wait for the rest; itself out of the line, where that
    /// is none as nothing is left.
    pub(super) fn withdraw<P>(
        &self,
        number: u64,
        take: impl FnOnce(&mut T) -> Option<P>,
        waiters: impl FnOnce(&T) -> Option<usize>,
    ) -> Option<(P, Option<T>)> {
        let now_us = self.now_us();
        let mut state = self.state.lock();
        let item = state.item(number)?;
        let part = take(item)?;
        if let Some(waiters) = waiters(item) {
            state.weighs(number, weight(waiters), now_us);
            return Some((part, None));
        }
        let rank = state.ranks.remove(&number)?;
        Some((part, state.line.remove(&rank)))
    }

    /// A turn is given back: whose it is now. `number` tells the number of an item.
    pub(super) fn give_back(&self, number: impl FnOnce(&T) -> u64) -> Option<T> {
        let now_us = self.now_us();
        let mut state = self.state.lock();
        let mut chosen: Option<Rank> = None;
        let mut next = state.line.first_key_value().map(|(rank, _)| *rank);
        while let Some(rank) = next {
            // From little weight to much: of equals the later is the better.
            if chosen.is_none_or(|best| rank.waited_us(now_us) >= best.waited_us(now_us)) {
                chosen = Some(rank);
            }
            let more = Rank {
                weight: rank.weight + 1,
                handicap: i64::MIN,
                asked: 0,
            };
            next = state.line.range(more..).next().map(|(rank, _)| *rank);
        }
        let Some(rank) = chosen else {
            state.out -= 1;
            return None;
        };
        let item = state.line.remove(&rank).expect("it was found there");
        state.ranks.remove(&number(&item));
        Some(item)
    }

    /// How much is in line, each counted by that.
    pub(super) fn in_line(&self, count: impl Fn(&T) -> usize) -> usize {
        self.state.lock().line.values().map(count).sum()
    }

    /// Turns that are out, and items in line.
    #[cfg(test)]
    fn counts(&self) -> (usize, usize) {
        let in_line = self.in_line(|_| 1);
        (self.state.lock().out, in_line)
    }

    fn now_us(&self) -> i64 {
        micros(Instant::now().saturating_duration_since(self.began))
    }
}

impl<T> State<T> {
    fn take(&mut self, limit: usize) -> bool {
        let is_free = self.out < limit;
        self.out += usize::from(is_free);
        is_free
    }

    fn item(&mut self, number: u64) -> Option<&mut T> {
        self.line.get_mut(self.ranks.get(&number)?)
    }

    /// The item of that number, which is in line, has that weight from now on.
    fn weighs(&mut self, number: u64, weight: i64, now_us: i64) {
        let Some(rank) = self.ranks.get_mut(&number) else {
            return;
        };
        let before = *rank;
        if weight == before.weight {
            return;
        }
        let mut waited_us = before.waited_us(now_us);
        if weight < before.weight {
            waited_us = waited_us / before.weight * weight;
        }
        *rank = before.with(waited_us, weight, now_us);
        let after = *rank;
        if let Some(item) = self.line.remove(&before) {
            self.line.insert(after, item);
        }
    }
}

impl Rank {
    /// What all its waiters together have waited.
    fn waited_us(self, now_us: i64) -> i64 {
        self.weight.saturating_mul(now_us).saturating_sub(self.handicap)
    }

    /// The same item, which has waited for that long, with waiters of that weight from now on.
    fn with(self, waited_us: i64, weight: i64, now_us: i64) -> Self {
        Self {
            weight,
            handicap: weight.saturating_mul(now_us).saturating_sub(waited_us),
            asked: self.asked,
        }
    }
}

/// What so many waiters count together.
fn weight(waiters: usize) -> i64 {
    match i64::try_from(waiters) {
        Ok(0) => 0,
        Ok(waiters) => waiters.saturating_add(FIRST_COUNTS - 1),
        Err(_) => i64::MAX - 1,
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn next(turns: &Turns<u64>) -> Option<u64> {
        turns.give_back(|item| *item)
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_who_have_waited_equally_long_the_most_waited_for_goes_first_and_then_the_first_to_ask() {
        let turns = Turns::new(1);
        assert_eq!(turns.ask(0, 0, None, |_| 0), Some(0), "a free turn is given at once");
        for (number, waiters) in [(1, 0), (2, 5), (3, 1), (4, 5)] {
            assert_eq!(turns.ask(number, number, None, |_| waiters), None);
        }
        turns.waiters(3, |_| Some(9));
        turns.waiters(77, |_| Some(9)); // Nobody: nothing.
        assert_eq!(turns.counts(), (1, 4));
        advance(Duration::from_millis(10)).await;
        let order: Vec<_> = std::iter::from_fn(|| next(&turns)).collect();
        assert_eq!(order, [3, 2, 4, 1]);
        assert_eq!(turns.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_only_one_waits_for_is_not_overtaken_for_ever() {
        let turns = Turns::new(1);
        turns.ask(0, 0, None, |_| 0);
        turns.ask(1, 1, None, |_| 1);
        advance(Duration::from_millis(100)).await;
        turns.ask(2, 2, None, |_| 3);
        advance(Duration::from_millis(150)).await;
        // 4 × 250 ms against 6 × 150 ms.
        assert_eq!(next(&turns), Some(1));
        turns.ask(3, 3, None, |_| 1);
        turns.ask(4, 4, None, |_| 100);
        advance(Duration::from_millis(10)).await;
        // 6 × 160 ms against 4 × 10 ms and 103 × 10 ms.
        assert_eq!(next(&turns), Some(4));
        assert_eq!(next(&turns), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_waited_for_stays_with_those_who_stay() {
        let turns = Turns::new(1);
        turns.ask(0, 0, None, |_| 0);
        turns.ask(1, 1, None, |_| 7);
        turns.ask(2, 2, None, |_| 3);
        advance(Duration::from_millis(100)).await;
        turns.waiters(1, |_| Some(2));
        // 5/10 of 1,000 ms against 600 ms; then 1 grows on.
        assert_eq!(next(&turns), Some(2));
        turns.ask(3, 3, None, |_| 1);
        turns.waiters(3, |_| Some(8));
        advance(Duration::from_millis(100)).await;
        // 500 + 500 ms against 1,100 ms.
        assert_eq!(next(&turns), Some(3));
        assert_eq!(next(&turns), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_has_waited_since_he_came_first() {
        let turns = Turns::new(1);
        assert!(turns.take() && !turns.take());
        let first = Instant::now();
        advance(Duration::from_millis(100)).await;
        turns.ask(1, 1, None, |_| 9);
        turns.ask(2, 2, Some(first), |_| 1);
        advance(Duration::from_millis(40)).await;
        // 4 × 140 ms against 12 × 40 ms.
        assert_eq!(next(&turns), Some(2));
        assert_eq!(next(&turns), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_part_was_waited_for_goes_with_it() {
        let turns = Turns::new(1);
        turns.ask(0, 0, None, |_| 0);
        turns.ask(1, 1, None, |_| 7);
        turns.ask(2, 2, None, |_| 3);
        advance(Duration::from_millis(100)).await;
        assert_eq!(
            turns.withdraw(1, |_| None::<()>, |_| Some(2)),
            None,
            "it has no such part"
        );
        assert_eq!(turns.withdraw(1, |item| Some(*item), |_| Some(2)), Some((1, None)));
        assert_eq!(turns.counts(), (1, 2));
        // 5/10 of 1,000 ms against 600 ms.
        assert_eq!(next(&turns), Some(2));
        assert_eq!(next(&turns), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_turns_are_out_than_the_limit() {
        let turns = Turns::new(2);
        let given: Vec<_> = (0..5)
            .filter_map(|number| turns.ask(number, number, None, |_| 0))
            .collect();
        assert_eq!(given, [0, 1]);
        assert_eq!(next(&turns), Some(2));
        assert_eq!(turns.counts(), (2, 2), "one given back, one given out");
        let withdraw = |number| turns.withdraw(number, |item| Some(*item), |_| None);
        assert_eq!(withdraw(3), Some((3, Some(3))));
        assert_eq!(withdraw(3), None);
        assert_eq!(next(&turns), Some(4));
        assert_eq!((next(&turns), next(&turns)), (None, None));
        assert_eq!(turns.ask(9, 9, None, |_| 0), Some(9));
    }

    #[tokio::test(start_paused = true)]
    async fn agrees_with_adding_up_everybodys_time() {
        let mut dice = 7_u64;
        let mut roll = |sides: u64| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let turns = Turns::new(1);
        turns.ask(0, 0, None, |_| 0);
        // Of each in line: its number, its waiters, what they have waited (ms).
        let mut model: Vec<(u64, u64, u64)> = Vec::new();
        for number in 1..2_000 {
            let waiters = roll(4);
            turns.ask(number, number, None, |_| waiters as usize);
            model.push((number, waiters, 0));
            let at = roll(model.len() as u64) as usize;
            model[at].1 += 1;
            turns.waiters(model[at].0, |_| Some(model[at].1 as usize));
            let passed = roll(20);
            advance(Duration::from_millis(passed)).await;
            for (_, waiters, waited) in &mut model {
                let weight = if *waiters == 0 { 0 } else { *waiters + 3 };
                *waited += weight * passed;
            }
            if roll(2) == 0 {
                let best = model
                    .iter()
                    .map(|(number, waiters, waited)| (*waited, *waiters, u64::MAX - number))
                    .max();
                let best = u64::MAX - best.unwrap().2;
                assert_eq!(next(&turns), Some(best));
                model.retain(|(number, ..)| *number != best);
            }
        }
    }
}
