//! Function calls: PostgreSQL's own functions by its rules of resolution, those with a syntax or a meaning of their own, and those that ask
//! about the session.
//!
//! Promises: the function that PostgreSQL would call, or its error (42883, 42725); one that is not here is refused by name.

use forebay_pg_values::{Owned, Type};
use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Value,
};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::namespace::{missing, name_parts, sequence_name};
use super::resolve;
use super::scalar::{Form, Scalar, common_kind};
use super::scope::Scope;
use super::sqlite_text::{ENVIRONMENT, quoted, type_label};
use super::syntax::{folded, unnested};
use super::types::{self, TypeName};
use crate::sql::facts::{self, Context, FunctionFact, Oid, oid};

/// What looks a column's sequence up.
const SERIAL_SEQUENCE: &str = "\"forebay_serial_sequence\"";

/// The arguments of a call as they were written.
pub(super) struct Written<'a> {
    pub(super) positional: Vec<&'a Expr>,
    pub(super) named: Vec<(&'a Ident, &'a Expr)>,
    pub(super) star: bool,
}

impl Compiler<'_> {
    pub(super) fn function_call(&mut self, function: &Function, scope: &Scope<'_>) -> Result<Scalar> {
        let name = types::object_name(&function.name)?;
        let name = name.strip_prefix("public.").map_or(name.clone(), str::to_owned);
        if name == "normalize" {
            // Its second argument is a keyword.
            return Err(Fault::unsupported("normalize()"));
        }
        if function.uses_odbc_syntax
            || function.null_treatment.is_some()
            || !matches!(function.parameters, FunctionArguments::None)
        {
            return Err(Fault::unsupported(format!("this form of a call of {name}")));
        }
        if !function.within_group.is_empty() {
            return Err(Fault::unsupported(format!("{name} WITHIN GROUP")));
        }
        let written = match &function.args {
            FunctionArguments::None => Written {
                positional: Vec::new(),
                named: Vec::new(),
                star: false,
            },
            FunctionArguments::Subquery(query) if name == "array" => return self.array_of_query(query, scope),
            FunctionArguments::Subquery(_) => return Err(Fault::unsupported(format!("{name} of a query"))),
            FunctionArguments::List(list) => written(&list.args)?,
        };
        let kind = facts::functions(&name).first().map(|fact| fact.kind);
        if kind == Some(b'a') || kind == Some(b'w') || function.over.is_some() {
            return self.aggregate_call(&name, function, &written, scope);
        }
        if let FunctionArguments::List(list) = &function.args
            && (list.duplicate_treatment.is_some() || !list.clauses.is_empty())
        {
            return Err(Fault::new(
                "42809",
                format!("DISTINCT or ORDER BY specified, but {name} is not an aggregate function"),
            ));
        }
        if function.filter.is_some() {
            return Err(Fault::new(
                "42809",
                format!("FILTER specified, but {name} is not an aggregate function"),
            ));
        }
        if written.star {
            return Err(Fault::new(
                "42809",
                format!("{name}(*) specified, but {name} is not an aggregate function"),
            ));
        }
        if let Some(time) = self.current_time(&name, &written)? {
            return Ok(time);
        }
        if (matches!(function.args, FunctionArguments::None) || written.positional.is_empty())
            && let Some(scalar) = self.session_word(&name)?
        {
            return Ok(scalar);
        }
        let located = |fault: Fault| match function.name.0.last() {
            Some(ObjectNamePart::Identifier(name)) if fault.sqlstate.starts_with("42") => fault.at(name),
            _ => fault,
        };
        let mut arguments = Vec::with_capacity(written.positional.len());
        for argument in &written.positional {
            let argument = named_sequence(&name, argument);
            arguments.push(self.leniently(name == "coalesce", |compiler| compiler.expression(argument, scope))?);
        }
        if !written.named.is_empty() {
            arguments = self.named_arguments(&name, arguments, &written.named, scope)?;
        }
        self.call(&name, arguments).map_err(located)
    }

    /// Puts arguments that were given by name in their places.
    fn named_arguments(
        &mut self,
        name: &str,
        mut arguments: Vec<Scalar>,
        named: &[(&Ident, &Expr)],
        scope: &Scope<'_>,
    ) -> Result<Vec<Scalar>> {
        let fits = |fact: &&FunctionFact| {
            named
                .iter()
                .all(|(given, _)| fact.argument_names.contains(&folded(given).as_str()))
        };
        let Some(fact) = facts::functions(name).iter().find(fits) else {
            return Err(Fault::new(
                "42883",
                format!("function {name} with these argument names does not exist"),
            ));
        };
        for place in arguments.len()..fact.arguments.len() {
            let wanted = fact.argument_names.get(place).copied().unwrap_or("");
            let given = named.iter().find(|(given, _)| folded(given) == wanted);
            arguments.push(match given {
                Some((_, expression)) => self.expression(expression, scope)?,
                None => default_argument(fact, place)
                    .ok_or_else(|| Fault::new("42883", format!("function {name} needs an argument \"{wanted}\"")))?,
            });
        }
        Ok(arguments)
    }

    /// A call by name, with arguments that are compiled already.
    pub(super) fn call(&mut self, name: &str, arguments: Vec<Scalar>) -> Result<Scalar> {
        match name {
            "coalesce" => return self.coalesce(arguments),
            "nullif" => return self.nullif(arguments),
            "greatest" | "least" => return self.extreme(name, arguments),
            "row" => return Err(Fault::unsupported("a row as a value")),
            "nextval" | "currval" | "setval" | "lastval" => return self.sequence_call(name, arguments),
            "pg_get_serial_sequence" if arguments.len() == 2 => return self.serial_sequence(&arguments),
            "pg_typeof" => {
                if let [argument] = arguments.as_slice() {
                    let written = types::format_type(argument.oid, -1);
                    return Ok(Scalar::constant(Owned::Text(written), oid::REGTYPE));
                }
            }
            "random" if arguments.is_empty() => {
                return Ok(Scalar {
                    volatile: true,
                    ..Scalar::new("\"forebay_random\"()", oid::FLOAT8)
                });
            }
            // The second is what the extension uuid-ossp calls it.
            "gen_random_uuid" | "uuid_generate_v4" if arguments.is_empty() => {
                return Ok(Scalar {
                    volatile: true,
                    not_null: true,
                    ..Scalar::new("\"forebay_uuid\"()", oid::UUID)
                });
            }
            "clock_timestamp" if arguments.is_empty() => {
                return Ok(Scalar {
                    volatile: true,
                    not_null: true,
                    ..Scalar::new("\"forebay_clock\"()", oid::TIMESTAMPTZ)
                });
            }
            "current_setting" => return self.current_setting(arguments),
            _ => {}
        }
        let given: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
        if given == [oid::UNKNOWN]
            && matches!(arguments[0].form, Form::Constant(_))
            && let Some(to) = facts::type_named(name)
        {
            let mut arguments = arguments;
            return self.cast_to(arguments.remove(0), TypeName::plain(to));
        }
        let chosen = match resolve::function(name, &given, false) {
            Ok(Some(chosen)) => chosen,
            Ok(None) | Err(_) if arguments.len() == 1 && facts::type_named(name).is_some() => {
                // A type's name used as a function is a cast.
                let to = facts::type_named(name).unwrap_or(oid::TEXT);
                let mut arguments = arguments;
                let argument = arguments.remove(0);
                return self.cast_to(argument, TypeName::plain(to));
            }
            Ok(None) => {
                let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
                return Err(Fault::new(
                    "42883",
                    format!("function {name}({}) does not exist", types.join(", ")),
                )
                .with_hint(
                    "No function matches the given name and argument types. You might need to add explicit type casts.",
                ));
            }
            Err(fault) => return Err(fault),
        };
        let fact = chosen.function;
        if fact.returns_set {
            return Err(Fault::unsupported(format!("the set-returning function {name} here"))
                .with_hint(format!("Write it in the FROM clause: SELECT … FROM {name}(…).")));
        }
        if fact.volatility != b'i' {
            self.zone_bound = true;
        }
        let polymorphism = resolve::polymorphism(&given, &chosen.wanted)
            .ok_or_else(|| Fault::unsupported(format!("the function {name} with these types")))?;
        let mut converted = Vec::with_capacity(fact.arguments.len());
        for (argument, wanted) in arguments.into_iter().zip(&chosen.wanted) {
            let actual = polymorphism.actual(*wanted).unwrap_or(*wanted);
            let argument = if actual == oid::ANY {
                self.or_text(argument)?
            } else {
                self.convert_type(argument, actual, Context::Implicit)?
            };
            converted.push(argument);
        }
        if chosen.variadic_from.is_none() {
            for place in converted.len()..fact.arguments.len() {
                let default = default_argument(fact, place)
                    .ok_or_else(|| Fault::unsupported(format!("{name} without its argument {}", place + 1)))?;
                converted.push(default);
            }
        }
        let result = polymorphism
            .actual(fact.result)
            .ok_or_else(|| Fault::unsupported(format!("the function {name} with these types")))?;
        // A variadic argument that is no "any" is an array to the function.
        if let Some(from) = chosen.variadic_from
            && fact.variadic != oid::ANY
        {
            let items = converted.split_off(from);
            let element = items.first().map_or(fact.variadic, |item| item.oid);
            converted.push(self.array_of_scalars(items, element)?);
        }
        if matches!(fact.symbol, "quote_nullable(anyelement)" | "quote_literal(anyelement)")
            && let Some(argument) = converted.pop()
        {
            // PostgreSQL writes these as casts to text.
            let text = self.convert_type(argument, oid::TEXT, Context::Explicit)?;
            return self.call_symbol(name, vec![text], oid::TEXT);
        }
        let scalar = self.call_symbol(fact.symbol, converted, result).map_err(|fault| {
            if fault.sqlstate == "0A000" && fault.message.starts_with("the function") {
                let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
                Fault::unsupported(format!("the function {name}({})", types.join(", ")))
            } else {
                fault
            }
        })?;
        Ok(Scalar {
            volatile: scalar.volatile || fact.volatility == b'v',
            ..scalar
        })
    }

    #[allow(clippy::needless_pass_by_value, reason = "a call takes its arguments along")]
    pub(super) fn array_of_scalars(&mut self, items: Vec<Scalar>, element: Oid) -> Result<Scalar> {
        let array = facts::array_of(element)
            .filter(|array| types::has_values(*array))
            .ok_or_else(|| Fault::unsupported(format!("an array of {}", facts::display_name(element))))?;
        let label = Type::from_oid(element).map_or_else(String::new, type_label);
        let mut sql = format!("\"forebay_array\"({}", quoted(&label));
        for item in &items {
            sql.push_str(", ");
            sql.push_str(&item.sql);
        }
        sql.push(')');
        Ok(Scalar {
            not_null: true,
            ..Scalar::new(sql, array)
        }
        .with_parts(&items))
    }

    fn coalesce(&mut self, arguments: Vec<Scalar>) -> Result<Scalar> {
        let arguments = self.leniently(true, |compiler| compiler.unify(arguments, "COALESCE"))?;
        let kind = common_kind(&arguments);
        if let [only] = arguments.as_slice() {
            return Ok(only.clone());
        }
        if let [first, ..] = arguments.as_slice()
            && first.typmod != kind.typmod
            && first.not_null
            && matches!(first.form, Form::Constant(_))
        {
            // PostgreSQL tells another modifier before it has planned the statement than after.
            return Err(Fault::unsupported("COALESCE of a constant with a modifier of its type"));
        }
        let list: Vec<&str> = arguments.iter().map(|argument| argument.sql.as_str()).collect();
        Ok(Scalar {
            typmod: kind.typmod,
            not_null: arguments.iter().any(|argument| argument.not_null),
            ..Scalar::new(format!("coalesce({})", list.join(", ")), kind.oid)
        }
        .with_parts(&arguments))
    }

    fn nullif(&mut self, mut arguments: Vec<Scalar>) -> Result<Scalar> {
        let (Some(right), Some(left), true) = (arguments.pop(), arguments.pop(), arguments.is_empty()) else {
            return Err(Fault::new("42601", "NULLIF takes two arguments"));
        };
        let left = if left.oid == oid::UNKNOWN && right.oid == oid::UNKNOWN {
            self.or_text(left)?
        } else {
            left
        };
        let equal = self.binary("=", left.clone(), right.clone())?;
        // The result is the left side as the comparison took it.
        let operator = resolve::operator("=", Some(left.oid), right.oid)?;
        let polymorphism = resolve::polymorphism(&[left.oid, right.oid], &[operator.left, operator.right]);
        let to = polymorphism
            .and_then(|found| found.actual(operator.left))
            .unwrap_or(left.oid);
        let left = self.convert_type(left, to, Context::Implicit)?;
        Ok(Scalar {
            typmod: left.typmod,
            ..Scalar::new(
                format!("(CASE WHEN {} THEN NULL ELSE {} END)", equal.sql, left.sql),
                left.oid,
            )
        }
        .with_parts([&equal, &left]))
    }

    fn extreme(&mut self, name: &str, arguments: Vec<Scalar>) -> Result<Scalar> {
        let upper = name.to_ascii_uppercase();
        let arguments = self.unify(arguments, &upper)?;
        let kind = common_kind(&arguments);
        if !types::is_ordered(kind.oid) {
            return Err(Fault::unsupported(format!(
                "{upper} of {}",
                facts::display_name(kind.oid)
            )));
        }
        let label = Type::from_oid(kind.oid).map_or_else(String::new, type_label);
        let list: Vec<&str> = arguments.iter().map(|argument| argument.sql.as_str()).collect();
        Ok(Scalar {
            typmod: kind.typmod,
            not_null: arguments.iter().any(|argument| argument.not_null),
            ..Scalar::new(
                format!("\"forebay_{name}\"({}, {})", quoted(&label), list.join(", ")),
                kind.oid,
            )
        }
        .with_parts(&arguments))
    }

    fn sequence_call(&mut self, name: &str, mut arguments: Vec<Scalar>) -> Result<Scalar> {
        let wanted = match name {
            "lastval" => 0,
            "setval" => arguments.len().clamp(2, 3),
            _ => 1,
        };
        if arguments.len() != wanted {
            return Err(Fault::new(
                "42883",
                format!("function {name} with {} arguments does not exist", arguments.len()),
            ));
        }
        if name != "currval" && name != "lastval" {
            self.writes = true;
        }
        let mut sql = format!("\"forebay_{name}\"({ENVIRONMENT}");
        // Of a NULL each of them is NULL.
        let mut not_null = name != "setval";
        if wanted > 0 {
            let sequence = arguments.remove(0);
            let named = match &sequence.form {
                Form::Constant(Owned::Text(text)) => {
                    match name_parts(text)?.as_slice() {
                        [schema, _] if !self.has_schema(schema)? => return Err(missing(schema)),
                        [_] => self.refuse_other_path("a sequence")?,
                        _ => {}
                    }
                    quoted(&sequence_name(text)?)
                }
                _ => {
                    // That one's answer says the schema.
                    if !sequence.sql.starts_with(SERIAL_SEQUENCE) {
                        self.refuse_other_path("a sequence")?;
                    }
                    let text = self.convert_type(sequence, oid::TEXT, Context::Implicit)?;
                    not_null &= text.not_null;
                    format!("\"forebay_sequence_name\"({})", text.sql)
                }
            };
            sql.push_str(", ");
            sql.push_str(&named);
        }
        for (place, argument) in arguments.into_iter().enumerate() {
            let to = if place == 0 { oid::INT8 } else { oid::BOOL };
            let argument = self.convert_type(argument, to, Context::Implicit)?;
            sql.push_str(", ");
            sql.push_str(&argument.sql);
        }
        sql.push(')');
        Ok(Scalar {
            volatile: true,
            not_null,
            ..Scalar::new(sql, oid::INT8)
        })
    }

    /// `pg_get_serial_sequence(table, column)`.
    fn serial_sequence(&mut self, arguments: &[Scalar]) -> Result<Scalar> {
        let constant = |argument: &Scalar| match &argument.form {
            Form::Constant(Owned::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let [Some(written), Some(column)] = [constant(&arguments[0]), constant(&arguments[1])] else {
            return Err(Fault::unsupported(
                "pg_get_serial_sequence() of what is not a constant, beside a table",
            ));
        };
        let name = ObjectName(
            name_parts(&written)?
                .into_iter()
                .map(|part| ObjectNamePart::Identifier(Ident::with_quote('"', part)))
                .collect(),
        );
        let table = self.table(&name)?;
        if table.column(&column).is_none() {
            return Err(Fault::new(
                "42703",
                format!("column \"{column}\" of relation \"{}\" does not exist", table.shown()),
            ));
        }
        Ok(Scalar {
            volatile: true,
            ..Scalar::new(
                format!("{SERIAL_SEQUENCE}({}, {})", quoted(&table.name), quoted(&column)),
                oid::TEXT,
            )
        })
    }

    #[allow(clippy::needless_pass_by_value, reason = "a call takes its arguments along")]
    fn current_setting(&mut self, arguments: Vec<Scalar>) -> Result<Scalar> {
        let (Some(name), missing_ok) = (
            arguments.first().and_then(Scalar::unknown_text),
            matches!(
                arguments.get(1).map(|argument| &argument.form),
                Some(Form::Constant(Owned::Integer(1)))
            ),
        ) else {
            return Err(Fault::unsupported("current_setting() of a name that is not a constant"));
        };
        self.session_bound = true;
        self.reads_settings = true;
        match (self.session.settings)(&name.to_ascii_lowercase()) {
            Some(value) => Ok(Scalar::constant(Owned::Text(value), oid::TEXT)),
            None if missing_ok => Ok(Scalar {
                oid: oid::TEXT,
                ..Scalar::null()
            }),
            None => Err(Fault::new(
                "42704",
                format!("unrecognized configuration parameter \"{name}\""),
            )),
        }
    }

    /// `CURRENT_TIMESTAMP(3)` and its like.
    fn current_time(&mut self, name: &str, written: &Written<'_>) -> Result<Option<Scalar>> {
        if !matches!(
            name,
            "current_timestamp" | "localtimestamp" | "current_time" | "localtime"
        ) {
            return Ok(None);
        }
        let [Expr::Value(value)] = written.positional.as_slice() else {
            return Ok(None);
        };
        let digits = match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        };
        let (Some(time), Some(digits)) = (self.session_word(name)?, digits) else {
            return Ok(None);
        };
        let kind = TypeName {
            oid: time.oid,
            typmod: std::cmp::min(digits, 6),
        };
        self.convert(time, kind, Context::Explicit).map(Some)
    }

    /// What a word or a call without arguments says of the session.
    pub(super) fn session_word(&mut self, name: &str) -> Result<Option<Scalar>> {
        let text = |text: &str, oid: Oid| Ok(Some(Scalar::constant(Owned::Text(text.to_owned()), oid)));
        let told = |function: &str| Scalar {
            not_null: true,
            stable: true,
            ..Scalar::new(format!("\"{function}\"({ENVIRONMENT})"), oid::TIMESTAMPTZ)
        };
        let now = || told("forebay_now");
        let in_zone = |compiler: &mut Self, to: Oid| {
            compiler.zone_bound = true;
            compiler.convert_type(now(), to, Context::Explicit).map(Some)
        };
        match name {
            "now" | "current_timestamp" | "transaction_timestamp" => Ok(Some(now())),
            "statement_timestamp" => Ok(Some(told("forebay_asked"))),
            "current_date" => in_zone(self, oid::DATE),
            "localtimestamp" => in_zone(self, oid::TIMESTAMP),
            "localtime" => in_zone(self, oid::TIME),
            "current_time" => in_zone(self, oid::TIMETZ),
            "current_user" | "session_user" | "user" | "current_role" => {
                self.session_bound = true;
                text(self.session.user, oid::NAME)
            }
            "current_database" | "current_catalog" => {
                self.session_bound = true;
                text(self.session.database, oid::NAME)
            }
            "current_schema" => match self.path()?.first() {
                Some(first) => text(first, oid::NAME),
                None => Ok(Some(Scalar::new("NULL", oid::NAME))),
            },
            "version" => text(self.session.version, oid::TEXT),
            "pg_backend_pid" => {
                self.session_bound = true;
                Ok(Some(Scalar::constant(
                    Owned::Integer(i64::from(self.session.pid)),
                    oid::INT4,
                )))
            }
            "pg_is_in_recovery" => Ok(Some(Scalar::constant(false.into(), oid::BOOL))),
            "pg_my_temp_schema" => Ok(Some(Scalar::constant(Owned::Integer(0), oid::OID))),
            _ => Ok(None),
        }
    }
}

