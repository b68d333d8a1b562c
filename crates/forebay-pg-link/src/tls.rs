//! TLS: whom it is spoken with, and what a password's proof is bound to.
//!
//! Promises: each `sslmode` checks what PostgreSQL's own client checks: where root certificates are named, who signed the server's;
//! `verify-full` also whose it is; with neither, nothing. The protocol's name is offered in ALPN. Where the program
//! was built without TLS there is none, and nothing that insists on it connects.

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Tls, TlsSettings};
#[cfg(feature = "tls")]
pub(crate) use present::{Tls, TlsSettings};

#[cfg(not(feature = "tls"))]
mod absent {
    use forebay_stream::{Socket, Stream};

    use crate::config::{Config, SslMode};
    use crate::error::ConnectError;

    /// There is none.
    #[derive(Debug, Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        pub(crate) fn of(config: &Config) -> Result<Option<TlsSettings>, ConnectError> {
            match config.sslmode < SslMode::Require {
                true => Ok(None),
                false => Err(ConnectError::Tls(
                    "this program was built without it (feature tls)".to_owned(),
                )),
            }
        }

        pub(crate) async fn connect(&self, _: Socket) -> Result<Stream, ConnectError> {
            match *self {}
        }
    }

    /// There are none.
    #[derive(Debug, Clone)]
    pub(crate) enum TlsSettings {}

    impl TlsSettings {
        pub(crate) fn with(&self, _: &str) -> Result<Tls, ConnectError> {
            match *self {}
        }
    }
}

#[cfg(feature = "tls")]
mod present {
    use std::path::Path;
    use std::sync::Arc;

    use forebay_stream::rustls::pki_types::pem::PemObject;
    use forebay_stream::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use forebay_stream::rustls::{ClientConfig, RootCertStore};
    use forebay_stream::{Checked, Socket, Stream, certificates, client_builder, encrypt};

    use crate::config::{Config, RootCertificates, SslMode};
    use crate::error::ConnectError;

    /// The name of PostgreSQL's protocol in ALPN.
    const ALPN: &[u8] = b"postgresql";

    /// How TLS is spoken, whoever with.
    #[derive(Debug, Clone)]
    pub(crate) struct TlsSettings(Arc<ClientConfig>);

    /// How TLS is spoken with one host.
    #[derive(Debug, Clone)]
    pub(crate) struct Tls {
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    }

    impl TlsSettings {
        /// With settings of the caller's own; all that is changed about them is that ALPN offers the protocol's name.
        pub(crate) fn given(config: &ClientConfig) -> Self {
            let mut config = config.clone();
            config.alpn_protocols = vec![ALPN.to_vec()];
            Self(Arc::new(config))
        }

        pub(crate) fn with(&self, name: &str) -> Result<Tls, ConnectError> {
            let name = ServerName::try_from(name.to_owned())
                .map_err(|_| ConnectError::Tls(format!("{name} is no name that a certificate can have")))?;
            Ok(Tls {
                config: Arc::clone(&self.0),
                name,
            })
        }
    }

    impl Tls {
        /// As the settings say it; none where it is not spoken.
        pub(crate) fn of(config: &Config) -> Result<Option<TlsSettings>, ConnectError> {
            if config.sslmode == SslMode::Disable {
                return Ok(None);
            }
            let builder = client_builder(checked(config)?).map_err(unusable)?;
            let mut client = match (&config.sslcert, &config.sslkey) {
                (Some(chain), Some(key)) => {
                    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| of_file(key, &error))?;
                    builder
                        .with_client_auth_cert(certificates_of(chain)?, key)
                        .map_err(unusable)?
                }
                _ => builder.with_no_client_auth(),
            };
            client.enable_sni = config.sslsni;
            client.alpn_protocols = vec![ALPN.to_vec()];
            Ok(Some(TlsSettings(Arc::new(client))))
        }

        pub(crate) async fn connect(&self, socket: Socket) -> Result<Stream, ConnectError> {
            let encrypted = encrypt(Arc::clone(&self.config), self.name.clone(), socket).await;
            encrypted.map_err(unusable)
        }
    }

    fn unusable(error: impl std::fmt::Display) -> ConnectError {
        ConnectError::Tls(error.to_string())
    }

    fn certificates_of(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
        match std::fs::read(file) {
            Ok(bytes) => certificates(&bytes).map_err(|error| of_file(file, &error)),
            Err(error) => Err(of_file(file, &error)),
        }
    }

    fn of_file(file: &Path, error: &impl std::fmt::Display) -> ConnectError {
        ConnectError::Tls(format!("{}: {error}", file.display()))
    }

    /// What the setting checks of the server's certificate.
    fn checked(config: &Config) -> Result<Checked, ConnectError> {
        Ok(match (config.sslmode, &config.sslrootcert) {
            (SslMode::VerifyFull, _) => Checked::Name(roots(config)?),
            (SslMode::VerifyCa, _) | (_, Some(_)) => Checked::Signature(roots(config)?),
            _ => Checked::Nothing,
        })
    }

    /// Those that were named; for `verify-full` without a name, those of this machine.
    fn roots(config: &Config) -> Result<RootCertStore, ConnectError> {
        let mut roots = RootCertStore::empty();
        match &config.sslrootcert {
            Some(RootCertificates::File(file)) => {
                for certificate in certificates_of(file)? {
                    roots.add(certificate).map_err(|error| of_file(file, &error))?;
                }
            }
            Some(RootCertificates::System) | None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    return Err(ConnectError::Tls(
                        "this machine has no root certificates; name a file of them (sslrootcert)".to_owned(),
                    ));
                }
            }
        }
        Ok(roots)
    }
}
