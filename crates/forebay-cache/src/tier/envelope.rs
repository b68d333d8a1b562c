//! The envelope around a stored value: what it is, when it was fetched, and a checksum over all of it.
//!
//! Promises: bytes are opened only if they are whole and unaltered, of this format's version, this codec, this schema and **this
//! key**. Anything else is an error and never a panic; what it makes the opener allocate is bounded by `bytes_max`, whatever the
//! bytes claim. A value that would be larger than that is not sealed.
//!
//! ```text
//!  0  magic        "FB"
//!  2  version      1
//!  3  flags        bit 0: missing (the source has none); bits 1-2: compression (0 none, 1 LZ4, 2 Zstandard); bit 3: details
//!  4  codec        its number
//!  5  schema       the application's number for the type, u32
//!  9  fetched_at   Unix time in milliseconds, u64
//! 17  checksum     CRC-32C of the key's bytes and of all else here, u32
//! 21  details      if flagged: their length, u32, and they themselves (postcard): the tier's moment that tags are compared with,
//!                  windows in milliseconds, weight, validator, tags
//!     payload      compressed: its uncompressed length, u32, and the bytes
//! ```
//! Numbers are little-endian.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::Kept;
use super::codec::{Codec, CodecError};
use crate::clock::whole_ms;
use crate::details::Details;

const MAGIC: [u8; 2] = *b"FB";
const VERSION: u8 = 1;
const MISSING: u8 = 1;
#[cfg(feature = "lz4")]
const LZ4: u8 = 1 << 1;
#[cfg(feature = "zstd")]
const ZSTD: u8 = 2 << 1;
const COMPRESSION: u8 = 3 << 1;
const DETAILED: u8 = 1 << 3;
const SUM: usize = 17;
/// What an envelope adds to a payload.
pub(super) const HEAD_BYTES: usize = 21;

/// How large values are made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Very fast.
    #[cfg(feature = "lz4")]
    Lz4,
    /// Smaller, and several times slower; with its level, 1 to 22, of which 3 is usual.
    #[cfg(feature = "zstd")]
    Zstd(i32),
}

/// What is the same for all values of a tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) schema: u32,
    /// At most, sealed and opened.
    pub(super) bytes_max: usize,
    /// From how many bytes on.
    pub(super) compression: Option<(Compression, usize)>,
}

/// Details as they are stored.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    since: u64,
    fresh_ms: Option<u64>,
    stale_ms: Option<u64>,
    weight: Option<u32>,
    #[serde(borrow)]
    validator: Option<&'a str>,
    #[serde(borrow)]
    tags: Vec<&'a str>,
}

/// What was stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened<V> {
    pub(super) kept: Kept<V>,
    /// The tier's moment that its tags are to be compared with.
    pub(super) since: u64,
}

/// Why a value cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum SealError {
    #[error("the value does not encode: {0}")]
    Codec(#[from] CodecError),
    #[error("the value takes {bytes} bytes, and the limit is {max}")]
    TooLarge { bytes: usize, max: usize },
    #[error("the time of the fetch is before 1970 or after the year 500,000,000")]
    Time,
}

