//! Much at a time: results and copies of a gigabyte, straight and through what stands in front.
//!
//! Promises: all bytes and rows are counted, and the figure is of those that came. By hand: a client that costs as little as one can.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::idle::client;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};
use crate::stopwatch::THROUGHPUT;

/// Of what goes over at a time.
const ROW_BYTES: usize = 1_000;
const BYTES: usize = 1_000_000_000;
const QUICK_BYTES: usize = 200_000_000;
const TINY_BYTES: usize = 1_000_000;
/// A turn that is shorter than this is quick.
const FULL_SECONDS: u64 = 3;
const COPIED_AT_ONCE: usize = 64;

/// Which way, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Result,
    CopyOut,
    CopyIn,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Result, Self::CopyOut, Self::CopyIn];

    pub(super) fn case(self) -> &'static str {
        match self {
            Self::Result => "a result of 1 GB",
            Self::CopyOut => "COPY of 1 GB to the client",
            Self::CopyIn => "COPY of 1 GB from the client",
        }
    }
}

pub(super) struct StreamTrial {
    pub(super) system: &'static str,
    pub(super) url: String,
    pub(super) way: Way,
}

impl Trial for StreamTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.way.case()
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let bytes = match stage.effort.duration.as_secs() {
            _ if !stage.effort.meaningful => TINY_BYTES,
            FULL_SECONDS.. => BYTES,
            _ => QUICK_BYTES,
        };
        let rows = bytes / ROW_BYTES;
        let mut stream = client(&self.url)?;
        let begun = Instant::now();
        let came = match self.way {
            Way::Result | Way::CopyOut => {
                let select = format!("SELECT repeat('x', {ROW_BYTES}) FROM generate_series(1, {rows})");
                let (text, tag) = match self.way {
                    Way::CopyOut => (format!("COPY ({select}) TO STDOUT"), b'd'),
                    _ => (select, b'D'),
                };
                ask(&mut stream, &text)?;
                count(stream, tag)?
            }
            Way::CopyIn => {
                // All is read, and nothing kept: the disk is not what is measured.
                ask(
                    &mut stream,
                    "CREATE TEMP TABLE sink (line text) ON COMMIT DROP; COPY sink FROM STDIN WHERE false",
                )?;
                until_copying(&mut stream)?;
                send(&mut stream, rows)?;
                count(stream, b'd')?;
                rows
            }
        };
        let took = begun.elapsed();
        if came != rows {
            return Err(Failure::Wrong(format!("{came} of {rows} rows came")));
        }
        let megabytes = (rows * ROW_BYTES) as f64 / 1e6;
        Ok(vec![Reading::new(THROUGHPUT, "MB/s", megabytes / took.as_secs_f64())])
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::system("stream")(error)
}

fn ask(stream: &mut TcpStream, text: &str) -> Result<(), Failure> {
    let length = (5 + text.len() as u32).to_be_bytes();
    let message = [&b"Q"[..], &length, text.as_bytes(), &[0]].concat();
    stream.write_all(&message).map_err(lost)
}

/// Reads up to the word that rows may come.
fn until_copying(stream: &mut TcpStream) -> Result<(), Failure> {
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).map_err(lost)?;
        let [kind, length @ ..] = header;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        stream.read_exact(&mut body).map_err(lost)?;
        match kind {
            b'G' => return Ok(()),
            b'E' => return Err(Failure::Wrong(format!("told {}", String::from_utf8_lossy(&body)))),
            _ => {}
        }
    }
}

fn send(stream: &mut TcpStream, rows: usize) -> Result<(), Failure> {
    let row = [&[b'x'; ROW_BYTES - 1][..], b"\n"].concat();
    let message = |rows: usize| {
        let body = row.repeat(rows);
        [&b"d"[..], &(4 + body.len() as u32).to_be_bytes(), &body].concat()
    };
    let whole = message(COPIED_AT_ONCE);
    for _ in 0..rows / COPIED_AT_ONCE {
        stream.write_all(&whole).map_err(lost)?;
    }
    stream.write_all(&message(rows % COPIED_AT_ONCE)).map_err(lost)?;
    stream.write_all(b"c\0\0\0\x04").map_err(lost)
}

/// Reads up to ReadyForQuery: how many messages of this kind had a row's length.
fn count(stream: TcpStream, tag: u8) -> Result<usize, Failure> {
    let mut stream = BufReader::with_capacity(256 * 1024, stream);
    let mut rows = 0;
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).map_err(lost)?;
        let [kind, length @ ..] = header;
        let mut left = (u32::from_be_bytes(length) as usize).saturating_sub(4);
        if kind == b'E' {
            let mut body = vec![0; left];
            stream.read_exact(&mut body).map_err(lost)?;
            return Err(Failure::Wrong(format!("told {}", String::from_utf8_lossy(&body))));
        }
        rows += usize::from(kind == tag && left > ROW_BYTES);
        while left > 0 {
            let here = stream.fill_buf().map_err(lost)?.len().min(left);
            if here == 0 {
                return Err(Failure::Wrong("it has hung up".to_owned()));
            }
            stream.consume(here);
            left -= here;
        }
        if kind == b'Z' {
            return Ok(rows);
        }
    }
}
