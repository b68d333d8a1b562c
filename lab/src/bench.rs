//! The bench: runs a scenario's trials in turns, shows what came out, and keeps it with the goals' verdicts.
//!
//! Promises: every trial has its turn in every round, and the order is reversed from round to round, so that what comes and
//! goes on the machine meets all. A trial that once had a wrong outcome has no figures, and the run has failed: its results
//! are not kept. Standard output has the report; what goes on meanwhile is told on standard error.

use std::path::PathBuf;

use crate::effort::Effort;
use crate::failure::Failure;
use crate::figure::figure;
use crate::machine::Header;
use crate::measurement::Measurements;
use crate::places::results_folder;
use crate::record::{self, Run};
use crate::scenario::{Scenario, Stage, Trial};
use crate::table;

/// How a scenario is run.
pub(crate) struct Bench {
    pub(crate) effort: Effort,
    /// Databases go into a folder of this run's own in here.
    pub(crate) folder: PathBuf,
    /// Runs only what has this in its name.
    pub(crate) only: Option<String>,
    /// Also writes the results there.
    pub(crate) json: Option<PathBuf>,
}

fn name(trial: &dyn Trial) -> String {
    format!("{}, {}", trial.system(), trial.case())
}

impl Bench {
    /// Runs them one after another and prints their reports. Says whether all outcomes were right. Of several, one whose
    /// server is not here is left out, and so is one that has nothing by the name that was chosen, unless none has.
    pub(crate) fn run(&self, scenarios: &[Box<dyn Scenario>]) -> Result<bool, Failure> {
        let mut all = Ran::default();
        let mut left_out = Vec::new();
        for scenario in scenarios {
            match self.run_one(&**scenario) {
                Ok(ran) => all = all.and(&ran),
                Err(failure @ (Failure::Absent { .. } | Failure::NothingChosen { .. })) => {
                    left_out.push((scenario.name(), failure));
                }
                Err(failure) => return Err(failure),
            }
        }
        if left_out.len() == scenarios.len()
            && let Some((_, failure)) = left_out.pop()
        {
            return Err(failure);
        }
        for (scenario, failure) in left_out {
            if let Failure::Absent { .. } = failure {
                println!("left out     {scenario}: {failure}");
            }
        }
        if let Some(path) = self.json.as_ref().filter(|_| !all.lines.is_empty()) {
            record::write_file(path, &all.lines)?;
        }
        Ok(!all.was_wrong)
    }

    fn run_one(&self, scenario: &dyn Scenario) -> Result<Ran, Failure> {
        std::fs::create_dir_all(&self.folder)
            .map_err(Failure::system(format!("make the folder {}", self.folder.display())))?;
        let own = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&self.folder)
            .map_err(Failure::system(format!("make a folder in {}", self.folder.display())))?;
        let stage = Stage {
            folder: own.path(),
            effort: self.effort,
        };
        let header = Header::read(scenario, &stage)?;
        let mut absent = Vec::new();
        let mut trials = scenario.prepare(&stage, &mut absent)?;
        self.choose(&mut trials)?;
        println!("{header}");
        println!("{}\n", scenario.about());
        let order: Vec<(String, String)> = trials
            .iter()
            .map(|trial| (trial.system().to_owned(), trial.case().to_owned()))
            .collect();
        let mut measurements = Measurements::default();
        let wrong = run_rounds(trials, &stage, &mut measurements);
        measurements.order_as(&order);

