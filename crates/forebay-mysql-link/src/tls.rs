//! TLS: whom it is spoken with.
//!
//! Promises: what [`TlsOptions`](crate::config::TlsOptions) says. Where the program was built without TLS there is none, and nothing
//! that asks for it connects.

#[cfg(not(feature = "tls"))]
pub(crate) use absent::Tls;
#[cfg(feature = "tls")]
pub(crate) use present::Tls;

#[cfg(not(feature = "tls"))]
mod absent {
    use forebay_stream::{Socket, Stream};

    use crate::config::TlsOptions;
    use crate::error::ConnectError;

    /// There is none.
    #[derive(Debug, Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        pub(crate) fn new(_: &TlsOptions, _: &str) -> Result<Self, ConnectError> {
            Err(ConnectError::Tls(
                "this program was built without it (feature tls)".to_owned(),
            ))
        }

        pub(crate) async fn connect(&self, _: Socket) -> Result<Stream, ConnectError> {
            match *self {}
        }
    }
}

#[cfg(feature = "tls")]
mod present {
    use std::borrow::Cow;
    use std::sync::Arc;

    use forebay_stream::rustls::pki_types::pem::PemObject;
    use forebay_stream::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, ServerName};
    use forebay_stream::rustls::{ClientConfig, RootCertStore};
    use forebay_stream::{Checked, Socket, Stream, certificates, client_builder, encrypt};

    use crate::config::{Certificates, TlsOptions};
    use crate::error::ConnectError;

    /// How TLS is spoken with a server.
    #[derive(Debug, Clone)]
    pub(crate) struct Tls {
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    }

    impl Tls {
        /// With a server that is reached by this name.
        pub(crate) fn new(options: &TlsOptions, host: &str) -> Result<Self, ConnectError> {
            let name = options.server_name.as_deref().unwrap_or(host);
            let server_name = ServerName::try_from(name.to_owned())
                .map_err(|_| ConnectError::Tls(format!("{name} is no name that a certificate can have")))?;
            let checked = match (options.verify_ca, options.verify_identity) {
                (false, _) => Checked::Nothing,
                (true, false) => Checked::Signature(roots(options)?),
                (true, true) => Checked::Name(roots(options)?),
            };
            let builder = client_builder(checked).map_err(unusable)?;
            let config = match &options.client_certificate {
                Some((chain, key)) => {
                    let (chain, key) = (read_certificates(chain)?, read_key(key)?);
                    builder.with_client_auth_cert(chain, key).map_err(unusable)?
                }
                None => builder.with_no_client_auth(),
            };
            Ok(Self {
                config: Arc::new(config),
                name: server_name,
            })
        }

        pub(crate) async fn connect(&self, socket: Socket) -> Result<Stream, ConnectError> {
            let encrypted = encrypt(Arc::clone(&self.config), self.name.clone(), socket).await;
            encrypted.map_err(unusable)
        }
    }

    fn unusable(error: impl std::fmt::Display) -> ConnectError {
        ConnectError::Tls(error.to_string())
    }

    fn roots(options: &TlsOptions) -> Result<RootCertStore, ConnectError> {
        let mut roots = RootCertStore::empty();
        if options.built_in_roots {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        for given in &options.root_certificates {
            for certificate in read_certificates(given)? {
                roots.add(certificate).map_err(unusable)?;
            }
        }
        Ok(roots)
    }

    fn bytes_of(given: &Certificates) -> Result<Cow<'_, [u8]>, ConnectError> {
        match given {
            Certificates::Bytes(bytes) => Ok(bytes.into()),
            Certificates::File(file) => match std::fs::read(file) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(ConnectError::Tls(format!("{}: {error}", file.display()))),
            },
        }
    }

    fn named(given: &Certificates, error: impl std::fmt::Display) -> ConnectError {
        match given {
            Certificates::File(file) => ConnectError::Tls(format!("{}: {error}", file.display())),
            Certificates::Bytes(_) => unusable(error),
        }
    }

    fn read_certificates(given: &Certificates) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
        let bytes = bytes_of(given)?;
        match std::str::from_utf8(&bytes) {
            Ok(_) => certificates(&bytes).map_err(|error| named(given, error)),
            Err(_) => Ok(vec![bytes.into_owned().into()]),
        }
    }

    fn read_key(given: &Certificates) -> Result<PrivateKeyDer<'static>, ConnectError> {
        let bytes = bytes_of(given)?;
        match std::str::from_utf8(&bytes) {
            Ok(_) => PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| named(given, error)),
            Err(_) => Ok(PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(bytes.into_owned()))),
        }
    }
}
