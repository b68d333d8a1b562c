//! The handshake: from a raw stream to an authenticated client, or to a cancel request.
//!
//! Promises:
//!
//! - It takes a bounded time and at most 10,000 bytes a packet, whatever the client does or does not send.
//! - TLS begins with SSLRequest or directly; nothing that was sent in the clear is read as if it came through TLS, for no byte is read
//!   ahead of the packet at hand.
//! - Protocol 3.0 to 3.2 is spoken; a newer minor version and unknown `_pq_.` options are negotiated down, other versions refused.
//! - A client that is refused is told why, as far as there is a protocol to tell it in.
//!
//! Does not know: sessions, settings (parameters are handed on as they came), who may cancel what.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::authentication::{Authenticator, Denied};
use super::backend;
use super::error::{Severity, WireError, sqlstate};
use super::frontend::{FrameReader, SMALL_MESSAGE_BYTES_MAX, invalid_utf8};
use super::gate::{Applicant, Origin, Replication};
use super::tls::{ALPN, Certificate, Tls};
use super::verifier::Proof;

/// How long a client may take to get in, unless told otherwise.
pub const START_UP_TIMEOUT: Duration = Duration::from_secs(10);

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;
const TLS_HANDSHAKE: u8 = 0x16;
const NEWEST_MINOR: u16 = 2;
/// `NAMEDATALEN`, without the end of the text.
const NAME_BYTES_MAX: usize = 63;

/// Leads clients in.
#[derive(Debug)]
pub struct Handshake {
    authenticator: Authenticator,
    tls: Option<Tls>,
    requires_tls: bool,
    serves_replication: bool,
    timeout: Duration,
}

/// What a connection turned out to be.
#[derive(Debug)]
pub enum Opening<S> {
    /// A client that may send statements.
    Client(Box<Client<S>>),
    /// A request to cancel what another connection does. It gets no answer but that this one is closed once that is done: until then it must
    /// be kept, for who has asked waits for it, and takes what it asks next on the other to be safe.
    Cancel {
        /// Where the request came from.
        connection: Connection<S>,
        /// As BackendKeyData told.
        process_id: i32,
        /// As BackendKeyData told.
        secret_key: Bytes,
    },
    /// Closed before it said anything, as port checks do.
    Nothing,
}

/// A client that is let in. Send `output`, then the settings, the key and ReadyForQuery.
#[derive(Debug)]
pub struct Client<S> {
    /// Reads its messages; the stream below writes. The limit is still the small one: raise it.
    pub frames: FrameReader<Connection<S>>,
    /// What is due and not yet sent: AuthenticationOk, and what the authentication ended with.
    pub output: BytesMut,
    /// What it has shown of its password, if that convinces others.
    pub proof: Option<Proof>,
    /// Who it is.
    pub user: String,
    /// The database it asked for; its own name if it asked for none.
    pub database: String,
    /// The other parameters (`application_name`, `client_encoding`, `options`, …), as they came.
    pub parameters: Vec<(String, String)>,
    /// Whether it wants to replicate: then it is no session as others are.
    pub replication: Replication,
    /// The minor version of protocol 3 that is spoken.
    pub protocol_minor: u16,
}

impl<S> Client<S> {
    /// How long its secret key may be: protocol 3.0 has room for 4 bytes.
    pub fn secret_key_bytes(&self) -> usize {
        if self.protocol_minor >= 2 { 32 } else { 4 }
    }
}

