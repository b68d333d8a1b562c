//! A scope: what one request has loaded, remembered until the request ends.
//!
//! Promises:
//! - A key is loaded at most once in a scope while it is remembered; concurrent loads of it share one flight.
//! - Values are remembered, and that a key is missing; errors never.
//! - What [`prime`](Scope::prime), [`clear`](Scope::clear) or [`clear_all`](Scope::clear_all) said wins over what a load that
//!   began before brings later.
//! - Bounded: it remembers `max_remembered` keys, and loads others each time. A load that was cancelled takes no room.
//!
//! Lives as long as its handles, so give one to each request and drop it with the request. It is not for use inside a fetch,
//! which serves many requests: a load that is made there is answered by what is remembered, or goes its own way, and waits for none that
//! others have begun here, who may wait for that fetch. Knows nothing of batches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared, join_all};
use parking_lot::Mutex;

use super::engine::{Engine, Outcome, is_inside_a_fetch};
use super::future::Load;
use super::key::Key;

/// A loader that remembers, for one request; see [`Loader::scope`](super::Loader::scope). Clones are handles to the same
/// memory.
///
/// ```
/// # use std::{collections::HashMap, convert::Infallible};
/// # use forebay::load::Loader;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let lengths = Loader::new(|words: Vec<&'static str>| async move {
///     Ok::<_, Infallible>(words.into_iter().map(|word| (word, word.len())).collect::<HashMap<_, _>>())
/// });
/// let scope = lengths.scope();
/// assert_eq!(scope.load("weir").await.unwrap(), Some(4));
/// assert_eq!(scope.load("weir").await.unwrap(), Some(4)); // remembered
/// assert_eq!(lengths.stats().keys_fetched, 1);
///
/// scope.clear(&"weir"); // it was written to
/// assert_eq!(scope.load("weir").await.unwrap(), Some(4)); // fetched again
/// assert_eq!(lengths.stats().keys_fetched, 2);
/// # }
/// ```
pub struct Scope<K, V, E> {
    engine: Engine<K, V, E>,
    memory: Arc<Mutex<Memory<K, V, E>>>,
}

/// One load for all who want its key in this scope. A flight is not enough: it is over before its callers have looked.
type SharedLoad<V, E> = Shared<BoxFuture<'static, Outcome<V, E>>>;

struct Memory<K, V, E> {
    of: HashMap<K, Entry<V, E>>,
    max_remembered: usize,
    /// Grows with every new entry, so that no two are ever taken for the same.
    entries_made: u64,
}

enum Entry<V, E> {
    /// What was loaded or primed; `None` is a missing key.
    Known(Option<V>),
    /// A load is on its way, held by those who want it: dropped by all, it is cancelled.
    Loading {
        /// Tells whether this is still the entry that a load was begun for.
        number: u64,
        load: WeakShared<BoxFuture<'static, Outcome<V, E>>>,
    },
}

/// What a look into the memory says.
enum Seen<V, E> {
    Known(Option<V>),
    /// To be loaded, and remembered under this number.
    Load(u64, SharedLoad<V, E>),
    /// To be loaded, and not remembered: for want of room, or inside a fetch.
    Apart,
}

impl<K, V, E> Memory<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn look(&mut self, key: &K, engine: &Engine<K, V, E>) -> Seen<V, E> {
        match self.of.get(key) {
            Some(Entry::Known(value)) => return Seen::Known(value.clone()),
            _ if is_inside_a_fetch() => return Seen::Apart,
            Some(Entry::Loading { number, load }) => {
                if let Some(load) = load.upgrade() {
                    return Seen::Load(*number, load);
                }
            }
            None if self.of.len() >= self.max_remembered => return Seen::Apart,
            None => {}
        }
        let (engine, wanted) = (engine.clone(), key.clone());
        let load = async move { Load::new(engine.load(wanted)).await }.boxed().shared();
        self.entries_made += 1;
        let number = self.entries_made;
        let weak = load.downgrade().expect("it has not been polled to its end");
        self.of.insert(key.clone(), Entry::Loading { number, load: weak });
        Seen::Load(number, load)
    }

    /// A load has ended, with this value or, if there is none, with an error. Returns what is to be dropped where no lock
    /// is held.
    fn settle(&mut self, key: &K, number: u64, value: Option<Option<V>>) -> impl Sized + use<K, V, E> {
        if !matches!(self.of.get(key), Some(Entry::Loading { number: found, .. }) if *found == number) {
            return (None, None, value);
        }
        match value {
            Some(value) => (None, self.of.insert(key.clone(), Entry::Known(value)), None),
            None => (self.of.remove_entry(key), None, None),
        }
    }
}

