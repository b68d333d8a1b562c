//! Gate: who is let in, as the database behind says.
//!
//! Promises: nobody is let in whom the database would not let in. Where it asks for a password, so is the client, and the database is
//! asked about what it says; where it trusts whoever comes from this machine, clients from this machine are trusted, and no others.
//! Where the way to the database proves more than any client has shown (a password, a certificate, a socket's peer), a client must prove the
//! password, or is trusted only if that was said: [`UpstreamOptions::trusts_loopback`](crate::UpstreamOptions::trusts_loopback).

use std::num::NonZero;
use std::sync::LazyLock;

use forebay_pg_link::ConnectError;
use forebay_pg_link::config::Endpoint;
use forebay_pg_wire::error::{WireError, sqlstate};
use forebay_pg_wire::gate::{Applicant, Demand, Gate, Replication, Verdict};
use forebay_pg_wire::verifier::StoredPassword;
use tokio::sync::Semaphore;

use crate::credentials::Known;
use crate::end::as_said;
use crate::lookup::LookupError;
use crate::reach::is_loss;
use crate::upstream::{Upstream, UpstreamSettings};

impl Gate for Upstream {
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand> {
        Box::pin(async move {
            let settings = self.settings();
            let is_trusted_here = settings.options.trusts_loopback && applicant.origin.is_here();
            if let Some(verifier) = settings.own_verifier(applicant.user) {
                return Ok(match is_trusted_here {
                    true => Demand::Nothing,
                    false => Demand::Proof(StoredPassword::Scram(verifier.clone())),
                });
            }
            if is_trusted_here && settings.options.is_service {
                return Ok(Demand::Nothing);
            }
            if let Some(lookup) = &settings.lookup {
                return match lookup.of(applicant.user).await {
                    Ok(stored) => Ok(Demand::Proof(stored)),
                    Err(error) => Err(self.unasked(error, applicant.user)),
                };
            }
            // Who comes for the log is asked about each time: what the server says of others is not said of it.
            let is_session = applicant.replication == Replication::No;
            let known = self.credentials.known(applicant.user, applicant.database);
            let known = match known.filter(|_| is_session) {
                Some(known) => known,
                None => match self.connect_as(applicant, None).await {
                    Ok(_) => Known::Trusted,
                    Err(ConnectError::NoPassword) => return Ok(Demand::Password),
                    Err(error) => return Err(wire_error(&error)),
                },
            };
            match known {
                Known::Trusted if is_trusted_here || (applicant.origin.is_here() && !settings.proves_itself(applicant.user)) => {
                    if is_session {
                        self.credentials.learn(applicant.user, applicant.database, Known::Trusted);
                    }
                    Ok(Demand::Nothing)
                }
                Known::Trusted => Err(WireError::new(
                    sqlstate::INVALID_AUTHORIZATION,
                    format!(
                        "the database lets this proxy in as user \"{}\" without a password, which is no proof of yours",
                        applicant.user
                    ),
                )
                .with_hint(
                    "Give the proxy users of its own (--users), have the database ask for a password, or, for clients on the proxy's own \
                     machine, start it with --trust-loopback.",
                )),
                Known::Scram(..) | Known::Md5(_) => Ok(Demand::Password),
            }
        })
    }

    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()> {
        Box::pin(async move {
            let (user, database) = (applicant.user, applicant.database);
            let is_session = applicant.replication == Replication::No;
            if let Some(known) = self.credentials.known(user, database).filter(|_| is_session) {
                let (user, password) = (user.to_owned(), password.to_owned());
                let is_proven = computing(move || known.is_proven_by(&user, &password)).await;
                if is_proven {
                    return Ok(());
                }
                // It may be a new one.
            }
            let challenge = match self.connect_as(applicant, Some(password)).await {
                Ok(challenge) => challenge,
                Err(error) => return Err(wire_error(&error)),
            };
            let learnt = {
                let (user, password) = (user.to_owned(), password.to_owned());
                computing(move || Known::learn(&user, &password, &challenge)).await
            };
            match learnt {
                Some(known) if is_session => {
                    self.credentials.learn(user, database, known);
                    Ok(())
                }
                Some(known) => {
                    self.credentials.prove_as(user, &known);
                    Ok(())
                }
                None => Err(WireError::new(
                    sqlstate::INVALID_AUTHORIZATION,
                    "the database asks for the password in clear, and this proxy keeps none",
                )
                .with_hint(
                    "Have the database ask by scram-sha-256, or name user and password in the proxy's --upstream.",
                )),
            }
        })
    }

    fn disproved<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Option<StoredPassword>> {
        Box::pin(async move {
            match &self.settings().lookup {
                Some(lookup) => lookup
                    .again(applicant.user)
                    .await
                    .map_err(|error| self.unasked(error, applicant.user)),
                None => Ok(None),
            }
        })
    }
}

impl Upstream {
    /// Nobody is let in of whom nothing is known.
    fn unasked(&self, error: LookupError, user: &str) -> WireError {
        match error {
            // It is logged once for all.
            LookupError::Connect(error) if is_loss(&error) => self.connected::<()>(&Err(error)),
            error => tracing::error!(%error, user, "what is stored of a user's password could not be asked"),
        }
        WireError::fatal("08006", "the database could not be asked about this user")
    }
}

impl UpstreamSettings {
    /// Whether the way to the database proves something that no client has shown.
    fn proves_itself(&self, user: &str) -> bool {
        let config = &self.options.config;
        let by_socket = config
            .hosts
            .iter()
            .any(|host| matches!(host.endpoint, Endpoint::Unix(_)));
        by_socket || self.has_certificate(user) || self.options.is_service
    }
}

/// What takes milliseconds of a processor, beside what others wait for, and no more of it at a time than there are processors.
async fn computing<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    static TURNS: LazyLock<Semaphore> =
        LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, NonZero::get)));
    let _turn = TURNS.acquire().await.expect("it is never closed");
    match tokio::task::spawn_blocking(compute).await {
        Ok(computed) => computed,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// As the server itself said it, or that it said nothing.
pub(crate) fn wire_error(error: &ConnectError) -> WireError {
    match error {
        ConnectError::Server(said) => as_said(said),
        ConnectError::Authentication(why) => WireError::fatal(sqlstate::INVALID_AUTHORIZATION, why.clone()),
        error => WireError::fatal("08006", format!("the database cannot be reached: {error}")),
    }
}
