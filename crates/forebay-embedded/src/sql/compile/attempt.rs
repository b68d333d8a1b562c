//! What a failed statement was about to do, as a query: its rows, and what constraints say of each.
//!
//! Promises: compiled only once a statement has failed, and run in the state that it met, or could have met: what is found then is true. A
//! statement whose values would be different the second time has no attempt. Knows no words of errors.

use std::collections::BTreeSet;
use std::rc::Rc;

use sqlparser::ast::{AssignmentTarget, Expr, OnConflictAction, SetExpr, Statement as Tree};

use super::change::column_place;
use super::compiler::Compiler;
use super::constraint::unique_keys;
use super::definition::{Check, Definition, ForeignKey};
use super::expression_text::mentions;
use super::fault::{Result, unreadable};
use super::insert::{Inserting, NewRows};
use super::namespace::shown;
use super::schema::{Default, Table};
use super::sqlite_text::{ENVIRONMENT, identifier, moves, type_label, with_environment};
use super::syntax::{folded, unnested};
use super::types;
use super::update::Changing;
use crate::sql::environment::Environment;
use crate::sql::facts::Oid;

/// Which kind of constraint is violated, and what SQLite tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Suspect {
    /// The column.
    NotNull(String),
    /// The constraint.
    Check(String),
    /// The columns of the key.
    Unique(Vec<String>),
    /// `deferred`: also of those that are looked at when the transaction ends.
    ForeignKey { deferred: bool },
}

/// See the module.
pub(crate) struct Attempt {
    pub(crate) table: String,
    /// SQLite's text. The first cell of each row is the number of the row that is changed, NULL for a new one; then come the texts of the
    /// values it would have; then the cells that questions speak of.
    pub(crate) sql: String,
    /// The number of the parameter that is told of the session.
    pub(crate) environment: usize,
    /// How many columns the new row has.
    pub(crate) width: usize,
    /// In the order in which PostgreSQL looks.
    pub(crate) questions: Vec<Question>,
}

/// What is asked of a row.
pub(crate) enum Question {
    NotNull {
        column: String,
        cell: usize,
    },
    /// The cell is true where the check fails.
    Check {
        name: String,
        cell: usize,
    },
    Unique {
        name: String,
        columns: Vec<String>,
        /// The texts of the key's values.
        shown: Vec<usize>,
        /// The key in a form in which equal keys are equal: so many cells from this one; then the number of the row that has it already.
        cell: usize,
    },
    /// The cell is true where no row has the key that is referred to.
    Missing {
        name: String,
        columns: Vec<String>,
        shown: Vec<usize>,
        table: String,
        cell: usize,
    },
    /// The cell is true where a row refers to the key that goes away.
    Referenced {
        name: String,
        columns: Vec<String>,
        table: String,
        cell: usize,
        shown: Vec<usize>,
    },
}

const NEXT: &str = "\"forebay_nextval\"";
/// The rows, with what they were before.
const ROWS: &str = "\"forebay_rows\"";

/// Compiles the attempt of a statement, if it can be told.
pub(crate) fn compile(
    tree: &Tree,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    parameters: &[Oid],
    suspect: &Suspect,
) -> Option<Attempt> {
    let mut compiler = Compiler::new(connection, session, values);
    compiler.parameters = parameters.iter().map(|oid| Some(*oid)).collect();
    compiler.explains = true;
    let mut attempt = compiler.attempt(tree, suspect).ok().flatten()?;
    attempt.environment = parameters.len() + 1;
    attempt.sql = with_environment(&attempt.sql, attempt.environment);
    Some(attempt)
}

/// The rows that are looked at.
struct Rows {
    table: Rc<Table>,
    definition: Definition,
    /// The query of the rows as "forebay_rows", behind WITH: the new values under the columns' names, the old ones under [`old`]'s.
    with: String,
    has_new: bool,
    has_old: bool,
    /// Columns whose values are known of the row that failed only.
    unknown: Vec<usize>,
    /// What has another value each time is in unknown columns alone.
    moves_apart: bool,
}

