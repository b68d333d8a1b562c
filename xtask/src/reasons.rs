//! The lines of a step's output that tell why it failed, for the end of a run, where the output itself is far up.
//!
//! Promises: keeps what follows the marks by which cargo, the compiler and the tests tell of a failure; where nothing is marked,
//! the last lines. What is kept is bounded, in lines and in their length, and the last of it wins.

use std::{collections::VecDeque, mem};

/// As many lines as are kept of one step's output.
pub(crate) const LINES_MAX: usize = 80;
/// Of output in which nothing is marked.
const UNMARKED_LINES_MAX: usize = 20;
/// A mark's line and what follows it: a panic with both sides of its assertion, an error with the code it points at.
const LINES_PER_MARK: usize = 10;
const LINE_CHARS_MAX: usize = 400;

/// What has been seen of the output up to now.
#[derive(Default)]
pub(crate) struct Reasons {
    marked: VecDeque<String>,
    /// The last lines, marked or not.
    last: VecDeque<String>,
    /// How many of the coming lines belong to the last mark.
    follow: usize,
}

impl Reasons {
    /// The next line of the output.
    pub(crate) fn see(&mut self, line: &str) {
        let line: String = line.chars().take(LINE_CHARS_MAX).collect();
        if is_mark(&line) {
            self.follow = LINES_PER_MARK;
        }
        if self.follow > 0 {
            self.follow -= 1;
            push(&mut self.marked, LINES_MAX, line.clone());
        }
        push(&mut self.last, UNMARKED_LINES_MAX, line);
    }

    /// The lines that tell most, in order; nothing has been seen from then on.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let Self { marked, last, .. } = mem::take(self);
        if marked.is_empty() { last } else { marked }.into()
    }
}

fn is_mark(line: &str) -> bool {
    line.contains("panicked at")
        || line.starts_with("error:")
        || line.starts_with("error[")
        || line == "failures:"
        || line.starts_with("test result: FAILED")
        || line.starts_with("test ") && line.ends_with("FAILED")
}

fn push(lines: &mut VecDeque<String>, max: usize, line: String) {
    if lines.len() == max {
        lines.pop_front();
    }
    lines.push_back(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str) -> Vec<String> {
        let mut reasons = Reasons::default();
        output.lines().for_each(|line| reasons.see(line));
        reasons.take()
    }

    #[test]
    fn a_failed_test_is_told_with_its_assertion_whatever_came_before_and_after() {
        let noise = "test a ... ok\n".repeat(200);
        let failure =
            "thread 'b' (7) panicked at src/b.rs:1:2:\nassertion `left == right` failed\n  left: 1\n right: 2\n";
        let list = "failures:\n    b\n\ntest result: FAILED. 200 passed; 1 failed\n";
        let told = of(&format!("{noise}test b ... FAILED\n{noise}{failure}{noise}{list}"));
        for line in [
            "test b ... FAILED",
            " right: 2",
            "    b",
            "test result: FAILED. 200 passed; 1 failed",
        ] {
            assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
        }
        assert!(told.len() <= 3 * LINES_PER_MARK + 3, "{told:?}");
    }

    #[test]
    fn a_compilers_error_is_told_with_its_place() {
        let told = of("   Compiling a v0.1.0\nerror[E0308]: mismatched types\n --> src/a.rs:3:4\n");
        assert_eq!(told, ["error[E0308]: mismatched types", " --> src/a.rs:3:4"]);
    }

    #[test]
    fn output_without_a_mark_is_told_by_its_end() {
        let output: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        assert_eq!(of(&output.join("\n")), output[100 - UNMARKED_LINES_MAX..]);
        assert!(of("").is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_last_of_it_wins() {
        let told = of(&format!(
            "{}error: last\n{}",
            "error: first\n".repeat(1000),
            "x".repeat(10_000)
        ));
        assert_eq!(told.len(), LINES_MAX);
        assert_eq!(told[LINES_MAX - 2], "error: last");
        assert_eq!(told[LINES_MAX - 1].len(), LINE_CHARS_MAX);
    }
}
