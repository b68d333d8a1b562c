//! Upstream: the server behind, and a pool for each user at each database.
//!
//! Promises: clients share a pool only if they are the same user at the same database. What is said of the server may change while
//! there are clients: they stay, and their next transactions run where it is then. A database is listened to, if it is, for as long as there is a pool of it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_pg_link::config::{Endpoint, Password};
use forebay_pg_link::secret::Challenge;
use forebay_pg_link::{Config, ConnectError, Connector};
use forebay_pg_wire::gate::Applicant;
use forebay_pg_wire::verifier::Verifier;
use parking_lot::{Mutex, RwLock};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;

use crate::away::Away;
use crate::cap::{Cap, Holder};
use crate::clients::Bounds;
use crate::credentials::Credentials;
use crate::effects::Effects;
use crate::figures::Tops;
use crate::hearing::Listener;
use crate::lookup::Lookup;
use crate::memory::{Invalidation, Memory};
use crate::pool::{Limits, Pool, Rule, Said, Stats, place_of};
use crate::reach::Reach;
use crate::sharing::rules::Rules;

/// A host that does not answer within this time cannot be reached.
const REACHED_WITHIN: Duration = Duration::from_secs(2);

/// What is said of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserOptions {
    /// A certificate, and its key: what proves the user to the database.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Its clients at a time, of all databases together; none: as for all users.
    pub max_clients: Option<usize>,
    /// Whether its clients share; none: as the database says.
    pub shares: Option<bool>,
}

/// So many logins are asked about at the server at a time; each is a connection, and who guesses passwords is to take no more of them.
const ASKED_AT_ONCE_MAX: usize = 16;

/// The server behind, and how its connections are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// All clients are the user there that is named in the config.
    pub is_service: bool,
    /// A query that says what is stored of a user's password, asked as the user that is named in the config; none: the database is asked to
    /// let the user in.
    pub auth_query: Option<String>,
    /// What that has said of a user is believed for so long; zero: it is asked at each login.
    pub auth_query_kept: Duration,
    /// Clients of one database at a time; none: as many as come.
    pub max_clients: Option<usize>,
    /// Of one user, of all databases together.
    pub max_user_clients: Option<usize>,
    /// What is said of single users.
    pub users: Arc<BTreeMap<String, UserOptions>>,
    /// What is said of statements and sessions, the first before the others.
    pub rules: Arc<[Rule]>,
    /// Where answers are remembered; none: they are not.
    pub memory: Option<Memory>,
}

impl UpstreamOptions {
    /// This server, with these limits.
    pub fn new(config: Config, limits: Limits) -> Self {
        Self {
            config,
            database: None,
            limits,
            trusts_loopback: false,
            is_service: false,
            auth_query: None,
            auth_query_kept: Duration::ZERO,
            max_clients: None,
            max_user_clients: None,
            users: Arc::default(),
            rules: Arc::default(),
            memory: None,
        }
    }

    /// Whether connections can be made like this, as far as can be said without making one: as [some user](Self::check_as), and as each
    /// of whom a certificate is said.
    ///
    /// # Errors
    /// [`ConnectError::Tls`] where files of certificates cannot be used.
    pub fn check(&self) -> Result<(), ConnectError> {
        self.check_as("nobody")?;
        let mut certified = self.users.iter().filter(|(_, user)| user.certificate.is_some());
        certified.try_for_each(|(name, _)| self.check_as(name))
    }

    /// The same as this user.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_as(&self, user: &str) -> Result<(), ConnectError> {
        let settings = UpstreamSettings::new(self.clone(), Arc::new(Cap::new(None)))?;
        settings.connector(user, "none").map(drop)
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
    settings: RwLock<Arc<UpstreamSettings>>,
    pub(crate) credentials: Arc<Credentials>,
    /// Turns to ask the server about a login.
    asking: Semaphore,
    reach: Arc<Reach>,
    tops: Arc<Tops>,
    away: Arc<Away>,
    pools: Mutex<Pools>,
    /// By database.
    effects: Mutex<HashMap<String, Weak<Effects>, foldhash::fast::RandomState>>,
    /// The same: who listens to it. As it was said last.
    listeners: Mutex<HashMap<String, Weak<Listener>, foldhash::fast::RandomState>>,
}

#[derive(Debug, Default)]
struct Pools {
    by_key: HashMap<Key, Arc<Pool>, foldhash::fast::RandomState>,
    paused: Paused,
}

/// Of which databases nothing is lent, also by pools that are yet to be made: what was said last holds.
#[derive(Debug, Default)]
struct Paused {
    all: bool,
    /// Of which it was said since it was said of all.
    by_name: HashMap<String, bool>,
}

