//! Wakers of the tasks that wait: code of anybody's, which the pool's own threads and other readers run when they wake them.
//!
//! Promises: a waker that panics harms nobody but its own task: whoever wakes it goes on with what it was doing, and wakes the next. The
//! panic hook has reported it.
//!
//! Knows nothing of what is waited for.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// Waits for what may be ended by a thread that must not panic: it gets a waker that does not.
///
/// # Cancel safety
/// As that of the future.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut known: Option<(Waker, Waker)> = None;
    poll_fn(|context| {
        let (_, waker) = match &mut known {
            Some(known) if known.0.will_wake(context.waker()) => known,
            known => {
                let of_the_task = context.waker().clone();
                let guarded = Waker::from(Arc::new(Guarded(of_the_task.clone())));
                known.insert((of_the_task, guarded))
            }
        };
        future.as_mut().poll(&mut Context::from_waker(waker))
    })
    .await
}

struct Guarded(Waker);

impl Wake for Guarded {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        drop(catch_unwind(AssertUnwindSafe(|| self.0.wake_by_ref())));
    }
}
