//! PostgreSQL's expressions in SQLite's words: the clock, the session's values, ILIKE, casts, `public.`.
//!
//! Contract: each has the value PostgreSQL would give, in its stored form; what the session knows is put in as a literal, and is refused
//! in the schema, where it would be frozen. A column that was nothing but such an expression keeps PostgreSQL's name for it.
//! Knows nothing of columns' types.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, SelectItem, Statement as Tree, TableFactor, UnaryOperator, Value, Visit,
    Visitor,
};

use super::lexical::literal;
use super::{Rewriter, casts};
use crate::sql::error::SqlError;
use crate::sql::grammar::own_expression;

/// The moment, in the stored form of a timestamp, from what plain SQLite has; to the millisecond.
const NOW: &str = "rtrim(rtrim(strftime('%Y-%m-%d %H:%M:%f', 'now'), '0'), '.')";

/// A random (version 4) UUID from what plain SQLite has.
const RANDOM_UUID: &str = "(lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || \
     substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || \
     substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6))))";

/// Whether the statement reads or writes any table, or a query in place of one.
pub(super) fn has_relation(tree: &Tree) -> bool {
    tree.visit(&mut AnyRelation).is_break()
}

struct AnyRelation;

impl Visitor for AnyRelation {
    type Break = ();

    fn pre_visit_relation(&mut self, _: &ObjectName) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// What stands in the expression's place; `None` leaves it. Its parts have been rewritten already.
pub(super) fn rewritten(
    expression: &Expr,
    rewriter: &Rewriter<'_>,
) -> Result<Option<Expr>, SqlError> {
    match expression {
        Expr::Cast {
            kind,
            expr,
            data_type,
            format: None,
        } => casts::rewritten(kind, expr, data_type, rewriter.in_schema),
        Expr::TypedString(typed) if !typed.uses_odbc_syntax => {
            let inner = Expr::Value(typed.value.clone());
            casts::rewritten(
                &CastKind::DoubleColon,
                &inner,
                &typed.data_type,
                rewriter.in_schema,
            )
        }
        Expr::ILike { any: true, .. } => Err(SqlError::unsupported("ILIKE ANY")),
        Expr::ILike {
            negated,
            expr,
            pattern,
            escape_char,
            ..
        } => {
            if rewriter.in_schema {
                return Err(SqlError::unsupported_but(
                    "ILIKE in the schema",
                    "What is in the schema must be SQLite's own SQL: its LIKE ignores the case of ASCII letters.",
                ));
            }
            let mut call = own_expression("forebay_ilike(NULL)");
            casts::replace_null(&mut call, expr.as_ref().clone());
            if let Expr::Function(Function {
                args: FunctionArguments::List(list),
                ..
            }) = &mut call
            {
                let more = [Some(pattern), escape_char.as_ref()].into_iter().flatten();
                list.args.extend(more.map(|argument| {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument.as_ref().clone()))
                }));
            }
            Ok(Some(if *negated {
                Expr::Nested(Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(call),
                }))
            } else {
                call
            }))
        }
        Expr::Interval(_) => Err(SqlError::unsupported_but(
            "INTERVAL",
            "SQLite adds to a time with modifiers: datetime('now', '-1 day').",
        )),
        Expr::AtTimeZone { .. } => Err(SqlError::unsupported_but(
            "AT TIME ZONE",
            "Times are kept in UTC.",
        )),
        Expr::Identifier(name) if name.quote_style.is_none() => {
            value_of(&name.value, None, rewriter)
        }
        Expr::CompoundIdentifier(parts)
            if parts.len() > 2 && parts[0].value.eq_ignore_ascii_case("public") =>
        {
            Ok(Some(Expr::CompoundIdentifier(parts[1..].to_vec())))
        }
        Expr::Function(function) => {
            let Some((name, qualified)) = plain_name(function) else {
                return Ok(None);
            };
            if let Some(value) = value_of(&name, Some(function), rewriter)? {
                return Ok(Some(value));
            }
            if !qualified {
                return Ok(None);
            }
            let mut unqualified = function.clone();
            unqualified.name.0.remove(0);
            Ok(Some(Expr::Function(unqualified)))
        }
        _ => Ok(None),
    }
}

/// A function's name, and whether `pg_catalog.` stood before it.
fn plain_name(function: &Function) -> Option<(String, bool)> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Some(name.value.clone()),
        ObjectNamePart::Function(_) => None,
    };
    match function.name.0.as_slice() {
        [name] => Some((part(name)?, false)),
        [schema, name] if part(schema)?.eq_ignore_ascii_case("pg_catalog") => {
            Some((part(name)?, true))
        }
        _ => None,
    }
}

