//! Tests of the intake: who is told to come for what is in line, and when; with one, two and four inboxes, on one thread. Knows
//! no runtime: a waker that is handed back is all there is of a gatherer.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;

use super::super::dispatch::deliver;
use super::super::window::Due;
use super::*;

const LIMITS: Limits = Limits {
    batch: BatchLimits {
        max_items: 2,
        max_weight: u128::MAX,
    },
    max_in_flight: 2,
    max_queued: 100,
};

type Small = Intake<u64, u64, ()>;
type SmallTicket = Ticket<u64, u64, ()>;
type SmallBatch = Batch<u64, u64, ()>;

fn small(limits: Limits, inboxes: usize) -> Small {
    Small::with(limits, InOrder, Inboxes::with(inboxes))
}

/// With each number of inboxes.
fn for_each_number_of_inboxes(limits: Limits, test: impl Fn(&Small)) {
    for inboxes in [1, 2, 4] {
        test(&small(limits, inboxes));
    }
}

/// An arrival on the inbox of the item's number.
fn enter(intake: &Small, item: u64, due: Due) -> (SmallTicket, Todo) {
    enter_weighed(intake, item as usize, item, 0, due)
}

fn enter_weighed(intake: &Small, thread: usize, item: u64, weight: usize, due: Due) -> (SmallTicket, Todo) {
    let queued = Queued { item, weight, due };
    intake.enter(thread, queued, None).unwrap_or_else(|_| panic!("open"))
}

fn next(intake: &Small, batch: &mut SmallBatch, now: Instant) -> (Next, Todo) {
    let mut waker = Some(Waker::noop().clone());
    intake.next(batch, &mut waker, || now)
}

fn go_on(intake: &Small, batch: &mut SmallBatch) -> Option<Todo> {
    let (goes_on, todo) = intake.go_on(&mut Batch::new(), batch);
    goes_on.then_some(todo)
}

/// Answers a batch with its items.
fn answer(batch: &mut SmallBatch) {
    let items = std::mem::take(&mut batch.items);
    InOrder::answer(batch, items);
}

fn outcome(ticket: &mut SmallTicket) -> Option<u64> {
    match ticket.poll(Waker::noop()) {
        Poll::Ready(outcome) => Some(outcome.unwrap_or_else(|_| panic!("answered"))),
        Poll::Pending => None,
    }
}

#[test]
fn one_gatherer_at_most_and_the_next_is_started_when_it_has_its_batch() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let mut starts = Vec::new();
        let mut tickets = Vec::new();
        for item in 0..5 {
            let (ticket, todo) = enter(intake, item, Due::AtOnce);
            starts.push(todo.start_runner);
            tickets.push(ticket);
            intake.validate();
        }
        assert_eq!(starts, [true, false, false, false, false]);
        let mut batches = [Batch::new(), Batch::new()];
        let (first, todo) = next(intake, &mut batches[0], Instant::now());
        assert_eq!((first, todo.start_runner), (Next::Run, true));
        let (second, todo) = next(intake, &mut batches[1], Instant::now());
        // Both places are taken: the last item waits for whoever finishes first.
        assert_eq!((second, todo.start_runner), (Next::Run, false));
        assert_eq!([&batches[0].items, &batches[1].items], [&[0, 1], &[2, 3]]);
        intake.validate();
        let (gathers, _) = intake.finish();
        assert!(gathers);
        intake.validate();
        let (gathers, _) = intake.finish();
        assert!(!gathers, "there is a gatherer for the last item already");
        intake.validate();
        let mut last = Batch::new();
        assert_eq!(next(intake, &mut last, Instant::now()).0, Next::Run);
        assert_eq!(last.items, [4]);
    });
}

