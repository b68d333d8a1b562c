//! Goals: what a figure should reach, or stay below, alone or beside others of the same run.
//!
//! Promises: a goal whose figures were not measured is neither met nor missed. A missed goal is shown and fails nothing:
//! machines differ, wrong outcomes do not.

use serde::{Deserialize, Serialize};

use crate::judged::{Judged, Wanted};
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

/// What a figure of ours is to be, alone or beside others of the same run. Figures are medians.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// In a person's words.
    pub(crate) text: String,
    pub(crate) metric: &'static str,
    pub(crate) ours: Key,
    pub(crate) beside: Beside,
    pub(crate) wanted: Wanted,
}

/// What our figure is held against.
#[derive(Debug, Clone)]
pub(crate) enum Beside {
    /// Nothing: it counts as it is.
    Nothing,
    /// `ours` ÷ each of these that was measured; the one that is hardest to reach counts.
    Ratio(Vec<Key>),
    /// `ours` − this.
    Difference(Key),
    /// `ours` − each of these that was measured; the one that is hardest to reach counts.
    DifferenceToBest(Vec<Key>),
    /// `ours` ÷ another metric of this.
    RatioToMetric(&'static str, Key),
    /// As `Ratio`, to those of these whose other metric is so much or more.
    RatioWhere {
        metric: &'static str,
        at_least: f64,
        theirs: Vec<Key>,
    },
}

impl Goal {
    /// The figure that is judged, if what it needs was measured.
    pub(crate) fn measured(&self, measurements: &Measurements) -> Option<f64> {
        let median_of = |metric: &str, key: &Key| Some(measurements.find(&key.system, &key.case, metric)?.median());
        let median = |key: &Key| median_of(self.metric, key);
        let ours = median(&self.ours)?;
        match &self.beside {
            Beside::Nothing => Some(ours),
            Beside::Ratio(theirs) => self.hardest(theirs.iter().filter_map(median).map(|theirs| ours / theirs)),
            Beside::Difference(theirs) => Some(ours - median(theirs)?),
            Beside::DifferenceToBest(theirs) => {
                self.hardest(theirs.iter().filter_map(median).map(|theirs| ours - theirs))
            }
            Beside::RatioToMetric(metric, theirs) => Some(ours / median_of(metric, theirs)?),
            Beside::RatioWhere {
                metric,
                at_least,
                theirs,
            } => {
                let counts = |key: &&Key| median_of(metric, key).is_some_and(|figure| figure >= *at_least);
                let theirs = theirs.iter().filter(counts).filter_map(median);
                self.hardest(theirs.map(|theirs| ours / theirs))
            }
        }
    }

    /// Where this one is on the right side, all are.
    fn hardest(&self, figures: impl Iterator<Item = f64>) -> Option<f64> {
        match self.wanted {
            Wanted::AtLeast(_) => figures.min_by(f64::total_cmp),
            Wanted::AtMost(_) => figures.max_by(f64::total_cmp),
        }
    }

    /// Every series that it names.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<&Key> {
        let theirs = match &self.beside {
            Beside::Nothing => &[][..],
            Beside::Ratio(theirs) | Beside::DifferenceToBest(theirs) | Beside::RatioWhere { theirs, .. } => theirs,
            Beside::Difference(theirs) | Beside::RatioToMetric(_, theirs) => std::slice::from_ref(theirs),
        };
        std::iter::once(&self.ours).chain(theirs).collect()
    }

    /// What became of it in this run.
    pub(crate) fn judge(&self, measurements: &Measurements) -> Judged {
        let ours = measurements.find(&self.ours.system, &self.ours.case, self.metric);
        let unit = ours.map(|ours| ours.unit.to_string()).unwrap_or_default();
        let unit = match self.beside {
            // A ratio has none.
            Beside::Ratio(_) | Beside::RatioToMetric(..) | Beside::RatioWhere { .. } => String::new(),
            // 2 % are one point more than 1 %, not one percent more.
            Beside::Difference(_) | Beside::DifferenceToBest(_) if unit == "%" => "points".to_owned(),
            Beside::Nothing | Beside::Difference(_) | Beside::DifferenceToBest(_) => unit,
        };
        Judged {
            text: self.text.clone(),
            wanted: self.wanted,
            measured: self.measured(measurements),
            unit,
        }
    }