/// What one of PostgreSQL's special words or functions stands for. `function` is `None` for a bare word.
fn value_of(
    name: &str,
    function: Option<&Function>,
    rewriter: &Rewriter<'_>,
) -> Result<Option<Expr>, SqlError> {
    let environment = rewriter.environment;
    let Some(arguments) = arguments(function) else {
        return Ok(None);
    };
    let name = name.to_ascii_lowercase();
    let bare = arguments.is_none();
    let count = arguments.map_or(0, <[FunctionArg]>::len);
    let text = |value: &str| Some(own_expression(&literal(value)));
    let value = match (name.as_str(), bare, count) {
        ("now" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp", false, 0)
        | ("localtimestamp", _, 0) => {
            return Ok(Some(own_expression(NOW)));
        }
        ("gen_random_uuid" | "uuid_generate_v4", false, 0) => {
            return Ok(Some(own_expression(RANDOM_UUID)));
        }
        ("current_timestamp" | "localtimestamp", false, 1) => {
            return precise_now(&name, arguments).map(Some);
        }
        ("version", false, 0) => text(environment.version),
        ("current_schema", _, 0) => text("public"),
        ("current_database", false, 0) | ("current_catalog", true, 0) => text(environment.database),
        ("current_user" | "session_user" | "current_role", true, 0) => text(environment.user),
        ("user", true, 0) if !rewriter.has_relation => text(environment.user),
        ("pg_backend_pid", false, 0) => Some(own_expression(&environment.pid.to_string())),
        ("pg_is_in_recovery", false, 0) => Some(Expr::value(Value::Boolean(false))),
        ("current_setting", false, 1 | 2) => {
            Some(setting(arguments.unwrap_or_default(), rewriter)?)
        }
        _ => None,
    };
    if value.is_some() && rewriter.in_schema {
        return Err(SqlError::unsupported_but(
            format!("{name} in the schema"),
            "It would be kept as it is now: write the value into each row instead.",
        ));
    }
    Ok(value)
}

/// A call's plain arguments, `Some(None)` for a bare word; `None` for a call with anything more (DISTINCT, OVER, …).
fn arguments(function: Option<&Function>) -> Option<Option<&[FunctionArg]>> {
    let Some(function) = function else {
        return Some(None);
    };
    if function.over.is_some()
        || function.filter.is_some()
        || !matches!(function.parameters, FunctionArguments::None)
    {
        return None;
    }
    match &function.args {
        FunctionArguments::None => Some(None),
        FunctionArguments::List(list)
            if list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
        {
            Some(Some(&list.args))
        }
        _ => None,
    }
}

fn literal_argument(arguments: &[FunctionArg], index: usize) -> Option<&Value> {
    match arguments.get(index) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))) => Some(&value.value),
        _ => None,
    }
}

/// `current_timestamp(digits)`: whole seconds, or the milliseconds there are.
fn precise_now(name: &str, arguments: Option<&[FunctionArg]>) -> Result<Expr, SqlError> {
    match literal_argument(arguments.unwrap_or_default(), 0) {
        Some(Value::Number(digits, _)) if digits == "0" => Ok(own_expression("datetime('now')")),
        Some(Value::Number(digits, _)) if matches!(digits.as_str(), "3" | "4" | "5" | "6") => {
            Ok(own_expression(NOW))
        }
        _ => Err(SqlError::unsupported_but(
            format!("{name} with this precision"),
            "Use 0, or 3 to 6 digits.",
        )),
    }
}

fn setting(arguments: &[FunctionArg], rewriter: &Rewriter<'_>) -> Result<Expr, SqlError> {
    let Some(Value::SingleQuotedString(name)) = literal_argument(arguments, 0) else {
        return Err(SqlError::unsupported(
            "current_setting() of a name that is no literal",
        ));
    };
    let missing_ok = matches!(literal_argument(arguments, 1), Some(Value::Boolean(true)));
    let name = name.replace("''", "'").to_ascii_lowercase();
    match (rewriter.environment.settings)(&name) {
        Some(value) => Ok(own_expression(&literal(&value))),
        None if missing_ok => Ok(Expr::value(Value::Null)),
        None => Err(SqlError::unsupported(format!("the setting \"{name}\""))),
    }
}

/// Gives columns that will be rewritten the names PostgreSQL has for them, because SQLite would name them by the new text.
pub(super) fn name_items<'a>(
    items: impl Iterator<Item = &'a mut SelectItem>,
    rewriter: &Rewriter<'_>,
) {
    for item in items {
        if let SelectItem::UnnamedExpr(expression) = item
            && let Some(name) = column_name(expression, rewriter)
        {
            *item = SelectItem::ExprWithAlias {
                expr: expression.clone(),
                alias: Ident::with_quote('"', name),
            };
        }
    }
}

fn column_name(expression: &Expr, rewriter: &Rewriter<'_>) -> Option<String> {
    match expression {
        Expr::Cast {
            kind,
            expr,
            data_type,
            format: None,
        } if casts::plan(kind, data_type) != casts::Plan::Leave => {
            Some(inner_name(expr).unwrap_or_else(|| casts::type_name(data_type)))
        }
        Expr::TypedString(typed) => Some(casts::type_name(&typed.data_type)),
        Expr::ILike { .. } => Some("?column?".to_owned()),
        Expr::Identifier(name) if name.quote_style.is_none() => {
            value_of(&name.value, None, rewriter)
                .ok()
                .flatten()
                .map(|_| name.value.to_ascii_lowercase())
        }
        Expr::Function(function) => {
            let (name, qualified) = plain_name(function)?;
            let special = value_of(&name, Some(function), rewriter)
                .ok()
                .flatten()
                .is_some();
            (special || qualified).then(|| name.to_ascii_lowercase())
        }
        _ => None,
    }
}

/// The name that shows through a cast.
fn inner_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.clone()),
        Expr::Function(Function {
            name: ObjectName(parts),
            ..
        }) => match parts.last()? {
            ObjectNamePart::Identifier(name) => Some(name.value.to_ascii_lowercase()),
            ObjectNamePart::Function(_) => None,
        },
        Expr::Nested(inner) => inner_name(inner),
        Expr::Cast {
            expr, data_type, ..
        } => Some(inner_name(expr).unwrap_or_else(|| casts::type_name(data_type))),
        _ => None,
    }
}
