//! Aggregates and window functions.
//!
//! Promises: SQLite's own where it gives PostgreSQL's answer for the type; elsewhere a function with PostgreSQL's meaning.

use forebay_pg_values::{Owned, Type};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, OrderByExpr, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::call::Written;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::order::order_key;
use super::scalar::{Form, Scalar, refuse_ungrouped};
use super::scope::Scope;
use super::sqlite_text::{ENVIRONMENT, function_name, quoted, type_label};
use super::syntax::folded;
use super::{resolve, types};
use crate::sql::facts::{self, Context, FunctionFact, Oid, oid};
use crate::sql::functions::{distinct, moving};

/// An aggregate as SQLite is to call it.
struct Lowered {
    name: String,
    /// Types and session, for those that want to know.
    extra: Vec<String>,
    /// SQLite's own.
    native: bool,
    /// The name of its twin that takes what is equal once.
    once: Option<String>,
    /// The name of its twin for windows whose start moves.
    moving: Option<String>,
    /// Of which row it tells, where that is not known to be one that SQLite finds.
    place: Option<Place>,
}

/// How far another row is away, or which one it is.
struct Place {
    sql: String,
    /// The call for one on the other side, which SQLite has not read yet, or has forgotten.
    turned: Option<String>,
}

/// What to do about the place that a call tells of, if anything. Where it is NULL so is the call: SQLite would take it for a place that is not
/// there, or refuse it.
fn place_of(name: &str, arguments: &mut [Scalar]) -> Option<Place> {
    let turned = match name {
        "lag" => Some("lead"),
        "lead" => Some("lag"),
        "nth_value" => None,
        _ => return None,
    };
    let place = arguments.get_mut(1)?;
    match place.constant_value() {
        Some(Owned::Integer(number)) if number >= 0 || turned.is_none() => return None,
        _ => {}
    }
    let sql = place.sql.clone();
    let Some(turned) = turned else {
        place.sql = format!("coalesce({sql}, 1)");
        return Some(Place { sql, turned: None });
    };
    let mut call = |sign: &str| {
        arguments[1].sql = format!("max({sign}coalesce({sql}, 0), 0)");
        let texts: Vec<&str> = arguments.iter().map(|argument| argument.sql.as_str()).collect();
        texts.join(", ")
    };
    let turned = Some(format!("{turned}({})", call("-")));
    call("");
    Some(Place { sql, turned })
}

