//! The options of a proxy, from those that were given.
//!
//! Promises: an option that means nothing for what is served is an error that names it; so is a database that is named twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_proxy::pool::Limits;
use forebay_proxy::{Invalidation, Listening};

use super::Settings;
use super::databases::{DatabaseOption, DatabaseSettings, ProxyOptions, UpstreamSettings, check};
use super::error::{OptionsError, value, value_of};
use super::quantity::{Size, Span};
use super::rules::{InvalidateOption, MAX_LAG_MIN};
use super::{rules, users};

/// What a query said of a user is believed for so long, where no time is given.
const AUTH_QUERY_KEPT: Duration = Duration::from_secs(10);

/// Whoever says less has forgotten a unit: what is remembered and its marks would not fit in.
const CACHE_MEMORY_MIN: u64 = 1 << 20;

impl Settings {
    /// What it is a proxy of, if it is one; options that mean nothing to it, or nothing without it, are errors.
    pub(super) fn proxy(&self) -> Result<Option<ProxyOptions>, OptionsError> {
        let of_the_proxy = [
            ("max_server_connections", self.max_server_connections.is_some()),
            ("min_server_connections", self.min_server_connections.is_some()),
            ("reserve_server_connections", self.reserve_server_connections.is_some()),
            ("reserve_after", self.reserve_after.is_some()),
            ("idle_session_timeout", self.idle_session_timeout.is_some()),
            ("max_upstream_connections", self.max_upstream_connections.is_some()),
            ("max_waiting", self.max_waiting.is_some()),
            ("pool_mode", self.pool_mode.is_some()),
            ("sharing", self.sharing.is_some()),
            ("session_functions", self.session_functions.is_some()),
            ("server_wait_timeout", self.server_wait_timeout.is_some()),
            ("server_idle_timeout", self.server_idle_timeout.is_some()),
            ("server_lifetime", self.server_lifetime.is_some()),
            ("handover_socket", self.handover_socket.is_some()),
            ("trust_loopback", self.trust_loopback.is_some()),
            ("service_user", self.service_user.is_some()),
            ("auth_query", self.auth_query.is_some()),
            ("auth_query_kept", self.auth_query_kept.is_some()),
            ("max_client_connections", self.max_client_connections.is_some()),
            ("max_user_connections", self.max_user_connections.is_some()),
            ("user", self.user.is_some()),
            ("rule", self.rule.is_some()),
            ("admin_users", self.admin_users.is_some()),
            ("cache_memory", self.cache_memory.is_some()),
            ("warm_file", self.warm_file.is_some()),
            ("invalidate", self.invalidate.is_some()),
            ("max_lag", self.max_lag.is_some()),
            ("publication", self.publication.is_some()),
            ("max_wal", self.max_wal.is_some()),
        ];
        let is_file = matches!(self.database, Some(DatabaseOption::File(_)));
        let of_the_database = [
            ("database", is_file),
            ("max_input_bytes", self.max_input_bytes.is_some()),
            ("max_result_bytes", self.max_result_bytes.is_some()),
            ("busy_timeout", self.busy_timeout.is_some()),
            ("idle_snapshot_timeout", self.idle_snapshot_timeout.is_some()),
            ("stall_timeout", self.stall_timeout.is_some()),
            ("batch_max_items", self.batch_max_items.is_some()),
            ("batch_max_wait", self.batch_max_wait.is_some()),
            ("readers", self.readers.is_some()),
            ("synchronous", self.synchronous.is_some()),
        ];
        let first = |options: &[(&'static str, bool)]| {
            options
                .iter()
                .find(|(_, is_given)| *is_given)
                .map(|(option, _)| *option)
        };
        let named = match &self.database {
            Some(DatabaseOption::Named(named)) => &named[..],
            _ => &[],
        };
        if self.upstream.is_none() && named.is_empty() {
            return match first(&of_the_proxy) {
                Some(option) => Err(value(option, "means something only with upstream")),
                None => Ok(None),
            };
        }
        if let Some(option) = first(&of_the_database) {
            return Err(value(
                option,
                "is of the embedded database, and with upstream there is none",
            ));
        }
        let limits = self.limits(&Limits::default());
        check(&limits, None)?;
        let is_service = self.service_user.unwrap_or(false);
        if self.max_upstream_connections == Some(0) {
            return Err(value(
                "max_upstream_connections",
                "must not be 0: nobody could be served",
            ));
        }
        for (option, count) in [
            ("max_client_connections", self.max_client_connections),
            ("max_user_connections", self.max_user_connections),
        ] {
            if let Some(why) = count.and_then(users::out_of_range) {
                return Err(value(option, &why));
            }
        }
        let kept = self.auth_query_kept.map_or(AUTH_QUERY_KEPT, |Span(kept)| kept);
        let for_all = |settings: UpstreamSettings| UpstreamSettings {
            auth_query_kept: kept,
            max_clients: settings.max_clients.or(self.max_client_connections),
            ..settings
        };
        let upstream = match &self.upstream {
            Some(url) => {
                let auth_query = self.auth_query.clone();
                Some(for_all(UpstreamSettings::new(
                    url,
                    "upstream",
                    None,
                    limits.clone(),
                    is_service,
                    auth_query,
                )?))
            }
            None => None,
        };
        let mut databases = BTreeMap::new();
        for settings in named {
            let name = Some(settings.name.as_str());
            if settings.name.is_empty() {
                return Err(value_of("name", name, "must not be empty"));
            }
            if let Some(why) = settings.max_client_connections.and_then(users::out_of_range) {
                return Err(value_of("max_client_connections", name, &why));
            }
            let mut own = UpstreamSettings::new(
                &settings.url,
                "url",
                name,
                settings.limits(&limits),
                settings.service_user.unwrap_or(is_service),
                settings.auth_query.clone().or_else(|| self.auth_query.clone()),
            )?;
            own.max_clients = settings.max_client_connections;
            if databases.insert(settings.name.clone(), for_all(own)).is_some() {
                return Err(value_of("name", name, "is given twice"));
            }
        }
        let invalidation = self.invalidation(upstream.iter().chain(databases.values()))?;
        let cache_memory = self.cache_memory.map_or(0, |Size(bytes)| bytes as u64);
        if (1..CACHE_MEMORY_MIN).contains(&cache_memory) {
            return Err(value("cache_memory", "must be 1MiB at least, or 0 to remember nothing"));
        }
        if cache_memory == 0 && self.warm_file.is_some() {
            return Err(value("warm_file", "means something only with cache_memory"));
        }
        Ok(Some(ProxyOptions {
            databases,
            upstream,
            trusts_loopback: self.trust_loopback.unwrap_or(false),
            admins: self.admin_users.clone().unwrap_or_default(),
            max_upstream_connections: self.max_upstream_connections,
            max_user_clients: self.max_user_connections,
            users: Arc::new(users::by_name(self.user.as_deref().unwrap_or_default())?),
            rules: rules::all(self.rule.as_deref().unwrap_or_default(), cache_memory, &invalidation)?,
            cache_memory,
            warm_file: self.warm_file.clone(),
            invalidation,
            doubts: Vec::new(),
        }))
    }

    /// By what remembered answers of these are known to be old.
    fn invalidation<'a>(
        &self,
        mut all: impl Iterator<Item = &'a UpstreamSettings>,
    ) -> Result<Invalidation, OptionsError> {
        let invalidate = self.invalidate.unwrap_or_default();
        if invalidate != InvalidateOption::Stream {
            let of_the_stream = [
                ("max_lag", self.max_lag.is_some()),
                ("publication", self.publication.is_some()),
                ("max_wal", self.max_wal.is_some()),
            ];
            if let Some((option, _)) = of_the_stream.into_iter().find(|(_, is_given)| *is_given) {
                return Err(value(option, "means something only with invalidate = \"stream\""));
            }
        } else if all.any(|upstream| upstream.config.user.is_none()) {
            return Err(value(
                "invalidate",
                "\"stream\" needs a user in each URL, who may replicate",
            ));
        }
        let default = Listening::default();
        let max_lag = self.max_lag.map_or(default.max_lag, |Span(max_lag)| max_lag);
        if max_lag < MAX_LAG_MIN {
            return Err(value("max_lag", "must be 20ms at least"));
        }
        let publication = self.publication.as_deref();
        if publication.is_some_and(|name| name.is_empty() || name.contains('\0')) {
            return Err(value("publication", "must be a name"));
        }
        Ok(invalidate.with(Listening {
            max_lag,
            publication: publication.map(Arc::from),
            max_wal_bytes: self.max_wal.map_or(default.max_wal_bytes, |Size(bytes)| bytes as u64),
        }))
    }

    fn limits(&self, default: &Limits) -> Limits {
        let own = DatabaseSettings {
            name: String::new(),
            url: String::new(),
            max_server_connections: self.max_server_connections,
            min_server_connections: self.min_server_connections,
            reserve_server_connections: self.reserve_server_connections,
            reserve_after: self.reserve_after,
            max_waiting: self.max_waiting,
            pool_mode: self.pool_mode,
            sharing: self.sharing,
            session_functions: self.session_functions,
            server_wait_timeout: self.server_wait_timeout,
            server_idle_timeout: self.server_idle_timeout,
            server_lifetime: self.server_lifetime,
            statement_timeout: self.statement_timeout,
            idle_transaction_timeout: self.idle_transaction_timeout,
            idle_session_timeout: self.idle_session_timeout,
            service_user: None,
            auth_query: None,
            max_client_connections: None,
        };
        Limits {
            max_message_bytes: self
                .max_message_bytes
                .map_or(default.max_message_bytes, |Size(bytes)| bytes),
            ..own.limits(default)
        }
    }
}
