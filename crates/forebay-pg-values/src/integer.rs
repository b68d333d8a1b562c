//! smallint, integer, bigint and oid: their text, arithmetic, bits, and casts among themselves.
//!
//! Every result is held to its type's range, as PostgreSQL does it; nothing wraps. Knows no floats and no decimals.

use crate::{Arguments, Function, Owned, Result, ValueError};

/// One of the integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Two,
    Four,
    Eight,
}

impl Width {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Two => "smallint",
            Self::Four => "integer",
            Self::Eight => "bigint",
        }
    }

    fn holds(self, integer: i128) -> bool {
        match self {
            Self::Two => i16::try_from(integer).is_ok(),
            Self::Four => i32::try_from(integer).is_ok(),
            Self::Eight => i64::try_from(integer).is_ok(),
        }
    }

    /// The value as one of this type, or `integer out of range`.
    pub(crate) fn fit(self, integer: i128) -> Result<Owned> {
        match i64::try_from(integer) {
            Ok(fitting) if self.holds(integer) => Ok(Owned::Integer(fitting)),
            _ => Err(ValueError::out_of_range(self.name())),
        }
    }
}

/// isspace() in the C locale.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads an integer of that type: spaces around it, a sign, decimal digits.
pub(crate) fn parse(width: Width, text: &str) -> Result<Owned> {
    let invalid = || ValueError::invalid_text("22P02", width.name(), text);
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|byte| !is_space(*byte)).ok_or_else(invalid)?;
    let (negative, start) = match bytes[start] {
        b'-' => (true, start + 1),
        b'+' => (false, start + 1),
        _ => (false, start),
    };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Err(invalid());
    }
    let mut value: i128 = 0;
    for digit in &bytes[start..start + length] {
        value = value * 10 + i128::from(digit - b'0');
        // Before what follows is looked at: what is out of range is so whatever stands behind it.
        if !width.holds(if negative { -value } else { value }) {
            return Err(ValueError::new(
                "22003",
                format!("value \"{text}\" is out of range for type {}", width.name()),
            ));
        }
    }
    if !bytes[start + length..].iter().copied().all(is_space) {
        return Err(invalid());
    }
    width.fit(if negative { -value } else { value })
}

/// Reads an oid as C's strtoul does: a minus sign counts back from 2^32.
pub(crate) fn parse_oid(text: &str) -> Result<Owned> {
    let invalid = || ValueError::invalid_text("22P02", "oid", text);
    let out_of_range = || ValueError::new("22003", format!("value \"{text}\" is out of range for type oid"));
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|byte| !is_space(*byte)).ok_or_else(invalid)?;
    let (negative, start) = match bytes[start] {
        b'-' => (true, start + 1),
        b'+' => (false, start + 1),
        _ => (false, start),
    };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Err(invalid());
    }
    let magnitude = bytes[start..start + length].iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    let magnitude = magnitude.ok_or_else(out_of_range)?;
    if !bytes[start + length..].iter().copied().all(is_space) {
        return Err(invalid());
    }
    let value = if negative { magnitude.wrapping_neg() } else { magnitude };
    let low = u32::try_from(value & 0xFFFF_FFFF).expect("masked to 32 bits");
    // What strtoul gives fits if it is 32 bits wide, or the same with the sign spread over the upper half.
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the bits are what counts"
    )]
    let spread = i64::from(low as i32) as u64;
    if value != u64::from(low) && value != spread {
        return Err(out_of_range());
    }
    Ok(Owned::Integer(i64::from(low)))
}

/// Writes an integer of any type.
pub(crate) fn write(integer: i64, out: &mut String) {
    use std::fmt::Write;
    write!(out, "{integer}").expect("a String takes everything");
}

fn pair(arguments: Arguments<'_>) -> Result<(i128, i128)> {
    Ok((i128::from(arguments.integer(0)?), i128::from(arguments.integer(1)?)))
}

fn one(arguments: Arguments<'_>) -> Result<i128> {
    Ok(i128::from(arguments.integer(0)?))
}

fn add(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    width.fit(left + right)
}

fn subtract(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    width.fit(left - right)
}

fn multiply(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    width.fit(left * right)
}

fn divide(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    if right == 0 {
        return Err(ValueError::division_by_zero());
    }
    width.fit(left / right)
}

