//! Statements that define: tables, indexes, views, sequences.
//!
//! Promises: a definition is kept as PostgreSQL reads it, with the names that PostgreSQL would choose for what was given none; what SQLite cannot
//! keep is refused by name. One statement may take several steps, which are one transaction.
//!
//! Each kind has its file: [`table`](super::table), [`constraint`](super::constraint), [`index`](super::index), [`view`](super::view),
//! [`sequence`](super::sequence), [`create_schema`](super::create_schema), [`drop`](super::drop), [`alter`](super::alter).

use forebay_sqlite::connection::SchemaEdit;
use sqlparser::ast::{CommentObject, ObjectName, ObjectNamePart, Statement as Tree};

use super::carry_out::unchanged;
use super::compiler::Compiler;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{SCHEMAS, schemas, unfold_names};
use super::plan::{Step, steps_of};
use super::sequence::{SEQUENCES, owner_of};
use super::syntax::folded;
use super::types;
use crate::sql::facts::oid;

/// Extensions that every database has. Of what they bring `gen_random_uuid()` and `uuid_generate_v4()` are there, and the rest is refused
/// by name.
const EXTENSIONS: [&str; 3] = ["pgcrypto", "plpgsql", "uuid-ossp"];

impl Compiler<'_> {
    pub(super) fn define(&mut self, tree: &Tree) -> Result<Vec<Step>> {
        let mut steps = self.definition_steps(tree).map_err(|fault| self.as_told(fault))?;
        if !self.notices.is_empty() {
            let schemas = schemas(self.schema.connection()).map_err(unreadable)?;
            for notice in &mut self.notices {
                unfold_names(notice, &schemas);
            }
        }
        // The tables of sequences and of schemas are made with the first one.
        for (name, made) in [("forebay_sequence", SEQUENCES), ("forebay_schema", SCHEMAS)] {
            let mut there = self.kind_of(name)?.is_some();
            steps.retain(|step| {
                !matches!(step, Step::Run { sql, .. } if **sql == *made) || !std::mem::replace(&mut there, true)
            });
        }
        Ok(steps)
    }

    fn definition_steps(&mut self, tree: &Tree) -> Result<Vec<Step>> {
        match tree {
            Tree::CreateTable(table) => self.create_table(table).map(steps_of),
            Tree::CreateIndex(index) => self.create_index(index).map(steps_of),
            Tree::CreateView(view) => self.create_view(view).map(steps_of),
            Tree::CreateSequence {
                temporary: false,
                if_not_exists,
                name,
                data_type,
                sequence_options,
                owned_by,
            } => {
                let name = self.name_to_create(name)?;
                if let Some(steps) = self.exists_already(&name, *if_not_exists)? {
                    return Ok(steps_of(steps));
                }
                let kind = match data_type {
                    Some(kind) => types::resolve(kind)?.oid,
                    None => oid::INT8,
                };
                let mut sequence = self.sequence(name, kind, sequence_options)?;
                if let Some(owner) = owned_by {
                    sequence.owner = owner_of(owner);
                }
                sequence.steps().map(steps_of)
            }
            Tree::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                purge: false,
                temporary: false,
                table: None,
                ..
            } => self.drop(object_type, *if_exists, names, *cascade),
            Tree::Truncate(truncate) => self.truncate(truncate),
            Tree::AlterTable(alter) => self.alter_table(alter),
            Tree::AlterIndex { name, operation } => self.alter_index(name, operation),
            Tree::CreateSchema {
                schema_name,
                if_not_exists,
                ..
            } => self.create_schema(schema_name, *if_not_exists),
            Tree::Comment {
                object_type,
                object_name,
                comment,
                if_exists: false,
            } => self.comment(object_type, object_name, comment.as_deref()),
            Tree::Lock(lock) => {
                self.lock_tables(lock)?;
                Ok(Vec::new())
            }
            Tree::CreateExtension(extension) => {
                let name = folded(&extension.name);
                if !EXTENSIONS.contains(&name.as_str()) {
                    return Err(Fault::new("0A000", format!("extension \"{name}\" is not available")));
                }
                let exists = format!("extension \"{name}\" already exists");
                if !extension.if_not_exists {
                    return Err(Fault::new("42710", exists));
                }
                self.notices.push(format!("{exists}, skipping"));
                Ok(Vec::new())
            }
            Tree::DropExtension(extensions) => {
                for name in extensions.names.iter().map(folded) {
                    let missing = format!("extension \"{name}\" does not exist");
                    if EXTENSIONS.contains(&name.as_str()) {
                        return Err(Fault::unsupported(format!("DROP EXTENSION \"{name}\""))
                            .with_hint("What there is of it is built in."));
                    }
                    if !extensions.if_exists {
                        return Err(Fault::new("42704", missing));
                    }
                    self.notices.push(format!("{missing}, skipping"));
                }
                Ok(Vec::new())
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Fault::unsupported(words.join(" ").to_uppercase()))
            }
        }
    }

    /// COMMENT ON a table or a column: kept in the table's definition. An empty one is none.
    fn comment(&mut self, kind: &CommentObject, name: &ObjectName, text: Option<&str>) -> Result<Vec<Step>> {
        let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (mut name, column) = match kind {
            CommentObject::Table => (name.clone(), None),
            CommentObject::Column => {
                let mut parts = name.0.clone();
                match parts.pop() {
                    Some(ObjectNamePart::Identifier(column)) if !parts.is_empty() => {
                        (ObjectName(parts), Some(folded(&column)))
                    }
                    _ => return Err(Fault::new("42601", "column name must be qualified")),
                }
            }
            other => return Err(Fault::unsupported(format!("COMMENT ON {other}"))),
        };
        // The database may be said too.
        if name.0.len() == 3
            && matches!(&name.0[0], ObjectNamePart::Identifier(first) if folded(first) == self.session.database)
        {
            name.0.remove(0);
        }
        self.refuse_missing_schema(&name)?;
        let table = self.table(&name)?;
        if table.view.is_some() || table.foreign_view {
            if column.is_some() {
                return Err(Fault::unsupported("COMMENT ON COLUMN of a view"));
            }
            return Err(Fault::new("42809", format!("\"{}\" is not a table", table.shown())));
        }
        let mut alteration = self.alteration(&table)?;
        let definition = &mut alteration.new;
        match column {
            None => definition.comment = text,
            Some(column) => {
                let place = definition.column(&column).ok_or_else(|| {
                    Fault::new(
                        "42703",
                        format!("column \"{column}\" of relation \"{}\" does not exist", table.shown()),
                    )
                })?;
                definition.columns[place].comment = text;
            }
        }
        Ok(vec![
            unchanged(&table.name, &alteration.text),
            Step::Edit(SchemaEdit::TableText {
                sql: alteration.new.create(&table.name),
                table: table.name.clone(),
            }),
        ])
    }
}
