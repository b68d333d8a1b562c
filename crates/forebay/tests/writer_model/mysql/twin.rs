//! A database on MariaDB, and statements by themselves on it, by the plain driver: what the Writer is held to.
//!
//! Promises: nothing of Forebay's is used but the names for what is told. With rows the server tells neither count nor id:
//! the count is that of the rows, as the Writer says.

use forebay::write::{Outcome, StatementError, StatementErrorKind as Kind, Value, WriteError};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Params, Row, Value as Wire};

use crate::case::{NOT_ONE, Step};
use crate::judge::{Table, Told};

pub(crate) struct Twin {
    pub(crate) url: String,
    name: String,
    conn: Conn,
}

impl Twin {
    pub(crate) async fn make(server: &str, name: &str, schema: &[String]) -> Self {
        let options = OptsBuilder::from_opts(Opts::from_url(server).unwrap()).prefer_socket(false);
        let mut conn = Conn::new(options).await.unwrap();
        let create = format!("CREATE DATABASE {name} CHARACTER SET utf8mb4");
        conn.query_drop(create).await.unwrap();
        conn.query_drop(format!("USE {name}")).await.unwrap();
        for statement in schema {
            let made = conn.query_drop(statement).await;
            made.unwrap_or_else(|error| panic!("{error}: {schema:#?}"));
        }
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        Self {
            url,
            name: name.to_owned(),
            conn,
        }
    }

    pub(crate) async fn remove(mut self) {
        let drop = format!("DROP DATABASE {}", self.name);
        self.conn.query_drop(drop).await.unwrap();
        self.conn.disconnect().await.unwrap();
    }

    /// What the statement does alone.
    pub(crate) async fn execute(&mut self, step: &Step) -> Told {
        if step.is_cancelled {
            return Err(WriteError::Cancelled);
        }
        let mut told;
        if step.wants_one {
            // To be undone if its caller does not take it.
            self.conn.query_drop("START TRANSACTION").await.unwrap();
            told = self.autocommit(step).await;
            if told.as_ref().is_ok_and(|outcome| outcome.rows_affected != 1) {
                let reason = NOT_ONE.to_owned();
                told = Err(WriteError::Refused { reason });
            }
            let end = if told.is_ok() { "COMMIT" } else { "ROLLBACK" };
            self.conn.query_drop(end).await.unwrap();
        } else {
            told = self.autocommit(step).await;
        }
        self.without_its_name(&mut told);
        told
    }

    /// Messages name the database, which is another one here.
    pub(crate) fn without_its_name(&self, told: &mut Told) {
        if let Err(WriteError::Statement(error)) = told {
            error.message = error.message.replace(&self.name, "it");
        }
    }

    async fn autocommit(&mut self, step: &Step) -> Told {
        let failed = |error: Error| failed(&error);
        let conn = &mut self.conn;
        let statement = conn.prep(&*step.sql).await.map_err(failed)?;
        if usize::from(statement.num_params()) != step.parameters.len() {
            return Err(StatementError::new(Kind::ParameterCount, 0, "").into());
        }
        let parameters = match step.parameters.is_empty() {
            true => Params::Empty,
            false => Params::Positional(step.parameters.iter().map(wire).collect()),
        };
        let result = conn.exec_iter(&statement, parameters).await.map_err(failed)?;
        let mut outcome = Outcome::default();
        let columns = result.columns_ref().iter().map(|column| column.name_str().into_owned());
        outcome.columns = columns.collect();
        if outcome.columns.is_empty() {
            outcome.rows_affected = result.affected_rows();
            let id = result.last_insert_id().filter(|id| *id != 0);
            outcome.last_insert_id = id.and_then(|id| i64::try_from(id).ok());
            result.drop_result().await.map_err(failed)?;
        } else {
            let rows: Vec<Row> = result.collect_and_drop().await.map_err(failed)?;
            outcome.rows = rows.into_iter().map(values).collect();
            if !step.sql.starts_with("SELECT") {
                outcome.rows_affected = outcome.rows.len() as u64;
            }
        }
        self.conn.close(statement).await.map_err(failed)?;
        Ok(outcome)
    }

    pub(crate) async fn table(&mut self, name: &str, order: &str) -> Table {
        let sql = format!("SELECT * FROM {name} ORDER BY {order}");
        let result = self.conn.exec_iter(sql, Params::Empty).await.unwrap();
        let columns = result.columns_ref().iter().map(|column| column.name_str().into_owned());
        let columns = columns.collect();
        let rows: Vec<Row> = result.collect_and_drop().await.unwrap();
        Table {
            columns,
            rows: rows.into_iter().map(values).collect(),
        }
    }
}

fn wire(value: &Value) -> Wire {
    match value {
        Value::Null => Wire::NULL,
        Value::Integer(integer) => Wire::Int(*integer),
        Value::Real(real) => Wire::Double(*real),
        Value::Text(text) => Wire::Bytes(text.clone().into_bytes()),
        other => unreachable!("no case has {other:?}"),
    }
}

fn values(row: Row) -> Vec<Value> {
    let value = |wire: Wire| match wire {
        Wire::NULL => Value::Null,
        Wire::Int(integer) => Value::Integer(integer),
        Wire::UInt(integer) => Value::Integer(integer.try_into().unwrap()),
        Wire::Double(real) => Value::Real(real),
        Wire::Bytes(bytes) => Value::Text(String::from_utf8(bytes).unwrap()),
        other => panic!("no statement returns {other:?}"),
    };
    row.unwrap().into_iter().map(value).collect()
}

fn failed(error: &Error) -> WriteError {
    let Error::Server(told) = error else {
        panic!("not the server's: {error:?}")
    };
    let kind = match told.code {
        1062 => Kind::Unique,
        1048 | 1364 | 1423 => Kind::NotNull,
        1451 | 1452 => Kind::ForeignKey,
        4025 => Kind::Check,
        1644 | 1369 => Kind::OtherConstraint,
        1264 | 1265 | 1366 | 1406 | 1292 | 1690 | 1365 => Kind::Type,
        1054 | 1064 | 1136 | 1146 | 1091 | 1060 | 1061 => Kind::Text,
        // What is no constraint's, no type's and no text's: a table that a trigger reads is written to, and the like.
        _ => Kind::Other,
    };
    let mut error = StatementError::new(kind, i32::from(told.code), told.message.clone());
    error.sqlstate = Some(told.state.clone().into());
    error.into()
}
