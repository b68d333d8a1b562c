//! What a key must be able to do. Knows nothing of loaders.

use std::hash::Hash;

/// What can be a key: everything that has these. `Eq` and `Clone` run under the loader's lock: they must be quick, and must not
/// call the loader.
///
/// ```
/// use forebay::load::Key;
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct UserId(u64);
///
/// fn is_key<K: Key>() {}
/// is_key::<UserId>();
/// ```
pub trait Key: Hash + Eq + Clone + Send + Sync + 'static {}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Key for K {}
