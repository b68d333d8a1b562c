//! EXECUTE: the arguments, as a query of one row whose columns have the types of the prepared statement's parameters.
//!
//! Promises: an argument is converted to its parameter's type as a value is to its column's on the way into a table. Of the prepared statement it
//! knows only the types of the parameters.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Statement as Tree};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::plan::{ResultColumn, Step};
use super::scope::Scope;
use super::types::{TypeName, object_name};
use crate::sql::facts::{self, Context, Oid, oid};
use crate::sql::walk::walk_expressions;

impl Compiler<'_> {
    /// The arguments of this EXECUTE, which must be of the `wanted` types; no step if there are none.
    pub(super) fn arguments(&mut self, tree: &Tree, wanted: &[Oid]) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        let Tree::Execute {
            name: Some(name),
            parameters,
            has_parentheses,
            immediate: false,
            into,
            using,
            output: false,
            default: false,
        } = tree
        else {
            return Err(Fault::new("42601", "syntax error in EXECUTE"));
        };
        if !into.is_empty() || !using.is_empty() || *has_parentheses == parameters.is_empty() {
            return Err(Fault::new("42601", "syntax error in EXECUTE"));
        }
        if parameters.len() != wanted.len() {
            let message = format!(
                "wrong number of parameters for prepared statement \"{}\"",
                object_name(name)?
            );
            let detail = format!("Expected {} parameters but got {}.", wanted.len(), parameters.len());
            return Err(Fault::new("42601", message).with_detail(detail));
        }
        let scope = Scope::new(None);
        scope.no_aggregates.set(Some("EXECUTE parameters"));
        self.fixed_parameters = true;
        let (mut sql, mut columns) = (Vec::new(), Vec::new());
        for (place, (argument, wanted)) in parameters.iter().zip(wanted).enumerate() {
            refuse_subquery(argument)?;
            let scalar = self.expression(argument, &scope)?;
            let from = scalar.oid;
            let converted = self
                .convert(scalar, TypeName::plain(*wanted), Context::Assignment)
                .map_err(|fault| match fault.sqlstate {
                    "42846" => uncoerced(place + 1, from, *wanted),
                    _ => fault,
                })?;
            sql.push(converted.sql);
            columns.push(ResultColumn {
                name: format!("${}", place + 1),
                kind: TypeName::plain(*wanted),
                not_null: false,
                origin: None,
            });
        }
        let steps = if sql.is_empty() {
            Vec::new()
        } else {
            vec![format!("SELECT {}", sql.join(", ")).into()]
        };
        Ok((steps, columns))
    }
}

fn refuse_subquery(argument: &Expr) -> Result<()> {
    let found = walk_expressions(argument, |expression| match expression {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if found.is_break() {
        return Err(Fault::new("0A000", "cannot use subquery in EXECUTE parameter"));
    }
    Ok(())
}

fn uncoerced(number: usize, from: Oid, wanted: Oid) -> Fault {
    let message = format!(
        "parameter ${number} of type {} cannot be coerced to the expected type {}",
        facts::display_name(if from == oid::UNKNOWN { oid::TEXT } else { from }),
        facts::display_name(wanted)
    );
    Fault::new("42804", message).with_hint("You will need to rewrite or cast the expression.")
}
