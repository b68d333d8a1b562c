//! Expressions as definitions keep them: in PostgreSQL's text.
//!
//! Knows syntax; nothing of what the names in it refer to.

use std::ops::ControlFlow;

use sqlparser::ast::Expr;

use super::fault::{Fault, Result};
use super::syntax::folded;
use crate::sql::walk::walk_expressions;

pub(super) fn parsed(text: &str) -> Result<Expr> {
    crate::sql::grammar::expression(text)
        .ok_or_else(|| Fault::new("42601", format!("syntax error in the expression {text}")))
}

/// Whether an expression of PostgreSQL's mentions a column by this name. One that cannot be read mentions everything.
pub(crate) fn mentions(text: &str, column: &str) -> bool {
    let Ok(expression) = parsed(text) else {
        return true;
    };
    let found = walk_expressions(&expression, |inner| {
        let name = match inner {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if name.is_some_and(|name| folded(name) == column) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found.is_break()
}

/// Whether an expression of PostgreSQL's is an operator with its operands, and not in parentheses.
pub(crate) fn is_operation(text: &str) -> bool {
    parsed(text).is_ok_and(|expression| {
        matches!(
            expression,
            Expr::BinaryOp { .. }
                | Expr::UnaryOp { .. }
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::Between { .. }
                | Expr::Like { .. }
        )
    })
}
