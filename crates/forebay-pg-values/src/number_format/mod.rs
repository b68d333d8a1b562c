//! to_char of numbers, and to_number.
//!
//! Promises: PostgreSQL's results to the letter, the odd ones too, in the locale C (point, comma, no currency). What its manual leaves open
//! is as its `formatting.c` (version 15) has it: the picture is parsed into items and a description; the number is laid out as digits
//! around a point; the items then take from those digits one by one.

mod input;
mod output;
mod picture;

use crate::integer::Width;
use crate::numeric::{Decimal, Number};
use crate::{Arguments, Function, Owned, Result, ValueError};
use output::{Laid, Signed};
use picture::{Description, Item};

/// Digits behind the point that a numeric is rounded to at most.
const SCALE_MAX: i64 = 16_383;

/// What kind of result the description asks for.
enum Shape {
    Roman,
    Scientific,
    Plain,
}

fn shape(description: &Description) -> Shape {
    if description.roman {
        Shape::Roman
    } else if description.scientific {
        Shape::Scientific
    } else {
        Shape::Plain
    }
}

/// The part that all kinds of numbers share: the picture is read, the number laid out by `lay`, and the items written.
fn formatted(arguments: Arguments<'_>, lay: impl FnOnce(&mut Description) -> Result<Laid>) -> Result<Owned> {
    let picture = arguments.text(1)?;
    if picture.is_empty() {
        return Ok("".into());
    }
    let (items, mut description): (Vec<Item>, Description) = picture::parse(picture)?;
    let laid = lay(&mut description)?;
    if description.scientific {
        return Ok(laid.number.into());
    }
    output::write(&items, description, laid).map(Owned::from)
}

/// A number of digits in front of the point; what does not fit is shown as hashes.
fn fitted(description: &Description, signed: Signed) -> Laid {
    let before = signed.digits.find('.').unwrap_or(signed.digits.len());
    let (pre, post) = (description.pre, description.post);
    let (number, spaces) = if before <= pre {
        (signed.digits, pre - before)
    } else {
        let mut hashes = "#".repeat(pre + post + 1);
        hashes.replace_range(pre..=pre, ".");
        (hashes, 0)
    };
    Laid {
        number,
        spaces,
        sign: signed.sign,
    }
}

/// Splits the sign off.
fn signed(text: &str) -> Signed {
    match text.strip_prefix('-') {
        Some(digits) => Signed {
            sign: b'-',
            digits: digits.to_owned(),
        },
        None => Signed {
            sign: b'+',
            digits: text.to_owned(),
        },
    }
}

/// Text that is complete as it is.
fn complete(number: String) -> Laid {
    Laid {
        number,
        spaces: 0,
        sign: 0,
    }
}

/// What stands for an infinity or NaN in scientific notation.
fn hashes(description: &Description) -> Laid {
    let mut hashes = "#".repeat(description.pre + description.post + 6);
    hashes.replace_range(0..1, " ");
    hashes.replace_range(description.pre + 1..description.pre + 2, ".");
    complete(hashes)
}

/// A blank where a minus sign would be.
fn with_blank(text: &str) -> Laid {
    complete(if text.starts_with('-') {
        text.to_owned()
    } else {
        format!(" {text}")
    })
}

fn integer_digits(description: &Description, integer: i64) -> Laid {
    let mut signed = signed(&integer.to_string());
    if description.post > 0 {
        signed.digits.push('.');
        signed.digits.extend(std::iter::repeat_n('0', description.post));
    }
    fitted(description, signed)
}

