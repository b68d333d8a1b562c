//! Clients that are connected and ask nothing: what each costs in memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::process;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};

pub(super) const IDLE: &str = "idle clients";
pub(super) const MEMORY: &str = "memory a client";

/// So many, of this process and the proxy's: each has a descriptor in both.
const CLIENTS: usize = 900;
const TINY_CLIENTS: usize = 20;

pub(super) struct IdleTrial {
    system: &'static str,
    url: String,
    /// The proxy's.
    process: u32,
}

impl IdleTrial {
    pub(super) fn new(system: &'static str, url: &str, process: u32) -> Self {
        Self {
            system,
            url: url.to_owned(),
            process,
        }
    }
}

impl Trial for IdleTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        IDLE
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let count = if stage.effort.meaningful { CLIENTS } else { TINY_CLIENTS };
        // The first one brings what is there once.
        let first = client(&self.url)?;
        let before = process::resident_kib(self.process)?;
        let clients: Vec<TcpStream> = (0..count).map(|_| client(&self.url)).collect::<Result<_, _>>()?;
        let after = process::resident_kib(self.process)?;
        drop((first, clients));
        let each = after.saturating_sub(before) as f64 / count as f64;
        Ok(vec![Reading::new(MEMORY, "KiB", each)])
    }
}

/// A client that has logged in and had a statement answered. By hand: one that costs nothing itself.
fn client(url: &str) -> Result<TcpStream, Failure> {
    let told = |what: &'static str| Failure::system(format!("{what} as an idle client"));
    let address = url
        .split_once('@')
        .and_then(|(_, rest)| rest.split('/').next())
        .ok_or_else(|| Failure::Wrong(format!("{url} names no address")))?;
    let mut stream = TcpStream::connect(address).map_err(told("connect"))?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .map_err(told("wait"))?;
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let length = (8 + parameters.len() as u32).to_be_bytes();
    let opening = [&length[..], &196_608_u32.to_be_bytes(), parameters].concat();
    stream.write_all(&opening).map_err(told("log in"))?;
    until_ready(&mut stream)?;
    let text = b"SELECT 1\0";
    let length = (4 + text.len() as u32).to_be_bytes();
    stream
        .write_all(&[b"Q", &length[..], text].concat())
        .map_err(told("ask"))?;
    until_ready(&mut stream)?;
    Ok(stream)
}

/// Reads up to ReadyForQuery.
fn until_ready(stream: &mut TcpStream) -> Result<(), Failure> {
    loop {
        let mut header = [0; 5];
        stream
            .read_exact(&mut header)
            .map_err(Failure::system("read as an idle client"))?;
        let [tag, length @ ..] = header;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        stream
            .read_exact(&mut body)
            .map_err(Failure::system("read as an idle client"))?;
        match tag {
            b'Z' => return Ok(()),
            b'E' => {
                return Err(Failure::Wrong(format!(
                    "an idle client was told {}",
                    String::from_utf8_lossy(&body)
                )));
            }
            _ => {}
        }
    }
}
