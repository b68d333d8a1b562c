//! COPY FROM STDIN: the client's data becomes rows, stored piece by piece in one transaction while more of it arrives.
//!
//! Promises: an error tells the line it was met in, and leaves nothing stored.

use std::sync::Arc;

use bytes::Bytes;
use forebay_pg_values::{Environment, Owned, Type as ValueType, array, text_form};
use forebay_sqlite::connection;
use forebay_write::{CancelToken, Parameters, Sql, Value, WriteError};

use super::super::Session;
use super::super::stop::Stop;
use super::super::violation::Violation;
use super::super::waiting::Event;
use super::lines::{Lines, Quoting};
use super::{Column, Looked, PIECE_BYTES, PIECE_ROWS, at_line, bad_format, binary, csv, shown, text};
use crate::errors;
use crate::sql::{Copy, Format, Header};
use crate::values::decode_parameter;
use forebay_pg_wire::backend;
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::frontend::{FrameError, Frontend};

/// A row on its way: its values, where it stands, and its text for errors.
struct Row {
    values: Vec<Value>,
    line: u64,
    text: Bytes,
}

/// Data becoming rows.
struct Reader<'a> {
    copy: &'a Copy,
    table: &'a str,
    columns: Vec<Column>,
    data: Data,
    environment: Environment,
    line: u64,
    header_is_due: bool,
}

enum Data {
    Lines(Lines),
    Binary(binary::Rows),
}

impl<'a> Reader<'a> {
    fn new(copy: &'a Copy, table: &'a str, columns: Vec<Column>, environment: Environment, bytes_max: usize) -> Self {
        let quoting = (copy.format == Format::Csv).then_some(Quoting {
            quote: copy.quote,
            escape: copy.escape,
        });
        let data = if copy.format == Format::Binary {
            Data::Binary(binary::Rows::new(columns.len(), bytes_max))
        } else {
            Data::Lines(Lines::new(quoting, bytes_max))
        };
        Self {
            copy,
            table,
            columns,
            data,
            environment,
            line: 0,
            header_is_due: copy.header != Header::None,
        }
    }

    fn feed(&mut self, data: &[u8]) -> Result<(), WireError> {
        match &mut self.data {
            Data::Lines(lines) => {
                lines.feed(data);
                Ok(())
            }
            Data::Binary(rows) => rows.feed(data),
        }
    }

    fn finish(&mut self) {
        match &mut self.data {
            Data::Lines(lines) => lines.finish(),
            Data::Binary(rows) => rows.finish(),
        }
    }

    /// The next row that is there whole.
    fn next(&mut self) -> Result<Option<Row>, WireError> {
        let line = self.line + 1;
        let lines = match &mut self.data {
            Data::Binary(rows) => {
                let next = rows.next().map_err(|error| at_line(error, self.table, line, None))?;
                let Some(fields) = next else { return Ok(None) };
                self.line = line;
                return self.binary_row(&fields).map(Some);
            }
            Data::Lines(lines) => lines,
        };
        let Some(line) = lines.next().map_err(|error| at_line(error, self.table, line, None))? else {
            return Ok(None);
        };
        self.line += 1;
        if std::mem::take(&mut self.header_is_due) {
            self.header(&line)
                .map_err(|error| at_line(error, self.table, self.line, Some(&line)))?;
            return self.next();
        }
        let fields = self
            .fields(&line)
            .map_err(|error| at_line(error, self.table, self.line, Some(&line)))?;
        let mut values = Vec::with_capacity(fields.len());
        for (column, field) in self.columns.iter().zip(&fields) {
            let value = decode(column, field.as_deref(), &self.environment).map_err(|error| {
                let (table, number, name) = (self.table, self.line, &column.name);
                error.with_context(match field {
                    Some(field) => format!("COPY {table}, line {number}, column {name}: \"{}\"", shown(field)),
                    None => format!("COPY {table}, line {number}, column {name}: null input"),
                })
            })?;
            values.push(value);
        }
        Ok(Some(Row {
            values,
            line: self.line,
            text: line,
        }))
    }

    fn fields(&self, line: &[u8]) -> Result<Vec<Option<Vec<u8>>>, WireError> {
        if let Err(error) = std::str::from_utf8(line) {
            return Err(forebay_pg_wire::frontend::invalid_utf8(line, error));
        }
        let fields = if self.copy.format == Format::Csv {
            csv::values(line, self.copy, &self.columns)?
        } else {
            text::split(line, self.copy.delimiter, self.copy.null.as_bytes())
        };
        if fields.len() > self.columns.len() {
            return Err(bad_format("extra data after last expected column"));
        }
        if let Some(column) = self.columns.get(fields.len()) {
            return Err(bad_format(format!("missing data for column \"{}\"", column.name)));
        }
        Ok(fields)
    }