#[test]
fn a_sleeping_gatherer_is_woken_only_to_leave_earlier() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        let mut batch = Batch::new();
        let (mut first, todo) = enter(intake, 0, Due::By(end));
        assert!(todo.start_runner);
        assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
        // Cancelled and replaced by a later window: it need not look again now, and finds the later end in time.
        let later = end + Duration::from_secs(1);
        let (mut second, todo) = enter(intake, 1, Due::By(later));
        assert!(todo.wake.is_some(), "a full batch goes");
        let (_, todo) = intake.cancel(&mut first);
        assert!(todo.wake.is_none());
        assert_eq!(next(intake, &mut batch, now).0, Next::Wait(later));
        let sooner = now + Duration::from_millis(500);
        let (mut third, todo) = enter(intake, 2, Due::By(sooner));
        assert!(todo.wake.is_some());
        drop(intake.cancel(&mut third));
        assert_eq!(next(intake, &mut batch, now).0, Next::Wait(later));
        let (_, todo) = intake.cancel(&mut second);
        assert!(todo.wake.is_some(), "nobody is left to gather");
        assert_eq!(next(intake, &mut batch, now).0, Next::Leave);
        intake.validate();
    });
}

#[test]
fn a_sleeping_gatherer_is_woken_by_a_sooner_window_and_not_by_a_later_one() {
    for_each_number_of_inboxes(
        Limits {
            batch: BatchLimits {
                max_items: 100,
                max_weight: u128::MAX,
            },
            ..LIMITS
        },
        |intake| {
            let now = Instant::now();
            let end = now + Duration::from_secs(10);
            let mut batch = Batch::new();
            let _first = enter(intake, 0, Due::By(end));
            assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
            // On each inbox, also one that was not looked at before.
            for item in 1..9 {
                let (_, todo) = enter(intake, item, Due::By(end + Duration::from_secs(item)));
                assert!(todo.is_nothing(), "it sleeps on");
            }
            let mut end = end;
            for item in 9..18 {
                end -= Duration::from_millis(1);
                let (_, todo) = enter(intake, item, Due::By(end));
                assert!(todo.wake.is_some() && !todo.start_runner, "item {item}");
                assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
            }
            let (_, todo) = enter(intake, 18, Due::AtOnce);
            assert!(todo.wake.is_some());
            assert_eq!(next(intake, &mut batch, now).0, Next::Run);
            assert!(batch.items.iter().copied().eq(0..19));
        },
    );
}

/// How the arrivals of a window are spread over inboxes, in order: `inboxes` choices each.
fn spreads(inboxes: usize, arrivals: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..inboxes.pow(arrivals)).map(move |mut number| {
        let digits = (0..arrivals).map(|_| {
            let inbox = number % inboxes;
            number /= inboxes;
            inbox
        });
        digits.collect()
    })
}

/// Gathers under a window, and checks after each arrival that the gatherer was roused when the batch became full, not
/// earlier and not later.
fn roused_when_full(spread: &[(usize, usize)], inboxes: usize, batch_limits: BatchLimits) {
    let limits = Limits {
        batch: batch_limits,
        max_in_flight: 1,
        max_queued: 1,
    };
    let intake = small(limits, inboxes);
    let now = Instant::now();
    let end = now + Duration::from_secs(1);
    let mut batch = Batch::new();
    let (mut items, mut weight) = (0, 0);
    let mut tickets = Vec::new();
    for &(thread, own) in spread {
        let (ticket, todo) = enter_weighed(&intake, thread, items as u64, own, Due::By(end));
        tickets.push(ticket);
        items += 1;
        weight += own as u128;
        let is_full = items >= batch_limits.max_items || weight >= batch_limits.max_weight;
        if items == 1 {
            assert!(todo.start_runner);
            let found = next(&intake, &mut batch, now).0;
            assert_eq!(found, if is_full { Next::Run } else { Next::Wait(end) });
        } else {
            assert_eq!(
                todo.wake.is_some(),
                is_full,
                "{spread:?} over {inboxes} inboxes at {items}, {batch_limits:?}"
            );
            assert!(!todo.start_runner);
        }
        intake.validate();
        if is_full {
            break;
        }
    }
    let is_full = items >= batch_limits.max_items || weight >= batch_limits.max_weight;
    if is_full && items > 1 {
        assert_eq!(next(&intake, &mut batch, now).0, Next::Run);
    }
}

