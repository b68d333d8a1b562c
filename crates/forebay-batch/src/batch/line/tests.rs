//! Tests of the line: order, limits and what is cancelled, against a naive queue and case by case. Knows no runtime.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;

use super::super::inbox::{Arrival, Queued};
use super::super::slot::Ticket;
use super::*;

type SmallTicket = Ticket<u64, u64, ()>;

/// The inboxes and the line, as the intake has them.
struct Queue {
    inboxes: Inboxes<u64, u64, ()>,
    collected: Collected<u64, u64, ()>,
}

impl Queue {
    fn with(inboxes: usize) -> Self {
        Self {
            inboxes: Inboxes::with(inboxes),
            collected: Collected::new(inboxes),
        }
    }

    fn enter(&mut self, thread: usize, item: u64, weight: usize, due: Due) -> SmallTicket {
        match self.inboxes.enter(thread, Queued { item, weight, due }, None) {
            Arrival::Entered(ticket, inbox) => {
                inbox.into_iter().for_each(|inbox| self.collected.activate(inbox));
                ticket
            }
            Arrival::Closed(..) => panic!("open"),
        }
    }

    fn collect(&mut self) -> bool {
        self.collected.collect(&self.inboxes, Watch::Off)
    }

    /// A batch of what was collected, answered with its items.
    fn cut(&mut self, limits: &BatchLimits) -> Vec<u64> {
        let mut batch = Batch::new();
        let gone = InOrder.cut(&mut self.collected, limits, &mut batch);
        let items = std::mem::take(&mut batch.items);
        assert_eq!((batch.places.len(), gone), (items.len(), items.len() as u64));
        InOrder::answer(&mut batch, items.clone());
        assert!(batch.places.is_empty());
        items
    }
}

const UNBOUNDED: BatchLimits = BatchLimits {
    max_items: usize::MAX,
    max_weight: u128::MAX,
};

#[derive(Clone, Copy)]
struct Waiting {
    item: u64,
    weight: usize,
    due: Due,
}

/// What a batch of these must be, written as plainly as possible.
fn naive_cut(waiting: &mut Vec<Waiting>, limits: &BatchLimits) -> Vec<u64> {
    let mut items = Vec::new();
    let mut weight = 0;
    while let Some(&next) = waiting.first() {
        let exceeds = weight + next.weight as u128 > limits.max_weight;
        if items.len() == limits.max_items || (exceeds && !items.is_empty()) {
            break;
        }
        waiting.remove(0);
        items.push(next.item);
        weight += next.weight as u128;
        if exceeds {
            break;
        }
    }
    items
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Any mix of arrivals on any inboxes, cancellations, collections, sweeps and cuts gives the batches of a naive list.
    #[test]
    fn batches_are_those_of_a_plain_list(
        steps in prop::collection::vec(
            (0..13_u8, 0..usize::MAX, 0..9_usize, 0..100_u64),
            0..if cfg!(miri) { 60 } else { 600 },
        ),
        inboxes in prop_oneof![Just(1_usize), Just(2), Just(4), Just(64)],
        max_items in 1..100_usize,
        max_weight in prop_oneof![Just(u128::MAX), 0..50_u128],
    ) {
        let limits = BatchLimits { max_items, max_weight };
        let now = Instant::now();
        let mut queue = Queue::with(inboxes);
        // In the inboxes, and in the line.
        let mut arrived: Vec<Waiting> = Vec::new();
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut tickets = Vec::new();
        let mut processed = BTreeMap::new();
        for (number, (kind, pick, weight, wait)) in steps.into_iter().enumerate() {
            let item = number as u64;
            match kind {
                0..6 => {
                    let due = Due::By(now + Duration::from_millis(wait));
                    tickets.push((item, queue.enter(pick, item, weight, due)));
                    arrived.push(Waiting { item, weight, due });
                }
                6..9 if !tickets.is_empty() => {
                    let (item, mut ticket) = tickets.swap_remove(pick % tickets.len());
                    let position = |list: &[Waiting]| list.iter().position(|other| other.item == item);
                    let (in_inbox, in_line) = (position(&arrived), position(&waiting));
                    prop_assert_eq!(ticket.leave().was_queued, in_inbox.is_some() || in_line.is_some());
                    in_inbox.map(|position| arrived.remove(position));
                    in_line.map(|position| waiting.remove(position));
                }
                9 => {
                    queue.collected.sweep();
                    prop_assert_eq!(queue.collected.places(), waiting.len(), "only those who wait have a place");
                }
                10..12 => {
                    let before = queue.collected.places();
                    prop_assert_eq!(queue.collect(), queue.collected.places() > before);
                    waiting.append(&mut arrived);
                }
                _ => {
                    let batch = queue.cut(&limits);
                    prop_assert_eq!(&batch, &naive_cut(&mut waiting, &limits));
                    processed.extend(batch.into_iter().map(|item| (item, ())));
                }
            }
            queue.collected.validate();
            prop_assert!(queue.collected.waiting().map(|note| note.due).eq_by_sorted(waiting.iter().map(|item| item.due)));
            let survey = InOrder.survey(&queue.collected, &UNBOUNDED);
            prop_assert_eq!(survey.items, waiting.len());
            prop_assert_eq!(survey.weight, waiting.iter().map(|item| item.weight as u128).sum::<u128>());
            prop_assert_eq!(survey.due, waiting.iter().map(|item| item.due).min());
            let is_full = InOrder.survey(&queue.collected, &limits).is_full;
            let weight: u128 = waiting.iter().map(|item| item.weight as u128).sum();
            prop_assert_eq!(is_full, !waiting.is_empty() && (waiting.len() >= max_items || weight >= max_weight));
        }
        // Each call has what became of it.
        for (item, mut ticket) in tickets {
            match ticket.poll(Waker::noop()) {
                Poll::Ready(outcome) => prop_assert_eq!((outcome.ok(), processed.contains_key(&item)), (Some(item), true)),
                Poll::Pending => prop_assert!(!processed.contains_key(&item)),
            }
        }
    }
}

