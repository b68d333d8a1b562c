//! Queries as a whole: WITH, SELECT, UNION and its kin, VALUES, ORDER BY, LIMIT.

use postgres_types::Type;
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectFlavor,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias, Value, Values,
    WildcardAdditionalOptions,
};

use super::super::error::CatalogError;
use super::piece::{Piece, quoted};
use super::scope::{CommonTable, Scope, ScopeColumn};
use super::translator::{SetList, Translator};
use crate::sql::compile::naming::column_name;
use crate::sql::compile::syntax::{folded, foreign_clause, name_parts};

type Columns = Vec<ScopeColumn>;

/// One item of a SELECT list.
struct Item {
    name: String,
    piece: Piece,
}

impl Translator {
    /// Translates a query.
    pub(super) fn query(&mut self, query: &Query) -> Result<(String, Columns), CatalogError> {
        self.deeper(|this| {
            let known = this.common_tables.len();
            // A set-returning function in here is not one of the surrounding SELECT list.
            this.sets.push(None);
            let result = this.query_inside(query);
            this.sets.pop();
            this.common_tables.truncate(known);
            result
        })
    }

    fn query_inside(&mut self, query: &Query) -> Result<(String, Columns), CatalogError> {
        let refused = [
            (query.fetch.is_some(), "FETCH FIRST"),
            (!query.locks.is_empty(), "FOR UPDATE"),
            (query.for_clause.is_some(), "FOR XML"),
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
            (!query.pipe_operators.is_empty(), "|>"),
        ];
        refuse(&refused)?;
        let mut sql = String::new();
        if let Some(with) = &query.with {
            sql.push_str(if with.recursive { "WITH RECURSIVE " } else { "WITH " });
            for (index, table) in with.cte_tables.iter().enumerate() {
                if index > 0 {
                    sql.push_str(", ");
                }
                let name = folded(&table.alias.name);
                if with.recursive
                    && let SetExpr::SetOperation { left, .. } = table.query.body.as_ref()
                {
                    // The recursive half refers to the columns of the first half.
                    let (_, columns) = self.set_expression(left, None)?;
                    let columns = renamed(columns, &table.alias)?;
                    self.common_tables.push(CommonTable {
                        name: name.clone(),
                        columns,
                    });
                }
                let (text, columns) = self.query(&table.query)?;
                let columns = renamed(columns, &table.alias)?;
                let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
                sql.push_str(&format!("{}({}) AS ({text})", quoted(&name), list.join(", ")));
                self.common_tables.push(CommonTable { name, columns });
            }
            sql.push(' ');
        }
        let (body, columns) = self.set_expression(&query.body, query.order_by.as_ref())?;
        sql.push_str(&body);
        if let Some(clause) = &query.limit_clause {
            self.limit(clause, &mut sql)?;
        }
        Ok((sql, columns))
    }

