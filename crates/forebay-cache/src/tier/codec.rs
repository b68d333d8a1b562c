//! Codecs: values to bytes and back. Knows nothing of envelopes, compression or tiers.
//!
//! Promises: what was encoded decodes to an equal value; bytes with something left over do not decode.

use serde::{Serialize, de::DeserializeOwned};

use super::error::Cause;

/// Why a value has no bytes, or bytes have no value. Mend the type's `Serialize` or `Deserialize`; stored bytes that do not
/// decode are a miss, and need nothing done.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct CodecError {
    cause: Cause,
}

impl CodecError {
    /// With what the serializer said.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self { cause }
    }
}

/// A form in which values are stored.
pub trait Codec<V>: Send + Sync {
    /// A number that no other codec has: what one stored the other does not read. Those below 16 are this crate's.
    fn number(&self) -> u8;

    /// Appends the value's bytes.
    ///
    /// # Errors
    /// When the value has no such form. It is then not stored.
    fn encode(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), CodecError>;

    /// The value of these bytes.
    ///
    /// # Errors
    /// When they are not a value's, or more than one's.
    fn decode(&self, bytes: &[u8]) -> Result<V, CodecError>;
}

/// postcard: compact and fast. It stores no names of fields, so a type that changed needs another
/// [`schema`](super::Form::schema) number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl<V: Serialize + DeserializeOwned> Codec<V> for Postcard {
    fn number(&self) -> u8 {
        1
    }

    fn encode(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        postcard::to_io(value, bytes).map(drop).map_err(CodecError::new)
    }

    fn decode(&self, bytes: &[u8]) -> Result<V, CodecError> {
        match postcard::take_from_bytes(bytes).map_err(CodecError::new)? {
            (value, []) => Ok(value),
            (_, rest) => Err(CodecError::new(format!("{} bytes too many", rest.len()))),
        }
    }
}

/// JSON: larger, and read by people and by programs in any language. A type may gain fields that have a default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<V: Serialize + DeserializeOwned> Codec<V> for Json {
    fn number(&self) -> u8 {
        2
    }

    fn encode(&self, value: &V, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        serde_json::to_writer(bytes, value).map_err(CodecError::new)
    }

    fn decode(&self, bytes: &[u8]) -> Result<V, CodecError> {
        serde_json::from_slice(bytes).map_err(CodecError::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(codec: &dyn Codec<(u64, String, Option<Vec<f64>>)>) {
        let value = (u64::MAX, "naïve \0 \u{10FFFF}".to_owned(), Some(vec![0.1, -1e300]));
        let mut bytes = b"before".to_vec();
        codec.encode(&value, &mut bytes).unwrap();
        let encoded = bytes.strip_prefix(b"before").expect("bytes are appended");
        assert_eq!(codec.decode(encoded).unwrap(), value);
        for end in 0..encoded.len() {
            assert!(
                codec.decode(&encoded[..end]).is_err(),
                "decoded {end} of {} bytes",
                encoded.len()
            );
        }
        assert!(
            codec.decode(&[encoded, b"0"].concat()).is_err(),
            "decoded with a byte too many"
        );
    }

    #[test]
    fn what_was_encoded_decodes_to_an_equal_value_and_nothing_else_does() {
        round_trip(&Postcard);
        round_trip(&Json);
    }

    #[test]
    fn a_length_that_is_a_lie_allocates_nothing_like_it() {
        // A list of 2^60 numbers, says the first number.
        let lie = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 2, 3];
        assert!(Codec::<Vec<u64>>::decode(&Postcard, &lie).is_err());
    }
}
