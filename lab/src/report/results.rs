//! The last results of a scenario, as they were kept.

use std::path::Path;

use crate::failure::Failure;
use crate::measurement::Measurements;
use crate::record::{self, Run};

/// The last results of a scenario.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) scenario: String,
    pub(super) measurements: Measurements,
    /// None if it was not kept.
    pub(super) run: Option<Run>,
}

/// What the folder has of a scenario.
pub(super) fn read(folder: &Path, scenario: String) -> Result<Results, Failure> {
    Ok(Results {
        measurements: record::read_figures(&record::figures_file(folder, &scenario))?,
        run: record::read_run(&record::run_file(folder, &scenario))?,
        scenario,
    })
}
