//! Dates and times, between text and the server's days and microseconds from the year 2000.
//!
//! Promises: only texts that every server reads alike, whatever its settings, are read here: `2024-02-29`,
//! `12:34:56.789`, both with a space or a `T` between them, and with `Z` or an offset after them; the rest is left to the
//! server. What is printed is what the server prints under its default settings, with the zone always UTC.
//!
//! The calendar is jiff's, which ends with the year 9999; the server's goes to the year 5,874,897. But the calendar repeats itself
//! every 400 years: a day is looked up in the 400 years from 2000, and moved by as many times 400 years as it lies away.

use std::fmt::Write;
use std::time::SystemTime;

use forebay_write::moment::since_1970;
use jiff::SignedDuration;
use jiff::civil::Date;

const MICROSECONDS: i64 = 1_000_000;
const DAY_MICROSECONDS: i64 = 86_400 * MICROSECONDS;
/// Day 0.
const EPOCH: Date = Date::constant(2000, 1, 1);
/// After so many years, and days, the calendar is the same again.
const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;
/// The server takes no offset of more hours.
const OFFSET_HOURS_MAX: i64 = 15;

/// `YYYY-MM-DD`.
pub(super) fn date(text: &str) -> Option<i32> {
    i32::try_from(days(text.as_bytes())?).ok()
}

/// `HH:MM:SS`, with at most six digits after a point.
pub(super) fn time(text: &str) -> Option<i64> {
    let (time, rest) = clock(text.as_bytes())?;
    rest.is_empty().then_some(time)
}

/// A date, and a time if there is one; an offset after it is passed over, as the server does.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let text = text.as_bytes();
    if let Some(days) = days(text) {
        return Some(days * DAY_MICROSECONDS);
    }
    let (local, rest) = date_and_clock(text)?;
    if !rest.is_empty() {
        offset(rest)?;
    }
    Some(local)
}

/// A date, a time and an offset: without one the server would go by the session's zone.
pub(super) fn timestamptz(text: &str) -> Option<i64> {
    let (local, rest) = date_and_clock(text.as_bytes())?;
    Some(local - offset(rest)?)
}

/// A moment; none if it is out of the server's range. What is finer than a microsecond is cut off.
pub(super) fn microseconds(moment: SystemTime) -> Option<i64> {
    /// From the first of January 1970.
    const EPOCH_SECONDS: i64 = 946_684_800;
    /// From 4714-11-24 BC to 294276-12-31.
    const SERVERS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
    let (seconds, nanoseconds) = since_1970(moment);
    seconds
        .checked_sub(EPOCH_SECONDS)?
        .checked_mul(MICROSECONDS)?
        .checked_add(i64::from(nanoseconds / 1000))
        .filter(|microseconds| SERVERS.contains(microseconds))
}

fn date_and_clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let (date, rest) = text.split_at_checked(10)?;
    let (b' ' | b'T', rest) = rest.split_first()? else {
        return None;
    };
    let (time, rest) = clock(rest)?;
    Some((days(date)? * DAY_MICROSECONDS + time, rest))
}

/// All of the bytes as decimal digits.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

fn days(text: &[u8]) -> Option<i64> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return None;
    };
    let (year, month, day) = (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?, number(&[d1, d2])?);
    // There is no year 0.
    if year == 0 {
        return None;
    }
    let narrow = "at most four digits, or two";
    let (year, month, day) = (
        i16::try_from(year).expect(narrow),
        i8::try_from(month).expect(narrow),
        i8::try_from(day).expect(narrow),
    );
    Some(Date::new(year, month, day).ok()?.duration_since(EPOCH).as_hours() / 24)
}

/// Year (0 is 1 BC), month and day.
fn date_of(days: i64) -> (i64, i8, i8) {
    let (eras, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let date = EPOCH + SignedDuration::from_hours(24 * day_of_era);
    (i64::from(date.year()) + eras * ERA_YEARS, date.month(), date.day())
}

/// Microseconds, and what follows.
fn clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let (clock, mut rest) = text.split_first_chunk::<8>()?;
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let (hours, minutes, seconds) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    // 24:00:00 and leap seconds are the server's.
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let mut fraction = 0;
    if let Some((b'.', after)) = rest.split_first() {
        let length = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = after.split_at(length);
        // The seventh digit would have to be rounded.
        if !(1..=6).contains(&length) {
            return None;
        }
        let missing = u32::try_from(6 - length).expect("at most 6");
        fraction = number(digits)? * 10_i64.pow(missing);
        rest = after;
    }
    Some((((hours * 60 + minutes) * 60 + seconds) * MICROSECONDS + fraction, rest))
}

/// Microseconds east of UTC: `Z`, `+01`, `+01:30`, `+0130`.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2] => (sign, [h1, h2], *b"00"),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, [h1, h2], [m1, m2]),
        _ => return None,
    };
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    if hours > OFFSET_HOURS_MAX || minutes > 59 {
        return None;
    }
    let east = (hours * 60 + minutes) * 60 * MICROSECONDS;
    match sign {
        b'+' => Some(east),
        b'-' => Some(-east),
        _ => None,
    }
}

