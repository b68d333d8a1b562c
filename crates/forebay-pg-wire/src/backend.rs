//! What the server sends, encoded into a buffer that the caller flushes.
//!
//! Promises: each function appends exactly one well-formed message, or (a row that fails) nothing. Rows are written in place: no
//! allocation for a row, only for the buffer. Does not know when a message is due, nor sockets.
//!
//! Errors and notices are encoded by [`super::error::WireError::encode`].

use bytes::{BufMut, BytesMut};
use pgwire::messages::Message;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, SecretKey};
use postgres_types::Type;

use super::error::{WireError, sqlstate};

/// Whether a transaction is open, as ReadyForQuery tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// None is open.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed: only its end is accepted.
    Failed,
}

/// A column of a result, for RowDescription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name or alias.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// 0 text, 1 binary.
    pub format: i16,
    /// The OID of its table; 0 if it comes from none.
    pub table_oid: u32,
    /// Its number in that table, from 1; 0 if it comes from none.
    pub number: i16,
    /// The modifier of its type, -1 for none.
    pub typmod: i32,
}

impl Column {
    /// A column that comes from no table, of a type without a modifier.
    pub fn new(name: impl Into<String>, kind: Type, format: i16) -> Self {
        Self {
            name: name.into(),
            kind,
            format,
            table_oid: 0,
            number: 0,
            typmod: -1,
        }
    }

    /// With the OID of the table it comes from, and its number there.
    #[must_use]
    pub fn with_origin(mut self, origin: Option<(u32, i16)>) -> Self {
        (self.table_oid, self.number) = origin.unwrap_or_default();
        self
    }

    /// With a modifier of its type: a length, a precision.
    #[must_use]
    pub fn with_typmod(mut self, typmod: i32) -> Self {
        self.typmod = typmod;
        self
    }
}

/// RowDescription.
///
/// # Errors
///
/// 54000 for more columns than the protocol can count; then nothing is appended.
pub fn row_description(out: &mut BytesMut, columns: &[Column]) -> Result<(), WireError> {
    let count = column_count(columns.len())?;
    message(out, b'T', |out| {
        out.put_i16(count);
        for column in columns {
            put_text(out, &column.name);
            out.put_u32(column.table_oid);
            out.put_i16(column.number);
            out.put_u32(column.kind.oid());
            out.put_i16(size_of_type(&column.kind));
            out.put_i32(column.typmod);
            out.put_i16(column.format);
        }
    });
    Ok(())
}

/// One row on its way into the buffer. Dropped before [`Row::finish`], it leaves the buffer as it was.
#[derive(Debug)]
pub struct Row<'a> {
    out: &'a mut BytesMut,
    start: usize,
    /// Columns still to come.
    left: i16,
    finished: bool,
}

impl<'a> Row<'a> {
    /// Begins a row of `columns` columns.
    ///
    /// # Errors
    ///
    /// 54000 for more columns than the protocol can count.
    pub fn begin(out: &'a mut BytesMut, columns: usize) -> Result<Self, WireError> {
        let left = column_count(columns)?;
        let start = out.len();
        out.put_slice(b"D\0\0\0\0");
        out.put_i16(left);
        Ok(Self {
            out,
            start,
            left,
            finished: false,
        })
    }

    /// Appends the next column: `encode` writes its length and its value.
    ///
    /// # Errors
    ///
    /// Those of `encode`.
    pub fn column(&mut self, encode: impl FnOnce(&mut BytesMut) -> Result<(), WireError>) -> Result<(), WireError> {
        debug_assert!(self.left > 0, "a row has as many columns as it was begun with");
        self.left -= 1;
        encode(self.out)
    }

