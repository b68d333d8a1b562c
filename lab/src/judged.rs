//! Goals and what became of them in a run: kept with its results, so that a report need not know the scenario.
//!
//! Promises: what was not measured is neither met nor missed; a bound that is just reached is met. What is kept is read back
//! as it was. Knows nothing of which figures a goal is about.

use serde::{Deserialize, Serialize};

use crate::figure::figure;

/// The side on which a measured figure should lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

/// A goal that was held against a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// In a person's words.
    pub(crate) text: String,
    /// What was hoped for.
    pub(crate) wanted: Wanted,
    /// None if one of the figures it needs was not measured.
    pub(crate) measured: Option<f64>,
    /// Of both figures; empty for a ratio.
    pub(crate) unit: String,
}

/// Whether what was hoped for came true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It did.
    Met,
    /// It did not.
    Missed,
    /// Nobody knows.
    NotMeasured,
}

impl Judged {
    /// How it ended.
    pub(crate) fn verdict(&self) -> Verdict {
        let is_met = |measured: f64| match self.wanted {
            Wanted::AtLeast(least) => measured >= least,
            Wanted::AtMost(most) => measured <= most,
        };
        match self.measured.map(is_met) {
            None => Verdict::NotMeasured,
            Some(true) => Verdict::Met,
            Some(false) => Verdict::Missed,
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let verdict = match self.verdict() {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::NotMeasured => "not measured",
        };
        let measured = self
            .measured
            .map_or_else(String::new, |measured| format!(": {}", figure(measured)));
        let (side, bound) = match self.wanted {
            Wanted::AtLeast(bound) => ("at least", bound),
            Wanted::AtMost(bound) => ("at most", bound),
        };
        format!("{verdict:<12} {} ({side} {}){measured}", self.text, figure(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_may_be_an_upper_bound_and_is_kept_and_read_back_with_its_verdict() {
        let judged = |wanted, measured| Judged {
            text: "few".into(),
            wanted,
            measured,
            unit: "allocations".into(),
        };
        for (judged, verdict) in [
            (judged(Wanted::AtMost(0.1), Some(0.1)), Verdict::Met),
            (judged(Wanted::AtMost(0.1), Some(0.2)), Verdict::Missed),
            (judged(Wanted::AtLeast(0.1), Some(0.1)), Verdict::Met),
            (judged(Wanted::AtLeast(0.1), Some(0.05)), Verdict::Missed),
            (judged(Wanted::AtLeast(0.1), None), Verdict::NotMeasured),
        ] {
            let kept = serde_json::to_string(&judged).unwrap();
            let read: Judged = serde_json::from_str(&kept).unwrap();
            assert_eq!((read.verdict(), &read), (verdict, &judged), "{kept}");
            let word = match verdict {
                Verdict::Met => "met ",
                Verdict::Missed => "MISSED ",
                Verdict::NotMeasured => "not measured ",
            };
            assert!(read.line().starts_with(word), "{}", read.line());
        }
    }
}
