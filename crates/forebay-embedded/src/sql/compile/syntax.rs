//! What a syntax tree tells by itself, before anything is looked up.
//!
//! Knows PostgreSQL's spelling; nothing of schemas, types or SQLite.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
};

use crate::sql::identifier::cut;

/// A name as PostgreSQL reads it: in lower case unless it is quoted, and cut to its length.
pub(crate) fn folded(name: &Ident) -> String {
    cut(if name.quote_style.is_some() {
        name.value.clone()
    } else {
        name.value.to_ascii_lowercase()
    })
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

/// A clause of a SELECT that the parser knows and PostgreSQL does not have, or that nothing here carries out.
pub(crate) fn foreign_clause(select: &Select) -> Option<&'static str> {
    let foreign = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
        (select.exclude.is_some(), "EXCLUDE"),
        (select.select_modifiers.is_some(), "a modifier of SELECT"),
    ];
    foreign.iter().find(|(there, _)| *there).map(|(_, clause)| *clause)
}

/// Whether a query is nothing but its body.
pub(super) fn is_plain(query: &Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
}
