//! Handshake: from a stream to a link whose session has begun.
//!
//! Promises: a password is told in no way that [`require_auth`](crate::config::RequireAuth) does not allow; where channel binding is
//! required there is no session without it, whatever the server says. Knows no host.

use forebay_stream::Stream;
use md5::{Digest, Md5};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ScramSha256};
use postgres_protocol::message::frontend;

use crate::cancel::{BackendKey, CancelToken};
use crate::channel_binding::end_point;
use crate::config::{ChannelBinding, ClearPassword, Config};
use crate::error::{ConnectError, LinkError};
use crate::link::Link;
use crate::message::{Message, Reader, Tag};
use crate::scram::{Binding, Exchange, salt_and_iterations};
use crate::secret::{Challenge, Secret, hexadecimal};
use crate::server_error::ServerError;

/// Begins a session on a stream.
pub(crate) async fn begin(
    stream: Stream,
    cancel: CancelToken,
    config: &Config,
    user: &str,
) -> Result<Link, ConnectError> {
    let proof = Proof {
        config,
        user,
        is_private: stream.is_private(),
        end_point: end_point(&stream),
    };
    let mut link = Link::new(stream, cancel);
    let startup = startup(config, user);
    send(&mut link, |bytes| frontend::startup_message(startup, bytes))?;
    proof.give(&mut link).await?;
    link.expect_ready();
    loop {
        let message = answer(&mut link).await?;
        match message.tag() {
            Tag::READY_FOR_QUERY => return Ok(link),
            Tag::BACKEND_KEY_DATA => {
                let mut reader = Reader(message.body());
                let process_id = reader.i32()?;
                let secret = reader.0.to_vec().into();
                link.keep_key(BackendKey { process_id, secret });
            }
            // It speaks an older one of what was asked for, and says so.
            Tag::NEGOTIATE_PROTOCOL_VERSION => {}
            tag => return Err(LinkError::unexpected(tag, "a ReadyForQuery").into()),
        }
    }
}

/// What the server is told of the session.
fn startup<'a>(config: &'a Config, user: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut pairs = vec![("user", user), ("database", config.dbname.as_deref().unwrap_or(user))];
    let others = [
        ("client_encoding", &config.client_encoding),
        ("application_name", &config.application_name),
        ("options", &config.options),
        ("replication", &config.replication),
    ];
    for (key, value) in others {
        if let Some(value) = value {
            pairs.push((key, value.as_str()));
        }
    }
    pairs.extend(config.settings.iter().map(|(name, value)| (&**name, &**value)));
    pairs
}

/// How a user proves who he is.
struct Proof<'a> {
    config: &'a Config,
    user: &'a str,
    is_private: bool,
    end_point: Option<Vec<u8>>,
}

