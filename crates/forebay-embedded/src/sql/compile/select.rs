//! SELECT: its list, WHERE, GROUP BY and HAVING.
//!
//! Promises: the columns and names that PostgreSQL gives it; a column that is neither grouped nor inside an aggregate is PostgreSQL's
//! error (42803).

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
};

use super::body::{Item, Leaf};
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::namespace::written;
use super::naming::column_name;
use super::order::position;
use super::scalar::{Form, Scalar, refuse_ungrouped};
use super::scope::{Grouping, Scope};
use super::syntax::{folded, foreign_clause, unnested};
use super::types;
use crate::sql::facts::{self, Context, oid};

impl Compiler<'_> {
    pub(super) fn select(&mut self, select: &Select, outer: Option<&Scope<'_>>, order: &[OrderByExpr]) -> Result<Leaf> {
        if let Some(clause) = foreign_clause(select) {
            return Err(Fault::unsupported(clause));
        }
        let mut scope = Scope::new(outer);
        let mut rest = String::new();
        let from = self.from(&select.from, &mut scope)?;
        if !from.is_empty() {
            rest = format!(" FROM {from}");
        }
        if let Some(selection) = &select.selection {
            scope.no_aggregates.set(Some("WHERE"));
            scope.no_windows.set(Some("WHERE"));
            let condition = self.filter_condition(selection, &scope, "WHERE")?;
            rest.push_str(&format!(" WHERE {}", condition.sql));
        }
        for definition in &select.named_window {
            let spec = match &definition.1 {
                sqlparser::ast::NamedWindowExpr::WindowSpec(spec) => spec.clone(),
                sqlparser::ast::NamedWindowExpr::NamedWindow(_) => {
                    return Err(Fault::unsupported("a window that is another one"));
                }
            };
            scope.windows.push((folded(&definition.0), spec));
        }
        scope.no_windows.set(None);
        self.group(select, order, &mut scope, &mut rest)?;
        let mut items = self.select_items(&select.projection, &scope)?;
        if let Some(having) = &select.having {
            scope.no_windows.set(Some("HAVING"));
            let condition = self.condition(having, &scope, "HAVING")?;
            refuse_ungrouped(&condition)?;
            scope.no_windows.set(None);
            rest.push_str(&format!(" HAVING {}", condition.sql));
            // HAVING alone makes one group of all rows, which SQLite knows by an aggregate in the list.
            let ungrouped = scope.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
            if let (true, Some(first)) = (ungrouped, items.first_mut()) {
                if first.scalar.oid == oid::UNKNOWN {
                    first.scalar = self.convert_type(first.scalar.clone(), oid::TEXT, Context::Implicit)?;
                }
                first.scalar.form = Form::Any;
                first.scalar.sql = format!("CASE WHEN count(*) >= 0 THEN {} END", first.scalar.sql);
            }
        }
        let mut leaf = Leaf {
            distinct: matches!(select.distinct, Some(Distinct::Distinct)),
            items,
            rest,
            order: None,
            first_of: None,
        };
        if leaf.distinct
            && let Some(item) = leaf.items.iter().find(|item| !types::is_ordered(item.scalar.oid))
        {
            return Err(types::without_operator(item.scalar.oid, "equality"));
        }
        let keys = self.select_order(&mut leaf, order, &scope)?;
        if let Some(Distinct::On(on)) = &select.distinct {
            self.distinct_on(&mut leaf, on, keys, &scope)?;
        } else if !keys.is_empty() {
            let keys: Vec<String> = keys.into_iter().map(|key| key.written).collect();
            leaf.order = Some(keys.join(", "));
        }
        Ok(leaf)
    }

    /// GROUP BY, and what follows from it.
    fn group(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        scope: &mut Scope<'_>,
        rest: &mut String,
    ) -> Result<()> {
        let keys = match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => keys.as_slice(),
            _ => return Err(Fault::unsupported("GROUP BY ALL, ROLLUP, CUBE and GROUPING SETS")),
        };
        scope.no_aggregates.set(Some("GROUP BY"));
        let mut texts = Vec::new();
        let mut grouping = Grouping::default();
        for key in keys {
            if matches!(unnested(key), Expr::Tuple(items) if items.is_empty()) {
                continue;
            }
            let before = scope.no_windows.replace(Some("GROUP BY"));
            let scalar = self.group_key(key, select, scope);
            scope.no_windows.set(before);
            let scalar = scalar?;
            let scalar = self.or_text(scalar)?;
            if !types::is_ordered(scalar.oid) {
                return Err(types::without_operator(scalar.oid, "equality"));
            }
            // A number that is left of an expression would be a column's place to SQLite.
            let is_constant = matches!(scalar.form, Form::Constant(_)) || scalar.sql.parse::<i64>().is_ok();
            if !is_constant {
                texts.push(scalar.compared());
            }
            grouping.keys.push(scalar.sql);
        }
        scope.no_aggregates.set(None);
        if !keys.is_empty() {
            if texts.is_empty() {
                // One group, but none if there are no rows.
                rest.push_str(" GROUP BY NULL");
            } else {
                rest.push_str(&format!(" GROUP BY {}", texts.join(", ")));
            }
        } else if select.having.is_none() && !uses_aggregates(select, order) {
            return Ok(());
        }
        for (place, relation) in scope.relations.iter().enumerate() {
            if !relation.key.is_empty()
                && relation
                    .key
                    .iter()
                    .all(|column| grouping.keys.contains(&relation.columns[*column].sql))
            {
                grouping.determined.push(place);
            }
        }
        scope.grouping = Some(grouping);
        Ok(())
    }

    /// A key of GROUP BY: a column of the tables first, then a name or number of the select list, else an expression.
    fn group_key(&mut self, key: &Expr, select: &Select, scope: &Scope<'_>) -> Result<Scalar> {
        let item = |place: usize| match select.projection.get(place) {
            Some(SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) => {
                Some(expression)
            }
            _ => None,
        };
        let mut items = select.projection.iter();
        let starred = items.any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        let count = if starred { usize::MAX } else { select.projection.len() };
        if let Some(place) = position(key, "GROUP BY", count)? {
            let expression = item(place).filter(|_| !starred);
            let expression = expression.ok_or_else(|| Fault::unsupported("GROUP BY a number beside *"))?;
            return self.expression(expression, scope);
        }
        if let Expr::Identifier(name) = key {
            if let Some(scalar) = scope.column(std::slice::from_ref(name))? {
                return Ok(scalar);
            }
            for item in &select.projection {
                if let SelectItem::ExprWithAlias { expr, alias } = item
                    && folded(alias) == folded(name)
                {
                    return self.expression(expr, scope);
                }
            }
        }
        self.expression(key, scope)
    }

    /// A select list, with `*` written out.
    pub(super) fn select_items(&mut self, projection: &[SelectItem], scope: &Scope<'_>) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expression) => items.push(Item {
                    name: column_name(expression),
                    scalar: self.expression(expression, scope)?,
                    origin: None,
                }),
                SelectItem::ExprWithAlias { expr, alias } => items.push(Item {
                    name: folded(alias),
                    scalar: self.expression(expr, scope)?,
                    origin: None,
                }),
                SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                    if scope.star_is_unsettled {
                        return Err(
                            Fault::unsupported("* over a join with USING or NATURAL beside other tables")
                                .with_hint("Name the columns."),
                        );
                    }
                    let all = scope.starred(None).unwrap_or_default();
                    if scope.relations.is_empty() {
                        return Err(Fault::new("42601", "SELECT * with no tables specified is not valid"));
                    }
                    self.record_star(options, &all);
                    items.extend(all.into_iter().map(Item::from));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if options.to_string().is_empty() =>
                {
                    let (schema, table) = written(name)?;
                    let all = scope.starred(Some((schema.as_deref(), &table))).ok_or_else(|| {
                        Fault::new("42P01", format!("missing FROM-clause entry for table \"{table}\""))
                    })?;
                    self.record_star(options, &all);
                    items.extend(all.into_iter().map(Item::from));
                }
                other => return Err(Fault::unsupported(format!("{other} in a select list"))),
            }
        }
        for item in &mut items {
            refuse_ungrouped(&item.scalar)?;
            item.origin = scope.origin(&item.scalar.sql);
        }
        if items.len() > 1664 {
            return Err(Fault::new("54011", "target lists can have at most 1664 entries"));
        }
        Ok(items)
    }
}

/// Whether aggregates of this query's own stand in its list, or its order.
pub(super) fn uses_aggregates(select: &Select, order: &[OrderByExpr]) -> bool {
    use std::ops::ControlFlow;

    use crate::sql::walk::{Look, walk};

    struct Finder {
        depth: usize,
    }
    impl Look for Finder {
        fn query(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn query_end(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }

        fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
            if self.depth == 0
                && let Expr::Function(function) = expression
                && function.over.is_none()
                && let Ok(name) = types::object_name(&function.name)
                && facts::functions(&name).first().is_some_and(|fact| fact.kind == b'a')
            {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder { depth: 0 };
    walk(&select.projection, &mut finder).is_break() || order.iter().any(|key| walk(key, &mut finder).is_break())
}
