//! Rows that are written many at a time: each caller has the outcome it would have had alone, whatever the table is like.

use forebay_mysql::MySql;
use forebay_write::{StatementErrorKind as Kind, Value, Write, WriteError, Writer};
use mysql_async::prelude::Queryable;
use testbed::MariaDb;

use crate::{Database, assert_ok, kind, text, together};

const PLAIN: &str = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE, v VARCHAR(20) DEFAULT 'none')";

fn insert(n: i64) -> Write {
    Write::new("INSERT INTO t (n) VALUES (?)", [n])
}

/// What the server has been told to execute so far, on a server that nobody else uses.
async fn executed(database: &Database) -> u64 {
    let status = database.read("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").await;
    status[0].rsplit('|').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn many_rows_are_few_statements_and_one_commit() {
    let server = MariaDb::start().unwrap();
    let database = Database::on(&server.url(), PLAIN).await;
    let mysql = database.open().await;
    let commits = || async {
        let status = database.read("SHOW GLOBAL STATUS LIKE 'Com_commit'").await;
        status[0].rsplit('|').next().unwrap().parse::<u64>().unwrap()
    };
    let before = (executed(&database).await, commits().await);
    let answers = together(&mysql, (0..1000).map(insert).collect()).await;
    assert!(answers.iter().all(Result::is_ok));
    let after = (executed(&database).await, commits().await);
    assert!(after.0 - before.0 < 20, "{} statements", after.0 - before.0);
    assert_eq!(after.1 - before.1, 1);
    assert_eq!(database.read("SELECT COUNT(*), SUM(n) FROM t").await, ["1000|499500"]);
    // What the table is like is known: 20 rows are a statement and a commit.
    let before = (executed(&database).await, commits().await);
    let answers = together(&mysql, (1000..1020).map(insert).collect()).await;
    assert!(answers.iter().all(Result::is_ok));
    let after = (executed(&database).await, commits().await);
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
}

#[tokio::test]
async fn each_caller_is_told_the_id_of_its_own_row() {
    let database = Database::new(PLAIN).await;
    let answers = together(&database.open().await, (0..777).map(insert).collect()).await;
    let expected: Vec<String> = answers
        .iter()
        .zip(0..)
        .map(|(answer, n)| {
            let outcome = assert_ok(answer);
            assert_eq!(
                (outcome.rows_affected, outcome.rows.len(), outcome.columns.len()),
                (1, 0, 0)
            );
            format!("{}|{n}", outcome.last_insert_id.unwrap())
        })
        .collect();
    assert_eq!(database.read("SELECT id, n FROM t ORDER BY n").await, expected);
    assert_eq!(database.read("SELECT n FROM t ORDER BY id").await.len(), 777);
}

#[tokio::test]
async fn the_callers_own_returning_is_its_own_row() {
    let database = Database::new(PLAIN).await;
    let write = |n: i64| Write::new("INSERT INTO t (n, v) VALUES (?, DEFAULT) RETURNING n, id, v", [n]);
    let answers = together(&database.open().await, (0..100).map(write).collect()).await;
    let ids = database.read("SELECT id FROM t ORDER BY n").await;
    for ((answer, n), id) in answers.iter().zip(0..).zip(ids) {
        let outcome = assert_ok(answer);
        assert_eq!(outcome.columns, ["n", "id", "v"]);
        let id = Value::Integer(id.parse().unwrap());
        assert_eq!(outcome.rows, [[Value::Integer(n), id, text("none")]]);
        assert_eq!((outcome.rows_affected, outcome.last_insert_id), (1, None));
    }
}

#[tokio::test]
async fn one_in_a_hundred_that_fails_fails_alone() {
    let database = Database::new(PLAIN).await;
    let is_bad = |n: i64| n % 100 == 57;
    let number = |n: i64| if is_bad(n) { 0 } else { n };
    let answers = together(&database.open().await, (0..2000).map(|n| insert(number(n))).collect()).await;
    let mut expected = Vec::new();
    for (answer, n) in answers.iter().zip(0..) {
        if is_bad(n) {
            assert_eq!(kind(answer), Kind::Unique, "{n}");
            assert!(answer.as_ref().unwrap_err().to_string().contains("Duplicate entry '0'"));
        } else {
            expected.push(format!("{}|{n}", assert_ok(answer).last_insert_id.unwrap()));
        }
    }
    assert_eq!(
        database.read("SELECT id, n FROM t ORDER BY id").await,
        expected,
        "in arrival order"
    );
}

/// A row that seems to be in conflict with one that then fails for another reason is written, and in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_keep_their_order_where_conflicts_are_looked_for() {
    let schema = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE, v TINYINT);
        INSERT INTO t (n, v) VALUES (7, 0)";
    let database = Database::new(schema).await;
    let mysql = database.open().await;
    for round in 1..=3_i64 {
        let row = |position: i64| {
            let n = round * 100 + position;
            let parameters = match position {
                3 => [7, 0],
                10 => [n, 1000],
                11 => [n - 1, 1],
                12 => [n - 2, 2],
                _ => [n, 0],
            };
            Write::new("INSERT INTO t (n, v) VALUES (?, ?)", parameters)
        };
        let answers = together(&mysql, (0..40).map(row).collect()).await;
        for (position, answer) in answers.iter().enumerate() {
            assert_eq!(
                answer.is_err(),
                [3, 10, 12].contains(&position),
                "{position}: {answer:?}"
            );
        }
        let first = round * 100;
        let read = format!("SELECT n FROM t WHERE n >= {first} ORDER BY id");
        let expected = (0..40).filter(|position| ![3, 10, 12].contains(position));
        let expected = expected.map(|position| (first + if position == 11 { 10 } else { position }).to_string());
        assert_eq!(database.read(&read).await, expected.collect::<Vec<_>>(), "{round}");
    }
}

