//! TLS: how much of a server's certificate is checked.
//!
//! Promises: what is [checked](Checked) is checked as rustls does it by itself, and no more; that the server holds the
//! certificate's key is seen in any case.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WantsClientCert, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::VerifierBuilderError;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::stream::{Socket, Stream};

/// What of a server's certificate is checked.
#[derive(Debug, Clone)]
pub enum Checked {
    /// Nothing: whoever answers is spoken to.
    Nothing,
    /// That one of these signed it.
    Signature(RootCertStore),
    /// … and that it is of the name that was asked for.
    Name(RootCertStore),
}

/// Begins a client's settings: all but its own certificate.
///
/// # Errors
/// rustls', if there is nobody to trust.
pub fn client_builder(checked: Checked) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let checks_name = matches!(checked, Checked::Name(_));
    let trusted = match checked {
        Checked::Nothing => None,
        Checked::Signature(roots) | Checked::Name(roots) => Some(
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error: VerifierBuilderError| rustls::Error::General(error.to_string()))?,
        ),
    };
    let verifier = Verifier {
        trusted,
        checks_name,
        provider: Arc::clone(&provider),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier)))
}

/// The certificates of a file's bytes, in PEM.
///
/// # Errors
/// If there is none, or one cannot be read.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let read: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    match read.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(read),
    }
}

/// Encrypts what goes over a socket from now on.
///
/// # Errors
/// As the handshake ends.
pub async fn encrypt(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    socket: Socket,
) -> Result<Stream, io::Error> {
    let stream = TlsConnector::from(config).connect(name, socket).await?;
    Ok(Stream::Tls(Box::new(stream)))
}

#[derive(Debug)]
struct Verifier {
    /// None where nothing is checked.
    trusted: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        match trusted.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is the last thing that is looked at: all else was right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
