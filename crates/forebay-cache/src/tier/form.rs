//! The form in which a tier stores: keys, values, and the limits of both.
//!
//! Promises: what cannot be stored (too long, too large, no such form) is told apart from what can, and never stored in part.
//! Counts what it could not read. A panic of the user's code costs the key alone at which it comes: that has no form, or its value has none.
//! Knows nothing of any backend.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::codec::{Codec, CodecError};
use super::envelope::{Compression, Envelope, HEAD_BYTES, Opened};
use super::key::{KeyForm, check_namespace};
use super::{Kept, OpenError};
use forebay_batch::panics::or_message;

/// How a tier stores keys and values. Every process that shares a tier must use the same.
///
/// ```
/// use forebay::cache::tier::{Form, KeyForm, Postcard};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Product { name: String, price: u64 }
///
/// // Another number when the type changes: the old values are then misses.
/// let form: Form<u64, Product> = Form::new("products", KeyForm::display(), Postcard).schema(2);
/// ```
pub struct Form<K, V> {
    namespace: String,
    keys: KeyForm<K>,
    max_key_bytes: usize,
    codec: Arc<dyn Codec<V>>,
    envelope: Envelope,
    undecodable: Arc<AtomicU64>,
}

impl<K, V> Clone for Form<K, V> {
    fn clone(&self) -> Self {
        Self {
            namespace: self.namespace.clone(),
            keys: self.keys.clone(),
            max_key_bytes: self.max_key_bytes,
            codec: Arc::clone(&self.codec),
            envelope: self.envelope,
            undecodable: Arc::clone(&self.undecodable),
        }
    }
}

impl<K, V> fmt::Debug for Form<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Form")
            .field("namespace", &self.namespace)
            .field("max_key_bytes", &self.max_key_bytes)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

impl<K, V> Form<K, V> {
    /// Keys of this form in this namespace, values by this codec, not compressed, up to 1 KiB and 16 MiB.
    pub fn new(namespace: &str, keys: KeyForm<K>, codec: impl Codec<V> + 'static) -> Self {
        Self {
            namespace: namespace.to_owned(),
            keys,
            max_key_bytes: 1 << 10,
            codec: Arc::new(codec),
            envelope: Envelope {
                schema: 0,
                bytes_max: 16 << 20,
                compression: None,
            },
            undecodable: Arc::default(),
        }
    }

    /// The number of the value type's present layout: values stored under another are misses. 0 unless set.
    #[must_use]
    pub fn schema(mut self, number: u32) -> Self {
        self.envelope.schema = number;
        self
    }

    /// Compresses values whose bytes are at least so many, where that makes them smaller.
    #[must_use]
    pub fn compress(mut self, compression: Compression, from_bytes: usize) -> Self {
        self.envelope.compression = Some((compression, from_bytes));
        self
    }

    /// A key longer than this, namespace included, is not stored.
    #[must_use]
    pub fn max_key_bytes(mut self, bytes: usize) -> Self {
        self.max_key_bytes = bytes;
        self
    }

    /// A value larger than this is not stored, before compression; nor is more than this read.
    #[must_use]
    pub fn max_value_bytes(mut self, bytes: usize) -> Self {
        // The length of a compressed value has 32 bits.
        self.envelope.bytes_max = bytes.saturating_add(HEAD_BYTES).min(u32::MAX as usize);
        self
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        check_namespace(&self.namespace)
    }

    #[cfg(feature = "redis")]
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The key's bytes; none for one that is never stored.
    pub(super) fn key(&self, key: &K) -> Option<Vec<u8>> {
        or_message(|| self.keys.in_namespace(&self.namespace, key, self.max_key_bytes)).unwrap_or_else(|panic| {
            let namespace = self.namespace.as_str();
            tracing::debug!(namespace, %panic, "a key has no form");
            None
        })
    }

    /// The value's bytes under a key's, with the tier's moment for its tags; none for one that cannot be stored.
    pub(super) fn seal(&self, key: &[u8], kept: &Kept<V>, since: u64) -> Option<Vec<u8>> {
        let sealed = or_message(|| self.envelope.seal(self.codec.as_ref(), key, kept, since));
        sealed
            .unwrap_or_else(|panic| Err(CodecError::new(panic.to_string()).into()))
            .inspect_err(|error| {
                let namespace = self.namespace.as_str();
                tracing::debug!(namespace, %error, "a value is not kept in the tier");
            })
            .ok()
    }

    /// The value of stored bytes. One that cannot be read is counted and is none.
    pub(super) fn open(&self, key: &[u8], bytes: &[u8]) -> Option<Opened<V>> {
        let opened = or_message(|| self.envelope.open(self.codec.as_ref(), key, bytes));
        let opened = opened.ok().and_then(Result::ok);
        if opened.is_none() {
            self.undecodable.fetch_add(1, Relaxed);
        }
        opened
    }

    pub(super) fn undecodable(&self) -> u64 {
        self.undecodable.load(Relaxed)
    }
}
