//! Writes that are alone: in no lane, and yet all that is promised of a write holds for them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use forebay_write::database::{Answer, Database, InFlight, Running, Sharing};
use forebay_write::{Outcome, Sql, Transaction, Write, WriteError, Writer, WriterBuilder};
use tokio::sync::Semaphore;

/// A database that writes when it is let.
#[derive(Clone)]
struct Gated(Arc<State>);

struct State {
    /// A permit a batch.
    let_go: Semaphore,
    begun: AtomicUsize,
    most_at_a_time: AtomicUsize,
    ended: AtomicUsize,
}

const LANES: usize = 4;
const PLAIN: &str = "INSERT INTO t VALUES (1)";

impl Gated {
    fn new() -> Self {
        Self(Arc::new(State {
            let_go: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            most_at_a_time: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }))
    }

    fn let_go(&self, batches: usize) {
        self.0.let_go.add_permits(batches);
    }

    fn in_flight(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed) - self.0.ended.load(Ordering::Relaxed)
    }

    /// Until so many batches have begun, however many others there are to run.
    async fn begun(&self, batches: usize) {
        while self.0.begun.load(Ordering::Relaxed) < batches {
            tokio::task::yield_now().await;
        }
    }

    async fn ended(&self, batches: usize) {
        while self.0.ended.load(Ordering::Relaxed) < batches {
            tokio::task::yield_now().await;
        }
    }
}

impl Database for Gated {
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
        Box::pin(async move {
            self.0.begun.fetch_add(1, Ordering::Relaxed);
            self.0.most_at_a_time.fetch_max(self.in_flight(), Ordering::Relaxed);
            self.0.let_go.acquire().await.unwrap().forget();
            self.0.ended.fetch_add(1, Ordering::Relaxed);
            let done = || Answer::Outcome(Ok(Outcome::counted(1, None)));
            batch.iter().map(|_| done()).collect()
        })
    }

    fn begin(&self) -> Running<'_, Result<Transaction, WriteError>> {
        Box::pin(async { Err(WriteError::Closed) })
    }

    fn in_flight(&self) -> InFlight {
        InFlight {
            sharing: 2,
            most: LANES,
        }
    }

    fn sharing(&self, sql: &Sql) -> Option<Sharing> {
        (&**sql == PLAIN).then_some(Sharing {
            few: 4,
            few_alike: 4,
            many: 512,
        })
    }
}

/// Polls it once; it is not done by that.
fn begin<T>(call: std::pin::Pin<&mut impl Future<Output = T>>) {
    let polled = call.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

fn writer(choose: impl FnOnce(WriterBuilder) -> WriterBuilder) -> (Writer, Gated) {
    let database = Gated::new();
    (choose(Writer::builder()).build(database.clone()), database)
}

#[tokio::test]
async fn a_write_that_is_alone_counts_as_a_batch() {
    let (writer, database) = writer(|builder| builder);
    let mut call = pin!(writer.execute(PLAIN, ()));
    begin(call.as_mut());
    database.begun(1).await;
    let stats = writer.stats();
    assert_eq!((stats.calls, stats.batches, stats.in_flight), (1, 1, 1));
    database.let_go(1);
    assert_eq!(call.await.unwrap().rows_affected, 1);
    writer.drain().await;
    let stats = writer.stats();
    assert_eq!((stats.calls, stats.batches, stats.in_flight), (1, 1, 0));
}

#[tokio::test]
async fn one_whose_caller_has_gone_or_does_not_look_is_written_to_its_end() {
    let (writer, database) = writer(|builder| builder);
    {
        let mut gone = pin!(writer.execute(PLAIN, ()));
        begin(gone.as_mut());
    }
    let mut elsewhere = pin!(writer.execute(PLAIN, ()));
    begin(elsewhere.as_mut());
    database.let_go(2);
    database.ended(2).await;
    assert_eq!(elsewhere.await.unwrap().rows_affected, 1);
}

/// A database stands still, and callers come who give up: what is left behind at work is bounded, the others are not done.
#[tokio::test]
async fn callers_who_give_up_leave_no_more_behind_than_there_are_lanes() {
    let (writer, database) = writer(|builder| builder);
    for _ in 0..100 {
        let mut gone = pin!(writer.execute(PLAIN, ()));
        begin(gone.as_mut());
        tokio::task::yield_now().await;
    }
    database.let_go(100);
    writer.drain().await;
    let begun = database.0.begun.load(Ordering::Relaxed);
    // A lane may have one more in flight, as it may have where nobody gives up.
    assert!((1..=2 * LANES).contains(&begun), "{begun}");
}

#[tokio::test]
async fn a_drain_waits_for_it_and_lets_no_other_in() {
    let (writer, database) = writer(|builder| builder);
    let mut call = pin!(writer.execute(PLAIN, ()));
    begin(call.as_mut());
    let mut drain = pin!(writer.drain());
    begin(drain.as_mut());
    // At once: it is in another lane, which has nothing to do.
    let later = pin!(writer.execute(PLAIN, ()));
    let polled = later.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(Err(WriteError::Closed)));
    database.begun(1).await;
    begin(drain.as_mut());
    database.let_go(1);
    drain.await;
    assert_eq!(database.in_flight(), 0);
    assert_eq!(call.await.unwrap().rows_affected, 1);
    assert_eq!(writer.execute(PLAIN, ()).await, Err(WriteError::Closed));
}