/// The bytes are not a value of this key's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl Envelope {
    /// The bytes to store; `since` is the tier's moment that its tags are to be compared with.
    pub(super) fn seal<V>(
        &self,
        codec: &dyn Codec<V>,
        key: &[u8],
        kept: &Kept<V>,
        since: u64,
    ) -> Result<Vec<u8>, SealError> {
        let fetched_at = kept
            .fetched_at
            .duration_since(UNIX_EPOCH)
            .map_err(|_| SealError::Time)?;
        let fetched_at_ms = u64::try_from(fetched_at.as_millis()).map_err(|_| SealError::Time)?;
        let mut flags = 0;
        let mut bytes = Vec::with_capacity(128);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, flags, codec.number()]);
        bytes.extend(self.schema.to_le_bytes());
        bytes.extend(fetched_at_ms.to_le_bytes());
        bytes.extend([0; HEAD_BYTES - SUM]);
        if let Some(details) = &kept.details {
            flags |= DETAILED;
            bytes.extend([0; 4]);
            bytes = stored(details, since, bytes)?;
            let length = bytes.len() - HEAD_BYTES - 4;
            let length = u32::try_from(length).map_err(|_| too_large(bytes.len(), self.bytes_max))?;
            bytes[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&length.to_le_bytes());
        }
        let payload_at = bytes.len();
        match &kept.value {
            Some(value) => codec.encode(value, &mut bytes)?,
            None => flags |= MISSING,
        }
        if bytes.len() > self.bytes_max {
            return Err(too_large(bytes.len(), self.bytes_max));
        }
        flags |= self.compress(&mut bytes, payload_at);
        bytes[3] = flags;
        let sum = sum(key, &bytes);
        bytes[SUM..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// What was stored.
    pub(super) fn open<V>(&self, codec: &dyn Codec<V>, key: &[u8], bytes: &[u8]) -> Result<Opened<V>, Unreadable> {
        if bytes.len() > self.bytes_max || bytes.len() < HEAD_BYTES {
            return Err(Unreadable);
        }
        let (head, payload) = bytes.split_at(HEAD_BYTES);
        let (flags, stored_sum) = (head[3], number(&head[SUM..]));
        let is_ours = head[..2] == MAGIC && head[2] == VERSION && head[4] == codec.number();
        let is_this = number(&head[5..9]) == self.schema && stored_sum == sum(key, bytes);
        if !is_ours || !is_this || flags & !(MISSING | COMPRESSION | DETAILED) != 0 {
            return Err(Unreadable);
        }
        let (least, most) = (number(&head[9..13]), number(&head[13..SUM]));
        let fetched_at_ms = u64::from(most) << 32 | u64::from(least);
        let fetched_at = UNIX_EPOCH.checked_add(Duration::from_millis(fetched_at_ms));
        let fetched_at: SystemTime = fetched_at.ok_or(Unreadable)?;
        let (details, since, payload) = match flags & DETAILED {
            0 => (None, 0, payload),
            _ => {
                let (details, since, payload) = read_details(payload)?;
                (Some(Arc::new(details)), since, payload)
            }
        };
        let value = match (flags & MISSING != 0, payload) {
            (true, []) => None,
            (true, _) => return Err(Unreadable),
            (false, payload) => Some(self.decode(codec, flags & COMPRESSION, payload)?),
        };
        let kept = Kept {
            value,
            fetched_at,
            details,
        };
        Ok(Opened { kept, since })
    }

    fn decode<V>(&self, codec: &dyn Codec<V>, compression: u8, payload: &[u8]) -> Result<V, Unreadable> {
        let inflated = match compression {
            0 => return codec.decode(payload).map_err(|_| Unreadable),
            compression => self.inflate(compression, payload)?,
        };
        codec.decode(&inflated).map_err(|_| Unreadable)
    }

    /// Compresses the payload if that is asked for and pays; returns the flag that says so.
    fn compress(&self, bytes: &mut Vec<u8>, payload_at: usize) -> u8 {
        let Some((compression, from)) = self.compression else {
            return 0;
        };
        let payload = &bytes[payload_at..];
        if payload.len() < from {
            return 0;
        }
        let (flag, compressed) = deflate(compression, payload);
        let Ok(length) = u32::try_from(payload.len()) else {
            return 0;
        };
        match compressed {
            Some(compressed) if compressed.len() + 4 < payload.len() => {
                bytes.truncate(payload_at);
                bytes.extend(length.to_le_bytes());
                bytes.extend(compressed);
                flag
            }
            _ => 0,
        }
    }

    fn inflate(&self, compression: u8, payload: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let (length, compressed) = payload.split_at_checked(4).ok_or(Unreadable)?;
        let length = usize::try_from(number(length)).map_err(|_| Unreadable)?;
        // Before anything of that size is allocated.
        if length > self.bytes_max {
            return Err(Unreadable);
        }
        let inflated: Option<Vec<u8>> = match compression {
            #[cfg(feature = "lz4")]
            LZ4 => lz4_flex::block::decompress(compressed, length).ok(),
            #[cfg(feature = "zstd")]
            ZSTD => zstd::bulk::decompress(compressed, length).ok(),
            // Another process was built with more features.
            _ => {
                let _ = compressed;
                None
            }
        };
        inflated.filter(|inflated| inflated.len() == length).ok_or(Unreadable)
    }
}

