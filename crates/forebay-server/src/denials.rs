//! The log of failed logins: who, from where and why, in a bounded number of lines, however many fail.
//!
//! Otherwise whoever guesses passwords could fill the disk with log lines. Those that are left out are counted, and their
//! number is logged.

use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_rustls::rustls::{self, CertificateError};

use forebay_pg_wire::error::WireError;

use crate::listeners::Peer;

/// Lines within one [`PERIOD`].
const LINES_MAX: u32 = 20;

/// The database behind could not be asked, which is logged of the database, and not of each who comes meanwhile.
const UNASKED: &str = "08006";

/// See [`LINES_MAX`].
const PERIOD: Duration = Duration::from_secs(10);

/// The longest part of a name that is logged, in characters.
const NAME_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Denials(Mutex<Period>);

#[derive(Debug)]
struct Period {
    begun: Instant,
    lines: u32,
    left_out: u64,
}

/// What is to be logged of one failed login.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Nothing: there were too many.
    None,
    /// It, and how many were left out before it.
    Behind(u64),
}

impl Default for Denials {
    fn default() -> Self {
        Self(Mutex::new(Period {
            begun: Instant::now(),
            lines: 0,
            left_out: 0,
        }))
    }
}

impl Denials {
    /// Logs that the certificate of a client from `peer` was refused, if that is why there is no TLS.
    pub(crate) fn log_certificate(&self, peer: Peer, error: &io::Error) {
        let Some(why) = refused_certificate(error) else { return };
        metrics::counter!("forebay_logins_failed_total").increment(1);
        if self.is_to_be_logged() {
            tracing::warn!(address = %peer, "login failed: the client's certificate is refused: {why}");
        }
    }

    /// Logs that `user`, from `peer`, was not let in.
    pub(crate) fn log(&self, user: &str, peer: Peer, error: &WireError) {
        metrics::counter!("forebay_logins_failed_total").increment(1);
        if error.sqlstate == UNASKED {
            tracing::debug!(user, address = %peer, "login failed: {:?}", error.message);
            return;
        }
        if !self.is_to_be_logged() {
            return;
        }
        // Escaped: a name is what a stranger says.
        let user: String = user.chars().take(NAME_MAX).collect();
        tracing::warn!(?user, address = %peer, sqlstate = error.sqlstate, "login failed: {:?}", error.message);
    }

    /// Whether there may be one more line; says first how many were left out.
    fn is_to_be_logged(&self) -> bool {
        let line = self.0.lock().next(Instant::now());
        if let Line::Behind(left_out @ 1..) = line {
            tracing::warn!(left_out, "more logins failed than were logged");
        }
        line != Line::None
    }
}

/// What is wrong with a client's certificate, if it was refused for that.
fn refused_certificate(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        // It has no name of its own there.
        CertificateError::Other(other) if format!("{other:?}").contains("UnsupportedCertVersion") => {
            "it is not of version 3, which it is only if it was made with extensions".to_owned()
        }
        CertificateError::UnknownIssuer => "none of the authorities of --tls-client-ca has signed it".to_owned(),
        why => why.to_string(),
    })
}

impl Period {
    fn next(&mut self, now: Instant) -> Line {
        if now.duration_since(self.begun) >= PERIOD {
            (self.begun, self.lines) = (now, 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return Line::None;
        }
        self.lines += 1;
        Line::Behind(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_what_is_left_out_is_told() {
        let begun = Instant::now();
        let mut period = Period {
            begun,
            lines: 0,
            left_out: 0,
        };
        for _ in 0..LINES_MAX {
            assert_eq!(period.next(begun), Line::Behind(0));
        }
        for _ in 0..1_000 {
            assert_eq!(period.next(begun + PERIOD / 2), Line::None);
        }
        assert_eq!(period.next(begun + PERIOD), Line::Behind(1_000));
        assert_eq!(period.next(begun + PERIOD), Line::Behind(0));
    }
}