    fn limit(&mut self, clause: &LimitClause, sql: &mut String) -> Result<(), CatalogError> {
        let LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        } = clause
        else {
            return Err(CatalogError::unsupported("LIMIT with a comma"));
        };
        if !limit_by.is_empty() {
            return Err(CatalogError::unsupported("LIMIT BY"));
        }
        let mut number = |expression: &Expr| -> Result<String, CatalogError> {
            let piece = self.expression(expression)?;
            Ok(self.coerce(piece, &Type::INT8)?.sql)
        };
        // SQLite has no OFFSET without LIMIT, and takes NULL for an error: -1 is all.
        let rows = limit
            .as_ref()
            .map(&mut number)
            .transpose()?
            .map_or_else(|| "-1".to_owned(), |rows| format!("coalesce({rows}, -1)"));
        if limit.is_some() || offset.is_some() {
            sql.push_str(&format!(" LIMIT {rows}"));
        }
        if let Some(offset) = offset {
            let skipped = number(&offset.value)?;
            sql.push_str(&format!(" OFFSET coalesce({skipped}, 0)"));
        }
        Ok(())
    }

    fn set_expression(&mut self, body: &SetExpr, order: Option<&OrderBy>) -> Result<(String, Columns), CatalogError> {
        match body {
            SetExpr::Select(select) => self.select(select, order_list(order)?),
            SetExpr::Query(query) if order.is_none() => {
                // SQLite has no parentheses around a member of a compound.
                let (text, columns) = self.query(query)?;
                Ok((format!("SELECT * FROM ({text})"), columns))
            }
            SetExpr::Values(values) if order.is_none() => self.values(values),
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                let (mut sql, mut columns) = self.deeper(|this| this.set_expression(left, None))?;
                let (mut second, others) = self.deeper(|this| this.set_expression(right, None))?;
                if matches!(right.as_ref(), SetExpr::SetOperation { .. }) {
                    second = format!("SELECT * FROM ({second})");
                }
                let operator = match (op, set_quantifier) {
                    (SetOperator::Union, SetQuantifier::All) => "UNION ALL",
                    (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => "UNION",
                    (SetOperator::Intersect, SetQuantifier::None | SetQuantifier::Distinct) => "INTERSECT",
                    (SetOperator::Except, SetQuantifier::None | SetQuantifier::Distinct) => "EXCEPT",
                    _ => return Err(CatalogError::unsupported(format!("{op} {set_quantifier}"))),
                };
                sql.push_str(&format!(" {operator} {second}"));
                if columns.len() != others.len() {
                    return Err(CatalogError::Syntax {
                        message: format!("each {op} query must have the same number of columns"),
                    });
                }
                for (column, other) in columns.iter_mut().zip(others) {
                    if column.kind == Type::UNKNOWN {
                        column.kind = other.kind;
                    }
                }
                let orders = order_list(order)?;
                let mut terms = Vec::new();
                for term in orders {
                    let position = match &term.expr {
                        Expr::Identifier(name) => columns.iter().position(|column| column.name == folded(name)),
                        other => ordinal(other).filter(|position| *position < columns.len()),
                    };
                    let position = position
                        .ok_or_else(|| CatalogError::unsupported(format!("ORDER BY {} after {op}", term.expr)))?;
                    terms.push(direction(&(position + 1).to_string(), term)?);
                }
                push_order(&mut sql, &terms);
                Ok((sql, columns))
            }
            other => Err(CatalogError::unsupported(other)),
        }
    }

    fn values(&mut self, values: &Values) -> Result<(String, Columns), CatalogError> {
        let mut rows = Vec::new();
        let mut kinds: Vec<Type> = Vec::new();
        for row in &values.rows {
            let mut pieces = Vec::new();
            for (index, expression) in row.iter().enumerate() {
                let piece = self.expression(expression)?;
                match kinds.get_mut(index) {
                    None => kinds.push(piece.kind.clone()),
                    Some(kind) if *kind == Type::UNKNOWN => *kind = piece.kind.clone(),
                    Some(_) => {}
                }
                pieces.push(piece);
            }
            rows.push(pieces);
        }
        let mut texts = Vec::new();
        for row in rows {
            let row: Vec<String> = row
                .into_iter()
                .zip(&kinds)
                .map(|(piece, kind)| self.coerce(piece, kind).map(|piece| piece.sql))
                .collect::<Result<_, _>>()?;
            texts.push(format!("({})", row.join(", ")));
        }
        let columns = kinds
            .into_iter()
            .enumerate()
            .map(|(index, kind)| ScopeColumn::plain(format!("column{}", index + 1), kind))
            .collect();
        Ok((format!("VALUES {}", texts.join(", ")), columns))
    }

    fn select(&mut self, select: &Select, order: &[OrderByExpr]) -> Result<(String, Columns), CatalogError> {
        refuse_select(select)?;
        self.scopes.push(Scope::default());
        let result = self.select_inside(select, order);
        self.scopes.pop();
        result
    }

    fn select_inside(&mut self, select: &Select, order: &[OrderByExpr]) -> Result<(String, Columns), CatalogError> {
        let mut from = String::new();
        for (index, item) in select.from.iter().enumerate() {
            if index > 0 {
                from.push_str(", ");
            }
            from.push_str(&self.table_with_joins(item, select.from.len() > 1)?);
        }
        let aggregates_before = self.aggregates_seen;
        let alias = self.fresh_name();
        self.sets.push(Some(SetList {
            alias: alias.clone(),
            arrays: Vec::new(),
        }));
        let items = self.items(&select.projection);
        let sets = self.sets.pop().flatten().map(|sets| sets.arrays).unwrap_or_default();
        let items = items?;
        let has_aggregates = self.aggregates_seen > aggregates_before;
        self.sets.push(None);
        let rest = self.clauses(select, order, &items);
        self.sets.pop();
        let (clauses, grouped) = rest?;
        if !sets.is_empty() {
            if has_aggregates || grouped {
                return Err(CatalogError::unsupported(
                    "a set-returning function beside an aggregate",
                ));
            }
            // Lateral by nature: the function reads the row it stands beside.
            from.push_str(if from.is_empty() { "" } else { " CROSS JOIN " });
            from.push_str(&format!(
                "json_each(forebay_in_step({})) AS {}",
                sets.join(", "),
                quoted(&alias)
            ));
        }
        let list: Vec<String> = items
            .iter()
            .map(|item| format!("{} AS {}", item.piece.sql, quoted(&item.name)))
            .collect();
        if list.is_empty() {
            return Err(CatalogError::unsupported("a SELECT without columns"));
        }
        let distinct = if matches!(select.distinct, Some(Distinct::Distinct)) {
            "DISTINCT "
        } else {
            ""
        };
        let from = if from.is_empty() { from } else { format!(" FROM {from}") };
        let columns = items
            .into_iter()
            .map(|item| ScopeColumn {
                modifier: item.piece.modifier,
                ..ScopeColumn::plain(item.name, item.piece.kind)
            })
            .collect();
        Ok((format!("SELECT {distinct}{}{from}{clauses}", list.join(", ")), columns))
    }

    /// WHERE, GROUP BY, HAVING, ORDER BY; and whether the rows are grouped.
    fn clauses(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        items: &[Item],
    ) -> Result<(String, bool), CatalogError> {
        let mut sql = String::new();
        if let Some(condition) = &select.selection {
            sql.push_str(&format!(" WHERE {}", self.condition(condition)?));
        }
        let GroupByExpr::Expressions(groups, modifiers) = &select.group_by else {
            return Err(CatalogError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(CatalogError::unsupported("GROUP BY with a modifier"));
        }
        let mut terms = Vec::new();
        for group in groups {
            // Unlike ORDER BY, a column of the tables comes before an alias.
            let term = match ordinal(group) {
                Some(position) => key_of(items, position),
                None => match self.expression(group) {
                    Ok(piece) => Some(computed_key(&piece.sql)),
                    Err(error) => match group {
                        Expr::Identifier(name) => key_of(items, named(items, &folded(name)).ok_or(error)?),
                        _ => return Err(error),
                    },
                },
            };
            terms.push(term.ok_or_else(|| CatalogError::unsupported(format!("GROUP BY {group}")))?);
        }
        if !terms.is_empty() {
            sql.push_str(&format!(" GROUP BY {}", terms.join(", ")));
        }
        if let Some(condition) = &select.having {
            sql.push_str(&format!(" HAVING {}", self.condition(condition)?));
        }
        let mut orders = Vec::new();
        for term in order {
            let key = match (&term.expr, ordinal(&term.expr)) {
                (_, Some(position)) => key_of(items, position),
                (Expr::Identifier(name), _) if let Some(position) = named(items, &folded(name)) => {
                    key_of(items, position)
                }
                (expression, _) => Some(computed_key(&self.expression(expression)?.sql)),
            };
            let key = key.ok_or_else(|| CatalogError::unsupported(format!("ORDER BY {}", term.expr)))?;
            orders.push(direction(&key, term)?);
        }
        push_order(&mut sql, &orders);
        Ok((sql, !terms.is_empty() || select.having.is_some()))
    }

    fn items(&mut self, projection: &[SelectItem]) -> Result<Vec<Item>, CatalogError> {
        let mut items = Vec::new();
        for item in projection {
            let (name, piece) = match item {
                SelectItem::UnnamedExpr(expression) => {
                    {
                        // The walk bounds the depth, so it comes before anything that only recurses.
                        let piece = self.expression(expression)?;
                        (column_name(expression), piece)
                    }
                }
                SelectItem::ExprWithAlias { expr, alias } => (folded(alias), self.expression(expr)?),
                SelectItem::Wildcard(options) => {
                    refuse_options(options)?;
                    for (name, piece) in self.all_columns()? {
                        items.push(Item { name, piece });
                    }
                    continue;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    refuse_options(options)?;
                    let alias = name_parts(name).and_then(|mut parts| parts.pop());
                    let scope = self
                        .scopes
                        .last()
                        .expect("a SELECT list is walked inside its own scope");
                    let source = scope
                        .sources
                        .iter()
                        .find(|source| Some(&source.alias) == alias.as_ref());
                    let source = source
                        .ok_or_else(|| CatalogError::UndefinedTable { name: name.to_string() })?
                        .clone();
                    for column in &source.columns {
                        items.push(Item {
                            name: column.name.clone(),
                            piece: source.piece(column),
                        });
                    }
                    continue;
                }
                other => return Err(CatalogError::unsupported(other)),
            };
            items.push(Item { name, piece });
        }
        Ok(items)
    }

    /// What `*` stands for: merged columns once and first.
    fn all_columns(&self) -> Result<Vec<(String, Piece)>, CatalogError> {
        let scope = self
            .scopes
            .last()
            .expect("a SELECT list is walked inside its own scope");
        if scope.natural {
            return Err(CatalogError::unsupported("* over a NATURAL JOIN"));
        }
        let mut all = Vec::new();
        for name in &scope.merged {
            if !all.iter().any(|(known, _)| known == name) {
                all.push((name.clone(), self.column(std::slice::from_ref(name))?));
            }
        }
        for source in &scope.sources {
            for column in source
                .columns
                .iter()
                .filter(|column| !scope.merged.contains(&column.name))
            {
                all.push((column.name.clone(), source.piece(column)));
            }
        }
        Ok(all)
    }
}

