//! What the catalog's functions look up by OID or by name while a query runs: relation names, definitions, types, roles.
//!
//! A snapshot of one schema, replaced as a whole by a refresh. SQLite functions cannot query the connection they run in, so this
//! stands beside the tables; both are filled from the same [`Schema`]. Knows nothing of SQLite.

use std::collections::HashMap;

use super::oids::{NAMESPACES, OWNER};
use super::relations::RELATIONS;
use super::schema::{Namespace, Schema};
use super::types;
use crate::sql::identifier::{cut, quote_identifier};

/// The lookups of one schema snapshot.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) database: String,
    pub(super) user: String,
    pub(super) version: String,
    /// The number of the session that asks.
    pub(super) process: i32,
    /// Schema and name of every relation and index.
    relations: HashMap<u32, (String, String)>,
    by_name: HashMap<(String, String), u32>,
    /// The schemas beside those that every database has.
    namespaces: Vec<Namespace>,
    /// The schemas in which names without one are looked up, after `pg_catalog`.
    path: Vec<String>,
    /// Definition of an index, plain and pretty, and the text of each key.
    indexes: HashMap<u32, ([String; 2], Vec<String>)>,
    /// Plain and pretty.
    constraints: HashMap<u32, [String; 2]>,
    views: HashMap<u32, String>,
    triggers: HashMap<u32, String>,
    /// The columns of each of the user's tables, with their sequences.
    serials: HashMap<u32, HashMap<String, Option<String>>>,
}

impl Directory {
    pub(super) fn of(schema: &Schema, database: &str, user: &str, version: &str) -> Self {
        let mut directory = Self {
            database: database.to_owned(),
            user: user.to_owned(),
            version: version.to_owned(),
            namespaces: schema.namespaces.clone(),
            path: vec!["public".to_owned()],
            ..Self::default()
        };
        for relation in RELATIONS.iter() {
            directory.name(relation.oid, relation.schema, relation.name);
        }
        for table in &schema.tables {
            directory.name(table.oid, &table.namespace.name, &table.name);
            let columns = table.columns.iter().map(|column| (column.name.clone(), None));
            directory.serials.insert(table.oid, columns.collect());
            if let Some(view) = &table.view {
                directory.views.insert(table.oid, view.clone());
            }
            for index in &table.indexes {
                directory.name(index.oid, &table.namespace.name, &index.name);
                let keys = index.keys.iter().map(|key| key.text.clone()).collect();
                directory.indexes.insert(
                    index.oid,
                    ([index.definition(table, false), index.definition(table, true)], keys),
                );
            }
            for constraint in &table.constraints {
                directory.constraints.insert(
                    constraint.oid,
                    [constraint.definition(false), constraint.definition(true)],
                );
            }
            for trigger in &table.triggers {
                directory.triggers.insert(trigger.oid, trigger.definition.clone());
            }
        }
        for sequence in &schema.sequences {
            directory.name(sequence.oid, &sequence.namespace.name, &sequence.name);
            if let Some(owner) = &sequence.owner {
                let columns = directory.serials.entry(owner.table).or_default();
                let schema = quote_identifier(&sequence.namespace.name);
                let named = format!("{schema}.{}", quote_identifier(&sequence.name));
                columns.insert(owner.column_name.clone(), Some(named));
            }
        }
        directory
    }

    /// `pg_get_serial_sequence(table, column)`; of one that is not there, SQLSTATE and message.
    pub(super) fn serial_sequence(&self, table: &str, column: &str) -> Result<Option<String>, (&'static str, String)> {
        let oid = self
            .relation(table)
            .ok_or_else(|| ("42P01", format!("relation \"{table}\" does not exist")))?;
        let Some(columns) = self.serials.get(&oid) else {
            return Ok(None);
        };
        columns.get(column).cloned().ok_or_else(|| {
            let relation = self.relations.get(&oid).map_or(table, |(_, name)| name);
            (
                "42703",
                format!("column \"{column}\" of relation \"{relation}\" does not exist"),
            )
        })
    }

    fn name(&mut self, oid: u32, schema: &str, name: &str) {
        self.relations.insert(oid, (schema.to_owned(), name.to_owned()));
        self.by_name.insert((schema.to_owned(), name.to_owned()), oid);
    }

    /// Looks names up as the session of that number does, with this `search_path`.
    pub(super) fn follow(&mut self, search_path: &str, process: i32) {
        self.process = process;
        let is_there = |name: &str| name == "public" || self.namespaces.iter().any(|namespace| namespace.name == name);
        self.path = crate::sql::search_path(search_path, &self.user, is_there);
    }

    /// `current_schema()`, and `current_schemas()` but for `pg_catalog`.
    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// Whether the relation is found without its schema. `None` for an OID that is no relation's.
    pub(super) fn is_visible(&self, oid: u32) -> Option<bool> {
        let (_, name) = self.relations.get(&oid)?;
        Some(self.found(name) == Some(oid))
    }

    /// The relation that a name without a schema means.
    fn found(&self, name: &str) -> Option<u32> {
        let find = |schema: &str| self.by_name.get(&(schema.to_owned(), name.to_owned())).copied();
        find("pg_catalog").or_else(|| self.path.iter().find_map(|schema| find(schema)))
    }

