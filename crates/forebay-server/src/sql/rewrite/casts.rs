//! `expression::type`, CAST to PostgreSQL's types, and typed literals such as `DATE '2024-01-31'`.
//!
//! Contract: `::type` and CAST to a name that is not SQLite's give the value PostgreSQL would, in its stored form, or fail as it would;
//! CAST to INT, INTEGER, REAL, TEXT, BLOB, NUMERIC and CHAR is SQLite's own. In the schema only what plain SQLite can run is written.
//! Knows nothing of the types of columns.

use rusqlite::types::{Value as Stored, ValueRef};
use sqlparser::ast::{
    CastKind, CharacterLength, DataType, ExactNumberInfo, Expr, UnaryOperator, Value,
};

use super::lexical::literal;
use crate::sql::describe::types;
use crate::sql::error::SqlError;
use crate::sql::functions::{Target, cast_value};
use crate::sql::grammar::own_expression;

/// What a cast becomes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// SQLite's own.
    Leave,
    /// Text, cut to a length if there is one.
    Text(Option<u64>),
    /// One of the functions.
    Call(Target),
    /// `numeric(precision, scale)`.
    Scaled(u64, i64),
    /// Named in an error.
    Refused,
}

/// What becomes of a cast to this type.
pub(super) fn plan(kind: &CastKind, data_type: &DataType) -> Plan {
    let own = match kind {
        CastKind::Cast => true,
        CastKind::DoubleColon => false,
        CastKind::TryCast | CastKind::SafeCast => return Plan::Leave,
    };
    let declared = data_type.to_string().to_ascii_uppercase();
    if own
        && matches!(
            declared.as_str(),
            "INT" | "INTEGER" | "REAL" | "TEXT" | "BLOB" | "NUMERIC"
        )
    {
        return Plan::Leave;
    }
    let length = |length: &Option<CharacterLength>| match length {
        None => Plan::Text(None),
        Some(CharacterLength::IntegerLength { length, .. }) => Plan::Text(Some(*length)),
        Some(CharacterLength::Max) => Plan::Refused,
    };
    match data_type {
        DataType::Varchar(most)
        | DataType::CharacterVarying(most)
        | DataType::CharVarying(most) => return length(most),
        DataType::Char(_) | DataType::Character(_) => {
            return if own { Plan::Leave } else { Plan::Refused };
        }
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => match info {
            ExactNumberInfo::None => {}
            ExactNumberInfo::Precision(precision) => return Plan::Scaled(*precision, 0),
            ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                return Plan::Scaled(*precision, *scale);
            }
        },
        // Microseconds are what is kept; fewer digits would have to be rounded.
        DataType::Timestamp(Some(digits), _) | DataType::Time(Some(digits), _) if *digits != 6 => {
            return Plan::Refused;
        }
        _ => {}
    }
    use postgres_types::Type;
    let Some(kind) = types::of_declared(&declared) else {
        return if own { Plan::Leave } else { Plan::Refused };
    };
    let targets = [
        (Type::INT8, Target::Integer),
        (Type::FLOAT8, Target::Float),
        (Type::NUMERIC, Target::Numeric),
        (Type::BOOL, Target::Boolean),
        (Type::DATE, Target::Date),
        (Type::TIME, Target::Time),
        (Type::TIMESTAMP, Target::Timestamp),
        (Type::TIMESTAMPTZ, Target::TimestampWithTimeZone),
        (Type::UUID, Target::Uuid),
        (Type::JSON, Target::Json),
        (Type::JSONB, Target::Json),
        (Type::BYTEA, Target::Bytea),
    ];
    match targets.into_iter().find(|(from, _)| *from == kind) {
        Some((_, target)) => Plan::Call(target),
        None => Plan::Text(None),
    }
}

