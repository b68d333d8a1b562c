//! Two queues, in the order in which pages will leave, by a [rule](super::rule) that may be another one each time.
//!
//! Promises: a name is in here once, from `admit` until its page is taken or found gone, or until `forget`. A call ends, whatever readers do
//! meanwhile; and of those that were used again it passes over so many for each page that it wants, however large the pool is. Pages that are held
//! are put aside, and leave the others a smaller pool; each call looks at as many of them as it wants pages, and at all when nothing else is left.
//!
//! New pages are on *probation*; *main* has those that are kept (2Q: Johnson and Shasha, VLDB 1994). While the pool is filling, main takes what
//! comes. What a use changes is seen when a page is the oldest of its queue: a reader moves nothing.
//!
//! - By reuse: who was used while on probation, or is loaded again sooner after its last use than the oldest of main has waited for its
//!   next, changes places with that one, which is on probation again.
//! - By frequency: who leaves probation takes the place of the oldest of main if it was used more often; else it goes.
//! - In turn: of the oldest of both queues the one goes that was used longer ago, unless it was used since; then it goes round.
//!
//! Knows pages only by what it is told when it looks.

use std::collections::VecDeque;

use super::rule::{By, Rule};
use crate::memory::uses::{Look, Tick, Uses};

/// To make room, so many pages are passed over because they were used again, and so many more for each page that is wanted; to admit one, as many
/// as for one. Then uses do not count any more in that call; the next one goes on from there.
const PASSED_OVER: (usize, usize) = (4_096, 64);

/// The pages whose names are in the queues.
pub(crate) trait Pages<Name> {
    /// What is to be seen of it. If it is gone, its name is in here no more.
    fn look(&mut self, name: Name) -> Look;

    /// That it was used again has been taken into account.
    fn spend(&mut self, name: Name);

    /// It goes now, and its name is in here no more, unless it is held or gone. Returns whether it does.
    fn take(&mut self, name: Name) -> bool;
}

/// Pages in the order in which they will be looked at.
struct Queue<Name> {
    waiting: VecDeque<Name>,
    /// Those that were held when they were looked at last.
    held: VecDeque<Name>,
}

/// A page that nobody holds.
struct Seen<Name> {
    name: Name,
    uses: Uses,
    again: bool,
}

impl<Name: Copy> Queue<Name> {
    fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// The oldest that nobody holds. It stays where it is.
    fn oldest(&mut self, pages: &mut impl Pages<Name>) -> Option<Seen<Name>> {
        while let Some(name) = self.waiting.front().copied() {
            match pages.look(name) {
                Look::Free { uses, again } => return Some(Seen { name, uses, again }),
                Look::Held => self.held.push_back(name),
                Look::Gone => {}
            }
            self.waiting.pop_front();
        }
        None
    }

    /// Looks at so many of those that were held; who was let go is in line again.
    fn look_at_held(&mut self, most: usize, pages: &mut impl Pages<Name>) {
        for _ in 0..self.held.len().min(most) {
            let name = self.held.pop_front().expect("as many as were counted");
            match pages.look(name) {
                Look::Free { .. } => self.waiting.push_back(name),
                Look::Held => self.held.push_back(name),
                Look::Gone => {}
            }
        }
    }

    /// Takes this one, which was the oldest, unless somebody has come to hold it.
    fn take(&mut self, name: Name, pages: &mut impl Pages<Name>) -> bool {
        let taken = pages.take(name);
        if !taken {
            self.held.push_back(name);
        }
        taken
    }
}

/// See the module.
pub(super) struct Queues<Name> {
    /// How many pages the pool holds.
    capacity: usize,
    /// How many waiting ones it holds when room has been made: without those that are held.
    room: usize,
    /// How many were wanted at a time: until they are made room for again, as many of those that came are on probation.
    batch: usize,
    /// How many pages may still be passed over in this call because they were used again.
    passes: usize,
    /// Nothing had to leave so far.
    filling: bool,
    probation: Queue<Name>,
    main: Queue<Name>,
}

