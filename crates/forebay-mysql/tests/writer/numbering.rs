//! Ids are told as they were assigned: under every way that the server numbers rows, and with others who number in between.

use forebay_write::{Write, Writer};
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use testbed::MariaDb;

use crate::{Database, assert_ok};

/// Writers on lanes of their own, and another program in between; every caller's id is then looked up.
async fn ids_are_true(settings: &[(&str, &str)]) {
    let mut builder = MariaDb::builder();
    for (name, value) in settings {
        builder = builder.setting(name, value);
    }
    let server = builder.start().unwrap();
    let schema = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(40) UNIQUE)";
    let database = Database::on(&server.url(), schema).await;
    let writer = Writer::builder()
        .max_in_flight(4)
        .max_items(64)
        .build(database.open().await);
    let others = (0..2).map(|other| {
        let database = &database;
        async move {
            let mut conn = database.plain().await;
            for row in 0..100 {
                let sql = format!("INSERT INTO t (who) VALUES ('other {other} {row}'), ('and {other} {row}')");
                conn.query_drop(sql).await.unwrap();
            }
        }
    });
    let callers = (0..1500).map(|caller| {
        let writer = &writer;
        async move {
            let who = format!("caller {caller}");
            let write = Write::new("INSERT INTO t (who) VALUES (?)", [who.as_str()]).ordered_by(caller % 16);
            let id = assert_ok(&writer.submit(write).await).last_insert_id.unwrap();
            format!("{id}|{who}")
        }
    });
    let (mut told, _) = tokio::join!(join_all(callers), join_all(others));
    let mut read = database.read("SELECT id, who FROM t WHERE who LIKE 'caller%'").await;
    told.sort();
    read.sort();
    assert_eq!(told, read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbered_by_one() {
    ids_are_true(&[("innodb_autoinc_lock_mode", "1")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbered_by_three_from_two_and_interleaved() {
    ids_are_true(&[
        ("innodb_autoinc_lock_mode", "2"),
        ("auto_increment_increment", "3"),
        ("auto_increment_offset", "2"),
    ])
    .await;
}
