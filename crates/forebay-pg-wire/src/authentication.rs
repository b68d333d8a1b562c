//! Who the client is: trust when there are no users, SCRAM-SHA-256 when there are, or as somebody else says: a [`Gate`].
//!
//! Promises:
//!
//! - Without a users file everyone is let in under the name they give (the configuration refuses that beyond loopback).
//! - With one, only a client that proves a user's password is let in. A name that is nobody's is indistinguishable from a wrong
//!   password: the same messages, a salt that stays the same, the same error at the end (28P01).
//! - A gate may ask for the password in clear. That goes over TLS or stays on this machine, or is not asked for.
//! - Over TLS the proof can be bound to the server's certificate (SCRAM-SHA-256-PLUS), and a stripped offer is noticed.
//!
//! Does not know: what a user may do, how long all this may take ([`super::startup`] bounds it).

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::api::auth::sasl::scram::{ScramSecret, ScramServerAuth, gen_salted_password};
use pgwire::error::PgWireError;
use pgwire::messages::startup::Authentication;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::backend;
use super::error::{WireError, sqlstate};
use super::frontend::{FrameError, FrameReader, Frontend};
use super::tls::Tls;
use super::verifier::{ClientKeys, ITERATIONS, Verifier};

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Decides who may enter.
#[derive(Debug)]
pub struct Authenticator {
    kind: Kind,
    channels: Channels,
}

#[derive(Debug)]
enum Kind {
    Trust,
    Users(Users),
    Gate(Arc<dyn Gate>),
}

#[derive(Debug)]
struct Users {
    verifiers: HashMap<String, Verifier>,
    /// What the salts of unknown names are made from. Secret, and the same after a restart: a salt that changed would give itself away.
    decoy_key: Vec<u8>,
    decoy_iterations: u32,
}

/// What a proof can be bound to.
#[derive(Debug)]
struct Channels {
    /// Without TLS: no channel to bind to.
    plain: ScramServerAuth,
    /// With TLS: knows the certificate.
    bound: Option<ScramServerAuth>,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From this machine: nobody else has seen what it sends.
    Here,
    /// From anywhere.
    Elsewhere,
}

/// Who wants to enter.
#[derive(Debug, Clone, Copy)]
pub struct Applicant<'a> {
    /// The name it gives.
    pub user: &'a str,
    /// The database it wants to.
    pub database: &'a str,
    /// Where it comes from.
    pub origin: Origin,
}

/// What an applicant is to show.
#[derive(Debug)]
pub enum Demand {
    /// Nothing: it is let in.
    Nothing,
    /// The password, which [`Gate::check`] is given.
    Password,
    /// By SCRAM that it knows the password of this verifier.
    Proof(Verifier),
}

/// What a gate answers, some time.
pub type Verdict<'a, T> = Pin<Box<dyn Future<Output = Result<T, WireError>> + Send + 'a>>;

/// Who decides elsewhere who may enter: the database behind.
pub trait Gate: fmt::Debug + Send + Sync {
    /// What the applicant is to show; an error: it is not let in, whatever it shows.
    fn demand<'a>(&'a self, applicant: Applicant<'a>) -> Verdict<'a, Demand>;

    /// Whether this is the applicant's password.
    fn check<'a>(&'a self, applicant: Applicant<'a>, password: &'a str) -> Verdict<'a, ()>;
}

/// Why nobody was let in.
#[derive(Debug)]
pub(crate) enum Denied {
    /// Tell the client, and close.
    Error(WireError),
    /// The client went away.
    Lost(std::io::Error),
}

impl From<WireError> for Denied {
    fn from(error: WireError) -> Self {
        Self::Error(error)
    }
}

impl From<std::io::Error> for Denied {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(error)
    }
}

impl Authenticator {
    /// Everyone, under any name.
    pub fn trust() -> Self {
        Self {
            kind: Kind::Trust,
            channels: Channels::of(None),
        }
    }

