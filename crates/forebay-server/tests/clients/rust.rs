//! tokio-postgres: binary formats throughout, portals, pipelining.

use std::{
    error::Error,
    time::{Duration, Instant, SystemTime},
};

use futures_util::future::join_all;
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rust_decimal::Decimal;
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::{program::checks, server::Server};

const FOR_EVER: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

pub(crate) fn check(server: &Server) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let url = server.url();
    let url = url.as_str();
    checks([
        ("connect", &|| runtime.block_on(connect(url))),
        ("types", &|| runtime.block_on(types(url))),
        ("returning", &|| runtime.block_on(returning(url))),
        ("counts", &|| runtime.block_on(counts(url))),
        ("errors", &|| runtime.block_on(errors(url))),
        ("transactions", &|| runtime.block_on(transactions(url))),
        ("prepared", &|| runtime.block_on(prepared(url))),
        ("portions", &|| runtime.block_on(portions(url))),
        ("concurrency", &|| runtime.block_on(concurrency(url))),
        ("cancel", &|| runtime.block_on(cancel(url))),
        ("pipeline", &|| runtime.block_on(pipeline(url))),
    ]);
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The SQLSTATE of what must fail.
#[track_caller]
fn state<T>(outcome: Result<T, tokio_postgres::Error>) -> String {
    let error = outcome.err().expect("an error was expected");
    error
        .code()
        .unwrap_or_else(|| panic!("not an error of the server: {error}"))
        .code()
        .to_owned()
}

/// A value as it is on the wire, of any type.
#[derive(Debug, Clone, PartialEq)]
struct Wire(Vec<u8>);

