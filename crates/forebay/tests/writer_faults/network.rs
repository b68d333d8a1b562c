//! Connections that are cut, stall and crawl: lost before the commit is asked for, a batch is written elsewhere and once; lost
//! meanwhile, its outcome is unknown and said to be; and whoever waits, waits for no longer than was asked for.

use std::time::{Duration, Instant};

use forebay::postgres::ConnectError;
use forebay::write::{ReadError, Write, WriteError, Writer};
use futures_util::future::join_all;
use testbed::{Behaviour, Deed, Ending, Moment, Side};

use crate::place::Plain;
use crate::{Ledger, Place, Settings, Site, batch, together, within};

on_both!(
    what_is_cut_before_its_commit_is_written_once,
    what_is_lost_in_time_is_written_also_when_the_kill_takes_longer,
    a_commit_that_is_cut_is_unknown_and_never_written_twice,
    one_statement_that_is_cut_is_unknown_or_written_once,
    what_is_unknown_is_settled_when_it_is_told,
    a_cut_at_any_byte_loses_and_doubles_nothing,
    connections_that_end_while_idle_cost_nobody_anything,
    connections_that_died_in_silence_while_idle_are_replaced_together,
    a_commit_that_stalls_is_unknown_after_the_answer_timeout_and_others_go_on,
    connections_that_stall_before_the_commit_are_given_up_and_the_batch_is_written,
    a_server_that_takes_connections_and_says_nothing_is_unavailable_in_time,
    a_server_that_refuses_is_unavailable_in_time_and_written_to_again_when_it_is_back,
    a_slow_connection_is_waited_for,
    what_stalled_is_let_go_of,
);

const SCHEMA: &str = "CREATE TABLE t (n BIGINT, words TEXT)";

async fn what_is_cut_before_its_commit_is_written_once<S: Site>() {
    // Of its own: where a server has tables without transactions, in whatever database, MariaDB's writer cannot be so sure.
    let place = Place::<S>::own(&[], SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    let mut all = Ledger::default();
    let word = || b"row 29".to_vec();
    let moments = [
        Moment::Asked(word()),
        Moment::HandedOn(word()),
        Moment::Answered(word()),
    ];
    let mut next = 0;
    for ending in [Ending::Close, Ending::Reset] {
        for moment in &moments {
            // Twice, as it may be lost again when it is tried again.
            place.proxy.trap(moment.clone(), Deed::End(ending), 2);
            let writes = (0..30).map(|n| Write::new(S::INSERT_WORDS, (next + n, format!("row {n}"))));
            let answers = within(settings.retry_for, batch::<S>(&handle, writes.collect())).await;
            let told: Ledger = (next..).zip(answers).collect();
            assert!(told.is_all_acknowledged());
            assert_eq!(place.proxy.sprung(), 2);
            all.acknowledged.extend(told.acknowledged);
            next += 30;
        }
    }
    all.holds(&place).await;
}

/// To kill what was lost takes a connection, and that takes longer here than there is time for tries. The server is there.
async fn what_is_lost_in_time_is_written_also_when_the_kill_takes_longer<S: Site>() {
    let place = Place::<S>::own(&[], SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_millis(600),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    place.proxy.trap(Moment::Asked(b"row 2".to_vec()), Deed::Stall, 1);
    let writing = tokio::spawn(async move {
        let writes = (0..3).map(|n| Write::new(S::INSERT_WORDS, (n, format!("row {n}"))));
        batch::<S>(&handle, writes.collect()).await
    });
    while place.proxy.sprung() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let lost = Instant::now();
    place.proxy.set(Behaviour::Delay(Duration::from_millis(150)));
    place.proxy.cut();
    let told: Ledger = (0..).zip(within(settings.retry_for, writing).await.unwrap()).collect();
    assert!(lost.elapsed() > settings.retry_for, "the kill took no longer");
    assert!(told.is_all_acknowledged(), "{told:?}");
    place.proxy.set(Behaviour::Pass);
    told.holds(&place).await;
}

async fn a_commit_that_is_cut_is_unknown_and_never_written_twice<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    let mut all = Ledger::default();
    let asked = || b"COMMIT".to_vec();
    let moments = [
        (Moment::HandedOn(asked()), Ending::Close),
        (Moment::HandedOn(asked()), Ending::Reset),
        (Moment::Answered(asked()), Ending::Close),
        (Moment::Answered(asked()), Ending::Reset),
    ];
    for (round, (moment, ending)) in (0..).zip(moments) {
        let is_answered = matches!(moment, Moment::Answered(_));
        place.proxy.trap(moment, Deed::End(ending), 1);
        let told = within(
            settings.retry_for,
            together::<S>(&handle, 100 * round..100 * round + 30),
        )
        .await;
        assert_eq!(told.unknown.len(), 30, "{told:?}");
        if is_answered {
            // It was committed, whatever the caller could be told.
            all.acknowledged.extend(told.unknown);
        } else {
            all.unknown.extend(told.unknown);
        }
        let told = together::<S>(&handle, 100 * round + 50..100 * round + 60).await;
        assert!(told.is_all_acknowledged());
        all.acknowledged.extend(told.acknowledged);
    }
    all.holds(&place).await;
}

async fn one_statement_that_is_cut_is_unknown_or_written_once<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    let mut all = Ledger::default();
    let word = || b"the word".to_vec();
    let moments = [
        Moment::Asked(word()),
        Moment::HandedOn(word()),
        Moment::Answered(word()),
    ];
    for (n, moment) in (0..).zip(moments) {
        let is_answered = matches!(moment, Moment::Answered(_));
        place.proxy.trap(moment, Deed::End(Ending::Reset), 1);
        let write = || Write::new(S::INSERT_WORDS, (n, "the word"));
        let told = within(settings.retry_for, batch::<S>(&handle, vec![write()]))
            .await
            .remove(0);
        assert_eq!(place.proxy.sprung(), 1);
        if is_answered {
            assert!(matches!(told, Err(WriteError::OutcomeUnknown { .. })), "{told:?}");
            all.acknowledged.push(n);
        } else {
            all.note(n, told);
        }
        all.holds(&place).await;
    }
}

