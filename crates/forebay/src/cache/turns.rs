//! Who may fetch next, when only so many may at a time: whoever most wait for.
//!
//! Promises: never more than `limit` turns are out. A turn that is given back goes to what has the highest rank, and among
//! equals to what asked first. Taking part costs O(log n).
//!
//! Does not know flights: what waits is any `T`, named by a number.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;

/// A limited number of turns, and the line for them.
pub(super) struct Turns<T> {
    limit: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    out: usize,
    /// First the highest rank, then the earliest to ask. An item is in `line` exactly if its number is in `ranks`.
    line: BTreeMap<(Reverse<usize>, u64), T>,
    ranks: HashMap<u64, Place>,
    asked: u64,
}

#[derive(Clone, Copy)]
struct Place {
    rank: usize,
    asked: u64,
}

impl<T> Turns<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                out: 0,
                line: BTreeMap::new(),
                ranks: HashMap::new(),
                asked: 0,
            }),
        }
    }

    /// Gives the item back if it may have a turn now; else it waits in line under that number, which must be its own.
    pub(super) fn ask(&self, number: u64, rank: usize, item: T) -> Option<T> {
        let mut state = self.state.lock();
        if state.out < self.limit {
            state.out += 1;
            return Some(item);
        }
        let place = Place {
            rank,
            asked: state.asked,
        };
        state.asked += 1;
        let before = state.ranks.insert(number, place);
        debug_assert!(before.is_none(), "two items with one number");
        state.line.insert(place.key(), item);
        None
    }

    /// Gives it that rank, if it waits in line.
    pub(super) fn rank(&self, number: u64, rank: usize) {
        let mut state = self.state.lock();
        let Some(place) = state.ranks.get_mut(&number) else {
            return;
        };
        let before = place.key();
        place.rank = rank;
        let after = place.key();
        if let Some(item) = state.line.remove(&before) {
            state.line.insert(after, item);
        }
    }

    /// Takes it out of the line, if it waits there.
    pub(super) fn withdraw(&self, number: u64) -> Option<T> {
        let mut state = self.state.lock();
        let place = state.ranks.remove(&number)?;
        state.line.remove(&place.key())
    }

    /// A turn is given back: whose it is now. `number` tells the number of an item.
    pub(super) fn give_back(&self, number: impl FnOnce(&T) -> u64) -> Option<T> {
        let mut state = self.state.lock();
        match state.line.pop_first() {
            Some((_, item)) => {
                state.ranks.remove(&number(&item));
                Some(item)
            }
            None => {
                state.out -= 1;
                None
            }
        }
    }

    /// Turns that are out, and items in line.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.out, state.line.len())
    }
}

impl Place {
    fn key(self) -> (Reverse<usize>, u64) {
        (Reverse(self.rank), self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(turns: &Turns<u64>) -> Option<u64> {
        turns.give_back(|item| *item)
    }

    #[test]
    fn the_highest_rank_goes_first_and_among_equals_the_first_to_ask() {
        let turns = Turns::new(1);
        assert_eq!(turns.ask(0, 0, 0), Some(0), "a free turn is given at once");
        for (number, rank) in [(1, 0), (2, 5), (3, 1), (4, 5)] {
            assert_eq!(turns.ask(number, rank, number), None);
        }
        turns.rank(1, 9);
        turns.rank(77, 9); // Nobody: nothing.
        assert_eq!(turns.counts(), (1, 4));
        let order: Vec<_> = std::iter::from_fn(|| next(&turns)).collect();
        assert_eq!(order, [1, 2, 4, 3]);
        assert_eq!(turns.counts(), (0, 0));
    }

    #[test]
    fn no_more_turns_are_out_than_the_limit() {
        let turns = Turns::new(2);
        let given: Vec<_> = (0..5).filter_map(|number| turns.ask(number, 0, number)).collect();
        assert_eq!(given, [0, 1]);
        assert_eq!(next(&turns), Some(2));
        assert_eq!(turns.counts(), (2, 2), "one given back, one given out");
        assert_eq!(turns.withdraw(3), Some(3));
        assert_eq!(turns.withdraw(3), None);
        assert_eq!(next(&turns), Some(4));
        assert_eq!((next(&turns), next(&turns)), (None, None));
        assert_eq!(turns.ask(9, 0, 9), Some(9));
    }
}
