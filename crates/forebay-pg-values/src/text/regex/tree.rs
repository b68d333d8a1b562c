//! Which part of a match is which group: the tree of an expression, and how a match is taken apart along it.
//!
//! The rules are PostgreSQL's, whose engine is Henry Spencer's: the whole match is the longest or the shortest of those that start first,
//! as the whole expression prefers; then each part takes, from left to right, the longest or shortest text it can in its own
//! preference. Which parts count as one is part of the answer: what has no groups and no clash of preferences inside is a single
//! part, however it is written. PostgreSQL's documentation gives the outline ("Regular Expression Matching Rules"); the cases beyond it
//! were settled by comparison with PostgreSQL 15.

use std::rc::Rc;

use super::program::{Language, Program};
use super::syntax::{Alternation, Atom, Piece, Preference};
use crate::Result;

/// Facts about a part: what it prefers, and what it has inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traits {
    longest: bool,
    shortest: bool,
    /// Parts within prefer differently.
    mixed: bool,
    /// There are groups within, or it is one.
    captures: bool,
}

impl Traits {
    fn of(preference: Option<Preference>) -> Self {
        Self {
            longest: preference == Some(Preference::Longest),
            shortest: preference == Some(Preference::Shortest),
            ..Self::default()
        }
    }

    fn union(self, other: Self) -> Self {
        Self {
            longest: self.longest | other.longest,
            shortest: self.shortest | other.shortest,
            mixed: self.mixed | other.mixed,
            captures: self.captures | other.captures,
        }
    }

    /// What the part around sees.
    fn outward(self) -> Self {
        Self {
            longest: false,
            shortest: false,
            mixed: self.mixed | (self.longest & self.shortest),
            captures: self.captures,
        }
    }

    /// Of two parts in a row: the first preference there is.
    fn combined(self, other: Self) -> Self {
        let preferring = if self.longest | self.shortest { self } else { other };
        Self {
            longest: preferring.longest,
            shortest: preferring.shortest,
            ..self.union(other).outward()
        }
    }

    /// Whether the part cannot be a single machine.
    fn is_divided(self) -> bool {
        self.mixed | self.captures
    }
}

/// A part of an expression.
#[derive(Debug)]
pub(super) struct Tree {
    traits: Traits,
    language: Rc<Language>,
    /// The group that this part is.
    group: Option<usize>,
    parts: Parts,
    machine: std::cell::OnceCell<Rc<Program>>,
}

#[derive(Debug)]
enum Parts {
    /// Nothing inside that anyone asks for.
    Whole,
    Concatenation(Box<[Tree; 2]>),
    Alternation(Vec<Tree>),
    /// A group that is nothing but a group.
    Wrapper(Box<Tree>),
    Iteration(Box<Tree>, u16, Option<u16>),
}

/// Where each group is, by its number; the first is the whole match.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

impl Tree {
    fn new(traits: Traits, language: Rc<Language>, parts: Parts) -> Self {
        Self {
            traits,
            language,
            group: None,
            parts,
            machine: std::cell::OnceCell::new(),
        }
    }

    pub(super) fn of_alternation(alternation: &Alternation) -> Self {
        let mut branches: Vec<Self> = alternation
            .branches
            .iter()
            .map(|pieces| Self::of_branch(pieces))
            .collect();
        if branches.len() == 1 {
            return branches.remove(0);
        }
        let mut traits = Traits::of(Some(Preference::Longest));
        for branch in &branches {
            traits = traits.union(traits.union(branch.traits).outward());
        }
        let language = Rc::new(Language::Alternation(
            branches.iter().map(|branch| branch.language.clone()).collect(),
        ));
        let parts = if traits.is_divided() {
            Parts::Alternation(branches)
        } else {
            Parts::Whole
        };
        Self::new(traits, language, parts)
    }

