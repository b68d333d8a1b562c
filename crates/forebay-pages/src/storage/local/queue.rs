//! The queue of what waits to begin: in fair turns between readers, within limits.
//!
//! Promises: no more than `depth` items run at once, and no more than `depth_per_read` of one reader. Readers who have items waiting,
//! and may begin one more, take turns, one item at a time; the items of a reader begin in the order in which they came. None is
//! lost: each is given out once, either by `next` or by `drain`.
//!
//! Knows neither files nor threads; its owner locks it.

use std::collections::VecDeque;

/// Which reader it is, from `submit` until all that it submitted has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderNumber(usize);

/// One reader: what was submitted together.
struct Reader<T> {
    waiting: VecDeque<T>,
    /// <= `depth_per_read`.
    running: usize,
    /// Whether its number is in `turns`: when it has something waiting and runs less than it may, and only then.
    in_turns: bool,
}

/// The queue.
pub(super) struct Queue<T> {
    depth: usize,
    depth_per_read: usize,
    /// By number; those in `free` are empty.
    readers: Vec<Reader<T>>,
    free: Vec<usize>,
    /// Who may begin one more, in the order of their turns.
    turns: VecDeque<usize>,
    /// The sum of all readers' `waiting`.
    waiting: usize,
    /// The sum of all readers' `running`; <= `depth`.
    running: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(depth: usize, depth_per_read: usize) -> Self {
        assert!(
            depth > 0 && depth_per_read > 0,
            "with no depth nothing would ever begin"
        );
        Self {
            depth,
            depth_per_read,
            readers: Vec::new(),
            free: Vec::new(),
            turns: VecDeque::new(),
            waiting: 0,
            running: 0,
        }
    }

