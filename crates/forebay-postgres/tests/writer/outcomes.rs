//! Each caller's own outcome, statement by statement.

use forebay_postgres::Postgres;
use forebay_write::{CancelToken, StatementErrorKind as Kind, Value, Write, WriteError, Writer};

use crate::{Database, assert_ok, integers, kind, kind_of_read, together};

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_write_is_there_when_it_is_acknowledged() {
    let database = Database::new("CREATE TABLE t (id serial PRIMARY KEY, n int)").await;
    let writer = Writer::new(database.open().await);
    let done = writer
        .execute("INSERT INTO t (n) VALUES ($1) RETURNING id, n", [7])
        .await
        .unwrap();
    assert_eq!(done.rows_affected, 1);
    assert_eq!(done.columns, ["id", "n"]);
    assert_eq!(done.rows, [integers(&[1, 7])]);
    assert_eq!(database.read("id, n FROM t").await, ["1|7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_each_statements_own() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let answers = together(
        &database.open().await,
        vec![
            Write::new("INSERT INTO t VALUES ($1), ($1), ($1)", [1]),
            Write::new("UPDATE t SET n = 2 WHERE n = $1", [1]),
            Write::new("INSERT INTO t VALUES ($1)", [3]),
            Write::new("DELETE FROM t WHERE n = $1 RETURNING n", [2]),
            Write::new("DELETE FROM t WHERE n = $1", [99]),
            Write::new("SELECT count(*) FROM t WHERE n < $1", [50]),
            Write::new("WITH a AS (SELECT 1) UPDATE t SET n = $1", [4]),
        ],
    )
    .await;
    let counts: Vec<u64> = answers.iter().map(|answer| assert_ok(answer).rows_affected).collect();
    assert_eq!(counts, [3, 3, 1, 3, 0, 0, 1]);
    assert_eq!(
        assert_ok(&answers[3]).rows,
        [integers(&[2]), integers(&[2]), integers(&[2])]
    );
    assert_eq!(assert_ok(&answers[5]).rows, [integers(&[1])]);
    assert_eq!(database.read("n FROM t").await, ["4"]);
}

/// The limit is one statement's: a set of many may return more.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_take_too_much_memory_are_not_taken() {
    let database = Database::new("CREATE TABLE t (n int, s text)").await;
    let builder = Postgres::builder(&database.url).unwrap().max_rows_bytes(100_000);
    let postgres = builder.connect().await.unwrap();
    // Among neighbours: undone, and they are not touched.
    let returning = |n: i64, length: usize| {
        let text = "INSERT INTO t (n, s) VALUES ($1, $2) RETURNING s";
        Write::new(text, (n, "x".repeat(length)))
    };
    let writes = (0..20).map(|n| returning(n, if n == 7 { 200_000 } else { 20_000 }));
    for (n, answer) in (0..).zip(together(&postgres, writes.collect()).await) {
        if n == 7 {
            assert_eq!(kind(&answer), Kind::TooLarge);
        } else {
            assert_eq!(assert_ok(&answer).rows.len(), 1);
        }
    }
    let count = "count(*), count(*) FILTER (WHERE n = 7) FROM t";
    assert_eq!(database.read(count).await, ["19|0"]);
    // Alone it is committed.
    let writer = Writer::new(postgres.clone());
    let told = writer.submit(returning(20, 200_000)).await;
    assert!(matches!(told, Err(WriteError::OutcomeUnknown { .. })), "{told:?}");
    assert_eq!(database.read("count(*) FROM t").await, ["20"]);
    // In a transaction of one's own it is undone, and the transaction goes on.
    let mut transaction = writer.begin().await.unwrap();
    let all = "SELECT s FROM t";
    assert_eq!(kind(&transaction.execute(all, ()).await), Kind::TooLarge);
    assert_ok(&transaction.execute("SELECT s FROM t WHERE n = 1", ()).await);
    drop(transaction);
    assert_eq!(kind_of_read(&postgres.query(all, ()).await), Kind::TooLarge);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_rows_is_not_of_what_is_asked_for_many() {
    let database = Database::new("CREATE TABLE t (id serial PRIMARY KEY, n int)").await;
    let builder = Postgres::builder(&database.url).unwrap().max_rows_bytes(1024);
    let postgres = builder.connect().await.unwrap();
    let insert = |n: i64| Write::new("INSERT INTO t (n) VALUES ($1) RETURNING id", [n]);
    for answer in together(&postgres, (0..200).map(insert).collect()).await {
        assert_eq!(assert_ok(&answer).rows.len(), 1);
    }
    assert_eq!(database.read("count(*) FROM t").await, ["200"]);
}

/// Another server's transaction that has failed is reported with the code that this one's would have.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_looks_like_a_neighbours_is_the_statements_own() {
    let database = Database::new(
        "CREATE EXTENSION IF NOT EXISTS dblink SCHEMA public;
        CREATE TABLE t (n int);
        CREATE FUNCTION elsewhere(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
            IF n <> 3 THEN RETURN n; END IF;
            IF public.dblink_get_connections() IS NULL THEN
                PERFORM public.dblink_connect('other', format('host=127.0.0.1 port=%s user=postgres dbname=%s',
                    current_setting('port'), current_database()));
            END IF;
            PERFORM public.dblink_exec('other', 'BEGIN', false);
            PERFORM public.dblink_exec('other', 'no statement', false);
            PERFORM public.dblink_exec('other', 'CREATE TABLE never ()');
            RETURN n;
        END $$",
    )
    .await;
    let writes = (0..6).map(|n| Write::new("INSERT INTO t (n) VALUES (elsewhere($1))", [n]));
    let answers = together(&database.open().await, writes.collect()).await;
    let Err(WriteError::Statement(error)) = &answers[3] else {
        panic!("{:?}", answers[3])
    };
    assert_eq!(error.sqlstate.as_deref(), Some("25P02"), "{error:?}");
    assert!(
        answers.iter().enumerate().all(|(n, answer)| n == 3 || answer.is_ok()),
        "{answers:?}"
    );
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["0", "1", "2", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_fails_alone() {
    let schema = "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1);
        CREATE TABLE t (n int UNIQUE CHECK (n < 90), p int REFERENCES p, s text NOT NULL DEFAULT '')";
    let database = Database::new(schema).await;
    let answers = together(
        &database.open().await,
        vec![
            Write::new("INSERT INTO t (n) VALUES ($1)", [1]),
            Write::new("INSERT INTO t (n) VALUES ($1)", [1]),
            Write::new("INSERT INTO t (n) VALUES ($1)", [95]),
            Write::new("INSERT INTO t (n, p) VALUES ($1, 8)", [2]),
            Write::new("INSERT INTO t (n, s) VALUES ($1, NULL)", [3]),
            Write::new("INSERT INTO absent VALUES ($1)", [1]),
            Write::new("INSERT INTO t (n) VALUES", ()),
            Write::new("INSERT INTO t (n) VALUES ($1)", ["x"]),
            Write::new("INSERT INTO t (n) VALUES ($1)", [5_000_000_000_i64]),
            Write::new("INSERT INTO t (n) VALUES ($1)", [4, 5]),
            Write::new("UPDATE t SET n = n / (n - 1)", ()),
            Write::new("INSERT INTO t (n, p) VALUES ($1, 1)", [6]),
        ],
    )
    .await;
    assert_ok(&answers[0]);
    let kinds: Vec<Kind> = answers[1..11].iter().map(kind).collect();
    let expected = [
        Kind::Unique,
        Kind::Check,
        Kind::ForeignKey,
        Kind::NotNull,
        Kind::Text,
        Kind::Text,
        Kind::Type,
        Kind::Type,
        Kind::ParameterCount,
        Kind::Type,
    ];
    assert_eq!(kinds, expected);
    assert_ok(&answers[11]);
    assert_eq!(database.read("n, p FROM t ORDER BY n").await, ["1", "6|1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_constraint_that_refuses_the_commit_fails_its_own_statement() {
    let schema = "CREATE TABLE p (id int PRIMARY KEY);
        CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED); CREATE TABLE t (n int)";
    let database = Database::new(schema).await;
    let mut writes: Vec<Write> = (0..20).map(|n| Write::new("UPDATE t SET n = $1", [n])).collect();
    writes.insert(7, Write::new("INSERT INTO c VALUES ($1)", [5]));
    writes.insert(0, Write::new("INSERT INTO t VALUES ($1)", [-1]));
    let answers = together(&database.open().await, writes).await;
    for (position, answer) in answers.iter().enumerate() {
        if position == 8 {
            assert_eq!(kind(answer), Kind::ForeignKey);
        } else {
            assert_eq!(assert_ok(answer).rows_affected, 1, "{position}");
        }
    }
    assert_eq!(database.read("n FROM t").await, ["19"]);
    assert!(database.read("p FROM c").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deferred_is_looked_at_as_if_each_had_been_alone() {
    let schema = "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE log (n bigint);
        CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED);
        CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN INSERT INTO log SELECT count(*) FROM c; RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON c DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION counts()";
    let database = Database::new(schema).await;
    let child = || Write::new("INSERT INTO c VALUES ($1)", [5]);
    let parent = Write::new("INSERT INTO p VALUES ($1)", [5]);
    let answers = together(&database.open().await, vec![child(), parent, child(), child()]).await;
    assert_eq!(kind(&answers[0]), Kind::ForeignKey, "the parent came later");
    for answer in &answers[1..] {
        assert_ok(answer);
    }
    assert_eq!(database.read("n FROM log ORDER BY n").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_share_runs_alone_and_what_would_change_a_connection_is_refused() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let answers = together(
        &database.open().await,
        vec![
            Write::new("INSERT INTO t VALUES ($1)", [1]),
            Write::new("VACUUM t", ()),
            Write::new("CREATE TABLE made (n int)", ()),
            Write::new("INSERT INTO made VALUES ($1)", [2]),
            Write::new("BEGIN", ()),
            Write::new("SET search_path = public", ()),
            Write::new("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", ()),
            Write::new("CREATE INDEX CONCURRENTLY i ON t (n)", ()),
        ],
    )
    .await;
    for position in [0, 1, 2, 3, 7] {
        assert_ok(&answers[position]);
    }
    for position in [4, 5, 6] {
        let answer = &answers[position];
        assert!(matches!(answer, Err(WriteError::Refused { .. })), "{answer:?}");
    }
    assert_eq!(database.read("n FROM made").await, ["2"]);
    assert_eq!(database.read("n FROM t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_is_not_accepted_is_undone() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let refuse = |sql, n: i64| {
        Write::new(sql, [n]).accept_if(|outcome| match outcome.rows_affected {
            1 => Ok(()),
            count => Err(format!("{count} rows")),
        })
    };
    let answers = together(
        &database.open().await,
        vec![
            refuse("INSERT INTO t VALUES ($1)", 1),
            refuse("INSERT INTO t VALUES ($1), (2)", 2),
            refuse("UPDATE t SET n = $1", 5),
        ],
    )
    .await;
    assert_ok(&answers[0]);
    assert!(matches!(&answers[1], Err(WriteError::Refused { reason }) if reason == "2 rows"));
    assert_ok(&answers[2]);
    assert_eq!(database.read("n FROM t").await, ["5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_is_not_accepted_and_cannot_be_undone_is_unknown() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let writer = Writer::new(database.open().await);
    let add = |accepted: Result<(), String>| {
        Write::new("ALTER TABLE t ADD COLUMN IF NOT EXISTS m int", ()).accept_if(move |_| accepted.clone())
    };
    let answer = writer.submit(add(Err("no".to_owned()))).await;
    assert!(matches!(answer, Err(WriteError::OutcomeUnknown { .. })), "{answer:?}");
    assert_ok(&writer.submit(add(Ok(()))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_statement_is_never_executed() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let writer = Writer::builder().max_in_flight(1).build(database.open().await);
    let token = CancelToken::new();
    let insert = |n: i64| Write::new("INSERT INTO t VALUES ($1)", [n]);
    let sleeping = tokio::spawn({
        let writer = writer.clone();
        async move { writer.execute("SELECT pg_sleep(0.3)::text", ()).await }
    });
    while database
        .read("true FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        .await
        .is_empty()
    {}
    // Both wait in one batch behind the one that sleeps while the token is cancelled.
    let (withdrawn, neighbour, ()) = tokio::join!(
        writer.submit(insert(1).cancel(token.clone())),
        writer.submit(insert(2)),
        async { token.cancel() }
    );
    assert_ok(&sleeping.await.unwrap());
    assert_eq!(withdrawn, Err(WriteError::Cancelled));
    assert_ok(&neighbour);
    assert_eq!(database.read("n FROM t").await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_nulls_and_texts_of_other_types_come_back_as_they_went() {
    let schema = "CREATE TABLE t (a int[], j jsonb, u uuid, m numeric(20, 4), at timestamptz, b bool, y bytea)";
    let database = Database::new(schema).await;
    let writer = Writer::new(database.open().await);
    let parameters = vec![
        Value::from(vec![Some(1_i64), None]),
        Value::from(r#"{"a": [1]}"#),
        Value::from("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        Value::from("12345678901.2500"),
        Value::from("2024-02-29T12:34:56.789Z"),
        Value::from(true),
        Value::from(vec![0_u8, 255]),
    ];
    let sql = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *";
    let done = writer.execute(sql, parameters.clone()).await.unwrap();
    let mut expected = parameters;
    expected[5] = Value::Integer(1);
    assert_eq!(done.rows, [expected]);
    let none = writer.execute(sql, vec![Value::Null; 7]).await.unwrap();
    assert_eq!(none.rows, [vec![Value::Null; 7]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_before_a_statement_change_nothing_of_its_outcome() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let postgres = database.open().await;
    for before in [
        "-- name: add\n",
        "/* SELECT /* nested */ */ ",
        "/*+ IndexScan(t) */",
        " ;; -- ;\n",
        "WITH u AS (SELECT 1), /*+ x */ v AS (DELETE FROM t WHERE n < 0 RETURNING n) ",
    ] {
        let insert = format!("{before}INSERT INTO t VALUES ($1), ($1) RETURNING n");
        let alone = Writer::new(postgres.clone()).execute(insert.clone(), [1]).await;
        let write = |n: i64| Write::new(insert.clone(), [n]);
        let shared = together(&postgres, vec![write(1), write(2)]).await;
        for answer in [&alone, &shared[0], &shared[1]] {
            let outcome = assert_ok(answer);
            assert_eq!((outcome.rows_affected, outcome.rows.len()), (2, 2), "{before}");
        }
        let read = format!("{before}SELECT count(*) FROM t WHERE n = 2");
        let read = Writer::new(postgres.clone()).execute(read, ()).await;
        assert_eq!(assert_ok(&read).rows_affected, 0, "{before}");
    }
    assert_eq!(database.read("count(*), sum(n) FROM t").await, ["30|40"]);
}
