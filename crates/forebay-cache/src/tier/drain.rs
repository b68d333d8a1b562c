//! The task that empties one tier's queue, for as long as there is something in it.
//!
//! Promises: a change that is owed is tried again, with growing pauses, until the tier acknowledges it; a tier that hangs,
//! fails or panics holds up its own queue only. When the last handle to the tiers is dropped, each change in the queue is tried
//! once more and then given up. A lease by which a value was to be put that is dropped is given back, if the tier takes it. When the
//! task itself is dropped (its runtime shuts down, or a key's code panics), the changes that it was sending go back into the queue, for the next task.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::guarded::guarded;
use super::queue::{Batch, Offer, Work};
use super::shared::Shared;
use super::stats::add;
use super::{Put, TierError};
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

/// The task's hold on the queue: hands back what is out if the task is dropped, also before it ran at all.
struct Draining<K: Key, V> {
    shared: Arc<Shared<K, V>>,
    at: usize,
    is_done: bool,
}

impl<K: Key, V> Drop for Draining<K, V> {
    fn drop(&mut self) {
        if !self.is_done {
            quietly(|| {
                let dropped = self.shared.state.lock().queues[self.at].abandoned();
                drop(dropped);
            });
            self.shared.is_stranded.store(true, SeqCst);
            self.shared.settling.notify_waiters();
        }
    }
}

/// Starts the task that empties the queue of the tier at this place. Not to be called under the lock.
pub(super) fn begin<K: Key, V: Clone + Send + Sync + 'static>(shared: &Arc<Shared<K, V>>, at: usize, runtime: &Handle) {
    let shared = Arc::clone(shared);
    let is_done = false;
    runtime.spawn(drain(Draining { shared, at, is_done }));
}

async fn drain<K: Key, V: Clone + Send + Sync + 'static>(mut draining: Draining<K, V>) {
    let (shared, at) = (Arc::clone(&draining.shared), draining.at);
    let mut is_last_try = false;
    let level = &shared.levels[at];
    loop {
        let woken = level.wake.notified();
        let mut dropped = Vec::new();
        let work = shared.state.lock().queues[at].take(Instant::now(), &mut dropped);
        add(&level.counters.dropped, dropped.len());
        if !dropped.is_empty() {
            shared.settling.notify_waiters();
        }
        let leased = |(key, offer): (K, Offer<V>)| Some((key, offer.lease?));
        let mut leases = Vec::new();
        // Values are dropped here, which is the user's code.
        quietly(|| leases.extend(dropped.into_iter().filter_map(leased)));
        give_back(&shared, at, leases);
        match work {
            Work::Nothing => break,
            Work::Wait(until) => {
                if is_last_try {
                    let given_up = shared.state.lock().queues[at].give_up();
                    quietly(|| drop(given_up));
                    break;
                }
                if shared.is_closed.load(SeqCst) {
                    is_last_try = true;
                    shared.state.lock().queues[at].recovered();
                    continue;
                }
                tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = woken => {}
                }
                continue;
            }
            Work::Clear => {
                let begun = Instant::now();
                let cleared = guarded(shared.settings.clear_timeout, async || level.tier.clear().await).await;
                level.counters.change_latency.add(begun.elapsed());
                note(&shared, at, "clear", cleared.as_ref().err());
                shared.state.lock().queues[at].cleared(cleared.is_ok(), Instant::now());
            }
            Work::Tags(tags) => {
                let begun = Instant::now();
                let limit = shared.settings.change_timeout;
                let done = guarded(limit, async || level.tier.invalidate_tags(&tags).await).await;
                level.counters.change_latency.add(begun.elapsed());
                note(&shared, at, "invalidate tags", done.as_ref().err());
                shared.state.lock().queues[at].tags_finished(done.is_ok(), Instant::now());
            }
            Work::Batch(batch) => {
                send(&shared, at, &batch).await;
                quietly(|| drop(batch));
            }
        }
        shared.settling.notify_waiters();
    }
    draining.is_done = true;
    shared.settling.notify_waiters();
}

async fn send<K: Key, V: Clone + Send + Sync + 'static>(shared: &Arc<Shared<K, V>>, at: usize, batch: &Batch<K, V>) {
    let level = &shared.levels[at];
    let timeout = shared.settings.change_timeout;
    let (mut deletes, mut puts) = (None, None);
    if !batch.deletes.is_empty() {
        let begun = Instant::now();
        let deleted = guarded(timeout, async || level.tier.delete_many(&batch.deletes).await).await;
        level.counters.change_latency.add(begun.elapsed());
        note(shared, at, "delete", deleted.as_ref().err());
        if deleted.is_ok() {
            add(&level.counters.deletes, batch.deletes.len());
        }
        deletes = Some(deleted.is_ok());
    }
    // A tier that just failed is not asked again at once.
    if !batch.puts.is_empty() && deletes != Some(false) {
        let begun = Instant::now();
        let put = guarded(timeout, async || level.tier.put_many(&batch.puts).await).await;
        level.counters.change_latency.add(begun.elapsed());
        note(shared, at, "put", put.as_ref().err());
        if put.is_ok() {
            add(&level.counters.puts, batch.puts.len());
        }
        puts = Some(put.is_ok());
    }
    let dropped = shared.state.lock().queues[at].finished(batch, deletes, puts, Instant::now());
    add(&level.counters.dropped, dropped);
    if puts != Some(true) {
        let leased = |put: &Put<K, V>| Some((put.key.clone(), put.lease?));
        give_back(shared, at, batch.puts.iter().filter_map(leased).collect());
    }
}

/// Others need not wait for what will not come. In a task of its own, which holds up no change. The first failure ends it: their time ends
/// these leases, too.
fn give_back<K: Key, V: Clone + Send + Sync + 'static>(shared: &Arc<Shared<K, V>>, at: usize, leases: Vec<(K, u64)>) {
    if leases.is_empty() {
        return;
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let level = &shared.levels[at];
        for (key, lease) in leases {
            let limit = shared.settings.change_timeout;
            if let Err(error) = guarded(limit, async || level.tier.end_lease(&key, lease).await).await {
                tracing::debug!(tier = level.tier.name(), %error, "leases were not ended before their time");
                return;
            }
        }
    });
}

fn note<K: Key, V: 'static>(shared: &Shared<K, V>, at: usize, what: &str, error: Option<&TierError>) {
    let level = &shared.levels[at];
    let Some(error) = error else { return };
    match error {
        TierError::TimedOut { .. } => level.counters.timeouts.fetch_add(1, Relaxed),
        _ => level.counters.errors.fetch_add(1, Relaxed),
    };
    tracing::debug!(tier = level.tier.name(), %error, "the tier did not {what}");
}
