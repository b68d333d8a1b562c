//! Which cases share a plot of bars, and where the limit belongs.
//!
//! Promises: bars of one plot can be compared by length, unless a single family of cases differs too much for that; cases are
//! in the order of the run. A limit measured in a case of its own is a level to see the bars against, where there is room
//! for it; if there is none, a plot of its own.

use crate::measurement::Series;
use crate::report::family::Case;
use crate::report::scale::{BARS_RATIO_MAX, Scale};
use crate::scenario::LIMIT;

/// A group a case, a bar a system.
#[derive(Debug)]
pub(in crate::report) struct Bars<'a> {
    pub(in crate::report) metric: &'a str,
    pub(in crate::report) unit: &'a str,
    pub(in crate::report) groups: Vec<(&'a str, Vec<&'a Series>)>,
    /// What the limit was in a case that no other system has.
    pub(in crate::report) level: Option<&'a Series>,
    /// Bars that were too many.
    pub(in crate::report) omitted: usize,
}

/// More bars are not looked at; the table has them.
const BARS_MAX: usize = 60;

/// Plots of bars, each of cases whose figures can be compared by length.
pub(super) fn plots<'a>(
    metric: &'a str,
    unit: &'a str,
    mut rest: Vec<&'a Series>,
    limit: Option<&'a Series>,
) -> Vec<Bars<'a>> {
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
