//! Clients that come all at once and prove their password by SCRAM-SHA-256: how many a second are let in.
//!
//! Promises: each is let in and greeted, or the run has failed; all of them are there at the end. A client knows the keys that its password
//! makes, as each would after its first login: what is measured is not how long hashing takes.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use forebay_pg_link::{Connector, Link};

use super::process;
use super::system::System;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};

pub(super) const LOGIN: &str = "10,000 clients log in";
pub(super) const RATE: &str = "logins a second";
const PROCESSOR_TIME: &str = "processor time a login";

const CLIENTS: usize = 10_000;
const TINY_CLIENTS: usize = 20;
/// So many are on their way in at a time.
const AT_ONCE: usize = 64;

/// So many clients, let in and kept.
pub(super) async fn come(connector: &Connector, count: usize) -> Result<Vec<Link>, Failure> {
    let (connector, come) = (Arc::new(connector.clone()), Arc::new(AtomicUsize::new(0)));
    let doors: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (connector, come) = (Arc::clone(&connector), Arc::clone(&come));
            tokio::spawn(async move {
                let mut links = Vec::new();
                while come.fetch_add(1, Ordering::Relaxed) < count {
                    let link = connector.connect().await;
                    links.push(link.map_err(|error| Failure::Wrong(format!("a client was not let in: {error}")))?);
                }
                Ok::<_, Failure>(links)
            })
        })
        .collect();
    let mut links = Vec::with_capacity(count);
    for door in doors {
        let let_in = door
            .await
            .map_err(|error| Failure::Wrong(format!("a client has ended: {error}")))?;
        links.extend(let_in?);
    }
    Ok(links)
}

pub(super) struct LoginTrial {
    pub(super) system: &'static str,
    pub(super) connector: Connector,
    /// The proxy's.
    pub(super) process: u32,
    /// Kept until all have had their turns.
    pub(super) _running: Rc<System>,
}

impl Trial for LoginTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        LOGIN
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let count = if stage.effort.meaningful { CLIENTS } else { TINY_CLIENTS };
        let runtime = runtime()?;
        runtime.block_on(async {
            // The first one has the server say how it greets.
            let first = come(&self.connector, 1).await?;
            let before = process::processor_time(self.process)?;
            let begun = Instant::now();
            let links = come(&self.connector, count).await?;
            let took = begun.elapsed();
            let used = process::processor_time(self.process)? - before;
            if links.len() != count {
                return Err(Failure::Wrong(format!("{} of {count} clients are there", links.len())));
            }
            drop((first, links));
            Ok(vec![
                Reading::new(RATE, "logins/s", count as f64 / took.as_secs_f64()),
                Reading::new(PROCESSOR_TIME, "µs", used.as_secs_f64() * 1e6 / count as f64),
            ])
        })
    }
}

/// As many threads as the machine has processors.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("start clients"))
}
