//! COPY's binary format: a signature, rows of counted values, a trailer.
//!
//! Promises: data that is cut short, or has other columns than the table, is an error. Knows nothing of the values' types.

use bytes::{Buf, Bytes, BytesMut};

use super::bad_format;
use forebay_pg_wire::error::WireError;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Cuts binary data into rows, wherever its messages are cut.
#[derive(Debug)]
pub(super) struct Rows {
    buffer: BytesMut,
    began: bool,
    finished: bool,
    ended: bool,
    columns: usize,
    row_bytes_max: usize,
}

impl Rows {
    pub(super) fn new(columns: usize, row_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            began: false,
            finished: false,
            ended: false,
            columns,
            row_bytes_max,
        }
    }

    pub(super) fn feed(&mut self, data: &[u8]) -> Result<(), WireError> {
        if self.ended && !data.is_empty() {
            return Err(bad_format("received copy data after EOF marker"));
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    fn incomplete<T>(&self) -> Result<Option<T>, WireError> {
        if self.finished {
            return Err(bad_format("unexpected EOF in COPY data"));
        }
        if self.buffer.len() > self.row_bytes_max {
            let message = format!("a row of COPY has at most {} bytes", self.row_bytes_max);
            return Err(WireError::new("54000", message));
        }
        Ok(None)
    }

    /// The next row; none if it is not there whole, or was the last.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Option<Bytes>>>, WireError> {
        if self.ended {
            return Ok(None);
        }
        if !self.began && !self.begin()? {
            return Ok(None);
        }
        let mut rest = self.buffer.as_ref();
        let Ok(count) = rest.try_get_i16() else {
            // PostgreSQL takes data without a trailer too.
            return if self.finished && self.buffer.is_empty() {
                Ok(None)
            } else {
                self.incomplete()
            };
        };
        if count == -1 {
            self.ended = true;
            if rest.has_remaining() {
                return Err(bad_format("received copy data after EOF marker"));
            }
            return Ok(None);
        }
        if usize::try_from(count) != Ok(self.columns) {
            let message = format!("row field count is {count}, expected {}", self.columns);
            return Err(bad_format(message));
        }
        let mut lengths = Vec::with_capacity(self.columns);
        for _ in 0..count {
            let Ok(length) = rest.try_get_i32() else {
                return self.incomplete();
            };
            let length = match usize::try_from(length) {
                Ok(length) => Some(length),
                Err(_) if length == -1 => None,
                Err(_) => return Err(bad_format("invalid field size")),
            };
            let bytes = length.unwrap_or(0);
            if rest.remaining() < bytes {
                return self.incomplete();
            }
            rest.advance(bytes);
            lengths.push(length);
        }
        self.buffer.advance(2);
        let row = lengths.into_iter().map(|length| {
            self.buffer.advance(4);
            length.map(|length| self.buffer.split_to(length).freeze())
        });
        Ok(Some(row.collect()))
    }

    /// Takes the header, if it is there whole.
    fn begin(&mut self) -> Result<bool, WireError> {
        const FIXED: usize = SIGNATURE.len() + 8;
        let signed = self.buffer.len().min(SIGNATURE.len());
        if self.buffer[..signed] != SIGNATURE[..signed] || (self.finished && signed < SIGNATURE.len()) {
            return Err(bad_format("COPY file signature not recognized"));
        }
        if self.buffer.len() < FIXED {
            return self.incomplete().map(|_: Option<()>| false);
        }
        let mut rest = &self.buffer[SIGNATURE.len()..];
        let flags = rest.get_u32();
        let Ok(extension) = usize::try_from(rest.get_i32()) else {
            return Err(bad_format("invalid COPY file header (missing length)"));
        };
        if flags & (1 << 16) != 0 {
            return Err(bad_format("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 17 != 0 {
            return Err(bad_format("unrecognized critical flags in COPY file header"));
        }
        if rest.remaining() < extension {
            return self.incomplete().map(|_: Option<()>| false);
        }
        self.buffer.advance(FIXED + extension);
        self.began = true;
        Ok(true)
    }
}

/// What comes before the first row: the signature, no flags, no extension.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What comes behind the last row.
pub(super) const TRAILER: &[u8] = &[0xff, 0xff];
