//! Values of settings: durations, truth values, encodings, styles of dates and time zones, as PostgreSQL reads and writes them.
//!
//! Promises: what is written is read again as the same. Knows no settings: which of them takes which values.

use forebay_pg_values::temporal::parse_zone;

use forebay_pg_wire::error::WireError;

/// Milliseconds of `250`, `250ms`, `5s`, `1.5min`, `2h`, `1d`, `100us`; bare numbers are milliseconds. Tells whether the unit is at fault.
pub(super) fn millis(value: &str) -> Result<f64, bool> {
    let value = value.trim();
    let digits = value
        .find(|character: char| !character.is_ascii_digit() && !"+-.".contains(character))
        .unwrap_or(value.len());
    let number: f64 = value[..digits].parse().map_err(|_| false)?;
    let millis_each = match value[digits..].trim() {
        "" | "ms" => 1.0,
        "us" => 0.001,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(true),
    };
    Ok((number * millis_each).round_ties_even())
}

/// A duration in whole milliseconds.
pub(super) fn read_duration(name: &str, value: &str) -> Result<u32, WireError> {
    let millis = millis(value).map_err(|unit| {
        let error = WireError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
        if unit {
            error.with_hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
        } else {
            error
        }
    })?;
    if !(0.0..=f64::from(i32::MAX)).contains(&millis) {
        let message = if millis.abs() > f64::from(i32::MAX) {
            format!("invalid value for parameter \"{name}\": \"{value}\"")
        } else {
            format!("{millis} ms is outside the valid range for parameter \"{name}\" (0 .. 2147483647)")
        };
        return Err(WireError::new("22023", message));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and in the range"
    )]
    Ok(millis as u32)
}

/// In the largest unit that it is a whole number of.
pub(super) fn write_duration(millis: u32) -> String {
    for (unit, each) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)] {
        if millis > 0 && millis.is_multiple_of(each) {
            return format!("{}{unit}", millis / each);
        }
    }
    if millis == 0 {
        "0".to_owned()
    } else {
        format!("{millis}ms")
    }
}

/// PostgreSQL's truth values: any beginning of a word that is no other's.
pub(super) fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0" {
        Some(false)
    } else {
        None
    }
}

/// Whether that is a name of UTF-8; nothing if PostgreSQL knows no such encoding.
pub(super) fn encoding(value: &str) -> Option<bool> {
    const OTHERS: [&str; 20] = [
        "abc", "alt", "big5", "euc", "gb18030", "gbk", "iso8859", "johab", "koi8", "latin", "mskanji", "mule",
        "shiftjis", "sjis", "sqlascii", "tcvn", "uhc", "vscii", "win", "windows",
    ];
    let name: String = value
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect();
    if name == "utf8" || name == "unicode" {
        return Some(true);
    }
    OTHERS.iter().any(|other| name.starts_with(other)).then_some(false)
}

/// `ISO` with an order, either of which may be left out. Fails with the word that PostgreSQL does not know, or none if it knows it.
pub(super) fn date_style(value: &str, now: &str) -> Result<String, Option<String>> {
    let mut order = now.rsplit(", ").next().unwrap_or("MDY").to_owned();
    for word in value.split(',').map(str::trim) {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "iso" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => "MDY".clone_into(&mut order),
            _ if lower.starts_with("euro") => "DMY".clone_into(&mut order),
            "dmy" => "DMY".clone_into(&mut order),
            "ymd" => "YMD".clone_into(&mut order),
            "default" => "MDY".clone_into(&mut order),
            _ if ["sql", "postgres", "german"]
                .iter()
                .any(|style| lower.starts_with(style)) =>
            {
                return Err(None);
            }
            _ => return Err(Some(word.to_owned())),
        }
    }
    // The order is what dates that are written as 01/02/2003 are read by, and those are read month first.
    if order == "MDY" {
        Ok("ISO, MDY".to_owned())
    } else {
        Err(None)
    }
}

/// A time zone as PostgreSQL spells it.
pub(super) fn zone_name(value: &str) -> Result<String, WireError> {
    let zone = parse_zone(value)?;
    let trimmed = value.trim();
    let is_interval = trimmed.len() >= 8 && trimmed.as_bytes()[..8].eq_ignore_ascii_case(b"interval");
    let is_number = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    if !is_interval && !is_number {
        return Ok(zone
            .iana_name()
            .map_or_else(|| value.to_ascii_uppercase(), str::to_owned));
    }
    let seconds = zone.to_offset(jiff::Timestamp::UNIX_EPOCH).seconds();
    let write = |sign: char| {
        let total = seconds.unsigned_abs();
        let (hours, minutes, seconds) = (total / 3_600, total / 60 % 60, total % 60);
        match (minutes, seconds) {
            (0, 0) => format!("{sign}{hours:02}"),
            (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
            _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
        }
    };
    // In POSIX's spelling offsets count westward.
    Ok(if seconds < 0 {
        format!("<{}>{}", write('-'), write('+'))
    } else {
        format!("<{}>{}", write('+'), write('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (written, shown) in [
            ("250", "250ms"),
            ("2min", "2min"),
            ("1 h", "1h"),
            ("1.5s", "1500ms"),
            ("100us", "0"),
            ("3600000", "1h"),
        ] {
            assert_eq!(write_duration(read_duration("x", written).unwrap()), shown, "{written}");
        }
        for wrong in ["-1", "99999999999999999999", "5 parsecs", "soon"] {
            assert_eq!(read_duration("x", wrong).unwrap_err().sqlstate, "22023", "{wrong}");
        }
    }

    #[test]
    fn zones_are_spelled_as_postgresql_does() {
        for (written, shown) in [
            ("europe/berlin", "Europe/Berlin"),
            ("utc", "UTC"),
            ("2", "<+02>-02"),
            ("-3.5", "<-03:30>+03:30"),
            ("INTERVAL '+00:00'", "<+00>-00"),
            ("interval '+02:30'", "<+02:30>-02:30"),
            ("+02:00", "+02:00"),
            ("foo3", "FOO3"),
            ("<+02>-02", "<+02>-02"),
        ] {
            assert_eq!(zone_name(written).unwrap(), shown);
            assert_eq!(zone_name(shown).unwrap(), shown, "what is shown is taken again");
        }
    }
}
