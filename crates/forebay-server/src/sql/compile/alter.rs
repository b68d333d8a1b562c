//! ALTER TABLE.
//!
//! Contract: the definition is changed in PostgreSQL's terms, and SQLite's text of the table follows from it.

use sqlparser::ast::AlterTable;

use super::Compiler;
use super::fault::{Fault, Result};

impl Compiler<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<Vec<String>> {
        Err(Fault::unsupported(format!("ALTER TABLE {}", alter.name)))
    }

    /// Takes away what refers to a table that is dropped with CASCADE.
    pub(super) fn drop_foreign_keys_to(&mut self, table: &str, referred: &str) -> Result<Vec<String>> {
        Err(Fault::unsupported(format!(
            "CASCADE to the foreign keys of \"{table}\" that refer to \"{referred}\""
        )))
    }
}
