//! What clients have made, in PostgreSQL's terms: relations, attributes, indexes, constraints, triggers, sequences, each with an OID.
//!
//! Promises: definitions read as PostgreSQL's `pg_get_…def` functions print them. Does not know where any of it was read.

use postgres_types::Type;

use super::oids::PUBLIC;
use crate::sql::identifier::quote_identifier;

/// Everything that clients have made.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// The schemas beside `public`.
    pub(super) namespaces: Vec<Namespace>,
    pub(super) tables: Vec<Table>,
    pub(super) sequences: Vec<Sequence>,
}

/// A schema, in PostgreSQL's sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) oid: u32,
    pub(super) name: String,
}

impl Namespace {
    /// `public`.
    pub(super) fn public() -> Self {
        Self {
            oid: PUBLIC,
            name: "public".to_owned(),
        }
    }
}

/// A table or a view.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) namespace: Namespace,
    pub(super) oid: u32,
    /// The OID of its row type, which every PostgreSQL relation has.
    pub(super) row_type: u32,
    pub(super) name: String,
    /// The query of a view, as `pg_get_viewdef` prints it.
    pub(super) view: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) triggers: Vec<Trigger>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) modifier: i32,
    pub(super) not_null: bool,
    /// Default or generation expression.
    pub(super) expression: Option<String>,
    /// As in `pg_attribute.attidentity`: nothing, `a` or `d`.
    pub(super) identity: &'static str,
    pub(super) generated: bool,
    pub(super) comment: Option<String>,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) oid: u32,
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) primary: bool,
    pub(super) keys: Vec<Key>,
    pub(super) predicate: Option<String>,
}

/// One column of an index.
#[derive(Debug)]
pub(super) struct Key {
    /// Number of the column in its table, 0 for an expression.
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) descending: bool,
}

#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) oid: u32,
    pub(super) name: String,
    pub(super) kind: ConstraintKind,
    pub(super) columns: Vec<usize>,
    /// The text for all but CHECK, whose text is its expression.
    pub(super) definition: String,
    pub(super) timing: Timing,
}

/// When a constraint is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    pub(super) deferrable: bool,
    pub(super) deferred: bool,
    pub(super) not_valid: bool,
}

#[derive(Debug)]
pub(super) enum ConstraintKind {
    Primary {
        index: u32,
    },
    Unique {
        index: u32,
    },
    Check {
        expression: String,
    },
    Foreign {
        table: u32,
        columns: Vec<usize>,
        index: u32,
        on_update: char,
        on_delete: char,
    },
}

#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) oid: u32,
    pub(super) name: String,
    pub(super) bits: i64,
    pub(super) definition: String,
}

impl Index {
    /// `CREATE INDEX …`, as `pg_get_indexdef` prints it; when not pretty with the schema and more parentheses.
    pub(super) fn definition(&self, table: &Table, pretty: bool) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                if key.descending {
                    format!("{} DESC", key.text)
                } else {
                    key.text.clone()
                }
            })
            .collect();
        let predicate = self
            .predicate
            .as_ref()
            .map(|predicate| {
                if pretty {
                    format!(" WHERE {predicate}")
                } else {
                    format!(" WHERE ({predicate})")
                }
            })
            .unwrap_or_default();
        let (name, schema) = (quote_identifier(&self.name), &table.namespace);
        let table = quote_identifier(&table.name);
        let schema = if pretty && *schema == Namespace::public() {
            String::new()
        } else {
            format!("{}.", quote_identifier(&schema.name))
        };
        format!(
            "CREATE {unique}INDEX {name} ON {schema}{table} USING btree ({}){predicate}",
            keys.join(", ")
        )
    }
}

impl Constraint {
    /// As `pg_get_constraintdef` prints it.
    pub(super) fn definition(&self, pretty: bool) -> String {
        match &self.kind {
            ConstraintKind::Check { expression } => {
                let valid = if self.timing.not_valid { " NOT VALID" } else { "" };
                if pretty {
                    format!("CHECK ({expression}){valid}")
                } else {
                    format!("CHECK (({expression})){valid}")
                }
            }
            _ => self.definition.clone(),
        }
    }
}

pub(super) fn column_list(table: &Table, numbers: &[usize]) -> String {
    let names: Vec<String> = numbers
        .iter()
        .map(|number| quote_identifier(&table.columns[*number - 1].name))
        .collect();
    names.join(", ")
}

pub(super) fn plain_key(table: &Table, number: usize) -> Key {
    Key {
        number,
        text: quote_identifier(&table.columns[number - 1].name),
        descending: false,
    }
}

/// A sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) namespace: Namespace,
    pub(super) oid: u32,
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) start: i64,
    pub(super) increment: i64,
    pub(super) minimum: i64,
    pub(super) maximum: i64,
    pub(super) cycle: bool,
    pub(super) owner: Option<Owner>,
}

/// The column that a sequence goes with.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) table: u32,
    /// The number of the column, and its name.
    pub(super) column: usize,
    pub(super) column_name: String,
    pub(super) identity: bool,
}

pub(super) fn action(word: &str) -> (char, &'static str) {
    match word {
        "CASCADE" => ('c', "CASCADE"),
        "SET NULL" => ('n', "SET NULL"),
        "SET DEFAULT" => ('d', "SET DEFAULT"),
        "RESTRICT" => ('r', "RESTRICT"),
        _ => ('a', ""),
    }
}
