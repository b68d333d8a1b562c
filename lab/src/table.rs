//! The table for people: a row a series, in Markdown, so that it can be pasted where it is reported.
//!
//! Promises: median, minimum and maximum of every series, and its ratio to the limit and to Forebay in the same case, or to
//! the scenario's yardstick where its case has none; a dash where there is nothing to compare.

use crate::figure::figure;
use crate::goal::Key;
use crate::measurement::{Measurements, Series};
use crate::scenario::{FOREBAY, LIMIT, Yardsticks};

const HEAD: [&str; 8] = [
    "system",
    "case",
    "metric",
    "median",
    "min",
    "max",
    "÷ limit",
    "÷ forebay",
];
/// Columns before this one are words, the rest are figures and aligned to the right.
const FIRST_FIGURE: usize = 3;

/// The whole table.
pub(crate) fn render(measurements: &Measurements, yardsticks: &Yardsticks) -> String {
    let mut rows: Vec<[String; 8]> = vec![HEAD.map(str::to_owned)];
    for series in measurements.series() {
        rows.push([
            series.system.clone(),
            series.case.clone(),
            format!("{}, {}", series.metric, series.unit),
            figure(series.median()),
            figure(series.min()),
            figure(series.max()),
            or_dash(to_limit(series, measurements, yardsticks)),
            or_dash(to_forebay(series, measurements, yardsticks)),
        ]);
    }
    let widths: [usize; 8] = std::array::from_fn(|column| {
        let width = |row: &[String; 8]| row[column].chars().count();
        rows.iter().map(width).max().unwrap_or(0)
    });
    let mut table = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            let (before, after) = if column < FIRST_FIGURE {
                ("", &*pad)
            } else {
                (&*pad, "")
            };
            table += &format!("| {before}{cell}{after} ");
        }
        table += "|\n";
        if index == 0 {
            for (column, width) in widths.into_iter().enumerate() {
                let end = if column < FIRST_FIGURE { "-" } else { ":" };
                table += &format!("|{}{end}", "-".repeat(width + 1));
            }
            table += "|\n";
        }
    }
    table
}

fn or_dash(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), figure)
}

/// This series' median as a multiple of the limit's.
pub(crate) fn to_limit(series: &Series, measurements: &Measurements, yardsticks: &Yardsticks) -> Option<f64> {
    ratio(series, measurements, LIMIT, yardsticks.limit.as_ref())
}

/// This series' median as a multiple of Forebay's.
pub(crate) fn to_forebay(series: &Series, measurements: &Measurements, yardsticks: &Yardsticks) -> Option<f64> {
    ratio(series, measurements, FOREBAY, yardsticks.forebay.as_ref())
}

/// This series' median as a multiple of `system`'s in the same case, else of the yardstick's.
fn ratio(series: &Series, measurements: &Measurements, system: &str, yardstick: Option<&Key>) -> Option<f64> {
    let same_case = measurements.find(system, &series.case, &series.metric);
    let other = same_case.or_else(|| {
        let key = yardstick?;
        measurements.find(&key.system, &key.case, &series.metric)
    })?;
    // Nothing is a multiple of zero.
    Some(series.median() / other.median()).filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Reading;

    #[test]
    fn ratios_are_to_the_same_case_first_and_to_the_yardstick_else() {
        let mut measurements = Measurements::default();
        for (system, case, value) in [
            ("limit", "bulk", 100.0),
            ("peer", "many", 20.0),
            ("forebay", "many", 80.0),
            ("peer", "alone", 2.0),
        ] {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
        }
        measurements.add("peer", "alone", &[Reading::new("p50", "ms", 1.0)]);
        let yardsticks = Yardsticks {
            limit: Some(Key::new("limit", "bulk")),
            forebay: Some(Key::new("forebay", "many")),
        };
        let table = render(&measurements, &yardsticks);
        let expected = "\
| system  | case  | metric       | median |  min |  max | ÷ limit | ÷ forebay |
|---------|-------|--------------|-------:|-----:|-----:|--------:|----------:|
| limit   | bulk  | rate, rows/s |    100 |  100 |  100 |    1.00 |      1.25 |
| peer    | many  | rate, rows/s |   20.0 | 20.0 | 20.0 |   0.200 |     0.250 |
| forebay | many  | rate, rows/s |   80.0 | 80.0 | 80.0 |   0.800 |      1.00 |
| peer    | alone | rate, rows/s |   2.00 | 2.00 | 2.00 |  0.0200 |    0.0250 |
| peer    | alone | p50, ms      |   1.00 | 1.00 | 1.00 |       – |         – |
";
        assert_eq!(table, expected);
    }

    #[test]
    fn nothing_is_a_multiple_of_zero() {
        let mut measurements = Measurements::default();
        for (system, value) in [("limit", 0.0), ("forebay", 0.0), ("peer", 2.0)] {
            measurements.add(system, "a", &[Reading::new("hit ratio", "%", value)]);
        }
        let table = render(&measurements, &Yardsticks::default());
        assert!(!table.contains("inf") && !table.contains("NaN"), "{table}");
        assert_eq!(table.matches("       – |         – |").count(), 3, "{table}");
    }
}
