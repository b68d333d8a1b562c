//! Plan: how the query of a loader is run for many keys, and its running.
//!
//! Promises: what the server says of the query is asked once, and again when it is no longer so; a query for many keys is used only
//! if the server gives it the columns that the query has alone; if it fails, the query is run once a key, so that the guilty key
//! is known. Does not know what a row is read into.

use std::sync::Arc;

use parking_lot::Mutex;
use postgres_types::{Kind, Type};

use crate::connector::Connections;
use crate::database::Postgres;
use crate::reading::{self, Reading};
use crate::types;
use forebay_remote::load::{self, Each, Unread, error_of_the_text, parameter_count};
use forebay_sql::{Dialect, Lateral, Role};
use forebay_write::rows::{Column, Rows};
use forebay_write::{Parameters, ReadError, Sql, Value, WriteError};

/// A query for one key.
pub(super) struct Query {
    connections: Arc<Connections>,
    sql: Sql,
    /// Why it is not run at all, if so.
    refusal: Option<WriteError>,
    plan: Mutex<Option<Arc<Plan>>>,
}

/// What is known of it.
struct Plan {
    parameters: Box<[Type]>,
    columns: Arc<[Column]>,
    /// The query for many keys, if there is one.
    lateral: Option<Lateral>,
}

impl Query {
    pub(super) fn new(database: &Postgres, sql: Sql) -> Self {
        Self {
            connections: Arc::clone(&database.inner.connections),
            refusal: refusal(&sql).map(|reason| WriteError::Refused { reason }),
            sql,
            plan: Mutex::new(None),
        }
    }

    async fn read_with(&self, reading: &mut Reading, keys: &[Parameters]) -> Result<Each, Unread> {
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
            return Err(parameter_count(plan.parameters.len(), other.len()));
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

impl load::Query for Query {
    fn refusal(&self) -> Option<WriteError> {
        self.refusal.clone()
    }

    async fn read(&self, keys: &[Parameters]) -> Result<Each, Unread> {
        let mut reading = Reading::open(&self.connections).await.map_err(Unread::Failed)?;
        self.read_with(&mut reading, keys).await
    }

    fn forget(&self) {
        *self.plan.lock() = None;
    }
}

/// Why a text is no query, if so.
fn refusal(sql: &str) -> Option<String> {
    match forebay_sql::role(Dialect::Postgres, sql) {
        Role::Shares => None,
        Role::Alone => Some("a loader runs queries, and this is another statement; use the writer".to_owned()),
        Role::Refused(reason) => Some(reason),
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
        let ordinal = row.first().and_then(Value::as_integer);
        let key = ordinal
            .and_then(|ordinal| usize::try_from(ordinal).ok()?.checked_sub(1))
            .and_then(|index| each.get_mut(index))
            .expect("the ordinal is one of those that WITH ORDINALITY has counted");
        key.rows.push(own);
    }
    Ok(Some(each.into_iter().map(Ok).collect()))
}

/// Runs the query once a key.
async fn one_by_one(reading: &mut Reading, plan: &Plan, sql: &str, keys: &[Parameters]) -> Result<Each, Unread> {
    let lists: Vec<Vec<Value>> = keys.iter().map(|key| plan.alone(key)).collect();
    let lists: Vec<&[Value]> = lists.iter().map(Vec::as_slice).collect();
    let mut outcomes: Vec<Result<reading::Rows, WriteError>> = Vec::with_capacity(keys.len());
    for outcome in reading.each(sql, &lists).await? {
        outcomes.push(match outcome {
            Ok(rows) => Ok(rows),
            Err(Unread::Failed(error)) => Err(error),
            Err(other) => return Err(other),
        });
    }
    if let Some(error) = error_of_the_text(&outcomes) {
        return Err(Unread::Failed(error));
    }
    let rows_of = |rows| Rows {
        columns: Arc::clone(&plan.columns),
        rows,
    };
    Ok(outcomes
        .into_iter()
        .map(|outcome| outcome.map(rows_of).map_err(ReadError::from))
        .collect())
}
