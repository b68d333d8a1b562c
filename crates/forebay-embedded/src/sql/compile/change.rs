//! What INSERT, UPDATE and DELETE share: values on their way into columns, and RETURNING.
//!
//! Promises: what is stored fits the type its column was declared with, or the statement fails as PostgreSQL's would. Defaults are PostgreSQL's.
//! Rows are changed, counted and returned as PostgreSQL does.

use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, ObjectName, ObjectNamePart, Query, SelectItem, Statement as Tree,
};

use super::compiler::Compiler;
use super::definition::{ColumnDefinition, Definition, Identity};
use super::expression_text::mentions;
use super::fault::{Fault, Result};
use super::plan::{ResultColumn, Step};
use super::scalar::Scalar;
use super::schema::{Column, Default, Table};
use super::scope::{Relation, RelationColumn, Scope};
use super::sqlite_text::{identifier, quoted};
use super::syntax::{folded, unnested};
use crate::sql::facts::{self, Context, oid};
use crate::sql::grammar;

impl Compiler<'_> {
    /// A column's default, converted to the column's type.
    pub(super) fn default_for(&mut self, default: Scalar, column: &ColumnDefinition) -> Result<Scalar> {
        let from = default.oid;
        let converted = self.convert(default, column.kind(), Context::Assignment);
        converted.map_err(|fault| match fault.sqlstate {
            "42846" => Fault::new(
                "42804",
                format!(
                    "column \"{}\" is of type {} but default expression is of type {}",
                    column.name,
                    facts::display_name(column.oid),
                    facts::display_name(from)
                ),
            ),
            _ => fault,
        })
    }

    /// `WITH … INSERT`, `WITH … UPDATE`, `WITH … DELETE`.
    pub(super) fn change_with(&mut self, query: &Query, inner: &Tree) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        let known = self.ctes.len();
        self.writes = true;
        let with = match &query.with {
            Some(with) => self.with(with, None)?,
            None => String::new(),
        };
        let changed = match inner {
            Tree::Insert(insert) => self.insert(insert, &with),
            Tree::Update(update) => self.update(update, &with),
            Tree::Delete(delete) => self.delete(delete, &with),
            _ => Err(Fault::unsupported("this statement behind WITH")),
        };
        self.ctes.truncate(known);
        let (sql, columns) = changed?;
        Ok((vec![sql.into()], columns))
    }

    pub(super) fn changed_table(&mut self, name: &ObjectName, verb: &str) -> Result<std::rc::Rc<Table>> {
        let table = self.table(name)?;
        if table.view.is_some() || table.foreign_view {
            return Err(Fault::unsupported(format!("{verb} of the view \"{}\"", table.shown())));
        }
        self.changes.push(table.name.clone());
        Ok(table)
    }

    /// The value a column gets when nothing is said, unless SQLite knows it by itself.
    pub(super) fn default_value(&mut self, table: &Table, place: usize) -> Result<Option<Scalar>> {
        let column = &table.columns[place];
        match &column.default {
            Some(Default::Stored(_)) => Ok(None),
            Some(Default::Expression(text)) => {
                let expression = grammar::expression(text).ok_or_else(|| {
                    Fault::new(
                        "XX001",
                        format!("the default of column \"{}\" cannot be read", column.name),
                    )
                })?;
                let scope = Scope::new(None);
                let fixed = std::mem::replace(&mut self.fixed_parameters, true);
                let public_only = std::mem::replace(&mut self.public_only, true);
                let scalar = self.expression(&expression, &scope);
                self.public_only = public_only;
                self.fixed_parameters = fixed;
                self.assigned(scalar?, table, place).map(Some)
            }
            None if table.is_key_of_rows(place) && !self.explains => Ok(Some(Scalar::new(
                format!(
                    "\"forebay_not_null\"(NULL, {}, {})",
                    quoted(table.shown()),
                    quoted(&column.name)
                ),
                column.kind.oid,
            ))),
            None => Ok(None),
        }
    }

    /// DEFAULT written where a value stands.
    pub(super) fn written_default(&mut self, table: &Table, place: usize) -> Result<Scalar> {
        if let Some(scalar) = self.default_value(table, place)? {
            return Ok(scalar);
        }
        let column = &table.columns[place];
        Ok(match &column.default {
            Some(Default::Stored(literal)) => Scalar::new(format!("({literal})"), column.kind.oid),
            _ => Scalar::new("NULL", column.kind.oid),
        })
    }

    /// A value on its way into a column.
    pub(super) fn assigned(&mut self, scalar: Scalar, table: &Table, place: usize) -> Result<Scalar> {
        let column = &table.columns[place];
        let from = scalar.oid;
        let converted = self
            .convert(scalar, column.kind, Context::Assignment)
            .map_err(|fault| {
                if fault.sqlstate == "42846" {
                    Fault::new(
                        "42804",
                        format!(
                            "column \"{}\" is of type {} but expression is of type {}",
                            column.name,
                            facts::display_name(column.kind.oid),
                            facts::display_name(from)
                        ),
                    )
                    .with_hint("You will need to rewrite or cast the expression.")
                } else {
                    fault
                }
            })?;
        if table.is_key_of_rows(place) && !converted.not_null && !self.explains {
            return Ok(Scalar {
                sql: format!(
                    "\"forebay_not_null\"({}, {}, {})",
                    converted.sql,
                    quoted(table.shown()),
                    quoted(&column.name)
                ),
                not_null: true,
                ..converted
            });
        }
        Ok(converted)
    }

    /// The places of the columns that SET names, with SQLite's texts of their values.
    pub(super) fn assignments(
        &mut self,
        assignments: &[Assignment],
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<Vec<(usize, String)>> {
        let mut parts: Vec<(usize, String)> = Vec::new();
        for assignment in assignments {
            let pairs: Vec<(&ObjectName, &Expr)> = match (&assignment.target, unnested(&assignment.value)) {
                (AssignmentTarget::ColumnName(name), _) => vec![(name, &assignment.value)],
                (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                    names.iter().zip(values).collect()
                }
                (AssignmentTarget::Tuple(names), value) if names.len() == 1 => vec![(&names[0], value)],
                (AssignmentTarget::Tuple(_), Expr::Tuple(_)) => {
                    return Err(Fault::new("42601", "number of columns does not match number of values"));
                }
                (AssignmentTarget::Tuple(_), _) => {
                    return Err(Fault::unsupported("SET (…) = (SELECT …)")
                        .with_hint("Use UPDATE … FROM, or one subquery for each column."));
                }
            };
            for (name, value) in pairs {
                let place = column_place(table, name)?;
                let column = &table.columns[place];
                if parts.iter().any(|(known, _)| *known == place) {
                    return Err(Fault::new(
                        "42601",
                        format!("multiple assignments to same column \"{}\"", column.name),
                    ));
                }
                let default = is_default(value);
                if !default && (column.generated || column.identity == Some(Identity::Always)) {
                    return Err(Fault::new(
                        "428C9",
                        format!("column \"{}\" can only be updated to DEFAULT", column.name),
                    )
                    .with_detail(says_itself(column)));
                }
                let scalar = if default {
                    if column.generated {
                        continue;
                    }
                    self.written_default(table, place)?
                } else {
                    let scalar = self.expression(value, scope)?;
                    self.assigned(scalar, table, place)?
                };
                parts.push((place, scalar.sql));
            }
        }
        if !parts.is_empty() {
            let unlooked = unlooked_at(table, &parts);
            parts.extend(unlooked.map(|place| (place, scope.relations[0].columns[place].sql.clone())));
        }
        Ok(parts)
    }

    /// What has been read from since then in a clause that SQLite carries out row by row, while it changes them, must not be what
    /// the statement changes: PostgreSQL shows a query the rows as they were before.
    pub(super) fn refuse_reading_changes(&self, known: usize, table: &Table, clause: &str) -> Result<()> {
        for read in &self.read[known..] {
            // By a key that follows another table its rows may be changed along with that one's.
            let follows = self
                .schema
                .connection()
                .prepare_cached(
                    "SELECT 1 FROM pragma_foreign_key_list(?) WHERE on_update || on_delete <> 'NO ACTIONNO ACTION'",
                )
                .and_then(|mut statement| statement.exists([read]))
                .map_err(|error| Fault::new("XX000", format!("the schema cannot be read: {error}")))?;
            let is_cte = self.ctes.iter().any(|cte| cte.sql == *read);
            if follows || is_cte || *read == table.name {
                return Err(
                    Fault::unsupported(format!("a query in {clause} of what the statement may change"))
                        .with_hint("Ask in a statement of its own, before or after."),
                );
            }
        }
        Ok(())
    }

    /// RETURNING, where SQLite knows the changed table's columns by the table's own name, whatever its alias, and no others: whether
    /// there are some is `beside`. Without that name a column would be taken for one of a query's in the list.
    pub(super) fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        table: &Table,
        alias: Option<&str>,
        beside: bool,
        sql: &mut String,
    ) -> Result<Vec<ResultColumn>> {
        let Some(items) = items else {
            return Ok(Vec::new());
        };
        let of_others = || {
            Fault::unsupported("RETURNING of what is not a column of the changed table")
                .with_hint("Write the columns that are wanted, of that table alone.")
        };
        if beside && items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
            return Err(of_others());
        }
        // A table whose name looks like one of ours.
        let own = table
            .name
            .strip_prefix(['r', 'R'])
            .and_then(|digits| digits.parse().ok());
        if let Some(number) = own.filter(|number| *number < usize::from(u16::MAX)) {
            self.names = self.names.max(number);
        }
        let mut scope = Scope::new(None);
        scope.no_aggregates.set(Some("RETURNING"));
        scope.no_windows.set(Some("RETURNING"));
        scope.relations.push(Relation {
            name: Some(alias.unwrap_or(table.shown()).to_owned()),
            schema: alias.is_none().then(|| table.schema().to_owned()),
            table: Some(table.name.as_str().into()),
            columns: table
                .columns
                .iter()
                .map(|column| RelationColumn {
                    name: column.name.clone(),
                    kind: column.kind,
                    sql: format!("{}.{}", identifier(&table.name), identifier(&column.name)),
                    not_null: column.not_null,
                })
                .collect(),
            key: Vec::new(),
            merged: Vec::new(),
            is_value: false,
        });
        let known = self.read.len();
        let mut items = self.select_items(items, &scope).map_err(|fault| match fault.sqlstate {
            "42P01" | "42703" if beside => of_others(),
            _ => fault,
        })?;
        self.refuse_reading_changes(known, table, "RETURNING")?;
        for item in &mut items {
            if item.scalar.oid == oid::UNKNOWN {
                item.scalar = self.convert_type(item.scalar.clone(), oid::TEXT, Context::Implicit)?;
            }
        }
        let list: Vec<String> = items
            .iter()
            .enumerate()
            .map(|(place, item)| format!("{} AS \"c{}\"", item.scalar.sql, place + 1))
            .collect();
        sql.push_str(&format!(" RETURNING {}", list.join(", ")));
        Ok(items
            .into_iter()
            .map(|item| ResultColumn {
                kind: item.scalar.type_name(),
                not_null: item.scalar.not_null,
                origin: item.origin,
                name: item.name,
            })
            .collect())
    }
}

