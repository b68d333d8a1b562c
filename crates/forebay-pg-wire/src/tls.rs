//! TLS as the protocol uses it: after a request of the client's or at once, and a certificate to bind a proof to.
//!
//! Promises: the protocol's name is offered in ALPN. What is said of a client's certificate was verified by the configuration. Does not know
//! where certificates are kept, nor whom they are trusted for.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};
use x509_cert::der::Decode;
use x509_cert::der::asn1::{PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;

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

/// A client's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The first common name of its subject, if there is one that is a text.
    pub common_name: Option<String>,
}

impl Certificate {
    /// The one that the client of this connection has shown, if it has shown one.
    pub(crate) fn of(connection: &ServerConnection) -> Option<Self> {
        let encoded = connection.peer_certificates()?.first()?;
        Some(Self {
            common_name: common_name(encoded),
        })
    }
}

fn common_name(encoded: &[u8]) -> Option<String> {
    let certificate = x509_cert::Certificate::from_der(encoded).ok()?;
    let names = certificate.tbs_certificate.subject.0;
    let mut attributes = names.iter().flat_map(|relative| relative.0.iter());
    let value = &attributes.find(|attribute| attribute.oid == COMMON_NAME)?.value;
    let text = value
        .decode_as::<Utf8StringRef<'_>>()
        .map(|text| text.as_str().to_owned())
        .or_else(|_| {
            value
                .decode_as::<PrintableStringRef<'_>>()
                .map(|text| text.as_str().to_owned())
        })
        .or_else(|_| {
            value
                .decode_as::<TeletexStringRef<'_>>()
                .map(|text| text.as_str().to_owned())
        });
    // A zero would end the name for who compares as C does.
    text.ok().filter(|text| !text.is_empty() && !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(build: impl FnOnce(&mut rcgen::DistinguishedName)) -> Option<String> {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        build(&mut parameters.distinguished_name);
        let key = rcgen::KeyPair::generate().unwrap();
        common_name(parameters.self_signed(&key).unwrap().der())
    }

    #[test]
    fn the_common_name_is_read_in_every_kind_of_text() {
        use rcgen::{DnType, DnValue};
        let name = |value: DnValue| {
            of(|subject| {
                subject.push(DnType::OrganizationName, "Shop");
                subject.push(DnType::CommonName, value);
            })
        };
        assert_eq!(name(DnValue::Utf8String("anné".to_owned())).as_deref(), Some("anné"));
        let printable = DnValue::PrintableString("anna".try_into().unwrap());
        assert_eq!(name(printable).as_deref(), Some("anna"));
        assert_eq!(name(DnValue::Utf8String("anna\0bert".to_owned())), None);
        assert_eq!(of(|subject| subject.push(DnType::OrganizationName, "anna")), None);
        assert_eq!(common_name(b"no certificate"), None);
    }
}
