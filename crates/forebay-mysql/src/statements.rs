//! Statements: what one connection has prepared, by text, the least lately used going first.
//!
//! Promises: never more than so many, nor more placeholders in all than so many, as the server describes each placeholder and the
//! driver keeps what it says. Knows no connection: what has to go is handed back to be closed.

use std::collections::HashMap;
use std::sync::Arc;

use mysql_async::Statement;

/// Placeholders of all statements that one connection keeps.
const PLACEHOLDERS_MAX: usize = 65_536;

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
    statement: Statement,
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

    pub(super) fn find(&mut self, sql: &str) -> Option<Statement> {
        self.uses += 1;
        let kept = self.by_text.get_mut(sql)?;
        kept.used = self.uses;
        Some(kept.statement.clone())
    }

    /// Takes one statement out that must be closed before another is kept; none when there is room for it.
    pub(super) fn make_room(&mut self, placeholders: usize) -> Option<Statement> {
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
    pub(super) fn keep(&mut self, sql: &str, statement: Statement) {
        self.uses += 1;
        self.placeholders += usize::from(statement.num_params());
        let kept = Kept {
            statement,
            used: self.uses,
        };
        self.by_text.insert(sql.into(), kept);
    }

    pub(super) fn remove(&mut self, sql: &str) -> Option<Statement> {
        let kept = self.by_text.remove(sql)?;
        self.placeholders -= usize::from(kept.statement.num_params());
        Some(kept.statement)
    }

    /// Forgets all, which the server has forgotten.
    pub(super) fn clear(&mut self) {
        self.by_text.clear();
        self.placeholders = 0;
    }
}
