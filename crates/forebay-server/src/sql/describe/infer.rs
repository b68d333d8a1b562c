//! Walks a statement's tree with the scopes of its queries, and finds out the types of its parameters and of the rows it gives.
//!
//! Contract: a parameter gets the type of the first thing it meets that has one. A column is typed only if every value it can hold is
//! of that type, by what the schema declares; otherwise it is left open. The work is bounded, whatever the statement: beyond the
//! bound, types are left open. Knows nothing of values, and nothing of what the types are used for.

use std::collections::HashMap;
use std::rc::Rc;

use postgres_types::Type;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, FunctionArg, FunctionArgExpr, GroupByExpr, Insert, Join,
    JoinConstraint, JoinOperator, LimitClause, ObjectName, ObjectNamePart, OnConflictAction, OnInsert, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement as Tree, TableAlias,
    TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind, Values,
};

use super::schema::{Named, Schema, TypedColumn};
use crate::sql::{TOKENS_MAX, grammar, lexer};

/// How many nodes of trees are looked at for one statement, views included.
const WORK_MAX: usize = 500_000;
/// How many views inside one another are followed.
const VIEWS_MAX: usize = 16;

/// One thing in a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// What columns are qualified with.
    pub(super) name: Option<String>,
    pub(super) columns: Vec<TypedColumn>,
    /// Whether it has a row id under SQLite's three names.
    pub(super) has_row_id: bool,
}

/// What names mean inside one query.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
    /// The query's own columns, which SQLite lets be named as well.
    pub(super) aliases: Vec<TypedColumn>,
}

pub(super) struct Inference<'a> {
    pub(super) schema: Schema<'a>,
    /// By number, from 1; `None` while open.
    pub(super) parameters: Vec<Option<Type>>,
    /// Innermost last.
    pub(super) scopes: Vec<Scope>,
    /// Named by WITH, innermost last.
    ctes: Vec<(String, Rc<Vec<TypedColumn>>)>,
    pub(super) work_left: usize,
    /// If asked for: the types that string literals meet, by line and column.
    pub(super) literals: Option<HashMap<(u64, u64), Type>>,
    /// The next select list stands beside another one of a UNION, whose types say nothing about its literals.
    beside: bool,
    views_open: usize,
}

impl<'a> Inference<'a> {
    pub(super) fn new(schema: Schema<'a>, parameters: Vec<Option<Type>>) -> Self {
        Self {
            schema,
            parameters,
            scopes: Vec::new(),
            ctes: Vec::new(),
            work_left: WORK_MAX,
            literals: None,
            beside: false,
            views_open: 0,
        }
    }

    /// Walks the whole statement; the columns of its result, if it has one.
    pub(super) fn statement(&mut self, tree: &Tree) -> Option<Vec<TypedColumn>> {
        match tree {
            Tree::Query(query) => Some(self.query(query, &[])),
            Tree::Insert(insert) => self.insert(insert),
            Tree::Update(update) => self.update(update),
            Tree::Delete(delete) => self.delete(delete),
            Tree::Explain { statement, .. } => {
                self.statement(statement);
                None
            }
            Tree::CreateTable(table) => {
                if let Some(query) = &table.query {
                    self.query(query, &[]);
                }
                None
            }
            _ => None,
        }
    }

