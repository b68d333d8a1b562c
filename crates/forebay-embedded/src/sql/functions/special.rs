//! What compiled statements need beside PostgreSQL's own functions: values by type, arrays, checks.
//!
//! Knows the stored forms; nothing of statements.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use forebay_pg_values::array::Array;

use forebay_pg_values::{Arguments, Datum, Kind, Owned, Type, ValueError, array, temporal, text_form};
use forebay_sqlite::connection::meet_row;
use rand::Rng;
use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::Value;

use super::collation::compare_collated;
use super::error::{About, raised, raised_about};
use super::rows::{abreast, rows, series};
use super::session_context::{SessionContext, session_context};
use super::value::{data, datum, text_at, type_at, utc, value};

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let fixed = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let moving = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    type Body = fn(&Context<'_>) -> rusqlite::Result<Value>;
    let scalars: [(&str, FunctionFlags, Body); 28] = [
        ("forebay_now", fixed, now),
        ("forebay_asked", fixed, asked),
        ("forebay_clock", moving, |_| {
            Ok(Value::Text(stored_timestamptz(clock_micros())?))
        }),
        ("forebay_random", moving, |_| {
            Ok(Value::Real(rand::rng().random::<f64>()))
        }),
        ("forebay_uuid", moving, |_| Ok(Value::Text(random_uuid()))),
        ("forebay_write", fixed, write),
        ("forebay_read", fixed, read),
        ("forebay_stored", fixed, stored),
        ("forebay_array", fixed, make_array),
        ("forebay_subscript", fixed, subscript),
        ("forebay_flat", fixed, flat),
        ("forebay_abreast", fixed, abreast),
        ("forebay_limit", fixed, |context| bound(context, "LIMIT", "2201W", -1)),
        ("forebay_offset", fixed, |context| bound(context, "OFFSET", "2201X", 0)),
        ("forebay_several", moving, |_| {
            Err(raised(ValueError::new(
                "21000",
                "more than one row returned by a subquery used as an expression",
            )))
        }),
        ("forebay_greatest", fixed, |context| extreme(context, Ordering::Greater)),
        ("forebay_least", fixed, |context| extreme(context, Ordering::Less)),
        ("forebay_quantified", fixed, quantified),
        ("forebay_once", moving, once),
        ("forebay_key", fixed, key),
        ("forebay_not_null", fixed, not_null),
        ("forebay_series", fixed, series),
        ("forebay_rows", fixed, rows),
        ("forebay_one_dimension", fixed, one_dimension),
        ("forebay_fail", moving, fail),
        ("forebay_changed", fixed, changed),
        ("forebay_met", moving, |context| {
            meet_row();
            value(datum(context.get_raw(0))?.into())
        }),
        ("forebay_met_once", moving, met_once),
    ];
    for (name, flags, body) in scalars {
        connection.create_scalar_function(name, -1, flags, body)?;
    }
    connection.create_aggregate_function("forebay_gather", 2, fixed, Gather)
}

/// A time in microseconds since 1970, as a timestamptz is stored.
pub(crate) fn stored_timestamptz(micros: i64) -> rusqlite::Result<String> {
    const UNIX_TO_2000_MICROS: i64 = 946_684_800_000_000;
    temporal::timestamp_from_micros(micros - UNIX_TO_2000_MICROS).map_err(raised)
}

/// Microseconds since 1970.
pub(crate) fn clock_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

fn random_uuid() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid::Uuid::from_bytes(bytes).to_string()
}

fn now(context: &Context<'_>) -> rusqlite::Result<Value> {
    let session = session_context(text_at(context, 0)?)?;
    Ok(Value::Text(stored_timestamptz(session.values.now_micros)?))
}

fn asked(context: &Context<'_>) -> rusqlite::Result<Value> {
    let session = session_context(text_at(context, 0)?)?;
    Ok(Value::Text(stored_timestamptz(session.asked_micros)?))
}

/// `(value, type, session)`: the value's text. The session may be left out where it makes no difference.
fn write(context: &Context<'_>) -> rusqlite::Result<Value> {
    let given = datum(context.get_raw(0))?;
    if given == Datum::Null {
        return Ok(Value::Null);
    }
    let session = match context.len() {
        2 => None,
        _ => Some(session_context(text_at(context, 2)?)?),
    };
    let environment = session.as_ref().map_or(utc(), |session| &session.values);
    let mut out = String::new();
    match (type_at(context, 1)?, given) {
        (Type::Scalar(kind), _) => text_form::write(kind, given, environment, &mut out),
        (Type::Array(kind), Datum::Text(text)) => array::write(kind, text, environment, &mut out),
        (Type::Array(_), _) => Err(ValueError::new("XX001", "an array is not stored as one")),
    }
    .map_err(raised)?;
    Ok(Value::Text(out))
}

