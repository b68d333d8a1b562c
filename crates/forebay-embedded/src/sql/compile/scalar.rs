//! An expression on its way to SQLite: its text there, and what PostgreSQL knows of it.
//!
//! Knows neither where expressions come from nor how they are converted from type to type.

use forebay_pg_values::{Owned, Type};

use super::fault::{Fault, Result};
use super::sqlite_text::{has_column, has_query, literal};
use super::types::{self, TypeName};
use crate::sql::facts::{self, Oid, oid};

/// What calls of constants make is put in their place unless it is longer.
pub(super) const CONSTANT_BYTES_MAX: usize = 64 << 10;

/// What is known of an expression before it runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// Nothing but its type.
    Any,
    /// Its value. Of type `unknown` it is a literal whose type its surroundings decide.
    Constant(Owned),
    /// The parameter of that number, whose type nobody has said yet.
    Parameter(usize),
}

/// A column of a table that must be grouped by, and is not so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ungrouped {
    pub(super) name: String,
    /// Which relation of the query it is from.
    pub(super) relation: usize,
    pub(super) location: Option<sqlparser::tokenizer::Location>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scalar {
    /// SQLite's text, which stands anywhere without parentheses around it.
    pub(super) sql: String,
    pub(super) oid: Oid,
    pub(super) typmod: i32,
    pub(super) form: Form,
    /// Certainly not NULL.
    pub(super) not_null: bool,
    /// May give another value each time, or does something.
    pub(super) volatile: bool,
    /// Calls a function that PostgreSQL evaluates only when the statement runs: its value hangs on the session.
    pub(super) stable: bool,
    /// Holds a part that [is planned](Scalar::is_planned).
    pub(super) planned: bool,
    /// Holds an aggregate of this query.
    pub(super) aggregate: bool,
    /// Holds a window function.
    pub(super) window: bool,
    pub(super) ungrouped: Option<Ungrouped>,
    /// Of the collation "C", under which letters beyond ASCII have no case and no class.
    pub(super) plain_letters: bool,
    /// Parameters, by number, of which each makes it NULL by being NULL, whatever else is in it.
    pub(super) null_with: Vec<usize>,
    /// Where it stands, if it is a literal.
    pub(super) location: Option<sqlparser::tokenizer::Location>,
}

/// With what calls of PostgreSQL's functions begin that may fail, in SQLite's text.
const CALLS: [&str; 2] = ["\"pg:", "\"forebay_read\"("];

impl Scalar {
    pub(super) fn new(sql: impl Into<String>, oid: Oid) -> Self {
        Self {
            sql: sql.into(),
            oid,
            typmod: -1,
            form: Form::Any,
            not_null: false,
            volatile: false,
            stable: false,
            planned: false,
            aggregate: false,
            window: false,
            ungrouped: None,
            plain_letters: false,
            null_with: Vec::new(),
            location: None,
        }
    }

    /// A constant of a type, from its stored form.
    pub(super) fn constant(value: Owned, oid: Oid) -> Self {
        Self {
            not_null: value != Owned::Null,
            sql: literal(&value),
            form: Form::Constant(value),
            ..Self::new("", oid)
        }
    }

