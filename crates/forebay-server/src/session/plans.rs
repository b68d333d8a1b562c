//! Plans that are kept: what a text was compiled to, for whoever sends it next.
//!
//! Contract: a plan is found again only for the same text, declared types, time zone and search path, under the schema it was made for. What holds
//! for one session only is never kept. Bounded by bytes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::sql::{Plan, Step};

/// All plans together take no more than this.
const BYTES_MAX: usize = 32 << 20;

/// See the module.
#[derive(Debug, Default)]
pub struct Plans {
    kept: Mutex<Kept>,
    /// Counts the changes of the schema.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    plans: HashMap<Key, Arc<Plan>>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) text: Arc<str>,
    pub(super) declared: Vec<u32>,
    pub(super) zone: String,
    pub(super) search_path: String,
    pub(super) epoch: u64,
}

impl Plans {
    /// The schema as it is now, for a [`Key`].
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The schema has changed, or may have.
    pub(super) fn schema_changed(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let mut kept = self.kept.lock();
        kept.plans.clear();
        kept.bytes = 0;
    }

    pub(super) fn find(&self, key: &Key) -> Option<Arc<Plan>> {
        self.kept.lock().plans.get(key).cloned()
    }

    /// Keeps a plan, if others may use it.
    pub(super) fn keep(&self, key: Key, plan: &Arc<Plan>) {
        let bytes = key.text.len() + plan.steps.iter().filter_map(Step::sql).map(str::len).sum::<usize>() + 512;
        if plan.session_bound || plan.steps.len() != 1 || bytes > BYTES_MAX / 16 {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.bytes + bytes > BYTES_MAX {
            kept.plans.clear();
            kept.bytes = 0;
        }
        if kept.plans.insert(key, Arc::clone(plan)).is_none() {
            kept.bytes += bytes;
        }
    }
}
