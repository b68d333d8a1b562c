//! What a fetch may answer with, and how an answer becomes one outcome per key.
//!
//! Promises: an outcome goes to the key it was given for, or the answer is refused as a whole: a list is only as good as its
//! length. What was never asked for is dropped and counted. Knows nothing of callers and batches.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// A shape that a fetch can answer in: `Ok` of one of these.
///
/// | shape | a missing key | one key's own error |
/// |---|---|---|
/// | [`HashMap<K, V>`], [`BTreeMap<K, V>`] | is not in it | |
/// | `Vec<Option<V>>`, in the order of the keys | `None` | |
/// | `Vec<Result<Option<V>, E>>`, in the order of the keys | `Ok(None)` | `Err` |
///
/// A list must be as long as the keys were, or every load of the batch ends with
/// [`WrongCount`](super::LoadError::WrongCount): nobody can tell which of them is missing.
///
/// For a shape of your own: implementers must give one outcome for each of `keys`, in their order, which are all different.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::{collections::HashMap, convert::Infallible};
///
/// use forebay::load::Loader;
///
/// // By key, where some may be missing.
/// let lengths = Loader::new(async |words: Vec<&'static str>| {
///     Ok::<_, Infallible>(words.into_iter().map(|word| (word, word.len())).collect::<HashMap<_, _>>())
/// });
/// assert_eq!(lengths.load("weir").await?, Some(4));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a fetch cannot answer with `{Self}`",
    note = "it answers with a `HashMap` or `BTreeMap` by key, or in the order of the keys with a `Vec<Option<V>>` or `Vec<Result<Option<V>, E>>`"
)]
pub trait Answer<K, E> {
    /// What is loaded.
    type Value;

    /// One outcome per key, in the order of `keys`.
    fn into_outcomes<'k>(self, keys: impl ExactSizeIterator<Item = &'k K>) -> Outcomes<Self::Value, E>
    where
        K: 'k;
}

/// An answer in the order of the keys.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::load::{Answer, Loader, Outcomes};
///
/// /// Rows in any order, as a query gives them.
/// struct Rows(Vec<(u32, &'static str)>);
///
/// impl<E> Answer<u32, E> for Rows {
///     type Value = &'static str;
///
///     fn into_outcomes<'k>(self, keys: impl ExactSizeIterator<Item = &'k u32>) -> Outcomes<&'static str, E> {
///         let of = |key: &u32| self.0.iter().find(|(id, _)| id == key).map(|(_, name)| *name);
///         Outcomes { of_keys: keys.map(|key| Ok(of(key))).collect(), ignored: 0 }
///     }
/// }
///
/// let names = Loader::new(async |_: Vec<u32>| Ok::<_, Infallible>(Rows(vec![(2, "Grace"), (1, "Ada")])));
/// let (ada, nobody) = tokio::join!(names.load(1), names.load(404));
/// assert_eq!((ada?, nobody?), (Some("Ada"), None));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Outcomes<V, E> {
    /// One a key; any other number is refused.
    pub of_keys: Vec<Result<Option<V>, E>>,
    /// Values that came for keys which were not asked for; counted in [`Stats`](super::Stats).
    pub ignored: usize,
}

impl<K: Hash + Eq, V, S: BuildHasher, E> Answer<K, E> for HashMap<K, V, S> {
    type Value = V;

    fn into_outcomes<'k>(mut self, keys: impl ExactSizeIterator<Item = &'k K>) -> Outcomes<V, E>
    where
        K: 'k,
    {
        Outcomes {
            of_keys: keys.map(|key| Ok(self.remove(key))).collect(),
            ignored: self.len(),
        }
    }
}

impl<K: Ord, V, E> Answer<K, E> for BTreeMap<K, V> {
    type Value = V;

    fn into_outcomes<'k>(mut self, keys: impl ExactSizeIterator<Item = &'k K>) -> Outcomes<V, E>
    where
        K: 'k,
    {
        Outcomes {
            of_keys: keys.map(|key| Ok(self.remove(key))).collect(),
            ignored: self.len(),
        }
    }
}

impl<K, V, E> Answer<K, E> for Vec<Option<V>> {
    type Value = V;

    fn into_outcomes<'k>(self, _keys: impl ExactSizeIterator<Item = &'k K>) -> Outcomes<V, E>
    where
        K: 'k,
    {
        Outcomes {
            of_keys: self.into_iter().map(Ok).collect(),
            ignored: 0,
        }
    }
}

impl<K, V, E> Answer<K, E> for Vec<Result<Option<V>, E>> {
    type Value = V;

    fn into_outcomes<'k>(self, _keys: impl ExactSizeIterator<Item = &'k K>) -> Outcomes<V, E>
    where
        K: 'k,
    {
        Outcomes {
            of_keys: self,
            ignored: 0,
        }
    }
}