/// Who may not look for rows in conflict finds them all the same, and so does who may not see them by a plain look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_are_found_with_and_without_looking_for_them() {
    let database = Database::new(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(20), UNIQUE (n), UNIQUE (s, n), UNIQUE (s(3)));
         INSERT INTO t (n, s) VALUES (7, 'seven')",
    )
    .await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let mut plain = database.plain().await;
    plain
        .query_drop(format!(
            "CREATE OR REPLACE USER {name}@'%' IDENTIFIED BY 'x'; GRANT INSERT, TRIGGER ON {name}.* TO {name}@'%'"
        ))
        .await
        .unwrap();
    let (before, after) = database.url.split_once('@').unwrap();
    let scheme = before.split_once("//").unwrap().0;
    let writes_only = format!("{scheme}//{name}:x@{after}");
    let mut written = 1;
    for (who, url) in [database.url.as_str(), &writes_only].into_iter().enumerate() {
        let mysql = MySql::connect(url).await.unwrap();
        for round in 1..=3_i64 {
            let row = |n: i64| {
                let new = i64::try_from(who).unwrap() * 10_000 + round * 1000 + n;
                let parameters: Vec<Value> = match n {
                    10 => vec![7.into(), Value::Null],
                    // Equal by the collation alone.
                    20 => vec![new.into(), "SEVEN".into()],
                    30 => vec![(new - 1).into(), Value::Null],
                    40 => vec![Value::Null, Value::Null],
                    _ => vec![new.into(), Value::Null],
                };
                Write::new("INSERT INTO t (n, s) VALUES (?, ?)", parameters)
            };
            let answers = together(&mysql, (0..100).map(row).collect()).await;
            for (n, answer) in answers.iter().enumerate() {
                match n {
                    10 | 20 | 30 => assert_eq!(kind(answer), Kind::Unique, "{who} {round} {n}"),
                    _ => assert_eq!(assert_ok(answer).rows_affected, 1, "{who} {round} {n}"),
                }
            }
            written += 97;
            assert_eq!(database.read("SELECT COUNT(*) FROM t").await, [written.to_string()]);
        }
    }
    plain.query_drop(format!("DROP USER {name}@'%'")).await.unwrap();
}

