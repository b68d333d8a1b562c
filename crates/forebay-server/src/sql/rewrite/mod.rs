//! Carries PostgreSQL's spellings over into SQLite's SQL.
//!
//! Contract: a statement that needs nothing of it keeps its text byte for byte. One that is changed is written out again from its
//! tree, and that text must parse back into the same tree.

use super::error::SqlError;
use super::split::{Segment, starts_trigger};
use super::{Environment, Statement, grammar};

/// Fills in the tree, and what SQLite gets.
pub(crate) fn rewrite(
    statement: &mut Statement,
    script: &str,
    segment: &Segment,
    _environment: &Environment<'_>,
) -> Result<(), SqlError> {
    grammar::check_depth(script, &segment.tokens)?;
    if starts_trigger(script, &segment.tokens) {
        return Ok(());
    }
    statement.tree = grammar::parse(&statement.sql)?.map(Into::into);
    Ok(())
}
