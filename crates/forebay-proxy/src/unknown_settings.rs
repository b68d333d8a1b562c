//! Unknown settings: whether a session may have set something of its own whose name nobody knows, which no view of PostgreSQL's shows.
//!
//! Promises: as long as [there may be any](UnknownSettings::are_any) the session is to stay on its connection. They are forgotten where all was reset behind them, for good, and where
//! what may have set them is known not to have been done: it was passed over, or refused as no SQL. Knows no message, and places of one connection alone.

use std::cmp::Ordering;

/// So many places are kept, and of more the last.
const PLACES_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct UnknownSettings {
    /// Where it was asked what may have set them.
    set_at: Vec<u64>,
    /// The last of these stands for others, too.
    is_crowded: bool,
    /// What was asked at the last of them is no SQL, as far as can be told.
    is_broken: bool,
    /// Where it was asked last that all be reset: by a text, which ends so,
    text_resets_at: Option<u64>,
    /// or by the extended protocol.
    execute_resets_at: Option<u64>,
    /// Where that was done, in a transaction that is not over.
    reset_at: Option<u64>,
    /// Where something was done last.
    done_at: Option<u64>,
}

impl UnknownSettings {
    pub(crate) fn are_any(&self) -> bool {
        !self.set_at.is_empty()
    }

    /// The session has a connection from now on.
    pub(crate) fn begins(&mut self) {
        (self.text_resets_at, self.execute_resets_at) = (None, None);
        (self.reset_at, self.done_at) = (None, None);
    }

    /// What is asked at this place may set some; `is_broken`: it is no SQL, as far as can be told.
    pub(crate) fn may_be_set(&mut self, place: u64, is_broken: bool) {
        if self.set_at.last() == Some(&place) {
            return;
        }
        self.is_broken = is_broken;
        self.set_at.push(place);
        if self.set_at.len() > PLACES_MAX {
            // The last stands for both from now on.
            self.set_at.swap_remove(PLACES_MAX - 1);
            self.is_crowded = true;
        }
    }

    /// A text that is asked at this place ends by resetting all.
    pub(crate) fn text_resets(&mut self, place: u64) {
        self.text_resets_at = Some(place);
    }

    /// What is executed at this place resets all.
    pub(crate) fn execute_resets(&mut self, place: u64) {
        self.execute_resets_at = Some(place);
    }

    /// Something that was asked at this place is done: `resets`, a setting, or all.
    pub(crate) fn is_done(&mut self, place: u64, resets: bool) {
        self.done_at = Some(place);
        if resets && self.execute_resets_at == Some(place) {
            self.reset_at = Some(place);
        }
    }

    /// All of the text that was asked at this place is done.
    pub(crate) fn text_is_done(&mut self, place: u64) {
        if self.text_resets_at == Some(place) {
            self.reset_at = Some(place);
        }
    }

    /// What was done in the transaction is undone, all of it or to a savepoint.
    pub(crate) fn are_undone(&mut self) {
        self.reset_at = None;
    }

    /// What was asked at this place has failed, and what stands behind it is passed over, unless it `is_awaited`. `is_no_sql`: the server says so, which it does before it does anything of
    /// a text that is broken.
    pub(crate) fn have_failed(&mut self, place: u64, is_no_sql: bool, is_awaited: impl Fn(u64) -> bool) {
        self.reset_at = None;
        if self.is_crowded {
            return;
        }
        let is_nothing_done = is_no_sql && self.is_broken && self.done_at != Some(place);
        self.set_at.retain(|set| match set.cmp(&place) {
            Ordering::Less => true,
            Ordering::Equal => !is_nothing_done,
            Ordering::Greater => is_awaited(*set),
        });
    }

    /// No transaction is open that may be undone.
    pub(crate) fn are_as_they_are(&mut self) {
        if let Some(place) = self.reset_at.take() {
            self.are_reset(place);
        }
    }

    /// Whatever was set before what was asked at this place is set no more.
    pub(crate) fn are_reset(&mut self, place: u64) {
        self.set_at.retain(|set| *set > place);
        self.is_crowded &= self.are_any();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_at(places: impl IntoIterator<Item = u64>) -> UnknownSettings {
        let mut unknown = UnknownSettings::default();
        for place in places {
            unknown.may_be_set(place, false);
        }
        unknown
    }

    #[test]
    fn what_is_reset_for_good_is_forgotten() {
        let mut unknown = set_at([1]);
        unknown.text_resets(2);
        unknown.text_is_done(1);
        unknown.are_as_they_are();
        assert!(unknown.are_any(), "another text is done");
        unknown.text_is_done(2);
        assert!(unknown.are_any(), "its transaction may be open");
        unknown.are_as_they_are();
        assert!(!unknown.are_any());
        for fails in [false, true] {
            let mut unknown = set_at([1]);
            unknown.execute_resets(3);
            unknown.is_done(3, true);
            match fails {
                true => unknown.have_failed(4, false, |_| false),
                false => unknown.are_undone(),
            }
            unknown.are_as_they_are();
            assert!(unknown.are_any(), "it is undone");
        }
        let mut unknown = set_at([1, 5]);
        unknown.execute_resets(3);
        unknown.is_done(2, true);
        unknown.are_as_they_are();
        unknown.is_done(3, true);
        unknown.are_as_they_are();
        assert!(unknown.are_any(), "something came behind it");
        unknown.are_reset(6);
        assert!(!unknown.are_any());
    }

    #[test]
    fn what_was_not_done_is_forgotten() {
        let mut unknown = set_at([2, 4]);
        unknown.have_failed(1, false, |place| place == 4);
        unknown.are_reset(3);
        assert!(unknown.are_any(), "4 stands behind a Sync");
        unknown.have_failed(4, true, |_| false);
        assert!(unknown.are_any(), "it may have been done before it failed");
        let mut unknown = UnknownSettings::default();
        unknown.may_be_set(1, true);
        unknown.have_failed(1, false, |_| false);
        assert!(unknown.are_any(), "it was SQL");
        unknown.have_failed(1, true, |_| false);
        assert!(!unknown.are_any());
        unknown.may_be_set(2, true);
        unknown.is_done(2, false);
        unknown.have_failed(2, true, |_| false);
        assert!(unknown.are_any(), "some of it was done");
    }

    #[test]
    fn of_many_none_is_forgotten_but_by_a_reset() {
        let mut unknown = set_at(0..20);
        unknown.are_reset(18);
        assert!(unknown.are_any());
        unknown.may_be_set(20, true);
        unknown.have_failed(20, true, |_| false);
        unknown.have_failed(0, false, |_| false);
        assert!(unknown.are_any(), "19 may be among them");
        unknown.are_reset(20);
        assert!(!unknown.are_any());
        unknown.may_be_set(21, true);
        unknown.have_failed(21, true, |_| false);
        assert!(!unknown.are_any(), "they are few again");
    }
}
