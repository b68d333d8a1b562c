//! The plan cache: what texts were parsed and compiled to, kept for the next client that sends the same.
//!
//! Promises: a plan is found again only for the same text, declared types, time zone and search path (and user, where the path
//! speaks of it), under the schema it was compiled for, as far as changes are counted; whoever runs it looks at the schema's
//! version. What holds for one session only is never kept. Bounded by bytes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::prepared::Shape;
use crate::sql::{Statement, Step};

/// All statements together take no more than this.
const BYTES_MAX: usize = 32 << 20;
/// What a statement takes beside its texts, and its syntax tree for each byte of them: estimates.
const BYTES_EACH: usize = 1024;
const TREE_BYTES_A_BYTE: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub struct Plans {
    kept: Mutex<Kept>,
    /// Counts the changes of the schema.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    /// By text: for each text those of its declared types and time zones.
    statements: HashMap<Arc<str>, Vec<Known>>,
    bytes: usize,
}

/// A statement under certain circumstances.
#[derive(Debug, Clone)]
struct Known {
    declared: Box<[u32]>,
    zone: Box<str>,
    search_path: Box<str>,
    user: Box<str>,
    alone: bool,
    /// None if it cannot be compiled.
    found: Option<Found>,
}

/// A statement that was compiled before.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) statement: Statement,
    pub(super) shape: Arc<Shape>,
}

/// Under which circumstances a text is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) declared: &'a [u32],
    pub(super) zone: &'a str,
    pub(super) search_path: &'a str,
    /// The user, where the search path speaks of it.
    pub(super) user: &'a str,
    /// The text is a whole script, not one statement of it.
    pub(super) alone: bool,
}

impl Circumstances<'_> {
    fn known(self, found: Option<Found>) -> Known {
        Known {
            declared: self.declared.into(),
            zone: self.zone.into(),
            search_path: self.search_path.into(),
            user: self.user.into(),
            alone: self.alone,
            found,
        }
    }
}

impl Found {
    /// Whether others may use it, at any time.
    pub(super) fn is_for_all(&self) -> bool {
        let plan = self.shape.plan.as_ref();
        plan.is_some_and(|plan| !plan.session_bound && plan.steps.len() == 1)
    }
}

impl Known {
    fn holds(&self, circumstances: Circumstances<'_>) -> bool {
        *self.declared == *circumstances.declared
            && *self.zone == *circumstances.zone
            && *self.search_path == *circumstances.search_path
            && *self.user == *circumstances.user
            && self.alone == circumstances.alone
    }
}

impl Plans {
    /// The schema as it is now. What is compiled from now on is for this one, or a later one.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The schema has changed, or may have.
    pub(super) fn schema_changed(&self) {
        let mut kept = self.kept.lock();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        *kept = Kept::default();
    }

    /// The statement of that text; `Err` if it is known that there is none.
    pub(super) fn find(&self, text: &str, circumstances: Circumstances<'_>) -> Result<Option<Found>, Incompilable> {
        let kept = self.kept.lock();
        let known = kept
            .statements
            .get(text)
            .and_then(|all| all.iter().find(|known| known.holds(circumstances)));
        match known {
            None => Ok(None),
            Some(Known { found: None, .. }) => Err(Incompilable),
            Some(Known { found, .. }) => Ok(found.clone()),
        }
    }

    /// Keeps a statement that was compiled under that epoch, if others may use it.
    pub(super) fn keep(&self, text: &Arc<str>, circumstances: Circumstances<'_>, epoch: u64, found: &Found) {
        let Some(plan) = found.shape.plan.as_ref().filter(|_| found.is_for_all()) else {
            return;
        };
        let sql: usize = plan.steps.iter().filter_map(Step::sql).map(|sql| sql.len()).sum();
        let bytes = BYTES_EACH + sql + text.len() * TREE_BYTES_A_BYTE;
        self.insert(text, epoch, bytes, circumstances.known(Some(found.clone())));
    }

    /// Keeps that this text cannot be compiled under that epoch.
    pub(super) fn keep_incompilable(&self, text: &Arc<str>, circumstances: Circumstances<'_>, epoch: u64) {
        self.insert(text, epoch, BYTES_EACH + text.len(), circumstances.known(None));
    }

    fn insert(&self, text: &Arc<str>, epoch: u64, bytes: usize, known: Known) {
        if bytes > BYTES_MAX / 16 {
            return;
        }
        let mut kept = self.kept.lock();
        if self.epoch() != epoch {
            return;
        }
        if kept.bytes + bytes > BYTES_MAX {
            *kept = Kept::default();
        }
        kept.bytes += bytes;
        kept.statements.entry(Arc::clone(text)).or_default().push(known);
    }
}

/// A text that is known to be no statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incompilable;
