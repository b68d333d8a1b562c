//! Upstream: the server behind, and a pool for each user, database and set of settings that sessions begin with.
//!
//! Promises: clients share a pool only if they are the same user at the same database and their sessions begin alike.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_pg_link::{Config, ConnectError, Connector};
use parking_lot::Mutex;

use crate::pool::{Limits, Pool};

/// The server behind, and how its connections are shared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// Where it is. A user and a database that are named here are everybody's; else each client's own.
    pub config: Config,
    /// Of each pool.
    pub limits: Limits,
}

impl UpstreamOptions {
    /// This server, with these limits.
    pub fn new(config: Config, limits: Limits) -> Self {
        Self { config, limits }
    }
}

/// What a client asked for at its start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    user: String,
    database: String,
    /// Sorted by name.
    settings: Vec<(String, String)>,
}

/// The server behind.
#[derive(Debug)]
pub struct Upstream {
    options: UpstreamOptions,
    pools: Mutex<HashMap<Key, Arc<Pool>, foldhash::fast::RandomState>>,
}

impl Upstream {
    /// Connects to nothing yet.
    pub fn new(options: UpstreamOptions) -> Self {
        Self {
            options,
            pools: Mutex::default(),
        }
    }

    /// The pool of those who begin like this.
    pub(crate) fn pool(
        &self,
        user: &str,
        database: &str,
        parameters: &[(String, String)],
    ) -> Result<Arc<Pool>, ConnectError> {
        let config = &self.options.config;
        let mut settings: Vec<_> = parameters
            .iter()
            .filter(|(name, _)| name != "application_name" && name != "replication")
            .cloned()
            .collect();
        settings.sort();
        let key = Key {
            user: config.user.clone().unwrap_or_else(|| user.to_owned()),
            database: config.dbname.clone().unwrap_or_else(|| database.to_owned()),
            settings,
        };
        if let Some(pool) = self.pools.lock().get(&key) {
            return Ok(Arc::clone(pool));
        }
        let mut config = config.clone();
        config.user = Some(key.user.clone());
        config.dbname = Some(key.database.clone());
        // It is among the client's, or the client has the database's own.
        config.client_encoding = None;
        config.settings.clone_from(&key.settings);
        let pool = Arc::new(Pool::new(Connector::new(config)?, &self.options.limits));
        Ok(Arc::clone(self.pools.lock().entry(key).or_insert(pool)))
    }
}