/// A date as the server prints it.
pub(super) fn print_date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        _ => {
            let mut text = String::with_capacity(16);
            let before_christ = push_date(i64::from(days), &mut text);
            push_era(before_christ, &mut text);
            text
        }
    }
}

/// A time of the day as the server prints it.
pub(super) fn print_time(microseconds: i64) -> String {
    let mut text = String::with_capacity(16);
    push_time(microseconds, &mut text);
    text
}

/// A time of the day with its offset, in seconds west of UTC, as the server prints it.
pub(super) fn print_timetz(microseconds: i64, west: i32) -> String {
    let mut text = print_time(microseconds);
    let size = west.unsigned_abs();
    let sign = if west > 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (size / 3_600, size / 60 % 60, size % 60);
    push(&mut text, format_args!("{sign}{hours:02}"));
    if minutes != 0 || seconds != 0 {
        push(&mut text, format_args!(":{minutes:02}"));
    }
    if seconds != 0 {
        push(&mut text, format_args!(":{seconds:02}"));
    }
    text
}

/// A timestamp as the server prints it.
pub(super) fn print_timestamp(microseconds: i64) -> String {
    print_moment(microseconds, ' ', "")
}

/// A moment as RFC 3339 writes it, in UTC; years that it has no notation for keep the server's: more digits, or `BC` after it.
pub(super) fn print_timestamptz(microseconds: i64) -> String {
    print_moment(microseconds, 'T', "Z")
}

fn print_moment(microseconds: i64, separator: char, zone: &str) -> String {
    match microseconds {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        _ => {
            let mut text = String::with_capacity(32);
            let before_christ = push_date(microseconds.div_euclid(DAY_MICROSECONDS), &mut text);
            text.push(separator);
            push_time(microseconds.rem_euclid(DAY_MICROSECONDS), &mut text);
            text.push_str(zone);
            push_era(before_christ, &mut text);
            text
        }
    }
}

/// An interval as the server prints it (IntervalStyle `postgres`). The largest and the smallest are those that PostgreSQL 17
/// and later call infinite.
pub(super) fn print_interval(months: i32, days: i32, microseconds: i64) -> String {
    match (months, days, microseconds) {
        (i32::MAX, i32::MAX, i64::MAX) => return "infinity".to_owned(),
        (i32::MIN, i32::MIN, i64::MIN) => return "-infinity".to_owned(),
        _ => {}
    }
    let mut text = String::with_capacity(32);
    let mut after_negative = false;
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count != 0 {
            let space = if text.is_empty() { "" } else { " " };
            let sign = if after_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            push(&mut text, format_args!("{space}{sign}{count} {unit}{plural}"));
            after_negative = count < 0;
        }
    }
    if text.is_empty() || microseconds != 0 {
        if !text.is_empty() {
            text.push(' ');
        }
        if microseconds < 0 {
            text.push('-');
        } else if after_negative {
            text.push('+');
        }
        push_clock(microseconds.unsigned_abs(), &mut text);
    }
    text
}

/// Whether it is before the year 1.
fn push_date(days: i64, text: &mut String) -> bool {
    let (year, month, day) = date_of(days);
    let shown = if year > 0 { year } else { 1 - year };
    push(text, format_args!("{shown:04}-{month:02}-{day:02}"));
    year <= 0
}

fn push_era(before_christ: bool, text: &mut String) {
    if before_christ {
        text.push_str(" BC");
    }
}

fn push_time(microseconds: i64, text: &mut String) {
    push_clock(microseconds.unsigned_abs(), text);
}

fn push_clock(microseconds: u64, text: &mut String) {
    let unit = MICROSECONDS.unsigned_abs();
    let (seconds, fraction) = (microseconds / unit, microseconds % unit);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    push(text, format_args!("{hours:02}:{minutes:02}:{seconds:02}"));
    if fraction != 0 {
        push(text, format_args!(".{fraction:06}"));
        text.truncate(text.trim_end_matches('0').len());
    }
}

fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a String grows as it must");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_beyond_the_calendar_of_jiff_are_printed() {
        for (days, text) in [
            (i32::MIN + 1, "5877612-06-23 BC"),
            (-2_451_545, "4714-11-24 BC"),
            (-730_121, "0001-12-30 BC"),
            (2_921_940, "10000-01-01"),
            (2_145_031_948, "5874897-12-31"),
            (i32::MAX - 1, "5881610-07-10"),
        ] {
            assert_eq!(print_date(days), text, "{days}");
        }
    }

    #[test]
    fn every_date_with_four_digits_is_read_as_it_is_printed() {
        let first = date("0001-01-01").unwrap();
        let last = date("9999-12-31").unwrap();
        for days in first..=last {
            assert_eq!(date(&print_date(days)), Some(days));
        }
        assert_eq!((last - first) + 1, 3_652_059);
        for text in [
            "0000-01-01",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-00-10",
            "2024-01-00",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