    /// `'name'::regclass`: a number is an OID, a name may carry a schema, the database before it, and quotes.
    pub(super) fn relation(&self, text: &str) -> Option<u32> {
        let text = text.trim();
        if let Ok(oid) = text.parse() {
            return Some(oid);
        }
        let mut parts = split_name(text)?;
        if parts.len() == 3 && parts[0] == self.database {
            parts.remove(0);
        }
        match parts.as_slice() {
            [name] => self.found(name),
            [schema, name] => self.by_name.get(&(schema.clone(), name.clone())).copied(),
            _ => None,
        }
    }

    /// The schema that such a name carries, if there is none of that name.
    pub(super) fn missing_schema(&self, text: &str) -> Option<String> {
        let mut parts = split_name(text).filter(|parts| parts.len() == 2)?;
        let schema = parts.swap_remove(0);
        let is_known = NAMESPACES.iter().any(|(_, known)| *known == schema)
            || self.namespaces.iter().any(|namespace| namespace.name == schema);
        (!is_known).then_some(schema)
    }

    /// `oid::regclass` as text: the name as one would have to write it.
    pub(super) fn relation_text(&self, oid: u32) -> String {
        match self.relations.get(&oid) {
            None if oid == 0 => "-".to_owned(),
            None => oid.to_string(),
            Some((_, name)) if self.found(name) == Some(oid) => quote_identifier(name),
            Some((schema, name)) => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
        }
    }

    /// `'name'::regnamespace`.
    pub(super) fn namespace(&self, text: &str) -> Option<u32> {
        let name = single_name(text)?;
        let own = || self.namespaces.iter().find(|namespace| namespace.name == name);
        text.trim()
            .parse()
            .ok()
            .or_else(|| NAMESPACES.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid))
            .or_else(|| own().map(|namespace| namespace.oid))
    }

    pub(super) fn namespace_text(&self, oid: u32) -> Option<String> {
        let known = NAMESPACES.iter().find(|(known, _)| *known == oid);
        let own = self.namespaces.iter().find(|namespace| namespace.oid == oid);
        known
            .map(|(_, name)| (*name).to_owned())
            .or_else(|| own.map(|namespace| quote_identifier(&namespace.name)))
    }

    pub(super) fn index_definition(&self, oid: u32, column: usize, pretty: bool) -> Option<String> {
        let (whole, keys) = self.indexes.get(&oid)?;
        match column {
            0 => Some(whole[usize::from(pretty)].clone()),
            _ => keys.get(column - 1).cloned(),
        }
    }

    pub(super) fn constraint_definition(&self, oid: u32, pretty: bool) -> Option<String> {
        self.constraints
            .get(&oid)
            .map(|texts| texts[usize::from(pretty)].clone())
    }

    pub(super) fn view_definition(&self, oid: u32) -> Option<String> {
        self.views.get(&oid).cloned()
    }

    pub(super) fn trigger_definition(&self, oid: u32) -> Option<String> {
        self.triggers.get(&oid).cloned()
    }

    pub(super) fn role_text(&self, oid: u32) -> Option<String> {
        (oid == OWNER).then(|| self.user.clone())
    }

    pub(super) fn role(&self, text: &str) -> Option<u32> {
        let name = single_name(text)?;
        text.trim()
            .parse()
            .ok()
            .or_else(|| (name == self.user).then_some(OWNER))
    }
}

/// `'name'::regproc`. Of overloaded functions the catalog knows none.
pub(super) fn procedure(text: &str) -> Option<u32> {
    if let Ok(oid) = text.trim().parse() {
        return Some(oid);
    }
    let parts = split_name(text)?;
    let name = match parts.as_slice() {
        [name] => name,
        [schema, name] if schema == "pg_catalog" => name,
        _ => return None,
    };
    types::PROCEDURES
        .iter()
        .find(|procedure| procedure.name == name)
        .map(|procedure| procedure.oid)
}

/// `'name(argument types)'::regprocedure`.
pub(super) fn procedure_with_arguments(text: &str) -> Option<u32> {
    if let Ok(oid) = text.trim().parse() {
        return Some(oid);
    }
    let (name, arguments) = text.trim().strip_suffix(')')?.split_once('(')?;
    let oid = procedure(name)?;
    let arguments: Option<Vec<u32>> = arguments
        .split(',')
        .filter(|argument| !argument.trim().is_empty())
        .map(types::type_oid)
        .collect();
    let words: Vec<String> = arguments?.iter().map(ToString::to_string).collect();
    (procedure_by_oid(oid)?.arguments == words.join(" ")).then_some(oid)
}

pub(super) fn procedure_by_oid(oid: u32) -> Option<&'static types::Procedure> {
    types::PROCEDURES
        .binary_search_by_key(&oid, |procedure| procedure.oid)
        .ok()
        .map(|index| &types::PROCEDURES[index])
}

fn single_name(text: &str) -> Option<String> {
    let mut parts = split_name(text)?;
    (parts.len() == 1).then(|| parts.remove(0))
}

/// Splits `schema."Name"` at its dots; folds what is not quoted.
fn split_name(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut letters = text.trim().chars().peekable();
    loop {
        let mut part = String::new();
        if letters.next_if_eq(&'"').is_some() {
            loop {
                match letters.next()? {
                    '"' if letters.next_if_eq(&'"').is_some() => part.push('"'),
                    '"' => break,
                    letter => part.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != '.') {
                part.extend(letter.to_lowercase());
            }
        }
        if part.is_empty() {
            return None;
        }
        parts.push(cut(part));
        match letters.next() {
            None => return Some(parts),
            Some('.') => {}
            Some(_) => return None,
        }
    }
}
