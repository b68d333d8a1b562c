//! What waits to be sent to other processes, and the task that sends it, for as long as there is something.
//!
//! Promises: of changes of a key the strongest is sent, once; what was not taken waits again, with growing pauses. When the cache is gone, what
//! waits is tried once more and then given up. Knows nothing of tiers but that they can be waited for.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

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

/// Waits until all tiers have heard of what was written up to now.
type Settled = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// See the module.
pub(crate) struct Outbox<K> {
    backplane: Arc<dyn Backplane<K>>,
    bounds: Bounds,
    settled: Settled,
    waiting: Mutex<Waiting<K>>,
    /// Told when something was sent.
    sent: Notify,
    is_closed: AtomicBool,
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
    /// Whether they are only stale.
    keys: HashMap<K, bool>,
    tags: HashSet<Arc<str>>,
    all: bool,
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
                keys: HashMap::new(),
                tags: HashSet::new(),
                all: false,
                latest: 0,
                sent: 0,
                is_sending: false,
            }),
            sent: Notify::new(),
            is_closed: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// The key's value has changed, or it is to be taken for stale.
    pub(crate) fn key(self: &Arc<Self>, key: K, stale: bool, runtime: Option<Handle>) {
        let max = self.bounds.max;
        self.add(runtime, |waiting| {
            if waiting.all {
                return;
            }
            if waiting.keys.len() >= max && !waiting.keys.contains_key(&key) {
                return waiting.forget_all();
            }
            let only_stale = waiting.keys.entry(key).or_insert(stale);
            *only_stale &= stale;
        });
    }

    /// The tag was invalidated.
    pub(crate) fn tag(self: &Arc<Self>, tag: &str, runtime: Option<Handle>) {
        let max = self.bounds.max;
        self.add(runtime, |waiting| {
            if waiting.all {
                return;
            }
            if waiting.tags.len() >= max {
                return waiting.forget_all();
            }
            waiting.tags.insert(Arc::from(tag));
        });
    }

    /// All keys have changed.
    pub(crate) fn all(self: &Arc<Self>, runtime: Option<Handle>) {
        self.add(runtime, Waiting::forget_all);
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

    fn add(self: &Arc<Self>, runtime: Option<Handle>, add: impl FnOnce(&mut Waiting<K>)) {
        {
            let mut waiting = self.waiting.lock();
            waiting.latest += 1;
            add(&mut waiting);
        }
        self.begin(runtime);
    }

    /// Begins to send, if there is something and nobody does.
    fn begin(self: &Arc<Self>, runtime: Option<Handle>) {
        let Some(runtime) = runtime else { return };
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

impl<K: Key> Waiting<K> {
    fn forget_all(&mut self) {
        self.all = true;
        self.keys = HashMap::new();
        self.tags = HashSet::new();
    }

    /// All that waits.
    fn take(&mut self) -> Vec<Change<K>> {
        if mem::take(&mut self.all) {
            return vec![Change::All];
        }
        let tags = mem::take(&mut self.tags)
            .into_iter()
            .map(|tag| Change::Tag(tag.to_string()));
        let keys = mem::take(&mut self.keys).into_iter();
        let key = |(key, stale)| if stale { Change::Stale(key) } else { Change::Key(key) };
        tags.chain(keys.map(key)).collect()
    }

    /// These wait again, with what has come meanwhile.
    fn put_back(&mut self, changes: Vec<Change<K>>, max: usize) {
        for change in changes {
            if self.all {
                return;
            }
            match change {
                Change::All => self.forget_all(),
                Change::Tag(tag) => drop(self.tags.insert(Arc::from(tag))),
                Change::Stale(key) => drop(self.keys.entry(key).or_insert(true)),
                Change::Key(key) => drop(self.keys.insert(key, false)),
            }
            if self.keys.len() > max || self.tags.len() > max {
                self.forget_all();
            }
        }
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
            waiting.put_back(mem::take(&mut self.out), self.outbox.bounds.max);
        }
        // Who waits for it begins another.
        self.outbox.sent.notify_waiters();
    }
}

impl<K: Key> Sending<K> {
    async fn run(mut self) {
        let outbox = Arc::clone(&self.outbox);
        let mut pause = PAUSES.0;
        let mut is_last_try = false;
        loop {
            let number = {
                let mut waiting = outbox.waiting.lock();
                self.out = waiting.take();
                if self.out.is_empty() {
                    waiting.is_sending = false;
                    self.is_done = true;
                    break;
                }
                waiting.latest
            };
            let settled = tokio::time::timeout(outbox.bounds.settle_within, (outbox.settled)()).await;
            let sent = self.send().await;
            if sent && (settled.is_ok() || is_last_try) {
                self.out.clear();
                outbox.waiting.lock().sent = number;
                outbox.sent.notify_waiters();
                pause = PAUSES.0;
                continue;
            }
            // Where a tier has not heard of it, who asks that tier finds what was before: so it is sent once more.
            if is_last_try {
                self.out.clear();
                break;
            }
            outbox
                .waiting
                .lock()
                .put_back(mem::take(&mut self.out), outbox.bounds.max);
            is_last_try = outbox.is_closed.load(Ordering::SeqCst);
            if !is_last_try {
                let closing = outbox.closing.notified();
                drop(tokio::time::timeout(pause.mul_f64(rand::random_range(0.5..=1.0)), closing).await);
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }

    async fn send(&self) -> bool {
        for some in self.out.chunks(CHANGES_A_SENDING) {
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
