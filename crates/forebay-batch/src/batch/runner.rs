//! The runner: a task that gathers a batch, gives it to the processor and answers its callers, until the line is empty.
//!
//! Promises:
//! - A batch runs in a runner's task, never in a caller's future: no caller's cancellation, deadline or context reaches it.
//! - Whatever happens to the processor (panic, wrong count) or to the task (its runtime shuts down), the callers of its
//!   batch are answered, and others take over what is in line or, if there is nobody left, it is answered too.
//! - One timer per batcher: the gatherer's sleep until the earliest window ends.
//! - It lets other tasks of its thread run after 16 batches or 1,024 items at the latest.
//!
//! The only file here that spawns or sleeps. Knows nothing of the order in line and of its limits.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};

use super::dispatch::Batch;
use super::error::CallError;
use super::intake::{Intake, Next, Todo};
use super::line::{InOrder, Line};
use crate::panics::{panic_message, quietly};

/// Weighs an item.
pub(crate) type Weigh<I> = Box<dyn Fn(&I) -> usize + Send + Sync>;

/// Spawns the task of a runner. It knows the processor's type, so that a batch needs no boxed future.
pub(crate) type Spawn<I, O, E, L> = Box<dyn Fn(Runner<I, O, E, L>, &Handle) + Send + Sync>;

/// What a batcher's handles, calls and runners share.
pub(crate) struct Shared<I, O, E, L: Line<I, O, E> = InOrder> {
    pub(crate) intake: Intake<I, O, E, L>,
    /// Zero: no window.
    pub(crate) max_wait: Duration,
    pub(crate) weigh: Option<Weigh<I>>,
    pub(crate) spawn: Spawn<I, O, E, L>,
    /// Gives each call of a batch its outcome, of one outcome per item.
    pub(crate) answer: fn(&mut Batch<I, O, E>, Vec<O>),
    /// Where runners run; otherwise where the call that needs one is polled.
    pub(crate) runtime: Option<Handle>,
    /// Notified when a closed batcher has come to rest.
    pub(crate) at_rest: Notify,
}

impl<I, O, E, L: Line<I, O, E>> Shared<I, O, E, L> {
    /// Stops the intake, sends what is in line without waiting for its window, and waits until all of it is answered.
    pub(crate) async fn drain(self: &Arc<Self>) {
        self.carry_out(self.intake.close());
        loop {
            let mut rest = pin!(self.at_rest.notified());
            // Listening before looking: a batcher that comes to rest in between is not missed.
            rest.as_mut().enable();
            if self.intake.is_drained() {
                return;
            }
            rest.await;
        }
    }

