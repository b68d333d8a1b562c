//! The name PostgreSQL gives a result column that has no alias.

use sqlparser::ast::{AccessExpr, DataType, Expr, Query, SelectItem, SetExpr};

use crate::sql::compile::syntax::{folded, name_parts};

/// The name of a result column, `?column?` when the expression suggests none.
pub(super) fn of(expression: &Expr) -> String {
    suggested(expression).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// A suggested name, and whether it is a strong one: a weak name gives way to the type of a cast around it.
fn suggested(expression: &Expr) -> Option<(String, bool)> {
    let strong = |name: String| Some((name, true));
    let weak = |name: &str| Some((name.to_owned(), false));
    match expression {
        Expr::Identifier(name) => strong(folded(name)),
        Expr::CompoundIdentifier(parts) => strong(folded(parts.last()?)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => suggested(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            field.map(|name| (name, true)).or_else(|| suggested(root))
        }
        Expr::Function(function) => strong(name_parts(&function.name)?.pop()?),
        Expr::Cast { expr, data_type, .. } => match suggested(expr) {
            Some((name, true)) => strong(name),
            _ => weak(&type_name(data_type)),
        },
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(suggested) {
            Some((name, true)) => strong(name),
            _ => weak("case"),
        },
        Expr::Exists { .. } => strong("exists".to_owned()),
        Expr::Array(_) => strong("array".to_owned()),
        Expr::Subquery(query) => first_column(query),
        Expr::Substring { .. } => strong("substring".to_owned()),
        Expr::Trim { trim_where, .. } => strong(
            match trim_where {
                Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim",
                Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            }
            .to_owned(),
        ),
        Expr::Position { .. } => strong("position".to_owned()),
        _ => None,
    }
}

fn first_column(query: &Query) -> Option<(String, bool)> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    match select.projection.first()? {
        SelectItem::UnnamedExpr(expression) => suggested(expression),
        SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
        _ => None,
    }
}

fn type_name(data_type: &DataType) -> String {
    let written = data_type.to_string().to_lowercase();
    let written = written.strip_prefix("pg_catalog.").unwrap_or(&written);
    let known = super::super::types::type_oid(written).and_then(postgres_types::Type::from_oid);
    known.map_or_else(
        || written.to_owned(),
        |kind| kind.name().trim_start_matches('_').to_owned(),
    )
}
