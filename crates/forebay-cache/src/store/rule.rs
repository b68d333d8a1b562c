//! The rules that a [policy](super::policy) can follow: who goes when room is needed.
//!
//! No rule is best for all loads: where a few keys are used over and over, those must be kept against a stream of others; where what was used
//! just now is used next, the others. So there are four, and [trials](super::trials) tell which one suits.

/// What decides whether an entry on trial takes the place of one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// It came back sooner than the other one has been waiting to be used again (LIRS: Jiang and Zhang, SIGMETRICS 2002).
    Reuse,
    /// It was used more often (TinyLFU: Einziger, Friedman, Manes, ACM ToS 2017).
    Frequency,
    /// There are no two kinds: all go in turn, those that were used once more round (second chance, which comes close to LRU).
    Turn,
}

/// A rule: how much of the capacity is for entries on trial, and what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Of the capacity, in thousandths.
    pub(super) small: u64,
    pub(super) by: By,
}

/// The first one is followed until another one is known to be better. It keeps most of a loop that is larger than the store, which no
/// time is left to learn where it is short.
pub(super) const RULES: [Rule; 4] = [
    Rule {
        small: 5,
        by: By::Reuse,
    },
    Rule {
        small: 5,
        by: By::Frequency,
    },
    Rule {
        small: 100,
        by: By::Reuse,
    },
    Rule {
        small: 1_000,
        by: By::Turn,
    },
];
