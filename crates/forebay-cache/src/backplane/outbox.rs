//! What waits to be sent to other processes, and the task that sends it, for as long as there is something.
//!
//! Promises: of changes of a key the strongest is sent, once; what was not taken waits again, with growing pauses. What was sent before the tiers were
//! told, which is said with it, is sent again when they have been, and meanwhile after growing pauses; it holds up nothing that changes next. When
//! the cache is gone, what waits is tried once more and then given up. Knows nothing of tiers but that they can be waited for.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pending::Pending;
use super::{Backplane, Change};
use crate::tier::guarded;
use forebay_batch::load::Key;

/// Changes a message.
const CHANGES_A_SENDING: usize = 512;
/// The pauses between attempts, doubled from the one to the other.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How the sending is bounded.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Most keys that wait.
    pub(crate) max: usize,
    /// How long tiers are waited for.
    pub(crate) settle_within: Duration,
    /// How long a sending may take.
    pub(crate) send_within: Duration,
}

/// Waits until all tiers have heard of what was written up to now. Where nobody can tell, it is false.
type Settled = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// See the module.
pub(crate) struct Outbox<K> {
    backplane: Arc<dyn Backplane<K>>,
    bounds: Bounds,
    settled: Settled,
    waiting: Mutex<Waiting<K>>,
    /// Told when something was sent.
    sent: Notify,
    /// Told when something came while another was being sent.
    arrived: Notify,
    is_closed: AtomicBool,
    /// Something waits, and nobody sends it: there was no runtime, or it has ended.
    is_stranded: AtomicBool,
    /// Ends a pause.
    closing: Notify,
}

/// The outbox, until the cache is gone.
pub(crate) struct Own<K>(pub(crate) Arc<Outbox<K>>);

impl<K> Drop for Own<K> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Waiting<K> {
    /// What has not been sent.
    new: Pending<K>,
    /// What has been sent when tiers may not have been told of it.
    again: Pending<K>,
    /// The number of the latest change, and of the latest that has been sent with all before it.
    latest: u64,
    sent: u64,
    is_sending: bool,
}

impl<K> Outbox<K> {
    /// The cache is gone.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closing.notify_one();
    }
}