impl<K, V, E> Scope<K, V, E> {
    pub(super) fn new(engine: Engine<K, V, E>, max_remembered: usize) -> Self {
        Self {
            engine,
            memory: Arc::new(Mutex::new(Memory {
                of: HashMap::new(),
                max_remembered,
                entries_made: 0,
            })),
        }
    }
}

impl<K, V, E> Scope<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// The key's value: remembered, or loaded. `None` if the source has none.
    ///
    /// # Errors
    ///
    /// As [`Loader::load`](super::Loader::load). An error is not remembered: the next load asks again.
    ///
    /// # Cancel safety
    ///
    /// As [`Loader::load`](super::Loader::load).
    pub async fn load(&self, key: K) -> Outcome<V, E> {
        let seen = self.memory.lock().look(&key, &self.engine);
        let (number, load) = match seen {
            Seen::Known(value) => return Ok(value),
            Seen::Apart => return Load::new(self.engine.load(key)).await,
            Seen::Load(number, load) => (number, load),
        };
        let leaving = Leaving {
            memory: &self.memory,
            key: &key,
            number,
            load: Some(load),
        };
        let outcome = leaving.ended().await;
        let value = outcome.as_ref().ok().cloned();
        let unused = self.memory.lock().settle(&key, number, value);
        drop(unused);
        outcome
    }

    /// The values of many keys, in the order asked for, duplicates and all.
    ///
    /// # Cancel safety
    ///
    /// As [`Loader::load_many`](super::Loader::load_many).
    pub fn load_many(&self, keys: impl IntoIterator<Item = K>) -> impl Future<Output = Vec<Outcome<V, E>>> {
        // The first poll polls each load once, in order: all are in line together.
        join_all(keys.into_iter().map(|key| self.load(key)))
    }

    /// Remembers a value, in place of what is remembered or on its way: what was just written, or came along with something
    /// else.
    pub fn prime(&self, key: K, value: V) {
        let mut memory = self.memory.lock();
        if memory.of.len() >= memory.max_remembered && !memory.of.contains_key(&key) {
            drop(memory);
            // No room for the new value; the old one must not come from a fetch that began before.
            self.engine.invalidate(&key);
            return;
        }
        let replaced = memory.of.insert(key, Entry::Known(Some(value)));
        drop(memory);
        drop(replaced);
    }

    /// Forgets a key. The next load in this scope is answered by a fetch that begins after this call.
    pub fn clear(&self, key: &K) {
        // First: a load that comes in between, and is on an older fetch, is forgotten with what is known.
        self.engine.invalidate(key);
        let forgotten = self.memory.lock().of.remove_entry(key);
        drop(forgotten);
    }

    /// Forgets all keys, as [`clear`](Self::clear) forgets one.
    pub fn clear_all(&self) {
        // Also those that are not remembered here: the next load of one may not join what others began before.
        self.engine.invalidate_all();
        let forgotten = std::mem::take(&mut self.memory.lock().of);
        drop(forgotten);
    }
}

/// A caller that waits for a load. If it is the last and is dropped before the end, the load takes no room any more.
struct Leaving<'a, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    memory: &'a Mutex<Memory<K, V, E>>,
    key: &'a K,
    number: u64,
    /// There until it has ended.
    load: Option<SharedLoad<V, E>>,
}

impl<K, V, E> Leaving<'_, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    async fn ended(mut self) -> Outcome<V, E> {
        let load = self.load.as_mut().expect("not ended yet");
        let outcome = load.await;
        self.load = None;
        outcome
    }
}

impl<K, V, E> Drop for Leaving<'_, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        let Some(load) = self.load.take() else {
            return;
        };
        // Cancels the load, if nobody else has it.
        drop(load);
        let mut memory = self.memory.lock();
        let others = match memory.of.get(self.key) {
            Some(Entry::Loading { number, load }) if *number == self.number => load.upgrade(),
            _ => return,
        };
        let forgotten = others.is_none().then(|| memory.of.remove_entry(self.key));
        drop(memory);
        drop((others, forgotten));
    }
}

impl<K, V, E> Clone for Scope<K, V, E> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            memory: Arc::clone(&self.memory),
        }
    }
}

impl<K, V, E> fmt::Debug for Scope<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("keys", &self.memory.lock().of.len())
            .finish_non_exhaustive()
    }
}
