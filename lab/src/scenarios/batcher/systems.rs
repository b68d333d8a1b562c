//! How each system answers a caller: bare of all sharing, by the batching one writes by hand, and by Forebay.
//!
//! All that share anything share the same processor, which gets its items and gives its answers as vectors.

use std::convert::Infallible;
use std::time::Duration;

use forebay::batch::Batcher;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::closed_loop::{Ask, Batches, answer};

/// More than callers, so that none ever waits to be let in.
const QUEUED_MAX: usize = 131_072;

/// Does nothing but answer.
async fn process(items: Vec<u64>) -> Vec<u64> {
    items.into_iter().map(answer).collect()
}

/// The processor, called with one item.
#[derive(Clone)]
pub(super) struct Direct;

impl Ask for Direct {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        let answers = process(vec![item]).await;
        // So that the caller can be another task next time, as everywhere else.
        tokio::task::coop::consume_budget().await;
        answers.first().copied().ok_or_else(|| "no answer".to_owned())
    }
}

/// What one writes by hand: a channel to a task that takes what waits, and a oneshot a call.
#[derive(Clone)]
pub(super) struct ByHand {
    items: mpsc::Sender<(u64, oneshot::Sender<u64>)>,
}

impl ByHand {
    pub(super) fn start(max_items: usize, window: Duration, batches: Batches) -> Self {
        let (items, waiting) = mpsc::channel(QUEUED_MAX);
        tokio::spawn(serve(waiting, max_items, window, batches));
        Self { items }
    }
}

async fn serve(
    mut waiting: mpsc::Receiver<(u64, oneshot::Sender<u64>)>,
    max_items: usize,
    window: Duration,
    batches: Batches,
) {
    let mut batch = Vec::with_capacity(max_items);
    let mut callers = Vec::with_capacity(max_items);
    while waiting.recv_many(&mut batch, max_items).await > 0 {
        if !window.is_zero() && batch.len() < max_items {
            let until = Instant::now() + window;
            while batch.len() < max_items {
                let room = max_items - batch.len();
                match timeout_at(until, waiting.recv_many(&mut batch, room)).await {
                    Ok(received) if received > 0 => {}
                    // Time is up, or nobody is left.
                    _ => break,
                }
            }
        }
        batches.note();
        let mut items = Vec::with_capacity(batch.len());
        for (item, caller) in batch.drain(..) {
            items.push(item);
            callers.push(caller);
        }
        for (caller, answer) in callers.drain(..).zip(process(items).await) {
            // A caller that has gone wants no answer.
            let _ = caller.send(answer);
        }
    }
}

impl Ask for ByHand {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        let (caller, answered) = oneshot::channel();
        self.items
            .send((item, caller))
            .await
            .map_err(|_| "the task has ended")?;
        answered.await.map_err(|error| error.to_string())
    }
}

/// The same with a channel and a task for each worker: callers of different channels share no batch.
#[derive(Clone)]
pub(super) struct ByHandEach {
    queues: [ByHand; 2],
}

impl ByHandEach {
    pub(super) fn start(max_items: usize, window: Duration, batches: &Batches) -> Self {
        let queue = |_| ByHand::start(max_items, window, batches.clone());
        Self {
            queues: std::array::from_fn(queue),
        }
    }
}

impl Ask for ByHandEach {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        // The caller stands in the upper half.
        let [even, odd] = &self.queues;
        let queue = if (item >> 32).is_multiple_of(2) { even } else { odd };
        queue.ask(item).await
    }
}

/// Forebay as its documentation shows it; limits other than the batch's are at their defaults.
#[derive(Clone)]
pub(super) struct Forebay {
    batcher: Batcher<u64, u64, Infallible>,
}

impl Forebay {
    pub(super) fn new(max_items: usize, window: Duration, batches: Batches) -> Self {
        let batcher = Batcher::builder()
            .max_items(max_items)
            .max_wait(window)
            .build(move |items| {
                batches.note();
                async move { Ok::<_, Infallible>(process(items).await) }
            });
        Self { batcher }
    }
}

impl Ask for Forebay {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        self.batcher.call(item).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call with a window of an hour: the batch goes because it is full.
    async fn full_batches_do_not_wait(system: impl Ask, batches: Batches) {
        let calls: Vec<_> = (0..20)
            .map(|item| {
                let system = system.clone();
                tokio::spawn(async move { system.ask(item).await })
            })
            .collect();
        for (item, call) in (0..).zip(calls) {
            assert_eq!(call.await.unwrap(), Ok(answer(item)));
        }
        assert_eq!(batches.count(), 2);
    }

    #[tokio::test]
    async fn a_full_batch_goes_before_its_window_ends() {
        let window = Duration::from_secs(3600);
        let batches = Batches::default();
        full_batches_do_not_wait(ByHand::start(10, window, batches.clone()), batches).await;
        let batches = Batches::default();
        full_batches_do_not_wait(Forebay::new(10, window, batches.clone()), batches).await;
    }

    #[tokio::test]
    async fn a_lone_call_is_answered_when_its_window_ends() {
        let window = Duration::from_millis(5);
        let begun = Instant::now();
        let by_hand = ByHand::start(10, window, Batches::default());
        assert_eq!(by_hand.ask(3).await, Ok(answer(3)));
        assert!(begun.elapsed() >= window);
        let begun = Instant::now();
        assert_eq!(Forebay::new(10, window, Batches::default()).ask(3).await, Ok(answer(3)));
        assert!(begun.elapsed() >= window);
    }
}
