//! Reads the schema of a SQLite file into PostgreSQL's terms.
//!
//! Reads through SQLite's pragmas; changes nothing. Knows nothing of the emulated relations.

use std::collections::HashSet;

use postgres_types::Type;
use rusqlite::Connection;

use super::definition::{self, Named, TableDefinition};
use super::oids::Names;
use super::own;
use super::schema::{
    Column, Constraint, ConstraintKind, Index, Key, Namespace, Schema, Table, Timing, Trigger, action, column_list,
    plain_key,
};
use super::types;
use crate::sql::compile::namespace::{parted, schemas};
use crate::sql::identifier::{made_of, quote_identifier};

/// Reads the whole schema of `source`'s main database.
pub(super) fn read(source: &Connection) -> rusqlite::Result<Schema> {
    let mut statement = source.prepare(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         AND tbl_name NOT LIKE 'forebay\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let objects: Vec<(String, String, String, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    let mut names = Names::beside(objects.iter().map(|object| object.1.clone()));
    let mut tables = Vec::new();
    let mut definitions = Vec::new();
    for (kind, name, _, sql) in &objects {
        let view = match kind.as_str() {
            "table" => None,
            "view" => Some(definition::view(sql)),
            _ => continue,
        };
        let declared = if view.is_none() {
            definition::table(sql)
        } else {
            TableDefinition::default()
        };
        let oid = names.oid("relation", "", name);
        let (columns, key) = match read_columns(source, name, kind == "view", &declared) {
            Ok(columns) => columns,
            // A view over a table that is gone: SQLite cannot tell its columns, and the rest of the schema is still true.
            Err(rusqlite::Error::SqliteFailure(..)) if view.is_some() => (Vec::new(), Vec::new()),
            Err(error) => return Err(error),
        };
        let mut columns = columns;
        if let Some(types) = crate::sql::compile::schema::view_text(sql)
            .filter(|_| view.is_some())
            .and_then(|text| crate::sql::compile::view_types(source, &text))
        {
            for (column, known) in columns.iter_mut().zip(types) {
                column.kind = Type::from_oid(known.oid).unwrap_or(Type::TEXT);
                column.modifier = known.typmod;
            }
        }
        let mut table = Table {
            namespace: Namespace::public(),
            oid,
            row_type: names.oid("type", "", name),
            name: name.clone(),
            view,
            comment: declared.own.as_ref().and_then(|own| own.comment.clone()),
            columns,
            indexes: Vec::new(),
            constraints: Vec::new(),
            triggers: Vec::new(),
        };
        if let Some(own) = &declared.own {
            own::describe(&mut names, &mut table, own);
            read_indexes(source, &mut names, &mut table, &[], &declared, &objects)?;
            own::add_keys(&mut names, &mut table, own);
        } else if table.view.is_none() {
            read_indexes(source, &mut names, &mut table, &key, &declared, &objects)?;
            add_checks(&mut names, &mut table, &declared);
        }
        for (_, trigger, _, sql) in objects
            .iter()
            .filter(|(kind, _, owner, _)| kind == "trigger" && owner.eq_ignore_ascii_case(name))
        {
            let oid = names.oid("trigger", name, trigger);
            table.triggers.push(Trigger {
                oid,
                name: trigger.clone(),
                bits: definition::trigger_bits(sql),
                definition: sql.clone(),
            });
        }
        tables.push(table);
        definitions.push((declared, key));
    }
    // Foreign keys point at tables that may come later in the list.
    for index in 0..tables.len() {
        let keys = match &definitions[index].0.own {
            Some(own) => own::foreign_keys(&mut names, &tables, index, own),
            None => read_foreign_keys(source, &mut names, &tables, index, &definitions)?,
        };
        tables[index].constraints.extend(keys);
    }
    let mut sequences = own::sequences(source, &mut names, &tables)?;
    let namespaces: Vec<Namespace> = schemas(source)?
        .into_iter()
        .map(|name| Namespace {
            oid: names.oid("schema", "", &name),
            name,
        })
        .collect();
    for table in &mut tables {
        place(&namespaces, &mut table.namespace, &mut table.name);
        for index in &mut table.indexes {
            index.name = parted(&index.name).1.to_owned();
        }
    }
    for sequence in &mut sequences {
        place(&namespaces, &mut sequence.namespace, &mut sequence.name);
    }
    Ok(Schema {
        namespaces,
        tables,
        sequences,
    })
}

/// Takes a name in the file apart.
fn place(namespaces: &[Namespace], namespace: &mut Namespace, name: &mut String) {
    let (schema, shown) = parted(name);
    if let Some(found) = namespaces.iter().find(|namespace| namespace.name == schema) {
        *namespace = found.clone();
        *name = shown.to_owned();
    }
}

/// The columns, and the numbers of those in the primary key in key order.
fn read_columns(
    source: &Connection,
    table: &str,
    view: bool,
    declared: &TableDefinition,
) -> rusqlite::Result<(Vec<Column>, Vec<usize>)> {
    let mut statement = source.prepare(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1",
    )?;
    let mut rows = statement.query([table])?;
    let mut columns: Vec<Column> = Vec::new();
    let mut key: Vec<(i64, usize)> = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let declared_type: String = row.get(1)?;
        let (known, foreign) = crate::sql::compile::declared::of_declared(&declared_type);
        let own = !foreign && view && !declared_type.is_empty();
        let (kind, modifier) = match Type::from_oid(known.oid).filter(|_| own) {
            Some(kind) => (kind, known.typmod),
            None => (types::column_type(&declared_type), -1),
        };
        let position: i64 = row.get(4)?;
        let hidden: i64 = row.get(5)?;
        let generated = hidden == 2 || hidden == 3;
        let expression = if generated {
            let folded = name.to_lowercase();
            declared
                .generated
                .iter()
                .find(|(column, _)| *column == folded)
                .map(|(_, expression)| expression.clone())
        } else {
            row.get::<_, Option<String>>(3)?
                .map(|default| default_text(&default, &kind))
        };
        if position > 0 {
            key.push((position, columns.len() + 1));
        }
        columns.push(Column {
            name,
            kind,
            modifier,
            not_null: row.get::<_, bool>(2)? || position > 0,
            expression,
            identity: "",
            generated,
            comment: None,
        });
    }
    key.sort_unstable();
    let key: Vec<usize> = key.into_iter().map(|(_, number)| number).collect();
    if declared.auto_increment
        && let [only] = key.as_slice()
    {
        columns[*only - 1].identity = "d";
    }
    Ok((columns, key))
}

