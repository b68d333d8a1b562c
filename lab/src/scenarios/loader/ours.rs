//! Forebay's Loader, and the source that it loads from, which callers without it ask one key at a time.
//!
//! The source answers every key, after as long as it is told to take; a fetch of many keys takes as long as one of a single
//! key. It counts what it is asked.

use std::convert::Infallible;
use std::time::Duration;

use forebay::load::Loader;

use crate::closed_loop::{Ask, Batches, answer};

/// Where values come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    pub(super) fetches: Batches,
    /// How long it takes; zero: it does nothing but answer.
    pub(super) takes: Duration,
}

impl Source {
    /// The values of the keys, in their order.
    async fn fetch(self, keys: Vec<u64>) -> Vec<Option<u64>> {
        self.fetches.note();
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        keys.into_iter().map(|key| Some(answer(key))).collect()
    }
}

/// The source, asked for one key at a time: what a program does without a loader.
#[derive(Clone)]
pub(super) struct NoBatching {
    pub(super) source: Source,
}

impl Ask for NoBatching {
    async fn ask(&self, key: u64) -> Result<u64, String> {
        let values = self.source.clone().fetch(vec![key]).await;
        values.into_iter().next().flatten().ok_or_else(|| "no value".to_owned())
    }
}

/// What is asked of a loader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_items: usize,
    pub(super) max_wait: Duration,
    pub(super) max_in_flight: usize,
}

/// Forebay as its documentation shows it; other limits are at their defaults.
#[derive(Clone)]
pub(super) struct Forebay {
    loader: Loader<u64, u64, Infallible>,
}

impl Forebay {
    pub(super) fn new(limits: Limits, source: Source) -> Self {
        let loader = Loader::builder()
            .max_items(limits.max_items)
            .max_wait(limits.max_wait)
            .max_in_flight(limits.max_in_flight)
            .build(move |keys: Vec<u64>| {
                let source = source.clone();
                async move { Ok::<_, Infallible>(source.fetch(keys).await) }
            });
        Self { loader }
    }
}

impl Ask for Forebay {
    async fn ask(&self, key: u64) -> Result<u64, String> {
        match self.loader.load(key).await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(format!("{key} is missing")),
            Err(error) => Err(error.to_string()),
        }
    }
}