/// Every way to spread up to six arrivals over up to four inboxes.
#[test]
fn a_sleeping_gatherer_is_roused_exactly_when_the_batch_is_full_however_the_items_are_spread() {
    for inboxes in [1, 2, 3, 4] {
        for max_items in 1..=6 {
            for spread in spreads(inboxes, max_items) {
                let spread: Vec<_> = spread.into_iter().map(|inbox| (inbox, 1)).collect();
                for (max_items, max_weight) in [
                    (max_items as usize, u128::MAX),
                    (usize::MAX, u128::from(max_items)),
                    (max_items as usize, u128::from(max_items)),
                ] {
                    roused_when_full(&spread, inboxes, BatchLimits { max_items, max_weight });
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sleeping_gatherer_is_roused_exactly_when_full_by_any_weights(
        spread in prop::collection::vec((0..8_usize, 0..20_usize), 1..80),
        inboxes in 1..9_usize,
        max_items in 1..70_usize,
        max_weight in prop_oneof![Just(u128::MAX), 1..400_u128],
    ) {
        roused_when_full(&spread, inboxes, BatchLimits { max_items, max_weight });
    }

    /// Any mix of arrivals, cancellations, looks, ends and losses: the books are right, somebody always comes, every call
    /// has its own outcome.
    #[test]
    fn somebody_always_comes_for_what_is_in_line(
        steps in prop::collection::vec((0..12_u8, 0..usize::MAX), 0..300),
        inboxes in prop_oneof![Just(1_usize), Just(2), Just(4)],
        max_items in 1..8_usize,
        max_in_flight in 1..4_usize,
    ) {
        let limits = Limits { batch: BatchLimits { max_items, max_weight: u128::MAX }, max_in_flight, max_queued: 10 };
        let intake = small(limits, inboxes);
        let now = Instant::now();
        let mut tickets: Vec<(u64, SmallTicket)> = Vec::new();
        let mut gatherers = 0;
        let mut running: Vec<SmallBatch> = Vec::new();
        let mut processed = Vec::new();
        let mut steps = steps.into_iter().enumerate();
        loop {
            let (kind, pick) = match steps.next() {
                Some((number, (0..6, pick))) => {
                    let (ticket, todo) = enter_weighed(&intake, pick, number as u64, 0, Due::AtOnce);
                    tickets.push((number as u64, ticket));
                    gatherers += usize::from(todo.start_runner);
                    (99, 0)
                }
                Some((_, step)) => step,
                // In the end all that runs ends.
                None if gatherers > 0 => (9, 0),
                None if !running.is_empty() => (11, 0),
                None => break,
            };
            match kind {
                6..8 if !tickets.is_empty() => {
                    let (item, mut ticket) = tickets.swap_remove(pick % tickets.len());
                    let (displaced, todo) = intake.cancel(&mut ticket);
                    prop_assert_eq!(displaced.was_queued, !processed.contains(&item));
                    prop_assert!(todo.is_nothing());
                }
                8..10 if gatherers > 0 => {
                    let mut batch = Batch::new();
                    let (found, todo) = next(&intake, &mut batch, now);
                    gatherers += usize::from(todo.start_runner);
                    gatherers -= 1;
                    if found == Next::Run {
                        prop_assert!((1..=max_items).contains(&batch.items.len()));
                        prop_assert!(batch.items.is_sorted());
                        prop_assert!(processed.last() < batch.items.first(), "in order of arrival");
                        processed.extend(&batch.items);
                        running.push(batch);
                    }
                }
                10..12 if !running.is_empty() => {
                    let mut ended = running.swap_remove(pick % running.len());
                    let mut following = Batch::new();
                    let (goes_on, todo) = intake.go_on(&mut ended, &mut following);
                    answer(&mut ended);
                    if goes_on {
                        gatherers += usize::from(todo.start_runner);
                        processed.extend(&following.items);
                        running.push(following);
                    } else {
                        let (gathers, _) = intake.finish();
                        gatherers += usize::from(gathers);
                    }
                }
                _ => {}
            }
            prop_assert!(gatherers <= 1);
            prop_assert!(running.len() + gatherers <= max_in_flight);
            intake.validate();
        }
        let stats = intake.stats();
        prop_assert_eq!((stats.queued, stats.waiting, stats.in_flight), (0, 0, 0));
        for (item, mut ticket) in tickets {
            prop_assert_eq!(outcome(&mut ticket), Some(item));
        }
    }
}

#[test]
fn a_runner_goes_on_with_a_full_batch_only() {
    let limits = Limits {
        max_in_flight: 1,
        ..LIMITS
    };
    for_each_number_of_inboxes(limits, |intake| {
        let mut tickets: Vec<_> = (0..5).map(|item| enter(intake, item, Due::AtOnce).0).collect();
        let mut batch = Batch::new();
        assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
        assert_eq!(batch.items, [0, 1]);
        let mut second = Batch::new();
        let (goes_on, todo) = intake.go_on(&mut batch, &mut second);
        assert!(goes_on && !todo.start_runner);
        assert_eq!(second.items, [2, 3]);
        answer(&mut batch);
        answer(&mut second);
        intake.validate();
        assert_eq!((intake.stats().in_flight, intake.stats().batches), (1, 2));
        assert!(go_on(intake, &mut Batch::new()).is_none(), "one item may find company");
        assert!(intake.finish().0);
        intake.validate();
        for (item, ticket) in tickets.iter_mut().enumerate().take(4) {
            assert_eq!(outcome(ticket), Some(item as u64));
        }
        assert_eq!(outcome(&mut tickets[4]), None);
    });
}

#[test]
fn a_runner_leaves_a_full_batch_to_the_gatherer_that_is_coming() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let _first: Vec<_> = (0..2).map(|item| enter(intake, item, Due::AtOnce)).collect();
        assert_eq!(next(intake, &mut Batch::new(), Instant::now()).0, Next::Run);
        let (_third, todo) = enter(intake, 2, Due::AtOnce);
        assert!(todo.start_runner);
        let _fourth = enter(intake, 3, Due::AtOnce);
        assert!(go_on(intake, &mut Batch::new()).is_none());
        assert!(!intake.finish().0);
        intake.validate();
    });
}

#[test]
fn the_end_of_a_window_sends_the_batch() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let end = Instant::now();
        let mut batch = Batch::new();
        let (_ticket, _) = enter(intake, 0, Due::By(end));
        assert_eq!(next(intake, &mut batch, end).0, Next::Run);
        assert_eq!(batch.items, [0]);
    });
}