    fn of_branch(pieces: &[Piece]) -> Self {
        let mut traits = Traits::default();
        let mut prefix = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            let (atom, min, max, preference) = match piece {
                Piece::Assertion(assertion) => {
                    prefix.push(Rc::new(Language::Assertion(*assertion)));
                    continue;
                }
                // What is repeated no times is as if it were not there.
                Piece::Repeated { max: Some(0), .. } => continue,
                Piece::Repeated {
                    atom,
                    min,
                    max,
                    preference,
                } => (atom, *min, *max, *preference),
            };
            let wanted = Traits::of(preference);
            let (atom, captures) = Self::of_atom(atom);
            let united = traits.union(wanted).union(atom.traits);
            if !captures && !united.outward().is_divided() {
                prefix.push(repeated(&atom.language, min, max));
                traits = united;
                continue;
            }
            // Something with an inside: what was before it, it, and what follows, each a part.
            let mut following = wanted.combined(atom.traits);
            let atom = Self::of_repetition(atom, min, max, wanted);
            let rest = Self::of_branch(&pieces[place + 1..]);
            following = following.union(following.combined(rest.traits));
            let language = concatenated(vec![atom.language.clone(), rest.language.clone()]);
            let following = Self::new(following, language, Parts::Concatenation(Box::new([atom, rest])));
            if prefix.is_empty() {
                return following;
            }
            let before = Self::new(traits, concatenated(prefix), Parts::Whole);
            let language = concatenated(vec![before.language.clone(), following.language.clone()]);
            let traits = traits.union(traits.combined(following.traits));
            return Self::new(traits, language, Parts::Concatenation(Box::new([before, following])));
        }
        Self::new(traits, concatenated(prefix), Parts::Whole)
    }

    /// An atom, and whether it is a group.
    fn of_atom(atom: &Atom) -> (Self, bool) {
        match atom {
            Atom::One(set) => {
                let language = Rc::new(Language::One(set.clone()));
                (Self::new(Traits::default(), language, Parts::Whole), false)
            }
            Atom::Group { number: None, content } => (Self::of_alternation(content), false),
            Atom::Group {
                number: Some(number),
                content,
            } => {
                let mut inner = Self::of_alternation(content);
                inner.traits.captures = true;
                if inner.group.is_some() {
                    let (traits, language) = (inner.traits, inner.language.clone());
                    inner = Self::new(traits, language, Parts::Wrapper(Box::new(inner)));
                }
                inner.group = Some(*number);
                (inner, true)
            }
        }
    }

    fn of_repetition(atom: Self, min: u16, max: Option<u16>, wanted: Traits) -> Self {
        let prefers = |traits: Traits| (traits.longest, traits.shortest, traits.mixed);
        let nothing = prefers(Traits::default());
        if (min, max) == (1, Some(1))
            && (prefers(wanted) == nothing
                || prefers(atom.traits) == nothing
                || prefers(wanted) == prefers(atom.traits))
        {
            return atom;
        }
        let traits = wanted.combined(atom.traits);
        let language = repeated(&atom.language, min, max);
        if !atom.traits.captures {
            return Self::new(traits, language, Parts::Whole);
        }
        if min > 0 {
            // Only the last round says where its groups are.
            let before = Traits {
                mixed: false,
                captures: false,
                ..traits
            };
            let before = Self::new(
                before,
                repeated(&atom.language, min - 1, max.map(|max| max - 1)),
                Parts::Whole,
            );
            return Self::new(traits, language, Parts::Concatenation(Box::new([before, atom])));
        }
        Self::new(traits, language, Parts::Iteration(Box::new(atom), min, max))
    }

    pub(super) fn language(&self) -> &Rc<Language> {
        &self.language
    }

    /// Whether the shortest match is the answer.
    pub(super) fn prefers_shortest(&self) -> bool {
        self.traits.shortest
    }

    pub(super) fn machine(&self, newline_anchors: bool) -> Result<Rc<Program>> {
        if let Some(machine) = self.machine.get() {
            return Ok(machine.clone());
        }
        let machine = Rc::new(Program::new(&self.language, newline_anchors)?);
        Ok(self.machine.get_or_init(|| machine).clone())
    }
}

fn repeated(language: &Rc<Language>, min: u16, max: Option<u16>) -> Rc<Language> {
    if (min, max) == (1, Some(1)) {
        return language.clone();
    }
    Rc::new(Language::Repetition(language.clone(), min, max))
}