#[tokio::test]
async fn every_row_may_fail_in_its_own_way() {
    let database = Database::new(
        "CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1);
         CREATE TABLE t (n INT NOT NULL UNIQUE, c INT CHECK (c < 10), p INT, FOREIGN KEY (p) REFERENCES p (id))",
    )
    .await;
    let row = |n: Value, c: i64, p: i64| Write::new("INSERT INTO t (n, c, p) VALUES (?, ?, ?)", (n, c, p));
    let mut writes: Vec<Write> = (0..64).map(|n| row(n.into(), 1, 1)).collect();
    writes[0] = row(Value::Null, 1, 1);
    writes[5] = row(5.into(), 10, 1);
    writes[6] = row(6.into(), 1, 2);
    writes[33] = row(32.into(), 1, 1);
    writes[63] = row("many".into(), 1, 1);
    let answers = together(&database.open().await, writes).await;
    let kinds: Vec<(usize, Kind)> = (0..64)
        .filter(|index| answers[*index].is_err())
        .map(|index| (index, kind(&answers[index])))
        .collect();
    assert_eq!(
        kinds,
        [
            (0, Kind::NotNull),
            (5, Kind::Check),
            (6, Kind::ForeignKey),
            (33, Kind::Unique),
            (63, Kind::Type)
        ]
    );
    assert_eq!(database.read("SELECT COUNT(*) FROM t").await, ["59"]);
}

#[tokio::test]
async fn many_of_which_the_server_does_not_say_which_row_is_bad_come_to_their_end() {
    let database = Database::new(PLAIN).await;
    let absent = |n: i64| Write::new("INSERT INTO t (n, absent) VALUES (?, 1)", [n]);
    let answers = together(&database.open().await, (0..100).map(absent).collect()).await;
    assert!(answers.iter().all(|answer| kind(answer) == Kind::Text));
}

/// Both tables after the same writes, in one batch and one by one.
async fn as_alone(schema: &str, sql: &'static str, rows: Vec<Vec<Value>>, all: &str) {
    let (batched, alone) = (Database::new(schema).await, Database::new(schema).await);
    let writes = rows.iter().map(|row| Write::new(sql, row.clone())).collect();
    let together = together(&batched.open().await, writes).await;
    let writer = Writer::new(alone.open().await);
    for (row, answer) in rows.into_iter().zip(together) {
        let one = writer.execute(sql, row.clone()).await;
        assert_eq!(answer.is_ok(), one.is_ok(), "{sql} {row:?}: {answer:?} {one:?}");
        match (answer, one) {
            (Ok(answer), Ok(one)) => assert_eq!(answer, one, "{sql} {row:?}"),
            (answer, one) => assert_eq!(kind(&answer), kind(&one), "{sql} {row:?}"),
        }
    }
    assert_eq!(batched.read(all).await, alone.read(all).await, "{schema}");
}

fn numbers(count: i64) -> Vec<Vec<Value>> {
    (0..count).map(|n| vec![Value::Integer(n)]).collect()
}

#[tokio::test]
async fn tables_of_all_kinds_are_written_as_alone() {
    let sql = "INSERT INTO t (n) VALUES (?)";
    for schema in [
        "CREATE TABLE t (n INT)",
        "CREATE TABLE t (n INT, d INT DEFAULT (n * 2), g INT AS (n + 1) STORED)",
        "CREATE TABLE t (n INT) ENGINE = MyISAM",
        "CREATE TABLE t (n INT) ENGINE = Aria",
        "CREATE TABLE t (n INT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 3",
        "CREATE TABLE t (n INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE base (n INT); CREATE VIEW t AS SELECT n FROM base",
        "CREATE SEQUENCE s; CREATE TABLE t (id BIGINT DEFAULT NEXTVAL(s) PRIMARY KEY, n INT)",
        "CREATE TABLE t (n INT, self INT AS (n - 1) STORED, UNIQUE (n), FOREIGN KEY (self) REFERENCES t (n))",
        "CREATE TABLE t (n BIGINT UNSIGNED, id SMALLINT AUTO_INCREMENT PRIMARY KEY)",
    ] {
        as_alone(schema, sql, numbers(40), "SELECT n FROM t ORDER BY n").await;
    }
}

