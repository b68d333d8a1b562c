//! Figures: one reading a round, gathered into a series a metric; and courses, a figure followed through one turn.
//!
//! Promises: a series is told by its median, minimum and maximum, never by a mean that one disturbed round shifts; a course
//! keeps its highest points. Knows nothing of what was measured.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Bytes.
pub(crate) const MIB: f64 = 1_048_576.0;
/// A course with more points is told by the highest of neighbours: no plot is wide enough for more.
const COURSE_POINTS_MAX: usize = 500;

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

/// A figure over the seconds of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Course {
    /// What was measured.
    pub(crate) metric: String,
    /// In what.
    pub(crate) unit: String,
    /// What it should stay below, and what that is called.
    pub(crate) bound: Option<(String, f64)>,
    /// Seconds, in order, and the figure then.
    points: Vec<(f64, f64)>,
}

impl Course {
    /// That, at these seconds.
    pub(crate) fn new(metric: impl Into<String>, unit: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let neighbours = points.len().div_ceil(COURSE_POINTS_MAX).max(1);
        let highest = |points: &[(f64, f64)]| points.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
        Self {
            metric: metric.into(),
            unit: unit.into(),
            bound: None,
            points: points.chunks(neighbours).filter_map(highest).collect(),
        }
    }

    /// With what it should stay below.
    pub(crate) fn bounded(self, name: impl Into<String>, bound: f64) -> Self {
        Self {
            bound: Some((name.into(), bound)),
            ..self
        }
    }

    /// Seconds, in order, and the figure then.
    pub(crate) fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The highest figure; none is below all others.
    pub(crate) fn most(&self) -> f64 {
        self.points
            .iter()
            .map(|(_, figure)| *figure)
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Whose course it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CourseOf {
    /// `forebay`, `limit`, or a peer.
    pub(crate) system: String,
    /// Under what circumstances.
    pub(crate) case: String,
    #[serde(flatten)]
    pub(crate) course: Course,
}

/// All series of a run, in the order in which they were first seen, and the courses of each trial's last turn.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    series: Vec<Series>,
    courses: Vec<CourseOf>,
}

impl Measurements {
    /// What was kept of a run.
    pub(crate) fn of(series: Vec<Series>) -> Self {
        Self {
            series,
            courses: Vec::new(),
        }
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

    /// Keeps the course of one system's last turn in one case, in place of the one before.
    pub(crate) fn follow(&mut self, system: &str, case: &str, course: Course) {
        let of = CourseOf {
            system: system.to_owned(),
            case: case.to_owned(),
            course,
        };
        let is_same = |known: &&mut CourseOf| {
            known.system == system && known.case == case && known.course.metric == of.course.metric
        };
        match self.courses.iter_mut().find(is_same) {
            Some(known) => *known = of,
            None => self.courses.push(of),
        }
    }

    /// Forgets what one system in one case has given.
    pub(crate) fn remove(&mut self, system: &str, case: &str) {
        self.series
            .retain(|series| series.system != system || series.case != case);
        self.courses
            .retain(|course| course.system != system || course.case != case);
    }

    /// All courses.
    pub(crate) fn courses(&self) -> &[CourseOf] {
        &self.courses
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

    /// Orders series and courses as these (system, case) pairs are ordered: rounds run in changing order, reports do not.
    pub(crate) fn order_as(&mut self, order: &[(String, String)]) {
        let place_of = |of_system: &str, of_case: &str| {
            order
                .iter()
                .position(|(system, case)| system == of_system && case == of_case)
        };
        self.series.sort_by_key(|series| place_of(&series.system, &series.case));
        self.courses
            .sort_by_key(|course| place_of(&course.system, &course.case));
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

    #[test]
    fn a_course_keeps_its_highest_points_and_a_trial_the_course_of_its_last_turn() {
        let points: Vec<(f64, f64)> = (0..4_000)
            .map(|at| (f64::from(at), if at == 1_234 { 9.0 } else { 1.0 }))
            .collect();
        let course = Course::new("memory", "MiB", &points).bounded("cap", 8.0);
        assert!(course.points().len() <= COURSE_POINTS_MAX);
        assert_eq!(course.most(), 9.0);
        assert!(course.points().contains(&(1_234.0, 9.0)));
        assert_eq!(Course::new("memory", "MiB", &[]).points(), []);

        let mut measurements = Measurements::default();
        measurements.follow("forebay", "b", Course::new("memory", "MiB", &[(0.0, 1.0)]));
        measurements.follow("forebay", "a", course.clone());
        measurements.follow("forebay", "b", course.clone());
        measurements.order_as(&["a", "b"].map(|case| ("forebay".to_owned(), case.to_owned())));
        let cases: Vec<_> = measurements.courses().iter().map(|course| &*course.case).collect();
        assert_eq!(cases, ["a", "b"]);
        assert_eq!(measurements.courses()[1].course, course);
        measurements.remove("forebay", "a");
        assert_eq!(measurements.courses().len(), 1);
    }
}