impl Rows {
    fn is_known(&self, column: &str) -> bool {
        self.table
            .column(column)
            .is_some_and(|place| !self.unknown.contains(&place))
    }
}

fn old(place: usize) -> String {
    format!("\"forebay_old_{place}\"")
}

impl Compiler<'_> {
    fn attempt(&mut self, tree: &Tree, suspect: &Suspect) -> Result<Option<Attempt>> {
        let (with, inner) = match tree {
            Tree::Query(query) => {
                let with = query.with.as_ref().map(|with| self.with(with, None)).transpose()?;
                match &*query.body {
                    SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                        (with.unwrap_or_default(), inner)
                    }
                    _ => return Ok(None),
                }
            }
            tree => (String::new(), tree),
        };
        let rows = match inner {
            Tree::Insert(insert) => {
                let inserting = self.inserting(insert)?;
                if !self.tells(&inserting, suspect)? {
                    return Ok(None);
                }
                Self::new_rows(inserting.table, &inserting.new, &with)
            }
            Tree::Update(update) => {
                let changing = self.updating(update)?;
                Self::changed_rows(&changing, &with)
            }
            Tree::Delete(delete) => {
                let changing = self.deleting(delete)?;
                Self::changed_rows(&changing, &with)
            }
            _ => None,
        };
        let Some(rows) = rows else { return Ok(None) };
        let mut attempt = self.asked_of(&rows, suspect)?;
        let is_shown = matches!(suspect, Suspect::NotNull(_) | Suspect::Check(_));
        if moves(&attempt.sql) && (is_shown || !rows.moves_apart) {
            attempt.questions.clear();
        }
        Ok(Some(attempt))
    }

    /// Whether the new rows tell what was violated: also where ON CONFLICT would have changed another row instead, which then has what is
    /// looked at from the new one.
    fn tells(&mut self, inserting: &Inserting<'_>, suspect: &Suspect) -> Result<bool> {
        let Some(conflict) = inserting.conflict else {
            return Ok(true);
        };
        // At these PostgreSQL looks before it looks for a conflict.
        let is_of_the_row = matches!(suspect, Suspect::NotNull(_) | Suspect::Check(_));
        let is_single = inserting.new.count == Some(1);
        let update = match &conflict.action {
            OnConflictAction::DoNothing => return Ok(is_of_the_row || is_single),
            OnConflictAction::DoUpdate(_) if is_single && is_of_the_row => return Ok(true),
            OnConflictAction::DoUpdate(update) if is_single && matches!(suspect, Suspect::ForeignKey { .. }) => update,
            OnConflictAction::DoUpdate(_) => return Ok(false),
        };
        let table = &inserting.table;
        let (mut taken, mut set) = (Vec::new(), Vec::new());
        for assignment in &update.assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Ok(false);
            };
            let column = table.columns[column_place(table, name)?].name.clone();
            if is_excluded(&assignment.value, &column) {
                taken.push(column);
            } else {
                set.push(column);
            }
        }
        let referred = self.foreign_keys_to(&table.name)?;
        let own = Definition::read(&table.definition).map_or_else(Vec::new, |definition| definition.foreign_keys);
        let is_of_one_row = |key: &ForeignKey| {
            let all = key.columns.iter().all(|column| taken.contains(column));
            let none = !key.columns.iter().any(|column| taken.contains(column));
            (all || none) && !key.columns.iter().any(|column| set.contains(column))
        };
        let stays = |column: &String| !taken.contains(column) && !set.contains(column);
        Ok(own.iter().all(is_of_one_row) && referred.iter().all(|(_, key)| key.referred.iter().all(stays)))
    }

    fn new_rows(table: Rc<Table>, new: &NewRows, with: &str) -> Option<Rows> {
        let definition = Definition::read(&table.definition)?;
        // The row that failed is the last of a list that was evaluated: its number is the session's last one. Those before had others.
        if new.rows.contains(NEXT) && new.count.is_none() {
            return None;
        }
        let mut unknown = new.moving.clone();
        if new.count != Some(1) {
            unknown.extend(&new.numbered);
        }
        let moves_apart = !unknown.is_empty() && !moves(with);
        let made_of = |text: &str| unknown.iter().any(|from| mentions(text, &table.columns[*from].name));
        let columns_made = definition.columns.iter().enumerate().filter(|(_, column)| {
            let generated = column.generated.as_ref();
            generated.is_some_and(|generated| made_of(&generated.text))
        });
        let made: Vec<usize> = columns_made.map(|(place, _)| place).collect();
        unknown.extend(made);
        let given = if new.places.is_empty() {
            "(SELECT NULL)".to_owned()
        } else {
            let names = new.names(&table);
            format!(
                "\"forebay_new\"({names}) AS MATERIALIZED ({})",
                new.rows.replace(NEXT, "\"forebay_currval\"")
            )
        };
        let mut columns = vec!["NULL AS \"forebay_number\"".to_owned()];
        for (place, column) in table.columns.iter().enumerate() {
            if column.generated || new.places.contains(&place) {
                continue;
            }
            let stored = match (&definition.columns[place].default_stored, &column.default) {
                (Some(stored), _) | (None, Some(Default::Stored(stored))) => stored.as_str(),
                _ => "NULL",
            };
            columns.push(format!("({stored}) AS {}", identifier(&column.name)));
        }
        let from = if new.places.is_empty() {
            format!("SELECT {} FROM {given}", columns.join(", "))
        } else {
            format!("SELECT *, {} FROM \"forebay_new\"", columns.join(", "))
        };
        let mut parts = Vec::new();
        if !new.places.is_empty() {
            parts.push(given);
        }
        parts.push(with_generated(&definition, &from));
        Some(Rows {
            with: behind(with, &parts),
            table,
            definition,
            has_new: true,
            has_old: false,
            unknown,
            moves_apart,
        })
    }

    fn changed_rows(changing: &Changing, with: &str) -> Option<Rows> {
        let table = Rc::clone(&changing.table);
        let definition = Definition::read(&table.definition)?;
        let (own, number) = (&changing.own, row_number(&table)?);
        let deletes = changing.values.is_empty();
        let mut columns = vec![format!("{own}.{number} AS \"forebay_number\"")];
        for (place, column) in table.columns.iter().enumerate() {
            let name = identifier(&column.name);
            columns.push(format!("{own}.{name} AS {}", old(place)));
            if column.generated || deletes {
                continue;
            }
            let value = changing.values.iter().find(|(set, _)| *set == place);
            let value = value.map_or_else(|| format!("{own}.{name}"), |(_, sql)| sql.clone());
            columns.push(format!("{value} AS {name}"));
        }
        let mut from = format!(
            "SELECT {} FROM {} AS {own}",
            columns.join(", "),
            identifier(&table.name)
        );
        if from.contains(NEXT) {
            return None;
        }
        if deletes {
            if let Some(condition) = changing.meant() {
                from.push_str(&format!(" WHERE {condition}"));
            }
        } else {
            from.push_str(&changing.met());
        }
        let part = if deletes {
            format!("{ROWS} AS MATERIALIZED ({from})")
        } else {
            with_generated(&definition, &from)
        };
        Some(Rows {
            with: behind(with, &[part]),
            table,
            definition,
            has_new: !deletes,
            has_old: true,
            unknown: Vec::new(),
            moves_apart: false,
        })
    }

    /// The query, with the questions that this kind of constraint asks of the rows.
    fn asked_of(&mut self, rows: &Rows, suspect: &Suspect) -> Result<Attempt> {
        let Rows { table, definition, .. } = rows;
        let mut cells = vec!["n.\"forebay_number\"".to_owned()];
        if rows.has_new {
            for column in &table.columns {
                cells.push(written(&format!("n.{}", identifier(&column.name)), column.kind.oid));
            }
        }
        let mut questions = Vec::new();
        match suspect {
            Suspect::NotNull(told) if rows.has_new && rows.is_known(told) => {
                let columns = table.columns.iter().enumerate().filter(|(_, column)| column.not_null);
                questions.extend(columns.map(|(place, column)| Question::NotNull {
                    column: column.name.clone(),
                    cell: place + 1,
                }));
            }
            Suspect::Check(told) if rows.has_new => {
                let unknown = |check: &&Check| {
                    rows.unknown
                        .iter()
                        .any(|place| mentions(&check.condition.text, &table.columns[*place].name))
                };
                let mut checks: Vec<&Check> = definition.checks.iter().filter(|check| !unknown(check)).collect();
                if !checks.iter().any(|check| check.name == *told) {
                    checks.clear();
                }
                checks.sort_by(|left, right| left.name.cmp(&right.name));
                for check in checks {
                    questions.push(Question::Check {
                        name: check.name.clone(),
                        cell: cells.len(),
                    });
                    cells.push(format!("({}) IS 0", check.condition.sql));
                }
            }
            Suspect::NotNull(_) | Suspect::Check(_) => {}
            Suspect::Unique(told) => self.ask_keys(rows, told, &mut cells, &mut questions)?,
            Suspect::ForeignKey { deferred } => {
                if rows.has_old {
                    self.ask_references(rows, *deferred, &mut cells, &mut questions)?;
                }
                if rows.has_new {
                    self.ask_referred(rows, *deferred, &mut cells, &mut questions)?;
                }
            }
        }
        Ok(Attempt {
            table: table.name.clone(),
            sql: format!("{} SELECT {} FROM {ROWS} AS n", rows.with, cells.join(", ")),
            environment: 0,
            width: if rows.has_new { table.columns.len() } else { 0 },
            questions,
        })
    }

    fn ask_keys(
        &mut self,
        rows: &Rows,
        told: &[String],
        cells: &mut Vec<String>,
        questions: &mut Vec<Question>,
    ) -> Result<()> {
        let (table, definition) = (&rows.table, &rows.definition);
        let declared = definition.primary_key.iter().chain(&definition.uniques);
        let mut keys: Vec<(String, Vec<String>)> =
            declared.map(|key| (key.name.clone(), key.columns.clone())).collect();
        for (name, columns) in unique_keys(self.schema.connection(), &table.name).map_err(unreadable)? {
            if !keys.iter().any(|(known, _)| known == shown(&name)) && !name.starts_with("sqlite_autoindex") {
                keys.push((shown(&name).to_owned(), columns));
            }
        }
        keys.retain(|(_, columns)| columns.iter().all(|column| rows.is_known(column)));
        let Some(number) = row_number(table).filter(|_| keys.iter().any(|(_, columns)| columns == told)) else {
            // One of an index of some rows, or of expressions.
            return Ok(());
        };
        for (name, columns) in keys {
            let places: Vec<usize> = columns.iter().filter_map(|column| table.column(column)).collect();
            let mut same = Vec::new();
            let cell = cells.len();
            for place in &places {
                let column = &table.columns[*place];
                let new = format!("n.{}", identifier(&column.name));
                same.push(format!(
                    "e.{} = {}",
                    identifier(&column.name),
                    types::compared(&new, column.kind.oid)
                ));
                cells.push(match types::collation(column.kind.oid) {
                    Some(collation) => format!("\"forebay_key\"({new}, '{collation}')"),
                    None => new,
                });
            }
            cells.push(format!(
                "(SELECT e.{number} FROM {} AS e WHERE {} LIMIT 1)",
                identifier(&table.name),
                same.join(" AND ")
            ));
            questions.push(Question::Unique {
                name,
                columns,
                shown: places.iter().map(|place| place + 1).collect(),
                cell,
            });
        }
        Ok(())
    }

    /// Foreign keys of the rows.
    fn ask_referred(
        &mut self,
        rows: &Rows,
        deferred: bool,
        cells: &mut Vec<String>,
        questions: &mut Vec<Question>,
    ) -> Result<()> {
        let (table, definition) = (&rows.table, &rows.definition);
        for key in definition.foreign_keys.iter().filter(|key| deferred || !key.deferred) {
            if !key.columns.iter().all(|column| rows.is_known(column)) {
                continue;
            }
            let Some(other) = self.schema.table(&key.table).map_err(unreadable)? else {
                continue;
            };
            let places: Vec<usize> = key.columns.iter().filter_map(|column| table.column(column)).collect();
            let mut given = Vec::new();
            let mut changed = Vec::new();
            let mut same = Vec::new();
            for (place, referred) in places.iter().zip(&key.referred) {
                let new = format!("n.{}", identifier(&table.columns[*place].name));
                given.push(format!("{new} IS NOT NULL"));
                changed.push(format!("{new} IS NOT n.{}", old(*place)));
                let kind = other
                    .column(referred)
                    .map_or(table.columns[*place].kind.oid, |place| other.columns[place].kind.oid);
                same.push(format!("p.{} = {}", identifier(referred), types::compared(&new, kind)));
            }
            let mut conditions = vec![
                given.join(" AND "),
                format!(
                    "NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
                    identifier(&key.table),
                    same.join(" AND ")
                ),
            ];
            if rows.has_old {
                conditions.push(format!("({})", changed.join(" OR ")));
            }
            if key.table == table.name {
                conditions.push(format!(
                    "NOT EXISTS (SELECT 1 FROM {ROWS} AS p WHERE {})",
                    same.join(" AND ")
                ));
            }
            questions.push(Question::Missing {
                name: key.name.clone(),
                columns: key.columns.clone(),
                shown: places.iter().map(|place| place + 1).collect(),
                table: key.table.clone(),
                cell: cells.len(),
            });
            cells.push(conditions.join(" AND "));
        }
        Ok(())
    }

    /// The tables whose rows may go or change along with those of this one.
    fn following(&mut self, table: &str) -> Result<BTreeSet<String>> {
        let mut following = BTreeSet::new();
        let mut next = vec![table.to_owned()];
        while let Some(parent) = next.pop() {
            for (child, key) in self.foreign_keys_to(&parent)? {
                let stays = plain(&key.on_delete) && plain(&key.on_update);
                if !stays && following.insert(child.clone()) {
                    next.push(child);
                }
            }
        }
        Ok(following)
    }

    /// Foreign keys to the rows.
    fn ask_references(
        &mut self,
        rows: &Rows,
        deferred: bool,
        cells: &mut Vec<String>,
        questions: &mut Vec<Question>,
    ) -> Result<()> {
        let table = &rows.table;
        let keys: Vec<(String, ForeignKey)> = self.foreign_keys_to(&table.name)?;
        let following = self.following(&table.name)?;
        for (child, key) in keys {
            let refuses = plain(if rows.has_new { &key.on_update } else { &key.on_delete });
            let described = self.schema.table(&child).map_err(unreadable)?;
            let Some(described) = described else { continue };
            // What refers to the row may itself go, or change, with another one.
            let stays = !following.contains(&child)
                || Definition::read(&described.definition).is_some_and(|definition| {
                    let mut others = definition.foreign_keys.iter().filter(|other| other.name != key.name);
                    others.all(|other| plain(&other.on_delete) && plain(&other.on_update))
                });
            if !refuses || key.deferred && !deferred {
                continue;
            }
            let itself = child == table.name;
            if !stays || itself && rows.has_new {
                continue;
            }
            let places: Vec<usize> = key.referred.iter().filter_map(|column| table.column(column)).collect();
            let mut conditions = Vec::new();
            let (mut changed, mut same, mut again) = (Vec::new(), Vec::new(), Vec::new());
            for (place, own) in places.iter().zip(&key.columns) {
                let column = &table.columns[*place];
                let before = format!("n.{}", old(*place));
                same.push(format!(
                    "c.{} = {}",
                    identifier(own),
                    types::compared(&before, column.kind.oid)
                ));
                changed.push(format!("n.{} IS NOT {before}", identifier(&column.name)));
                again.push(format!(
                    "q.{} = {}",
                    identifier(&column.name),
                    types::compared(&before, column.kind.oid)
                ));
            }
            let mut child_rows = format!("SELECT 1 FROM {} AS c WHERE {}", identifier(&child), same.join(" AND "));
            if itself {
                let Some(number) = row_number(table) else { continue };
                child_rows.push_str(&format!(
                    " AND c.{number} NOT IN (SELECT \"forebay_number\" FROM {ROWS})"
                ));
            }
            conditions.push(format!("EXISTS ({child_rows})"));
            if rows.has_new {
                conditions.push(format!("({})", changed.join(" OR ")));
                conditions.push(format!(
                    "NOT EXISTS (SELECT 1 FROM {ROWS} AS q WHERE {})",
                    again.join(" AND ")
                ));
            }
            let cell = cells.len();
            cells.push(conditions.join(" AND "));
            let shown = (cells.len()..cells.len() + places.len()).collect();
            cells.extend(
                places
                    .iter()
                    .map(|place| written(&format!("n.{}", old(*place)), table.columns[*place].kind.oid)),
            );
            questions.push(Question::Referenced {
                name: key.name,
                columns: key.referred,
                table: child,
                cell,
                shown,
            });
        }
        Ok(())
    }
}

