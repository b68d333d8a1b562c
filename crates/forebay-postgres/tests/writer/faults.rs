//! Servers that go away, connections that are cut, locks that are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_postgres::{ConnectError, Postgres};
use forebay_write::{StatementErrorKind as Kind, Write, WriteError, Writer};
use futures_util::future::join_all;
use futures_util::poll;
use testbed::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Database, assert_ok, kind, together};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_or_refuses_is_told_at_once() {
    let nobody = Postgres::connect("postgresql://postgres@127.0.0.1:1/postgres").await;
    assert!(matches!(nobody.err(), Some(ConnectError::Unavailable { .. })));
    let database = Database::new("").await;
    let url = database.url.replace("postgres@", "nobody:secret@");
    let Some(ConnectError::Unavailable { cause }) = Postgres::connect(&url).await.err() else {
        panic!("a user that is not there was let in")
    };
    // Who, where, and which database.
    let place = database.url.split(['@', '?']).nth(1).unwrap();
    assert!(cause.contains(&format!("nobody@{place}:")), "{cause}");
    assert!(!cause.contains("secret"), "{cause}");
    let Some(ConnectError::InvalidUrl { cause }) = Postgres::builder("postgresql://app:p@ss/word@h/app").err() else {
        panic!("it was understood")
    };
    assert!(cause.contains("%40") && !cause.contains("word@"), "{cause}");
    assert!(Postgres::connect("mysql://x").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_ended_meanwhile_are_replaced() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    // By a name of its own: others may be on the same server.
    let name = testbed::scratch_name("ended");
    let postgres = Postgres::connect(&format!("{}&application_name={name}", database.url))
        .await
        .unwrap();
    let writes = |n: i64| {
        (0..8)
            .map(move |_| Write::new("INSERT INTO t (n) VALUES ($1)", [n]))
            .collect()
    };
    together(&postgres, writes(1)).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    assert!(database.plain.execute(end, &[&name]).await.unwrap() > 0);
    for answer in together(&postgres, writes(2)).await {
        assert_ok(&answer);
    }
    assert_eq!(
        database.read("n, count(*) FROM t GROUP BY n ORDER BY n").await,
        ["1|8", "2|8"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_for_a_lock_keeps_no_neighbour_waiting() {
    let database =
        Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let postgres = Postgres::builder(&database.url)
        .unwrap()
        .lock_timeout(Duration::from_millis(50))
        .connect()
        .await
        .unwrap();
    database
        .plain
        .batch_execute("BEGIN; UPDATE t SET n = 5 WHERE id = 1")
        .await
        .unwrap();
    let writer = Writer::builder()
        .max_items(2)
        .max_in_flight(1)
        .max_wait(Duration::from_secs(600))
        .build(postgres);
    let update = |id: i64| writer.submit(Write::new("UPDATE t SET n = n + 1 WHERE id = $1", [id]));
    let (mut locked, free) = (Box::pin(update(1)), update(2));
    let first = futures_util::future::select(&mut locked, Box::pin(free)).await;
    let futures_util::future::Either::Right((free, _)) = first else {
        panic!("what was locked was written")
    };
    assert_ok(&free);
    database.plain.batch_execute("COMMIT").await.unwrap();
    assert_eq!(assert_ok(&locked.await).rows_affected, 1);
    assert_eq!(database.read("id, n FROM t ORDER BY id").await, ["1|6", "2|1"]);
}

/// To prepare a text is to wait for its table, on a connection that has not done so yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_locked_is_waited_for_also_by_what_was_never_prepared() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let lock_timeout = Duration::from_millis(100);
    let lock = "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE";
    for is_ordered in [false, true] {
        for count in [1, 12] {
            database.plain.batch_execute(lock).await.unwrap();
            let builder = Postgres::builder(&database.url).unwrap();
            let writer = Writer::new(builder.lock_timeout(lock_timeout).connect().await.unwrap());
            let writes = (0..count).map(|n| {
                let write = Write::new("INSERT INTO t (n) VALUES ($1)", [n]);
                writer.submit(if is_ordered { write.ordered_by(1) } else { write })
            });
            let mut writes = Box::pin(join_all(writes));
            let early = tokio::time::timeout(5 * lock_timeout, &mut writes).await;
            assert!(early.is_err(), "{early:?}");
            database.plain.batch_execute("COMMIT").await.unwrap();
            for answer in writes.await {
                assert_ok(&answer);
            }
        }
    }
    assert_eq!(database.read("count(*), sum(n) FROM t").await, ["26|132"]);
}

/// What is done whole or not at all is tried a second time, apart from its neighbours, also where a comment stands before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_schema_that_waits_for_a_lock_is_tried_again() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let locker = crate::plain(&database.url).await;
    for (before, column) in [
        ("", "one"),
        ("-- name: widen\n", "two"),
        ("/* a */ /*+ b */ ; ", "three"),
    ] {
        let lock = "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE";
        locker.batch_execute(lock).await.unwrap();
        let writer = Writer::new(database.open().await);
        let widen = format!("{before}ALTER TABLE t ADD COLUMN widened_{column} int");
        let mut widened = Box::pin(writer.execute(widen, ()));
        let waiting = format!(
            "query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%widened_{column} int'"
        );
        let second_try = async {
            let mut tries = std::collections::HashSet::new();
            while tries.len() < 2 {
                tries.extend(database.read(&waiting).await);
            }
        };
        tokio::select! {
            early = &mut widened => panic!("{before}: {early:?}"),
            () = second_try => {}
        }
        locker.batch_execute("COMMIT").await.unwrap();
        assert_ok(&widened.await);
    }
}

/// What has begun is executed, and a writer that is drained has nothing on its way any more.
#[tokio::test(flavor = "multi_thread")]
async fn one_whose_caller_has_gone_while_it_waits_is_written_all_the_same() {
    let database = Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)").await;
    let lock = "BEGIN; UPDATE t SET n = 9 WHERE id = 1";
    database.plain.batch_execute(lock).await.unwrap();
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(2)
        .max_wait(Duration::from_secs(600))
        .build(database.open().await);
    let mut blocked = Box::pin(writer.execute("UPDATE t SET n = n + 1 WHERE id = $1", [1]));
    assert!(poll!(&mut blocked).is_pending());
    assert_ok(&writer.execute("INSERT INTO t (id) VALUES ($1)", [10]).await);
    drop(blocked);
    let mut drained = Box::pin(writer.drain());
    let early = tokio::time::timeout(Duration::from_millis(300), &mut drained).await;
    assert!(early.is_err(), "what it waits for is still locked");
    database.plain.batch_execute("COMMIT").await.unwrap();
    drained.await;
    assert_eq!(database.read("n FROM t WHERE id = 1").await, ["10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_wait_for_locks_keep_their_neighbours_hardly_longer_than_one() {
    let database =
        Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let lock_timeout = Duration::from_millis(400);
    let builder = Postgres::builder(&database.url).unwrap().lock_timeout(lock_timeout);
    let postgres = builder.connect().await.unwrap();
    let locked = "BEGIN; UPDATE t SET n = 5 WHERE id = 1";
    database.plain.batch_execute(locked).await.unwrap();
    let writer = Writer::builder()
        .max_items(31)
        .max_in_flight(1)
        .max_wait(Duration::from_secs(600))
        .build(postgres);
    let update = |id: i64| writer.submit(Write::new("UPDATE t SET n = n + 1 WHERE id = $1", [id]));
    let begun = std::time::Instant::now();
    let mut blocked = Box::pin(join_all((0..30).map(|_| update(1))));
    let first = futures_util::future::select(&mut blocked, Box::pin(update(2))).await;
    let futures_util::future::Either::Right((free, _)) = first else {
        panic!("what was locked was written")
    };
    assert_ok(&free);
    let waited = begun.elapsed();
    assert!(waited < lock_timeout * 6, "{waited:?}");
    database.plain.batch_execute("COMMIT").await.unwrap();
    for answer in blocked.await {
        assert_ok(&answer);
    }
    assert_eq!(database.read("id, n FROM t ORDER BY id").await, ["1|35", "2|1"]);
}

/// Whoever waits for a row of a batch's looks for a deadlock after `deadlock_timeout`, and would be its victim.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_gives_way_before_who_waits_for_it_looks_for_a_deadlock() {
    let database =
        Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let url = format!("{}%20-c%20deadlock_timeout%3D1600", database.url);
    // Longer than anybody looks for deadlocks after.
    let postgres = Postgres::builder(&url).unwrap().lock_timeout(Duration::from_secs(60));
    let writer = Writer::builder()
        .max_items(2)
        .max_wait(Duration::from_secs(600))
        .build(postgres.connect().await.unwrap());
    let plain = &database.plain;
    plain
        .batch_execute("SET deadlock_timeout = 1200; BEGIN; UPDATE t SET n = 5 WHERE id = 1")
        .await
        .unwrap();
    let update = |id: i64| writer.execute("UPDATE t SET n = n + 1 WHERE id = $1", [id]);
    let mut ours = Box::pin(join_all([2, 1].map(update)));
    assert!(poll!(&mut ours).is_pending());
    let in_its_way = "count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid";
    while database.read(in_its_way).await != ["1"] {
        tokio::task::yield_now().await;
    }
    // The batch has the second row and wants the first; or has given way already, where the machine is slow, and may be done with the second.
    plain
        .batch_execute("UPDATE t SET n = n + 5 WHERE id = 2")
        .await
        .expect("no deadlock");
    plain.batch_execute("COMMIT").await.unwrap();
    for answer in ours.await {
        assert_ok(&answer);
    }
    assert_eq!(database.read("id, n FROM t ORDER BY id").await, ["1|6", "2|6"]);
}

/// What may have committed in its middle is not run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_procedure_that_commits_and_is_ended_ran_once() {
    let database = Database::new(
        "CREATE TABLE t (n int);
         CREATE PROCEDURE add() LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO t VALUES (1); COMMIT; PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); END $$;
         CREATE PROCEDURE fail() LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO t VALUES (2); COMMIT; RAISE EXCEPTION USING ERRCODE = '40001'; END $$",
    )
    .await;
    let writer = Writer::new(database.open().await);
    let ended = writer.execute("CALL add()", ()).await;
    assert!(matches!(ended, Err(WriteError::OutcomeUnknown { .. })), "{ended:?}");
    assert_eq!(kind(&writer.execute("CALL fail()", ()).await), Kind::Conflict);
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["1", "2"]);
}

