//! CREATE VIEW, and what depends on views.
//!
//! Promises: a view is kept in both languages, with each `*` written out. What it reads is not dropped under it, and no table is changed in a way
//! that would give its text another meaning.

use std::collections::HashSet;
use std::rc::Rc;

use sqlparser::ast::{
    CreateView, Expr, Ident, Query, Select, SelectItem, Statement as Tree, WildcardAdditionalOptions,
};

use super::body::{Compiled, rename};
use super::compiler::Compiler;
use super::definition::Definition;
use super::fault::{Fault, Result, unreadable};
use super::frozen::freeze;
use super::plan::{ResultColumn, Step};
use super::recorded::{Read, Recorded, Stars};
use super::schema::{Table, marked_view_text, view_text};
use super::scope::Starred;
use super::sqlite_text::{identifier, refuse_session, relation_name};
use super::syntax::folded;
use super::types;
use crate::sql::grammar;
use crate::sql::walk::change_selects;

impl Compiler<'_> {
    pub(super) fn create_view(&mut self, view: &CreateView) -> Result<Vec<String>> {
        if view.materialized || view.temporary {
            return Err(Fault::unsupported("a materialized or temporary view"));
        }
        let name = self.name_to_create(&view.name)?;
        // Where nothing is looked up, each name says its schema, and means the same under any path.
        if !self.path()?.is_empty() {
            self.refuse_other_path("CREATE VIEW")?;
        }
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
        self.recorded = Some(Recorded::default());
        let compiled = self.with_literals(|compiler| compiler.query(&view.query, None, None));
        let recorded = self.recorded.take().unwrap_or_default();
        let (compiled, literals) = compiled?;
        self.fixed_parameters = false;
        refuse_session(&compiled.sql, "a view")?;
        let mut query = view.query.clone();
        freeze(&mut query, &literals);
        let text = self.without_stars(&query, &recorded.stars, &compiled.columns)?;
        let mut columns = compiled.columns;
        let names: Vec<String> = view.columns.iter().map(|column| folded(&column.name)).collect();
        rename(&mut columns, &names, &name)?;
        let mut seen = HashSet::new();
        if let Some(twice) = columns.iter().find(|column| !seen.insert(&column.name)) {
            return Err(Fault::new(
                "42701",
                format!("column \"{}\" specified more than once", twice.name),
            ));
        }
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
            marked_view_text(&text),
            compiled.sql
        ));
        Ok(steps)
    }

    /// Keeps which columns a `*` stands for, while a view is looked at.
    pub(super) fn record_star(&mut self, written: &WildcardAdditionalOptions, columns: &[Starred]) {
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        let place = written.wildcard_token.0.span.start;
        let names = columns
            .iter()
            .map(|column| (column.relation.clone(), column.name.clone()));
        recorded.stars.insert((place.line, place.column), names.collect());
    }

    /// Keeps that the relation named last is this one, while a view is looked at. `held`: its columns' names in SQLite's text.
    pub(super) fn record_read(&mut self, table: &Table, held: &[String]) {
        let own = relation_name(self.names);
        if let Some(recorded) = &mut self.recorded {
            let columns = table.columns.iter().zip(held);
            recorded.reads.push(Read {
                relation: table.name.clone(),
                columns: columns
                    .map(|(column, held)| (column.name.clone(), format!("{own}.{held}")))
                    .collect(),
            });
        }
    }

    /// The text of a view's query with each `*` written out: what is added to a table later is no part of it.
    fn without_stars(&mut self, query: &Query, stars: &Stars, columns: &[ResultColumn]) -> Result<String> {
        if stars.is_empty() {
            return Ok(query.to_string());
        }
        let mut query = query.clone();
        change_selects(&mut query, |select| write_out(select, stars));
        let text = query.to_string();
        // Two columns of one name behind one name of a table cannot be told apart in a text.
        let same = self.view(&text).is_ok_and(|compiled| {
            let before = columns.iter().map(|column| (&column.name, column.kind));
            compiled
                .columns
                .iter()
                .map(|column| (&column.name, column.kind))
                .eq(before)
        });
        if same {
            Ok(text)
        } else {
            Err(Fault::unsupported("this * in a view").with_hint("Name the columns."))
        }
    }

    /// All views, in the order in which they were made, with SQLite's text and, if a client made it, PostgreSQL's.
    fn views(&mut self) -> Result<Vec<View>> {
        (|| -> rusqlite::Result<_> {
            let mut statement = self
                .schema
                .connection()
                .prepare_cached("SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY rowid")?;
            statement
                .query_map([], |row| {
                    let sql: String = row.get(1)?;
                    Ok(View {
                        name: row.get(0)?,
                        text: view_text(&sql),
                        sql,
                    })
                })?
                .collect()
        })()
        .map_err(unreadable)
    }

    /// Whether a view reads a relation by its name, or a column of it. One that cannot be understood reads whatever it names.
    fn reads(&mut self, view: &View, relation: &str, column: Option<&str>) -> bool {
        let compiled = view.text.as_ref().and_then(|text| {
            let names = std::mem::take(&mut self.names);
            let found = self.recorded_view(text).ok();
            self.names = names;
            found
        });
        let Some((compiled, reads)) = compiled else {
            let sql = view.sql.to_lowercase();
            return sql.contains(&relation.to_lowercase())
                && column.is_none_or(|column| sql.contains(&column.to_lowercase()));
        };
        reads.iter().filter(|read| read.relation == relation).any(|read| {
            let mut columns = read.columns.iter();
            column
                .is_none_or(|wanted| columns.any(|(name, held)| name == wanted && compiled.sql.contains(held.as_str())))
        })
    }

    fn recorded_view(&mut self, text: &str) -> Result<(Compiled, Vec<Read>)> {
        let Ok(Some(Tree::Query(query))) = grammar::parse(text) else {
            return Err(Fault::new("XX001", "the text of a view in the file cannot be read"));
        };
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        self.recorded = Some(Recorded::default());
        let compiled = self.query(&query, None, None);
        self.fixed_parameters = fixed;
        let recorded = self.recorded.take().unwrap_or_default();
        Ok((compiled?, recorded.reads))
    }

    /// The views that read a relation, or a column of it, and those that read them, in the order in which PostgreSQL names them: each with
    /// what it depends on, in words. Those that go anyway are not among them.
    pub(super) fn dependent_views(
        &mut self,
        relation: &str,
        column: Option<&str>,
        gone: &[String],
    ) -> Result<Vec<Dependent>> {
        let views = self.views()?;
        let is_view = views.iter().any(|view| view.name == relation);
        let on = match column {
            Some(column) => format!("column {column} of table {relation}"),
            None if is_view => format!("view {relation}"),
            None => format!("table {relation}"),
        };
        let mut found = Vec::new();
        self.collect_dependents(&views, relation, column, &on, gone, &mut found);
        Ok(found)
    }

    fn collect_dependents(
        &mut self,
        views: &[View],
        relation: &str,
        column: Option<&str>,
        on: &str,
        gone: &[String],
        found: &mut Vec<Dependent>,
    ) {
        for view in views {
            let known = view.name == relation
                || gone.contains(&view.name)
                || found.iter().any(|known| known.view() == Some(&view.name));
            if known || !self.reads(view, relation, column) {
                continue;
            }
            let what = format!("view {}", view.name);
            found.push(Dependent {
                what: what.clone(),
                on: on.to_owned(),
            });
            self.collect_dependents(views, &view.name, None, &what, gone, found);
        }
    }

    /// Refuses a change of a table by which a view that is there, and stays, would mean something else: its text is read anew.
    pub(super) fn refuse_other_meaning(&mut self, table: &str, new: &Definition, gone: &[String]) -> Result<()> {
        let views = self.views()?;
        let kept = views.iter().filter(|view| !gone.contains(&view.name));
        let texts: Vec<(&String, &String)> = kept
            .filter_map(|view| Some((&view.name, view.text.as_ref()?)))
            .collect();
        if texts.is_empty() {
            return Ok(());
        }
        let Some(before) = self.schema.table(table).map_err(unreadable)? else {
            return Ok(());
        };
        let meaning = |compiler: &mut Self, text: &str| {
            let names = std::mem::take(&mut compiler.names);
            let compiled = compiler.view(text).ok();
            compiler.names = names;
            compiled.map(|compiled| (compiled.sql, compiled.columns))
        };
        let old: Vec<_> = texts.iter().map(|(_, text)| meaning(self, text)).collect();
        self.schema.suppose(table, Some(Rc::new(before.redefined(new))));
        let new: Vec<_> = texts.iter().map(|(_, text)| meaning(self, text)).collect();
        self.schema.suppose(table, Some(before));
        for (((view, _), old), new) in texts.iter().zip(old).zip(new) {
            let same = match (old, new) {
                (Some((old, columns)), Some((new, others))) => {
                    let kinds = |columns: &[ResultColumn]| columns.iter().map(|column| column.kind).collect::<Vec<_>>();
                    old == new && kinds(&columns) == kinds(&others)
                }
                (None, _) => true,
                (Some(_), None) => false,
            };
            if !same {
                return Err(Fault::unsupported(format!(
                    "a change of the columns of \"{table}\" by which the view \"{view}\" would mean something else"
                ))
                .with_hint("Drop the view first, and create it again."));
            }
        }
        Ok(())
    }

    /// The query of a view, from PostgreSQL's text of it.
    pub(super) fn view(&mut self, text: &str) -> Result<Compiled> {
        let Ok(Some(Tree::Query(query))) = grammar::parse(text) else {
            return Err(Fault::new("XX001", "the text of a view in the file cannot be read"));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        let public_only = std::mem::replace(&mut self.public_only, true);
        let parameters = std::mem::take(&mut self.parameters);
        let recorded = self.recorded.take();
        let literals = self.literals.take();
        let compiled = self.query(&query, None, None);
        self.public_only = public_only;
        self.recorded = recorded;
        self.literals = literals;
        self.parameters = parameters;
        self.fixed_parameters = fixed;
        self.ctes = ctes;
        compiled
    }
}