/// Sorts the arguments of a call.
pub(super) fn written(arguments: &[FunctionArg]) -> Result<Written<'_>> {
    let mut sorted = Written {
        positional: Vec::new(),
        named: Vec::new(),
        star: false,
    };
    for argument in arguments {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) if sorted.named.is_empty() => {
                sorted.positional.push(expression);
            }
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => sorted.star = true,
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(expression),
                ..
            } => sorted.named.push((name, expression)),
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expression),
                ..
            } => sorted.named.push((name, expression)),
            other => return Err(Fault::unsupported(format!("the argument {other}"))),
        }
    }
    Ok(sorted)
}

/// The default of an argument that was left out, for PostgreSQL's functions that have some.
fn default_argument(fact: &FunctionFact, place: usize) -> Option<Scalar> {
    let text = |text: &str| Some(Scalar::constant(Owned::Text(text.to_owned()), oid::TEXT));
    match (fact.symbol, place) {
        ("make_interval", 6) => Some(Scalar::constant(Owned::Real(0.0), oid::FLOAT8)),
        ("make_interval", _) => Some(Scalar::constant(Owned::Integer(0), oid::INT4)),
        ("jsonb_set" | "jsonb_set_lax", 3) | ("parse_ident", 1) => Some(Scalar::constant(true.into(), oid::BOOL)),
        ("jsonb_insert", 3) => Some(Scalar::constant(false.into(), oid::BOOL)),
        ("jsonb_set_lax", 4) => text("use_json_null"),
        _ => None,
    }
}

/// What names a sequence: a literal cast to regclass, as PostgreSQL writes it, is the literal.
fn named_sequence<'e>(function: &str, argument: &'e Expr) -> &'e Expr {
    match unnested(argument) {
        Expr::Cast {
            expr,
            data_type: DataType::Regclass,
            ..
        } if matches!(function, "nextval" | "currval" | "setval") => expr,
        _ => argument,
    }
}
