//! Whether load balancers should send the server anything; they ask through [`http`](crate::http).
//!
//! Promises: unwell while it drains, while the database's file is not in its place, and from a write that the disk did not take
//! until one that it takes. Whoever asks brings that one about, at most once in `PROBE_EVERY`: a server that is not sent anything
//! because it cannot write would never find out that it can again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_write::{StatementErrorKind, WriteError};
use parking_lot::Mutex;

use forebay_embedded::session::shared::Shared;
use forebay_pg_wire::phase::Phase;

/// The least time between two writes that only try whether the disk takes them.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// How long is waited for such a write, which waits its turn behind others.
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// After a write for which there was no space, this much must be free before another is tried.
const SPACE_BYTES_MIN: u64 = 1 << 20;

/// See the module.
pub struct Health {
    shared: Arc<Shared>,
    last_probe: Mutex<Option<Instant>>,
}

impl Health {
    /// Of that server.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            last_probe: Mutex::new(None),
        }
    }

    /// Why it is not well; none if it is.
    pub async fn ailing(&self) -> Option<String> {
        if *self.shared.phase.borrow() != Phase::Serving {
            return Some("draining".to_owned());
        }
        let sqlite = &self.shared.sqlite;
        if let Err(error) = sqlite.check_file() {
            return Some(error.to_string());
        }
        let fault = sqlite.last_fault()?;
        let is_full = matches!(&fault, WriteError::Statement(error) if error.kind == StatementErrorKind::Full)
            && self.has_no_space();
        if !is_full && self.is_time_to_probe() {
            // One that does not come to its turn in time has shown nothing: what is known stays.
            let _ = tokio::time::timeout(PROBE_WAIT, sqlite.probe()).await;
        }
        sqlite.last_fault()?;
        Some(format!("writes fail: {fault}"))
    }

    /// Whether so little is left that a write of a page may still succeed where those of clients fail.
    fn has_no_space(&self) -> bool {
        let path = self.shared.sqlite.path();
        rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < SPACE_BYTES_MIN)
    }

    fn is_time_to_probe(&self) -> bool {
        let mut last = self.last_probe.lock();
        let due = last.is_none_or(|last| last.elapsed() >= PROBE_EVERY);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}
