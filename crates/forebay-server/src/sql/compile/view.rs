//! CREATE VIEW, and what depends on views.
//!
//! Contract: a view is kept in both languages; what it reads is not dropped under it.

use sqlparser::ast::{CreateView, ObjectName};

use super::define::{plain_name, refuse_session, unreadable};
use super::fault::{Fault, Result};
use super::query::ResultColumn;
use super::scalar::identifier;
use super::schema::marked_view_text;
use super::types;
use super::{Compiler, folded};

impl Compiler<'_> {
    pub(super) fn create_view(&mut self, view: &CreateView) -> Result<Vec<String>> {
        if view.materialized || view.temporary {
            return Err(Fault::unsupported("a materialized or temporary view"));
        }
        let name = plain_name(&view.name)?;
        let mut steps = Vec::new();
        if self.is_taken(&name)? {
            let existing = self
                .schema
                .table(&name)
                .map_err(unreadable)?
                .is_some_and(|table| table.view.is_some() || table.foreign_view);
            if !view.or_replace || !existing {
                return Err(Fault::new("42P07", format!("relation \"{name}\" already exists")));
            }
            steps.push(format!("DROP VIEW {}", identifier(&name)));
        }
        self.fixed_parameters = true;
        let compiled = self.query(&view.query, None, None)?;
        self.fixed_parameters = false;
        refuse_session(&compiled.sql, "a view")?;
        let mut columns: Vec<ResultColumn> = compiled.columns;
        let names: Vec<String> = view.columns.iter().map(|column| folded(&column.name)).collect();
        super::query::rename(&mut columns, &names, &name)?;
        if let Some(text) = self
            .schema
            .table(&name)
            .map_err(unreadable)?
            .and_then(|table| table.view.clone())
        {
            let known = self.schema.table(&name).map_err(unreadable)?;
            let known_names: Vec<String> = known
                .map(|table| table.columns.iter().map(|column| column.name.clone()).collect())
                .unwrap_or_default();
            let before = self.view(&text)?.columns;
            if columns.len() < before.len() {
                return Err(Fault::new("42P16", "cannot drop columns from view"));
            }
            for ((old, old_name), new) in before.iter().zip(&known_names).zip(&columns) {
                if *old_name != new.name {
                    return Err(Fault::new(
                        "42P16",
                        format!("cannot change name of view column \"{old_name}\" to \"{}\"", new.name),
                    )
                    .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
                }
                if old.kind != new.kind {
                    return Err(Fault::new(
                        "42P16",
                        format!(
                            "cannot change data type of view column \"{old_name}\" from {} to {}",
                            types::format_type(old.kind.oid, old.kind.typmod),
                            types::format_type(new.kind.oid, new.kind.typmod)
                        ),
                    ));
                }
            }
        }
        let list: Vec<String> = columns.iter().map(|column| identifier(&column.name)).collect();
        steps.push(format!(
            "CREATE VIEW {} ({}) AS {} {}",
            identifier(&name),
            list.join(", "),
            marked_view_text(&view.query.to_string()),
            compiled.sql
        ));
        Ok(steps)
    }

    /// Views read tables by their text: one that is left behind would be broken.
    pub(super) fn refuse_dependent_views(&mut self, name: &str, together: &[ObjectName], cascade: bool) -> Result<()> {
        let views: Vec<String> = (|| -> rusqlite::Result<Vec<String>> {
            let mut statement = self.schema.connection().prepare_cached(
                "SELECT name FROM sqlite_schema WHERE type = 'view' AND name <> ?1 AND instr(sql, '\"' || ?1 || '\" AS') > 0",
            )?;
            statement.query_map([name], |row| row.get(0))?.collect()
        })()
        .map_err(unreadable)?;
        let gone: Vec<String> = together.iter().filter_map(|name| plain_name(name).ok()).collect();
        match views.iter().find(|view| !gone.contains(view)) {
            None => Ok(()),
            Some(view) if cascade => {
                Err(Fault::unsupported(format!("CASCADE to the view \"{view}\"")).with_hint("Drop the view first."))
            }
            Some(view) => Err(Fault::new(
                "2BP01",
                format!("cannot drop table {name} because other objects depend on it"),
            )
            .with_detail(format!("view {view} depends on table {name}"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")),
        }
    }
}