    fn header(&self, line: &[u8]) -> Result<(), WireError> {
        if self.copy.header != Header::Matching {
            return Ok(());
        }
        let fields = if self.copy.format == Format::Csv {
            csv::values(line, self.copy, &[])?
        } else {
            text::split(line, self.copy.delimiter, self.copy.null.as_bytes())
        };
        if fields.len() != self.columns.len() {
            let (got, expected) = (fields.len(), self.columns.len());
            let message = format!("wrong number of fields in header line: got {got}, expected {expected}");
            return Err(bad_format(message));
        }
        for (place, (field, column)) in fields.iter().zip(&self.columns).enumerate() {
            let got = match field {
                Some(field) if *field == column.name.as_bytes() => continue,
                Some(field) => format!("\"{}\"", String::from_utf8_lossy(field)),
                None => format!("null value (\"{}\")", self.copy.null),
            };
            let message = format!(
                "column name mismatch in header line field {}: got {got}, expected \"{}\"",
                place + 1,
                column.name
            );
            return Err(bad_format(message));
        }
        Ok(())
    }

    fn binary_row(&self, fields: &[Option<Bytes>]) -> Result<Row, WireError> {
        let mut values = Vec::with_capacity(fields.len());
        for (column, field) in self.columns.iter().zip(fields) {
            let value = decode_parameter(&column.kind, 1, field.as_deref(), &self.environment).map_err(|error| {
                error.with_context(format!(
                    "COPY {}, line {}, column {}",
                    self.table, self.line, column.name
                ))
            })?;
            values.push(value);
        }
        Ok(Row {
            values,
            line: self.line,
            text: Bytes::new(),
        })
    }
}

/// A value of a column from its text: as a parameter of its type would be, and within its length or precision.
fn decode(column: &Column, field: Option<&[u8]>, environment: &Environment) -> Result<Value, WireError> {
    let value = decode_parameter(&column.kind, 0, field, environment)?;
    let Some(written) = field.and_then(|field| std::str::from_utf8(field).ok()) else {
        return Ok(value);
    };
    if column.typmod == -1 {
        return Ok(value);
    }
    Ok(match ValueType::from_oid(column.kind.oid()) {
        Some(ValueType::Scalar(kind)) => match text_form::parse(kind, column.typmod, written, environment)? {
            Owned::Null => Value::Null,
            Owned::Integer(integer) => Value::Integer(integer),
            Owned::Real(real) => Value::Real(real),
            Owned::Text(text) => Value::Text(text),
            Owned::Blob(bytes) => Value::Blob(bytes),
        },
        Some(ValueType::Array(kind)) => Value::Text(array::parse(kind, column.typmod, written, environment)?),
        None => value,
    })
}

impl Session {
    pub(super) async fn copy_in(&mut self, copy: &Copy, token: &CancelToken) -> Result<u64, Stop> {
        let mut looked = self.looked_up(copy, false, token).await?;
        self.settle_portals(token).await?;
        let binary = copy.format == Format::Binary;
        backend::copy_in_response(&mut self.output.pending, binary, looked.columns.len());
        self.send().await?;
        let (environment, bytes_max) = (self.value_environment(), self.shared.limits.max_message_bytes);
        let (table, columns) = (looked.table.clone(), looked.columns.clone());
        let mut reader = Reader::new(copy, &table, columns, environment, bytes_max);
        let (mut piece, mut piece_bytes, mut count) = (Vec::new(), 0, 0);
        loop {
            let finished = match self.copied_data(token).await? {
                Some(data) => {
                    let fed = reader.feed(&data);
                    fed.map_err(|error| at_line(error, &table, reader.line + 1, None))?;
                    false
                }
                None => {
                    reader.finish();
                    true
                }
            };
            while let Some(row) = reader.next()? {
                piece_bytes += row.text.len() + row.values.len() * size_of::<Value>();
                piece.push(row);
                if piece.len() >= PIECE_ROWS || piece_bytes >= PIECE_BYTES {
                    count += self.store(std::mem::take(&mut piece), copy, &mut looked, token).await?;
                    piece_bytes = 0;
                }
            }
            if finished {
                break;
            }
        }
        count += self.store(piece, copy, &mut looked, token).await?;
        if self.block.as_ref().is_some_and(|block| block.constraints_are_immediate) {
            self.look_at_constraints(token).await?;
        }
        Ok(count)
    }