fn concatenated(mut parts: Vec<Rc<Language>>) -> Rc<Language> {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        Rc::new(Language::Concatenation(parts))
    }
}

/// Takes matches of one text apart.
pub(super) struct Dissection<'a> {
    pub text: &'a [char],
    pub newline_anchors: bool,
}

impl Dissection<'_> {
    /// Says where the groups of a part are that is known to match from `begin` to `end`.
    pub(super) fn dissect(&self, tree: &Tree, begin: usize, end: usize, spans: &mut Spans) -> Result<()> {
        match &tree.parts {
            Parts::Whole => {}
            Parts::Wrapper(inner) => self.dissect(inner, begin, end, spans)?,
            Parts::Alternation(branches) => {
                for branch in branches {
                    if branch.machine(self.newline_anchors)?.takes(self.text, begin, end) {
                        self.dissect(branch, begin, end, spans)?;
                        break;
                    }
                }
            }
            Parts::Concatenation(parts) => {
                let [left, right] = &**parts;
                let (first, second) = (
                    left.machine(self.newline_anchors)?,
                    right.machine(self.newline_anchors)?,
                );
                let ends = first.ends(self.text, begin, end);
                let mut fits = |middle: &&usize| second.takes(self.text, **middle, end);
                let middle = if left.prefers_shortest() {
                    ends.iter().find(&mut fits)
                } else {
                    ends.iter().rev().find(&mut fits)
                };
                let middle = *middle.expect("the whole was found to match");
                self.dissect(left, begin, middle, spans)?;
                self.dissect(right, middle, end, spans)?;
            }
            Parts::Iteration(part, min, max) => {
                let rounds = self.rounds(part, usize::from(*min), *max, begin, end)?;
                // Of all rounds but the last nothing is known afterwards.
                if let [.., from, to] = rounds[..] {
                    self.dissect(part, from, to, spans)?;
                }
            }
        }
        if let Some(group) = tree.group {
            spans[group] = Some((begin, end));
        }
        Ok(())
    }

    /// The places between the rounds of an iteration; none if there is no round.
    fn rounds(&self, part: &Tree, min: usize, max: Option<u16>, begin: usize, end: usize) -> Result<Vec<usize>> {
        let machine = part.machine(self.newline_anchors)?;
        if min == 0 && begin == end && (part.prefers_shortest() || !machine.takes(self.text, begin, end)) {
            // Only a part that wants to be long is tried once for nothing.
            return Ok(Vec::new());
        }
        let min = min.max(1);
        let max = (end - begin).min(max.map_or(usize::MAX, usize::from)).max(min);
        // Empty rounds are for reaching the least number alone.
        let needs_empty = |round: usize, left: usize| round < min && min - round >= left;
        let mut places = vec![begin];
        let mut bound = if part.prefers_shortest() { begin } else { end };
        loop {
            let round = places.len();
            let from = places[round - 1];
            let next = if part.prefers_shortest() {
                if bound == from && bound != end && !needs_empty(round, end - bound) {
                    bound += 1;
                }
                if round >= max {
                    bound = end;
                }
                machine.shortest(self.text, from, bound, end)
            } else {
                machine.longest(self.text, from, bound)
            };
            let mut retried = round;
            match next {
                Some(next) => {
                    places.push(next);
                    if next == end {
                        if round >= min {
                            return Ok(places);
                        }
                    } else if round >= max {
                        retried = round - 1;
                    } else if part.prefers_shortest() || next != from || needs_empty(round, end - next) {
                        bound = if part.prefers_shortest() { next } else { end };
                        continue;
                    }
                }
                None => retried = round - 1,
            }
            // Another end for an earlier round.
            loop {
                assert!(retried > 0, "the whole was found to match");
                let (from, to) = (places[retried - 1], places[retried]);
                if part.prefers_shortest() {
                    if to < end {
                        bound = to + 1;
                        break;
                    }
                } else if to > from {
                    bound = to - 1;
                    if bound > from || needs_empty(retried, end - from) {
                        break;
                    }
                }
                retried -= 1;
            }
            places.truncate(retried);
        }
    }
}
