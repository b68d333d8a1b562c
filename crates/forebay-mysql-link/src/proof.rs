//! Proof: how a user shows a server that he knows the password.
//!
//! Promises: a proof tells nobody the password, but for the one that is the password in clear, which is given only where that was
//! asked for and nobody can listen. Knows no packet.

use std::panic::catch_unwind;

use mysql_common::crypto;
use mysql_common::scramble::{create_response_for_ed25519, scramble_native, scramble_sha256};

use crate::config::Config;
use crate::error::ConnectError;

/// A way to prove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Native,
    CachingSha2,
    Ed25519,
    Clear,
}

/// What is known of whom it is proven to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prover<'a> {
    pub(crate) config: &'a Config,
    /// Nobody between can listen.
    pub(crate) is_private: bool,
    /// The server is on this machine.
    pub(crate) is_near: bool,
}

impl Method {
    /// Of the server's name for it.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"mysql_native_password" => Self::Native,
            b"caching_sha2_password" => Self::CachingSha2,
            b"client_ed25519" => Self::Ed25519,
            b"mysql_clear_password" => Self::Clear,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Ed25519 => "client_ed25519",
            Self::Clear => "mysql_clear_password",
        }
    }
}

impl Prover<'_> {
    fn password(&self) -> &[u8] {
        self.config
            .password
            .as_ref()
            .map_or(&[], |password| password.0.as_bytes())
    }

    /// The proof over what the server says that it is made over; nothing if there is no password.
    pub(crate) fn proof(&self, method: Method, nonce: &[u8]) -> Result<Vec<u8>, ConnectError> {
        let password = self.password();
        let over = |length| {
            nonce
                .get(..length)
                .ok_or_else(|| refused("the server gives too little to prove over"))
        };
        match method {
            Method::Clear => {
                if !self.config.enable_cleartext_plugin {
                    return Err(refused(
                        "the server asks for the password in clear (mysql_clear_password), which is told only with \
                         enable_cleartext_plugin=true",
                    ));
                }
                if !self.is_private {
                    return Err(refused(
                        "the server asks for the password in clear where others can listen: use TLS",
                    ));
                }
                Ok([password, &[0]].concat())
            }
            _ if password.is_empty() => Ok(Vec::new()),
            Method::Native => Ok(scramble_native(over(20)?, password).map_or_else(Vec::new, Vec::from)),
            Method::CachingSha2 => Ok(scramble_sha256(over(20)?, password).map_or_else(Vec::new, Vec::from)),
            Method::Ed25519 => Ok(create_response_for_ed25519(password, over(32)?).to_vec()),
        }
    }

    /// Whether the password itself may be told, where the server has forgotten who proves what.
    pub(crate) fn tells_password(&self) -> bool {
        self.is_private
    }

    /// The password as it is told to a server that has asked for it, through what nobody can listen to.
    pub(crate) fn told_password(&self) -> Vec<u8> {
        [self.password(), &[0]].concat()
    }

    /// Whether a server is asked for its key, to encrypt the password with.
    pub(crate) fn asks_for_key(&self) -> Result<(), ConnectError> {
        if self.is_near || self.config.get_server_public_key {
            return Ok(());
        }
        Err(refused(
            "the server wants to see the password itself (caching_sha2_password): use TLS, or trust whoever answers with \
             get_server_public_key=true",
        ))
    }

    /// The password, encrypted with that key.
    pub(crate) fn encrypted(&self, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, ConnectError> {
        let mut password = self.told_password();
        for (byte, over) in password.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= over;
        }
        // The library panics at a key that is none.
        let encrypted = catch_unwind(|| crypto::encrypt(&password, key));
        encrypted.map_err(|_| refused("the server's key cannot be used"))
    }
}

pub(crate) fn refused(why: &str) -> ConnectError {
    ConnectError::Authentication(why.to_owned())
}
