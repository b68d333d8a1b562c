//! Rounding to a precision: so many digits of a second.

/// Rounded to so many digits of a second, halves away from zero; all of them for a precision that says nothing.
pub(crate) fn round_to(micros: i64, precision: i32) -> i64 {
    let Some(unit) = u32::try_from(precision)
        .ok()
        .and_then(|precision| 6_u32.checked_sub(precision))
        .map(|digits| 10_i64.pow(digits))
    else {
        return micros;
    };
    let half = unit / 2;
    if micros >= 0 {
        (micros + half) / unit * unit
    } else {
        -((-micros + half) / unit * unit)
    }
}
