//! Rust's types as parameters, as keys and as what rows hold, on every database: what was given comes back, to the precision that the
//! database keeps, and what a database has not is an error.
//!
//! Values are drawn, by a seed that is always the same; edges are named.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod kinds;
mod site;

use std::fmt::Debug;
use std::hash::Hash;
use std::time::SystemTime;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Utc};
use forebay::write::{IntoValue, ReadError, Value, WriteError};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use serde::Deserialize;
use uuid::Uuid;

use kinds::*;
use site::{Column, Site};

const INTEGER: Column = Column::new("INTEGER", "BIGINT", "BIGINT");
const UNSIGNED: Column = Column::new("INTEGER", "BIGINT", "BIGINT UNSIGNED");
const BOOLEAN: Column = Column::new("INTEGER", "BOOLEAN", "BOOLEAN");
const REAL: Column = Column::new("REAL", "DOUBLE PRECISION", "DOUBLE");
const TEXT: Column = Column::new("TEXT", "TEXT", "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin");
const BYTES: Column = Column::new("BLOB", "BYTEA", "BLOB");
const MOMENT: Column = Column::new("TEXT", "TIMESTAMPTZ", "DATETIME(6)");
const DATE: Column = Column::new("TEXT", "DATE", "DATE");
const TIME: Column = Column::new("TEXT", "TIME", "TIME(6)");
const DATE_AND_TIME: Column = Column::new("TEXT", "TIMESTAMP", "DATETIME(6)");
const ID: Column = Column::new("TEXT", "UUID", "UUID");
const JSON: Column = Column::new("TEXT", "JSONB", "JSON");

/// Writes them and takes them again.
async fn comes_back<T>(site: &Site, column: Column, values: Vec<T>, kept: impl Fn(&T) -> T) -> String
where
    T: IntoValue + TryFrom<Value, Error = ReadError> + Clone + PartialEq + Debug,
{
    let kind = std::any::type_name::<T>();
    let table = site.table(column).await;
    let [insert, select] = site.texts(&table);
    let writes = values
        .iter()
        .enumerate()
        .map(|(id, value)| site.writer.execute(insert.clone(), (id, value)));
    for (done, value) in futures_util::future::join_all(writes).await.into_iter().zip(&values) {
        done.unwrap_or_else(|error| panic!("{kind} {value:?} on {site:?}: {error}"));
    }
    for (id, value) in values.iter().enumerate() {
        let mut read = site.query(select.clone(), id).await.unwrap();
        let stored = read.rows.remove(0).remove(0);
        let told = format!("{kind} {value:?} on {site:?}, as {stored:?}");
        assert_eq!(T::try_from(stored), Ok(kept(value)), "{told}");
    }
    table
}

/// The same, and each is the key of its row.
async fn comes_back_and_is_key<T>(site: &Site, column: Column, values: Vec<T>, kept: impl Fn(&T) -> T)
where
    T: IntoValue + TryFrom<Value, Error = ReadError> + Clone + Eq + Hash + Debug + Send + Sync + 'static,
{
    let values: Vec<T> = distinct(values.iter().map(kept));
    let table = comes_back(site, column, values.clone(), T::clone).await;
    let ids = site.ids::<T>(&table, values.clone()).await;
    for (id, (told, value)) in ids.into_iter().zip(values).enumerate() {
        assert_eq!(told, Ok(Some(id)), "{value:?} on {site:?}");
    }
}

