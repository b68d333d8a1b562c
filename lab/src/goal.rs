//! Goals: what a ratio of two series of the same run should reach.
//!
//! Promises: a goal whose figures were not measured is neither met nor missed. A missed goal is shown and fails nothing:
//! machines differ, wrong outcomes do not.

use serde::{Deserialize, Serialize};

use crate::judged::Judged;
use crate::measurement::Measurements;

/// Names a series. Which metric, says the goal or the reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    /// `forebay`, `limit`, or a peer.
    pub(crate) system: String,
    /// Under what circumstances.
    pub(crate) case: String,
}

impl Key {
    /// That system in that case.
    pub(crate) fn new(system: impl Into<String>, case: impl Into<String>) -> Self {
        Self {
            system: system.into(),
            case: case.into(),
        }
    }
}

/// `ours` ÷ `theirs`, by their medians, is to be `ratio_min` at least.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// In a person's words.
    pub(crate) text: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) ours: Key,
    pub(crate) theirs: Key,
    pub(crate) ratio_min: f64,
}

impl Goal {
    /// The ratio that was measured, if both were.
    pub(crate) fn ratio(&self, measurements: &Measurements) -> Option<f64> {
        let median = |key: &Key| Some(measurements.find(&key.system, &key.case, self.metric)?.median());
        Some(median(&self.ours)? / median(&self.theirs)?)
    }

    /// What became of it in this run.
    pub(crate) fn judge(&self, measurements: &Measurements) -> Judged {
        Judged {
            text: self.text.to_owned(),
            wanted: Wanted::AtLeast(self.ratio_min),
            measured: self.ratio(measurements),
            unit: String::new(),
        }
    }

    /// One line for people.
    pub(crate) fn line(&self, measurements: &Measurements) -> String {
        self.judge(measurements).line()
    }
}

/// The side on which a measured figure should lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Reading;

    #[test]
    fn a_goal_is_judged_by_medians_and_only_when_both_were_measured() {
        let mut measurements = Measurements::default();
        let goal = Goal {
            text: "faster",
            metric: "rate",
            ours: Key::new("forebay", "a"),
            theirs: Key::new("limit", "b"),
            ratio_min: 0.6,
        };
        let mut add = |system, case, value| {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
            goal.line(&measurements)
        };
        assert!(add("forebay", "a", 60.0).starts_with("not measured"));
        assert!(add("limit", "b", 100.0).starts_with("met"));
        add("limit", "b", 1000.0);
        assert!(
            add("limit", "b", 1000.0).starts_with("MISSED"),
            "the median is 1000 now"
        );
    }
}
