//! psql's backslash commands: the exact queries of psql 15, with the answers PostgreSQL 15 gave for the same schema.

use super::World;

const RECORDED: &str = include_str!("../data/psql15.txt");

struct Exchange {
    command: &'static str,
    query: &'static str,
    answer: &'static str,
}

fn exchanges() -> Vec<Exchange> {
    RECORDED
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
fn answers_as_postgresql_does() {
    let world = World::standard();
    let names = world.relations();
    let mut failures = String::new();
    let exchanges = exchanges();
    assert!(exchanges.len() > 60, "the recording is whole");
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
        if shown.trim_end_matches('\n') != exchange.answer {
            failures.push_str(&format!(
                "==== {}\n{}\n---- expected\n{}\n---- got\n{shown}\n\n",
                exchange.command, exchange.query, exchange.answer
            ));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