    /// A query's columns; `expected` are the types its columns will be put into.
    pub(super) fn query(&mut self, query: &Query, expected: &[Option<Type>]) -> Vec<TypedColumn> {
        if self.work_left == 0 {
            return Vec::new();
        }
        self.work_left -= 1;
        // A deep tree is walked on a stack that grows with it.
        stacker::maybe_grow(STACK_LEFT_MIN, STACK_GROWTH, || {
            let outer_ctes = self.ctes.len();
            if let Some(with) = &query.with {
                for cte in &with.cte_tables {
                    let name = cte.alias.name.value.to_ascii_lowercase();
                    if with.recursive
                        && let SetExpr::SetOperation { left, .. } = cte.query.body.as_ref()
                    {
                        let first = self.set_expression(left, &[], None);
                        self.ctes
                            .push((name.clone(), Rc::new(renamed(first, Some(&cte.alias)))));
                        let whole = self.query(&cte.query, &[]);
                        self.ctes.pop();
                        self.ctes.push((name, Rc::new(renamed(whole, Some(&cte.alias)))));
                    } else {
                        let columns = self.query(&cte.query, &[]);
                        self.ctes.push((name, Rc::new(renamed(columns, Some(&cte.alias)))));
                    }
                }
            }
            let columns = self.set_expression(&query.body, expected, query.order_by.as_ref());
            match &query.limit_clause {
                Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                    for count in limit.iter().chain(offset.iter().map(|offset| &offset.value)) {
                        self.infer(count, Some(&Type::INT8));
                    }
                }
                Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                    self.infer(offset, Some(&Type::INT8));
                    self.infer(limit, Some(&Type::INT8));
                }
                None => {}
            }
            if let Some(count) = query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref()) {
                self.infer(count, Some(&Type::INT8));
            }
            self.ctes.truncate(outer_ctes);
            columns
        })
    }

    fn set_expression(
        &mut self,
        body: &SetExpr,
        expected: &[Option<Type>],
        order: Option<&OrderBy>,
    ) -> Vec<TypedColumn> {
        stacker::maybe_grow(STACK_LEFT_MIN, STACK_GROWTH, || match body {
            SetExpr::Select(select) => self.select(select, expected, order),
            SetExpr::Query(query) => self.query(query, expected),
            SetExpr::SetOperation { left, right, .. } => {
                let mut columns = self.set_expression(left, expected, None);
                let seen: Vec<Option<Type>> = columns.iter().map(|column| column.kind.clone()).collect();
                let outer = self.literals.is_some() && expected.is_empty();
                self.beside = outer;
                let other = self.set_expression(right, &seen, None);
                self.beside = false;
                for (column, other) in columns.iter_mut().zip(other) {
                    column.kind = self.both(column.kind.take(), other.kind);
                }
                columns
            }
            SetExpr::Values(values) => self.values(values, expected),
            SetExpr::Insert(tree) | SetExpr::Update(tree) | SetExpr::Delete(tree) => {
                self.statement(tree).unwrap_or_default()
            }
            _ => Vec::new(),
        })
    }

    fn values(&mut self, values: &Values, expected: &[Option<Type>]) -> Vec<TypedColumn> {
        let beside = std::mem::take(&mut self.beside);
        let expected = if beside { &[] } else { expected };
        let width = values.rows.first().map_or(0, |row| row.len());
        (0..width)
            .map(|position| {
                let column: Vec<&Expr> = values.rows.iter().filter_map(|row| row.get(position)).collect();
                let wanted = expected.get(position).and_then(Option::as_ref);
                TypedColumn::new(format!("column{}", position + 1), self.alternatives(&column, wanted))
            })
            .collect()
    }

    fn select(&mut self, select: &Select, expected: &[Option<Type>], order: Option<&OrderBy>) -> Vec<TypedColumn> {
        let beside = std::mem::take(&mut self.beside);
        let expected = if beside { &[] } else { expected };
        let mut conditions = Vec::new();
        let relations = self.tables(&select.from, &mut conditions);
        self.scopes.push(Scope {
            relations,
            aliases: Vec::new(),
        });
        let columns = self.items(&select.projection, expected);
        self.innermost().aliases.clone_from(&columns);
        for condition in conditions.into_iter().chain(&select.selection).chain(&select.having) {
            self.infer(condition, Some(&Type::BOOL));
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.infer(key, None);
            }
        }
        if let Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }) = order
        {
            for key in keys {
                self.infer(&key.expr, None);
            }
        }
        self.scopes.pop();
        columns
    }

    fn innermost(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("called between a push and its pop")
    }

    /// The columns of a select list or a RETURNING clause, in the innermost scope.
    fn items(&mut self, items: &[SelectItem], expected: &[Option<Type>]) -> Vec<TypedColumn> {
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            let wanted = expected.get(columns.len()).cloned().flatten();
            match item {
                SelectItem::UnnamedExpr(expression) => {
                    let name = match expression {
                        Expr::Identifier(name) => name.value.clone(),
                        Expr::CompoundIdentifier(parts) => {
                            parts.last().map(|name| name.value.clone()).unwrap_or_default()
                        }
                        // By what it is called is SQLite's to say; nothing can refer to it safely.
                        _ => String::new(),
                    };
                    columns.push(TypedColumn::new(name, self.infer(expression, wanted.as_ref())));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push(TypedColumn::new(alias.value.clone(), self.infer(expr, wanted.as_ref())));
                }
                SelectItem::Wildcard(_) => {
                    let all = self.innermost().relations.iter().flat_map(|relation| &relation.columns);
                    columns.extend(all.filter(|column| column.starred).cloned());
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let name = last_name(name);
                    let found = self
                        .innermost()
                        .relations
                        .iter()
                        .find(|relation| relation.name.as_deref() == Some(&name));
                    columns.extend(
                        found
                            .into_iter()
                            .flat_map(|relation| {
                                relation
                                    .columns
                                    .iter()
                                    .filter(|column| column.starred || column.writable)
                            })
                            .cloned(),
                    );
                }
                _ => {}
            }
        }
        columns
    }

    /// The relations of a FROM clause; its join conditions are for when all of them are in scope.
    fn tables<'t>(&mut self, from: &'t [TableWithJoins], conditions: &mut Vec<&'t Expr>) -> Vec<Relation> {
        let mut relations = Vec::new();
        for table in from {
            relations.extend(self.joined(table, conditions));
        }
        relations
    }

    fn joined<'t>(&mut self, table: &'t TableWithJoins, conditions: &mut Vec<&'t Expr>) -> Vec<Relation> {
        let mut relations = self.factor(&table.relation, conditions);
        for join in &table.joins {
            let mut right = self.factor(&join.relation, conditions);
            match constraint(join) {
                Some(JoinConstraint::On(condition)) => conditions.push(condition),
                Some(JoinConstraint::Using(names)) => {
                    for name in names {
                        show_once(&mut right, &last_name(name));
                    }
                }
                Some(JoinConstraint::Natural) => {
                    let left: Vec<String> = relations
                        .iter()
                        .flat_map(|relation: &Relation| &relation.columns)
                        .filter(|column| column.starred)
                        .map(|column| column.name.to_ascii_lowercase())
                        .collect();
                    for name in left {
                        show_once(&mut right, &name);
                    }
                }
                _ => {}
            }
            relations.extend(right);
        }
        relations
    }

    fn factor<'t>(&mut self, factor: &'t TableFactor, conditions: &mut Vec<&'t Expr>) -> Vec<Relation> {
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                for argument in args.iter().flat_map(|args| &args.args) {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) = argument {
                        self.infer(expression, None);
                    }
                }
                vec![self.table(name, alias.as_ref())]
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let columns = self.query(subquery, &[]);
                vec![Relation {
                    name: alias.as_ref().map(|alias| alias.name.value.to_ascii_lowercase()),
                    columns: renamed(columns, alias.as_ref()),
                    has_row_id: false,
                }]
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let mut relations = self.joined(table_with_joins, conditions);
                if let Some(alias) = alias {
                    for relation in &mut relations {
                        relation.name = Some(alias.name.value.to_ascii_lowercase());
                    }
                }
                relations
            }
            _ => Vec::new(),
        }
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Relation {
        let table = last_name(name);
        let cte = if name.0.len() == 1 {
            self.ctes.iter().rev().find(|(cte, _)| *cte == table)
        } else {
            None
        };
        let (columns, has_row_id) = match cte {
            Some((_, columns)) => (columns.as_ref().clone(), false),
            None => match self.schema.named(&table) {
                Some(Named::Table(columns)) => (columns.as_ref().clone(), true),
                Some(Named::View(columns, sql)) => (self.view(&columns, &sql), false),
                None => (Vec::new(), false),
            },
        };
        Relation {
            name: Some(alias.map_or(table, |alias| alias.name.value.to_ascii_lowercase())),
            columns: renamed(columns, alias),
            has_row_id,
        }
    }

    /// A view's columns: those that the schema gives no type get that of the expression behind them.
    fn view(&mut self, columns: &[TypedColumn], sql: &str) -> Vec<TypedColumn> {
        let mut columns = columns.to_vec();
        if self.views_open == VIEWS_MAX {
            return columns;
        }
        let Ok(tokens) = lexer::tokens(sql, TOKENS_MAX) else {
            return columns;
        };
        let Ok(depth) = grammar::check_depth(sql, &tokens) else {
            return columns;
        };
        grammar::with_deep_stack(depth, || {
            if let Ok(Some(Tree::CreateView(view))) = grammar::parse(sql) {
                // Nothing of the statement around it is visible inside.
                let (scopes, ctes) = (std::mem::take(&mut self.scopes), std::mem::take(&mut self.ctes));
                // Nor are its literals this statement's.
                let literals = self.literals.take();
                self.views_open += 1;
                let inferred = self.query(&view.query, &[]);
                self.literals = literals;
                self.views_open -= 1;
                (self.scopes, self.ctes) = (scopes, ctes);
                if inferred.len() == columns.len() {
                    for (column, inferred) in columns.iter_mut().zip(inferred) {
                        column.kind = inferred.kind;
                    }
                }
            }
        });
        columns
    }

    fn insert(&mut self, insert: &Insert) -> Option<Vec<TypedColumn>> {
        let TableObject::TableName(name) = &insert.table else {
            return None;
        };
        let mut relation = self.table(name, None);
        if let Some(alias) = &insert.table_alias {
            relation.name = Some(alias.alias.value.to_ascii_lowercase());
        }
        let kind_of = |name: &str| {
            let found = relation
                .columns
                .iter()
                .find(|column| column.name.eq_ignore_ascii_case(name));
            found
                .and_then(|column| column.kind.clone())
                .or_else(|| is_row_id(name).then_some(Type::INT8))
        };
        let expected: Vec<Option<Type>> = if insert.columns.is_empty() {
            relation
                .columns
                .iter()
                .filter(|column| column.writable)
                .map(|column| column.kind.clone())
                .collect()
        } else {
            insert
                .columns
                .iter()
                .map(|column| kind_of(&last_name(column)))
                .collect()
        };
        if let Some(source) = &insert.source {
            self.query(source, &expected);
        }
        let excluded = Relation {
            name: Some("excluded".to_owned()),
            has_row_id: false,
            ..relation.clone()
        };
        let target = relation.clone();
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on
            && let OnConflictAction::DoUpdate(update) = &conflict.action
        {
            // The row that is there comes first: a bare name means its column.
            self.scopes.push(Scope {
                relations: vec![target.clone(), excluded],
                aliases: Vec::new(),
            });
            self.assignments(&update.assignments, &target);
            if let Some(condition) = &update.selection {
                self.infer(condition, Some(&Type::BOOL));
            }
            self.scopes.pop();
        }
        self.returning(insert.returning.as_deref(), target)
    }

    fn update(&mut self, update: &Update) -> Option<Vec<TypedColumn>> {
        let mut conditions = Vec::new();
        let mut relations = self.joined(&update.table, &mut conditions);
        let target = relations.first()?.clone();
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from {
            relations.extend(self.tables(from, &mut conditions));
        }
        self.scopes.push(Scope {
            relations,
            aliases: Vec::new(),
        });
        self.assignments(&update.assignments, &target);
        for condition in conditions.into_iter().chain(&update.selection) {
            self.infer(condition, Some(&Type::BOOL));
        }
        self.scopes.pop();
        self.returning(update.returning.as_deref(), target)
    }

    fn delete(&mut self, delete: &Delete) -> Option<Vec<TypedColumn>> {
        let mut conditions = Vec::new();
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let relations = self.tables(from, &mut conditions);
        let target = relations.first()?.clone();
        self.scopes.push(Scope {
            relations,
            aliases: Vec::new(),
        });
        for condition in conditions.into_iter().chain(&delete.selection) {
            self.infer(condition, Some(&Type::BOOL));
        }
        self.scopes.pop();
        self.returning(delete.returning.as_deref(), target)
    }

    fn returning(&mut self, items: Option<&[SelectItem]>, target: Relation) -> Option<Vec<TypedColumn>> {
        let items = items?;
        self.scopes.push(Scope {
            relations: vec![target],
            aliases: Vec::new(),
        });
        let columns = self.items(items, &[]);
        self.scopes.pop();
        Some(columns)
    }

    fn assignments(&mut self, assignments: &[Assignment], target: &Relation) {
        let kind_of = |name: &ObjectName| {
            let name = last_name(name);
            target
                .columns
                .iter()
                .find(|column| column.name.eq_ignore_ascii_case(&name))
                .and_then(|column| column.kind.clone())
        };
        for assignment in assignments {
            match (&assignment.target, &assignment.value) {
                (AssignmentTarget::ColumnName(name), value) => {
                    self.infer(value, kind_of(name).as_ref());
                }
                (AssignmentTarget::Tuple(names), Expr::Tuple(values)) => {
                    for (name, value) in names.iter().zip(values) {
                        self.infer(value, kind_of(name).as_ref());
                    }
                }
                (AssignmentTarget::Tuple(names), Expr::Subquery(query)) => {
                    let expected: Vec<Option<Type>> = names.iter().map(kind_of).collect();
                    self.query(query, &expected);
                }
                (AssignmentTarget::Tuple(_), value) => {
                    self.infer(value, None);
                }
            }
        }
    }
}

