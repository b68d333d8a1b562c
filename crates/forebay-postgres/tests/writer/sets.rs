//! Many INSERTs as one: every caller's outcome is its own, and where the database could tell the difference there is none.

use std::time::Duration;

use forebay_postgres::Postgres;
use forebay_write::{StatementErrorKind as Kind, Value, Write, WriteError, Writer};
use futures_util::future::join_all;

use crate::{Answer, Database, assert_ok, integers, kind, together};

fn inserts(sql: &'static str, values: impl IntoIterator<Item = i64>) -> Vec<Write> {
    values.into_iter().map(|value| Write::new(sql, [value])).collect()
}

/// Whether the server has executed a text that looks like this.
async fn was_prepared(database: &Database, like: &str) -> bool {
    let sql = "SELECT query FROM pg_stat_activity WHERE query LIKE $1 AND pid <> pg_backend_pid()";
    !database.plain.query(sql, &[&like]).await.unwrap().is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_rows_are_each_callers_own() {
    let schema = "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int, s text DEFAULT 'd');
        CREATE TABLE \"Odd name\" (\"Id\" serial UNIQUE, n int)";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    for sql in [
        "INSERT INTO t (n) VALUES ($1) RETURNING n, id, s",
        "INSERT INTO \"Odd name\" (n) VALUES ($1) RETURNING n, \"Id\"",
    ] {
        let answers = together(&postgres, inserts(sql, (0..500).map(|n| 1000 - n % 7))).await;
        let mut ids = Vec::new();
        for (position, answer) in answers.iter().enumerate() {
            let outcome = assert_ok(answer);
            assert_eq!((outcome.rows_affected, outcome.rows.len()), (1, 1));
            assert_eq!(outcome.rows[0][0], Value::Integer(1000 - position as i64 % 7));
            ids.push(outcome.rows[0][1].as_integer().unwrap());
        }
        let rows = if sql.contains("Odd") {
            database.read("\"Id\", n FROM \"Odd name\" ORDER BY 1").await
        } else {
            database.read("id, n FROM t ORDER BY id").await
        };
        assert_eq!(rows.len(), 500);
        for (id, position) in ids.iter().zip(0_i64..) {
            let row = format!("{id}|{}", 1000 - position % 7);
            assert!(rows.contains(&row), "{row}");
        }
    }
}

/// Whichever way the table numbers its rows, who came first has the first number, and all are written by one statement.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_numbered_in_the_order_of_their_arrival() {
    let schema =
        "CREATE TABLE down (id smallint GENERATED ALWAYS AS IDENTITY (MAXVALUE 100 INCREMENT -1) UNIQUE, n int, s text);
        CREATE TABLE up (id bigserial PRIMARY KEY, n int, s text)";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    for (table, sql, number) in [
        (
            "down",
            "INSERT INTO down (s, n) VALUES (NULL, $1) RETURNING *",
            [100, -1],
        ),
        (
            "up",
            "INSERT INTO up (s, n) VALUES (NULL, $1) RETURNING id, n, s",
            [1, 1],
        ),
    ] {
        let answers = together(&postgres, inserts(sql, (0..64).map(|n| n * 7 % 64))).await;
        for (answer, position) in answers.iter().zip(0..) {
            let [first, step] = number;
            let row = [
                (first + step * position).into(),
                (position * 7 % 64).into(),
                Value::Null,
            ];
            assert_eq!(assert_ok(answer).rows, [row]);
        }
        let read = format!("count(*), count(DISTINCT (xmin::text, cmin::text)) FROM {table}");
        assert_eq!(database.read(&read).await, ["64|1"]);
    }
}