fn named(items: &[Item], name: &str) -> Option<usize> {
    items.iter().position(|item| item.name == name)
}

/// What sorts or groups by an item of the SELECT list: its position.
fn key_of(items: &[Item], position: usize) -> Option<String> {
    (position < items.len()).then(|| (position + 1).to_string())
}

/// An expression as a key: SQLite takes a bare integer for a position, however many parentheses stand around it.
fn computed_key(sql: &str) -> String {
    let bare = sql.trim_matches(|letter: char| matches!(letter, '(' | ')' | '-' | ' '));
    if bare.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("CAST({sql} AS INTEGER)")
    } else {
        sql.to_owned()
    }
}

/// The zero-based position that a bare integer means in ORDER BY and GROUP BY.
fn ordinal(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn order_list(order: Option<&OrderBy>) -> Result<&[OrderByExpr], CatalogError> {
    match order {
        None => Ok(&[]),
        Some(OrderBy {
            kind: OrderByKind::Expressions(terms),
            interpolate: None,
        }) => Ok(terms),
        Some(other) => Err(CatalogError::unsupported(other)),
    }
}

/// PostgreSQL sorts NULL as the largest value, SQLite as the smallest.
pub(super) fn direction(key: &str, term: &OrderByExpr) -> Result<String, CatalogError> {
    use sqlparser::ast::OrderBySort;
    if term.with_fill.is_some() {
        return Err(CatalogError::unsupported("WITH FILL"));
    }
    let descending = match &term.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(_) => return Err(CatalogError::unsupported(format!("ORDER BY {term}"))),
    };
    let nulls = if term.options.nulls_first.unwrap_or(descending) {
        "FIRST"
    } else {
        "LAST"
    };
    Ok(format!(
        "{key} {} NULLS {nulls}",
        if descending { "DESC" } else { "ASC" }
    ))
}

