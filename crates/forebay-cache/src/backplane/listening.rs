//! The task that hears of other processes' changes.
//!
//! Promises: it ends with the cache; where its runtime ends first, the next flight starts another. Where it cannot listen it tries again, with
//! pauses that grow up to a second, and shorter ones than `max_lag`. What is to be fetched before it has tried once waits for that, if it takes no
//! longer than a stated time: fetched before, it could not be kept, for it may be older than a change that was not heard.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{Carrier, Change, Ear, Moment};

const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// What hears: the cache.
pub(crate) trait Hearing<K>: Send + Sync + 'static {
    fn began_to_hear(&self);
    fn now_ms(&self) -> u64;
    fn heard_up_to(&self, at_ms: u64);
    /// Whether tiers that all share have been told of it, or this one is to tell them.
    fn heard(&self, change: Change<K>, told: bool);
}

/// For so long what a cache is to fetch first waits for its ears: they open within the time that a connection takes.
const FIRST_WITHIN: Duration = Duration::from_millis(250);

/// The task, if it runs.
pub(crate) struct Listening<K> {
    carrier: Arc<Carrier<K>>,
    task: Mutex<Option<AbortHandle>>,
    first: Arc<First>,
}

/// The first try to listen.
#[derive(Default)]
struct First {
    is_over: AtomicBool,
    /// Held by who ends it.
    ending: Mutex<()>,
    ended: Notify,
}

impl First {
    /// It is over, by whoever says so first: then `end` is done before anybody goes on. Whether it was not.
    fn end(&self, end: impl FnOnce()) -> bool {
        let ending = self.ending.lock();
        if self.is_over.load(Ordering::Acquire) {
            return false;
        }
        end();
        self.is_over.store(true, Ordering::Release);
        drop(ending);
        self.ended.notify_waiters();
        true
    }
}

impl<K> Drop for Listening<K> {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

impl<K: Send + Sync + 'static> Listening<K> {
    pub(crate) fn new(carrier: Arc<Carrier<K>>) -> Self {
        Self {
            carrier,
            task: Mutex::new(None),
            first: Arc::default(),
        }
    }

    /// Whether the first try to listen has come to something: until then nothing is fetched, as it could not be kept.
    pub(crate) fn has_tried(&self) -> bool {
        self.first.is_over.load(Ordering::Acquire)
    }

    /// Until it has, or for as long as that may take. What is fetched from then on may be older than what is not heard.
    pub(crate) async fn tried(&self) {
        let over = async {
            loop {
                let mut ended = pin!(self.first.ended.notified());
                ended.as_mut().enable();
                if self.has_tried() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(FIRST_WITHIN, over).await.is_err() {
            self.first.end(|| {});
        }
    }

    /// It listens. If that was the first try, and nobody has given it up, `begin` is done before anybody goes on. Whether it was.
    pub(crate) fn began_first(&self, begin: impl FnOnce()) -> bool {
        self.first.end(begin)
    }

    /// Begins to listen, unless it does already.
    pub(crate) fn begin<H: Hearing<K>>(&self, hearing: &Arc<H>, runtime: &Handle) {
        let mut task = self.task.lock();
        if task.as_ref().is_none_or(AbortHandle::is_finished) {
            let listening = listen(
                Arc::clone(&self.carrier),
                Arc::downgrade(hearing),
                Arc::clone(&self.first),
            );
            *task = Some(runtime.spawn(listening).abort_handle());
        }
    }
}

async fn listen<K: Send + Sync + 'static, H: Hearing<K>>(
    carrier: Arc<Carrier<K>>,
    hearing: Weak<H>,
    first: Arc<First>,
) {
    let ear = Heard { hearing };
    let mut pause = PAUSES.0;
    while ear.hearing.strong_count() > 0 {
        let began = tokio::time::Instant::now();
        // Called inside of it, for the call itself may panic, too.
        let listening = async { carrier.backplane.listen(&ear, carrier.max_lag).await };
        match AssertUnwindSafe(listening).catch_unwind().await {
            Ok(error) => tracing::debug!(%error, "other processes' changes are not heard"),
            Err(_) => tracing::debug!("the backplane panicked"),
        }
        first.end(|| {});
        if began.elapsed() > PAUSES.1 {
            pause = PAUSES.0;
        }
        tokio::time::sleep(pause.min(carrier.max_lag / 4)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

struct Heard<H> {
    hearing: Weak<H>,
}

impl<K, H: Hearing<K>> Ear<K> for Heard<H> {
    fn began(&self) {
        if let Some(hearing) = self.hearing.upgrade() {
            hearing.began_to_hear();
        }
    }

    fn now(&self) -> Moment {
        Moment(self.hearing.upgrade().map_or(0, |hearing| hearing.now_ms()))
    }

    fn heard_up_to(&self, moment: Moment) {
        if let Some(hearing) = self.hearing.upgrade() {
            hearing.heard_up_to(moment.0);
        }
    }

    fn heard(&self, changes: Vec<Change<K>>) {
        let Some(hearing) = self.hearing.upgrade() else { return };
        let told = !changes.iter().any(Change::is_untold);
        for change in changes.into_iter().filter(|change| !change.is_untold()) {
            hearing.heard(change, told);
        }
    }
}
