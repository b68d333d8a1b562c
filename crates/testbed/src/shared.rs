//! One server for all tests of a binary that run at the same time.
//!
//! Promises: it is started by the first test that asks, and stopped, with its files removed, when the last one that has it
//! lets go. A static never is: a server that is kept in one leaves its files behind.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Error;

/// A place for a server that tests share; to be kept in a static. Tests keep to a database or schema of their own.
///
/// ```no_run
/// use testbed::{Postgres, Shared};
///
/// static POSTGRES: Shared<Postgres> = Shared::new(Postgres::start);
/// let postgres = POSTGRES.server()?;
/// println!("{}", postgres.url());
/// # Ok::<(), testbed::Error>(())
/// ```
#[derive(Debug)]
pub struct Shared<S> {
    start: fn() -> Result<S, Error>,
    running: Mutex<Weak<S>>,
}

impl<S> Shared<S> {
    /// For servers that are started so.
    pub const fn new(start: fn() -> Result<S, Error>) -> Self {
        Self {
            start,
            running: Mutex::new(Weak::new()),
        }
    }

    /// The server that others have now, or a new one.
    ///
    /// # Errors
    /// As the start's own; the next one who asks tries again.
    pub fn server(&self) -> Result<Arc<S>, Error> {
        // Who failed to start it has left nothing behind that the next one could trip over.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return Ok(server);
        }
        let server = Arc::new((self.start)()?);
        *running = Arc::downgrade(&server);
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static STARTS: AtomicUsize = AtomicUsize::new(0);
    static SERVER: Shared<usize> = Shared::new(|| match STARTS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Error::NotRunning { command: "it".into() }),
        start => Ok(start),
    });

    #[test]
    fn it_is_one_server_until_the_last_one_lets_go() {
        assert!(SERVER.server().is_err());
        let (one, two) = (SERVER.server().unwrap(), SERVER.server().unwrap());
        assert_eq!((*one, *two), (1, 1));
        drop(one);
        assert_eq!(*SERVER.server().unwrap(), 1);
        let gone = Arc::downgrade(&two);
        drop(two);
        assert!(gone.upgrade().is_none(), "the static keeps it");
        assert_eq!(*SERVER.server().unwrap(), 2);
    }
}