trait EqBySorted: Iterator + Sized
where
    Self::Item: Ord,
{
    /// Whether both give the same things, in any order.
    fn eq_by_sorted(self, other: impl Iterator<Item = Self::Item>) -> bool {
        let sorted = |mut list: Vec<Self::Item>| {
            list.sort_unstable();
            list
        };
        sorted(self.collect()) == sorted(other.collect())
    }
}

impl<T: Iterator> EqBySorted for T where T::Item: Ord {}

/// Arrivals of which earlier ones may still be in an inbox wait for the next collection.
#[test]
fn nothing_from_the_cutoff_on_is_cut() {
    for (inboxes, limits) in [(1, UNBOUNDED), (2, UNBOUNDED), (4, UNBOUNDED)] {
        let mut queue = Queue::with(inboxes);
        let _tickets: Vec<_> = (0..6)
            .map(|item| queue.enter(item as usize, item, 1, Due::AtOnce))
            .collect();
        assert!(queue.collect());
        // As when the last two arrived after the collection had begun.
        queue.collected.cutoff = 4;
        assert_eq!(queue.cut(&limits), [0, 1, 2, 3]);
        assert_eq!((queue.cut(&limits).len(), queue.collected.places()), (0, 2));
        assert!(queue.collect(), "they are settled only now");
        assert!(!queue.collect(), "and were here already");
        assert_eq!(queue.cut(&limits), [4, 5]);
    }
}