struct View {
    name: String,
    text: Option<String>,
    sql: String,
}

/// What depends on something else, both in PostgreSQL's words.
pub(super) struct Dependent {
    pub(super) what: String,
    pub(super) on: String,
}

impl Dependent {
    /// PostgreSQL's line about it.
    pub(super) fn line(&self) -> String {
        format!("{} depends on {}", self.what, self.on)
    }

    /// The view that it is, if it is one.
    pub(super) fn view(&self) -> Option<&str> {
        self.what.strip_prefix("view ")
    }
}

/// Drops a view that goes with what it depends on.
pub(super) fn drop_view(dependent: &Dependent) -> Step {
    format!("DROP VIEW {}", identifier(dependent.view().unwrap_or_default())).into()
}

/// Writes out each `*`.
fn write_out(select: &mut Select, stars: &Stars) {
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = &item else {
            items.push(item);
            continue;
        };
        let place = options.wildcard_token.0.span.start;
        let Some(columns) = stars.get(&(place.line, place.column)) else {
            items.push(item);
            continue;
        };
        items.extend(columns.iter().map(|(relation, name)| {
            let name = Ident::with_quote('"', name);
            SelectItem::UnnamedExpr(match relation {
                Some(relation) => Expr::CompoundIdentifier(vec![Ident::with_quote('"', relation), name]),
                None => Expr::Identifier(name),
            })
        }));
    }
    select.projection = items;
}