/// `(text, type, session)`: the value that the text is.
fn read(context: &Context<'_>) -> rusqlite::Result<Value> {
    let given = match datum(context.get_raw(0))? {
        Datum::Null => return Ok(Value::Null),
        Datum::Text(text) => text,
        _ => return Err(raised(ValueError::new("XX001", "a text is not stored as one"))),
    };
    let session = session_context(text_at(context, 2)?)?;
    match type_at(context, 1)? {
        Type::Scalar(kind) => text_form::parse(kind, -1, given, &session.values),
        Type::Array(kind) => array::parse(kind, -1, given, &session.values).map(Owned::Text),
    }
    .map_err(raised)
    .and_then(value)
}

/// `(value, type)`: a value of a table that something else made, in the stored form of its type.
fn stored(context: &Context<'_>) -> rusqlite::Result<Value> {
    let given = datum(context.get_raw(0))?;
    let converted = match (type_at(context, 1)?, given) {
        (_, Datum::Null) => Ok(Owned::Null),
        (Type::Scalar(Kind::Numeric), Datum::Integer(integer)) => Ok(Owned::Text(integer.to_string())),
        (Type::Scalar(Kind::Numeric), Datum::Real(real)) => {
            text_form::parse(Kind::Numeric, -1, &real.to_string(), utc())
        }
        (Type::Scalar(kind @ (Kind::Numeric | Kind::Json)), Datum::Text(text)) => {
            text_form::parse(kind, -1, text, utc())
        }
        (Type::Scalar(Kind::Json), Datum::Integer(integer)) => Ok(Owned::Text(integer.to_string())),
        (Type::Scalar(Kind::Json), Datum::Real(real)) => Ok(Owned::Text(real.to_string())),
        _ => Err(ValueError::new("XX001", "a stored value is none of its column's type")),
    };
    converted.map_err(raised).and_then(value)
}

/// `(type of the elements, element, …)`; of `array`, the elements are arrays.
fn make_array(context: &Context<'_>) -> rusqlite::Result<Value> {
    let label = text_at(context, 0)?;
    let elements: Vec<Owned> = data(context, context.len())?
        .into_iter()
        .skip(1)
        .map(Owned::from)
        .collect();
    if label == "array" {
        let mut parts = Vec::with_capacity(elements.len());
        for element in elements {
            match element {
                Owned::Text(text) => parts.push(text),
                _ => return Err(raised(ValueError::unsupported("NULL among arrays of an array is"))),
            }
        }
        let empty = |text: &str| text == "[]";
        if parts.iter().all(|part| empty(part)) {
            return Ok(Value::Text("[]".to_owned()));
        }
        let lengths: HashSet<usize> = parts.iter().map(|part| shape(part)).collect();
        if lengths.len() > 1 || parts.iter().any(|part| empty(part)) {
            return Err(raised(ValueError::new(
                "2202E",
                "multidimensional arrays must have array expressions with matching dimensions",
            )));
        }
        return Ok(Value::Text(format!("[{}]", parts.join(","))));
    }
    let kind = match Type::from_name(label) {
        Some(Type::Scalar(kind)) => kind,
        _ => return Err(raised(ValueError::new("XX000", "a compiled statement names no type"))),
    };
    Array::of_elements(elements)
        .into_stored(kind)
        .map_err(raised)
        .and_then(value)
}

/// How many elements an array of scalars, as JSON, has.
fn shape(json: &str) -> usize {
    serde_json::from_str::<Vec<serde_json::Value>>(json).map_or(0, |elements| elements.len())
}

/// `(type of the elements, array, index, …)`.
fn subscript(context: &Context<'_>) -> rusqlite::Result<Value> {
    let kind = type_at(context, 0)?.kind();
    let given = data(context, context.len())?;
    let Datum::Text(stored) = given[1] else {
        return Ok(Value::Null);
    };
    let mut indexes = Vec::with_capacity(given.len() - 2);
    for index in &given[2..] {
        match index {
            Datum::Integer(index) => indexes.push(*index),
            _ => return Ok(Value::Null),
        }
    }
    array::subscript(kind, stored, &indexes).map_err(raised).and_then(value)
}

/// An array of arrays as one array of its elements.
fn flat(context: &Context<'_>) -> rusqlite::Result<Value> {
    let stored = match datum(context.get_raw(0))? {
        Datum::Text(text) => text,
        _ => return Ok(Value::Null),
    };
    if !stored.starts_with("[[") {
        return Ok(Value::Text(stored.to_owned()));
    }
    let mut out = String::with_capacity(stored.len());
    out.push('[');
    let (mut in_text, mut escaped) = (false, false);
    for character in stored.chars() {
        if in_text {
            out.push(character);
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == '"' {
                in_text = false;
            }
        } else if !matches!(character, '[' | ']') {
            in_text = character == '"';
            out.push(character);
        }
    }
    out.push(']');
    Ok(Value::Text(out))
}