#[cfg_attr(
    not(any(feature = "lz4", feature = "zstd")),
    allow(unused_variables, reason = "without either there is no compression to be given")
)]
fn deflate(compression: Compression, payload: &[u8]) -> (u8, Option<Vec<u8>>) {
    match compression {
        #[cfg(feature = "lz4")]
        Compression::Lz4 => (LZ4, Some(lz4_flex::block::compress(payload))),
        // Refused only for want of memory; the value is then stored as it is.
        #[cfg(feature = "zstd")]
        Compression::Zstd(level) => (ZSTD, zstd::bulk::compress(payload, level).ok()),
    }
}

fn too_large(bytes: usize, max: usize) -> SealError {
    SealError::TooLarge { bytes, max }
}

/// The bytes, and the details behind them.
fn stored(details: &Details, since: u64, bytes: Vec<u8>) -> Result<Vec<u8>, SealError> {
    let stored = Stored {
        since,
        fresh_ms: details.fresh_for.map(whole_ms),
        stale_ms: details.stale_for.map(whole_ms),
        weight: details.weight,
        validator: details.validator.as_deref(),
        tags: details.tags.iter().map(|tag| &**tag).collect(),
    };
    postcard::to_extend(&stored, bytes).map_err(|error| SealError::Codec(CodecError::new(error)))
}

/// The details in front of a payload, the moment among them, and the payload.
fn read_details(bytes: &[u8]) -> Result<(Details, u64, &[u8]), Unreadable> {
    let (length, rest) = bytes.split_at_checked(4).ok_or(Unreadable)?;
    let length = usize::try_from(number(length)).map_err(|_| Unreadable)?;
    let (details, payload) = rest.split_at_checked(length).ok_or(Unreadable)?;
    let (stored, left) = postcard::take_from_bytes::<Stored<'_>>(details).map_err(|_| Unreadable)?;
    if !left.is_empty() {
        return Err(Unreadable);
    }
    let details = Details {
        fresh_for: stored.fresh_ms.map(Duration::from_millis),
        stale_for: stored.stale_ms.map(Duration::from_millis),
        weight: stored.weight,
        validator: stored.validator.map(Arc::from),
        tags: stored.tags.into_iter().map(Arc::from).collect(),
    };
    Ok((details, stored.since, payload))
}

/// Over the key's length and bytes, the head without the sum, and the payload.
fn sum(key: &[u8], envelope: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&(key.len() as u64).to_le_bytes());
    let sum = crc32c::crc32c_append(sum, key);
    let sum = crc32c::crc32c_append(sum, &envelope[..SUM]);
    crc32c::crc32c_append(sum, &envelope[HEAD_BYTES..])
}