impl Paused {
    fn set(&mut self, database: Option<&str>, is_paused: bool) {
        match database {
            Some(name) => drop(self.by_name.insert(name.to_owned(), is_paused)),
            None => {
                *self = Self {
                    all: is_paused,
                    by_name: HashMap::new(),
                }
            }
        }
    }

    fn has(&self, database: &str) -> bool {
        self.by_name.get(database).copied().unwrap_or(self.all)
    }
}

impl Pools {
    fn of(&self, database: Option<&str>) -> impl Iterator<Item = &Arc<Pool>> {
        let is_asked = move |key: &Key| database.is_none_or(|database| key.database == database);
        self.by_key
            .iter()
            .filter(move |(key, _)| is_asked(key))
            .map(|(_, pool)| pool)
    }
}

/// What is said of it.
#[derive(Debug)]
pub(crate) struct UpstreamSettings {
    pub(crate) options: UpstreamOptions,
    /// What proves the user that is named in the options.
    own: Option<(String, Verifier)>,
    pub(crate) lookup: Option<Lookup>,
    cap: Arc<Cap>,
}

impl UpstreamSettings {
    fn new(options: UpstreamOptions, cap: Arc<Cap>) -> Result<Self, ConnectError> {
        let config = &options.config;
        let own = config.user.as_ref().zip(config.password.as_ref());
        let mut settings = Self {
            own: own.map(|(user, password)| (user.clone(), Verifier::from_password(&password.0))),
            lookup: None,
            options,
            cap,
        };
        let options = &settings.options;
        if let Some(query) = &options.auth_query {
            let user = options.config.user.as_deref().unwrap_or_default();
            let connector = settings.connector(user, options.config.dbname.as_deref().unwrap_or(user))?;
            let secret = options
                .config
                .password
                .as_ref()
                .map_or(query.as_bytes(), |password| password.0.as_bytes());
            let lookup = Lookup::new(query, &connector, !options.is_service, secret);
            settings.lookup = Some(lookup.keeping(options.auth_query_kept));
        }
        Ok(settings)
    }

    /// To the server, as this user, or as the one that all are.
    pub(crate) fn connector(&self, user: &str, database: &str) -> Result<Connector, ConnectError> {
        Connector::new(self.config_of(self.user_there(user), database))
    }

    /// Who a client is at the database.
    pub(crate) fn user_there<'a>(&'a self, user: &'a str) -> &'a str {
        match &self.options.config.user {
            Some(service) if self.options.is_service => service,
            _ => user,
        }
    }

    /// What proves this user's password, if it is the one that the proxy itself was given.
    pub(crate) fn own_verifier(&self, user: &str) -> Option<&Verifier> {
        let (own, verifier) = self.own.as_ref()?;
        (own == user).then_some(verifier)
    }

    /// Whether it is what a client has proven to the proxy that proves the user to the database, and not something that the database
    /// itself has said of it.
    pub(crate) fn takes_proofs_from_clients(&self, user: &str) -> bool {
        self.lookup.is_none() && !self.options.is_service && self.own_verifier(user).is_none()
    }

    /// How many clients of this user there may be, and of its database.
    pub(crate) fn bounds_of(&self, user: &str) -> Bounds {
        let own = self.options.users.get(user).and_then(|user| user.max_clients);
        Bounds {
            of_user: own.or(self.options.max_user_clients),
            of_database: self.options.max_clients,
        }
    }

    /// Of this pool.
    fn limits_of(&self, key: &Key) -> Limits {
        let mut limits = self.options.limits.clone();
        if let Some(shares) = self.options.users.get(&key.user).and_then(|user| user.shares) {
            limits.sharing.is_on = shares;
        }
        limits
    }

    /// All that is said of this pool.
    fn said_of(&self, key: &Key, connector: Connector, listener: Option<Arc<Listener>>) -> Said {
        Said {
            database: key.database.clone(),
            connector,
            limits: self.limits_of(key),
            rules: self.rules_of(key),
            cap: Arc::clone(&self.cap),
            memory: self.options.memory.clone(),
            listener,
        }
    }

    /// All rules, of whomever.
    pub(crate) fn rules(&self) -> &Arc<[Rule]> {
        &self.options.rules
    }

    /// The same, what is said of its clients' statements.
    fn rules_of(&self, key: &Key) -> Rules {
        let is_of = |rule: &&Rule| rule.is_of(&key.user, &key.database);
        Rules::of(self.options.rules.iter().filter(is_of).cloned())
    }

    /// Whether this user is proven to the database by a certificate.
    pub(crate) fn has_certificate(&self, user: &str) -> bool {
        let own = self.options.users.get(self.user_there(user));
        self.options.config.sslcert.is_some() || own.is_some_and(|user| user.certificate.is_some())
    }

