//! A statement that fails fails alone: its neighbours are written all the same, in the order of their arrival.

use forebay_write::{CancelToken, StatementErrorKind as Kind, Value, Write, WriteError, Writer};

use crate::{Database, assert_ok, kind, together};

const SCHEMA: &str = "
    CREATE TABLE parents (id INT PRIMARY KEY);
    INSERT INTO parents VALUES (1);
    CREATE TABLE log (
        at INT AUTO_INCREMENT PRIMARY KEY,
        name VARCHAR(20) NOT NULL UNIQUE,
        size TINYINT CHECK (size < 100),
        parent INT, FOREIGN KEY (parent) REFERENCES parents (id)
    );
    CREATE TABLE guarded (n INT);
    CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW
        IF NEW.n < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'negative'; END IF;
";

#[tokio::test]
async fn every_kind_of_failure_fails_alone() {
    let database = Database::new(SCHEMA).await;
    let mysql = database.open().await;
    let name = "INSERT INTO log (name) VALUES (?)";
    let sized = "INSERT INTO log (name, size) VALUES ('x', ?)";
    let bad = [
        (Write::new(name, ["before"]), Kind::Unique),
        (Write::new(name, [Value::Null]), Kind::NotNull),
        (Write::new("INSERT INTO log (size) VALUES (1)", ()), Kind::NotNull),
        (Write::new(sized, [100]), Kind::Check),
        (Write::new(sized, [1000]), Kind::Type),
        (Write::new(sized, ["much"]), Kind::Type),
        (Write::new(name, ["longer than twenty characters"]), Kind::Type),
        (Write::new(name, [vec![0xff_u8, 0xfe]]), Kind::Type),
        (
            Write::new("INSERT INTO log (name, parent) VALUES ('x', 7)", ()),
            Kind::ForeignKey,
        ),
        (Write::new("INSERT INTO guarded VALUES (-1)", ()), Kind::OtherConstraint),
        (Write::new("INSERT INTO nowhere VALUES (1)", ()), Kind::Text),
        (Write::new("INSERT INTO log (nothing) VALUES (1)", ()), Kind::Text),
        (Write::new("INSERT INTO", ()), Kind::Text),
        (Write::new(name, ()), Kind::ParameterCount),
        (Write::new(name, ("x", "y")), Kind::ParameterCount),
        (Write::new(name, [Value::Real(f64::NAN)]), Kind::Type),
        (Write::new(name, [Value::Array(Vec::new())]), Kind::Type),
        (Write::new("INSERT INTO log (name) VALUES (:name)", ["x"]), Kind::Text),
        (
            Write::new("INSERT INTO log (name) VALUES (:name) -- ?", ["x"]),
            Kind::Text,
        ),
    ];
    for (bad, expected) in bad {
        let what = format!("{bad:?}");
        database.run("DELETE FROM log").await;
        let good = |text: &str| Write::new("INSERT INTO log (name) VALUES (?)", [text]);
        let answers = together(&mysql, vec![good("before"), bad, good("after")]).await;
        assert_ok(&answers[0]);
        assert_eq!(kind(&answers[1]), expected, "{what}");
        assert_ok(&answers[2]);
        assert_eq!(
            database.read("SELECT name FROM log ORDER BY at").await,
            ["before", "after"],
            "{what}"
        );
    }
    assert_eq!(database.read("SELECT * FROM guarded").await, [""; 0]);
}

#[tokio::test]
async fn the_error_is_the_databases_own() {
    let database = Database::new(SCHEMA).await;
    let bad = Write::new("INSERT INTO parents VALUES (?)", [1]);
    let answers = together(&database.open().await, vec![bad]).await;
    let Err(WriteError::Statement(error)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!((error.code, error.sqlstate.as_deref()), (1062, Some("23000")));
    assert!(error.message.contains("Duplicate entry '1'"), "{error}");
}

#[tokio::test]
async fn a_batch_of_nothing_but_failures_is_answered() {
    let database = Database::new(SCHEMA).await;
    let bad = || Write::new("INSERT INTO parents VALUES (1)", ());
    let answers = together(&database.open().await, (0..20).map(|_| bad()).collect()).await;
    assert!(answers.iter().all(|answer| kind(answer) == Kind::Unique));
}

#[tokio::test]
async fn who_is_cancelled_or_late_has_no_effect() {
    let database = Database::new("CREATE TABLE t (n INT PRIMARY KEY)").await;
    let mysql = database.open().await;
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let late = CancelToken::with_deadline(Some(std::time::Instant::now()));
    let add = |n: i64| Write::new("INSERT INTO t (n) VALUES (?)", [n]);
    let mut writes: Vec<Write> = (0..30).map(add).collect();
    writes[7] = add(7).cancel(cancelled);
    writes[20] = add(20).cancel(late);
    let answers = together_or_withdrawn(&mysql, writes).await;
    assert_eq!(answers[7], Err(WriteError::Cancelled));
    assert_eq!(answers[20], Err(WriteError::TimedOut));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 28);
    let read = database.read("SELECT COUNT(*), SUM(n IN (7, 20)) FROM t").await;
    assert_eq!(read, ["28|0"]);
}

/// As `together`, where some leave before the batch goes.
async fn together_or_withdrawn(mysql: &forebay_mysql::MySql, writes: Vec<Write>) -> Vec<crate::Answer> {
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_wait(std::time::Duration::from_millis(50))
        .build(mysql.clone());
    futures_util::future::join_all(writes.into_iter().map(|write| writer.submit(write))).await
}

/// The server describes what comes back before it fails, and does not describe it again.
#[tokio::test]
async fn what_a_statement_returns_is_understood_also_when_it_has_failed_before() {
    let database = Database::new("CREATE TABLE t (k INT UNIQUE); INSERT INTO t VALUES (7)").await;
    let writer = Writer::new(database.builder().max_connections(1).connect().await.unwrap());
    let insert = async |k: i64| writer.execute("INSERT INTO t VALUES (?) RETURNING k, k + 1", [k]).await;
    for _ in 0..2 {
        assert_eq!(kind(&insert(7).await), Kind::Unique);
    }
    for k in [8, 9] {
        let outcome = insert(k).await.unwrap();
        assert_eq!(outcome.rows, [[Value::Integer(k), Value::Integer(k + 1)]]);
    }
}
