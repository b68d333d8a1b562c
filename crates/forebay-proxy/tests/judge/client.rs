//! A client that knows frames and no more, so that it sees each byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::script::Step;

/// A session.
pub(crate) struct Client {
    stream: TcpStream,
    settings: BTreeMap<String, String>,
    has_failed: bool,
    /// Of cancels: process number and secret.
    key: Vec<u8>,
}

/// Numbers of objects that were made here; those of the system are the same everywhere.
const FIRST_OID: u32 = 16_384;

impl Client {
    pub(crate) fn connect(address: &str, database: &str, parameters: &[(&str, &str)]) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for (name, value) in [("user", "postgres"), ("database", database)].iter().chain(parameters) {
            body.extend([name.as_bytes(), &[0], value.as_bytes(), &[0]].concat());
        }
        body.push(0);
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &body].concat()).unwrap();
        let mut client = Self {
            stream,
            settings: BTreeMap::new(),
            has_failed: false,
            key: Vec::new(),
        };
        client.answers(1);
        client
    }

    /// What is reported of the session's settings.
    pub(crate) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    pub(crate) fn run(&mut self, sql: &str) {
        for part in sql.split(";\n").filter(|part| !part.trim().is_empty()) {
            let told = self.ask(&Step::query(part));
            assert!(!told.contains("\nE "), "{part}: {told}");
        }
    }

    /// Sends a step's messages in its pieces, and reads what comes up to the last ReadyForQuery.
    pub(crate) fn ask(&mut self, step: &Step) -> String {
        for piece in step.pieces() {
            self.stream.write_all(piece).unwrap();
        }
        self.answers(step.ready)
    }

    /// The rows of a query, as texts.
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.send(
            &[
                &b"Q"[..],
                &u32::try_from(sql.len() + 5).unwrap().to_be_bytes(),
                sql.as_bytes(),
                &[0],
            ]
            .concat(),
        );
        let mut rows = Vec::new();
        loop {
            let mut header = [0; 5];
            self.stream.read_exact(&mut header).unwrap();
            let mut body = vec![0; u32::from_be_bytes(*header.last_chunk().unwrap()) as usize - 4];
            self.stream.read_exact(&mut body).unwrap();
            match header[0] {
                b'D' => {
                    let mut rest = &body[2..];
                    let mut row = Vec::new();
                    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                        let length = u32::from_be_bytes(*length) as usize;
                        let (value, behind) = behind.split_at(if length > behind.len() { 0 } else { length });
                        row.push((length != u32::MAX as usize).then(|| String::from_utf8(value.to_vec()).unwrap()));
                        rest = behind;
                    }
                    rows.push(row);
                }
                b'Z' => return rows,
                _ => {}
            }
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn wait_at_most(&self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).unwrap();
    }

    /// All messages up to one of this kind, or the end: the first byte of each, and what of it is text.
    pub(crate) fn until(&mut self, tag: u8) -> String {
        let mut told = String::new();
        loop {
            let mut header = [0; 5];
            if let Err(error) = self.stream.read_exact(&mut header) {
                let _ = write!(told, "ended: {:?}", error.kind());
                return told;
            }
            let mut body = vec![0; u32::from_be_bytes(*header.last_chunk().unwrap()) as usize - 4];
            self.stream.read_exact(&mut body).unwrap();
            let _ = writeln!(told, "{} {}", char::from(header[0]), String::from_utf8_lossy(&body));
            if header[0] == tag {
                return told;
            }
        }
    }

    /// Asks that what runs be cancelled, and waits until that was heard.
    pub(crate) fn cancel(&self, address: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = u32::try_from(self.key.len() + 8).unwrap().to_be_bytes();
        stream
            .write_all(&[&length[..], &80_877_102_u32.to_be_bytes(), &self.key].concat())
            .unwrap();
        let _ = stream.read(&mut [0]);
    }

    /// All messages up to so many ReadyForQuery, one a line.
    pub(crate) fn answers(&mut self, ready: usize) -> String {
        let mut told = String::new();
        let mut seen = 0;
        while seen < ready {
            let mut header = [0; 5];
            if let Err(error) = self.stream.read_exact(&mut header) {
                let _ = write!(told, "\nended: {:?}", error.kind());
                return told;
            }
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
            let mut body = vec![0; length as usize - 4];
            self.stream.read_exact(&mut body).unwrap();
            match header[0] {
                b'S' => {
                    let text = String::from_utf8(body).unwrap();
                    let (name, value) = text.split_once('\0').unwrap();
                    self.settings
                        .insert(name.to_owned(), value.trim_end_matches('\0').to_owned());
                    continue;
                }
                b'K' => {
                    self.key = body;
                    continue;
                }
                b'A' => body[..4].fill(0),
                b'T' => mask_tables(&mut body),
                b'Z' => {
                    seen += 1;
                    self.has_failed = body == b"E";
                }
                // In a transaction that has failed nothing can be prepared any more: what the client has prepared elsewhere is refused
                // for that reason, whatever else the answer would be.
                _ if self.has_failed => continue,
                _ => {}
            }
            let _ = write!(told, "\n{} {}", char::from(header[0]), body.escape_ascii());
        }
        told
    }
}

/// Numbers of tables and types that were made differ between two databases.
fn mask_tables(body: &mut [u8]) {
    let mut at = 2;
    while at < body.len() {
        at += body[at..].iter().position(|&byte| byte == 0).unwrap() + 1;
        for number in [at, at + 6] {
            let made = u32::from_be_bytes(*body[number..].first_chunk().unwrap());
            if made >= FIRST_OID {
                body[number..number + 4].fill(0xff);
            }
        }
        at += 18;
    }
}
