//! Literals and parameters.
//!
//! Promises: a literal has the type that PostgreSQL gives it, or none until its surroundings say so; so has a parameter.

use forebay_pg_values::{Kind, Owned, text_form};
use sqlparser::ast::{DataType, DateTimeField, Expr, Interval, Value, ValueWithSpan};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::plan::PARAMETERS_MAX;
use super::scalar::{Form, Scalar};
use super::types;
use crate::sql::facts::{self, oid};

impl Compiler<'_> {
    pub(super) fn value(&mut self, value: &ValueWithSpan) -> Result<Scalar> {
        let scalar = self.value_anywhere(&value.value)?;
        Ok(Scalar {
            location: Some(value.span.start),
            ..scalar
        })
    }

    fn value_anywhere(&mut self, value: &Value) -> Result<Scalar> {
        match value {
            Value::Number(digits, false) => self.number(digits),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
                Ok(Scalar::unknown(text.clone()))
            }
            Value::DollarQuotedString(quoted) => Ok(Scalar::unknown(quoted.value.clone())),
            Value::Boolean(truth) => Ok(Scalar::constant((*truth).into(), oid::BOOL)),
            Value::Null => Ok(Scalar::null()),
            Value::Placeholder(name) => self.parameter(name),
            Value::HexStringLiteral(_) => Err(Fault::unsupported("a bit string literal")),
            other => Err(Fault::unsupported(format!("the literal {other}"))),
        }
    }

    /// A number as the client wrote it, with a sign that stood right before it: `int4`, `int8`, or `numeric`.
    pub(super) fn number(&mut self, digits: &str) -> Result<Scalar> {
        if let Ok(integer) = digits.parse::<i64>() {
            let kind = if i32::try_from(integer).is_ok() {
                oid::INT4
            } else {
                oid::INT8
            };
            return Ok(Scalar::constant(Owned::Integer(integer), kind));
        }
        let value = text_form::parse(Kind::Numeric, -1, digits, self.values).map_err(|_| {
            Fault::new(
                "42601",
                format!("trailing junk after numeric literal at or near \"{digits}\""),
            )
        })?;
        Ok(Scalar::constant(value, oid::NUMERIC))
    }

    fn parameter(&mut self, name: &str) -> Result<Scalar> {
        let number: usize = name
            .strip_prefix('$')
            .and_then(|number| number.parse().ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| Fault::new("42P02", format!("there is no parameter {name}")))?;
        if number > PARAMETERS_MAX {
            return Err(Fault::new("42P02", format!("there is no parameter {name}")));
        }
        if self.parameters.len() < number {
            if self.fixed_parameters {
                return Err(Fault::new("42P02", format!("there is no parameter {name}")));
            }
            self.parameters.resize(number, None);
        }
        let known = self.parameters[number - 1];
        if let Some(oid) = known.filter(|oid| !types::has_values(*oid)) {
            return Err(Fault::unsupported(format!(
                "a parameter of type {}",
                facts::display_name(oid)
            )));
        }
        Ok(Scalar {
            form: if known.is_some() {
                Form::Any
            } else {
                Form::Parameter(number)
            },
            null_with: vec![number],
            ..Scalar::new(format!("?{number}"), known.unwrap_or(oid::UNKNOWN))
        })
    }

    pub(super) fn interval(&mut self, interval: &Interval) -> Result<Scalar> {
        if interval.leading_precision.is_some() {
            return Err(Fault::unsupported("a precision in this interval"));
        }
        let text = match &*interval.value {
            Expr::Value(value) => self.value(value)?,
            other => return Err(Fault::new("42601", format!("syntax error at or near \"{other}\""))),
        };
        let fields = match (&interval.leading_field, &interval.last_field) {
            (None, None) => None,
            (Some(leading), last) => Some(interval_fields(leading, last.as_ref())?),
            (None, Some(_)) => return Err(Fault::unsupported("these fields of an interval")),
        };
        let to = types::resolve(&DataType::Interval {
            fields,
            precision: interval.fractional_seconds_precision,
        })?;
        self.cast_to(text, to)
    }
}

fn interval_fields(leading: &DateTimeField, last: Option<&DateTimeField>) -> Result<sqlparser::ast::IntervalFields> {
    use DateTimeField as F;
    use sqlparser::ast::IntervalFields as I;
    Ok(match (leading, last) {
        (F::Year, None) => I::Year,
        (F::Month, None) => I::Month,
        (F::Day, None) => I::Day,
        (F::Hour, None) => I::Hour,
        (F::Minute, None) => I::Minute,
        (F::Second, None) => I::Second,
        (F::Year, Some(F::Month)) => I::YearToMonth,
        (F::Day, Some(F::Hour)) => I::DayToHour,
        (F::Day, Some(F::Minute)) => I::DayToMinute,
        (F::Day, Some(F::Second)) => I::DayToSecond,
        (F::Hour, Some(F::Minute)) => I::HourToMinute,
        (F::Hour, Some(F::Second)) => I::HourToSecond,
        (F::Minute, Some(F::Second)) => I::MinuteToSecond,
        _ => return Err(Fault::unsupported("these fields of an interval")),
    })
}
