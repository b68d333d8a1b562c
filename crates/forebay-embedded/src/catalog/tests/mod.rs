//! The catalog as clients see it: queries of real clients over a real SQLite file, compared with a real PostgreSQL's answers.

mod clients;
mod language;
mod recorded;
mod refresh;

use std::collections::HashMap;

use postgres_types::Type;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{Catalog, Identity, Translation};

/// The schema of the comparison, as SQLite has it.
const SCHEMA: &str = "
CREATE TABLE author (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name text NOT NULL,
    email text UNIQUE,
    born date,
    score double precision DEFAULT 1.5,
    active boolean DEFAULT true NOT NULL,
    CONSTRAINT score_positive CHECK (score > 0)
);
CREATE TABLE book (
    isbn text PRIMARY KEY,
    author_id bigint NOT NULL REFERENCES author (id) ON DELETE CASCADE,
    title text DEFAULT 'untitled',
    price numeric,
    published timestamp,
    CONSTRAINT title_per_author UNIQUE (author_id, title)
);
CREATE INDEX book_price ON book (price DESC) WHERE price IS NOT NULL;
CREATE INDEX book_lower ON book (lower(title));
CREATE VIEW cheap_book AS SELECT isbn, title FROM book WHERE price < 10;
CREATE TRIGGER book_added AFTER INSERT ON book BEGIN SELECT 1; END;
";

/// A SQLite file and the catalog over it.
struct World {
    _directory: tempfile::TempDir,
    source: Connection,
    catalog: Catalog,
}

fn identity() -> Identity {
    Identity {
        database: "forebay".to_owned(),
        user: "forebay".to_owned(),
        version: "PostgreSQL 15.0 (Forebay)".to_owned(),
    }
}

impl World {
    fn new(schema: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Connection::open(directory.path().join("forebay.db")).unwrap();
        source.execute_batch(schema).unwrap();
        let mut catalog = Catalog::new().unwrap();
        catalog.refresh(&source, &identity()).unwrap();
        Self {
            _directory: directory,
            source,
            catalog,
        }
    }

    fn standard() -> Self {
        Self::new(SCHEMA)
    }

    fn refresh(&mut self) {
        self.catalog.refresh(&self.source, &identity()).unwrap();
    }

    /// Rows as `psql -A -t` prints them.
    fn rows(&self, sql: &str) -> Vec<String> {
        self.rows_with(sql, &[])
    }

    fn rows_with(&self, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Vec<String> {
        let translation = Catalog::translate(sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
        self.run(&translation, parameters)
            .unwrap_or_else(|error| panic!("{error}\n{sql}\n{}", translation.sql))
    }

    fn run(&self, translation: &Translation, parameters: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.catalog.connection().prepare(&translation.sql)?;
        assert!(statement.readonly(), "a catalog query reads only");
        let names: Vec<&str> = statement.column_names().collect();
        assert_eq!(
            names,
            translation
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect::<Vec<_>>()
        );
        for (index, value) in parameters.iter().enumerate() {
            let position = statement.parameter_index(&format!("${}", index + 1))?;
            statement.raw_bind_parameter(position.expect("the parameter is in the text"), value)?;
        }
        let mut rows = statement.raw_query();
        let mut printed = Vec::new();
        while let Some(row) = rows.next()? {
            let fields: Vec<String> = translation
                .columns
                .iter()
                .enumerate()
                .map(|(index, column)| match row.get_ref_unwrap(index) {
                    ValueRef::Integer(oid) => {
                        let name = self.catalog.name_of(&column.kind, oid).unwrap();
                        name.unwrap_or_else(|| print(ValueRef::Integer(oid), &column.kind))
                    }
                    value => print(value, &column.kind),
                })
                .collect();
            printed.push(fields.join("|"));
        }
        Ok(printed)
    }

    /// The names of user relations by OID, to compare answers that hold OIDs.
    fn relations(&self) -> HashMap<String, String> {
        let rows = self.rows("SELECT oid, relname FROM pg_class WHERE oid >= 16384");
        rows.iter()
            .map(|row| {
                row.split_once('|')
                    .map(|(oid, name)| (oid.to_owned(), name.to_owned()))
                    .unwrap()
            })
            .collect()
    }
}

fn print(value: ValueRef<'_>, kind: &Type) -> String {
    match value {
        ValueRef::Null => "<null>".to_owned(),
        ValueRef::Integer(number) if *kind == Type::BOOL => if number == 0 { "f" } else { "t" }.to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
        ValueRef::Blob(_) => panic!("the catalog holds no blobs"),
    }
}
