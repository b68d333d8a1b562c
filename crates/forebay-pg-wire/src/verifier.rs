//! What a server keeps of a password: enough to check a proof (RFC 5802), and of no use to whoever steals it.
//!
//! Promises: the same verifier that PostgreSQL computes, in the text that PostgreSQL keeps. The hash of md5 that older servers kept is taken
//! where it is there, and none is made. Does not know where they are kept.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use pgwire::api::auth::sasl::scram::{ScramSecret, gen_salted_password};
use sha2::{Digest, Sha256};

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

/// What a server has of a user's password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredPassword {
    /// What SCRAM-SHA-256 is checked against.
    Scram(Verifier),
    /// A hash of password and name: who has it may be the client.
    Md5(Md5Hash),
}

impl FromStr for StoredPassword {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("md5") {
            Some(hash) => hash.parse().map(Self::Md5),
            None => text.parse().map(Self::Scram),
        }
    }
}

impl fmt::Display for StoredPassword {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scram(verifier) => verifier.fmt(formatter),
            Self::Md5(hash) => write!(formatter, "md5{}", hash.0),
        }
    }
}

/// The md5 of a password with its user's name behind it, in 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Md5Hash(String);

impl Md5Hash {
    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a client answers that has this password, and was given this salt.
    pub(crate) fn response(&self, salt: [u8; 4]) -> String {
        let mut hasher = Md5::new();
        hasher.update(&self.0);
        hasher.update(salt);
        let digits: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("md5{digits}")
    }
}

impl FromStr for Md5Hash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hash = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash
            .then(|| Self(text.to_owned()))
            .ok_or("expected md5 and 32 hexadecimal digits in lower case")
    }
}

/// Key material stays out of logs.
impl fmt::Debug for Md5Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Md5Hash(_)")
    }
}

/// What a client has shown, and by which another may be convinced that it is the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// By SCRAM-SHA-256.
    Scram(ClientKeys),
    /// By md5.
    Md5(Md5Hash),
}

/// The keys that a password, a salt and a number of iterations make: with them one may be the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClientKeys {
    /// What the client proves itself with.
    pub client_key: [u8; KEY_BYTES],
    /// What the server proves itself with.
    pub server_key: [u8; KEY_BYTES],
}

impl ClientKeys {
    /// Those of a password. None if nobody would hash so often.
    pub fn from_password(password: &str, salt: &[u8], iterations: u32) -> Option<Self> {
        if !(1..=ITERATIONS_MAX).contains(&iterations) {
            return None;
        }
        let salted = gen_salted_password(password, salt, iterations as usize);
        Some(Self {
            client_key: keyed_hash(&salted, b"Client Key"),
            server_key: keyed_hash(&salted, b"Server Key"),
        })
    }

    /// What a server keeps of them.
    pub fn verifier(&self, salt: Vec<u8>, iterations: u32) -> Verifier {
        Verifier {
            iterations,
            salt,
            stored_key: Sha256::digest(self.client_key).to_vec(),
            server_key: self.server_key.to_vec(),
        }
    }
}

/// Key material stays out of logs.
impl fmt::Debug for ClientKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClientKeys(_)")
    }
}

impl Verifier {
    /// The keys that a client has shown that it has: the messages of an exchange that has succeeded tell them to who has the verifier.
    pub(crate) fn keys_of(&self, client_first: &[u8], server_first: &[u8], client_final: &[u8]) -> Option<ClientKeys> {
        let mut parts = client_first.splitn(3, |byte| *byte == b',');
        let bare = parts.nth(2)?;
        let proof_at = client_final.windows(3).rposition(|part| part == b",p=")?;
        let proof = STANDARD.decode(&client_final[proof_at + 3..]).ok()?;
        let exchanged = [bare, b",", server_first, b",", &client_final[..proof_at]].concat();
        let signature = keyed_hash(&self.stored_key, &exchanged);
        let client_key: [u8; KEY_BYTES] = proof
            .iter()
            .zip(signature)
            .map(|(proof, signature)| proof ^ signature)
            .collect::<Vec<u8>>()
            .try_into()
            .ok()?;
        let server_key = self.server_key.as_slice().try_into().ok()?;
        (Sha256::digest(client_key)[..] == self.stored_key).then_some(ClientKeys { client_key, server_key })
    }
}

fn keyed_hash(key: &[u8], message: &[u8]) -> [u8; KEY_BYTES] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
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
        const SHAPE: &str = "expected SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey, or md5 and its hash";
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
    fn keys_and_verifier_of_a_password_belong_together() {
        let verifier = Verifier::from_password("pencil");
        let keys = ClientKeys::from_password("pencil", &verifier.salt, verifier.iterations).unwrap();
        assert_eq!(keys.verifier(verifier.salt.clone(), verifier.iterations), verifier);
        assert!(ClientKeys::from_password("pencil", b"salt", 0).is_none());
    }

    #[test]
    fn a_hash_of_md5_is_answered_for_as_clients_do() {
        let stored: StoredPassword = "md5f9b6b2cd1fa8cdd10a6f8a4b9d6c5a3e".parse().unwrap();
        let StoredPassword::Md5(hash) = &stored else {
            panic!("it is one of md5")
        };
        // SELECT 'md5' || md5('f9b6b2cd1fa8cdd10a6f8a4b9d6c5a3e' || '1234')
        assert_eq!(hash.response(*b"1234"), "md591be9f9c7cfb0371b88adbab9fc062b8");
        assert_eq!(stored.to_string(), "md5f9b6b2cd1fa8cdd10a6f8a4b9d6c5a3e");
        assert!(!format!("{stored:?}").contains("f9b6"), "no key material in Debug");
        for wrong in [
            "md5",
            "md5F9B6B2CD1FA8CDD10A6F8A4B9D6C5A3E",
            "md5f9b6",
            "f9b6b2cd1fa8cdd10a6f8a4b9d6c5a3e",
        ] {
            assert!(wrong.parse::<StoredPassword>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_verifiers_of_a_password_have_different_salts() {
        assert_ne!(Verifier::from_password("x").salt, Verifier::from_password("x").salt);
    }
}
