//! Which plots show a scenario's figures: chosen by the form of its cases, never by its name.
//!
//! Promises: every series is in a plot of its metric and unit, or counted as omitted there. Cases that differ in one number,
//! three of them or more, become lines over that number; a system measured in a single other case becomes a level across
//! them; all else becomes bars, a group a case, with cases whose figures are of another size apart. Knows nothing of how a plot is drawn.

use super::family::Case;
use super::scale::{BARS_RATIO_MAX, Scale};
use crate::measurement::{Measurements, Series};
use crate::scenario::{LIMIT, Yardsticks};

/// Fewer differing numbers make no line.
const POINTS_MIN: usize = 3;
/// More levels hide the lines.
const LEVELS_MAX: usize = 4;
/// More bars are not looked at; the table has them.
const BARS_MAX: usize = 60;

/// A plot of one metric.
#[derive(Debug)]
pub(super) enum Plot<'a> {
    Lines(Lines<'a>),
    Bars(Bars<'a>),
}

/// A line a system.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    pub(super) metric: &'a str,
    pub(super) unit: &'a str,
    /// What the number counts.
    pub(super) axis: String,
    /// System and points, by number.
    pub(super) lines: Vec<(&'a str, Vec<Point<'a>>)>,
    /// Measured in one case that is not on the axis.
    pub(super) levels: Vec<&'a Series>,
}

/// A figure over its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) at: f64,
    pub(super) series: &'a Series,
}

/// A group a case, a bar a system.
#[derive(Debug)]
pub(super) struct Bars<'a> {
    pub(super) metric: &'a str,
    pub(super) unit: &'a str,
    pub(super) groups: Vec<(&'a str, Vec<&'a Series>)>,
    /// What the limit was in a case that no other system has.
    pub(super) level: Option<&'a Series>,
    /// Bars that were too many.
    pub(super) omitted: usize,
}

/// All plots of a run: by metric and unit, lines before bars.
pub(super) fn plots<'a>(measurements: &'a Measurements, yardsticks: &Yardsticks) -> Vec<Plot<'a>> {
    // Figures in different units have no place on one axis.
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    for series in measurements.series() {
        if !metrics.contains(&(&*series.metric, &*series.unit)) {
            metrics.push((&series.metric, &series.unit));
        }
    }
    let of = |metric: &str, unit: &str| {
        let all = measurements.series().iter();
        all.filter(|series| series.metric == metric && series.unit == unit)
            .collect::<Vec<_>>()
    };
    metrics
        .into_iter()
        .flat_map(|(metric, unit)| {
            let key = yardsticks.limit.as_ref();
            let limit = key.and_then(|key| measurements.find(&key.system, &key.case, metric));
            plots_of(metric, unit, of(metric, unit), limit.filter(|limit| limit.unit == unit))
        })
        .collect()
}

fn plots_of<'a>(metric: &'a str, unit: &'a str, all: Vec<&'a Series>, limit: Option<&'a Series>) -> Vec<Plot<'a>> {
    let (families, mut rest) = split(all);
    let mut lines: Vec<Lines<'_>> = families
        .into_iter()
        .map(|family| lines_of(metric, unit, &family))
        .collect();
    if !lines.is_empty() {
        let levels;
        (levels, rest) = take_levels(rest, &lines);
        for plot in &mut lines {
            plot.levels.clone_from(&levels);
        }
    }
    let mut plots: Vec<Plot<'_>> = lines.into_iter().map(Plot::Lines).collect();
    plots.extend(bars_of(metric, unit, rest, limit).into_iter().map(Plot::Bars));
    plots
}

/// Series whose cases differ in one number, and which.
struct Family<'a> {
    varying: usize,
    series: Vec<(Case<'a>, &'a Series)>,
}

