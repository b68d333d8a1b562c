//! Which plots show a scenario's figures: chosen by the form of its cases, never by its name.
//!
//! Promises: every series is in a plot of its metric and unit, or counted as omitted there. Cases that differ in one number,
//! three of them or more, become lines over that number; a system measured in a single other case becomes a level across
//! them; all else becomes bars, a group a case, with cases whose figures are of another size apart. Knows nothing of how a
//! plot is drawn.

mod bars;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) use self::bars::Bars;
use super::family::Case;
use crate::measurement::{Measurements, Series};
use crate::scenario::Yardsticks;

/// Fewer differing numbers make no line.
const POINTS_MIN: usize = 3;
/// More levels hide the lines.
const LEVELS_MAX: usize = 4;

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
    plots.extend(bars::plots(metric, unit, rest, limit).into_iter().map(Plot::Bars));
    plots
}

/// Series whose cases differ in one number, and which.
struct Family<'a> {
    varying: usize,
    series: Vec<(Case<'a>, &'a Series)>,
}

/// Whether some system among these members has points enough for a line.
fn make_a_line(rest: &[(Case<'_>, &Series)], members: &[usize], varying: usize) -> bool {
    let mut points: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (case, series) in members.iter().map(|at| &rest[*at]) {
        let numbers = points.entry(&series.system).or_default();
        numbers.extend(case.numbers().nth(varying).filter(|number| !numbers.contains(number)));
    }
    points.values().any(|numbers| numbers.len() >= POINTS_MIN)
}

/// Takes apart what makes lines and what does not.
fn split<'a>(all: Vec<&'a Series>) -> (Vec<Family<'a>>, Vec<&'a Series>) {
    let mut families: Vec<Family<'a>> = Vec::new();
    let mut rest: Vec<(Case<'a>, &'a Series)> = all
        .into_iter()
        .map(|series| (Case::read(&series.case), series))
        .collect();
    loop {
        let mut candidates: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, (case, _)) in rest.iter().enumerate() {
            for varying in 0..case.numbers().len() {
                let key = (varying, case.family_but_for(varying));
                candidates.entry(key).or_default().push(at);
            }
        }
        // Of the ways to look at a case with several numbers, the one that has the most in common comes first.
        let best = candidates
            .into_iter()
            .filter(|((varying, _), members)| make_a_line(&rest, members, *varying))
            .max_by_key(|((varying, _), members)| (members.len(), Reverse(members[0]), Reverse(*varying)));
        let Some(((varying, _), members)) = best else { break };
        let mut series = Vec::with_capacity(members.len());
        let mut others = Vec::new();
        for (at, one) in rest.into_iter().enumerate() {
            if members.binary_search(&at).is_ok() {
                series.push(one);
            } else {
                others.push(one);
            }
        }
        families.push(Family { varying, series });
        rest = others;
    }
    (families, rest.into_iter().map(|(_, series)| series).collect())
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

#[cfg(test)]
mod tests;
