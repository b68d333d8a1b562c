//! Gate: who decides who may enter, and what an applicant is to show.
//!
//! Promises: of the two gates that stand here, [`Trust`] lets everyone in, and [`Users`] whoever proves the password of one of them. A name
//! that is nobody's is indistinguishable from a wrong password: the same messages, a salt that stays the same, the same error at the end.
//!
//! Does not know: how a password is proven.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;

use pgwire::api::auth::sasl::scram::gen_salted_password;

use super::error::WireError;
use super::tls::Certificate;
use super::verifier::{ITERATIONS, StoredPassword, Verifier};

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A Unix socket of this machine.
    Socket,
    /// An address.
    Address(IpAddr),
}

impl Origin {
    /// Whether it is this machine: nobody else has seen what the client sends.
    pub fn is_here(self) -> bool {
        match self {
            Self::Socket => true,
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// Whether a session is for statements, or for what a standby or a subscriber asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replication {
    /// Statements.
    #[default]
    No,
    /// The write-ahead log of the whole server; it is at no database.
    Physical,
    /// What is decoded from the log of one database, and statements.
    Logical,
}

impl Replication {
    /// The parameter that asks a server for it, and its value.
    pub fn parameter(self) -> Option<(String, String)> {
        let value = match self {
            Self::No => return None,
            Self::Physical => "true",
            Self::Logical => "database",
        };
        Some(("replication".to_owned(), value.to_owned()))
    }
}

/// Who wants to enter.
#[derive(Debug, Clone, Copy)]
pub struct Applicant<'a> {
    /// The name it gives.
    pub user: &'a str,
    /// The database it wants to.
    pub database: &'a str,
    /// What of it it wants.
    pub replication: Replication,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether what it sends is encrypted.
    pub is_over_tls: bool,
    /// The certificate that it has shown and that was verified.
    pub certificate: Option<&'a Certificate>,
}

/// What an applicant is to show.
#[derive(Debug)]
pub enum Demand {
    /// Nothing: it is let in.
    Nothing,
    /// The password, which [`Gate::check`] is given.
    Password,
    /// That it knows the password that this is of.
    Proof(StoredPassword),
}

/// What a gate answers, some time.
pub type Verdict<'a, T> = Pin<Box<dyn Future<Output = Result<T, WireError>> + Send + 'a>>;

/// Who decides who may enter.
pub trait Gate: fmt::Debug + Send + Sync {
    /// What the applicant is to show; an error: it is not let in, whatever it shows.
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand>;

    /// Whether this is the applicant's password. Asked only where the gate has demanded it.
    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()>;

    /// What was demanded was not proven: what is known by now, where it was said from memory and may have changed since. Asked before the
    /// applicant is refused.
    fn disproved<'a>(&'a self, _applicant: Applicant<'a>) -> Verdict<'a, Option<StoredPassword>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Lets everyone in, under the name that they give.
#[derive(Debug)]
pub struct Trust;

impl Gate for Trust {
    fn demand<'a>(&'a self, _applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        Box::pin(std::future::ready(Ok(Demand::Nothing)))
    }

    fn check<'a>(&'a self, _applicant: Applicant<'a>, _password: &'a str) -> Verdict<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Lets in whoever proves the password of one of these.
#[derive(Debug)]
pub struct Users {
    known: HashMap<String, StoredPassword>,
    decoy: Decoy,
}

impl Users {
    /// Names that are nobody's are answered as the first of these would be.
    pub fn new(users: impl IntoIterator<Item = (String, StoredPassword)>) -> Self {
        let users: Vec<(String, StoredPassword)> = users.into_iter().collect();
        let first = users.iter().find_map(|(_, stored)| match stored {
            StoredPassword::Scram(verifier) => Some(verifier),
            StoredPassword::Md5(_) => None,
        });
        Self {
            decoy: Decoy::like(first),
            known: users.into_iter().collect(),
        }
    }
}

impl Gate for Users {
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        let stored = self.known.get(applicant.user).cloned();
        let stored = stored.unwrap_or_else(|| self.decoy.for_user(applicant.user));
        Box::pin(std::future::ready(Ok(Demand::Proof(stored))))
    }

    fn check<'a>(&'a self, _applicant: Applicant<'a>, _password: &'a str) -> Verdict<'a, ()> {
        Box::pin(std::future::ready(Err(WireError::protocol(
            "no password was asked for in clear",
        ))))
    }
}

/// What names are answered with that are nobody's: keys that no password has, under a salt that stays the same for each name.
#[derive(Debug)]
pub struct Decoy {
    /// What the salts are made from. Secret, and the same after a restart: a salt that changed would give itself away.
    key: Vec<u8>,
    iterations: u32,
}

impl Decoy {
    /// As the owner of this would be answered; the salts stay the same while it does.
    fn like(verifier: Option<&Verifier>) -> Self {
        match verifier {
            Some(verifier) => Self {
                key: verifier.server_key.clone(),
                iterations: verifier.iterations,
            },
            None => Self::of(&rand::random::<[u8; 32]>()),
        }
    }

    /// Whose salts stay the same while this secret does.
    pub fn of(secret: &[u8]) -> Self {
        Self {
            key: secret.to_vec(),
            iterations: ITERATIONS,
        }
    }

    /// What nobody can prove.
    pub fn for_user(&self, user: &str) -> StoredPassword {
        let [stored_key, server_key] = [rand::random::<[u8; 32]>().to_vec(), rand::random::<[u8; 32]>().to_vec()];
        StoredPassword::Scram(Verifier {
            iterations: self.iterations,
            salt: gen_salted_password(user, &self.key, 1)[..16].to_vec(),
            stored_key,
            server_key,
        })
    }
}