#[test]
fn a_lost_runner_leaves_the_line_to_others_and_the_last_one_brings_it_back() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let _tickets: Vec<_> = (0..9).map(|item| enter(intake, item, Due::AtOnce)).collect();
        let mut batches = [Batch::new(), Batch::new()];
        for batch in &mut batches {
            assert_eq!(next(intake, batch, Instant::now()).0, Next::Run);
        }
        let mut stranded = Batch::new();
        let _ = intake.lose_runner(Some(&mut batches[0]), &mut stranded);
        assert!(stranded.places.is_empty());
        let _ = intake.lose_runner(Some(&mut batches[1]), &mut stranded);
        assert_eq!(stranded.items, [4, 5, 6, 7, 8], "more than a batch");
        intake.validate();
        assert_eq!((intake.stats().in_flight, intake.stats().queued), (0, 0));
        // A new one is started for the next arrival.
        assert!(enter(intake, 9, Due::AtOnce).1.start_runner);
    });
}

#[test]
fn a_lost_gatherer_brings_the_line_back_and_is_forgotten() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        for sleeps in [false, true] {
            let _ticket = enter(intake, 3, Due::By(end));
            if sleeps {
                assert_eq!(next(intake, &mut Batch::new(), now).0, Next::Wait(end));
            }
            let mut stranded = Batch::new();
            let _ = intake.lose_runner(None, &mut stranded);
            assert_eq!(stranded.items, [3]);
            stranded.places.drain(..).for_each(|place| deliver(place, Ok(0)));
            intake.validate();
        }
    });
}

#[test]
fn a_line_that_everybody_left_makes_no_batch() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let mut tickets: Vec<_> = (0..3).map(|item| enter(intake, item, Due::AtOnce).0).collect();
        for ticket in &mut tickets {
            let (displaced, _) = intake.cancel(ticket);
            assert!(displaced.was_queued);
        }
        let mut batch = Batch::new();
        assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Leave);
        assert!(batch.items.is_empty());
        let stats = intake.stats();
        assert_eq!(
            (stats.batches, stats.in_flight, stats.cancelled, stats.queued),
            (0, 0, 3, 0)
        );
        assert!(enter(intake, 1, Due::AtOnce).1.start_runner);
    });
}

