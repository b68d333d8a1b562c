//! Tables that change between a statement's being prepared and its being executed: the outcome is what it would be on a
//! connection that has prepared nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::write::{StatementErrorKind as Kind, Value, Write, Writer};
use futures_util::future::join_all;

use crate::place::Plain;
use crate::{Ledger, Place, Settings, Site, batch, kind, together, within};

on_both!(
    a_table_that_changes_is_written_as_it_is_now,
    a_null_is_written_to_a_column_that_has_another_type_now,
    a_table_that_is_gone_fails_its_statements_alone_and_is_written_when_it_is_back,
    a_table_that_changes_all_the_time_loses_and_doubles_nothing,
);

const SCHEMA: &str = "CREATE TABLE t (n INT, words TEXT)";

/// Statements that change the table; the last makes its type of number larger.
fn changes<S: Site>() -> Vec<&'static str> {
    let is_postgres = S::INSERT.contains('$');
    vec![
        "ALTER TABLE t ADD COLUMN more INT DEFAULT 5",
        "CREATE INDEX i ON t (n)",
        "ALTER TABLE t DROP COLUMN more",
        if is_postgres {
            "ALTER TABLE t ALTER COLUMN n TYPE TEXT"
        } else {
            "ALTER TABLE t MODIFY n VARCHAR(30)"
        },
        if is_postgres {
            "ALTER TABLE t ALTER COLUMN n TYPE INT USING n::int"
        } else {
            "ALTER TABLE t MODIFY n INT"
        },
        if is_postgres {
            "ALTER TABLE t ALTER COLUMN n TYPE BIGINT"
        } else {
            "ALTER TABLE t MODIFY n BIGINT"
        },
    ]
}

async fn a_table_that_changes_is_written_as_it_is_now<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let writer = Writer::new(handle.clone());
    // As a set, in a transaction, and alone.
    let sizes = [20, 2, 1];
    let mut all = Ledger::default();
    let mut next = 0;
    for size in sizes {
        let told = together::<S>(&handle, next..next + size).await;
        assert!(told.is_all_acknowledged());
        all.acknowledged.extend(told.acknowledged);
        next += size;
    }
    for size in sizes {
        for change in changes::<S>() {
            if change.starts_with("CREATE INDEX") && size != sizes[0] {
                continue;
            }
            prepared_on_all::<S>(&writer).await;
            place.say(change).await;
            let numbers = next..next + size;
            let writes = numbers.clone().map(|n| {
                // Text where the column is that: what a caller who knows the table gives.
                if change.contains("TEXT") || change.contains("VARCHAR") {
                    Write::new(S::INSERT, [n.to_string()])
                } else {
                    Write::new(S::INSERT, [n])
                }
            });
            let told: Ledger = numbers.zip(batch::<S>(&handle, writes.collect()).await).collect();
            assert!(told.is_all_acknowledged(), "{change}");
            all.acknowledged.extend(told.acknowledged);
            next += size;
        }
        // Larger than the type was that the statement was prepared for.
        let large = (1 << 40) + next;
        let told = together::<S>(&handle, large..large + size).await;
        assert!(told.is_all_acknowledged());
        let columns = place.read("SELECT MAX(n) FROM t").await;
        assert_eq!(columns, [(large + size - 1).to_string()]);
        place.say(&format!("DELETE FROM t WHERE n >= {large}")).await;
        let back = if S::INSERT.contains('$') {
            "ALTER TABLE t ALTER COLUMN n TYPE INT"
        } else {
            "ALTER TABLE t MODIFY n INT"
        };
        place.say(back).await;
    }
    all.holds(&place).await;
}

/// Executes it on each connection, and undoes it.
async fn prepared_on_all<S: Site>(writer: &Writer) {
    let held = join_all((1..Settings::default().connections).map(|_| writer.begin())).await;
    for transaction in held {
        let mut transaction = transaction.unwrap();
        // It fails where a column is of another type just now.
        let _ = transaction.execute(S::INSERT, [0]).await;
        let _ = transaction.execute(S::INSERT_WORDS, (0, "5")).await;
        transaction.rollback().await.unwrap();
    }
}