#[tokio::test]
async fn a_drain_waits_for_one_that_shares_with_nobody_and_lets_no_other_in() {
    let (writer, database) = writer(|builder| builder);
    let mut call = pin!(writer.submit_alone(Write::new(PLAIN, ())));
    begin(call.as_mut());
    database.begun(1).await;
    let mut drain = pin!(writer.drain());
    begin(drain.as_mut());
    for _ in 0..100 {
        tokio::task::yield_now().await;
        begin(drain.as_mut());
    }
    let later = writer.submit_alone(Write::new(PLAIN, ())).await;
    assert_eq!(later, Err(WriteError::Closed));
    database.let_go(1);
    drain.await;
    assert_eq!(database.in_flight(), 0);
    assert_eq!(call.await.unwrap().rows_affected, 1);
}

/// So many calls of each kind, all at once; the most batches that ran at a time.
async fn most_at_a_time(writer: Writer, database: Gated, calls: usize, write: impl Fn() -> Write) -> usize {
    let mut waiting = Vec::new();
    for _ in 0..calls {
        let (writer, write) = (writer.clone(), write());
        waiting.push(tokio::spawn(async move { writer.submit(write).await }));
    }
    for _ in 0..100 * calls {
        tokio::task::yield_now().await;
    }
    let most = database.0.most_at_a_time.load(Ordering::Relaxed);
    database.let_go(calls);
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap().rows_affected, 1);
    }
    most
}

#[tokio::test]
async fn no_more_are_in_flight_than_was_asked_for() {
    let plain = || Write::new(PLAIN, ());
    let (writer_of_two, database) = writer(|builder| builder.max_in_flight(2));
    assert_eq!(most_at_a_time(writer_of_two, database, 3, plain).await, 2);
    let (usual, database) = writer(|builder| builder);
    assert_eq!(most_at_a_time(usual, database, LANES, plain).await, LANES);
}

#[tokio::test]
async fn what_has_its_place_keeps_it() {
    let (keyed, database) = writer(|builder| builder);
    assert_eq!(
        most_at_a_time(keyed, database, LANES, || Write::new(PLAIN, ()).ordered_by(7)).await,
        1
    );
    // Of what it does nothing is known.
    let (unknown, database) = writer(|builder| builder);
    assert_eq!(
        most_at_a_time(unknown, database, LANES, || Write::new("UPDATE t SET a = 1", ())).await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_company_has_it() {
    let an_hour = std::time::Duration::from_secs(3600);
    let (writer, database) = writer(|builder| builder.max_wait(an_hour).max_items(2));
    assert_eq!(
        most_at_a_time(writer.clone(), database, 2, || Write::new(PLAIN, ())).await,
        1
    );
    assert_eq!(writer.stats().batches, 1);
}
