//! From a row to a value, by serde.
//!
//! Promises, beside what [`row`] does: what does not fit is an error, never a guess. NULL is `None`; 0 and 1 are booleans where one
//! is asked for; text is a unit variant of an enum; a blob is bytes or a list of them; the text of a moment
//! is a `SystemTime`. Knows nothing of keys.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use forebay_write::ReadError;
use forebay_write::rows::row::{self, Misfit};
use forebay_write::rows::{real, system_time};

/// Reads one row.
pub(super) fn deserialize<V: DeserializeOwned>(row: &Row<'_>) -> Result<V, ReadError> {
    row::read(Stepped {
        row,
        width: row.as_ref().column_count(),
    })
}

/// The row that a statement has stepped to.
struct Stepped<'r> {
    row: &'r Row<'r>,
    width: usize,
}

impl<'r> row::Row<'r> for Stepped<'r> {
    type Cell = Column<'r>;

    fn width(&self) -> usize {
        self.width
    }

    fn name(&self, column: usize) -> &str {
        self.row.as_ref().column_name(column).unwrap_or("?")
    }

    fn take(&mut self, column: usize) -> Result<Column<'r>, Misfit> {
        let value = self.row.get_ref(column).map_err(|error| Misfit(error.to_string()))?;
        Ok(Column(value))
    }

    fn is_null(&self, column: usize) -> bool {
        matches!(self.row.get_ref(column), Ok(ValueRef::Null))
    }

    fn is_list(&self, column: usize) -> bool {
        matches!(self.row.get_ref(column), Ok(ValueRef::Blob(_)))
    }
}

/// One value of a row.
struct Column<'r>(ValueRef<'r>);

fn text(bytes: &[u8]) -> Result<&str, Misfit> {
    std::str::from_utf8(bytes).map_err(|fault| Misfit(format!("the text is not UTF-8: {fault}; cast it to BLOB")))
}

impl<'r> Deserializer<'r> for Column<'r> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Integer(integer) => visitor.visit_i64(integer),
            ValueRef::Real(real) => visitor.visit_f64(real),
            ValueRef::Text(bytes) => visitor.visit_borrowed_str(text(bytes)?),
            ValueRef::Blob(bytes) => visitor.visit_borrowed_bytes(bytes),
        }
    }

    fn deserialize_bool<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Integer(integer @ (0 | 1)) => visitor.visit_bool(integer == 1),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Real(real) => real::show_f32(real, visitor),
            ValueRef::Integer(integer) => real::show_integer_as_f32(integer, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Integer(integer) => real::show_integer_as_f64(integer, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Blob(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'r>>(self, _len: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'r>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Text(bytes) => {
                let variant: StrDeserializer<'_, Misfit> = text(bytes)?.into_deserializer();
                visitor.visit_enum(variant)
            }
            _ => Err(de::Error::invalid_type(
                Unexpected::Other("a value that is not text"),
                &visitor,
            )),
        }
    }

    fn deserialize_struct<V: Visitor<'r>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            ValueRef::Text(bytes) if system_time::is_asked_for(fields) => {
                visitor.visit_map(system_time::read(text(bytes)?)?)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        <V: Visitor<'r>>
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf unit unit_struct
        tuple_struct map identifier ignored_any
    }
}