    /// Does what the intake asked for. No lock may be held.
    pub(crate) fn carry_out(self: &Arc<Self>, todo: Todo) {
        if let Some(waker) = todo.wake {
            waker.wake();
        }
        if todo.start_runner {
            let runner = Runner {
                shared: Arc::clone(self),
                batch: Batch::new(),
                spare: Batch::new(),
                role: Role::Gathers,
            };
            match &self.runtime {
                Some(handle) => (self.spawn)(runner, handle),
                None => match Handle::try_current() {
                    Ok(handle) => (self.spawn)(runner, &handle),
                    // Its drop answers whoever is in line.
                    Err(_) => drop(runner),
                },
            }
        }
        if todo.drained {
            self.at_rest.notify_waiters();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Gathers,
    Runs,
    SignedOff,
}

/// A runner's place in the intake's books, given back when it is dropped, however that comes.
pub(crate) struct Runner<I, O, E, L: Line<I, O, E>> {
    shared: Arc<Shared<I, O, E, L>>,
    batch: Batch<I, O, E>,
    /// An empty one, with room.
    spare: Batch<I, O, E>,
    role: Role,
}

/// The life of a runner.
pub(crate) async fn run<I, O, E, L, F, Fut>(mut runner: Runner<I, O, E, L>, process: Arc<F>)
where
    L: Line<I, O, E>,
    F: Fn(Vec<I>) -> Fut,
    Fut: Future<Output = Result<Vec<O>, E>>,
{
    // A runner is often started by the first of many callers that are ready on this thread: they share its batch. Those that one
    // task makes together are in line by now in any case.
    if runner.shared.intake.expects_company() {
        yield_now().await;
        if runner.shared.intake.stats().queued > 1 {
            let_others_run().await;
        }
    }
    while runner.gather().await {
        let answered = runner.run_batches(&*process).await;
        if !runner.finish() {
            return;
        }
        // Those just answered are ready now and may call again: they share the next batch.
        if answered <= FEW {
            yield_now().await;
        } else {
            let_others_run().await;
        }
    }
}

impl<I, O, E, L: Line<I, O, E>> Runner<I, O, E, L> {
    /// Waits for a batch. `false`: there is nothing to do, and the runner is signed off.
    async fn gather(&mut self) -> bool {
        let mut sleep = pin!(None::<Sleep>);
        poll_fn(|context| {
            loop {
                let mut waker = Some(context.waker().clone());
                let (next, todo) = self.shared.intake.next(&mut self.batch, &mut waker, Instant::now);
                self.role = match next {
                    Next::Run => Role::Runs,
                    Next::Leave => Role::SignedOff,
                    Next::Wait(_) => Role::Gathers,
                };
                self.shared.carry_out(todo);
                let until = match next {
                    Next::Run => return Poll::Ready(true),
                    Next::Leave => return Poll::Ready(false),
                    Next::Wait(until) => until,
                };
                if sleep.as_ref().as_pin_ref().map(|sleep| sleep.deadline()) != Some(until) {
                    sleep.set(Some(sleep_until(until)));
                }
                let timer = sleep.as_mut().as_pin_mut().expect("set just above");
                if timer.poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Runs the batch that was cut, and those that are full by the time the one before has ended. They begin before the
    /// callers of the one before are told, so that the processor does not wait for that. How many the last one had.
    async fn run_batches<F, Fut>(&mut self, process: &F) -> usize
    where
        F: Fn(Vec<I>) -> Fut,
        Fut: Future<Output = Result<Vec<O>, E>>,
    {
        let mut before: Option<Ended<I, O, E>> = None;
        let mut turn = Turn::default();
        loop {
            let items = std::mem::take(&mut self.batch.items);
            let expected = items.len();
            let mut processing = pin!(AssertUnwindSafe(async { process(items).await }).catch_unwind());
            // Never suspends here: whoever is still to be told cannot be dropped with the task.
            let begun = poll_fn(|context| Poll::Ready(processing.as_mut().poll(context))).await;
            if let Some(before) = before.take() {
                self.spare = before.tell();
            }
            let waits = begun.is_pending();
            let end = match begun {
                Poll::Ready(end) => end,
                Poll::Pending => processing.await,
            };
            let mut ended = Ended {
                batch: std::mem::replace(&mut self.batch, std::mem::take(&mut self.spare)),
                expected,
                end: Some(end),
                answer: self.shared.answer,
            };
            let (goes_on, todo) = self.shared.intake.go_on(&mut ended.batch, &mut self.batch);
            self.shared.carry_out(todo);
            if !goes_on {
                self.spare = ended.tell();
                return expected;
            }
            if waits {
                before = Some(ended);
                turn = Turn::default();
            } else {
                self.spare = ended.tell();
                if turn.is_over(expected) {
                    let_others_run().await;
                    turn = Turn::default();
                }
            }
        }
    }

    /// Gives the batch's place back. `true`: gathers again; `false`: signed off.
    fn finish(&mut self) -> bool {
        let (gathers, todo) = self.shared.intake.finish();
        self.role = if gathers { Role::Gathers } else { Role::SignedOff };
        self.shared.carry_out(todo);
        gathers
    }
}

/// How long a processor that never waits may keep the thread to itself: long enough that those who were answered find full
/// queues and not empty ones, short enough for whoever else is on the thread.
#[derive(Default)]
struct Turn {
    batches: usize,
    items: usize,
}

impl Turn {
    const BATCHES_MAX: usize = 16;
    const ITEMS_MAX: usize = 1024;

    /// Whether it is over after a batch of that many.
    fn is_over(&mut self, items: usize) -> bool {
        self.batches += 1;
        self.items += items;
        self.batches >= Self::BATCHES_MAX || self.items >= Self::ITEMS_MAX
    }
}

/// What the processor ended with: its answer, or its panic.
type End<O, E> = Result<Result<Vec<O>, E>, Box<dyn Any + Send>>;

/// A batch that has ended. Its callers are told, at the latest when it is dropped.
struct Ended<I, O, E> {
    batch: Batch<I, O, E>,
    expected: usize,
    /// There until the callers are told.
    end: Option<End<O, E>>,
    answer: fn(&mut Batch<I, O, E>, Vec<O>),
}

impl<I, O, E> Ended<I, O, E> {
    /// Tells the callers. What is left is an empty batch, with room for the next.
    fn tell(mut self) -> Batch<I, O, E> {
        self.tell_all();
        let mut empty = std::mem::take(&mut self.batch);
        quietly(|| empty.spent.clear());
        empty
    }

    fn tell_all(&mut self) {
        let expected = self.expected;
        match self.end.take() {
            None => {}
            Some(Ok(Ok(outcomes))) if outcomes.len() == expected => (self.answer)(&mut self.batch, outcomes),
            Some(Ok(Ok(outcomes))) => {
                let returned = outcomes.len();
                self.batch.answer_all(&CallError::WrongCount { expected, returned });
                quietly(|| drop(outcomes));
            }
            Some(Ok(Err(error))) => {
                let error = CallError::Failed(Arc::new(error));
                self.batch.answer_all(&error);
                quietly(|| drop(error));
            }
            Some(Err(panic)) => {
                let message = panic_message(&*panic);
                self.batch.answer_all(&CallError::Panicked(message));
                quietly(|| drop(panic));
            }
        }
    }
}

impl<I, O, E> Drop for Ended<I, O, E> {
    fn drop(&mut self) {
        self.tell_all();
    }
}

impl<I, O, E, L: Line<I, O, E>> Drop for Runner<I, O, E, L> {
    fn drop(&mut self) {
        if self.role == Role::SignedOff {
            return;
        }
        let mut stranded = Batch::new();
        let running = (self.role == Role::Runs).then_some(&mut self.batch);
        let todo = self.shared.intake.lose_runner(running, &mut stranded);
        let items = std::mem::take(&mut stranded.items);
        self.batch.answer_all(&CallError::Stopped);
        stranded.answer_all(&CallError::Stopped);
        quietly(|| drop(items));
        self.shared.carry_out(todo);
    }
}

/// So few callers are let go on by tokio's `yield_now`, which looks for I/O, but does not wake another thread to take the runner
/// away, as waking oneself does. It comes back before many have run.
const FEW: usize = 32;

/// Lets all tasks that are ready on this thread run first, also if they are many.
async fn let_others_run() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
