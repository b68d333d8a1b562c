//! `batcher`: many callers, one call that does nothing but answer: what sharing costs by itself.
//!
//! Promises: every system has the same callers, the same processor and the same limits, and every caller checks every answer
//! of its own. Knows which systems and cases there are; how each is spoken to is in `systems`.

mod systems;

use std::rc::Rc;
use std::time::Duration;

use crate::closed_loop::{ALLOCATIONS, Ask, Batches, TIME, Words, Yielding, run, two_workers};
use crate::failure::Failure;
use crate::go::{self, Go};
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;
use systems::{ByHand, ByHandEach, Direct, Forebay};

/// Most items in a batch, of every system.
const MAX_ITEMS: usize = 1_000;
const BY_HAND: &str = "mpsc + oneshot";
const BY_HAND_EACH: &str = "2 × mpsc + oneshot";
const GO: &str = "Go, by hand";
/// A turn takes this part of the usual: memory alone is steady sooner than a disk.
const SHARE_OF_DURATION: u32 = 3;

const WORDS: Words = Words {
    a_second: "calls/s",
    of_each: "a call",
    bytes_of_each: "bytes/call",
    of_a_batch: "calls/batch",
};

/// How many call, and how long a batch that is not full may wait.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    callers: u32,
    /// Zero: natural batching.
    window_ms: u32,
}

const fn case(name: &'static str, callers: u32, window_ms: u32) -> Case {
    Case {
        name,
        callers,
        window_ms,
    }
}

const ALONE: Case = case("1 caller", 1, 0);
const MANY: Case = case("10,000 callers", 10_000, 0);
/// More than Forebay lets in at once by default: the others wait at the door.
const MOST: Case = case("100,000 callers", 100_000, 0);
const CASES: [Case; 11] = [
    ALONE,
    case("10 callers", 10, 0),
    case("100 callers", 100, 0),
    case("1,000 callers", 1_000, 0),
    MANY,
    MOST,
    case("1,000 callers, window 100 ms", 1_000, 100),
    case("2,000 callers, window 100 ms", 2_000, 100),
    case("4,000 callers, window 50 ms", 4_000, 50),
    case("6,000 callers, window 10 ms", 6_000, 10),
    case("10,000 callers, window 1 ms", 10_000, 1),
];

impl Case {
    fn window(self) -> Duration {
        Duration::from_millis(self.window_ms.into())
    }
}

/// The scenario.
#[derive(Debug)]
pub(crate) struct Batcher;

impl Scenario for Batcher {
    fn name(&self) -> String {
        "batcher".to_owned()
    }

    fn about(&self) -> String {
        "Callers are tasks, or goroutines, on 2 worker threads; each calls, checks its own answer, and calls again. The \
         processor gets up to\n1,000 items and does nothing but answer. Without a window a batch goes as soon as the one \
         before is done; with one, when it is\nfull or its first item has waited that long. A turn takes a third of a \
         measurement; one call in 64 is timed; what the heap is\nasked for is counted apart from what is timed.\n\
         limit: tasks that only yield to one another, and for 1 caller: the processor called directly, a vector a call. \
         mpsc + oneshot:\none tokio channel to a task that takes what waits, and a oneshot a call, as one would write it; 2 ×: half \
         of the callers to each of two\nsuch tasks, which share no batches. Go, by hand: the same as the first with Go's \
         channels, GOMAXPROCS=2, each caller keeping\nits own channel for answers."
            .to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("Go".to_owned(), go::version())]
    }

    fn prepare(&self, _: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let go = Go::build_or_note(absent)?;
        Ok(trials(go.as_ref()))
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks {
            limit: Some(Key::new(LIMIT, MANY.name)),
            forebay: None,
        }
    }

    fn goals(&self) -> Vec<Goal> {
        let forebay = || Key::new(FOREBAY, MANY.name);
        let ratio = |text: &str, theirs, least| Goal {
            text: text.to_owned(),
            metric: THROUGHPUT,
            ours: forebay(),
            beside: Beside::Ratio(vec![Key::new(theirs, MANY.name)]),
            wanted: Wanted::AtLeast(least),
        };
        vec![
            Goal {
                text: "10,000 callers, calls/s".to_owned(),
                metric: THROUGHPUT,
                ours: forebay(),
                beside: Beside::Nothing,
                wanted: Wanted::AtLeast(10e6),
            },
            ratio("10,000 callers ÷ mpsc + oneshot", BY_HAND, 2.5),
            ratio("10,000 callers ÷ limit", LIMIT, 0.45),
            Goal {
                text: "10,000 callers, allocations a call".to_owned(),
                metric: ALLOCATIONS,
                ours: forebay(),
                beside: Beside::Nothing,
                wanted: Wanted::AtMost(0.1),
            },
            Goal {
                text: "1 caller − the processor called directly, µs".to_owned(),
                metric: TIME,
                ours: Key::new(FOREBAY, ALONE.name),
                beside: Beside::Difference(Key::new(LIMIT, ALONE.name)),
                wanted: Wanted::AtMost(2.0),
            },
        ]
    }
}

