//! A scope: what one request has loaded, remembered until the request ends.
//!
//! Promises:
//! - A key is loaded at most once in a scope while it is remembered; concurrent loads of it share one flight.
//! - Values are remembered, and that a key is missing; errors never.
//! - What [`prime`](Scope::prime), [`clear`](Scope::clear) or [`clear_all`](Scope::clear_all) said wins over what a load that
//!   began before brings later.
//! - Bounded: it remembers `max_remembered` keys, and loads others each time.
//!
//! Lives as long as its handles, so give one to each request and drop it with the request. Knows nothing of batches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;

use super::engine::{Engine, Outcome};
use super::{Key, Load};

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
    memory: Arc<Mutex<Memory<K, V>>>,
}

struct Memory<K, V> {
    of: HashMap<K, Entry<V>>,
    max_remembered: usize,
    /// Grows with every new entry, so that no two are ever taken for the same.
    entries_made: u64,
}

enum Entry<V> {
    /// What was loaded or primed; `None` is a missing key.
    Known(Option<V>),
    /// A load is on its way. Its number tells whether this is still the entry that the load was begun for.
    Loading(u64),
}

/// What a look into the memory says.
enum Seen<V> {
    Known(Option<V>),
    /// To be loaded, and remembered under this number, if there is room.
    Load(Option<u64>),
}

impl<K: Key, V: Clone> Memory<K, V> {
    fn look(&mut self, key: &K) -> Seen<V> {
        match self.of.get(key) {
            Some(Entry::Known(value)) => Seen::Known(value.clone()),
            Some(Entry::Loading(number)) => Seen::Load(Some(*number)),
            None if self.of.len() >= self.max_remembered => Seen::Load(None),
            None => {
                self.entries_made += 1;
                self.of.insert(key.clone(), Entry::Loading(self.entries_made));
                Seen::Load(Some(self.entries_made))
            }
        }
    }

    /// A load has ended, with this value or, if there is none, with an error. Returns what is to be dropped where no lock
    /// is held.
    fn settle(&mut self, key: &K, number: u64, value: Option<Option<V>>) -> (Option<(K, Entry<V>)>, Option<Option<V>>) {
        if !matches!(self.of.get(key), Some(Entry::Loading(found)) if *found == number) {
            return (None, value);
        }
        let replaced = match value {
            Some(value) => {
                self.of.insert(key.clone(), Entry::Known(value));
                None
            }
            None => self.of.remove_entry(key),
        };
        (replaced, None)
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
        let seen = self.memory.lock().look(&key);
        let number = match seen {
            Seen::Known(value) => return Ok(value),
            Seen::Load(number) => number,
        };
        let Some(number) = number else {
            return Load::new(&self.engine, key).await;
        };
        let outcome = Load::new(&self.engine, key.clone()).await;
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
        let forgotten = self.memory.lock().of.remove_entry(key);
        drop(forgotten);
        self.engine.invalidate(key);
    }

    /// Forgets all keys, as [`clear`](Self::clear) forgets one.
    pub fn clear_all(&self) {
        let forgotten = std::mem::take(&mut self.memory.lock().of);
        for key in forgotten.keys() {
            self.engine.invalidate(key);
        }
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
