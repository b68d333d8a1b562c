//! LEFT JOIN LATERAL (…) ON true, of at most one row for each row before it: SQLite has no LATERAL.
//!
//! Promises: each column of the subquery becomes a scalar subquery in SQLite's text; a second row is refused when it is met. Anything that would
//! show that a column is computed anew wherever it stands is refused: functions that return another value each time, and joins that put NULL
//! into the rows before it.

use sqlparser::ast::{Expr, Join, JoinConstraint, JoinOperator, Query, TableAlias, TableFactor, Value};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scope::{Relation, RelationColumn, Scope};
use super::sqlite_text::{quoted, relation_name};
use super::subquery::gives_one_row;
use super::syntax::unnested;

const SEVERAL: &str = "a LATERAL subquery that gives several rows is not supported";

/// What in SQLite's text gives another value each time.
const VOLATILE: [&str; 4] = ["forebay_random", "forebay_nextval", "forebay_uuid", "forebay_clock"];

fn unsupported(what: &str) -> Fault {
    Fault::unsupported(format!("LATERAL before a subquery {what}"))
        .with_hint("Join with the subquery, or put it into the select list.")
}

/// The subquery of a lateral join.
pub(super) fn lateral(join: &Join) -> Option<(&Query, Option<&TableAlias>)> {
    match &join.relation {
        TableFactor::Derived {
            lateral: true,
            subquery,
            alias,
            sample: None,
        } => Some((subquery, alias.as_ref())),
        _ => None,
    }
}

impl Compiler<'_> {
    /// Enters the columns of a lateral join, the one of `joins` at this place; gives SQLite's text of the join, if it needs any.
    pub(super) fn lateral_join(
        &mut self,
        joins: &[Join],
        place: usize,
        subquery: &Query,
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Result<String> {
        let is_true =
            |condition: &Expr| matches!(unnested(condition), Expr::Value(value) if value.value == Value::Boolean(true));
        match &joins[place].join_operator {
            JoinOperator::Left(JoinConstraint::On(condition))
            | JoinOperator::LeftOuter(JoinConstraint::On(condition))
                if is_true(condition) => {}
            _ => return Err(unsupported("but in LEFT JOIN LATERAL … ON true")),
        }
        let puts_nulls = |join: &Join| {
            matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            )
        };
        if joins.iter().any(puts_nulls) {
            return Err(unsupported("beside a RIGHT or FULL JOIN"));
        }
        let before = std::mem::replace(&mut self.null_is_false, false);
        let compiled = self.query(subquery, Some(scope), None);
        self.null_is_false = before;
        let compiled = compiled?;
        if VOLATILE.iter().any(|name| compiled.sql.contains(name)) {
            return Err(unsupported("with functions that give another value each time"));
        }
        let columns = compiled
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| RelationColumn {
                name: column.name.clone(),
                kind: column.kind,
                sql: format!("(SELECT \"c{}\" FROM ({}))", place + 1, compiled.sql),
                not_null: false,
            });
        let mut relation = Relation {
            name: None,
            schema: None,
            table: None,
            columns: columns.collect(),
            key: Vec::new(),
            merged: Vec::new(),
            is_value: false,
        };
        relation.apply_alias(alias)?;
        scope.add(relation)?;
        if gives_one_row(subquery) {
            return Ok(String::new());
        }
        self.names += 1;
        Ok(format!(
            " LEFT JOIN (SELECT 1) AS {} ON (SELECT CASE WHEN count(*) > 1 THEN \"forebay_fail\"('0A000', {}) ELSE 1 END \
             FROM (SELECT 1 FROM ({}) LIMIT 2))",
            relation_name(self.names),
            quoted(SEVERAL),
            compiled.sql
        ))
    }
}
