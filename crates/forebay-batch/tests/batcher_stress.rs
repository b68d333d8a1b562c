//! The `Batcher` under a random mix of everything at once, on several threads.
//!
//! Promises: every call ends with exactly one outcome and the right one; every item goes to the processor once at most, and
//! exactly once if its caller got an answer; at the end no item, outcome, waker or processor is kept. The random choices
//! follow a printed seed; `FOREBAY_SEED=… cargo test -p forebay-batch --test batcher_stress` repeats them (the threads'
//! interleaving is the machine's own). `FOREBAY_ROUNDS` runs more of them.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use forebay_batch::batch::{Batcher, Call, CallError, Rejected};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::yield_now;

const CALLERS: usize = 16;
const CALLS_EACH: usize = 150;

/// Counts the values of a kind that are alive.
#[derive(Clone)]
struct Alive(Arc<()>);

struct Item {
    number: usize,
    /// What the processor is to do with the batch whose first item this is.
    mischief: Mischief,
    _alive: Alive,
}

struct Outcome {
    number: usize,
    _alive: Alive,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mischief {
    None,
    Fail,
    PanicEarly,
    PanicLate,
    TooFew,
    TooMany,
}

/// What a round has seen, shared by callers and processor.
struct Record {
    alive: Alive,
    /// By item: how often the processor got it.
    processed: Vec<AtomicU8>,
    running: AtomicUsize,
    max_in_flight: usize,
}

type Tested = Batcher<Item, Outcome, usize>;

async fn process(record: Arc<Record>, items: Vec<Item>) -> Result<Vec<Outcome>, usize> {
    for item in &items {
        record.processed[item.number].fetch_add(1, SeqCst);
    }
    for _ in 0..items[0].number % 4 {
        yield_now().await;
    }
    let first = items[0].number;
    let answers = items.iter().map(|item| Outcome {
        number: item.number,
        _alive: record.alive.clone(),
    });
    match items[0].mischief {
        Mischief::None | Mischief::PanicEarly => Ok(answers.collect()),
        Mischief::Fail => Err(first),
        Mischief::PanicLate => panic!("late, as asked"),
        Mischief::TooFew => Ok(answers.skip(1).collect()),
        Mischief::TooMany => {
            let extra = Outcome {
                number: usize::MAX,
                _alive: record.alive.clone(),
            };
            Ok(answers.chain([extra]).collect())
        }
    }
}

/// Counts batches in flight, also when the processor panics.
struct InFlight(Arc<Record>);

impl InFlight {
    fn new(record: &Arc<Record>) -> Self {
        let others = record.running.fetch_add(1, SeqCst);
        assert!(others < record.max_in_flight, "too many batches in flight");
        Self(Arc::clone(record))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

/// A waker of its own for each poll, so that the batcher sees changing ones.
struct Relay {
    to: Waker,
    _alive: Alive,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.to.wake_by_ref();
    }
}

/// Polls a call with a new waker each time, sometimes for no reason, and gives up after some polls.
struct Fidgety {
    call: Call<'static, Item, Outcome, usize>,
    alive: Alive,
    spurious: usize,
    polls_max: Option<usize>,
}

impl Future for Fidgety {
    type Output = Option<Result<Outcome, CallError<usize>>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let waker = Waker::from(Arc::new(Relay {
            to: context.waker().clone(),
            _alive: this.alive.clone(),
        }));
        if let Poll::Ready(outcome) = Pin::new(&mut this.call).poll(&mut Context::from_waker(&waker)) {
            return Poll::Ready(Some(outcome));
        }
        match &mut this.polls_max {
            Some(0) => return Poll::Ready(None),
            Some(left) => {
                *left -= 1;
                context.waker().wake_by_ref();
            }
            None if this.spurious > 0 => {
                this.spurious -= 1;
                context.waker().wake_by_ref();
            }
            None => {}
        }
        Poll::Pending
    }
}

/// What a caller of an item may rely on afterwards.
fn check(record: &Record, number: usize, outcome: Option<Result<Outcome, CallError<usize>>>) {
    let processed = record.processed[number].load(SeqCst);
    match outcome {
        Some(Ok(outcome)) => {
            assert_eq!(outcome.number, number, "a neighbour's outcome");
            assert_eq!(processed, 1);
        }
        Some(Err(CallError::Failed(first))) => {
            assert!(*first <= CALLERS * CALLS_EACH);
            assert_eq!(processed, 1);
        }
        Some(Err(CallError::WrongCount { expected, returned })) => {
            assert_eq!(expected.abs_diff(returned), 1);
            assert_eq!(processed, 1);
        }
        // Whether it panicked before or after it had seen its items.
        Some(Err(CallError::Panicked(message))) => {
            assert!(message.ends_with("as asked"), "{message}");
            assert_eq!(usize::from(processed), usize::from(&*message == "late, as asked"));
        }
        Some(Err(CallError::Closed)) => assert_eq!(processed, 0),
        Some(Err(other)) => panic!("{other}"),
        None => assert!(processed <= 1),
    }
}

async fn caller(batcher: Tested, record: Arc<Record>, caller: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for call in 0..CALLS_EACH {
        let number = caller * CALLS_EACH + call;
        let item = Item {
            number,
            mischief: match random.random_range(0..20) {
                0 => Mischief::Fail,
                1 => Mischief::PanicLate,
                2 => Mischief::TooFew,
                3 => Mischief::TooMany,
                4 => Mischief::PanicEarly,
                _ => Mischief::None,
            },
            _alive: record.alive.clone(),
        };
        let entering = match random.random_range(0..3) {
            0 => Ok(batcher.call_owned(item)),
            1 => Ok(batcher.call_within_owned(item, Duration::from_micros(random.random_range(0..300)))),
            _ => batcher.try_call_owned(item),
        };
        let call = match entering {
            Ok(call) => call,
            Err(rejected) => {
                assert!(matches!(rejected, Rejected::Overloaded(_) | Rejected::Closed(_)));
                assert_eq!(rejected.into_item().number, number);
                assert_eq!(record.processed[number].load(SeqCst), 0);
                yield_now().await;
                continue;
            }
        };
        if random.random_ratio(1, 10) {
            // Also try_call's, which may be on its way.
            drop(call);
            continue;
        }
        let outcome = Fidgety {
            call,
            alive: record.alive.clone(),
            spurious: random.random_range(0..3),
            polls_max: random.random_ratio(1, 4).then(|| random.random_range(0..6)),
        }
        .await;
        check(&record, number, outcome);
    }
}

async fn round(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let record = Arc::new(Record {
        alive: Alive(Arc::new(())),
        processed: (0..CALLERS * CALLS_EACH).map(|_| AtomicU8::new(0)).collect(),
        running: AtomicUsize::new(0),
        max_in_flight: random.random_range(1..4),
    });
    let max_items = random.random_range(1..20);
    let max_weight = random.random_range(1..40);
    let of_process = Arc::clone(&record);
    let batcher: Tested = Batcher::builder()
        .max_items(max_items)
        .max_weight(max_weight, |item: &Item| item.number % 5)
        .max_in_flight(record.max_in_flight)
        .max_queued(random.random_range(1..30))
        .max_wait(Duration::from_micros(if random.random() { 500 } else { 0 }))
        .build(move |items: Vec<Item>| {
            assert!((1..=max_items).contains(&items.len()));
            let weight: usize = items.iter().map(|item| item.number % 5).sum();
            assert!(weight <= max_weight || items.len() == 1);
            assert!(items[0].mischief != Mischief::PanicEarly, "early, as asked");
            let in_flight = InFlight::new(&of_process);
            let processing = process(Arc::clone(&of_process), items);
            async move {
                let _in_flight = in_flight;
                processing.await
            }
        });
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let (batcher, record) = (batcher.clone(), Arc::clone(&record));
            tokio::spawn(caller(batcher, record, number, random.random()))
        })
        .collect();
    // In half of the rounds the batcher closes while the callers are busy.
    if random.random() {
        for _ in 0..random.random_range(0..3000) {
            yield_now().await;
        }
        batcher.drain().await;
        assert_eq!(record.running.load(SeqCst), 0);
        let stats = batcher.stats();
        assert_eq!((stats.queued, stats.waiting, stats.in_flight), (0, 0, 0));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    batcher.drain().await;
    let stats = batcher.stats();
    assert_eq!((stats.queued, stats.waiting, stats.in_flight), (0, 0, 0));
    drop(batcher);
    // The last runners' tasks end on their own, after drain has returned.
    while Arc::strong_count(&record) > 1 {
        yield_now().await;
    }
    assert_eq!(
        Arc::strong_count(&record.alive.0),
        1,
        "an item, outcome or waker is kept"
    );
}

