//! One parameter of one statement: how a value is sent for the type that the server described.
//!
//! Promises: `takes` and [`check`] tell what encoding will do; after they agree, encoding does not fail. Text is always sent
//! as text, for the server to read; numbers, bytes and arrays of them go in binary, and so nothing about them is left to read.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use postgres_types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

use super::element::{Element, has_nul};
use super::kind::{Misfit, base_of, is_text, is_vector, kind_of, member_of, name_of};
use super::list;
use forebay_write::{StatementError, StatementErrorKind, Value};

/// What all parameters of a statement may weigh on the wire. The server closes the connection on a message of 1 GiB or more,
/// which would take the neighbours down with it.
pub(crate) const PARAMETERS_BYTES_MAX: usize = (1 << 30) - (1 << 20);

/// The server's own limit.
const DIMENSIONS_MAX: usize = 6;

/// A value as the parameter of a described type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter<'a>(pub(crate) &'a Value);

/// How a value is sent.
enum Form<'a> {
    Null,
    /// In text, as it is.
    Text(&'a str),
    /// In text: the number's digits, or the moment's.
    Digits(&'a Value),
    Binary(Element),
    /// In binary, if all the elements are; as a literal otherwise.
    Array {
        values: &'a [Value],
        shape: Shape,
        member: &'a Type,
        binary: Option<Element>,
    },
}

/// Whether the parameter's type takes the value; if not, why.
///
/// # Errors
/// With the reason, in words for the caller: "the integer 7 cannot be of type bool: 0, 1 or text is wanted".
#[cfg(test)]
pub(crate) fn takes(parameter: &Type, value: &Value) -> Result<(), String> {
    form(parameter, value).map(drop).map_err(|misfit| misfit.0)
}

/// Whether a statement whose parameters have these types takes these values; nothing is sent.
///
/// # Errors
/// [`StatementErrorKind::ParameterCount`], [`StatementErrorKind::Type`] with the parameter's number and why it cannot be, or
/// [`StatementErrorKind::TooLarge`].
pub(crate) fn check(types: &[Type], values: &[Value]) -> Result<(), StatementError> {
    if types.len() != values.len() {
        let message = format!(
            "the statement has {} parameters, and {} were given",
            types.len(),
            values.len()
        );
        return Err(StatementError::new(StatementErrorKind::ParameterCount, 0, message));
    }
    let mut bytes = 0_usize;
    for (index, (parameter, value)) in types.iter().zip(values).enumerate() {
        form(parameter, value).map_err(|misfit| {
            let message = format!("parameter ${}: {misfit}", index + 1);
            StatementError::new(StatementErrorKind::Type, 0, message)
        })?;
        bytes = bytes.saturating_add(wire_bytes_max(value));
    }
    if bytes > PARAMETERS_BYTES_MAX {
        let message = format!("the parameters weigh up to {bytes} bytes, the limit is {PARAMETERS_BYTES_MAX}");
        return Err(StatementError::new(StatementErrorKind::TooLarge, 0, message));
    }
    Ok(())
}

/// Not less than what the value weighs on the wire, whatever its type.
fn wire_bytes_max(value: &Value) -> usize {
    match value {
        Value::Null | Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) | Value::Timestamp(_) => 48,
        Value::Text(text) => text.len() + 5,
        Value::Blob(bytes) => bytes.len() + 4,
        Value::Array(values) => values.iter().fold(64, |sum: usize, value| {
            let element = match value {
                // In a literal, each byte may need an escape or be two digits; quotes, a comma and `\\\\x` are around them.
                Value::Text(_) | Value::Blob(_) => wire_bytes_max(value).saturating_mul(2),
                _ => wire_bytes_max(value),
            };
            sum.saturating_add(element)
        }),
    }
}

fn form<'a>(parameter: &'a Type, value: &'a Value) -> Result<Form<'a>, Misfit> {
    let base = base_of(parameter);
    let misfit = || Misfit::of(value, parameter);
    match value {
        Value::Null => Ok(Form::Null),
        Value::Text(text) if has_nul(text) => Err(misfit()),
        Value::Text(text) => Ok(Form::Text(text)),
        Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) | Value::Blob(_) | Value::Timestamp(_) => {
            match Element::of(base) {
                Some(element) if element.fits(value) => Ok(Form::Binary(element)),
                None if is_text(base) && matches!(value, Value::Timestamp(_)) => Ok(Form::Digits(value)),
                None if takes_digits(base) && !matches!(value, Value::Blob(_) | Value::Timestamp(_)) => {
                    Ok(Form::Digits(value))
                }
                _ => Err(misfit()),
            }
        }
        Value::Array(values) => {
            let member = member_of(base).filter(|_| !is_vector(base)).ok_or_else(misfit)?;
            let shape = Shape::of(values).ok_or_else(|| {
                Misfit(format!(
                    "an array whose lists differ in length or depth, or that is deeper than {DIMENSIONS_MAX}, cannot be of \
                     type {}",
                    name_of(parameter)
                ))
            })?;
            let mut binary = Element::of(member);
            each_leaf(values, &mut |leaf| {
                form(member, leaf).map_err(|misfit| Misfit(format!("in the array, {misfit}")))?;
                binary = binary.filter(|element| element.fits(leaf));
                Ok(())
            })?;
            Ok(Form::Array {
                values,
                shape,
                member,
                binary,
            })
        }
    }
}