#[tokio::test]
async fn triggers_see_what_they_would_see_alone() {
    let rows = numbers(40);
    let sql = "INSERT INTO t (n) VALUES (?)";
    for trigger in [
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.n = NEW.n + (SELECT COUNT(*) FROM t)",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 1000 - NEW.n",
        "CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW INSERT INTO log (n) VALUES (NEW.id)",
        "CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW SET @counted = COALESCE(@counted, 0) + 1",
    ] {
        let schema = format!(
            "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, n INT);
             CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT); {trigger}"
        );
        as_alone(
            &schema,
            sql,
            rows.clone(),
            "SELECT id, n FROM t UNION ALL SELECT id, n FROM log",
        )
        .await;
    }
}

#[tokio::test]
async fn explicit_ids_constants_and_defaults_are_written_as_alone() {
    let schema = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT DEFAULT 7, v VARCHAR(9) DEFAULT 'v')";
    let all = "SELECT * FROM t ORDER BY id";
    let rows = |count: i64| (1..count).map(|n| vec![Value::Integer(n * 3)]).collect();
    as_alone(schema, "INSERT INTO t (id) VALUES (?)", rows(30), all).await;
    as_alone(schema, "INSERT INTO t (n, v) VALUES (?, 'it''s')", rows(30), all).await;
    as_alone(schema, "INSERT INTO t (v, n) VALUES (DEFAULT, ?)", rows(30), all).await;
    as_alone(schema, "INSERT IGNORE INTO t (id) VALUES (? DIV 9 + 1)", rows(30), all).await;
    as_alone(schema, "INSERT INTO t (n) VALUES (? + 1)", rows(30), all).await;
    as_alone(schema, "INSERT INTO t VALUES (NULL, ?, 'x')", rows(30), all).await;
    let upsert = "INSERT INTO t (id, n) VALUES (? MOD 5 + 1, 1) ON DUPLICATE KEY UPDATE n = n + 1";
    as_alone(schema, upsert, rows(30), all).await;
}

#[tokio::test]
async fn a_table_that_is_changed_between_batches_is_looked_at_again() {
    let database = Database::new("CREATE TABLE t (n INT)").await;
    let mysql = database.open().await;
    let batch = || together(&mysql, (0..50).map(insert).collect());
    let told = |answers: Vec<crate::Answer>| -> Vec<String> {
        answers
            .iter()
            .map(|answer| assert_ok(answer).last_insert_id.unwrap().to_string())
            .collect()
    };
    assert!(
        batch()
            .await
            .iter()
            .all(|answer| assert_ok(answer).last_insert_id.is_none())
    );
    for (change, column) in [
        ("ALTER TABLE t ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY", "id"),
        ("ALTER TABLE t CHANGE id number INT AUTO_INCREMENT", "number"),
        (
            "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.number = 5000 - NEW.n",
            "number",
        ),
    ] {
        database.run(change).await;
        let before = database.read("SELECT COUNT(*) FROM t").await;
        let told = told(batch().await);
        // A transaction that was undone leaves a gap, so the numbers are what the table says they are.
        let there = database
            .read(&format!("SELECT {column} FROM t ORDER BY {column} DESC LIMIT 50"))
            .await;
        let (mut sorted, mut expected) = (told.clone(), there);
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected, "{change}");
        assert_eq!(
            before[0].parse::<i64>().unwrap() + 50,
            database.read("SELECT COUNT(*) FROM t").await[0].parse::<i64>().unwrap()
        );
        for (n, id) in told.iter().enumerate() {
            assert_eq!(
                database.read(&format!("SELECT n FROM t WHERE {column} = {id}")).await,
                [n.to_string()]
            );
        }
    }
    database.run("DROP TABLE t").await;
    assert!(batch().await.iter().all(|answer| kind(answer) == Kind::Text));
}

