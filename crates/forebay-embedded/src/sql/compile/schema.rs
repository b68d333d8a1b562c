//! The tables and views that statements name, as the file has them: types, defaults, keys.
//!
//! Promises: a table that a client of this server has made has the types it was declared with. One that another program has made is read as a
//! person would read its declaration; its numbers and JSON texts are then taken as they are stored ([`Column::foreign`]).
//!
//! How a column's type is declared is said in [`declared`](super::declared); what PostgreSQL knows beyond that is in a comment inside the table's
//! text ([`Definition`]).

use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::{Connection, OptionalExtension};

use super::declared::of_declared;
use super::definition::{Definition, Identity, behind_marker};
use super::namespace::{self, parted};
use super::types::TypeName;

/// What a column gets when an INSERT does not say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Default {
    /// A constant, as SQLite's literal of its stored form.
    Stored(String),
    /// PostgreSQL's text of an expression.
    Expression(String),
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: TypeName,
    pub(crate) not_null: bool,
    pub(crate) default: Option<Default>,
    pub(crate) identity: Option<Identity>,
    /// GENERATED ALWAYS AS (…) STORED.
    pub(crate) generated: bool,
    /// Not kept in the stored form of its type: made by something else.
    pub(crate) foreign: bool,
    /// SQLite's own number of the row, which it would make up where PostgreSQL finds NULL.
    pub(crate) row_number: bool,
}

/// A table, or a view with the text of its query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Its name in the file.
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// Places of the key's columns.
    pub(crate) primary_key: Vec<usize>,
    /// PostgreSQL's text of the query, for a view that a client made.
    pub(crate) view: Option<String>,
    /// A view that something else has made: its columns have no types.
    pub(crate) foreign_view: bool,
    /// SQLite's text of CREATE TABLE.
    pub(crate) definition: String,
}

impl Table {
    pub(crate) fn schema(&self) -> &str {
        parted(&self.name).0
    }

    /// Its name without its schema.
    pub(crate) fn shown(&self) -> &str {
        namespace::shown(&self.name)
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The same table with the columns and keys of another definition.
    pub(crate) fn redefined(&self, definition: &Definition) -> Self {
        let columns: Vec<Column> = (0..definition.columns.len())
            .map(|place| of_definition(definition, place))
            .collect();
        let key = definition.primary_key.iter().flat_map(|key| &key.columns);
        Self {
            primary_key: key.filter_map(|name| definition.column(name)).collect(),
            columns,
            ..self.clone()
        }
    }
}

/// What marks PostgreSQL's text of a view's query in its definition.
pub(crate) const VIEW_TEXT: &str = "/* forebay view: ";
/// The end of that text.
pub(crate) const VIEW_TEXT_END: &str = " :forebay */";

/// The schema of one connection, looked up as names are met.
pub(crate) struct Schema<'a> {
    connection: &'a Connection,
    known: HashMap<String, Option<Rc<Table>>>,
}

impl<'a> Schema<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            known: HashMap::new(),
        }
    }

    pub(crate) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// The table of exactly that name.
    pub(crate) fn table(&mut self, name: &str) -> rusqlite::Result<Option<Rc<Table>>> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        let found = self.read(name)?.map(Rc::new);
        self.known.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// Has a table look otherwise from now on; gives what it was, to be put back in the same way.
    pub(crate) fn suppose(&mut self, name: &str, table: Option<Rc<Table>>) -> Option<Rc<Table>> {
        self.known.insert(name.to_owned(), table).flatten()
    }

    fn read(&self, name: &str) -> rusqlite::Result<Option<Table>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT type, name, sql FROM sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')",
        )?;
        let found: Option<(String, String, String)> = statement
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((kind, name, definition)) = found else {
            return Ok(None);
        };
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1)")?;
        let own = (kind == "table").then(|| Definition::read(&definition)).flatten();
        let mut keys: Vec<(i64, usize)> = Vec::new();
        let mut columns: Vec<Column> = Vec::new();
        let mut rows = statement.query([&name])?;
        while let Some(row) = rows.next()? {
            let hidden: i64 = row.get(5)?;
            if hidden == 1 {
                continue;
            }
            let (column, declared, not_null): (String, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (default, key): (Option<String>, i64) = (row.get(3)?, row.get(4)?);
            if key > 0 {
                keys.push((key, columns.len()));
            }
            let (kind, foreign) = of_declared(&declared);
            if let Some(own) = own.as_ref() {
                if let Some(place) = own.column(&column) {
                    columns.push(of_definition(own, place));
                }
                continue;
            }
            let default = default
                .filter(|text| !text.eq_ignore_ascii_case("NULL"))
                .map(Default::Stored);
            columns.push(Column {
                name: column,
                kind,
                not_null: not_null || key > 0,
                default,
                identity: None,
                generated: hidden == 2 || hidden == 3,
                foreign,
                row_number: false,
            });
        }
        keys.sort_unstable();
        if let Some(key) = own.as_ref().and_then(|own| own.primary_key.as_ref()) {
            let places = key
                .columns
                .iter()
                .filter_map(|name| columns.iter().position(|column| column.name == *name));
            keys = (0..).zip(places).collect();
        }
        let view = (kind == "view").then(|| view_text(&definition)).flatten();
        Ok(Some(Table {
            foreign_view: kind == "view" && view.is_none(),
            name,
            columns,
            primary_key: keys.into_iter().map(|(_, column)| column).collect(),
            view,
            definition,
        }))
    }
}

/// PostgreSQL's text of a view that a client made.
pub(crate) fn view_text(definition: &str) -> Option<String> {
    let (text, _) = behind_marker(definition, VIEW_TEXT)?.split_once(VIEW_TEXT_END)?;
    Some(
        text.replace("*\u{200b}/", "*/")
            .replace("*\u{200b}\u{200b}", "*\u{200b}"),
    )
}

/// A view's text as it stands in its definition.
pub(crate) fn marked_view_text(text: &str) -> String {
    // The end of a comment inside the text would end the one around it.
    let text = text
        .replace("*\u{200b}", "*\u{200b}\u{200b}")
        .replace("*/", "*\u{200b}/");
    format!("{VIEW_TEXT}{text}{VIEW_TEXT_END}")
}

fn of_definition(definition: &Definition, place: usize) -> Column {
    let column = &definition.columns[place];
    let in_key = definition
        .primary_key
        .as_ref()
        .is_some_and(|key| key.columns.contains(&column.name));
    Column {
        name: column.name.clone(),
        kind: column.kind(),
        not_null: column.not_null || in_key,
        default: column.default.clone().map(Default::Expression),
        identity: column.identity,
        generated: column.generated.is_some(),
        foreign: false,
        row_number: definition.is_row_number(&column.name),
    }
}
