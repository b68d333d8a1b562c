//! Which floats have a stored form: all but NaN.

use crate::{Owned, Result, ValueError};

/// A double, which must not be NaN.
pub(crate) fn store8(float: f64) -> Result<Owned> {
    if float.is_nan() {
        return Err(ValueError::unsupported("NaN of type double precision is"));
    }
    Ok(Owned::Real(float))
}

/// A real, which must not be NaN.
pub(crate) fn store4(float: f32) -> Result<Owned> {
    if float.is_nan() {
        return Err(ValueError::unsupported("NaN of type real is"));
    }
    Ok(Owned::Real(f64::from(float)))
}
