//! Sequences: where they are kept, and the steps that create or alter one.
//!
//! Promises: a sequence has the bounds that PostgreSQL gives it, or the statement is PostgreSQL's error.

use rusqlite::OptionalExtension;
use sqlparser::ast::{Expr, ObjectName, ObjectNamePart, SequenceOptions};

use super::compiler::Compiler;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{parted, quote_relation, refuse_separator, shown};
use super::plan::{Plan, Step, steps_of};
use super::scalar::Form;
use super::scope::Scope;
use super::sqlite_text::{literal, quoted};
use super::syntax::folded;
use crate::sql::alter_sequence::{AlterSequence, Owner};
use crate::sql::environment::Environment;
use crate::sql::facts::{self, Context, Oid, oid};
use crate::sql::functions::sequence_bounds;

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
        let name = self.free_name(table, column, "seq")?;
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
        let default = format!("nextval({})", quoted(&quote_relation(&made.name)));
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
                SequenceOptions::Cache(value) => match self.whole_number(value)? {
                    1 => {}
                    cache if cache < 1 => {
                        return Err(Fault::new(
                            "22023",
                            format!("CACHE ({cache}) must be greater than zero"),
                        ));
                    }
                    _ => return Err(Fault::unsupported("CACHE of more than one number of a sequence")),
                },
                SequenceOptions::Cycle(no) => sequence.cycle = !no,
            }
        }
        if sequence.increment == 0 {
            return Err(Fault::new("22023", "INCREMENT must not be zero"));
        }
        Ok(sequence)
    }

    /// ALTER SEQUENCE: its numbers are looked at where the step runs.
    fn alter_sequence(&mut self, alter: &AlterSequence) -> Result<Vec<Step>> {
        let name = self.name_of(&alter.name)?;
        match self.kind_of(&name)?.as_deref() {
            Some("sequence") => {}
            Some(_) => return Err(Fault::new("42809", format!("\"{}\" is not a sequence", shown(&name)))),
            None => {
                let written = alter.name.0.iter().map(|part| match part {
                    ObjectNamePart::Identifier(name) => name.value.as_str(),
                    ObjectNamePart::Function(_) => "",
                });
                let missing = format!("relation \"{}\" does not exist", written.collect::<Vec<_>>().join("."));
                if !alter.if_exists {
                    return Err(Fault::new("42P01", missing));
                }
                self.notices.push(format!("{missing}, skipping"));
                return Ok(Vec::new());
            }
        }
        let mut change = alter.change.clone();
        if let Some(kind) = &alter.kind {
            let oid = match kind.as_str() {
                "smallint" => oid::INT2,
                "int" | "integer" => oid::INT4,
                "bigint" => oid::INT8,
                other => facts::type_named(other)
                    .ok_or_else(|| Fault::new("42704", format!("type \"{other}\" does not exist")))?,
            };
            change.kind = Some(kind_name(oid)?);
        }
        if let Some(owner) = &alter.owner {
            change.owner = Some(self.new_owner(&name, owner)?);
        }
        let change = serde_json::to_string(&change)
            .map_err(|error| Fault::new("XX000", format!("a change of a sequence cannot be written: {error}")))?;
        Ok(steps_of(vec![format!(
            "SELECT \"forebay_alter_sequence\"({}, {})",
            quoted(&name),
            quoted(&change)
        )]))
    }

    /// The table and the column that a sequence is to go with.
    fn new_owner(&mut self, sequence: &str, owner: &Owner) -> Result<Option<(String, String)>> {
        let owned: Option<(String, String)> = self
            .schema
            .connection()
            .query_row(
                "SELECT owner_table, owner_column FROM forebay_sequence WHERE name = ?1 AND owner_table IS NOT NULL",
                [sequence],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(unreadable)?;
        let new = match owner {
            Owner::Nobody => None,
            Owner::Column { table, column } => {
                let table = self.table(table)?;
                if parted(&table.name).0 != parted(sequence).0 {
                    return Err(Fault::new(
                        "55000",
                        "sequence must be in same schema as table it is linked to",
                    ));
                }
                if table.column(column).is_none() {
                    return Err(Fault::new(
                        "42703",
                        format!("column \"{column}\" of relation \"{}\" does not exist", table.shown()),
                    ));
                }
                Some((table.name.clone(), column.clone()))
            }
        };
        if let Some((table, column)) = owned
            && let Some(table) = self.schema.table(&table).map_err(unreadable)?
            && let Some(place) = table.column(&column)
            && table.columns[place].identity.is_some()
        {
            return Err(
                Fault::new("0A000", "cannot change ownership of identity sequence").with_detail(format!(
                    "Sequence \"{}\" is linked to table \"{}\".",
                    shown(sequence),
                    table.shown()
                )),
            );
        }
        Ok(new)
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
        let (low, high) = sequence_bounds(&kind_name(self.kind)?);
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
        let number = |number: i64| literal(&forebay_pg_values::Owned::Integer(number));
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

/// Compiles ALTER SEQUENCE.
pub(crate) fn alter_sequence(
    alter: &AlterSequence,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
) -> Result<Plan> {
    let mut compiler = Compiler::new(connection, session, values);
    compiler.writes = true;
    let steps = compiler.alter_sequence(alter)?;
    Ok(compiler.plan(steps, Vec::new()))
}

/// The name of a sequence's type.
fn kind_name(kind: Oid) -> Result<String> {
    match kind {
        oid::INT2 | oid::INT4 | oid::INT8 => Ok(facts::display_name(kind).to_string()),
        _ => Err(Fault::new(
            "22023",
            "sequence type must be smallint, integer, or bigint",
        )),
    }
}

pub(super) fn owner_of(owner: &ObjectName) -> Option<(String, String)> {
    let parts: Vec<String> = owner
        .0
        .iter()
        .filter_map(|part| match part {
            ObjectNamePart::Identifier(name) => Some(folded(name)),
            ObjectNamePart::Function(_) => None,
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
