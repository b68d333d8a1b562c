//! Stored values to PostgreSQL's text: DateStyle ISO, IntervalStyle postgres.

use super::limits::{DAY, SECOND, beyond_stored_years, is_finite};
use super::stored::{timestamp_from_micros, timestamp_to_micros, write_offset};
use super::zone;
use crate::{Datum, Environment, Kind, Result, ValueError};

/// Writes a value as PostgreSQL's output function of the type does; a timestamptz as the clocks of the session's zone show it.
pub fn write(kind: Kind, datum: Datum<'_>, environment: &Environment, out: &mut String) -> Result<()> {
    let Datum::Text(stored) = datum else {
        return Err(ValueError::new(
            "XX001",
            format!("a {} is not stored as its type is: {datum:?}", kind.name()),
        ));
    };
    if kind != Kind::Timestamptz {
        out.push_str(stored);
        return Ok(());
    }
    let micros = timestamp_to_micros(stored)?;
    if !is_finite(micros) {
        out.push_str(stored);
        return Ok(());
    }
    let east = zone::offset_at(&environment.zone, micros);
    if east == 0 {
        out.push_str(stored);
    } else {
        let local = micros + i64::from(east) * SECOND;
        debug_assert!(local.abs_diff(micros) < 2 * DAY.unsigned_abs(), "offsets are small");
        out.push_str(&timestamp_from_micros(local).map_err(|_| beyond_stored_years())?);
    }
    write_offset(east, out);
    Ok(())
}