/// Everything that takes part; without Go, what is not written in it.
fn trials(go: Option<&Rc<Go>>) -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for case in CASES {
        let mut add = |system, kind| trials.push(Box::new(BatcherTrial { system, case, kind }));
        match case.name {
            name if name == ALONE.name => add(LIMIT, Kind::Direct),
            name if [MANY.name, MOST.name].contains(&name) => add(LIMIT, Kind::Yielding),
            _ => {}
        }
        if let Some(go) = go {
            add(GO, Kind::Go(Rc::clone(go)));
        }
        add(BY_HAND, Kind::ByHand);
        if case.name == MANY.name {
            add(BY_HAND_EACH, Kind::ByHandEach);
        }
        add(FOREBAY, Kind::Forebay);
    }
    trials
}

enum Kind {
    Direct,
    Yielding,
    Go(Rc<Go>),
    ByHand,
    ByHandEach,
    Forebay,
}

struct BatcherTrial {
    system: &'static str,
    case: Case,
    kind: Kind,
}

impl Trial for BatcherTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case.name
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let duration = stage.effort.duration / SHARE_OF_DURATION;
        let batches = Batches::default();
        let window = self.case.window();
        match &self.kind {
            Kind::Direct => self.calls(|| Direct, None, duration),
            Kind::Yielding => self.calls(|| Yielding, None, duration),
            Kind::ByHand => self.calls(
                || ByHand::start(MAX_ITEMS, window, batches.clone()),
                Some(&batches),
                duration,
            ),
            Kind::ByHandEach => self.calls(
                || ByHandEach::start(MAX_ITEMS, window, &batches),
                Some(&batches),
                duration,
            ),
            Kind::Forebay => self.calls(
                || Forebay::new(MAX_ITEMS, window, batches.clone()),
                Some(&batches),
                duration,
            ),
            Kind::Go(go) => {
                let arguments = [
                    "batcher".to_owned(),
                    format!("-max-items={MAX_ITEMS}"),
                    format!("-window={}ms", self.case.window_ms),
                ];
                Ok(go.run(self.case.callers, &arguments, duration)?.readings(&WORDS))
            }
        }
    }
}

impl BatcherTrial {
    /// A turn of a system in a runtime of its own, in which it is also made.
    fn calls<S: Ask>(
        &self,
        make: impl FnOnce() -> S,
        batches: Option<&Batches>,
        duration: Duration,
    ) -> Result<Vec<Reading>, Failure> {
        let runtime = two_workers()?;
        let system = {
            let _inside = runtime.enter();
            make()
        };
        Ok(run(&runtime, &system, self.case.callers, batches, duration)?.readings(&WORDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_yardstick_and_goal_names_something_that_is_measured() {
        let trials = trials(None);
        let goals = Batcher.goals();
        let named = goals.iter().flat_map(Goal::keys);
        let yardsticks = Batcher.yardsticks();
        for key in named.chain(&yardsticks.limit) {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
    }

    #[test]
    fn a_case_is_called_what_it_is() {
        for case in CASES {
            let digits: String = case.name.split(' ').next().unwrap().replace(',', "");
            assert_eq!(digits, case.callers.to_string());
            let window = format!("window {} ms", case.window_ms);
            assert_eq!(case.name.contains("window"), case.window_ms > 0);
            assert!(case.window_ms == 0 || case.name.ends_with(&window), "{case:?}");
        }
    }
}