/// What was not done by then is not done later: who looks sees what became of it, and what comes after comes after.
async fn what_is_unknown_is_settled_when_it_is_told<S: Site>() {
    let place = Place::<S>::new("CREATE TABLE t (n BIGINT PRIMARY KEY, words TEXT)").await;
    let settings = Settings {
        lock_timeout: Duration::from_secs(20),
        ..Settings::default()
    };
    let writer = Writer::new(place.open(&settings).await);
    let mut other = place.plain().await;
    for round in 0..3 {
        other.say("BEGIN").await;
        other
            .say(&format!("INSERT INTO t (n, words) VALUES ({round}, 'of another')"))
            .await;
        // At the server it waits for the other's lock, and its connection is gone.
        let cut = Moment::HandedOn(b"the word".to_vec());
        place.proxy.trap(cut, Deed::End(Ending::Reset), 1);
        let write = |n: i64| Write::new(S::INSERT_WORDS, (n, "the word")).ordered_by(0);
        let told = within(settings.retry_for, writer.submit(write(round))).await;
        assert!(matches!(told, Err(WriteError::OutcomeUnknown { .. })), "{told:?}");
        other.say("ROLLBACK").await;
        other
            .say(&format!("INSERT INTO t (n, words) VALUES ({round}, 'later')"))
            .await;
        assert!(writer.submit(write(100 + round)).await.is_ok());
        assert_eq!(
            place.read(&format!("SELECT words FROM t WHERE n = {round}")).await,
            ["later"]
        );
    }
}

async fn a_cut_at_any_byte_loses_and_doubles_nothing<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    let mut all = Ledger::default();
    let mut next = 0;
    for side in [Side::Client, Side::Server] {
        for step in 0..40 {
            let ending = if step % 2 == 0 { Ending::Close } else { Ending::Reset };
            place
                .proxy
                .trap(Moment::Passed(side, 1 + 29 * step), Deed::End(ending), 1);
            // Of two texts, so that some go as one and some by themselves.
            let writes = (0..8).map(|n| match n {
                0..5 => Write::new(S::INSERT, [next + n]),
                _ => Write::new(S::INSERT_WORDS, (next + n, "words")),
            });
            let answers = within(settings.retry_for, batch::<S>(&handle, writes.collect())).await;
            all.extend((next..).zip(answers));
            next += 8;
        }
    }
    assert!(all.failed.is_empty(), "{:?}", all.failed);
    assert!(all.acknowledged.len() > all.unknown.len());
    all.holds(&place).await;
}

