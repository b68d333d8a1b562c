//! Changes that wait: of a key the strongest, of tags each once; more than the bound are one change of all.
//!
//! Knows nothing of sending.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use super::Change;
use forebay_batch::load::Key;

/// See the module.
pub(super) struct Pending<K> {
    /// Most keys, and most tags.
    max: usize,
    /// Whether they are only stale.
    keys: HashMap<K, bool>,
    tags: HashSet<Arc<str>>,
    all: bool,
}

impl<K: Key> Pending<K> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            keys: HashMap::new(),
            tags: HashSet::new(),
            all: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.all && self.keys.is_empty() && self.tags.is_empty()
    }

    /// The key's value has changed, or it is to be taken for stale.
    pub(super) fn key(&mut self, key: K, stale: bool) {
        if self.all {
            return;
        }
        if self.keys.len() >= self.max && !self.keys.contains_key(&key) {
            return self.all();
        }
        *self.keys.entry(key).or_insert(stale) &= stale;
    }

    /// The tag was invalidated.
    pub(super) fn tag(&mut self, tag: Arc<str>) {
        if self.all {
            return;
        }
        if self.tags.len() >= self.max && !self.tags.contains(&tag) {
            return self.all();
        }
        self.tags.insert(tag);
    }

    /// All keys have changed.
    pub(super) fn all(&mut self) {
        self.all = true;
        self.keys = HashMap::new();
        self.tags = HashSet::new();
    }

    /// These wait, too.
    pub(super) fn add(&mut self, changes: Vec<Change<K>>) {
        for change in changes {
            match change {
                Change::All => self.all(),
                Change::Tag(tag) => self.tag(Arc::from(tag)),
                Change::Stale(key) => self.key(key, true),
                Change::Key(key) => self.key(key, false),
                Change::Untold => {}
            }
        }
    }

    /// All that waits.
    pub(super) fn take(&mut self) -> Vec<Change<K>> {
        if mem::take(&mut self.all) {
            return vec![Change::All];
        }
        let tags = mem::take(&mut self.tags)
            .into_iter()
            .map(|tag| Change::Tag(tag.to_string()));
        let keys = mem::take(&mut self.keys).into_iter();
        let key = |(key, stale)| if stale { Change::Stale(key) } else { Change::Key(key) };
        tags.chain(keys.map(key)).collect()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_change_of_a_key_waits_and_what_is_too_much_is_all() {
        let mut pending = Pending::new(2);
        assert!(pending.is_empty());
        pending.key(1, true);
        pending.key(1, false);
        pending.add(vec![Change::Stale(1), Change::Stale(2), Change::Tag("a".to_owned())]);
        pending.tag(Arc::from("a"));
        let mut changes = pending.take();
        changes.sort_by_key(|change| format!("{change:?}"));
        let expected = [Change::Key(1), Change::Stale(2), Change::Tag("a".to_owned())];
        assert_eq!(changes, expected);
        assert!(pending.is_empty());
        for key in 0..3 {
            pending.key(key, false);
        }
        pending.tag(Arc::from("a"));
        assert_eq!(pending.take(), [Change::All]);
        assert!(pending.is_empty());
        pending.add(vec![Change::All, Change::Key(1)]);
        assert_eq!(pending.take(), [Change::All]);
    }
}
