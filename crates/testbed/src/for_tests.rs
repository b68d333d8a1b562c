//! The server that the tests of a database run against: one that an environment variable names, or one started here.
//!
//! Promises: with the variable set, no server is started and the named one is never signalled, so tests that kill their
//! server start one of their own instead. Does not know whether the named server answers: the first test that connects does.

use std::{env, fmt};

use crate::Error;

/// A server to test against. Tests share it, so each keeps to a database or schema of its own.
pub struct ForTests<S> {
    which: Which<S>,
    /// A server that is started again may be reached elsewhere, so it is asked each time.
    url_of: fn(&S) -> String,
}

enum Which<S> {
    Named(String),
    Started(S),
}

impl<S> ForTests<S> {
    /// The server that this variable names by its URL, or else a new one.
    pub(crate) fn named_or_started(
        variable: &str,
        start: impl FnOnce() -> Result<S, Error>,
        url_of: fn(&S) -> String,
    ) -> Result<Self, Error> {
        // Set to nothing is not set: continuous integration has no other way to say so.
        let which = match env::var(variable).ok().filter(|url| !url.is_empty()) {
            Some(url) => Which::Named(url),
            None => Which::Started(start()?),
        };
        Ok(Self { which, url_of })
    }

    /// How a client reaches it, as an account that may create databases.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.which {
            Which::Named(url) => url.clone(),
            Which::Started(server) => (self.url_of)(server),
        }
    }

    /// The server, where it is ours to look into. One that was named is somebody else's: not to be killed, and perhaps of
    /// another version or make.
    #[must_use]
    pub fn started(&self) -> Option<&S> {
        match &self.which {
            Which::Named(_) => None,
            Which::Started(server) => Some(server),
        }
    }

    /// The server, where it is ours to kill and start again.
    #[must_use]
    pub fn started_mut(&mut self) -> Option<&mut S> {
        match &mut self.which {
            Which::Named(_) => None,
            Which::Started(server) => Some(server),
        }
    }
}

impl<S> fmt::Debug for ForTests<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ForTests")
            .field("url", &self.url())
            .field("is_started_here", &self.started().is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A variable that every process has stands for one that names a server: a test must not change its own environment.
    const SET: &str = "PATH";
    const NOT_SET: &str = "FOREBAY_TEST_NO_SUCH_SERVER";

    #[test]
    fn a_named_server_is_used_and_none_is_started() {
        let mut server =
            ForTests::<u16>::named_or_started(SET, || panic!("a server was started"), u16::to_string).unwrap();
        assert_eq!(server.url(), env::var(SET).unwrap());
        assert!(server.started().is_none() && server.started_mut().is_none());
    }

    #[test]
    fn a_started_server_is_asked_for_its_address_each_time() {
        let mut server = ForTests::named_or_started(NOT_SET, || Ok(1_u16), u16::to_string).unwrap();
        assert_eq!(server.url(), "1");
        *server.started_mut().unwrap() = 2;
        assert_eq!(server.url(), "2");
        assert_eq!(server.started(), Some(&2));
    }
}
