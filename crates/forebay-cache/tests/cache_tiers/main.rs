//! The tiers that come with the library, one by one, as their user sees them: what a tier sees to, on a real Redis and on real files.
//!
//! Knows only the public interface. What the cache makes of a tier that fails is tested beside that code.
#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod redis;
mod sqlite;

use std::time::{Duration, SystemTime};

use forebay_cache::tier::{Codec, CodecError, Compression, Form, Json, Kept, KeyForm, Postcard, Put, Tier};

const HOUR: Duration = Duration::from_secs(3600);

fn form() -> Form<u64, String> {
    Form::new("test", KeyForm::display(), Postcard)
}

/// With limits that the contract's test passes over.
fn limited() -> Form<u64, String> {
    form().max_key_bytes(10).max_value_bytes(60_000)
}

/// A time that survives being cut to milliseconds.
fn at(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_000 + milliseconds)
}

fn some(value: &str) -> Kept<String> {
    Kept::new(Some(value.to_owned()), at(7))
}

fn put(key: u64, kept: Kept<String>) -> Put<u64, String> {
    let keep_for = HOUR;
    Put::new(key, kept, keep_for)
}

async fn values(tier: &impl Tier<u64, String>, keys: &[u64]) -> Vec<Option<String>> {
    let kept = tier.get_many(keys).await.unwrap();
    kept.into_iter().map(|kept| kept.and_then(|kept| kept.value)).collect()
}

/// What every tier sees to. It stores keys of at most 10 bytes and values of at most 60,000.
async fn keeps_the_contract(tier: &impl Tier<u64, String>) {
    let missing = Kept::new(None, at(8));
    assert_eq!(tier.get_many(&[]).await.unwrap(), []);
    assert_eq!(tier.get_many(&[1, 2]).await.unwrap(), [None, None]);
    tier.put_many(&[put(1, some("one")), put(2, missing.clone()), put(3, some(""))])
        .await
        .unwrap();
    // One answer a key, in order, also for a key asked twice.
    let kept = tier.get_many(&[3, 9, 2, 1, 3]).await.unwrap();
    assert_eq!(
        kept,
        [Some(some("")), None, Some(missing), Some(some("one")), Some(some(""))]
    );
    // Each instead of what was there.
    let newer = Kept::new(Some("two".to_owned()), at(9));
    tier.put_many(&[put(2, newer.clone())]).await.unwrap();
    assert_eq!(tier.get_many(&[2]).await.unwrap(), [Some(newer)]);
    tier.delete_many(&[1, 9]).await.unwrap();
    assert_eq!(tier.get_many(&[1]).await.unwrap(), [None]);
    tier.put_many(&[]).await.unwrap();
    tier.delete_many(&[]).await.unwrap();
    // A value that cannot be kept leaves nothing, and its neighbours are kept.
    tier.put_many(&[put(2, some(&"a".repeat(70_000))), put(4, some("four"))])
        .await
        .unwrap();
    assert_eq!(values(tier, &[2, 4]).await, [None, Some("four".into())]);
    let none_at_all = Put::new(4, some("never"), Duration::ZERO);
    tier.put_many(&[none_at_all]).await.unwrap();
    assert_eq!(values(tier, &[4]).await, [None]);
    // A key that cannot be written is as if it were not there.
    let long = 1_000_000;
    tier.put_many(&[put(long, some("long")), put(5, some("five"))])
        .await
        .unwrap();
    assert_eq!(values(tier, &[long, 5]).await, [None, Some("five".into())]);
    tier.delete_many(&[long]).await.unwrap();
    // Many, and large.
    let large = "x".repeat(50_000);
    let entries: Vec<_> = (100..612)
        .map(|key| put(key, some(&format!("{key} {large}"))))
        .collect();
    tier.put_many(&entries).await.unwrap();
    let keys: Vec<u64> = (100..612).rev().collect();
    for (key, value) in keys.iter().zip(values(tier, &keys).await) {
        assert!(
            value.unwrap().starts_with(&format!("{key} ")),
            "key {key} has another's value"
        );
    }
    tier.clear().await.unwrap();
    assert!(values(tier, &[3, 5, 100, 611]).await.iter().all(Option::is_none));
    assert_eq!(tier.undecodable(), 0);
}

/// Every form of values, by processes that share a backend and do not agree on it.
async fn keeps_forms_apart<T: Tier<u64, String>>(open: impl AsyncFn(Form<u64, String>) -> T) {
    let new = || Form::<u64, String>::new("test", KeyForm::display(), Postcard);
    let long = "long ".repeat(1000);
    let forms = [
        new(),
        new().compress(Compression::Lz4, 100),
        new().compress(Compression::Zstd(3), 100),
        Form::new("test", KeyForm::display(), Json),
        new().schema(2),
    ];
    for (writer, form) in forms.iter().enumerate() {
        let tier = open(form.clone()).await;
        tier.put_many(&[put(1, some(&long))]).await.unwrap();
        drop(tier);
        for (reader, form) in forms.iter().enumerate() {
            let tier = open(form.clone()).await;
            let before = tier.undecodable();
            let expected = (writer == reader || (writer < 3 && reader < 3)).then(|| long.clone());
            assert_eq!(
                values(&tier, &[1]).await[0],
                expected,
                "{reader} read what {writer} wrote"
            );
            assert_eq!(tier.undecodable() - before, u64::from(expected.is_none()));
        }
    }
}

/// Text that panics when it is written, or read, if that is what it says.
struct Touchy;

impl Codec<String> for Touchy {
    fn number(&self) -> u8 {
        99
    }

    fn encode(&self, value: &String, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        assert_ne!(value, "unwritable");
        Postcard.encode(value, bytes)
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, CodecError> {
        let value: String = Postcard.decode(bytes)?;
        assert_ne!(value, "unreadable");
        Ok(value)
    }
}

/// A form that panics at one key, and at two values.
fn touchy() -> Form<u64, String> {
    let keys = KeyForm::bytes(|key: &u64, bytes: &mut Vec<u8>| {
        assert_ne!(*key, 66, "it has no form");
        bytes.extend(key.to_be_bytes());
        Some(())
    });
    Form::new("test", keys, Touchy)
}

/// What panics has its own key to answer for, and no neighbour's.
async fn panics_cost_their_own_key(tier: &impl Tier<u64, String>) {
    let entries = [
        (1, "one"),
        (66, "no form"),
        (2, "unwritable"),
        (3, "unreadable"),
        (4, "four"),
    ];
    tier.put_many(&[put(2, some("before"))]).await.unwrap();
    tier.put_many(&entries.map(|(key, value)| put(key, some(value))))
        .await
        .unwrap();
    let kept = values(tier, &[1, 66, 2, 3, 4]).await;
    assert_eq!(kept, [Some("one".into()), None, None, None, Some("four".into())]);
    assert_eq!(tier.undecodable(), 1);
    tier.delete_many(&[66, 1]).await.unwrap();
    assert_eq!(values(tier, &[1, 4]).await, [None, Some("four".into())]);
}
