//! The functions of the catalog connection: what translated queries call.
//!
//! Each is either PostgreSQL's function of that name or a helper of the translator, which begins with `forebay_`. All are strict
//! unless said otherwise: a NULL argument makes the result NULL. Errors carry a SQLSTATE ([`super::runtime_error`]). They know the
//! [`Directory`], not the query they stand in.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use regex::Regex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};
use serde_json::Value as Json;

use forebay_pg_values::text::case;

use super::arguments::{PURE, boolean, bounded, integer, number, oid, pure, string, text};
use super::array_functions::register_arrays;
use super::directory::{self, Directory};
use super::error::RuntimeError;
use super::types;
use crate::sql::identifier::quote_identifier;

/// Bytes of compiled program a pattern may need.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The settings of the session that asks, by name in lower case.
pub(super) type Settings = BTreeMap<String, String>;

/// Puts every function into `connection`.
pub(super) fn register(
    connection: &Connection,
    directory: &Arc<RwLock<Directory>>,
    settings: &Arc<RwLock<Settings>>,
) -> Result<()> {
    register_lookups(connection, directory)?;
    register_settings(connection, settings)?;
    register_text(connection)?;
    register_arrays(connection)
}

fn register_settings(connection: &Connection, settings: &Arc<RwLock<Settings>>) -> Result<()> {
    let settings = Arc::clone(settings);
    connection.create_scalar_function("current_setting", -1, FunctionFlags::SQLITE_UTF8, move |context| {
        if (0..context.len()).any(|index| matches!(context.get_raw(index), ValueRef::Null)) {
            return Ok(None);
        }
        let name = string(context, 0)?;
        let missing_is_null = context.len() > 1 && integer(context, 1)? != 0;
        match settings.read().get(&name.to_ascii_lowercase()) {
            None if !missing_is_null => {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                Err(RuntimeError::raise("42704", message))
            }
            found => Ok(found.cloned()),
        }
    })
}

fn register_lookups(connection: &Connection, directory: &Arc<RwLock<Directory>>) -> Result<()> {
    // Not deterministic: a refresh changes the answer.
    let lookup = |name: &str, function: fn(&Directory, &Context<'_>) -> Result<Value>| {
        let directory = Arc::clone(directory);
        connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
            if (0..context.len()).any(|index| matches!(context.get_raw(index), ValueRef::Null)) {
                return Ok(Value::Null);
            }
            function(&directory.read(), context)
        })
    };
    lookup("pg_table_is_visible", |directory, context| {
        Ok(boolean(directory.is_visible(oid(context, 0)?)))
    })?;
    lookup("pg_get_userbyid", |directory, context| {
        let role = oid(context, 0)?;
        Ok(Value::Text(
            directory
                .role_text(role)
                .unwrap_or_else(|| format!("unknown (OID={role})")),
        ))
    })?;
    lookup("pg_get_indexdef", |directory, context| {
        let column = if context.len() > 1 { integer(context, 1)? } else { 0 };
        let Ok(column) = usize::try_from(column) else {
            return Ok(Value::Null);
        };
        Ok(text(directory.index_definition(
            oid(context, 0)?,
            column,
            pretty(context, 2)?,
        )))
    })?;
    lookup("pg_get_constraintdef", |directory, context| {
        Ok(text(
            directory.constraint_definition(oid(context, 0)?, pretty(context, 1)?),
        ))
    })?;
    lookup("pg_get_serial_sequence", |directory, context| {
        let (table, column) = (string(context, 0)?, string(context, 1)?);
        directory
            .serial_sequence(&table, &column)
            .map(text)
            .map_err(|(sqlstate, message)| RuntimeError::raise(sqlstate, message))
    })?;
    lookup("pg_get_viewdef", |directory, context| {
        Ok(text(directory.view_definition(oid(context, 0)?)))
    })?;
    lookup("pg_get_triggerdef", |directory, context| {
        Ok(text(directory.trigger_definition(oid(context, 0)?)))
    })?;
    lookup("pg_relation_is_publishable", |directory, context| {
        Ok(boolean(
            directory.is_visible(oid(context, 0)?).map(|_| oid_is_user(context)),
        ))
    })?;
    lookup("pg_backend_pid", |directory, _| {
        Ok(Value::Integer(directory.process.into()))
    })?;
    lookup("current_database", |directory, _| {
        Ok(Value::Text(directory.database.clone()))
    })?;
    lookup("forebay_user", |directory, _| Ok(Value::Text(directory.user.clone())))?;
    lookup("version", |directory, _| Ok(Value::Text(directory.version.clone())))?;
    lookup("forebay_regclass_text", |directory, context| {
        Ok(Value::Text(directory.relation_text(oid(context, 0)?)))
    })?;
    lookup("forebay_regrole_text", |directory, context| {
        let role = oid(context, 0)?;
        Ok(Value::Text(
            directory
                .role_text(role)
                .map_or_else(|| role.to_string(), |name| quote_identifier(&name)),
        ))
    })?;
    lookup("to_regclass", |directory, context| {
        Ok(number(directory.relation(&string(context, 0)?)))
    })?;
    lookup("to_regnamespace", |directory, context| {
        Ok(number(directory.namespace(&string(context, 0)?)))
    })?;
    lookup("forebay_regnamespace", |directory, context| {
        let name = string(context, 0)?;
        directory
            .namespace(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| RuntimeError::raise("3F000", format!("schema \"{name}\" does not exist")))
    })?;
    lookup("forebay_regnamespace_text", |directory, context| {
        let oid = oid(context, 0)?;
        Ok(Value::Text(
            directory.namespace_text(oid).unwrap_or_else(|| oid.to_string()),
        ))
    })?;
    lookup("forebay_current_schema", |directory, _| {
        Ok(text(directory.path().first().cloned()))
    })?;
    lookup("forebay_current_schemas", |directory, context| {
        let mut path = directory.path().to_vec();
        if integer(context, 0)? != 0 {
            path.insert(0, "pg_catalog".to_owned());
        }
        let names: Vec<String> = path.iter().map(|name| quote_identifier(name)).collect();
        Ok(Value::Text(format!("{{{}}}", names.join(","))))
    })?;
    lookup("to_regrole", |directory, context| {
        Ok(number(directory.role(&string(context, 0)?)))
    })?;
    lookup("forebay_regclass", |directory, context| {
        let name = string(context, 0)?;
        directory
            .relation(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| match directory.missing_schema(&name) {
                Some(schema) => RuntimeError::raise("3F000", format!("schema \"{schema}\" does not exist")),
                None => RuntimeError::raise("42P01", format!("relation \"{name}\" does not exist")),
            })
    })?;
    lookup("forebay_regrole", |directory, context| {
        let name = string(context, 0)?;
        directory
            .role(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| RuntimeError::raise("42704", format!("role \"{name}\" does not exist")))
    })
}

