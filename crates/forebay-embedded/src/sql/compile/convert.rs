//! Conversions from type to type.
//!
//! Promises: PostgreSQL's casts, in the contexts in which PostgreSQL has them; constants are converted at once. A conversion that PostgreSQL does
//! not have is its error (42846).

use forebay_pg_values::{Kind, Owned, Type, array, text_form};
use sqlparser::ast::DataType;

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::resolve::{self, common_type, converts};
use super::scalar::{Form, Scalar};
use super::sqlite_text::{ENVIRONMENT, type_label};
use super::types::{self, TypeName};
use crate::sql::facts::{self, CastMethod, Context, Oid, oid};

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
            Some(read) => {
                let (Type::Scalar(kind) | Type::Array(kind)) = read;
                if depends_on_now(kind, text) {
                    self.session_bound = true;
                }
                if matches!(kind, Kind::Timestamptz | Kind::Timetz) {
                    self.zone_bound = true;
                }
                Ok(match read {
                    Type::Scalar(kind) => text_form::parse(kind, -1, text, self.values)?,
                    Type::Array(kind) => Owned::Text(array::parse(kind, -1, text, self.values)?),
                })
            }
            None if to == oid::REGCLASS => Err(Fault::unsupported("a name as regclass outside of catalog queries")),
            None => Err(Fault::unsupported(format!(
                "a value of type {}",
                facts::display_name(to)
            ))),
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
        if let Form::Constant(Owned::Text(value)) = &text.form
            && !(self.kept && is_of_session(into, value))
        {
            let value = value.clone();
            // What is none of the type's is an error when it is met, if it ever is.
            match self.read_text(&value, to) {
                Ok(value) => return Ok(Scalar::constant(value, to)),
                Err(fault) if !self.lenient && !is_read_when_it_runs(into) => return Err(fault),
                Err(_) => {}
            }
        }
        Ok(Scalar {
            not_null: text.not_null,
            stable: is_read_when_it_runs(into),
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
                    stable: is_written_when_it_runs(from),
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
                let stored =
                    array::convert_elements(from, into, stored, |_| Ok(converted.next().unwrap_or(Owned::Null)))?;
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

    /// A cast that the client wrote.
    pub(super) fn cast(&mut self, scalar: Scalar, data_type: &DataType) -> Result<Scalar> {
        let to = types::resolve(data_type)?;
        self.cast_to(scalar, to)
    }

    pub(super) fn cast_to(&mut self, scalar: Scalar, to: TypeName) -> Result<Scalar> {
        if scalar.oid == oid::UNKNOWN
            && to.oid == oid::INTERVAL
            && to.typmod >= 0
            && let Some(text) = scalar.unknown_text()
        {
            let value = text_form::parse(Kind::Interval, to.typmod, text, self.values)?;
            return Ok(Scalar {
                typmod: to.typmod,
                ..Scalar::constant(value, oid::INTERVAL)
            });
        }
        if !types::has_values(to.oid) {
            return Err(Fault::unsupported(format!("a cast to {}", facts::display_name(to.oid))));
        }
        let converted = self.convert(scalar, to, Context::Explicit)?;
        // A cast to a type without a modifier takes one away.
        Ok(Scalar {
            typmod: to.typmod,
            ..converted
        })
    }

    /// What nothing has given a type is text.
    pub(super) fn or_text(&mut self, scalar: Scalar) -> Result<Scalar> {
        if scalar.oid == oid::UNKNOWN {
            self.convert_type(scalar, oid::TEXT, Context::Implicit)
        } else {
            Ok(scalar)
        }
    }

    /// Converts all to the type that all can be.
    pub(super) fn unify(&mut self, scalars: Vec<Scalar>, what: &str) -> Result<Vec<Scalar>> {
        let types: Vec<Oid> = scalars.iter().map(|scalar| scalar.oid).collect();
        let common = common_type(&types, what)?;
        scalars
            .into_iter()
            .map(|scalar| {
                let from = scalar.oid;
                self.convert_type(scalar, common, Context::Implicit).map_err(|fault| {
                    if fault.sqlstate == "42846" {
                        Fault::new(
                            "42846",
                            format!(
                                "{what} could not convert type {} to {}",
                                facts::display_name(from),
                                facts::display_name(common)
                            ),
                        )
                    } else {
                        fault
                    }
                })
            })
            .collect()
    }
}

/// Whether the text of such a value is the same in every session: PostgreSQL calls that cast immutable.
fn is_written_alike_everywhere(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid | Kind::Numeric | Kind::Uuid
    )
}

/// Whether PostgreSQL declares a type's input function stable, and calls it only when the statement runs.
fn is_read_when_it_runs(read: Type) -> bool {
    match read {
        Type::Scalar(kind) => matches!(
            kind,
            Kind::Date | Kind::Time | Kind::Timetz | Kind::Timestamp | Kind::Timestamptz | Kind::Interval
        ),
        Type::Array(_) => true,
    }
}

/// The same of its output function.
fn is_written_when_it_runs(written: Type) -> bool {
    match written {
        Type::Scalar(kind) => matches!(kind, Kind::Date | Kind::Timestamp | Kind::Timestamptz | Kind::Interval),
        Type::Array(_) => true,
    }
}

/// Whether a text means something else in another session, or later.
pub(super) fn is_of_session(kind: Type, text: &str) -> bool {
    let (Type::Scalar(kind) | Type::Array(kind)) = kind;
    matches!(kind, Kind::Timestamptz | Kind::Timetz) || depends_on_now(kind, text)
}

/// `'now'` and its like are read once, when the statement is prepared; such a plan is not for others.
fn depends_on_now(kind: Kind, text: &str) -> bool {
    const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
    matches!(
        kind,
        Kind::Date | Kind::Time | Kind::Timetz | Kind::Timestamp | Kind::Timestamptz
    ) && {
        let lower = text.to_ascii_lowercase();
        WORDS.iter().any(|word| lower.contains(word))
    }
}