/// As an INSERT locks them; the other way round, `TRUNCATE … RESTART IDENTITY` and a batch would wait for each other.
#[tokio::test(flavor = "multi_thread")]
async fn the_table_is_locked_before_its_sequence() {
    let mut database = Database::new("CREATE TABLE t (id serial PRIMARY KEY, n int)").await;
    let watch = crate::plain(&database.url).await;
    let postgres = Postgres::builder(&database.url).unwrap().max_connections(1);
    let postgres = postgres.lock_timeout(Duration::from_secs(60)).connect().await.unwrap();
    let sql = "INSERT INTO t (n) VALUES ($1) RETURNING id";
    // From here on all is prepared.
    together(&postgres, inserts(sql, 0..8)).await;
    let truncating = database.plain.transaction().await.unwrap();
    truncating.batch_execute("LOCK t").await.unwrap();
    let truncated = async {
        let waits = "SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted";
        while watch.query(waits, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let locked = "SELECT FROM pg_locks WHERE relation = 't_id_seq'::regclass";
        assert!(watch.query(locked, &[]).await.unwrap().is_empty());
        truncating.batch_execute("TRUNCATE t RESTART IDENTITY").await.unwrap();
        truncating.commit().await.unwrap();
    };
    let (answers, ()) = tokio::join!(together(&postgres, inserts(sql, 0..8)), truncated);
    for (answer, id) in answers.iter().zip(1..) {
        assert_eq!(assert_ok(answer).rows, [integers(&[id])]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_rows_in_conflict_exactly_those_fail() {
    let schema = "CREATE TABLE numbered (id serial PRIMARY KEY, n int UNIQUE); INSERT INTO numbered (n) VALUES (7);
        CREATE TABLE bare (n int UNIQUE); INSERT INTO bare VALUES (7)";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    // The second time conflicts are expected.
    for (table, sql) in [
        ("numbered", "INSERT INTO numbered (n) VALUES ($1)"),
        ("bare", "INSERT INTO bare (n) VALUES ($1)"),
    ] {
        for round in 1..=3_i64 {
            let value = |position: i64| {
                if position % 100 == 3 {
                    7
                } else {
                    round * 10_000 + position
                }
            };
            let answers = together(&postgres, inserts(sql, (0..1000).map(value))).await;
            for (position, answer) in answers.iter().enumerate() {
                if position % 100 == 3 {
                    assert_eq!(kind(answer), Kind::Unique);
                } else {
                    assert_eq!(assert_ok(answer).rows_affected, 1);
                }
            }
            let written = database
                .read(&format!("count(*), count(DISTINCT n) FROM {table}"))
                .await;
            assert_eq!(written, [format!("{0}|{0}", 990 * round + 1)]);
        }
    }
}

/// How often the server was asked on this one connection which rows are there.
async fn asked(postgres: &Postgres) -> Vec<Vec<Value>> {
    let prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1";
    postgres.query(prepared, ["%forebay_table%"]).await.unwrap().rows
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_looked_for_first() {
    let schema = "CREATE TABLE t (id serial PRIMARY KEY, b int, kind text, note int, UNIQUE (b, kind));
        INSERT INTO t (b, kind) VALUES (7, 'x')";
    let database = Database::new(schema).await;
    let postgres = Postgres::builder(&database.url).unwrap().max_connections(1);
    let postgres = postgres.connect().await.unwrap();
    for round in 1..=3_i64 {
        let row = |n: i64| {
            let b = match n {
                10 => 7.into(),
                40 | 41 => Value::Null,
                50 => (round * 500 + 49).into(),
                _ => (round * 500 + n).into(),
            };
            Write::new("INSERT INTO t (note, kind, b) VALUES ($2, 'x', $1)", [b, 0.into()])
        };
        let answers = together(&postgres, (0..100).map(row).collect()).await;
        for (n, answer) in answers.iter().enumerate() {
            match n {
                10 | 50 => assert_eq!(kind(answer), Kind::Unique, "{n}"),
                _ => assert_eq!(assert_ok(answer).rows_affected, 1, "{n}"),
            }
        }
        let count = format!("{}", 1 + 98 * round);
        assert_eq!(database.read("count(*) FROM t").await, [count]);
    }
    assert_eq!(asked(&postgres).await, [integers(&[1])]);
}

/// Which of several a row is said to break depends on what was written before it.
#[tokio::test(flavor = "multi_thread")]
async fn with_several_unique_indexes_conflicts_are_found_in_their_order() {
    let schema = "CREATE TABLE t (a int, b int, kind text, note int, UNIQUE (b, kind), UNIQUE (a));
        CREATE UNIQUE INDEX ON t ((note % 1000)) WHERE note > 0;
        INSERT INTO t VALUES (7, 1, 'x', 1)";
    let database = Database::new(schema).await;
    let postgres = Postgres::builder(&database.url).unwrap().max_connections(1);
    let postgres = postgres.connect().await.unwrap();
    let sql = "INSERT INTO t (note, kind, b, a) VALUES ($3, 'x', $2, $1)";
    for round in 1..=3_i64 {
        let row = |n: i64| {
            let new = round * 500 + n;
            let parameters: Vec<Value> = match n {
                10 => vec![7.into(), new.into(), 0.into()],
                20 => vec![new.into(), 1.into(), 0.into()],
                30 => vec![new.into(), new.into(), 3001.into()],
                40 => vec![Value::Null, Value::Null, Value::Null],
                50 => vec![(new - 1).into(), new.into(), 0.into()],
                60 => vec![(new - 1).into(), 1.into(), 0.into()],
                _ => vec![new.into(), new.into(), 0.into()],
            };
            Write::new(sql, parameters)
        };
        let answers = together(&postgres, (0..100).map(row).collect()).await;
        for (n, answer) in answers.iter().enumerate() {
            match n {
                10 | 20 | 30 | 50 | 60 => assert_eq!(kind(answer), Kind::Unique, "{n}"),
                _ => assert_eq!(assert_ok(answer).rows_affected, 1, "{n}"),
            }
        }
        let count = format!("{}", 1 + 95 * round);
        assert_eq!(database.read("count(*) FROM t").await, [count]);
    }
    assert_eq!(asked(&postgres).await, [integers(&[0])]);
}

/// A row that seems to be in conflict with one that then fails for another reason is written, and in its place.
#[tokio::test(flavor = "multi_thread")]
async fn rows_keep_their_order_where_conflicts_are_looked_for() {
    let schema = "CREATE TABLE t (id serial PRIMARY KEY, n int UNIQUE, v int CHECK (v < 1000));
        INSERT INTO t (n, v) VALUES (7, 0)";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
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
            Write::new("INSERT INTO t (n, v) VALUES ($1, $2)", parameters)
        };
        let answers = together(&postgres, (0..40).map(row).collect()).await;
        for (position, answer) in answers.iter().enumerate() {
            assert_eq!(
                answer.is_err(),
                [3, 10, 12].contains(&position),
                "{position}: {answer:?}"
            );
        }
        let first = round * 100;
        let read = format!("n FROM t WHERE n >= {first} ORDER BY id");
        let expected = (0..40).filter(|position| ![3, 10, 12].contains(position));
        let expected = expected.map(|position| (first + if position == 11 { 10 } else { position }).to_string());
        assert_eq!(database.read(&read).await, expected.collect::<Vec<_>>(), "{round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_the_table_writes_to_it() {
    let database = Database::new("CREATE TABLE t (n int UNIQUE); INSERT INTO t VALUES (7)").await;
    let role = "DROP ROLE IF EXISTS only_writes; CREATE ROLE only_writes LOGIN; GRANT INSERT ON t TO only_writes;
        DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO only_writes', current_schema()); END $$";
    database.plain.batch_execute(role).await.unwrap();
    let user = database.url.split("//").nth(1).unwrap().split('@').next().unwrap();
    let url = database.url.replacen(&format!("//{user}@"), "//only_writes@", 1);
    let postgres = Postgres::connect(&url).await.unwrap();
    for round in 1..=3_i64 {
        let values = (0..50).map(|n| if n == 9 { 7 } else { round * 100 + n });
        let answers = together(&postgres, inserts("INSERT INTO t (n) VALUES ($1)", values)).await;
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_ok(), n != 9, "{answer:?}");
        }
    }
    assert_eq!(database.read("count(*) FROM t").await, ["148"]);
    drop(postgres);
    let left = "DROP OWNED BY only_writes";
    database.plain.batch_execute(left).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_equal_rows_is_the_one_that_is_written() {
    let database = Database::new("CREATE TABLE t (id serial PRIMARY KEY, n int UNIQUE)").await;
    let postgres = database.open().await;
    for round in 0..2_i64 {
        let values = (0..64).map(|position| round * 100 + position % 32);
        let answers = together(&postgres, inserts("INSERT INTO t (n) VALUES ($1) RETURNING n", values)).await;
        for (position, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_ok(), position < 32, "{position}: {answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_trigger_a_rule_or_a_self_reference_could_tell_rows_run_one_by_one() {
    let schema = "CREATE TABLE log (rows_seen bigint);
        CREATE TABLE t (id serial PRIMARY KEY, n int);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO log SELECT count(*) FROM t; RETURN NULL; END $$;
        CREATE TRIGGER notes AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
        CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree);
        CREATE TABLE skips (n int);
        CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.n % 2 = 0 THEN RETURN NULL; END IF; NEW.n := NEW.n * 10; RETURN NEW; END $$;
        CREATE TRIGGER skips BEFORE INSERT ON skips FOR EACH ROW EXECUTE FUNCTION skip()";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    together(&postgres, inserts("INSERT INTO t (n) VALUES ($1)", 0..20)).await;
    let expected: Vec<String> = (1..=20).map(|seen| seen.to_string()).collect();
    assert_eq!(database.read("rows_seen FROM log ORDER BY 1").await.len(), 20);
    assert_eq!(
        database.read("l.rows_seen FROM log l ORDER BY l.rows_seen").await,
        expected
    );
    // The parent comes after its child: alone, the child fails.
    let child_first: Vec<Write> = (0..10_i64)
        .map(|n| {
            Write::new(
                "INSERT INTO tree (id, parent) VALUES ($1, $2)",
                [Value::from(n), Value::from((n < 9).then_some(n + 1))],
            )
        })
        .collect();
    let answers = together(&postgres, child_first).await;
    assert!(answers[..9].iter().all(|answer| kind(answer) == Kind::ForeignKey));
    assert_ok(&answers[9]);
    let answers = together(
        &postgres,
        inserts("INSERT INTO skips (n) VALUES ($1) RETURNING n", 0..10),
    )
    .await;
    for (position, answer) in answers.iter().enumerate() {
        let expected = if position % 2 == 0 {
            vec![]
        } else {
            vec![integers(&[position as i64 * 10])]
        };
        assert_eq!(assert_ok(answer).rows, expected);
        assert_eq!(assert_ok(answer).rows_affected, position as u64 % 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_is_made_later_is_noticed() {
    let schema = "CREATE TABLE t (n int); CREATE TABLE log (n bigint);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO log SELECT count(*) FROM t; RETURN NULL; END $$";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    together(&postgres, inserts("INSERT INTO t (n) VALUES ($1)", 0..20)).await;
    assert!(was_prepared(&database, "%").await);
    let trigger = "CREATE TRIGGER notes AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()";
    database.plain.batch_execute(trigger).await.unwrap();
    for answer in together(&postgres, inserts("INSERT INTO t (n) VALUES ($1)", 0..20)).await {
        assert_ok(&answer);
    }
    let expected: Vec<String> = (21..=40).map(|seen| seen.to_string()).collect();
    assert_eq!(database.read("l.n FROM log l ORDER BY l.n").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_callers_are_each_told_their_own_id() {
    let database = Database::new("CREATE TABLE t (id serial PRIMARY KEY, n int)").await;
    let writer = Writer::new(database.open().await);
    let calls = (0..10_000_i64).map(|n| {
        let writer = writer.clone();
        tokio::spawn(async move {
            let write = Write::new("INSERT INTO t (n) VALUES ($1) RETURNING id", [n]).ordered_by(n % 5);
            writer.submit(write).await.unwrap().rows[0][0].as_integer().unwrap()
        })
    });
    let told: Vec<i64> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let mut rows = vec![-1_i64; 10_001];
    for row in database.plain.query("SELECT id, n FROM t", &[]).await.unwrap() {
        rows[usize::try_from(row.get::<_, i32>(0)).unwrap()] = i64::from(row.get::<_, i32>(1));
    }
    for (n, id) in told.into_iter().enumerate() {
        assert_eq!(rows[usize::try_from(id).unwrap()], n as i64);
    }
}

/// Where several unique indexes meet, who fails and of what is decided by the order of arrival, not by the order of writing.
#[tokio::test(flavor = "multi_thread")]
async fn of_rows_in_each_others_way_the_first_to_arrive_is_written() {
    let schema = "CREATE TABLE t (b int, a int, c int CHECK (c < 9), low text, UNIQUE (b), UNIQUE (a));
        CREATE UNIQUE INDEX ON t (lower(low)); INSERT INTO t VALUES (0, 50, 0)";
    let database = Database::new(schema).await;
    let postgres = database.open().await;
    let sql = "INSERT INTO t (a, b, c, low) VALUES ($1, $2, $3, $4)";
    let write = |a: i64, b: i64, c: i64, low: Option<&str>| {
        let low = low.map_or(Value::Null, Value::from);
        Write::new(sql, vec![a.into(), b.into(), c.into(), low])
    };
    let more = |from: i64| (from..from + 10).map(move |n| write(n, n, 0, None));
    let answers = together(
        &postgres,
        [write(50, 99, 0, None)].into_iter().chain(more(100)).collect(),
    )
    .await;
    assert_eq!(kind(&answers[0]), Kind::Unique);
    let constraint = |answer: &Answer| match answer {
        Err(WriteError::Statement(error)) => error.constraint.clone(),
        _ => None,
    };

    // The row that the second seems to be in conflict with is not written, so that the second is, and the third is not.
    let first = [write(1, 1, 10, None), write(1, 7, 0, None), write(3, 7, 0, None)];
    let answers = together(&postgres, first.into_iter().chain(more(200)).collect()).await;
    assert_eq!(kind(&answers[0]), Kind::Check);
    assert_eq!(assert_ok(&answers[1]).rows_affected, 1);
    assert_eq!(kind(&answers[2]), Kind::Unique);

    // The same, where it cannot be seen that the third is in the second's way.
    let first = [
        write(4, 4, 10, None),
        write(4, 5, 0, Some("Low")),
        write(6, 6, 0, Some("low")),
    ];
    let answers = together(&postgres, first.into_iter().chain(more(300)).collect()).await;
    assert_eq!(kind(&answers[0]), Kind::Check);
    assert_eq!(assert_ok(&answers[1]).rows_affected, 1);
    assert_eq!(kind(&answers[2]), Kind::Unique);

    // One that fails of a row that is there does not fail of one that comes after it.
    let first = [write(50, 8, 0, None), write(51, 8, 0, None)];
    let answers = together(&postgres, first.into_iter().chain(more(400)).collect()).await;
    assert_eq!(constraint(&answers[0]).as_deref(), Some("t_a_key"));
    assert_ok(&answers[1]);
}
