//! A database by itself: statements are compiled, carried out as the server does, and looked at.

use std::sync::Arc;

use forebay_sqlite::Sqlite;
use forebay_sqlite::connection::{self, Session};
use forebay_write::{CancelToken, Parameters, Sql, WriteError};

use crate::sql::{self, Step};

/// A database of its own, with one transaction after another.
pub(super) struct World {
    _folder: tempfile::TempDir,
    sqlite: Sqlite,
}

/// SQLSTATE and message of what was refused.
type Refusal = (String, String);

impl World {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sequences = Arc::new(sql::Sequences::default());
        let builder = connection::prepare(Sqlite::builder(folder.path().join("test.db")), move |connection| {
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            sql::register(connection, &sequences)
        });
        let sqlite = builder.open().unwrap();
        Self {
            _folder: folder,
            sqlite,
        }
    }

    /// Runs a script in one transaction; its last rows, as texts.
    pub(super) async fn run(&self, script: &str) -> Result<Vec<String>, Refusal> {
        let mut transaction = self.sqlite.begin().await.unwrap();
        let mut rows = Vec::new();
        for statement in sql::parse_script(script).unwrap() {
            rows = step_by_step(&mut transaction, statement, script).await?;
        }
        transaction.commit().await.unwrap();
        Ok(rows)
    }

    /// Runs a script in a transaction that is rolled back.
    pub(super) async fn run_in_vain(&self, script: &str) {
        let mut transaction = self.sqlite.begin().await.unwrap();
        for statement in sql::parse_script(script).unwrap() {
            step_by_step(&mut transaction, statement, script).await.unwrap();
        }
        transaction.rollback().await.unwrap();
    }

    /// SQLite's text of a statement that is one step.
    pub(super) async fn text(&self, script: &str) -> String {
        let mut transaction = self.sqlite.begin().await.unwrap();
        let statement = sql::parse_script(script).unwrap().remove(0);
        let plan = compiled(&mut transaction, statement, script).await.unwrap();
        transaction.rollback().await.unwrap();
        plan.first_sql().to_string()
    }

    pub(super) async fn state(&self, script: &str) -> String {
        self.run(script).await.expect_err(script).0
    }

    /// What a connection of its own says of the file.
    pub(super) async fn check(&self) {
        let reader = connection::reader(&self.sqlite).await.unwrap();
        let token = CancelToken::new();
        let found: Vec<String> = reader
            .run(&token, |session: &mut Session| {
                let connection = session.connection();
                let mut found: Vec<String> = connection
                    .prepare("PRAGMA integrity_check")
                    .unwrap()
                    .query_map([], |row| row.get(0))
                    .unwrap()
                    .map(Result::unwrap)
                    .filter(|line: &String| line != "ok")
                    .collect();
                let mut keys = connection
                    .prepare("SELECT \"table\" || rowid FROM pragma_foreign_key_check")
                    .unwrap();
                found.extend(
                    keys.query_map([], |row| row.get::<_, String>(0))
                        .unwrap()
                        .map(Result::unwrap),
                );
                let mut left = connection
                    .prepare("SELECT name FROM sqlite_schema WHERE name IN ('forebay_altered', 'forebay_replaced')")
                    .unwrap();
                found.extend(
                    left.query_map([], |row| row.get::<_, String>(0))
                        .unwrap()
                        .map(Result::unwrap),
                );
                found
            })
            .await
            .unwrap();
        assert_eq!(found, Vec::<String>::new());
    }
}

/// A statement as it is to be carried out.
async fn compiled(
    transaction: &mut forebay_sqlite::Transaction,
    statement: sql::Statement,
    script: &str,
) -> Result<sql::Plan, Refusal> {
    let text = script.to_owned();
    connection::run(transaction, &CancelToken::new(), move |session| {
        session.refresh_schema().unwrap();
        let environment = sql::Environment {
            user: "tester",
            database: "test",
            pid: 1,
            version: "15",
            settings: &|_| None,
        };
        let values = forebay_pg_values::Environment::new(jiff::tz::TimeZone::UTC, 0);
        sql::compile(session.connection(), &statement, &text, &environment, &values, &[])
            .map_err(|error| (error.sqlstate().to_owned(), error.to_string()))
    })
    .await
    .unwrap()
}

async fn step_by_step(
    transaction: &mut forebay_sqlite::Transaction,
    statement: sql::Statement,
    script: &str,
) -> Result<Vec<String>, Refusal> {
    let token = CancelToken::new();
    let plan = compiled(transaction, statement, script).await?;
    let told = sql::SessionContext::text(0, 1, 0, "[]", "UTC");
    let refused = |error: WriteError| match error {
        WriteError::Statement(error) => match sql::marked_error(&error.message) {
            Some(marked) => (marked.sqlstate, marked.message),
            None => (error.code.to_string(), error.message),
        },
        other => (String::new(), other.to_string()),
    };
    let mut rows = Vec::new();
    for step in plan.steps {
        match step {
            Step::Edit(edit) => connection::run(transaction, &token, move |session| session.edit_schema(&edit))
                .await
                .unwrap()
                .map_err(refused)?,
            Step::DeferForeignKeys => connection::run(transaction, &token, |session| session.defer_foreign_keys(true))
                .await
                .unwrap()
                .map_err(refused)?,
            Step::Run { sql, environment } => {
                let values = if environment {
                    vec![forebay_write::Value::Text(told.clone())]
                } else {
                    Vec::new()
                };
                let outcome = transaction
                    .execute_with(Sql::from(sql), Parameters::from(values), token.clone())
                    .await
                    .map_err(refused)?;
                rows = outcome
                    .rows
                    .iter()
                    .map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|"))
                    .collect();
            }
        }
    }
    Ok(rows)
}

fn shown(value: &forebay_write::Value) -> String {
    use forebay_write::Value;
    match value {
        Value::Null => String::new(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
