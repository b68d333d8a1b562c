//! The compiler: PostgreSQL's SQL in, SQLite's out.
//!
//! Promises: a statement means what it means to PostgreSQL, or it is refused by name (0A000), or it gets PostgreSQL's own error; never
//! does it mean something else. To that end each name is bound to the schema, each expression has PostgreSQL's type, chosen by
//! PostgreSQL's rules from all that PostgreSQL has ([`resolve`]), and each operator, function, cast and comparison is carried out by
//! SQLite where that is equal ([`native`]), and by a function of PostgreSQL's meaning elsewhere.
//!
//! One walk binds and lowers ([`expression`], [`call`], [`aggregate`], [`subquery`], [`query`], [`from`], [`change`], [`define`]): an expression on its way
//! is a [`scalar::Scalar`], SQLite's text with what PostgreSQL knows of it.
//!
//! Knows the schema by reading it on one connection, and the session by [`Environment`]; nothing of protocol or transactions.

mod aggregate;
mod alter;
mod alter_constraint;
mod alteration;
mod array;
pub(crate) mod attempt;
mod body;
mod call;
mod carry_out;
mod case;
mod change;
mod comparison;
mod compiler;
mod constraint;
mod convert;
mod create_schema;
pub(crate) mod declared;
mod define;
pub(crate) mod definition;
mod drop;
mod execute;
mod expression;
mod expression_text;
mod fault;
mod from;
mod frozen;
mod index;
mod insert;
mod lateral;
mod literal;
mod locks;
mod lookup;
pub(crate) mod namespace;
pub(crate) mod naming;
mod native;
mod operator;
mod order;
mod plan;
mod protected;
mod quantified;
mod query;
mod recorded;
mod rename;
mod resolve;
mod scalar;
pub(crate) mod schema;
mod scope;
mod select;
mod sequence;
mod session_functions;
mod set_operation;
mod sqlite_text;
mod subquery;
mod symbol;
pub(crate) mod syntax;
mod table;
mod table_function;
pub(crate) mod types;
mod update;
mod view;
mod with;

use sqlparser::ast::Statement as Tree;

pub(crate) use expression_text::{is_operation, mentions};
pub(crate) use fault::{Fault, Result};
pub(crate) use plan::PARAMETERS_MAX;
pub use plan::{Locks, Plan, ResultColumn, SessionColumn, Step};
#[cfg(test)]
pub(crate) use sequence::SEQUENCES;
pub(crate) use sequence::alter_sequence;
pub(crate) use sqlite_text::identifier;

use crate::sql::environment::Environment;
use crate::sql::facts::{Oid, oid};
use compiler::Compiler;
use types::TypeName;

/// Compiles one statement. `declared` are the types the client gave its parameters, 0 for those it left open.
pub(crate) fn compile(
    tree: &Tree,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    declared: &[Oid],
) -> Result<Plan> {
    let mut compiler = Compiler::new(connection, session, values);
    compiler.parameters = declared
        .iter()
        .map(|oid| (*oid != 0 && *oid != oid::UNKNOWN).then_some(*oid))
        .collect();
    let (steps, columns) = compiler.statement(tree)?;
    Ok(compiler.plan(steps, columns))
}

/// Compiles the arguments of an EXECUTE of a statement whose parameters are of the `wanted` types: a query of one row, or nothing.
pub(crate) fn compile_arguments(
    tree: &Tree,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    wanted: &[Oid],
) -> Result<Plan> {
    let mut compiler = Compiler::new(connection, session, values);
    let (steps, columns) = compiler.arguments(tree, wanted)?;
    Ok(compiler.plan(steps, columns))
}

/// The types of a view's columns, from PostgreSQL's text of it.
pub(crate) fn view_types(connection: &rusqlite::Connection, text: &str) -> Option<Vec<TypeName>> {
    let session = Environment {
        user: "",
        database: "",
        pid: 0,
        version: "",
        settings: &|_| None,
    };
    let values = forebay_pg_values::Environment::new(jiff::tz::TimeZone::UTC, 0);
    let compiled = Compiler::new(connection, &session, &values).view(text).ok()?;
    Some(compiled.columns.iter().map(|column| column.kind).collect())
}

impl Compiler<'_> {
    fn statement(&mut self, tree: &Tree) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        match tree {
            Tree::Query(query) => {
                // WITH before a statement that writes is read as a query around it.
                match &*query.body {
                    sqlparser::ast::SetExpr::Insert(inner)
                    | sqlparser::ast::SetExpr::Update(inner)
                    | sqlparser::ast::SetExpr::Delete(inner) => self.change_with(query, inner),
                    _ => {
                        if let Some((steps, columns)) = self.session_query(query)? {
                            return Ok((steps, columns));
                        }
                        let compiled = self.query(query, None, None)?;
                        Ok((vec![compiled.sql.into()], compiled.columns))
                    }
                }
            }
            Tree::Insert(insert) => self.one(|compiler| compiler.insert(insert, "")),
            Tree::Update(update) => self.one(|compiler| compiler.update(update, "")),
            Tree::Delete(delete) => self.one(|compiler| compiler.delete(delete, "")),
            Tree::Explain {
                statement,
                analyze: false,
                ..
            } => {
                let (steps, _) = self.statement(statement)?;
                if self.writes {
                    return Err(Fault::unsupported("EXPLAIN of a statement that writes"));
                }
                if !std::mem::take(&mut self.session_columns).is_empty() {
                    return Err(Fault::unsupported("EXPLAIN of this statement"));
                }
                let [Step::Run { sql: step, .. }] = steps.as_slice() else {
                    return Err(Fault::unsupported("EXPLAIN of this statement"));
                };
                let column = |name: &str, kind: Oid| ResultColumn {
                    name: name.to_owned(),
                    kind: TypeName::plain(kind),
                    not_null: true,
                    origin: None,
                };
                let columns = vec![
                    column("id", oid::INT4),
                    column("parent", oid::INT4),
                    column("notused", oid::INT4),
                    column("detail", oid::TEXT),
                ];
                Ok((vec![format!("EXPLAIN QUERY PLAN {step}").into()], columns))
            }
            Tree::Explain { .. } => Err(Fault::unsupported("EXPLAIN ANALYZE")),
            other => {
                self.writes = true;
                self.define(other).map(|steps| (steps, Vec::new()))
            }
        }
    }

    fn one(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<(String, Vec<ResultColumn>)>,
    ) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        self.writes = true;
        let (sql, columns) = compile(self)?;
        Ok((vec![sql.into()], columns))
    }
}