async fn all_kinds(site: Site) {
    let site = &site;
    comes_back_and_is_key(site, INTEGER, drawn::<i64>([i64::MIN, -1, 0, i64::MAX]), i64::clone).await;
    comes_back_and_is_key(site, INTEGER, drawn::<u32>([0, u32::MAX]), u32::clone).await;
    let has_unsigned = site.has_unsigned();
    let most = if has_unsigned { u64::MAX } else { i64::MAX as u64 };
    let below = |value: &u64| *value & most;
    comes_back_and_is_key(site, UNSIGNED, drawn([0, 1 << 53, i64::MAX as u64, u64::MAX]), below).await;
    let below = |value: &usize| *value & usize::try_from(most).unwrap();
    comes_back_and_is_key(site, UNSIGNED, drawn([0, usize::MAX]), below).await;
    comes_back_and_is_key(site, BOOLEAN, vec![false, true], bool::clone).await;
    comes_back(site, REAL, drawn([0.0, f64::MIN_POSITIVE, f64::MAX, 0.1]), f64::clone).await;
    comes_back(site, INTEGER, drawn([None, Some(5_i64)]), Option::clone).await;

    comes_back_and_is_key(site, TEXT, texts(), String::clone).await;
    comes_back_and_is_key(
        site,
        TEXT,
        texts().into_iter().map(Into::into).collect(),
        std::sync::Arc::<str>::clone,
    )
    .await;
    comes_back_and_is_key(site, TEXT, characters(), char::clone).await;
    comes_back_and_is_key(
        site,
        BYTES,
        drawn([Vec::new(), vec![0], vec![0xff; 300]]),
        Vec::<u8>::clone,
    )
    .await;
    comes_back_and_is_key(site, BYTES, drawn([[0; 16], [0xff; 16]]), <[u8; 16]>::clone).await;

    comes_back_and_is_key(site, MOMENT, moments(), |at| site.kept(*at)).await;
    let kept = |at: &Timestamp| Timestamp::try_from(site.kept((*at).into())).unwrap();
    comes_back_and_is_key(site, MOMENT, timestamps(), kept).await;
    let kept = |at: &chrono::DateTime<Utc>| site.kept((*at).into()).into();
    comes_back_and_is_key(site, MOMENT, moments().into_iter().map(Into::into).collect(), kept).await;
    comes_back_and_is_key(site, DATE, dates(), Date::clone).await;
    comes_back_and_is_key(
        site,
        TIME,
        dates_and_times().iter().map(|at| at.time()).collect(),
        Time::clone,
    )
    .await;
    comes_back_and_is_key(site, DATE_AND_TIME, dates_and_times(), DateTime::clone).await;
    let naive: Vec<NaiveDateTime> = dates_and_times().into_iter().map(naive).collect();
    comes_back_and_is_key(
        site,
        DATE,
        naive.iter().map(NaiveDateTime::date).collect(),
        NaiveDate::clone,
    )
    .await;
    comes_back_and_is_key(
        site,
        TIME,
        naive.iter().map(NaiveDateTime::time).collect(),
        NaiveTime::clone,
    )
    .await;
    comes_back_and_is_key(site, DATE_AND_TIME, naive, NaiveDateTime::clone).await;
    comes_back_and_is_key(site, ID, ids(), Uuid::clone).await;
    comes_back(site, JSON, documents(), serde_json::Value::clone).await;

    what_a_database_has_not_is_an_error(site).await;
    rows_are_read_by_serde(site).await;
}

async fn what_a_database_has_not_is_an_error(site: &Site) {
    let table = site.table(UNSIGNED).await;
    let [insert, select] = site.texts(&table);
    for (id, number) in [i64::MAX as u64 + 1, u64::MAX].into_iter().enumerate() {
        let done = site.writer.execute(insert.clone(), (id, number)).await;
        let read = site.query(select.clone(), id).await.unwrap().first::<u64>().unwrap();
        if site.has_unsigned() {
            assert!(done.is_ok(), "{done:?}");
            assert_eq!(read, Some(number));
        } else {
            let error = done.unwrap_err();
            assert!(
                matches!(&error, WriteError::Statement(error) if error.message.contains(&number.to_string())),
                "{error}"
            );
            assert_eq!(read, None);
        }
    }
    let table = site.table(MOMENT).await;
    let [insert, _] = site.texts(&table);
    for (seconds, year) in [(300_000_000_000_i64, 11_476), (-300_000_000_000, -7_536), (1 << 60, 0)] {
        let moment = moment(seconds, 0);
        let done = site.writer.execute(insert.clone(), (year, moment)).await;
        // PostgreSQL has the first of them.
        assert!(
            done.is_err() || (site.has_far_years() && year == 11_476),
            "{site:?} {year} {done:?}"
        );
    }
}