/// The last argument of the `pg_get_…def` functions, which may be left out.
fn pretty(context: &Context<'_>, index: usize) -> Result<bool> {
    Ok(context.len() > index && integer(context, index)? != 0)
}

fn oid_is_user(context: &Context<'_>) -> bool {
    oid(context, 0).is_ok_and(|oid| oid >= 16_384)
}

fn register_text(connection: &Connection) -> Result<()> {
    let pure = |name: &str, function: fn(&Context<'_>) -> Result<Value>| pure(connection, name, function);
    // Its second argument may be NULL.
    connection.create_scalar_function("format_type", 2, PURE, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Null => None,
            _ => Some(types::format_type(oid(context, 0)?, context.get::<Option<i64>>(1)?)),
        })
    })?;
    pure("lower", |context| Ok(Value::Text(case::lower(&string(context, 0)?))))?;
    pure("upper", |context| Ok(Value::Text(case::upper(&string(context, 0)?))))?;
    connection.create_scalar_function("concat", -1, PURE, |context| {
        let mut whole = String::new();
        for index in 0..context.len() {
            if !matches!(context.get_raw(index), ValueRef::Null) {
                whole.push_str(&string(context, index)?);
            }
        }
        bounded(whole)
    })?;
    pure("forebay_keywords", |_| Ok(Value::Text(keywords())))?;
    pure("forebay_json_text", |context| {
        Ok(Value::Text(Json::from(string(context, 0)?).to_string()))
    })?;
    connection.create_scalar_function("forebay_json_key", 1, PURE, |context| {
        if matches!(context.get_raw(0), ValueRef::Null) {
            return Err(RuntimeError::raise("22023", "null value not allowed for object key"));
        }
        Ok(Json::from(string(context, 0)?).to_string())
    })?;
    pure("pg_encoding_to_char", |context| {
        let name = match integer(context, 0)? {
            0 => "SQL_ASCII",
            6 => "UTF8",
            _ => "",
        };
        Ok(Value::Text(name.to_owned()))
    })?;
    pure("pg_char_to_encoding", |context| {
        let name = string(context, 0)?.to_ascii_uppercase();
        Ok(Value::Integer(match name.as_str() {
            "UTF8" | "UTF-8" => 6,
            "SQL_ASCII" => 0,
            _ => -1,
        }))
    })?;
    pure("quote_ident", |context| {
        Ok(Value::Text(quote_identifier(&string(context, 0)?)))
    })?;
    pure("quote_literal", |context| {
        Ok(Value::Text(format!("'{}'", string(context, 0)?.replace('\'', "''"))))
    })?;
    pure("pg_size_pretty", |context| {
        Ok(Value::Text(pretty_size(integer(context, 0)?)))
    })?;
    pure("split_part", |context| {
        let (whole, separator, wanted) = (string(context, 0)?, string(context, 1)?, integer(context, 2)?);
        let parts: Vec<&str> = if separator.is_empty() {
            vec![whole.as_str()]
        } else {
            whole.split(separator.as_str()).collect()
        };
        let index = match wanted {
            0 => {
                return Err(RuntimeError::raise("22023", "field position must not be zero"));
            }
            1.. => usize::try_from(wanted - 1).ok(),
            _ => usize::try_from(wanted.unsigned_abs())
                .ok()
                .and_then(|back| parts.len().checked_sub(back)),
        };
        Ok(Value::Text(
            index
                .and_then(|index| parts.get(index))
                .copied()
                .unwrap_or_default()
                .to_owned(),
        ))
    })?;
    pure("to_regtype", |context| {
        Ok(number(registered_type(&string(context, 0)?)))
    })?;
    pure("to_regproc", |context| {
        Ok(number(directory::procedure(&string(context, 0)?)))
    })?;
    pure("forebay_regtype", |context| {
        let name = string(context, 0)?;
        registered_type(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| RuntimeError::raise("42704", format!("type \"{name}\" does not exist")))
    })?;
    pure("forebay_regproc", |context| {
        let name = string(context, 0)?;
        directory::procedure(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| RuntimeError::raise("42883", format!("function \"{name}\" does not exist")))
    })?;
    pure("forebay_regtype_text", |context| {
        let oid = oid(context, 0)?;
        let text = types::format_type(oid, None);
        Ok(Value::Text(if text == "???" { oid.to_string() } else { text }))
    })?;
    pure("forebay_regproc_text", |context| {
        let oid = oid(context, 0)?;
        Ok(Value::Text(match directory::procedure_by_oid(oid) {
            None if oid == 0 => "-".to_owned(),
            None => oid.to_string(),
            Some(procedure) => procedure.name.to_owned(),
        }))
    })?;
    pure("forebay_regprocedure", |context| {
        let name = string(context, 0)?;
        directory::procedure_with_arguments(&name)
            .map(|oid| number(Some(oid)))
            .ok_or_else(|| RuntimeError::raise("42883", format!("function \"{name}\" does not exist")))
    })?;
    pure("forebay_regprocedure_text", |context| {
        let oid = oid(context, 0)?;
        Ok(Value::Text(match directory::procedure_by_oid(oid) {
            None if oid == 0 => "-".to_owned(),
            None => oid.to_string(),
            Some(procedure) => format!("{}({})", procedure.name, argument_types(procedure).join(",")),
        }))
    })?;
    pure("pg_get_function_result", |context| {
        Ok(text(
            directory::procedure_by_oid(oid(context, 0)?).map(|procedure| types::format_type(procedure.result, None)),
        ))
    })?;
    pure("pg_get_function_arguments", |context| {
        let procedure = directory::procedure_by_oid(oid(context, 0)?);
        Ok(text(procedure.map(|procedure| argument_types(procedure).join(", "))))
    })?;
    pure("forebay_integer", |context| {
        let text = string(context, 0)?;
        text.trim()
            .parse()
            .map(Value::Integer)
            .map_err(|_| RuntimeError::raise("22P02", format!("invalid input syntax for type integer: \"{text}\"")))
    })?;
    pure("forebay_boolean", |context| {
        let text = string(context, 0)?;
        boolean_literal(&text)
            .map(|value| boolean(Some(value)))
            .ok_or_else(|| RuntimeError::raise("22P02", format!("invalid input syntax for type boolean: \"{text}\"")))
    })?;
    for (name, insensitive) in [("forebay_regexp", false), ("forebay_regexp_insensitive", true)] {
        connection.create_scalar_function(name, 2, PURE, move |context| {
            if matches!(context.get_raw(0), ValueRef::Null) || matches!(context.get_raw(1), ValueRef::Null) {
                return Ok(None);
            }
            let pattern = string(context, 0)?;
            // SQLite keeps what is computed for a constant argument, so a pattern is compiled once a query.
            let regex: Arc<Regex> = context.get_or_create_aux(0, |_| compile(&pattern, insensitive))?;
            Ok(Some(regex.is_match(&string(context, 1)?)))
        })?;
    }
    Ok(())
}