    /// These users, by password. With `tls`, connections over it can bind the proof to its certificate. Names that are nobody's are
    /// answered as the first of them would be, by a salt that stays the same while the first user's password does.
    pub fn scram(users: impl IntoIterator<Item = (String, Verifier)>, tls: Option<&Tls>) -> Self {
        let users: Vec<(String, Verifier)> = users.into_iter().collect();
        let first = users.first().map(|(_, verifier)| verifier);
        let decoy_key = first.map_or_else(
            || rand::random::<[u8; 32]>().to_vec(),
            |verifier| verifier.server_key.clone(),
        );
        let decoy_iterations = first.map_or(ITERATIONS, |verifier| verifier.iterations);
        Self {
            kind: Kind::Users(Users {
                verifiers: users.into_iter().collect(),
                decoy_key,
                decoy_iterations,
            }),
            channels: Channels::of(tls),
        }
    }

    /// Whom `gate` lets in. `tls` as in [`scram`](Self::scram).
    pub fn gate(gate: Arc<dyn Gate>, tls: Option<&Tls>) -> Self {
        Self {
            kind: Kind::Gate(gate),
            channels: Channels::of(tls),
        }
    }

    /// Leads the client through the authentication. `output` may hold what is to be sent before; at the end it holds AuthenticationOk,
    /// not yet sent, so that it travels with the greeting that follows. The keys of a password that was proven by SCRAM.
    pub(crate) async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        frames: &mut FrameReader<S>,
        output: &mut BytesMut,
        applicant: Applicant<'_>,
        over_tls: bool,
    ) -> Result<Option<ClientKeys>, Denied> {
        let keys = match &self.kind {
            Kind::Trust => None,
            Kind::Users(users) => {
                let (verifier, user) = (users.verifier(applicant.user), applicant.user);
                self.channels.prove(frames, output, user, verifier, over_tls).await?
            }
            Kind::Gate(gate) => match gate.demand(applicant).await? {
                Demand::Nothing => None,
                Demand::Proof(verifier) => {
                    let user = applicant.user;
                    self.channels.prove(frames, output, user, verifier, over_tls).await?
                }
                Demand::Password if !over_tls && applicant.origin == Origin::Elsewhere => {
                    let message =
                        "the password of the database's user is asked for over TLS only, or from this machine";
                    return Err(WireError::new(sqlstate::INVALID_AUTHORIZATION, message)
                        .with_hint("Connect with sslmode=require, or better verify-full.")
                        .into());
                }
                Demand::Password => {
                    backend::authentication(output, &Authentication::CleartextPassword)?;
                    let body = response(frames, output).await?;
                    gate.check(applicant, password(&body)?).await?;
                    None
                }
            },
        };
        backend::authentication(output, &Authentication::Ok)?;
        Ok(keys)
    }
}

/// What a PasswordMessage says.
fn password(body: &[u8]) -> Result<&str, WireError> {
    let text = body.strip_suffix(&[0]).unwrap_or(body);
    std::str::from_utf8(text).map_err(|_| WireError::protocol("the password is not UTF-8"))
}

impl Channels {
    fn of(tls: Option<&Tls>) -> Self {
        let plain = ScramServerAuth::new();
        let bound = tls.and_then(|tls| {
            let mut bound = plain.clone();
            // A certificate signed in a way that no binding is defined for (Ed25519): then none is offered, as PostgreSQL does.
            bound.configure_certificate(&tls.certificate_pem).ok().map(|()| bound)
        });
        Self { plain, bound }
    }

    /// Has the client prove that it knows the password of the verifier.
    async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        frames: &mut FrameReader<S>,
        output: &mut BytesMut,
        user: &str,
        verifier: Verifier,
        over_tls: bool,
    ) -> Result<Option<ClientKeys>, Denied> {
        let binding = if over_tls { self.bound.as_ref() } else { None };
        let server = binding.unwrap_or(&self.plain);
        let mut mechanisms = vec![PLAIN.to_owned()];
        if binding.is_some() {
            mechanisms.insert(0, BOUND.to_owned());
        }
        backend::authentication(output, &Authentication::SASL(mechanisms))?;
        let first = client_first(&response(frames, output).await?, binding.is_some())?;
        let secret = ScramSecret::Verifier {
            salt: verifier.salt.clone(),
            iterations: verifier.iterations as usize,
            stored_key: verifier.stored_key.clone(),
            server_key: verifier.server_key.clone(),
        };
        let (challenge, waiting) = server
            .on_client_first_message_with_secret(&first, secret)
            .map_err(|error| denied(user, &error))?;
        let challenge = Bytes::from(challenge);
        backend::authentication(output, &Authentication::SASLContinue(challenge.clone()))?;
        let proof = response(frames, output).await?;
        let signature = waiting
            .on_client_final_message(&proof)
            .map_err(|error| denied(user, &error))?;
        backend::authentication(output, &Authentication::SASLFinal(signature.into()))?;
        Ok(verifier.keys_of(&first, &challenge, &proof))
    }
}

