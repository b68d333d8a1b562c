//! Sessions: what is asked of a server, and what was heard of it.
//!
//! Promises: a session asks the same each time, whatever is answered; it ends when all is answered or the link has ended. What is
//! heard is told message by message, in their order. A link that ends says so
//! from then on, or this panics. Knows no server.

use bytes::{BufMut, BytesMut};
use forebay_pg_link::{ConnectError, Connector, IsNull, Link, LinkError, Named};

use super::decode::told;

/// Those that can be had again, by their names: the server's words do not depend on words of chance.
pub(crate) const SESSIONS: [&str; 5] = ["simple", "prepared", "large", "copy", "hashed"];
/// One whose user proves his password by SCRAM: what was said to one nonce is no answer to another.
pub(crate) const PROVEN: &str = "proven";

/// What came of a session.
#[derive(Debug)]
pub(crate) struct Heard {
    /// A line for each message behind the handshake.
    pub(crate) lines: Vec<String>,
    pub(crate) end: End,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All was answered.
    Answered,
    /// There was no link.
    NotConnected(ConnectError),
    /// The link ended before.
    Link(LinkError),
}

/// Connects, and asks all there is to be asked in the session of this name.
pub(crate) async fn run(session: &str, connector: &Connector) -> Heard {
    let mut lines = Vec::new();
    let mut link = match connector.connect().await {
        Ok(link) => link,
        Err(error) => {
            let end = End::NotConnected(error);
            return Heard { lines, end };
        }
    };
    let asked = match session {
        "simple" => simple(&mut link, &mut lines).await,
        "prepared" => prepared(&mut link, &mut lines).await,
        "large" => large(&mut link, &mut lines).await,
        "copy" => copy(&mut link, &mut lines).await,
        "hashed" | PROVEN => query(&mut link, &mut lines, "SELECT current_user").await,
        other => panic!("there is no session {other}"),
    };
    assert_eq!(asked.is_err(), link.is_over(), "{asked:?}");
    assert!(asked.is_ok() || !link.is_idle(), "{asked:?}");
    let end = asked.map_or_else(End::Link, |()| End::Answered);
    link.close().await;
    Heard { lines, end }
}

/// All messages up to the last ReadyForQuery that is due.
async fn answers(link: &mut Link, lines: &mut Vec<String>) -> Result<(), LinkError> {
    while link.expected() > 0 {
        lines.push(told(&link.next().await?));
    }
    Ok(())
}

async fn query(link: &mut Link, lines: &mut Vec<String>, sql: &str) -> Result<(), LinkError> {
    link.outbox().query(sql).unwrap();
    answers(link, lines).await
}

async fn simple(link: &mut Link, lines: &mut Vec<String>) -> Result<(), LinkError> {
    for sql in [
        "SELECT 1 AS one, NULL AS nothing, 'text' AS \"some text\", ''",
        "",
        "SELECT n, n % 2 = 0 FROM generate_series(1, 3) AS n; SELECT WHERE false",
        "CREATE TEMP TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)",
        "SELECT 1; SELECT 1 / 0; SELECT 2",
        "INSERT INTO t VALUES (2)",
        "DO $$ BEGIN RAISE NOTICE 'a notice' USING HINT = 'a hint', DETAIL = 'a detail'; END $$",
        "SET TIME ZONE 'Europe/Berlin'",
        "BEGIN; SET TIME ZONE 'UTC'",
        "SELEC",
        "ROLLBACK",
        "LISTEN c; NOTIFY c, 'payload'",
    ] {
        query(link, lines, sql).await?;
    }
    Ok(())
}

fn bind(link: &mut Link, statement: &str, parameters: &[Option<&str>], result_format: i16, rows_max: i32) {
    let encode = |value: &Option<&str>, bytes: &mut BytesMut| match value {
        None => Ok(IsNull::Yes),
        Some(value) => {
            bytes.put_slice(value.as_bytes());
            Ok(IsNull::No)
        }
    };
    let outbox = link.outbox();
    outbox
        .bind("p", statement, [], parameters, encode, [result_format])
        .unwrap();
    outbox.describe(Named::Portal("p")).unwrap();
    outbox.execute("p", rows_max).unwrap();
}

async fn prepared(link: &mut Link, lines: &mut Vec<String>) -> Result<(), LinkError> {
    link.outbox()
        .parse(
            "s",
            "SELECT $1::int8, $2::text, $3::numeric, n FROM generate_series(1, 3) AS n",
            &[],
        )
        .unwrap();
    link.outbox().parse("t", "SELECT 1 / $1::int", &[23]).unwrap();
    link.outbox().describe(Named::Statement("s")).unwrap();
    link.outbox().sync();
    answers(link, lines).await?;
    for format in [0, 1] {
        bind(link, "s", &[Some("-7"), None, Some("1.50")], format, 0);
        link.outbox().close(Named::Portal("p")).unwrap();
        link.outbox().sync();
    }
    answers(link, lines).await?;
    // Two of three rows; then the third; then something that fails, and what is skipped for it.
    bind(link, "s", &[None, Some("t"), None], 0, 2);
    link.outbox().execute("p", 2).unwrap();
    link.outbox().close(Named::Portal("p")).unwrap();
    bind(link, "t", &[Some("0")], 0, 0);
    bind(link, "t", &[Some("1")], 0, 0);
    link.outbox().sync();
    answers(link, lines).await?;
    link.outbox().parse("", "CREATE TEMP TABLE t ()", &[]).unwrap();
    link.outbox().describe(Named::Statement("")).unwrap();
    link.outbox().close(Named::Statement("s")).unwrap();
    bind(link, "s", &[], 0, 0);
    link.outbox().sync();
    answers(link, lines).await
}

/// Rows as long as what is read at once and longer, of which some are discarded.
async fn large(link: &mut Link, lines: &mut Vec<String>) -> Result<(), LinkError> {
    query(
        link,
        lines,
        "SELECT n, repeat('x', n) FROM (VALUES (1), (9000), (2)) AS t (n)",
    )
    .await?;
    link.discard_rows_beyond(100);
    query(
        link,
        lines,
        "SELECT repeat('y', n) FROM (VALUES (89), (90), (2000), (3)) AS t (n)",
    )
    .await?;
    link.discard_rows_beyond(usize::MAX);
    query(link, lines, "SELECT repeat('z', 300), NULL, NULL").await
}

async fn copy(link: &mut Link, lines: &mut Vec<String>) -> Result<(), LinkError> {
    query(link, lines, "CREATE TEMP TABLE t (a int, b text)").await?;
    link.outbox().query("COPY t FROM STDIN").unwrap();
    link.outbox().copy_data(b"1\tone\n2\t\\N\n").unwrap();
    link.outbox().copy_data(b"3\tthree\n").unwrap();
    link.outbox().copy_done();
    answers(link, lines).await?;
    link.outbox().query("COPY t FROM STDIN").unwrap();
    link.outbox().copy_fail("changed my mind").unwrap();
    answers(link, lines).await?;
    query(link, lines, "COPY t TO STDOUT").await?;
    query(link, lines, "COPY t TO STDOUT (FORMAT binary)").await?;
    query(link, lines, "COPY (SELECT 1 / (3 - a), a FROM t ORDER BY a) TO STDOUT").await
}
