//! Access: rules that say who may enter from where, in the format of PostgreSQL's `pg_hba.conf`.
//!
//! Promises: the first rule that meets an applicant decides; whom none meets is refused. A rule asks for what it says or lets nobody in: what
//! PostgreSQL knows and this does not (groups, names of hosts, other methods) is an error that names the line, never passed over.
//!
//! Inside: `rules` reads the file, and says which rule meets whom.

mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_pg_wire::error::{WireError, sqlstate};
use forebay_pg_wire::gate::{Applicant, Demand, Gate, Origin, Verdict};
use forebay_pg_wire::verifier::StoredPassword;

use rules::{Certified, Method};
pub use rules::{Rules, RulesError};

/// Lets in as rules say; whoever must prove a password is led to the gate that knows passwords.
#[derive(Debug)]
pub(crate) struct Access {
    rules: Rules,
    passwords: Arc<dyn Gate>,
}

impl Access {
    pub(crate) fn new(rules: Rules, passwords: Arc<dyn Gate>) -> Self {
        Self { rules, passwords }
    }

    fn decide(&self, applicant: Applicant<'_>) -> Result<Method, WireError> {
        let Some(rule) = self.rules.of(applicant) else {
            return Err(refused("no pg_hba.conf entry", applicant));
        };
        match (rule.certified, applicant.certificate) {
            (Certified::No, _) | (Certified::ByAnyone, Some(_)) => {}
            (_, None) => {
                let message = "connection requires a valid client certificate";
                return Err(WireError::new(sqlstate::INVALID_AUTHORIZATION, message));
            }
            (Certified::AsTheUser, Some(certificate)) => {
                if certificate.common_name.as_deref() != Some(applicant.user) {
                    return Err(WireError::new(
                        sqlstate::INVALID_AUTHORIZATION,
                        format!("certificate authentication failed for user \"{}\"", applicant.user),
                    ));
                }
            }
        }
        match rule.method {
            Method::Reject => Err(refused("pg_hba.conf rejects connection", applicant)),
            method => Ok(method),
        }
    }
}

/// In PostgreSQL's words: there are clients that look at them.
fn refused(what: &str, applicant: Applicant<'_>) -> WireError {
    let host = match applicant.origin {
        Origin::Socket => "[local]".to_owned(),
        Origin::Address(address) => address.to_canonical().to_string(),
    };
    let encryption = if applicant.is_over_tls {
        "SSL encryption"
    } else {
        "no encryption"
    };
    WireError::new(
        sqlstate::INVALID_AUTHORIZATION,
        format!(
            "{what} for host \"{host}\", user \"{}\", database \"{}\", {encryption}",
            applicant.user, applicant.database
        ),
    )
}

impl Gate for Access {
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        Box::pin(async move {
            let method = self.decide(applicant)?;
            if method == Method::Trust {
                return Ok(Demand::Nothing);
            }
            match (self.passwords.demand(applicant).await?, method) {
                (Demand::Nothing, _) => Err(WireError::new(
                    sqlstate::INVALID_AUTHORIZATION,
                    "a rule asks for a password, and the database behind asks for none",
                )),
                (Demand::Proof(StoredPassword::Md5(_)), Method::Scram) => Err(WireError::new(
                    sqlstate::INVALID_PASSWORD,
                    format!("password authentication failed for user \"{}\"", applicant.user),
                )),
                (demand, _) => Ok(demand),
            }
        })
    }

    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()> {
        self.passwords.check(applicant, password)
    }

    fn disproved<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Option<StoredPassword>> {
        self.passwords.disproved(applicant)
    }
}
