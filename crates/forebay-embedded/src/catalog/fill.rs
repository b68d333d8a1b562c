//! Puts rows into the relations of the catalog: once what every database has, at each refresh what the schema says.
//!
//! Base relations are written here; what PostgreSQL derives from them by views is derived by `data/derived.sql`. Relations that
//! nothing here mentions are empty, as on a server where nobody made such an object.

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params_from_iter};

use super::oids::{DATABASE, INFORMATION_SCHEMA, NAMESPACES, OWNER, PG_CATALOG};
use super::relations::{RELATIONS, create_table};
use super::schema::{Constraint, ConstraintKind, Index, Schema, Sequence, Table};
use super::types::{self, Family};

const DERIVED: &str = include_str!("data/derived.sql");
const HEAP: i64 = 2;
const BTREE: i64 = 403;
/// `pg_class` itself, where dependencies name their kind.
const CLASS: i64 = 1259;

fn insert<const N: usize>(connection: &Connection, table: &str, row: [(&str, Value); N]) -> Result<()> {
    let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
    let marks = vec!["?"; N].join(",");
    let sql = format!("INSERT INTO pg_catalog.{table} ({}) VALUES ({marks})", names.join(","));
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(row.into_iter().map(|(_, value)| value)))?;
    Ok(())
}

fn number(value: impl Into<i64>) -> Value {
    Value::Integer(value.into())
}

