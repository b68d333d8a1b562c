//! What a key must be able to do. Knows nothing of loaders.

use std::hash::Hash;

/// What can be a key: everything that has these. `Eq` and `Clone` run under the loader's lock: they must be quick, and must not
/// call the loader.
pub trait Key: Hash + Eq + Clone + Send + Sync + 'static {}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Key for K {}