    /// Completes the row.
    ///
    /// # Errors
    ///
    /// 54000 for a row longer than 2 GiB, XX000 when columns are missing; then nothing is appended.
    pub fn finish(mut self) -> Result<(), WireError> {
        if self.left != 0 {
            return Err(WireError::internal(
                "a row was finished with the wrong number of columns",
            ));
        }
        let length = i32::try_from(self.out.len() - self.start - 1).map_err(|_| {
            WireError::new(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                "a row longer than 2 GiB cannot be sent",
            )
        })?;
        self.out[self.start + 1..self.start + 5].copy_from_slice(&length.to_be_bytes());
        self.finished = true;
        Ok(())
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

/// ParameterDescription.
///
/// # Errors
///
/// 54000 for more parameters than the protocol can count; then nothing is appended.
pub fn parameter_description(out: &mut BytesMut, types: &[Type]) -> Result<(), WireError> {
    let count = u16::try_from(types.len()).map_err(|_| {
        WireError::new(
            sqlstate::PROGRAM_LIMIT_EXCEEDED,
            "a statement has at most 65535 parameters",
        )
    })?;
    message(out, b't', |out| {
        out.put_u16(count);
        for kind in types {
            out.put_u32(kind.oid());
        }
    });
    Ok(())
}

/// CommandComplete, with a tag such as `INSERT 0 1`.
pub fn command_complete(out: &mut BytesMut, tag: &str) {
    message(out, b'C', |out| put_text(out, tag));
}

/// ParseComplete.
pub fn parse_complete(out: &mut BytesMut) {
    out.put_slice(b"1\0\0\0\x04");
}

/// BindComplete.
pub fn bind_complete(out: &mut BytesMut) {
    out.put_slice(b"2\0\0\0\x04");
}

/// CloseComplete.
pub fn close_complete(out: &mut BytesMut) {
    out.put_slice(b"3\0\0\0\x04");
}

/// NoData: a statement without rows was described.
pub fn no_data(out: &mut BytesMut) {
    out.put_slice(b"n\0\0\0\x04");
}

/// PortalSuspended: there are more rows.
pub fn portal_suspended(out: &mut BytesMut) {
    out.put_slice(b"s\0\0\0\x04");
}

/// EmptyQueryResponse: there was no statement.
pub fn empty_query_response(out: &mut BytesMut) {
    out.put_slice(b"I\0\0\0\x04");
}

/// ReadyForQuery.
pub fn ready_for_query(out: &mut BytesMut, status: TransactionStatus) {
    out.put_slice(b"Z\0\0\0\x05");
    out.put_u8(match status {
        TransactionStatus::Idle => b'I',
        TransactionStatus::Open => b'T',
        TransactionStatus::Failed => b'E',
    });
}

/// NotificationResponse: what another session told those who listen.
pub fn notification_response(out: &mut BytesMut, process: i32, channel: &str, payload: &str) {
    message(out, b'A', |out| {
        out.put_i32(process);
        put_text(out, channel);
        put_text(out, payload);
    });
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`): as many columns, all in one format.
fn copy_response(out: &mut BytesMut, kind: u8, binary: bool, columns: usize) {
    let count = i16::try_from(columns).unwrap_or(i16::MAX);
    message(out, kind, |out| {
        out.put_u8(u8::from(binary));
        out.put_i16(count);
        for _ in 0..count {
            out.put_i16(i16::from(binary));
        }
    });
}

/// The client is to send data of so many columns.
pub fn copy_in_response(out: &mut BytesMut, binary: bool, columns: usize) {
    copy_response(out, b'G', binary, columns);
}

/// Data of so many columns comes.
pub fn copy_out_response(out: &mut BytesMut, binary: bool, columns: usize) {
    copy_response(out, b'H', binary, columns);
}

/// A piece of data.
pub fn copy_data(out: &mut BytesMut, data: &[u8]) {
    message(out, b'd', |out| out.put_slice(data));
}

/// That was all data.
pub fn copy_done(out: &mut BytesMut) {
    out.put_slice(b"c\0\0\0\x04");
}

/// ParameterStatus: a setting that drivers want to know.
pub fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    message(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

/// BackendKeyData: what a cancel request must show. The key has 4 bytes in protocol 3.0 and up to 256 from 3.2 on.
///
/// # Errors
///
/// XX000 for a key of another length; then nothing is appended.
pub fn backend_key_data(out: &mut BytesMut, process_id: i32, secret_key: &[u8]) -> Result<(), WireError> {
    encode(
        out,
        &BackendKeyData::new(process_id, SecretKey::Bytes(secret_key.to_vec().into())),
    )
}

/// One step of the authentication.
pub(crate) fn authentication(out: &mut BytesMut, step: &Authentication) -> Result<(), WireError> {
    encode(out, step)
}

/// NegotiateProtocolVersion: the version that is spoken, and the options that are not known.
pub(crate) fn negotiate_protocol_version(
    out: &mut BytesMut,
    minor: u16,
    options: Vec<String>,
) -> Result<(), WireError> {
    encode(out, &NegotiateProtocolVersion::new(3 << 16 | i32::from(minor), options))
}

fn encode(out: &mut BytesMut, message: &impl Message) -> Result<(), WireError> {
    let start = out.len();
    message.encode(out).map_err(|error| {
        out.truncate(start);
        WireError::internal(format!("a message could not be encoded: {error}"))
    })
}

fn message(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let start = out.len();
    out.put_i32(0);
    body(out);
    let length = i32::try_from(out.len() - start).expect("names and tags are far shorter than 2 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A NUL would end the text early and break the frame: what follows it is dropped.
fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.split('\0').next().unwrap_or_default().as_bytes());
    out.put_u8(0);
}

fn column_count(columns: usize) -> Result<i16, WireError> {
    i16::try_from(columns)
        .map_err(|_| WireError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "a result has at most 32767 columns"))
}

/// The type's fixed size in bytes; -1 for none.
fn size_of_type(kind: &Type) -> i16 {
    match *kind {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::OID | Type::FLOAT4 | Type::DATE | Type::VOID | Type::XID | Type::CID => 4,
        Type::REGPROC | Type::REGCLASS | Type::REGTYPE | Type::REGNAMESPACE | Type::REGROLE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::TIMETZ => 12,
        Type::UUID | Type::INTERVAL => 16,
        Type::NAME => 64,
        Type::UNKNOWN => -2,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> impl FnOnce(&mut BytesMut) -> Result<(), WireError> {
        |out| {
            out.put_i32(i32::try_from(bytes.len()).unwrap());
            out.put_slice(bytes);
            Ok(())
        }
    }

    fn null(out: &mut BytesMut) -> Result<(), WireError> {
        out.put_i32(-1);
        Ok(())
    }

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    #[test]
    fn a_row_is_written_in_place() {
        let row = written(|out| {
            let mut row = Row::begin(out, 3).unwrap();
            row.column(value(&7_i64.to_be_bytes())).unwrap();
            row.column(value(b"ab")).unwrap();
            row.column(null).unwrap();
            row.finish().unwrap();
        });
        assert_eq!(
            row,
            b"D\0\0\0\x1c\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x02ab\xff\xff\xff\xff"
        );
    }

    #[test]
    fn a_row_that_fails_leaves_nothing() {
        let out = written(|out| {
            command_complete(out, "before");
            let mut row = Row::begin(out, 2).unwrap();
            row.column(value(b"7")).unwrap();
            assert!(row.column(|_| Err(WireError::protocol("no number"))).is_err());
            drop(row);
            let row = Row::begin(out, 1).unwrap();
            assert_eq!(row.finish().unwrap_err().sqlstate, "XX000");
        });
        assert_eq!(out, b"C\0\0\0\x0bbefore\0");
    }

    #[test]
    fn each_message_has_its_bytes() {
        assert_eq!(written(parse_complete), b"1\0\0\0\x04");
        assert_eq!(written(bind_complete), b"2\0\0\0\x04");
        assert_eq!(written(close_complete), b"3\0\0\0\x04");
        assert_eq!(written(no_data), b"n\0\0\0\x04");
        assert_eq!(written(portal_suspended), b"s\0\0\0\x04");
        assert_eq!(written(empty_query_response), b"I\0\0\0\x04");
        assert_eq!(
            written(|out| ready_for_query(out, TransactionStatus::Idle)),
            b"Z\0\0\0\x05I"
        );
        assert_eq!(
            written(|out| ready_for_query(out, TransactionStatus::Open)),
            b"Z\0\0\0\x05T"
        );
        assert_eq!(
            written(|out| ready_for_query(out, TransactionStatus::Failed)),
            b"Z\0\0\0\x05E"
        );
        assert_eq!(written(|out| parameter_status(out, "a", "b")), b"S\0\0\0\x08a\0b\0");
        assert_eq!(
            written(|out| command_complete(out, "A\0B")),
            b"C\0\0\0\x06A\0",
            "a NUL cannot break the frame"
        );
        assert_eq!(
            written(|out| parameter_description(out, &[Type::INT4, Type::TEXT]).unwrap()),
            b"t\0\0\0\x0e\0\x02\0\0\0\x17\0\0\0\x19"
        );
        assert_eq!(
            written(|out| backend_key_data(out, 1, &[1, 2, 3, 4]).unwrap()),
            b"K\0\0\0\x0c\0\0\0\x01\x01\x02\x03\x04"
        );
        assert!(backend_key_data(&mut BytesMut::new(), 1, &[1, 2, 3]).is_err());
        assert_eq!(
            written(|out| negotiate_protocol_version(out, 2, vec!["_pq_.x".into()]).unwrap()),
            b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0"
        );
    }

    /// The message structs of an independent implementation read what is written here.
    #[test]
    fn a_row_description_is_read_back() {
        let mut out = BytesMut::new();
        let mut column = Column::new("price", Type::INT8, 1);
        (column.table_oid, column.number) = (16_400, 2);
        row_description(&mut out, &[Column::new("name", Type::TEXT, 0), column]).unwrap();
        let read = pgwire::messages::data::RowDescription::decode(&mut out, &Default::default())
            .unwrap()
            .unwrap();
        assert!(out.is_empty());
        assert_eq!(read.fields.len(), 2);
        let second = &read.fields[1];
        assert_eq!(
            (second.name.as_str(), second.table_id, second.column_id),
            ("price", 16_400, 2)
        );
        assert_eq!(
            (
                second.type_id,
                second.type_size,
                second.type_modifier,
                second.format_code
            ),
            (20, 8, -1, 1)
        );
    }

    #[test]
    fn a_row_description_tells_modifiers_and_sizes() {
        let mut out = BytesMut::new();
        let columns = [
            // numeric(10,2), varchar(20), interval day to second, time(3) with time zone
            Column::new("a", Type::NUMERIC, 0).with_typmod(655_366),
            Column::new("b", Type::VARCHAR, 0).with_typmod(24),
            Column::new("c", Type::INTERVAL, 1),
            Column::new("d", Type::TIMETZ, 1).with_typmod(3),
        ];
        row_description(&mut out, &columns).unwrap();
        let read = pgwire::messages::data::RowDescription::decode(&mut out, &Default::default())
            .unwrap()
            .unwrap();
        let told: Vec<_> = read
            .fields
            .iter()
            .map(|field| (field.type_id, field.type_size, field.type_modifier))
            .collect();
        assert_eq!(
            told,
            [(1700, -1, 655_366), (1043, -1, 24), (1186, 16, -1), (1266, 12, 3)]
        );
    }

    #[test]
    fn more_columns_than_the_protocol_counts_are_refused() {
        let mut out = BytesMut::new();
        assert_eq!(Row::begin(&mut out, 40_000).unwrap_err().sqlstate, "54000");
        assert_eq!(
            parameter_description(&mut out, &vec![Type::INT4; 70_000])
                .unwrap_err()
                .sqlstate,
            "54000"
        );
        assert!(out.is_empty());
    }
}
