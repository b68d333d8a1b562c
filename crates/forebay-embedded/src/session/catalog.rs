//! Queries of PostgreSQL's catalog, answered by the emulation, which is first brought up to date with the schema.
//!
//! Promises: rows have a bound; parameters and results are typed as PostgreSQL would. Knows nothing of what the catalog holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_pg_values::{Environment, Type as ValueType, array};
use forebay_sqlite::connection::Session as Connection;
use forebay_write::{CancelToken, Parameters, Value};
use parking_lot::Mutex;
use postgres_types::Type;

use super::Session;
use super::prepared::{Field, Life, Prepared, Shape};
use super::rows::{owned, reference};
use super::stop::Stop;
use crate::catalog::{self, Catalog, CatalogError, Cursor, Identity, OwnSession, PreparedStatement};
use crate::sql::{Statement, facts, stored_timestamptz};
use forebay_pg_wire::error::WireError;

/// The most rows of a catalog query: schemas are small, cross products are not.
const ROWS_MAX: usize = 100_000;

impl Session {
    pub(super) async fn describe_catalog(&mut self, statement: &Statement, declared: &[u32]) -> Result<Shape, Stop> {
        let translation = Catalog::translate(&statement.sql).map_err(|error| refused(&error))?;
        // Translated, it may still name what is not there: asked of SQLite before the client is told that it is prepared.
        let translated = translation.sql.clone();
        self.on_catalog(move |catalog| {
            catalog
                .connection()
                .prepare_cached(&translated)
                .map(|_| ())
                .map_err(|error| failed(&error))
        })
        .await?;
        let mut parameters = translation.parameters;
        for (index, oid) in declared.iter().enumerate() {
            let kind = Type::from_oid(*oid);
            match (parameters.get_mut(index), kind) {
                (Some(parameter), Some(kind)) => *parameter = kind,
                (None, kind) => parameters.push(kind.unwrap_or(Type::TEXT)),
                (Some(_), None) => {}
            }
        }
        let columns = translation
            .columns
            .into_iter()
            .map(|column| Field {
                typmod: column.modifier,
                ..Field::new(column.name, column.kind)
            })
            .collect();
        Ok(Shape {
            parameters,
            columns,
            read_only: true,
            ..Shape::default()
        })
    }

    pub(super) async fn query_catalog(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        parameters: &[Value],
        formats: Vec<i16>,
    ) -> Result<Vec<Vec<Value>>, Stop> {
        let translation = Catalog::translate(&statement.sql).map_err(|error| refused(&error))?;
        let parameters = with_literals(parameters, &prepared.shape.parameters, &self.value_environment())?;
        let columns: Vec<(Type, i16)> = translation.column_types().into_iter().zip(formats).collect();
        let sql = translation.sql;
        let own = Catalog::reads_own_session(&sql).then(|| self.own_session(&prepared.script));
        let own = own.transpose().map_err(|error| failed(&error))?;
        self.on_catalog(move |catalog| {
            if let Some(own) = &own {
                catalog.show_own_session(own).map_err(|error| failed(&error))?;
            }
            query(catalog, &sql, &parameters, &columns)
        })
        .await
    }

    /// This session, which is carrying out a query of that text.
    fn own_session(&self, query: &str) -> rusqlite::Result<OwnSession> {
        let statements = self.statements.iter().filter(|(name, _)| !name.is_empty());
        let open = self.portals.iter().map(|(name, portal)| Cursor {
            name: name.clone(),
            text: portal.prepared.script.to_string(),
            is_holdable: portal.life != Life::Transaction,
            is_scrollable: portal.scroll,
        });
        let asking = self.executing.iter().map(|name| Cursor {
            name: name.clone(),
            text: query.to_owned(),
            is_holdable: false,
            is_scrollable: false,
        });
        Ok(OwnSession {
            process: self.registration.process,
            application_name: self.settings.value("application_name").unwrap_or_default(),
            query: query.to_owned(),
            transaction_began: stored_timestamptz(self.now_micros())?,
            asked: stored_timestamptz(self.asked_micros())?,
            statements: statements
                .map(|(name, prepared)| PreparedStatement {
                    name: name.clone(),
                    text: prepared.script.to_string(),
                    parameter_types: prepared
                        .shape
                        .parameters
                        .iter()
                        .map(|kind| Some(facts::display_name(kind.oid())))
                        .collect(),
                    from_sql: prepared.from_sql,
                })
                .collect(),
            cursors: open.chain(asking).collect(),
        })
    }