impl Proof<'_> {
    async fn give(&self, link: &mut Link) -> Result<(), ConnectError> {
        let allowed = self.config.require_auth;
        let insists = self.config.channel_binding == ChannelBinding::Require;
        let mut was_asked = false;
        loop {
            let message = answer(link).await?;
            let mut reader = authentication(&message)?;
            let method = reader.i32()?;
            if insists && !matches!(method, 0 | 10) {
                return Err(refused(
                    "the server does not bind the proof to its certificate (channel_binding=require)",
                ));
            }
            match method {
                0 if !was_asked && insists => {
                    return Err(refused(
                        "the server asks for no proof that could be bound (channel_binding=require)",
                    ));
                }
                0 if !was_asked && !allowed.none => return Err(refused("the server asks for no proof (require_auth)")),
                0 => return Ok(()),
                3 => {
                    match (allowed.password, self.is_private) {
                        (ClearPassword::Always, _) | (ClearPassword::Encrypted, true) => {}
                        (ClearPassword::No, _) => return Err(not_allowed("password")),
                        (ClearPassword::Encrypted, false) => {
                            return Err(refused(
                                "the server asks for the password in clear where others can listen: use TLS, or say \
                                 require_auth=password",
                            ));
                        }
                    }
                    let password = self.password()?.as_bytes();
                    link.keep_challenge(Challenge::Password);
                    send(link, |bytes| frontend::password_message(password, bytes))?;
                }
                5 => {
                    if !allowed.md5 {
                        return Err(not_allowed("md5"));
                    }
                    let salt = reader.bytes(4)?.try_into().expect("it has four bytes");
                    let hash = self.md5(salt)?;
                    link.keep_challenge(Challenge::Md5);
                    send(link, |bytes| frontend::password_message(hash.as_bytes(), bytes))?;
                }
                10 => {
                    if !allowed.scram_sha_256 {
                        return Err(not_allowed("scram-sha-256"));
                    }
                    let mut mechanisms = Vec::new();
                    while reader.0.first().is_some_and(|&byte| byte != 0) {
                        mechanisms.push(reader.text()?.to_owned());
                    }
                    self.scram(link, &mechanisms).await?;
                }
                other => {
                    let name = match other {
                        2 => "Kerberos".to_owned(),
                        7 | 8 => "GSSAPI".to_owned(),
                        9 => "SSPI".to_owned(),
                        other => format!("number {other}"),
                    };
                    return Err(refused(&format!(
                        "the server asks for a proof that cannot be given here: {name}"
                    )));
                }
            }
            was_asked = true;
        }
    }

    /// SCRAM-SHA-256 (RFC 5802, RFC 7677).
    async fn scram(&self, link: &mut Link, mechanisms: &[String]) -> Result<(), ConnectError> {
        let offers = |mechanism: &str| mechanisms.iter().any(|offered| offered == mechanism);
        let setting = self.config.channel_binding;
        let end_point = self.end_point.clone().filter(|_| setting != ChannelBinding::Disable);
        let (binding, mechanism) = match end_point {
            Some(data) if offers(sasl::SCRAM_SHA_256_PLUS) => {
                (bound_by("p=tls-server-end-point,,", data), sasl::SCRAM_SHA_256_PLUS)
            }
            _ if setting == ChannelBinding::Require => {
                return Err(refused(
                    "the proof cannot be bound to the server's certificate (channel_binding=require)",
                ));
            }
            // We could: if the server could too, somebody between has said that it could not.
            Some(_) => (bound_by("y,,", Vec::new()), sasl::SCRAM_SHA_256),
            None => (bound_by("n,,", Vec::new()), sasl::SCRAM_SHA_256),
        };
        if !offers(mechanism) {
            return Err(refused(&format!(
                "the server asks for a proof that cannot be given here: {}",
                mechanisms.join(", ")
            )));
        }
        let failed = |error: String| refused(&format!("SCRAM: {error}"));
        match &self.config.secret {
            Some(Secret::Scram(keys)) => {
                let exchange = Exchange::new(*keys, binding);
                let first = exchange.first();
                send(link, |bytes| {
                    frontend::sasl_initial_response(mechanism, first.as_bytes(), bytes)
                })?;
                let message = answer(link).await?;
                let (last, proven) = exchange.prove(continuation(&message, 11)?).map_err(failed)?;
                send(link, |bytes| frontend::sasl_response(last.as_bytes(), bytes))?;
                let message = answer(link).await?;
                // The server, too, proves that it knows the keys.
                proven.finish(continuation(&message, 12)?).map_err(failed)
            }
            _ => {
                let failed = |error: std::io::Error| failed(error.to_string());
                let mut scram = ScramSha256::new(self.password()?.as_bytes(), binding.into());
                send(link, |bytes| {
                    frontend::sasl_initial_response(mechanism, scram.message(), bytes)
                })?;
                let message = answer(link).await?;
                let server_first = continuation(&message, 11)?;
                let salted = salt_and_iterations(server_first);
                scram.update(server_first).map_err(failed)?;
                send(link, |bytes| frontend::sasl_response(scram.message(), bytes))?;
                let message = answer(link).await?;
                scram.finish(continuation(&message, 12)?).map_err(failed)?;
                if let Some((salt, iterations)) = salted {
                    link.keep_challenge(Challenge::Scram { salt, iterations });
                }
                Ok(())
            }
        }
    }

    fn password(&self) -> Result<&str, ConnectError> {
        match &self.config.password {
            Some(password) => Ok(&password.0),
            None => Err(ConnectError::NoPassword),
        }
    }

    /// What a server keeps that asks for md5, in hexadecimal digits, hashed once more with the salt.
    fn md5(&self, salt: [u8; 4]) -> Result<String, ConnectError> {
        match &self.config.secret {
            Some(Secret::Md5 { hash }) => Ok(salted_md5(hash, salt)),
            _ => Ok(md5_hash(self.user.as_bytes(), self.password()?.as_bytes(), salt)),
        }
    }
}

fn bound_by(header: &'static str, data: Vec<u8>) -> Binding {
    Binding { header, data }
}

impl From<Binding> for sasl::ChannelBinding {
    fn from(binding: Binding) -> Self {
        match binding.header {
            "n,," => Self::unsupported(),
            "y,," => Self::unrequested(),
            _ => Self::tls_server_end_point(binding.data),
        }
    }
}

fn salted_md5(hash: &str, salt: [u8; 4]) -> String {
    let mut hasher = Md5::new();
    hasher.update(hash);
    hasher.update(salt);
    format!("md5{}", hexadecimal(&hasher.finalize()))
}

fn send(
    link: &mut Link,
    message: impl FnOnce(&mut bytes::BytesMut) -> std::io::Result<()>,
) -> Result<(), ConnectError> {
    let sent = link.outbox().put(message);
    sent.map_err(|error| ConnectError::Setting(format!("what the server is to be told cannot be sent: {error}")))
}

/// The next message that says something about the session; an error of the server's is ours.
async fn answer(link: &mut Link) -> Result<Message<'_>, ConnectError> {
    let message = link.answer().await?;
    match message.tag() {
        Tag::ERROR_RESPONSE => Err(ServerError::read(&message)?.into()),
        _ => Ok(message),
    }
}

fn authentication<'a>(message: &Message<'a>) -> Result<Reader<'a>, ConnectError> {
    match message.tag() {
        Tag::AUTHENTICATION => Ok(Reader(message.body())),
        tag => Err(LinkError::unexpected(tag, "an Authentication").into()),
    }
}

/// What follows in a message of SASL's that has this number.
fn continuation<'a>(message: &Message<'a>, number: i32) -> Result<&'a [u8], ConnectError> {
    let mut reader = authentication(message)?;
    match reader.i32()? {
        read if read == number => Ok(reader.0),
        read => Err(LinkError::Protocol(format!("SASL goes on with {read} instead of {number}")).into()),
    }
}

fn refused(why: &str) -> ConnectError {
    ConnectError::Authentication(why.to_owned())
}

fn not_allowed(method: &str) -> ConnectError {
    refused(&format!(
        "the server asks for a proof that is not allowed: {method} (require_auth)"
    ))
}