#[test]
fn every_call_ends_once_with_its_own_outcome_and_nothing_is_kept() {
    let seed: u64 = match std::env::var("FOREBAY_SEED") {
        Ok(seed) => seed.parse().expect("FOREBAY_SEED is a number"),
        Err(_) => rand::random(),
    };
    let rounds =
        std::env::var("FOREBAY_ROUNDS").map_or(30, |rounds| rounds.parse().expect("FOREBAY_ROUNDS is a number"));
    println!("FOREBAY_SEED={seed}");
    // Panics that were asked for are not worth a line each.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let asked_for = panic
            .payload_as_str()
            .is_some_and(|message| message.ends_with("as asked"));
        if !asked_for {
            report(panic);
        }
    }));
    // Calls arrive by the inbox of their thread: on a few, and on more threads than there are inboxes.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let runtimes = [4, 2 * cores.next_power_of_two() + 1].map(|threads| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .build()
            .unwrap()
    });
    for number in 0..rounds {
        let of_round = seed ^ number;
        let runtime = &runtimes[number as usize % runtimes.len()];
        let limited = async {
            let running = tokio::spawn(round(of_round));
            tokio::time::timeout(Duration::from_secs(60), running)
                .await
                .unwrap_or_else(|_| panic!("a hung call; FOREBAY_SEED={seed}, round {number}"))
                .unwrap();
        };
        runtime.block_on(limited);
    }
}
