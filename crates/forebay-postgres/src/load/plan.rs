//! Plan: how the query of a loader is run for many keys, and its running.
//!
//! Promises: what the server says of the query is asked once, and again when it is no longer so; a query for many keys is used only
//! if the server gives it the columns that the query has alone; if it fails, the query is run once a key, so that the guilty key
//! is known. Does not know what a row is read into.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::types::{Kind, Type};

use crate::Postgres;
use crate::reading::{self, Reading, Unread};
use crate::types;
use forebay_sql::{Dialect, Lateral, Role};
use forebay_write::ReadError;
use forebay_write::rows::{Column, Rows};
use forebay_write::{Parameters, Sql, StatementError, StatementErrorKind, Value, WriteError};

/// How often a fetch is begun before its error is told: a connection may be lost, a table changed.
const ATTEMPTS: usize = 3;

/// A query for one key.
pub(super) struct Query {
    database: Postgres,
    sql: Sql,
    plan: Mutex<Option<Arc<Plan>>>,
}

/// What is known of it.
struct Plan {
    parameters: Box<[Type]>,
    columns: Arc<[Column]>,
    /// The query for many keys, if there is one.
    lateral: Option<Lateral>,
}

type Each = Vec<Result<Rows, ReadError>>;

impl Query {
    pub(super) fn new(database: Postgres, sql: Sql) -> Self {
        Self {
            database,
            sql,
            plan: Mutex::new(None),
        }
    }

    /// The rows of each key.
    pub(super) async fn read(&self, keys: &[Parameters]) -> Result<Each, ReadError> {
        self.refuse_what_does_not_read()?;
        let mut attempt = 1;
        loop {
            let mut reading = self.database.reading().await?;
            match self.try_read(&mut reading, keys).await {
                Err(Unread::Outdated(_) | Unread::Lost(_)) if attempt < ATTEMPTS => {
                    *self.plan.lock() = None;
                    attempt += 1;
                }
                told => return told.map_err(|unread| unread.into_error().into()),
            }
        }
    }

    fn refuse_what_does_not_read(&self) -> Result<(), WriteError> {
        match forebay_sql::role(Dialect::Postgres, &self.sql) {
            Role::Shares => Ok(()),
            Role::Alone => Err(WriteError::Refused {
                reason: "a loader runs queries, and this is another statement; use the writer".to_owned(),
            }),
            Role::Refused(reason) => Err(WriteError::Refused { reason }),
        }
    }

    async fn try_read(&self, reading: &mut Reading, keys: &[Parameters]) -> Result<Each, Unread> {
        let known = self.plan.lock().clone();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let plan = Arc::new(Plan::make(reading, &self.sql).await?);
                *self.plan.lock() = Some(Arc::clone(&plan));
                plan
            }
        };
        if let Some(other) = keys.iter().find(|key| key.len() != plan.parameters.len()) {
            let message = format!(
                "the query has {} parameters, and the key has {}",
                plan.parameters.len(),
                other.len()
            );
            let error = StatementError::new(StatementErrorKind::ParameterCount, 0, message);
            return Err(Unread::Failed(error));
        }
        if keys.len() > 1
            && let Some(lateral) = &plan.lateral
            && let Some(each) = together(reading, &plan, lateral, keys).await?
        {
            return Ok(each);
        }
        one_by_one(reading, &plan, &self.sql, keys).await
    }
}

impl Plan {
    async fn make(reading: &mut Reading, sql: &str) -> Result<Self, Unread> {
        let alone = reading.describe(sql).await?;
        let columns = alone.columns.iter().map(|column| Column {
            name: column.name.clone(),
            is_json: is_json(&column.kind),
        });
        let mut plan = Self {
            columns: columns.collect(),
            lateral: lateral_of(sql, &alone.parameters),
            parameters: alone.parameters,
        };
        if let Some(lateral) = &plan.lateral {
            let fits = match reading.describe(&lateral.sql).await {
                Ok(many) => {
                    let kinds = many.columns.iter().skip(hidden(lateral)).map(|column| &column.kind);
                    kinds.eq(alone.columns.iter().map(|column| &column.kind))
                }
                Err(lost @ Unread::Lost(_)) => return Err(lost),
                Err(_) => false,
            };
            if !fits {
                plan.lateral = None;
            }
        }
        Ok(plan)
    }

    /// The key's parameters as the query for one key takes them.
    fn alone(&self, key: &Parameters) -> Vec<Value> {
        let parameters = self.parameters.iter().zip(key.values());
        parameters
            .map(|(kind, value)| match value {
                Value::Array(_) => value.clone(),
                _ if is_list(kind) => Value::Array(vec![value.clone()]),
                _ => value.clone(),
            })
            .collect()
    }
}

