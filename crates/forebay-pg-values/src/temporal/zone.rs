//! Zones: by name as PostgreSQL finds them, and what a zone's clocks show.
//!
//! Names are those of the time zone database whatever their case; PostgreSQL's abbreviations; and POSIX's spelling, in which offsets count
//! *westward*. Of POSIX's rules those of a daylight saving time must be written out: PostgreSQL fills them in from a file of its own.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::abbreviations::{Abbreviation, abbreviation};
use super::civil::Fields;
use super::limits::{SECOND, UNIX_SECONDS, is_finite, timestamp_in_range};
use crate::{Result, ValueError};

/// The zone of `SET TIME ZONE` and `SET timezone`: a name, or hours *east* of UTC.
pub fn parse_zone(text: &str) -> Result<TimeZone> {
    let refused = || ValueError::new("22023", format!("invalid value for parameter \"TimeZone\": \"{text}\""));
    let trimmed = text.trim();
    if trimmed.len() >= 8 && trimmed.as_bytes()[..8].eq_ignore_ascii_case(b"interval") {
        return interval_zone(trimmed[8..].trim_start(), &refused);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)) {
        let Ok(hours) = text.parse::<f64>() else {
            return Err(ValueError::unsupported(format!("the time zone \"{text}\" is")));
        };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "PostgreSQL drops what is less than a second"
        )]
        let seconds = (hours * 3_600.0) as i64;
        return fixed(seconds).ok_or_else(|| ValueError::unsupported(format!("the time zone \"{text}\" is")));
    }
    named(text)?.ok_or_else(refused)
}

/// `INTERVAL '-2:30'` after its first word.
fn interval_zone(quoted: &str, refused: &dyn Fn() -> ValueError) -> Result<TimeZone> {
    let inner = quoted
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .ok_or_else(refused)?;
    let interval = crate::interval::Interval::parse(inner, -1)?;
    if interval.months != 0 {
        return Err(ValueError::new("22023", "cannot specify months in time zone interval"));
    }
    if interval.days != 0 {
        return Err(ValueError::new("22023", "cannot specify days in time zone interval"));
    }
    fixed(interval.micros / SECOND).ok_or_else(refused)
}

/// The zone of `AT TIME ZONE`.
pub fn at_time_zone(text: &str) -> Result<TimeZone> {
    match abbreviation(&text.to_ascii_lowercase()) {
        Some(Abbreviation::Fixed(seconds)) => Ok(fixed(seconds.into()).expect("PostgreSQL's offsets are small")),
        Some(Abbreviation::Moving) => Err(moving(text)),
        None => named(text)?.ok_or_else(|| not_recognized(text)),
    }
}

/// `time zone "x" not recognized`.
pub(crate) fn not_recognized(text: &str) -> ValueError {
    ValueError::new("22023", format!("time zone \"{text}\" not recognized"))
}

/// An abbreviation whose offset depends on the moment.
pub(crate) fn moving(text: &str) -> ValueError {
    ValueError::unsupported(format!("the time zone abbreviation \"{text}\" is"))
}

/// So many seconds east of UTC.
pub(crate) fn fixed(seconds: i64) -> Option<TimeZone> {
    Some(Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?.to_time_zone())
}

/// A zone by its name in the database or in POSIX's spelling.
pub(crate) fn named(name: &str) -> Result<Option<TimeZone>> {
    let first = name.split('/').next().unwrap_or("");
    if first.eq_ignore_ascii_case("right") {
        // Their seconds are others than POSIX's.
        return Err(ValueError::unsupported(format!("the time zone \"{name}\" is")));
    }
    let spelled_as_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
    if spelled_as_name
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && let Ok(zone) = TimeZone::get(name)
    {
        return Ok(Some(zone));
    }
    posix(name)
}

fn posix(text: &str) -> Result<Option<TimeZone>> {
    let unsupported = || ValueError::unsupported(format!("the time zone \"{text}\" is"));
    let after_name = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>').map_or("", |(_, rest)| rest),
        None => text.trim_start_matches(|first: char| first.is_ascii_alphabetic()),
    };
    let (sign, digits) = match after_name.as_bytes().first() {
        Some(b'-') => (1, &after_name[1..]),
        Some(b'+') => (-1, &after_name[1..]),
        _ => (-1, after_name),
    };
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    if let Ok(zone) = TimeZone::posix(text) {
        return Ok(Some(zone));
    }
    let mut seconds = 0;
    for (part, (unit, end)) in digits.split(':').zip([(3_600, 25), (60, 60), (1, 60)]) {
        let value = match part.parse::<i64>() {
            Ok(value) if value < end && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit()) => value,
            // Something that PostgreSQL may still make sense of.
            _ => return Err(unsupported()),
        };
        seconds += unit * value;
    }
    if digits.split(':').count() > 3 {
        return Err(unsupported());
    }
    Ok(fixed(sign * seconds))
}

/// What a zone's clocks showed: seconds east of UTC at a finite moment.
pub(crate) fn offset_at(zone: &TimeZone, micros: i64) -> i32 {
    if let Ok(offset) = zone.to_fixed_offset() {
        return offset.seconds();
    }
    zone.to_offset(instant(micros)).seconds()
}

/// Whether a zone has had one offset always.
pub(crate) fn is_constant(zone: &TimeZone) -> bool {
    let first = zone.to_offset(Timestamp::MIN);
    zone.to_fixed_offset().is_ok() || zone.following(Timestamp::MIN).all(|change| change.offset() == first)
}

/// A moment of the time zone database, which ends some hours before the calendar does and knows no change in them.
pub(crate) fn instant(micros: i64) -> Timestamp {
    let seconds = micros.div_euclid(SECOND) + UNIX_SECONDS;
    Timestamp::from_second(seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second()))
        .expect("clamped to what there is")
}

/// PostgreSQL's choice of an offset for a local time: if clocks skipped it, the offset before; if they showed it twice, the one after.
pub(crate) fn offset_of(zone: &TimeZone, local: &Fields) -> Result<i32> {
    if let Ok(offset) = zone.to_fixed_offset() {
        return Ok(offset.seconds());
    }
    let offset = match zone.to_ambiguous_timestamp(local.date_time()?).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    Ok(offset.seconds())
}

/// The moment at which clocks of that zone show a local time; infinities stay.
pub(crate) fn to_utc(zone: &TimeZone, local: i64) -> Result<i64> {
    if !is_finite(local) {
        return Ok(local);
    }
    let offset = match zone.to_fixed_offset() {
        Ok(offset) => offset.seconds(),
        Err(_) => offset_of(zone, &Fields::of(local)?)?,
    };
    timestamp_in_range(local.checked_sub(i64::from(offset) * SECOND))
}

/// What clocks of that zone show at a moment; infinities stay.
pub(crate) fn to_local(zone: &TimeZone, micros: i64) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    timestamp_in_range(micros.checked_add(i64::from(offset_at(zone, micros)) * SECOND))
}
