//! Clients that are connected and ask nothing: what each costs in memory, in clear and over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use forebay_pg_link::config::SslMode;
use forebay_pg_link::{Link, Tag};

use super::login::{come, runtime};
use super::password::Password;
use super::system::System;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};

pub(super) const IDLE: &str = "idle clients";
pub(super) const IDLE_TLS: &str = "idle clients, TLS";
pub(super) const MEMORY: &str = "memory a client";

/// So many, of this process and the proxy's: each has a descriptor in both.
const CLIENTS: usize = 900;
const TINY_CLIENTS: usize = 20;

/// Starts what is measured: each time anew, for what others have left in its memory would hide what these clients cost.
pub(super) type Starts = Box<dyn Fn() -> Result<System, Failure>>;

pub(super) struct IdleTrial {
    pub(super) system: &'static str,
    pub(super) starts: Starts,
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
        let running = (self.starts)()?;
        let url = &running.url;
        // The first one brings what is there once.
        let first = client(url)?;
        let before = running.resident_kib()?;
        let clients: Vec<TcpStream> = (0..count).map(|_| client(url)).collect::<Result<_, _>>()?;
        let after = running.resident_kib()?;
        drop((first, clients));
        let each = after.saturating_sub(before) as f64 / count as f64;
        Ok(vec![Reading::new(MEMORY, "KiB", each)])
    }
}

pub(super) struct IdleTlsTrial {
    pub(super) system: &'static str,
    pub(super) starts: Starts,
    pub(super) password: Rc<Password>,
}

impl Trial for IdleTlsTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        IDLE_TLS
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let count = if stage.effort.meaningful { CLIENTS } else { TINY_CLIENTS };
        let running = (self.starts)()?;
        let connector = self.password.connector(running.address()?, SslMode::Require)?;
        runtime()?.block_on(async {
            let first = answered(come(&connector, 1).await?).await?;
            let before = running.resident_kib()?;
            let links = answered(come(&connector, count).await?).await?;
            let after = running.resident_kib()?;
            drop((first, links));
            let each = after.saturating_sub(before) as f64 / count as f64;
            Ok(vec![Reading::new(MEMORY, "KiB", each)])
        })
    }
}

/// The same clients, each of which has had a statement answered.
async fn answered(mut links: Vec<Link>) -> Result<Vec<Link>, Failure> {
    let lost = |error: String| Failure::Wrong(format!("an idle client was told {error}"));
    for link in &mut links {
        let sent = link.outbox().query("SELECT 1");
        sent.map_err(|error| lost(error.to_string()))?;
        loop {
            let message = link.answer().await.map_err(|error| lost(error.to_string()))?;
            match message.tag() {
                Tag::READY_FOR_QUERY => break,
                Tag::ERROR_RESPONSE => return Err(lost(String::from_utf8_lossy(message.body()).into_owned())),
                _ => {}
            }
        }
    }
    Ok(links)
}

/// A client that has logged in and had a statement answered. By hand: one that costs nothing itself.
pub(super) fn client(url: &str) -> Result<TcpStream, Failure> {
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