fn count(value: usize) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn flag(value: bool) -> Value {
    Value::Integer(i64::from(value))
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn array(numbers: &[usize]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", words.join(","))
}

/// Creates every relation and fills in what does not depend on the database.
pub(super) fn create(connection: &Connection) -> Result<()> {
    for relation in RELATIONS.iter() {
        connection.execute_batch(&create_table(relation))?;
    }
    connection.execute_batch(
        "CREATE INDEX pg_catalog.forebay_class_oid ON pg_class (oid);
         CREATE INDEX pg_catalog.forebay_attribute_relation ON pg_attribute (attrelid, attnum);
         CREATE INDEX pg_catalog.forebay_type_oid ON pg_type (oid);",
    )?;
    for (oid, name) in NAMESPACES {
        insert_namespace(connection, oid, name)?;
    }
    fill_types(connection)?;
    for procedure in types::PROCEDURES.iter() {
        let arguments = procedure.arguments.split_ascii_whitespace().count();
        insert(
            connection,
            "pg_proc",
            [
                ("oid", number(procedure.oid)),
                ("proname", text(procedure.name)),
                ("pronamespace", number(PG_CATALOG)),
                ("proowner", number(OWNER)),
                ("prolang", number(12)),
                ("prokind", text("f")),
                ("proisstrict", flag(true)),
                ("pronargs", count(arguments)),
                ("prorettype", number(procedure.result)),
                ("proargtypes", text(procedure.arguments)),
            ],
        )?;
    }
    for relation in RELATIONS.iter() {
        let namespace = if relation.schema == "pg_catalog" {
            PG_CATALOG
        } else {
            INFORMATION_SCHEMA
        };
        insert_class(
            connection,
            relation.oid,
            relation.name,
            namespace,
            relation.kind,
            relation.columns.len(),
            [false; 3],
            0,
        )?;
        for (index, column) in relation.columns.iter().enumerate() {
            let attribute = Attribute {
                name: column.name,
                kind: column.kind.oid(),
                not_null: column.not_null,
                ..Attribute::default()
            };
            insert_attribute(connection, relation.oid, index + 1, &attribute)?;
        }
    }
    connection.execute_batch(include_str!("data/fixed.sql"))
}

fn insert_namespace(connection: &Connection, oid: u32, name: &str) -> Result<()> {
    insert(
        connection,
        "pg_namespace",
        [
            ("oid", number(oid)),
            ("nspname", text(name)),
            ("nspowner", number(OWNER)),
        ],
    )
}

fn fill_types(connection: &Connection) -> Result<()> {
    let columns = types::TYPE_COLUMNS;
    let sql = format!(
        "INSERT INTO pg_catalog.pg_type ({columns}, typnamespace, typowner, typisdefined, typtypmod) VALUES ({}{PG_CATALOG}, {OWNER}, 1, -1)",
        "?,".repeat(types::TYPE_COLUMN_COUNT)
    );
    let mut statement = connection.prepare(&sql)?;
    for row in types::TYPES.iter() {
        statement.execute(params_from_iter(row.fields[..types::TYPE_COLUMN_COUNT].iter()))?;
    }
    Ok(())
}

/// Replaces everything that describes the user's schema.
pub(super) fn replace(connection: &Connection, schema: &Schema) -> Result<()> {
    connection.execute_batch(
        "DELETE FROM pg_catalog.pg_class WHERE oid >= 16384;
         DELETE FROM pg_catalog.pg_attribute WHERE attrelid >= 16384;
         DELETE FROM pg_catalog.pg_type WHERE oid >= 16384;
         DELETE FROM pg_catalog.pg_namespace WHERE oid >= 16384;
         DELETE FROM pg_catalog.pg_index; DELETE FROM pg_catalog.pg_constraint; DELETE FROM pg_catalog.pg_attrdef;
         DELETE FROM pg_catalog.pg_trigger; DELETE FROM pg_catalog.pg_rewrite;
         DELETE FROM pg_catalog.pg_description WHERE objoid >= 16384;
         DELETE FROM pg_catalog.pg_sequence; DELETE FROM pg_catalog.pg_depend;",
    )?;
    for namespace in &schema.namespaces {
        insert_namespace(connection, namespace.oid, &namespace.name)?;
    }
    for table in &schema.tables {
        fill_table(connection, table, has_triggers(schema, table))?;
    }
    for sequence in &schema.sequences {
        fill_sequence(connection, sequence)?;
    }
    for relation in RELATIONS.iter() {
        // Whatever derived.sql fills is emptied first; it names its relations by an INSERT at the start of a line.
        if DERIVED.contains(&format!("\nINSERT INTO {}.{} ", relation.schema, relation.name)) {
            connection.execute_batch(&format!("DELETE FROM {}.{}", relation.schema, relation.name))?;
        }
    }
    connection.execute_batch(
        &DERIVED
            .replace(":database_oid", &DATABASE.to_string())
            .replace(":owner", &OWNER.to_string()),
    )
}

/// PostgreSQL keeps foreign keys by triggers on both tables, and psql asks for keys only where this says there are triggers.
fn has_triggers(schema: &Schema, table: &Table) -> bool {
    let foreign = |from: &Table| {
        from.constraints.iter().any(|constraint| match constraint.kind {
            ConstraintKind::Foreign { table: target, .. } => from.oid == table.oid || target == table.oid,
            _ => false,
        })
    };
    !table.triggers.is_empty() || schema.tables.iter().any(foreign)
}

fn fill_table(connection: &Connection, table: &Table, has_triggers: bool) -> Result<()> {
    let kind = if table.view.is_some() { "v" } else { "r" };
    let facts = [!table.indexes.is_empty(), table.view.is_some(), has_triggers];
    let checks = table
        .constraints
        .iter()
        .filter(|constraint| matches!(constraint.kind, ConstraintKind::Check { .. }))
        .count();
    insert_class(
        connection,
        table.oid,
        &table.name,
        table.namespace.oid,
        kind,
        table.columns.len(),
        facts,
        checks,
    )?;
    connection
        .prepare_cached("UPDATE pg_catalog.pg_class SET reltype = ?1 WHERE oid = ?2")?
        .execute([table.row_type, table.oid])?;
    insert(
        connection,
        "pg_type",
        [
            ("oid", number(table.row_type)),
            ("typname", text(table.name.as_str())),
            ("typnamespace", number(table.namespace.oid)),
            ("typowner", number(OWNER)),
            ("typlen", number(-1)),
            ("typtype", text("c")),
            ("typcategory", text("C")),
            ("typisdefined", flag(true)),
            ("typdelim", text(",")),
            ("typrelid", number(table.oid)),
            ("typalign", text("d")),
            ("typstorage", text("x")),
            ("typtypmod", number(-1)),
        ],
    )?;
    for (index, column) in table.columns.iter().enumerate() {
        let attribute = Attribute {
            name: &column.name,
            kind: column.kind.oid(),
            not_null: column.not_null && table.view.is_none(),
            default: column.expression.is_some(),
            identity: column.identity,
            modifier: Some(column.modifier),
            generated: if column.generated { "s" } else { "" },
        };
        insert_attribute(connection, table.oid, index + 1, &attribute)?;
        if let Some(expression) = &column.expression {
            // One default a column: the OID only has to be its own.
            let oid = i64::from(table.oid)
                .wrapping_mul(2_048)
                .wrapping_add(i64::try_from(index).unwrap_or(0))
                % 2_000_000_000;
            insert(
                connection,
                "pg_attrdef",
                [
                    ("oid", number(oid)),
                    ("adrelid", number(table.oid)),
                    ("adnum", count(index + 1)),
                    ("adbin", text(expression.as_str())),
                ],
            )?;
        }
    }
    let of_table = table.comment.as_ref().map(|comment| (0, comment));
    let of_columns = table.columns.iter().zip(1..);
    let of_columns = of_columns.filter_map(|(column, number)| Some((number, column.comment.as_ref()?)));
    for (place, comment) in of_table.into_iter().chain(of_columns) {
        insert(
            connection,
            "pg_description",
            [
                ("objoid", number(table.oid)),
                ("classoid", number(CLASS)),
                ("objsubid", count(place)),
                ("description", text(comment.as_str())),
            ],
        )?;
    }
    for index in &table.indexes {
        fill_index(connection, table, index)?;
    }
    for constraint in &table.constraints {
        fill_constraint(connection, table, constraint)?;
    }
    for trigger in &table.triggers {
        insert(
            connection,
            "pg_trigger",
            [
                ("oid", number(trigger.oid)),
                ("tgrelid", number(table.oid)),
                ("tgname", text(trigger.name.as_str())),
                ("tgtype", number(trigger.bits)),
                ("tgenabled", text("O")),
            ],
        )?;
    }
    if table.view.is_some() {
        insert(
            connection,
            "pg_rewrite",
            [
                ("oid", number(table.oid ^ 1)),
                ("rulename", text("_RETURN")),
                ("ev_class", number(table.oid)),
                ("ev_type", text("1")),
                ("ev_enabled", text("O")),
                ("is_instead", flag(true)),
            ],
        )?;
    }
    Ok(())
}

fn fill_sequence(connection: &Connection, sequence: &Sequence) -> Result<()> {
    insert_class(
        connection,
        sequence.oid,
        &sequence.name,
        sequence.namespace.oid,
        "S",
        3,
        [false; 3],
        0,
    )?;
    let columns = [
        ("last_value", postgres_types::Type::INT8),
        ("log_cnt", postgres_types::Type::INT8),
        ("is_called", postgres_types::Type::BOOL),
    ];
    for (place, (name, kind)) in columns.iter().enumerate() {
        let attribute = Attribute {
            name,
            kind: kind.oid(),
            not_null: true,
            ..Attribute::default()
        };
        insert_attribute(connection, sequence.oid, place + 1, &attribute)?;
    }
    insert(
        connection,
        "pg_sequence",
        [
            ("seqrelid", number(sequence.oid)),
            ("seqtypid", number(sequence.kind)),
            ("seqstart", number(sequence.start)),
            ("seqincrement", number(sequence.increment)),
            ("seqmax", number(sequence.maximum)),
            ("seqmin", number(sequence.minimum)),
            ("seqcache", number(1)),
            ("seqcycle", flag(sequence.cycle)),
        ],
    )?;
    if let Some(owner) = &sequence.owner {
        insert(
            connection,
            "pg_depend",
            [
                ("classid", number(CLASS)),
                ("objid", number(sequence.oid)),
                ("objsubid", number(0)),
                ("refclassid", number(CLASS)),
                ("refobjid", number(owner.table)),
                ("refobjsubid", count(owner.column)),
                ("deptype", text(if owner.identity { "i" } else { "a" })),
            ],
        )?;
    }
    Ok(())
}

fn fill_index(connection: &Connection, table: &Table, index: &Index) -> Result<()> {
    insert_class(
        connection,
        index.oid,
        &index.name,
        table.namespace.oid,
        "i",
        index.keys.len(),
        [false; 3],
        0,
    )?;
    for (position, key) in index.keys.iter().enumerate() {
        let column = key.number.checked_sub(1).map(|at| &table.columns[at]);
        let attribute = Attribute {
            // PostgreSQL calls the first expression of an index expr.
            name: column.map_or("expr", |column| column.name.as_str()),
            kind: column.map_or(postgres_types::Type::TEXT.oid(), |column| column.kind.oid()),
            ..Attribute::default()
        };
        insert_attribute(connection, index.oid, position + 1, &attribute)?;
    }
    let vector = |words: Vec<String>| text(words.join(" "));
    let collations = index.keys.iter().map(|key| {
        key.number
            .checked_sub(1)
            .map_or("100", |at| types::attribute_facts(table.columns[at].kind.oid())[4])
            .to_owned()
    });
    let expressions: Vec<&str> = index
        .keys
        .iter()
        .filter(|key| key.number == 0)
        .map(|key| key.text.as_str())
        .collect();
    insert(
        connection,
        "pg_index",
        [
            ("indexrelid", number(index.oid)),
            ("indrelid", number(table.oid)),
            ("indnatts", count(index.keys.len())),
            ("indnkeyatts", count(index.keys.len())),
            ("indisunique", flag(index.unique)),
            ("indisprimary", flag(index.primary)),
            ("indimmediate", flag(true)),
            ("indisvalid", flag(true)),
            ("indisready", flag(true)),
            ("indislive", flag(true)),
            (
                "indkey",
                vector(index.keys.iter().map(|key| key.number.to_string()).collect()),
            ),
            ("indcollation", vector(collations.collect())),
            ("indclass", vector(index.keys.iter().map(|_| "0".to_owned()).collect())),
            (
                "indoption",
                vector(
                    index
                        .keys
                        .iter()
                        .map(|key| if key.descending { "3" } else { "0" }.to_owned())
                        .collect(),
                ),
            ),
            (
                "indexprs",
                if expressions.is_empty() {
                    Value::Null
                } else {
                    text(expressions.join(", "))
                },
            ),
            ("indpred", index.predicate.as_deref().map_or(Value::Null, text)),
        ],
    )
}

fn fill_constraint(connection: &Connection, table: &Table, constraint: &Constraint) -> Result<()> {
    let (kind, index) = match &constraint.kind {
        ConstraintKind::Primary { index } => ("p", *index),
        ConstraintKind::Unique { index } => ("u", *index),
        ConstraintKind::Check { .. } => ("c", 0),
        ConstraintKind::Foreign { index, .. } => ("f", *index),
    };
    let (parent, targets, on_update, on_delete, matching) = match &constraint.kind {
        ConstraintKind::Foreign {
            table,
            columns,
            on_update,
            on_delete,
            ..
        } => (
            *table,
            text(array(columns)),
            on_update.to_string(),
            on_delete.to_string(),
            "s",
        ),
        _ => (0, Value::Null, " ".to_owned(), " ".to_owned(), " "),
    };
    let expression = match &constraint.kind {
        ConstraintKind::Check { expression } => text(expression.as_str()),
        _ => Value::Null,
    };
    insert(
        connection,
        "pg_constraint",
        [
            ("oid", number(constraint.oid)),
            ("conname", text(constraint.name.as_str())),
            ("connamespace", number(table.namespace.oid)),
            ("contype", text(kind)),
            ("condeferrable", flag(constraint.timing.deferrable)),
            ("condeferred", flag(constraint.timing.deferred)),
            ("convalidated", flag(!constraint.timing.not_valid)),
            ("conrelid", number(table.oid)),
            ("conindid", number(index)),
            ("confrelid", number(parent)),
            ("confupdtype", text(on_update)),
            ("confdeltype", text(on_delete)),
            ("confmatchtype", text(matching)),
            ("conislocal", flag(true)),
            ("connoinherit", flag(kind != "c")),
            ("conkey", text(array(&constraint.columns))),
            ("confkey", targets),
            ("conbin", expression),
        ],
    )
}

#[expect(
    clippy::too_many_arguments,
    reason = "one row of pg_class has that many facts; a struct would only repeat the column names"
)]
fn insert_class(
    connection: &Connection,
    oid: u32,
    name: &str,
    namespace: u32,
    kind: &str,
    columns: usize,
    [has_index, has_rules, has_triggers]: [bool; 3],
    checks: usize,
) -> Result<()> {
    let method = match kind {
        "r" => HEAP,
        "i" => BTREE,
        _ => 0,
    };
    insert(
        connection,
        "pg_class",
        [
            ("oid", number(oid)),
            ("relname", text(name)),
            ("relnamespace", number(namespace)),
            ("relowner", number(OWNER)),
            ("relam", number(method)),
            ("relfilenode", number(if kind == "v" { 0 } else { oid })),
            // PostgreSQL's mark for "never counted".
            ("reltuples", Value::Real(-1.0)),
            ("relhasindex", flag(has_index)),
            ("relpersistence", text("p")),
            ("relkind", text(kind)),
            ("relnatts", count(columns)),
            ("relchecks", count(checks)),
            ("relhasrules", flag(has_rules)),
            ("relhastriggers", flag(has_triggers)),
            ("relispopulated", flag(true)),
            ("relreplident", text(if kind == "r" { "d" } else { "n" })),
        ],
    )
}

