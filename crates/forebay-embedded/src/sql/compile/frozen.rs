//! Literals of a definition that would mean something else in another session, or later.
//!
//! Promises: as in PostgreSQL, a literal means what it meant when the definition was made. A `timestamptz` without a zone is of the zone of
//! who made it, `'now'` and its like are of that moment; the definition's text keeps them with zone and digits. What is computed from
//! literals is computed anew wherever the definition is used.

use forebay_pg_values::{Kind, Owned, Type, array, text_form};
use sqlparser::ast::{Expr, TypedString, Value, ValueWithSpan, VisitMut};
use sqlparser::tokenizer::Location;

use super::compiler::Compiler;
use super::convert::is_of_session;
use super::fault::Result;
use super::recorded::Literal;
use crate::sql::facts::Oid;
use crate::sql::walk::change_expressions;

impl Compiler<'_> {
    /// Does it while literals are looked at; gives them too.
    pub(super) fn with_literals<T>(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Literal>)> {
        let before = self.literals.replace(Vec::new());
        let compiled = compile(self);
        let literals = std::mem::replace(&mut self.literals, before);
        Ok((compiled?, literals.unwrap_or_default()))
    }

    /// Keeps what a literal means in this session, if that is of this session.
    pub(super) fn look_at_literal(
        &mut self,
        at: Option<Location>,
        written: &str,
        to: Oid,
        value: &Owned,
    ) -> Result<()> {
        let (Some(at), Some(kind)) = (at, Type::from_oid(to)) else {
            return Ok(());
        };
        if self.literals.is_none() {
            return Ok(());
        }
        if !is_of_session(kind, written) {
            return Ok(());
        }
        let mut text = String::new();
        match (kind, value) {
            (Type::Scalar(kind), value) => text_form::write(kind, value.as_datum(), self.values, &mut text)?,
            (Type::Array(kind), Owned::Text(stored)) => array::write(kind, stored, self.values, &mut text)?,
            (Type::Array(_), _) => return Ok(()),
        }
        if let Some(literals) = &mut self.literals {
            let of_zone = matches!(kind, Type::Scalar(Kind::Timestamptz | Kind::Timetz));
            literals.push(Literal { at, text, of_zone });
        }
        Ok(())
    }
}

/// Writes the literals' lasting texts into a tree; whether there are any.
pub(super) fn freeze(tree: &mut impl VisitMut, literals: &[Literal]) -> bool {
    if literals.is_empty() {
        return false;
    }
    change_expressions(tree, |expression| {
        if let Expr::Value(value) | Expr::TypedString(TypedString { value, .. }) = expression {
            freeze_value(value, literals);
        }
    });
    true
}

fn freeze_value(value: &mut ValueWithSpan, literals: &[Literal]) {
    let here = literals.iter().filter(|literal| literal.at == value.span.start);
    // Of one that is several types' the text that says most: `'now'` beside a date and beside a timestamp.
    if let Some(literal) = here.max_by_key(|literal| literal.of_zone) {
        value.value = Value::SingleQuotedString(literal.text.clone());
    }
}
