//! real and double precision: arithmetic with PostgreSQL's checks for overflow and underflow, functions, casts.
//!
//! A real is computed in 32 bits and given back widened. NaN is never given: there is no stored form of it. The transcendental functions
//! are the C library's, which PostgreSQL calls too.

mod angles;
mod cube_root;
mod stored;
mod text;

pub(crate) use stored::{store4, store8};
pub(crate) use text::{parse4, parse8, write4, write8};

use crate::integer::Width;
use crate::{Arguments, Function, Owned, Result, ValueError};

// Those that Rust computes by formulas of its own.
#[allow(missing_docs, reason = "the C library's")]
unsafe extern "C" {
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

pub(crate) fn overflow() -> ValueError {
    ValueError::new("22003", "value out of range: overflow")
}

pub(crate) fn underflow() -> ValueError {
    ValueError::new("22003", "value out of range: underflow")
}

fn input_out_of_range() -> ValueError {
    ValueError::new("22003", "input is out of range")
}

fn of_logarithm(message: &str) -> ValueError {
    ValueError::new("2201E", message)
}

fn of_power(message: &str) -> ValueError {
    ValueError::new("2201F", message)
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Which kind of result an operation gave that its operands do not explain.
fn check(operation: Operation, left: Shape, right: Shape, result: Shape) -> Result<()> {
    let overflowed = match operation {
        // Dividing an infinity stays infinite; dividing by one does not become it.
        Operation::Divide => result.infinite && !left.infinite,
        _ => result.infinite && !left.infinite && !right.infinite,
    };
    let underflowed = match operation {
        Operation::Multiply => result.zero && !left.zero && !right.zero,
        Operation::Divide => result.zero && !left.zero && !right.infinite,
        _ => false,
    };
    if overflowed {
        Err(overflow())
    } else if underflowed {
        Err(underflow())
    } else {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    infinite: bool,
    zero: bool,
}

impl From<f64> for Shape {
    fn from(float: f64) -> Self {
        Self {
            infinite: float.is_infinite(),
            zero: float == 0.0,
        }
    }
}

fn double(operation: Operation, left: f64, right: f64) -> Result<Owned> {
    let result = match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide if right == 0.0 => return Err(ValueError::division_by_zero()),
        Operation::Divide => left / right,
    };
    check(operation, left.into(), right.into(), result.into())?;
    store8(result)
}

fn single(operation: Operation, left: f32, right: f32) -> Result<Owned> {
    let result = match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide if right == 0.0 => return Err(ValueError::division_by_zero()),
        Operation::Divide => left / right,
    };
    check(
        operation,
        f64::from(left).into(),
        f64::from(right).into(),
        f64::from(result).into(),
    )?;
    store4(result)
}

fn doubles(operation: Operation, arguments: Arguments<'_>) -> Result<Owned> {
    double(operation, arguments.real(0)?, arguments.real(1)?)
}

/// The argument as the real it was stored from.
pub(crate) fn real4(arguments: Arguments<'_>, index: usize) -> Result<f32> {
    #[allow(clippy::cast_possible_truncation, reason = "a stored real is a float widened")]
    Ok(arguments.real(index)? as f32)
}

fn singles(operation: Operation, arguments: Arguments<'_>) -> Result<Owned> {
    single(operation, real4(arguments, 0)?, real4(arguments, 1)?)
}

fn larger(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = (arguments.real(0)?, arguments.real(1)?);
    store8(if left > right { left } else { right })
}

fn smaller(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = (arguments.real(0)?, arguments.real(1)?);
    store8(if left < right { left } else { right })
}

/// A function that cannot go wrong.
fn plain(arguments: Arguments<'_>, body: impl FnOnce(f64) -> f64) -> Result<Owned> {
    store8(body(arguments.real(0)?))
}

/// A function of finite arguments only.
fn of_finite(arguments: Arguments<'_>, body: impl FnOnce(f64) -> f64) -> Result<Owned> {
    let float = arguments.real(0)?;
    if float.is_infinite() {
        return Err(input_out_of_range());
    }
    store8(body(float))
}

/// A function of arguments from -1 to 1.
fn of_unit(arguments: Arguments<'_>, body: impl FnOnce(f64) -> f64) -> Result<Owned> {
    let float = arguments.real(0)?;
    if !(-1.0..=1.0).contains(&float) {
        return Err(input_out_of_range());
    }
    store8(body(float))
}

fn square_root(arguments: Arguments<'_>) -> Result<Owned> {
    let float = arguments.real(0)?;
    if float < 0.0 {
        return Err(of_power("cannot take square root of a negative number"));
    }
    store8(float.sqrt())
}

fn exponential(arguments: Arguments<'_>) -> Result<Owned> {
    let float = arguments.real(0)?;
    if float.is_infinite() {
        return store8(if float > 0.0 { float } else { 0.0 });
    }
    let result = float.exp();
    if result.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 {
        return Err(underflow());
    }
    store8(result)
}

fn logarithm(arguments: Arguments<'_>, body: impl FnOnce(f64) -> f64) -> Result<Owned> {
    let float = arguments.real(0)?;
    if float == 0.0 {
        return Err(of_logarithm("cannot take logarithm of zero"));
    }
    if float < 0.0 {
        return Err(of_logarithm("cannot take logarithm of a negative number"));
    }
    store8(body(float))
}

fn power(arguments: Arguments<'_>) -> Result<Owned> {
    let (base, exponent) = (arguments.real(0)?, arguments.real(1)?);
    if base == 0.0 && exponent < 0.0 {
        return Err(of_power("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.floor() != exponent {
        return Err(of_power(
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let result = base.powf(exponent);
    // What an infinity gives is so by POSIX's rules, which the C library follows.
    if base.is_finite() && exponent.is_finite() {
        if result.is_infinite() {
            return Err(overflow());
        }
        if result == 0.0 && base != 0.0 {
            return Err(underflow());
        }
    }
    store8(result)
}

fn hyperbolic_area_tangent(float: f64) -> f64 {
    if float.abs() < 1.0 {
        atanh(float)
    } else {
        float.signum() * f64::INFINITY
    }
}

fn hyperbolic_area_cosine(arguments: Arguments<'_>) -> Result<Owned> {
    let float = arguments.real(0)?;
    if float < 1.0 {
        return Err(input_out_of_range());
    }
    store8(acosh(float))
}

fn sign(float: f64) -> f64 {
    if float > 0.0 {
        1.0
    } else if float < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Below zero as above it, so that what remains of -0.5 is -0.
fn truncate(float: f64) -> f64 {
    if float >= 0.0 { float.floor() } else { -(-float).floor() }
}

/// To the nearest integer of that type, halves to the even one.
fn to_integer(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let rounded = arguments.real(0)?.round_ties_even();
    // Beyond bigint by far, and C's conversion is not asked; infinities saturate.
    #[allow(clippy::cast_possible_truncation, reason = "saturates, and is checked")]
    width.fit(rounded as i128)
}

fn to_single(arguments: Arguments<'_>) -> Result<Owned> {
    let float = arguments.real(0)?;
    #[allow(clippy::cast_possible_truncation, reason = "the conversion that is asked for")]
    let single = float as f32;
    if single.is_infinite() && !float.is_infinite() {
        return Err(overflow());
    }
    if single == 0.0 && float != 0.0 {
        return Err(underflow());
    }
    store4(single)
}

#[allow(clippy::cast_precision_loss, reason = "the conversion that is asked for")]
fn integer_to_double(arguments: Arguments<'_>) -> Result<Owned> {
    store8(arguments.integer(0)? as f64)
}

#[allow(clippy::cast_precision_loss, reason = "the conversion that is asked for")]
fn integer_to_single(arguments: Arguments<'_>) -> Result<Owned> {
    store4(arguments.integer(0)? as f32)
}

fn width_bucket(arguments: Arguments<'_>) -> Result<Owned> {
    let invalid = |message: &str| Err(ValueError::new("2201G", message));
    let (operand, low, high) = (arguments.real(0)?, arguments.real(1)?, arguments.real(2)?);
    let count = arguments.integer(3)?;
    if count <= 0 {
        return invalid("count must be greater than zero");
    }
    if low.is_infinite() || high.is_infinite() {
        return invalid("lower and upper bounds must be finite");
    }
    #[allow(clippy::float_cmp, reason = "equality is what is asked")]
    if low == high {
        return invalid("lower bound cannot equal upper bound");
    }
    let rising = low < high;
    #[allow(clippy::cast_precision_loss, reason = "an int")]
    let buckets = count as f64;
    let (before, after, place) = if rising {
        (operand < low, operand >= high, buckets * (operand - low) / (high - low))
    } else {
        (operand > low, operand <= high, buckets * (low - operand) / (low - high))
    };
    if before {
        return Ok(Owned::Integer(0));
    }
    if after {
        return Width::Four.fit(i128::from(count) + 1);
    }
    let place = place + 1.0;
    if !place.is_finite() || place >= f64::from(i32::MAX) {
        // C's conversion of what does not fit is not defined.
        return Err(ValueError::unsupported("bounds so far apart are"));
    }
    #[allow(clippy::cast_possible_truncation, reason = "towards zero is what is meant")]
    let bucket = place as i64;
    Ok(Owned::Integer(bucket))
}

/// See [`crate::function()`].
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("float4pl", |arguments| singles(Operation::Add, arguments)),
    Function::new("float4mi", |arguments| singles(Operation::Subtract, arguments)),
    Function::new("float4mul", |arguments| singles(Operation::Multiply, arguments)),
    Function::new("float4div", |arguments| singles(Operation::Divide, arguments)),
    Function::new("float8pl", |arguments| doubles(Operation::Add, arguments)),
    Function::new("float8mi", |arguments| doubles(Operation::Subtract, arguments)),
    Function::new("float8mul", |arguments| doubles(Operation::Multiply, arguments)),
    Function::new("float8div", |arguments| doubles(Operation::Divide, arguments)),
    Function::new("float48pl", |arguments| doubles(Operation::Add, arguments)),
    Function::new("float48mi", |arguments| doubles(Operation::Subtract, arguments)),
    Function::new("float48mul", |arguments| doubles(Operation::Multiply, arguments)),
    Function::new("float48div", |arguments| doubles(Operation::Divide, arguments)),
    Function::new("float84pl", |arguments| doubles(Operation::Add, arguments)),
    Function::new("float84mi", |arguments| doubles(Operation::Subtract, arguments)),
    Function::new("float84mul", |arguments| doubles(Operation::Multiply, arguments)),
    Function::new("float84div", |arguments| doubles(Operation::Divide, arguments)),
    Function::new("float4um", |arguments| plain(arguments, |float| -float)),
    Function::new("float8um", |arguments| plain(arguments, |float| -float)),
    Function::new("float4up", |arguments| plain(arguments, |float| float)),
    Function::new("float8up", |arguments| plain(arguments, |float| float)),
    Function::new("float4abs", |arguments| plain(arguments, f64::abs)),
    Function::new("float8abs", |arguments| plain(arguments, f64::abs)),
    Function::new("float4larger", larger),
    Function::new("float8larger", larger),
    Function::new("float4smaller", smaller),
    Function::new("float8smaller", smaller),
    Function::new("dsqrt", square_root),
    Function::new("dcbrt", |arguments| store8(cube_root::cube_root(arguments.real(0)?)?)),
    Function::new("dexp", exponential),
    Function::new("dlog1", |arguments| logarithm(arguments, f64::ln)),
    Function::new("dlog10", |arguments| logarithm(arguments, f64::log10)),
    Function::new("dpow", power),
    Function::new("dceil", |arguments| plain(arguments, f64::ceil)),
    Function::new("dfloor", |arguments| plain(arguments, f64::floor)),
    Function::new("dround", |arguments| plain(arguments, f64::round_ties_even)),
    Function::new("dtrunc", |arguments| plain(arguments, truncate)),
    Function::new("dsign", |arguments| plain(arguments, sign)),
    Function::new("dsin", |arguments| of_finite(arguments, f64::sin)),
    Function::new("dcos", |arguments| of_finite(arguments, f64::cos)),
    Function::new("dtan", |arguments| of_finite(arguments, f64::tan)),
    Function::new("dcot", |arguments| of_finite(arguments, |float| 1.0 / float.tan())),
    Function::new("dasin", |arguments| of_unit(arguments, f64::asin)),
    Function::new("dacos", |arguments| of_unit(arguments, f64::acos)),
    Function::new("datan", |arguments| plain(arguments, f64::atan)),
    Function::new("datan2", |arguments| {
        store8(arguments.real(0)?.atan2(arguments.real(1)?))
    }),
    Function::new("dsinh", |arguments| plain(arguments, f64::sinh)),
    Function::new("dcosh", |arguments| plain(arguments, f64::cosh)),
    Function::new("dtanh", |arguments| plain(arguments, f64::tanh)),
    Function::new("dasinh", |arguments| plain(arguments, |float| asinh(float))),
    Function::new("dacosh", hyperbolic_area_cosine),
    Function::new("datanh", |arguments| of_unit(arguments, hyperbolic_area_tangent)),
    Function::new("dsind", |arguments| of_finite(arguments, angles::sine)),
    Function::new("dcosd", |arguments| of_finite(arguments, angles::cosine)),
    Function::new("dtand", |arguments| of_finite(arguments, angles::tangent)),
    Function::new("dcotd", |arguments| of_finite(arguments, angles::cotangent)),
    Function::new("dasind", |arguments| of_unit(arguments, angles::arc_sine)),
    Function::new("dacosd", |arguments| of_unit(arguments, angles::arc_cosine)),
    Function::new("datand", |arguments| plain(arguments, angles::arc_tangent)),
    Function::new("datan2d", |arguments| {
        store8(angles::arc_tangent_of_two(arguments.real(0)?, arguments.real(1)?))
    }),
    Function::new("degrees", |arguments| {
        double(Operation::Divide, arguments.real(0)?, angles::RADIANS_PER_DEGREE)
    }),
    Function::new("radians", |arguments| {
        double(Operation::Multiply, arguments.real(0)?, angles::RADIANS_PER_DEGREE)
    }),
    Function::new("dpi", |_| Ok(Owned::Real(std::f64::consts::PI))),
    Function::new("ftod", |arguments| plain(arguments, |float| float)),
    Function::new("dtof", to_single),
    Function::new("ftoi2", |arguments| to_integer(Width::Two, arguments)),
    Function::new("ftoi4", |arguments| to_integer(Width::Four, arguments)),
    Function::new("ftoi8", |arguments| to_integer(Width::Eight, arguments)),
    Function::new("dtoi2", |arguments| to_integer(Width::Two, arguments)),
    Function::new("dtoi4", |arguments| to_integer(Width::Four, arguments)),
    Function::new("dtoi8", |arguments| to_integer(Width::Eight, arguments)),
    Function::new("i2tod", integer_to_double),
    Function::new("i4tod", integer_to_double),
    Function::new("i8tod", integer_to_double),
    Function::new("i2tof", integer_to_single),
    Function::new("i4tof", integer_to_single),
    Function::new("i8tof", integer_to_single),
    Function::new("width_bucket_float8", width_bucket),
];
