//! Connect: hosts in turn, each address of each, until one is as wanted.
//!
//! Promises: hosts are tried in their order, or one of chance; one that cannot be reached, is silent, on its way up or down, or not
//! as wanted, is passed over; one that does not let the user in ends the search, as the others would be told the same. The error is
//! that of the last one. `sslmode` decides which of two ways, encrypted and clear, is tried first, and whether the other one is.

use std::time::Duration;

use forebay_stream::Stream;
use rand::seq::SliceRandom;

use crate::cancel::CancelToken;
use crate::config::{Config, Endpoint, Host, SslMode, SslNegotiation, TargetSessionAttrs};
use crate::dial::{Address, Dialler, Encryption, SocketOptions};
use crate::error::ConnectError;
use crate::handshake;
use crate::link::Link;
use crate::message::Tag;
use crate::secret::Secret;
use crate::server_error::ServerError;
use crate::tls::{Tls, TlsSettings};

/// Connects once.
///
/// # Errors
/// [`ConnectError`].
///
/// # Cancel safety
/// Dropped before it completes, there is no connection.
pub async fn connect(config: &Config) -> Result<Link, ConnectError> {
    Connector::new(config.clone())?.connect().await
}

/// Connects as often as it is asked to, and reads files of certificates once.
#[derive(Debug, Clone)]
pub struct Connector {
    config: Config,
    user: String,
    tls: Option<TlsSettings>,
    options: SocketOptions,
}

impl Connector {
    /// Of a config; reads its certificates.
    ///
    /// # Errors
    /// [`ConnectError::Tls`] if they cannot be used; [`ConnectError::Setting`] if there is no user.
    pub fn new(config: Config) -> Result<Self, ConnectError> {
        let tls = Tls::of(&config)?;
        Self::with(config, tls)
    }

    /// With TLS as the caller has set it up, whose verifier says whom to trust; [`Config::sslmode`] says when it is spoken.
    ///
    /// # Errors
    /// [`ConnectError::Setting`] if there is no user.
    #[cfg(feature = "tls")]
    pub fn tls(config: Config, tls: &crate::rustls::ClientConfig) -> Result<Self, ConnectError> {
        let tls = (config.sslmode != SslMode::Disable).then(|| TlsSettings::given(tls));
        Self::with(config, tls)
    }

    fn with(config: Config, tls: Option<TlsSettings>) -> Result<Self, ConnectError> {
        let user = match &config.user {
            Some(user) => user.clone(),
            None => whoami::username().map_err(|_| {
                ConnectError::Setting("no user is named, and the system tells none of this process".to_owned())
            })?,
        };
        let options = SocketOptions::of(&config);
        Ok(Self {
            config,
            user,
            tls,
            options,
        })
    }

    /// What it connects to.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where to, in the order in which they are tried.
    pub fn hosts(&self) -> &[Host] {
        &self.config.hosts
    }

    /// As whom.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The same, for sessions that begin with these settings, of a user who is proven by this.
    #[must_use]
    pub fn beginning(&self, settings: &[(String, String)], secret: Option<Secret>) -> Self {
        let mut other = self.clone();
        other.config.settings = settings.to_vec();
        other.config.secret = secret.or(other.config.secret);
        other
    }

