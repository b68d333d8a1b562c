//! TLS as the protocol uses it: after a request of the client's or at once, and a certificate to bind a proof to.
//!
//! Promises: the protocol's name is offered in ALPN. Does not know where certificates are kept.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The name of PostgreSQL's protocol in ALPN.
pub const ALPN: &[u8] = b"postgresql";

/// Certificate and key, ready to accept connections.
#[derive(Clone)]
pub struct Tls {
    /// Turns a stream into a TLS stream.
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate chain in PEM; channel binding needs its first certificate.
    pub(crate) certificate_pem: Arc<[u8]>,
}

impl Tls {
    /// Of a configuration that has a certificate, and the chain of that certificate in PEM, the server's own first.
    pub fn new(mut config: ServerConfig, certificate_pem: impl Into<Arc<[u8]>>) -> Self {
        config.alpn_protocols = vec![ALPN.to_vec()];
        Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificate_pem: certificate_pem.into(),
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}
