//! Row: the values of one row, as the server sent them.
//!
//! Promises: a value is borrowed from the bytes it came in; a row that is cut short, or has something behind its last value, is
//! [`Malformed`]. Does not decode values: their bytes are what the type of the column says.

use mysql_common::constants::ColumnType;
use mysql_common::packets::Column;

use crate::reader::{Malformed, Reader};

/// The values of a row that was asked for in text, in the order of its columns: an iterator over them, `None` for NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRow<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> TextRow<'a> {
    /// Of a row's bytes, with so many columns.
    pub fn new(bytes: &'a [u8], columns: usize) -> Self {
        Self {
            reader: Reader(bytes),
            left: columns,
        }
    }
}

impl<'a> Iterator for TextRow<'a> {
    type Item = Result<Option<&'a [u8]>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let value = self.reader.length_encoded();
        let whole = match self.left {
            0 => value.and_then(|value| self.reader.end().map(|()| value)),
            _ => value,
        };
        if whole.is_err() {
            self.left = 0;
        }
        Some(whole)
    }
}

/// The values of a row of a prepared statement, in the order of its columns: an iterator over them, `None` for NULL. Numbers are
/// in as many bytes as their type has, lowest first; dates and times in as many as they need; anything else as it is.
#[derive(Debug, Clone)]
pub struct BinaryRow<'a> {
    reader: Reader<'a>,
    /// A bit a column, from the third one on.
    nulls: &'a [u8],
    columns: &'a [Column],
    at: usize,
}

impl<'a> BinaryRow<'a> {
    /// Of a row's bytes, with these columns.
    ///
    /// # Errors
    /// [`Malformed`] where it is no such row. Whether its values are whole is seen as they are read.
    pub fn new(bytes: &'a [u8], columns: &'a [Column]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        if reader.u8()? != 0 {
            return Err(Malformed);
        }
        let nulls = reader.bytes((columns.len() + 9) / 8)?;
        Ok(Self {
            reader,
            nulls,
            columns,
            at: 0,
        })
    }
}

impl<'a> Iterator for BinaryRow<'a> {
    type Item = Result<Option<&'a [u8]>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let column = self.columns.get(self.at)?;
        let bit = self.at + 2;
        self.at += 1;
        let value = match self.nulls[bit / 8] & 1 << (bit % 8) {
            0 => value(&mut self.reader, column.column_type()).map(Some),
            _ => Ok(None),
        };
        let whole = match self.at == self.columns.len() {
            true => value.and_then(|value| self.reader.end().map(|()| value)),
            false => value,
        };
        if whole.is_err() {
            self.at = self.columns.len();
        }
        Some(whole)
    }
}