/// What the server returns of a column is an id only as long as the server numbers that column.
#[tokio::test]
async fn what_is_told_as_an_id_is_numbered_by_the_server() {
    let database = Database::new(
        "CREATE SEQUENCE s START WITH 1000; CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)",
    )
    .await;
    let mysql = database.open().await;
    let batch = async || -> Vec<Option<i64>> {
        let answers = together(&mysql, (0..40).map(insert).collect()).await;
        answers.iter().map(|answer| assert_ok(answer).last_insert_id).collect()
    };
    let those = async |column: &str, from: &str| -> Vec<Option<i64>> {
        let rows = database
            .read(&format!("SELECT {column} FROM t WHERE id >= {from} ORDER BY {column}"))
            .await;
        rows.iter().map(|row| Some(row.parse().unwrap())).collect()
    };
    assert_eq!(batch().await, those("id", "1").await);
    database.run("ALTER TABLE t MODIFY id BIGINT DEFAULT NEXTVAL(s)").await;
    assert_eq!(batch().await, [None; 40]);
    database
        .run("CREATE OR REPLACE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")
        .await;
    assert_eq!(batch().await, those("id", "1").await);
    let moved = "CREATE OR REPLACE TABLE t (id BIGINT DEFAULT NEXTVAL(s) PRIMARY KEY, n INT, other BIGINT AUTO_INCREMENT UNIQUE)";
    database.run(moved).await;
    assert_eq!(batch().await, those("other", "1").await);
}

/// Without transactions, a server that is not strict with them stores what it should refuse, but for the first row of many.
#[tokio::test]
async fn a_row_that_would_be_refused_alone_is_not_told_as_written_where_the_table_became_another_one() {
    let database = Database::new("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n TINYINT)").await;
    let mysql = database.open().await;
    let answers = together(&mysql, (0..40).map(insert).collect()).await;
    assert!(answers.iter().all(Result::is_ok));
    database.run("ALTER TABLE t ENGINE = MyISAM").await;
    let answers = together(&mysql, (0..40).map(|n| insert(if n == 7 { 1000 } else { n })).collect()).await;
    assert!(answers[7].is_err(), "{:?}", answers[7]);
}

#[tokio::test]
async fn who_may_not_see_triggers_writes_one_by_one_and_rightly() {
    let database = Database::new(PLAIN).await;
    let name = database.url.rsplit_once('/').unwrap().1.to_owned();
    database
        .run(&format!(
            "CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY 'secret'; GRANT SELECT, INSERT ON {name}.* TO '{name}'@'%';
             CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 5000 - NEW.n"
        ))
        .await;
    let url = database.url.replace("root@", &format!("{name}:secret@"));
    let mysql = MySql::connect(&url).await.unwrap();
    let answers = together(&mysql, (0..30).map(insert).collect()).await;
    let ids: Vec<i64> = answers
        .iter()
        .map(|answer| assert_ok(answer).last_insert_id.unwrap())
        .collect();
    assert_eq!(ids, (0..30).map(|n| 5000 - n).collect::<Vec<_>>());
}

#[tokio::test]
async fn rows_that_are_large_are_parted_by_the_size_of_a_packet() {
    let database = Database::new("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)").await;
    let row = |n: usize| Write::new("INSERT INTO t (v) VALUES (?)", ["x".repeat(n * 50_000)]);
    let writer = Writer::builder()
        .max_items(60)
        .max_weight(1 << 30)
        .max_wait(std::time::Duration::from_secs(600));
    let writer = writer.max_in_flight(1).build(database.open().await);
    let answers = futures_util::future::join_all((0..60).map(|n| writer.submit(row(n)))).await;
    assert!(
        answers.iter().all(Result::is_ok),
        "{:?}",
        answers.iter().find(|answer| answer.is_err())
    );
    assert_eq!(
        database.read("SELECT SUM(LENGTH(v)) FROM t").await,
        [(59 * 60 / 2 * 50_000).to_string()]
    );
}

