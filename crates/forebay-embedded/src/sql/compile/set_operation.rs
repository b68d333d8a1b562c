//! UNION, INTERSECT and EXCEPT.
//!
//! Promises: the types of the columns are PostgreSQL's, and so is the choice which of several equal rows is shown. Operations are grouped as they
//! were written, although SQLite groups them from the left.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

use super::body::{Body, render, render_compared};
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::plan::ResultColumn;
use super::resolve::common_type;
use super::scope::Scope;
use super::syntax::is_plain;
use super::types::{self, TypeName};

impl Compiler<'_> {
    pub(super) fn set_operation(
        &mut self,
        left: &SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        outer: Option<&Scope<'_>>,
    ) -> Result<Body> {
        let (name, operator) = match (op, quantifier) {
            (SetOperator::Union, SetQuantifier::All) => ("UNION", "UNION ALL"),
            (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => ("UNION", "UNION"),
            (SetOperator::Intersect, SetQuantifier::None | SetQuantifier::Distinct | SetQuantifier::All) => {
                ("INTERSECT", "INTERSECT")
            }
            (SetOperator::Except, SetQuantifier::None | SetQuantifier::Distinct | SetQuantifier::All) => {
                ("EXCEPT", "EXCEPT")
            }
            _ => return Err(Fault::unsupported(format!("{op} {quantifier}"))),
        };
        let left = self.body(bare(left), outer, &[], None)?;
        let right = self.body(bare(right), outer, &[], None)?;
        let (left_columns, right_columns) = (left.columns(), right.columns());
        if left_columns.len() != right_columns.len() {
            return Err(Fault::new(
                "42601",
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let mut wanted = Vec::with_capacity(left_columns.len());
        for (left, right) in left_columns.iter().zip(&right_columns) {
            wanted.push(common_type(&[left.kind.oid, right.kind.oid], name)?);
        }
        let left = self.converted(left, &wanted)?;
        let right = self.converted(right, &wanted)?;
        let distinct = operator != "UNION ALL";
        if distinct && let Some(unordered) = wanted.iter().find(|oid| !types::is_ordered(**oid)) {
            return Err(types::without_operator(*unordered, "equality"));
        }
        // SQLite groups set operations from the left, whatever they are: what stands right is put into a SELECT of its own. So is what
        // stands left where equal values may differ in their bytes: it compares by what the very first SELECT says.
        let right = self.grouped(right);
        let left = match distinct && wanted.iter().any(|oid| types::collation(*oid).is_some()) {
            true => self.grouped(left),
            false => left,
        };
        let (left_kinds, right_kinds) = (left.columns(), right.columns());
        let columns: Vec<ResultColumn> = left_columns
            .iter()
            .zip(left_kinds.iter().zip(&right_kinds))
            .zip(&wanted)
            .map(|((named, (left, right)), wanted)| ResultColumn {
                name: named.name.clone(),
                kind: TypeName {
                    oid: *wanted,
                    typmod: if left.kind.typmod == right.kind.typmod {
                        left.kind.typmod
                    } else {
                        -1
                    },
                },
                not_null: left.not_null && right.not_null,
                origin: None,
            })
            .collect();
        if operator == "UNION" && wanted.iter().any(|oid| types::equals_may_look_different(*oid)) {
            // Of rows that are equal PostgreSQL shows the first, as SQLite's DISTINCT does; its UNION shows the last.
            let all = format!("{} UNION ALL {}", render(&left), render(&right));
            let mut whole = self.wrapped(&all, &columns);
            if let Body::Leaf(leaf) = &mut whole {
                leaf.distinct = true;
            }
            let sql = render(&whole);
            return Ok(Body::Set { sql, columns });
        }
        let (left, right) = (render_compared(&left, distinct), render_compared(&right, distinct));
        let sql = if distinct && quantifier == SetQuantifier::All {
            // Equal rows, numbered, are told apart: so each meets one of the other side. What is left of them looks like their first.
            let names: Vec<String> = (1..=columns.len()).map(|place| format!("\"c{place}\"")).collect();
            let firsts: Vec<String> = names
                .iter()
                .zip(&wanted)
                .map(|(name, oid)| types::compared(&format!("first_value({name}) OVER equal"), *oid))
                .zip(&names)
                .map(|(first, name)| format!("{first} AS {name}"))
                .collect();
            let (names, firsts) = (names.join(", "), firsts.join(", "));
            let numbered = |rows: &str| {
                format!("SELECT {firsts}, row_number() OVER equal FROM ({rows}) WINDOW equal AS (PARTITION BY {names})")
            };
            format!(
                "SELECT {names} FROM ({} {operator} {})",
                numbered(&left),
                numbered(&right)
            )
        } else {
            format!("{left} {operator} {right}")
        };
        Ok(Body::Set { sql, columns })
    }

    /// A set operation as one SELECT.
    fn grouped(&mut self, body: Body) -> Body {
        match body {
            set @ Body::Set { .. } => {
                let columns = set.columns();
                self.wrapped(&render(&set), &columns)
            }
            leaf @ Body::Leaf(_) => leaf,
        }
    }
}

/// A branch without parentheses that mean nothing: a literal in it has no type yet.
fn bare(mut branch: &SetExpr) -> &SetExpr {
    while let SetExpr::Query(query) = branch
        && is_plain(query)
    {
        branch = &query.body;
    }
    branch
}
