//! Packet: one of the server's, by what it means where it comes.
//!
//! Promises: what is read of a packet is borrowed from the bytes it came in; one that is cut short or whose lengths disagree is
//! [`Malformed`], never a panic. Knows no connection: where a packet comes, and so what it means, is for `answer` to say.
//!
//! The formats are those of MariaDB's documentation, "Client/Server Protocol".

use mysql_common::constants::StatusFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::Column;

use crate::reader::{Malformed, Reader};
use crate::server_error::ServerError;

/// A packet that the server sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Packet<'a> {
    /// A statement was prepared. Its parameters are described next, then its columns.
    Prepared(StatementPacket),
    /// Rows of so many columns come next; what the columns are only if it is said, otherwise they are those that the server
    /// described last for the same statement.
    Columns {
        /// How many, never none.
        count: usize,
        /// Whether a [`Packet::Column`] of each comes next.
        are_described: bool,
    },
    /// A parameter of what was prepared.
    Parameter(Definition<'a>),
    /// A column.
    Column(Definition<'a>),
    /// Older servers: all parameters, or all columns, were described.
    DescriptionEnd,
    /// A row: its bytes, to be read as a [`TextRow`](crate::TextRow) or a [`BinaryRow`](crate::BinaryRow).
    Row(&'a [u8]),
    /// A row that was longer than is taken, and was discarded as it came: how long it was.
    DiscardedRow(usize),
    /// The end of a result without rows.
    Ok(OkPacket),
    /// The end of a result's rows.
    RowsEnd(OkPacket),
    /// The statement failed: what an error packet says. Nothing of its answer comes after it.
    Error(ServerError),
}

/// What the server says of a result, when it has told all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket {
    /// Rows that were changed; 0 at the end of rows.
    pub affected_rows: u64,
    /// The first id that the server gave out; 0 if it gave none, and at the end of rows.
    pub last_insert_id: u64,
    /// How the session stands.
    pub status: StatusFlags,
    /// How many there are to be shown.
    pub warnings: u16,
}

impl OkPacket {
    /// Whether another result of the same command comes next.
    pub fn is_followed(&self) -> bool {
        self.status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS)
    }

    /// Of a packet that begins with 0x00, or with 0xfe at the end of rows.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        reader.u8()?;
        Ok(Self {
            affected_rows: reader.length()?.ok_or(Malformed)?,
            last_insert_id: reader.length()?.ok_or(Malformed)?,
            status: StatusFlags::from_bits_truncate(reader.u16()?),
            warnings: reader.u16()?,
        })
    }

    /// Of the packet that older servers end rows, and descriptions, with.
    pub(crate) fn read_eof(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        reader.u8()?;
        let warnings = reader.u16()?;
        Ok(Self {
            status: StatusFlags::from_bits_truncate(reader.u16()?),
            warnings,
            ..Self::default()
        })
    }
}

/// What the server says of a statement that it has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementPacket {
    /// What it is called from now on.
    pub id: u32,
    /// How many columns it returns.
    pub columns: u16,
    /// How many parameters it takes.
    pub parameters: u16,
}

impl StatementPacket {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        match reader.u8()? {
            0 => {}
            _ => return Err(Malformed),
        }
        Ok(Self {
            id: reader.u32()?,
            columns: reader.u16()?,
            parameters: reader.u16()?,
        })
    }
}

/// The description of a column or parameter, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a>(&'a [u8]);

impl<'a> Definition<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// What it says.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(&self) -> Result<Column, Malformed> {
        ParseBuf(self.0).parse(()).map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::constants::ColumnType;
    use mysql_common::proto::MySerialize;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_are_too_odd_to_be_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = OkPacket::read(&body);
            let _ = OkPacket::read_eof(&body);
            let _ = StatementPacket::read(&body);
            let _ = ServerError::read(&body);
            let _ = Definition::new(&body).read();
        }

        #[test]
        fn a_description_that_is_cut_is_malformed(name in "[a-zé]{0,300}") {
            let column = Column::new(ColumnType::MYSQL_TYPE_LONG).with_name(name.as_bytes());
            let mut bytes = Vec::new();
            column.serialize(&mut bytes);
            prop_assert_eq!(Definition::new(&bytes).read(), Ok(column));
            // The two bytes at its end mean nothing.
            for cut in 0..bytes.len() - 2 {
                prop_assert_eq!(Definition::new(&bytes[..cut]).read(), Err(Malformed));
            }
        }
    }

    #[test]
    fn what_a_result_counts_is_read_in_every_length() {
        for (encoded, number) in [
            (&[250_u8][..], 250_u64),
            (&[0xfc, 251, 0], 251),
            (&[0xfd, 0, 0, 1], 65_536),
            (&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
        ] {
            let body = [&[0][..], encoded, encoded, &[2, 0, 7, 0]].concat();
            let expected = OkPacket {
                affected_rows: number,
                last_insert_id: number,
                status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
                warnings: 7,
            };
            assert_eq!(OkPacket::read(&body), Ok(expected));
            for cut in 0..body.len() {
                assert_eq!(OkPacket::read(&body[..cut]), Err(Malformed));
            }
        }
    }
}
