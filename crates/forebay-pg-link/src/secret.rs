//! Secret: what a user can prove himself with who has told his password elsewhere.
//!
//! Promises: of no secret can the password be computed, but by guessing; no message and no log shows one. Knows no connection.

use std::fmt;

use md5::{Digest, Md5};

/// What stands for a password.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// For a server that asks for SCRAM-SHA-256, for as long as it has the same verifier.
    Scram(ScramKeys),
    /// For a server that asks for md5: what it keeps itself.
    Md5 {
        /// The hash of password and user, in 32 hexadecimal digits.
        hash: String,
    },
}

/// The keys that SCRAM makes of a password, a salt and a number of iterations (RFC 5802).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ScramKeys {
    /// What the client proves itself with.
    pub client_key: [u8; 32],
    /// What the server proves itself with.
    pub server_key: [u8; 32],
}

impl Secret {
    /// What a server keeps of a user's password that asks for md5.
    pub fn md5(user: &str, password: &str) -> Self {
        let mut hasher = Md5::new();
        hasher.update(password);
        hasher.update(user);
        Self::Md5 {
            hash: hexadecimal(&hasher.finalize()),
        }
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Scram(_) => "Scram(_)",
            Self::Md5 { .. } => "Md5(_)",
        })
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScramKeys(_)")
    }
}

/// How a server asked who the user is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Challenge {
    /// Not at all.
    #[default]
    None,
    /// For the password in clear.
    Password,
    /// For a hash of it.
    Md5,
    /// By SCRAM-SHA-256.
    Scram {
        /// What the keys are made with.
        salt: Vec<u8>,
        /// How often.
        iterations: u32,
    },
}
