//! Limits that are reached: of connections here and at the server, of time that a statement or a transaction may take. Who waits
//! is told in the end; who can be served is.

use std::time::{Duration, Instant};

use forebay::write::{StatementErrorKind as Kind, Write, WriteError, Writer};
use futures_util::future::join_all;

use crate::place::Plain;
use crate::{Ledger, Maria, Pg, Place, Settings, Site, batch, kind, together, within};

on_both!(
    where_callers_hold_all_connections_writers_wait_and_are_told,
    where_the_server_has_no_connection_left_one_is_waited_for_and_its_absence_told,
    who_waits_behind_a_crowd_for_a_lock_is_told_in_time,
);

const SCHEMA: &str = "CREATE TABLE t (n BIGINT, words TEXT)";

async fn where_callers_hold_all_connections_writers_wait_and_are_told<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        answer_timeout: Duration::from_secs(2),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    let writer = Writer::new(handle.clone());
    let held = join_all((0..settings.connections - 1).map(|_| writer.begin())).await;
    let held: Vec<_> = held.into_iter().map(Result::unwrap).collect();
    // One is kept for readers all the same.
    within(Duration::ZERO, S::query(&handle, "SELECT 1")).await.unwrap();
    let begun = Instant::now();
    let (told, one_more) = within(settings.answer_timeout, async {
        tokio::join!(together::<S>(&handle, 0..30), writer.begin())
    })
    .await;
    assert!(begun.elapsed() >= settings.answer_timeout, "given up early");
    let is_clear = |error: &WriteError| {
        matches!(error, WriteError::Unavailable { .. }) && error.to_string().contains("4 connections")
    };
    assert!(
        told.failed.len() == 30 && told.failed.iter().all(|(_, error)| is_clear(error)),
        "{told:?}"
    );
    assert!(one_more.err().is_some_and(|error| is_clear(&error)));
    // One that waits is served when one is let go.
    let (mut all, ()) = tokio::join!(together::<S>(&handle, 100..130), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for transaction in held {
            transaction.rollback().await.unwrap();
        }
    });
    assert!(all.is_all_acknowledged());
    all.failed.extend(told.failed);
    all.holds(&place).await;
}

async fn where_the_server_has_no_connection_left_one_is_waited_for_and_its_absence_told<S: Site>() {
    let place = Place::<S>::own(&[("max_connections", "12")], SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_secs(2),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    // The one that is there is in use, so that another is needed.
    let writer = Writer::new(handle.clone());
    let held = writer.begin().await.unwrap();
    let mut others = Vec::new();
    while let Some(other) = S::plain(&place.url()).await {
        others.push(other);
    }
    let begun = Instant::now();
    let told = within(settings.retry_for, together::<S>(&handle, 0..30)).await;
    assert!(begun.elapsed() >= settings.retry_for, "given up early");
    assert!(
        told.failed.len() == 30
            && told
                .failed
                .iter()
                .all(|(_, error)| matches!(error, WriteError::Unavailable { .. })),
        "{told:?}"
    );
    let (mut all, ()) = within(settings.retry_for, async {
        tokio::join!(together::<S>(&handle, 100..130), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            others.clear();
        })
    })
    .await;
    assert!(all.is_all_acknowledged());
    held.rollback().await.unwrap();
    all.failed.extend(told.failed);
    all.holds(&place).await;
}

