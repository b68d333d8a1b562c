//! Databases: which server is behind the name that a client gives.
//!
//! Promises: a name leads to the database that was given for it, or to what stands for all other names, or nowhere. Who is let in is for
//! the one behind to say.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_pg_wire::authentication::{Applicant, Demand, Gate, Verdict};
use forebay_pg_wire::error::WireError;

use crate::pool::Stats;
use crate::upstream::{Upstream, UpstreamOptions};

/// `ERRCODE_INVALID_CATALOG_NAME`.
const NO_SUCH_DATABASE: &str = "3D000";

/// All databases that clients may name.
#[derive(Debug)]
pub struct Databases {
    named: HashMap<String, Arc<Upstream>>,
    other: Option<Arc<Upstream>>,
}

impl Databases {
    /// These, and what all other names lead to. Connects to nothing yet.
    pub fn new(named: impl IntoIterator<Item = (String, UpstreamOptions)>, other: Option<UpstreamOptions>) -> Self {
        let upstream = |options| Arc::new(Upstream::new(options));
        Self {
            named: named
                .into_iter()
                .map(|(name, options)| (name, upstream(options)))
                .collect(),
            other: other.map(upstream),
        }
    }

    /// What the name leads to.
    pub(crate) fn of(&self, name: &str) -> Result<&Arc<Upstream>, WireError> {
        self.named.get(name).or(self.other.as_ref()).ok_or_else(|| {
            // As PostgreSQL says it.
            WireError::fatal(NO_SUCH_DATABASE, format!("database \"{name}\" does not exist"))
        })
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.named.values().chain(&self.other)
    }

    /// How many server connections there are, and who waits for one.
    pub fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for stats in self.all().map(|upstream| upstream.stats()) {
            all.open += stats.open;
            all.idle += stats.idle;
            all.waiting += stats.waiting;
        }
        all
    }

    /// Closes connections that have been idle for too long or are too old, and forgets pools that nobody uses. To be called now and then.
    pub fn sweep(&self) {
        for upstream in self.all() {
            upstream.sweep();
        }
    }
}

impl Gate for Databases {
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        match self.of(applicant.database) {
            Ok(upstream) => upstream.demand(applicant),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()> {
        match self.of(applicant.database) {
            Ok(upstream) => upstream.check(applicant, password),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
