//! A future that completes when the tiers have acknowledged what was written, and the backplane has taken it. Knows nothing of entries.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::backplane::Outbox;
use super::tier::Tiers;
use forebay_batch::load::Key;

/// Resolves when all tiers, those of a cache below too, have heard of what was written before, and the [backplane](super::backplane) has taken it; at
/// once where there are none.
///
/// In this process what was written holds from the call on, whether this is awaited or not. But a deletion that no tier has
/// heard of when the process ends is lost, and a tier that outlives it (a file, Redis) serves the old value to the next: so
/// await it, where there are tiers, before a write is acknowledged. A tier that is down is told when it is back, so
/// this may wait for as long, also after the cache's last handle is gone: as long as it is kept, it is one. It is safe to drop, which
/// `drop` says where there are no tiers and nothing can be awaited. Awaited where there is no runtime, and without one that was
/// [named](super::CacheBuilder::runtime), it waits for somebody who has one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::cache::Cache;
///
/// let cache = Cache::new(|key: u32| async move { Ok::<_, Infallible>(Some(key)) });
/// cache.get(&1).await?;
/// cache.invalidate(&1).await; // at once, as there are no tiers
/// # Ok(())
/// # }
/// ```
#[must_use = "a tier may not have heard of it yet: await it before the write is acknowledged, or `drop` it"]
pub struct Settled {
    all: Option<BoxFuture<'static, ()>>,
}

impl Settled {
    /// `cache` is kept as long as something waits to be sent.
    pub(super) fn new<K, V>(
        tiers: &Tiers<K, V>,
        source: Option<Self>,
        outbox: Option<&Arc<Outbox<K>>>,
        cache: impl FnOnce() -> Arc<dyn Send + Sync>,
    ) -> Self
    where
        K: Key,
        V: Clone + Send + Sync + 'static,
    {
        let tiers = (!tiers.is_empty()).then(|| tiers.settled());
        let outbox = outbox.map(|outbox| (outbox.settled(), cache()));
        let source = source.and_then(|settled| settled.all);
        if tiers.is_none() && source.is_none() && outbox.is_none() {
            return Self { all: None };
        }
        let all = async move {
            if let Some(tiers) = tiers {
                tiers.await;
            }
            if let Some(source) = source {
                source.await;
            }
            if let Some((outbox, cache)) = outbox {
                outbox.await;
                drop(cache);
            }
        };
        Self {
            all: Some(Box::pin(all)),
        }
    }
}

impl Settled {
    /// Whether there is nothing to wait for.
    pub(super) fn is_settled(&self) -> bool {
        self.all.is_none()
    }
}

impl Future for Settled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.all {
            None => Poll::Ready(()),
            Some(all) => all.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settled").finish_non_exhaustive()
    }
}
