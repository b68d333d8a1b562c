//! Reach: whether the server behind answers, and what the log has of that.
//!
//! Promises: a server that is lost is logged once, whoever finds it so, and once when it is back; who comes meanwhile adds no line. One that
//! lets somebody in, or refuses somebody in its own words, is there.

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

use forebay_pg_link::ConnectError;
use forebay_pg_link::config::Host;

/// Whoever asked last was answered, or nobody has asked.
const REACHED: u8 = 0;
/// Nobody listens there: once somebody does it is back.
const UNREACHABLE: u8 = 1;
/// Somebody listens, and does not answer as a server does: it is back once it lets somebody in.
const UNANSWERED: u8 = 2;

/// `ERRCODE_CANNOT_CONNECT_NOW`: it starts, or stops.
pub(crate) const NOT_NOW: &str = "57P03";

/// Whether a server answers.
#[derive(Debug, Default)]
pub(crate) struct Reach(AtomicU8);

impl Reach {
    /// What came of it when somebody connected.
    pub(crate) fn connected<T>(&self, hosts: &[Host], connected: &Result<T, ConnectError>) {
        match connected {
            Err(ConnectError::Server(said)) if said.code == NOT_NOW => {}
            Err(error @ ConnectError::Unreachable { .. }) => self.lost(hosts, error, UNREACHABLE),
            Err(error) if is_loss(error) => self.lost(hosts, error, UNANSWERED),
            Ok(_) | Err(_) => self.found(hosts),
        }
    }

    /// Whether somebody listens there.
    pub(crate) fn tried(&self, hosts: &[Host], listens: bool) {
        match listens {
            true if self.0.load(Ordering::Relaxed) == UNREACHABLE => self.found(hosts),
            true => {}
            false => self.lost(hosts, "nobody listens there", UNREACHABLE),
        }
    }

    /// Whether it is to be tried whether somebody listens there again.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.0.load(Ordering::Relaxed) == UNREACHABLE
    }

    fn found(&self, hosts: &[Host]) {
        // Most are: nothing is written then that others read.
        if self.0.load(Ordering::Relaxed) != REACHED && self.0.swap(REACHED, Ordering::Relaxed) != REACHED {
            let server = named(hosts);
            tracing::info!(server, "the database is back");
        }
    }

    fn lost(&self, hosts: &[Host], why: impl Display, how: u8) {
        if self.0.swap(how, Ordering::Relaxed) == REACHED {
            let server = named(hosts);
            tracing::warn!(server, %why, "the database cannot be reached: who needs a new connection to it is told 08006");
        }
    }
}

/// Whether it says that the server cannot be reached, and nothing of who wants to.
pub(crate) fn is_loss(error: &ConnectError) -> bool {
    !matches!(
        error,
        ConnectError::Server(_) | ConnectError::Authentication(_) | ConnectError::NoPassword
    )
}

/// As the log calls them.
fn named(hosts: &[Host]) -> String {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    hosts.join(", ")
}

#[cfg(test)]
mod tests {
    use forebay_pg_link::LinkError;

    use super::*;

    #[test]
    fn who_listens_is_back_only_where_nobody_did() {
        let reach = Reach::default();
        reach.tried(&[], false);
        assert!(reach.is_unreachable());
        reach.tried(&[], true);
        assert!(!reach.is_unreachable());
        let hung_up = ConnectError::Link(LinkError::Protocol("nonsense".to_owned()));
        reach.connected(&[], &Err::<(), _>(hung_up));
        reach.tried(&[], true);
        assert_eq!(reach.0.load(Ordering::Relaxed), UNANSWERED, "it does not answer");
        reach.connected(&[], &Err::<(), _>(ConnectError::NoPassword));
        assert_eq!(reach.0.load(Ordering::Relaxed), REACHED, "it asks for a password");
    }
}