/// Threads that arrive one after the other, each on an inbox of its own, are cut in that order, however the collections fall.
#[test]
fn batches_follow_the_order_in_which_threads_arrived() {
    const THREADS: u64 = 3;
    let turns = if cfg!(miri) { 30 } else { 20_000 };
    let inboxes = Inboxes::<u64, u64, ()>::with(4);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let items = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (inboxes, next, failed) = (&inboxes, &next, &failed);
            scope.spawn(move || {
                for item in (thread..turns).step_by(THREADS as usize) {
                    while next.load(SeqCst) < item {
                        if failed.load(SeqCst) {
                            return;
                        }
                        std::thread::yield_now();
                    }
                    let queued = Queued {
                        item,
                        weight: 1,
                        due: Due::AtOnce,
                    };
                    drop(inboxes.enter(thread as usize, queued, None));
                    next.store(item + 1, SeqCst);
                }
            });
        }
        let mut collected = Collected::new(4);
        (0..THREADS as usize).for_each(|inbox| collected.activate(inbox));
        let mut items = Vec::new();
        while (items.len() as u64) < turns {
            collected.collect(&inboxes, Watch::Off);
            let mut batch = Batch::new();
            InOrder.cut(&mut collected, &UNBOUNDED, &mut batch);
            items.append(&mut batch.items);
            if !items.is_sorted() {
                break;
            }
        }
        failed.store(true, SeqCst);
        items
    });
    assert!(items.iter().copied().eq(0..turns), "one after the other");
}

#[test]
fn a_line_is_left_to_the_watch_only_when_nothing_has_arrived() {
    for inboxes in [1, 2, 4] {
        let mut queue = Queue::with(inboxes);
        let _first = queue.enter(0, 0, 1, Due::AtOnce);
        assert!(!queue.collected.stand_down(&queue.inboxes), "it holds one now");
        assert_eq!(queue.cut(&UNBOUNDED), [0]);
        assert_eq!(queue.collected.active_inboxes(), 1);
        assert!(queue.collected.stand_down(&queue.inboxes));
        assert_eq!(queue.collected.active_inboxes(), 0);
        // On watch again, hence active, hence collected.
        let _second = queue.enter(inboxes - 1, 1, 1, Due::AtOnce);
        assert_eq!(queue.collected.active_inboxes(), 1);
        assert!(queue.collect());
        assert_eq!(queue.cut(&UNBOUNDED), [1]);
    }
}

#[test]
fn places_of_cancelled_calls_do_not_pile_up() {
    for inboxes in [1, 2, 4] {
        for by_sweep in [false, true] {
            let mut queue = Queue::with(inboxes);
            let mut stays = None;
            for item in 0..if cfg!(miri) { 400 } else { 100_000 } {
                let mut leaves = queue.enter(item as usize, item, 1, Due::AtOnce);
                if item == 50 {
                    stays = Some(leaves);
                    continue;
                }
                drop(leaves.leave());
                if item % 100 == 99 {
                    queue.collect();
                    if by_sweep {
                        queue.collected.sweep();
                    } else {
                        queue.cut(&UNBOUNDED);
                    }
                    queue.collected.validate();
                    assert_eq!(queue.collected.places(), usize::from(by_sweep));
                }
            }
            let chunks = queue.inboxes.chunks();
            assert!(chunks <= 3 * inboxes + 5, "{chunks} chunks in {inboxes} inboxes");
            assert!(stays.is_some_and(|mut stays| stays.poll(Waker::noop()).is_ready() != by_sweep));
        }
    }
}

#[test]
fn a_survey_waits_for_the_earliest_window_unless_the_batch_is_full_or_one_does_not_wait() {
    let now = Instant::now();
    let end = |milliseconds| now + Duration::from_millis(milliseconds);
    let limits = BatchLimits {
        max_items: 3,
        max_weight: 10,
    };
    let note = |weight, due| Note {
        arrival: 0,
        weight,
        due,
    };
    let wait = |notes: &[Note]| Survey::of(notes.iter().copied(), &limits).time_to_wait(|| now);
    let by = |milliseconds| Due::By(end(milliseconds));
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[note(1, by(7)), note(1, by(5))]), Some(end(5)));
    assert_eq!(wait(&[note(1, by(7)), note(1, by(0))]), None, "its window has ended");
    assert_eq!(wait(&[note(1, by(7)), note(1, Due::AtOnce)]), None);
    assert_eq!(wait(&[note(1, by(7)); 3]), None, "full by items");
    assert_eq!(wait(&[note(9, by(7))]), Some(end(7)));
    assert_eq!(wait(&[note(9, by(7)), note(1, by(7))]), None, "full by weight");
}