    /// One line for people.
    pub(crate) fn line(&self, measurements: &Measurements) -> String {
        self.judge(measurements).line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Reading;

    #[test]
    fn a_goal_is_judged_by_medians_and_only_when_both_were_measured() {
        let mut measurements = Measurements::default();
        let goal = Goal {
            text: "faster".to_owned(),
            metric: "rate",
            ours: Key::new("forebay", "a"),
            beside: Beside::Ratio(vec![Key::new("limit", "b")]),
            wanted: Wanted::AtLeast(0.6),
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

    /// `forebay` has 6, the peers 2 and 3; a third peer was not measured.
    fn line(beside: Beside, wanted: Wanted) -> String {
        let mut measurements = Measurements::default();
        for (system, value) in [("forebay", 6.0), ("slow", 2.0), ("fast", 3.0)] {
            measurements.add(system, "a", &[Reading::new("rate", "rows/s", value)]);
        }
        let goal = Goal {
            text: "rate".to_owned(),
            metric: "rate",
            ours: Key::new("forebay", "a"),
            beside,
            wanted,
        };
        goal.line(&measurements)
    }

    fn keys(systems: &[&str]) -> Vec<Key> {
        systems.iter().map(|system| Key::new(*system, "a")).collect()
    }

    #[test]
    fn of_several_ratios_the_one_hardest_to_reach_counts() {
        let peers = || Beside::Ratio(keys(&["slow", "absent", "fast"]));
        assert_eq!(
            line(peers(), Wanted::AtLeast(2.0)),
            "met          rate (at least 2.00): 2.00"
        );
        assert!(line(peers(), Wanted::AtLeast(2.5)).starts_with("MISSED"));
        assert_eq!(
            line(peers(), Wanted::AtMost(3.0)),
            "met          rate (at most 3.00): 3.00"
        );
        assert!(line(peers(), Wanted::AtMost(2.5)).starts_with("MISSED"));
        let absent = line(Beside::Ratio(keys(&["absent"])), Wanted::AtLeast(1.0));
        assert!(absent.starts_with("not measured"), "{absent}");
    }

    #[test]
    fn a_figure_may_be_judged_alone_or_by_its_difference() {
        assert!(line(Beside::Nothing, Wanted::AtLeast(6.0)).starts_with("met"));
        assert!(line(Beside::Nothing, Wanted::AtMost(5.0)).starts_with("MISSED"));
        let difference = |system| Beside::Difference(Key::new(system, "a"));
        assert!(line(difference("fast"), Wanted::AtMost(3.0)).starts_with("met"));
        assert!(line(difference("slow"), Wanted::AtMost(3.0)).starts_with("MISSED"));
        assert!(line(difference("absent"), Wanted::AtMost(3.0)).starts_with("not measured"));
    }

    #[test]
    fn of_several_differences_the_one_hardest_to_reach_counts() {
        let peers = || Beside::DifferenceToBest(keys(&["slow", "absent", "fast"]));
        assert_eq!(
            line(peers(), Wanted::AtLeast(3.0)),
            "met          rate (at least 3.00): 3.00"
        );
        assert!(line(peers(), Wanted::AtLeast(3.5)).starts_with("MISSED"));
        assert!(line(peers(), Wanted::AtMost(4.0)).starts_with("met"));
        assert!(line(peers(), Wanted::AtMost(3.5)).starts_with("MISSED"));
        let absent = line(Beside::DifferenceToBest(keys(&["absent"])), Wanted::AtLeast(-1.0));
        assert!(absent.starts_with("not measured"), "{absent}");
    }

    #[test]
    fn a_difference_of_percentages_is_in_points() {
        let unit = |beside, unit| {
            let mut measurements = Measurements::default();
            measurements.add("forebay", "a", &[Reading::new("part", unit, 50.0)]);
            let goal = Goal {
                text: "part".to_owned(),
                metric: "part",
                ours: Key::new("forebay", "a"),
                beside,
                wanted: Wanted::AtLeast(0.0),
            };
            goal.judge(&measurements).unit
        };
        assert_eq!(unit(Beside::DifferenceToBest(keys(&["slow"])), "%"), "points");
        assert_eq!(unit(Beside::Difference(Key::new("slow", "a")), "%"), "points");
        assert_eq!(unit(Beside::DifferenceToBest(keys(&["slow"])), "ms"), "ms");
        assert_eq!(unit(Beside::Nothing, "%"), "%");
    }

    #[test]
    fn a_figure_is_held_against_another_metric_or_only_against_those_that_it_speaks_of() {
        let mut measurements = Measurements::default();
        for (system, p50, p99, failed) in [
            ("forebay", 1.0, 4.0, 0.0),
            ("well", 8.0, 9.0, 0.0),
            ("ill", 2.0, 80.0, 20.0),
        ] {
            let readings = [("P50", p50), ("P99", p99), ("failed", failed)];
            measurements.add(
                system,
                "a",
                &readings.map(|(metric, value)| Reading::new(metric, "ms", value)),
            );
        }
        let goal = |beside, wanted| Goal {
            text: "quick".to_owned(),
            metric: "P99",
            ours: Key::new("forebay", "a"),
            beside,
            wanted,
        };
        let judged = |beside| goal(beside, Wanted::AtMost(1.0)).judge(&measurements);
        let to_p50 = judged(Beside::RatioToMetric("P50", Key::new("well", "a")));
        assert_eq!((to_p50.measured, &*to_p50.unit), (Some(0.5), ""));
        assert_eq!(
            judged(Beside::RatioToMetric("P50", Key::new("absent", "a"))).measured,
            None
        );
        let to_those_that_fail = |at_least| {
            judged(Beside::RatioWhere {
                metric: "failed",
                at_least,
                theirs: keys(&["well", "ill", "absent"]),
            })
        };
        let to_ill = to_those_that_fail(1.0);
        assert_eq!((to_ill.measured, &*to_ill.unit), (Some(0.05), ""));
        assert_eq!(to_those_that_fail(0.0).measured, Some(4.0 / 9.0), "the hardest of both");
        assert_eq!(to_those_that_fail(21.0).measured, None, "nobody is ill enough");
    }
}
