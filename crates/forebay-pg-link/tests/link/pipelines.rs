//! What is sent, in which order it is answered, and that neither side waits for the other for ever.

use std::time::Duration;

use bytes::BufMut;
use forebay_pg_link::{IsNull, Link, Named, Tag, TransactionStatus};

use super::{answers, link, query};

fn bind_text(link: &mut Link, statement: &str, parameters: &[Option<&str>]) {
    let encode = |value: &Option<&str>, bytes: &mut bytes::BytesMut| match value {
        None => Ok(IsNull::Yes),
        Some(value) => {
            bytes.put_slice(value.as_bytes());
            Ok(IsNull::No)
        }
    };
    link.outbox().bind("", statement, [], parameters, encode, []).unwrap();
    link.outbox().execute("", 0).unwrap();
}

#[tokio::test]
async fn a_statement_is_asked_and_answered_in_text_and_in_parts() {
    let mut link = link().await;
    assert_eq!(
        query(&mut link, "SELECT 1, NULL; SELECT 'a'").await,
        "TD(1,NULL)C(SELECT 1)TD(a)C(SELECT 1)ZI"
    );
    assert_eq!(query(&mut link, "").await, "IZI");
    link.outbox().parse("s", "SELECT $1::int + 1, $2::text", &[]).unwrap();
    link.outbox().describe(Named::Statement("s")).unwrap();
    link.outbox().sync();
    assert_eq!(answers(&mut link).await.unwrap(), "1tTZI");
    bind_text(&mut link, "s", &[Some("41"), None]);
    link.outbox().sync();
    assert_eq!(answers(&mut link).await.unwrap(), "2D(42,NULL)C(SELECT 1)ZI");
    link.outbox().close(Named::Statement("s")).unwrap();
    link.outbox().sync();
    assert_eq!(answers(&mut link).await.unwrap(), "3ZI");
    bind_text(&mut link, "s", &[Some("1"), None]);
    link.outbox().sync();
    assert_eq!(answers(&mut link).await.unwrap(), "E(26000)ZI");
    assert!(link.is_idle());
}

#[tokio::test]
async fn after_an_error_the_server_skips_to_the_sync_and_no_further() {
    let mut link = link().await;
    link.outbox().parse("s", "SELECT 1 / $1::int", &[]).unwrap();
    link.outbox().sync();
    answers(&mut link).await.unwrap();
    for value in ["1", "0", "1"] {
        bind_text(&mut link, "s", &[Some(value)]);
    }
    link.outbox().sync();
    bind_text(&mut link, "s", &[Some("-1")]);
    link.outbox().sync();
    assert_eq!(link.expected(), 2);
    // The second fails when it is bound; the third is skipped.
    assert_eq!(answers(&mut link).await.unwrap(), "2D(1)C(SELECT 1)E(22012)ZI");
    assert!(!link.is_idle());
    assert_eq!(answers(&mut link).await.unwrap(), "2D(-1)C(SELECT 1)ZI");
    assert!(link.is_idle());
}

#[tokio::test]
async fn it_knows_how_its_transaction_stands() {
    let mut link = link().await;
    for (sql, status) in [
        ("BEGIN", TransactionStatus::Open),
        ("SELECT 1 / 0", TransactionStatus::Failed),
        ("ROLLBACK", TransactionStatus::Idle),
        ("BEGIN; COMMIT", TransactionStatus::Idle),
    ] {
        query(&mut link, sql).await;
        assert_eq!(link.status(), status, "{sql}");
        assert_eq!(link.is_idle(), status == TransactionStatus::Idle, "{sql}");
    }
    link.outbox().query("SELECT 1").unwrap();
    assert!(!link.is_idle(), "something waits to be sent");
    link.send().await.unwrap();
    assert!(!link.is_idle(), "something waits to be answered");
}

