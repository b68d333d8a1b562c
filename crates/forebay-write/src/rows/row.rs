//! A row as serde reads it, whatever its cells are.
//!
//! Promises: a struct or map takes columns by name, a tuple or list in order, a single value the only column; what does not fit
//! is an error that names its column. Knows no value: how a cell is read, its database says.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::system_time;
use crate::read::ReadError;

pub use super::misfit::Misfit;

/// A row of cells.
pub trait Row<'de> {
    /// What a cell is read by.
    type Cell: Deserializer<'de, Error = Misfit>;

    /// How many columns there are.
    fn width(&self) -> usize;

    /// What the database calls a column, the first is 0.
    fn name(&self, column: usize) -> &str;

    /// Takes the cell of a column. Asked for once.
    ///
    /// # Errors
    /// If it has none.
    fn take(&mut self, column: usize) -> Result<Self::Cell, Misfit>;

    /// Whether the cell of a column is no value at all.
    fn is_null(&self, column: usize) -> bool;

    /// Whether a list that is asked for, where this is the only column, is what the cell is: not a list of the one cell.
    fn is_list(&self, column: usize) -> bool;
}

/// Reads a row.
///
/// # Errors
/// [`ReadError::Row`].
pub fn read<'de, V: DeserializeOwned>(row: impl Row<'de>) -> Result<V, ReadError> {
    <V as Deserialize<'de>>::deserialize(WholeRow(row)).map_err(|Misfit(cause)| ReadError::Row { cause })
}

struct WholeRow<R>(R);

impl<'de, R: Row<'de>> WholeRow<R> {
    /// Reads the only column.
    fn only<T>(mut self, read: impl FnOnce(R::Cell) -> Result<T, Misfit>) -> Result<T, Misfit> {
        match self.0.width() {
            1 => read(self.0.take(0)?).map_err(|misfit| misfit.in_column(self.0.name(0))),
            width => Err(Misfit(format!(
                "one value is read, and the query gives {width} columns"
            ))),
        }
    }

    fn cells(self) -> Cells<R> {
        Cells { row: self.0, next: 0 }
    }
}

macro_rules! of_the_only_column {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.only(|cell| cell.$method(visitor))
        }
    )*};
}

impl<'de, R: Row<'de>> Deserializer<'de> for WholeRow<R> {
    type Error = Misfit;

    of_the_only_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(self.cells())
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if system_time::is_asked_for(fields) {
            return self.only(|cell| cell.deserialize_struct(name, fields, visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.width() == 1 && self.0.is_list(0) {
            return self.only(|cell| cell.deserialize_seq(visitor));
        }
        visitor.visit_seq(self.cells())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Misfit> {
        let width = self.0.width();
        if width == 1 && len != 1 && self.0.is_list(0) {
            return self.only(|cell| cell.deserialize_tuple(len, visitor));
        }
        if width != len {
            return Err(Misfit(format!("{len} columns are read, and the query gives {width}")));
        }
        visitor.visit_seq(self.cells())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.width() == 1 && self.0.is_null(0) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.only(|cell| cell.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }
}

/// The cells in order, with the names of their columns if those are asked for.
struct Cells<R> {
    row: R,
    next: usize,
}

impl<'de, R: Row<'de>> Cells<R> {
    fn read_next<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        let column = self.next;
        self.next += 1;
        seed.deserialize(self.row.take(column)?)
            .map_err(|misfit| misfit.in_column(self.row.name(column)))
    }
}

impl<'de, R: Row<'de>> MapAccess<'de> for Cells<R> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if self.next == self.row.width() {
            return Ok(None);
        }
        let name: StrDeserializer<'_, Misfit> = self.row.name(self.next).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        self.read_next(seed)
    }
}

impl<'de, R: Row<'de>> SeqAccess<'de> for Cells<R> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if self.next == self.row.width() {
            return Ok(None);
        }
        self.read_next(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.row.width() - self.next)
    }
}
