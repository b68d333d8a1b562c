//! A table as a client declared it, and how it is kept in the file.
//!
//! Promises: the definition stands in PostgreSQL's terms, as JSON, in a comment inside SQLite's CREATE TABLE ([`Definition::create`]), and
//! is read back from there ([`Definition::read`]); all else of that text is derived from it, so that the file can be read, and as far
//! as functions allow be written, without this server. UNIQUE constraints are indexes under the constraint's name.

use serde::{Deserialize, Serialize};

use super::declared::declared;
use super::namespace::{parted, stored};
use super::sqlite_text::identifier;
use super::types::{TypeName, compared};
use crate::sql::facts::{Oid, oid};

const OPEN: &str = "/* forebay: ";
const CLOSE: &str = " :forebay */";

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) columns: Vec<ColumnDefinition>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) primary_key: Option<Key>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) uniques: Vec<Key>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) checks: Vec<Check>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) foreign_keys: Vec<ForeignKey>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) comment: Option<String>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColumnDefinition {
    pub(crate) name: String,
    /// PostgreSQL's number for the type, and its modifier.
    pub(crate) oid: Oid,
    #[serde(skip_serializing_if = "is_without", default = "without")]
    pub(crate) typmod: i32,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) not_null: bool,
    /// PostgreSQL's text of the expression.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) default: Option<String>,
    /// SQLite's text of the default, where that is a constant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) default_stored: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) identity: Option<Identity>,
    /// GENERATED ALWAYS AS (…) STORED, in both languages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) generated: Option<Lowered>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) comment: Option<String>,
}

/// An expression in PostgreSQL's words, and in SQLite's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lowered {
    pub(crate) text: String,
    pub(crate) sql: String,
}

/// A PRIMARY KEY or UNIQUE constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// A primary key that an index of its name carries, as every UNIQUE is carried: it was added to a table that was there, or has a
    /// generated column.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) indexed: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) condition: Lowered,
    /// NOT VALID: the rows that were there have not been looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) not_valid: bool,
}

/// A FOREIGN KEY constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) table: String,
    pub(crate) referred: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) on_delete: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) on_update: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) deferrable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) deferred: bool,
    /// NOT VALID: the rows that were there have not been looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) not_valid: bool,
}

/// What follows a marker that stands in SQLite's text of a table or view, not in a name there: names are the client's to choose.
pub(crate) fn behind_marker<'a>(sql: &'a str, marker: &str) -> Option<&'a str> {
    let mut rest = sql;
    loop {
        let (outside, quoted) = rest.split_once('"').unwrap_or((rest, ""));
        if let Some(found) = outside.find(marker) {
            return Some(&rest[found + marker.len()..]);
        }
        rest = quoted.split_once('"')?.1;
    }
}

