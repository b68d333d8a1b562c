//! What frameworks send, statement by statement: the server must understand each as PostgreSQL does.
//!
//! A file of `corpus/` is replayed in an empty database: statements that define tables are executed, and texts of several statements; all
//! that read or write rows are prepared and described. Types of parameters, names, types and type modifiers of columns, and the SQLSTATE of what is refused for its
//! meaning must be those that PostgreSQL told when the file was written. Nothing is compared of rows, which the programs do.

use std::fs;

use postgres_types::{Oid, Type};
use tokio_postgres::{Client, Error, NoTls, Statement};

use crate::{guide, program::sources, refused, server::Server};

/// What begins a statement that is executed, so that those after it find their tables.
const DEFINES: [&str; 5] = ["CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT"];
/// What begins a statement that is described.
const ROWS: [&str; 7] = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES", "SHOW"];
/// SQLSTATEs of this class are told when a statement is understood; all others when it is executed.
const OF_MEANING: &str = "42";
/// No type of PostgreSQL's own has a higher one.
const TYPES_BELOW: Oid = 10_000;

#[test]
fn statements_mean_what_they_mean_to_postgresql() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut files: Vec<_> = fs::read_dir(sources("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sql"))
        .collect();
    files.sort();
    assert!(files.len() > 20, "the corpus is not there");
    let mut differing = Vec::new();
    let mut statements = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let records: Vec<Record> = text.split("-- ;\n").map(Record::of).collect();
        statements += records.len();
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        differing.extend(runtime.block_on(replay(&name, &records)));
    }
    refused::compare("corpus", &differing, true);
    guide::compare_statements(statements);
}

/// Replays a file's statements on a server of its own, and returns what differed: which statement, how, and how it begins.
async fn replay(name: &str, records: &[Record<'_>]) -> Vec<String> {
    const SHOWN_MAX: usize = 120;
    let server = Server::start();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut differing = Vec::new();
    for (index, record) in records.iter().enumerate() {
        if let Err(how) = record.compare(&client).await {
            let words: Vec<&str> = record.text.split_whitespace().collect();
            let shown: String = words.join(" ").chars().take(SHOWN_MAX).collect();
            differing.push(format!("{name} {}: {how} | {shown}", index + 1));
        }
    }
    differing
}

/// A statement, and what PostgreSQL told of it, as `record.py` describes.
#[derive(Default)]
struct Record<'a> {
    text: &'a str,
    simple: bool,
    parameters: Vec<&'a str>,
    described: Option<&'a str>,
    columns: Vec<&'a str>,
    fails: Option<&'a str>,
}

impl<'a> Record<'a> {
    fn of(record: &'a str) -> Self {
        let mut found = Self {
            text: record,
            ..Self::default()
        };
        while let Some((line, rest)) = found.text.split_once('\n') {
            let Some((head, told)) = line.strip_prefix("-- ").and_then(|line| line.split_once(": ")) else {
                break;
            };
            match head {
                "sent" => found.simple = told == "simple",
                "parameters" => found.parameters = told.split(", ").collect(),
                "described" => found.described = Some(told),
                "columns" => found.columns.push(told),
                "fails" => found.fails = told.get(..5),
                _ => break,
            }
            found.text = rest;
        }
        found
    }

    /// Whether its verb is one of these; lines of comment may stand before it.
    fn begins_with(&self, verbs: &[&str]) -> bool {
        let mut lines = self.text.lines().map(str::trim_start);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with("--"));
        let verb = line.and_then(|line| line.split(|letter: char| !letter.is_ascii_alphabetic()).next());
        verb.is_some_and(|verb| verbs.iter().any(|wanted| wanted.eq_ignore_ascii_case(verb)))
    }

    /// Whether it is several statements in one text, which cannot be described.
    fn is_several(&self) -> bool {
        let text = self.text.trim_end().trim_end_matches(';');
        self.simple && [";\n", "; "].iter().any(|end| text.contains(end))
    }

    /// Says in one line how the server's understanding differs.
    async fn compare(&self, client: &Client) -> Result<(), String> {
        if self.begins_with(&DEFINES) || self.is_several() {
            let executed = client.batch_execute(self.text).await;
            return expect_outcome(self.fails, executed.err().as_ref());
        }
        if !self.begins_with(&ROWS) {
            return Ok(());
        }
        let types: Vec<Type> = self.parameters.iter().map(|name| type_named(name)).collect();
        let prepared = client.prepare_typed(self.text, &types).await;
        let refused = self.fails.filter(|state| state.starts_with(OF_MEANING));
        expect_outcome(refused, prepared.as_ref().err())?;
        match prepared {
            Ok(statement) => self.compare_description(&statement),
            Err(_) => Ok(()),
        }
    }

    fn compare_description(&self, statement: &Statement) -> Result<(), String> {
        let parameters: Vec<&str> = statement.params().iter().map(Type::name).collect();
        let parameters = parameters.join(", ");
        if self.described.is_some_and(|described| described != parameters) {
            let described = self.described.unwrap_or_default();
            return Err(format!("parameters: {parameters}; PostgreSQL: {described}"));
        }
        let columns = columns_of(statement);
        // A table may have changed between the times that the statement was sent.
        if self.columns.is_empty() || self.columns.contains(&columns.as_str()) {
            Ok(())
        } else {
            Err(format!("columns: {columns}; PostgreSQL: {}", self.columns.join(" or ")))
        }
    }
}

/// Compares how a statement ended with the SQLSTATE that PostgreSQL refused it with, if it did.
fn expect_outcome(refused: Option<&str>, error: Option<&Error>) -> Result<(), String> {
    let state = error.and_then(Error::code).map(tokio_postgres::error::SqlState::code);
    match (refused, error) {
        (None, None) => Ok(()),
        (Some(refused), Some(_)) if state == Some(refused) => Ok(()),
        (Some(refused), None) => Err(format!("was accepted; PostgreSQL: {refused}")),
        (_, Some(error)) => {
            let message = error
                .as_db_error()
                .map_or_else(|| error.to_string(), |told| told.message().to_owned());
            let refused = refused.unwrap_or("accepts it");
            Err(format!(
                "{}: {message}; PostgreSQL: {refused}",
                state.unwrap_or("no SQLSTATE")
            ))
        }
    }
}

/// As `record.py` writes them.
fn columns_of(statement: &Statement) -> String {
    let shown = statement.columns().iter().map(|column| {
        let name = column.name();
        let plain = name.starts_with(|letter: char| letter == '_' || letter.is_alphabetic())
            && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
        let name = if plain { name.to_owned() } else { format!("{name:?}") };
        let modifier = match column.type_modifier() {
            -1 => String::new(),
            modifier => format!("[{modifier}]"),
        };
        format!("{name} {}{modifier}", column.type_().name())
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A type by PostgreSQL's name for it; `unspecified` is how a program leaves it open.
fn type_named(name: &str) -> Type {
    if name == "unspecified" {
        return Type::UNKNOWN;
    }
    let found = (1..TYPES_BELOW)
        .filter_map(Type::from_oid)
        .find(|known| known.name() == name);
    found.unwrap_or_else(|| panic!("no type of PostgreSQL's own is called {name}"))
}
