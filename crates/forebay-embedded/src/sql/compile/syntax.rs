//! What a syntax tree tells by itself, before anything is looked up.
//!
//! Knows PostgreSQL's spelling; nothing of schemas, types or SQLite.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart};

/// A name as PostgreSQL reads it: in lower case unless it is quoted, and at most 63 bytes long.
pub(crate) fn folded(name: &Ident) -> String {
    const NAME_BYTES_MAX: usize = 63;
    let mut folded = if name.quote_style.is_some() {
        name.value.clone()
    } else {
        name.value.to_ascii_lowercase()
    };
    if folded.len() > NAME_BYTES_MAX {
        let mut end = NAME_BYTES_MAX;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// The parts of a name as PostgreSQL reads them. `None` for names that hold more than identifiers.
pub(crate) fn name_parts(name: &ObjectName) -> Option<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(identifier) => Some(folded(identifier)),
            ObjectNamePart::Function(_) => None,
        })
        .collect()
}

/// The expression inside any parentheses.
pub(super) fn unnested(mut expression: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expression {
        expression = inner;
    }
    expression
}

/// What stands in the parentheses of `ALL (…)`, which the parser takes for a call.
pub(super) fn all_of(pattern: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = pattern else {
        return None;
    };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))]
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all") =>
        {
            Some(inner)
        }
        _ => None,
    }
}
