//! The full table: a row a series, with its ratios to the limit and to Forebay.
//!
//! Promises: every series that was kept has its row, in the order of the run, with the ratios that the lab's own table shows.
//! Knows nothing of plots.

use super::Results;
use super::look::Looks;
use super::markup::escape;
use crate::measurement::Series;
use crate::scenario::{FOREBAY, Yardsticks};
use crate::table::{figure, to_forebay, to_limit};

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