impl<K: Key> Outbox<K> {
    pub(crate) fn new(backplane: Arc<dyn Backplane<K>>, bounds: Bounds, settled: Settled) -> Self {
        Self {
            backplane,
            bounds,
            settled,
            waiting: Mutex::new(Waiting {
                new: Pending::new(bounds.max),
                again: Pending::new(bounds.max),
                latest: 0,
                sent: 0,
                is_sending: false,
            }),
            sent: Notify::new(),
            arrived: Notify::new(),
            is_closed: AtomicBool::new(false),
            is_stranded: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// The key's value has changed, or it is to be taken for stale.
    pub(crate) fn key(self: &Arc<Self>, key: K, stale: bool, runtime: Option<Handle>) {
        self.add(runtime, |new| new.key(key, stale));
    }

    /// The tag was invalidated.
    pub(crate) fn tag(self: &Arc<Self>, tag: &str, runtime: Option<Handle>) {
        self.add(runtime, |new| new.tag(Arc::from(tag)));
    }

    /// All keys have changed.
    pub(crate) fn all(self: &Arc<Self>, runtime: Option<Handle>) {
        self.add(runtime, Pending::all);
    }

    /// Completes when all that waits now has been sent.
    pub(crate) fn settled(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<K> {
        let outbox = Arc::clone(self);
        let number = outbox.waiting.lock().latest;
        // Where no runtime was at hand when it changed.
        self.begin(Handle::try_current().ok());
        async move {
            loop {
                let mut told = std::pin::pin!(outbox.sent.notified());
                told.as_mut().enable();
                if outbox.waiting.lock().sent >= number {
                    return;
                }
                // Nor when this was made; or the one that sent it is gone.
                outbox.begin(Handle::try_current().ok());
                told.await;
                // One that is shutting down drops what is begun at once, and tells so.
                tokio::task::yield_now().await;
            }
        }
    }

    fn add(self: &Arc<Self>, runtime: Option<Handle>, add: impl FnOnce(&mut Pending<K>)) {
        let is_sending = {
            let mut waiting = self.waiting.lock();
            waiting.latest += 1;
            add(&mut waiting.new);
            waiting.is_sending
        };
        if is_sending {
            self.arrived.notify_one();
        }
        self.begin(runtime);
    }

    /// Until then, or something new has come, or the tiers have been told, or the cache is gone.
    async fn rest_until(&self, again_at: Instant) {
        let told = async {
            if !(self.settled)().await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(again_at) => {}
            () = self.closing.notified() => {}
            () = self.arrived.notified() => {}
            () = told => {}
        }
    }

    /// Somebody has a runtime: what could not be sent is.
    pub(crate) fn has_runtime(self: &Arc<Self>, runtime: impl FnOnce() -> Option<Handle>) {
        if self.is_stranded.load(Ordering::Acquire)
            && let Some(runtime) = runtime()
            && self.is_stranded.swap(false, Ordering::AcqRel)
        {
            self.begin(Some(runtime));
        }
    }

    /// Begins to send, if there is something and nobody does.
    fn begin(self: &Arc<Self>, runtime: Option<Handle>) {
        let Some(runtime) = runtime else {
            self.is_stranded.store(true, Ordering::Release);
            return;
        };
        {
            let mut waiting = self.waiting.lock();
            if waiting.is_sending || waiting.sent == waiting.latest {
                return;
            }
            waiting.is_sending = true;
        }
        let sending = Sending {
            outbox: Arc::clone(self),
            out: Vec::new(),
            is_done: false,
        };
        runtime.spawn(sending.run());
    }
}

/// The task's hold on what it sends: it waits again if the task is dropped.
struct Sending<K: Key> {
    outbox: Arc<Outbox<K>>,
    out: Vec<Change<K>>,
    /// It has said so, and another may send already.
    is_done: bool,
}

impl<K: Key> Drop for Sending<K> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        {
            let mut waiting = self.outbox.waiting.lock();
            waiting.is_sending = false;
            waiting.new.add(mem::take(&mut self.out));
        }
        // Who waits for it begins another, or whoever comes next with a runtime.
        self.outbox.is_stranded.store(true, Ordering::Release);
        self.outbox.sent.notify_waiters();
    }
}

impl<K: Key> Sending<K> {
    async fn run(mut self) {
        let outbox = Arc::clone(&self.outbox);
        // After what was not taken; and before it is sent again when tiers may not have been told.
        let (mut pause, mut until_again) = (PAUSES.0, PAUSES.0);
        let mut again_at = Instant::now();
        let mut is_last_try = false;
        loop {
            let number = {
                let mut waiting = outbox.waiting.lock();
                if waiting.new.is_empty() && waiting.again.is_empty() {
                    waiting.is_sending = false;
                    self.is_done = true;
                    break;
                }
                self.out = waiting.new.take();
                waiting.latest
            };
            let settled = tokio::time::timeout(outbox.bounds.settle_within, (outbox.settled)()).await;
            let settled = settled.unwrap_or(false);
            let repeats = settled || is_last_try || Instant::now() >= again_at;
            if repeats {
                self.out.extend(outbox.waiting.lock().again.take());
            }
            let sent = self.send(settled).await;
            if sent && (settled || is_last_try) {
                self.out.clear();
                outbox.waiting.lock().sent = number;
                outbox.sent.notify_waiters();
                (pause, until_again) = (PAUSES.0, PAUSES.0);
                continue;
            }
            if is_last_try {
                self.out.clear();
                break;
            }
            let out = mem::take(&mut self.out);
            {
                let mut waiting = outbox.waiting.lock();
                let pending = if sent { &mut waiting.again } else { &mut waiting.new };
                pending.add(out);
            }
            is_last_try = outbox.is_closed.load(Ordering::SeqCst);
            if is_last_try {
                continue;
            }
            if !sent {
                drop(tokio::time::timeout(in_disorder(pause), outbox.closing.notified()).await);
                pause = (pause * 2).min(PAUSES.1);
                continue;
            }
            // Where a tier has not heard of it, and nobody who could tell the tier has either, who asks that tier finds what was before: so it is
            // sent once more.
            pause = PAUSES.0;
            if repeats {
                again_at = Instant::now() + in_disorder(until_again);
                until_again = (until_again * 2).min(PAUSES.1);
            }
            outbox.rest_until(again_at).await;
        }
    }

    async fn send(&self, settled: bool) -> bool {
        for some in self.out.chunks(CHANGES_A_SENDING) {
            let untold: Vec<Change<K>>;
            let some = if settled {
                some
            } else {
                untold = [&[Change::Untold], some].concat();
                &untold
            };
            let sending = guarded(self.outbox.bounds.send_within, async || {
                self.outbox.backplane.send(some).await
            });
            if let Err(error) = sending.await {
                tracing::debug!(%error, "a change was not sent to other processes");
                return false;
            }
        }
        true
    }
}

/// Shortened by up to half: many processes that lost the same server must not come back to it in step.
fn in_disorder(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..=1.0))
}
