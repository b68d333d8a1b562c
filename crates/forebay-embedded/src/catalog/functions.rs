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

use super::arrays;
use super::directory::{self, Directory};
use super::error::RuntimeError;
use super::identifier::quote_identifier;
use super::types;

/// Elements a set-returning function may produce, and bytes an array may have: a query for more is refused, not run.
const SERIES_MAX: i64 = 100_000;
/// Bytes of compiled program a pattern may need.
const PATTERN_BYTES_MAX: usize = 1 << 20;

const PURE: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC);

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
            .ok_or_else(|| RuntimeError::raise("42P01", format!("relation \"{name}\" does not exist")))
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

/// A strict function of its arguments alone.
fn pure(connection: &Connection, name: &str, function: fn(&Context<'_>) -> Result<Value>) -> Result<()> {
    connection.create_scalar_function(name, -1, PURE, move |context| {
        if (0..context.len()).any(|index| matches!(context.get_raw(index), ValueRef::Null)) {
            return Ok(Value::Null);
        }
        function(context)
    })
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

fn register_arrays(connection: &Connection) -> Result<()> {
    let pure = |name: &str, function: fn(&Context<'_>) -> Result<Value>| pure(connection, name, function);
    pure("forebay_elements", |context| {
        let numeric = integer(context, 1)? != 0;
        bounded_value(Json::Array(json_elements(&string(context, 0)?, numeric)?).to_string())
    })?;
    pure("forebay_expanded", |context| {
        let numeric = integer(context, 1)? != 0;
        let elements = json_elements(&string(context, 0)?, numeric)?;
        let rows = elements
            .into_iter()
            .enumerate()
            .map(|(index, element)| serde_json::json!({ "x": element, "n": index + 1 }))
            .collect();
        bounded_value(Json::Array(rows).to_string())
    })?;
    pure("forebay_subscripts", |context| {
        let array = array(context, 0)?;
        let rows = (array.first..)
            .zip(array.elements)
            .map(|(subscript, _)| Json::from(subscript))
            .collect();
        bounded_value(Json::Array(rows).to_string())
    })?;
    pure("forebay_series", |context| {
        let (first, last) = (integer(context, 0)?, integer(context, 1)?);
        let step = if context.len() > 2 { integer(context, 2)? } else { 1 };
        if step == 0 {
            return Err(RuntimeError::raise("22023", "step size cannot equal zero"));
        }
        let mut rows = Vec::new();
        let mut next = Some(first);
        while let Some(value) = next.filter(|value| if step > 0 { *value <= last } else { *value >= last }) {
            rows.push(Json::from(value));
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) > SERIES_MAX {
                return Err(RuntimeError::raise(
                    "54000",
                    format!("generate_series produces more than {SERIES_MAX} rows"),
                ));
            }
            next = value.checked_add(step);
        }
        bounded_value(Json::Array(rows).to_string())
    })?;
    // Set-returning functions of one SELECT list run in step: row i of each, NULL where one is shorter. Not strict: a NULL set is empty.
    connection.create_scalar_function("forebay_in_step", -1, PURE, |context| {
        let mut sets: Vec<Vec<Json>> = Vec::new();
        for index in 0..context.len() {
            let set = context
                .get::<Option<String>>(index)?
                .and_then(|text| serde_json::from_str(&text).ok());
            sets.push(set.unwrap_or_default());
        }
        let length = sets.iter().map(Vec::len).max().unwrap_or(0);
        let rows: Vec<Json> = (0..length)
            .map(|row| {
                sets.iter()
                    .map(|set| set.get(row).cloned().unwrap_or(Json::Null))
                    .collect()
            })
            .collect();
        bounded(Json::Array(rows).to_string())
    })?;
    pure("forebay_array", |context| {
        let rows: Vec<Json> = serde_json::from_str(&string(context, 0)?).unwrap_or_default();
        let elements: Vec<Option<String>> = rows
            .into_iter()
            .map(|element| match element {
                Json::Null => None,
                Json::String(text) => Some(text),
                other => Some(other.to_string()),
            })
            .collect();
        Ok(Value::Text(arrays::format(&elements)))
    })?;
    pure("forebay_array_of_vector", |context| {
        Ok(Value::Text(arrays::format_vector(&elements(context, 0)?)))
    })?;
    pure("forebay_subscript", |context| {
        let (wanted, numeric) = (integer(context, 1)?, integer(context, 2)? != 0);
        let arrays::Array { first, mut elements } = array(context, 0)?;
        let index = wanted.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some(index) = index.filter(|index| *index < elements.len()) else {
            return Ok(Value::Null);
        };
        Ok(match elements.swap_remove(index) {
            None => Value::Null,
            Some(text) if numeric => text.parse().map_or(Value::Null, Value::Integer),
            Some(text) => Value::Text(text),
        })
    })?;
    // Not strict: NULL beside an array is the empty array.
    connection.create_scalar_function("forebay_array_concat", 2, PURE, |context| {
        let mut all: Option<Vec<Option<String>>> = None;
        for index in 0..2 {
            if !matches!(context.get_raw(index), ValueRef::Null) {
                all.get_or_insert_default().extend(elements(context, index)?);
            }
        }
        all.map(|all| bounded(arrays::format(&all))).transpose()
    })?;
    // Its third argument may be NULL: then NULL elements are left out.
    connection.create_scalar_function("array_to_string", -1, PURE, |context| {
        if matches!(context.get_raw(0), ValueRef::Null) || matches!(context.get_raw(1), ValueRef::Null) {
            return Ok(None);
        }
        let separator = string(context, 1)?;
        let null = if context.len() > 2 {
            context.get::<Option<String>>(2)?
        } else {
            None
        };
        let parts: Vec<String> = elements(context, 0)?
            .into_iter()
            .filter_map(|element| element.or_else(|| null.clone()))
            .collect();
        bounded(parts.join(&separator)).map(Some)
    })?;
    pure("array_length", |context| {
        let count = elements(context, 0)?.len();
        Ok(if count == 0 || integer(context, 1)? != 1 {
            Value::Null
        } else {
            Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
        })
    })?;
    pure("forebay_array_bound", |context| {
        let array = array(context, 0)?;
        let (dimension, upper) = (integer(context, 1)?, integer(context, 2)? != 0);
        if array.elements.is_empty() || dimension != 1 {
            return Ok(Value::Null);
        }
        let length = i64::try_from(array.elements.len()).unwrap_or(i64::MAX);
        Ok(Value::Integer(if upper {
            array.first + length - 1
        } else {
            array.first
        }))
    })?;
    pure("cardinality", |context| {
        Ok(Value::Integer(
            i64::try_from(elements(context, 0)?.len()).unwrap_or(i64::MAX),
        ))
    })
}

fn array(context: &Context<'_>, index: usize) -> Result<arrays::Array> {
    let text = string(context, index)?;
    arrays::parse(&text).ok_or_else(|| RuntimeError::raise("22P02", format!("malformed array literal: \"{text}\"")))
}

fn elements(context: &Context<'_>, index: usize) -> Result<Vec<Option<String>>> {
    Ok(array(context, index)?.elements)
}

fn json_elements(text: &str, numeric: bool) -> Result<Vec<Json>> {
    let malformed = || RuntimeError::raise("22P02", format!("malformed array literal: \"{text}\""));
    arrays::parse(text)
        .ok_or_else(malformed)?
        .elements
        .into_iter()
        .map(|element| match element {
            None => Ok(Json::Null),
            Some(text) if numeric => text.trim().parse::<i64>().map(Json::from).map_err(|_| malformed()),
            Some(text) => Ok(Json::String(text)),
        })
        .collect()
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

fn string(context: &Context<'_>, index: usize) -> Result<String> {
    Ok(match context.get_raw(index) {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Null => String::new(),
    })
}

fn integer(context: &Context<'_>, index: usize) -> Result<i64> {
    match context.get_raw(index) {
        ValueRef::Integer(number) => Ok(number),
        _ => {
            let text = string(context, index)?;
            text.trim()
                .parse()
                .map_err(|_| RuntimeError::raise("22P02", format!("invalid input syntax for type integer: \"{text}\"")))
        }
    }
}

fn oid(context: &Context<'_>, index: usize) -> Result<u32> {
    let number = integer(context, index)?;
    // PostgreSQL casts an int4 to oid bit by bit.
    let wrapped = i32::try_from(number).map(i32::cast_unsigned);
    wrapped
        .or_else(|_| u32::try_from(number))
        .map_err(|_| RuntimeError::raise("22003", format!("OID out of range: {number}")))
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, |value| Value::Integer(i64::from(value)))
}

fn number(value: Option<u32>) -> Value {
    value.map_or(Value::Null, |value| Value::Integer(i64::from(value)))
}

fn text(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::Text)
}

/// Refuses a text beyond what one catalog value may hold.
fn bounded(text: String) -> Result<String> {
    const BYTES_MAX: usize = 8 << 20;
    if text.len() > BYTES_MAX {
        return Err(RuntimeError::raise(
            "54000",
            format!(
                "a catalog value of {} bytes is over the limit of {BYTES_MAX}",
                text.len()
            ),
        ));
    }
    Ok(text)
}

fn bounded_value(text: String) -> Result<Value> {
    bounded(text).map(Value::Text)
}
