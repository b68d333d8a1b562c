//! Parse: a config from a URL, or from `key=value` pairs.
//!
//! Promises: what PostgreSQL's own client library understands of either is understood here and means the same, or is refused by its
//! name; nothing is ignored in silence but what says how Kerberos is spoken, which is not spoken at all. No refusal repeats anything
//! of a password.
//!
//! The keys are those of PostgreSQL's documentation, "Database Connection Control Functions".

mod keywords;
mod setting;
#[cfg(test)]
mod tests;
mod url;

use std::str::FromStr;

use crate::config::{Config, InvalidConfig};

impl FromStr for Config {
    type Err = InvalidConfig;

    /// Of a URL, as `postgresql://user:password@host:5432/database?sslmode=verify-full`, or of pairs, as
    /// `host=/run/postgresql user=app dbname=app`.
    fn from_str(text: &str) -> Result<Self, InvalidConfig> {
        let pairs = match url::rest(text) {
            Some(rest) => url::pairs(rest)?,
            None if url::is_another(text) => {
                let why = "only postgresql:// is spoken (or postgres://, which is the same)";
                return Err(InvalidConfig(why.to_owned()));
            }
            None => keywords::pairs(text)?,
        };
        setting::config(pairs)
    }
}
