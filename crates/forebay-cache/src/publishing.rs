//! The task that publishes a cache's metrics, if it was given a name.
//!
//! Promises: it costs a hit nothing, and ends with the cache; where its runtime ends first, the next flight starts another. Does
//! not know what is published.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::Core;
use super::metrics;
use forebay_batch::load::Key;

/// How often counters are published.
const PERIOD: Duration = Duration::from_secs(1);

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Begins to publish metrics, if it has a name and there is a runtime; if not, the next flight tries again.
    pub(super) fn publish(self: &Arc<Self>) {
        if self.settings.name.is_empty() || self.publishes.load(Ordering::Relaxed) {
            return;
        }
        let Some(runtime) = self.runtime() else { return };
        if !self.publishes.swap(true, Ordering::Relaxed) {
            runtime.spawn(publish(Publishing(Arc::downgrade(self))));
        }
    }
}

/// Publishes until the cache is gone. Where its runtime goes first, the next flight begins another.
async fn publish<K, V, E>(publishing: Publishing<K, V, E>)
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(core) = publishing.0.upgrade() else { return };
        metrics::publish(&core.settings.name, &core.stats());
    }
}

/// While it lives, the cache's counters are published.
struct Publishing<K, V, E>(Weak<Core<K, V, E>>);

impl<K, V, E> Drop for Publishing<K, V, E> {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.publishes.store(false, Ordering::Relaxed);
        }
    }
}