/// PostgreSQL's keywords as it listed them: word, category, whether it may be a label without AS, and both in words.
fn keywords() -> String {
    let lines = include_str!("data/keywords.txt").lines();
    let rows = lines.map(|line| {
        let mut fields = line.split(' ');
        let mut field = || fields.next().expect("a line of keywords.txt has three fields");
        let (word, category, bare) = (field(), field(), field() == "t");
        let described = match category {
            "U" => "unreserved",
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            _ => "reserved",
        };
        let label = if bare { "can be bare label" } else { "requires AS" };
        serde_json::json!([word, category, i32::from(bare), described, label])
    });
    Json::Array(rows.collect()).to_string()
}

fn compile(
    pattern: &str,
    insensitive: bool,
) -> std::result::Result<Regex, Box<dyn std::error::Error + Send + Sync + 'static>> {
    if let Some(part) = foreign_syntax(pattern) {
        let message = format!("the emulated catalog does not support {part} in a regular expression");
        return Err(Box::new(RuntimeError {
            sqlstate: "0A000",
            message,
        }));
    }
    // PostgreSQL: `$` is the end of the text, `.` takes newlines too.
    regex::RegexBuilder::new(pattern)
        .case_insensitive(insensitive)
        .dot_matches_new_line(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| {
            let last = error.to_string().lines().last().unwrap_or_default().to_owned();
            Box::new(RuntimeError {
                sqlstate: "2201B",
                message: format!("invalid regular expression: {last}"),
            }) as _
        })
}

