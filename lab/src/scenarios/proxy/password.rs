//! A password of the lab's own: what a proxy has of it, and how clients prove it.
//!
//! Promises: who connects by it does not hash it each time, as no client does that comes again.

use std::net::SocketAddr;

use forebay_pg_link::config::SslMode;
use forebay_pg_link::secret::{ScramKeys, Secret};
use forebay_pg_link::{Config, Connector};
use forebay_pg_wire::verifier::{ClientKeys, Verifier};

use crate::failure::Failure;

const PASSWORD: &str = "a password of the lab";
const USER: &str = "postgres";

/// A password, as a proxy has it and as its clients do.
pub(super) struct Password {
    pub(super) verifier: String,
    keys: ScramKeys,
}

impl Password {
    pub(super) fn new() -> Result<Self, Failure> {
        let verifier = Verifier::from_password(PASSWORD);
        let keys = ClientKeys::from_password(PASSWORD, &verifier.salt, verifier.iterations)
            .ok_or_else(|| Failure::Wrong("a password has no keys".to_owned()))?;
        Ok(Self {
            verifier: verifier.to_string(),
            keys: ScramKeys {
                client_key: keys.client_key,
                server_key: keys.server_key,
            },
        })
    }

    /// How a client connects that knows it.
    pub(super) fn connector(&self, address: SocketAddr, sslmode: SslMode) -> Result<Connector, Failure> {
        let url = format!("postgresql://{USER}@{address}/{USER}");
        let mut config: Config = url
            .parse()
            .map_err(|error| Failure::Wrong(format!("{url} is no URL: {error}")))?;
        config.secret = Some(Secret::Scram(self.keys));
        config.sslmode = sslmode;
        Connector::new(config).map_err(|error| Failure::Wrong(format!("a client cannot connect: {error}")))
    }
}