/// A server that panics may have written the commit before, so that nobody may write again.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_leaves_the_outcome_unknown() {
    let database = Database::new("CREATE TABLE t (n int)").await;
    let server = address_in(&database.url);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let panics = Arc::new(AtomicBool::new(false));
    tokio::spawn({
        let (server, panics) = (server.clone(), Arc::clone(&panics));
        async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(panicking(client, server.clone(), Arc::clone(&panics)));
            }
        }
    });
    let builder = Postgres::builder(&database.url.replace(&server, &address)).unwrap();
    let writer = Writer::new(builder.max_connections(1).connect().await.unwrap());
    assert_ok(&writer.execute("INSERT INTO t VALUES ($1)", [1]).await);
    panics.store(true, Ordering::Relaxed);
    let told = writer.execute("INSERT INTO t VALUES ($1)", [2]).await;
    assert!(matches!(told, Err(WriteError::OutcomeUnknown { .. })), "{told:?}");
    assert_eq!(database.read("n FROM t ORDER BY n").await, ["1", "2"]);
}

fn address_in(url: &str) -> String {
    let after = url.split('@').nth(1).unwrap();
    after.split('/').next().unwrap().to_owned()
}

/// A connection whose server seems to panic: instead of an answer, once, comes PostgreSQL's own last word.
async fn panicking(client: tokio::net::TcpStream, server: String, panics: Arc<AtomicBool>) {
    let server = tokio::net::TcpStream::connect(server).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
        if panics.swap(false, Ordering::Relaxed) {
            let mut last = b"E\0\0\0\0SPANIC\0VPANIC\0C58030\0Mcould not fdatasync file\0\0".to_vec();
            let length = u32::try_from(last.len() - 1).unwrap();
            last[1..5].copy_from_slice(&length.to_be_bytes());
            to_client.write_all(&last).await.unwrap();
            return;
        }
        if to_client.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_keeps_its_order_waits_in_its_place_for_as_long_as_is_tried() {
    let database =
        Database::new("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let postgres = Postgres::builder(&database.url)
        .unwrap()
        .lock_timeout(Duration::from_millis(20))
        .retry_for(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    database
        .plain
        .batch_execute("BEGIN; UPDATE t SET n = 5 WHERE id = 1")
        .await
        .unwrap();
    let update = |id: i64| Write::new("UPDATE t SET n = n + 1 WHERE id = $1", [id]).ordered_by("k");
    let answers = together(&postgres, vec![update(1), update(2)]).await;
    assert_eq!(kind(&answers[0]), Kind::LockTimeout);
    assert_ok(&answers[1]);
    database.plain.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(database.read("id, n FROM t ORDER BY id").await, ["1|0", "2|1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_again_and_again_loses_and_doubles_nothing() {
    let mut server = testbed::Postgres::start().unwrap();
    let database = Database::on(&server.url(), "CREATE TABLE t (n int)").await;
    let proxy = Proxy::start(server.address()).unwrap();
    let url = database
        .url
        .replace(&server.address().to_string(), &proxy.address().to_string());
    let writer = Writer::new(Postgres::connect(&url).await.unwrap());
    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    let mut next = 0_i64;
    for round in 0..4 {
        let calls: Vec<_> = (0..400)
            .map(|_| {
                next += 1;
                let (writer, n) = (writer.clone(), next);
                tokio::spawn(async move {
                    (
                        n,
                        writer
                            .submit(Write::new("INSERT INTO t (n) VALUES ($1)", [n]).ordered_by(n))
                            .await,
                    )
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(3 * round)).await;
        proxy.cut();
        for call in join_all(calls).await {
            match call.unwrap() {
                (n, Ok(_)) => acknowledged.push(n),
                (n, Err(WriteError::OutcomeUnknown { .. })) => unknown.push(n),
                (n, Err(error)) => panic!("{n}: {error}"),
            }
        }
    }
    server.kill9().unwrap();
    server.restart().unwrap();
    let plain_url = database.url.replace(
        database.url.split('@').nth(1).unwrap().split('/').next().unwrap(),
        &server.address().to_string(),
    );
    let (plain, driver) = tokio_postgres::connect(&plain_url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(driver);
    let rows = plain.query("SELECT n, count(*) FROM t GROUP BY n", &[]).await.unwrap();
    let mut written = std::collections::HashSet::new();
    for row in rows {
        assert_eq!(row.get::<_, i64>(1), 1, "{} was written twice", row.get::<_, i32>(0));
        written.insert(i64::from(row.get::<_, i32>(0)));
    }
    assert!(
        acknowledged.iter().all(|n| written.contains(n)),
        "an acknowledged row is lost"
    );
    assert!(written.iter().all(|n| acknowledged.contains(n) || unknown.contains(n)));
    println!("{} acknowledged, {} unknown", acknowledged.len(), unknown.len());
}