#[derive(Default)]
struct Attribute<'a> {
    name: &'a str,
    kind: u32,
    not_null: bool,
    modifier: Option<i32>,
    default: bool,
    identity: &'a str,
    generated: &'a str,
}

fn insert_attribute(connection: &Connection, relation: u32, position: usize, attribute: &Attribute<'_>) -> Result<()> {
    let [length, by_value, alignment, storage, collation] = types::attribute_facts(attribute.kind);
    let is_array =
        postgres_types::Type::from_oid(attribute.kind).is_some_and(|kind| types::family(&kind) == Family::Array);
    insert(
        connection,
        "pg_attribute",
        [
            ("attrelid", number(relation)),
            ("attname", text(attribute.name)),
            ("atttypid", number(attribute.kind)),
            ("attstattarget", number(-1)),
            ("attlen", text(length)),
            ("attnum", count(position)),
            ("attndims", flag(is_array)),
            ("attcacheoff", number(-1)),
            ("atttypmod", number(attribute.modifier.unwrap_or(-1))),
            ("attbyval", text(by_value)),
            ("attalign", text(alignment)),
            ("attstorage", text(storage)),
            ("attnotnull", flag(attribute.not_null)),
            ("atthasdef", flag(attribute.default)),
            ("attidentity", text(attribute.identity)),
            ("attgenerated", text(attribute.generated)),
            ("attislocal", flag(true)),
            ("attcollation", text(collation)),
        ],
    )
}