/// Below this much stack a new piece is taken: more than one step of the walk needs.
pub(super) const STACK_LEFT_MIN: usize = 128 << 10;
/// How large a new piece is.
pub(super) const STACK_GROWTH: usize = 1 << 20;

/// SQLite's names for the row's number.
pub(super) fn is_row_id(name: &str) -> bool {
    ["rowid", "oid", "_rowid_"]
        .iter()
        .any(|row_id| name.eq_ignore_ascii_case(row_id))
}

pub(super) fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(value.value, sqlparser::ast::Value::Null))
}

/// The last part of a name, in lower case.
pub(super) fn last_name(name: &ObjectName) -> String {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(name)) => name.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Columns under the names an alias gives them.
fn renamed(mut columns: Vec<TypedColumn>, alias: Option<&TableAlias>) -> Vec<TypedColumn> {
    for (column, name) in columns
        .iter_mut()
        .zip(alias.into_iter().flat_map(|alias| &alias.columns))
    {
        column.name.clone_from(&name.name.value);
    }
    columns
}

fn constraint(join: &Join) -> Option<&JoinConstraint> {
    match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

/// A column both sides of a join have is shown once by `*`.
fn show_once(right: &mut [Relation], name: &str) {
    for column in right.iter_mut().flat_map(|relation| &mut relation.columns) {
        if column.name.eq_ignore_ascii_case(name) {
            column.starred = false;
        }
    }
}