/// Why nobody came in. Nothing is left to do but to log it.
#[derive(Debug, thiserror::Error)]
pub enum StartUpError {
    /// The client was told this.
    #[error("client refused: {0}")]
    Refused(WireError),
    /// The client could not prove who it is, or not in a way that is taken here, and was told so.
    #[error("user {user:?} denied: {error}")]
    Denied {
        /// Who it says it is.
        user: String,
        /// What it was told.
        error: WireError,
    },
    /// It took too long.
    #[error("start-up took longer than {0:?}")]
    Timeout(Duration),
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {0}")]
    Tls(#[source] io::Error),
    /// The client went away.
    #[error("connection lost during start-up: {0}")]
    Lost(#[from] io::Error),
}

/// One untyped packet: a code, and what follows it.
struct Packet {
    code: u32,
    body: Bytes,
}

enum PacketError {
    Refused(WireError),
    Lost(io::Error),
}

impl From<io::Error> for PacketError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// What a StartupMessage says.
#[derive(Debug)]
struct Startup {
    user: String,
    database: String,
    parameters: Vec<(String, String)>,
    replication: Replication,
    unknown_options: Vec<String>,
}

impl Handshake {
    /// Lets in whom `authenticator` lets in, over TLS if there is `tls`, each within `timeout`.
    pub fn new(authenticator: Authenticator, tls: Option<Tls>, timeout: Duration) -> Self {
        Self {
            authenticator,
            tls,
            requires_tls: false,
            serves_replication: false,
            timeout,
        }
    }

    /// Refuses clients that do not use TLS. They may still cancel: no client sends anything secret to do so.
    #[must_use]
    pub fn requiring_tls(mut self, requires_tls: bool) -> Self {
        self.requires_tls = requires_tls;
        self
    }

    /// Lets in clients that want to replicate; otherwise they are refused with 0A000.
    #[must_use]
    pub fn serving_replication(mut self, serves_replication: bool) -> Self {
        self.serves_replication = serves_replication;
        self
    }

    /// The handshake of one connection, from where it comes. With a `refusal` (too many connections, shutting down) a client is told it once it has said
    /// what it wants; a cancel request gets through all the same.
    ///
    /// # Errors
    ///
    /// When nobody came in; the client has been told, if it could be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        origin: Origin,
        refusal: Option<WireError>,
    ) -> Result<Opening<S>, StartUpError> {
        match tokio::time::timeout(self.timeout, self.negotiate(stream, origin, refusal)).await {
            Ok(opening) => opening,
            Err(_) => Err(StartUpError::Timeout(self.timeout)),
        }
    }

    async fn negotiate<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: S,
        origin: Origin,
        refusal: Option<WireError>,
    ) -> Result<Opening<S>, StartUpError> {
        let mut first = [0];
        if stream.read(&mut first).await? == 0 {
            return Ok(Opening::Nothing);
        }
        let stream = Rewound {
            first: Some(first[0]),
            stream,
        };
        let mut connection = match &self.tls {
            Some(tls) if first[0] == TLS_HANDSHAKE => {
                let accepted = tls.acceptor.accept(stream).await.map_err(StartUpError::Tls)?;
                // Without a named protocol this may be another protocol's client, sent here by an attacker (ALPACA).
                if accepted.get_ref().1.alpn_protocol() != Some(ALPN) {
                    let why = "direct TLS without ALPN protocol \"postgresql\"";
                    return Err(StartUpError::Tls(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                Connection::Tls(Box::new(accepted))
            }
            _ => Connection::Plain(stream),
        };
        let (mut ssl_asked, mut gss_asked) = (false, false);
        let (startup, minor) = loop {
            let packet = match read_packet(&mut connection).await {
                Ok(packet) => packet,
                Err(PacketError::Lost(error)) => return Err(error.into()),
                Err(PacketError::Refused(error)) => {
                    return Err(refuse(&mut connection, error).await);
                }
            };
            let result = match packet.code {
                SSL_REQUEST if packet.body.is_empty() && !ssl_asked && !connection.is_tls() => {
                    ssl_asked = true;
                    connection = match (&self.tls, connection) {
                        (Some(tls), Connection::Plain(mut stream)) => {
                            stream.write_all(b"S").await?;
                            stream.flush().await?;
                            Connection::Tls(Box::new(tls.acceptor.accept(stream).await.map_err(StartUpError::Tls)?))
                        }
                        (_, mut connection) => {
                            connection.write_all(b"N").await?;
                            connection.flush().await?;
                            connection
                        }
                    };
                    continue;
                }
                GSS_REQUEST if packet.body.is_empty() && !gss_asked => {
                    gss_asked = true;
                    connection.write_all(b"N").await?;
                    connection.flush().await?;
                    continue;
                }
                CANCEL_REQUEST if (8..=260).contains(&packet.body.len()) => {
                    let mut body = packet.body;
                    return Ok(Opening::Cancel {
                        connection,
                        process_id: body.get_i32(),
                        secret_key: body,
                    });
                }
                SSL_REQUEST | GSS_REQUEST | CANCEL_REQUEST => {
                    Err(WireError::protocol("invalid request in the start-up"))
                }
                version if version >> 16 == 3 => parse_startup(packet.body).map(|startup| (startup, version as u16)),
                version => Err(WireError::unsupported(format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{NEWEST_MINOR}",
                    version >> 16,
                    version & 0xffff
                ))),
            };
            match result {
                Ok(startup) => break startup,
                Err(error) => return Err(refuse(&mut connection, error).await),
            }
        };
        if startup.replication != Replication::No && !self.serves_replication {
            let error = WireError::unsupported("replication is not supported");
            return Err(refuse(&mut connection, error).await);
        }
        if let Some(refusal) = refusal {
            return Err(refuse(&mut connection, refusal).await);
        }
        self.admit(connection, origin, startup, minor).await
    }

    async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        connection: Connection<S>,
        origin: Origin,
        startup: Startup,
        minor: u16,
    ) -> Result<Opening<S>, StartUpError> {
        let is_over_tls = connection.is_tls();
        let certificate = connection.certificate();
        if self.requires_tls && !is_over_tls {
            let message = format!(
                "connection of user \"{}\" is not encrypted, and this server requires TLS",
                startup.user
            );
            let error = WireError::new(sqlstate::INVALID_AUTHORIZATION, message)
                .with_hint("Connect with sslmode=require, or better verify-full.");
            let mut connection = connection;
            return Err(denied(startup.user, refuse(&mut connection, error).await));
        }
        let protocol_minor = minor.min(NEWEST_MINOR);
        let mut output = BytesMut::new();
        let mut frames = FrameReader::new(connection, SMALL_MESSAGE_BYTES_MAX);
        let Startup {
            user,
            database,
            parameters,
            replication,
            unknown_options,
        } = startup;
        let negotiated = if minor > NEWEST_MINOR || !unknown_options.is_empty() {
            backend::negotiate_protocol_version(&mut output, protocol_minor, unknown_options)
        } else {
            Ok(())
        };
        let admitted = match negotiated {
            Ok(()) => {
                let applicant = Applicant {
                    user: &user,
                    database: &database,
                    replication,
                    origin,
                    is_over_tls,
                    certificate: certificate.as_ref(),
                };
                self.authenticator
                    .authenticate(&mut frames, &mut output, applicant)
                    .await
            }
            Err(error) => Err(Denied::Error(error)),
        };
        match admitted {
            Ok(proof) => Ok(Opening::Client(Box::new(Client {
                frames,
                output,
                proof,
                user,
                database,
                parameters,
                replication,
                protocol_minor,
            }))),
            Err(Denied::Lost(error)) => Err(error.into()),
            Err(Denied::Error(error)) => {
                // What was encoded but not sent before the refusal goes out before it.
                frames.stream_mut().write_all_buf(&mut output).await?;
                Err(denied(user, refuse(frames.stream_mut(), error).await))
            }
        }
    }
}

fn denied(user: String, refused: StartUpError) -> StartUpError {
    match refused {
        StartUpError::Refused(error) => StartUpError::Denied { user, error },
        other => other,
    }
}

/// Tells the client, as a fatal error, and closes.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(connection: &mut Connection<S>, error: WireError) -> StartUpError {
    let error = error.with_severity(Severity::Fatal);
    let mut out = BytesMut::new();
    error.encode(&mut out);
    let told = async {
        connection.write_all_buf(&mut out).await?;
        connection.shutdown().await
    };
    match told.await {
        Ok(()) => StartUpError::Refused(error),
        Err(lost) => StartUpError::Lost(lost),
    }
}

