//! Question: all that an answer hangs on, and what it takes to ask it.
//!
//! Promises: two questions are equal only if they ask the same text, but for comments, with the same parameters and formats, as the same user at
//! the same database, under the same settings, and say the same of how old the answer may be. Knows no cache.

use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::windows::Windows;
use crate::sharing::unit::Steps;

/// The server's answer is nothing to be remembered: an error, or none at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered;

/// What the server has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) bytes: Bytes,
    /// It has seen all changes that were known when it was asked for.
    pub(crate) is_of_now: bool,
    /// Of this table it hangs on no row but the one that is [called](super::key) so.
    pub(crate) row: Option<Row>,
}

/// A row of a table, as both are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: Arc<str>,
    pub(crate) row: Arc<str>,
}

/// What is asked.
#[derive(Clone)]
pub(crate) struct Question(Arc<Whole>);

struct Whole {
    key: Key,
    /// The rule that has room of its own for its answer, if one has.
    rule: Option<Arc<str>>,
    /// Where the database is.
    place: Arc<str>,
    way: Box<dyn Way>,
}

/// By what questions are told apart.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Tells pools and settings apart, and so users and databases.
    pub(crate) company: u64,
    /// Without its comments.
    pub(crate) text: Arc<str>,
    /// By the extended protocol: the types of parameters that were given, as they stand in the Parse; what is bound; what else is asked.
    pub(crate) extended: Option<(Bytes, Bytes, Steps)>,
    pub(crate) windows: Windows,
}

/// How the server is asked.
pub(crate) trait Way: Send + Sync {
    /// Asks it, and waits.
    fn ask(&self) -> Pin<Box<dyn Future<Output = Result<Said, Unanswered>> + Send + '_>>;

    /// The tables whose rows its answer is of.
    fn tables(&self) -> Arc<[Arc<str>]>;
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Question {}

impl Hash for Question {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

/// By what all answers are known that may hang on any row of a table of this name.
pub(super) fn tag_of(place: &str, table: &str) -> Arc<str> {
    // No name has a zero in it.
    [place, "\0", table].concat().into()
}

/// By what all others about that table are known: by the empty text, and by the row.
pub(super) fn tag_of_row(place: &str, table: &str, row: &str) -> Arc<str> {
    [place, "\0", table, "\0", row].concat().into()
}

impl Question {
    pub(crate) fn new(key: Key, rule: Option<Arc<str>>, place: Arc<str>, way: impl Way + 'static) -> Self {
        let way = Box::new(way);
        Self(Arc::new(Whole { key, rule, place, way }))
    }

    pub(super) fn rule(&self) -> Option<&str> {
        self.0.rule.as_deref()
    }

    pub(super) fn windows(&self) -> Windows {
        self.0.key.windows
    }

    /// Whether more of it is told while its database is away.
    pub(crate) fn may_be_away(&self) -> bool {
        !self.0.key.windows.away.is_zero()
    }

    /// By what its answer is known, which hangs on no row of a table but this: all of its database's, and of its tables'.
    pub(super) fn tags(&self, row: Option<&Row>) -> Vec<Arc<str>> {
        let place = &self.0.place;
        let mut tags = vec![Arc::clone(place)];
        for table in &*self.0.way.tables() {
            match row.filter(|row| row.table == *table) {
                Some(row) => tags.extend(["", &*row.row].map(|row| tag_of_row(place, table, row))),
                None => tags.push(tag_of(place, table)),
            }
        }
        tags
    }

    /// How long it is.
    pub(super) fn bytes(&self) -> usize {
        let key = &self.0.key;
        let extended = key.extended.as_ref();
        key.text.len() + extended.map_or(0, |(types, bound, _)| types.len() + bound.len())
    }

    /// Asks it, and waits.
    pub(super) async fn ask_the_server(&self) -> Result<Said, Unanswered> {
        self.0.way.ask().await
    }
}
