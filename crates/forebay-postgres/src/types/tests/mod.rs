//! Values against the real server: what it makes of them, and what comes back.

mod cases;
mod outcomes;
mod readings;
mod round_trip;
mod speed;

use std::error::Error;

use postgres_types::{FromSql, ToSql, Type};

use super::{super::test_server::Session, *};
use forebay_write::{StatementError, Value};

/// A value as it came.
struct Raw(Option<Vec<u8>>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw.to_vec())))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The value of a column of a plain client's row.
fn value(row: &tokio_postgres::Row, column: usize) -> Result<Value, StatementError> {
    let raw: Raw = row.get(column);
    let column = row.columns()[column].type_();
    super::row(std::iter::once((column, raw.0.as_deref()))).map(|mut values| values.remove(0))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The server's text of the values, which travel as one column of that type, and the values as they come back.
async fn through_a_column(session: &Session, element: &Type, values: &[Value]) -> Vec<(Option<String>, Value)> {
    let array = array_of(element).unwrap();
    let query = format!(
        "SELECT v::text, v FROM unnest($1::{}[]) WITH ORDINALITY AS u (v, at) ORDER BY at",
        element.name()
    );
    let statement = session.prepare(&query).await.unwrap();
    assert_eq!(statement.params(), [array]);
    let column = Column::new(values.iter());
    let rows = session.query(&statement, &[&column]).await.unwrap();
    rows.iter().map(|row| (row.get(0), value(row, 1).unwrap())).collect()
}

/// The server's text of one value, sent as a parameter of a type, and the value as it comes back.
async fn through_a_parameter(
    session: &Session,
    type_name: &str,
    sent: &Value,
) -> Result<(Option<String>, Value), tokio_postgres::Error> {
    let query = format!("SELECT $1::{type_name}::text, $1::{type_name}");
    let statement = session.prepare(&query).await?;
    assert!(returnable(statement.columns()[1].type_()), "{type_name}");
    let row = session
        .query_one(&statement, &[&Parameter(sent) as &(dyn ToSql + Sync)])
        .await?;
    Ok((row.get(0), value(&row, 1).unwrap()))
}