/// Reads exactly one packet and not a byte more: what follows may have to be TLS.
async fn read_packet<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Packet, PacketError> {
    let length = stream.read_u32().await?;
    let length = length as usize;
    if !(8..=SMALL_MESSAGE_BYTES_MAX).contains(&length) {
        return Err(PacketError::Refused(WireError::protocol(
            "invalid length of startup packet",
        )));
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await?;
    let mut body = Bytes::from(body);
    Ok(Packet {
        code: body.get_u32(),
        body,
    })
}

/// Names and values, each ended by a NUL, and a NUL at the end.
fn parse_startup(mut body: Bytes) -> Result<Startup, WireError> {
    let (mut user, mut database) = (None, None);
    let (mut parameters, mut unknown_options) = (Vec::new(), Vec::new());
    let mut replication = Replication::No;
    loop {
        let name = startup_text(&mut body)?;
        if name.is_empty() {
            break;
        }
        let value = startup_text(&mut body)?;
        match name.as_str() {
            "user" => user = Some(shortened(value)),
            "database" => database = Some(shortened(value)),
            "replication" => replication = parse_replication(&value)?,
            name if name.starts_with("_pq_.") => unknown_options.push(name.to_owned()),
            _ => parameters.push((name, value)),
        }
    }
    if !body.is_empty() {
        return Err(WireError::protocol(
            "invalid startup packet layout: expected terminator as last byte",
        ));
    }
    let user = user.filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| {
        WireError::new(
            sqlstate::INVALID_AUTHORIZATION,
            "no user name specified in startup packet",
        )
    })?;
    let database = database
        .filter(|database| !database.is_empty())
        .unwrap_or_else(|| user.clone());
    Ok(Startup {
        user,
        database,
        parameters,
        replication,
        unknown_options,
    })
}

