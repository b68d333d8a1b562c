//! TLS for the PostgreSQL listener, from a certificate and a key in PEM files.
//!
//! Promises: what is loaded can be used: a key that does not belong to the certificate is an error at the start, not at the first
//! client. A client's certificate is asked for where there are authorities that it may be signed by, and refused where none of them has signed
//! it; who shows none comes in. Does not know the protocol inside, nor whom a certificate is for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use forebay_pg_wire::tls::Tls;

use crate::config::TlsFiles;

/// What a file is, as errors have it.
const KEY: &str = "TLS key";
const AUTHORITIES: &str = "authorities of clients";

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("{what} {}: {error}", path.display())]
    File {
        /// Certificate or key.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The file holds no such thing, or not in PEM.
    #[error("{what} {}: {why}", path.display())]
    Pem {
        /// Certificate or key.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Certificate and key cannot be used, or not together.
    #[error("TLS certificate {} with key {}: {error}", certificate.display(), key.display())]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        #[source]
        error: rustls::Error,
    },
}

impl TlsError {
    /// The option that names the file.
    pub(crate) fn option(&self) -> &'static str {
        match self {
            Self::File { what, .. } | Self::Pem { what, .. } if *what == KEY => "tls_key",
            Self::File { what, .. } | Self::Pem { what, .. } if *what == AUTHORITIES => "tls_client_ca",
            _ => "tls_certificate",
        }
    }
}

/// Reads the certificate chain (the server's own first) and its key.
///
/// # Errors
///
/// When a file cannot be read, holds no PEM, or both do not belong together.
pub fn load(files: &TlsFiles) -> Result<Tls, TlsError> {
    let (certificate, key) = (files.certificate.as_path(), files.key.as_path());
    let certificate_pem = read("TLS certificate", certificate)?;
    let key_pem = read(KEY, key)?;
    let chain = CertificateDer::pem_slice_iter(&certificate_pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| pem("TLS certificate", certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(pem(
            "TLS certificate",
            certificate,
            "no CERTIFICATE section in the file".to_owned(),
        ));
    }
    let private = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| pem(KEY, key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match &files.client_ca {
        Some(authorities) => client_verifier(authorities, &provider)?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_client_cert_verifier(verifier)
                .with_single_cert(chain, private)
        })
        .map_err(|error| TlsError::Unusable {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            error,
        })?;
    Ok(Tls::new(config, certificate_pem))
}

/// Whoever shows a certificate shows one that one of these has signed.
fn client_verifier(
    authorities: &Path,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let text = read(AUTHORITIES, authorities)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|why| pem(AUTHORITIES, authorities, why))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .allow_unauthenticated()
        .build()
        .map_err(|error| pem(AUTHORITIES, authorities, error.to_string()))
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::File {
        what,
        path: path.to_owned(),
        error,
    })
}

fn pem(what: &'static str, path: &Path, why: String) -> TlsError {
    TlsError::Pem {
        what,
        path: path.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate for `localhost` that signs itself, with its key, in a directory of its own.
    fn certificate() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (directory, certificate, key)
    }

    fn files(certificate: &Path, key: &Path) -> TlsFiles {
        TlsFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            client_ca: None,
        }
    }

    #[test]
    fn certificate_and_key_are_loaded() {
        let (_directory, certificate, key) = certificate();
        load(&files(&certificate, &key)).unwrap();
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_names_the_file() {
        let (directory, certificate_path, key) = certificate();
        let (_other_directory, _, other_key) = certificate();
        let garbage = directory.path().join("garbage.pem");
        std::fs::write(&garbage, "no PEM").unwrap();
        let missing = directory.path().join("missing.pem");
        let error = |certificate: &Path, key: &Path| load(&files(certificate, key)).unwrap_err();
        assert!(matches!(
            error(&missing, &key),
            TlsError::File {
                what: "TLS certificate",
                ..
            }
        ));
        assert!(matches!(
            error(&certificate_path, &missing),
            TlsError::File { what: "TLS key", .. }
        ));
        assert!(matches!(
            error(&garbage, &key),
            TlsError::Pem {
                what: "TLS certificate",
                ..
            }
        ));
        assert!(matches!(
            error(&certificate_path, &garbage),
            TlsError::Pem { what: "TLS key", .. }
        ));
        assert!(matches!(
            error(&certificate_path, &other_key),
            TlsError::Unusable { .. }
        ));
        let by = |authorities: &Path| {
            let client_ca = Some(authorities.to_owned());
            load(&TlsFiles {
                client_ca,
                ..files(&certificate_path, &key)
            })
        };
        assert!(by(&certificate_path).is_ok());
        assert!(matches!(by(&missing), Err(TlsError::File { .. })));
        assert!(
            matches!(by(&garbage), Err(TlsError::Pem { .. })),
            "there is nobody in it"
        );
        assert!(error(&garbage, &key).to_string().contains("garbage.pem"));
    }
}
