//! `cache`: what a hit costs, what gets and inserts take by the number of entries, and the part of requests that memory answers, beside the caches of others.
//!
//! Promises: the systems take turns within one run. Knows which parts there are; each is in a folder of its own.

mod hit_path;
pub(crate) mod hit_ratio;
mod peers;
mod sizes;

use std::rc::Rc;

use crate::failure::Failure;
use crate::go::{self, Go};
use crate::goal::Goal;
use crate::scenario::{Scenario, Stage, Trial, Yardsticks};
use crate::scenarios::loader::locked_version;
pub(crate) use peers::{CACHEX, CACHEX_MODULE};
use peers::{FOYER_PACKAGE, MOKA, QUICK_CACHE};

/// The scenario.
#[derive(Debug)]
pub(crate) struct Cache;

impl Scenario for Cache {
    fn name(&self) -> String {
        "cache".to_owned()
    }

    fn about(&self) -> String {
        format!("{}\n{}\n{}", hit_path::about(), sizes::about(), hit_ratio::about())
    }

    fn versions(&self) -> Vec<(String, String)> {
        let mut versions: Vec<_> = [QUICK_CACHE, MOKA, FOYER_PACKAGE]
            .map(|package| (package.to_owned(), locked_version(package)))
            .into();
        versions.push(("Go".to_owned(), go::version()));
        versions.extend(hit_path::MODULES.map(|module| (module.to_owned(), go::module_version(module))));
        versions
    }

    fn prepare(&self, _: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let go = Go::build_or_note(absent)?;
        Ok(trials(go.as_ref()))
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = hit_path::goals();
        goals.extend(sizes::goals());
        goals.extend(hit_ratio::goals());
        goals
    }
}

fn trials(go: Option<&Rc<Go>>) -> Vec<Box<dyn Trial>> {
    let mut trials = hit_path::trials(go);
    trials.extend(sizes::trials());
    trials.extend(hit_ratio::trials());
    trials
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_names_something_that_is_measured() {
        let trials = trials(None);
        let goals = Cache.goals();
        // The peer in Go takes part only where Go is.
        let named = goals.iter().flat_map(Goal::keys).filter(|key| key.system != CACHEX);
        for key in named {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
    }
}
