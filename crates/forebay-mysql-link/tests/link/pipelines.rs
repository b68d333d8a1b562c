//! What is sent, in which order it is answered, and that neither side waits for the other for ever.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use forebay_mysql_link::{ColumnType, Link, Packet, Parameter, put_length_encoded};

use super::{answer, link, prepare, query, rows};

/// Parameters as text, or NULL.
pub(super) fn execute(link: &mut Link, statement: u32, parameters: &[Option<&str>]) {
    let encode = |value: &Option<&str>, bytes: &mut BytesMut| match value {
        None => Parameter::Null,
        Some(value) => {
            put_length_encoded(bytes, value.as_bytes());
            Parameter::Of(ColumnType::MYSQL_TYPE_VAR_STRING, false)
        }
    };
    link.outbox().execute(statement, parameters.iter(), encode).unwrap();
}

#[tokio::test]
async fn a_statement_is_asked_and_answered_in_text_and_prepared() {
    let mut link = link().await;
    assert_eq!(
        query(&mut link, "SELECT 1, NULL; DO 1; SELECT 'a'").await,
        "TD(1,NULL)EO(0)TD(a)E"
    );
    assert_eq!(query(&mut link, "").await, "X(1065)");
    assert_eq!(query(&mut link, "SELECT 1; SELECT x; SELECT 2").await, "TD(1)EX(1054)");
    link.outbox().prepare("SELECT ?, ? + 1").unwrap();
    assert_eq!(answer(&mut link).await.unwrap(), "S(2,2)");
    let (id, mut columns) = prepare(&mut link, "SELECT CONCAT(?, 'c'), ?").await;
    execute(&mut link, id, &[Some("ab"), None]);
    assert_eq!(rows(&mut link, &mut columns).await.0, "D(abc,NULL)");
    link.outbox().close(id);
    assert!(link.is_idle(), "what waits to be sent is answered by nothing");
    execute(&mut link, id, &[Some("ab"), None]);
    assert_eq!(rows(&mut link, &mut columns).await.0, "X(1243)");
    assert!(link.is_idle());
}

#[tokio::test]
async fn numbers_are_sent_and_come_as_their_types_have_them() {
    let mut link = link().await;
    query(
        &mut link,
        "CREATE TEMPORARY TABLE t (a BIGINT UNSIGNED, b DOUBLE, c TINYINT)",
    )
    .await;
    let (insert, _) = prepare(&mut link, "INSERT INTO t VALUES (?, ?, ?)").await;
    let encode = |kind: ColumnType, bytes: &mut BytesMut| {
        match kind {
            ColumnType::MYSQL_TYPE_LONGLONG => bytes.put_u64_le(u64::MAX),
            ColumnType::MYSQL_TYPE_DOUBLE => bytes.put_f64_le(1.5),
            _ => bytes.put_i8(-3),
        }
        Parameter::Of(kind, kind == ColumnType::MYSQL_TYPE_LONGLONG)
    };
    let kinds = [
        ColumnType::MYSQL_TYPE_LONGLONG,
        ColumnType::MYSQL_TYPE_DOUBLE,
        ColumnType::MYSQL_TYPE_TINY,
    ];
    link.outbox().execute(insert, kinds.into_iter(), encode).unwrap();
    assert_eq!(answer(&mut link).await.unwrap(), "O(1)");
    assert_eq!(
        query(&mut link, "SELECT * FROM t").await,
        format!("TD({},1.5,-3)E", u64::MAX)
    );
    let (select, mut columns) = prepare(&mut link, "SELECT a, c FROM t").await;
    link.outbox()
        .execute(select, std::iter::empty::<()>(), |(), _| Parameter::Null)
        .unwrap();
    let told = rows(&mut link, &mut columns).await.0;
    assert_eq!(told.matches('\u{fffd}').count(), 9, "{told}");
}

#[tokio::test]
async fn commands_sent_ahead_are_answered_in_their_order_whichever_of_them_fail() {
    let mut link = link().await;
    query(&mut link, "CREATE TEMPORARY TABLE t (a INT PRIMARY KEY)").await;
    let (insert, mut columns) = prepare(&mut link, "INSERT INTO t VALUES (?)").await;
    link.outbox().query("START TRANSACTION").unwrap();
    for value in ["1", "2", "1", "x", "3"] {
        execute(&mut link, insert, &[Some(value)]);
    }
    link.outbox().query("COMMIT").unwrap();
    link.outbox().prepare("SELECT x FROM t").unwrap();
    link.outbox().close(insert);
    link.outbox().ping();
    link.outbox().query("SELECT a FROM t ORDER BY a").unwrap();
    assert_eq!(link.expected(), 10);
    assert_eq!(answer(&mut link).await.unwrap(), "O(0)");
    assert!(link.is_in_transaction());
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(answer(&mut link).await.unwrap());
        assert!(!link.is_idle());
    }
    assert_eq!(told, ["O(1)", "O(1)", "X(1062)", "X(1366)", "O(1)"]);
    assert_eq!(answer(&mut link).await.unwrap(), "O(0)");
    assert!(!link.is_in_transaction() && !link.is_idle());
    assert_eq!(answer(&mut link).await.unwrap(), "X(1054)");
    assert_eq!(answer(&mut link).await.unwrap(), "O(0)");
    assert_eq!(answer(&mut link).await.unwrap(), "TD(1)D(2)D(3)E");
    assert!(link.is_idle());
    execute(&mut link, insert, &[Some("4")]);
    assert_eq!(rows(&mut link, &mut columns).await.0, "X(1243)");
}