/// A default as PostgreSQL would print it: text carries its type, a boolean its word.
fn default_text(default: &str, kind: &Type) -> String {
    if definition::is_string_literal(default) {
        return format!("{default}::{}", types::format_type(kind.oid(), None));
    }
    match (default, *kind == Type::BOOL) {
        ("1", true) => "true".to_owned(),
        ("0", true) => "false".to_owned(),
        (word, true) if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") => word.to_lowercase(),
        _ => default.to_owned(),
    }
}

fn default_name(table: &Table, numbers: &[usize], ending: &str) -> String {
    let columns: Vec<&str> = numbers
        .iter()
        .map(|number| table.columns[*number - 1].name.as_str())
        .collect();
    made_of(&table.name, &columns.join("_"), ending)
}

fn folded_names(table: &Table, numbers: &[usize]) -> Vec<String> {
    numbers
        .iter()
        .map(|number| table.columns[*number - 1].name.to_lowercase())
        .collect()
}

fn declared_name(named: &[Named], columns: &[String]) -> Option<String> {
    named
        .iter()
        .find(|named| named.columns == columns)
        .and_then(|named| named.name.clone())
}

fn read_indexes(
    source: &Connection,
    names: &mut Names,
    table: &mut Table,
    primary_key: &[usize],
    declared: &TableDefinition,
    objects: &[(String, String, String, String)],
) -> rusqlite::Result<()> {
    if !primary_key.is_empty() {
        // SQLite keeps no index for an INTEGER PRIMARY KEY, and calls the others sqlite_autoindex_…: PostgreSQL always has one.
        let wish = declared
            .primary_key
            .as_ref()
            .and_then(|key| key.name.clone())
            .unwrap_or_else(|| made_of(&table.name, "", "pkey"));
        let name = names.relation(&wish);
        let oid = names.oid("relation", "", &name);
        let keys = primary_key.iter().map(|number| plain_key(table, *number)).collect();
        table.indexes.push(Index {
            oid,
            name: name.clone(),
            unique: true,
            primary: true,
            keys,
            predicate: None,
        });
        table.constraints.push(Constraint {
            oid: names.oid("constraint", &table.name, &name),
            name,
            kind: ConstraintKind::Primary { index: oid },
            columns: primary_key.to_vec(),
            definition: format!("PRIMARY KEY ({})", column_list(table, primary_key)),
            timing: Timing::default(),
        });
    }
    let mut list = source.prepare(
        "SELECT name, \"unique\", origin FROM pragma_index_list(?1, 'main') WHERE origin <> 'pk' ORDER BY seq DESC",
    )?;
    let listed: Vec<(String, bool, String)> = list
        .query_map([&table.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let mut columns = source
        .prepare("SELECT cid, name, \"desc\" FROM pragma_index_xinfo(?1, 'main') WHERE key = 1 ORDER BY seqno")?;
    for (internal, unique, origin) in listed {
        let sql = objects
            .iter()
            .find(|(kind, name, ..)| kind == "index" && *name == internal)
            .map_or("", |object| object.3.as_str());
        let parsed = definition::index(sql).unwrap_or_default();
        let mut keys = Vec::new();
        let mut rows = columns.query([&internal])?;
        while let Some(row) = rows.next()? {
            let column: i64 = row.get(0)?;
            let descending: bool = row.get(2)?;
            // Numbers of index columns count every column of the table, hidden ones too; names do not mistake them.
            let name: Option<String> = row.get(1)?;
            let number = name
                .and_then(|name| table.columns.iter().position(|column| column.name == name))
                .map_or(0, |index| index + 1);
            let written = parsed.keys.get(keys.len()).cloned();
            let key = match number {
                0 => Key {
                    number,
                    text: written.unwrap_or_else(|| {
                        if column == -1 {
                            "rowid".to_owned()
                        } else {
                            "(expression)".to_owned()
                        }
                    }),
                    descending,
                },
                _ => Key {
                    descending,
                    ..plain_key(table, number)
                },
            };
            keys.push(key);
        }
        let numbers: Vec<usize> = keys.iter().map(|key| key.number).collect();
        if origin == "u" {
            let wish = declared_name(&declared.uniques, &folded_names(table, &numbers))
                .unwrap_or_else(|| default_name(table, &numbers, "key"));
            let name = names.relation(&wish);
            let oid = names.oid("relation", "", &name);
            table.indexes.push(Index {
                oid,
                name: name.clone(),
                unique,
                primary: false,
                keys,
                predicate: None,
            });
            table.constraints.push(Constraint {
                oid: names.oid("constraint", &table.name, &name),
                name,
                kind: ConstraintKind::Unique { index: oid },
                definition: format!("UNIQUE ({})", column_list(table, &numbers)),
                columns: numbers,
                timing: Timing::default(),
            });
        } else {
            let oid = names.oid("relation", "", &internal);
            table.indexes.push(Index {
                oid,
                name: internal,
                unique,
                primary: false,
                keys,
                predicate: parsed.predicate,
            });
        }
    }
    Ok(())
}

fn add_checks(names: &mut Names, table: &mut Table, declared: &TableDefinition) {
    let mut used: HashSet<String> = HashSet::new();
    for check in &declared.checks {
        let columns: Vec<usize> = check
            .columns
            .iter()
            .filter_map(|name| {
                table
                    .columns
                    .iter()
                    .position(|column| column.name.eq_ignore_ascii_case(name))
            })
            .map(|index| index + 1)
            .collect();
        let wish = check.name.clone().unwrap_or_else(|| match columns.as_slice() {
            [only] => default_name(table, &[*only], "check"),
            _ => made_of(&table.name, "", "check"),
        });
        let mut name = wish.clone();
        let mut count = 0;
        while !used.insert(name.clone()) {
            count += 1;
            name = format!("{wish}{count}");
        }
        table.constraints.push(Constraint {
            oid: names.oid("constraint", &table.name, &name),
            name,
            columns,
            definition: String::new(),
            timing: Timing::default(),
            kind: ConstraintKind::Check {
                expression: check.expression.clone(),
            },
        });
    }
}

fn read_foreign_keys(
    source: &Connection,
    names: &mut Names,
    tables: &[Table],
    index: usize,
    definitions: &[(TableDefinition, Vec<usize>)],
) -> rusqlite::Result<Vec<Constraint>> {
    let table = &tables[index];
    let declared = &definitions[index].0;
    let mut statement = source.prepare(
        "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete FROM pragma_foreign_key_list(?1, 'main') ORDER BY id DESC, seq",
    )?;
    type Row = (i64, String, String, Option<String>, String, String);
    let rows: Vec<Row> = statement
        .query_map([&table.name], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
            ))
        })?
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    let mut used: HashSet<String> = table
        .constraints
        .iter()
        .map(|constraint| constraint.name.clone())
        .collect();
    for group in rows.chunk_by(|left, right| left.0 == right.0) {
        let (_, parent, _, _, on_update, on_delete) = &group[0];
        // SQLite accepts a key to a table that does not exist; PostgreSQL has no way to show one.
        let Some(parent_index) = tables
            .iter()
            .position(|table| table.view.is_none() && table.name.eq_ignore_ascii_case(parent))
        else {
            continue;
        };
        let parent = &tables[parent_index];
        let number = |table: &Table, name: &str| {
            table
                .columns
                .iter()
                .position(|column| column.name.eq_ignore_ascii_case(name))
                .map(|at| at + 1)
        };
        let columns: Option<Vec<usize>> = group.iter().map(|row| number(table, &row.2)).collect();
        let targets: Option<Vec<usize>> = if group.iter().all(|row| row.3.is_none()) {
            Some(definitions[parent_index].1.clone())
        } else {
            group
                .iter()
                .map(|row| row.3.as_deref().and_then(|name| number(parent, name)))
                .collect()
        };
        let (Some(columns), Some(targets)) = (columns, targets) else {
            continue;
        };
        if columns.len() != targets.len() {
            continue;
        }
        let wish = declared_name(&declared.foreign_keys, &folded_names(table, &columns))
            .unwrap_or_else(|| default_name(table, &columns, "fkey"));
        let mut name = wish.clone();
        let mut count = 0;
        while !used.insert(name.clone()) {
            count += 1;
            name = format!("{wish}{count}");
        }
        let (update, update_words) = action(on_update);
        let (delete, delete_words) = action(on_delete);
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {}({})",
            column_list(table, &columns),
            quote_identifier(&parent.name),
            column_list(parent, &targets)
        );
        for (clause, words) in [(" ON UPDATE ", update_words), (" ON DELETE ", delete_words)] {
            if !words.is_empty() {
                text.push_str(clause);
                text.push_str(words);
            }
        }
        let unique_index = parent
            .indexes
            .iter()
            .find(|index| index.unique && index.keys.iter().map(|key| key.number).eq(targets.iter().copied()));
        found.push(Constraint {
            oid: names.oid("constraint", &table.name, &name),
            name,
            columns,
            definition: text,
            timing: Timing::default(),
            kind: ConstraintKind::Foreign {
                table: parent.oid,
                columns: targets,
                index: unique_index.map_or(0, |index| index.oid),
                on_update: update,
                on_delete: delete,
            },
        });
    }
    Ok(found)
}
