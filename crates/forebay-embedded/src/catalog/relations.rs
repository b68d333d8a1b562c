//! The relations of PostgreSQL 15's `pg_catalog` and `information_schema`: names, OIDs, kinds, columns and their types.
//!
//! `data/relations.txt` was listed by a PostgreSQL 15 server about itself (`pg_class` joined with `pg_attribute` and `pg_type`; domains of
//! the information schema as their base types, with the modifier if there is one). Holds no rows: [`super::fill`] decides which relations
//! have any.

use std::collections::HashMap;
use std::sync::LazyLock;

use postgres_types::Type;

use super::types::{Family, catalog_type, family};

/// A relation of the catalog itself.
pub(super) struct Relation {
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    pub(super) oid: u32,
    /// `r` or `v`.
    pub(super) kind: &'static str,
    pub(super) columns: Vec<RelationColumn>,
}

pub(super) struct RelationColumn {
    pub(super) name: &'static str,
    pub(super) kind: Type,
    /// The type's modifier, -1 for none.
    pub(super) modifier: i32,
    pub(super) not_null: bool,
}

pub(super) static RELATIONS: LazyLock<Vec<Relation>> =
    LazyLock::new(|| include_str!("data/relations.txt").lines().map(relation).collect());

static BY_NAME: LazyLock<HashMap<(&'static str, &'static str), usize>> = LazyLock::new(|| {
    RELATIONS
        .iter()
        .enumerate()
        .map(|(index, relation)| ((relation.schema, relation.name), index))
        .collect()
});

fn relation(line: &'static str) -> Relation {
    let mut fields = line.split(' ');
    let mut field = || fields.next().expect("a line of relations.txt has five fields");
    let (schema, name, oid, kind, columns) = (field(), field(), field(), field(), field());
    let columns = columns
        .split(',')
        .map(|column| {
            let (column, kind) = column.split_once(':').expect("a column of relations.txt is name:type");
            let not_null = kind.ends_with('!');
            let written = kind.trim_end_matches('!');
            let (kind, modifier) = match written.split_once('(') {
                None => (catalog_type(written), -1),
                Some((kind, length)) => {
                    let kind = catalog_type(kind);
                    let length: i32 = length.trim_end_matches(')').parse().expect("a modifier is a number");
                    // The length of a text counts the four bytes of its header.
                    let header = if kind == Type::VARCHAR { 4 } else { 0 };
                    (kind, length + header)
                }
            };
            RelationColumn {
                name: column,
                kind,
                modifier,
                not_null,
            }
        })
        .collect();
    Relation {
        schema,
        name,
        oid: oid.parse().expect("the OID of a relation is a number"),
        kind,
        columns,
    }
}

/// Finds a relation; without a schema only `pg_catalog` is searched, as on PostgreSQL's default search path.
pub(super) fn find(schema: Option<&str>, name: &str) -> Option<&'static Relation> {
    let schema = schema.unwrap_or("pg_catalog");
    // The map's keys are 'static; the lookup must not ask the caller's names to be.
    let (key, _) = BY_NAME.get_key_value(&(schema, name) as &(&str, &str))?;
    BY_NAME.get(key).map(|index| &RELATIONS[*index])
}

/// `CREATE TABLE` for SQLite. Only the affinity is declared: types are known to the translator, and a name like `name` as
/// declared type would turn text that looks like a number into one.
pub(super) fn create_table(relation: &Relation) -> String {
    let columns: Vec<String> = relation
        .columns
        .iter()
        .map(|column| {
            let (affinity, empty) = match family(&column.kind) {
                Family::Integer | Family::Boolean => ("INTEGER", "0"),
                Family::Float => ("REAL", "0"),
                Family::Array if !matches!(column.kind, Type::INT2_VECTOR | Type::OID_VECTOR) => ("TEXT", "'{}'"),
                _ => ("TEXT", "''"),
            };
            // What a row does not mention is nothing of its kind, not NULL, where PostgreSQL has no NULL.
            let default = if column.not_null {
                format!(" NOT NULL DEFAULT {empty}")
            } else {
                String::new()
            };
            format!("\"{}\" {affinity}{default}", column.name)
        })
        .collect();
    format!(
        "CREATE TABLE {}.\"{}\" ({})",
        relation.schema,
        relation.name,
        columns.join(", ")
    )
}