fn bound(context: &Context<'_>, clause: &str, sqlstate: &'static str, none: i64) -> rusqlite::Result<Value> {
    match datum(context.get_raw(0))? {
        Datum::Null => Ok(Value::Integer(none)),
        Datum::Integer(count) if count >= 0 => Ok(Value::Integer(count)),
        _ => Err(raised(ValueError::new(
            sqlstate,
            format!("{clause} must not be negative"),
        ))),
    }
}

/// `(type, value, …)`: the greatest or least that is not NULL.
fn extreme(context: &Context<'_>, wanted: Ordering) -> rusqlite::Result<Value> {
    let kind = type_at(context, 0)?;
    let compare = |left: Datum<'_>, right: Datum<'_>| match (kind, left, right) {
        (Type::Array(kind), Datum::Text(left), Datum::Text(right)) => {
            array::compare(kind, left, right).unwrap_or(Ordering::Equal)
        }
        (kind, left, right) => array::compare_scalar(kind.kind(), left, right),
    };
    let mut best = Datum::Null;
    for candidate in data(context, context.len())?.into_iter().skip(1) {
        if candidate == Datum::Null {
            continue;
        }
        if best == Datum::Null || compare(candidate, best) == wanted {
            best = candidate;
        }
    }
    value(best.into())
}

/// `(type of the elements, operator, any, value, array)`: whether the comparison holds for any element, or for all.
fn quantified(context: &Context<'_>) -> rusqlite::Result<Value> {
    let kind = type_at(context, 0)?.kind();
    let (operator, any) = (text_at(context, 1)?, context.get::<bool>(2)?);
    let (left, stored) = (datum(context.get_raw(3))?, datum(context.get_raw(4))?);
    let Datum::Text(stored) = stored else {
        return Ok(Value::Null);
    };
    let mut unknown = false;
    for element in array::elements(kind, stored).map_err(raised)? {
        if left == Datum::Null || element == Owned::Null {
            unknown = true;
            continue;
        }
        let order = array::compare_scalar(kind, left, element.as_datum());
        let holds = match operator {
            "=" => order.is_eq(),
            "<>" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        };
        if holds == any {
            return Ok(Value::Integer(any.into()));
        }
    }
    Ok(if unknown {
        Value::Null
    } else {
        Value::Integer((!any).into())
    })
}

