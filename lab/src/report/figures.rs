//! The full table: a row a series, with its ratios to the limit and to Forebay.
//!
//! Promises: every series that was kept has its row, in the order of the run, with the ratios that the lab's own table shows.
//! Knows nothing of plots.

use super::look::Looks;
use super::markup::escape;
use super::results::Results;
use crate::figure::figure;
use crate::measurement::Series;
use crate::scenario::{FOREBAY, Yardsticks};
use crate::table::{to_forebay, to_limit};

/// Title, and whether its cells are figures.
const HEAD: [(&str, bool); 8] = [
    ("system", false),
    ("case", false),
    ("metric", false),
    ("median", true),
    ("min", true),
    ("max", true),
    ("÷ limit", true),
    ("÷ forebay", true),
];

/// The table in a box of its own, so that it can be wider than the page.
pub(super) fn table(results: &Results, yardsticks: &Yardsticks, looks: &Looks) -> String {
    let head: String = HEAD
        .iter()
        .map(|(title, is_figure)| {
            let class = if *is_figure { " class=\"figure\"" } else { "" };
            format!("<th scope=\"col\"{class}>{title}</th>")
        })
        .collect();
    let rows: String = results
        .measurements
        .series()
        .iter()
        .map(|series| row(series, results, yardsticks, looks))
        .collect();
    let name = escape(&results.scenario);
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"All figures of {name}\">\n<table>\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

fn row(series: &Series, results: &Results, yardsticks: &Yardsticks, looks: &Looks) -> String {
    let measurements = &results.measurements;
    let cells = [
        Some(series.median()),
        Some(series.min()),
        Some(series.max()),
        to_limit(series, measurements, yardsticks),
        to_forebay(series, measurements, yardsticks),
    ];
    let cells: String = cells
        .into_iter()
        .map(|cell| match cell.filter(|figure| figure.is_finite()) {
            // In full, for whoever sorts.
            Some(value) => format!("<td data-value=\"{value:e}\">{}</td>", figure(value)),
            None => "<td>–</td>".to_owned(),
        })
        .collect();
    let class = if series.system == FOREBAY {
        " class=\"ours\""
    } else {
        ""
    };
    let key = looks.of(&series.system).key();
    let [system, case, metric, unit] = [&*series.system, &*series.case, &*series.metric, &*series.unit].map(escape);
    format!(
        "<tr{class}><th scope=\"row\">{key}{system}</th><td>{case}</td><td>{metric}, <small>{unit}</small></td>{cells}</tr>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Key;
    use crate::measurement::{Measurements, Reading};

    #[test]
    fn every_series_has_its_row_with_its_ratios_in_the_order_of_the_run() {
        let mut measurements = Measurements::default();
        for (system, case, value) in [
            ("limit", "bulk", 200.0),
            ("<peer>", "many", 20.0),
            ("forebay", "many", 80.0),
        ] {
            measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
        }
        let results = Results {
            scenario: "a".to_owned(),
            measurements,
            run: None,
        };
        let yardsticks = Yardsticks {
            limit: Some(Key::new("limit", "bulk")),
            forebay: None,
        };
        let mut looks = Looks::default();
        looks.add(&["limit", "<peer>", "forebay"]);
        let table = table(&results, &yardsticks, &looks);
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("scope=\"row\"")).collect();
        for (row, (system, cells)) in rows.iter().zip([
            (
                "limit",
                "<td data-value=\"2e2\">200</td><td data-value=\"2e2\">200</td><td data-value=\"2e2\">200</td>\
                <td data-value=\"1e0\">1.00</td><td>–</td>",
            ),
            (
                "&lt;peer&gt;",
                "<td data-value=\"1e-1\">0.100</td><td data-value=\"2.5e-1\">0.250</td>",
            ),
            (
                "forebay",
                "<td data-value=\"4e-1\">0.400</td><td data-value=\"1e0\">1.00</td>",
            ),
        ]) {
            assert!(
                row.contains(&format!("</svg>{system}</th>")) && row.ends_with(&format!("{cells}</tr>")),
                "{row}"
            );
        }
        assert_eq!(rows.len(), 3);
    }
}
