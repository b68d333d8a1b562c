//! From a row to a value, by serde.
//!
//! Promises: a struct or map takes columns by name, a tuple or list in order, a single value the only column; what does not fit
//! is an error that names its column, never a guess. NULL is `None`; 0 and 1 are booleans where one is asked for; text is a
//! unit variant of an enum; a blob is bytes or a list of them. Knows nothing of keys.

use std::fmt;

use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use forebay_write::ReadError;

/// Reads one row.
pub(super) fn deserialize<V: DeserializeOwned>(row: &Row<'_>) -> Result<V, ReadError> {
    let row = WholeRow {
        row,
        columns: row.as_ref().column_count(),
    };
    V::deserialize(row).map_err(|Misfit(cause)| ReadError::Row { cause })
}

/// Why a row does not fit.
#[derive(Debug)]
struct Misfit(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct WholeRow<'r> {
    row: &'r Row<'r>,
    columns: usize,
}

impl<'r> WholeRow<'r> {
    fn column(self, index: usize) -> Result<Column<'r>, Misfit> {
        let value = self.row.get_ref(index).map_err(|error| Misfit(error.to_string()))?;
        Ok(Column(value))
    }

    fn name(self, index: usize) -> &'r str {
        self.row.as_ref().column_name(index).unwrap_or("?")
    }

    fn in_column(self, index: usize) -> impl FnOnce(Misfit) -> Misfit {
        move |Misfit(cause)| Misfit(format!("column {}: {cause}", self.name(index)))
    }

    /// Reads the only column.
    fn only<T>(self, read: impl FnOnce(Column<'r>) -> Result<T, Misfit>) -> Result<T, Misfit> {
        if self.columns != 1 {
            return Err(Misfit(format!(
                "one value is read, and the query gives {} columns",
                self.columns
            )));
        }
        read(self.column(0)?).map_err(self.in_column(0))
    }
}

macro_rules! of_the_only_column {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.only(|column| column.$method(visitor))
        }
    )*};
}

impl<'r> Deserializer<'r> for WholeRow<'r> {
    type Error = Misfit;

    of_the_only_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(ByName { row: self, next: 0 })
    }

    fn deserialize_map<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'r>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_any(visitor)
    }

    fn deserialize_seq<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_seq(InOrder { row: self, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'r>>(self, len: usize, visitor: V) -> Result<V::Value, Misfit> {
        if self.columns != len {
            return Err(Misfit(format!(
                "{len} columns are read, and the query gives {}",
                self.columns
            )));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'r>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'r>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.columns == 1 && matches!(self.column(0)?.0, ValueRef::Null) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_enum<V: Visitor<'r>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.only(|column| column.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_unit<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'r>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }
}

/// The columns with their names.
struct ByName<'r> {
    row: WholeRow<'r>,
    next: usize,
}

impl<'r> MapAccess<'r> for ByName<'r> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if self.next == self.row.columns {
            return Ok(None);
        }
        let name: StrDeserializer<'_, Misfit> = self.row.name(self.next).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        let index = self.next;
        self.next += 1;
        seed.deserialize(self.row.column(index)?)
            .map_err(self.row.in_column(index))
    }
}

/// The columns in order.
struct InOrder<'r> {
    row: WholeRow<'r>,
    next: usize,
}

impl<'r> SeqAccess<'r> for InOrder<'r> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'r>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if self.next == self.row.columns {
            return Ok(None);
        }
        let index = self.next;
        self.next += 1;
        seed.deserialize(self.row.column(index)?)
            .map(Some)
            .map_err(self.row.in_column(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.row.columns - self.next)
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

    forward_to_deserialize_any! {
        <V: Visitor<'r>>
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple_struct map struct identifier ignored_any
    }
}