#[test]
fn a_call_cancelled_before_the_cut_never_reaches_the_processor_and_after_it_only_its_outcome_is_dropped() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let mut tickets: Vec<_> = (0..3).map(|item| enter(intake, item, Due::AtOnce).0).collect();
        assert!(intake.cancel(&mut tickets[0]).0.was_queued);
        let mut batch = Batch::new();
        assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
        assert_eq!(batch.items, [1, 2], "its room is another's");
        assert!(!intake.cancel(&mut tickets[1]).0.was_queued);
        assert_eq!(intake.stats().cancelled, 1);
        answer(&mut batch);
        assert_eq!(outcome(&mut tickets[2]), Some(2));
    });
}

/// An arrival that nobody was told of is found by the one who would stand down.
#[test]
fn a_runner_that_finishes_looks_again_before_it_leaves() {
    let limits = Limits {
        max_in_flight: 1,
        ..LIMITS
    };
    for_each_number_of_inboxes(limits, |intake| {
        for inbox in 0..4 {
            let _first = enter(intake, inbox, Due::AtOnce);
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            answer(&mut batch);
            let (_second, todo) = enter(intake, inbox, Due::AtOnce);
            assert!(todo.is_nothing(), "whoever finishes looks");
            assert!(intake.finish().0, "an item in inbox {inbox}");
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [inbox]);
            answer(&mut batch);
            assert!(!intake.finish().0);
            intake.validate();
        }
    });
}

#[test]
fn batches_are_cut_in_order_of_arrival_across_inboxes() {
    let limits = Limits {
        batch: BatchLimits {
            max_items: 3,
            max_weight: u128::MAX,
        },
        max_in_flight: 1,
        max_queued: 1,
    };
    for inboxes in [1, 2, 4] {
        for spread in spreads(inboxes, 5) {
            let intake = small(limits, inboxes);
            let arrive = |item: usize| enter_weighed(&intake, spread[item], item as u64, 0, Due::AtOnce);
            let _before: Vec<_> = (0..4).map(arrive).collect();
            let mut batch = Batch::new();
            assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [0, 1, 2]);
            // Into whichever inbox: behind the one that waits.
            let _last = arrive(4);
            assert!(intake.finish().0);
            let mut batch = Batch::new();
            assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [3, 4]);
        }
    }
}

#[test]
fn pending_calls_make_full_batches_whichever_inboxes_they_are_in() {
    let limits = Limits {
        max_in_flight: 1,
        ..LIMITS
    };
    for_each_number_of_inboxes(limits, |intake| {
        let _tickets: Vec<_> = (0..101)
            .map(|item| enter(intake, item * item / 3, Due::AtOnce))
            .collect();
        let mut batch = Batch::new();
        let mut gathers = true;
        while gathers {
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            loop {
                answer(&mut batch);
                if go_on(intake, &mut batch).is_none() {
                    break;
                }
            }
            gathers = intake.finish().0;
        }
        assert_eq!(intake.stats().batches, 51);
    });
}

#[test]
fn the_bound_holds_across_inboxes() {
    let limits = Limits {
        max_queued: 3,
        max_in_flight: 1,
        ..LIMITS
    };
    for_each_number_of_inboxes(limits, |intake| {
        let try_enter = |item: u64| {
            let queued = Queued {
                item,
                weight: 0,
                due: Due::AtOnce,
            };
            intake.try_enter(item as usize, queued)
        };
        let (mut first, todo) = try_enter(0).unwrap_or_else(|_| panic!("room"));
        assert!(todo.start_runner);
        let _others: Vec<_> = (1..3)
            .map(|item| try_enter(item).unwrap_or_else(|_| panic!("room")))
            .collect();
        assert!(matches!(try_enter(3), Err((Refusal::Full, 3))));
        // An entered call makes its own room, and is counted apart.
        let _waits = enter(intake, 4, Due::AtOnce);
        assert_eq!((intake.stats().queued, intake.stats().waiting), (3, 1));
        assert!(intake.cancel(&mut first).0.was_queued);
        assert!(matches!(try_enter(5), Err((Refusal::Full, 5))));
        let mut batch = Batch::new();
        assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
        assert_eq!(batch.items, [1, 2]);
        assert!(try_enter(6).is_ok());
        assert!(try_enter(7).is_ok());
        assert!(matches!(try_enter(8), Err((Refusal::Full, 8))));
        drop(intake.close());
        assert!(matches!(try_enter(9), Err((Refusal::Closed, 9))));
    });
}

