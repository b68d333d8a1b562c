//! The names an expression may use: relations of its query, and of the queries around it.
//!
//! Promises: a name refers to what it refers to in PostgreSQL, or is PostgreSQL's error: undefined (42703, 42P01) or ambiguous (42702).

use std::cell::Cell;
use std::sync::Arc;

use sqlparser::ast::{Ident, TableAlias};

use super::fault::{Fault, Result};
use super::plan::Origin;
use super::scalar::{Scalar, Ungrouped};
use super::syntax::folded;
use super::types::TypeName;

/// What SQLite takes in one FROM. It would say so itself, when all of a longer one was compiled, in the square of the time.
const RELATIONS_MAX: usize = 200;

/// A column of something in a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct RelationColumn {
    pub(super) name: String,
    pub(super) kind: TypeName,
    pub(super) sql: String,
    pub(super) not_null: bool,
}

/// Something in a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The name it is known by, if it has one.
    pub(super) name: Option<String>,
    /// The schema it is in, if it goes by its own name.
    pub(super) schema: Option<String>,
    /// The table that it is, with all its columns in order.
    pub(super) table: Option<Arc<str>>,
    pub(super) columns: Vec<RelationColumn>,
    /// The places of a key: who groups by it may use all columns.
    pub(super) key: Vec<usize>,
    /// Columns that USING or NATURAL has merged with another's: not part of `*`, and not meant by the bare name.
    pub(super) merged: Vec<usize>,
    /// Its name alone means its one column, which has a name of its own.
    pub(super) is_value: bool,
}

impl Relation {
    /// Goes by its alias from now on, if the client gave it one.
    pub(super) fn apply_alias(&mut self, alias: Option<&TableAlias>) -> Result<()> {
        let Some(alias) = alias else {
            return Ok(());
        };
        if alias.at.is_some() || alias.columns.iter().any(|column| column.data_type.is_some()) {
            return Err(Fault::unsupported("a list of column definitions"));
        }
        self.schema = None;
        let name = folded(&alias.name);
        if alias.columns.len() > self.columns.len() {
            return Err(Fault::new(
                "42P10",
                format!(
                    "table \"{name}\" has {} columns available but {} columns specified",
                    self.columns.len(),
                    alias.columns.len()
                ),
            ));
        }
        for (column, renamed) in self.columns.iter_mut().zip(&alias.columns) {
            column.name = folded(&renamed.name);
        }
        self.name = Some(name);
        Ok(())
    }

    /// Whether this name means it.
    fn is_called(&self, schema: Option<&str>, name: &str) -> bool {
        self.name.as_deref() == Some(name) && (schema.is_none() || self.schema.as_deref() == schema)
    }
}

/// A column that USING or NATURAL has made of two.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) name: String,
    pub(super) scalar: Scalar,
}

/// A column that `*` stands for.
pub(super) struct Starred {
    /// The relation it is of, unless USING or NATURAL has made it of two.
    pub(super) relation: Option<String>,
    pub(super) name: String,
    pub(super) scalar: Scalar,
}

/// What a query with GROUP BY, or with aggregates, is grouped by.
#[derive(Debug, Clone, Default)]
pub(super) struct Grouping {
    /// The text of each key.
    pub(super) keys: Vec<String>,
    /// Relations whose key is among them.
    pub(super) determined: Vec<usize>,
}

/// What is said of a column that is not there. Those that every table of PostgreSQL's has are none here.
pub(super) fn no_column(name: &str, spelled: &str) -> Fault {
    if is_of_the_system(name) {
        return Fault::unsupported(format!("the system column {name}"));
    }
    Fault::new("42703", format!("column {spelled} does not exist"))
}

