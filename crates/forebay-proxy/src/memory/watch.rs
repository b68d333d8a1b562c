//! Watch: what a transaction has done.
//!
//! Promises: one that began while nothing was remembered is taken for one that may have done anything.

use super::does::Does;

/// What the transaction that is under way has done so far.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) does: Does,
    /// It is watched since it began.
    pub(crate) is_whole: bool,
    pub(crate) course: Course,
    /// It may have made a table by what is a query, as its tag tells.
    pub(crate) makes_tables: bool,
    /// It has changed roles, or databases.
    pub(crate) is_of_all_databases: bool,
    /// After so many changes of tables was told what it does, of the first that does anything: behind others it may do more, by a trigger or a cascade.
    pub(crate) judged_at: Option<u64>,
}

/// What is known of the course of a transaction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// Nothing was asked.
    #[default]
    Untouched,
    /// It was begun under READ COMMITTED, as far as it says itself, and nothing was asked since but to read.
    Reads,
    /// Anything else.
    Other,
}

impl Course {
    /// Something is asked: to begin a transaction under READ COMMITTED, or to read and nothing else.
    pub(crate) fn asks(&mut self, to_begin: bool, to_read: bool) {
        *self = match self {
            Self::Untouched if to_begin => Self::Reads,
            Self::Reads if to_read => Self::Reads,
            _ => Self::Other,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_reads_until_it_does_anything_else() {
        let mut course = Course::default();
        course.asks(true, false);
        course.asks(false, true);
        assert_eq!(course, Course::Reads);
        for (to_begin, to_read) in [(true, false), (false, false)] {
            let mut course = course;
            course.asks(to_begin, to_read);
            course.asks(false, true);
            assert_eq!(course, Course::Other);
        }
        let mut course = Course::default();
        course.asks(false, true);
        assert_eq!(course, Course::Other, "it is none that was begun");
    }
}
