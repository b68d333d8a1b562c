//! The functions, operators and casts of numerics, by symbol.

use std::cmp::Ordering;

use super::arithmetic::division_scale;
use super::decimal::{Decimal, overflow};
use super::whole::Whole;
use super::{Number, apply_modifier};
use crate::integer::Width;
use crate::{Arguments, Function, Owned, Result, ValueError};

fn number(arguments: Arguments<'_>, index: usize) -> Result<Number> {
    Number::stored(arguments.text(index)?)
}

fn pair(arguments: Arguments<'_>) -> Result<(Number, Number)> {
    Ok((number(arguments, 0)?, number(arguments, 1)?))
}

fn of_finite(arguments: Arguments<'_>, body: impl FnOnce(Decimal) -> Result<Decimal>) -> Result<Owned> {
    match number(arguments, 0)? {
        Number::Finite(decimal) => Number::from(body(decimal)?).store(),
        other => other.store(),
    }
}

fn compared(arguments: Arguments<'_>) -> Result<Ordering> {
    Ok(super::compare(arguments.text(0)?, arguments.text(1)?))
}

fn add(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.add(&right).store()
}

fn subtract(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.subtract(&right).store()
}

fn multiply(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.multiply(&right).store()
}

fn divide(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.divide(&right)?.store()
}

fn divide_truncating(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.divide_truncating(&right)?.store()
}

fn modulo(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.modulo(&right)?.store()
}

fn power(arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    left.power(&right)?.store()
}

fn sign(arguments: Arguments<'_>) -> Result<Owned> {
    match number(arguments, 0)? {
        Number::Nan => Ok("NaN".into()),
        other => Ok(other.signum().to_string().into()),
    }
}

/// Digits before the point, and one for a carry: more places cannot count.
const PLACES_MAX: i64 = 131_073;

fn round(arguments: Arguments<'_>) -> Result<Owned> {
    let scale = arguments.integer(1)?.clamp(-PLACES_MAX, 16_383);
    of_finite(arguments, |decimal| Ok(decimal.rounded(scale)))
}

fn truncate(arguments: Arguments<'_>) -> Result<Owned> {
    let scale = arguments.integer(1)?.clamp(-PLACES_MAX, 16_383);
    of_finite(arguments, |decimal| Ok(decimal.truncated(scale)))
}

fn floor_of(decimal: &Decimal) -> Decimal {
    let whole = decimal.truncated(0);
    if decimal.is_negative() && whole.compare(decimal) != Ordering::Equal {
        whole.subtract(&Decimal::from(1))
    } else {
        whole
    }
}

fn ceiling_of(decimal: &Decimal) -> Decimal {
    floor_of(&decimal.negated()).negated()
}

fn least_scale(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(match number(arguments, 0)? {
        Number::Finite(decimal) => i64::from(decimal.least_scale()).into(),
        _ => Owned::Null,
    })
}

fn scale(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(match number(arguments, 0)? {
        Number::Finite(decimal) => i64::from(decimal.scale).into(),
        _ => Owned::Null,
    })
}

fn gcd(arguments: Arguments<'_>) -> Result<Owned> {
    let (Number::Finite(left), Number::Finite(right)) = pair(arguments)? else {
        return Ok("NaN".into());
    };
    let scale = left.scale.max(right.scale);
    let divisor = left
        .extended(scale)
        .unscaled
        .greatest_common_divisor(&right.extended(scale).unscaled);
    Number::from(Decimal::new(divisor, scale)).store()
}

fn lcm(arguments: Arguments<'_>) -> Result<Owned> {
    let (Number::Finite(left), Number::Finite(right)) = pair(arguments)? else {
        return Ok("NaN".into());
    };
    let scale = left.scale.max(right.scale);
    if left.is_zero() || right.is_zero() {
        return Number::from(Decimal::zero_at(i64::from(scale))).store();
    }
    let (left, right) = (left.extended(scale).unscaled, right.extended(scale).unscaled);
    let divisor = left.greatest_common_divisor(&right);
    let multiple = left.divide(&divisor).0.multiply(&right).absolute();
    Number::from(Decimal::new(multiple, scale)).store()
}

fn factorial(arguments: Arguments<'_>) -> Result<Owned> {
    let count = arguments.integer(0)?;
    if count < 0 {
        return Err(ValueError::new("22003", "factorial of a negative number is undefined"));
    }
    // 32178! is too long to store.
    if count > 32_177 {
        return Err(overflow());
    }
    let product = (2..=count).fold(Whole::Small(1), |product, factor| {
        product.multiply(&Whole::Small(i128::from(factor)))
    });
    Number::from(Decimal::new(product, 0)).store()
}

