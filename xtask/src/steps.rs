//! Runs steps one after the other, whatever becomes of each, so that one run shows all that is wrong.

use std::time::Instant;

use crate::{
    command::Command,
    report::{Finished, Outcome, Report},
};

/// What a step does: returns how it ended.
type Work<'a> = Box<dyn FnOnce() -> Outcome + 'a>;

/// Steps to run in order.
#[derive(Default)]
pub(crate) struct Steps<'a> {
    steps: Vec<(String, Work<'a>)>,
}

impl<'a> Steps<'a> {
    /// A step that passes when the command succeeds.
    pub(crate) fn command(&mut self, name: &str, command: Command) {
        self.step(name, move || outcome_of(&command));
    }

    /// A step that says itself how it ended.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome + 'a) {
        self.steps.push((name.to_owned(), Box::new(work)));
    }

    /// Runs all of them and returns whether the run passed.
    pub(crate) fn run(self) -> bool {
        let count = self.steps.len();
        let mut report = Report::new();
        for (at, (name, work)) in self.steps.into_iter().enumerate() {
            println!("\n==> [{}/{count}] {name}", at + 1);
            let begun = Instant::now();
            let outcome = work();
            let took = begun.elapsed();
            if let Outcome::Failed(how) | Outcome::DidNotRun(how) | Outcome::OptionalDidNotRun(how) = &outcome {
                // The rest was shown as it came.
                println!("{}", how.lines().next().unwrap_or_default());
            }
            report.add(Finished { name, outcome, took });
        }
        report.close()
    }
}

/// Runs the command now.
pub(crate) fn outcome_of(command: &Command) -> Outcome {
    match command.run_explained() {
        Ok(()) => Outcome::Passed,
        Err(how) => Outcome::Failed(how),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_failed_step_does_not_keep_the_next_from_running() {
        let ran = RefCell::new(Vec::new());
        let mut steps = Steps::default();
        steps.command("first", Command::new("/bin/sh").arguments(["-c", "exit 1"]));
        steps.step("second", || {
            ran.borrow_mut().push("second");
            Outcome::Passed
        });
        assert!(!steps.run());
        assert_eq!(*ran.borrow(), ["second"]);
    }
}
