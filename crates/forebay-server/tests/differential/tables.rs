//! The tables that both servers are given, with the same rows of values at their types' edges.
//!
//! Promises: what a server under test refuses to store is told as a result of its own and left out of both servers' tables, so
//! that one missing type does not hide all others.

use crate::{
    connection::{Answer, Send},
    expressions::Visible,
    facts::{element_of, oid::*},
    literals::quoted,
    servers::Pair,
    shrink::Judged,
    statements::Case,
    tree::{Node, Oid, Rendered},
    values, verdict,
};

/// A column: its name, its declared type, and what values it takes.
const COLUMNS: &[(&str, &str, Oid)] = &[
    ("b", "bool", BOOL),
    ("i2", "smallint", INT2),
    ("i4", "integer", INT4),
    ("i8", "bigint", INT8),
    ("f4", "real", FLOAT4),
    ("f8", "double precision", FLOAT8),
    ("n", "numeric", NUMERIC),
    ("n2", "numeric(12,2)", NUMERIC),
    ("t", "text", TEXT),
    ("v", "varchar(10)", VARCHAR),
    ("c", "char(5)", BPCHAR),
    ("x", "bytea", BYTEA),
    ("d", "date", DATE),
    ("ti", "time", TIME),
    ("ts", "timestamp", TIMESTAMP),
    ("ts0", "timestamp(0)", TIMESTAMP),
    ("tz", "timestamptz", TIMESTAMPTZ),
    ("iv", "interval", INTERVAL),
    ("u", "uuid", UUID),
    ("j", "json", JSON),
    ("jb", "jsonb", JSONB),
    ("ai", "integer[]", INT4_ARRAY),
    ("ax", "text[]", TEXT_ARRAY),
];

const ROWS: usize = 12;

/// What both servers have.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The columns of `d_every` and `d_scratch` but `id`: those whose type the server under test knows.
    pub(crate) columns: Vec<Visible>,
    /// What storing each value came to.
    pub(crate) storing: Vec<Judged>,
}

fn both(pair: &mut Pair, sql: &str) -> (Answer, Answer) {
    let send = Send {
        rendered: Rendered {
            sql: sql.to_owned(),
            parameters: Vec::new(),
        },
        is_simple: true,
        binary: false,
    };
    let (postgres, forebay) = pair.run(&[vec![send]]);
    (postgres[0][0].clone(), forebay[0][0].clone())
}

/// Runs what must work everywhere.
fn must(pair: &mut Pair, sql: &str) {
    let (postgres, forebay) = both(pair, sql);
    for (server, answer) in [("PostgreSQL", postgres), ("Forebay", forebay)] {
        assert!(answer.error.is_none(), "{server}: {sql}: {:?}", answer.error);
    }
}

impl Tables {
    /// Makes the tables anew on both servers.
    pub(crate) fn make(pair: &mut Pair) -> Self {
        let mut tables = Self::default();
        let mut cells: Vec<Vec<String>> = vec![Vec::new(); ROWS];
        let mut definitions = Vec::new();
        for (name, definition, oid) in COLUMNS {
            must(pair, "DROP TABLE IF EXISTS d_probe");
            let create = format!("CREATE TABLE d_probe (id integer PRIMARY KEY, x {definition})");
            let (postgres, forebay) = both(pair, &create);
            let known = forebay.error.is_none();
            tables.stored(&format!("column {definition}"), &create, postgres, forebay);
            if !known {
                let _ = both(pair, "DROP TABLE IF EXISTS d_probe");
                continue;
            }
            for (row, cells) in cells.iter_mut().enumerate() {
                let literal = cell(*oid, definitions.len(), row);
                let insert = format!("INSERT INTO d_probe VALUES ({row}, {literal}) RETURNING x");
                let (postgres, forebay) = both(pair, &insert);
                let fits = postgres.error.is_none() && forebay.error.is_none();
                tables.stored(&format!("store {definition}"), &insert, postgres, forebay);
                cells.push(if fits { literal } else { "NULL".into() });
            }
            definitions.push(format!("{name} {definition}"));
            tables.columns.push(Visible {
                sql: (*name).to_owned(),
                oid: *oid,
            });
        }
        for table in ["d_every", "d_scratch", "d_left", "d_right", "d_probe"] {
            must(pair, &format!("DROP TABLE IF EXISTS {table}"));
        }
        let definitions = definitions.join(", ");
        must(
            pair,
            &format!("CREATE TABLE d_every (id integer PRIMARY KEY, {definitions})"),
        );
        must(
            pair,
            &format!("CREATE TABLE d_scratch (id integer PRIMARY KEY, s text DEFAULT 'none', {definitions})"),
        );
        for (row, cells) in cells.iter().enumerate() {
            must(
                pair,
                &format!("INSERT INTO d_every VALUES ({}, {})", row + 1, cells.join(", ")),
            );
        }
        tables.fill_small(pair);
        tables
    }

