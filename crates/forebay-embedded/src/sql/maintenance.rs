//! VACUUM and ANALYZE, read here because their grammar is PostgreSQL's own.
//!
//! Promises: the tables that a client names are looked up, and only statements written here reach SQLite. VACUUM without a table, and FULL, rewrite
//! the file; VACUUM of tables does nothing, for SQLite reuses their free pages by itself. Of the session it knows the `search_path`.

use rusqlite::Connection;

use super::catalog_query::is_relation_of_the_catalog;
use super::compile::namespace::{schemas, session_path, stored};
use super::compile::schema::Schema;
use super::compile::{Plan, Step, identifier};
use super::environment::Environment;
use super::error::{SqlError, character_position};
use super::lexer::Kind;
use super::token_cursor::TokenCursor;

/// One of the two, understood.
#[derive(Debug)]
pub(super) struct Maintenance {
    pub(super) is_vacuum: bool,
    full: bool,
    analyze: bool,
    tables: Vec<Named>,
}

/// A table as the client named it.
#[derive(Debug)]
struct Named {
    schema: Option<String>,
    name: String,
    columns: Vec<String>,
}

const VACUUM_OPTIONS: [&str; 10] = [
    "FULL",
    "FREEZE",
    "VERBOSE",
    "ANALYZE",
    "DISABLE_PAGE_SKIPPING",
    "SKIP_LOCKED",
    "INDEX_CLEANUP",
    "PROCESS_TOAST",
    "TRUNCATE",
    "PARALLEL",
];
const ANALYZE_OPTIONS: [&str; 2] = ["VERBOSE", "SKIP_LOCKED"];

impl Maintenance {
    /// The statement at the cursor; `None` for any other.
    ///
    /// # Errors
    /// PostgreSQL's syntax errors; 0A000 for what cannot be done in one statement here.
    pub(super) fn understand(cursor: &TokenCursor<'_>) -> Result<Option<Self>, SqlError> {
        let mut cursor = cursor.clone();
        let is_vacuum = cursor.take_words(&["VACUUM"]);
        let is_analyze =
            |cursor: &mut TokenCursor<'_>| cursor.take_words(&["ANALYZE"]) || cursor.take_words(&["ANALYSE"]);
        if !is_vacuum && !is_analyze(&mut cursor) {
            return Ok(None);
        }
        let mut read = Self {
            is_vacuum,
            full: false,
            analyze: !is_vacuum,
            tables: Vec::new(),
        };
        if cursor.take_sign("(") {
            read.options(&mut cursor)?;
        } else {
            read.full = is_vacuum && cursor.take_words(&["FULL"]);
            if is_vacuum {
                cursor.take_words(&["FREEZE"]);
            }
            cursor.take_words(&["VERBOSE"]);
            read.analyze |= is_analyze(&mut cursor);
        }
        if !cursor.is_at_end() {
            loop {
                read.tables.push(named(&mut cursor)?);
                if !cursor.take_sign(",") {
                    break;
                }
            }
        }
        cursor.end()?;
        if !read.analyze && read.tables.iter().any(|table| !table.columns.is_empty()) {
            return Err(fault(
                "0A000",
                "ANALYZE option must be specified when a column list is provided".to_owned(),
            ));
        }
        if read.full && read.analyze {
            return Err(SqlError::unsupported_but(
                "VACUUM with FULL and ANALYZE",
                "Send VACUUM FULL and ANALYZE one after the other.",
            ));
        }
        Ok(Some(read))
    }

