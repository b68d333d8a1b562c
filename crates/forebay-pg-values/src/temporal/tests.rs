//! Answers of PostgreSQL, and what holds of all values.
//!
//! `recorded.txt` holds generated calls, a line each: the session's zone, the symbol, PostgreSQL's answer, the arguments. It was recorded from
//! PostgreSQL 15.18 (C.UTF-8, DateStyle `ISO, MDY`) with each call written as SQL; arguments and answers are in their stored forms, spelled
//! as in `examples/evaluate.rs`: `i:` integer, `r:` real, `t:` text, `N` NULL, `E:SQLSTATE:message`.

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;
use crate::{Arguments, Datum, Environment, Kind, Owned, function};

/// 2023-11-14 22:13:20.123456 UTC.
const NOW_MICROS: i64 = 1_700_000_000_123_456;

fn environment(zone: &str) -> Environment {
    Environment::new(TimeZone::get(zone).unwrap(), NOW_MICROS)
}

fn unescape(text: &str) -> String {
    text.replace("\\\\", "\0")
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace('\0', "\\")
}

fn value(word: &str) -> Owned {
    match word.split_once(':') {
        Some(("i", integer)) => Owned::Integer(integer.parse().unwrap()),
        Some(("r", real)) => Owned::Real(real.parse().unwrap()),
        Some(("t", text)) => Owned::Text(unescape(text)),
        _ => Owned::Null,
    }
}

fn call(environment: &Environment, symbol: &str, values: &[Owned]) -> crate::Result<Owned> {
    let values: Vec<Datum<'_>> = values.iter().map(Owned::as_datum).collect();
    function(symbol)
        .unwrap_or_else(|| panic!("no function {symbol}"))
        .call(Arguments {
            values: &values,
            types: &[],
            environment,
        })
}

