//! Figures: one reading a round, gathered into a series a metric.
//!
//! Promises: a series is told by its median, minimum and maximum, never by a mean that one disturbed round shifts.
//! Knows nothing of what was measured.

use std::borrow::Cow;

/// One figure of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// What was measured.
    pub(crate) metric: &'static str,
    /// In what.
    pub(crate) unit: &'static str,
    /// How much.
    pub(crate) value: f64,
}

impl Reading {
    /// That much of that.
    pub(crate) fn new(metric: &'static str, unit: &'static str, value: f64) -> Self {
        Self { metric, unit, value }
    }
}

/// The readings of all rounds of one metric of one system in one case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Under what circumstances.
    pub(crate) case: String,
    /// `forebay`, `limit`, or a peer.
    pub(crate) system: String,
    /// What was measured.
    pub(crate) metric: Cow<'static, str>,
    /// In what.
    pub(crate) unit: Cow<'static, str>,
    /// In the order of the rounds; never empty.
    pub(crate) values: Vec<f64>,
}

impl Series {
    /// The middle one, or the mean of the middle two.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        }
    }

    /// The least.
    pub(crate) fn min(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The most.
    pub(crate) fn max(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// All series of a run, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    series: Vec<Series>,
}

impl Measurements {
    /// What was kept of a run.
    pub(crate) fn of(series: Vec<Series>) -> Self {
        Self { series }
    }

    /// Adds what one round of one system in one case has given.
    pub(crate) fn add(&mut self, system: &str, case: &str, readings: &[Reading]) {
        for reading in readings {
            let known = self
                .series
                .iter_mut()
                .find(|series| series.system == system && series.case == case && series.metric == reading.metric);
            match known {
                Some(series) => series.values.push(reading.value),
                None => self.series.push(Series {
                    case: case.to_owned(),
                    system: system.to_owned(),
                    metric: reading.metric.into(),
                    unit: reading.unit.into(),
                    values: vec![reading.value],
                }),
            }
        }
    }

    /// Forgets what one system in one case has given.
    pub(crate) fn remove(&mut self, system: &str, case: &str) {
        self.series
            .retain(|series| series.system != system || series.case != case);
    }

    /// All of them.
    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }

    /// One of them, if it was measured.
    pub(crate) fn find(&self, system: &str, case: &str, metric: &str) -> Option<&Series> {
        self.series
            .iter()
            .find(|series| series.system == system && series.case == case && series.metric == metric)
    }

    /// Orders the series as these (system, case) pairs are ordered: rounds run in changing order, reports do not.
    pub(crate) fn order_as(&mut self, order: &[(String, String)]) {
        self.series.sort_by_key(|series| {
            order
                .iter()
                .position(|(system, case)| *system == series.system && *case == series.case)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        let mut measurements = Measurements::default();
        for value in values {
            measurements.add("forebay", "case", &[Reading::new("rows", "rows/s", *value)]);
        }
        assert_eq!(measurements.series().len(), 1);
        measurements.series()[0].clone()
    }

    #[test]
    fn a_series_is_told_by_its_middle_and_its_ends() {
        let odd = series(&[9.0, 1.0, 5.0]);
        assert_eq!((odd.median(), odd.min(), odd.max()), (5.0, 1.0, 9.0));
        assert_eq!(series(&[4.0, 1.0, 2.0, 100.0]).median(), 3.0);
        assert_eq!(series(&[7.0]).median(), 7.0);
    }

    #[test]
    fn series_are_kept_apart_and_reported_in_the_order_asked_for() {
        let mut measurements = Measurements::default();
        let reading = [Reading::new("rows", "rows/s", 1.0), Reading::new("p50", "ms", 2.0)];
        measurements.add("peer", "b", &reading);
        measurements.add("forebay", "b", &reading);
        measurements.add("forebay", "a", &reading);
        measurements.add("peer", "b", &reading);
        let order = [("forebay", "a"), ("peer", "b"), ("forebay", "b")];
        let order = order.map(|(system, case)| (system.to_owned(), case.to_owned()));
        measurements.order_as(&order);
        let seen: Vec<_> = measurements
            .series()
            .iter()
            .map(|series| (&*series.system, &*series.case, &*series.metric, series.values.len()))
            .collect();
        assert_eq!(
            seen,
            [
                ("forebay", "a", "rows", 1),
                ("forebay", "a", "p50", 1),
                ("peer", "b", "rows", 2),
                ("peer", "b", "p50", 2),
                ("forebay", "b", "rows", 1),
                ("forebay", "b", "p50", 1),
            ]
        );
        assert!(measurements.find("peer", "b", "p50").is_some());
        assert!(measurements.find("peer", "a", "p50").is_none());
    }
}
