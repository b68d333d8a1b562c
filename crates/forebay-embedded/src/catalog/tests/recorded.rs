//! Recorded queries of psql 15 and other clients, with the answers PostgreSQL 15 gave for the same schema.

use super::World;

const PSQL: &str = include_str!("../data/psql15.txt");
const CLIENTS: &str = include_str!("../data/clients15.txt");

struct Exchange {
    command: &'static str,
    query: &'static str,
    answer: &'static str,
}

fn exchanges(recorded: &'static str) -> Vec<Exchange> {
    recorded
        .split("==== ")
        .skip(1)
        .map(|block| {
            let (command, rest) = block.split_once('\n').unwrap();
            let (query, rest) = rest.split_once("\n----").unwrap();
            let (_, answer) = rest.split_once('\n').unwrap();
            Exchange {
                command,
                query,
                answer: answer.trim_end_matches('\n'),
            }
        })
        .collect()
}

#[test]
fn psql_is_answered_as_by_postgresql() {
    compare(exchanges(PSQL), 67);
}

#[test]
fn clients_are_answered_as_by_postgresql() {
    compare(exchanges(CLIENTS), 40);
}

/// Without ORDER BY the order of rows says nothing.
fn ordered(query: &str, answer: &str) -> String {
    let mut lines: Vec<&str> = answer.trim_end_matches('\n').lines().collect();
    if !query.contains("ORDER BY") {
        lines.sort_unstable();
    }
    lines.join("\n")
}

fn compare(exchanges: Vec<Exchange>, at_least: usize) {
    let world = World::standard();
    let names = world.relations();
    let mut failures = String::new();
    assert!(exchanges.len() >= at_least, "the recording is whole");
    for exchange in exchanges {
        let mut query = exchange.query.to_owned();
        for (oid, name) in &names {
            query = query.replace(&format!("{{{name}}}"), oid);
        }
        let answer = match crate::catalog::Catalog::translate(&query) {
            Err(error) => format!("not translated: {error}"),
            Ok(translation) => match world.run(&translation, &[]) {
                Ok(rows) => rows.join("\n"),
                Err(error) => format!("failed: {error}\n{}", translation.sql),
            },
        };
        let mut shown = answer;
        for (oid, name) in &names {
            shown = shown.replace(oid.as_str(), &format!("{{{name}}}"));
        }
        if ordered(&query, &shown) != ordered(&query, exchange.answer) {
            let expected: Vec<&str> = exchange
                .answer
                .lines()
                .filter(|line| !shown.lines().any(|other| other == *line))
                .collect();
            let got: Vec<&str> = shown
                .lines()
                .filter(|line| !exchange.answer.lines().any(|other| other == *line))
                .collect();
            failures.push_str(&format!(
                "==== {}\n{}\n---- expected\n{}\n---- got\n{}\n\n",
                exchange.command,
                exchange.query,
                expected.join("\n"),
                got.join("\n")
            ));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
