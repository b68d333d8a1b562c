//! Where in a mapping's address space the system has page tables.
//!
//! Promises: no window is counted twice. Knows neither pages nor what a window is.

/// The windows that have a table, by number.
#[derive(Default)]
pub(crate) struct Tables {
    /// A bit each; as far as there was ever one.
    has: Vec<u64>,
    count: usize,
}

impl Tables {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// This window has a table from now on. Returns whether it had none.
    pub(crate) fn add(&mut self, window: u32) -> bool {
        let (at, bit) = place(window);
        if at >= self.has.len() {
            self.has.resize(at + 1, 0);
        }
        let is_new = self.has[at] & bit == 0;
        self.has[at] |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    /// This window has no table any more. Returns whether it had one.
    pub(crate) fn remove(&mut self, window: u32) -> bool {
        let (at, bit) = place(window);
        let had = self.has.get(at).is_some_and(|bits| bits & bit != 0);
        if had {
            self.has[at] &= !bit;
            self.count -= 1;
        }
        had
    }
}

fn place(window: u32) -> (usize, u64) {
    (window as usize / 64, 1 << (window % 64))
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_once() {
        let mut tables = Tables::default();
        assert!(!tables.remove(7));
        assert!(tables.add(7) && !tables.add(7) && tables.add(6400) && tables.add(63));
        assert_eq!(tables.count(), 3);
        assert!(tables.remove(7) && !tables.remove(7) && !tables.remove(64));
        assert_eq!(tables.count(), 2);
    }
}
