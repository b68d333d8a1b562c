//! WITH and WITH RECURSIVE.
//!
//! Promises: a name of WITH has the columns that PostgreSQL gives it; a recursive term has the types of the term it begins with, or the query is
//! PostgreSQL's error.

use sqlparser::ast::{Cte, Query, SetExpr, SetOperator, SetQuantifier, With};

use super::body::{rename, render_compared};
use super::compiler::{Compiler, KnownCte};
use super::fault::{Fault, Result};
use super::resolve::common_type;
use super::scope::Scope;
use super::syntax::folded;
use super::types::TypeName;
use crate::sql::facts;

impl Compiler<'_> {
    /// A WITH clause, whose names are known from then on; `outer` are those around its query.
    pub(super) fn with(&mut self, with: &With, outer: Option<&Scope<'_>>) -> Result<String> {
        let mut parts = Vec::new();
        for (place, cte) in with.cte_tables.iter().enumerate() {
            let name = folded(&cte.alias.name);
            if with.cte_tables[..place]
                .iter()
                .any(|before| folded(&before.alias.name) == name)
            {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(Fault::new("42712", message).at(&cte.alias.name));
            }
            parts.push(self.cte(cte, with.recursive, outer)?);
        }
        let recursive = if with.recursive { "RECURSIVE " } else { "" };
        Ok(format!("WITH {recursive}{} ", parts.join(", ")))
    }

    fn cte(&mut self, cte: &Cte, recursive: bool, outer: Option<&Scope<'_>>) -> Result<String> {
        if cte.from.is_some() {
            return Err(Fault::unsupported("this form of WITH"));
        }
        if matches!(
            &*cte.query.body,
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        ) {
            return Err(Fault::unsupported("a statement that writes inside WITH")
                .with_hint("Run it as a statement of its own, with RETURNING, in the same transaction."));
        }
        let name = folded(&cte.alias.name);
        let renamed: Vec<String> = cte.alias.columns.iter().map(|column| folded(&column.name)).collect();
        self.names += 1;
        let inner = format!("w{}", self.names);
        let own = if recursive {
            recursive_parts(&cte.query, &name)
        } else {
            None
        };
        let (sql, mut columns) = match own {
            Some((base, distinct, step)) => {
                let base = self.body(base, outer, &[], None)?;
                let base = self.settle(base, None)?;
                let mut columns = base.columns();
                rename(&mut columns, &renamed, &name)?;
                for column in &mut columns {
                    column.not_null = false;
                }
                self.ctes.push(KnownCte {
                    name: name.clone(),
                    sql: inner.clone(),
                    columns: columns.clone(),
                });
                let expected: Vec<TypeName> = columns.iter().map(|column| column.kind).collect();
                let step = self.body(step, outer, &[], Some(&expected))?;
                let step = self.settle(step, Some(&expected))?;
                self.ctes.pop();
                let given = step.columns();
                if given.len() != columns.len() {
                    return Err(Fault::new(
                        "42601",
                        "each UNION query must have the same number of columns",
                    ));
                }
                let mut wanted = Vec::new();
                for (place, (column, given)) in columns.iter().zip(&given).enumerate() {
                    let common = common_type(&[column.kind.oid, given.kind.oid], "UNION")?;
                    if common != column.kind.oid {
                        return Err(Fault::new(
                            "42804",
                            format!(
                                "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                                place + 1,
                                facts::display_name(column.kind.oid),
                                facts::display_name(common)
                            ),
                        )
                        .with_hint("Cast the output of the non-recursive term to the correct type."));
                    }
                    wanted.push(common);
                }
                let step = self.converted(step, &wanted)?;
                let operator = if distinct { "UNION" } else { "UNION ALL" };
                (
                    format!(
                        "{} {operator} {}",
                        render_compared(&base, distinct),
                        render_compared(&step, distinct)
                    ),
                    columns,
                )
            }
            None => {
                let compiled = self.query(&cte.query, outer, None)?;
                (compiled.sql, compiled.columns)
            }
        };
        rename(&mut columns, &renamed, &name)?;
        let list: Vec<String> = (1..=columns.len()).map(|number| format!("\"c{number}\"")).collect();
        self.ctes.push(KnownCte {
            name,
            sql: inner.clone(),
            columns,
        });
        Ok(format!("\"{inner}\"({}) AS ({sql})", list.join(", ")))
    }
}

/// The parts of a recursive query: its first term, whether rows are to differ, and the term that goes on.
fn recursive_parts<'a>(query: &'a Query, name: &str) -> Option<(&'a SetExpr, bool, &'a SetExpr)> {
    if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        return None;
    }
    let SetExpr::SetOperation {
        left,
        op: SetOperator::Union,
        set_quantifier,
        right,
    } = &*query.body
    else {
        return None;
    };
    let mentions = format!("{right}")
        .to_ascii_lowercase()
        .contains(&name.to_ascii_lowercase());
    mentions.then_some((left, !matches!(set_quantifier, SetQuantifier::All), right))
}
