//! Who the client is, as a [`Gate`] wants it shown: not at all, by a proof of its password, or by the password.
//!
//! Promises:
//!
//! - Nobody is let in but as the gate says, which is asked once more before it refuses by what it had kept. What proves a password is SCRAM-SHA-256 where what is stored of it allows that, else md5.
//! - A gate may ask for the password in clear. That goes over TLS or stays on this machine, or is not asked for.
//! - Over TLS the proof can be bound to the server's certificate (SCRAM-SHA-256-PLUS), and a stripped offer is noticed.
//!
//! Does not know: what a user may do, how long all this may take ([`super::startup`] bounds it).

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::api::auth::sasl::scram::{ScramSecret, ScramServerAuth};
use pgwire::error::PgWireError;
use pgwire::messages::startup::Authentication;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::backend;
use super::error::{WireError, sqlstate};
use super::frontend::{FrameError, FrameReader, Frontend};
use super::gate::{Applicant, Demand, Gate, Trust};
use super::tls::Tls;
use super::verifier::{Md5Hash, Proof, StoredPassword, Verifier};

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Has clients show who they are.
#[derive(Debug)]
pub struct Authenticator {
    gate: Arc<dyn Gate>,
    channels: Channels,
}

/// What a proof can be bound to.
#[derive(Debug)]
struct Channels {
    /// Without TLS: no channel to bind to.
    plain: ScramServerAuth,
    /// With TLS: knows the certificate.
    bound: Option<ScramServerAuth>,
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
        Self::new(Arc::new(Trust), None)
    }

    /// Whom `gate` lets in. With `tls`, connections over it can bind the proof to its certificate.
    pub fn new(gate: Arc<dyn Gate>, tls: Option<&Tls>) -> Self {
        Self {
            gate,
            channels: Channels::of(tls),
        }
    }

    /// Leads the client through the authentication. `output` may hold what is to be sent before; at the end it holds AuthenticationOk,
    /// not yet sent, so that it travels with the greeting that follows. What the client has shown, if that convinces others.
    pub(crate) async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        frames: &mut FrameReader<S>,
        output: &mut BytesMut,
        applicant: Applicant<'_>,
    ) -> Result<Option<Proof>, Denied> {
        let proof = match self.gate.demand(applicant).await? {
            Demand::Nothing => None,
            Demand::Proof(StoredPassword::Scram(verifier)) => {
                match self.channels.prove(frames, output, applicant, verifier).await {
                    Err(Denied::Error(error)) if error.sqlstate == sqlstate::INVALID_PASSWORD => {
                        // What was proven was of another salt: whatever is known now, the next try is by that.
                        self.gate.disproved(applicant).await?;
                        return Err(error.into());
                    }
                    proven => proven?,
                }
            }
            Demand::Proof(StoredPassword::Md5(hash)) => {
                let (salt, response) = asked_by_md5(frames, output).await?;
                let is_proven = |hash: &Md5Hash| hash.response(salt) == response;
                let hash = match is_proven(&hash) {
                    true => Some(hash),
                    false => match self.gate.disproved(applicant).await? {
                        Some(StoredPassword::Md5(hash)) if is_proven(&hash) => Some(hash),
                        _ => None,
                    },
                };
                Some(Proof::Md5(hash.ok_or_else(|| wrong_password(applicant.user))?))
            }
            Demand::Password if !applicant.is_over_tls && !applicant.origin.is_here() => {
                let message = "the password of the database's user is asked for over TLS only, or from this machine";
                return Err(WireError::new(sqlstate::INVALID_AUTHORIZATION, message)
                    .with_hint("Connect with sslmode=require, or better verify-full.")
                    .into());
            }
            Demand::Password => {
                backend::authentication(output, &Authentication::CleartextPassword)?;
                let body = response(frames, output).await?;
                self.gate.check(applicant, password(&body)?).await?;
                None
            }
        };
        backend::authentication(output, &Authentication::Ok)?;
        Ok(proof)
    }
}

/// Asks the client to prove by md5 that it knows the password: by what salt, and its answer.
async fn asked_by_md5<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut FrameReader<S>,
    output: &mut BytesMut,
) -> Result<([u8; 4], String), Denied> {
    let salt = rand::random::<[u8; 4]>();
    backend::authentication(output, &Authentication::MD5Password(salt.to_vec()))?;
    let body = response(frames, output).await?;
    Ok((salt, password(&body)?.to_owned()))
}

fn wrong_password(user: &str) -> WireError {
    WireError::new(
        sqlstate::INVALID_PASSWORD,
        format!("password authentication failed for user \"{user}\""),
    )
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
        applicant: Applicant<'_>,
        verifier: Verifier,
    ) -> Result<Option<Proof>, Denied> {
        let binding = self.bound.as_ref().filter(|_| applicant.is_over_tls);
        let user = applicant.user;
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
        Ok(verifier.keys_of(&first, &challenge, &proof).map(Proof::Scram))
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
        PgWireError::InvalidPassword(_) => wrong_password(user),
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