impl Compiler<'_> {
    pub(super) fn aggregate_call(
        &mut self,
        name: &str,
        function: &Function,
        written: &Written<'_>,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let windowed = function.over.is_some();
        if !windowed && let Some(clause) = scope.no_aggregates.get() {
            let message = if clause == "aggregate" {
                "aggregate function calls cannot be nested".to_owned()
            } else {
                format!("aggregate functions are not allowed in {clause}")
            };
            return Err(Fault::new("42803", message));
        }
        if windowed && let Some(clause) = scope.no_windows.get() {
            return Err(Fault::new(
                "42P20",
                format!("window functions are not allowed in {clause}"),
            ));
        }
        if !written.named.is_empty() {
            return Err(Fault::unsupported(format!("{name} with named arguments")));
        }
        let (clauses, distinct) = match &function.args {
            FunctionArguments::List(list) => (
                list.clauses.as_slice(),
                matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct)),
            ),
            _ => (&[][..], false),
        };
        let mut order: &[OrderByExpr] = &[];
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => order = keys,
                other => return Err(Fault::unsupported(format!("{other} in a call of {name}"))),
            }
        }
        if windowed && (distinct || !order.is_empty()) {
            return Err(Fault::unsupported(
                "DISTINCT or ORDER BY in the arguments of a window function",
            ));
        }
        let before = (scope.no_aggregates.get(), scope.no_windows.get(), scope.met.get());
        if !windowed {
            scope.no_aggregates.set(Some("aggregate"));
        }
        scope.no_windows.set(Some("aggregate function calls"));
        scope.met.set((false, false));
        let inner = self.aggregate_inside(name, function, written, order, distinct, scope);
        let (local, outer) = scope.met.get();
        scope.no_aggregates.set(before.0);
        scope.no_windows.set(before.1);
        scope.met.set((before.2.0 || local, before.2.1 || outer));
        let (mut sql, result, lowered, not_null) = inner?;
        if outer && !local && !windowed {
            return Err(Fault::unsupported("an aggregate over columns of an outer query"));
        }
        if let Some(over) = &function.over {
            let call = sql.len();
            let moves = self.window(over, scope, &mut sql)?;
            if let Some(moving) = lowered.moving.filter(|_| moves) {
                sql.replace_range(..lowered.name.len(), &moving);
            }
            sql = match &lowered.place {
                None => sql,
                Some(Place {
                    sql: place,
                    turned: None,
                }) => format!("CASE WHEN {place} IS NOT NULL THEN {sql} END"),
                Some(Place {
                    sql: place,
                    turned: Some(turned),
                }) => {
                    let over = &sql[call..];
                    format!("CASE WHEN {place} >= 0 THEN {sql} WHEN {place} < 0 THEN {turned}{over} END")
                }
            };
        }
        Ok(Scalar {
            aggregate: !windowed,
            window: windowed,
            not_null,
            ..Scalar::new(sql, result)
        })
    }

    fn aggregate_inside(
        &mut self,
        name: &str,
        function: &Function,
        written: &Written<'_>,
        order: &[OrderByExpr],
        distinct: bool,
        scope: &Scope<'_>,
    ) -> Result<(String, Oid, Lowered, bool)> {
        let mut arguments = Vec::with_capacity(written.positional.len());
        for argument in &written.positional {
            arguments.push(self.expression(argument, scope)?);
        }
        if function.over.is_none() {
            for argument in &mut arguments {
                argument.ungrouped = None;
            }
        } else if let Some(argument) = arguments.iter().find(|argument| argument.ungrouped.is_some()) {
            refuse_ungrouped(argument)?;
        }
        if name == "count" && !written.star && arguments.is_empty() {
            let message = "count(*) must be used to call a parameterless aggregate function";
            return Err(Fault::new("42809", message));
        }
        if written.star {
            if distinct {
                return Err(Fault::new("42601", "syntax error at or near \"*\""));
            }
            if name != "count" {
                return Err(Fault::new("42883", format!("function {name}() does not exist")));
            }
            let mut sql = "count(*)".to_owned();
            self.filter(function.filter.as_deref(), scope, &mut sql)?;
            let lowered = Lowered {
                name: name.to_owned(),
                extra: Vec::new(),
                native: true,
                once: None,
                moving: None,
                place: None,
            };
            return Ok((sql, oid::INT8, lowered, true));
        }
        let given: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
        let chosen = resolve::function(name, &given, false)?.ok_or_else(|| {
            let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
            Fault::new("42883", format!("function {name}({}) does not exist", types.join(", ")))
        })?;
        let fact = chosen.function;
        if function.over.is_none() && fact.kind == b'w' {
            return Err(Fault::new(
                "42809",
                format!("window function {name} requires an OVER clause"),
            ));
        }
        if fact.kind == b'f' {
            return Err(Fault::new(
                "42809",
                format!("OVER specified, but {name} is not a window function nor an aggregate function"),
            ));
        }
        let polymorphism = resolve::polymorphism(&given, &chosen.wanted)
            .ok_or_else(|| Fault::unsupported(format!("{name} with these types")))?;
        let mut converted = Vec::new();
        let as_written = arguments.first().map(|argument| argument.sql.clone());
        for (argument, wanted) in arguments.into_iter().zip(&chosen.wanted) {
            let actual = polymorphism.actual(*wanted).unwrap_or(*wanted);
            let argument = if actual == oid::ANY {
                self.or_text(argument)?
            } else {
                argument
            };
            converted.push(self.convert_type(argument, actual, Context::Implicit)?);
        }
        let result = polymorphism
            .actual(fact.result)
            .ok_or_else(|| Fault::unsupported(format!("{name} with these types")))?;
        let mut lowered = lower(name, fact, &converted)?;
        lowered.place = place_of(name, &mut converted);
        let is_fixed = |argument: &Scalar| matches!(argument.form, Form::Constant(_) | Form::Parameter(_));
        let mut once = None;
        if let Some(name) = lowered.once.take_if(|_| distinct)
            && converted[1..].iter().all(is_fixed)
        {
            lowered.name = name;
            lowered
                .extra
                .push(quoted(types::collation(converted[0].oid).unwrap_or_default()));
            once = as_written;
        }
        let mut sql = format!("{}(", lowered.name);
        if distinct && once.is_none() {
            sql.push_str("DISTINCT ");
            if converted.len() + lowered.extra.len() != 1 {
                return Err(Fault::unsupported(format!("DISTINCT in this call of {name}")));
            }
        }
        let compared = distinct || matches!(name, "min" | "max");
        let mut texts: Vec<String> = converted
            .iter()
            .map(|argument| {
                if compared {
                    argument.compared()
                } else {
                    argument.sql.clone()
                }
            })
            .collect();
        if distinct && !types::is_ordered(converted[0].oid) {
            return Err(Fault::unsupported(format!(
                "DISTINCT of {}",
                facts::display_name(converted[0].oid)
            )));
        }
        texts.extend(lowered.extra.iter().cloned());
        sql.push_str(&texts.join(", "));
        if let Some(as_written) = once {
            let keys = self.distinct_order(order, &as_written, &converted[0], scope)?;
            sql.push_str(&format!(" ORDER BY {keys}"));
        } else if !order.is_empty() {
            let keys = self.order_keys(order, scope)?;
            sql.push_str(&format!(" ORDER BY {keys}"));
        } else if distinct && !lowered.native {
            // PostgreSQL sorts to find what is distinct, and it shows. A second key keeps SQLite from letting the sort drop what is equal:
            // it would keep the last, and PostgreSQL's answer is the first.
            sql.push_str(&format!(" ORDER BY {} NULLS LAST, NULL", converted[0].compared()));
        }
        sql.push(')');
        self.filter(function.filter.as_deref(), scope, &mut sql)?;
        let not_null = name == "count"
            || matches!(
                name,
                "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist"
            );
        Ok((sql, result, lowered, not_null))
    }

    /// The order in which an aggregate meets what is equal side by side: its argument's, in the direction that is asked for.
    fn distinct_order(
        &mut self,
        order: &[OrderByExpr],
        as_written: &str,
        argument: &Scalar,
        scope: &Scope<'_>,
    ) -> Result<String> {
        let mut keys = Vec::with_capacity(1);
        for key in order {
            let scalar = self.expression(&key.expr, scope)?;
            if scalar.sql == as_written {
                keys.push(order_key(argument, argument.compared(), &key.options)?);
            } else if !matches!(scalar.form, Form::Constant(_)) {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return Err(Fault::new("42P10", message));
            }
        }
        if keys.is_empty() {
            keys.push(format!("{} NULLS LAST", argument.compared()));
        }
        Ok(keys.join(", "))
    }

    fn filter(&mut self, filter: Option<&Expr>, scope: &Scope<'_>, sql: &mut String) -> Result<()> {
        if let Some(filter) = filter {
            let condition = self.condition(filter, scope, "FILTER")?;
            sql.push_str(&format!(" FILTER (WHERE {})", condition.sql));
        }
        Ok(())
    }

    /// Keys of an order inside an aggregate or a window: expressions only, no numbers of columns.
    pub(super) fn order_keys(&mut self, keys: &[OrderByExpr], scope: &Scope<'_>) -> Result<String> {
        let mut texts = Vec::with_capacity(keys.len());
        for key in keys {
            let scalar = self.expression(&key.expr, scope)?;
            if scope.no_aggregates.get() != Some("aggregate") && scalar.ungrouped.is_some() {
                refuse_ungrouped(&scalar)?;
            }
            let scalar = self.or_text(scalar)?;
            if key.with_fill.is_some() {
                return Err(Fault::unsupported("WITH FILL"));
            }
            texts.push(order_key(&scalar, scalar.compared(), &key.options)?);
        }
        Ok(texts.join(", "))
    }

    /// Writes OVER (…); says whether the start of the frame moves.
    fn window(&mut self, over: &WindowType, scope: &Scope<'_>, sql: &mut String) -> Result<bool> {
        let spec = match over {
            WindowType::WindowSpec(spec) => spec.clone(),
            WindowType::NamedWindow(name) => named_window(&folded(name), scope)?,
        };
        let spec = inherited(spec, scope)?;
        let mut parts = Vec::new();
        let before = scope.no_windows.replace(Some("window definitions"));
        let compiled = (|| {
            if !spec.partition_by.is_empty() {
                let mut keys = Vec::new();
                for key in &spec.partition_by {
                    let scalar = self.expression(key, scope)?;
                    refuse_ungrouped(&scalar)?;
                    let scalar = self.or_text(scalar)?;
                    if !types::is_ordered(scalar.oid) {
                        return Err(Fault::unsupported(format!(
                            "PARTITION BY a {}",
                            facts::display_name(scalar.oid)
                        )));
                    }
                    keys.push(scalar.compared());
                }
                parts.push(format!("PARTITION BY {}", keys.join(", ")));
            }
            if !spec.order_by.is_empty() {
                parts.push(format!("ORDER BY {}", self.order_keys(&spec.order_by, scope)?));
            }
            Ok(())
        })();
        scope.no_windows.set(before);
        compiled?;
        let mut moves = false;
        if let Some(frame) = &spec.window_frame {
            parts.push(self.frame(frame, scope)?);
            moves = !matches!(frame.start_bound, WindowFrameBound::Preceding(None));
        }
        sql.push_str(&format!(" OVER ({})", parts.join(" ")));
        Ok(moves)
    }

    fn frame(&mut self, frame: &WindowFrame, scope: &Scope<'_>) -> Result<String> {
        let units = match frame.units {
            WindowFrameUnits::Rows => "ROWS",
            WindowFrameUnits::Range => "RANGE",
            WindowFrameUnits::Groups => "GROUPS",
        };
        let mut bound = |bound: &WindowFrameBound| -> Result<String> {
            let (offset, direction) = match bound {
                WindowFrameBound::CurrentRow => return Ok("CURRENT ROW".to_owned()),
                WindowFrameBound::Preceding(None) => return Ok("UNBOUNDED PRECEDING".to_owned()),
                WindowFrameBound::Following(None) => return Ok("UNBOUNDED FOLLOWING".to_owned()),
                WindowFrameBound::Preceding(Some(offset)) => (offset, "PRECEDING"),
                WindowFrameBound::Following(Some(offset)) => (offset, "FOLLOWING"),
            };
            if frame.units == WindowFrameUnits::Range {
                return Err(Fault::unsupported("RANGE with an offset"));
            }
            let offset = self.expression_as(offset, scope, oid::INT8, Context::Implicit)?;
            Ok(format!("{} {direction}", offset.sql))
        };
        let start = bound(&frame.start_bound)?;
        Ok(match &frame.end_bound {
            Some(end) => format!("{units} BETWEEN {start} AND {}", bound(end)?),
            None => format!("{units} {start}"),
        })
    }
}

