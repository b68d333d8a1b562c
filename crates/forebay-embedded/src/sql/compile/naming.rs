//! The name of a result column that is an expression without an alias.
//!
//! Promises: PostgreSQL's own choice (its `FigureColname`).

use sqlparser::ast::{
    AccessExpr, CeilFloorKind, DataType, Expr, Ident, ObjectNamePart, Query, SelectItem, SetExpr, TrimWhereField,
};

use super::syntax::{folded, unnested};
use super::types;
use crate::sql::facts;

/// The name.
pub(crate) fn column_name(expression: &Expr) -> String {
    figure(expression).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

fn strong(name: &str) -> Option<(String, bool)> {
    Some((name.to_owned(), true))
}

/// The name of a type, or of an array's elements; as it is written where only the catalog knows it.
fn type_name(data_type: &DataType) -> Option<(String, bool)> {
    let name = match (types::resolve(data_type), data_type) {
        (Ok(kind), _) => {
            let element = facts::element_of(kind.oid).unwrap_or(kind.oid);
            facts::type_fact(element)?.name.to_owned()
        }
        (Err(_), DataType::Custom(name, _)) => folded(name.0.last()?.as_ident()?),
        (Err(_), _) => return None,
    };
    Some((name, false))
}

/// The name, and whether it is more than the name of a type.
fn figure(expression: &Expr) -> Option<(String, bool)> {
    let named = |name: &Ident| Some((folded(name), true));
    match unnested(expression) {
        Expr::Identifier(name) => named(name),
        Expr::CompoundIdentifier(parts) => parts.last().and_then(named),
        Expr::Function(function) => match function.name.0.last() {
            Some(ObjectNamePart::Identifier(name)) => named(name),
            _ => None,
        },
        Expr::Cast { expr, data_type, .. } => match figure(expr) {
            Some((name, true)) => Some((name, true)),
            _ => type_name(data_type),
        },
        Expr::TypedString(typed) => type_name(&typed.data_type),
        Expr::BinaryOp {
            op: sqlparser::ast::BinaryOperator::Overlaps,
            ..
        } => strong("overlaps"),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Collate { expr, .. } => figure(expr),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Expr::Array(_) => strong("array"),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Subquery(query) => subquery_name(query),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand: true, .. } => strong("substr"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::Ceil {
            field: CeilFloorKind::DateTimeField(_),
            ..
        } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Tuple(_) => strong("row"),
        Expr::CompoundFieldAccess { root, access_chain } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(name))) => named(name),
            _ => figure(root),
        },
        _ => None,
    }
}

/// The name of a subquery's one column.
fn subquery_name(query: &Query) -> Option<(String, bool)> {
    let mut body = &*query.body;
    loop {
        match body {
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::UnnamedExpr(expression) => Some((column_name(expression), true)),
                    SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                    _ => None,
                };
            }
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Query(inner) => body = &inner.body,
            SetExpr::Values(_) => return Some(("column1".to_owned(), true)),
            _ => return None,
        }
    }
}