#[tokio::test]
async fn columns_are_described_again_only_when_they_have_changed() {
    let mut link = link().await;
    query(&mut link, "CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (7)").await;
    let (select, mut columns) = prepare(&mut link, "SELECT * FROM t").await;
    let none: [Option<&str>; 0] = [];
    let is_mariadb = link.version() >= (10, 6, 0);
    for _ in 0..3 {
        execute(&mut link, select, &none);
        let (told, was_described) = rows(&mut link, &mut columns).await;
        assert_eq!(told, "D(\u{7}\0\0\0)");
        assert_eq!(was_described, !is_mariadb);
    }
    query(&mut link, "ALTER TABLE t MODIFY a VARCHAR(9), ADD b INT").await;
    execute(&mut link, select, &none);
    assert_eq!(rows(&mut link, &mut columns).await, ("D(7,NULL)".to_owned(), true));
    execute(&mut link, select, &none);
    assert_eq!(rows(&mut link, &mut columns).await.0, "D(7,NULL)");
}

#[tokio::test]
async fn it_knows_how_its_session_stands_and_makes_it_new() {
    let mut link = link().await;
    for (sql, is_open) in [("START TRANSACTION", true), ("SELECT 1", true), ("ROLLBACK", false)] {
        query(&mut link, sql).await;
        assert_eq!(link.is_in_transaction(), is_open, "{sql}");
        assert_eq!(link.is_idle(), !is_open, "{sql}");
    }
    query(&mut link, "SET @a = 1; START TRANSACTION").await;
    link.outbox().reset_connection();
    assert_eq!(answer(&mut link).await.unwrap(), "O(0)");
    assert!(link.is_idle());
    assert_eq!(query(&mut link, "SELECT @a").await, "TD(NULL)E");
}

#[tokio::test]
async fn both_sides_may_send_more_than_the_other_has_room_for() {
    // Each way far more than the buffers of two sockets: who only sent would never be answered, and never be read.
    const STATEMENTS: usize = 400;
    let mut link = link().await;
    let (id, mut columns) = prepare(&mut link, "SELECT ?").await;
    let long = "x".repeat(100_000);
    for _ in 0..STATEMENTS {
        execute(&mut link, id, &[Some(&long)]);
    }
    let all = async {
        for _ in 0..STATEMENTS {
            assert_eq!(rows(&mut link, &mut columns).await.0.len(), long.len() + 3);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all)
        .await
        .expect("neither waits for ever");
    assert!(link.is_idle());
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (mut link, mut other) = (link().await, link().await);
    // Whatever comes at once, this does not: the first waits are in vain.
    assert_eq!(query(&mut other, "SELECT GET_LOCK('held', 0)").await, "TD(1)E");
    let sql = "SELECT GET_LOCK('held', 60); SELECT seq FROM seq_1_to_20000";
    link.outbox().query(sql).unwrap();
    let mut dropped = 0_u32;
    while dropped < 10 {
        tokio::select! {
            biased;
            packet = link.next() => panic!("{:?} came by a lock that is held", packet.map(drop)),
            () = tokio::task::yield_now() => dropped += 1,
        }
    }
    assert_eq!(query(&mut other, "SELECT RELEASE_LOCK('held')").await, "TD(1)E");
    let mut rows = 0_u32;
    loop {
        // Polled once or twice and dropped, again and again.
        tokio::select! {
            biased;
            packet = link.next() => match packet.unwrap() {
                Packet::Row(_) => rows += 1,
                Packet::RowsEnd(end) if !end.is_followed() => break,
                _ => {}
            },
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(rows, 1 + 20_000);
    assert_eq!(query(&mut link, "SELECT 1").await, "TD(1)E");
}

#[tokio::test]
async fn rows_that_are_too_long_are_discarded_and_others_are_not() {
    let mut link = link().await;
    link.discard_rows_beyond(10_000);
    let sql = "SELECT REPEAT('x', seq) FROM (SELECT 1 AS seq UNION ALL SELECT 500000 UNION ALL SELECT 2) AS t";
    assert_eq!(query(&mut link, sql).await, "TD(x)D...(500004)D(xx)E");
    // What fails, or ends rows, is no row, however little is taken.
    link.discard_rows_beyond(0);
    assert_eq!(query(&mut link, "SELECT 1; SELECT x").await, "TD...(2)EX(1054)");
}

#[tokio::test]
async fn what_takes_several_packets_goes_and_comes_whole() {
    let mut link = link().await;
    // A session's limit is that of when it began.
    query(
        &mut link,
        "SET @before = @@GLOBAL.max_allowed_packet; SET GLOBAL max_allowed_packet = 268435456",
    )
    .await;
    let mut large = super::link().await;
    for length in [0xff_ff_ff - 20, 0xff_ff_ff, 0xff_ff_ff * 2 + 5] {
        let sql = format!("SELECT '{}', LENGTH('')", "x".repeat(length));
        large.outbox().query(&sql).unwrap();
        large.outbox().query("SELECT 2").unwrap();
        let told = answer(&mut large).await.unwrap();
        assert!(
            told.len() == length + "TD(,0)E".len() && told.ends_with("x,0)E"),
            "{length}"
        );
        assert_eq!(answer(&mut large).await.unwrap(), "TD(2)E");
        assert!(large.is_idle());
    }
    query(&mut link, "SET GLOBAL max_allowed_packet = @before").await;
}
