//! Sequences: where they are kept, and the steps that make one.
//!
//! Contract: a sequence has the bounds that PostgreSQL gives it, or is its error.

use sqlparser::ast::{Expr, ObjectName, SequenceOptions};

use super::define::{identifier_if_needed, steps_of};
use super::fault::{Fault, Result};
use super::namespace::refuse_separator;
use super::scalar::{Form, quoted};
use super::scope::Scope;
use super::{Compiler, Step, folded};
use crate::sql::facts::{self, Context, Oid, oid};

/// Where sequences are kept.
pub(crate) const SEQUENCES: &str = "CREATE TABLE \"forebay_sequence\" (name TEXT PRIMARY KEY, kind TEXT NOT NULL, \
     start INTEGER NOT NULL, increment INTEGER NOT NULL, minimum INTEGER NOT NULL, maximum INTEGER NOT NULL, \
     cycle INTEGER NOT NULL, last INTEGER NOT NULL, called INTEGER NOT NULL, owner_table TEXT, owner_column TEXT)";

/// A sequence to be made.
pub(super) struct Sequence {
    pub(super) name: String,
    kind: Oid,
    start: Option<i64>,
    increment: i64,
    minimum: Option<i64>,
    maximum: Option<i64>,
    cycle: bool,
    pub(super) owner: Option<(String, String)>,
}

impl Compiler<'_> {
    pub(super) fn owned_sequence(
        &mut self,
        table: &str,
        column: &str,
        kind: Oid,
        options: &[SequenceOptions],
    ) -> Result<Sequence> {
        refuse_separator(column)?;
        let mut name = format!("{table}_{column}_seq");
        let mut number = 0;
        while self.is_taken(&name)? {
            number += 1;
            name = format!("{table}_{column}_seq{number}");
        }
        let mut sequence = self.sequence(name, kind, options)?;
        sequence.owner = Some((table.to_owned(), column.to_owned()));
        Ok(sequence)
    }

    /// A sequence for a column that is there already: the column's default, and the steps that make it.
    pub(super) fn numbering(
        &mut self,
        table: &str,
        column: &str,
        kind: Oid,
        options: &[SequenceOptions],
    ) -> Result<(String, Vec<Step>)> {
        let made = self.owned_sequence(table, column, kind, options)?;
        let default = format!("nextval({})", quoted(&identifier_if_needed(&made.name)));
        Ok((default, steps_of(made.steps()?)))
    }

    pub(super) fn sequence(&mut self, name: String, kind: Oid, options: &[SequenceOptions]) -> Result<Sequence> {
        let mut sequence = Sequence {
            name,
            kind,
            start: None,
            increment: 1,
            minimum: None,
            maximum: None,
            cycle: false,
            owner: None,
        };
        for option in options {
            match option {
                SequenceOptions::IncrementBy(value, _) => sequence.increment = self.whole_number(value)?,
                SequenceOptions::MinValue(value) => {
                    sequence.minimum = value.as_ref().map(|value| self.whole_number(value)).transpose()?;
                }
                SequenceOptions::MaxValue(value) => {
                    sequence.maximum = value.as_ref().map(|value| self.whole_number(value)).transpose()?;
                }
                SequenceOptions::StartWith(value, _) => sequence.start = Some(self.whole_number(value)?),
                SequenceOptions::Cache(_) => {}
                SequenceOptions::Cycle(no) => sequence.cycle = !no,
            }
        }
        if sequence.increment == 0 {
            return Err(Fault::new("22023", "INCREMENT must not be zero"));
        }
        Ok(sequence)
    }

    fn whole_number(&mut self, expression: &Expr) -> Result<i64> {
        let scope = Scope::new(None);
        let scalar = self.expression(expression, &scope)?;
        let scalar = self.convert_type(scalar, oid::INT8, Context::Implicit)?;
        match (scalar.form, scalar.sql.parse()) {
            (Form::Constant(forebay_pg_values::Owned::Integer(number)), _) | (_, Ok(number)) => Ok(number),
            _ => Err(Fault::new("42601", "a sequence's option must be a number")),
        }
    }
}

impl Sequence {
    /// The steps that make it.
    pub(super) fn steps(self) -> Result<Vec<String>> {
        let (low, high) = match self.kind {
            oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            oid::INT8 => (i64::MIN, i64::MAX),
            _ => {
                return Err(Fault::new(
                    "22023",
                    "sequence type must be smallint, integer, or bigint",
                ));
            }
        };
        let ascending = self.increment > 0;
        let minimum = self.minimum.unwrap_or(if ascending { 1 } else { low });
        let maximum = self.maximum.unwrap_or(if ascending { high } else { -1 });
        if minimum < low || maximum > high || minimum >= maximum {
            return Err(Fault::new(
                "22023",
                format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"),
            ));
        }
        let start = self.start.unwrap_or(if ascending { minimum } else { maximum });
        if start < minimum {
            return Err(Fault::new(
                "22023",
                format!("START value ({start}) cannot be less than MINVALUE ({minimum})"),
            ));
        }
        if start > maximum {
            return Err(Fault::new(
                "22023",
                format!("START value ({start}) cannot be greater than MAXVALUE ({maximum})"),
            ));
        }
        let (table, column) = match &self.owner {
            Some((table, column)) => (quoted(table), quoted(column)),
            None => ("NULL".to_owned(), "NULL".to_owned()),
        };
        let number = |number: i64| super::scalar::literal(&forebay_pg_values::Owned::Integer(number), oid::INT8);
        Ok(vec![
            SEQUENCES.to_owned(),
            format!(
                "INSERT INTO \"forebay_sequence\" VALUES ({}, {}, {}, {}, {}, {}, {}, {}, 0, {table}, {column})",
                quoted(&self.name),
                quoted(&facts::display_name(self.kind)),
                number(start),
                number(self.increment),
                number(minimum),
                number(maximum),
                i64::from(self.cycle),
                number(start)
            ),
            format!("SELECT \"forebay_forget_sequence\"({})", quoted(&self.name)),
        ])
    }
}

pub(super) fn owner_of(owner: &ObjectName) -> Option<(String, String)> {
    let parts: Vec<String> = owner
        .0
        .iter()
        .filter_map(|part| match part {
            sqlparser::ast::ObjectNamePart::Identifier(name) => Some(folded(name)),
            sqlparser::ast::ObjectNamePart::Function(_) => None,
        })
        .collect();
    match parts.as_slice() {
        [.., table, column] => Some((table.clone(), column.clone())),
        _ => None,
    }
}

/// Sequences that go with a table.
pub(super) fn owned_sequences(connection: &rusqlite::Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let there: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence')",
        [],
        |row| row.get(0),
    )?;
    if !there {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT name FROM forebay_sequence WHERE owner_table = ?1")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}