#[test]
fn after_close_nothing_enters_and_nobody_waits_for_a_window() {
    for_each_number_of_inboxes(LIMITS, |intake| {
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        let _ticket = enter(intake, 0, Due::By(end));
        let mut batch = Batch::new();
        assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
        let todo = intake.close();
        assert!(todo.wake.is_some(), "the sleeper is roused");
        for thread in 0..4 {
            let queued = Queued {
                item: 7,
                weight: 0,
                due: Due::AtOnce,
            };
            let refused = intake.enter(thread, queued, Some(Waker::noop().clone()));
            assert!(matches!(refused, Err((7, Some(_)))), "item and waker come back");
        }
        assert!(!intake.is_drained());
        assert_eq!(next(intake, &mut batch, now).0, Next::Run);
        assert!(!intake.is_drained());
        let (gathers, todo) = intake.finish();
        assert!(!gathers && todo.drained && intake.is_drained());
    });
}

#[test]
fn whoever_brings_a_closed_batcher_to_rest_is_told() {
    let now = Instant::now();
    let end = now + Duration::from_secs(1);
    // The last call leaves, and the gatherer finds nothing.
    for_each_number_of_inboxes(LIMITS, |intake| {
        let (mut ticket, _) = enter(intake, 1, Due::By(end));
        drop(intake.close());
        let (_, todo) = intake.cancel(&mut ticket);
        assert!(!todo.drained, "the gatherer is still there");
        let (found, todo) = next(intake, &mut Batch::new(), now);
        assert!(found == Next::Leave && todo.drained);
    });
    // The last runner is lost.
    for_each_number_of_inboxes(LIMITS, |intake| {
        let _ticket = enter(intake, 1, Due::By(end));
        drop(intake.close());
        let todo = intake.lose_runner(None, &mut Batch::new());
        assert!(todo.drained && intake.is_drained());
    });
}

/// While one call stays and no batch is cut, because the places are taken or because a gatherer sleeps.
#[test]
fn places_of_cancelled_calls_do_not_pile_up() {
    let limits = Limits {
        batch: BatchLimits {
            max_items: 1_000_000,
            max_weight: u128::MAX,
        },
        max_in_flight: 1,
        max_queued: 10,
    };
    for sleeps in [false, true] {
        for_each_number_of_inboxes(limits, |intake| {
            let now = Instant::now();
            let end = now + Duration::from_secs(1);
            let mut batch = Batch::new();
            if !sleeps {
                let _running = enter(intake, 0, Due::AtOnce);
                assert_eq!(next(intake, &mut batch, now).0, Next::Run);
            }
            let mut stays = enter(intake, 0, Due::By(end)).0;
            if sleeps {
                assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
            }
            let mut chunks_most = 0;
            for item in 0..100_000 {
                let (mut leaves, todo) = enter(intake, item, Due::By(end));
                assert!(todo.is_nothing());
                let (displaced, todo) = intake.cancel(&mut leaves);
                assert!(displaced.was_queued && todo.is_nothing(), "it sleeps on");
                chunks_most = chunks_most.max(intake.chunks());
            }
            assert!(chunks_most <= 20, "{chunks_most} chunks for one call");
            intake.validate();
            assert_eq!(intake.stats().queued, 1);
            // The watch is as it should be after all the sweeps.
            let (_, todo) = enter(intake, 1, Due::AtOnce);
            assert_eq!(todo.wake.is_some(), sleeps);
            assert!(intake.cancel(&mut stays).0.was_queued);
        });
    }
}
