//! The stored form: IntervalStyle postgres, `1 year 2 mons -3 days +04:05:06.7`.

use std::fmt::Write;

use super::Interval;
use crate::temporal::{HOUR, MINUTE, SECOND, write_fraction};
use crate::{Result, ValueError};

impl Interval {
    /// Of its stored form.
    pub fn from_stored(stored: &str) -> Result<Self> {
        parts(stored).ok_or_else(|| ValueError::new("XX001", format!("\"{stored}\" is not stored as an interval is")))
    }

    /// Its stored form, which is also how PostgreSQL writes it.
    pub fn to_stored(self) -> String {
        let mut out = String::new();
        // Each part after a negative one is given its sign.
        let mut after_negative = false;
        for (value, unit) in [
            (self.months / 12, "year"),
            (self.months % 12, "mon"),
            (self.days, "day"),
        ] {
            if value != 0 {
                let _ = write!(
                    out,
                    "{}{}{value} {unit}{}",
                    if out.is_empty() { "" } else { " " },
                    if after_negative && value > 0 { "+" } else { "" },
                    if value == 1 { "" } else { "s" }
                );
                after_negative = value < 0;
            }
        }
        if out.is_empty() || self.micros != 0 {
            let micros = self.micros.unsigned_abs();
            let [hour, minute, second] = [HOUR, MINUTE, SECOND].map(i64::unsigned_abs);
            let sign = match (self.micros < 0, after_negative) {
                (true, _) => "-",
                (false, true) => "+",
                (false, false) => "",
            };
            let _ = write!(
                out,
                "{}{sign}{:02}:{:02}:{:02}",
                if out.is_empty() { "" } else { " " },
                micros / hour,
                micros % hour / minute,
                micros % minute / second
            );
            write_fraction((micros % second).cast_signed(), &mut out);
        }
        out
    }
}

fn parts(stored: &str) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut words = stored.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            interval.micros = clock(word)?;
            continue;
        }
        let value: i32 = word.parse().ok()?;
        match words.next()? {
            "year" | "years" => interval.months = value.checked_mul(12)?,
            "mon" | "mons" => interval.months = interval.months.checked_add(value)?,
            "day" | "days" => interval.days = value,
            _ => return None,
        }
    }
    Some(interval)
}

fn clock(word: &str) -> Option<i64> {
    let (negative, unsigned) = match word.as_bytes().first()? {
        b'-' => (true, &word[1..]),
        b'+' => (false, &word[1..]),
        _ => (false, word),
    };
    let (hours, rest) = unsigned.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let fraction = format!("{fraction:0<6}");
    let mut micros = 0_i128;
    for (part, unit) in [
        (hours, HOUR),
        (minutes, MINUTE),
        (seconds, SECOND),
        (fraction.as_str(), 1),
    ] {
        micros += i128::from(part.parse::<u64>().ok()?) * i128::from(unit);
    }
    i64::try_from(if negative { -micros } else { micros }).ok()
}
