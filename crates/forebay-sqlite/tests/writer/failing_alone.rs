//! A statement that fails fails alone: its neighbours share one commit all the same, in the order of their arrival.

use forebay_write::{StatementErrorKind as Kind, Value, Write, WriteError};

use crate::{Database, Grenade, assert_ok, kind, together, together_plainly};

const SCHEMA: &str = "
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    INSERT INTO parents VALUES (1);
    CREATE TABLE log (
        at INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        size INTEGER CHECK (size < 100),
        parent INTEGER REFERENCES parents
    );
    CREATE TABLE typed (n INTEGER) STRICT;
    CREATE TABLE guarded (n);
    CREATE TRIGGER guard BEFORE INSERT ON guarded WHEN NEW.n < 0 BEGIN SELECT RAISE(ABORT, 'negative'); END;
";

/// One bad statement between two good ones; the good ones share their commit, and stand in order.
async fn fails_alone(bad: Write, expected: Kind) {
    let database = Database::new(SCHEMA);
    let sqlite = database.open();
    let good = |name: &str| Write::new("INSERT INTO log (name) VALUES (?1)", [name]);
    let text = bad.clone();
    let answers = together(&sqlite, vec![good("before"), bad, good("after")]).await;
    assert_ok(&answers[0]);
    assert_eq!(kind(&answers[1]), expected, "{text:?}");
    assert_ok(&answers[2]);
    assert_eq!(
        database.take_commits(),
        1,
        "{text:?} kept its neighbours from sharing a commit"
    );
    assert_eq!(database.read("SELECT name FROM log ORDER BY at"), ["before", "after"]);
    assert_eq!(
        database.read("SELECT * FROM typed UNION ALL SELECT * FROM guarded"),
        [""; 0]
    );
}

#[tokio::test]
async fn every_kind_of_failure_fails_alone() {
    let name = "INSERT INTO log (name) VALUES (?1)";
    fails_alone(Write::new(name, ["before"]), Kind::Unique).await;
    fails_alone(Write::new(name, [Value::Null]), Kind::NotNull).await;
    fails_alone(
        Write::new("INSERT INTO log (name, size) VALUES ('x', 100)", ()),
        Kind::Check,
    )
    .await;
    fails_alone(
        Write::new("INSERT INTO log (name, parent) VALUES ('x', 7)", ()),
        Kind::ForeignKey,
    )
    .await;
    fails_alone(
        Write::new("INSERT INTO log (at, name) VALUES (1, 'x')", ()),
        Kind::Unique,
    )
    .await;
    fails_alone(Write::new("INSERT INTO guarded VALUES (-1)", ()), Kind::OtherConstraint).await;
    fails_alone(Write::new("INSERT INTO nowhere VALUES (1)", ()), Kind::Text).await;
    fails_alone(Write::new("INSERT INTO log (nothing) VALUES (1)", ()), Kind::Text).await;
    fails_alone(Write::new("INSRT INTO log", ()), Kind::Text).await;
    fails_alone(Write::new("", ()), Kind::Text).await;
    fails_alone(Write::new("-- nothing", ()), Kind::Text).await;
    fails_alone(Write::new(name, ()), Kind::ParameterCount).await;
    fails_alone(Write::new(name, ("x", "y")), Kind::ParameterCount).await;
    fails_alone(
        Write::new("INSERT INTO log (name) VALUES ('x'); DELETE FROM log", ()),
        Kind::Text,
    )
    .await;
}

#[tokio::test]
async fn a_text_that_holds_a_nul_is_refused_and_not_cut_short() {
    fails_alone(Write::new("DELETE FROM log\0 WHERE name = 'x'", ()), Kind::Text).await;
}

