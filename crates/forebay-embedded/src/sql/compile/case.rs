//! CASE.
//!
//! Promises: the branches have one type, the one that PostgreSQL gives them; what would fail in a branch that is never met is no error.

use forebay_pg_values::Owned;
use sqlparser::ast::{CaseWhen, Expr};

use super::compiler::Compiler;
use super::fault::Result;
use super::scalar::{Form, Scalar, common_kind, may_be_left_out};
use super::scope::Scope;
use super::sqlite_text::has_column;

impl Compiler<'_> {
    pub(super) fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let mut whens: Vec<Scalar> = Vec::new();
        let mut may_be_decided = false;
        for when in conditions {
            let condition = self.leniently(may_be_decided, |compiler| match operand {
                None => compiler.condition(&when.condition, scope, "CASE/WHEN"),
                Some(operand) => {
                    let operand = compiler.expression(operand, scope)?;
                    let operand = compiler.or_text(operand)?;
                    let value = compiler.expression(&when.condition, scope)?;
                    compiler.binary("=", operand, value)
                }
            })?;
            may_be_decided |= may_be_planned(&condition.sql);
            whens.push(condition);
        }
        // PostgreSQL looks at ELSE first when it settles the type.
        let results = self.leniently(may_be_decided, |compiler| {
            let results = compiler.case_results(conditions, otherwise, scope)?;
            compiler.unify(results, "CASE")
        })?;
        let kind = common_kind(&results);
        if let Some(decided) = decided(&whens, &results)
            && may_be_left_out(whens.iter().chain(&results))
        {
            return Ok(Scalar {
                typmod: kind.typmod,
                ..decided.clone()
            });
        }
        let mut sql = "CASE".to_owned();
        for (when, result) in whens.iter().zip(&results[1..]) {
            sql.push_str(&format!(" WHEN {} THEN {}", when.sql, result.sql));
        }
        sql.push_str(&format!(" ELSE {} END", results[0].sql));
        Ok(Scalar {
            typmod: kind.typmod,
            not_null: results.iter().all(|result| result.not_null),
            ..Scalar::new(format!("({sql})"), kind.oid)
        }
        .with_parts(whens.iter().chain(&results)))
    }

    /// What ELSE gives, then what the branches give.
    fn case_results(
        &mut self,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Vec<Scalar>> {
        let mut results = vec![match otherwise {
            Some(otherwise) => self.expression(otherwise, scope)?,
            None => Scalar::null(),
        }];
        for when in conditions {
            results.push(self.expression(&when.result, scope)?);
        }
        Ok(results)
    }
}

/// Whether PostgreSQL's planner may know the value of what SQLite has this text for: what has no column, parameters among it, and
/// what a part decides that has none. Which branch is met is then known before any is evaluated.
fn may_be_planned(sql: &str) -> bool {
    !has_column(sql)
        || [" AND ", " OR ", "CASE ", "coalesce("]
            .iter()
            .any(|word| sql.contains(word))
}

/// The constant that a CASE comes to, if its conditions are known; of the results ELSE's is the first.
fn decided<'a>(whens: &[Scalar], results: &'a [Scalar]) -> Option<&'a Scalar> {
    let mut met = &results[0];
    for (when, result) in whens.iter().zip(&results[1..]) {
        match &when.form {
            Form::Constant(Owned::Null | Owned::Integer(0)) => {}
            Form::Constant(_) => {
                met = result;
                break;
            }
            Form::Any | Form::Parameter(_) => return None,
        }
    }
    matches!(met.form, Form::Constant(_)).then_some(met)
}
