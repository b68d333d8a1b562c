//! Answer: what the server says to one command, read to its end.
//!
//! Promises: what was asked before is answered before; rows that take more bytes than are taken are an error, and are read to their
//! end all the same, so that the connection stays usable. Knows no command.

use std::sync::Arc;

use super::error::{Failure, Unanswered, found_here};
use super::prepared::{Prepared, Statement};
use super::value;
use forebay_mysql_link::{BinaryRow, Column, Link, LinkError, Malformed, OkPacket, Packet, TextRow};
use forebay_write::{StatementErrorKind as Kind, Value};

/// The columns and rows of an answer; no columns if it has no rows.
pub(super) struct ResultSet {
    pub(super) columns: Arc<[Column]>,
    pub(super) rows: Vec<Vec<Value>>,
    /// What the rows take.
    pub(super) bytes: usize,
    /// What was said last.
    pub(super) ok: OkPacket,
}

/// What a command in text was answered: the rows of all its results, and what was said last.
pub(super) struct Told {
    pub(super) rows: Vec<Vec<Option<String>>>,
    pub(super) ok: OkPacket,
}

/// The answer to one of our own commands in text.
pub(super) async fn told(link: &mut Link) -> Result<Told, Unanswered> {
    let (mut rows, mut count) = (Vec::new(), 0);
    link.discard_rows_beyond(usize::MAX);
    loop {
        match link.next().await? {
            Packet::Columns { count: columns, .. } => count = columns,
            Packet::Row(bytes) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let row: Result<_, Malformed> = TextRow::new(bytes, count).map(|value| Ok(value?.map(text))).collect();
                rows.push(row?);
            }
            Packet::Ok(ok) | Packet::RowsEnd(ok) if !ok.is_followed() => return Ok(Told { rows, ok }),
            Packet::Error(error) => return Err(Unanswered::Server(error)),
            _ => {}
        }
    }
}

/// What was prepared.
pub(super) async fn prepared(link: &mut Link) -> Result<Statement, Unanswered> {
    let Packet::Prepared(told) = error_apart(link.next().await?)? else {
        return Err(unexpected());
    };
    let mut columns = Vec::with_capacity(told.columns.into());
    while link.is_in_answer() {
        if let Packet::Column(definition) = error_apart(link.next().await?)? {
            columns.push(definition.read()?);
        }
    }
    Ok(Statement::new(told.id, told.parameters, columns.into()))
}

/// The first result's columns and rows, if they take no more than so many bytes; those of a procedure's further results are read
/// and left.
pub(super) async fn results(link: &mut Link, prepared: &Prepared, bytes_max: usize) -> Result<ResultSet, Failure> {
    let mut gathered = Gathered {
        result: 0,
        columns: None,
        rows: Vec::new(),
        bytes: 0,
        bytes_max,
    };
    // A value takes no fewer bytes than it came in.
    link.discard_rows_beyond(bytes_max);
    let ok = gathered.gather(link, prepared).await;
    let ok = ok.map_err(|unanswered| Failure::of(unanswered, true))?;
    if gathered.bytes > bytes_max {
        return Err(Failure::TooMuch(found_here(
            Kind::TooLarge,
            format!(
                "its rows take {} bytes, and at most {bytes_max} are taken (max_rows_bytes)",
                gathered.bytes
            ),
        )));
    }
    Ok(ResultSet {
        columns: gathered.columns.unwrap_or_default(),
        rows: gathered.rows,
        bytes: gathered.bytes,
        ok,
    })
}

struct Gathered {
    /// Which result it is, from 0.
    result: usize,
    /// Of the first result. None as long as they are not known.
    columns: Option<Arc<[Column]>>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    bytes_max: usize,
}

impl Gathered {
    async fn gather(&mut self, link: &mut Link, prepared: &Prepared) -> Result<OkPacket, Unanswered> {
        let statement = prepared.statement.as_deref();
        let (mut described, mut described_max): (Vec<Column>, usize) = (Vec::new(), 0);
        loop {
            match error_apart(link.next().await?)? {
                Packet::Columns { count, are_described } if self.result == 0 => {
                    if are_described {
                        described_max = count;
                    } else {
                        let known = statement.map(Statement::columns).unwrap_or_default();
                        if known.len() != count {
                            return Err(unexpected());
                        }
                        self.columns = Some(known);
                    }
                }
                Packet::Column(definition) if self.result == 0 => {
                    described.push(definition.read()?);
                    if described.len() == described_max {
                        let columns: Arc<[Column]> = std::mem::take(&mut described).into();
                        // At once: the server does not say it again, whether or not the statement fails behind it.
                        if let Some(statement) = statement {
                            statement.learn(&columns);
                        }
                        self.columns = Some(columns);
                    }
                }
                Packet::Row(bytes) if self.result == 0 => {
                    let columns = self.columns.as_deref().ok_or_else(unexpected)?;
                    let row = row(bytes, columns, statement.is_some())?;
                    let values = row.iter().map(|value| size_of::<Value>() + value.heap_bytes());
                    self.bytes += values.sum::<usize>();
                    self.keep(row);
                }
                Packet::DiscardedRow(length) if self.result == 0 => {
                    self.bytes = self.bytes.saturating_add(length).max(self.bytes_max.saturating_add(1));
                    self.rows = Vec::new();
                }
                Packet::Ok(ok) | Packet::RowsEnd(ok) if !ok.is_followed() => return Ok(ok),
                Packet::Ok(_) | Packet::RowsEnd(_) => self.result += 1,
                _ => {}
            }
        }
    }

    fn keep(&mut self, row: Vec<Value>) {
        if self.bytes <= self.bytes_max {
            self.rows.push(row);
        } else {
            self.rows = Vec::new();
        }
    }
}

fn row(bytes: &[u8], columns: &[Column], is_binary: bool) -> Result<Vec<Value>, Malformed> {
    let mut values = Vec::with_capacity(columns.len());
    if is_binary {
        for (value, column) in BinaryRow::new(bytes, columns)?.zip(columns) {
            values.push(value::value(value?, column)?);
        }
    } else {
        for (value, column) in TextRow::new(bytes, columns.len()).zip(columns) {
            values.push(value::text(value?, column));
        }
    }
    Ok(values)
}

fn error_apart(packet: Packet<'_>) -> Result<Packet<'_>, Unanswered> {
    match packet {
        Packet::Error(error) => Err(Unanswered::Server(error)),
        packet => Ok(packet),
    }
}

fn unexpected() -> Unanswered {
    Unanswered::Lost(LinkError::Protocol(
        "what came is no answer to what was asked".to_owned(),
    ))
}
