//! Statements as people write them, from a file: one a line, in order.

use crate::{statements::Case, tree::Node};

/// What statements of the file have in common with what people write every day.
const OWN: &str = include_str!("expressions.txt");

fn named() -> Option<String> {
    std::env::var("FOREBAY_CORPUS").ok().filter(|path| !path.is_empty())
}

/// Whether they are somebody else's.
pub(crate) fn is_named() -> bool {
    named().is_some()
}

/// The cases of a file; without one, of our own.
pub(crate) fn cases() -> Vec<Case> {
    let text = named().map_or_else(
        || OWN.to_owned(),
        |path| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")),
    );
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with("--"))
        .map(|(number, line)| {
            let statement = line.trim().trim_end_matches(';');
            let lower = statement.to_lowercase();
            let ordered = lower.contains("order by") || !lower.contains(" from ");
            let mut case = Case::of_statement(
                format!("line {}", number + 1),
                Node::clause("", vec![statement.into()]),
                ordered,
            );
            // What changes tables is said as psql says it.
            case.steps[0].is_simple = !lower.starts_with("select") && !lower.starts_with("with");
            case
        })
        .collect()
}