impl Family<'_> {
    /// Whether some system has points enough for a line.
    fn makes_a_line(&self) -> bool {
        self.series.iter().any(|(_, one)| {
            let mut numbers: Vec<f64> = self
                .series
                .iter()
                .filter(|(_, series)| series.system == one.system)
                .filter_map(|(case, _)| case.numbers().nth(self.varying))
                .collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            numbers.len() >= POINTS_MIN
        })
    }
}

/// Takes apart what makes lines and what does not.
fn split<'a>(all: Vec<&'a Series>) -> (Vec<Family<'a>>, Vec<&'a Series>) {
    let mut families: Vec<Family<'a>> = Vec::new();
    let mut rest: Vec<(Case<'a>, &'a Series)> = all
        .into_iter()
        .map(|series| (Case::read(&series.case), series))
        .collect();
    // Of the ways to look at a case with several numbers, the one that has the most in common comes first.
    loop {
        let mut best: Option<(usize, usize, usize)> = None;
        for (at, (case, _)) in rest.iter().enumerate() {
            for varying in 0..case.numbers().len() {
                let family = members(&rest, at, varying);
                let count = family.series.len();
                if best.is_none_or(|(most, ..)| count > most) && family.makes_a_line() {
                    best = Some((count, at, varying));
                }
            }
        }
        let Some((_, at, varying)) = best else { break };
        let key = rest[at].0.family_but_for(varying);
        families.push(members(&rest, at, varying));
        rest.retain(|(case, _)| case.family_but_for(varying) != key);
    }
    (families, rest.into_iter().map(|(_, series)| series).collect())
}

/// What differs from the case at `at` in the number `varying` alone, or not at all.
fn members<'a>(all: &[(Case<'a>, &'a Series)], at: usize, varying: usize) -> Family<'a> {
    let key = all[at].0.family_but_for(varying);
    let is_member = |case: &Case<'_>| case.numbers().len() > varying && case.family_but_for(varying) == key;
    let series = all.iter().filter(|(case, _)| is_member(case)).cloned().collect();
    Family { varying, series }
}

