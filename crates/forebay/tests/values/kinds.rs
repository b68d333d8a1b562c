//! Values to try: edges, and many that are drawn.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::{Duration, SystemTime};

use chrono::{NaiveDate, NaiveDateTime};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use uuid::Uuid;

const DRAWN: usize = 40;
/// The years 1 to 9999, which all databases have.
const SECONDS: std::ops::Range<i64> = -62_135_596_800..253_402_300_800;

fn draw<S: Strategy>(strategy: &S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..DRAWN)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// These, and some of all.
pub(crate) fn drawn<T: Arbitrary>(edges: impl IntoIterator<Item = T>) -> Vec<T> {
    edges.into_iter().chain(draw(&any::<T>())).collect()
}

/// Each once.
pub(crate) fn distinct<T: Clone + Eq + Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

/// PostgreSQL has no NUL.
pub(crate) fn texts() -> Vec<String> {
    let edges = ["", " ", "a", "A", "a ", "'", "é", "e\u{301}", "😀", "5", "null"].map(str::to_owned);
    let drawn = draw(&any::<String>()).into_iter().map(|text| text.replace('\0', ""));
    edges.into_iter().chain(drawn).collect()
}

pub(crate) fn characters() -> Vec<char> {
    ['a', 'A', ' ', 'é', '😀', char::MAX]
        .into_iter()
        .chain(draw(&any::<char>()))
        .filter(|character| *character != '\0')
        .collect()
}

pub(crate) fn moment(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = if seconds < 0 {
        SystemTime::UNIX_EPOCH - whole
    } else {
        SystemTime::UNIX_EPOCH + whole
    };
    second + Duration::from_nanos(nanoseconds.into())
}

pub(crate) fn moments() -> Vec<SystemTime> {
    let edges = [
        (SECONDS.start, 0),
        (SECONDS.end - 1, 999_999_999),
        (0, 0),
        (0, 1),
        (-1, 999_999_999),
        (-1, 999_999_000),
        (1_700_000_000, 500_000_000),
        (951_782_400, 0),
    ];
    let drawn = draw(&(SECONDS, 0..1_000_000_000_u32));
    edges
        .into_iter()
        .chain(drawn)
        .map(|(seconds, nanoseconds)| moment(seconds, nanoseconds))
        .collect()
}

pub(crate) fn timestamps() -> Vec<Timestamp> {
    moments()
        .into_iter()
        .filter_map(|moment| moment.try_into().ok())
        .collect()
}

/// To the microsecond: what is finer, databases round.
pub(crate) fn dates_and_times() -> Vec<DateTime> {
    let at = |moment: SystemTime| {
        let zoned = Timestamp::try_from(moment).ok()?.to_zoned(jiff::tz::TimeZone::UTC);
        let micros = zoned.subsec_nanosecond() / 1000 * 1000;
        zoned.datetime().with().subsec_nanosecond(micros).build().ok()
    };
    moments().into_iter().filter_map(at).collect()
}

pub(crate) fn dates() -> Vec<Date> {
    dates_and_times().into_iter().map(DateTime::date).collect()
}

pub(crate) fn naive(at: DateTime) -> NaiveDateTime {
    let part = |number: i8| u32::try_from(number).unwrap();
    NaiveDate::from_ymd_opt(at.year().into(), part(at.month()), part(at.day()))
        .and_then(|date| {
            let nanoseconds = u32::try_from(at.subsec_nanosecond()).unwrap();
            date.and_hms_nano_opt(part(at.hour()), part(at.minute()), part(at.second()), nanoseconds)
        })
        .unwrap()
}

/// MariaDB takes no others.
pub(crate) fn ids() -> Vec<Uuid> {
    let random = draw(&any::<[u8; 16]>()).into_iter();
    let ids = random.map(|bytes| uuid::Builder::from_random_bytes(bytes).into_uuid());
    [Uuid::nil()].into_iter().chain(ids).collect()
}

pub(crate) fn documents() -> Vec<serde_json::Value> {
    vec![
        json!(null),
        json!(5),
        json!("text"),
        json!([1, null, {"a": "b"}]),
        json!({"name": "Ada", "tags": ["x", "é", "\""], "deep": {"n": -1.5, "is": true}}),
    ]
}
