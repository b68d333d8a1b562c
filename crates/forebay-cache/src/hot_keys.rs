//! The hot keys of a cache, to be saved and loaded back; and warming, which fetches them before anybody asks.
//!
//! Promises: warming fetches what is not there, gathered where the source gathers; a key that fails harms no other.

use super::Cache;
use super::answer::Answer;
use forebay_batch::load::Key;

/// Keys and about how often each was used of late, most used first. What [`Cache::hot_keys`] lists and [`Cache::warm`] takes.
///
/// Saved and loaded as one likes: it is plain data, and with the feature `serde` serializable.
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::{Cache, HotKeys};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::new(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) });
/// let front_page: HotKeys<u64> = [12, 7].into_iter().collect(); // What you know to be wanted, in order.
/// squares.warm(front_page, |_| ()).await;
/// assert!(squares.get_if_fresh(&12).is_some());
///
/// for _ in 0..20_000 {
///     squares.get(&12).await?;
/// }
/// let (hottest, uses) = squares.hot_keys(1).keys[0];
/// assert!(hottest == 12 && uses > 1.0); // By a sample of the uses.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HotKeys<K> {
    /// A key, and its uses: each counts half after the half-life that the cache was built with.
    pub keys: Vec<(K, f64)>,
}

impl<K> FromIterator<K> for HotKeys<K> {
    /// Keys of which nothing is known but their order.
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        Self {
            keys: keys.into_iter().map(|key| (key, 0.0)).collect(),
        }
    }
}

/// How far warming has come.
///
/// ```
/// use forebay::cache::{Cache, HotKeys};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ask = |n: u64| async move { if n > 30 { Err("too large") } else { Ok((n % 2 == 0).then_some(n / 2)) } };
/// let hot_keys: HotKeys<u64> = (0..32).collect();
/// let mut told = Vec::new();
/// let warmed = Cache::new(ask).warm(hot_keys, |so_far| told.push(100 * so_far.done / so_far.keys)).await;
/// assert_eq!((warmed.keys, warmed.present, warmed.missing, warmed.failed), (32, 16, 15, 1));
/// assert_eq!(told, [50, 100]); // Per cent.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warmed {
    /// Keys to warm.
    pub keys: usize,
    /// How many were done so far: there already, fetched, or failed.
    pub done: usize,
    /// How many of them have a value.
    pub present: usize,
    /// How many of them the source has no value for.
    pub missing: usize,
    /// How many of them failed.
    pub failed: usize,
}

/// Keys warmed together: where the source gathers them into one fetch, and where each is one.
const TOGETHER: usize = 1_000;
const APART: usize = 16;

impl<K, V, E> Cache<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// The `n` keys most used of late, by a sample of the uses (one in 256): those that matter are there, seldom used ones may
    /// not be. At most as many as [`CacheBuilder::hot_keys`](super::CacheBuilder::hot_keys) watches.
    #[must_use]
    pub fn hot_keys(&self, n: usize) -> HotKeys<K> {
        let now_ms = self.core.time.now();
        let hot = self.core.hot.as_ref();
        HotKeys {
            keys: hot.map_or_else(Vec::new, |hot| hot.lock().top(n, now_ms)),
        }
    }

    /// Fetches what is not there of these keys, most used first, and goes on from their uses. Gathered where the source
    /// is a [`Loader`](forebay_batch::load::Loader): a thousand keys at a time; else 16 at a time. `progress` is called after each such step.
    ///
    /// # Cancel safety
    ///
    /// What was fetched so far is kept.
    pub async fn warm(&self, hot_keys: HotKeys<K>, mut progress: impl FnMut(Warmed)) -> Warmed {
        let now_ms = self.core.time.now();
        if let Some(hot) = &self.core.hot {
            let mut hot = hot.lock();
            for (key, uses) in &hot_keys.keys {
                hot.add(key, *uses, now_ms);
            }
        }
        let mut warmed = Warmed {
            keys: hot_keys.keys.len(),
            ..Warmed::default()
        };
        let step = if self.core.source.gathers() { TOGETHER } else { APART };
        for keys in hot_keys.keys.chunks(step) {
            for answer in self.lookup_many(keys.iter().map(|(key, _)| key.clone())).await {
                warmed.done += 1;
                match answer {
                    Ok(Answer { value: Some(_), .. }) => warmed.present += 1,
                    Ok(Answer { value: None, .. }) => warmed.missing += 1,
                    Err(_) => warmed.failed += 1,
                }
            }
            progress(warmed);
        }
        warmed
    }
}