async fn connections_that_end_while_idle_cost_nobody_anything<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    let writer = Writer::new(handle.clone());
    let mut all = Ledger::default();
    for round in 0..6 {
        // As many connections as there may be for writing.
        let held = join_all((0..3).map(|_| writer.begin())).await;
        for transaction in held {
            transaction.unwrap().rollback().await.unwrap();
        }
        let ending = if round % 2 == 0 { Ending::Close } else { Ending::Reset };
        place.proxy.cut_with(ending);
        let told = within(settings.retry_for, together::<S>(&handle, 100 * round..100 * round + 8)).await;
        assert!(told.is_all_acknowledged());
        all.acknowledged.extend(told.acknowledged);
        place.proxy.cut_with(ending);
        within(settings.retry_for, writer.begin())
            .await
            .unwrap()
            .rollback()
            .await
            .unwrap();
        place.proxy.cut_with(ending);
        within(settings.retry_for, S::query(&handle, "SELECT 1")).await.unwrap();
    }
    all.holds(&place).await;
}

/// As behind a firewall that has forgotten them: no statement is entrusted to one, and they are not tried one after the other.
async fn connections_that_died_in_silence_while_idle_are_replaced_together<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let writer = Writer::new(place.open(&settings).await);
    let write = |n: u64| writer.submit(Write::new(S::INSERT, [i64::try_from(n).unwrap()]).ordered_by(n));
    let told: Ledger = (0..60).zip(join_all((0..60).map(write)).await).collect();
    assert!(told.is_all_acknowledged());
    assert!(place.proxy.connections() >= 3, "{}", place.proxy.connections());
    // No longer trusted without a look.
    tokio::time::sleep(Duration::from_millis(300)).await;
    place.proxy.hold();
    let begun = Instant::now();
    assert!(write(60).await.is_ok());
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    place.proxy.release();
    let mut all = told;
    all.acknowledged.push(60);
    all.holds(&place).await;
}

async fn a_commit_that_stalls_is_unknown_after_the_answer_timeout_and_others_go_on<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        answer_timeout: Duration::from_secs(2),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    place.proxy.trap(Moment::Asked(b"COMMIT".to_vec()), Deed::Stall, 1);
    let begun = Instant::now();
    let stalled = tokio::spawn({
        let handle = handle.clone();
        async move { together::<S>(&handle, 0..30).await }
    });
    while place.proxy.sprung() == 0 {
        tokio::task::yield_now().await;
    }
    let mut all = within(settings.answer_timeout, together::<S>(&handle, 100..130)).await;
    assert!(all.is_all_acknowledged());
    assert!(!stalled.is_finished() || begun.elapsed() >= settings.answer_timeout);
    let told = within(settings.answer_timeout, stalled).await.unwrap();
    assert!(begun.elapsed() >= settings.answer_timeout);
    assert_eq!(told.unknown.len(), 30, "{told:?}");
    all.unknown.extend(told.unknown);
    // What was asked arrives in the end, when nobody waits for it any more.
    place.proxy.release();
    let told = within(settings.retry_for, together::<S>(&handle, 200..230)).await;
    assert!(told.is_all_acknowledged());
    all.acknowledged.extend(told.acknowledged);
    all.holds(&place).await;
}

async fn connections_that_stall_before_the_commit_are_given_up_and_the_batch_is_written<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        connections: 2,
        answer_timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    let mut all = together::<S>(&handle, 0..8).await;
    assert!(all.is_all_acknowledged());
    place.proxy.hold();
    let told = within(settings.retry_for, together::<S>(&handle, 100..130)).await;
    assert!(told.is_all_acknowledged());
    all.acknowledged.extend(told.acknowledged);
    place.proxy.release();
    all.holds(&place).await;
}

