//! Hearing: what a database itself tells of its changes, by logical replication, whoever makes them.
//!
//! Promises, for a question that was [allowed](Hearing::hears) to be answered from memory:
//! - Of what it names, no commit is missed that was made since its answer was asked for: each makes the answer old when the stream has told it. An answer
//!   that was asked for behind the telling, and has not seen the commit all the same, is [known](known::Fence::holds) to be one of before.
//! - An answer that hangs on one row of a table by its [key](crate::memory::key) is made old by what changes that row, or may have: by what the stream tells of
//!   the row as it was and as it is. Where its key is another one than the stream's, it is not remembered.
//! - It is not older than `max_lag`, or what its rule says in place of that: where the stream has not told for so long that it is at the log's end, nothing is allowed.
//! - What the stream does not tell (tables that are made or altered, rights, what is published) is looked at each second. When it has changed, all is old;
//!   so it is whenever the stream begins.
//! - No table is published that has no replica identity: its rows could not be changed any more. One that has lost it is taken out again.
//! - A slot that holds back more of the log than it may is dropped, with all that is remembered.
//!
//! Inside: [`known`] is all that is known of a database; [`pgoutput`] reads the stream, [`snapshot`] says who sees what, [`recent`] has commits that not all
//! see yet, [`covered`] the tables that are told of, [`catalog`] what is asked; [`listen`] is the task that has the two connections.

mod catalog;
mod covered;
mod known;
mod listen;
mod pgoutput;
mod recent;
mod snapshot;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_pg_link::Connector;
use tokio::task::AbortHandle;

pub(crate) use self::catalog::ASK_SNAPSHOT;
pub use self::known::Heard;
use self::known::Hearing;
use self::pgoutput::Position;
use crate::effects::Effects;
use crate::memory::{Listening, Memory};

/// Somebody who listens to a database from when something is to be remembered of it, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Listener {
    hearing: Arc<Hearing>,
    connector: Connector,
    task: OnceLock<AbortHandle>,
}

impl Listener {
    /// To the database that this leads to. `min_lag`: the least that a rule says in place of `max_lag`.
    pub(crate) fn new(
        place: Arc<str>,
        connector: Connector,
        memory: Memory,
        effects: Arc<Effects>,
        listening: Listening,
        min_lag: Option<Duration>,
    ) -> Self {
        let mut hearing = Hearing::new(place, memory, effects, listening);
        hearing.min_lag = min_lag.map_or(hearing.min_lag, |least| least.min(hearing.min_lag));
        Self {
            hearing: Arc::new(hearing),
            connector,
            task: OnceLock::new(),
        }
    }

    /// Whether a question of these tables may be answered from memory, or be remembered, now. From the first one on it is listened.
    pub(crate) fn hears(&self, tables: &[Arc<str>], max_lag: Option<Duration>) -> bool {
        self.task.get_or_init(|| {
            let listening = listen::listen(Arc::clone(&self.hearing), self.connector.clone());
            tokio::spawn(listening).abort_handle()
        });
        self.hearing.hears(tables, max_lag)
    }

    /// Whether all is told that was committed before this position of the log, but for what is looked at each second.
    pub(crate) fn has_told(&self, position: u64) -> bool {
        self.hearing.position() >= Position(position)
    }
}

impl std::ops::Deref for Listener {
    type Target = Hearing;

    fn deref(&self) -> &Hearing {
        &self.hearing
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}
