//! COPY TO STDOUT: rows become the client's data, one message each.
//!
//! In binary format the signature comes in the message of the first row, as PostgreSQL has it: drivers read the two together.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use forebay_pg_values::Environment;
use forebay_sqlite::connection::{Progress, Session as Connection};
use forebay_write::{CancelToken, Parameters, Sql, Value, WriteError};
use rusqlite::types::ValueRef;

use super::super::Session;
use super::super::prepared::OpenCursor;
use super::super::rows::{self, Failed, Piece};
use super::super::stop::Stop;
use super::{Column, Looked, binary, csv, text};
use crate::errors;
use crate::sql::{Copy, Format, Header};
use crate::values::encode_column;
use forebay_pg_wire::backend;
use forebay_pg_wire::error::WireError;

/// A piece is sent when it is this large.
const SENT_BYTES: usize = 64 * 1024;

/// What rows are written with.
struct Writer {
    copy: Copy,
    columns: Vec<Column>,
    environment: Environment,
}

impl Writer {
    /// Appends a message with what comes before a row, and the row.
    fn row(
        &self,
        before: &[u8],
        row: &rusqlite::Row<'_>,
        line: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        line.clear();
        line.put_slice(before);
        let binary = self.copy.format == Format::Binary;
        if binary {
            line.put_i16(i16::try_from(self.columns.len()).unwrap_or(i16::MAX));
        }
        let mut value = BytesMut::new();
        for (place, column) in self.columns.iter().enumerate() {
            let stored = row.get_ref(place).map_err(|error| errors::sqlite(&error).0)?;
            if place > 0 && !binary {
                line.put_u8(self.copy.delimiter);
            }
            if stored == ValueRef::Null && !binary {
                line.put_slice(self.copy.null.as_bytes());
                continue;
            }
            value.clear();
            encode_column(&column.kind, i16::from(binary), stored, &self.environment, &mut value)
                .map_err(|error| error.with_column(column.name.clone()))?;
            // Both have their length before them.
            match self.copy.format {
                Format::Binary => line.put_slice(&value),
                Format::Text => text::write(&value[4..], self.copy.delimiter, line),
                Format::Csv => csv::write(
                    &value[4..],
                    &self.copy,
                    column.force_quote,
                    self.columns.len() == 1,
                    line,
                ),
            }
        }
        if !binary {
            line.put_u8(b'\n');
        }
        backend::copy_data(out, line);
        Ok(())
    }

    /// The line of names.
    fn header(&self) -> BytesMut {
        let mut line = BytesMut::new();
        for (place, column) in self.columns.iter().enumerate() {
            if place > 0 {
                line.put_u8(self.copy.delimiter);
            }
            let name = column.name.as_bytes();
            if self.copy.format == Format::Csv {
                csv::write(name, &self.copy, false, self.columns.len() == 1, &mut line);
            } else {
                text::write(name, self.copy.delimiter, &mut line);
            }
        }
        line.put_u8(b'\n');
        line
    }

    /// Reads the next piece from an open cursor, whose first row comes behind what is told.
    fn fetch(&self, before: &[u8], connection: &mut Connection, cursor: u64, token: &CancelToken) -> Piece {
        let (mut bytes, mut line) = (BytesMut::new(), BytesMut::new());
        let (mut rows, mut refused) = (0, None);
        let fetched = connection.fetch(cursor, Some(token), &mut |row| {
            let before = if rows == 0 { before } else { &[] };
            match self.row(before, row, &mut line, &mut bytes) {
                Ok(()) => rows += 1,
                Err(error) => {
                    refused = Some(error);
                    return ControlFlow::Break(());
                }
            }
            if bytes.len() >= SENT_BYTES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let end = match (refused, fetched) {
            (Some(error), _) => {
                connection.close_cursor(cursor);
                Err(Failed::Encoding(error))
            }
            (None, Ok(progress)) => Ok(progress),
            (None, Err(error)) => Err(Failed::Statement(error)),
        };
        Piece { bytes, rows, end }
    }
}

impl Session {
    /// Sends the rows, and gives their number; nothing is done if they are of another schema than was looked up.
    pub(super) async fn copy_out(
        &mut self,
        copy: &Copy,
        looked: Looked,
        token: &CancelToken,
    ) -> Result<Option<u64>, Stop> {
        let Looked { prepared, columns, .. } = looked;
        let (Some(plan), Some(statement)) = (&prepared.shape.plan, &prepared.statement) else {
            return Err(WireError::internal("a COPY without a statement").into());
        };
        let writer = Arc::new(Writer {
            copy: copy.clone(),
            columns,
            environment: self.value_environment(),
        });
        let sql = Sql::from(plan.first_sql());
        let told = plan.environment.then(|| Value::Text(self.told()));
        let values: Vec<Value> = told.into_iter().collect();
        let parameters = Parameters::from(values);
        self.next_cursor += 1;
        let number = self.next_cursor;
        let source = self.source(token).await?;
        let binary = copy.format == Format::Binary;
        let header: &[u8] = if binary { binary::HEADER } else { &[] };
        let job = {
            let (writer, token, schema) = (Arc::clone(&writer), token.clone(), prepared.shape.schema);
            move |connection: &mut Connection| {
                let opened = connection.open_cursor(number, &sql, &parameters);
                let piece = opened.map(|()| writer.fetch(header, connection, number, &token));
                rows::under_schema(connection, number, schema)?;
                piece
            }
        };
        let failed = |error: WriteError| errors::write(error, statement, &prepared.script);
        let piece: Result<Piece, WriteError> = self.on_source(&source, token, job).await?;
        if matches!(piece, Err(WriteError::SchemaChanged)) {
            return Ok(None);
        }
        let mut piece = piece.map_err(failed)?;
        let mut cursor = OpenCursor {
            number,
            source,
            waited: Duration::ZERO,
        };
        backend::copy_out_response(&mut self.output.pending, binary, writer.columns.len());
        if !binary && copy.header != Header::None {
            backend::copy_data(&mut self.output.pending, &writer.header());
        }
        let mut count = 0;
        loop {
            count += piece.rows;
            self.output.append(piece.bytes);
            match piece.end {
                Err(Failed::Encoding(error)) => return Err(error.into()),
                Err(Failed::Statement(error)) => return Err(failed(error).into()),
                Ok(Progress::Done) => break,
                Ok(Progress::Paused) => {
                    self.send_before_reading_on(&mut cursor, token).await?;
                    let (writer, watched) = (Arc::clone(&writer), token.clone());
                    let job = move |connection: &mut Connection| writer.fetch(&[], connection, number, &watched);
                    piece = self.on_source(&cursor.source, token, job).await?;
                }
            }
        }
        if binary {
            let unsent = if count == 0 { header } else { &[] };
            backend::copy_data(&mut self.output.pending, &[unsent, binary::TRAILER].concat());
        }
        backend::copy_done(&mut self.output.pending);
        Ok(Some(count))
    }
}
