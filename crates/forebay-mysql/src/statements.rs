//! Statements: what one connection has prepared, by text, the least lately used going first.
//!
//! Promises: never more than so many, nor more placeholders in all than so many, as the server describes each placeholder and the
//! driver keeps what it says. Knows no connection: what has to go is handed back to be closed.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_sql::{Dialect, Verb, verb};
use mysql_async::{Column, Statement};

/// Placeholders of all statements that one connection keeps.
const PLACEHOLDERS_MAX: usize = 65_536;

/// A statement that the server knows. Clones are the same one.
#[derive(Clone)]
pub(super) struct Prepared {
    /// None for the few that can only be sent as text, and take no parameters.
    pub(super) statement: Option<Statement>,
    /// Whether the rows it returns are those that it has changed.
    pub(super) changes_rows: bool,
}

impl Prepared {
    pub(super) fn new(sql: &str, statement: Option<Statement>) -> Self {
        Self {
            statement,
            changes_rows: verb(Dialect::MySql, sql) == Verb::Changes,
        }
    }

    pub(super) fn placeholders(&self) -> usize {
        let statement = self.statement.as_ref();
        statement.map_or(0, |statement| usize::from(statement.num_params()))
    }

    /// The columns that it has, as the server says when it prepares it.
    pub(super) fn columns(&self) -> Arc<[Column]> {
        self.statement.as_ref().map(Statement::columns).unwrap_or_default()
    }
}

/// Prepared statements of one connection.
pub(super) struct Statements {
    by_text: HashMap<Arc<str>, Kept>,
    capacity: usize,
    /// The sum over all that are kept.
    placeholders: usize,
    /// Counts uses; the statement with the lowest is the one least lately used.
    uses: u64,
}

struct Kept {
    prepared: Prepared,
    used: u64,
}

impl Statements {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            by_text: HashMap::new(),
            capacity: capacity.max(1),
            placeholders: 0,
            uses: 0,
        }
    }

    pub(super) fn find(&mut self, sql: &str) -> Option<Prepared> {
        self.uses += 1;
        let kept = self.by_text.get_mut(sql)?;
        kept.used = self.uses;
        Some(kept.prepared.clone())
    }

    /// Takes one statement out that must be closed before another is kept; none when there is room for it.
    pub(super) fn make_room(&mut self, placeholders: usize) -> Option<Prepared> {
        let has_room = self.by_text.len() < self.capacity && self.placeholders + placeholders <= PLACEHOLDERS_MAX;
        if has_room || self.by_text.is_empty() {
            return None;
        }
        // A walk over a few hundred, once a statement that is new here; what is prepared again and again costs a round trip each
        // time in any case.
        let oldest = self.by_text.iter().min_by_key(|(_, kept)| kept.used);
        let text = Arc::clone(oldest.expect("it is not empty").0);
        self.remove(&text)
    }

    /// Keeps it. There must be room.
    pub(super) fn keep(&mut self, sql: &str, prepared: Prepared) {
        self.uses += 1;
        self.placeholders += prepared.placeholders();
        let kept = Kept {
            prepared,
            used: self.uses,
        };
        self.by_text.insert(sql.into(), kept);
    }

    pub(super) fn remove(&mut self, sql: &str) -> Option<Prepared> {
        let kept = self.by_text.remove(sql)?;
        self.placeholders -= kept.prepared.placeholders();
        Some(kept.prepared)
    }

    /// Forgets all, which the server has forgotten.
    pub(super) fn clear(&mut self) {
        self.by_text.clear();
        self.placeholders = 0;
    }
}
