//! SCRAM-SHA-256 by keys instead of a password, the client's side (RFC 5802, RFC 7677).
//!
//! Promises: nothing is proven to a server whose nonce does not begin with ours; a server that does not know the keys is told from one that
//! does. Knows no connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rand::RngCore;
use sha2::{Digest, Sha256};

use crate::secret::ScramKeys;

/// What binds the proof to a channel: the header that says how, and the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) header: &'static str,
    pub(crate) data: Vec<u8>,
}

/// An exchange, from the first message on.
#[derive(Debug)]
pub(crate) struct Exchange {
    keys: ScramKeys,
    binding: Binding,
    nonce: String,
}

/// An exchange whose proof was sent.
#[derive(Debug)]
pub(crate) struct Proven {
    signature: Vec<u8>,
}

impl Exchange {
    pub(crate) fn new(keys: ScramKeys, binding: Binding) -> Self {
        let mut random = [0; 18];
        rand::rng().fill_bytes(&mut random);
        Self {
            keys,
            binding,
            nonce: STANDARD.encode(random),
        }
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// The client's first message.
    pub(crate) fn first(&self) -> String {
        format!("{}{}", self.binding.header, self.first_bare())
    }

    /// The client's last message, for the server's first.
    pub(crate) fn prove(self, server_first: &[u8]) -> Result<(String, Proven), String> {
        let malformed = || "the server's first message is malformed".to_owned();
        let server_first = std::str::from_utf8(server_first).map_err(|_| malformed())?;
        let nonce = attribute(server_first, "r=").ok_or_else(malformed)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's nonce is not made from ours".to_owned());
        }
        let bound = [self.binding.header.as_bytes(), &self.binding.data].concat();
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(bound));
        let exchanged = format!("{},{server_first},{without_proof}", self.first_bare());
        let stored_key = Sha256::digest(self.keys.client_key);
        let signature = keyed_hash(&stored_key, exchanged.as_bytes());
        let proof: Vec<u8> = self
            .keys
            .client_key
            .iter()
            .zip(&signature)
            .map(|(a, b)| a ^ b)
            .collect();
        let proven = Proven {
            signature: keyed_hash(&self.keys.server_key, exchanged.as_bytes()),
        };
        Ok((format!("{without_proof},p={}", STANDARD.encode(proof)), proven))
    }
}

impl Proven {
    /// Whether the server has proven, too, that it knows the keys.
    pub(crate) fn finish(self, server_final: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(server_final);
        if let Some(error) = attribute(&text, "e=") {
            return Err(error.to_owned());
        }
        let signature = attribute(&text, "v=").and_then(|encoded| STANDARD.decode(encoded).ok());
        match signature {
            Some(signature) if signature == self.signature => Ok(()),
            _ => Err("the server does not know the password".to_owned()),
        }
    }
}

/// The salt and how often it is hashed with it, as the server's first message has it.
pub(crate) fn salt_and_iterations(server_first: &[u8]) -> Option<(Vec<u8>, u32)> {
    let text = std::str::from_utf8(server_first).ok()?;
    let salt = STANDARD.decode(attribute(text, "s=")?).ok()?;
    Some((salt, attribute(text, "i=")?.parse().ok()?))
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name))
}

fn keyed_hash(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_OF_SERVER: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    /// RFC 7677's example: user "user", password "pencil"; here with the name that PostgreSQL ignores.
    fn exchange() -> Exchange {
        let key = |text: &str| STANDARD.decode(text).unwrap().try_into().unwrap();
        Exchange {
            keys: ScramKeys {
                client_key: key("pg/JI9Z+hkSpLRa5btpe9GVrDHJcSEN0viVTVXaZbos="),
                server_key: key("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="),
            },
            binding: Binding {
                header: "n,,",
                data: Vec::new(),
            },
            nonce: "rOprNGfwEbeRWgbNEkqO".to_owned(),
        }
    }

    #[test]
    fn keys_prove_what_the_password_does() {
        let exchange = exchange();
        assert_eq!(exchange.first(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        // The proof is over the messages, in which the user's name stands here as nothing.
        let (last, proven) = exchange.prove(FIRST_OF_SERVER.as_bytes()).unwrap();
        assert!(last.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="));
        let signature = STANDARD.encode(&proven.signature);
        assert_eq!(proven.finish(format!("v={signature}").as_bytes()), Ok(()));
    }

    #[test]
    fn a_server_that_does_not_know_the_keys_is_told() {
        for last in ["v=AAAA", "e=invalid-proof", "", "x"] {
            let (_, proven) = exchange().prove(FIRST_OF_SERVER.as_bytes()).unwrap();
            assert!(proven.finish(last.as_bytes()).is_err(), "{last}");
        }
        for first in ["r=else,s=AA==,i=1", "r=rOprNGfwEbeRWgbNEkqO,s=AA==,i=1", "s=AA==", ""] {
            assert!(exchange().prove(first.as_bytes()).is_err(), "{first}");
        }
    }

    #[test]
    fn salt_and_iterations_are_told() {
        let (salt, iterations) = salt_and_iterations(FIRST_OF_SERVER.as_bytes()).unwrap();
        assert_eq!((salt.len(), iterations), (16, 4096));
        assert_eq!(salt_and_iterations(b"r=x,s=AA=="), None);
    }
}