    /// The next piece of the client's data; none at its end.
    async fn copied_data(&mut self, token: &CancelToken) -> Result<Option<Bytes>, Stop> {
        loop {
            let event = tokio::select! {
                biased;
                event = self.next_event(None) => event,
                error = token.fired() => return Err(error.into()),
            };
            let message = match event {
                Event::End(error) => return Err(error.into()),
                Event::Message(Ok(Some(message))) => message,
                Event::Message(Ok(None)) => return Err(Stop::Gone(std::io::ErrorKind::UnexpectedEof.into())),
                Event::Message(Err(FrameError::Refused { error, .. })) => return Err(error.into()),
                Event::Message(Err(error)) => return Err(error.into()),
            };
            match message {
                Frontend::CopyData(data) => return Ok(Some(data)),
                Frontend::CopyDone => return Ok(None),
                Frontend::CopyFail(reason) => {
                    return Err(WireError::new("57014", format!("COPY from stdin failed: {reason}")).into());
                }
                // A client that sent its whole group before it knew of the COPY sends another Sync behind the data.
                Frontend::Sync | Frontend::Flush => {}
                Frontend::Terminate => return Err(Stop::Gone(std::io::ErrorKind::UnexpectedEof.into())),
                _ => {
                    let message = "unexpected message during COPY from stdin";
                    return Err(WireError::protocol(message).into());
                }
            }
        }
    }

    /// Takes the right to write. From then on nobody else changes the schema; if somebody has, the COPY is looked up again, and goes
    /// on if its columns are the same.
    async fn hold_schema(&mut self, copy: &Copy, looked: &mut Looked, token: &CancelToken) -> Result<(), Stop> {
        let wanting = self.locks.wanting_to_write();
        let Some(block) = &mut self.block else {
            return Err(WireError::internal("a COPY without a transaction").into());
        };
        let transaction = block
            .writing(&self.shared.sqlite, token, self.settings.lock_timeout())
            .await?;
        let version = connection::run(transaction, token, connection::Session::schema_version).await??;
        drop(wanting);
        if looked.prepared.shape.schema == Some(version) {
            return Ok(());
        }
        self.forget_plans();
        let now = self.looked_up(copy, true, token).await?;
        // The rows were understood by them.
        if now.columns != looked.columns {
            return Err(WriteError::SchemaChanged.into());
        }
        *looked = now;
        Ok(())
    }

    /// Stores some rows in the transaction.
    async fn store(
        &mut self,
        rows: Vec<Row>,
        copy: &Copy,
        looked: &mut Looked,
        token: &CancelToken,
    ) -> Result<u64, Stop> {
        if rows.is_empty() {
            return Ok(0);
        }
        if self.block.as_ref().is_some_and(|block| block.write().is_none()) {
            self.hold_schema(copy, looked, token).await?;
        }
        let Looked { prepared, table, .. } = looked;
        let (Some(plan), Some(statement)) = (&prepared.shape.plan, &prepared.statement) else {
            return Err(WireError::internal("a COPY without a statement").into());
        };
        let sql = Sql::from(plan.first_sql());
        let told = plan.environment.then(|| Value::Text(self.told()));
        let mut parameters = Vec::with_capacity(rows.len());
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = row.values;
            if let Some(told) = &told {
                values.insert(0, told.clone());
            }
            values.truncate(plan.used);
            parameters.push(Parameters::from(values));
            places.push((row.line, row.text));
        }
        let parameters: Arc<[Parameters]> = parameters.into();
        let count = parameters.len() as u64;
        let _wanting = self.locks.wanting_to_write();
        let Some(block) = &mut self.block else {
            return Err(WireError::internal("a COPY without a transaction").into());
        };
        let transaction = block
            .writing(&self.shared.sqlite, token, self.settings.lock_timeout())
            .await?;
        let (watched, given) = (token.clone(), Arc::clone(&parameters));
        let stored = connection::run(transaction, token, move |connection| {
            connection.execute_many(&sql, &given, &watched)
        })
        .await?;
        let Err((place, error)) = stored else {
            if let (Some(block), Some(plan)) = (&mut self.block, &prepared.shape.plan) {
                block.changes(&plan.changes);
            }
            return Ok(count);
        };
        let (line, text) = &places[place];
        let violation = Violation::of(&error);
        let answer = errors::write(error, statement, &prepared.script);
        let answer = match violation {
            Some(violation) => {
                let shown = parameters[place].clone();
                self.explained(answer, violation, prepared, shown, token).await
            }
            None => answer,
        };
        // The place in the text of the INSERT means nothing to the client. Keys are looked at when the line is forgotten.
        let mut answer = answer;
        answer.position = None;
        // Foreign keys are looked at behind the last line.
        if answer.sqlstate == "23503" {
            return Err(answer.into());
        }
        let text = (answer.sqlstate != "23505" && !text.is_empty()).then_some(text.as_ref());
        Err(at_line(answer, table, *line, text).into())
    }
}
