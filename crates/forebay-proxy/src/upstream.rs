//! Upstream: the server behind, and a pool for each user at each database.
//!
//! Promises: clients share a pool only if they are the same user at the same database.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use forebay_pg_link::config::Password;
use forebay_pg_link::secret::Challenge;
use forebay_pg_link::{Config, ConnectError, Connector};
use forebay_pg_wire::authentication::Applicant;
use forebay_pg_wire::verifier::Verifier;
use parking_lot::Mutex;

use crate::credentials::Credentials;
use crate::effects::Effects;
use crate::pool::{Limits, Pool, Stats};

/// The server behind, and how its connections are shared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// Where it is. Each client is its own user there; a password that is named here is that of the user that is named here.
    pub config: Config,
    /// The database there; none: the one that the client names.
    pub database: Option<String>,
    /// Of each pool.
    pub limits: Limits,
    /// Clients on this machine need not prove what the proxy can prove for them.
    pub trusts_loopback: bool,
}

impl UpstreamOptions {
    /// This server, with these limits.
    pub fn new(config: Config, limits: Limits) -> Self {
        Self {
            config,
            database: None,
            limits,
            trusts_loopback: false,
        }
    }
}

/// Whose connections, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    user: String,
    database: String,
}

/// The server behind.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) options: UpstreamOptions,
    /// What proves the user that is named in the options.
    own: Option<(String, Verifier)>,
    pub(crate) credentials: Arc<Credentials>,
    pools: Mutex<HashMap<Key, Arc<Pool>, foldhash::fast::RandomState>>,
    /// By database.
    effects: Mutex<HashMap<String, Weak<Effects>, foldhash::fast::RandomState>>,
}

impl Upstream {
    /// Connects to nothing yet.
    pub(crate) fn new(options: UpstreamOptions) -> Self {
        let config = &options.config;
        let own = config.user.as_ref().zip(config.password.as_ref());
        Self {
            own: own.map(|(user, password)| (user.clone(), Verifier::from_password(&password.0))),
            options,
            credentials: Arc::default(),
            pools: Mutex::default(),
            effects: Mutex::default(),
        }
    }

    /// What proves this user's password, if it is the one that the proxy itself was given.
    pub(crate) fn own_verifier(&self, user: &str) -> Option<&Verifier> {
        let (own, verifier) = self.own.as_ref()?;
        (own == user).then_some(verifier)
    }

    /// Connects as an applicant, to see whether it is let in; how the server asked.
    pub(crate) async fn connect_as(
        &self,
        applicant: Applicant<'_>,
        password: Option<&str>,
    ) -> Result<Challenge, ConnectError> {
        let mut config = self.config_of(applicant.user, applicant.database);
        config.password = password.map(Password::new);
        // What it says goes to who is to be asked, by a way that is as private as the client's own.
        let link = Connector::new(config)?.connect().await?;
        let challenge = link.challenge().clone();
        link.close().await;
        Ok(challenge)
    }

    /// The server, for one user at one database; a password is that user's own.
    fn config_of(&self, user: &str, database: &str) -> Config {
        let mut config = self.options.config.clone();
        if config.user.as_deref() != Some(user) {
            config.password = None;
        }
        config.user = Some(user.to_owned());
        config.dbname = Some(self.options.database.as_deref().unwrap_or(database).to_owned());
        // It is among the client's, or the client has the database's own.
        config.client_encoding = None;
        config
    }

    /// How many server connections there are, and who waits for one.
    pub(crate) fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for pool in self.pools.lock().values() {
            let stats = pool.stats();
            all.open += stats.open;
            all.idle += stats.idle;
            all.waiting += stats.waiting;
        }
        all
    }

    /// The pool of this user at this database.
    pub(crate) fn pool(&self, user: &str, database: &str) -> Result<Arc<Pool>, ConnectError> {
        let key = Key {
            user: user.to_owned(),
            database: database.to_owned(),
        };
        if let Some(pool) = self.pools.lock().get(&key) {
            return Ok(Arc::clone(pool));
        }
        let connector = Connector::new(self.config_of(user, database))?;
        let pool = Arc::new(Pool::new(
            connector,
            Arc::clone(&self.credentials),
            self.effects(database),
            &self.options.limits,
        ));
        Ok(Arc::clone(self.pools.lock().entry(key).or_insert(pool)))
    }

    fn effects(&self, database: &str) -> Arc<Effects> {
        let mut all = self.effects.lock();
        if let Some(known) = all.get(database).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, effects| effects.strong_count() > 0);
        let effects = Arc::<Effects>::default();
        all.insert(database.to_owned(), Arc::downgrade(&effects));
        effects
    }

    /// Closes connections that have been idle for too long or are too old, and forgets pools that nobody uses. To be called now and then.
    pub(crate) fn sweep(&self) {
        let pools: Vec<Arc<Pool>> = self.pools.lock().values().cloned().collect();
        for pool in pools {
            pool.sweep();
        }
        let is_used = |pool: &Arc<Pool>| Arc::strong_count(pool) > 1 || pool.stats().open > 0;
        self.pools.lock().retain(|_, pool| is_used(pool));
    }
}