/// As PostgreSQL cuts the names of users and databases, so that a longer spelling is no other user. It may cut within a character, and finds
/// nobody by such a name.
fn shortened(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    name
}

/// As PostgreSQL reads it: `database`, or a truth value, of which the beginning does where it is clear.
fn parse_replication(value: &str) -> Result<Replication, WireError> {
    let lower = value.to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if value == "database" {
        Ok(Replication::Logical)
    } else if begins("true", 1) || begins("yes", 1) || begins("on", 2) || lower == "1" {
        Ok(Replication::Physical)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || lower == "0" {
        Ok(Replication::No)
    } else {
        let message = format!("invalid value for parameter \"replication\": \"{value}\"");
        Err(WireError::new("22023", message).with_hint("Valid values are: \"false\", 0, \"true\", 1, \"database\"."))
    }
}

fn startup_text(body: &mut Bytes) -> Result<String, WireError> {
    let end = body.iter().position(|byte| *byte == 0);
    let end =
        end.ok_or_else(|| WireError::protocol("invalid startup packet layout: expected terminator as last byte"))?;
    let text = body.split_to(end);
    body.advance(1);
    std::str::from_utf8(&text)
        .map(str::to_owned)
        .map_err(|error| invalid_utf8(&text, error))
}

/// A client's stream, with TLS or without.
#[derive(Debug)]
pub enum Connection<S> {
    /// In the clear.
    Plain(Rewound<S>),
    /// Inside TLS.
    Tls(Box<TlsStream<Rewound<S>>>),
}

impl<S> Connection<S> {
    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// What the client has shown of itself.
    fn certificate(&self) -> Option<Certificate> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Certificate::of(stream.get_ref().1),
        }
    }

    /// The stream below.
    pub fn socket(&self) -> &S {
        match self {
            Self::Plain(stream) => &stream.stream,
            Self::Tls(stream) => &stream.get_ref().0.stream,
        }
    }
}

/// A stream whose first byte was taken to see what it is, and is read again.
#[derive(Debug)]
pub struct Rewound<S> {
    first: Option<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
#[path = "startup_tests.rs"]
mod tests;
