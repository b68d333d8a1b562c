//! Words about figures, for those who point at them or have them read out.
//!
//! Promises: what is said of a series is its median, minimum, maximum and the number of rounds, and of what it is. Knows
//! nothing of drawings.

use crate::figure::figure;
use crate::measurement::Series;

/// What a figure is, in full.
pub(super) fn point_title(series: &Series) -> String {
    let rounds = match series.values.len() {
        1 => "1 round".to_owned(),
        count => format!("{count} rounds"),
    };
    format!(
        "{}, {}\n{} {} {}\nfrom {} to {} in {rounds}",
        series.system,
        series.case,
        series.metric,
        figure(series.median()),
        series.unit,
        figure(series.min()),
        figure(series.max()),
    )
}

/// Ends what is said of a plot that stands above all figures.
pub(super) const TABLE_BELOW: &str = " The table below has all figures.";

/// A plot, for those who cannot see it. All figures are in the table, so this is short.
pub(super) fn summary<'a>(title: &str, series: impl Iterator<Item = &'a Series>) -> String {
    let mut systems: Vec<(&str, f64, f64, &str)> = Vec::new();
    for series in series {
        let median = series.median();
        match systems.iter_mut().find(|(system, ..)| *system == series.system) {
            Some((_, low, high, _)) => (*low, *high) = (low.min(median), high.max(median)),
            None => systems.push((&series.system, median, median, &series.unit)),
        }
    }
    let told = systems.into_iter().map(|(system, low, high, unit)| {
        if low < high {
            format!("{system} from {} to {} {unit}", figure(low), figure(high))
        } else {
            format!("{system} {} {unit}", figure(low))
        }
    });
    format!("{title}: {}.{TABLE_BELOW}", told.collect::<Vec<_>>().join("; "))
}

/// Which way is good, where the metric's name tells.
pub(super) fn direction(metric: &str, unit: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| metric.contains(word));
    if unit.ends_with("/s") || has(&["throughput", "rate", "hit ratio", "per fetch", "per batch", "shared"]) {
        return Some("more is better");
    }
    has(&["latency", "alloc", "byte", "processor", "fetches", "wait", "time"]).then_some("less is better")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(system: &str, values: &[f64]) -> Series {
        Series {
            case: "10 callers".into(),
            system: system.into(),
            metric: "throughput".into(),
            unit: "rows/s".into(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn a_figure_is_told_with_its_spread() {
        assert_eq!(
            point_title(&series("forebay", &[3000.0, 1000.0, 2000.0])),
            "forebay, 10 callers\nthroughput 2,000 rows/s\nfrom 1,000 to 3,000 in 3 rounds"
        );
        assert!(point_title(&series("forebay", &[1.0])).ends_with("in 1 round"));
    }

    #[test]
    fn a_plot_is_told_by_the_range_of_each_system() {
        let all = [series("a", &[1.0]), series("b", &[5.0]), series("a", &[3.0])];
        assert_eq!(
            summary("rate", all.iter()),
            "rate: a from 1.00 to 3.00 rows/s; b 5.00 rows/s. The table below has all figures."
        );
    }

    #[test]
    fn the_good_direction_is_said_where_it_is_known() {
        assert_eq!(direction("throughput", "calls/s"), Some("more is better"));
        assert_eq!(direction("keys per fetch", "keys"), Some("more is better"));
        assert_eq!(direction("hit ratio", "%"), Some("more is better"));
        assert_eq!(direction("latency p99", "ms"), Some("less is better"));
        assert_eq!(direction("allocations per call", "allocations"), Some("less is better"));
        assert_eq!(direction("colour", "nm"), None);
    }
}