#[test]
fn answers_as_postgresql_recorded() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in include_str!("recorded.txt").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [zone, symbol, expected, arguments @ ..] = parts.as_slice() else {
            panic!("not a recorded call: {line}");
        };
        let values: Vec<Owned> = arguments.iter().copied().map(value).collect();
        let given = call(&environment(zone), symbol, &values);
        let right = match (&given, expected.strip_prefix("E:")) {
            (Err(error), Some(recorded)) => format!("{}:{}", error.sqlstate, error.message) == unescape(recorded),
            (Ok(owned), None) => *owned == value(expected),
            _ => false,
        };
        if !right {
            wrong.push(format!("{line}\n    gave {given:?}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_000, "only {count} calls were recorded");
}

#[test]
fn the_moment_is_that_of_the_transaction() {
    let berlin = environment("Europe/Berlin");
    for (kind, text, stored) in [
        (Kind::Timestamptz, "now", "2023-11-14 22:13:20.123456"),
        (Kind::Timestamp, "now", "2023-11-14 23:13:20.123456"),
        (Kind::Time, "now", "23:13:20.123456"),
        (Kind::Timetz, "now", "23:13:20.123456+01"),
        (Kind::Date, "tomorrow", "2023-11-15"),
        (Kind::Timestamp, "yesterday 04:05", "2023-11-13 04:05:00"),
        (Kind::Timestamptz, "today", "2023-11-13 23:00:00"),
        (Kind::Timestamptz, "today 12:00 UTC", "2023-11-14 12:00:00"),
    ] {
        assert_eq!(parse(kind, -1, text, &berlin).unwrap(), Owned::from(stored), "{text}");
    }
    let age = |symbol, stored: &str| call(&berlin, symbol, &[stored.into()]).unwrap();
    assert_eq!(age("age(timestamp)", "2023-11-13 12:00:00"), "12:00:00".into());
    assert_eq!(age("age(timestamptz)", "2023-10-13 22:00:00"), "1 mon".into());
}

#[test]
fn writes_offsets_as_postgresql_does() {
    for (zone, stored, text) in [
        ("UTC", "2024-07-01 00:00:00", "2024-07-01 00:00:00+00"),
        ("Europe/Berlin", "2024-07-01 00:00:00", "2024-07-01 02:00:00+02"),
        ("Asia/Kolkata", "2024-07-01 00:00:00.5", "2024-07-01 05:30:00.5+05:30"),
        ("Europe/Berlin", "1890-01-01 00:00:00", "1890-01-01 00:53:28+00:53:28"),
        ("America/New_York", "9999-12-31 23:59:59", "9999-12-31 18:59:59-05"),
        ("America/New_York", "infinity", "infinity"),
    ] {
        let mut out = String::new();
        write(Kind::Timestamptz, Datum::Text(stored), &environment(zone), &mut out).unwrap();
        assert_eq!(out, text);
    }
    let late = Datum::Text("9999-12-31 23:59:59");
    let error = write(Kind::Timestamptz, late, &environment("Asia/Tokyo"), &mut String::new()).unwrap_err();
    assert_eq!(error.sqlstate, "0A000");
}

/// `SET TIME ZONE` counts hours eastward, `AT TIME ZONE` westward.
#[test]
fn zones_by_name_and_offset() {
    let january = jiff::Timestamp::from_second(1_704_067_200).unwrap();
    let east = |zone: TimeZone| zone.to_offset(january).seconds();
    for (text, seconds) in [
        ("3", 10_800),
        ("-3.5", -12_600),
        ("+3", 10_800),
        ("utc+3", -10_800),
        ("<+02>-02", 7_200),
        ("europe/berlin", 3_600),
        ("EST", -18_000),
        ("interval '-02:30'", -9_000),
        ("EST5EDT,M3.2.0,M11.1.0", -18_000),
    ] {
        assert_eq!(east(parse_zone(text).unwrap()), seconds, "{text}");
    }
    for (text, seconds) in [
        ("+3", -10_800),
        ("3", -10_800),
        ("-05:30", 19_800),
        ("cest", 7_200),
        ("UTC", 0),
    ] {
        assert_eq!(east(at_time_zone(text).unwrap()), seconds, "{text}");
    }
    let state = |error: crate::ValueError| error.sqlstate;
    assert_eq!(parse_zone("Foo").map(east).map_err(state), Err("22023"));
    assert_eq!(at_time_zone("Foo").map(east).map_err(state), Err("22023"));
    // PostgreSQL takes these rules from a file, and this abbreviation from a zone's history.
    assert_eq!(parse_zone("FOO5BAR").map(east).map_err(state), Err("0A000"));
    assert_eq!(at_time_zone("MSK").map(east).map_err(state), Err("0A000"));
}

#[test]
fn what_the_stored_forms_have_not_is_refused() {
    let utc = environment("UTC");
    for (kind, text) in [
        (Kind::Date, "0044-03-15 BC"),
        (Kind::Date, "10000-01-01"),
        (Kind::Timestamp, "294276-12-31"),
        (Kind::Timestamptz, "0001-01-01 00:00+02"),
        (Kind::Date, "J2451187"),
    ] {
        let error = parse(kind, -1, text, &utc).unwrap_err();
        assert_eq!(error.sqlstate, "0A000", "{text}: {error}");
    }
    let beyond = parse(Kind::Timestamp, -1, "294277-01-01", &utc).unwrap_err();
    assert_eq!(beyond.sqlstate, "22008");
}

#[test]
fn intervals_are_ordered_by_their_length() {
    use std::cmp::Ordering;

    use crate::interval::compare;
    assert_eq!(compare("1 mon", "30 days"), Ordering::Equal);
    assert_eq!(compare("24:00:00", "1 day"), Ordering::Equal);
    assert_eq!(compare("1 year", "361 days"), Ordering::Less);
    assert_eq!(compare("-1 days", "-00:00:01"), Ordering::Less);
}

proptest! {
    /// The stored forms keep every value, and PostgreSQL's order of timestamps is that of their bytes.
    #[test]
    fn timestamps_keep_their_value_and_order(
        left in -63_082_281_600_000_000_i64..252_455_616_000_000_000,
        right in -63_082_281_600_000_000_i64..252_455_616_000_000_000,
    ) {
        let (left_stored, right_stored) = (timestamp_from_micros(left)?, timestamp_from_micros(right)?);
        prop_assert_eq!(timestamp_to_micros(&left_stored)?, left);
        prop_assert_eq!(left.cmp(&right), left_stored.cmp(&right_stored));
        prop_assert!(left_stored.as_str() < "infinity" && left_stored.as_str() > "-infinity");
    }

    #[test]
    fn intervals_keep_their_parts(months in any::<i32>(), days in any::<i32>(), micros in any::<i64>()) {
        let interval = crate::interval::Interval { micros, days, months };
        prop_assert_eq!(crate::interval::Interval::from_stored(&interval.to_stored())?, interval);
        // PostgreSQL has no text for the longest negative one.
        if micros != i64::MIN {
            prop_assert_eq!(crate::interval::Interval::parse(&interval.to_stored(), -1)?, interval);
        }
    }

    #[test]
    fn timetz_keeps_its_parts(micros in 0..=86_400_000_000_i64, west in -57_599..57_600_i32) {
        prop_assert_eq!(timetz_to_parts(&timetz_from_parts(micros, west))?, (micros, west));
    }

    /// No text makes it panic.
    #[test]
    fn reads_or_refuses_anything(text in "[-+0-9:./ TtZzPpYMDHS,a-e\\PC]{0,24}") {
        let utc = environment("UTC");
        for kind in [Kind::Date, Kind::Time, Kind::Timetz, Kind::Timestamp, Kind::Timestamptz, Kind::Interval] {
            let _ = parse(kind, 3, &text, &utc);
        }
        let _ = parse_zone(&text);
        for symbol in ["to_date", "to_timestamp"] {
            let _ = call(&utc, symbol, &[text.as_str().into(), "YYYYMMDD HH24:MI.US AM".into()]);
            let _ = call(&utc, symbol, &["2024-01-31 10:20:30".into(), text.as_str().into()]);
        }
        let _ = call(&utc, "timestamp_to_char", &["2024-01-31 10:20:30".into(), text.as_str().into()]);
    }
}

#[test]
fn moments_that_postgresql_has_not_are_told_from_those_without_a_stored_form() {
    let state = |result: crate::Result<String>| result.unwrap_err().sqlstate;
    for (days, expected) in [
        (-2_451_546, "22008"),
        (-2_451_545, "0A000"),
        (2_145_031_948, "0A000"),
        (2_145_031_949, "22008"),
    ] {
        assert_eq!(state(date_from_days(days)), expected, "{days}");
    }
    for (micros, expected) in [
        (-211_813_488_000_000_001, "22008"),
        (-211_813_488_000_000_000, "0A000"),
        (9_223_371_331_199_999_999, "0A000"),
        (9_223_371_331_200_000_000, "22008"),
    ] {
        assert_eq!(state(timestamp_from_micros(micros)), expected, "{micros}");
    }
    assert_eq!(date_from_days(DATE_INFINITY).as_deref(), Ok("infinity"));
    assert_eq!(
        timestamp_from_micros(TIMESTAMP_MINUS_INFINITY).as_deref(),
        Ok("-infinity")
    );
}