async fn a_server_that_takes_connections_and_says_nothing_is_unavailable_in_time<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        answer_timeout: Duration::from_secs(1),
        retry_for: Duration::from_secs(2),
        ..Settings::default()
    };
    // A new connection is given up after five seconds.
    let limit = settings.retry_for + Duration::from_secs(5);
    let handle = place.open(&settings).await;
    place.proxy.set(Behaviour::Stall);
    assert!(matches!(
        within(limit, place.try_open(&settings)).await.err(),
        Some(ConnectError::Unavailable { .. })
    ));
    let writer = Writer::new(handle.clone());
    let (told, read, begun) = within(limit, async {
        tokio::join!(
            together::<S>(&handle, 0..30),
            S::query(&handle, "SELECT 1"),
            writer.begin()
        )
    })
    .await;
    assert_eq!(told.failed.len(), 30, "{told:?}");
    assert!(
        told.failed
            .iter()
            .all(|(_, error)| matches!(error, WriteError::Unavailable { .. })),
        "{told:?}"
    );
    assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");
    assert!(matches!(begun.err(), Some(WriteError::Unavailable { .. })));
    place.proxy.set(Behaviour::Pass);
    let mut all = within(limit, together::<S>(&handle, 100..130)).await;
    assert!(all.is_all_acknowledged());
    all.failed.extend(told.failed);
    all.holds(&place).await;
}

async fn a_server_that_refuses_is_unavailable_in_time_and_written_to_again_when_it_is_back<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_millis(500),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    place.proxy.set(Behaviour::Refuse);
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
    place.proxy.set(Behaviour::Pass);
    let mut all = within(settings.retry_for, together::<S>(&handle, 100..130)).await;
    assert!(all.is_all_acknowledged());
    all.failed.extend(told.failed);
    all.holds(&place).await;
}

async fn a_slow_connection_is_waited_for<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let settings = Settings::default();
    let handle = place.open(&settings).await;
    place.proxy.set(Behaviour::Slow(20_000));
    let begun = Instant::now();
    let writes = (0..30).map(|n| Write::new(S::INSERT_WORDS, (n, "x".repeat(1000))));
    let answers = within(settings.answer_timeout, batch::<S>(&handle, writes.collect())).await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "it was not slow");
    let told: Ledger = (0..).zip(answers).collect();
    assert!(told.is_all_acknowledged());
    place.proxy.set(Behaviour::Delay(Duration::from_millis(20)));
    let more = within(settings.answer_timeout, together::<S>(&handle, 100..130)).await;
    assert!(more.is_all_acknowledged());
    place.proxy.set(Behaviour::Pass);
    let mut all = told;
    all.acknowledged.extend(more.acknowledged);
    all.holds(&place).await;
}

/// A connection that does not answer is closed: nothing of it, no task and no lock at the server, is left to wait for ever.
async fn what_stalled_is_let_go_of<S: Site>() {
    let place = Place::<S>::new("CREATE TABLE t (n BIGINT PRIMARY KEY)").await;
    let settings = Settings {
        answer_timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // This test's own runtime: nobody else is on it.
    let before = tasks();
    let handle = place.open(&settings).await;
    place.proxy.trap(Moment::Answered(b"COMMIT".to_vec()), Deed::Stall, 3);
    for round in 0..3 {
        let told = within(
            settings.answer_timeout,
            together::<S>(&handle, 10 * round..10 * round + 8),
        )
        .await;
        assert_eq!(told.unknown.len(), 8, "{told:?}");
    }
    // In the midst of what it answers, and by a caller who goes.
    place
        .say("INSERT INTO t (n) VALUES (100), (101), (102), (103), (104), (105), (106), (107), (108), (109)")
        .await;
    let many = "SELECT a.n, b.n, c.n, d.n FROM t a, t b, t c, t d";
    place.proxy.trap(Moment::Passed(Side::Server, 40_000), Deed::Stall, 1);
    let told = within(settings.answer_timeout + settings.retry_for, S::query(&handle, many)).await;
    drop(told);
    place.proxy.trap(Moment::Passed(Side::Server, 40_000), Deed::Stall, 1);
    let gone = tokio::time::timeout(Duration::from_millis(300), S::query(&handle, many)).await;
    assert!(gone.is_err() || place.proxy.sprung() == 0);
    drop(handle);
    let is_let_go = async {
        while tasks() > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(Duration::ZERO, is_let_go).await;
}
