//! Plans: under which settings those were made that a server connection keeps.
//!
//! PostgreSQL plans once what is prepared, and what functions in PL/pgSQL ask, and takes no notice of most settings that change behind that: constants in the body
//! of a function stay as they were read, and so does what was folded because a function that asks for a setting is declared immutable.
//!
//! Promises: whoever [begins](Plans::begin) is told whether plans were made under settings that make a difference to what he has set, or may have been; they are
//! to be discarded then. Whoever has set something himself [is told the same](Plans::are_stale) before what he asks next. Knows no message.

use std::sync::Arc;

use forebay_sql::{FOLDING, READING, may_set_folding, may_set_reading};

use crate::leaves::{Leaves, has_word};
use crate::settings::Settings;

/// What plans of a database hang on: each on what those before it do, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HangOn {
    /// What PostgreSQL's own functions ask for that are declared immutable.
    #[default]
    Folding,
    /// Also by what texts are read: there are functions of the user's, with constants in their bodies, or declared immutable though they hang on the time zone.
    Reading,
    /// Whatever is set: a function that asks for settings is declared immutable.
    Anything,
}

impl HangOn {
    fn are_alike(self, one: &Settings, other: &Settings) -> bool {
        let among = |names: &[&str]| names.iter().all(|name| one.get(name) == other.get(name));
        match self {
            Self::Folding => among(&FOLDING),
            Self::Reading => among(&FOLDING) && among(&READING),
            Self::Anything => one == other,
        }
    }

    /// What changes where one of these is set.
    fn changed_by(settings: &[String]) -> Self {
        let has_one = |names: &[&str]| {
            settings
                .iter()
                .any(|own| names.iter().any(|name| name.eq_ignore_ascii_case(own)))
        };
        match (has_one(&FOLDING), has_one(&READING)) {
            (true, _) => Self::Folding,
            (false, true) => Self::Reading,
            (false, false) => Self::Anything,
        }
    }

    /// What may change behind a text that leaves this by itself; none if nothing does.
    pub(crate) fn changed_behind(text: &[u8], leaves: Option<&Leaves>) -> Option<Self> {
        if leaves.is_none() && !may_set_locally(text) {
            return None;
        }
        let Ok(text) = std::str::from_utf8(text) else {
            return Some(Self::Folding);
        };
        Some(match (may_set_folding(text), may_set_reading(text)) {
            (true, _) => Self::Folding,
            (false, true) => Self::Reading,
            (false, false) => Self::Anything,
        })
    }

    /// What may change behind what of the database's own leaves this. Where nobody knows what that is it is asked what is left.
    pub(crate) fn changed_with(leaves: &Leaves) -> Self {
        leaves.named.as_deref().map_or(Self::Anything, Self::changed_by)
    }
}

/// Whether the text may set something for its transaction alone.
fn may_set_locally(text: &[u8]) -> bool {
    has_word(text, b"local") || has_word(text, b"set_config")
}

/// What plans hang on, beside what is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grounds {
    /// What of it.
    pub(crate) hang_on: HangOn,
    /// How often roles were others, by whose rights rows are shown.
    pub(crate) roles_changes: u64,
}

/// Those that a connection keeps.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// What they hung on when they were made, and what was set then. None as long as nobody has begun.
    made_under: Option<(Grounds, Arc<Settings>)>,
    /// Something else may have been set since.
    are_mixed: bool,
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// They are of what is set now.
    #[default]
    Fresh,
    /// Some may be of what was set before.
    Stale,
    /// What discards them is asked at this place.
    Discarding(u64),
}

impl Plans {
    /// A session begins that has set these: whether those that are there have to be discarded before.
    pub(crate) fn begin(&mut self, grounds: Grounds, settings: &Arc<Settings>) -> bool {
        let Grounds { hang_on, roles_changes } = grounds;
        let are_its_own = |(of, by): &(Grounds, Arc<Settings>)| {
            of.hang_on >= hang_on
                && of.roles_changes == roles_changes
                && (Arc::ptr_eq(by, settings) || hang_on.are_alike(by, settings))
        };
        let are_kept = !self.are_mixed && self.made_under.as_ref().is_none_or(are_its_own);
        self.are_mixed = false;
        self.state = State::Fresh;
        match &mut self.made_under {
            Some((of, by)) if *of == grounds && Arc::ptr_eq(by, settings) => {}
            made_under => *made_under = Some((grounds, Arc::clone(settings))),
        }
        !are_kept
    }

    /// What is asked next may change this.
    pub(crate) fn may_change(&mut self, changed: HangOn) {
        if self.made_under.as_ref().is_none_or(|(of, _)| changed <= of.hang_on) {
            self.are_mixed = true;
            self.state = State::Stale;
        }
    }

    /// It turns out that these are set, since when nobody knows.
    pub(crate) fn are_under(&mut self, settings: &Settings) {
        let others = |(of, by): &(Grounds, Arc<Settings>)| !of.hang_on.are_alike(by, settings);
        self.are_mixed |= self.made_under.as_ref().is_some_and(others);
    }

