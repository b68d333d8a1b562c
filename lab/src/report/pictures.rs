//! `lab figures`: a few plots of the stored results, each a file that a document can show as a picture.
//!
//! Promises: a picture stands alone, asks for nothing else, and can be read in light and in dark, as the reader's system is
//! set; the same results give the same pictures, byte for byte. Knows which scenarios have a picture, and nothing else of
//! them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::look::Looks;
use super::markup::stand_alone;
use super::plan::{Plot, plots};
use super::words::{TABLE_BELOW, direction};
use super::{Results, bars, lines, read};
use crate::failure::Failure;
use crate::places;
use crate::record;

/// The scenarios that have a picture, and the metric that it shows.
const PICTURES: [(&str, &str); 4] = [
    ("batcher", "throughput"),
    ("loader", "throughput"),
    ("server", "throughput"),
    ("writes-sqlite", "throughput"),
];
/// What plots are drawn with, here and on the report's page.
const STYLE: &str = include_str!("plots.css");

/// Where the pictures go.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of the pictures. Default: the guide's.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Makes the pictures and says where they are.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let out = options.out.unwrap_or_else(folder);
    for (scenario, metric) in PICTURES {
        let file = file(&out, scenario);
        record::write_file(&file, &picture(&places::results_folder(), scenario, metric)?)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Where the guide looks for them.
fn folder() -> PathBuf {
    places::workspace().join("guide").join("src").join("figures")
}

fn file(folder: &Path, scenario: &str) -> PathBuf {
    folder.join(format!("{scenario}.svg"))
}

/// The plot of this metric, from the results in this folder.
fn picture(results: &Path, scenario: &str, metric: &str) -> Result<String, Failure> {
    render(&read(results, scenario.to_owned())?, metric).ok_or_else(|| Failure::Unreadable {
        file: record::figures_file(results, scenario),
        cause: format!("it has no {metric}"),
    })
}

/// None if the metric was not measured.
fn render(results: &Results, metric: &str) -> Option<String> {
    let series = results.measurements.series();
    let mut looks = Looks::default();
    looks.add(&series.iter().map(|series| &*series.system).collect::<Vec<_>>());
    let yardsticks = results
        .run
        .as_ref()
        .map(|run| run.yardsticks.clone())
        .unwrap_or_default();
    let plots = plots(&results.measurements, &yardsticks);
    // Of several, the one that says most; of those that say as much, the first.
    let plot = plots
        .iter()
        .filter(|plot| metric_of(plot).0 == metric)
        .rev()
        .max_by_key(|plot| size_of(plot))?;
    let id = &results.scenario;
    let drawn = match plot {
        Plot::Lines(plot) => lines::draw_wide(plot, &looks, id),
        Plot::Bars(plot) => bars::draw_wide(plot, &looks, id),
    };
    let (metric, unit) = metric_of(plot);
    let better = direction(metric, unit).map_or_else(String::new, |better| format!("; {better}"));
    let heading = format!("{metric}, {unit}{better}");
    Some(stand_alone(&drawn.replace(TABLE_BELOW, ""), &heading, STYLE))
}

fn metric_of<'a>(plot: &Plot<'a>) -> (&'a str, &'a str) {
    match plot {
        Plot::Lines(plot) => (plot.metric, plot.unit),
        Plot::Bars(plot) => (plot.metric, plot.unit),
    }
}

/// How many figures it shows.
fn size_of(plot: &Plot<'_>) -> usize {
    match plot {
        Plot::Lines(plot) => plot.lines.iter().map(|(_, points)| points.len()).sum(),
        Plot::Bars(plot) => plot.groups.iter().map(|(_, group)| group.len()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Measurements, Reading};

    #[test]
    fn the_guide_s_pictures_are_those_of_the_stored_results() {
        for (scenario, metric) in PICTURES {
            let drawn = picture(&places::results_folder(), scenario, metric).unwrap();
            let file = file(&folder(), scenario);
            let kept = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                kept == drawn,
                "{} is not of the stored results: cargo xtask lab figures",
                file.display()
            );
        }
    }

    #[test]
    fn a_picture_stands_alone_and_shows_the_metric_that_was_asked_for() {
        let mut measurements = Measurements::default();
        for (system, value) in [("forebay", 80.0), ("<peer>", 20.0)] {
            let readings = [Reading::new("wait", "ms", 7.0), Reading::new("rate", "rows/s", value)];
            measurements.add(system, "many", &readings);
        }
        let results = Results {
            scenario: "a".to_owned(),
            measurements,
            run: None,
        };
        let picture = render(&results, "rate").unwrap();
        assert!(
            picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "),
            "{picture}"
        );
        for words in [
            "prefers-color-scheme: dark",
            ">forebay</text>",
            "&lt;peer&gt;",
            "rows/s",
        ] {
            assert!(picture.contains(words), "{words}: {picture}");
        }
        for words in ["ms</text>", "table below", "<script", "href"] {
            assert!(!picture.contains(words), "{words}: {picture}");
        }
        assert_eq!(render(&results, "weight"), None);
    }
}