    /// Takes the items of one reader. Its first turn comes after those of all who are already waiting for one.
    pub(super) fn submit(&mut self, items: Vec<T>) {
        if items.is_empty() {
            return;
        }
        self.waiting += items.len();
        let reader = Reader {
            waiting: items.into(),
            running: 0,
            in_turns: true,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.readers[number] = reader;
                number
            }
            None => {
                self.readers.push(reader);
                self.readers.len() - 1
            }
        };
        self.turns.push_back(number);
    }

    /// The next one to begin; `ended` is to follow. `None`: nothing waits that may begin now.
    pub(super) fn next(&mut self) -> Option<(ReaderNumber, T)> {
        if self.running == self.depth {
            return None;
        }
        let number = self.turns.pop_front()?;
        let reader = &mut self.readers[number];
        let item = reader
            .waiting
            .pop_front()
            .expect("a reader in turns has something waiting");
        reader.running += 1;
        self.running += 1;
        self.waiting -= 1;
        reader.in_turns = !reader.waiting.is_empty() && reader.running < self.depth_per_read;
        if reader.in_turns {
            self.turns.push_back(number);
        }
        Some((ReaderNumber(number), item))
    }

    /// One of the reader's that was given out has ended.
    pub(super) fn ended(&mut self, ReaderNumber(number): ReaderNumber) {
        let reader = &mut self.readers[number];
        reader.running = reader.running.checked_sub(1).expect("what ended was running");
        self.running -= 1;
        if reader.waiting.is_empty() {
            if reader.running == 0 {
                self.free.push(number);
            }
        } else if !reader.in_turns {
            reader.in_turns = true;
            self.turns.push_back(number);
        }
    }

    /// Takes out all that has not begun.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.turns.clear();
        self.waiting = 0;
        let mut drained = Vec::new();
        for (number, reader) in self.readers.iter_mut().enumerate() {
            reader.in_turns = false;
            if !reader.waiting.is_empty() && reader.running == 0 {
                self.free.push(number);
            }
            drained.extend(reader.waiting.drain(..));
        }
        drained
    }

    /// Whether `next` would give something out.
    pub(super) fn has_next(&self) -> bool {
        self.running < self.depth && !self.turns.is_empty()
    }

    /// How many have not begun.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many have begun and not ended.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Panics where the structure contradicts itself.
    #[cfg(test)]
    fn validate(&self) {
        assert_eq!(
            self.waiting,
            self.readers.iter().map(|reader| reader.waiting.len()).sum::<usize>()
        );
        assert_eq!(
            self.running,
            self.readers.iter().map(|reader| reader.running).sum::<usize>()
        );
        assert!(self.running <= self.depth);
        let mut in_turns = vec![0; self.readers.len()];
        for &number in &self.turns {
            in_turns[number] += 1;
        }
        let mut free = vec![0; self.readers.len()];
        for &number in &self.free {
            free[number] += 1;
        }
        for (number, reader) in self.readers.iter().enumerate() {
            assert!(reader.running <= self.depth_per_read);
            let may_begin = !reader.waiting.is_empty() && reader.running < self.depth_per_read;
            assert_eq!(reader.in_turns, may_begin, "reader {number}");
            assert_eq!(in_turns[number], usize::from(may_begin), "reader {number} in turns");
            let is_over = reader.waiting.is_empty() && reader.running == 0;
            assert_eq!(free[number], usize::from(is_over), "reader {number} free");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn readers_take_turns_and_each_keeps_its_order() {
        let mut queue = Queue::new(100, 100);
        queue.submit(vec!["a1", "a2", "a3", "a4"]);
        queue.submit(vec!["b1"]);
        queue.submit(vec!["c1", "c2"]);
        let order: Vec<&str> = std::iter::from_fn(|| queue.next()).map(|(_, item)| item).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "c2", "a3", "a4"]);
        queue.validate();
    }

    #[test]
    fn a_reader_at_its_limit_does_not_hold_up_the_others() {
        let mut queue = Queue::new(100, 2);
        queue.submit((0..1000).collect());
        let first = queue.next().unwrap();
        assert_eq!(first.1, 0);
        assert_eq!(queue.next().unwrap().1, 1);
        assert!(queue.next().is_none(), "its own limit");
        queue.submit(vec![5000]);
        assert_eq!(queue.next().unwrap().1, 5000);
        queue.ended(first.0);
        assert_eq!(queue.next().unwrap().1, 2);
        queue.validate();
    }

    #[test]
    fn the_depth_holds_for_all_together() {
        let mut queue = Queue::new(3, 2);
        for reader in 0..3 {
            queue.submit(vec![reader; 5]);
        }
        let running: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(running.iter().map(|(_, reader)| *reader).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(!queue.has_next());
        queue.ended(running[1].0);
        assert!(queue.has_next());
        assert_eq!(queue.next().unwrap().1, 0, "whose turn it is");
    }

    #[test]
    fn nothing_to_hand_over_leaves_no_trace() {
        let mut queue = Queue::<u8>::new(1, 1);
        queue.submit(Vec::new());
        queue.validate();
        assert!(!queue.has_next() && queue.next().is_none());
        assert_eq!((queue.waiting(), queue.running()), (0, 0));
    }

    proptest! {
        /// All that is handed over comes out once, in its reader's order, within the limits, whatever the order of events.
        #[test]
        fn none_is_lost(
            depth in 1_usize..6,
            depth_per_read in 1_usize..6,
            events in prop::collection::vec((0_u8..8, 0_usize..9), 1..200),
            drains in any::<bool>(),
        ) {
            let mut queue = Queue::new(depth, depth_per_read);
            let mut handed_over = Vec::new();
            let mut given_out: Vec<Vec<usize>> = Vec::new();
            let mut running = Vec::new();
            let take = |queue: &mut Queue<(usize, usize)>, running: &mut Vec<_>, given_out: &mut Vec<Vec<usize>>| {
                let may_be_next = queue.has_next();
                let next = queue.next();
                assert_eq!(next.is_some(), may_be_next);
                if let Some((number, (reader, place))) = next {
                    given_out[reader].push(place);
                    running.push((number, reader));
                }
            };
            for (event, size) in events {
                match event {
                    0 | 1 => {
                        let reader = handed_over.len();
                        queue.submit((0..size).map(|place| (reader, place)).collect());
                        handed_over.push(size);
                        given_out.push(Vec::new());
                    }
                    2..5 => take(&mut queue, &mut running, &mut given_out),
                    _ if running.is_empty() => {}
                    _ => queue.ended(running.swap_remove(size % running.len()).0),
                }
                queue.validate();
                assert_eq!(queue.running(), running.len());
                for reader in 0..handed_over.len() {
                    assert!(running.iter().filter(|(_, of)| *of == reader).count() <= depth_per_read);
                }
            }
            if drains {
                for (reader, place) in queue.drain() {
                    given_out[reader].push(place);
                }
                queue.validate();
            }
            while queue.waiting() > 0 || queue.running() > 0 {
                take(&mut queue, &mut running, &mut given_out);
                if let Some((number, _)) = running.pop() {
                    queue.ended(number);
                }
                queue.validate();
            }
            for (reader, size) in handed_over.into_iter().enumerate() {
                assert_eq!(given_out[reader], (0..size).collect::<Vec<_>>());
            }
        }
    }
}