    /// The server, for one user at one database; a password and a certificate are that user's own.
    fn config_of(&self, user: &str, database: &str) -> Config {
        let mut config = self.options.config.clone();
        if config.user.as_deref() != Some(user) {
            config.password = None;
        }
        if let Some((certificate, key)) = self.options.users.get(user).and_then(|user| user.certificate.clone()) {
            (config.sslcert, config.sslkey) = (Some(certificate), Some(key));
        }
        config.user = Some(user.to_owned());
        config.dbname = Some(self.options.database.as_deref().unwrap_or(database).to_owned());
        // It is among the client's, or the client has the database's own.
        config.client_encoding = None;
        config
    }
}

fn as_holder(pool: &Arc<Pool>) -> Weak<dyn Holder> {
    let pool: Weak<Pool> = Arc::downgrade(pool);
    pool
}

impl Upstream {
    /// Connects to nothing yet.
    pub(crate) fn new(options: UpstreamOptions, cap: Arc<Cap>, tops: Arc<Tops>) -> Result<Self, ConnectError> {
        Ok(Self {
            tops,
            settings: RwLock::new(Arc::new(UpstreamSettings::new(options, cap)?)),
            credentials: Arc::default(),
            asking: Semaphore::new(ASKED_AT_ONCE_MAX),
            reach: Arc::default(),
            away: Arc::default(),
            pools: Mutex::default(),
            effects: Mutex::default(),
            listeners: Mutex::default(),
        })
    }

    /// What is said of it now.
    pub(crate) fn settings(&self) -> Arc<UpstreamSettings> {
        Arc::clone(&self.settings.read())
    }

    /// From now on this is said of it; files of certificates are read anew in any case.
    pub(crate) fn change(&self, options: UpstreamOptions, cap: &Arc<Cap>) -> Result<(), ConnectError> {
        let before = self.settings();
        let settings = Arc::new(UpstreamSettings::new(options, Arc::clone(cap))?);
        let is_elsewhere = (&before.options.config, &before.options.database)
            != (&settings.options.config, &settings.options.database);
        // Under the lock no pool is made by what was said before.
        let pools = self.pools.lock();
        let connectors = pools
            .by_key
            .iter()
            .map(|(key, pool)| Ok((key, pool, settings.connector(&key.user, &key.database)?)));
        let connectors: Vec<_> = connectors.collect::<Result<_, ConnectError>>()?;
        *self.settings.write() = Arc::clone(&settings);
        let is_listened_alike = !is_elsewhere
            && before.options.memory == settings.options.memory
            && before.options.rules == settings.options.rules;
        if !is_listened_alike {
            self.listeners.lock().clear();
        }
        for (key, pool, connector) in connectors {
            let listener = self.listener(&settings, &key.database)?;
            pool.change(settings.said_of(key, connector, listener));
            if !Arc::ptr_eq(&before.cap, cap) {
                cap.add(as_holder(pool));
            }
            if is_elsewhere {
                pool.renew();
            }
        }
        Ok(())
    }

    /// Whether somebody listens at one of its hosts.
    pub(crate) async fn is_reachable(&self) -> bool {
        let settings = self.settings();
        let is_reachable = self.has_listener(&settings).await;
        self.reach.tried(&settings.options.config.hosts, is_reachable);
        is_reachable
    }

    /// Notes what came of it when somebody connected.
    pub(crate) fn connected<T>(&self, connected: &Result<T, ConnectError>) {
        self.reach.connected(&self.settings().options.config.hosts, connected);
    }

    async fn has_listener(&self, settings: &UpstreamSettings) -> bool {
        for host in &settings.options.config.hosts {
            let connected = async {
                match &host.endpoint {
                    Endpoint::Tcp {
                        address: Some(address), ..
                    } => TcpStream::connect((*address, host.port)).await.map(drop),
                    Endpoint::Tcp { name, .. } => TcpStream::connect((name.as_str(), host.port)).await.map(drop),
                    Endpoint::Unix(folder) => {
                        let file = folder.join(format!(".s.PGSQL.{}", host.port));
                        UnixStream::connect(file).await.map(drop)
                    }
                }
            };
            if matches!(tokio::time::timeout(REACHED_WITHIN, connected).await, Ok(Ok(()))) {
                return true;
            }
        }
        false
    }

    /// Connects as an applicant, when it is its turn, to see whether it is let in; how the server asked.
    pub(crate) async fn connect_as(
        &self,
        applicant: Applicant<'_>,
        password: Option<&str>,
    ) -> Result<Challenge, ConnectError> {
        let mut config = self.settings().config_of(applicant.user, applicant.database);
        config.password = password.map(Password::new);
        config.settings.extend(applicant.replication.parameter());
        let _turn = self.asking.acquire().await.expect("it is never closed");
        // What it says goes to who is to be asked, by a way that is as private as the client's own.
        let connected = Connector::new(config)?.connect().await;
        self.connected(&connected);
        let link = connected?;
        let challenge = link.challenge().clone();
        link.close().await;
        Ok(challenge)
    }

