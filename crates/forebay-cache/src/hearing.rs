//! What other processes hear of this one's changes, and what this one does when it hears of theirs.
//!
//! Promises: as if they had been made here, but that nobody is told again, and that tiers which all share are left alone, unless they may not have
//! been told. What waits for these when others are heard again, after some of their changes may have been missed, is deleted there: it may be older.

use std::sync::Arc;

use super::backplane::{Change, Hearing, Outbox};
use super::core::Core;
use super::tier::By;
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;
use tokio::runtime::Handle;

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Tells the others, if there are any.
    pub(super) fn tell(&self, tell: impl FnOnce(&Arc<Outbox<K>>, Option<Handle>)) {
        if let Some(outbox) = &self.outbox {
            tell(&outbox.0, self.runtime());
        }
    }

    fn source_hears_of_all(&self) {
        for key in self.flights.keys() {
            self.source.heard(&Change::Key(key));
        }
        self.source.heard(&Change::All);
    }

    /// Somebody is here who may have a runtime: what could not be told to tiers and to the others before, for want of one, is told.
    pub(super) fn deliver(&self) {
        self.tiers.has_runtime(|| self.runtime());
        if let Some(outbox) = &self.outbox {
            outbox.0.has_runtime(|| self.runtime());
        }
    }

    /// Begins to listen to the others, if there are any and nothing listens.
    pub(super) fn listen(self: &Arc<Self>) {
        if let (Some(listening), Some(runtime)) = (&self.listening, self.runtime()) {
            listening.begin(self, &runtime);
        }
    }
}

impl<K, V, E> Hearing<K> for Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn began_to_hear(&self) {
        self.source_hears_of_all();
        let (now_ms, is_again) = (self.time.now(), self.terms.news.since_ms() > 0);
        let begin = || self.terms.news.begin_at(now_ms);
        if self
            .listening
            .as_ref()
            .is_some_and(|listening| listening.began_first(begin))
        {
            // What flies has waited for that.
            return;
        }
        // What flies may have read before a change that was not heard.
        let (replaced, superseded) = self.flights.supersede_all(|| {
            self.terms.news.begin_at(self.time.now());
            is_again.then(|| self.tiers.missed_changes())
        });
        quietly(|| drop(replaced));
        self.call_off_superseded(&superseded);
    }

    fn now_ms(&self) -> u64 {
        self.time.now()
    }

    fn heard_up_to(&self, at_ms: u64) {
        self.terms.news.heard_up_to(at_ms);
        self.deliver();
    }

    fn heard(&self, change: Change<K>, told: bool) {
        match &change {
            // What is below has tiers, perhaps, that have not heard.
            Change::Key(key) | Change::Stale(key) if !told => self.source.invalidate(key),
            Change::Tag(tag) if !told => self.source.invalidate_tag(tag),
            Change::All if !told => self.source_clears(),
            Change::All => self.source_hears_of_all(),
            change => self.source.heard(change),
        }
        let by = if told { By::Another } else { By::AnotherAlone };
        match change {
            Change::Key(key) => self.forget(self.store.hash(&key), &key, by),
            Change::Stale(key) => self.take_for_stale(self.store.hash(&key), &key, by),
            Change::Tag(tag) => self.forget_tag(&tag, by),
            Change::All => self.forget_all(by),
            Change::Untold => {}
        }
    }
}
