//! What is known to differ through the proxy: `known/SUITE.txt`, as data.
//!
//! A line `= TEST: REASON` begins what may differ in a test. The reason is the beginning of an entry of the guide's "What is different",
//! word for word. Where texts are compared, behind it stand the lines that may differ, as `diff` shows them: `< ` what comes straight, `> ` what comes through the
//! proxy; a `*` stands for any letters. Whether such a difference shows may depend on whom a connection belonged to before, so that it
//! need not.

use std::{fs, path::Path};

use crate::ways::sources;

const SUITES: [&str; 3] = ["regress", "pgx", "tokio_postgres"];

/// A test that may differ.
pub(crate) struct Known {
    test: String,
    reason: String,
    lines: Vec<String>,
}

impl Known {
    /// Whether this test may differ.
    pub(crate) fn is_of(&self, test: &str) -> bool {
        self.test == test
    }

    /// Whether this line may differ in this test.
    pub(crate) fn allows(&self, test: &str, line: &str) -> bool {
        self.test == test && self.lines.iter().any(|pattern| matches(pattern, line))
    }
}

/// All that is known of a suite.
pub(crate) fn of(suite: &str) -> Vec<Known> {
    let text = fs::read_to_string(sources("known").join(format!("{suite}.txt"))).unwrap_or_default();
    let mut known: Vec<Known> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("= ") {
            let (test, reason) = head.split_once(": ").expect(line);
            known.push(Known {
                test: test.into(),
                reason: reason.into(),
                lines: Vec::new(),
            });
        } else {
            known.last_mut().expect(line).lines.push(line.to_owned());
        }
    }
    known
}

/// Whether the whole line is what the pattern says.
fn matches(pattern: &str, line: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else {
        return pattern == line;
    };
    let ends = |rest: &str| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(behind, &rest[at..]));
    line.strip_prefix(before).is_some_and(ends)
}

#[test]
fn a_star_stands_for_any_letters() {
    assert!(matches("> a*b*", "> a (b) c b"));
    assert!(matches("> ", "> "));
    assert!(!matches("> a*b", "> a b c"));
    assert!(!matches("> a", "> a b"));
}

#[test]
fn reasons_are_those_of_the_guide() {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/proxy.md");
    let chapter = fs::read_to_string(chapter).unwrap();
    let (_, below) = chapter.split_once("\n## What is different\n").unwrap();
    let (told, _) = below.split_once("\nWhat is compared").unwrap();
    let entries: Vec<String> = told
        .split("\n- ")
        .map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for suite in SUITES {
        for Known { test, reason, .. } in of(suite) {
            assert!(
                reason.len() > 20 && entries.iter().any(|entry| entry.starts_with(&reason)),
                "{suite}, {test}: the guide has no entry that begins with: {reason}"
            );
        }
    }
}