    /// How many server connections there are, and who waits for one.
    pub(crate) fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for pool in self.pools(None) {
            let stats = pool.stats();
            all.open += stats.open;
            all.idle += stats.idle;
            all.waiting += stats.waiting;
        }
        all
    }

    /// The pool of this user at this database.
    pub(crate) fn pool(&self, user: &str, database: &str) -> Result<Arc<Pool>, ConnectError> {
        let mut pools = self.pools.lock();
        let settings = self.settings();
        let key = Key {
            user: settings.user_there(user).to_owned(),
            database: database.to_owned(),
        };
        if let Some(pool) = pools.by_key.get(&key) {
            return Ok(Arc::clone(pool));
        }
        let listener = self.listener(&settings, database)?;
        let pool = Arc::new(Pool::new(
            settings.said_of(&key, settings.connector(user, database)?, listener),
            Arc::clone(&self.credentials),
            self.effects(database),
            (Arc::clone(&self.reach), Arc::clone(&self.away)),
            Arc::clone(&self.tops),
        ));
        settings.cap.add(as_holder(&pool));
        if pools.paused.has(database) {
            pool.pause();
        }
        pools.by_key.insert(key, Arc::clone(&pool));
        Ok(pool)
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

    /// Who listens to a database, where somebody is to.
    fn listener(&self, settings: &UpstreamSettings, database: &str) -> Result<Option<Arc<Listener>>, ConnectError> {
        let options = &settings.options;
        let Some(memory) = &options.memory else { return Ok(None) };
        let Invalidation::Stream(listening) = memory.invalidation() else {
            return Ok(None);
        };
        let mut all = self.listeners.lock();
        if let Some(known) = all.get(database).and_then(Weak::upgrade) {
            return Ok(Some(known));
        }
        all.retain(|_, listener| listener.strong_count() > 0);
        let user = options.config.user.as_deref().unwrap_or_default();
        let connector = settings.connector(user, database)?;
        let of_database = options.rules.iter().filter(|rule| rule.is_at(database));
        let listener = Arc::new(Listener::new(
            place_of(connector.config()),
            connector,
            memory.clone(),
            self.effects(database),
            listening.clone(),
            of_database.filter_map(|rule| rule.max_lag).min(),
        ));
        all.insert(database.to_owned(), Arc::downgrade(&listener));
        Ok(Some(listener))
    }

    /// All who listen, by what clients call their databases.
    pub(crate) fn listeners(&self) -> Vec<(String, Arc<Listener>)> {
        let all = self.listeners.lock();
        let named = all
            .iter()
            .filter_map(|(name, listener)| Some((name.clone(), listener.upgrade()?)));
        named.collect()
    }

    /// Its pools, with what clients call their databases.
    pub(crate) fn named_pools(&self) -> Vec<(String, Arc<Pool>)> {
        let pools = self.pools.lock();
        let named = pools
            .by_key
            .iter()
            .map(|(key, pool)| (key.database.clone(), Arc::clone(pool)));
        named.collect()
    }

    /// Its pools, of one database or of all.
    pub(crate) fn pools(&self, database: Option<&str>) -> Vec<Arc<Pool>> {
        self.pools.lock().of(database).cloned().collect()
    }

    /// Lends nothing of this database, or of any, from now until it is to [go on](Self::resume); whose pools these are.
    pub(crate) fn pause(&self, database: Option<&str>) -> Vec<Arc<Pool>> {
        let mut pools = self.pools.lock();
        pools.paused.set(database, true);
        pools.of(database).for_each(|pool| pool.pause());
        pools.of(database).cloned().collect()
    }

    /// Lends again.
    pub(crate) fn resume(&self, database: Option<&str>) {
        let mut pools = self.pools.lock();
        pools.paused.set(database, false);
        pools.of(database).for_each(|pool| pool.resume());
    }

    /// Closes connections that have been idle for too long or are too old, makes those that are to be there, and forgets pools that nobody
    /// uses. To be called now and then.
    pub(crate) fn sweep(self: &Arc<Self>) {
        if self.reach.is_unreachable() {
            let upstream = Arc::clone(self);
            tokio::spawn(async move { upstream.is_reachable().await });
        }
        for pool in self.pools(None) {
            // Beside the pools' own and this one, there are those of its clients.
            let has_clients = Arc::strong_count(&pool) > 2;
            pool.sweep(has_clients);
            if has_clients && pool.is_cold() {
                tokio::spawn(async move {
                    if let Err(error) = pool.warm_up().await {
                        tracing::debug!(%error, "there are fewer server connections than there are to be");
                    }
                });
            }
        }
        let is_used = |pool: &Arc<Pool>| Arc::strong_count(pool) > 1 || pool.stats().open > 0;
        self.pools.lock().by_key.retain(|_, pool| is_used(pool));
    }
}