/// A column that is to be set to what it is, if there is a CHECK that rows may violate (NOT VALID), none of whose columns is set: SQLite
/// looks at a CHECK only where its columns are.
fn unlooked_at(table: &Table, set: &[(usize, String)]) -> impl Iterator<Item = usize> + use<> {
    let may_violate = table.definition.contains("not_valid");
    let definition = may_violate.then(|| Definition::read(&table.definition)).flatten();
    let mut places = Vec::new();
    for check in definition.iter().flat_map(|definition| &definition.checks) {
        let used = |place: &usize| mentions(&check.condition.text, &table.columns[*place].name);
        let mut known = set.iter().map(|(place, _)| *place).chain(places.iter().copied());
        if !check.not_valid || known.any(|place| used(&place)) {
            continue;
        }
        let mut columns = (0..table.columns.len()).filter(used);
        places.extend(columns.find(|place| !table.columns[*place].generated));
    }
    places.into_iter()
}

pub(super) fn set_list(values: &[(usize, String)], table: &Table) -> String {
    let parts: Vec<String> = values
        .iter()
        .map(|(place, sql)| format!("{} = {sql}", identifier(&table.columns[*place].name)))
        .collect();
    parts.join(", ")
}

impl Table {
    /// Whether the column is SQLite's own row number, and must be given a value all the same.
    fn is_key_of_rows(&self, place: usize) -> bool {
        self.columns[place].row_number
    }
}

/// Why a client has no say in a column.
pub(super) fn says_itself(column: &Column) -> String {
    if column.generated {
        return format!("Column \"{}\" is a generated column.", column.name);
    }
    format!(
        "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
        column.name
    )
}

pub(super) fn is_default(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}

pub(super) fn column_place(table: &Table, name: &ObjectName) -> Result<usize> {
    let Some(ObjectNamePart::Identifier(last)) = name.0.last() else {
        return Err(Fault::unsupported(format!("the column {name}")));
    };
    if name.0.len() > 1 {
        return Err(Fault::new(
            "42703",
            format!("column \"{name}\" of relation \"{}\" does not exist", table.shown()),
        ));
    }
    let folded = folded(last);
    table.column(&folded).ok_or_else(|| {
        Fault::new(
            "42703",
            format!("column \"{folded}\" of relation \"{}\" does not exist", table.shown()),
        )
        .at(last)
    })
}
