//! Calls of PostgreSQL's functions by symbol, with arguments of the types they take.
//!
//! Promises: a call of constants is replaced by its value; an operator that SQLite has exactly as PostgreSQL does ([`native`](super::native)) is
//! SQLite's own; everything else calls the function registered under its symbol. A symbol without one is refused by name.

use forebay_pg_values::{Arguments, Datum, Owned, Type, function};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::native::{compared, lower};
use super::scalar::{CONSTANT_BYTES_MAX, Form, Scalar};
use super::sqlite_text::{ENVIRONMENT, function_name, quoted, type_label};
use crate::sql::facts::{self, Oid};

impl Compiler<'_> {
    /// A call of one of PostgreSQL's functions, whose arguments have the types it wants; done at once if it can be.
    #[allow(clippy::needless_pass_by_value, reason = "a call takes its arguments along")]
    pub(super) fn call_symbol(&mut self, symbol: &str, arguments: Vec<Scalar>, result: Oid) -> Result<Scalar> {
        if asks_for_letters(symbol) && arguments.iter().any(|argument| argument.plain_letters) {
            return Err(Fault::unsupported(
                "the case and the class of letters under COLLATE \"C\"",
            ));
        }
        let is_strict = match function(symbol) {
            Some(known) => known.strict,
            None => lower(symbol, &arguments).is_some(),
        };
        let no_value = arguments
            .iter()
            .any(|argument| argument.form == Form::Constant(Owned::Null));
        let may_fail = |argument: &Scalar| argument.planned || argument.is_planned();
        if no_value && is_strict && !arguments.iter().any(may_fail) {
            // Whatever the others are.
            return Ok(Scalar {
                oid: result,
                ..Scalar::null()
            });
        }
        let constant = arguments
            .iter()
            .all(|argument| matches!(argument.form, Form::Constant(_)));
        let folds = constant && function(symbol).is_some_and(|known| !known.in_session);
        if !folds && let Some(native) = lower(symbol, &arguments) {
            if let Some(truth) = compared(symbol, &arguments) {
                return Ok(Scalar::constant(truth.into(), result));
            }
            return Ok(Scalar {
                not_null: native.keeps_not_null && arguments.iter().all(|argument| argument.not_null),
                ..Scalar::new(native.sql, result)
            }
            .strict_in(&arguments)
            .with_parts(&arguments)
            .skipped_where_null(&arguments));
        }
        let Some(known) = function(symbol) else {
            return Err(Fault::unsupported(format!(
                "the function {}",
                readable(symbol, &arguments)
            )));
        };
        let argument_types: Vec<Type> = arguments
            .iter()
            .filter_map(|argument| Type::from_oid(argument.oid))
            .collect();
        if known.typed && argument_types.len() != arguments.len() {
            return Err(Fault::unsupported(format!(
                "the function {}",
                readable(symbol, &arguments)
            )));
        }
        let constants: Option<Vec<Datum<'_>>> = arguments
            .iter()
            .map(|argument| match &argument.form {
                Form::Constant(value) => Some(value.as_datum()),
                _ => None,
            })
            .collect();
        if let (Some(values), false) = (&constants, known.in_session) {
            let called = known.call(Arguments {
                values,
                types: &argument_types,
                environment: self.values,
            });
            match called {
                Ok(value) if length(&value) <= CONSTANT_BYTES_MAX => return Ok(Scalar::constant(value, result)),
                // Better made again than written down.
                Ok(_) => {}
                // PostgreSQL evaluates what is constant before it runs anything.
                Err(error) if !self.lenient && facts::is_immutable(symbol) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let mut sql = function_name(symbol);
        sql.push('(');
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&argument.sql);
        }
        let mut separator = if arguments.is_empty() { "" } else { ", " };
        if known.typed {
            let labels: Vec<String> = argument_types.iter().map(|kind| type_label(*kind)).collect();
            sql.push_str(separator);
            sql.push_str(&quoted(&labels.join(",")));
            separator = ", ";
        }
        if known.in_session {
            sql.push_str(separator);
            sql.push(ENVIRONMENT);
        }
        sql.push(')');
        let called = Scalar::new(sql, result).with_parts(&arguments);
        let called = Scalar {
            stable: called.stable || !facts::is_immutable(symbol),
            ..called
        };
        Ok(if is_strict {
            called.strict_in(&arguments).skipped_where_null(&arguments)
        } else {
            called
        })
    }
}

/// Whether a function asks which letters are large, small or letters at all.
fn asks_for_letters(symbol: &str) -> bool {
    ["lower", "upper", "initcap", "regex", "iclike", "icnlike", "similar"]
        .iter()
        .any(|word| symbol.contains(word))
}

fn length(value: &Owned) -> usize {
    match value {
        Owned::Text(text) => text.len(),
        Owned::Blob(bytes) => bytes.len(),
        Owned::Null | Owned::Integer(_) | Owned::Real(_) => 0,
    }
}

fn readable(symbol: &str, arguments: &[Scalar]) -> String {
    if symbol.contains('(') {
        return symbol.to_owned();
    }
    let types: Vec<String> = arguments
        .iter()
        .map(|argument| facts::display_name(argument.oid))
        .collect();
    format!("{symbol}({})", types.join(", "))
}