fn value<'a>(reader: &mut Reader<'a>, kind: ColumnType) -> Result<&'a [u8], Malformed> {
    use ColumnType as T;
    match kind {
        T::MYSQL_TYPE_TINY => reader.bytes(1),
        T::MYSQL_TYPE_SHORT | T::MYSQL_TYPE_YEAR => reader.bytes(2),
        T::MYSQL_TYPE_LONG | T::MYSQL_TYPE_INT24 | T::MYSQL_TYPE_FLOAT => reader.bytes(4),
        T::MYSQL_TYPE_LONGLONG | T::MYSQL_TYPE_DOUBLE => reader.bytes(8),
        T::MYSQL_TYPE_DATE | T::MYSQL_TYPE_DATETIME | T::MYSQL_TYPE_TIMESTAMP | T::MYSQL_TYPE_TIME => {
            let length = reader.u8()?;
            reader.bytes(length.into())
        }
        T::MYSQL_TYPE_NULL => Ok(&[]),
        _ => reader.length_encoded()?.ok_or(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outbox::put_length_encoded;

    const KINDS: [ColumnType; 8] = [
        ColumnType::MYSQL_TYPE_TINY,
        ColumnType::MYSQL_TYPE_YEAR,
        ColumnType::MYSQL_TYPE_LONG,
        ColumnType::MYSQL_TYPE_DOUBLE,
        ColumnType::MYSQL_TYPE_TIME,
        ColumnType::MYSQL_TYPE_DATETIME,
        ColumnType::MYSQL_TYPE_VAR_STRING,
        ColumnType::MYSQL_TYPE_NEWDECIMAL,
    ];

    /// A value's bytes in a row.
    fn encoded(kind: ColumnType, value: &[u8], row: &mut Vec<u8>) {
        match kind {
            ColumnType::MYSQL_TYPE_TIME | ColumnType::MYSQL_TYPE_DATETIME => row.push(value.len().try_into().unwrap()),
            ColumnType::MYSQL_TYPE_VAR_STRING | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
                let mut bytes = bytes::BytesMut::new();
                put_length_encoded(&mut bytes, value);
                return row.extend(bytes);
            }
            _ => {}
        }
        row.extend(value);
    }

    fn length(kind: ColumnType, any: usize) -> usize {
        match kind {
            ColumnType::MYSQL_TYPE_TINY => 1,
            ColumnType::MYSQL_TYPE_YEAR => 2,
            ColumnType::MYSQL_TYPE_LONG => 4,
            ColumnType::MYSQL_TYPE_DOUBLE => 8,
            ColumnType::MYSQL_TYPE_TIME => any % 13,
            ColumnType::MYSQL_TYPE_DATETIME => any % 12,
            _ => any,
        }
    }

    proptest! {
        #[test]
        fn a_row_gives_back_the_values_it_was_made_of(
            given in proptest::collection::vec(
                (0..KINDS.len(), proptest::option::of(proptest::collection::vec(any::<u8>(), 300..301)), 0_usize..300),
                1..20,
            ),
        ) {
            let columns: Vec<Column> = given.iter().map(|(kind, ..)| Column::new(KINDS[*kind])).collect();
            let values: Vec<Option<Vec<u8>>> = given
                .iter()
                .map(|(kind, value, any)| Some(value.as_ref()?[..length(KINDS[*kind], *any)].to_vec()))
                .collect();
            let mut binary = vec![0; 1 + (columns.len() + 9) / 8];
            let mut text = Vec::new();
            for (at, (column, value)) in columns.iter().zip(&values).enumerate() {
                match value {
                    None => {
                        binary[1 + (at + 2) / 8] |= 1 << ((at + 2) % 8);
                        text.push(0xfb);
                    }
                    Some(value) => {
                        encoded(column.column_type(), value, &mut binary);
                        encoded(ColumnType::MYSQL_TYPE_VAR_STRING, value, &mut text);
                    }
                }
            }
            let read = |row: &[u8]| -> Result<Vec<Option<Vec<u8>>>, Malformed> {
                BinaryRow::new(row, &columns)?.map(|value| Ok(value?.map(<[u8]>::to_vec))).collect()
            };
            let read_text = |row: &[u8]| -> Result<Vec<Option<Vec<u8>>>, Malformed> {
                TextRow::new(row, columns.len()).map(|value| Ok(value?.map(<[u8]>::to_vec))).collect()
            };
            prop_assert_eq!(read(&binary), Ok(values.clone()));
            prop_assert_eq!(read_text(&text), Ok(values));
            for cut in 0..binary.len() {
                prop_assert_eq!(read(&binary[..cut]), Err(Malformed));
            }
            for cut in 0..text.len() {
                prop_assert_eq!(read_text(&text[..cut]), Err(Malformed));
            }
            binary.push(0);
            text.push(0);
            prop_assert_eq!(read(&binary), Err(Malformed));
            prop_assert_eq!(read_text(&text), Err(Malformed));
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_read(
            row in proptest::collection::vec(any::<u8>(), 0..100),
            kinds in proptest::collection::vec(0..KINDS.len(), 1..10),
        ) {
            let columns: Vec<Column> = kinds.iter().map(|kind| Column::new(KINDS[*kind])).collect();
            let _ = BinaryRow::new(&row, &columns).map(Iterator::count);
            let _ = TextRow::new(&row, columns.len()).count();
        }
    }
}
