//! Statements: what one connection has prepared, by text; the least recently used is evicted first.
//!
//! Promises: bounded in number and in total weight. Knows no connection: what has to go is handed back to be
//! closed.

use std::collections::HashMap;
use std::sync::Arc;

/// Prepared statements of one connection, each a `P`.
pub struct Statements<P> {
    by_text: HashMap<Arc<str>, Kept<P>, foldhash::fast::RandomState>,
    count_max: usize,
    weight_max: usize,
    /// The sum over all that are kept.
    weight: usize,
    /// Counts uses; the statement with the lowest is the one least lately used.
    uses: u64,
}

struct Kept<P> {
    prepared: P,
    weight: usize,
    used: u64,
}

impl<P: Clone> Statements<P> {
    /// None is kept yet.
    pub fn new(count_max: usize, weight_max: usize) -> Self {
        Self {
            by_text: HashMap::default(),
            count_max: count_max.max(1),
            weight_max,
            weight: 0,
            uses: 0,
        }
    }

    /// The statement of a text, if it is kept.
    pub fn find(&mut self, sql: &str) -> Option<P> {
        self.uses += 1;
        let kept = self.by_text.get_mut(sql)?;
        kept.used = self.uses;
        Some(kept.prepared.clone())
    }

    /// Takes one statement out that must be closed before another is kept; none when there is room for it.
    pub fn make_room(&mut self, weight: usize) -> Option<P> {
        let has_room = self.by_text.len() < self.count_max && self.weight + weight <= self.weight_max;
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
    pub fn keep(&mut self, sql: &str, weight: usize, prepared: P) {
        self.uses += 1;
        self.weight += weight;
        let kept = Kept {
            prepared,
            weight,
            used: self.uses,
        };
        self.by_text.insert(sql.into(), kept);
    }

    /// Takes one out; none if it is not kept.
    pub fn remove(&mut self, sql: &str) -> Option<P> {
        let kept = self.by_text.remove(sql)?;
        self.weight -= kept.weight;
        Some(kept.prepared)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.by_text.clear();
        self.weight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_lately_used_goes_first_and_no_more_than_needed() {
        let mut statements = Statements::new(3, 10);
        for (text, weight) in [("a", 1), ("b", 5), ("c", 2)] {
            assert_eq!(statements.make_room(weight), None);
            statements.keep(text, weight, text);
        }
        assert_eq!(statements.find("a"), Some("a"));
        assert_eq!(statements.find("x"), None);
        // One too many.
        assert_eq!(statements.make_room(1), Some("b"));
        assert_eq!(statements.make_room(1), None);
        // Too heavy: 1 + 2 are kept.
        assert_eq!(statements.make_room(9), Some("c"));
        assert_eq!(statements.make_room(9), None);
        statements.keep("d", 9, "d");
        assert_eq!(statements.remove("a"), Some("a"));
        statements.clear();
        assert_eq!(statements.make_room(10), None);
        assert_eq!(statements.find("d"), None);
    }

    #[test]
    fn one_that_is_heavier_than_all_may_be_is_kept_alone() {
        let mut statements = Statements::new(3, 10);
        statements.keep("a", 1, "a");
        assert_eq!(statements.make_room(11), Some("a"));
        assert_eq!(statements.make_room(11), None);
    }
}
