//! Answered: what one statement was answered, as it came.
//!
//! Promises: rows are kept as the server's bytes, in one piece of memory, until somebody reads them; of more than is taken nothing is
//! kept but how much it was.

use std::sync::Arc;

use postgres_types::{FromSql, Type};

use super::prepared::Prepared;
use forebay_pg_link::{LinkError, Message, Row};
use forebay_write::{StatementError, StatementErrorKind};

/// What a row is counted as beside its bytes.
const ROW_BYTES: usize = 64;

/// What one statement was answered.
#[derive(Debug, Default)]
pub(super) struct Answered {
    columns: Arc<[Type]>,
    /// The bodies of all rows.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// So many bytes its rows were, if that was too many; then none is kept.
    pub(super) too_many: Option<TooMany>,
    /// The count in the server's command tag.
    pub(super) count: u64,
}

/// Rows that were received and not kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooMany {
    bytes: usize,
    most: usize,
}

impl From<TooMany> for StatementError {
    fn from(TooMany { bytes, most }: TooMany) -> Self {
        let message = format!("its rows take {bytes} bytes, and at most {most} are taken (max_rows_bytes)");
        Self::new(StatementErrorKind::TooLarge, 0, message)
    }
}

impl Answered {
    pub(super) fn of(prepared: &Prepared) -> Self {
        Self {
            columns: Arc::clone(&prepared.columns),
            ..Self::default()
        }
    }

    /// Takes a row, if all that are there take no more than `most`.
    pub(super) fn take(&mut self, row: &Message<'_>, most: usize) -> Result<(), LinkError> {
        let before = match self.too_many {
            Some(too_many) => too_many.bytes,
            None => self.bytes.len() + self.ends.len() * ROW_BYTES,
        };
        let bytes = before.saturating_add(row.length()).saturating_add(ROW_BYTES);
        if bytes > most || row.is_discarded() {
            self.too_many = Some(TooMany { bytes, most });
            (self.bytes, self.ends) = (Vec::new(), Vec::new());
            return Ok(());
        }
        if row.row()?.len() != self.columns.len() {
            return Err(LinkError::Protocol(
                "a row has another number of columns than was told".to_owned(),
            ));
        }
        self.bytes.extend_from_slice(row.body());
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// How many rows there are.
    pub(super) fn row_count(&self) -> usize {
        self.ends.len()
    }

    /// The values of each row, with the type of its column.
    pub(super) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (&Type, Option<&[u8]>)>> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| {
            let row = Row::read(&self.bytes[begin..end]).expect("it was read when it was taken");
            self.columns.iter().zip(row)
        })
    }

    /// A value of the first row's, where the statement is ours, and so is its type.
    pub(super) fn first<'a, V: FromSql<'a>>(&'a self, column: usize) -> Option<V> {
        let (kind, value) = self.rows().next()?.nth(column)?;
        Some(own(kind, value))
    }
}

/// A value of a column whose type our own statement says.
pub(super) fn own<'a, V: FromSql<'a>>(kind: &Type, value: Option<&'a [u8]>) -> V {
    assert!(
        V::accepts(kind),
        "our own statement has a column of another type: {kind}"
    );
    V::from_sql_nullable(kind, value).expect("the server keeps to its own formats")
}
