//! Plans: what a text alone tells of how it is to be run, found once and kept.
//!
//! Promises: memory is bounded, by the number of texts and by their bytes; a plan's own memory is in proportion to its text. Knows
//! nothing of what a plan says.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use forebay_write::Sql;

/// More texts than a program writes by hand.
const PLANS_MAX: usize = 1024;
/// The bytes of all texts that are kept. One that is longer alone is bulk that rarely comes again: its plan is made each time.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Plans by text.
pub struct Plans<P> {
    kept: Mutex<Kept<P>>,
    make: fn(&Sql) -> P,
}

struct Kept<P> {
    by_text: HashMap<Arc<str>, Arc<P>, foldhash::fast::RandomState>,
    /// Of all texts.
    text_bytes: usize,
}

impl<P> Plans<P> {
    /// None is kept yet; `make` makes one of a text.
    pub fn new(make: fn(&Sql) -> P) -> Self {
        Self {
            kept: Mutex::new(Kept {
                by_text: HashMap::default(),
                text_bytes: 0,
            }),
            make,
        }
    }

    /// The plan of a text.
    pub fn of(&self, sql: &Sql) -> Arc<P> {
        let mut kept = self.kept.lock();
        if let Some(plan) = kept.by_text.get(&**sql) {
            return Arc::clone(plan);
        }
        let plan = Arc::new((self.make)(sql));
        if sql.len() > TEXT_BYTES_MAX {
            return plan;
        }
        if kept.by_text.len() >= PLANS_MAX || kept.text_bytes + sql.len() > TEXT_BYTES_MAX {
            // Texts made at run time, each once: none of them is worth more than another.
            kept.by_text.clear();
            kept.text_bytes = 0;
        }
        kept.text_bytes += sql.len();
        kept.by_text.insert(Arc::from(&**sql), Arc::clone(&plan));
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_plan_and_memory_is_bounded() {
        let plans = Plans::new(|sql| sql.len());
        let text = Sql::from("SELECT 1");
        let first = plans.of(&text);
        assert_eq!(*first, text.len());
        assert!(Arc::ptr_eq(&first, &plans.of(&text)));
        for number in 0..2 * PLANS_MAX {
            plans.of(&Sql::from(format!("SELECT {number}")));
            assert!(plans.kept.lock().by_text.len() <= PLANS_MAX);
        }
    }

    #[test]
    fn long_texts_do_not_take_more_memory_than_many_short_ones() {
        let plans = Plans::new(|sql| sql.len());
        for number in 0..20 {
            plans.of(&Sql::from(format!(
                "SELECT '{number}{}'",
                "x".repeat(TEXT_BYTES_MAX / 8)
            )));
            let kept = plans.kept.lock();
            let bytes: usize = kept.by_text.keys().map(|text| text.len()).sum();
            assert!(bytes <= TEXT_BYTES_MAX && bytes == kept.text_bytes, "{bytes}");
        }
        let before = plans.kept.lock().text_bytes;
        let huge = Sql::from("x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(*plans.of(&huge), huge.len());
        assert_eq!(plans.kept.lock().text_bytes, before, "it drove the others out");
    }
}
