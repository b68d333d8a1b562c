//! Channel binding: what of a stream a password's proof is bound to.
//!
//! Promises: the hash of the server's certificate as RFC 5929 has it (`tls-server-end-point`): by the hash of its signature, SHA-256
//! in place of MD5 and SHA-1. A certificate whose signature names no hash (Ed25519) binds nothing, as at PostgreSQL's own client.

use forebay_stream::Stream;
#[cfg(feature = "tls")]
use sha2::{Digest, Sha256, Sha384, Sha512};
#[cfg(feature = "tls")]
use x509_cert::der::Decode;
#[cfg(feature = "tls")]
use x509_cert::der::oid::db::rfc5912::{
    ECDSA_WITH_SHA_256, ECDSA_WITH_SHA_384, ECDSA_WITH_SHA_512, SHA_1_WITH_RSA_ENCRYPTION, SHA_256_WITH_RSA_ENCRYPTION,
    SHA_384_WITH_RSA_ENCRYPTION, SHA_512_WITH_RSA_ENCRYPTION,
};

/// The end point of a stream's TLS; none where it is in clear, or binds nothing.
#[cfg_attr(
    not(feature = "tls"),
    allow(clippy::unnecessary_wraps, reason = "with TLS there may be one")
)]
pub(crate) fn end_point(stream: &Stream) -> Option<Vec<u8>> {
    match stream {
        Stream::Clear(_) => None,
        #[cfg(feature = "tls")]
        Stream::Tls(stream) => hash(stream.get_ref().1.peer_certificates()?.first()?),
    }
}

#[cfg(feature = "tls")]
fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let read = x509_cert::Certificate::from_der(certificate).ok()?;
    match read.signature_algorithm.oid {
        SHA_1_WITH_RSA_ENCRYPTION | SHA_256_WITH_RSA_ENCRYPTION | ECDSA_WITH_SHA_256 => {
            Some(Sha256::digest(certificate).to_vec())
        }
        SHA_384_WITH_RSA_ENCRYPTION | ECDSA_WITH_SHA_384 => Some(Sha384::digest(certificate).to_vec()),
        SHA_512_WITH_RSA_ENCRYPTION | ECDSA_WITH_SHA_512 => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}
