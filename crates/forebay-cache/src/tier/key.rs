//! Keys to bytes: a namespace, a colon, and the key.
//!
//! Promises: different keys of one form have different bytes, if their `Display` (or their bytes) differ; different namespaces
//! never meet. Knows nothing of values or tiers.

use std::fmt::{self, Display, Write};
use std::sync::Arc;

use serde::Serialize;

use super::OpenError;

/// Appends a key's bytes; none when it has no such form.
type WriteKey<K> = Arc<dyn Fn(&K, &mut Vec<u8>) -> Option<()> + Send + Sync>;

/// How keys are written into a tier.
pub struct KeyForm<K> {
    write: WriteKey<K>,
}

impl<K> Clone for KeyForm<K> {
    fn clone(&self) -> Self {
        let write = Arc::clone(&self.write);
        Self { write }
    }
}

impl<K> fmt::Debug for KeyForm<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyForm").finish_non_exhaustive()
    }
}

impl<K> KeyForm<K> {
    /// As text, by `Display`, which must differ where keys differ: good to read in the backend's own tools.
    #[must_use]
    pub fn display() -> Self
    where
        K: Display,
    {
        Self::bytes(|key, bytes| {
            let mut text = String::new();
            write!(text, "{key}").ok()?;
            bytes.extend(text.as_bytes());
            Some(())
        })
    }

    /// In postcard's form, which differs wherever keys do: for keys of several parts.
    #[must_use]
    pub fn serde() -> Self
    where
        K: Serialize,
    {
        Self::bytes(|key, bytes| postcard::to_io(key, bytes).ok().map(drop))
    }

    /// As this function appends it. `None`, or a panic, for a key that cannot be written: it is never stored, and so never deleted; one that
    /// could be written once must be at all times. Different keys must have different bytes.
    #[must_use]
    pub fn bytes(write: impl Fn(&K, &mut Vec<u8>) -> Option<()> + Send + Sync + 'static) -> Self {
        Self { write: Arc::new(write) }
    }

    /// The whole key, unless it cannot be written or is longer than `bytes_max`.
    pub(super) fn in_namespace(&self, namespace: &str, key: &K, bytes_max: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(namespace.len() + 24);
        bytes.extend(namespace.as_bytes());
        bytes.push(b':');
        (self.write)(key, &mut bytes)?;
        (bytes.len() <= bytes_max).then_some(bytes)
    }
}

/// Whether a namespace is one. Without a colon it cannot reach into another, and nothing in it means something in a pattern.
pub(crate) fn check_namespace(namespace: &str) -> Result<(), OpenError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !namespace.is_empty() && namespace.len() <= 64 && namespace.chars().all(is_plain) {
        return Ok(());
    }
    let problem =
        format!("the namespace {namespace:?} cannot be used: 1 to 64 of the letters a-z, A-Z, 0-9, '-', '_', '.' can");
    Err(OpenError::Unusable { problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_behind_their_namespace() {
        let by_display = KeyForm::display().in_namespace("products", &42_u64, 100);
        assert_eq!(by_display.as_deref(), Some(&b"products:42"[..]));
        let by_bytes: KeyForm<[u8; 2]> = KeyForm::bytes(|key, bytes| {
            bytes.extend(key);
            Some(())
        });
        assert_eq!(by_bytes.in_namespace("a", &[0, 255], 4).unwrap(), [b'a', b':', 0, 255]);
        assert_eq!(by_bytes.in_namespace("a", &[0, 255], 3), None, "over the limit");
    }

    #[test]
    fn keys_of_several_parts_never_meet() {
        let form = KeyForm::<(String, String)>::serde();
        let written = |a: &str, b: &str| form.in_namespace("n", &(a.into(), b.into()), 100).unwrap();
        assert_ne!(written("ab", "c"), written("a", "bc"));
    }

    #[test]
    fn a_namespace_that_could_reach_into_another_is_refused() {
        for namespace in ["products", "a", "Shop-2_x.y"] {
            assert!(check_namespace(namespace).is_ok(), "{namespace}");
        }
        for namespace in ["", "a:b", "a*", "a b", "[a]", "ä", &"a".repeat(65)] {
            let error = check_namespace(namespace).unwrap_err().to_string();
            assert!(error.contains(&format!("{namespace:?}")), "{error}");
        }
    }
}
