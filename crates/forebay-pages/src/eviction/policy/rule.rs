//! The rules that [queues](super::queues) can follow: which page goes when room is needed.
//!
//! No rule is best for all loads: where a few pages are used over and over, those must be kept against a stream of others; where what was used just
//! now is used next, the others. So there are four, and [trials](super::trials) tell which one suits. The cache has
//! the same four (decision 0005), over queues of its own: its entries differ in weight, and are never held.

/// What decides whether a page on probation takes the place of one in main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// It came back sooner than the other one has been waiting to be used again (LIRS: Jiang and Zhang, SIGMETRICS 2002).
    Reuse,
    /// It was used more often (TinyLFU: Einziger, Friedman, Manes, ACM ToS 2017).
    Frequency,
    /// There are no two kinds: all go in turn, those that were used once more round (CLOCK: Corbató, 1968), which comes close to LRU.
    Turn,
}

/// A rule: how many pages are on probation, and what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Of the pool, in thousandths.
    pub(super) probation: usize,
    pub(super) by: By,
}

/// The first one is followed until another one is known to be better. It keeps most of a loop that is larger than the pool.
pub(super) const RULES: [Rule; 4] = [
    Rule {
        probation: 5,
        by: By::Reuse,
    },
    Rule {
        probation: 5,
        by: By::Frequency,
    },
    Rule {
        probation: 100,
        by: By::Reuse,
    },
    Rule {
        probation: 1_000,
        by: By::Turn,
    },
];