#[tokio::test]
async fn both_sides_may_send_more_than_the_other_has_room_for() {
    // Each way far more than the buffers of two sockets: who only sent would never be answered, and never be read.
    const STATEMENTS: usize = 400;
    let mut link = link().await;
    link.outbox().parse("s", "SELECT $1::text", &[]).unwrap();
    let long = "x".repeat(100_000);
    for _ in 0..STATEMENTS {
        bind_text(&mut link, "s", &[Some(&long)]);
    }
    link.outbox().sync();
    let told = tokio::time::timeout(Duration::from_secs(120), answers(&mut link));
    let told = told.await.expect("neither waits for ever").unwrap();
    assert_eq!(told.matches("C(SELECT 1)").count(), STATEMENTS);
    assert_eq!(told.matches('x').count(), STATEMENTS * long.len());
    assert!(link.is_idle());
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (mut link, mut other) = (link().await, link().await);
    // Whatever comes at once, this does not: the first waits are in vain.
    assert_eq!(
        query(&mut other, "SELECT pg_try_advisory_lock(8)").await,
        "TD(t)C(SELECT 1)ZI"
    );
    let sql = "SELECT pg_advisory_lock(8); SELECT generate_series(1, 20000)";
    link.outbox().query(sql).unwrap();
    let mut dropped = 0_u32;
    while dropped < 10 {
        tokio::select! {
            biased;
            message = link.next() => panic!("{:?} came by a lock that is held", message.unwrap().tag()),
            () = tokio::task::yield_now() => dropped += 1,
        }
    }
    assert_eq!(
        query(&mut other, "SELECT pg_advisory_unlock(8)").await,
        "TD(t)C(SELECT 1)ZI"
    );
    let mut rows = 0_u32;
    loop {
        // Polled once or twice and dropped, again and again.
        let polled = tokio::select! {
            biased;
            message = link.next() => Some(message.unwrap().tag()),
            () = tokio::task::yield_now() => None,
        };
        match polled {
            Some(Tag::DATA_ROW) => rows += 1,
            Some(Tag::READY_FOR_QUERY) => break,
            _ => {}
        }
    }
    assert_eq!(rows, 1 + 20_000);
    assert_eq!(query(&mut link, "SELECT 1").await, "TD(1)C(SELECT 1)ZI");
}

#[tokio::test]
async fn rows_that_are_too_long_are_discarded_and_others_are_not() {
    let mut link = link().await;
    link.discard_rows_beyond(10_000);
    let told = query(
        &mut link,
        "SELECT repeat('x', n) FROM (VALUES (1), (5000000), (2)) AS t (n)",
    )
    .await;
    assert_eq!(told, "TD(x)D...D(xx)C(SELECT 3)ZI");
}

#[tokio::test]
async fn settings_that_the_server_reports_are_known() {
    let mut link = link().await;
    assert_eq!(link.parameter("client_encoding"), Some("UTF8"));
    assert!(link.parameter("server_version").is_some());
    query(&mut link, "SET TIME ZONE 'Europe/Berlin'").await;
    assert_eq!(link.parameter("TimeZone"), Some("Europe/Berlin"));
    query(&mut link, "BEGIN; SET TIME ZONE 'UTC'; ROLLBACK").await;
    assert_eq!(link.parameter("TimeZone"), Some("Europe/Berlin"));
    // What answers nothing is not taken for an answer.
    let told = query(
        &mut link,
        "LISTEN forebay_link; NOTIFY forebay_link; DO $$ BEGIN RAISE NOTICE 'n'; END $$",
    )
    .await;
    assert_eq!(told, "C(LISTEN)C(NOTIFY)C(DO)ZI");
}

#[tokio::test]
async fn every_message_can_be_had_as_it_came() {
    let mut link = link().await;
    link.outbox()
        .query("DO $$ BEGIN RAISE NOTICE 'n'; END $$; SELECT 7")
        .unwrap();
    let (mut tags, mut bytes) = (String::new(), 0);
    loop {
        let message = link.next().await.unwrap();
        assert_eq!(message.bytes().len(), message.length());
        bytes += message.length();
        tags.push(char::from(message.tag().0));
        if message.tag() == Tag::READY_FOR_QUERY {
            break;
        }
    }
    assert_eq!(tags, "NCTDCZ");
    assert!(bytes > 60, "{bytes}");
}

#[tokio::test]
async fn copy_goes_in_and_out() {
    let mut link = link().await;
    query(&mut link, "CREATE TEMP TABLE t (a int)").await;
    link.outbox().query("COPY t FROM STDIN").unwrap();
    assert_eq!(link.answer().await.unwrap().tag(), Tag::COPY_IN_RESPONSE);
    for number in 0..1000 {
        link.outbox().copy_data(format!("{number}\n").as_bytes()).unwrap();
    }
    link.outbox().copy_done();
    assert_eq!(answers(&mut link).await.unwrap(), "C(COPY 1000)ZI");
    link.outbox().query("COPY t FROM STDIN").unwrap();
    assert_eq!(link.answer().await.unwrap().tag(), Tag::COPY_IN_RESPONSE);
    link.outbox().copy_fail("changed my mind").unwrap();
    assert_eq!(answers(&mut link).await.unwrap(), "E(57014)ZI");
    let told = query(&mut link, "COPY (SELECT * FROM t WHERE a < 3) TO STDOUT").await;
    assert_eq!(told, "HdddcC(COPY 3)ZI");
}