fn without() -> i32 {
    -1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_without(typmod: &i32) -> bool {
    *typmod == -1
}

impl ColumnDefinition {
    pub(crate) fn kind(&self) -> TypeName {
        TypeName {
            oid: self.oid,
            typmod: self.typmod,
        }
    }
}

impl Definition {
    /// The definition that stands in SQLite's text of a table, if a client of this server made it.
    pub(crate) fn read(sql: &str) -> Option<Self> {
        let rest = behind_marker(sql, OPEN)?;
        let (json, _) = rest.split_once(CLOSE)?;
        serde_json::from_str(json).ok()
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The name of a column that SQLite would take for one of this name.
    pub(super) fn alike_but_for_case(&self, name: &str) -> Option<&str> {
        let mut names = self.columns.iter().map(|column| column.name.as_str());
        names.find(|known| *known != name && known.eq_ignore_ascii_case(name))
    }

    /// Whether the column is SQLite's own number of the row: the only column of the key, and an integer.
    pub(crate) fn is_row_number(&self, name: &str) -> bool {
        self.primary_key
            .as_ref()
            .is_some_and(|key| !key.indexed && key.columns.len() == 1 && key.columns[0] == name)
            && self
                .column(name)
                .is_some_and(|place| matches!(self.columns[place].oid, oid::INT2 | oid::INT4 | oid::INT8))
    }

    /// SQLite's CREATE TABLE for the same rows under another name, for as long as they are copied: nothing looks at them there.
    pub(crate) fn create_unconstrained(&self, table: &str) -> String {
        let mut plain = self.clone();
        plain.checks.clear();
        plain.foreign_keys.clear();
        plain.columns.iter_mut().for_each(|column| column.not_null = false);
        plain.primary_key.take_if(|key| key.indexed);
        plain.create(table)
    }

    /// SQLite's CREATE TABLE.
    pub(crate) fn create(&self, table: &str) -> String {
        // `*/` cannot stand in the comment; in JSON a slash may be written as an escape.
        let json = serde_json::to_string(self)
            .expect("a definition is plain data")
            .replace("*/", "*\\/");
        let mut parts = Vec::new();
        for column in &self.columns {
            parts.push(self.column_text(column));
        }
        if let Some(key) = &self.primary_key
            && !key.indexed
            && !key.columns.iter().any(|column| self.is_row_number(column))
        {
            parts.push(format!(
                "CONSTRAINT {} PRIMARY KEY ({})",
                identifier(&key.name),
                list(&key.columns)
            ));
        }
        // PostgreSQL looks at them by their names.
        let mut checks: Vec<&Check> = self.checks.iter().collect();
        checks.sort_by(|left, right| left.name.cmp(&right.name));
        for check in checks {
            parts.push(format!(
                "CONSTRAINT {} CHECK ({})",
                identifier(&check.name),
                check.condition.sql
            ));
        }
        for key in &self.foreign_keys {
            let mut text = format!(
                "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
                identifier(&key.name),
                list(&key.columns),
                identifier(&key.table),
                list(&key.referred)
            );
            if let Some(action) = &key.on_delete {
                text.push_str(&format!(" ON DELETE {action}"));
            }
            if let Some(action) = &key.on_update {
                text.push_str(&format!(" ON UPDATE {action}"));
            }
            if key.deferred {
                text.push_str(" DEFERRABLE INITIALLY DEFERRED");
            }
            parts.push(text);
        }
        if parts.is_empty() {
            // PostgreSQL has tables without columns.
            parts.push("\"forebay_no_column\"".to_owned());
        }
        format!(
            "CREATE TABLE {} ({OPEN}{json}{CLOSE} {})",
            identifier(table),
            parts.join(", ")
        )
    }

    fn column_text(&self, column: &ColumnDefinition) -> String {
        let name = identifier(&column.name);
        if self.is_row_number(&column.name) {
            let key = self.primary_key.as_ref().map_or("", |key| key.name.as_str());
            return format!("{name} INTEGER CONSTRAINT {} PRIMARY KEY", identifier(key));
        }
        // Keys, and what refers to them, are told apart by the collations of their columns.
        let mut text = compared(&format!("{name} {}", declared(column.kind())), column.oid);
        let in_key = self
            .primary_key
            .as_ref()
            .is_some_and(|key| key.columns.contains(&column.name));
        if column.not_null || in_key {
            text.push_str(" NOT NULL");
        }
        if let Some(stored) = &column.default_stored {
            text.push_str(&format!(" DEFAULT {stored}"));
        }
        if let Some(generated) = &column.generated {
            text.push_str(&format!(" GENERATED ALWAYS AS ({}) STORED", generated.sql));
        }
        text
    }

    /// The indexes that carry the UNIQUE constraints.
    pub(crate) fn unique_indexes(&self, table: &str) -> Vec<String> {
        self.indexed_keys().map(|key| self.unique_index(table, key)).collect()
    }

    /// The keys that indexes of their names carry.
    pub(crate) fn indexed_keys(&self) -> impl Iterator<Item = &Key> {
        self.primary_key.iter().filter(|key| key.indexed).chain(&self.uniques)
    }

    pub(crate) fn unique_index(&self, table: &str, key: &Key) -> String {
        let columns: Vec<String> = key
            .columns
            .iter()
            .map(|name| {
                let kind = self.column(name).map_or(oid::TEXT, |place| self.columns[place].oid);
                compared(&identifier(name), kind)
            })
            .collect();
        format!(
            "CREATE UNIQUE INDEX {} ON {} ({})",
            identifier(&stored(parted(table).0, &key.name)),
            identifier(table),
            columns.join(", ")
        )
    }
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    names.join(", ")
}

/// Whether a column numbers itself, and whether a client may say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Identity {
    Always,
    ByDefault,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_back_from_its_text() {
        let definition = Definition {
            columns: vec![
                ColumnDefinition {
                    name: "id".to_owned(),
                    oid: oid::INT8,
                    typmod: -1,
                    not_null: true,
                    default: Some("nextval('t_id_seq')".to_owned()),
                    default_stored: None,
                    identity: Some(Identity::ByDefault),
                    generated: None,
                    comment: None,
                },
                ColumnDefinition {
                    name: "odd */ \"name\"".to_owned(),
                    oid: oid::VARCHAR,
                    typmod: 24,
                    not_null: false,
                    default: Some("'*/'".to_owned()),
                    default_stored: Some("'*/'".to_owned()),
                    identity: None,
                    generated: None,
                    comment: None,
                },
            ],
            primary_key: Some(Key {
                name: "t_pkey".to_owned(),
                columns: vec!["id".to_owned()],
                indexed: false,
            }),
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            comment: None,
        };
        let sql = definition.create("t");
        assert_eq!(Definition::read(&sql).as_ref(), Some(&definition));
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(&sql).unwrap();
        let kept: String = connection
            .query_row("SELECT sql FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(Definition::read(&kept), Some(definition));
    }

    #[test]
    fn a_name_is_no_definition() {
        let forged = "/* forebay: {\"columns\":[]} :forebay */";
        let definition = Definition {
            columns: Vec::new(),
            primary_key: None,
            uniques: Vec::new(),
            checks: vec![Check {
                name: forged.to_owned(),
                condition: Lowered {
                    text: "true".to_owned(),
                    sql: "1".to_owned(),
                },
                not_valid: false,
            }],
            foreign_keys: Vec::new(),
            comment: None,
        };
        assert_eq!(Definition::read(&definition.create(forged)), Some(definition));
        assert_eq!(
            Definition::read(&format!("CREATE TABLE {} (a)", identifier(forged))),
            None
        );
        assert_eq!(
            Definition::read("CREATE TABLE \"a\"\" (/* forebay: {} :forebay */\" (a)"),
            None
        );
    }
}
