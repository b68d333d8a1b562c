//! How a batcher is made: its limits are chosen first.
//!
//! Promises: every limit has a default and is at least one; one that could let nothing through is refused where it is set.
//! Knows nothing of how limits are kept.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Batcher;
use super::intake::{Intake, Limits};
use super::line::{BatchLimits, InOrder};
use super::runner::{Shared, Weigh, run};
use super::window::WINDOW_MAX;

impl<I, O, E> Batcher<I, O, E> {
    /// Chooses limits; [`BatcherBuilder::build`] makes the batcher.
    ///
    /// ```
    /// use std::{convert::Infallible, time::Duration};
    /// use forebay::batch::Batcher;
    ///
    /// let writer = Batcher::builder()
    ///     .max_items(500)
    ///     .max_weight(1 << 20, |line: &String| line.len())
    ///     .max_wait(Duration::from_millis(2))
    ///     .build(|lines: Vec<String>| async move { Ok::<_, Infallible>(vec![(); lines.len()]) });
    /// # drop(writer);
    /// ```
    pub fn builder() -> BatcherBuilder<I, O, E> {
        BatcherBuilder::new()
    }
}

impl<I, O, E> Batcher<I, O, E>
where
    I: Send + 'static,
    O: Send + 'static,
    E: Send + Sync + 'static,
{
    /// A batcher with the default limits; see [`BatcherBuilder`] for each.
    pub fn new<F, Fut>(process: F) -> Self
    where
        F: Fn(Vec<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<O>, E>> + Send + 'static,
    {
        BatcherBuilder::new().build(process)
    }
}

/// Chooses a batcher's limits; see [`Batcher::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
/// use std::time::Duration;
///
/// use forebay::batch::Batcher;
///
/// let squares = Batcher::<u64, u64, Infallible>::builder()
///     .max_items(100)
///     .max_wait(Duration::from_millis(1))
///     .build(async |numbers: Vec<u64>| Ok(numbers.into_iter().map(|number| number * number).collect()));
/// assert_eq!(squares.call(5).await?, 25);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct BatcherBuilder<I, O, E> {
    max_items: usize,
    max_weight: Option<(usize, Weigh<I>)>,
    max_wait: Duration,
    max_in_flight: usize,
    max_queued: usize,
    runtime: Option<Handle>,
    /// So that `Batcher::builder()` needs no annotations: `build` says what the outcomes are.
    answers: PhantomData<fn() -> (O, E)>,
}

impl<I, O, E> BatcherBuilder<I, O, E> {
    fn new() -> Self {
        Self {
            max_items: 1024,
            max_weight: None,
            max_wait: Duration::ZERO,
            max_in_flight: 1,
            max_queued: 65_536,
            runtime: None,
            answers: PhantomData,
        }
    }

    /// Most items in a batch. Default: 1024.
    ///
    /// # Panics
    ///
    /// When it is 0: no batch could take an item.
    #[track_caller]
    pub fn max_items(mut self, max_items: usize) -> Self {
        assert!(
            max_items > 0,
            "max_items must be at least 1: a batch of 0 items takes nothing"
        );
        self.max_items = max_items;
        self
    }

    /// Most weight in a batch, for example bytes: a batch ends before the item that would exceed it. An item heavier than
    /// `max_weight` goes by itself, so that 0 sends every item with a weight alone. Default: no limit.
    ///
    /// `weigh` runs once per item, in the caller's own task.
    pub fn max_weight(mut self, max_weight: usize, weigh: impl Fn(&I) -> usize + Send + Sync + 'static) -> Self {
        self.max_weight = Some((max_weight, Box::new(weigh)));
        self
    }

    /// The window: how long a batch that is not full may wait for more items, counted from its first item's arrival and
    /// never extended. Default: zero, no window: what has gathered goes as soon as a slot is free.
    ///
    /// Tokio's timer counts in milliseconds and rounds up, and must be enabled in the runtime. A window costs each call a
    /// look at the clock.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait.min(WINDOW_MAX);
        self
    }

    /// Most batches that run at the same time. Default: 1, which also keeps the batches in order.
    ///
    /// # Panics
    ///
    /// When it is 0: no batch could run.
    #[track_caller]
    pub fn max_in_flight(mut self, max_in_flight: usize) -> Self {
        assert!(
            max_in_flight > 0,
            "max_in_flight must be at least 1: otherwise no batch runs"
        );
        self.max_in_flight = max_in_flight;
        self
    }

    /// Most items in the queue. When it is full `call` waits its turn and `try_call` answers `Overloaded`. Default: 65,536.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could enter.
    #[track_caller]
    pub fn max_queued(mut self, max_queued: usize) -> Self {
        assert!(
            max_queued > 0,
            "max_queued must be at least 1: otherwise nothing enters"
        );
        self.max_queued = max_queued;
        self
    }

    /// The runtime that batches run in. Default: the one that the call which starts a runner is polled in. Name one where
    /// callers live in several runtimes, so that none of them depends on another's being driven.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the batcher. `process` gets the items of a batch in arrival order and answers with one outcome per item, in
    /// the same order; see [`Batcher`].
    pub fn build<F, Fut>(self, process: F) -> Batcher<I, O, E>
    where
        I: Send + 'static,
        O: Send + 'static,
        E: Send + Sync + 'static,
        F: Fn(Vec<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<O>, E>> + Send + 'static,
    {
        let process = Arc::new(process);
        let (max_weight, weigh) = match self.max_weight {
            Some((max_weight, weigh)) => (max_weight as u128, Some(weigh)),
            None => (u128::MAX, None),
        };
        Batcher {
            shared: Arc::new(Shared {
                intake: Intake::new(
                    Limits {
                        batch: BatchLimits {
                            max_items: self.max_items,
                            max_weight,
                        },
                        max_in_flight: self.max_in_flight,
                        max_queued: self.max_queued,
                    },
                    InOrder,
                ),
                answer: InOrder::answer,
                max_wait: self.max_wait,
                weigh,
                spawn: Box::new(move |runner, runtime| {
                    // Detached: a runner ends by itself when the line is empty.
                    drop(runtime.spawn(run(runner, Arc::clone(&process))));
                }),
                runtime: self.runtime,
                at_rest: Notify::new(),
            }),
        }
    }
}

impl<I, O, E> fmt::Debug for BatcherBuilder<I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatcherBuilder")
            .field("max_items", &self.max_items)
            .field(
                "max_weight",
                &self.max_weight.as_ref().map(|(max_weight, _)| max_weight),
            )
            .field("max_wait", &self.max_wait)
            .field("max_in_flight", &self.max_in_flight)
            .field("max_queued", &self.max_queued)
            .finish_non_exhaustive()
    }
}
