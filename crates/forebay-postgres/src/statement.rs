//! A single statement, from its parameters to its outcome.
//!
//! Promises: what would end the connection is not sent; what was prepared for types that columns had before is prepared anew;
//! rows are a caller's as the server told them. Knows no batch.

use super::answered::Answered;
use super::connection::Connection;
use super::error::{Failure, failure};
use super::pipeline::Whose;
use super::plan::Plan;
use super::prepared::Prepared;
use super::types::{self, Parameter};
use forebay_remote::settled::WriteResult;
use forebay_write::{Outcome, Parameters, Sql, StatementError, StatementErrorKind, Value, WriteError};

/// The protocol counts parameters in two bytes.
const PARAMETERS_MAX: usize = 65_535;
/// The server takes messages of less than 1 GiB; the rest of it is for what is beside the parameters.
const MESSAGE_BYTES_MAX: usize = (1 << 30) - 1024;

/// Executes one statement of somebody's transaction.
pub(super) async fn execute(connection: &mut Connection, plan: &Plan, parameters: &Parameters) -> WriteResult {
    if let Some(error) = unsendable(parameters) {
        return Err(error.into());
    }
    let executed = async {
        let prepared = ready(connection, &plan.sql, parameters).await?;
        if let Some(error) = misfit(&prepared, parameters) {
            return Ok(Err(error));
        }
        let answered = connection
            .execute(Whose::Callers, &prepared, sent(parameters), &plan.sql)
            .await?;
        Ok(outcome(&prepared, &answered, plan.changes_rows))
    };
    let result = executed.await;
    concluded(connection, &plan.sql, result)
}

/// Reads with one statement, in a transaction in which nothing can be written.
pub(super) async fn query(connection: &mut Connection, sql: &Sql, parameters: &Parameters) -> WriteResult {
    if let Some(error) = unsendable(parameters) {
        return Err(error.into());
    }
    let read = async {
        let prepared = ready(connection, sql, parameters).await?;
        if let Some(error) = misfit(&prepared, parameters) {
            return Ok(Err(error));
        }
        let mut answers = connection
            .pipeline(|pipeline| {
                pipeline.command("BEGIN READ ONLY");
                pipeline.execute(Whose::Callers, &prepared, sent(parameters));
                // Of a transaction that is broken it makes a ROLLBACK.
                pipeline.command("COMMIT");
            })
            .await?;
        let answered = answers.swap_remove(1);
        let answered = answered.map_err(|refusal| failure(refusal, sql))?;
        Ok(outcome(&prepared, &answered, false))
    };
    let result = read.await;
    concluded(connection, sql, result)
}

fn concluded(connection: &mut Connection, sql: &str, result: Result<WriteResult, Failure>) -> WriteResult {
    match result {
        Ok(result) => result,
        Err(Failure::Lost(cause)) => Err(WriteError::Unavailable { cause }),
        Err(other) => {
            if let Failure::Replan(_) = other {
                connection.forget_statements();
            }
            let error = other.statement();
            if is_of_types(&error) {
                // It may be prepared for types that columns had before.
                connection.forget(sql);
            }
            Err(error.into())
        }
    }
}

/// Why parameters cannot be sent, whatever the statement: the server would end the connection, and the library cannot count so far.
pub(super) fn unsendable(parameters: &Parameters) -> Option<StatementError> {
    let values = parameters.values();
    if values.len() > PARAMETERS_MAX {
        let message = format!(
            "{} parameters, and a statement takes at most {PARAMETERS_MAX}",
            values.len()
        );
        return Some(StatementError::new(StatementErrorKind::ParameterCount, 0, message));
    }
    let bytes: usize = values.iter().map(bytes_sent).sum();
    (bytes > MESSAGE_BYTES_MAX).then(|| {
        let message = format!("its parameters are {bytes} bytes, and a message takes at most {MESSAGE_BYTES_MAX}");
        StatementError::new(StatementErrorKind::TooLarge, 0, message)
    })
}

/// The bytes that a value takes in a message, or some fewer.
fn bytes_sent(value: &Value) -> usize {
    const LENGTH: usize = 4;
    LENGTH
        + match value {
            Value::Null | Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) | Value::Timestamp(_) => 0,
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Array(values) => values.iter().map(bytes_sent).sum(),
        }
}

/// The statement; prepared anew if these parameters do not fit it, as a column may have another type since it was prepared.
pub(super) async fn ready(
    connection: &mut Connection,
    sql: &str,
    parameters: &Parameters,
) -> Result<Prepared, Failure> {
    let prepared = connection.prepare(sql, &[]).await?;
    if misfit(&prepared, parameters).is_some() && connection.forget(sql) {
        return connection.prepare(sql, &[]).await;
    }
    Ok(prepared)
}

/// The parameters as they are sent.
pub(super) fn sent(parameters: &Parameters) -> impl Iterator<Item = Parameter<'_>> + Clone {
    parameters.values().iter().map(Parameter)
}

/// Why the statement cannot be executed with these parameters, found without asking.
pub(super) fn misfit(prepared: &Prepared, parameters: &Parameters) -> Option<WriteError> {
    let fits = types::check(&prepared.parameters, parameters.values()).and_then(|()| returnable(prepared));
    fits.err().map(WriteError::from)
}

/// Whether all columns that a statement returns can be read.
///
/// # Errors
/// Which one cannot.
pub(super) fn returnable(prepared: &Prepared) -> Result<(), StatementError> {
    let mut columns = prepared.column_names.iter().zip(&*prepared.columns);
    match columns.find(|(_, column)| !types::returnable(column)) {
        Some((name, column)) => Err(types::unreturnable(name, column)),
        None => Ok(()),
    }
}

/// The outcome of a statement that was executed.
pub(super) fn outcome(prepared: &Prepared, answered: &Answered, changes_rows: bool) -> WriteResult {
    if let Some(too_many) = answered.too_many {
        return Err(StatementError::from(too_many).into());
    }
    let rows: Result<Vec<Vec<Value>>, StatementError> = answered.rows().map(types::row).collect();
    let count = if changes_rows { answered.count } else { 0 };
    Ok(Outcome::counted(count, None).returning(prepared.column_names.to_vec(), rows?))
}

/// Whether types did not fit, or there is no operator, function or cast for them.
pub(super) fn is_of_types(error: &StatementError) -> bool {
    let codes = ["42804", "42883", "42846"];
    error.sqlstate.as_deref().is_some_and(|state| codes.contains(&state))
}