fn lines_of<'a>(metric: &'a str, unit: &'a str, family: &Family<'a>) -> Lines<'a> {
    let number = |case: &Case<'_>| case.numbers().nth(family.varying).unwrap_or_default();
    let mut lines: Vec<(&str, Vec<Point<'_>>)> = Vec::new();
    let mut largest = &family.series[0].0;
    for (case, series) in &family.series {
        let at = number(case);
        // The largest number has its word in the plural.
        if at > number(largest) {
            largest = case;
        }
        let point = Point { at, series };
        match lines.iter_mut().find(|(system, _)| *system == series.system) {
            Some((_, points)) => points.push(point),
            None => lines.push((&series.system, vec![point])),
        }
    }
    for (_, points) in &mut lines {
        points.sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    Lines {
        metric,
        unit,
        axis: largest.without(family.varying),
        lines,
        levels: Vec::new(),
    }
}

/// A system without a line that was measured once is a level to see the lines against.
fn take_levels<'a>(rest: Vec<&'a Series>, lines: &[Lines<'a>]) -> (Vec<&'a Series>, Vec<&'a Series>) {
    let has_line = |system: &str| {
        lines
            .iter()
            .any(|plot| plot.lines.iter().any(|(name, _)| *name == system))
    };
    let cases = |system: &str| rest.iter().filter(|series| series.system == system).count();
    let is_level = |series: &&Series| cases(&series.system) == 1 && !has_line(&series.system);
    let (levels, bars): (Vec<_>, Vec<_>) = rest.iter().copied().partition(is_level);
    let one_case_is_left = bars.iter().all(|series| series.case == bars[0].case);
    if one_case_is_left && levels.len() + bars.len() <= LEVELS_MAX {
        // Bars of a single case would say less than levels do.
        return (rest, Vec::new());
    }
    if levels.len() > LEVELS_MAX {
        return (Vec::new(), rest);
    }
    (levels, bars)
}

/// Plots of bars, each of cases whose figures can be compared by length.
fn bars_of<'a>(metric: &'a str, unit: &'a str, mut rest: Vec<&'a Series>, limit: Option<&'a Series>) -> Vec<Bars<'a>> {
    let alone = take_lone_limit(&mut rest);
    let level = alone.or_else(|| limit.filter(|_| rest.iter().all(|series| series.system != LIMIT)));
    let mut plots = alike(rest);
    let suits = |plot: &[&Series]| {
        level.filter(|level| {
            if are_alike(plot.iter().copied()) {
                are_alike(plot.iter().chain([level]).copied())
            } else {
                // On a logarithmic axis there is a place for all but zero.
                level.min() > 0.0
            }
        })
    };
    if let Some(limit) = alone.filter(|_| plots.iter().all(|plot| suits(plot).is_none())) {
        plots.insert(0, vec![limit]);
    }
    plots
        .into_iter()
        .map(|plot| {
            let level = suits(&plot).filter(|level| !plot.contains(level));
            let omitted = plot.len().saturating_sub(BARS_MAX);
            let mut groups: Vec<(&str, Vec<&Series>)> = Vec::new();
            for series in plot.into_iter().take(BARS_MAX) {
                match groups.iter_mut().find(|(case, _)| *case == series.case) {
                    Some((_, group)) => group.push(series),
                    None => groups.push((&series.case, vec![series])),
                }
            }
            Bars {
                metric,
                unit,
                groups,
                level,
                omitted,
            }
        })
        .collect()
}

/// The limit in a case of its own is a level to see the bars against, not a bar that stands alone.
fn take_lone_limit<'a>(rest: &mut Vec<&'a Series>) -> Option<&'a Series> {
    let limits: Vec<&Series> = rest.iter().copied().filter(|series| series.system == LIMIT).collect();
    let [limit] = limits[..] else { return None };
    let is_shared = rest
        .iter()
        .any(|series| series.case == limit.case && series.system != LIMIT);
    if is_shared || rest.len() == 1 {
        return None;
    }
    rest.retain(|series| series.system != LIMIT);
    Some(limit)
}

/// Whether bars of all of them can be seen beside one another.
fn are_alike<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> bool {
    let ends = all.flat_map(|series| [series.min(), series.max()]);
    !Scale::fit(ends, BARS_RATIO_MAX, 0.0, 1.0).is_logarithmic()
}