fn modulo(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    if right == 0 {
        return Err(ValueError::division_by_zero());
    }
    width.fit(left % right)
}

fn greatest_common_divisor(left: i128, right: i128) -> i128 {
    let (mut left, mut right) = (left.abs(), right.abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

fn gcd(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    width.fit(greatest_common_divisor(left, right))
}

fn lcm(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (left, right) = pair(arguments)?;
    if left == 0 || right == 0 {
        return Ok(Owned::Integer(0));
    }
    width.fit((left / greatest_common_divisor(left, right) * right).abs())
}

/// The count goes through the processor's own mask (five bits; six for bigint), as in the C that PostgreSQL is built from on x86-64.
fn shift_left(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (value, count) = (arguments.integer(0)?, arguments.integer(1)?);
    Ok(Owned::Integer(match width {
        #[allow(clippy::cast_possible_truncation, reason = "bits beyond the type are lost, as in C")]
        Width::Two => i64::from(((value as i32) << (count & 31)) as i16),
        #[allow(clippy::cast_possible_truncation, reason = "bits beyond the type are lost, as in C")]
        Width::Four => i64::from((value as i32) << (count & 31)),
        Width::Eight => value << (count & 63),
    }))
}

fn shift_right(width: Width, arguments: Arguments<'_>) -> Result<Owned> {
    let (value, count) = (arguments.integer(0)?, arguments.integer(1)?);
    Ok(Owned::Integer(match width {
        Width::Two | Width::Four => value >> (count & 31),
        Width::Eight => value >> (count & 63),
    }))
}

fn bit_and(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)? & arguments.integer(1)?))
}

fn bit_or(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)? | arguments.integer(1)?))
}

fn bit_xor(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)? ^ arguments.integer(1)?))
}

fn bit_not(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(!arguments.integer(0)?))
}

fn same(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)?))
}

fn larger(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)?.max(arguments.integer(1)?)))
}

fn smaller(arguments: Arguments<'_>) -> Result<Owned> {
    Ok(Owned::Integer(arguments.integer(0)?.min(arguments.integer(1)?)))
}

fn to_oid(arguments: Arguments<'_>) -> Result<Owned> {
    let integer = arguments.integer(0)?;
    u32::try_from(integer).map_err(|_| ValueError::out_of_range("OID"))?;
    Ok(Owned::Integer(integer))
}