    /// A string literal, before its surroundings say of which type it is.
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        Self::constant(Owned::Text(text.into()), oid::UNKNOWN)
    }

    pub(super) fn null() -> Self {
        Self::constant(Owned::Null, oid::UNKNOWN)
    }

    pub(super) fn truth(sql: impl Into<String>) -> Self {
        Self::new(sql, oid::BOOL)
    }

    /// Takes over what holds for a whole if it holds for a part.
    pub(super) fn with_parts<'a>(mut self, parts: impl IntoIterator<Item = &'a Self>) -> Self {
        for part in parts {
            self.volatile |= part.volatile;
            self.stable |= part.stable;
            self.planned |= part.planned || part.is_planned();
            self.aggregate |= part.aggregate;
            self.window |= part.window;
            self.plain_letters |= part.plain_letters;
            if self.ungrouped.is_none() {
                self.ungrouped.clone_from(&part.ungrouped);
            }
        }
        self
    }

    /// Takes over what makes an argument NULL: for what is NULL where an argument is.
    pub(super) fn strict_in<'a>(mut self, arguments: impl IntoIterator<Item = &'a Self>) -> Self {
        for number in arguments.into_iter().flat_map(|argument| &argument.null_with) {
            if !self.null_with.contains(number) {
                self.null_with.push(*number);
            }
        }
        self
    }

    /// Whether it holds no column but parameters, and calls with them: PostgreSQL's planner evaluates such a thing, whatever
    /// stands beside it.
    pub(super) fn is_planned(&self) -> bool {
        self.sql.contains('?') && CALLS.iter().any(|call| self.sql.contains(call)) && self.is_known_to_planner()
    }

    /// Whether PostgreSQL's planner knows its value: it has no column, and calls nothing that hangs on the session.
    fn is_known_to_planner(&self) -> bool {
        !self.stable
            && !self.volatile
            && !self.aggregate
            && !self.window
            && !has_column(&self.sql)
            && !has_query(&self.sql)
    }

    /// A strict call with these arguments, of which one that PostgreSQL's planner knows to be NULL has the others not be evaluated: what
    /// hangs on the session, and may fail, is evaluated only when the statement runs.
    pub(super) fn skipped_where_null(mut self, arguments: &[Self]) -> Self {
        if !arguments.iter().any(|argument| argument.stable) {
            return self;
        }
        let known: Vec<String> = arguments
            .iter()
            .filter(|argument| argument.form == Form::Any && argument.is_known_to_planner())
            .map(|argument| format!("{} IS NULL", argument.sql))
            .collect();
        if !known.is_empty() {
            self.sql = format!("CASE WHEN {} THEN NULL ELSE {} END", known.join(" OR "), self.sql);
        }
        self
    }

    pub(super) fn type_name(&self) -> TypeName {
        TypeName {
            oid: self.oid,
            typmod: self.typmod,
        }
    }

    /// Its text for a comparison, an order or a grouping.
    pub(super) fn compared(&self) -> String {
        match types::collation(self.oid) {
            // SQLite makes a 0 or 1 of what is certainly false or true, and of a number the place of a column.
            _ if self.oid == oid::BOOL && [" AND ", "NULL"].iter().any(|word| self.sql.contains(word)) => {
                format!("CAST({} AS INTEGER)", self.sql)
            }
            Some(collation) => format!("{} COLLATE \"{collation}\"", self.sql),
            // A collation anywhere inside would be the whole's.
            None if self.has_collation() => format!("{} COLLATE BINARY", self.sql),
            None => self.sql.clone(),
        }
    }

    /// Whether a collation stands in its text.
    pub(super) fn has_collation(&self) -> bool {
        self.sql.contains(" COLLATE ")
    }

    /// Its value, if that is known.
    pub(super) fn constant_value(&self) -> Option<Owned> {
        match &self.form {
            Form::Constant(value) => Some(value.clone()),
            Form::Any | Form::Parameter(_) => None,
        }
    }

    /// The elements of an array whose value is known.
    pub(super) fn constant_elements(&self) -> Option<Vec<Self>> {
        let element = facts::element_of(self.oid)?;
        let (Form::Constant(Owned::Text(stored)), Type::Scalar(kind)) = (&self.form, Type::from_oid(element)?) else {
            return None;
        };
        let elements = forebay_pg_values::array::elements(kind, stored).ok()?;
        Some(
            elements
                .into_iter()
                .map(|value| Self::constant(value, element))
                .collect(),
        )
    }

    /// The constant text of a literal of unknown type.
    pub(super) fn unknown_text(&self) -> Option<&str> {
        match (&self.form, self.oid) {
            (Form::Constant(Owned::Text(text)), oid::UNKNOWN) => Some(text),
            _ => None,
        }
    }
}

/// The type of what has been unified, with its modifier if all agree on it.
pub(super) fn common_kind(scalars: &[Scalar]) -> TypeName {
    let Some(first) = scalars.first() else {
        return TypeName::plain(oid::TEXT);
    };
    let typmod = first.typmod;
    let agreed = scalars.iter().all(|scalar| scalar.typmod == typmod);
    TypeName {
        oid: first.oid,
        typmod: if agreed { typmod } else { -1 },
    }
}

/// Whether a part is known to be that truth value, which decides an AND or an OR alone: all that PostgreSQL's planner leaves of it.
pub(super) fn decides(part: &Scalar, truth: bool) -> bool {
    part.form == Form::Constant(truth.into())
}

/// Whether a query is the same without these.
pub(super) fn may_be_left_out<'a>(scalars: impl IntoIterator<Item = &'a Scalar>) -> bool {
    scalars
        .into_iter()
        .all(|scalar| !scalar.aggregate && !scalar.window && scalar.ungrouped.is_none())
}

/// A column outside of GROUP BY and aggregates, where the query is grouped.
pub(super) fn refuse_ungrouped(scalar: &Scalar) -> Result<()> {
    match &scalar.ungrouped {
        None => Ok(()),
        Some(ungrouped) => {
            let mut fault = Fault::new(
                "42803",
                format!(
                    "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                    ungrouped.name
                ),
            );
            fault.location = ungrouped.location;
            Err(fault)
        }
    }
}