/// NULL fits any type, but not one that the server takes it for.
async fn a_null_is_written_to_a_column_that_has_another_type_now<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let writer = Writer::new(handle.clone());
    let mut all = Ledger::default();
    for (size, next) in [(20, 0), (2, 100), (1, 200)] {
        prepared_on_all::<S>(&writer).await;
        let change = if S::INSERT.contains('$') {
            "ALTER TABLE t ALTER COLUMN words TYPE INT USING NULL"
        } else {
            "ALTER TABLE t MODIFY words INT"
        };
        place.say(change).await;
        let writes = (next..next + size).map(|n| Write::new(S::INSERT_WORDS, (Value::Integer(n), Value::Null)));
        let told: Ledger = (next..).zip(batch::<S>(&handle, writes.collect()).await).collect();
        assert!(told.is_all_acknowledged());
        all.acknowledged.extend(told.acknowledged);
        let back = if S::INSERT.contains('$') {
            "ALTER TABLE t ALTER COLUMN words TYPE TEXT"
        } else {
            "ALTER TABLE t MODIFY words TEXT"
        };
        prepared_on_all::<S>(&writer).await;
        place.say(back).await;
        let writes = (next + 50..next + 50 + size).map(|n| Write::new(S::INSERT_WORDS, (n, "5")));
        let told: Ledger = (next + 50..).zip(batch::<S>(&handle, writes.collect()).await).collect();
        assert!(told.is_all_acknowledged());
        all.acknowledged.extend(told.acknowledged);
    }
    all.holds(&place).await;
}

async fn a_table_that_is_gone_fails_its_statements_alone_and_is_written_when_it_is_back<S: Site>() {
    let place = Place::<S>::new(&format!("{SCHEMA}; CREATE TABLE other (n INT)")).await;
    let handle = place.open(&Settings::default()).await;
    let other = |n: i64| Write::new(S::INSERT.replace("INTO t ", "INTO other "), [n]);
    for size in [1, 2, 20] {
        let told = together::<S>(&handle, 0..size).await;
        assert!(told.is_all_acknowledged());
        place.say("DROP TABLE t; DELETE FROM other").await;
        let mut writes: Vec<Write> = (0..size).map(|n| Write::new(S::INSERT, [n])).collect();
        writes.push(other(1));
        let mut answers = within(Duration::from_secs(5), batch::<S>(&handle, writes)).await;
        assert_eq!(answers.pop().unwrap().unwrap().rows_affected, 1);
        assert!(answers.iter().all(|answer| kind(answer) == Kind::Text), "{answers:?}");
        assert_eq!(place.read("SELECT n FROM other").await, ["1"]);
        place.say(SCHEMA).await;
        let told = together::<S>(&handle, 100..100 + size).await;
        assert!(told.is_all_acknowledged());
        told.holds(&place).await;
    }
}

async fn a_table_that_changes_all_the_time_loses_and_doubles_nothing<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let writer = Writer::new(place.open(&Settings::default()).await);
    let is_done = AtomicBool::new(false);
    let changing = async {
        let mut plain = place.plain().await;
        let drop_index = if S::INSERT.contains('$') {
            "DROP INDEX i"
        } else {
            "DROP INDEX i ON t"
        };
        let mut rounds = 0;
        while !is_done.load(Ordering::Relaxed) {
            for change in [
                "ALTER TABLE t ADD COLUMN more INT",
                "CREATE UNIQUE INDEX i ON t (n)",
                "ALTER TABLE t DROP COLUMN more",
                "ALTER TABLE t ADD CONSTRAINT c CHECK (n >= 0)",
                drop_index,
                "ALTER TABLE t DROP CONSTRAINT c",
            ] {
                plain.say(change).await;
            }
            rounds += 1;
        }
        rounds
    };
    let writing = async {
        let mut all = Ledger::default();
        for round in 0..30 {
            let calls = (round * 50..round * 50 + 50).map(|n| {
                let writer = &writer;
                async move { (n, writer.execute(S::INSERT, [n]).await) }
            });
            let limit = Settings::default().retry_for;
            all.extend(within(limit, join_all(calls)).await);
        }
        is_done.store(true, Ordering::Relaxed);
        all
    };
    let (rounds, all) = tokio::join!(changing, writing);
    assert!(rounds > 0);
    assert!(all.is_all_acknowledged());
    all.holds(&place).await;
}