fn named_window(name: &str, scope: &Scope<'_>) -> Result<WindowSpec> {
    scope
        .windows
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, spec)| spec.clone())
        .ok_or_else(|| Fault::new("42704", format!("window \"{name}\" does not exist")))
}

/// A window that builds on a named one.
fn inherited(mut spec: WindowSpec, scope: &Scope<'_>) -> Result<WindowSpec> {
    if let Some(name) = spec.window_name.take() {
        let base = inherited(named_window(&folded(&name), scope)?, scope)?;
        if !spec.partition_by.is_empty() || (!spec.order_by.is_empty() && !base.order_by.is_empty()) {
            return Err(Fault::new(
                "42P20",
                format!("cannot override a clause of window \"{}\"", folded(&name)),
            ));
        }
        if base.window_frame.is_some() {
            return Err(Fault::new(
                "42P20",
                format!("cannot copy window \"{}\" because it has a frame clause", folded(&name)),
            ));
        }
        spec.partition_by = base.partition_by;
        if spec.order_by.is_empty() {
            spec.order_by = base.order_by;
        }
    }
    Ok(spec)
}

/// How SQLite is to call the aggregate or window function for these types.
fn lower(name: &str, fact: &FunctionFact, arguments: &[Scalar]) -> Result<Lowered> {
    let native = |name: &str| {
        Ok(Lowered {
            name: name.to_owned(),
            extra: Vec::new(),
            native: true,
            once: None,
            moving: None,
            place: None,
        })
    };
    if fact.kind == b'w' {
        return match name {
            "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "first_value" | "last_value" => {
                native(name)
            }
            "lag" | "lead" | "ntile" | "nth_value" => native(name),
            _ => Err(Fault::unsupported(format!("the window function {name}"))),
        };
    }
    let types: Vec<&str> = arguments
        .iter()
        .map(|argument| facts::type_fact(argument.oid).map_or("?", |fact| fact.name))
        .collect();
    match (name, types.as_slice()) {
        ("count", _) | ("sum", ["int2" | "int4"]) => return native(name),
        (
            "min" | "max",
            ["int2" | "int4" | "int8" | "text" | "varchar" | "date" | "time" | "timestamp" | "timestamptz" | "oid"],
        ) => return native(name),
        _ => {}
    }
    let declared: Vec<&str> = fact
        .arguments
        .iter()
        .map(|oid| facts::type_fact(*oid).map_or("?", |fact| fact.name))
        .collect();
    let symbol = format!("{name}({})", declared.join(","));
    let Some(known) = crate::sql::functions::aggregate(&symbol) else {
        return Err(Fault::unsupported(format!(
            "the aggregate {name}({})",
            types.join(", ")
        )));
    };
    let mut extra = Vec::new();
    if known.typed {
        let labels: Option<Vec<String>> = arguments
            .iter()
            .map(|argument| Type::from_oid(argument.oid).map(type_label))
            .collect();
        let labels = labels.ok_or_else(|| Fault::unsupported(format!("the aggregate {symbol}")))?;
        extra.push(quoted(&labels.join(",")));
    }
    if known.in_session {
        extra.push(ENVIRONMENT.to_string());
    }
    Ok(Lowered {
        name: function_name(&known.name),
        extra,
        native: false,
        moving: Some(function_name(&moving(&known.name))),
        once: known.gathers.then(|| function_name(&distinct(&known.name))),
        place: None,
    })
}
