//! Functions that the session itself carries out, because they change it or wait for others: advisory locks, `set_config`, `pg_sleep`,
//! `pg_notify`.
//!
//! Promises: they stand as whole columns of a SELECT without tables, `SELECT f(…), …` or `SELECT * FROM f(…)`; anywhere else they are refused by
//! name. SQLite computes their arguments and the other columns, and the session does the rest.

use sqlparser::ast::{Expr, FunctionArg, FunctionArguments, Query, SelectItem, SetExpr, TableFactor};

use super::call::written;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::naming::column_name;
use super::plan::{ResultColumn, SessionColumn, Step};
use super::resolve;
use super::scope::Scope;
use super::syntax::folded;
use super::types::{self, TypeName};
use crate::sql::facts::{self, Context, Oid};

const NAMES: [&str; 15] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_notify",
    "pg_sleep",
    "pg_sleep_for",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared",
    "set_config",
];

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

/// One column of a select list: its name, and the call or expression it is.
enum Wanted<'a> {
    Call(&'static str, &'a [FunctionArg]),
    Expression(&'a Expr),
}

fn wanted(expression: &Expr) -> Wanted<'_> {
    if let Expr::Function(function) = expression
        && function.over.is_none()
        && function.filter.is_none()
        && let FunctionArguments::List(list) = &function.args
        && list.clauses.is_empty()
        && list.duplicate_treatment.is_none()
        && let Ok(name) = types::object_name(&function.name)
        && let Some(name) = known(&name)
    {
        return Wanted::Call(name, &list.args);
    }
    Wanted::Expression(expression)
}

/// The columns of a query that asks the session for something; nothing for any other.
fn columns(query: &Query) -> Option<Vec<(String, Wanted<'_>)>> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    if query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.locks.is_empty()
        || select.selection.is_some()
        || select.having.is_some()
        || select.distinct.is_some()
    {
        return None;
    }
    if let [table] = select.from.as_slice() {
        let (
            TableFactor::Table {
                name,
                alias,
                args: Some(args),
                ..
            },
            true,
        ) = (&table.relation, table.joins.is_empty())
        else {
            return None;
        };
        let name = known(&types::object_name(name).ok()?)?;
        if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty())
            || !matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)])
        {
            return None;
        }
        let column = alias
            .as_ref()
            .map_or_else(|| name.to_owned(), |alias| folded(&alias.name));
        return Some(vec![(column, Wanted::Call(name, &args.args))]);
    }
    if !select.from.is_empty() {
        return None;
    }
    let mut columns = Vec::new();
    for item in &select.projection {
        columns.push(match item {
            SelectItem::UnnamedExpr(expression) => (column_name(expression), wanted(expression)),
            SelectItem::ExprWithAlias { expr, alias } => (folded(alias), wanted(expr)),
            _ => return None,
        });
    }
    let any = columns.iter().any(|(_, wanted)| matches!(wanted, Wanted::Call(..)));
    any.then_some(columns)
}

impl Compiler<'_> {
    /// Compiles a query that asks the session for something; nothing if it is none.
    pub(super) fn session_query(&mut self, query: &Query) -> Result<Option<(Vec<Step>, Vec<ResultColumn>)>> {
        let Some(columns) = columns(query) else {
            return Ok(None);
        };
        let scope = Scope::new(None);
        let mut sql: Vec<String> = Vec::new();
        let mut described = Vec::new();
        let mut session_columns = Vec::new();
        for (name, wanted) in columns {
            let kind = match wanted {
                Wanted::Expression(expression) => {
                    let scalar = self.expression(expression, &scope)?;
                    let scalar = self.or_text(scalar)?;
                    session_columns.push(SessionColumn::Computed(sql.len()));
                    sql.push(scalar.sql.clone());
                    TypeName {
                        oid: scalar.oid,
                        typmod: scalar.typmod,
                    }
                }
                Wanted::Call(function, arguments) => {
                    let first = sql.len();
                    let (result, strict) = self.session_call(function, arguments, &scope, &mut sql)?;
                    session_columns.push(SessionColumn::Call {
                        name: function,
                        first,
                        count: sql.len() - first,
                        strict,
                    });
                    TypeName::plain(result)
                }
            };
            described.push(ResultColumn {
                name,
                kind,
                not_null: false,
                origin: None,
            });
        }
        if sql.is_empty() {
            sql.push("1".to_owned());
        }
        self.session_columns = session_columns;
        Ok(Some((vec![format!("SELECT {}", sql.join(", ")).into()], described)))
    }

    /// The arguments of a call; gives the type of its result, and whether it is strict.
    fn session_call(
        &mut self,
        name: &str,
        arguments: &[FunctionArg],
        scope: &Scope<'_>,
        sql: &mut Vec<String>,
    ) -> Result<(Oid, bool)> {
        let arguments = written(arguments)?;
        if arguments.star || !arguments.named.is_empty() {
            return Err(Fault::unsupported(format!("this form of a call of {name}")));
        }
        let mut scalars = Vec::new();
        for argument in arguments.positional {
            scalars.push(self.expression(argument, scope)?);
        }
        let given: Vec<Oid> = scalars.iter().map(|scalar| scalar.oid).collect();
        let Some(chosen) = resolve::function(name, &given, false)? else {
            let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
            return Err(
                Fault::new("42883", format!("function {name}({}) does not exist", types.join(", "))).with_hint(
                    "No function matches the given name and argument types. You might need to add explicit type casts.",
                ),
            );
        };
        for (scalar, wanted) in scalars.into_iter().zip(&chosen.wanted) {
            sql.push(self.convert_type(scalar, *wanted, Context::Implicit)?.sql);
        }
        Ok((chosen.function.result, !matches!(name, "set_config" | "pg_notify")))
    }
}
