//! Killed at any moment, nothing that was acknowledged is lost, and nothing is there twice.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use forebay_sqlite::Sqlite;
use forebay_write::{Write, Writer};
use rand::Rng;

use crate::Database;

const CHILD: &str = "FOREBAY_TEST_KILLED";
const CHILD_TASKS: &str = "FOREBAY_TEST_KILLED_TASKS";
const ROUNDS: i64 = 20;

#[test]
fn killed_at_any_moment_it_loses_nothing_acknowledged() {
    if let Some(path) = std::env::var_os(CHILD) {
        return writing_child(path.as_ref());
    }
    let database = Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL)");
    let mut acknowledged: HashSet<String> = HashSet::new();
    for round in 0..ROUNDS {
        // Each on its own thread if nobody writes beside it, in every second round.
        let tasks = if round % 2 == 0 { "32" } else { "1" };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "kill::killed_at_any_moment_it_loses_nothing_acknowledged",
                "--nocapture",
            ])
            .env(CHILD, &database.path)
            .env(CHILD_TASKS, tasks)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // At a moment that the clock has no part in: after so many acknowledgements.
        let until = rand::rng().random_range(1..400);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        let mut hear = |line: std::io::Result<String>| {
            let line = line.unwrap();
            if let Some(id) = line.strip_prefix("acknowledged ").and_then(|id| id.strip_suffix(" .")) {
                assert!(
                    acknowledged.insert(format!("{round}-{id}")),
                    "{id} was acknowledged twice"
                );
                heard += 1;
            }
            heard
        };
        for line in lines.by_ref() {
            if hear(line) == until {
                break;
            }
        }
        child.kill().unwrap();
        for line in lines {
            hear(line);
        }
        assert!(
            !child.wait().unwrap().success(),
            "it was killed, and did not end by itself"
        );
        assert!(heard >= until);
        // The rows of this round get its number, so that each round's ids are its own.
        let connection = database.plain();
        connection
            .execute("UPDATE t SET id = ?1 || '-' || id WHERE id NOT LIKE '%-%'", [round])
            .unwrap();
        let rows = crate::rows_of(&connection, "SELECT id FROM t");
        let there: HashSet<&String> = rows.iter().collect();
        assert_eq!(there.len(), rows.len(), "something is there twice");
        let lost: Vec<_> = acknowledged.iter().filter(|id| !there.contains(id)).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged and lost: {lost:?}");
    }
    assert_eq!(database.read("PRAGMA integrity_check"), ["ok"]);
}

fn writing_child(path: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let writer = Writer::new(Sqlite::open(path).unwrap());
        let tasks: u64 = std::env::var(CHILD_TASKS).unwrap().parse().unwrap();
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let writer = writer.clone();
                tokio::spawn(async move {
                    // Ends by itself long after it should have been killed.
                    for step in 0..20_000 {
                        let id = format!("{task}/{step}");
                        writer
                            .submit_in_place(Write::new("INSERT INTO t (id) VALUES ($1)", [id.as_str()]))
                            .await
                            .unwrap();
                        // One system call a line: the pipe holds whole lines or, at the very end, a part of one.
                        let line = format!("acknowledged {id} .\n");
                        std::io::stdout().write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}