/// See [`crate::function()`].
pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("int2pl", |arguments| add(Width::Two, arguments)),
    Function::new("int2mi", |arguments| subtract(Width::Two, arguments)),
    Function::new("int2mul", |arguments| multiply(Width::Two, arguments)),
    Function::new("int2div", |arguments| divide(Width::Two, arguments)),
    Function::new("int2mod", |arguments| modulo(Width::Two, arguments)),
    Function::new("int2um", |arguments| Width::Two.fit(-one(arguments)?)),
    Function::new("int2up", same),
    Function::new("int2abs", |arguments| Width::Two.fit(one(arguments)?.abs())),
    Function::new("int2shl", |arguments| shift_left(Width::Two, arguments)),
    Function::new("int2shr", |arguments| shift_right(Width::Two, arguments)),
    Function::new("int2and", bit_and),
    Function::new("int2or", bit_or),
    Function::new("int2xor", bit_xor),
    Function::new("int2not", bit_not),
    Function::new("int2larger", larger),
    Function::new("int2smaller", smaller),
    Function::new("int4pl", |arguments| add(Width::Four, arguments)),
    Function::new("int4mi", |arguments| subtract(Width::Four, arguments)),
    Function::new("int4mul", |arguments| multiply(Width::Four, arguments)),
    Function::new("int4div", |arguments| divide(Width::Four, arguments)),
    Function::new("int4mod", |arguments| modulo(Width::Four, arguments)),
    Function::new("int4um", |arguments| Width::Four.fit(-one(arguments)?)),
    Function::new("int4up", same),
    Function::new("int4abs", |arguments| Width::Four.fit(one(arguments)?.abs())),
    Function::new("int4shl", |arguments| shift_left(Width::Four, arguments)),
    Function::new("int4shr", |arguments| shift_right(Width::Four, arguments)),
    Function::new("int4and", bit_and),
    Function::new("int4or", bit_or),
    Function::new("int4xor", bit_xor),
    Function::new("int4not", bit_not),
    Function::new("int4larger", larger),
    Function::new("int4smaller", smaller),
    Function::new("int8pl", |arguments| add(Width::Eight, arguments)),
    Function::new("int8mi", |arguments| subtract(Width::Eight, arguments)),
    Function::new("int8mul", |arguments| multiply(Width::Eight, arguments)),
    Function::new("int8div", |arguments| divide(Width::Eight, arguments)),
    Function::new("int8mod", |arguments| modulo(Width::Eight, arguments)),
    Function::new("int8um", |arguments| Width::Eight.fit(-one(arguments)?)),
    Function::new("int8up", same),
    Function::new("int8abs", |arguments| Width::Eight.fit(one(arguments)?.abs())),
    Function::new("int8shl", |arguments| shift_left(Width::Eight, arguments)),
    Function::new("int8shr", |arguments| shift_right(Width::Eight, arguments)),
    Function::new("int8and", bit_and),
    Function::new("int8or", bit_or),
    Function::new("int8xor", bit_xor),
    Function::new("int8not", bit_not),
    Function::new("int8larger", larger),
    Function::new("int8smaller", smaller),
    Function::new("int24pl", |arguments| add(Width::Four, arguments)),
    Function::new("int24mi", |arguments| subtract(Width::Four, arguments)),
    Function::new("int24mul", |arguments| multiply(Width::Four, arguments)),
    Function::new("int24div", |arguments| divide(Width::Four, arguments)),
    Function::new("int28pl", |arguments| add(Width::Eight, arguments)),
    Function::new("int28mi", |arguments| subtract(Width::Eight, arguments)),
    Function::new("int28mul", |arguments| multiply(Width::Eight, arguments)),
    Function::new("int28div", |arguments| divide(Width::Eight, arguments)),
    Function::new("int42pl", |arguments| add(Width::Four, arguments)),
    Function::new("int42mi", |arguments| subtract(Width::Four, arguments)),
    Function::new("int42mul", |arguments| multiply(Width::Four, arguments)),
    Function::new("int42div", |arguments| divide(Width::Four, arguments)),
    Function::new("int48pl", |arguments| add(Width::Eight, arguments)),
    Function::new("int48mi", |arguments| subtract(Width::Eight, arguments)),
    Function::new("int48mul", |arguments| multiply(Width::Eight, arguments)),
    Function::new("int48div", |arguments| divide(Width::Eight, arguments)),
    Function::new("int82pl", |arguments| add(Width::Eight, arguments)),
    Function::new("int82mi", |arguments| subtract(Width::Eight, arguments)),
    Function::new("int82mul", |arguments| multiply(Width::Eight, arguments)),
    Function::new("int82div", |arguments| divide(Width::Eight, arguments)),
    Function::new("int84pl", |arguments| add(Width::Eight, arguments)),
    Function::new("int84mi", |arguments| subtract(Width::Eight, arguments)),
    Function::new("int84mul", |arguments| multiply(Width::Eight, arguments)),
    Function::new("int84div", |arguments| divide(Width::Eight, arguments)),
    Function::new("int4gcd", |arguments| gcd(Width::Four, arguments)),
    Function::new("int4lcm", |arguments| lcm(Width::Four, arguments)),
    Function::new("int4inc", |arguments| Width::Four.fit(one(arguments)? + 1)),
    Function::new("int8gcd", |arguments| gcd(Width::Eight, arguments)),
    Function::new("int8lcm", |arguments| lcm(Width::Eight, arguments)),
    Function::new("int8inc", |arguments| Width::Eight.fit(one(arguments)? + 1)),
    Function::new("int8dec", |arguments| Width::Eight.fit(one(arguments)? - 1)),
    Function::new("i2toi4", same),
    Function::new("int28", same),
    Function::new("int48", same),
    Function::new("oidtoi8", same),
    Function::new("i4toi2", |arguments| Width::Two.fit(one(arguments)?)),
    Function::new("int82", |arguments| Width::Two.fit(one(arguments)?)),
    Function::new("int84", |arguments| Width::Four.fit(one(arguments)?)),
    Function::new("i8tooid", to_oid),
    Function::new("oidlarger", larger),
    Function::new("oidsmaller", smaller),
];