/// Families of cases whose figures are alike together, others apart; in the order of the run.
fn alike(rest: Vec<&Series>) -> Vec<Vec<&Series>> {
    let mut families: Vec<(String, Vec<(usize, &Series)>)> = Vec::new();
    for (at, series) in rest.into_iter().enumerate() {
        let name = Case::read(&series.case).family();
        match families.iter_mut().find(|(known, _)| *known == name) {
            Some((_, family)) => family.push((at, series)),
            None => families.push((name, vec![(at, series)])),
        }
    }
    let mut plots: Vec<Vec<(usize, &Series)>> = Vec::new();
    for (_, family) in families {
        let fits = |plot: &&mut Vec<(usize, &Series)>| are_alike(plot.iter().chain(&family).map(|(_, series)| *series));
        match plots.iter_mut().find(fits) {
            Some(plot) => plot.extend(family),
            None => plots.push(family),
        }
    }
    let in_order = |mut plot: Vec<(usize, _)>| {
        plot.sort_by_key(|(at, _)| *at);
        plot.into_iter().map(|(_, series)| series).collect()
    };
    plots.into_iter().map(in_order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Key;
    use crate::measurement::Reading;

    fn measured(figures: &[(&str, &str)]) -> Measurements {
        let mut measurements = Measurements::default();
        for (system, case) in figures {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", 1.0)]);
        }
        measurements
    }

    /// `lines AXIS: system at number, …; levels` or `bars CASE: system, …`.
    fn told(measurements: &Measurements) -> Vec<String> {
        let yardsticks = Yardsticks {
            limit: Some(Key::new("limit", "bulk")),
            forebay: None,
        };
        let told = |plot: &Plot<'_>| match plot {
            Plot::Lines(plot) => {
                let lines = plot.lines.iter().map(|(system, points)| {
                    let points: Vec<String> = points.iter().map(|point| point.at.to_string()).collect();
                    format!("{system} {}", points.join(" "))
                });
                let levels: Vec<&str> = plot.levels.iter().map(|series| &*series.system).collect();
                format!(
                    "{}: {} [{}]",
                    plot.axis,
                    lines.collect::<Vec<_>>().join(", "),
                    levels.join(", ")
                )
            }
            Plot::Bars(plot) => {
                let groups = plot.groups.iter().map(|(case, group)| {
                    let systems: Vec<&str> = group.iter().map(|series| &*series.system).collect();
                    format!("{case} = {}", systems.join(", "))
                });
                format!(
                    "{} [{}]",
                    groups.collect::<Vec<_>>().join("; "),
                    u8::from(plot.level.is_some())
                )
            }
        };
        plots(measurements, &yardsticks).iter().map(told).collect()
    }

    #[test]
    fn a_number_that_grows_is_an_axis_and_what_stands_alone_a_level() {
        let measurements = measured(&[
            ("limit", "bulk"),
            ("one by one", "1 caller"),
            ("forebay", "1 caller"),
            ("forebay", "1,000 callers"),
            ("forebay", "10 callers"),
            ("by hand", "1,000 callers"),
            ("by hand", "10 callers, unique"),
            ("forebay", "10 callers, unique"),
            ("by hand", "10 callers, unique, 1 % bad"),
            ("forebay", "10 callers, unique, 1 % bad"),
        ]);
        assert_eq!(
            told(&measurements),
            [
                "callers: one by one 1, forebay 1 10 1000, by hand 1000 [limit]",
                "10 callers, unique = by hand, forebay; 10 callers, unique, 1 % bad = by hand, forebay [1]",
            ]
        );
    }

    #[test]
    fn of_two_numbers_the_one_that_makes_lines_varies() {
        let measurements = measured(&[
            ("forebay", "window 1 ms, 10 callers"),
            ("forebay", "window 2 ms, 10 callers"),
            ("forebay", "window 5 ms, 10 callers"),
            ("forebay", "window 1 ms, 20 callers"),
            ("forebay", "window 2 ms, 20 callers"),
            ("forebay", "window 5 ms, 20 callers"),
            ("forebay", "natural"),
        ]);
        assert_eq!(
            told(&measurements),
            [
                "window … ms, 10 callers: forebay 1 2 5 [forebay]",
                "window … ms, 20 callers: forebay 1 2 5 [forebay]",
            ]
        );
        let both_vary = measured(&[
            ("forebay", "window 100 ms, 1,000 callers"),
            ("forebay", "window 50 ms, 4,000 callers"),
            ("forebay", "window 1 ms, 10,000 callers"),
        ]);
        assert_eq!(
            told(&both_vary),
            [
                "window 100 ms, 1,000 callers = forebay; window 50 ms, 4,000 callers = forebay; window 1 ms, 10,000 callers = forebay [0]"
            ]
        );
    }

    #[test]
    fn what_has_no_number_or_too_few_becomes_bars() {
        let cases = [
            "50 clients, prepared",
            "50 clients, simple",
            "1 client, prepared",
            "<script>",
        ];
        let figures: Vec<_> = cases.iter().map(|case| ("forebay", *case)).collect();
        assert_eq!(
            told(&measured(&figures)),
            [
                "50 clients, prepared = forebay; 50 clients, simple = forebay; 1 client, prepared = forebay; <script> = forebay [0]"
            ]
        );
        // Three systems with a number each make no line.
        let apart = measured(&[("a", "1 caller"), ("b", "2 callers"), ("c", "3 callers")]);
        assert_eq!(told(&apart), ["1 caller = a; 2 callers = b; 3 callers = c [0]"]);
    }

    #[test]
    fn every_series_is_in_one_plot_or_counted() {
        let cases: Vec<String> = (0..100).map(|at| format!("case {}", "x".repeat(at))).collect();
        let figures: Vec<_> = cases.iter().map(|case| ("forebay", case.as_str())).collect();
        let measurements = measured(&figures);
        let plots = plots(&measurements, &Yardsticks::default());
        let [Plot::Bars(bars)] = &plots[..] else {
            panic!("{plots:?}");
        };
        assert_eq!((bars.groups.len(), bars.omitted), (60, 40));
    }

    #[test]
    fn no_series_is_lost_between_the_plots() {
        let systems = ["forebay", "limit", "a", "b", "c", "d", "e"];
        let cases = [
            "natural",
            "1 caller",
            "10 callers",
            "20 callers",
            "window 2 ms, 1 caller",
            "window 5 ms, 1 caller",
        ];
        // Every subset of systems and cases that a bit pattern picks.
        for pattern in 1..1_u64 << 10 {
            let pattern = pattern.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let pairs = systems
                .iter()
                .flat_map(|system| cases.iter().map(move |case| (*system, *case)));
            let figures: Vec<_> = pairs
                .enumerate()
                .filter(|(at, _)| pattern >> at & 1 == 1)
                .map(|(_, pair)| pair)
                .collect();
            let measurements = measured(&figures);
            let mut seen: Vec<&Series> = Vec::new();
            for plot in plots(&measurements, &Yardsticks::default()) {
                match plot {
                    Plot::Lines(plot) => {
                        seen.extend(
                            plot.lines
                                .iter()
                                .flat_map(|(_, points)| points.iter().map(|point| point.series)),
                        );
                        seen.extend(plot.levels);
                    }
                    Plot::Bars(plot) => {
                        seen.extend(plot.groups.iter().flat_map(|(_, group)| group));
                        seen.extend(plot.level);
                    }
                }
            }
            for series in measurements.series() {
                assert!(seen.contains(&series), "{series:?} of {figures:?}");
            }
        }
    }

    #[test]
    fn figures_in_different_units_are_not_on_one_axis() {
        let mut measurements = measured(&[("limit", "bulk"), ("forebay", "10 callers")]);
        measurements.add("forebay", "20 callers", &[Reading::new("rate", "calls/s", 1.0)]);
        assert_eq!(
            told(&measurements),
            ["10 callers = forebay [1]", "20 callers = forebay [0]"]
        );
    }

    #[test]
    fn bars_of_another_size_are_apart_and_the_limit_alone_is_a_level() {
        let mut measurements = Measurements::default();
        for (system, case, value) in [
            ("limit", "bare", 9e6),
            ("forebay", "50 clients, simple", 4e6),
            ("forebay", "1 client, simple", 1e6),
            ("forebay", "slow source", 10.0),
            ("forebay", "50 clients, extended", 2e6),
            ("forebay", "slower source", 3.0),
        ] {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
        }
        assert_eq!(
            told(&measurements),
            [
                "50 clients, simple = forebay; 1 client, simple = forebay; 50 clients, extended = forebay [1]",
                "slow source = forebay; slower source = forebay [0]",
            ]
        );
        let mut measurements = Measurements::default();
        for (system, case, value) in [("limit", "bare", 9e6), ("forebay", "slow source", 10.0)] {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
        }
        assert_eq!(
            told(&measurements),
            ["bare = limit [0]", "slow source = forebay [0]"],
            "no level suits"
        );
        measurements.add("peer", "slow source", &[Reading::new("rate", "rows/s", 1e5)]);
        assert_eq!(
            told(&measurements),
            ["slow source = forebay, peer [1]"],
            "logarithmic as it is"
        );
    }
}