/// Whether a key's action does nothing to the rows that refer.
#[allow(clippy::ref_option, reason = "it stands so in a key's definition")]
fn plain(action: &Option<String>) -> bool {
    action.as_deref().is_none_or(|action| action == "RESTRICT")
}

/// Whether an assignment gives a column what the row that was to be inserted has in it.
fn is_excluded(value: &Expr, column: &str) -> bool {
    match unnested(value) {
        Expr::CompoundIdentifier(parts) => {
            matches!(parts.as_slice(), [of, name] if folded(of) == "excluded" && folded(name) == column)
        }
        _ => false,
    }
}

/// A name under which SQLite tells the number of a row.
fn row_number(table: &Table) -> Option<&'static str> {
    ["rowid", "_rowid_", "oid"].into_iter().find(|name| {
        !table
            .columns
            .iter()
            .any(|column| column.name.eq_ignore_ascii_case(name))
    })
}

/// SQLite's expression of a value as its type's output function writes it.
fn written(sql: &str, kind: Oid) -> String {
    match forebay_pg_values::Type::from_oid(kind) {
        Some(kind) => format!("\"forebay_write\"({sql}, '{}', {ENVIRONMENT})", type_label(kind)),
        None => sql.to_owned(),
    }
}

/// The rows with the columns that are generated from the others.
fn with_generated(definition: &Definition, from: &str) -> String {
    let generated: Vec<String> = definition
        .columns
        .iter()
        .filter_map(|column| {
            Some(format!(
                ", ({}) AS {}",
                column.generated.as_ref()?.sql,
                identifier(&column.name)
            ))
        })
        .collect();
    if generated.is_empty() {
        return format!("{ROWS} AS MATERIALIZED ({from})");
    }
    format!("{ROWS} AS MATERIALIZED (SELECT *{} FROM ({from}))", generated.concat())
}

fn behind(with: &str, parts: &[String]) -> String {
    let parts = parts.join(", ");
    if with.is_empty() {
        format!("WITH {parts}")
    } else {
        format!("{}, {parts}", with.trim_end())
    }
}