impl ToSql for Wire {
    fn to_sql(&self, _: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Wire {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

async fn connect(url: &str) {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let parameters = [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("integer_datetimes", "on"),
    ];
    for (name, value) in parameters {
        assert_eq!(connection.parameter(name), Some(value), "{name}");
    }
    assert!(connection.parameter("server_version").is_some());
    tokio::spawn(async move {
        while std::future::poll_fn(|context| connection.poll_message(context))
            .await
            .is_some()
        {}
    });
    assert_eq!(
        client
            .query_one("SELECT 1::bigint", &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
    client.check_connection().await.unwrap();
}

async fn types(url: &str) {
    let client = connected(url).await;
    let columns = "id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, price numeric, at timestamptz DEFAULT now(), \
                   ok boolean, data bytea, doc json, uid uuid, born date, ratio double precision, small bigint";
    client
        .batch_execute(&format!("CREATE TABLE kinds ({columns})"))
        .await
        .unwrap();
    let insert = "INSERT INTO kinds (name, price, at, ok, data, doc, uid, born, ratio, small) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let insert = client.prepare(insert).await.unwrap();
    let told: Vec<&Type> = insert.params().iter().collect();
    let expected = [
        &Type::TEXT,
        &Type::NUMERIC,
        &Type::TIMESTAMPTZ,
        &Type::BOOL,
        &Type::BYTEA,
        &Type::JSON,
        &Type::UUID,
        &Type::DATE,
        &Type::FLOAT8,
        &Type::INT8,
    ];
    assert_eq!(told, expected, "parameter types");

    let name = "naïve 🐘 'quoted' \\";
    let price: Decimal = "123456.789012345".parse().unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_251_199_123_456);
    let data: Vec<u8> = (0..=255).collect();
    let doc = Wire(r#"{"a": [1, null, "é"]}"#.into());
    let uid = Wire(0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11_u128.to_be_bytes().to_vec());
    // A date is a number of days from the year 2000.
    let born = Wire((-10957_i32).to_be_bytes().to_vec());
    client
        .execute(
            &insert,
            &[&name, &price, &at, &true, &data, &doc, &uid, &born, &0.1_f64, &-7_i64],
        )
        .await
        .unwrap();
    let none: Option<Wire> = None;
    client
        .execute(
            &insert,
            &[&"nulls", &none, &none, &none, &none, &none, &none, &none, &none, &none],
        )
        .await
        .unwrap();

    let select = "SELECT name, price, at, ok, data, doc, uid, born, ratio, small, id FROM kinds ORDER BY id";
    let rows = client.query(select, &[]).await.unwrap();
    let told: Vec<&Type> = rows[0]
        .columns()
        .iter()
        .map(tokio_postgres::Column::type_)
        .take(10)
        .collect();
    assert_eq!(told, expected, "column types");
    assert_eq!(rows[0].get::<_, &str>(0), name);
    assert_eq!(rows[0].get::<_, Decimal>(1), price);
    assert_eq!(rows[0].get::<_, SystemTime>(2), at);
    assert!(rows[0].get::<_, bool>(3));
    assert_eq!(rows[0].get::<_, &[u8]>(4), data);
    assert_eq!(rows[0].get::<_, Wire>(5), doc);
    assert_eq!(rows[0].get::<_, Wire>(6), uid);
    assert_eq!(rows[0].get::<_, Wire>(7), born);
    assert_eq!(rows[0].get::<_, f64>(8).to_bits(), 0.1_f64.to_bits());
    assert_eq!(rows[0].get::<_, i64>(9), -7);
    assert_eq!(rows[0].get::<_, i64>(10), 1);
    for column in 1..10 {
        assert_eq!(rows[1].get::<_, Option<Wire>>(column), None, "column {column}");
    }

    let text = client
        .simple_query("SELECT price, at, ok, data, doc, uid, born, ratio, small FROM kinds ORDER BY id")
        .await;
    let text = text.unwrap();
    let row = |at: usize| match text
        .iter()
        .filter(|message| matches!(message, SimpleQueryMessage::Row(_)))
        .nth(at)
    {
        Some(SimpleQueryMessage::Row(row)) => (0..9).map(|column| row.get(column)).collect::<Vec<_>>(),
        _ => panic!("no row {at}"),
    };
    let bytes = data.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let expected = [
        "123456.789012345",
        "2024-02-29 23:59:59.123456+00",
        "t",
        &format!("\\x{bytes}"),
        r#"{"a": [1, null, "é"]}"#,
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "1970-01-01",
        "0.1",
        "-7",
    ];
    assert_eq!(row(0), expected.map(Some));
    assert_eq!(row(1), [None; 9]);
}

async fn returning(url: &str) {
    let client = connected(url).await;
    client
        .batch_execute("CREATE TABLE given (id bigserial PRIMARY KEY, name text NOT NULL)")
        .await
        .unwrap();
    let insert = "INSERT INTO given (name) VALUES ($1), ($2) RETURNING id, name";
    let rows = client.query(insert, &[&"a", &"b"]).await.unwrap();
    let rows: Vec<(i64, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, "a"), (2, "b")]);
    let update = "UPDATE given SET name = name || '!' WHERE id = $1 RETURNING name";
    assert_eq!(
        client.query_one(update, &[&2_i64]).await.unwrap().get::<_, &str>(0),
        "b!"
    );
    let delete = client
        .query("DELETE FROM given WHERE id = $1 RETURNING *", &[&1_i64])
        .await
        .unwrap();
    assert_eq!((delete.len(), delete[0].get::<_, &str>(1)), (1, "a"));
}

async fn counts(url: &str) {
    let client = connected(url).await;
    client
        .batch_execute("CREATE TABLE counted (id bigint PRIMARY KEY, even boolean)")
        .await
        .unwrap();
    let statements = [
        ("INSERT INTO counted VALUES (1, false), (2, true), (3, false)", 3),
        ("UPDATE counted SET even = NOT even WHERE id > 1", 2),
        ("UPDATE counted SET even = true WHERE id = 99", 0),
        ("SELECT * FROM counted", 3),
        ("DELETE FROM counted", 3),
    ];
    for (statement, count) in statements {
        assert_eq!(client.execute(statement, &[]).await.unwrap(), count, "{statement}");
    }
}

async fn errors(url: &str) {
    let client = connected(url).await;
    let tables = "CREATE TABLE parents (id bigint PRIMARY KEY);
        CREATE TABLE children (id bigint PRIMARY KEY, name text NOT NULL UNIQUE,
            parent bigint REFERENCES parents (id), age bigint CHECK (age >= 0));
        INSERT INTO children VALUES (1, 'one', NULL, 1);";
    client.batch_execute(tables).await.unwrap();
    let insert = client
        .prepare("INSERT INTO children VALUES (2, $1, $2, $3)")
        .await
        .unwrap();
    assert_eq!(
        state(client.execute(&insert, &[&"one", &None::<i64>, &1_i64]).await),
        "23505"
    );
    assert_eq!(
        state(client.execute(&insert, &[&None::<&str>, &None::<i64>, &1_i64]).await),
        "23502"
    );
    assert_eq!(
        state(client.execute(&insert, &[&"two", &99_i64, &1_i64]).await),
        "23503"
    );
    assert_eq!(
        state(client.execute(&insert, &[&"two", &None::<i64>, &-1_i64]).await),
        "23514"
    );
    assert_eq!(state(client.query("SELECT * FROM missing", &[]).await), "42P01");
    assert_eq!(state(client.query("SELECT missing FROM children", &[]).await), "42703");
    assert_eq!(state(client.query("SELEC 1", &[]).await), "42601");
    assert_eq!(state(client.simple_query("SELECT 'x'::int").await), "22P02");
    let error = client.query("SELECT 1 FROM FROM x", &[]).await.unwrap_err();
    assert!(
        error.as_db_error().is_some_and(|error| error.position().is_some()),
        "where is the syntax error? {error:?}"
    );
    assert_eq!(
        client
            .query_one("SELECT count(*) FROM children", &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
}

async fn ids(client: &Client, sql: &str) -> Vec<i64> {
    client
        .query(sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect()
}

async fn transactions(url: &str) {
    let mut client = connected(url).await;
    let other = connected(url).await;
    client
        .batch_execute("CREATE TABLE ledger (id bigint PRIMARY KEY)")
        .await
        .unwrap();
    let all = "SELECT id FROM ledger ORDER BY id";

    let outer = client.transaction().await.unwrap();
    outer.execute("INSERT INTO ledger VALUES (1)", &[]).await.unwrap();
    assert_eq!(ids(&other, all).await, [] as [i64; 0]);
    outer.rollback().await.unwrap();
    assert_eq!(ids(&client, all).await, [] as [i64; 0]);

    let mut outer = client.transaction().await.unwrap();
    outer.execute("INSERT INTO ledger VALUES (2)", &[]).await.unwrap();
    let released = outer.savepoint("inner_one").await.unwrap();
    released.execute("INSERT INTO ledger VALUES (3)", &[]).await.unwrap();
    released.commit().await.unwrap();
    let undone = outer.savepoint("inner_two").await.unwrap();
    undone.execute("INSERT INTO ledger VALUES (4)", &[]).await.unwrap();
    assert_eq!(
        state(undone.execute("INSERT INTO ledger VALUES (2)", &[]).await),
        "23505"
    );
    assert_eq!(state(undone.query("SELECT 1::bigint", &[]).await), "25P02");
    undone.rollback().await.unwrap();
    outer.commit().await.unwrap();
    assert_eq!(ids(&other, all).await, [2, 3]);

    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(
        state(client.execute("INSERT INTO ledger VALUES (2)", &[]).await),
        "23505"
    );
    assert_eq!(state(client.query("SELECT 1::bigint", &[]).await), "25P02");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(ids(&client, all).await, [2, 3]);
}

async fn prepared(url: &str) {
    let client = connected(url).await;
    client
        .batch_execute("CREATE TABLE prepared (id bigint PRIMARY KEY, name text)")
        .await
        .unwrap();
    let insert = client.prepare("INSERT INTO prepared VALUES ($1, $2)").await.unwrap();
    // Numbered against the order in which they stand.
    let select = client
        .prepare("SELECT name FROM prepared WHERE name <> $2 AND id = $1")
        .await
        .unwrap();
    for id in 0..20_i64 {
        assert_eq!(client.execute(&insert, &[&id, &format!("name {id}")]).await.unwrap(), 1);
    }
    for id in [3_i64, 19, 3] {
        let row = client.query_one(&select, &[&id, &"other"]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), format!("name {id}"));
    }
    assert_eq!(state(client.execute(&insert, &[&3_i64, &"again"]).await), "23505");
    assert_eq!(
        client
            .query_one(&select, &[&4_i64, &""])
            .await
            .unwrap()
            .get::<_, &str>(0),
        "name 4"
    );
}

async fn portions(url: &str) {
    let mut client = connected(url).await;
    client
        .batch_execute("CREATE TABLE portions (id bigint PRIMARY KEY)")
        .await
        .unwrap();
    let rows: Vec<String> = (0..100).map(|id| format!("({id})")).collect();
    client
        .batch_execute(&format!("INSERT INTO portions VALUES {}", rows.join(", ")))
        .await
        .unwrap();
    let transaction = client.transaction().await.unwrap();
    let select = "SELECT id FROM portions WHERE id >= $1 ORDER BY id";
    let first = transaction.bind(select, &[&10_i64]).await.unwrap();
    let second = transaction.bind(select, &[&98_i64]).await.unwrap();
    let mut sizes = Vec::new();
    let mut seen: Vec<i64> = Vec::new();
    loop {
        let rows = transaction.query_portal(&first, 40).await.unwrap();
        if rows.is_empty() {
            break;
        }
        sizes.push(rows.len());
        seen.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        if sizes.len() == 1 {
            // Two portals are open at once, each at its own place.
            let rows = transaction.query_portal(&second, 1).await.unwrap();
            assert_eq!(rows[0].get::<_, i64>(0), 98);
        }
    }
    assert_eq!(sizes, [40, 40, 10]);
    assert_eq!(seen, (10..100).collect::<Vec<i64>>());
    assert_eq!(
        transaction.query_portal(&second, 0).await.unwrap()[0].get::<_, i64>(0),
        99
    );
    transaction.commit().await.unwrap();
}

async fn concurrency(url: &str) {
    let client = connected(url).await;
    let table = "CREATE TABLE crowd (id bigserial PRIMARY KEY, worker bigint NOT NULL, turn bigint NOT NULL)";
    client.batch_execute(table).await.unwrap();
    let workers = (0..20_i64).map(|worker| async move {
        let own = connected(url).await;
        let insert = own
            .prepare("INSERT INTO crowd (worker, turn) VALUES ($1, $2) RETURNING worker, turn")
            .await
            .unwrap();
        for turn in 0..25_i64 {
            let row = own.query_one(&insert, &[&worker, &turn]).await.unwrap();
            assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (worker, turn));
        }
    });
    join_all(workers).await;
    let row = client
        .query_one("SELECT count(*), count(DISTINCT id) FROM crowd", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (500, 500));
    let by_worker = client
        .query(
            "SELECT worker, count(*) FROM crowd GROUP BY worker ORDER BY worker",
            &[],
        )
        .await
        .unwrap();
    let by_worker: Vec<(i64, i64)> = by_worker.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(by_worker, (0..20).map(|worker| (worker, 25)).collect::<Vec<_>>());
}

async fn cancel(url: &str) {
    let client = connected(url).await;
    let token = client.cancel_token();
    let begun = Instant::now();
    let cancelled = async {
        // A cancel that comes before the statement does nothing, so it is sent until the statement has ended.
        loop {
            token.cancel_query(NoTls).await.unwrap();
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        outcome = client.query(FOR_EVER, &[]) => assert_eq!(state(outcome), "57014"),
        () = cancelled => unreachable!("the loop has no end"),
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "the cancel took too long");
    // A late cancel may still be on its way to the next statement.
    sleep(Duration::from_millis(100)).await;
    assert_eq!(
        client
            .query_one("SELECT 1::bigint", &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
}

async fn pipeline(url: &str) {
    let client = connected(url).await;
    client
        .batch_execute("CREATE TABLE piped (id bigint PRIMARY KEY)")
        .await
        .unwrap();
    let insert = client
        .prepare("INSERT INTO piped VALUES ($1) RETURNING id")
        .await
        .unwrap();
    // Polled together they are sent together; each ends with a sync, so each stands alone.
    let numbers: Vec<i64> = (0..50).chain([7]).chain(50..100).collect();
    let outcomes = join_all(numbers.iter().map(|number| {
        let (client, insert) = (&client, &insert);
        async move {
            client
                .query_one(insert, &[number])
                .await
                .map(|row| row.get::<_, i64>(0))
        }
    }))
    .await;
    for (at, (outcome, number)) in outcomes.into_iter().zip(numbers).enumerate() {
        if at == 50 {
            assert_eq!(state(outcome), "23505");
        } else {
            assert_eq!(outcome.unwrap(), number);
        }
    }
    assert_eq!(
        client
            .query_one("SELECT count(*) FROM piped", &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        100
    );
    // One string is one transaction.
    let together = "INSERT INTO piped VALUES (200); INSERT INTO piped VALUES (1); INSERT INTO piped VALUES (201)";
    assert_eq!(state(client.batch_execute(together).await), "23505");
    assert_eq!(
        ids(&client, "SELECT id FROM piped WHERE id >= 200").await,
        [] as [i64; 0]
    );
}