    /// Does a job on the catalog, as the schema is now.
    async fn on_catalog<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&Catalog) -> Result<T, WireError> + Send + 'static,
    ) -> Result<T, Stop> {
        let (token, _running) = self.statement_token();
        let source = self.source(&token).await?;
        let identity = Identity {
            database: self.identity.database.clone(),
            user: self.identity.user.clone(),
            version: super::VERSION.to_owned(),
        };
        // Inside a transaction the schema may never be committed: it is shown to nobody else.
        let own = self.block.as_ref().is_some_and(|block| block.write().is_some());
        let settings: BTreeMap<String, String> = self
            .settings
            .all()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let process = self.registration.process;
        let shared = Arc::clone(&self.shared);
        let watched = token.clone();
        let result = self
            .on_source(&source, &token, move |connection| {
                if own {
                    let catalog = Catalog::new().map_err(|error| failed(&error))?;
                    on_refreshed(
                        &Mutex::new(catalog),
                        connection,
                        &identity,
                        (settings, process),
                        &watched,
                        job,
                    )
                } else {
                    on_refreshed(
                        &shared.catalog,
                        connection,
                        &identity,
                        (settings, process),
                        &watched,
                        job,
                    )
                }
            })
            .await?;
        Ok(result?)
    }
}

fn on_refreshed<T>(
    catalog: &Mutex<Catalog>,
    connection: &mut Connection,
    identity: &Identity,
    (settings, process): (BTreeMap<String, String>, i32),
    token: &CancelToken,
    job: impl FnOnce(&Catalog) -> Result<T, WireError>,
) -> Result<T, WireError> {
    let mut catalog = catalog.lock();
    catalog
        .refresh(connection.connection(), identity)
        .map_err(|error| failed(&error))?;
    catalog.answer_settings(settings, process);
    let watched = token.clone();
    catalog
        .interrupt_when(Some(move || watched.interrupts()))
        .map_err(|error| failed(&error))?;
    let result = job(&catalog);
    catalog
        .interrupt_when(None::<fn() -> bool>)
        .map_err(|error| failed(&error))?;
    result.map_err(|error| {
        if token.interrupts() {
            crate::errors::unplaced(token.reason())
        } else {
            error
        }
    })
}

/// The catalog knows arrays as literals.
fn with_literals(parameters: &[Value], kinds: &[Type], environment: &Environment) -> Result<Parameters, WireError> {
    let mut values = parameters.to_vec();
    for (value, kind) in values.iter_mut().zip(kinds) {
        if let (Value::Text(stored), Some(ValueType::Array(element))) = (&mut *value, ValueType::from_oid(kind.oid())) {
            let mut literal = String::new();
            array::write(element, stored, environment, &mut literal)?;
            *stored = literal;
        }
    }
    Ok(Parameters::from(values))
}

/// `columns` are those of the result, each with the format it is asked for in.
fn query(
    catalog: &Catalog,
    sql: &str,
    parameters: &Parameters,
    columns: &[(Type, i16)],
) -> Result<Vec<Vec<Value>>, WireError> {
    if sql.contains("\"pg_settings\"") {
        catalog.show_settings().map_err(|error| failed(&error))?;
    }
    let mut statement = catalog
        .connection()
        .prepare_cached(sql)
        .map_err(|error| failed(&error))?;
    for index in 1..=statement.parameter_count() {
        let value = statement
            .parameter_name(index)
            .and_then(|name| name.strip_prefix(['$', '?'])?.parse::<usize>().ok())
            .and_then(|number| parameters.values().get(number - 1))
            .unwrap_or(&Value::Null);
        let value = reference(value);
        statement
            .raw_bind_parameter(index, rusqlite::types::ToSqlOutput::Borrowed(value))
            .map_err(|error| failed(&error))?;
    }
    let column_count = statement.column_count();
    let mut gathered = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| failed(&error))? {
        if gathered.len() == ROWS_MAX {
            let message = format!("a catalog query returns at most {ROWS_MAX} rows");
            return Err(WireError::new("54000", message));
        }
        let values: Result<Vec<Value>, rusqlite::Error> = (0..column_count)
            .map(|column| {
                let value = owned(row.get_ref(column)?);
                match (&value, columns.get(column)) {
                    (Value::Integer(oid), Some((kind, 0))) => {
                        Ok(catalog.name_of(kind, *oid)?.map_or(value, Value::Text))
                    }
                    _ => Ok(value),
                }
            })
            .collect();
        gathered.push(values.map_err(|error| failed(&error))?);
    }
    Ok(gathered)
}

fn refused(error: &CatalogError) -> WireError {
    WireError::new(error.sqlstate(), error.to_string())
}

/// The catalog's own functions say their SQLSTATE in the message; for the rest SQLite's codes tell.
fn failed(error: &rusqlite::Error) -> WireError {
    match catalog::runtime_error(error) {
        Some((sqlstate, message)) => WireError::new(crate::errors::known_sqlstate(&sqlstate), message),
        None => crate::errors::sqlite(error).0,
    }
}
