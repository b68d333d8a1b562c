//! Credentials: what is known of the users of the database behind.
//!
//! Promises: no password is kept, only what the database asks of it: keys of SCRAM, or the hash of md5. What was learnt is trusted for
//! [`TRUSTED_FOR`] and then asked again, so that a password that was changed or taken away is not taken for long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use forebay_pg_link::secret::{Challenge, ScramKeys, Secret};
use forebay_pg_wire::verifier::{ClientKeys, Proof, Verifier};
use parking_lot::Mutex;

/// How long the database is not asked again.
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(60);

/// So many users are known at once; those that were learnt longest ago are forgotten.
const KNOWN_MAX: usize = 100_000;

/// What the database wants to see of a user.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// Nothing.
    Trusted,
    /// A password by SCRAM-SHA-256.
    Scram(Verifier, ScramKeys),
    /// A password by md5.
    Md5(Secret),
}

impl Known {
    /// What a login by this password has shown. None if nothing can be kept of it that would do for another.
    ///
    /// Takes milliseconds: SCRAM is made to.
    pub(crate) fn learn(user: &str, password: &str, challenge: &Challenge) -> Option<Self> {
        match challenge {
            Challenge::None => Some(Self::Trusted),
            Challenge::Password => None,
            Challenge::Md5 => Some(Self::Md5(Secret::md5(user, password))),
            Challenge::Scram { salt, iterations } => {
                let keys = ClientKeys::from_password(password, salt, *iterations)?;
                Some(Self::Scram(keys.verifier(salt.clone(), *iterations), of_link(keys)))
            }
        }
    }

    /// Whether this is the user's password. Takes as long as [`learn`](Self::learn).
    pub(crate) fn is_proven_by(&self, user: &str, password: &str) -> bool {
        match self {
            Self::Trusted => true,
            Self::Scram(verifier, _) => ClientKeys::from_password(password, &verifier.salt, verifier.iterations)
                .is_some_and(|keys| keys.verifier(verifier.salt.clone(), verifier.iterations) == *verifier),
            Self::Md5(secret) => Secret::md5(user, password) == *secret,
        }
    }

    fn secret(&self) -> Option<Secret> {
        match self {
            Self::Trusted => None,
            Self::Scram(_, keys) => Some(Secret::Scram(*keys)),
            Self::Md5(secret) => Some(secret.clone()),
        }
    }
}

/// The same keys, as a link takes them.
fn of_link(keys: ClientKeys) -> ScramKeys {
    ScramKeys {
        client_key: keys.client_key,
        server_key: keys.server_key,
    }
}

/// The same, as a link takes it.
pub(crate) fn secret_of(proof: &Proof) -> Secret {
    match proof {
        Proof::Scram(keys) => Secret::Scram(of_link(*keys)),
        Proof::Md5(hash) => Secret::Md5 {
            hash: hash.as_str().to_owned(),
        },
    }
}

/// A user and a database.
type Login = (String, String);

/// Who has logged in, to which database, and what proves it.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// And since when. Whom a server asks, and how, may depend on both the user and the database.
    known: Mutex<HashMap<Login, (Known, Instant), foldhash::fast::RandomState>>,
    /// What proves a user on further connections.
    secrets: Mutex<HashMap<String, Secret, foldhash::fast::RandomState>>,
}

impl Credentials {
    /// What the database wants to see, if it was asked of late.
    pub(crate) fn known(&self, user: &str, database: &str) -> Option<Known> {
        let known = self.known.lock();
        let (known, since) = known.get(&(user.to_owned(), database.to_owned()))?;
        (since.elapsed() < TRUSTED_FOR).then(|| known.clone())
    }

    /// The database has let the user in like this.
    pub(crate) fn learn(&self, user: &str, database: &str, known: Known) {
        self.prove_as(user, &known);
        let mut all = self.known.lock();
        if all.len() >= KNOWN_MAX {
            all.retain(|_, (_, since)| since.elapsed() < TRUSTED_FOR);
        }
        if all.len() >= KNOWN_MAX {
            all.clear();
        }
        all.insert((user.to_owned(), database.to_owned()), (known, Instant::now()));
    }

    /// From now on the user is proven by what is known.
    pub(crate) fn prove_as(&self, user: &str, known: &Known) {
        if let Some(secret) = known.secret() {
            self.prove_by(user, secret);
        }
    }

    /// From now on the user is proven by this.
    pub(crate) fn prove_by(&self, user: &str, secret: Secret) {
        self.secrets.lock().insert(user.to_owned(), secret);
    }

    /// What proves the user.
    pub(crate) fn secret(&self, user: &str) -> Option<Secret> {
        self.secrets.lock().get(user).cloned()
    }

    /// The database does not let the user in any more by what is known.
    pub(crate) fn forget(&self, user: &str) {
        self.known.lock().retain(|(known, _), _| known != user);
        self.secrets.lock().remove(user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_of_a_password_knows_it_again_and_no_other() {
        let scram = Challenge::Scram {
            salt: b"0123456789abcdef".to_vec(),
            iterations: 4096,
        };
        for challenge in [scram, Challenge::Md5] {
            let known = Known::learn("anna", "secret", &challenge).unwrap();
            assert!(known.is_proven_by("anna", "secret"));
            assert!(!known.is_proven_by("anna", "other"));
            assert!(!format!("{known:?}").contains("secret"));
        }
        assert!(Known::learn("anna", "secret", &Challenge::Password).is_none());
    }

    #[test]
    fn who_is_forgotten_is_asked_again() {
        let credentials = Credentials::default();
        let known = Known::learn("anna", "secret", &Challenge::Md5).unwrap();
        credentials.learn("anna", "shop", known);
        assert!(credentials.known("anna", "shop").is_some() && credentials.secret("anna").is_some());
        assert!(credentials.known("anna", "other").is_none() && credentials.known("bert", "shop").is_none());
        credentials.forget("anna");
        assert!(credentials.known("anna", "shop").is_none() && credentials.secret("anna").is_none());
    }
}
