//! What a server keeps of a password: enough to check a proof (RFC 5802), and of no use to whoever steals it.
//!
//! Promises: the same verifier that PostgreSQL computes, in the text that PostgreSQL keeps. Does not know where it is kept.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::{ScramSecret, gen_salted_password};

/// What PostgreSQL uses.
pub const ITERATIONS: u32 = 4096;

/// More would let one line of the file stall each client of that user for minutes.
const ITERATIONS_MAX: u32 = 10_000_000;

const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// What proves a user's password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// How often the password is hashed.
    pub iterations: u32,
    /// What it is hashed with.
    pub salt: Vec<u8>,
    /// What the client's proof is checked against.
    pub stored_key: Vec<u8>,
    /// What the server proves itself by.
    pub server_key: Vec<u8>,
}

impl Verifier {
    /// For a password, with a new random salt.
    pub fn from_password(password: &str) -> Self {
        let salt = rand::random::<[u8; SALT_BYTES]>().to_vec();
        Self::with_salt(password, salt, ITERATIONS)
    }

    fn with_salt(password: &str, salt: Vec<u8>, iterations: u32) -> Self {
        let salted = gen_salted_password(password, &salt, iterations as usize);
        match ScramSecret::verifier_from_salted_password(salt, salted, iterations as usize) {
            ScramSecret::Verifier {
                salt,
                stored_key,
                server_key,
                ..
            } => Self {
                iterations,
                salt,
                stored_key,
                server_key,
            },
            ScramSecret::SaltedPassword { .. } => {
                unreachable!("verifier_from_salted_password returns a verifier")
            }
        }
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        write!(formatter, "SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// Key material stays out of logs.
impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Verifier")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

impl FromStr for Verifier {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "expected SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey";
        let rest = text.strip_prefix("SCRAM-SHA-256$").ok_or(SHAPE)?;
        let (head, keys) = rest.split_once('$').ok_or(SHAPE)?;
        let (iterations, salt) = head.split_once(':').ok_or(SHAPE)?;
        let (stored_key, server_key) = keys.split_once(':').ok_or(SHAPE)?;
        let iterations = iterations
            .parse()
            .ok()
            .filter(|iterations| (1..=ITERATIONS_MAX).contains(iterations));
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| "salt and keys must be base64");
        let verifier = Self {
            iterations: iterations.ok_or("iterations must be a number from 1 to 10000000")?,
            salt: decode(salt)?,
            stored_key: decode(stored_key)?,
            server_key: decode(server_key)?,
        };
        if verifier.salt.is_empty() || verifier.stored_key.len() != KEY_BYTES || verifier.server_key.len() != KEY_BYTES
        {
            return Err("the salt must not be empty and each key must have 32 bytes");
        }
        Ok(verifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_the_one_postgresql_computes() {
        // RFC 7677's example: user "user", password "pencil".
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", salt, 4096);
        let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(verifier.to_string(), text);
        assert_eq!(text.parse::<Verifier>().unwrap(), verifier);
        assert!(!format!("{verifier:?}").contains("WG5d"), "no key material in Debug");
    }

    #[test]
    fn two_verifiers_of_a_password_have_different_salts() {
        assert_ne!(Verifier::from_password("x").salt, Verifier::from_password("x").salt);
    }
}
