//! Subqueries in expressions.
//!
//! Promises: PostgreSQL's three-valued answers; a second row where one is wanted is PostgreSQL's error (21000), which SQLite does not have.

use sqlparser::ast::{Expr, FunctionArguments, LimitClause, Query, SetExpr, Value};

use super::body::Compiled;
use super::comparison::same_length;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scalar::Scalar;
use super::scope::Scope;
use super::sqlite_text::{has_column, quoted, type_label};
use super::syntax::unnested;
use super::{resolve, types};
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    /// A condition of a WHERE or ON clause.
    pub(super) fn filter_condition(&mut self, expression: &Expr, scope: &Scope<'_>, clause: &str) -> Result<Scalar> {
        let before = std::mem::replace(&mut self.null_is_false, true);
        let condition = self.condition(expression, scope, clause);
        self.null_is_false = before;
        condition
    }

    fn one_column(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Compiled> {
        refuse_in_definition(scope)?;
        let before = std::mem::replace(&mut self.null_is_false, false);
        let compiled = self.query(query, Some(scope), None);
        self.null_is_false = before;
        let compiled = compiled?;
        if compiled.columns.len() != 1 {
            return Err(Fault::new("42601", "subquery must return only one column"));
        }
        Ok(compiled)
    }

    pub(super) fn scalar_subquery(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Scalar> {
        let compiled = self.one_column(query, scope)?;
        let kind = compiled.columns[0].kind;
        let sql = if gives_one_row(query) {
            format!("({})", compiled.sql)
        } else {
            format!(
                "(SELECT CASE WHEN count(*) > 1 THEN \"forebay_several\"() ELSE max(\"c1\") END \
                 FROM (SELECT \"c1\" FROM ({}) LIMIT 2))",
                compiled.sql
            )
        };
        Ok(Scalar {
            typmod: kind.typmod,
            ..Scalar::new(sql, kind.oid)
        })
    }

    pub(super) fn exists(&mut self, query: &Query, negated: bool, scope: &Scope<'_>) -> Result<Scalar> {
        refuse_in_definition(scope)?;
        let before = std::mem::replace(&mut self.null_is_false, false);
        let compiled = self.query(query, Some(scope), None);
        self.null_is_false = before;
        let not = if negated { "NOT " } else { "" };
        Ok(Scalar {
            not_null: true,
            ..Scalar::truth(format!("({not}EXISTS ({}))", compiled?.sql))
        })
    }

    pub(super) fn in_list(&mut self, value: &Expr, list: &[Expr], negated: bool, scope: &Scope<'_>) -> Result<Scalar> {
        if let Expr::Tuple(items) = unnested(value) {
            return self.row_in_list(items, list, negated, scope);
        }
        let value = self.expression(value, scope)?;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            items.push(self.expression(item, scope)?);
        }
        // As PostgreSQL does: what holds no column is one list of one type, if it is more than one thing; the rest goes one by one.
        let (mut single, mut together) = (Vec::new(), Vec::new());
        for item in items {
            if has_column(&item.sql) {
                single.push(item);
            } else {
                together.push(item);
            }
        }
        let mut parts = Vec::with_capacity(single.len() + 1);
        if together.len() > 1 {
            match self.value_in_list(&value, &together, negated)? {
                Some(list) => parts.push(list),
                None => single.append(&mut together),
            }
        } else {
            single.append(&mut together);
        }
        for item in single {
            parts.push(self.binary(if negated { "<>" } else { "=" }, value.clone(), item)?);
        }
        if let [only] = parts.as_slice() {
            return Ok(only.clone());
        }
        let sql: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
        let joiner = if negated { " AND " } else { " OR " };
        Ok(Scalar::truth(format!("({})", sql.join(joiner))).with_parts(&parts))
    }

    /// The value in a list of one type; `None` if no type fits all.
    fn value_in_list(&mut self, value: &Scalar, items: &[Scalar], negated: bool) -> Result<Option<Scalar>> {
        let types: Vec<Oid> = std::iter::once(value.oid)
            .chain(items.iter().map(|item| item.oid))
            .collect();
        let Ok(common) = resolve::common_type(&types, "IN") else {
            return Ok(None);
        };
        // There are no arrays of arrays, which is what PostgreSQL would make of the list.
        if facts::element_of(common).is_some() || !types.iter().all(|oid| resolve::implicitly(*oid, common)) {
            return Ok(None);
        }
        let not = if negated { "NOT " } else { "" };
        let left_type = match value.oid {
            oid::UNKNOWN => match resolve::operator("=", Some(oid::UNKNOWN), common)?.left {
                left if resolve::is_polymorphic(left) => common,
                left => left,
            },
            known => known,
        };
        let probe = Scalar::new("", common);
        let left = self.convert_type(value.clone(), left_type, Context::Implicit)?;
        let (left, right) = self.comparable("=", left, probe)?;
        let to = right.oid;
        let mut sql =
            String::with_capacity(items.iter().map(|item| item.sql.len() + 2).sum::<usize>() + left.sql.len() + 16);
        sql.push_str(&format!("({} {not}IN (", left.compared()));
        let mut flags = Scalar::truth("");
        for (place, item) in items.iter().enumerate() {
            let item = self.convert_type(item.clone(), common, Context::Implicit)?;
            let item = self.convert_type(item, to, Context::Implicit)?;
            if place > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&item.sql);
            flags = flags.with_parts([&item]);
        }
        sql.push_str("))");
        Ok(Some(Scalar { sql, ..flags }.with_parts([&left])))
    }

    fn row_in_list(&mut self, items: &[Expr], list: &[Expr], negated: bool, scope: &Scope<'_>) -> Result<Scalar> {
        let mut left = Vec::new();
        for item in items {
            left.push(self.expression(item, scope)?);
        }
        let mut rows = Vec::new();
        for row in list {
            let Expr::Tuple(cells) = unnested(row) else {
                return Err(Fault::unsupported("a row in a list that holds something else"));
            };
            same_length(items, cells)?;
            let mut parts = Vec::new();
            for (value, cell) in left.iter().zip(cells) {
                let cell = self.expression(cell, scope)?;
                parts.push(self.binary("=", value.clone(), cell)?);
            }
            let sql: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
            rows.push(Scalar::truth(format!("({})", sql.join(" AND "))).with_parts(&parts));
        }
        let sql: Vec<&str> = rows.iter().map(|row| row.sql.as_str()).collect();
        let not = if negated { "NOT " } else { "" };
        Ok(Scalar::truth(format!("({not}({}))", sql.join(" OR "))).with_parts(&rows))
    }

    pub(super) fn in_subquery(
        &mut self,
        value: &Expr,
        query: &Query,
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let not = if negated { "NOT " } else { "" };
        if let Expr::Tuple(items) = unnested(value) {
            refuse_in_definition(scope)?;
            let before = std::mem::replace(&mut self.null_is_false, false);
            let compiled = self.query(query, Some(scope), None);
            self.null_is_false = before;
            let compiled = compiled?;
            if compiled.columns.len() != items.len() {
                return Err(Fault::new(
                    "42601",
                    if compiled.columns.len() > items.len() {
                        "subquery has too many columns"
                    } else {
                        "subquery has too few columns"
                    },
                ));
            }
            let (mut lefts, mut rights) = (Vec::new(), Vec::new());
            let mut flags = Scalar::truth("");
            for (place, (item, column)) in items.iter().zip(&compiled.columns).enumerate() {
                let left = self.expression(item, scope)?;
                let right = Scalar::new(format!("\"c{}\"", place + 1), column.kind.oid);
                let (left, right) = self.comparable("=", left, right)?;
                if types::collation(left.oid).is_some() {
                    return Err(Fault::unsupported(format!(
                        "a row with a {} IN a subquery",
                        facts::display_name(left.oid)
                    )));
                }
                flags = flags.with_parts([&left]);
                lefts.push(left.sql);
                rights.push(right.sql);
            }
            let sql = format!(
                "(({}) {not}IN (SELECT {} FROM ({})))",
                lefts.join(", "),
                rights.join(", "),
                compiled.sql
            );
            return Ok(Scalar { sql, ..flags });
        }
        let left = self.expression(value, scope)?;
        let compiled = self.one_column_or(query, scope)?;
        let right = Scalar::new("\"c1\"", compiled.columns[0].kind.oid);
        let (left, right) = self.comparable("=", left, right)?;
        let sql = if right.sql == "\"c1\"" {
            format!("({} {not}IN ({}))", left.compared(), compiled.sql)
        } else {
            format!(
                "({} {not}IN (SELECT {} FROM ({})))",
                left.compared(),
                right.sql,
                compiled.sql
            )
        };
        Ok(Scalar::truth(sql).with_parts([&left]))
    }

    pub(super) fn one_column_or(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Compiled> {
        self.one_column(query, scope).map_err(|fault| {
            if fault.message == "subquery must return only one column" {
                Fault::new("42601", "subquery has too many columns")
            } else {
                fault
            }
        })
    }

    pub(super) fn array_of_query(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Scalar> {
        let compiled = self.one_column(query, scope)?;
        let element = compiled.columns[0].kind.oid;
        let (Some(array), Some(kind)) = (
            facts::array_of(element).filter(|array| types::has_values(*array)),
            forebay_pg_values::Type::from_oid(element),
        ) else {
            return Err(Fault::unsupported(format!(
                "an array of {}",
                facts::display_name(element)
            )));
        };
        Ok(Scalar {
            not_null: true,
            ..Scalar::new(
                format!(
                    "(SELECT \"forebay_gather\"(\"c1\", {}) FROM ({}))",
                    quoted(&type_label(kind)),
                    compiled.sql
                ),
                array,
            )
        })
    }
}

/// Definitions hold no queries.
fn refuse_in_definition(scope: &Scope<'_>) -> Result<()> {
    match scope.definition() {
        Some(what) => Err(Fault::new("0A000", format!("cannot use subquery in {what}"))),
        None => Ok(()),
    }
}

/// Whether it is plain from the text that there is one row at most.
pub(super) fn gives_one_row(query: &Query) -> bool {
    if let Some(LimitClause::LimitOffset { limit: Some(limit), .. }) = &query.limit_clause
        && let Expr::Value(value) = limit
        && let Value::Number(number, _) = &value.value
        && number == "1"
    {
        return true;
    }
    let SetExpr::Select(select) = &*query.body else {
        return false;
    };
    let ungrouped = matches!(
        &select.group_by,
        sqlparser::ast::GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty()
    );
    if select.from.is_empty() && ungrouped {
        return true;
    }
    ungrouped
        && select.projection.len() == 1
        && matches!(
            &select.projection[0],
            sqlparser::ast::SelectItem::UnnamedExpr(Expr::Function(function))
            | sqlparser::ast::SelectItem::ExprWithAlias { expr: Expr::Function(function), .. }
                if function.over.is_none()
                    && !matches!(function.args, FunctionArguments::Subquery(_))
                    && types::object_name(&function.name)
                        .is_ok_and(|name| facts::functions(&name).first().is_some_and(|fact| fact.kind == b'a'))
        )
}
