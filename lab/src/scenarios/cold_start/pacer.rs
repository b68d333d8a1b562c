//! Pauses of about a millisecond, as exact as goroutines have them: tokio's timer counts whole milliseconds, and rounds a pause
//! of one up to two or three.
//!
//! Promises: a pause is never shorter than asked for, and on an idle machine not much longer. All pauses of a pacer are
//! equally long, so that they end in the order in which they began. Its thread ends with it. Knows nobody who pauses.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread looks, at most and when nobody pauses.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// Ends pauses.
#[derive(Debug)]
pub(crate) struct Pacer {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Line {
    pause: Duration,
    /// When each pause ends, the earliest first. One entry for each that pauses, or few more after needless polls.
    waiting: Mutex<VecDeque<(Instant, Waker)>>,
    is_over: AtomicBool,
}

/// Hands out pauses.
#[derive(Debug, Clone)]
pub(crate) struct Pauses(Arc<Line>);

impl Pacer {
    /// For pauses of that length.
    pub(crate) fn start(pause: Duration) -> Self {
        let line = Arc::new(Line {
            pause,
            waiting: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let own = Arc::clone(&line);
        Self {
            line,
            thread: Some(std::thread::spawn(move || own.run())),
        }
    }

    pub(crate) fn pauses(&self) -> Pauses {
        Pauses(Arc::clone(&self.line))
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.line.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // That a waker panicked is its task's affair.
            let _ = thread.join();
        }
    }
}

impl Pauses {
    /// Lasts a pause, as long as the pacer is there.
    pub(crate) async fn pause(&self) {
        let ends = Instant::now() + self.0.pause;
        poll_fn(|context| {
            if Instant::now() >= ends {
                return Poll::Ready(());
            }
            self.0.lock().push_back((ends, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

impl Line {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Instant, Waker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a thread of its own, which does nothing else than wait for the time"
    )]
    fn run(&self) {
        let mut ended = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            let next = {
                let mut waiting = self.lock();
                while waiting.front().is_some_and(|(ends, _)| *ends <= now) {
                    ended.extend(waiting.pop_front().map(|(_, waker)| waker));
                }
                waiting.front().map(|(ends, _)| *ends)
            };
            ended.drain(..).for_each(Waker::wake);
            let left = next.map_or(LOOK_EVERY, |next| next.saturating_duration_since(Instant::now()));
            std::thread::sleep(left.max(LOOK_EVERY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_pause_is_shorter_than_asked_for_and_all_end() {
        let pause = Duration::from_millis(2);
        let pacer = Pacer::start(pause);
        let pausing: Vec<_> = (0..100)
            .map(|_| {
                let pauses = pacer.pauses();
                tokio::spawn(async move {
                    for _ in 0..3 {
                        let begun = Instant::now();
                        pauses.pause().await;
                        assert!(begun.elapsed() >= pause);
                    }
                })
            })
            .collect();
        for pausing in pausing {
            pausing.await.unwrap();
        }
        let line = Arc::clone(&pacer.line);
        drop(pacer);
        assert_eq!(Arc::strong_count(&line), 1, "the thread has ended");
        assert!(line.lock().is_empty());
    }
}