        println!("{}", table::render(&measurements, &scenario.yardsticks()));
        for goal in scenario.goals() {
            println!("{}", goal.line(&measurements));
        }
        for failure in &absent {
            println!("left out     {failure}");
        }
        for failure in &wrong {
            println!("FAILED       {failure}");
        }
        println!("load average before {}, after {}", header.load(), Header::load_now());
        if !wrong.is_empty() {
            return Ok(Ran {
                was_wrong: true,
                lines: String::new(),
            });
        }
        let lines = record::lines(&scenario.name(), &measurements);
        self.keep(scenario, header, &measurements, &lines, &absent)?;
        Ok(Ran {
            was_wrong: false,
            lines,
        })
    }

    fn choose(&self, trials: &mut Vec<Box<dyn Trial>>) -> Result<(), Failure> {
        let Some(only) = &self.only else {
            return Ok(());
        };
        let names: Vec<String> = trials.iter().map(|trial| name(&**trial)).collect();
        // A whole name means just that one, also where it is part of others.
        let is_whole = names.contains(only);
        trials.retain(|trial| {
            let name = name(&**trial);
            name == *only || (!is_whole && name.contains(only))
        });
        if trials.is_empty() {
            return Err(Failure::NothingChosen {
                only: only.clone(),
                names: names.join("; "),
            });
        }
        Ok(())
    }

    /// The last results of a scenario are those of its last run that means something.
    fn keep(
        &self,
        scenario: &dyn Scenario,
        header: Header,
        measurements: &Measurements,
        lines: &str,
        absent: &[Failure],
    ) -> Result<(), Failure> {
        if self.effort.meaningful && self.only.is_none() && !cfg!(debug_assertions) {
            let run = run_of(scenario, header, measurements, absent);
            let results = results_folder();
            record::write_file(&record::figures_file(&results, &scenario.name()), lines)?;
            record::write_file(&record::run_file(&results, &scenario.name()), &run.json())?;
        }
        Ok(())
    }
}

/// What came of a scenario, or of several.
#[derive(Debug, Default)]
struct Ran {
    /// Some outcome was wrong or missing.
    was_wrong: bool,
    /// The results of those that were right.
    lines: String,
}

impl Ran {
    fn and(self, other: &Self) -> Self {
        Self {
            was_wrong: self.was_wrong || other.was_wrong,
            lines: self.lines + &other.lines,
        }
    }
}

/// What is kept of a run beside its figures.
fn run_of(scenario: &dyn Scenario, header: Header, measurements: &Measurements, absent: &[Failure]) -> Run {
    Run {
        header,
        about: scenario.about(),
        yardsticks: scenario.yardsticks(),
        goals: Some(scenario.goals().iter().map(|goal| goal.judge(measurements)).collect()),
        left_out: absent.iter().map(ToString::to_string).collect(),
        courses: measurements.courses().to_vec(),
    }
}

