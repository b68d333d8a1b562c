//! Users of the databases behind, as the file says of single ones: `[[user]]` as often as there are some.
//!
//! Promises: a certificate comes with its key; nobody is named twice. Does not know who may log in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use forebay_proxy::UserOptions;
use serde::Deserialize;

use super::error::{OptionsError, value_in};

/// At a time there are no more clients than this, of anybody.
const CLIENTS_MAX: usize = 1_000_000;

/// What is said of one user. What is not said is as for all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSettings {
    /// As it is called at the databases.
    pub name: String,
    /// Its clients at a time, of all databases together.
    pub max_client_connections: Option<usize>,
    /// Whether what its clients ask at the same time travels together, whatever `sharing` of the database says.
    pub sharing: Option<bool>,
    /// What proves it to the databases: a certificate chain, in PEM.
    pub sslcert: Option<PathBuf>,
    /// Its key, in PEM.
    pub sslkey: Option<PathBuf>,
}

/// By their names.
pub(super) fn by_name(all: &[UserSettings]) -> Result<BTreeMap<String, UserOptions>, OptionsError> {
    let mut users = BTreeMap::new();
    for settings in all {
        let wrong = |option, why: &str| value_in("user", &settings.name, option, why);
        if settings.name.is_empty() {
            return Err(wrong("name", "must not be empty"));
        }
        let certificate = match (&settings.sslcert, &settings.sslkey) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("sslcert", "needs sslkey")),
            (None, Some(_)) => return Err(wrong("sslkey", "needs sslcert")),
        };
        if let Some(why) = settings.max_client_connections.and_then(out_of_range) {
            return Err(wrong("max_client_connections", &why));
        }
        let options = UserOptions {
            certificate,
            max_clients: settings.max_client_connections,
            shares: settings.sharing,
        };
        if users.insert(settings.name.clone(), options).is_some() {
            return Err(wrong("name", "is given twice"));
        }
    }
    Ok(users)
}

/// Why there cannot be so many clients.
pub(super) fn out_of_range(count: usize) -> Option<String> {
    (!(1..=CLIENTS_MAX).contains(&count)).then(|| format!("{count} is not from 1 to {CLIENTS_MAX}"))
}
