//! What a scenario is: trials that take turns, what they are held against, and what is hoped for.
//!
//! A trial is one system in one case. The bench runs all trials once a round; a trial starts from nothing each time (a new
//! database file, an empty table), so that its turns are alike.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::failure::Failure;
use crate::goal::{Goal, Key};
use crate::measurement::{Course, Reading};

/// The system that all ratios are about.
pub(crate) const FOREBAY: &str = "forebay";
/// The bare cost of what must be done.
pub(crate) const LIMIT: &str = "limit";

/// Something to measure.
pub(crate) trait Scenario {
    /// Its name in results and file names: lowercase words joined by `-`.
    fn name(&self) -> String;

    /// What is measured, for a reader who has not read the code.
    fn about(&self) -> String;

    /// Versions of what takes part, beyond the lab's own. To be told before anything is measured.
    fn versions(&self) -> Vec<(String, String)>;

    /// Gets everything ready, which is not measured. What is missed is left out and named in `absent`.
    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure>;

    /// What a row of the table is held against when its own case has no limit, or no Forebay.
    fn yardsticks(&self) -> Yardsticks;

    /// What is hoped for.
    fn goals(&self) -> Vec<Goal>;
}

/// Where and how long trials run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage<'a> {
    /// A folder on the disk to be measured, for this run alone.
    pub(crate) folder: &'a Path,
    pub(crate) effort: Effort,
}

/// One system in one case.
pub(crate) trait Trial {
    /// `forebay`, `limit`, or a peer.
    fn system(&self) -> &str;

    /// Under what circumstances.
    fn case(&self) -> &str;

    /// Runs once and checks every outcome. The first reading is the one that is shown while the run goes on.
    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure>;

    /// How a figure went through the last turn, for a plot; asked for after each.
    fn course(&mut self) -> Option<Course> {
        None
    }
}

/// The figures that ratios are taken to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Yardsticks {
    pub(crate) limit: Option<Key>,
    pub(crate) forebay: Option<Key>,
}
