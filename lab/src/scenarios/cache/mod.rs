//! `cache`: the part of requests that memory answers, beside the caches of others.
//!
//! Promises: the systems take turns within one run. Knows which parts there are; each is in a folder of its own.

mod hit_ratio;

use crate::failure::Failure;
use crate::goal::Goal;
use crate::scenario::{Scenario, Stage, Trial, Yardsticks};
use crate::scenarios::loader::locked_version;

const QUICK_CACHE: &str = "quick_cache";
const MOKA: &str = "moka";
/// Of foyer, what keeps entries in memory.
const FOYER_PACKAGE: &str = "foyer-memory";

/// The scenario.
#[derive(Debug)]
pub(crate) struct Cache;

impl Scenario for Cache {
    fn name(&self) -> String {
        "cache".to_owned()
    }

    fn about(&self) -> String {
        hit_ratio::about()
    }

    fn versions(&self) -> Vec<(String, String)> {
        [QUICK_CACHE, MOKA, FOYER_PACKAGE]
            .map(|package| (package.to_owned(), locked_version(package)))
            .into()
    }

    fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        Ok(hit_ratio::trials())
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        hit_ratio::goals()
    }
}
