//! Part of an expression as a machine that reads one character at a time and says where a match may end.
//!
//! Ken Thompson's construction, run over sets of states: time is characters times states, whatever the expression. It has no preference of
//! its own, so that both the longest and the shortest end are found; which of them is wanted is the tree's to know.

use std::rc::Rc;

use super::syntax::{Assertion, Set};
use crate::text::characters::{Class, within};
use crate::{Result, ValueError, interruption};

/// So many characters are read between two looks whether somebody still waits.
const STEPS_BETWEEN_LOOKS: usize = 4096;

/// What texts a part takes, without groups and preferences.
#[derive(Debug, Clone)]
pub(super) enum Language {
    One(Set),
    Assertion(Assertion),
    Concatenation(Vec<Rc<Language>>),
    Alternation(Vec<Rc<Language>>),
    Repetition(Rc<Language>, u16, Option<u16>),
}

/// Beyond this an expression is refused: repeated repetitions grow as powers.
const STATES_MAX: usize = 50_000;

#[derive(Debug)]
enum State {
    One(Set, usize),
    Assertion(Assertion, usize),
    Fork(usize, usize),
    End,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Program {
    states: Vec<State>,
    start: usize,
    newline_anchors: bool,
}

impl Program {
    pub(super) fn new(language: &Language, newline_anchors: bool) -> Result<Self> {
        let mut program = Self {
            states: vec![State::End],
            start: 0,
            newline_anchors,
        };
        program.start = program.add(language, 0)?;
        Ok(program)
    }

    fn push(&mut self, state: State) -> Result<usize> {
        if self.states.len() >= STATES_MAX {
            return Err(ValueError::unsupported("regular expressions of this size are"));
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    /// States for a language before the state `next`; where they start.
    fn add(&mut self, language: &Language, next: usize) -> Result<usize> {
        match language {
            Language::One(set) => self.push(State::One(set.clone(), next)),
            Language::Assertion(assertion) => self.push(State::Assertion(*assertion, next)),
            Language::Concatenation(parts) => parts.iter().rev().try_fold(next, |next, part| self.add(part, next)),
            Language::Alternation(branches) => {
                let mut start = None;
                for branch in branches {
                    let branch = self.add(branch, next)?;
                    start = Some(match start {
                        Some(others) => self.push(State::Fork(others, branch))?,
                        None => branch,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Language::Repetition(part, min, max) => {
                let mut start = next;
                match max {
                    None => {
                        let fork = self.push(State::Fork(next, next))?;
                        let body = self.add(part, fork)?;
                        self.states[fork] = State::Fork(body, next);
                        start = fork;
                    }
                    Some(max) => {
                        for _ in *min..*max {
                            let body = self.add(part, start)?;
                            start = self.push(State::Fork(body, next))?;
                        }
                    }
                }
                (0..*min).try_fold(start, |next, _| self.add(part, next))
            }
        }
    }

    /// The last place up to `limit` where a match from `begin` may end.
    pub(super) fn longest(&self, text: &[char], begin: usize, limit: usize) -> Option<usize> {
        let mut found = None;
        self.run(text, begin, limit, |at| {
            found = Some(at);
            true
        });
        found
    }

    /// The first place from `least` to `limit` where a match from `begin` may end.
    pub(super) fn shortest(&self, text: &[char], begin: usize, least: usize, limit: usize) -> Option<usize> {
        let mut found = None;
        self.run(text, begin, limit, |at| {
            if at >= least {
                found = Some(at);
            }
            found.is_none()
        });
        found
    }

    /// All places up to `limit` where a match from `begin` may end, in order.
    pub(super) fn ends(&self, text: &[char], begin: usize, limit: usize) -> Vec<usize> {
        let mut found = Vec::new();
        self.run(text, begin, limit, |at| {
            found.push(at);
            true
        });
        found
    }

    /// Whether the whole from `begin` to `end` matches.
    pub(super) fn takes(&self, text: &[char], begin: usize, end: usize) -> bool {
        self.longest(text, begin, end) == Some(end)
    }

    /// Tells `ended` each place where a match may end, until it says that it knows enough.
    fn run(&self, text: &[char], begin: usize, limit: usize, mut ended: impl FnMut(usize) -> bool) {
        let mut seen = vec![usize::MAX; self.states.len()];
        let (mut now, mut then, mut pending) = (Vec::new(), Vec::new(), vec![self.start]);
        let mut at = begin;
        loop {
            if (at - begin).is_multiple_of(STEPS_BETWEEN_LOOKS) && interruption::is_due() {
                return;
            }
            now.clear();
            let mut ends = false;
            while let Some(state) = pending.pop() {
                if seen[state] == at {
                    continue;
                }
                seen[state] = at;
                match &self.states[state] {
                    State::End => ends = true,
                    State::One(set, next) => now.push((set, *next)),
                    State::Fork(one, other) => pending.extend([*one, *other]),
                    State::Assertion(assertion, next) => {
                        if self.holds(*assertion, text, at) {
                            pending.push(*next);
                        }
                    }
                }
            }
            if (ends && !ended(at)) || at >= limit {
                return;
            }
            let character = u32::from(text[at]);
            then.clear();
            then.extend(
                now.iter()
                    .filter(|(set, _)| within(set, character))
                    .map(|(_, next)| *next),
            );
            if then.is_empty() {
                return;
            }
            std::mem::swap(&mut pending, &mut then);
            at += 1;
        }
    }

    fn holds(&self, assertion: Assertion, text: &[char], at: usize) -> bool {
        let before = || {
            at.checked_sub(1)
                .is_some_and(|before| Class::Word.contains(text[before]))
        };
        let after = || text.get(at).is_some_and(|after| Class::Word.contains(*after));
        match assertion {
            Assertion::TextStart => at == 0,
            Assertion::TextEnd => at == text.len(),
            Assertion::LineStart => at == 0 || (self.newline_anchors && text[at - 1] == '\n'),
            Assertion::LineEnd => at == text.len() || (self.newline_anchors && text[at] == '\n'),
            Assertion::WordStart => !before() && after(),
            Assertion::WordEnd => before() && !after(),
            Assertion::WordBoundary => before() != after(),
            Assertion::NoWordBoundary => before() == after(),
        }
    }
}