fn width_bucket(arguments: Arguments<'_>) -> Result<Owned> {
    let invalid = |message: &str| Err(ValueError::new("2201G", message));
    let (operand, low, high) = (number(arguments, 0)?, number(arguments, 1)?, number(arguments, 2)?);
    let count = arguments.integer(3)?;
    if count <= 0 {
        return invalid("count must be greater than zero");
    }
    if [&operand, &low, &high].contains(&&Number::Nan) {
        return invalid("operand, lower bound, and upper bound cannot be NaN");
    }
    let (Number::Finite(from), Number::Finite(to)) = (&low, &high) else {
        return invalid("lower and upper bounds must be finite");
    };
    let rising = match from.compare(to) {
        Ordering::Equal => return invalid("lower bound cannot equal upper bound"),
        order => order == Ordering::Less,
    };
    // Falling bounds are rising ones seen from the other side.
    let side = |order: Ordering| if rising { order } else { order.reverse() };
    let bucket = if side(operand.compare(&low)) == Ordering::Less {
        0
    } else if side(operand.compare(&high)) != Ordering::Less {
        i128::from(count) + 1
    } else {
        let Number::Finite(operand) = &operand else {
            unreachable!("an infinity is at or outside of a bound");
        };
        let (distance, width) = (operand.subtract(from).absolute(), to.subtract(from).absolute());
        let times = distance.multiply(&Decimal::from(i128::from(count)));
        let quotient = times.divide(&width, division_scale(&times, &width), true)?;
        floor_of(&quotient.add(&Decimal::from(1)))
            .unscaled
            .to_i128()
            .unwrap_or(i128::MAX)
    };
    Width::Four.fit(bucket)
}

fn to_integer(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let special = |what: &str| {
        Err(ValueError::new(
            "0A000",
            format!("cannot convert {what} to {}", width.name()),
        ))
    };
    match number(arguments, 0)? {
        Number::Nan => special("NaN"),
        Number::Finite(decimal) => width.fit(decimal.rounded(0).unscaled.to_i128().unwrap_or(i128::MAX)),
        _ => special("infinity"),
    }
}

fn from_integer(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(arguments.integer(0)?.to_string().into())
}

fn to_float8(arguments: Arguments<'_>) -> Result<Owned> {
    crate::float::parse8(arguments.text(0)?)
}

fn to_float4(arguments: Arguments<'_>) -> Result<Owned> {
    crate::float::parse4(arguments.text(0)?)
}