fn is_list(kind: &Type) -> bool {
    matches!(kind.kind(), Kind::Array(_))
}

/// Whether it is JSON, or an array of it.
fn is_json(kind: &Type) -> bool {
    match kind.kind() {
        Kind::Domain(under) | Kind::Array(under) => is_json(under),
        _ => matches!(*kind, Type::JSON | Type::JSONB),
    }
}

/// The query for many keys, if their types can travel in lists.
fn lateral_of(sql: &str, parameters: &[Type]) -> Option<Lateral> {
    let parameters: Option<Vec<forebay_sql::Parameter>> = parameters
        .iter()
        .map(|parameter| {
            let (element, is_wrapped) = match parameter.kind() {
                Kind::Array(element) => (element, true),
                _ => (parameter, false),
            };
            // Named by what nobody can redefine.
            types::array_of(element).map(|list| forebay_sql::Parameter {
                list: format!("pg_catalog.{}", list.name()),
                is_wrapped,
            })
        })
        .collect();
    // Without a parameter all keys are alike; there is nothing to unnest.
    parameters
        .filter(|parameters| !parameters.is_empty())
        .and_then(|parameters| forebay_sql::lateral(sql, &parameters))
}

/// Columns before the query's own.
fn hidden(lateral: &Lateral) -> usize {
    if lateral.is_ordered { 2 } else { 1 }
}

/// Runs the query for many keys. None if it failed, so that it is not known whose fault that is.
async fn together(
    reading: &mut Reading,
    plan: &Plan,
    lateral: &Lateral,
    keys: &[Parameters],
) -> Result<Option<Each>, Unread> {
    let is_list = |key: &Parameters| key.values().iter().any(|value| matches!(value, Value::Array(_)));
    let fits = |key: &Parameters| types::check(&plan.parameters, &plan.alone(key)).is_ok();
    if keys.iter().any(|key| is_list(key) || !fits(key)) {
        return Ok(None);
    }
    let lists: Vec<Value> = (0..plan.parameters.len())
        .map(|number| Value::Array(keys.iter().map(|key| key.values()[number].clone()).collect()))
        .collect();
    let read = match reading.once(&lateral.sql, &lists).await {
        Ok(read) => read,
        Err(Unread::Failed(_)) => return Ok(None),
        Err(other) => return Err(other),
    };
    let mut each: Vec<Rows> = keys
        .iter()
        .map(|_| Rows {
            columns: Arc::clone(&plan.columns),
            rows: Vec::new(),
        })
        .collect();
    for mut row in read {
        let own = row.split_off(hidden(lateral));
        let place = row.first().and_then(Value::as_integer);
        let key = place
            .and_then(|place| usize::try_from(place).ok()?.checked_sub(1))
            .and_then(|place| each.get_mut(place))
            .expect("the place is one of those that WITH ORDINALITY has counted");
        key.rows.push(own);
    }
    Ok(Some(each.into_iter().map(Ok).collect()))
}

/// Runs the query once a key.
async fn one_by_one(reading: &mut Reading, plan: &Plan, sql: &str, keys: &[Parameters]) -> Result<Each, Unread> {
    let lists: Vec<Vec<Value>> = keys.iter().map(|key| plan.alone(key)).collect();
    let lists: Vec<&[Value]> = lists.iter().map(Vec::as_slice).collect();
    let told = reading.each(sql, &lists).await?;
    let outdated = told.iter().find_map(|told| match told {
        Err(unread @ (Unread::Outdated(_) | Unread::Lost(_))) => Some(unread.clone()),
        _ => None,
    });
    if let Some(unread) = outdated {
        return Err(unread);
    }
    if let Some(error) = of_the_text(&told) {
        return Err(error);
    }
    Ok(told
        .into_iter()
        .map(|told| match told {
            Ok(rows) => Ok(Rows {
                columns: Arc::clone(&plan.columns),
                rows,
            }),
            Err(unread) => Err(unread.into_error().into()),
        })
        .collect())
}

/// The error that every key has, if it is about the text: a table is no longer there, the query writes.
fn of_the_text(told: &[Result<reading::Rows, Unread>]) -> Option<Unread> {
    let about_the_text = |told: &Result<reading::Rows, Unread>| {
        matches!(told, Err(Unread::Failed(error)) if matches!(
            error.kind,
            StatementErrorKind::Text | StatementErrorKind::ReadOnly | StatementErrorKind::Permission
        ))
    };
    if !told.iter().all(about_the_text) {
        return None;
    }
    told.first().and_then(|told| told.clone().err())
}
