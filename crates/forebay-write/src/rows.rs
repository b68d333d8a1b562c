//! From a row of values to what a caller asks for, by serde.
//!
//! Promises, beside what [`row`] does: what does not fit is an error, never a guess: digits in a text are text. NULL is `None`; 0 and 1
//! are booleans where one is asked for; text is a unit variant of an enum; a blob is bytes or a list of them; an array is a list.
//!
//! A struct, map or list asked of a column of text is read from it as JSON. A column that the database says is JSON is that
//! also where anything may be asked for (`serde_json::Value`), its `null` is `None`, and only a `String` gets its text. A `SystemTime` is
//! read from the text of a moment.
//!
//! Knows nothing of keys and databases.

mod misfit;
pub mod real;
pub mod row;
pub mod system_time;

use std::sync::Arc;

use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use self::row::{Misfit, Row};
use super::read::ReadError;
use crate::Value;
use crate::moment::Utc;

/// What is known of a column beside its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// As the database names it.
    pub name: String,
    /// Whether the database says that its text is JSON.
    pub is_json: bool,
}

/// The rows of one key, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Its columns.
    pub columns: Arc<[Column]>,
    /// A value a column each.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The first row, if there is one.
    pub fn first<V: DeserializeOwned>(self) -> Result<Option<V>, ReadError> {
        match self.rows.into_iter().next() {
            Some(row) => deserialize(&self.columns, row).map(Some),
            None => Ok(None),
        }
    }

    /// All rows.
    pub fn all<V: DeserializeOwned>(self) -> Result<Option<Vec<V>>, ReadError> {
        let columns = &self.columns;
        self.rows
            .into_iter()
            .map(|row| deserialize(columns, row))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Reads one row, which has a value a column.
pub fn deserialize<V: DeserializeOwned>(columns: &[Column], values: Vec<Value>) -> Result<V, ReadError> {
    row::read(Values { columns, values })
}

impl From<serde_json::Error> for Misfit {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("its JSON: {error}"))
    }
}

/// A row that was received.
struct Values<'r> {
    columns: &'r [Column],
    values: Vec<Value>,
}

impl<'de> Row<'de> for Values<'_> {
    type Cell = Cell;

    fn width(&self) -> usize {
        self.columns.len()
    }

    fn name(&self, column: usize) -> &str {
        &self.columns[column].name
    }

    fn take(&mut self, column: usize) -> Result<Cell, Misfit> {
        Ok(Cell {
            value: std::mem::replace(&mut self.values[column], Value::Null),
            is_json: self.columns[column].is_json,
        })
    }

    fn is_null(&self, column: usize) -> bool {
        is_null(self.columns[column].is_json, &self.values[column])
    }

    fn is_list(&self, column: usize) -> bool {
        matches!(self.values[column], Value::Blob(_) | Value::Array(_))
    }
}

fn is_null(is_json: bool, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => is_json && text.trim() == "null",
        _ => false,
    }
}

/// One value of a row.
struct Cell {
    value: Value,
    is_json: bool,
}

/// For the elements of an array.
impl<'de> IntoDeserializer<'de, Misfit> for Cell {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// What JSON is read by: as from a stream, so that what is read owes nothing to the text.
type Json<'t> = serde_json::Deserializer<serde_json::de::IoRead<&'t [u8]>>;

fn parse<'t, T>(text: &'t str, read: impl FnOnce(&mut Json<'t>) -> serde_json::Result<T>) -> Result<T, Misfit> {
    let mut json = serde_json::Deserializer::from_reader(text.as_bytes());
    let parsed = read(&mut json)?;
    json.end()?;
    Ok(parsed)
}

/// What is asked of JSON if the column is that.
macro_rules! of_json_or_as_it_is {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match &self.value {
                Value::Text(text) if self.is_json => parse(text, |json| json.$method(visitor)),
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Cell {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Integer(integer) => visitor.visit_i64(integer),
            Value::Unsigned(integer) => visitor.visit_u64(integer),
            Value::Timestamp(moment) => visitor.visit_string(Utc::of(moment).to_string()),
            Value::Real(real) => visitor.visit_f64(real),
            Value::Text(text) if self.is_json => parse(&text, |json| json.deserialize_any(visitor)),
            Value::Text(text) => visitor.visit_string(text),
            Value::Blob(bytes) => visitor.visit_byte_buf(bytes),
            Value::Array(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter().map(|value| Self {
                value,
                is_json: self.is_json,
            }))),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Integer(integer @ (0 | 1)) => visitor.visit_bool(integer == 1),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if is_null(self.is_json, &self.value) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Text(text) => visitor.visit_string(text),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_string(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Real(real) => real::show_f32(real, visitor),
            Value::Integer(integer) => real::show_integer_as_f32(integer, visitor),
            Value::Unsigned(integer) => real::show_integer_as_f32(integer, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Integer(integer) => real::show_integer_as_f64(integer, visitor),
            Value::Unsigned(integer) => real::show_integer_as_f64(integer, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.value {
            Value::Blob(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            Value::Text(text) => parse(text, |json| json.deserialize_seq(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.value {
            Value::Text(text) => parse(text, |json| json.deserialize_map(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match &self.value {
            Value::Text(text) if system_time::is_asked_for(fields) && !self.is_json => {
                visitor.visit_map(system_time::read(text)?)
            }
            Value::Text(text) => parse(text, |json| json.deserialize_struct(name, fields, visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.value {
            Value::Text(text) if self.is_json => parse(&text, |json| json.deserialize_enum(name, variants, visitor)),
            Value::Text(text) => {
                let variant: StrDeserializer<'_, Misfit> = text.as_str().into_deserializer();
                visitor.visit_enum(variant)
            }
            _ => Err(de::Error::invalid_type(
                Unexpected::Other("a value that is not text"),
                &visitor,
            )),
        }
    }

    of_json_or_as_it_is! {
        deserialize_i128 deserialize_u128
    }

    forward_to_deserialize_any! {
        <V: Visitor<'de>>
        i8 i16 i32 i64 u8 u16 u32 u64 char bytes byte_buf unit unit_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
