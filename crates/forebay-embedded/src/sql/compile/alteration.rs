//! What becomes of a table: its definition before and after, and what that takes.
//!
//! [`alter`](super::alter) finds out what is to change, and [`carry_out`](super::carry_out) makes steps of it. Knows no syntax.

use std::collections::HashMap;

use super::compiler::Compiler;
use super::definition::Definition;
use super::fault::{Fault, Result};
use super::plan::Step;
use super::schema::Table;

/// Where rows are copied to, and where they came from: there only within one statement.
pub(super) const COPY: &str = "forebay_altered";
pub(super) const OLD: &str = "forebay_replaced";

/// What becomes of a table.
pub(super) struct Alteration {
    pub(super) table: String,
    /// SQLite's text of it when the statement was compiled.
    pub(super) text: String,
    pub(super) old: Definition,
    pub(super) new: Definition,
    /// SQLite's expressions of columns that are not copied as they are.
    pub(super) values: HashMap<String, String>,
    /// Columns whose type is another one now.
    pub(super) retyped: Vec<String>,
    pub(super) copies: bool,
    /// Views that go with a column.
    pub(super) views_gone: Vec<String>,
    pub(super) first: Vec<Step>,
    pub(super) last: Vec<Step>,
}

impl Compiler<'_> {
    pub(super) fn alteration(&mut self, table: &Table) -> Result<Alteration> {
        let Some(definition) = Definition::read(&table.definition) else {
            return Err(Fault::unsupported(format!(
                "ALTER TABLE of \"{}\", which something else has made",
                table.name
            )));
        };
        Ok(Alteration {
            table: table.name.clone(),
            text: table.definition.clone(),
            old: definition.clone(),
            new: definition,
            values: HashMap::new(),
            retyped: Vec::new(),
            copies: false,
            views_gone: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
        })
    }
}
