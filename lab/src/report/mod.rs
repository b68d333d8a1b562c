//! `lab report`: one page from the last results of all scenarios, to look at rather than to read.
//!
//! Promises: the page is one file that asks for nothing else, neither network nor neighbours, and can be read without its
//! script; the same results give the same page, byte for byte; whatever a result holds, the page stays whole. Every figure
//! on it is one that was kept by a run. Knows no scenario: which plots there are follows from the form of the results.

mod about;
mod bars;
mod courses;
mod family;
mod figures;
mod goals;
mod legend;
mod lines;
mod look;
mod markup;
mod page;
pub(crate) mod pictures;
mod plan;
mod results;
mod scale;
mod words;

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::places;
use crate::record;
use results::{Results, read};

/// What to make a page of, and where.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where the page goes. Default: `target/lab/report.html`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where the results are, instead of the lab's own folder.
    #[arg(long, value_name = "FOLDER", hide = true)]
    results: Option<PathBuf>,
}

/// Makes the page and says where it is.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let folder = options.results.unwrap_or_else(places::results_folder);
    let results: Result<Vec<Results>, Failure> = record::scenarios_in(&folder)?
        .into_iter()
        .map(|scenario| read(&folder, scenario))
        .collect();
    let out = options
        .out
        .unwrap_or_else(|| places::default_folder().join("report.html"));
    record::write_file(&out, &page::render(&results?))?;
    println!("{}", out.display());
    Ok(())
}