impl Users {
    /// What to check the proof against; for a name that is nobody's, keys that no password has.
    fn verifier(&self, user: &str) -> Verifier {
        self.verifiers.get(user).cloned().unwrap_or_else(|| {
            let salt = gen_salted_password(user, &self.decoy_key, 1)[..16].to_vec();
            let [stored_key, server_key] = [rand::random::<[u8; 32]>().to_vec(), rand::random::<[u8; 32]>().to_vec()];
            Verifier {
                iterations: self.decoy_iterations,
                salt,
                stored_key,
                server_key,
            }
        })
    }
}

/// Sends what is due and reads the client's answer.
async fn response<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut FrameReader<S>,
    output: &mut BytesMut,
) -> Result<Bytes, Denied> {
    let stream = frames.stream_mut();
    stream.write_all_buf(output).await?;
    stream.flush().await?;
    match frames.next().await {
        Ok(Some(Frontend::Password(body))) => Ok(body),
        Ok(Some(Frontend::Terminate) | None) => Err(Denied::Lost(std::io::ErrorKind::UnexpectedEof.into())),
        Ok(Some(_)) => Err(Denied::Error(WireError::protocol("expected a SASL response"))),
        Err(FrameError::Refused { error, .. } | FrameError::Broken(error)) => Err(Denied::Error(error)),
        Err(FrameError::Lost(error)) => Err(Denied::Lost(error)),
    }
}

/// SASLInitialResponse: the mechanism and the client's first message.
fn client_first(body: &Bytes, binding: bool) -> Result<Bytes, WireError> {
    let malformed = || WireError::protocol("malformed SASL initial response");
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
    let mechanism = &body[..end];
    let mut rest = body.slice(end + 1..);
    if rest.len() < 4 || usize::try_from(rest.get_i32()) != Ok(rest.len()) {
        return Err(malformed());
    }
    let wants_binding = rest.starts_with(b"p=");
    match mechanism {
        b"SCRAM-SHA-256" if wants_binding => Err(WireError::protocol(
            "SCRAM-SHA-256 was selected, but the message binds a channel",
        )),
        b"SCRAM-SHA-256" => Ok(rest),
        b"SCRAM-SHA-256-PLUS" if binding && wants_binding => Ok(rest),
        b"SCRAM-SHA-256-PLUS" if binding => Err(WireError::protocol(
            "SCRAM-SHA-256-PLUS was selected, but the message binds no channel",
        )),
        _ => Err(WireError::protocol(
            "the client selected a SASL mechanism that was not offered",
        )),
    }
}

fn denied(user: &str, error: &PgWireError) -> WireError {
    match error {
        PgWireError::InvalidPassword(_) => WireError::new(
            sqlstate::INVALID_PASSWORD,
            format!("password authentication failed for user \"{user}\""),
        ),
        PgWireError::InvalidScramMessage(_) => WireError::protocol("malformed SCRAM message")
            .with_detail("The authentication exchange does not follow RFC 5802."),
        other => WireError::new(
            sqlstate::INVALID_AUTHORIZATION,
            format!("authentication failed: {other}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest of the exchange is tested with real clients, in the tests of the start-up.
    #[test]
    fn mechanism_and_channel_binding_go_together() {
        let select = |mechanism: &str, message: &[u8], binding| {
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            client_first(
                &Bytes::from([mechanism.as_bytes(), b"\0", &length, message].concat()),
                binding,
            )
        };
        let bound = b"p=tls-server-end-point,,n=,r=x";
        for binding in [false, true] {
            assert_eq!(select(PLAIN, b"n,,n=,r=x", binding).unwrap(), &b"n,,n=,r=x"[..]);
            assert!(
                select(PLAIN, bound, binding).is_err(),
                "bound under the name of the unbound"
            );
            assert!(
                select(BOUND, b"n,,n=,r=x", binding).is_err(),
                "unbound under the name of the bound"
            );
            assert_eq!(
                select(BOUND, bound, binding).is_ok(),
                binding,
                "only when it was offered"
            );
        }
    }
}