/// Runs all trials `rounds` times. Returns what went wrong; a trial with which something did is not run again.
fn run_rounds(mut trials: Vec<Box<dyn Trial>>, stage: &Stage<'_>, measurements: &mut Measurements) -> Vec<Failure> {
    let mut wrong = Vec::new();
    let rounds = stage.effort.rounds;
    for round in 0..rounds {
        if round > 0 {
            trials.reverse();
        }
        trials.retain_mut(|trial| {
            let name = name(&**trial);
            let turn = format!("round {} of {rounds}: {name}", round + 1);
            match trial.measure(stage) {
                Ok(readings) => {
                    let shown = readings.first().map_or_else(String::new, |reading| {
                        format!("{} {}", figure(reading.value), reading.unit)
                    });
                    eprintln!("{turn}: {shown}");
                    measurements.add(trial.system(), trial.case(), &readings);
                    if let Some(course) = trial.course() {
                        measurements.follow(trial.system(), trial.case(), course);
                    }
                    true
                }
                Err(failure) => {
                    eprintln!("{turn}: {failure}");
                    measurements.remove(trial.system(), trial.case());
                    wrong.push(Failure::Trial {
                        name,
                        cause: Box::new(failure),
                    });
                    false
                }
            }
        });
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;
    use std::rc::Rc;

    use super::*;
    use crate::goal::{Beside, Goal, Key};
    use crate::judged::{Verdict, Wanted};
    use crate::measurement::Reading;
    use crate::places::default_folder;
    use crate::scenario::Yardsticks;

    /// Notes its turns, and fails in the round it is told to.
    struct Noted {
        system: &'static str,
        fails_in: Option<usize>,
        turns: usize,
        notes: Rc<RefCell<Vec<&'static str>>>,
    }

    impl Trial for Noted {
        fn system(&self) -> &str {
            self.system
        }

        fn case(&self) -> &'static str {
            "case"
        }

        fn measure(&mut self, _: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
            self.turns += 1;
            self.notes.borrow_mut().push(self.system);
            if self.fails_in == Some(self.turns) {
                return Err(Failure::Wrong("a row is missing".into()));
            }
            Ok(vec![Reading::new("rate", "rows/s", 1.0)])
        }
    }

    fn run(rounds: u32, trials: &[(&'static str, Option<usize>)]) -> (Vec<&'static str>, Measurements, Vec<Failure>) {
        let notes = Rc::new(RefCell::new(Vec::new()));
        let trials = trials.iter().map(|(system, fails_in)| -> Box<dyn Trial> {
            Box::new(Noted {
                system,
                fails_in: *fails_in,
                turns: 0,
                notes: Rc::clone(&notes),
            })
        });
        let stage = Stage {
            folder: Path::new("."),
            effort: Effort::tiny().with(Some(rounds), None),
        };
        let mut measurements = Measurements::default();
        let wrong = run_rounds(trials.collect(), &stage, &mut measurements);
        (notes.take(), measurements, wrong)
    }

    #[test]
    fn systems_take_turns_in_changing_order() {
        let (turns, measurements, wrong) = run(3, &[("a", None), ("b", None), ("c", None)]);
        assert_eq!(turns, ["a", "b", "c", "c", "b", "a", "a", "b", "c"]);
        assert!(wrong.is_empty());
        assert!(measurements.series().iter().all(|series| series.values.len() == 3));
    }

    #[test]
    fn a_wrong_outcome_takes_the_figures_of_its_trial_and_fails_the_run() {
        let (turns, measurements, wrong) = run(3, &[("a", None), ("b", Some(2))]);
        assert_eq!(turns, ["a", "b", "b", "a", "a"]);
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].to_string().contains("b, case"), "{}", wrong[0]);
        assert!(measurements.find("b", "case", "rate").is_none());
        assert_eq!(measurements.find("a", "case", "rate").unwrap().values.len(), 3);
    }

    /// A scenario that hopes for twice its peer, and for what was not measured.
    struct Hopeful;

    impl Scenario for Hopeful {
        fn name(&self) -> String {
            "hopeful".to_owned()
        }

        fn about(&self) -> String {
            "peer: slow.".to_owned()
        }

        fn versions(&self) -> Vec<(String, String)> {
            vec![("peer".to_owned(), "1".to_owned())]
        }

        fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
            Ok(Vec::new())
        }

        fn yardsticks(&self) -> Yardsticks {
            Yardsticks {
                limit: Some(Key::new("peer", "case")),
                forebay: None,
            }
        }

        fn goals(&self) -> Vec<Goal> {
            ["case", "another case"]
                .map(|case| Goal {
                    text: "twice the peer".to_owned(),
                    metric: "rate",
                    ours: Key::new("forebay", case),
                    beside: Beside::Ratio(vec![Key::new("peer", case)]),
                    wanted: Wanted::AtLeast(2.0),
                })
                .into()
        }
    }

    /// A scenario of one trial, or of none because its server is absent.
    struct Single {
        name: &'static str,
        system: &'static str,
        is_here: bool,
        fails: bool,
    }

    impl Scenario for Single {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn about(&self) -> String {
            String::new()
        }

        fn versions(&self) -> Vec<(String, String)> {
            Vec::new()
        }

        fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
            if !self.is_here {
                return Err(Failure::Absent {
                    what: "the server".to_owned(),
                    cause: "not found".to_owned(),
                    remedy: "install it".to_owned(),
                });
            }
            Ok(vec![Box::new(Noted {
                system: self.system,
                fails_in: self.fails.then_some(1),
                turns: 0,
                notes: Rc::default(),
            })])
        }

        fn yardsticks(&self) -> Yardsticks {
            Yardsticks::default()
        }

        fn goals(&self) -> Vec<Goal> {
            Vec::new()
        }
    }

    /// Runs a scenario a letter: of system `a`, `b` and so on; `-` is absent, an upper-case letter fails.
    fn run_several(kinds: &str, only: Option<&str>) -> (Result<bool, Failure>, Vec<String>) {
        std::fs::create_dir_all(default_folder()).unwrap();
        let folder = tempfile::tempdir_in(default_folder()).unwrap();
        let json = folder.path().join("results.jsonl");
        let scenarios = ["a", "b", "c"].iter().zip(kinds.chars()).map(|(system, kind)| {
            let single: Box<dyn Scenario> = Box::new(Single {
                name: system,
                system,
                is_here: kind != '-',
                fails: kind.is_uppercase(),
            });
            single
        });
        let bench = Bench {
            effort: Effort::tiny(),
            folder: folder.path().to_owned(),
            only: only.map(str::to_owned),
            json: Some(json.clone()),
        };
        let ran = bench.run(&scenarios.collect::<Vec<_>>());
        let lines = std::fs::read_to_string(&json).unwrap_or_default();
        let of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["scenario"].to_string();
        (ran, lines.lines().map(of).collect())
    }

    #[test]
    fn results_of_several_scenarios_are_in_one_file() {
        let (ran, results) = run_several("abc", None);
        assert!(ran.unwrap());
        assert_eq!(results, ["\"a\"", "\"b\"", "\"c\""]);
    }

    #[test]
    fn a_wrong_outcome_in_one_of_several_fails_the_run_and_has_no_results() {
        let (ran, results) = run_several("aB", None);
        assert!(!ran.unwrap());
        assert_eq!(results, ["\"a\""]);
    }

    #[test]
    fn of_several_scenarios_those_that_can_are_run() {
        let (ran, results) = run_several("-b", None);
        assert!(ran.unwrap());
        assert_eq!(results, ["\"b\""]);
        assert!(matches!(run_several("-", None).0, Err(Failure::Absent { .. })));
        assert!(matches!(run_several("--", None).0, Err(Failure::Absent { .. })));
    }

    #[test]
    fn what_is_chosen_must_be_in_one_of_several_scenarios() {
        let (ran, results) = run_several("abc", Some("b, case"));
        assert!(ran.unwrap());
        assert_eq!(results, ["\"b\""]);
        let nothing = run_several("ab", Some("nothing like that")).0;
        assert!(matches!(nothing, Err(Failure::NothingChosen { .. })));
    }

    #[test]
    fn what_is_kept_of_a_run_is_read_back_with_its_verdicts() {
        std::fs::create_dir_all(default_folder()).unwrap();
        let folder = tempfile::tempdir_in(default_folder()).unwrap();
        let stage = Stage {
            folder: folder.path(),
            effort: Effort::tiny(),
        };
        let mut measurements = Measurements::default();
        for (system, value) in [("forebay", 5.0), ("peer", 2.0)] {
            measurements.add(system, "case", &[Reading::new("rate", "rows/s", value)]);
        }
        let header = Header::read(&Hopeful, &stage).unwrap();
        let absent = [Failure::Wrong("nobody is here".into())];
        let run = run_of(&Hopeful, header, &measurements, &absent);
        let file = record::run_file(folder.path(), "hopeful");
        record::write_file(&file, &run.json()).unwrap();
        let read = record::read_run(&file).unwrap().unwrap();
        let goals = read.goals.unwrap();
        let verdicts: Vec<_> = goals.iter().map(|goal| (goal.verdict(), goal.measured)).collect();
        assert_eq!(verdicts, [(Verdict::Met, Some(2.5)), (Verdict::NotMeasured, None)]);
        assert_eq!(
            (&*read.about, read.yardsticks.limit),
            ("peer: slow.", Some(Key::new("peer", "case")))
        );
        assert_eq!(read.left_out, ["wrong outcome: nobody is here"]);
        assert_eq!(
            (&read.header.commit, &read.header.date),
            (&run.header.commit, &run.header.date)
        );
        assert!(read.header.versions.contains(&("peer".to_owned(), "1".to_owned())));
    }
}
