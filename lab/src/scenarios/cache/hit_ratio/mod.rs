//! The part of requests that a cache answers from memory, on traces of real programs.
//!
//! Promises: every system gets the same requests in the same order, is asked first and given the value only after a miss, and
//! has each value it answers with checked; one that holds more entries than its capacity fails the run. Capacities are
//! entries. The limit is the most hits that any cache could have, were the future known. Knows which traces and capacities
//! there are; how each system is spoken to is in `systems`.

mod fewest;
mod least_recent;
mod made;
mod requests;
mod systems;
mod trace;

use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial};
pub(crate) use requests::Requests;
pub(crate) use systems::Contender;
use systems::PEERS;
use trace::Exponent;
pub(crate) use trace::Trace;

const HIT_RATIO: &str = "hit ratio";
/// In points of a hundred.
const WITHIN: f64 = 1.0;
/// In points of a hundred, of LRU: who has it loses nothing.
const WITHIN_LRU: f64 = 0.5;

/// A trace, and how many entries caches of it may hold.
const TRACES: [(Trace, &[u64]); 15] = [
    (Trace::Oltp, &[1_000, 2_000, 5_000, 10_000, 15_000, 50_000]),
    (Trace::Glimpse, &[50, 500, 1_000, 1_500, 2_000, 2_500]),
    (Trace::Loop, &[100, 250, 500, 750, 1_000]),
    // 2, 8, 20 and 50 % of their keys.
    (Trace::Cs, &[28, 112, 281, 704]),
    (Trace::Cpp, &[24, 97, 244, 611]),
    (Trace::Multi1, &[52, 208, 521, 1_303]),
    (Trace::Zipf(Exponent::Low), &[400, 1_600, 4_000, 10_000]),
    (Trace::Zipf(Exponent::High), &[400, 1_600, 4_000, 10_000]),
    (Trace::DriftingZipf, &[200, 1_000, 4_000]),
    (Trace::ZipfAndScans, &[200, 1_000, 3_000]),
    (Trace::ZipfBesideALoop, &[200, 1_000, 2_000, 4_000]),
    (Trace::JustNow, &[100, 300, 1_000, 2_000]),
    (Trace::TwiceThenLoop, &[300, 500, 700, 900, 990]),
    (Trace::Loops, &[250, 700, 1_000, 1_500]),
    (Trace::Phases, &[200, 500, 900]),
];

/// With fewer rounds the first says it all: what chance does to a hit ratio is small, and replaying takes its time.
const ROUNDS_FOR_CHANCE: u32 = 5;

/// What a reader should know who has not read the code.
pub(crate) fn about() -> String {
    "Hit ratio: the part of the requests of a trace that is answered from memory, from an empty cache on. Each system is asked \
     for every key,\nand given the value after a miss; capacities are entries. oltp: a database (Megiddo and Modha, \"ARC\", FAST \
     2003); gli: a text search, and\nloop: 1,011 keys over and over, cs: a search in source code, cpp: a \
     preprocessor, multi1: both at once (all Jiang and Zhang, \"LIRS\", SIGMETRICS 2002); the others are made up. limit: the \
     optimum, which knows the future (Belady, 1966).\nmoka does its pending work after every request; quick_cache and foyer \
     (S3-FIFO) have one shard: so each is at its best."
        .to_owned()
}

/// Everything that takes part.
pub(crate) fn trials() -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for (trace, capacities) in TRACES {
        // Read by the first that needs it.
        let requests = Requests::default();
        for capacity in capacities {
            for system in [LIMIT].into_iter().chain(PEERS).chain([FOREBAY]) {
                trials.push(Box::new(HitRatio {
                    system,
                    case: case(trace, *capacity),
                    trace,
                    requests: requests.clone(),
                    capacity: *capacity,
                    is_known: false,
                }));
            }
        }
    }
    trials
}

