//! Facts: what the server says of a table, by which rows of it may be inserted many at a time.
//!
//! Promises: a table that this user may not see whole (its triggers, above all) is said to be unfit. Facts may be outdated as
//! soon as they are read; who acts on them reads them again inside the transaction that has written to the table, where its
//! definition cannot change until the commit, and compares.

use super::connection::Connection;
use super::error::Failure;
use forebay_write::{Parameters, Value};

/// What is known of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Facts {
    /// Rows of one INSERT are treated as each would be alone.
    Fit {
        /// The column that the server numbers, if there is one.
        numbered: Option<String>,
    },
    /// Not so, or it cannot be seen.
    Unfit,
}

/// Only these columns are looked up for one table; the server opens no other.
const QUERY: &str = "
    SELECT
        t.ENGINE = 'InnoDB' AND t.TABLE_TYPE = 'BASE TABLE' AND t.CREATE_OPTIONS NOT LIKE '%partitioned%',
        (SELECT COUNT(*) FROM information_schema.TRIGGERS
            WHERE EVENT_OBJECT_SCHEMA = COALESCE(?, DATABASE()) AND EVENT_OBJECT_TABLE = ?),
        (SELECT MAX(COLUMN_NAME) FROM information_schema.COLUMNS
            WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND EXTRA LIKE '%auto_increment%'),
        EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES
                WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = u.name)
            OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
                WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = u.name AND t.TABLE_SCHEMA LIKE TABLE_SCHEMA)
            OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES
                WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = u.name AND TABLE_SCHEMA = t.TABLE_SCHEMA
                    AND TABLE_NAME = t.TABLE_NAME)
    FROM information_schema.TABLES t, (SELECT CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''',
        SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') AS name) u
    WHERE t.TABLE_SCHEMA = COALESCE(?, DATABASE()) AND t.TABLE_NAME = ?";

impl Facts {
    pub(super) async fn read(connection: &mut Connection, schema: Option<&str>, table: &str) -> Result<Self, Failure> {
        let schema = || schema.map_or(Value::Null, |schema| Value::Text(schema.to_owned()));
        let table = || Value::Text(table.to_owned());
        let parameters = Parameters::from([schema(), table(), schema(), table(), schema(), table()]);
        let answer = connection.execute(QUERY, &parameters).await?;
        let [row] = &*answer.rows else {
            return Ok(Self::Unfit);
        };
        Ok(match &**row {
            [Value::Integer(1), Value::Integer(0), numbered, Value::Integer(1)] => Self::Fit {
                numbered: numbered.as_text().map(str::to_owned),
            },
            _ => Self::Unfit,
        })
    }
}

/// The columns of each unique index; an empty name for a part of a column, or of what is no column.
pub(super) async fn unique_indexes(
    connection: &mut Connection,
    schema: Option<&str>,
    table: &str,
) -> Result<Vec<Vec<String>>, Failure> {
    let query = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART IS NULL FROM information_schema.STATISTICS
        WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND NON_UNIQUE = 0
        ORDER BY INDEX_NAME, SEQ_IN_INDEX";
    let schema = schema.map_or(Value::Null, |schema| Value::Text(schema.to_owned()));
    let parameters = Parameters::from([schema, Value::Text(table.to_owned())]);
    let answer = connection.execute(query, &parameters).await?;
    let indexes = answer.rows.chunk_by(|one, other| one[0] == other[0]);
    let column = |row: &Vec<Value>| match (&row[1], &row[2]) {
        (Value::Text(name), Value::Integer(1)) => name.clone(),
        _ => String::new(),
    };
    Ok(indexes.map(|index| index.iter().map(column).collect()).collect())
}