/// What both PostgreSQL and the regex library understand, but not as the same.
fn foreign_syntax(pattern: &str) -> Option<String> {
    if pattern.starts_with("***") || pattern.contains("(?") {
        return Some("options or lookaround".to_owned());
    }
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let escaped = letters.next()?;
                if in_class || (escaped.is_ascii_alphanumeric() && !"dDwWsSnrtf".contains(escaped)) {
                    return Some(format!("\\{escaped}"));
                }
            }
            '[' if in_class => match letters.peek() {
                Some(':') => {
                    while letters.next_if(|letter| *letter != ']').is_some() {}
                    letters.next();
                }
                _ => return Some("[ inside brackets".to_owned()),
            },
            '[' => {
                in_class = true;
                letters.next_if_eq(&'^');
                // The first bracket is a member of the class.
                letters.next_if_eq(&']');
            }
            ']' => in_class = false,
            '&' | '-' | '~' if in_class && letters.peek() == Some(&letter) => {
                return Some(format!("{letter}{letter} inside brackets"));
            }
            _ => {}
        }
    }
    None
}

fn argument_types(procedure: &types::Procedure) -> Vec<String> {
    let oids = procedure.arguments.split_ascii_whitespace();
    oids.map(|oid| types::format_type(oid.parse().unwrap_or(0), None))
        .collect()
}

fn registered_type(name: &str) -> Option<u32> {
    name.trim().parse().ok().or_else(|| types::type_oid(name))
}

/// The words PostgreSQL takes for a boolean.
pub(super) fn boolean_literal(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Some(true),
        "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// `pg_size_pretty`: the next unit from 10 of the present one, rounded half up.
fn pretty_size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut amount = i128::from(bytes);
    let mut unit = 0;
    // One bit below the unit is kept for the rounding, as PostgreSQL does.
    let mut half_bits = false;
    let limit = |half: bool| if half { 20 * 1024 - 1 } else { 10 * 1024 };
    while unit + 1 < UNITS.len() && amount.abs() >= limit(half_bits) {
        amount = if half_bits { amount / 1024 } else { amount / 512 };
        half_bits = true;
        unit += 1;
    }
    if half_bits {
        amount = (amount + amount.signum()) / 2;
    }
    format!("{amount} {}", UNITS[unit])
}