/// What is hoped for: that nobody who chooses Forebay loses hits by it.
pub(crate) fn goals() -> Vec<Goal> {
    let cases = TRACES
        .iter()
        .flat_map(|(trace, capacities)| capacities.iter().map(|capacity| case(*trace, *capacity)));
    let goal = |case: &str, whose: &str, peers: &[&str], within: f64| Goal {
        text: format!("{case}: hit ratio − {whose}"),
        metric: HIT_RATIO,
        ours: Key::new(FOREBAY, case),
        beside: Beside::DifferenceToBest(peers.iter().map(|peer| Key::new(*peer, case)).collect()),
        wanted: Wanted::AtLeast(-within),
    };
    cases
        .flat_map(|case| {
            [
                goal(&case, "the best peer's", &PEERS, WITHIN),
                goal(&case, "LRU's", &PEERS[..1], WITHIN_LRU),
            ]
        })
        .collect()
}

fn case(trace: Trace, capacity: u64) -> String {
    let thousands = match (capacity / 1_000, capacity % 1_000) {
        (0, entries) => entries.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    };
    format!("{}, {thousands} entries", trace.name())
}

/// One system on one trace with one capacity.
struct HitRatio {
    system: &'static str,
    case: String,
    trace: Trace,
    requests: Requests,
    capacity: u64,
    /// One round has said it all.
    is_known: bool,
}

impl Trial for HitRatio {
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
        let requests = self.requests.of(stage.effort, || self.trace.read())?;
        let contender = Contender::named(self.system)?;
        let hits = contender.hits(requests, self.capacity)?;
        let reading = Reading::new(HIT_RATIO, "%", 100.0 * hits as f64 / requests.len() as f64);
        self.is_known = contender.is_the_same_each_time() || stage.effort.rounds < ROUNDS_FOR_CHANCE;
        Ok(vec![reading])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use std::path::Path;

    #[test]
    fn every_goal_is_about_what_takes_part() {
        let trials = trials();
        let goals = goals();
        assert_eq!(trials.len() * 2, goals.len() * (PEERS.len() + 2));
        for key in goals.iter().flat_map(Goal::keys) {
            let measured = trials
                .iter()
                .filter(|trial| trial.system() == key.system && trial.case() == key.case);
            assert_eq!(measured.count(), 1, "{key:?}");
        }
    }

    #[test]
    fn cases_are_told_as_people_write_numbers() {
        assert_eq!(case(Trace::Loop, 750), "loop, 750 entries");
        assert_eq!(case(Trace::Oltp, 15_000), "oltp, 15,000 entries");
        assert_eq!(case(Trace::Glimpse, 1_500), "gli, 1,500 entries");
    }

    #[test]
    fn nobody_has_more_hits_than_the_limit() {
        let stage = Stage {
            folder: Path::new("."),
            effort: Effort::tiny(),
        };
        let mut limit = 0.0;
        for trial in &mut trials() {
            let [reading] = trial.measure(&stage).unwrap()[..] else {
                panic!("one reading each");
            };
            assert_eq!((reading.metric, reading.unit), ("hit ratio", "%"));
            if trial.system() == LIMIT {
                limit = reading.value;
            }
            assert!(
                (0.0..=limit).contains(&reading.value),
                "{}, {}: {} of {limit}",
                trial.system(),
                trial.case(),
                reading.value
            );
        }
    }

    #[test]
    fn only_what_chance_changes_is_measured_again_and_only_in_a_full_run() {
        let readings_of_two_rounds = |system: &str, rounds| {
            let stage = Stage {
                folder: Path::new("."),
                effort: Effort::tiny().with(Some(rounds), None),
            };
            let mut trials = trials();
            let is_it = |trial: &&mut Box<dyn Trial>| trial.system() == system && trial.case() == "gli, 500 entries";
            let trial = trials.iter_mut().find(is_it).unwrap();
            (0..2).map(|_| trial.measure(&stage).unwrap().len()).sum::<usize>()
        };
        for (system, full) in [(LIMIT, 1), ("LRU", 1), ("moka", 2), (FOREBAY, 2)] {
            assert_eq!(readings_of_two_rounds(system, Effort::quick().rounds), 1, "{system}");
            assert_eq!(readings_of_two_rounds(system, Effort::full().rounds), full, "{system}");
        }
    }
}