    /// `option [value], …)`.
    fn options(&mut self, cursor: &mut TokenCursor<'_>) -> Result<(), SqlError> {
        let (verb, known) = if self.is_vacuum {
            ("VACUUM", VACUUM_OPTIONS.as_slice())
        } else {
            ("ANALYZE", ANALYZE_OPTIONS.as_slice())
        };
        loop {
            let at = cursor.peek().map(|token| token.range.start);
            let option = cursor.name("an option")?;
            let option = if option == "analyse" {
                "ANALYZE".to_owned()
            } else {
                option.to_ascii_uppercase()
            };
            if !known.contains(&option.as_str()) {
                return Err(SqlError::Syntax {
                    message: format!("unrecognized {verb} option \"{}\"", option.to_ascii_lowercase()),
                    position: at.map(|byte| character_position(cursor.source, byte)),
                });
            }
            let is_on = match cursor.peek() {
                Some(token) if !matches!(token.kind, Kind::Comma | Kind::Close) => {
                    let value = token.text(cursor.source).trim_matches('\'').to_ascii_lowercase();
                    cursor.next();
                    !matches!(value.as_str(), "false" | "off" | "0")
                }
                _ => true,
            };
            match option.as_str() {
                "FULL" => self.full = is_on,
                "ANALYZE" => self.analyze = is_on,
                _ => {}
            }
            if cursor.take_sign(")") {
                return Ok(());
            }
            if !cursor.take_sign(",") {
                return cursor.expected(", or )");
            }
        }
    }

    /// What SQLite is to do.
    ///
    /// # Errors
    /// PostgreSQL's, for tables and columns that are not there.
    pub(super) fn plan(&self, connection: &Connection, session: &Environment<'_>) -> Result<Plan, SqlError> {
        let mut schema = Schema::new(connection);
        let others = schemas(connection)?;
        let path = session_path(connection, session)?;
        let mut tables = Vec::new();
        for named in &self.tables {
            if named.is_of_the_catalog() {
                continue;
            }
            if let Some(other) = &named.schema
                && other != "public"
                && !others.contains(other)
            {
                return Err(fault("3F000", format!("schema \"{other}\" does not exist")));
            }
            let own = named.name.starts_with("sqlite_") || named.name.starts_with("forebay_");
            let mut table = None;
            for within in named.schema.as_ref().map_or(path.as_slice(), std::slice::from_ref) {
                if table.is_none() && !own {
                    table = schema.table(&stored(within, &named.name))?;
                }
            }
            let Some(table) = table else {
                let schema = named
                    .schema
                    .as_ref()
                    .map_or_else(String::new, |schema| format!("{schema}."));
                let message = format!("relation \"{schema}{}\" does not exist", named.name);
                return Err(fault("42P01", message));
            };
            for column in &named.columns {
                if !table.columns.iter().any(|found| found.name == *column) {
                    return Err(fault(
                        "42703",
                        format!("column \"{column}\" of relation \"{}\" does not exist", named.name),
                    ));
                }
            }
            if table.view.is_none() && !table.foreign_view {
                tables.push(identifier(&table.name));
            }
        }
        let steps: Vec<Step> = if self.analyze && (self.tables.is_empty() || self.is_vacuum && tables.len() > 1) {
            // VACUUM is one statement of SQLite's: more than was asked for is looked at.
            vec!["ANALYZE".to_owned().into()]
        } else if self.analyze {
            tables.iter().map(|table| format!("ANALYZE {table}").into()).collect()
        } else if self.full || self.tables.is_empty() {
            vec!["VACUUM".to_owned().into()]
        } else {
            Vec::new()
        };
        Ok(Plan {
            writes: true,
            ..Plan::of_steps(steps)
        })
    }
}

impl Named {
    fn is_of_the_catalog(&self) -> bool {
        match self.schema.as_deref() {
            None => is_relation_of_the_catalog(&self.name),
            Some(schema) => matches!(schema, "pg_catalog" | "information_schema"),
        }
    }
}

/// `schema.table (column, …)`.
fn named(cursor: &mut TokenCursor<'_>) -> Result<Named, SqlError> {
    let mut name = cursor.name("a table")?;
    let mut schema = None;
    if cursor.take_sign(".") {
        schema = Some(std::mem::replace(&mut name, cursor.name("a table")?));
    }
    let mut columns = Vec::new();
    if cursor.take_sign("(") {
        loop {
            columns.push(cursor.name("a column")?);
            if cursor.take_sign(")") {
                break;
            }
            if !cursor.take_sign(",") {
                return cursor.expected(", or )");
            }
        }
    }
    Ok(Named { schema, name, columns })
}

fn fault(sqlstate: &'static str, message: String) -> SqlError {
    SqlError::Fault {
        sqlstate,
        message,
        detail: None,
        hint: None,
        position: None,
    }
}
