//! An expression on its way to SQLite: its text there, and what PostgreSQL knows of it.
//!
//! Knows how constants are written and how values are converted from type to type; does not know where expressions come from.

use forebay_pg_values::{Arguments, Datum, Kind, Owned, Type, function, text_form};

use super::Compiler;
use super::fault::{Fault, Result};
use super::resolve::{self, converts};
use super::types::{self, TypeName};
use crate::sql::facts::{self, CastMethod, Context, Oid, oid};

/// What stands for the parameter with which a statement is told of its session; replaced by its number when all others are known.
pub(super) const ENVIRONMENT: char = '\u{1}';

/// Whether a function asks which letters are large, small or letters at all.
fn asks_for_letters(symbol: &str) -> bool {
    ["lower", "upper", "initcap", "regex", "iclike", "icnlike", "similar"]
        .iter()
        .any(|word| symbol.contains(word))
}

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

impl Scalar {
    pub(super) fn new(sql: impl Into<String>, oid: Oid) -> Self {
        Self {
            sql: sql.into(),
            oid,
            typmod: -1,
            form: Form::Any,
            not_null: false,
            volatile: false,
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
            sql: literal(&value, oid),
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
    fn strict_in<'a>(mut self, arguments: impl IntoIterator<Item = &'a Self>) -> Self {
        for number in arguments.into_iter().flat_map(|argument| &argument.null_with) {
            if !self.null_with.contains(number) {
                self.null_with.push(*number);
            }
        }
        self
    }

    /// Whether it holds no column but parameters, and calls with them: PostgreSQL's planner evaluates such a thing, whatever
    /// stands beside it.
    fn is_planned(&self) -> bool {
        self.sql.contains('?')
            && self.sql.contains("\"pg:")
            && !self.sql.contains(ENVIRONMENT)
            && !super::expression::has_column(&self.sql)
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

/// A constant as SQLite's grammar has it.
pub(super) fn literal(value: &Owned, oid: Oid) -> String {
    match value {
        Owned::Null => "NULL".to_owned(),
        // Written so that no sign stands in front of a number: -9223372036854775808 is no integer to SQLite's grammar.
        Owned::Integer(i64::MIN) => "(-9223372036854775807-1)".to_owned(),
        Owned::Integer(integer) if *integer < 0 => format!("({integer})"),
        Owned::Integer(integer) => integer.to_string(),
        Owned::Real(real) if *real == f64::INFINITY => "9e999".to_owned(),
        Owned::Real(real) if *real == f64::NEG_INFINITY => "(-9e999)".to_owned(),
        Owned::Real(real) if *real < 0.0 || real.is_sign_negative() => format!("({real:?})"),
        Owned::Real(real) => format!("{real:?}"),
        Owned::Text(text) => quoted(text),
        Owned::Blob(bytes) => {
            use std::fmt::Write;
            let mut out = String::with_capacity(bytes.len() * 2 + 3);
            out.push_str("x'");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.push('\'');
            let _ = oid;
            out
        }
    }
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for (index, part) in text.split('\'').enumerate() {
        if index > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
    out.push('\'');
    out
}

/// A name as SQLite's grammar has it.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The name under which a function of PostgreSQL's is known to SQLite.
pub(crate) fn function_name(symbol: &str) -> String {
    identifier(&format!("pg:{symbol}"))
}

impl Compiler<'_> {
    /// Converts to a type, or says why that cannot be.
    pub(super) fn convert(&mut self, scalar: Scalar, to: TypeName, context: Context) -> Result<Scalar> {
        let converted = self.convert_type(scalar, to.oid, context)?;
        self.apply_typmod(converted, to.typmod, context)
    }

    /// Converts to a type without a modifier.
    pub(super) fn convert_type(&mut self, scalar: Scalar, to: Oid, context: Context) -> Result<Scalar> {
        if scalar.oid == to || to == oid::ANY || resolve::is_polymorphic(to) {
            return Ok(scalar);
        }
        if scalar.oid == oid::UNKNOWN {
            return self.convert_unknown(scalar, to);
        }
        if !converts(scalar.oid, to, context) {
            return Err(Fault::new(
                "42846",
                format!(
                    "cannot cast type {} to {}",
                    facts::display_name(scalar.oid),
                    facts::display_name(to)
                ),
            ));
        }
        let from = scalar.oid;
        if let Some(cast) = facts::cast(from, to) {
            return match cast.method {
                CastMethod::Binary => Ok(Scalar {
                    oid: to,
                    typmod: -1,
                    ..scalar
                }),
                CastMethod::Function(symbol) => {
                    let mut arguments = vec![scalar];
                    if cast.arguments > 1 {
                        arguments.push(Scalar::constant(Owned::Integer(-1), oid::INT4));
                    }
                    if cast.arguments > 2 {
                        let explicit = context == Context::Explicit;
                        arguments.push(Scalar::constant(explicit.into(), oid::BOOL));
                    }
                    self.call_symbol(symbol, arguments, to)
                }
                CastMethod::InOut => self.through_text(scalar, to),
            };
        }
        if let (Some(_), Some(element)) = (facts::element_of(from), facts::element_of(to)) {
            return self.convert_array(scalar, to, element, context);
        }
        self.through_text(scalar, to)
    }

    fn convert_unknown(&mut self, scalar: Scalar, to: Oid) -> Result<Scalar> {
        match &scalar.form {
            Form::Constant(Owned::Text(text)) => {
                let value = self
                    .read_text(text, to)
                    .map_err(|fault| fault.at_location(scalar.location))?;
                self.look_at_literal(scalar.location, text, to, &value)?;
                Ok(Scalar::constant(value, to))
            }
            Form::Constant(_) => Ok(Scalar { oid: to, ..scalar }),
            Form::Parameter(number) => {
                let number = *number;
                let known = self.parameter_is(number, to)?;
                let scalar = Scalar {
                    oid: known,
                    form: Form::Any,
                    ..scalar
                };
                self.convert_type(scalar, to, Context::Implicit)
            }
            // A column of a subquery whose type nobody has said is text by then.
            Form::Any => {
                let scalar = Scalar {
                    oid: oid::TEXT,
                    ..scalar
                };
                self.convert_type(scalar, to, Context::Explicit)
            }
        }
    }

    /// The stored form of a text as a value of a type: what the type's input function does.
    pub(super) fn read_text(&mut self, text: &str, to: Oid) -> Result<Owned> {
        match Type::from_oid(to) {
            Some(Type::Scalar(kind)) => {
                if self.depends_on_moment(kind, text) {
                    self.session_bound = true;
                }
                if matches!(kind, Kind::Timestamptz | Kind::Timetz) {
                    self.zone_bound = true;
                }
                Ok(text_form::parse(kind, -1, text, self.values)?)
            }
            Some(Type::Array(kind)) => Ok(Owned::Text(forebay_pg_values::array::parse(
                kind,
                -1,
                text,
                self.values,
            )?)),
            None if to == oid::REGCLASS => Err(Fault::unsupported("a name as regclass outside of catalog queries")),
            None => Err(Fault::unsupported(format!(
                "a value of type {}",
                facts::display_name(to)
            ))),
        }
    }

    /// `'now'` and its like are read once, when the statement is prepared; such a plan is not for others.
    #[allow(
        clippy::unused_self,
        reason = "one of the questions a compiler is asked about literals"
    )]
    pub(super) fn depends_on_moment(&self, kind: Kind, text: &str) -> bool {
        const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
        matches!(
            kind,
            Kind::Date | Kind::Time | Kind::Timetz | Kind::Timestamp | Kind::Timestamptz
        ) && {
            let lower = text.to_ascii_lowercase();
            WORDS.iter().any(|word| lower.contains(word))
        }
    }

    /// From type to type by writing the value as text and reading it again.
    fn through_text(&mut self, scalar: Scalar, to: Oid) -> Result<Scalar> {
        let text = self.write_as_text(scalar, to)?;
        if facts::category(to) == b'S' && to != oid::NAME && to != oid::CHAR {
            return Ok(text);
        }
        let into = Type::from_oid(to)
            .ok_or_else(|| Fault::unsupported(format!("a value of type {}", facts::display_name(to))))?;
        let name = type_label(into);
        let sql = format!("\"forebay_read\"({}, '{name}', {ENVIRONMENT})", text.sql);
        if let Form::Constant(Owned::Text(value)) = &text.form {
            let value = value.clone();
            // What is none of the type's is an error when it is met, if it ever is.
            let of_the_moment = matches!(facts::category(to), b'D' | b'T');
            match self.read_text(&value, to) {
                Ok(value) => return Ok(Scalar::constant(value, to)),
                Err(fault) if !self.lenient && !of_the_moment => return Err(fault),
                Err(_) => {}
            }
        }
        Ok(Scalar {
            not_null: text.not_null,
            ..Scalar::new(sql, to)
        }
        .strict_in([&text])
        .with_parts([&text]))
    }

    /// The text of a value, as its type's output function writes it; `to` is a type of strings, or any for which text is enough.
    pub(super) fn write_as_text(&mut self, scalar: Scalar, to: Oid) -> Result<Scalar> {
        let to = if facts::category(to) == b'S' { to } else { oid::TEXT };
        match Type::from_oid(scalar.oid) {
            Some(Type::Scalar(
                Kind::Text | Kind::Varchar | Kind::Name | Kind::Char | Kind::Unknown | Kind::Json | Kind::Jsonb,
            )) => Ok(Scalar {
                // The collation of a column would come along with its text.
                sql: if types::collation(scalar.oid).is_some() {
                    format!("({} COLLATE BINARY)", scalar.sql)
                } else {
                    scalar.sql.clone()
                },
                oid: to,
                typmod: -1,
                ..scalar
            }),
            Some(from) => {
                let name = type_label(from);
                let sql = match from {
                    Type::Scalar(kind) if is_written_alike_everywhere(kind) => {
                        format!("\"forebay_write\"({}, '{name}')", scalar.sql)
                    }
                    _ => format!("\"forebay_write\"({}, '{name}', {ENVIRONMENT})", scalar.sql),
                };
                if matches!(scalar.oid, oid::TIMESTAMPTZ | oid::TIMETZ) {
                    self.zone_bound = true;
                }
                let written = Scalar {
                    not_null: scalar.not_null,
                    ..Scalar::new(sql, to)
                }
                .strict_in([&scalar])
                .with_parts([&scalar]);
                Ok(match (&scalar.form, from) {
                    (Form::Constant(Owned::Null), _) => Scalar {
                        oid: to,
                        ..Scalar::null()
                    },
                    (Form::Constant(value), Type::Scalar(kind))
                        if !matches!(kind, Kind::Timestamptz | Kind::Timetz) =>
                    {
                        let mut text = String::new();
                        text_form::write(kind, value.as_datum(), self.values, &mut text)?;
                        Scalar::constant(Owned::Text(text), to)
                    }
                    _ => written,
                })
            }
            None => Err(Fault::unsupported(format!(
                "a cast from {} to text",
                facts::display_name(scalar.oid)
            ))),
        }
    }

    fn convert_array(&mut self, scalar: Scalar, to: Oid, element: Oid, context: Context) -> Result<Scalar> {
        let from = facts::element_of(scalar.oid).unwrap_or(oid::UNKNOWN);
        let binary = facts::cast(from, element).is_some_and(|cast| cast.method == CastMethod::Binary);
        let same_form = binary
            || matches!(
                (from, element),
                (oid::INT2 | oid::INT4 | oid::INT8, oid::INT8) | (oid::INT2, oid::INT4)
            );
        if same_form {
            return Ok(Scalar {
                oid: to,
                typmod: -1,
                ..scalar
            });
        }
        if let Some(items) = scalar.constant_elements()
            && let (Form::Constant(Owned::Text(stored)), Some(Type::Scalar(from)), Some(Type::Scalar(into))) =
                (&scalar.form, Type::from_oid(from), Type::from_oid(element))
        {
            // NULLs stay where they are.
            let mut converted = Vec::with_capacity(items.len());
            for item in items {
                if item.constant_value() == Some(Owned::Null) {
                    continue;
                }
                converted.push(self.convert_type(item, element, context)?.constant_value());
            }
            if let Some(converted) = converted.into_iter().collect::<Option<Vec<Owned>>>() {
                let mut converted = converted.into_iter();
                let stored = forebay_pg_values::array::convert_elements(from, into, stored, |_| {
                    Ok(converted.next().unwrap_or(Owned::Null))
                })?;
                return Ok(Scalar::constant(Owned::Text(stored), to));
            }
        }
        // Element by element, by the cast of the elements.
        let item = Scalar::new("\"value\"", from);
        let converted = self.convert_type(item, element, context)?;
        let wrapped = match Type::from_oid(element) {
            Some(Type::Scalar(kind)) => format!(
                "(SELECT \"forebay_gather\"({}, '{}') FROM json_each(\"forebay_one_dimension\"({})))",
                converted.sql,
                kind.name(),
                scalar.sql
            ),
            _ => {
                return Err(Fault::unsupported(format!(
                    "an array of {}",
                    facts::display_name(element)
                )));
            }
        };
        let sql = format!("(CASE WHEN {} IS NOT NULL THEN {wrapped} END)", scalar.sql);
        Ok(Scalar::new(sql, to).with_parts([&scalar]))
    }

    /// Fits a value to its type's modifier: length, precision, scale.
    pub(super) fn apply_typmod(&mut self, scalar: Scalar, typmod: i32, context: Context) -> Result<Scalar> {
        if typmod < 0 || scalar.typmod == typmod {
            return Ok(Scalar {
                typmod: if typmod < 0 { scalar.typmod } else { typmod },
                ..scalar
            });
        }
        let oid = scalar.oid;
        if let Some(element) = facts::element_of(oid) {
            if matches!(element, oid::VARCHAR | oid::BPCHAR | oid::NUMERIC) || types::collation(element).is_some() {
                return Err(Fault::unsupported(format!(
                    "an array of {}",
                    types::format_type(element, typmod)
                )));
            }
            return Ok(Scalar { typmod, ..scalar });
        }
        let Some((CastMethod::Function(symbol), arguments)) =
            facts::cast(oid, oid).map(|cast| (cast.method, cast.arguments))
        else {
            return Ok(Scalar { typmod, ..scalar });
        };
        let mut given = vec![scalar, Scalar::constant(Owned::Integer(i64::from(typmod)), oid::INT4)];
        if arguments > 2 {
            given.push(Scalar::constant((context == Context::Explicit).into(), oid::BOOL));
        }
        let fitted = self.call_symbol(symbol, given, oid)?;
        Ok(Scalar { typmod, ..fitted })
    }

    /// A call of one of PostgreSQL's functions, whose arguments have the types it wants; done at once if it can be.
    #[allow(clippy::needless_pass_by_value, reason = "a call takes its arguments along")]
    pub(super) fn call_symbol(&mut self, symbol: &str, arguments: Vec<Scalar>, result: Oid) -> Result<Scalar> {
        if asks_for_letters(symbol) && arguments.iter().any(|argument| argument.plain_letters) {
            return Err(Fault::unsupported(
                "the case and the class of letters under COLLATE \"C\"",
            ));
        }
        let is_strict = match function(symbol) {
            Some(known) => known.strict,
            None => super::native::lower(symbol, &arguments).is_some(),
        };
        let no_value = arguments
            .iter()
            .any(|argument| argument.form == Form::Constant(Owned::Null));
        if no_value && is_strict && !arguments.iter().any(Scalar::is_planned) {
            // Whatever the others are.
            return Ok(Scalar {
                oid: result,
                ..Scalar::null()
            });
        }
        let constant = arguments
            .iter()
            .all(|argument| matches!(argument.form, Form::Constant(_)));
        let folds = constant && function(symbol).is_some_and(|known| !known.in_session);
        if !folds && let Some(native) = super::native::lower(symbol, &arguments) {
            if let Some(truth) = super::native::compared(symbol, &arguments) {
                return Ok(Scalar::constant(truth.into(), result));
            }
            return Ok(Scalar {
                not_null: native.keeps_not_null && arguments.iter().all(|argument| argument.not_null),
                ..Scalar::new(native.sql, result)
            }
            .strict_in(&arguments)
            .with_parts(&arguments));
        }
        let Some(known) = function(symbol) else {
            return Err(Fault::unsupported(format!(
                "the function {}",
                readable(symbol, &arguments)
            )));
        };
        let argument_types: Vec<Type> = arguments
            .iter()
            .filter_map(|argument| Type::from_oid(argument.oid))
            .collect();
        if known.typed && argument_types.len() != arguments.len() {
            return Err(Fault::unsupported(format!(
                "the function {}",
                readable(symbol, &arguments)
            )));
        }
        let constants: Option<Vec<Datum<'_>>> = arguments
            .iter()
            .map(|argument| match &argument.form {
                Form::Constant(value) => Some(value.as_datum()),
                _ => None,
            })
            .collect();
        if let (Some(values), false) = (&constants, known.in_session) {
            let called = known.call(Arguments {
                values,
                types: &argument_types,
                environment: self.values,
            });
            match called {
                Ok(value) if length(&value) <= CONSTANT_BYTES_MAX => return Ok(Scalar::constant(value, result)),
                // Better made again than written down.
                Ok(_) => {}
                // PostgreSQL evaluates what is constant before it runs anything.
                Err(error) if !self.lenient && facts::is_immutable(symbol) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let mut sql = function_name(symbol);
        sql.push('(');
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&argument.sql);
        }
        let mut separator = if arguments.is_empty() { "" } else { ", " };
        if known.typed {
            let labels: Vec<String> = argument_types.iter().map(|kind| type_label(*kind)).collect();
            sql.push_str(separator);
            sql.push_str(&quoted(&labels.join(",")));
            separator = ", ";
        }
        if known.in_session {
            sql.push_str(separator);
            sql.push(ENVIRONMENT);
        }
        sql.push(')');
        let called = Scalar::new(sql, result).with_parts(&arguments);
        Ok(if is_strict {
            called.strict_in(&arguments)
        } else {
            called
        })
    }
}

fn length(value: &Owned) -> usize {
    match value {
        Owned::Text(text) => text.len(),
        Owned::Blob(bytes) => bytes.len(),
        Owned::Null | Owned::Integer(_) | Owned::Real(_) => 0,
    }
}

/// Whether the text of such a value is the same in every session: PostgreSQL calls that cast immutable.
fn is_written_alike_everywhere(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid | Kind::Numeric | Kind::Uuid
    )
}

/// The type's internal name: `int4`, `_int4`.
pub(crate) fn type_label(kind: Type) -> String {
    match kind {
        Type::Scalar(kind) => kind.name().to_owned(),
        Type::Array(kind) => format!("_{}", kind.name()),
    }
}

fn readable(symbol: &str, arguments: &[Scalar]) -> String {
    if symbol.contains('(') {
        return symbol.to_owned();
    }
    let types: Vec<String> = arguments
        .iter()
        .map(|argument| facts::display_name(argument.oid))
        .collect();
    format!("{symbol}({})", types.join(", "))
}