    fn stored(&mut self, symbol: &str, sql: &str, postgres: Answer, forebay: Answer) {
        let verdict = verdict::of(&postgres, &forebay, true);
        self.storing.push(Judged {
            case: Case::of_statement("the tables".into(), Node::clause(symbol, vec![sql.into()]), true),
            postgres: vec![postgres],
            forebay: vec![forebay],
            verdict,
        });
    }

    fn fill_small(&self, pair: &mut Pair) {
        must(
            pair,
            "CREATE TABLE d_left (id integer PRIMARY KEY, k integer, name text, amount numeric(10,2), parent integer, at date)",
        );
        must(
            pair,
            "CREATE TABLE d_right (id integer PRIMARY KEY, k integer, y double precision, name varchar(20))",
        );
        let left = "INSERT INTO d_left VALUES (1, 10, 'ann', 12.50, NULL, '2024-01-31'), (2, 20, 'bob', 0.00, 1, '2024-02-29'), \
            (3, 10, 'Ann', -3.10, 1, NULL), (4, NULL, 'd\u{e9}j\u{e0}', 1000.01, 2, '2023-12-31'), (5, 30, '', NULL, 2, '2024-02-29'), \
            (6, 20, NULL, 99.99, 4, '2024-03-10'), (7, 40, 'zoe', 5.00, 9, '1999-12-31')";
        let right = "INSERT INTO d_right VALUES (1, 10, 1.5, 'ann'), (2, 20, -0.25, 'bob '), (3, 20, 1e10, 'BOB'), (4, NULL, NULL, 'zoe'), \
            (5, 50, 0, NULL), (6, 10, 2.5, '')";
        must(pair, left);
        must(pair, right);
        // A few rows to change.
        must(pair, "INSERT INTO d_scratch (id) VALUES (1), (2), (3)");
        for Visible { sql, .. } in &self.columns {
            must(
                pair,
                &format!("UPDATE d_scratch SET {sql} = (SELECT {sql} FROM d_every WHERE d_every.id = d_scratch.id)"),
            );
        }
    }

    /// What storing the values came to, and statements that show everything stored.
    pub(crate) fn checks(&self) -> Vec<Case> {
        let mut statements: Vec<Node> = ["d_every", "d_left", "d_right", "d_scratch"]
            .iter()
            .map(|table| Node::clause("SELECT *", vec![format!("SELECT * FROM {table} ORDER BY id").into()]))
            .collect();
        for column in &self.columns {
            let symbol = format!("read {}", column.sql);
            statements.push(Node::clause(
                &symbol,
                vec![format!("SELECT id, {} FROM d_every ORDER BY 1", column.sql).into()],
            ));
        }
        statements
            .into_iter()
            .map(|statement| Case::of_statement("the tables".into(), statement, true))
            .collect()
    }
}

/// The literal in that cell: every row and column begins elsewhere in its type's values; the last row is all NULL.
fn cell(oid: Oid, column: usize, row: usize) -> String {
    if row + 1 == ROWS {
        return "NULL".into();
    }
    if let Some(element) = element_of(oid) {
        let values = values::of(element);
        let item = |index: usize| {
            format!(
                "\"{}\"",
                values[(row * 2 + index) % values.len()]
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
            )
        };
        return match row % 4 {
            0 => "'{}'".into(),
            1 => quoted(&format!("{{{}}}", item(0))),
            2 => quoted(&format!("{{{},NULL,{}}}", item(0), item(1))),
            _ => quoted(&format!("{{{},{},{}}}", item(0), item(1), item(2))),
        };
    }
    let values = values::of(oid);
    let stride = if column.is_multiple_of(2) {
        1
    } else {
        values.len() / ROWS + 1
    };
    quoted(values[(row * stride) % values.len()])
}