    /// Whether they have to be discarded before anything is planned. `is_awaited` says whether what was asked at a place is not answered.
    pub(crate) fn are_stale(&self, is_awaited: impl FnOnce(u64) -> bool) -> bool {
        match self.state {
            State::Fresh => false,
            State::Stale => true,
            // What was passed over is asked once more.
            State::Discarding(place) => !is_awaited(place),
        }
    }

    /// What discards them is asked at this place.
    pub(crate) fn discard(&mut self, place: u64) {
        self.state = State::Discarding(place);
    }

    /// Where that was asked last which discards them, if it may not be done.
    pub(crate) fn discards_at(&self) -> Option<u64> {
        match self.state {
            State::Discarding(place) => Some(place),
            State::Fresh | State::Stale => None,
        }
    }

    /// What was asked at that place is done.
    pub(crate) fn are_discarded(&mut self) {
        if matches!(self.state, State::Discarding(_)) {
            self.state = State::Fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Arc<Settings> {
        let mut settings = Settings::default();
        for (name, value) in pairs {
            settings.set(name, value);
        }
        Arc::new(settings)
    }

    fn on(hang_on: HangOn) -> Grounds {
        Grounds {
            hang_on,
            roles_changes: 0,
        }
    }

    #[test]
    fn they_are_kept_for_who_has_set_the_same_of_what_they_hang_on() {
        let sets = [
            of(&[]),
            of(&[("bytea_output", "escape")]),
            of(&[("TimeZone", "UTC")]),
            of(&[("app.tenant", "a")]),
        ];
        for (hang_on, different) in [
            (HangOn::Folding, [true, false, false]),
            (HangOn::Reading, [true, true, false]),
            (HangOn::Anything, [true, true, true]),
        ] {
            let mut plans = Plans::default();
            let grounds = on(hang_on);
            assert!(!plans.begin(grounds, &sets[0]), "there are none");
            for (set, is_different) in sets[1..].iter().zip(different) {
                assert_eq!(plans.begin(grounds, set), is_different, "{hang_on:?} {set:?}");
                assert!(!plans.begin(grounds, &of(&set.all().collect::<Vec<_>>())));
                assert_eq!(plans.begin(grounds, &sets[0]), is_different, "{hang_on:?} {set:?}");
            }
            let roles_changes = 1;
            assert!(plans.begin(
                Grounds {
                    roles_changes,
                    ..grounds
                },
                &sets[0]
            ));
            assert!(!plans.begin(
                Grounds {
                    roles_changes,
                    ..grounds
                },
                &sets[0]
            ));
        }
        let mut plans = Plans::default();
        plans.begin(on(HangOn::Folding), &sets[0]);
        assert!(
            plans.begin(on(HangOn::Reading), &sets[0]),
            "they may be of anybody's reading"
        );
    }

    #[test]
    fn what_is_set_meanwhile_is_nobody_elses() {
        let mut plans = Plans::default();
        plans.begin(on(HangOn::Reading), &of(&[]));
        plans.may_change(HangOn::Anything);
        assert!(!plans.are_stale(|_| false));
        plans.may_change(HangOn::Reading);
        assert!(plans.are_stale(|_| false));
        plans.discard(7);
        assert!(!plans.are_stale(|place| place == 7));
        assert!(plans.are_stale(|_| false), "it was passed over");
        plans.are_discarded();
        assert!(!plans.are_stale(|_| false));
        assert!(plans.begin(on(HangOn::Reading), &of(&[])), "they are of what was set");
        assert!(!plans.begin(on(HangOn::Reading), &of(&[])));
    }

    #[test]
    fn what_turns_out_to_be_set_was_set_at_some_time() {
        let mut plans = Plans::default();
        plans.begin(on(HangOn::Reading), &of(&[]));
        plans.are_under(&of(&[("app.a", "1")]));
        assert!(!plans.begin(on(HangOn::Reading), &of(&[])));
        plans.are_under(&of(&[("TimeZone", "UTC")]));
        assert!(plans.begin(on(HangOn::Reading), &of(&[("TimeZone", "UTC")])));
    }

    #[test]
    fn what_a_text_changes_is_the_least_that_it_may() {
        let behind = |text: &str| HangOn::changed_behind(text.as_bytes(), Leaves::of(text.as_bytes()).as_ref());
        assert_eq!(behind("SELECT 1"), None);
        assert_eq!(behind("SET LOCAL app.tenant = 'a'"), Some(HangOn::Anything));
        assert_eq!(behind("SET work_mem = '1MB'"), Some(HangOn::Anything));
        assert_eq!(behind("SET LOCAL TimeZone = 'UTC'"), Some(HangOn::Reading));
        assert_eq!(behind("SET IntervalStyle = 'postgres'"), Some(HangOn::Folding));
        assert_eq!(behind("DISCARD ALL"), Some(HangOn::Folding));
        let with = |named: Option<&[&str]>| {
            HangOn::changed_with(&Leaves {
                named: named.map(|named| named.iter().map(|name| (*name).to_owned()).collect()),
                is_broken: false,
            })
        };
        assert_eq!(with(None), HangOn::Anything);
        assert_eq!(with(Some(&[])), HangOn::Anything);
        assert_eq!(with(Some(&["app.tenant"])), HangOn::Anything);
        assert_eq!(with(Some(&["app.tenant", "timezone"])), HangOn::Reading);
    }
}
