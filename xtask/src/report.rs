//! What became of the steps: shown at the end, counted, and turned into the exit status; below the table of them, what tells why
//! each of the failed ones did, because their output is far up.
//!
//! Contract: a step that did not run is never counted as passed. It fails the run where everything must run (continuous
//! integration), unless the step is optional and so says why.

use std::{env, time::Duration};

use crate::reasons::LINES_MAX;

/// How one step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Ran and failed: how, in one line, and below it what tells why, if anything does.
    Failed(String),
    /// Could not run here: why, and what to do about it. Fails where everything must run.
    DidNotRun(String),
    /// Could not run here and need not: why that is acceptable, and how to have it run.
    OptionalDidNotRun(String),
}

/// A step that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// The steps that are over, in order.
#[derive(Debug)]
pub(crate) struct Report {
    steps: Vec<Finished>,
    /// Whether a step that did not run is a failure.
    everything_must_run: bool,
}

impl Report {
    pub(crate) fn new() -> Self {
        let in_continuous_integration = env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        Self {
            steps: Vec::new(),
            everything_must_run: in_continuous_integration,
        }
    }

    pub(crate) fn add(&mut self, step: Finished) {
        self.steps.push(step);
    }

    /// The end of the run: one line a step, then why the failed ones did, then the counts alone on the last line. Returns whether the
    /// run passed.
    pub(crate) fn close(&self) -> bool {
        let (text, passed) = self.text();
        print!("{text}");
        passed
    }

    fn text(&self) -> (String, bool) {
        let width = self
            .steps
            .iter()
            .map(|step| step.name.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::from("\n");
        let (mut passed, mut failed) = (0, 0);
        let mut explained = Vec::new();
        for step in &self.steps {
            let must = self.everything_must_run;
            let (word, note, count) = match &step.outcome {
                Outcome::Passed => ("passed", "", &mut passed),
                Outcome::Failed(how) => {
                    let (how, why) = how.split_once('\n').unwrap_or((how, ""));
                    if !why.is_empty() {
                        explained.push((&step.name, why));
                    }
                    ("FAILED", how, &mut failed)
                }
                Outcome::DidNotRun(why) if must => ("DID NOT RUN", why.as_str(), &mut failed),
                Outcome::DidNotRun(why) => ("did not run", why.as_str(), &mut 0),
                Outcome::OptionalDidNotRun(why) => ("did not run (optional)", why.as_str(), &mut 0),
            };
            *count += 1;
            let colon = if note.is_empty() { "" } else { ": " };
            let seconds = step.took.as_secs_f64();
            text.push_str(&format!("{:width$}  {seconds:6.1} s  {word}{colon}{note}\n", step.name));
        }
        for (name, why) in &explained {
            let lines: Vec<&str> = why.lines().collect();
            let shown = LINES_MAX / explained.len().min(LINES_MAX);
            text.push_str(&format!("\n{name} FAILED:\n"));
            for line in &lines[lines.len().saturating_sub(shown)..] {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text.push_str(&format!("\n{passed} passed, {failed} failed\n"));
        (text, failed == 0 && passed > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(everything_must_run: bool, outcomes: impl IntoIterator<Item = Outcome>) -> (String, bool) {
        let mut report = Report {
            steps: Vec::new(),
            everything_must_run,
        };
        for outcome in outcomes {
            report.add(Finished {
                name: "step".into(),
                outcome,
                took: Duration::from_millis(1500),
            });
        }
        report.text()
    }

    #[test]
    fn passed_and_failed_are_counted_alone_on_the_last_line() {
        let (text, passed) = report(false, [Outcome::Passed, Outcome::Failed("how".into()), Outcome::Passed]);
        assert_eq!(text.lines().last(), Some("2 passed, 1 failed"));
        assert!(text.contains("step     1.5 s  FAILED: how\n"), "{text}");
        assert!(!passed);
    }

    #[test]
    fn a_failed_step_is_explained_below_the_table() {
        let failed = |why: &str| Outcome::Failed(format!("how\n{why}"));
        let (text, _) = report(false, [failed("a\nb"), Outcome::Passed, Outcome::Failed("how".into())]);
        let table = "step     1.5 s  FAILED: how\nstep     1.5 s  passed\nstep     1.5 s  FAILED: how\n";
        assert_eq!(
            text,
            format!("\n{table}\nstep FAILED:\n  a\n  b\n\n1 passed, 2 failed\n")
        );
    }

    #[test]
    fn failed_steps_share_the_room_for_their_ends() {
        let lines: Vec<String> = (0..LINES_MAX).map(|line| line.to_string()).collect();
        let failed = || Outcome::Failed(format!("how\n{}", lines.join("\n")));
        let count = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(count(&report(false, [failed()]).0), LINES_MAX);
        let (text, _) = report(false, [failed(), failed()]);
        assert_eq!(count(&text), LINES_MAX);
        assert!(
            !text.contains("  0\n") && text.contains(&format!("  {}\n", LINES_MAX - 1)),
            "{text}"
        );
        assert_eq!(
            count(&report(false, (0..2 * LINES_MAX).map(|_| failed())).0),
            2 * LINES_MAX
        );
    }

    #[test]
    fn what_did_not_run_is_shown_and_fails_only_where_everything_must_run() {
        let outcomes = || [Outcome::Passed, Outcome::DidNotRun("no psql".into())];
        let (text, passed) = report(false, outcomes());
        assert!(text.contains("did not run: no psql"), "{text}");
        assert!(passed && text.ends_with("\n1 passed, 0 failed\n"), "{text}");
        let (text, passed) = report(true, outcomes());
        assert!(!passed && text.ends_with("\n1 passed, 1 failed\n"), "{text}");
        assert!(report(true, [Outcome::Passed, Outcome::OptionalDidNotRun("why".into())]).1);
    }

    #[test]
    fn a_run_in_which_nothing_ran_has_not_passed() {
        assert!(!report(false, []).1);
        assert!(!report(false, [Outcome::DidNotRun("why".into())]).1);
    }
}
