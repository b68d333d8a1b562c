//! A schema on PostgreSQL, and statements by themselves on it, by the plain driver: what the Writer is held to.
//!
//! Promises: nothing of Forebay's is used but the names for what is told. Parameters are sent as text, which the server reads.

use bytes::BytesMut;
use forebay::write::{Outcome, StatementError, StatementErrorKind as Kind, Value, WriteError};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use crate::case::{NOT_ONE, Step};
use crate::judge::{Table, Told};

pub(crate) struct Twin {
    pub(crate) url: String,
    name: String,
    client: Client,
}

impl Twin {
    pub(crate) async fn make(server: &str, name: &str, schema: &[String]) -> Self {
        let url = format!("{server}?options=-c%20search_path%3D{name}");
        let (client, driver) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(driver);
        let statements = format!(
            "SET client_min_messages = error; CREATE SCHEMA {name}; {}",
            schema.join(";")
        );
        let made = client.batch_execute(&statements).await;
        made.unwrap_or_else(|error| panic!("{error:?}: {schema:#?}"));
        Self {
            url,
            name: name.to_owned(),
            client,
        }
    }

    pub(crate) async fn remove(self) {
        let drop = format!("DROP SCHEMA {} CASCADE", self.name);
        self.client.batch_execute(&drop).await.unwrap();
    }

    /// What the statement does alone.
    pub(crate) async fn execute(&mut self, step: &Step) -> Told {
        if step.is_cancelled {
            return Err(WriteError::Cancelled);
        }
        if !step.wants_one {
            return self.autocommit(step).await;
        }
        // To be undone if its caller does not take it.
        self.client.batch_execute("BEGIN").await.unwrap();
        let mut told = self.autocommit(step).await;
        if told.as_ref().is_ok_and(|outcome| outcome.rows_affected != 1) {
            let reason = NOT_ONE.to_owned();
            told = Err(WriteError::Refused { reason });
        }
        let end = if told.is_ok() { "COMMIT" } else { "ROLLBACK" };
        match self.client.batch_execute(end).await {
            Ok(()) => told,
            Err(error) => Err(failed(&error)),
        }
    }

    async fn autocommit(&mut self, step: &Step) -> Told {
        let statement = self.client.prepare(&step.sql).await.map_err(|error| failed(&error))?;
        if statement.params().len() != step.parameters.len() {
            return Err(StatementError::new(Kind::ParameterCount, 0, "").into());
        }
        let parameters: Vec<AsText<'_>> = step.parameters.iter().map(AsText).collect();
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        let mut outcome = Outcome::default();
        if statement.columns().is_empty() {
            let count = self.client.execute(&statement, &parameters).await;
            outcome.rows_affected = count.map_err(|error| failed(&error))?;
        } else {
            let rows = self.client.query(&statement, &parameters).await;
            let rows = rows.map_err(|error| failed(&error))?;
            outcome.columns = statement
                .columns()
                .iter()
                .map(|column| column.name().to_owned())
                .collect();
            outcome.rows = rows.iter().map(values).collect();
            if !step.sql.starts_with("SELECT") {
                outcome.rows_affected = outcome.rows.len() as u64;
            }
        }
        Ok(outcome)
    }

    /// All of a table. Numbers are told as such in columns of them, all else as the server writes it.
    pub(crate) async fn table(&self, name: &str, order: &str) -> Table {
        let sql = format!("SELECT * FROM {name} ORDER BY {order}");
        let mut table = Table::default();
        for message in self.client.simple_query(&sql).await.unwrap() {
            let SimpleQueryMessage::Row(row) = message else {
                continue;
            };
            let columns = row.columns().iter().map(|column| column.name().to_owned());
            table.columns = columns.collect();
            let values = table
                .columns
                .iter()
                .zip(0..)
                .map(|(column, place)| match row.get(place) {
                    None => Value::Null,
                    Some(number) if column.ends_with("_id") => Value::Integer(number.parse().unwrap()),
                    Some(text) => Value::Text(text.to_owned()),
                });
            table.rows.push(values.collect());
        }
        table
    }
}

/// A value as the text that stands for it.
#[derive(Debug)]
struct AsText<'a>(&'a Value);

impl ToSql for AsText<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Integer(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
            Value::Real(real) => out.extend_from_slice(real.to_string().as_bytes()),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            other => unreachable!("no case has {other:?}"),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn values(row: &Row) -> Vec<Value> {
    let value = |place: usize| match *row.columns()[place].type_() {
        Type::INT2 => row.get::<_, Option<i16>>(place).map(Value::from),
        Type::INT4 => row.get::<_, Option<i32>>(place).map(Value::from),
        Type::INT8 => row.get::<_, Option<i64>>(place).map(Value::from),
        Type::FLOAT8 => row.get::<_, Option<f64>>(place).map(Value::from),
        Type::BOOL => row.get::<_, Option<bool>>(place).map(Value::from),
        Type::TEXT | Type::VARCHAR => row.get::<_, Option<String>>(place).map(Value::from),
        ref other => panic!("no statement returns {other}"),
    };
    (0..row.len()).map(|place| value(place).unwrap_or_default()).collect()
}

fn failed(error: &tokio_postgres::Error) -> WriteError {
    let told = error
        .as_db_error()
        .unwrap_or_else(|| panic!("not the server's: {error:?}"));
    let code = told.code().code();
    let kind = match code {
        "23505" => Kind::Unique,
        "23502" => Kind::NotNull,
        "23503" => Kind::ForeignKey,
        "23514" => Kind::Check,
        "P0001" | "44000" | "23P01" => Kind::OtherConstraint,
        // A row is updated a second time; a constraint that cannot arbitrate.
        "21000" | "55000" => Kind::Other,
        _ if code.starts_with("22") => Kind::Type,
        _ if code.starts_with("42") || code.starts_with("0A") => Kind::Text,
        _ => panic!("what kind is {error:?}?"),
    };
    let mut error = StatementError::new(kind, 0, told.message());
    error.sqlstate = Some(code.into());
    error.constraint = told.constraint().map(Into::into);
    error.into()
}