/// A struct's fields, by name, a moment among them.
async fn rows_are_read_by_serde(site: &Site) {
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    struct Row {
        id: usize,
        x: SystemTime,
    }
    let table = site.table(MOMENT).await;
    let [insert, _] = site.texts(&table);
    let at = site.kept(moment(1_700_000_000, 123_456_789));
    site.writer.execute(insert.clone(), (7_usize, at)).await.unwrap();
    let row = Row { id: 7, x: at };
    let all = site.query(format!("SELECT id, x FROM {table}"), ()).await.unwrap();
    assert_eq!(all.clone().one::<Row>(), Ok(row.clone()));
    assert_eq!(all.clone().first::<(usize, SystemTime)>(), Ok(Some((7, at))));
    assert_eq!(all.all::<Row>(), Ok(vec![row.clone()]));
    assert_eq!(site.rows::<Row>(&table, 7).await, Ok(Some(row)));
    // Their own reading of the database's text.
    let theirs = site.loaded::<Timestamp>(&table, 7).await;
    let chronos = site.loaded::<chrono::DateTime<Utc>>(&table, 7).await;
    if site.tells_offsets() {
        assert_eq!(theirs, Ok(Some(Timestamp::try_from(at).unwrap())));
        assert_eq!(chronos, Ok(Some(at.into())));
    } else {
        assert!(theirs.is_err() && chronos.is_err(), "{theirs:?} {chronos:?}");
        assert!(site.loaded::<DateTime>(&table, 7).await.unwrap().is_some());
    }
    assert_eq!(site.loaded::<SystemTime>(&table, 7).await, Ok(Some(at)));

    let before = moment(-5, 5);
    site.writer.execute(insert, (8_usize, before)).await.unwrap();
    let error = site.rows::<Row>(&table, 8).await.unwrap_err();
    assert!(error.contains("before 1970"), "{error}");

    let table = site.table(BYTES).await;
    let [insert, _] = site.texts(&table);
    site.writer.execute(insert, (1_usize, [7_u8; 16])).await.unwrap();
    assert_eq!(site.loaded::<[u8; 16]>(&table, 1).await, Ok(Some([7; 16])));
    assert_eq!(site.loaded::<Vec<u8>>(&table, 1).await, Ok(Some(vec![7; 16])));

    let table = site.table(ID).await;
    let [insert, _] = site.texts(&table);
    let id = ids()[1];
    site.writer.execute(insert, (1_usize, id)).await.unwrap();
    assert_eq!(site.loaded::<Uuid>(&table, 1).await, Ok(Some(id)));

    let none = site
        .query(format!("SELECT x FROM {table} WHERE id = 99"), ())
        .await
        .unwrap();
    assert_eq!(none.clone().first::<Uuid>(), Ok(None));
    let error = none.one::<Uuid>().unwrap_err();
    assert!(
        error.to_string().contains("one row is asked for, and there are 0"),
        "{error}"
    );
}

#[tokio::test]
async fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    all_kinds(Site::sqlite(&folder.path().join("app.db"))).await;
}

#[tokio::test]
async fn on_postgresql() {
    let server = tokio::task::spawn_blocking(|| testbed::Postgres::for_tests().unwrap())
        .await
        .unwrap();
    all_kinds(Site::postgres(&server.url()).await).await;
}

#[tokio::test]
async fn on_mariadb() {
    let server = tokio::task::spawn_blocking(|| testbed::MariaDb::for_tests().unwrap())
        .await
        .unwrap();
    all_kinds(Site::mariadb(&server.url()).await).await;
}
