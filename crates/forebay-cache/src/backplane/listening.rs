//! The task that hears of other processes' changes.
//!
//! Promises: it ends with the cache; where its runtime ends first, the next flight starts another. Where it cannot listen it tries again, with
//! pauses that grow up to a second, and shorter ones than `max_lag`.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
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

/// The task, if it runs.
pub(crate) struct Listening<K> {
    carrier: Arc<Carrier<K>>,
    task: Mutex<Option<AbortHandle>>,
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
        let task = Mutex::new(None);
        Self { carrier, task }
    }

    /// Begins to listen, unless it does already.
    pub(crate) fn begin<H: Hearing<K>>(&self, hearing: &Arc<H>, runtime: &Handle) {
        let mut task = self.task.lock();
        if task.as_ref().is_none_or(AbortHandle::is_finished) {
            let listening = listen(Arc::clone(&self.carrier), Arc::downgrade(hearing));
            *task = Some(runtime.spawn(listening).abort_handle());
        }
    }
}

async fn listen<K: Send + Sync + 'static, H: Hearing<K>>(carrier: Arc<Carrier<K>>, hearing: Weak<H>) {
    let ear = Heard { hearing };
    let mut pause = PAUSES.0;
    while ear.hearing.strong_count() > 0 {
        let began = tokio::time::Instant::now();
        let listening = carrier.backplane.listen(&ear, carrier.max_lag);
        match AssertUnwindSafe(listening).catch_unwind().await {
            Ok(error) => tracing::debug!(%error, "other processes' changes are not heard"),
            Err(_) => tracing::debug!("the backplane panicked"),
        }
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