/// The cast in SQLite's words; `None` leaves it as it is.
pub(super) fn rewritten(
    kind: &CastKind,
    inner: &Expr,
    data_type: &DataType,
    in_schema: bool,
) -> Result<Option<Expr>, SqlError> {
    let plan = plan(kind, data_type);
    if in_schema
        && plan != Plan::Leave
        && let Some(folded) = folded(&plan, inner, data_type)?
    {
        return Ok(Some(folded));
    }
    let call = |name: &str, more: &str| {
        let mut call = own_expression(&format!("{name}(NULL{more})"));
        replace_null(&mut call, inner.clone());
        call
    };
    Ok(Some(match plan {
        Plan::Leave => return Ok(None),
        Plan::Refused => {
            return Err(SqlError::unsupported(format!("a cast to {data_type}")));
        }
        Plan::Text(length) => {
            let text = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(unwrapped(inner).clone()),
                data_type: DataType::Text,
                format: None,
            };
            match length {
                None => text,
                Some(length) => {
                    let mut cut = own_expression(&format!("substr(NULL, 1, {length})"));
                    replace_null(&mut cut, text);
                    cut
                }
            }
        }
        Plan::Call(_) | Plan::Scaled(..) if in_schema => {
            return Err(SqlError::unsupported_but(
                format!("a cast to {data_type} in the schema"),
                "What is in the schema must be SQLite's own SQL: write CAST(… AS INTEGER), REAL or TEXT.",
            ));
        }
        // PostgreSQL takes such a literal for a numeric, which rounds half away from zero, as round() does.
        Plan::Call(Target::Integer) if is_fraction(inner) => {
            let mut rounded = own_expression("round(NULL)");
            replace_null(&mut rounded, inner.clone());
            let mut cast = own_expression("forebay_int8(NULL)");
            replace_null(&mut cast, rounded);
            cast
        }
        Plan::Call(target) => call(target.function_name(), ""),
        Plan::Scaled(precision, scale) => {
            call("forebay_numeric", &format!(", {precision}, {scale}"))
        }
    }))
}

/// A literal cast now, so that only the value is kept in the schema.
fn folded(plan: &Plan, inner: &Expr, data_type: &DataType) -> Result<Option<Expr>, SqlError> {
    let Expr::Value(value) = unwrapped(inner) else {
        return Ok(None);
    };
    let stored = match &value.value {
        Value::SingleQuotedString(text) => Stored::Text(text.replace("''", "'")),
        Value::Boolean(truth) => Stored::Integer(i64::from(*truth)),
        Value::Null => Stored::Null,
        Value::Number(digits, _) => match digits.parse() {
            Ok(integer) => Stored::Integer(integer),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    let cast = match (plan, stored) {
        (_, Stored::Null) => Stored::Null,
        (Plan::Text(length), Stored::Text(text)) => {
            let most = length
                .and_then(|length| usize::try_from(length).ok())
                .unwrap_or(usize::MAX);
            Stored::Text(text.chars().take(most).collect())
        }
        (Plan::Call(target), stored) => {
            cast_value(*target, ValueRef::from(&stored)).map_err(|error| {
                SqlError::unsupported_but(
                    format!("the default {value}::{data_type}"),
                    error.to_string(),
                )
            })?
        }
        _ => return Ok(None),
    };
    Ok(match cast {
        Stored::Null => Some(Expr::value(Value::Null)),
        Stored::Integer(integer) => Some(own_expression(&integer.to_string())),
        Stored::Text(text) => Some(own_expression(&literal(&text))),
        Stored::Real(real) => Some(own_expression(&format!("{real:?}"))),
        Stored::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            Some(own_expression(&format!("x'{digits}'")))
        }
    })
}

/// What is inside the parentheses.
fn unwrapped(expression: &Expr) -> &Expr {
    let mut inner = expression;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    inner
}

fn is_fraction(expression: &Expr) -> bool {
    match unwrapped(expression) {
        Expr::Value(value) => {
            matches!(&value.value, Value::Number(digits, _) if digits.contains(['.', 'e', 'E']) && !digits.starts_with("0x"))
        }
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_fraction(expr),
        _ => false,
    }
}

/// Puts an expression in the place of the NULL that a call written here has as its first argument.
pub(super) fn replace_null(call: &mut Expr, argument: Expr) {
    use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments};
    let place = match call {
        Expr::Function(function) => match &mut function.args {
            FunctionArguments::List(list) => {
                list.args.iter_mut().find_map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
                    _ => None,
                })
            }
            _ => None,
        },
        // The parser has a node of its own for substr().
        Expr::Substring { expr, .. } => Some(expr.as_mut()),
        _ => None,
    };
    *place.expect("the calls written here have an argument") = argument;
}

/// The name PostgreSQL gives a column that is nothing but a cast to this type.
pub(super) fn type_name(data_type: &DataType) -> String {
    use postgres_types::Type;
    let declared = data_type.to_string().to_ascii_uppercase();
    match declared.as_str() {
        "INT" | "INTEGER" | "INT4" => "int4".to_owned(),
        "SMALLINT" | "INT2" => "int2".to_owned(),
        "REAL" | "FLOAT4" => "float4".to_owned(),
        _ if declared.starts_with("VARCHAR") || declared.starts_with("CHARACTER VARYING") => {
            "varchar".to_owned()
        }
        _ => types::of_declared(&declared)
            .unwrap_or(Type::TEXT)
            .name()
            .to_owned(),
    }
}
