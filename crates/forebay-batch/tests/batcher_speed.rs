//! What a call through the `Batcher` costs, beside the usual hand-made way (one tokio mpsc, a oneshot a call) and beside
//! calling the processor directly.
//!
//! Promises: every outcome is checked, so that a fast wrong answer is a failure; tiny by default, so that it runs with the
//! tests and does not rot. For numbers worth reading:
//!
//! ```console
//! $ FOREBAY_CALLS=20000000 cargo test --release -p forebay-batch --test batcher_speed -- --nocapture
//! ```
//!
//! Does not judge: a shared machine's speed is no test's business.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::convert::Infallible;
use std::future::Future;
use std::time::{Duration, Instant};

use forebay_batch::batch::Batcher;
use tokio::sync::{mpsc, oneshot};

const CALLERS: u64 = 10_000;

fn calls_total() -> u64 {
    std::env::var("FOREBAY_CALLS").map_or(50_000, |calls| {
        calls.parse().expect("FOREBAY_CALLS is a number of calls")
    })
}

async fn double(items: Vec<u64>) -> Result<Vec<u64>, Infallible> {
    Ok(items.into_iter().map(|item| item * 2).collect())
}

/// Runs `calls_total` calls from `CALLERS` tasks and prints the rate.
async fn measure<F, Fut>(name: &str, call: F)
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = u64> + Send,
{
    let calls_each = calls_total() / CALLERS;
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let call = call.clone();
            tokio::spawn(async move {
                for item in caller * calls_each..(caller + 1) * calls_each {
                    assert_eq!(call(item).await, item * 2);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    report(name, calls_each * CALLERS, begun.elapsed());
}

fn report(name: &str, calls: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    println!(
        "{name:<28} {:>9.3} M calls/s  {:>9.1} ns a call",
        calls as f64 / seconds / 1e6,
        seconds * 1e9 / calls as f64
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers() {
    for max_items in [128, 1024, 10_000] {
        let batcher = Batcher::builder().max_items(max_items).build(double);
        let of_callers = batcher.clone();
        measure(&format!("batcher, {max_items} items"), move |item| {
            let call = of_callers.call_owned(item);
            async move { call.await.unwrap() }
        })
        .await;
        let stats = batcher.stats();
        println!("    {} items a batch", stats.calls / stats.batches.max(1));
        assert_eq!(stats.calls, calls_total() / CALLERS * CALLERS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_mpsc_oneshot() {
    let (sender, mut receiver) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(65_536);
    let worker = tokio::spawn(async move {
        let mut requests = Vec::new();
        while receiver.recv_many(&mut requests, 1024).await > 0 {
            let (items, replies): (Vec<_>, Vec<_>) = requests.drain(..).unzip();
            for (reply, outcome) in replies.into_iter().zip(double(items).await.unwrap()) {
                // A caller that left wants no reply.
                let _ = reply.send(outcome);
            }
        }
    });
    let of_callers = sender.clone();
    measure("mpsc + oneshot, 1024 items", move |item| {
        let sender = of_callers.clone();
        async move {
            let (reply, outcome) = oneshot::channel();
            sender.send((item, reply)).await.unwrap();
            outcome.await.unwrap()
        }
    })
    .await;
    drop(sender);
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_caller() {
    let calls = calls_total() / 10;
    tokio::spawn(async move {
        let begun = Instant::now();
        for item in 0..calls {
            assert_eq!(double(vec![item]).await.unwrap(), [item * 2]);
        }
        report("lone, direct", calls, begun.elapsed());

        let batcher = Batcher::new(double);
        let begun = Instant::now();
        for item in 0..calls {
            assert_eq!(batcher.call(item).await.unwrap(), item * 2);
        }
        report("lone, batcher", calls, begun.elapsed());
    })
    .await
    .unwrap();
}
