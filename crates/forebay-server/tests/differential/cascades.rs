//! Deletions that go further by foreign keys: small schemas, made at random, in which ways meet.
//!
//! Promises: what goes and what stays is what goes and stays in PostgreSQL. Where what protects a row is itself on its way out, the
//! deletion may be refused as a violation that PostgreSQL would not have come to; and where a row of the same transaction is loosened on
//! its way out, as one that is not supported: how often is counted, and bounded.

use crate::connection::{Answer, Send};
use crate::definitions::simple;
use crate::random::Random;
use crate::servers::Pair;
use crate::verdict::shown;

const TABLES: usize = 5;
const ACTIONS: &[&str] = &[
    "ON DELETE CASCADE",
    "ON DELETE CASCADE",
    "ON DELETE CASCADE",
    "",
    "",
    "ON DELETE RESTRICT",
    "ON DELETE SET NULL",
];

/// What came of some scripts.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) different: Vec<String>,
    /// How many deletions PostgreSQL carried out, and how many of them were refused.
    pub(crate) done: usize,
    pub(crate) refused: usize,
}

/// A schema with its rows, one deletion, and the look at what is left; half of the time all of it in a transaction that is rolled back.
fn script(random: &mut Random) -> Vec<String> {
    let in_one = random.chance(50);
    let mut statements = vec!["BEGIN".to_owned()];
    let (mut rows, mut looks) = (Vec::new(), Vec::new());
    for table in 0..TABLES {
        let mut columns = vec!["id integer PRIMARY KEY".to_owned()];
        let keys: Vec<usize> = (0..random.below(4))
            .map(|_| {
                let tables = if random.chance(15) { table + 1 } else { table.max(1) };
                random.below(tables)
            })
            .collect();
        for (place, to) in keys.iter().enumerate() {
            let action = if *to == table { "" } else { random.pick(ACTIONS) };
            columns.push(format!("k{place} integer REFERENCES f{to} {action}"));
        }
        statements.push(format!("CREATE TABLE f{table} ({})", columns.join(", ")));
        let mut lines = Vec::new();
        for id in 1..=2 + random.below(2) {
            let mut values = vec![id.to_string()];
            for to in &keys {
                let most = if *to == table { id } else { 2 };
                let is_null = random.chance(25);
                values.push(if is_null {
                    "NULL".to_owned()
                } else {
                    (1 + random.below(most)).to_string()
                });
            }
            lines.push(format!("({})", values.join(", ")));
        }
        rows.push(format!("INSERT INTO f{table} VALUES {}", lines.join(", ")));
        looks.push(format!("SELECT * FROM f{table} ORDER BY id"));
    }
    statements.append(&mut rows);
    if !in_one {
        statements.push("COMMIT".to_owned());
    }
    let table = random.below(TABLES - 1);
    let condition = *random.pick(&["id = 1", "id = 2", "id <= 2", "id > 1", "true"]);
    statements.push(format!("DELETE FROM f{table} WHERE {condition}"));
    statements.append(&mut looks);
    if in_one {
        statements.push("ROLLBACK".to_owned());
    } else {
        statements.extend((0..TABLES).rev().map(|table| format!("DROP TABLE f{table}")));
    }
    statements
}

/// What PostgreSQL and Forebay say, by their SQLSTATE or tag, to a deletion that loosens a row by its first key and takes it along by its
/// second: in the transaction that has made the row, or behind it; both keys leading back to one row of the deletion, or to one each.
pub(crate) fn loosened_on_its_way_out(pair: &mut Pair, in_one: bool, by_one_row: bool) -> [String; 2] {
    let statements = [
        "BEGIN",
        "CREATE TABLE a (id integer PRIMARY KEY)",
        "CREATE TABLE c (id integer PRIMARY KEY, loose integer REFERENCES a ON DELETE SET NULL)",
        "CREATE TABLE b (id integer PRIMARY KEY, up integer REFERENCES a ON DELETE CASCADE)",
        "ALTER TABLE c ADD COLUMN up integer REFERENCES b ON DELETE CASCADE",
        "INSERT INTO a VALUES (1), (2), (3)",
        "INSERT INTO b VALUES (1, 1), (2, 2)",
        if by_one_row {
            "INSERT INTO c VALUES (1, 1, 1), (2, 3, 1)"
        } else {
            "INSERT INTO c VALUES (1, 1, 2), (2, 3, 1)"
        },
        if in_one { "SAVEPOINT here" } else { "COMMIT" },
        // By one of its keys only: that is none of the case.
        "DELETE FROM a WHERE id = 3",
        "DELETE FROM a",
        if in_one { "ROLLBACK" } else { "DROP TABLE c, b, a" },
    ];
    let cases: Vec<Vec<Send>> = statements.iter().map(|statement| vec![simple(statement)]).collect();
    let (postgres, forebay) = pair.run(&cases);
    let [postgres, forebay] = [postgres, forebay].map(|answers| {
        let answers: Vec<Answer> = answers.into_iter().flatten().collect();
        assert_eq!(answers[9].tag, "DELETE 1", "{}", shown(&answers[9]));
        let said = answers[10].error.as_ref().map(|error| error.sqlstate.clone());
        said.unwrap_or_else(|| answers[10].tag.clone())
    });
    [postgres, forebay]
}

pub(crate) fn outcome(pair: &mut Pair, seed: u64, scripts: usize) -> Outcome {
    let mut outcome = Outcome::default();
    for number in 0..scripts {
        let statements = script(&mut Random::of_case(seed, number as u64));
        let cases: Vec<Vec<Send>> = statements.iter().map(|statement| vec![simple(statement)]).collect();
        let (postgres, forebay) = pair.run(&cases);
        let answers: Vec<(&Answer, &Answer)> = postgres.iter().flatten().zip(forebay.iter().flatten()).collect();
        for (statement, (wanted, given)) in statements.iter().zip(answers) {
            let deletes = statement.starts_with("DELETE");
            outcome.done += usize::from(deletes && wanted.error.is_none());
            let given_state = given.error.as_ref().map(|error| error.sqlstate.as_str());
            let is_refused = match given_state {
                Some("23503") => wanted.error.is_none(),
                Some("0A000") => true,
                _ => false,
            };
            if deletes && is_refused {
                outcome.refused += 1;
                break;
            }
            let states = |answer: &Answer| answer.error.as_ref().map(|error| error.sqlstate.clone());
            if (states(wanted), &wanted.rows, &wanted.tag) != (states(given), &given.rows, &given.tag) {
                outcome.different.push(format!(
                    "script {number}\n{}\n  > {statement}\n    PostgreSQL  {}\n    Forebay     {}",
                    statements.join(";\n"),
                    shown(wanted),
                    shown(given)
                ));
                break;
            }
        }
    }
    outcome
}