#[tokio::test]
async fn where_the_server_is_not_strict_rows_are_written_as_alone() {
    let server = MariaDb::builder().setting("sql_mode", "").start().unwrap();
    let schema = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL)";
    let database = Database::on(&server.url(), schema).await;
    let mut writes: Vec<Write> = (0..30).map(insert).collect();
    // Alone it fails; in an INSERT of many rows it would become 0.
    writes[7] = Write::new("INSERT INTO t (n) VALUES (?)", [Value::Null]);
    let answers = together(&database.open().await, writes).await;
    assert_eq!(kind(&answers[7]), Kind::NotNull);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 29);
    assert_eq!(database.read("SELECT COUNT(*) FROM t WHERE n = 0").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_changed_all_the_time_is_written_rightly() {
    let database = Database::new("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)").await;
    let mysql = database.open().await;
    let changing = tokio::spawn({
        let mut conn = database.plain().await;
        async move {
            use mysql_async::prelude::Queryable;
            for _ in 0..60 {
                let trigger = "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 1000000 - NEW.n";
                conn.query_drop(trigger).await.unwrap();
                conn.query_drop("DROP TRIGGER x").await.unwrap();
            }
        }
    });
    let mut told = Vec::new();
    let mut next = 0;
    while !changing.is_finished() {
        let batch: Vec<i64> = (next..next + 40).collect();
        next += 40;
        let answers = together(&mysql, batch.iter().copied().map(insert).collect()).await;
        told.extend(batch.iter().zip(&answers).map(|(n, answer)| {
            let id = assert_ok(answer).last_insert_id;
            format!("{}|{n}", id.unwrap())
        }));
    }
    changing.await.unwrap();
    assert_eq!(database.read("SELECT id, n FROM t ORDER BY n").await, told);
}

/// Where several unique indexes meet, who fails and of what is decided by the order of arrival, not by the order of writing.
#[tokio::test(flavor = "multi_thread")]
async fn of_rows_in_each_others_way_the_first_to_arrive_is_written() {
    let database = Database::new(
        "CREATE TABLE t (b VARCHAR(9), a INT, c INT CHECK (c < 9), UNIQUE b (b), UNIQUE a (a));
        INSERT INTO t VALUES ('z', 50, 0)",
    )
    .await;
    let mysql = database.open().await;
    let sql = "INSERT INTO t (a, b, c) VALUES (?, ?, ?)";
    let write = |a: i64, b: &str, c: i64| Write::new(sql, (a, b, c));
    let more = |from: i64| (from..from + 10).map(move |n| write(n, &n.to_string(), 0));
    let answers = together(&mysql, [write(50, "y", 0)].into_iter().chain(more(100)).collect()).await;
    assert_eq!(kind(&answers[0]), Kind::Unique);

    // The row that the second seems to be in conflict with is not written, so that the second is, and the third is not; also
    // where only the server sees that those two are alike.
    for (from, one, other) in [(1, "x", "x"), (11, "w", "W")] {
        let first = [write(from, "v", 10), write(from, one, 0), write(from + 1, other, 0)];
        let answers = together(&mysql, first.into_iter().chain(more(200 + 10 * from)).collect()).await;
        assert_eq!(kind(&answers[0]), Kind::Check);
        assert_eq!(assert_ok(&answers[1]).rows_affected, 1, "{other}");
        assert_eq!(kind(&answers[2]), Kind::Unique, "{other}");
    }

    // One that fails of a row that is there does not fail of one that comes after it.
    let first = [write(50, "u", 0), write(51, "u", 0)];
    let answers = together(&mysql, first.into_iter().chain(more(400)).collect()).await;
    let Err(WriteError::Statement(error)) = &answers[0] else {
        panic!("{:?}", answers[0])
    };
    assert!(error.message.contains("'50'"), "{error:?}");
    assert_ok(&answers[1]);
}