async fn who_waits_behind_a_crowd_for_a_lock_is_told_in_time<S: Site>() {
    let place = Place::<S>::new("CREATE TABLE t (n BIGINT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 0)").await;
    let settings = Settings {
        retry_for: Duration::from_secs(3),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    let mut stranger = place.plain().await;
    stranger.say("BEGIN; UPDATE t SET v = 7 WHERE n = 1").await;
    let update = || Write::new("UPDATE t SET v = v + 1 WHERE n = 1", ());
    let writer = Writer::builder().max_in_flight(1).build(handle.clone());
    // In the batch, then until one of the few who wait for locks has given up, and then by itself.
    let limit = settings.lock_timeout * 13 + 2 * settings.retry_for;
    let answers = within(limit, join_all((0..12).map(|_| writer.submit(update())))).await;
    assert!(
        answers.iter().all(|answer| kind(answer) == Kind::LockTimeout),
        "{answers:?}"
    );
    stranger.say("ROLLBACK").await;
    within(settings.retry_for, writer.submit(update())).await.unwrap();
    assert_eq!(place.read("SELECT n, v FROM t").await, ["1|1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_statement_that_runs_too_long_fails_alone() {
    let place = Place::<Pg>::new(SCHEMA).await;
    let settings = Settings {
        options: "-c statement_timeout=300".to_owned(),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    let slow = Write::new("INSERT INTO t (n) SELECT 1000 FROM pg_sleep(600)", ());
    fails_alone(&place, &handle, slow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_statement_that_runs_too_long_fails_alone() {
    let place = Place::<Maria>::own(&[("max_statement_time", "0.3")], SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let slow = Write::new("INSERT INTO t (n) SELECT 1000 + SLEEP(600)", ());
    fails_alone(&place, &handle, slow).await;
}

/// A statement that runs for longer than it may, amid others.
async fn fails_alone<S: Site>(place: &Place<S>, handle: &S::Handle, slow: Write) {
    let mut writes: Vec<Write> = (0..20).map(|n| Write::new(S::INSERT, [n])).collect();
    writes.insert(7, slow.clone());
    let mut answers = within(Duration::from_secs(5), batch::<S>(handle, writes)).await;
    assert_eq!(kind(&answers.remove(7)), Kind::Timeout);
    let all: Ledger = (0..).zip(answers).collect();
    assert!(all.is_all_acknowledged());
    all.holds(place).await;
    let alone = within(Duration::from_secs(5), batch::<S>(handle, vec![slow])).await;
    assert_eq!(kind(&alone[0]), Kind::Timeout);
    all.holds(place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_an_idle_transaction_is_ended_and_batches_are_written_once() {
    let place = Place::<Pg>::new(SCHEMA).await;
    let settings = Settings {
        options: "-c idle_in_transaction_session_timeout=100".to_owned(),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    idle_is_ended(&place, &handle).await;
    // So slow, that the server takes some batches for idle before their commit comes.
    let settings = Settings {
        options: "-c idle_in_transaction_session_timeout=3".to_owned(),
        retry_for: Duration::from_secs(2),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    let mut all = Ledger::default();
    for round in 0..10 {
        place
            .proxy
            .set(testbed::Behaviour::Delay(Duration::from_millis(round % 5)));
        let told = within(
            settings.retry_for,
            together::<Pg>(&handle, 100 * round as i64..100 * round as i64 + 8),
        )
        .await;
        all.acknowledged.extend(told.acknowledged);
        all.unknown.extend(told.unknown);
        all.failed.extend(told.failed);
    }
    all.holds(&place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_an_idle_transaction_is_ended() {
    let place = Place::<Maria>::own(&[("idle_transaction_timeout", "1")], SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    idle_is_ended(&place, &handle).await;
}

async fn idle_is_ended<S: Site>(place: &Place<S>, handle: &S::Handle) {
    let writer = Writer::new(handle.clone());
    let mut idle = writer.begin().await.unwrap();
    idle.execute("INSERT INTO t (n) VALUES (1000)", ()).await.unwrap();
    let lost = async {
        loop {
            // The server counts anew with each statement: so long a pause is needed.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            match idle.execute("INSERT INTO t (n) VALUES (1001)", ()).await {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    };
    assert_eq!(within(Duration::from_secs(5), lost).await, WriteError::TransactionLost);
    assert!(idle.is_lost());
    assert_eq!(idle.commit().await, Err(WriteError::TransactionLost));
    let told = together::<S>(handle, 2000..2020).await;
    assert!(told.is_all_acknowledged());
    told.holds(place).await;
    place.say("DELETE FROM t").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_users_own_limit_of_connections_is_waited_for() {
    let place = Place::<Maria>::own(&[], SCHEMA).await;
    place
        .say("CREATE USER few@'%' IDENTIFIED BY 'f' WITH MAX_USER_CONNECTIONS 1; GRANT ALL ON *.* TO few@'%'")
        .await;
    let url = place.url_through("").replace("root@", "few:f@");
    let settings = Settings::default();
    let handle = Maria::open(&url, &settings).await.unwrap();
    let held = Writer::new(handle.clone()).begin().await.unwrap();
    let (told, ()) = within(settings.retry_for, async {
        tokio::join!(together::<Maria>(&handle, 0..8), async {
            // Long enough for it to be refused.
            tokio::time::sleep(Duration::from_millis(300)).await;
            held.rollback().await.unwrap();
        })
    })
    .await;
    assert!(told.is_all_acknowledged());
    told.holds(&place).await;
}
