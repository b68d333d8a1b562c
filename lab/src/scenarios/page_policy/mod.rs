//! `page-policy`: which page goes when the page pool needs room, beside other rules, by simulation.
//!
//! Promises: every rule gets the same requests in the same order, a page each, and the same room. What is measured is the part
//! of the reads that found their page, where pieces of one page that follow each other are one read. The limit knows the
//! future. No files and no time: a pool's other costs are elsewhere.

mod clock;
mod loads;

use std::collections::HashMap;

use forebay::pages::PolicySimulation;

use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::scenarios::cache::hit_ratio::{Contender, Requests, Trace};
use crate::scenarios::loader::locked_version;
use loads::Load;

const HIT_RATIO: &str = "hit ratio";
/// Of the best other, in points of a hundred.
const WITHIN: f64 = 1.0;
/// Of LRU.
const WITHIN_OF_LRU: f64 = 0.5;

const LRU: &str = "LRU";
const CLOCK: &str = "CLOCK";
/// As foyer has it.
const S3_FIFO: &str = "S3-FIFO";
/// LIRS and CLOCK-Pro's kin.
const QUICK_CACHE: &str = "quick_cache";
/// W-TinyLFU.
const MOKA: &str = "moka";
const RULES: [&str; 5] = [LRU, CLOCK, S3_FIFO, QUICK_CACHE, MOKA];
const FOYER_PACKAGE: &str = "foyer-memory";

/// The pool makes room for one of so many of its pages at a time.
const BATCHES: u64 = 64;

/// A load, and how many pages pools may hold.
const LOADS: [(Load, &[u64]); 16] = [
    (Load::Trace(Trace::Oltp), &[1_000, 5_000, 15_000, 50_000]),
    (Load::Trace(Trace::Glimpse), &[500, 1_000, 2_000]),
    (Load::Trace(Trace::Loop), &[250, 500, 750, 1_000]),
    (Load::Trace(Trace::Cs), &[112, 281, 704]),
    (Load::Trace(Trace::Cpp), &[97, 244, 611]),
    (Load::Trace(Trace::Multi1), &[208, 521, 1_303]),
    (Load::Zipf, &[1_000, 4_000]),
    (Load::ZipfAndScan, &[1_000, 4_000]),
    (Load::ZipfAndScanInPieces, &[1_000, 4_000]),
    (Load::Loop(4_200), &[4_000]),
    (Load::Loop(6_000), &[4_000]),
    (Load::ZipfThenLoop(4_200), &[4_000]),
    (Load::ZipfThenLoop(6_000), &[4_000]),
    (Load::Shifting, &[4_000]),
    (Load::Ranges, &[16_384]),
    (Load::SkewedRanges, &[4_096, 16_384]),
];

/// The scenario.
#[derive(Debug)]
pub(crate) struct PagePolicy;

impl Scenario for PagePolicy {
    fn name(&self) -> String {
        "page-policy".to_owned()
    }

    fn about(&self) -> String {
        "Hit ratio of a page pool's rule for which page goes: the part of the reads that find their page in memory, from an empty \
         pool on.\nPieces of one page that are read one after another count as one read. oltp: a database (Megiddo and Modha, \
         \"ARC\", FAST 2003); gli: a\ntext search, and loop: 1,011 pages over and over (both Jiang and Zhang, \"LIRS\", SIGMETRICS \
         2002); the other loads are made up. limit: the\noptimum, which knows the future (Belady, 1966). S3-FIFO is foyer's, \
         quick_cache and moka are themselves.\nforebay frees 1/64 of the pool at a time, the others a page."
            .to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        [FOYER_PACKAGE, QUICK_CACHE, MOKA]
            .map(|package| (package.to_owned(), locked_version(package)))
            .into()
    }

    fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        Ok(trials())
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |case: &str, whose, rules: &[&str], within: f64| Goal {
            text: format!("{case}: hit ratio − {whose}"),
            metric: HIT_RATIO,
            ours: Key::new(FOREBAY, case),
            beside: Beside::DifferenceToBest(rules.iter().map(|rule| Key::new(*rule, case)).collect()),
            wanted: Wanted::AtLeast(-within),
        };
        let both = |case: String| {
            [
                goal(&case, "the best other's", &RULES, WITHIN),
                goal(&case, "LRU's", &[LRU], WITHIN_OF_LRU),
            ]
        };
        cases().flat_map(|(load, pages)| both(case(load, pages))).collect()
    }
}