fn push_order(sql: &mut String, terms: &[String]) {
    if !terms.is_empty() {
        sql.push_str(&format!(" ORDER BY {}", terms.join(", ")));
    }
}

/// Gives columns the names of an alias list; the list may be shorter.
pub(super) fn renamed(mut columns: Columns, alias: &TableAlias) -> Result<Columns, CatalogError> {
    if alias.columns.len() > columns.len() {
        return Err(CatalogError::Syntax {
            message: format!("table \"{}\" has {} columns available", alias.name, columns.len()),
        });
    }
    for (column, wanted) in columns.iter_mut().zip(&alias.columns) {
        column.name = folded(&wanted.name);
    }
    Ok(columns)
}

fn refuse(list: &[(bool, &str)]) -> Result<(), CatalogError> {
    match list.iter().find(|(present, _)| *present) {
        Some((_, construct)) => Err(CatalogError::unsupported(construct)),
        None => Ok(()),
    }
}

fn refuse_options(options: &WildcardAdditionalOptions) -> Result<(), CatalogError> {
    let plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    refuse(&[(!plain, "options of *")])
}

fn refuse_select(select: &Select) -> Result<(), CatalogError> {
    let foreign = foreign_clause(select);
    refuse(&[
        (foreign.is_some(), foreign.unwrap_or_default()),
        (matches!(select.distinct, Some(Distinct::On(_))), "DISTINCT ON"),
        (!select.named_window.is_empty(), "WINDOW"),
        (!matches!(select.flavor, SelectFlavor::Standard), "FROM before SELECT"),
    ])
}