    /// Connects to the first host that is as wanted.
    ///
    /// # Errors
    /// [`ConnectError`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, there is no connection.
    pub async fn connect(&self) -> Result<Link, ConnectError> {
        let mut hosts: Vec<&Host> = self.config.hosts.iter().collect();
        if self.config.load_balance_hosts {
            hosts.shuffle(&mut rand::rng());
        }
        let rounds: &[TargetSessionAttrs] = match self.config.target_session_attrs {
            TargetSessionAttrs::PreferStandby => &[TargetSessionAttrs::Standby, TargetSessionAttrs::Any],
            ref wanted => std::slice::from_ref(wanted),
        };
        let mut last = ConnectError::Setting("there is no host".to_owned());
        for &wanted in rounds {
            for host in &hosts {
                match self.host(host, wanted).await {
                    Ok(link) => return Ok(link),
                    Err(error) if is_passed_over(&error) => last = error,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last)
    }

    /// Each address of one host.
    async fn host(&self, host: &Host, wanted: TargetSessionAttrs) -> Result<Link, ConnectError> {
        let name = host.to_string();
        let addresses = match &host.endpoint {
            Endpoint::Unix(folder) => vec![Address::Unix(folder.join(format!(".s.PGSQL.{}", host.port)))],
            Endpoint::Tcp {
                address: Some(address), ..
            } => vec![Address::Tcp((*address, host.port).into())],
            Endpoint::Tcp { name: asked, .. } => {
                let unreachable = |source| ConnectError::Unreachable {
                    host: name.clone(),
                    source,
                };
                let looking = tokio::net::lookup_host((&**asked, host.port));
                let found = self.within(&name, async { looking.await.map_err(unreachable) }).await?;
                let mut found: Vec<Address> = found.map(Address::Tcp).collect();
                if self.config.load_balance_hosts {
                    found.shuffle(&mut rand::rng());
                }
                found
            }
        };
        let mut last = ConnectError::Unreachable {
            host: name.clone(),
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address"),
        };
        for address in &addresses {
            match self.within(&name, self.address(host, &name, address, wanted)).await {
                Ok(link) => return Ok(link),
                Err(error) if is_passed_over(&error) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn within<T>(
        &self,
        host: &str,
        connecting: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        // Of tens of years the runtime's clock makes as long as it can count.
        let Some(waited) = self.config.connect_timeout.filter(|&waited| waited < Duration::MAX) else {
            return connecting.await;
        };
        match tokio::time::timeout(waited, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Silent {
                host: host.to_owned(),
                waited,
            }),
        }
    }

    /// One address, on one way or the other.
    async fn address(
        &self,
        host: &Host,
        name: &str,
        address: &Address,
        wanted: TargetSessionAttrs,
    ) -> Result<Link, ConnectError> {
        let tls = match (&host.endpoint, &self.tls) {
            (Endpoint::Tcp { name, .. }, Some(settings)) => match settings.with(name) {
                Ok(tls) => Some(tls),
                Err(error) if self.config.sslmode >= SslMode::Require => return Err(error),
                Err(_) => None,
            },
            _ => None,
        };
        let mut ways = self.ways(address, tls.is_some()).iter().peekable();
        loop {
            let encryption = *ways.next().expect("there is a way, and the last one returns");
            let dialler = Dialler {
                host: name,
                address,
                options: &self.options,
                encryption,
                tls: tls.as_ref(),
            };
            let (stream, dialled) = match dialler.dial().await {
                Ok(dialled) => dialled,
                // It could not be encrypted: perhaps it may be clear.
                Err(ConnectError::Tls(_)) if ways.peek().is_some() => continue,
                Err(error) => return Err(error),
            };
            // What was offered and not taken is clear already: the other way is the same.
            let has_other_way = encryption != Encryption::Offered || stream.is_private();
            match self.begun(stream, CancelToken::new(dialled), name, wanted).await {
                // This way it was not let in: perhaps the other way.
                Err(ConnectError::Server(_) | ConnectError::Tls(_)) if has_other_way && ways.peek().is_some() => {}
                ended => return ended,
            }
        }
    }

    /// The ways to an address in their order. Whoever can read a socket's file is on this machine: there is nothing to encrypt.
    fn ways(&self, address: &Address, has_tls: bool) -> &'static [Encryption] {
        match (address, self.config.sslmode) {
            (Address::Unix(_), _) | (_, SslMode::Disable) => &[Encryption::Clear],
            (_, SslMode::Allow | SslMode::Prefer) if !has_tls => &[Encryption::Clear],
            (_, SslMode::Allow) => &[Encryption::Clear, Encryption::Wanted],
            (_, SslMode::Prefer) => &[Encryption::Offered, Encryption::Clear],
            (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => match self.config.sslnegotiation {
                SslNegotiation::Postgres => &[Encryption::Wanted],
                SslNegotiation::Direct => &[Encryption::Direct],
            },
        }
    }

    async fn begun(
        &self,
        stream: Stream,
        cancel: CancelToken,
        host: &str,
        wanted: TargetSessionAttrs,
    ) -> Result<Link, ConnectError> {
        let mut link = handshake::begin(stream, cancel, &self.config, &self.user).await?;
        match is_wanted(&mut link, wanted).await? {
            true => Ok(link),
            false => {
                link.close().await;
                Err(ConnectError::WrongSession {
                    host: host.to_owned(),
                    wanted: name_of(wanted),
                })
            }
        }
    }
}

/// Whether the next host is tried: the server is away, on its way up or down, full, or another one is wanted.
fn is_passed_over(error: &ConnectError) -> bool {
    match error {
        ConnectError::Server(error) => matches!(&*error.code, "57P01" | "57P02" | "57P03" | "53300"),
        error => error.is_passing(),
    }
}

fn name_of(wanted: TargetSessionAttrs) -> &'static str {
    match wanted {
        TargetSessionAttrs::Any => "any",
        TargetSessionAttrs::ReadWrite => "read-write",
        TargetSessionAttrs::ReadOnly => "read-only",
        TargetSessionAttrs::Primary => "primary",
        TargetSessionAttrs::Standby => "standby",
        TargetSessionAttrs::PreferStandby => "prefer-standby",
    }
}

/// Whether the session is as wanted. Servers from version 14 on have said so already.
async fn is_wanted(link: &mut Link, wanted: TargetSessionAttrs) -> Result<bool, ConnectError> {
    let is_standby = match wanted {
        TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => return Ok(true),
        _ => is_on(link, "in_hot_standby", "SELECT pg_catalog.pg_is_in_recovery()").await?,
    };
    Ok(match wanted {
        TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => true,
        TargetSessionAttrs::Primary => !is_standby,
        TargetSessionAttrs::Standby => is_standby,
        TargetSessionAttrs::ReadOnly | TargetSessionAttrs::ReadWrite => {
            let asked = "SHOW default_transaction_read_only";
            let cannot_write = is_standby || is_on(link, "default_transaction_read_only", asked).await?;
            cannot_write == (wanted == TargetSessionAttrs::ReadOnly)
        }
    })
}

/// A setting that the server reports, or answers when it is asked.
async fn is_on(link: &mut Link, parameter: &str, asked: &str) -> Result<bool, ConnectError> {
    if let Some(value) = link.parameter(parameter) {
        return Ok(value == "on");
    }
    let sent = link.outbox().query(asked);
    sent.map_err(|error| ConnectError::Setting(error.to_string()))?;
    let (mut is_on, mut failed) = (false, None);
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::DATA_ROW => is_on = matches!(message.row()?.next(), Some(Some(b"on" | b"t"))),
            Tag::ERROR_RESPONSE => failed = Some(ServerError::read(&message)?),
            Tag::READY_FOR_QUERY => return failed.map_or(Ok(is_on), |error| Err(error.into())),
            _ => {}
        }
    }
}
