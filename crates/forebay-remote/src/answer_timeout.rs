//! Answer timeout: waiting for answers, each with a time limit, at next to no cost for those that come in time.
//!
//! Promises: what [`tokio::time::timeout`] does, for one answer at a time. Knows nothing of whose answers they are.
//!
//! How it works: a timer that is set for each answer is usually the runtime's earliest, as mostly there is no other, so
//! that tokio wakes the thread that waits for I/O to tell it. Between one caller and a database on the same machine that
//! was half of the processor time of a call. Here one timer is kept; when it is due, it is set again, for the end of the current wait.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// As good as never.
const LONGEST: Duration = Duration::from_secs(86_400 * 365);

/// Waits of no longer than a limit, one at a time.
#[derive(Debug)]
pub struct AnswerTimeout {
    limit: Duration,
    /// Due at the end of a wait that is over, or of the one there is.
    timer: Mutex<Pin<Box<Sleep>>>,
}

impl AnswerTimeout {
    /// For waits of so long. Inside a runtime.
    pub fn new(limit: Duration) -> Self {
        let limit = limit.min(LONGEST);
        Self {
            limit,
            timer: Mutex::new(Box::pin(sleep(limit))),
        }
    }

    /// The answer; none if it did not come in time.
    pub async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let deadline = Instant::now() + self.limit;
        let mut answer = pin!(answer);
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            let mut timer = self.timer.lock();
            loop {
                ready!(timer.as_mut().poll(context));
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                timer.set(sleep_until(deadline));
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    async fn slow(time: Duration) -> &'static str {
        sleep(time).await;
        "answer"
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_all_of_its_time() {
        let timeout = AnswerTimeout::new(LIMIT);
        // Also after the timer of waits before was due in between.
        for seconds in [0, 59, 1, 40, 59, 59] {
            let answer = timeout.wait_for(slow(Duration::from_secs(seconds))).await;
            assert_eq!(answer, Some("answer"), "{seconds} s");
        }
        sleep(3 * LIMIT).await;
        assert_eq!(
            timeout.wait_for(slow(LIMIT - Duration::from_secs(1))).await,
            Some("answer")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_is_longer() {
        let timeout = AnswerTimeout::new(LIMIT);
        for seconds_before in [0, 1, 59, 61, 200] {
            sleep(Duration::from_secs(seconds_before)).await;
            let begun = Instant::now();
            assert_eq!(timeout.wait_for(pending::<()>()).await, None);
            let waited = begun.elapsed();
            assert!(
                waited >= LIMIT && waited < LIMIT + Duration::from_millis(10),
                "{waited:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_given_up_leaves_the_next_its_time() {
        let timeout = AnswerTimeout::new(LIMIT);
        let given_up = tokio::time::timeout(LIMIT / 2, timeout.wait_for(pending::<()>()));
        assert!(given_up.await.is_err());
        assert_eq!(
            timeout.wait_for(slow(LIMIT - Duration::from_secs(1))).await,
            Some("answer")
        );
    }

    #[tokio::test]
    async fn a_time_without_end_can_be_asked_for() {
        assert_eq!(AnswerTimeout::new(Duration::MAX).wait_for(ready(7)).await, Some(7));
    }
}