/// A float as a numeric, by way of C's `%.15g`: so many significant digits, and no more scale than they need.
fn from_float(float: f64, digits: usize) -> Result<Owned> {
    if float.is_infinite() {
        return Number::infinite(if float > 0.0 { 1 } else { -1 }).store();
    }
    let scientific = format!("{float:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i64 = exponent.parse().expect("an exponent is an integer");
    let mut mantissa = mantissa.trim_end_matches('0').to_owned();
    mantissa.retain(|character| character != '.');
    let digits = mantissa.trim_start_matches('-');
    let scale = i64::try_from(digits.len()).expect("few digits") - 1 - exponent;
    let magnitude = Whole::from_digits(digits.as_bytes());
    let unscaled = if mantissa.starts_with('-') {
        magnitude.negated()
    } else {
        magnitude
    };
    if unscaled.is_zero() {
        return Ok("0".into());
    }
    let decimal = match u32::try_from(scale) {
        Ok(scale) => Decimal::new(unscaled, scale),
        Err(_) => Decimal::new(
            unscaled.multiply(&Whole::power_of_ten(u32::try_from(-scale).expect("below zero"))),
            0,
        ),
    };
    Number::from(decimal).store()
}

fn with_modifier(arguments: Arguments<'_>) -> Result<Owned> {
    let typmod = i32::try_from(arguments.integer(1)?).unwrap_or(-1);
    apply_modifier(number(arguments, 0)?, typmod)?.store()
}

fn larger(arguments: Arguments<'_>) -> Result<Owned> {
    arguments
        .text(usize::from(compared(arguments)? != Ordering::Greater))
        .map(Owned::from)
}

fn smaller(arguments: Arguments<'_>) -> Result<Owned> {
    arguments
        .text(usize::from(compared(arguments)? != Ordering::Less))
        .map(Owned::from)
}

fn logarithm_base_ten(arguments: Arguments<'_>) -> Result<Owned> {
    Number::from(10).logarithm_of(&number(arguments, 0)?)?.store()
}

/// See [`crate::function()`].
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("numeric_add", add),
    Function::new("numeric_sub", subtract),
    Function::new("numeric_mul", multiply),
    Function::new("numeric_div", divide),
    Function::new("numeric_div_trunc", divide_truncating),
    Function::new("numeric_mod", modulo),
    Function::new("numeric_uminus", |arguments| number(arguments, 0)?.negated().store()),
    Function::new("numeric_uplus", |arguments| number(arguments, 0)?.store()),
    Function::new("numeric_abs", |arguments| number(arguments, 0)?.absolute().store()),
    Function::new("numeric_sign", sign),
    Function::new("numeric_inc", |arguments| {
        of_finite(arguments, |decimal| Ok(decimal.add(&Decimal::from(1))))
    }),
    Function::new("numeric_round", round),
    Function::new("round(numeric)", |arguments| {
        of_finite(arguments, |decimal| Ok(decimal.rounded(0)))
    }),
    Function::new("numeric_trunc", truncate),
    Function::new("trunc(numeric)", |arguments| {
        of_finite(arguments, |decimal| Ok(decimal.truncated(0)))
    }),
    Function::new("numeric_ceil", |arguments| {
        of_finite(arguments, |decimal| Ok(ceiling_of(&decimal)))
    }),
    Function::new("numeric_floor", |arguments| {
        of_finite(arguments, |decimal| Ok(floor_of(&decimal)))
    }),
    Function::new("numeric_scale", scale),
    Function::new("numeric_min_scale", least_scale),
    Function::new("numeric_trim_scale", |arguments| {
        of_finite(arguments, |decimal| {
            Ok(decimal.truncated(i64::from(decimal.least_scale())))
        })
    }),
    Function::new("numeric_gcd", gcd),
    Function::new("numeric_lcm", lcm),
    Function::new("numeric_fac", factorial),
    Function::new("numeric_sqrt", |arguments| number(arguments, 0)?.square_root()?.store()),
    Function::new("numeric_exp", |arguments| number(arguments, 0)?.exponential()?.store()),
    Function::new("numeric_ln", |arguments| {
        number(arguments, 0)?.natural_logarithm()?.store()
    }),
    Function::new("numeric_log", |arguments| {
        let (base, value) = pair(arguments)?;
        base.logarithm_of(&value)?.store()
    }),
    Function::new("log(numeric)", logarithm_base_ten),
    Function::new("log10(numeric)", logarithm_base_ten),
    Function::new("numeric_power", power),
    Function::new("width_bucket_numeric", width_bucket),
    Function::new("numeric_eq", |arguments| {
        Ok((compared(arguments)? == Ordering::Equal).into())
    }),
    Function::new("numeric_ne", |arguments| {
        Ok((compared(arguments)? != Ordering::Equal).into())
    }),
    Function::new("numeric_lt", |arguments| {
        Ok((compared(arguments)? == Ordering::Less).into())
    }),
    Function::new("numeric_le", |arguments| {
        Ok((compared(arguments)? != Ordering::Greater).into())
    }),
    Function::new("numeric_gt", |arguments| {
        Ok((compared(arguments)? == Ordering::Greater).into())
    }),
    Function::new("numeric_ge", |arguments| {
        Ok((compared(arguments)? != Ordering::Less).into())
    }),
    Function::new("numeric_cmp", |arguments| {
        Ok(i64::from(compared(arguments)? as i8).into())
    }),
    Function::new("numeric_larger", larger),
    Function::new("numeric_smaller", smaller),
    Function::new("numeric", with_modifier),
    Function::new("numeric_int2", |arguments| to_integer(Width::Two, arguments)),
    Function::new("numeric_int4", |arguments| to_integer(Width::Four, arguments)),
    Function::new("numeric_int8", |arguments| to_integer(Width::Eight, arguments)),
    Function::new("int2_numeric", from_integer),
    Function::new("int4_numeric", from_integer),
    Function::new("int8_numeric", from_integer),
    Function::new("numeric_float4", to_float4),
    Function::new("numeric_float8", to_float8),
    Function::new("float4_numeric", |arguments| from_float(arguments.real(0)?, 6)),
    Function::new("float8_numeric", |arguments| from_float(arguments.real(0)?, 15)),
];