#[tokio::test]
async fn a_type_error_in_a_strict_table_fails_alone() {
    let database = Database::new(SCHEMA);
    let sqlite = database.open();
    let insert = |value: Value| Write::new("INSERT INTO typed VALUES (?1)", [value]);
    let mixed = |bad: &str| vec![insert(1.into()), insert(bad.into()), insert(2.into())];
    let answers = together(&sqlite, mixed("no number")).await;
    assert_eq!(kind(&answers[1]), Kind::Type);
    assert_eq!(
        (
            assert_ok(&answers[0]).rows_affected,
            assert_ok(&answers[2]).rows_affected
        ),
        (1, 1)
    );
    assert_eq!(database.read("SELECT n FROM typed"), ["1", "2"]);

    // It was seen to fail so: from now on it does not even cost its neighbours a commit of their own.
    database.take_commits();
    let answers = together(&sqlite, mixed("still none")).await;
    assert_eq!(kind(&answers[1]), Kind::Type);
    assert_eq!(database.take_commits(), 1);
    assert_eq!(database.read("SELECT n FROM typed"), ["1", "2", "1", "2"]);
}

#[tokio::test]
async fn only_the_bad_ones_of_a_long_batch_fail() {
    let database = Database::new("CREATE TABLE t (at INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER UNIQUE)");
    let sqlite = database.open();
    let numbers: Vec<i64> = (0..500).map(|n| if n % 10 == 9 { 0 } else { n }).collect();
    let writes = numbers
        .iter()
        .map(|n| Write::new("INSERT INTO t (n) VALUES ($1)", [*n]))
        .collect();
    let answers = together(&sqlite, writes).await;
    for (answer, n) in answers.iter().zip(0..) {
        if n % 10 == 9 {
            assert_eq!(kind(answer), Kind::Unique);
        } else {
            assert_eq!(assert_ok(answer).rows_affected, 1);
        }
    }
    assert_eq!(database.take_commits(), 1);
    let expected: Vec<String> = (0..500).filter(|n| n % 10 != 9).map(|n| n.to_string()).collect();
    assert_eq!(database.read("SELECT n FROM t ORDER BY at"), expected, "arrival order");
}

#[tokio::test]
async fn a_batch_of_nothing_but_failures_is_answered() {
    let database = Database::new(SCHEMA);
    let answers = together_plainly(
        &database.open(),
        &["nonsense", "INSERT INTO log DEFAULT VALUES", "more"],
    )
    .await;
    assert_eq!(
        answers.iter().map(kind).collect::<Vec<_>>(),
        [Kind::Text, Kind::NotNull, Kind::Text]
    );
}

#[tokio::test]
async fn the_error_is_the_databases_own() {
    let database = Database::new(SCHEMA);
    let answers = together_plainly(
        &database.open(),
        &[
            "INSERT INTO log (name) VALUES (NULL)",
            "INSERT INTO log (name, absent) VALUES (1, 2)",
        ],
    )
    .await;
    let Err(WriteError::Statement(not_null)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(not_null.message, "NOT NULL constraint failed: log.name");
    assert_eq!(not_null.code, rusqlite::ffi::SQLITE_CONSTRAINT_NOTNULL);
    let Err(WriteError::Statement(text)) = &answers[1] else {
        panic!("{answers:?}")
    };
    assert!(text.message.contains("no column named absent"), "{text}");
    let syntax = together_plainly(&database.open(), &["SELECT FROM"]).await.remove(0);
    let Err(WriteError::Statement(syntax)) = syntax else {
        panic!("{syntax:?}")
    };
    assert_eq!(syntax.offset, Some(7), "{syntax}");
}

#[tokio::test]
async fn a_write_that_panics_when_dropped_fails_nobody() {
    let database = Database::new(SCHEMA);
    let sqlite = database.open();
    let good = |name: &str| Write::new("INSERT INTO log (name) VALUES (?1)", [name]);
    let grenade = Grenade;
    let explosive = good("explosive").accept_if(move |_| {
        let _kept = &grenade;
        Ok(())
    });
    for answer in together(&sqlite, vec![good("before"), explosive, good("after")]).await {
        assert_ok(&answer);
    }
    // A panic of the statement's own, whose payload panics when it is dropped.
    let panics = good("panics").accept_if(|_| std::panic::panic_any(Grenade));
    let answers = together(&sqlite, vec![panics]).await;
    assert!(
        matches!(&answers[0], Err(WriteError::OutcomeUnknown { cause }) if cause == "a panic without a message"),
        "{answers:?}"
    );
    for answer in together(&sqlite, vec![good("later")]).await {
        assert_ok(&answer);
    }
    assert_eq!(
        database.read("SELECT name FROM log ORDER BY at"),
        ["before", "explosive", "after", "later"]
    );
}
