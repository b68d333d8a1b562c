//! Plans: what a text alone tells of how it is to be run, found once and kept.
//!
//! Promises: bounded memory. Knows nothing of what a plan says.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use forebay_write::Sql;

/// More texts than a program writes by hand.
const PLANS_MAX: usize = 1024;

/// Plans by text.
pub struct Plans<P> {
    by_text: Mutex<HashMap<Arc<str>, Arc<P>>>,
    make: fn(&Sql) -> P,
}

impl<P> Plans<P> {
    /// None is kept yet; `make` makes one of a text.
    pub fn new(make: fn(&Sql) -> P) -> Self {
        Self {
            by_text: Mutex::default(),
            make,
        }
    }

    /// The plan of a text.
    pub fn of(&self, sql: &Sql) -> Arc<P> {
        let mut by_text = self.by_text.lock();
        if let Some(plan) = by_text.get(&**sql) {
            return Arc::clone(plan);
        }
        if by_text.len() >= PLANS_MAX {
            // Texts made at run time, each once: none of them is worth more than another.
            by_text.clear();
        }
        let plan = Arc::new((self.make)(sql));
        by_text.insert(Arc::from(&**sql), Arc::clone(&plan));
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
            assert!(plans.by_text.lock().len() <= PLANS_MAX);
        }
    }
}