/// See the module.
pub(super) struct Scope<'a> {
    pub(super) outer: Option<&'a Scope<'a>>,
    pub(super) relations: Vec<Relation>,
    pub(super) merged: Vec<Merged>,
    /// Where merged columns stand in `*` is not known: they are of one of several join trees.
    pub(super) star_is_unsettled: bool,
    pub(super) grouping: Option<Grouping>,
    /// Why there may be no aggregates here: the name of the clause.
    pub(super) no_aggregates: Cell<Option<&'static str>>,
    /// Why there may be no window functions here.
    pub(super) no_windows: Cell<Option<&'static str>>,
    /// Columns are named without their table (RETURNING).
    pub(super) windows: Vec<(String, sqlparser::ast::WindowSpec)>,
    /// Whether columns of this level, and of outer ones, were met since it was last cleared.
    pub(super) met: Cell<(bool, bool)>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(outer: Option<&'a Scope<'a>>) -> Self {
        Self {
            outer,
            relations: Vec::new(),
            merged: Vec::new(),
            star_is_unsettled: false,
            grouping: None,
            no_aggregates: Cell::new(None),
            no_windows: Cell::new(None),
            windows: Vec::new(),
            met: Cell::new((false, false)),
        }
    }

    /// One more relation, whose name must be its own.
    pub(super) fn add(&mut self, relation: Relation) -> Result<()> {
        if self.relations.len() >= RELATIONS_MAX {
            return Err(Fault::new(
                "54001",
                format!("too many FROM clause terms, max: {RELATIONS_MAX}"),
            ));
        }
        if let Some(name) = &relation.name
            && self.relations.iter().any(|known| known.name.as_ref() == Some(name))
        {
            return Err(Fault::new(
                "42712",
                format!("table name \"{name}\" specified more than once"),
            ));
        }
        self.relations.push(relation);
        Ok(())
    }

    /// The column of a table that a text of SQLite's is: PostgreSQL tells clients of it.
    pub(super) fn origin(&self, sql: &str) -> Option<Origin> {
        self.relations.iter().find_map(|relation| {
            let table = relation.table.as_ref()?;
            let place = relation.columns.iter().position(|column| column.sql == sql)?;
            Some(Origin {
                table: Arc::clone(table),
                number: place + 1,
            })
        })
    }

    /// The part of a definition whose expression this is: it may hold no subquery, neither the client's nor one of ours.
    pub(super) fn definition(&self) -> Option<&'static str> {
        Some(match self.no_aggregates.get()? {
            "check constraints" => "check constraint",
            "column generation expressions" => "column generation expression",
            "DEFAULT expressions" => "DEFAULT expression",
            "index expressions" => "index expression",
            "index predicates" => "index predicate",
            _ => return None,
        })
    }

    fn scalar(&self, relation: usize, column: usize) -> Scalar {
        let found = &self.relations[relation].columns[column];
        let mut scalar = Scalar {
            typmod: found.kind.typmod,
            not_null: found.not_null,
            ..Scalar::new(found.sql.clone(), found.kind.oid)
        };
        if let Some(grouping) = &self.grouping
            && !grouping.keys.contains(&scalar.sql)
            && !grouping.determined.contains(&relation)
        {
            let table = self.relations[relation].name.as_deref();
            scalar.ungrouped = Some(Ungrouped {
                name: table.map_or_else(|| found.name.clone(), |table| format!("{table}.{}", found.name)),
                relation,
                location: None,
            });
        }
        scalar
    }

    /// All columns that a bare `*` stands for, or `name.*`.
    pub(super) fn starred(&self, name: Option<(Option<&str>, &str)>) -> Option<Vec<Starred>> {
        let mut all = Vec::new();
        if name.is_none() {
            for merged in &self.merged {
                all.push(Starred {
                    relation: None,
                    name: merged.name.clone(),
                    scalar: merged.scalar.clone(),
                });
            }
        }
        let mut found = name.is_none();
        for (place, relation) in self.relations.iter().enumerate() {
            if name.is_some_and(|(schema, name)| !relation.is_called(schema, name)) {
                continue;
            }
            found = true;
            for (column, described) in relation.columns.iter().enumerate() {
                if name.is_none() && relation.merged.contains(&column) {
                    continue;
                }
                all.push(Starred {
                    relation: relation.name.clone(),
                    name: described.name.clone(),
                    scalar: self.scalar(place, column),
                });
            }
        }
        found.then_some(all)
    }

    /// What a bare name means here, not looking further out.
    fn bare(&self, name: &str, written: &Ident) -> Result<Option<Scalar>> {
        let mut found: Option<Scalar> = None;
        let mut add = |scalar: Scalar| {
            if found.is_some() {
                return Err(Fault::new("42702", format!("column reference \"{name}\" is ambiguous")).at(written));
            }
            found = Some(scalar);
            Ok(())
        };
        for merged in self.merged.iter().filter(|merged| merged.name == name) {
            add(merged.scalar.clone())?;
        }
        for (place, relation) in self.relations.iter().enumerate() {
            for (column, described) in relation.columns.iter().enumerate() {
                if described.name == name && !relation.merged.contains(&column) {
                    add(self.scalar(place, column))?;
                }
            }
        }
        Ok(found)
    }

    fn qualified(&self, schema: Option<&str>, table: &str, name: &str, written: &Ident) -> Result<Option<Scalar>> {
        let mut matching = self
            .relations
            .iter()
            .enumerate()
            .filter(|(_, relation)| relation.is_called(schema, table));
        let Some((place, relation)) = matching.next() else {
            return Ok(None);
        };
        if matching.next().is_some() {
            return Err(Fault::new("42P09", format!("table reference \"{table}\" is ambiguous")).at(written));
        }
        let mut columns = (0..relation.columns.len()).filter(|column| relation.columns[*column].name == name);
        match (columns.next(), columns.next()) {
            (Some(column), None) => Ok(Some(self.scalar(place, column))),
            (Some(_), Some(_)) => {
                Err(Fault::new("42702", format!("column reference \"{name}\" is ambiguous")).at(written))
            }
            (None, _) => Err(no_column(name, &format!("{table}.{name}")).at(written)),
        }
    }

    /// A column by the parts of its name. `None` if a bare name is no column anywhere.
    pub(super) fn column(&self, parts: &[Ident]) -> Result<Option<Scalar>> {
        let mut level = Some(self);
        let mut own = true;
        while let Some(scope) = level {
            let found = match parts {
                [name] => scope.bare(&folded(name), name)?,
                [table, name] => scope.qualified(None, &folded(table), &folded(name), table)?,
                [schema, table, name] => {
                    scope.qualified(Some(&folded(schema)), &folded(table), &folded(name), schema)?
                }
                _ => None,
            };
            if let Some(mut scalar) = found {
                self.meets(scope);
                if let Some(ungrouped) = &mut scalar.ungrouped {
                    let written = parts.last().filter(|name| name.span.start.line > 0);
                    ungrouped.location = written.map(|_| parts[0].span.start);
                    if !own && scope.no_aggregates.get() == Some("aggregate") {
                        scalar.ungrouped = None;
                    } else if !own {
                        let message = format!("subquery uses ungrouped column \"{}\" from outer query", ungrouped.name);
                        return Err(Fault::new("42803", message).at(&parts[0]));
                    }
                }
                return Ok(Some(scalar));
            }
            level = scope.outer;
            own = false;
        }
        if let [name] = parts
            && let Some(scalar) = self.value(&folded(name))
        {
            return Ok(Some(scalar));
        }
        match parts {
            [name] if !self.relations.is_empty() && is_of_the_system(&folded(name)) => {
                Err(Fault::unsupported(format!("the system column {}", folded(name))).at(name))
            }
            [_] => Ok(None),
            [.., table, _] => Err(Fault::new(
                "42P01",
                format!("missing FROM-clause entry for table \"{}\"", folded(table)),
            )
            .at(&parts[0])),
            [] => Ok(None),
        }
    }

    /// What the name of a function's rows means alone, here or further out.
    fn value(&self, name: &str) -> Option<Scalar> {
        let mut level = Some(self);
        while let Some(scope) = level {
            let mut relations = scope.relations.iter();
            let called = |relation: &Relation| relation.name.as_deref() == Some(name);
            if let Some(place) = relations.position(|relation| called(relation) && relation.is_value) {
                self.meets(scope);
                return (scope.relations[place].columns.len() == 1).then(|| scope.scalar(place, 0));
            }
            level = scope.outer;
        }
        None
    }

    /// Notes that a column of `level` was met here, and so within each query on the way out to it.
    fn meets(&self, level: &Self) {
        let mut between = self;
        while !std::ptr::eq(between, level) {
            between.met.set((between.met.get().0, true));
            let Some(outer) = between.outer else { return };
            between = outer;
        }
        level.met.set((true, level.met.get().1));
    }

    /// Whether any relation, here or further out, has this name.
    pub(super) fn has_relation(&self, name: &str) -> bool {
        self.relations
            .iter()
            .any(|relation| relation.name.as_deref() == Some(name))
            || self.outer.is_some_and(|outer| outer.has_relation(name))
    }
}

/// A column that every table of PostgreSQL's has.
fn is_of_the_system(name: &str) -> bool {
    matches!(name, "ctid" | "tableoid" | "xmin" | "xmax" | "cmin" | "cmax")
}