/// The first four bytes.
fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tier::{Json, Postcard};

    const PLAIN: Envelope = Envelope {
        schema: 7,
        bytes_max: 1 << 20,
        compression: None,
    };
    const FLATE: [Compression; 2] = [Compression::Lz4, Compression::Zstd(3)];

    fn at(milliseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(milliseconds)
    }

    fn some(value: &str) -> Kept<String> {
        Kept::new(Some(value.to_owned()), at(1_700_000_000_123))
    }

    fn open(envelope: Envelope, bytes: &[u8]) -> Result<Kept<String>, Unreadable> {
        envelope.open(&Postcard, b"key", bytes).map(|opened| opened.kept)
    }

    /// Puts the right sum under bytes that were altered, so that what lies behind the sum is tested too.
    fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let sum = sum(b"key", &bytes);
        bytes[SUM..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn what_was_sealed_is_opened_with_its_age() {
        for kept in [
            some("value"),
            Kept {
                value: None,
                ..some("")
            },
        ] {
            let sealed = PLAIN.seal(&Postcard, b"key", &kept, 0).unwrap();
            assert_eq!(open(PLAIN, &sealed), Ok(kept));
        }
        let finer = Kept {
            fetched_at: at(5) + Duration::from_micros(900),
            ..some("")
        };
        let sealed = PLAIN.seal(&Postcard, b"key", &finer, 0).unwrap();
        assert_eq!(open(PLAIN, &sealed).unwrap().fetched_at, at(5), "milliseconds are kept");
    }

    fn detailed() -> Kept<String> {
        Kept {
            details: Some(Arc::new(Details {
                fresh_for: Some(Duration::from_secs(5)),
                stale_for: None,
                weight: Some(7),
                tags: vec![Arc::from("a"), Arc::from("")],
                validator: Some(Arc::from("v7")),
            })),
            ..some(&"value".repeat(20))
        }
    }

    #[test]
    fn details_and_their_moment_go_with_the_value_compressed_or_not() {
        let compressing = Envelope {
            compression: Some((FLATE[0], 1)),
            ..PLAIN
        };
        for envelope in [PLAIN, compressing] {
            let sealed = envelope.seal(&Postcard, b"key", &detailed(), u64::MAX).unwrap();
            let opened = envelope.open(&Postcard, b"key", &sealed).unwrap();
            assert_eq!((opened.kept, opened.since), (detailed(), u64::MAX));
        }
        let missing = Kept {
            value: None,
            ..detailed()
        };
        let sealed = PLAIN.seal(&Postcard, b"key", &missing, 3).unwrap();
        assert_eq!(open(PLAIN, &sealed), Ok(missing));
    }

    #[test]
    fn the_format_is_the_one_that_is_written_above() {
        // Stored bytes outlive the program that wrote them.
        let sealed = PLAIN.seal(&Postcard, b"key", &some("ab"), 0).unwrap();
        let head = [b'F', b'B', 1, 0, 1, 7, 0, 0, 0, 0x7B, 0x68, 0xE5, 0xCF, 0x8B, 1, 0, 0];
        assert_eq!(sealed[..SUM], head);
        assert_eq!(sealed[HEAD_BYTES..], [2, b'a', b'b']);
        assert_eq!(sealed[SUM..HEAD_BYTES], sum(b"key", &sealed).to_le_bytes());
    }

    #[test]
    fn truncated_and_altered_bytes_are_not_opened() {
        for compression in [None, Some((FLATE[0], 1)), Some((FLATE[1], 1))] {
            let envelope = Envelope { compression, ..PLAIN };
            let sealed = envelope.seal(&Postcard, b"key", &detailed(), 1).unwrap();
            for end in 0..sealed.len() {
                assert_eq!(
                    open(envelope, &sealed[..end]),
                    Err(Unreadable),
                    "{end} of {} bytes",
                    sealed.len()
                );
            }
            for bit in 0..sealed.len() * 8 {
                let mut altered = sealed.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(envelope, &altered), Err(Unreadable), "bit {bit} was flipped");
            }
            assert_eq!(open(envelope, &[&sealed[..], b"x"].concat()), Err(Unreadable));
        }
    }

    #[test]
    fn another_keys_schemas_codecs_or_versions_bytes_are_not_opened() {
        let sealed = PLAIN.seal(&Postcard, b"key", &some("value"), 0).unwrap();
        assert_eq!(PLAIN.open::<String>(&Postcard, b"kez", &sealed), Err(Unreadable));
        let other = Envelope { schema: 8, ..PLAIN };
        assert_eq!(open(other, &sealed), Err(Unreadable));
        assert_eq!(PLAIN.open::<String>(&Json, b"key", &sealed), Err(Unreadable));
        // With a right sum: it is their content that is refused.
        let altered = |at: usize, byte: u8| {
            let mut bytes = sealed.clone();
            bytes[at] = byte;
            open(PLAIN, &resealed(bytes))
        };
        assert!(altered(3, 0).is_ok(), "the sum is right");
        assert_eq!(altered(0, b'f'), Err(Unreadable));
        assert_eq!(altered(2, VERSION + 1), Err(Unreadable));
        assert_eq!(altered(3, 1 << 5), Err(Unreadable), "an unknown flag");
        assert_eq!(altered(3, MISSING), Err(Unreadable), "missing, with a value");
        assert_eq!(altered(3, LZ4), Err(Unreadable), "not compressed");
        assert_eq!(altered(3, ZSTD), Err(Unreadable), "not compressed");
    }

    #[test]
    fn values_are_compressed_when_they_are_large_and_shrink() {
        let repeating = some(&"abcdefgh".repeat(100));
        for compression in FLATE {
            let envelope = Envelope {
                compression: Some((compression, 500)),
                ..PLAIN
            };
            let sealed = envelope.seal(&Postcard, b"key", &repeating, 0).unwrap();
            assert!(sealed.len() < 200, "{compression:?}: {} bytes", sealed.len());
            assert_eq!(open(envelope, &sealed).as_ref(), Ok(&repeating));
            // A reader that compresses otherwise reads it all the same.
            assert_eq!(open(PLAIN, &sealed).as_ref(), Ok(&repeating));
            let small = envelope.seal(&Postcard, b"key", &some(&"a".repeat(400)), 0).unwrap();
            assert_eq!(small.len(), HEAD_BYTES + 402, "compressed below the threshold");
            let noise: String = (0..2000_u32)
                .map(|n| char::from(b'!' + (n.wrapping_mul(2_654_435_761) >> 26) as u8))
                .collect();
            let tight = Envelope {
                compression: Some((compression, 1)),
                ..PLAIN
            };
            let sealed = tight.seal(&Postcard, b"key", &some(&noise[..20]), 0).unwrap();
            assert_eq!(
                sealed.len(),
                HEAD_BYTES + 21,
                "kept compressed though it did not shrink"
            );
        }
    }

    #[test]
    fn a_value_over_the_limit_is_not_sealed_and_a_bomb_not_inflated() {
        let small = Envelope {
            bytes_max: 100,
            ..PLAIN
        };
        let error = small.seal(&Postcard, b"key", &some(&"a".repeat(100)), 0).unwrap_err();
        assert!(matches!(error, SealError::TooLarge { bytes: 122, max: 100 }), "{error}");
        for compression in FLATE {
            let large = Envelope {
                compression: Some((compression, 1)),
                ..PLAIN
            };
            let bomb = large.seal(&Postcard, b"key", &some(&"a".repeat(10_000)), 0).unwrap();
            assert!(bomb.len() < 100 && open(large, &bomb).is_ok());
            assert_eq!(open(small, &bomb), Err(Unreadable), "{compression:?}");
            // One that lies about its size.
            let mut lie = bomb;
            lie[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&50_u32.to_le_bytes());
            assert_eq!(open(small, &resealed(lie)), Err(Unreadable), "{compression:?}");
        }
    }

    #[test]
    fn a_time_before_1970_is_not_sealed() {
        let early = Kept {
            fetched_at: UNIX_EPOCH - Duration::from_secs(1),
            ..some("")
        };
        assert!(matches!(PLAIN.seal(&Postcard, b"key", &early, 0), Err(SealError::Time)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_opened_or_refused_without_a_panic(
            flags in 0..16_u8,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = vec![b'F', b'B', 1, flags, 1, 7, 0, 0, 0];
            bytes.resize(HEAD_BYTES, 0);
            bytes.extend(payload);
            let _ = open(PLAIN, &bytes);
            let _ = open(PLAIN, &resealed(bytes));
        }
    }
}