/// Whether a number, in its digits, may be a value of a type that has no [`Element`]: texts, what stands for a number, and
/// types that somebody else made.
fn takes_digits(base: &Type) -> bool {
    /// The first number of an object that is not the server's own.
    const FIRST_NORMAL_OID: u32 = 16_384;
    match base.kind() {
        Kind::Simple => {
            is_text(base)
                || base.oid() >= FIRST_NORMAL_OID
                || matches!(
                    *base,
                    Type::CHAR
                        | Type::MONEY
                        | Type::XID
                        | Type::XID8
                        | Type::CID
                        | Type::REGCLASS
                        | Type::REGTYPE
                        | Type::REGPROC
                        | Type::REGPROCEDURE
                        | Type::REGOPER
                        | Type::REGOPERATOR
                        | Type::REGROLE
                        | Type::REGNAMESPACE
                )
        }
        _ => is_text(base),
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, parameter: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let misfit = |value: &Value| Misfit(format!("{} cannot be of type {}", kind_of(value), name_of(parameter)));
        match form(parameter, self.0)? {
            Form::Null => return Ok(IsNull::Yes),
            Form::Text(text) => out.put_slice(text.as_bytes()),
            Form::Digits(number) => Element::Text.spell(number, out),
            Form::Binary(element) => element.payload(self.0, out).ok_or_else(|| misfit(self.0))?,
            Form::Array {
                values,
                shape,
                member,
                binary: Some(element),
            } => {
                shape.write(member, out);
                if !shape.is_empty() {
                    each_leaf(values, &mut |leaf| element.field(leaf, out).ok_or_else(|| misfit(leaf)))?;
                }
            }
            Form::Array { values, member, .. } => list::array(values, member, out),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        // `to_sql` says what is wrong in better words.
        true
    }

    fn encode_format(&self, parameter: &Type) -> Format {
        match form(parameter, self.0) {
            Ok(Form::Text(_) | Form::Digits(_) | Form::Array { binary: None, .. }) => Format::Text,
            // An error is told by `to_sql`.
            Ok(_) | Err(_) => Format::Binary,
        }
    }

    to_sql_checked!();
}

/// How long an array is in each of its dimensions.
struct Shape {
    lengths: [usize; DIMENSIONS_MAX],
    /// `1 <= dimensions <= DIMENSIONS_MAX`
    dimensions: usize,
}

impl Shape {
    /// `None` if the lists at some depth differ in length, values stand beside lists, or it is too deep.
    fn of(values: &[Value]) -> Option<Self> {
        let mut shape = Self {
            lengths: [0; DIMENSIONS_MAX],
            dimensions: 0,
        };
        let mut first = Some(values);
        while let Some(values) = first {
            *shape.lengths.get_mut(shape.dimensions)? = values.len();
            shape.dimensions += 1;
            first = match values.first() {
                Some(Value::Array(inner)) => Some(inner),
                _ => None,
            };
        }
        shape.holds(values, 0).then_some(shape)
    }

    fn holds(&self, values: &[Value], depth: usize) -> bool {
        values.len() == self.lengths[depth]
            && values.iter().all(|value| match value {
                Value::Array(inner) => depth + 1 < self.dimensions && self.holds(inner, depth + 1),
                _ => depth + 1 == self.dimensions,
            })
    }

    /// As the server has it, an array of empty lists is an empty array.
    fn is_empty(&self) -> bool {
        self.lengths[..self.dimensions].contains(&0)
    }

    fn write(&self, member: &Type, out: &mut BytesMut) {
        let lengths = if self.is_empty() {
            &[]
        } else {
            &self.lengths[..self.dimensions]
        };
        out.put_i32(i32::try_from(lengths.len()).expect("at most 6"));
        // "May hold NULLs": the server looks for itself.
        out.put_i32(1);
        out.put_u32(member.oid());
        for length in lengths {
            // More than fits here would be more than a message may weigh, which the server refuses as it refuses this.
            out.put_i32(i32::try_from(*length).unwrap_or(i32::MAX));
            // Elements are counted from 1.
            out.put_i32(1);
        }
    }
}

fn each_leaf(values: &[Value], visit: &mut impl FnMut(&Value) -> Result<(), Misfit>) -> Result<(), Misfit> {
    for value in values {
        match value {
            Value::Array(inner) => each_leaf(inner, visit)?,
            leaf => visit(leaf)?,
        }
    }
    Ok(())
}
