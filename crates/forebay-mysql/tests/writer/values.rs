//! Values go in as they are and come out as they are, or as the text that the server would write.

use forebay_write::{Value, Writer};

use crate::{Database, text};

#[tokio::test]
async fn parameters_arrive_as_they_were_given() {
    let database = Database::new("CREATE TABLE t (i BIGINT, r DOUBLE, s TEXT, b BLOB, n INT)").await;
    let mysql = database.open().await;
    let given = vec![
        Value::Integer(i64::MIN),
        Value::Real(-0.1),
        text("Grüße 🌊 \\ ' \" \0"),
        Value::Blob((0..=255).collect()),
        Value::Null,
    ];
    let writer = Writer::new(mysql.clone());
    writer
        .execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", given.clone())
        .await
        .unwrap();
    assert_eq!(mysql.query("SELECT * FROM t", ()).await.unwrap().rows, [given]);
}

#[tokio::test]
async fn every_type_comes_out() {
    let database = Database::new("CREATE TABLE t (e ENUM('a', 'b'), s SET('x', 'y'), j JSON)").await;
    let mysql = database.open().await;
    database.run("INSERT INTO t VALUES ('b', 'x,y', '{\"a\": 1}')").await;
    let stored = mysql.query("SELECT e, s, j FROM t", ()).await.unwrap();
    assert_eq!(stored.rows, [[text("b"), text("x,y"), text("{\"a\": 1}")]]);
    for (sql, expected) in [
        ("CAST(18446744073709551615 AS UNSIGNED)", Value::Unsigned(u64::MAX)),
        ("CAST(7 AS UNSIGNED)", Value::Integer(7)),
        ("CAST('12.340' AS DECIMAL(10,3))", text("12.340")),
        ("CAST(0.5 AS DOUBLE)", Value::Real(0.5)),
        ("DATE '2024-02-29'", text("2024-02-29")),
        ("TIMESTAMP '2024-02-29 01:02:03'", text("2024-02-29 01:02:03")),
        (
            "TIMESTAMP '2024-02-29 01:02:03.040506'",
            text("2024-02-29 01:02:03.040506"),
        ),
        ("TIME '-100:02:03'", text("-100:02:03")),
        ("x'00ff'", Value::Blob(vec![0, 255])),
        ("CAST('abc' AS BINARY)", Value::Blob(b"abc".to_vec())),
        ("b'101'", Value::Blob(vec![5])),
        ("TRUE", Value::Integer(1)),
        ("NULL", Value::Null),
        (
            "CAST('123e4567-e89b-12d3-a456-426614174000' AS UUID)",
            text("123e4567-e89b-12d3-a456-426614174000"),
        ),
        ("CAST('::1' AS INET6)", text("::1")),
    ] {
        let outcome = mysql.query(format!("SELECT {sql}"), ()).await.unwrap();
        assert_eq!(outcome.rows, [[expected]], "{sql}");
    }
}

#[tokio::test]
async fn timestamps_are_utc() {
    let database = Database::new("CREATE TABLE t (at TIMESTAMP(3) NULL, y YEAR, b BIT(10), f FLOAT)").await;
    let mysql = database.open().await;
    Writer::new(mysql.clone())
        .execute(
            "INSERT INTO t VALUES (FROM_UNIXTIME(?), 2024, b'1100000001', 1.5)",
            [86_400],
        )
        .await
        .unwrap();
    let outcome = mysql.query("SELECT * FROM t", ()).await.unwrap();
    assert_eq!(
        outcome.rows,
        [[
            text("1970-01-02 00:00:00.000"),
            Value::Integer(2024),
            Value::Blob(vec![3, 1]),
            Value::Real(1.5)
        ]]
    );
}

#[tokio::test]
async fn what_is_larger_than_a_packet_is_told_before_it_is_sent() {
    let database = Database::new("CREATE TABLE t (b LONGBLOB)").await;
    let mysql = database.open().await;
    let limit: usize = database.read("SELECT @@max_allowed_packet").await[0].parse().unwrap();
    let writer = Writer::builder().max_weight(256 << 20).build(mysql);
    let too_large = writer
        .execute("INSERT INTO t VALUES (?)", [Value::Blob(vec![7; limit])])
        .await;
    assert_eq!(crate::kind(&too_large), forebay_write::StatementErrorKind::TooLarge);
    let fits = Value::Blob(vec![7; limit - 1024]);
    writer.execute("INSERT INTO t VALUES (?)", [fits]).await.unwrap();
    assert_eq!(
        database.read("SELECT LENGTH(b) FROM t").await,
        [(limit - 1024).to_string()]
    );
}