impl<Name: Copy> Queues<Name> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            room: capacity,
            batch: 0,
            passes: 0,
            filling: true,
            probation: Queue::new(),
            main: Queue::new(),
        }
    }

    /// How many pages are left on probation when room has been made.
    fn on_probation(&self, rule: Rule) -> usize {
        let share = (self.capacity * rule.probation + 500) / 1_000;
        share.saturating_sub(self.batch).max(1)
    }

    fn main_has_room(&self, rule: Rule) -> bool {
        self.main.waiting.len() + self.on_probation(rule) < self.room
    }

    /// A page was loaded, whose uses were these before.
    pub(super) fn admit(&mut self, name: Name, before: Uses, rule: Rule, pages: &mut impl Pages<Name>) {
        self.passes = PASSED_OVER.1;
        if self.filling {
            if self.main_has_room(rule) {
                self.main.waiting.push_back(name);
                return;
            }
        } else if rule.by == By::Reuse
            && before.count > 0
            && !self.main_has_room(rule)
            && let Some(kept) = self.oldest_unused(pages)
            && kept.uses.last < before.last
        {
            self.main.waiting.pop_front();
            self.probation.waiting.push_back(kept.name);
            self.main.waiting.push_back(name);
            return;
        }
        self.probation.waiting.push_back(name);
    }

    /// The oldest of main, once those before it that were used have gone another round.
    fn oldest_unused(&mut self, pages: &mut impl Pages<Name>) -> Option<Seen<Name>> {
        // Readers may use pages faster than they are looked at: after one round uses do not count any more.
        for _ in 0..self.main.waiting.len() {
            let oldest = self.main.oldest(pages)?;
            if !oldest.again || !self.may_pass() {
                return Some(oldest);
            }
            pages.spend(oldest.name);
            self.main.waiting.rotate_left(1);
        }
        self.main.oldest(pages)
    }

    /// Whether one more page may be passed over in this call; it counts as one that was.
    fn may_pass(&mut self) -> bool {
        let may = self.passes > 0;
        self.passes = self.passes.saturating_sub(1);
        may
    }

    /// Takes one page after another until there are so many, or all that are left are held. Returns how many were taken.
    pub(super) fn make_room(&mut self, wanted: usize, rule: Rule, now: Tick, pages: &mut impl Pages<Name>) -> usize {
        if wanted == 0 {
            return 0;
        }
        self.filling = false;
        self.batch = wanted;
        self.passes = wanted.saturating_mul(PASSED_OVER.1).saturating_add(PASSED_OVER.0);
        let mut taken = 0;
        // A few of the held ones each time, so that they come back when they are released; all, if that is not enough.
        for of_held in [wanted, usize::MAX] {
            self.probation.look_at_held(of_held, pages);
            self.main.look_at_held(of_held, pages);
            self.room = self.waiting().saturating_sub(wanted - taken);
            while taken < wanted && self.evict(rule, now, pages) {
                taken += 1;
            }
            if taken == wanted {
                break;
            }
        }
        taken
    }

    fn evict(&mut self, rule: Rule, now: Tick, pages: &mut impl Pages<Name>) -> bool {
        if rule.by == By::Turn {
            return self.evict_in_turn(pages);
        }
        // As above: after so many looks uses on probation do not count any more.
        let mut looks = self.waiting();
        while self.probation.waiting.len() >= self.on_probation(rule) || self.main.waiting.is_empty() {
            let Some(candidate) = self.probation.oldest(pages) else {
                break;
            };
            self.probation.waiting.pop_front();
            if candidate.again {
                pages.spend(candidate.name);
            }
            if self.main_has_room(rule) {
                self.main.waiting.push_back(candidate.name);
                continue;
            }
            let again = candidate.again && looks > 0 && self.may_pass();
            looks = looks.saturating_sub(1);
            match (self.oldest_unused(pages), rule.by) {
                (None, _) if again => self.probation.waiting.push_back(candidate.name),
                (Some(kept), By::Reuse) if again => {
                    self.main.waiting.pop_front();
                    self.main.waiting.push_back(candidate.name);
                    self.probation.waiting.push_back(kept.name);
                }
                (Some(kept), By::Frequency) if candidate.uses.count_at(now) > kept.uses.count_at(now) => {
                    self.main.waiting.pop_front();
                    self.main.waiting.push_back(candidate.name);
                    if self.main.take(kept.name, pages) {
                        return true;
                    }
                }
                _ => {
                    if self.probation.take(candidate.name, pages) {
                        return true;
                    }
                }
            }
        }
        while let Some(oldest) = self.oldest_unused(pages) {
            self.main.waiting.pop_front();
            if self.main.take(oldest.name, pages) {
                return true;
            }
        }
        self.evict_in_turn(pages)
    }

    fn evict_in_turn(&mut self, pages: &mut impl Pages<Name>) -> bool {
        let mut looks = self.waiting();
        loop {
            let may_pass = looks > 0 && self.passes > 0;
            let (queue, oldest) = match (self.probation.oldest(pages), self.main.oldest(pages)) {
                (None, None) => return false,
                (Some(oldest), None) => (&mut self.probation, oldest),
                (None, Some(oldest)) => (&mut self.main, oldest),
                (Some(new), Some(kept)) if kept.uses.last <= new.uses.last => (&mut self.main, kept),
                (Some(new), Some(_)) => (&mut self.probation, new),
            };
            queue.waiting.pop_front();
            if oldest.again && may_pass {
                (looks, self.passes) = (looks - 1, self.passes - 1);
                pages.spend(oldest.name);
                self.probation.waiting.push_back(oldest.name);
            } else if queue.take(oldest.name, pages) {
                return true;
            }
        }
    }

    /// Forgets these.
    pub(super) fn forget(&mut self, gone: impl Fn(Name) -> bool) {
        for queue in [&mut self.probation, &mut self.main] {
            queue.waiting.retain(|name| !gone(*name));
            queue.held.retain(|name| !gone(*name));
        }
    }

    /// All names.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        [&self.probation, &self.main]
            .into_iter()
            .flat_map(|queue| queue.waiting.iter().chain(&queue.held))
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.waiting() + self.probation.held.len() + self.main.held.len()
    }

    /// How many names there is memory for.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        let queues = [&self.probation, &self.main].into_iter();
        queues
            .map(|queue| queue.waiting.capacity() + queue.held.capacity())
            .sum()
    }

    fn waiting(&self) -> usize {
        self.probation.waiting.len() + self.main.waiting.len()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests;