/// The columns of a key, each with its collation, in an order by which equal keys are equal.
struct Key(Vec<(Owned, String)>);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        let orders = pairs.map(|((left, collation), (right, _))| match (left, right) {
            (Owned::Text(left), Owned::Text(right)) => compare_collated(collation, left, right),
            // No NaN is stored.
            (Owned::Real(left), Owned::Real(right)) => left.partial_cmp(right).unwrap_or(Ordering::Equal),
            (Owned::Integer(left), Owned::Integer(right)) => left.cmp(right),
            (Owned::Blob(left), Owned::Blob(right)) => left.cmp(right),
            // A column has values of one form.
            _ => Ordering::Equal,
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// `(how, key, collation, …)`: true, unless the statement has come by this key before: then it fails, for it would change a row twice. It
/// is refused instead where that depends on the rows that are there (`how` is `perhaps`), and so is any second row where keys are
/// changed (`rekeys`). It counts its calls, so SQLite is not to think that one tells what the next would.
fn once(context: &Context<'_>) -> rusqlite::Result<Value> {
    type Seen = Mutex<BTreeSet<Key>>;
    let told = data(context, context.len())?;
    let parts: Vec<&[Datum<'_>]> = told[1..].chunks(2).collect();
    if parts.iter().any(|part| part[0] == Datum::Null) {
        return Ok(Value::Integer(1));
    }
    let how = text_at(context, 0)?;
    let key = parts.into_iter().map(|part| match part {
        [value, Datum::Text(collation)] => ((*value).into(), (*collation).to_owned()),
        other => (other[0].into(), String::new()),
    });
    let seen: Arc<Seen> = match context.get_aux(0)? {
        Some(seen) => seen,
        None => context.set_aux(0, Seen::default())?,
    };
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if how == "rekeys" && !seen.is_empty() {
        return Err(raised(ValueError::unsupported(
            "ON CONFLICT DO UPDATE of the key itself by a command of several rows is",
        )));
    }
    if seen.insert(Key(key.collect())) {
        return Ok(Value::Integer(1));
    }
    if how == "perhaps" {
        return Err(raised(ValueError::unsupported(
            "ON CONFLICT DO UPDATE … WHERE of rows with the same key in one command is",
        )));
    }
    Err(raised(
        ValueError::new("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time").with_hint(
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
        ),
    ))
}

/// `(value, collation)`: the same text for values that are equal.
fn key(context: &Context<'_>) -> rusqlite::Result<Value> {
    let given = match datum(context.get_raw(0))? {
        Datum::Text(text) => text,
        other => return value(other.into()),
    };
    let text = match text_at(context, 1)? {
        "pg_numeric" => {
            let trim = forebay_pg_values::function("numeric_trim_scale");
            match trim.map(|trim| {
                trim.call(Arguments {
                    values: &[Datum::Text(given)],
                    types: &[],
                    environment: utc(),
                })
            }) {
                Some(trimmed) => return trimmed.map_err(raised).and_then(value),
                None => given.to_owned(),
            }
        }
        "RTRIM" => given.trim_end_matches(' ').to_owned(),
        _ => given.to_owned(),
    };
    Ok(Value::Text(text))
}

/// `(value, table, column)`: the value, which must be one.
fn not_null(context: &Context<'_>) -> rusqlite::Result<Value> {
    let given = datum(context.get_raw(0))?;
    if given == Datum::Null {
        let (table, column) = (text_at(context, 1)?, text_at(context, 2)?);
        return Err(raised(ValueError::new(
            "23502",
            format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"),
        )));
    }
    value(given.into())
}

/// The array, if it is not one of arrays.
fn one_dimension(context: &Context<'_>) -> rusqlite::Result<Value> {
    match datum(context.get_raw(0))? {
        Datum::Text(text) if text.starts_with("[[") => Err(raised(ValueError::unsupported(
            "a conversion of an array of more than one dimension is",
        ))),
        other => value(other.into()),
    }
}

/// The only one of its statement's, or an error.
fn met_once(context: &Context<'_>) -> rusqlite::Result<Value> {
    if meet_row() > 1 {
        let error = ValueError::unsupported("RETURNING of several rows whose deletion may change one another is");
        return Err(raised(error.with_hint("Ask for the rows in a SELECT before.")));
    }
    value(datum(context.get_raw(0))?.into())
}

/// `(session, table)`: whether the transaction has changed that table before this statement.
fn changed(context: &Context<'_>) -> rusqlite::Result<Value> {
    let has_changed = SessionContext::has_changed(text_at(context, 0)?, text_at(context, 1)?)?;
    Ok(Value::Integer(has_changed.into()))
}

/// `(SQLSTATE, message)` or `(SQLSTATE, message, detail)`: an error.
fn fail(context: &Context<'_>) -> rusqlite::Result<Value> {
    const KNOWN: [&str; 7] = ["0A000", "42704", "23502", "23503", "23505", "23514", "40001"];
    let given = text_at(context, 0)?;
    let sqlstate = KNOWN.into_iter().find(|known| *known == given).unwrap_or("XX000");
    let given = |place: usize| -> rusqlite::Result<Option<String>> {
        if place >= context.len() || datum(context.get_raw(place))? == Datum::Null {
            return Ok(None);
        }
        text_at(context, place).map(|text| Some(text.to_owned()))
    };
    let mut error = ValueError::new(sqlstate, text_at(context, 1)?);
    error.detail = given(2)?;
    let about = About {
        table: given(3)?,
        column: given(4)?,
        constraint: given(5)?,
    };
    Err(raised_about(error, about))
}

/// `(value, type)`: all values of a group as an array.
struct Gather;

impl Aggregate<(Vec<Owned>, Option<String>), Value> for Gather {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<(Vec<Owned>, Option<String>)> {
        Ok((Vec::new(), None))
    }

    fn step(&self, context: &mut Context<'_>, gathered: &mut (Vec<Owned>, Option<String>)) -> rusqlite::Result<()> {
        gathered.0.push(datum(context.get_raw(0))?.into());
        if gathered.1.is_none() {
            gathered.1 = Some(text_at(context, 1)?.to_owned());
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, gathered: Option<(Vec<Owned>, Option<String>)>) -> rusqlite::Result<Value> {
        let Some((elements, Some(label))) = gathered else {
            return Ok(Value::Text("[]".to_owned()));
        };
        match Type::from_name(&label) {
            Some(Type::Scalar(kind)) => Array::of_elements(elements)
                .into_stored(kind)
                .map_err(raised)
                .and_then(value),
            _ => Err(raised(ValueError::unsupported("an array of arrays here is"))),
        }
    }
}
