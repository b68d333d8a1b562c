//! Looks: the colour and the mark of every system, the same in all plots of all scenarios.
//!
//! Promises: Forebay and the limit always look the same and like nothing else; two systems of one scenario differ in colour
//! while colours suffice, and always in colour or mark as long as there are combinations, so that nobody has to tell colours
//! apart. The same systems in the same order get the same looks. Which colour a class has, in light and in dark, says the
//! style sheet.

use std::collections::BTreeMap;

use super::markup::escape;
use crate::scenario::{FOREBAY, LIMIT};

/// Colours of peers that the style sheet has, `peer-0` and so on.
const PEER_COLOURS: usize = 7;

/// Marks, each around (0, 0) and about as large as the others to the eye.
const MARKS: [&str; 7] = [
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-4.8L4.5 3.2H-4.5z",
    "M0-5L5 0L0 5L-5 0z",
    "M0 4.8L4.5-3.2H-4.5z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M-2.4-4.2h4.8L4.8 0L2.4 4.2h-4.8L-4.8 0z",
    "M-4.4-2.6L-2.6-4.4L0-1.8L2.6-4.4L4.4-2.6L1.8 0L4.4 2.6L2.6 4.4L0 1.8L-2.6 4.4L-4.4 2.6L-1.8 0z",
];
const CIRCLE: &str = "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z";

/// How a system looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Gives the colour, and the kind of line.
    pub(super) class: String,
    /// A path around (0, 0).
    pub(super) mark: &'static str,
    /// Tells the system from all others, whatever its name holds.
    number: usize,
}

impl Look {
    fn new(class: impl Into<String>, mark: &'static str) -> Self {
        Self {
            class: class.into(),
            mark,
            number: 0,
        }
    }

    /// The class of all that shows this system, by which a reader may hide it.
    pub(super) fn own_class(&self) -> String {
        format!("s{}", self.number)
    }

    /// Classes of what is drawn of this system.
    pub(super) fn group(&self) -> String {
        format!("system {} {}", self.own_class(), self.class)
    }

    /// The mark on its line, for a legend.
    pub(super) fn key(&self) -> String {
        self.key_on("curve")
    }

    /// The mark on a level's line.
    pub(super) fn level_key(&self) -> String {
        self.key_on("level")
    }

    fn key_on(&self, line: &str) -> String {
        let Self { class, mark, .. } = self;
        let class = escape(class);
        format!(
            "<svg class=\"key {class}\" viewBox=\"-13 -7 26 14\" aria-hidden=\"true\"><line class=\"{line}\" x1=\"-13\" \
             y1=\"0\" x2=\"13\" y2=\"0\"/><path class=\"mark\" d=\"{mark}\"/></svg>"
        )
    }
}

/// How all systems look.
#[derive(Debug, Default)]
pub(super) struct Looks {
    looks: BTreeMap<String, Look>,
    peers: usize,
    variants: usize,
}

impl Looks {
    /// Gives every system of a scenario its look, unless an earlier scenario has given it one.
    pub(super) fn add(&mut self, systems: &[&str]) {
        for system in systems.iter().copied() {
            if self.looks.contains_key(system) {
                continue;
            }
            let mut look = match system {
                FOREBAY => Look::new("forebay", CIRCLE),
                LIMIT => Look::new("limit", MARKS[2]),
                _ if system
                    .strip_prefix(FOREBAY)
                    .is_some_and(|rest| rest.starts_with([',', ' '])) =>
                {
                    self.variants += 1;
                    Look::new("variant", MARKS[(self.variants - 1) % MARKS.len()])
                }
                _ => self.peer(systems),
            };
            look.number = self.looks.len();
            self.looks.insert(system.to_owned(), look);
        }
    }

    /// The look of a system that was added.
    pub(super) fn of(&self, system: &str) -> &Look {
        self.looks.get(system).expect("the systems of all scenarios were added")
    }

    /// The colour that this scenario, and then all of them, has least of.
    fn peer(&mut self, here: &[&str]) -> Look {
        let mut best = (usize::MAX, usize::MAX, String::new());
        for colour in 0..PEER_COLOURS {
            // Begins where the last ended, so that equally rare colours take turns.
            let class = format!("peer-{}", (self.peers + colour) % PEER_COLOURS);
            let uses = |look: &&Look| look.class == class;
            let here = here
                .iter()
                .filter_map(|system| self.looks.get(*system))
                .filter(uses)
                .count();
            let everywhere = self.looks.values().filter(uses).count();
            if (here, everywhere) < (best.0, best.1) {
                best = (here, everywhere, class);
            }
        }
        let (_, used, class) = best;
        let mark = MARKS[(self.peers + used) % MARKS.len()];
        self.peers += 1;
        Look::new(class, mark)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_system_looks_the_same_everywhere_and_unlike_its_neighbours() {
        let mut looks = Looks::default();
        let first = ["limit", "forebay", "a", "b", "forebay, one a batch"];
        let second = ["forebay", "c", "d", "e", "f", "g", "h", "a"];
        looks.add(&first);
        let a = looks.of("a").clone();
        looks.add(&second);
        assert_eq!(*looks.of("a"), a);
        let colours: BTreeSet<&str> = second.iter().map(|system| &*looks.of(system).class).collect();
        assert_eq!(colours.len(), second.len(), "{looks:?}");
        assert_eq!(looks.of("forebay").class, "forebay");
        assert_eq!(looks.of("limit").class, "limit");
        assert_eq!(looks.of("forebay, one a batch").class, "variant");
    }

    #[test]
    fn when_colours_run_out_marks_tell_systems_apart() {
        let names: Vec<String> = (0..40).map(|at| format!("peer {at}")).collect();
        let mut looks = Looks::default();
        looks.add(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let distinct: BTreeSet<(&str, &str)> = names
            .iter()
            .map(|name| (&*looks.of(name).class, looks.of(name).mark))
            .collect();
        assert_eq!(distinct.len(), names.len());
        assert!(
            names
                .iter()
                .all(|name| !["forebay", "limit"].contains(&&*looks.of(name).class))
        );
    }
}
