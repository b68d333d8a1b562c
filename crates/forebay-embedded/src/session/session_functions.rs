//! Functions that the session itself carries out: advisory locks, `set_config`, `pg_sleep`, `pg_notify`.
//!
//! SQLite computes their arguments; whatever it was read from is given back before a function waits.

use std::time::Duration;

use forebay_pg_values::interval::Interval;
use forebay_sqlite::connection::Session as Connection;
use forebay_write::{CancelToken, Sql, Value, WriteError};

use super::advisory::{Key, Mode, Scope};
use super::execute::give_back_parameters;
use super::notifications::Intent;
use super::prepared::Portal;
use super::settings::unknown;
use super::stop::Stop;
use super::{Session, rows};
use crate::errors;
use crate::sql::{SessionColumn, Statement};
use forebay_pg_wire::error::WireError;

/// The longest sleep: longer than any session lives.
const SLEEP_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Session {
    /// The one row of a statement that asks the session for something; nothing, and nothing was done, if its plan is for another
    /// schema than it meets.
    pub(super) async fn session_row(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        columns: &[SessionColumn],
        token: &CancelToken,
    ) -> Result<Option<Vec<Value>>, Stop> {
        let Some(given) = self.arguments(portal, statement, token).await? else {
            return Ok(None);
        };
        let mut row = Vec::with_capacity(columns.len());
        for column in columns {
            row.push(match column {
                SessionColumn::Computed(place) => given[*place].clone(),
                SessionColumn::Call {
                    name,
                    first,
                    count,
                    strict,
                } => {
                    let arguments = &given[*first..first + count];
                    if *strict && arguments.contains(&Value::Null) {
                        Value::Null
                    } else {
                        self.call(name, arguments, token).await?
                    }
                }
            });
        }
        Ok(Some(row))
    }

    /// The one row of what SQLite computes for a statement; nothing if its plan is for another schema than it meets.
    pub(super) async fn arguments(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
    ) -> Result<Option<Vec<Value>>, Stop> {
        self.next_cursor += 1;
        let (number, bytes_max) = (self.next_cursor, self.shared.limits.max_result_bytes);
        let plan = portal.prepared.shape.plan.as_ref();
        let sql = Sql::from(plan.map(|plan| plan.first_sql()).unwrap_or_default());
        let parameters = self.take_parameters(portal);
        let source = self.source(token).await?;
        let (watched, given, schema) = (token.clone(), parameters.clone(), portal.prepared.shape.schema);
        let gathered = self
            .on_source(&source, token, move |connection: &mut Connection| {
                let opened = connection.open_cursor(number, &sql, &given);
                let gathered =
                    opened.and_then(|()| rows::gather(connection, number, &watched, u64::MAX, Some(bytes_max)));
                rows::under_schema(connection, number, schema)?;
                gathered
            })
            .await?;
        if matches!(gathered, Err(WriteError::SchemaChanged)) {
            give_back_parameters(portal, &parameters);
            return Ok(None);
        }
        let gathered = gathered.map_err(|error| errors::write(error, statement, &portal.prepared.script))?;
        // What it read from is given back here: what follows may wait for others.
        drop(source);
        let row = gathered.and_then(|gathered| gathered.rows.into_iter().next());
        Ok(Some(row.ok_or_else(|| {
            WireError::new("54000", "the arguments are too long")
        })?))
    }

    async fn call(&mut self, name: &str, arguments: &[Value], token: &CancelToken) -> Result<Value, Stop> {
        let void = Value::Text(String::new());
        match name {
            "set_config" => return Ok(self.set_config(arguments)?),
            "pg_notify" => {
                let channel = text(arguments, 0).unwrap_or_default();
                let payload = text(arguments, 1).unwrap_or_default();
                self.ears.intend(Intent::tell(&channel, &payload)?)?;
                return Ok(void);
            }
            "pg_sleep" => {
                let seconds = match arguments[0] {
                    Value::Real(seconds) if seconds > 0.0 => seconds,
                    _ => 0.0,
                };
                return sleep(Duration::try_from_secs_f64(seconds).unwrap_or(SLEEP_MAX), token).await;
            }
            "pg_sleep_for" => {
                let span = Interval::parse(&text(arguments, 0).unwrap_or_default(), -1).map_err(WireError::from)?;
                let days = i64::from(span.months) * 30 + i64::from(span.days);
                let micros = days.saturating_mul(86_400_000_000).saturating_add(span.micros);
                return sleep(Duration::from_micros(u64::try_from(micros).unwrap_or(0)), token).await;
            }
            "pg_advisory_unlock_all" => {
                self.locks.give_back_session();
                return Ok(void);
            }
            _ => {}
        }
        let key = match arguments {
            [Value::Integer(one)] => Key::One(*one),
            [Value::Integer(one), Value::Integer(two)] => Key::Two(narrow(*one), narrow(*two)),
            _ => return Err(WireError::internal("an advisory lock without a key").into()),
        };
        let mode = if name.ends_with("_shared") {
            Mode::Shared
        } else {
            Mode::Exclusive
        };
        let scope = if name.contains("_xact_") {
            Scope::Transaction
        } else {
            Scope::Session
        };
        if name.contains("_unlock") {
            let held = self.locks.give_back(key, mode);
            if !held {
                let kind = if mode == Mode::Shared {
                    "ShareLock"
                } else {
                    "ExclusiveLock"
                };
                self.warn("01000", &format!("you don't own a lock of type {kind}"));
            }
            return Ok(Value::Integer(held.into()));
        }
        if name.starts_with("pg_try_") {
            return Ok(Value::Integer(self.locks.try_take(key, mode, scope)?.into()));
        }
        let writes = self.block.as_ref().is_some_and(|block| block.write().is_some());
        let timeout = self.settings.lock_timeout();
        self.locks.take((key, mode, scope), token, timeout, writes).await?;
        Ok(void)
    }

    fn set_config(&mut self, arguments: &[Value]) -> Result<Value, WireError> {
        let Some(name) = text(arguments, 0) else {
            return Err(WireError::new("22004", "SET requires parameter name"));
        };
        let local = matches!(arguments.get(2), Some(Value::Integer(1)));
        if self.settings.value(&name).is_none() && !name.contains('.') && !name.starts_with("transaction_") {
            return Err(unknown(&name));
        }
        self.set(&name, text(arguments, 1).as_deref(), local)?;
        Ok(self.setting(&name).map_or(Value::Null, Value::Text))
    }
}

fn text(arguments: &[Value], place: usize) -> Option<String> {
    match arguments.get(place) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn narrow(key: i64) -> i32 {
    i32::try_from(key).expect("the argument was converted to an int4")
}

async fn sleep(time: Duration, token: &CancelToken) -> Result<Value, Stop> {
    tokio::select! {
        biased;
        error = token.fired() => Err(error.into()),
        () = tokio::time::sleep(time.min(SLEEP_MAX)) => Ok(Value::Text(String::new())),
    }
}
