//! Decode: all that a packet says, in a line of text.
//!
//! Promises: every part that can be read is read, also of a packet that says nothing meaningful; a row that is read was read to its
//! last byte, or this panics.

use forebay_mysql_link::{BinaryRow, Column, Malformed, Packet, TextRow};

/// Longer values are told by their length and their sum.
const SHOWN_BYTES_MAX: usize = 80;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// Of a statement, what was described last.
#[derive(Debug, Default)]
pub(crate) struct Described {
    count: usize,
    columns: Vec<Column>,
}

impl Described {
    /// What a packet says, of rows in this format; `malformed` where it is none of its kind.
    pub(crate) fn told(&mut self, packet: &Packet<'_>, format: Format) -> String {
        match packet {
            Packet::Columns { count, are_described } => {
                self.count = *count;
                if *are_described {
                    self.columns.clear();
                }
                format!("{packet:?}")
            }
            Packet::Prepared(_) => {
                self.columns.clear();
                format!("{packet:?}")
            }
            Packet::Parameter(definition) => match definition.read() {
                Ok(column) => format!("Parameter {}", described(&column)),
                Err(Malformed) => "Parameter malformed".to_owned(),
            },
            Packet::Column(definition) => match definition.read() {
                Ok(column) => {
                    let told = format!("Column {}", described(&column));
                    self.columns.push(column);
                    told
                }
                Err(Malformed) => "Column malformed".to_owned(),
            },
            Packet::Row(bytes) => match self.row(bytes, format) {
                Ok(values) => format!("Row {}", values.join(", ")),
                Err(Malformed) => "Row malformed".to_owned(),
            },
            other => format!("{other:?}"),
        }
    }

    fn row(&self, bytes: &[u8], format: Format) -> Result<Vec<String>, Malformed> {
        let values: Vec<Option<&[u8]>> = match format {
            Format::Text => TextRow::new(bytes, self.count).collect::<Result<_, _>>()?,
            Format::Binary => BinaryRow::new(bytes, &self.columns)?.collect::<Result<_, _>>()?,
        };
        // In text a NULL is a byte, in binary it is none.
        let last = match format {
            Format::Text => values.last().copied().flatten(),
            Format::Binary => values.iter().rev().find_map(|value| *value),
        };
        // Of a type that has no bytes a value lies nowhere.
        if let Some(last) = last.filter(|last| !last.is_empty()) {
            let end = bytes.as_ptr_range().end;
            assert_eq!(last.as_ptr_range().end, end, "something is behind the last value");
        }
        let shown = values.into_iter().map(|value| value.map_or("NULL".to_owned(), shown));
        Ok(shown.collect())
    }
}

fn described(column: &Column) -> String {
    format!(
        "{:?}.{:?}.{:?} of {:?}.{:?}, {:?} length {} decimals {} collation {}, {:?}",
        column.schema_str(),
        column.table_str(),
        column.name_str(),
        column.org_table_str(),
        column.org_name_str(),
        column.column_type(),
        column.column_length(),
        column.decimals(),
        column.character_set(),
        column.flags(),
    )
}

fn shown(value: &[u8]) -> String {
    if value.len() <= SHOWN_BYTES_MAX {
        return format!("\"{}\"", value.escape_ascii());
    }
    let sum = value
        .iter()
        .fold(0_u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} bytes, {sum:08x}", value.len())
}
