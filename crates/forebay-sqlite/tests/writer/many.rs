//! Many tasks at once, a few of them in error: exactly those fail, and the table holds exactly what was acknowledged.

use forebay_write::{StatementErrorKind as Kind, Value, Writer};

use crate::{Database, kind};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_tasks_one_percent_in_error() {
    const TASKS: i64 = 200;
    const EACH: i64 = 50;
    let database =
        Database::new("CREATE TABLE t (n INTEGER UNIQUE, id INTEGER PRIMARY KEY); INSERT INTO t (n) VALUES (-1)");
    let writer = Writer::new(database.open());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let writer = writer.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for step in 0..EACH {
                    let number = task * EACH + step;
                    let bad = number % 100 == 99;
                    let n = if bad { -1 } else { number };
                    let answer = writer.execute("INSERT INTO t (n) VALUES ($1) RETURNING n", [n]).await;
                    if bad {
                        assert_eq!(kind(&answer), Kind::Unique);
                        continue;
                    }
                    let outcome = answer.unwrap();
                    assert_eq!(outcome.rows, [[Value::Integer(n)]]);
                    acknowledged.push((outcome.last_insert_id.unwrap(), n));
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    acknowledged.sort_unstable();
    assert_eq!(acknowledged.len() as i64, TASKS * EACH * 99 / 100);
    let expected: Vec<String> = acknowledged.iter().map(|(id, n)| format!("{id}|{n}")).collect();
    assert_eq!(database.read("SELECT id, n FROM t WHERE n >= 0 ORDER BY id"), expected);
    let (calls, commits) = (writer.stats().calls as usize, database.take_commits());
    assert_eq!(calls as i64, TASKS * EACH);
    assert!(
        commits < calls / 4,
        "{commits} commits for {calls} statements: they were not shared"
    );
}