/// C's `%.*e`.
fn scientific(float: f64, digits: usize) -> String {
    let text = format!("{float:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn decimal_scientific(decimal: &Decimal, digits: usize) -> Result<String> {
    let exponent = decimal.magnitude();
    let power = Number::from(10).power(&Number::from(exponent.abs()))?;
    let (Number::Finite(power), scale) = (power, i64::try_from(digits).unwrap_or(i64::MAX)) else {
        unreachable!("a power of ten is finite");
    };
    let significand = if exponent >= 0 {
        decimal.divide(&power, scale, true)?
    } else {
        decimal.multiply(&power).rounded(scale)
    };
    let mut text = String::new();
    significand.write(&mut text);
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{text}e{sign}{:02}", exponent.unsigned_abs()))
}

fn from_int4(arguments: Arguments<'_>) -> Result<Owned> {
    let integer = arguments.integer(0)?;
    formatted(arguments, |description| match shape(description) {
        Shape::Roman => Ok(complete(output::roman(integer))),
        #[allow(clippy::cast_precision_loss, reason = "an int fits")]
        Shape::Scientific => Ok(with_blank(&scientific(integer as f64, description.post))),
        Shape::Plain => {
            let mut integer = integer;
            if description.multiply {
                let power = u32::try_from(description.multiplied)
                    .ok()
                    .and_then(|digits| 10_i64.checked_pow(digits));
                integer = power
                    .and_then(|power| integer.checked_mul(power))
                    .filter(|product| power <= Some(1_000_000_000) && i32::try_from(*product).is_ok())
                    // PostgreSQL's product wraps.
                    .ok_or_else(|| ValueError::unsupported("to_char of an integer that V takes out of its range is"))?;
                description.pre += description.multiplied;
            }
            Ok(integer_digits(description, integer))
        }
    })
}

fn from_int8(arguments: Arguments<'_>) -> Result<Owned> {
    let integer = arguments.integer(0)?;
    formatted(arguments, |description| match shape(description) {
        Shape::Roman => {
            Width::Four.fit(i128::from(integer))?;
            Ok(complete(output::roman(integer)))
        }
        Shape::Scientific => Ok(with_blank(&decimal_scientific(
            &Decimal::from(i128::from(integer)),
            description.post,
        )?)),
        Shape::Plain => {
            let mut integer = integer;
            if description.multiply {
                let power = u32::try_from(description.multiplied)
                    .ok()
                    .and_then(|digits| 10_i64.checked_pow(digits));
                integer = power
                    .and_then(|power| integer.checked_mul(power))
                    .ok_or_else(|| ValueError::out_of_range("bigint"))?;
                description.pre += description.multiplied;
            }
            Ok(integer_digits(description, integer))
        }
    })
}

fn from_numeric(arguments: Arguments<'_>) -> Result<Owned> {
    let number = Number::stored(arguments.text(0)?)?;
    formatted(arguments, |description| match (shape(description), &number) {
        (Shape::Roman, Number::Finite(decimal)) => {
            let whole = decimal.rounded(0).unscaled.to_i128().unwrap_or(i128::MAX);
            Width::Four.fit(whole)?;
            Ok(complete(output::roman(i64::try_from(whole).expect("fits an int"))))
        }
        (Shape::Roman, Number::Nan) => Err(ValueError::new("0A000", "cannot convert NaN to integer")),
        (Shape::Roman, _) => Err(ValueError::new("0A000", "cannot convert infinity to integer")),
        (Shape::Scientific, Number::Finite(decimal)) => Ok(with_blank(&decimal_scientific(decimal, description.post)?)),
        (Shape::Scientific, _) => Ok(hashes(description)),
        (Shape::Plain, number) => {
            let mut number = number.clone();
            if description.multiply {
                let digits = i64::try_from(description.multiplied).unwrap_or(i64::MAX);
                number = number.multiply(&Number::from(10).power(&Number::from(digits))?);
                description.pre += description.multiplied;
            }
            if let Number::Finite(decimal) = number {
                let rounded = decimal.rounded(i64::try_from(description.post).unwrap_or(i64::MAX).min(SCALE_MAX));
                number = Number::Finite(rounded.checked()?);
            }
            let mut text = String::new();
            number.write(&mut text);
            Ok(fitted(description, signed(&text)))
        }
    })
}

/// Either kind of float: `digits` is how many digits a value of it holds.
fn from_float(arguments: Arguments<'_>, digits: usize) -> Result<Owned> {
    let float = arguments.real(0)?;
    formatted(arguments, |description| match shape(description) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "what is too large is shown as hashes anyway"
        )]
        Shape::Roman => Ok(complete(output::roman(float.round_ties_even() as i64))),
        // PostgreSQL computes no more digits, and fills with zeros.
        Shape::Scientific if description.post > 350 => Err(ValueError::unsupported("so long a format is")),
        Shape::Scientific if float.is_finite() => Ok(with_blank(&scientific(float, description.post))),
        Shape::Scientific => Ok(hashes(description)),
        Shape::Plain => {
            let mut float = float;
            if description.multiply {
                float = multiplied(float, description.multiplied, digits)?;
                description.pre += description.multiplied;
            }
            if !float.is_finite() {
                let text = if float > 0.0 { "Infinity" } else { "-Infinity" };
                description.post = description.post.min(digits.saturating_sub(8));
                return Ok(fitted(description, signed(text)));
            }
            let before = format!("{:.0}", float.abs()).len();
            description.post = description.post.min(digits.saturating_sub(before));
            let post = description.post;
            Ok(fitted(description, signed(&format!("{float:.post$}"))))
        }
    })
}

/// Times a power of ten, in the arithmetic of the type.
fn multiplied(float: f64, places: usize, digits: usize) -> Result<f64> {
    let places = i32::try_from(places).map_err(|_| ValueError::unsupported("so long a format is"))?;
    let power = 10_f64.powf(f64::from(places));
    #[allow(clippy::cast_possible_truncation, reason = "a real is computed as one")]
    let product = if digits == 6 {
        f64::from(float as f32 * power as f32)
    } else {
        float * power
    };
    if product.is_nan() {
        return Err(ValueError::unsupported("to_char of NaN is"));
    }
    Ok(product)
}

/// See [`crate::function()`].
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("int4_to_char", from_int4),
    Function::new("int8_to_char", from_int8),
    Function::new("numeric_to_char", from_numeric),
    Function::new("float4_to_char", |arguments| from_float(arguments, 6)),
    Function::new("float8_to_char", |arguments| from_float(arguments, 15)),
    Function::new("numeric_to_number", input::to_number),
];
