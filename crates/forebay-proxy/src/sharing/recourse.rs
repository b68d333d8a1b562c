//! Recourse: what is told of a read while its database cannot be asked.
//!
//! Promises: it is told only where a connection to the database could not be made, a moment ago or while one was waited for, and only to who has said how
//! much older than otherwise his answer may be then. Who has nothing to be told waits for a connection as all do.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::asked::Asked;
use crate::last_answer::Remembrance;
use crate::memory::Memory;
use crate::memory::question::Question;
use crate::pool::Unavailable;
use crate::server::Server;
use crate::state::State;

/// What takes no longer was there.
const SOON: Duration = Duration::from_millis(100);

/// What is asked, as memory knows it.
pub(crate) struct Recourse {
    memory: Memory,
    question: Question,
    /// What of it is done where it is told.
    pub(crate) asked: Asked,
}

/// What there is for something that is asked.
pub(crate) enum Got {
    Server(Box<Server>),
    /// What is told in its place.
    Told(Bytes, Remembrance),
}

impl fmt::Debug for Recourse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recourse").finish_non_exhaustive()
    }
}

impl Recourse {
    /// None where the question says nothing of that.
    pub(crate) fn of(memory: Memory, question: Question, asked: Asked) -> Option<Self> {
        let is_one = question.may_be_away();
        is_one.then_some(Self {
            memory,
            question,
            asked,
        })
    }

    /// Whether there is something to tell now.
    pub(crate) fn is_some(&self) -> bool {
        self.memory.may_tell_while_away(&self.question)
    }
}

impl State {
    /// A connection for what is asked next, or what is told in its place. Who has waited in company for as long as he may (`waited`) has one that is
    /// there, or none.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whoever waits next is served.
    pub(crate) async fn acquire(&self, recourse: Option<&Recourse>, waited: Duration) -> Result<Got, Unavailable> {
        let acquired = self.acquire_in_time(recourse);
        match !waited.is_zero() && waited >= self.pool.limits().max_wait {
            true => timeout(SOON, acquired)
                .await
                .unwrap_or_else(|_| Err(self.pool.has_waited())),
            false => acquired.await,
        }
    }

    async fn acquire_in_time(&self, recourse: Option<&Recourse>) -> Result<Got, Unavailable> {
        if let Some(recourse) = recourse.filter(|recourse| recourse.is_some()) {
            let acquired = self.pool.acquire_unless_away(&self.beginning, self.last).await;
            if let Some(acquired) = acquired {
                return acquired.map(Got::Server);
            }
            // It may have become too old meanwhile.
            if let Some((said, remembrance)) = recourse.memory.tell_while_away(&recourse.question) {
                return Ok(Got::Told(said, remembrance));
            }
        }
        self.pool.acquire(&self.beginning, self.last).await.map(Got::Server)
    }
}