fn cases() -> impl Iterator<Item = (Load, u64)> {
    LOADS
        .into_iter()
        .flat_map(|(load, pools)| pools.iter().map(move |pages| (load, *pages)))
}

fn case(load: Load, pages: u64) -> String {
    format!("{}, {pages} pages", load.name())
}

fn trials() -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for (load, pools) in LOADS {
        // Made by the first that needs it.
        let requests = Requests::default();
        for pages in pools {
            for system in [LIMIT].into_iter().chain(RULES).chain([FOREBAY]) {
                trials.push(Box::new(OneRule {
                    system,
                    case: case(load, *pages),
                    load,
                    requests: requests.clone(),
                    pages: *pages,
                    is_known: false,
                }));
            }
        }
    }
    trials
}

/// One rule under one load in a pool of one size.
struct OneRule {
    system: &'static str,
    case: String,
    load: Load,
    requests: Requests,
    pages: u64,
    /// One round says it all: only in the hashes of moka and quick_cache is there chance, and not much.
    is_known: bool,
}

impl Trial for OneRule {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        if self.is_known {
            return Ok(Vec::new());
        }
        let requests = self.requests.of(stage.effort, || self.load.requests())?;
        let hits = match self.system {
            LIMIT => Contender::Limit.hits(requests, self.pages)?,
            LRU => Contender::LeastRecent.hits(requests, self.pages)?,
            S3_FIFO => Contender::Foyer.hits(requests, self.pages)?,
            QUICK_CACHE => Contender::QuickCache.hits(requests, self.pages)?,
            MOKA => Contender::Moka.hits(requests, self.pages)?,
            CLOCK => clock::hits(requests, self.pages),
            _ => forebay(requests, self.pages)?,
        };
        let ratio = hit_ratio(requests, hits);
        self.is_known = true;
        Ok(vec![Reading::new(HIT_RATIO, "%", ratio)])
    }
}

/// In percent. Pieces of one page that follow each other are one read; who misses them one by one has more misses than there are reads, and
/// no hits.
fn hit_ratio(requests: &[u64], hits: u64) -> f64 {
    let reads = requests.chunk_by(|page, next| page == next).count() as f64;
    let misses = (requests.len() as u64 - hits) as f64;
    100.0 * (1.0 - misses / reads).max(0.0)
}

fn forebay(requests: &[u64], pages: u64) -> Result<u64, Failure> {
    // The simulation wants small numbers.
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let frames = usize::try_from(pages).unwrap_or(usize::MAX);
    let batch = usize::try_from((pages / BATCHES).max(1)).unwrap_or(usize::MAX);
    let mut pool = PolicySimulation::new(frames, batch);
    let mut hits = 0;
    for page in requests {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        hits += u64::from(pool.read(*numbers.entry(*page).or_insert(next)));
    }
    if pool.resident() > frames {
        let message = format!("{} pages where there is room for {frames}", pool.resident());
        return Err(Failure::Wrong(message));
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use std::path::Path;

    #[test]
    fn every_goal_names_something_that_is_measured() {
        let trials = trials();
        let goals = PagePolicy.goals();
        assert_eq!(trials.len(), goals.len() / 2 * (RULES.len() + 2));
        for key in goals.iter().flat_map(Goal::keys) {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
    }

    #[test]
    fn pieces_that_follow_each_other_are_one_read() {
        // Three reads, of which one found its page.
        assert_eq!(hit_ratio(&[1, 1, 1, 2, 1, 1], 4), 100.0 / 3.0);
        assert_eq!(hit_ratio(&[1, 1, 1], 0), 0.0);
    }

    #[test]
    fn no_rule_has_more_hits_than_the_limit() {
        let stage = Stage {
            folder: Path::new("."),
            effort: Effort::tiny(),
        };
        let mut limit = 0.0;
        for trial in &mut trials() {
            let readings = trial.measure(&stage).unwrap();
            assert_eq!(readings.len(), 1);
            if trial.system() == LIMIT {
                limit = readings[0].value;
            }
            let what = format!("{}, {}", trial.system(), trial.case());
            assert!((0.0..=limit + 1e-9).contains(&readings[0].value), "{what}");
            assert!(
                trial.measure(&stage).unwrap().is_empty(),
                "{what} needs no second round"
            );
        }
    }
}
