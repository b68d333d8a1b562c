//! Welcome: what a client that begins like this is told of its session, as the server told it that has let its user in last.
//!
//! Promises: who waits for a connection only to be greeted hears of it as soon as another one has it. Only so many beginnings are known.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::beginning::Beginning;

/// What the server reports of its settings.
pub(crate) type Reported = BTreeMap<Bytes, Bytes>;

/// So many ways to begin are known without a connection.
const KNOWN_MAX: usize = 64;

/// What the server says to a session that begins.
#[derive(Debug, Clone)]
pub(crate) struct Welcome {
    /// Of its settings.
    pub(crate) reported: Arc<Reported>,
    /// Beside them: notices, whole messages.
    pub(crate) notices: Bytes,
}

/// What is known of one pool's.
#[derive(Debug, Default)]
pub(crate) struct Welcomes {
    /// The one that was learnt last comes last.
    known: Mutex<Vec<(Beginning, Welcome)>>,
    news: Notify,
}

impl Welcomes {
    pub(crate) fn learn(&self, beginning: &Beginning, welcome: &Welcome) {
        {
            let mut known = self.known.lock();
            known.retain(|(other, _)| other != beginning);
            if known.len() >= KNOWN_MAX {
                known.remove(0);
            }
            known.push((beginning.clone(), welcome.clone()));
        }
        self.news.notify_waiters();
    }

    pub(crate) fn of(&self, beginning: &Beginning) -> Option<Welcome> {
        let known = self.known.lock();
        let (_, welcome) = known.iter().find(|(known, _)| known == beginning)?;
        Some(welcome.clone())
    }

    /// As whoever came last has begun.
    pub(crate) fn last(&self) -> Option<Beginning> {
        self.known.lock().last().map(|(beginning, _)| beginning.clone())
    }

    /// Done once one is learnt, whichever it is.
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(number: usize) -> Beginning {
        Beginning::of(&[("work_mem".to_owned(), number.to_string())])
    }

    fn welcome(notices: &'static [u8]) -> Welcome {
        Welcome {
            reported: Arc::default(),
            notices: Bytes::from_static(notices),
        }
    }

    #[test]
    fn the_last_word_of_each_beginning_is_known_and_of_so_many() {
        let welcomes = Welcomes::default();
        for number in 0..KNOWN_MAX {
            welcomes.learn(&beginning(number), &welcome(b"first"));
        }
        welcomes.learn(&beginning(0), &welcome(b"second"));
        assert_eq!(welcomes.of(&beginning(0)).unwrap().notices, "second");
        assert_eq!(welcomes.last(), Some(beginning(0)));
        welcomes.learn(&beginning(KNOWN_MAX), &welcome(b"one more"));
        assert!(welcomes.of(&beginning(1)).is_none(), "what was learnt longest ago goes");
        assert!(welcomes.of(&beginning(0)).is_some());
    }
}
