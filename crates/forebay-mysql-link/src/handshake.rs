//! Handshake: from a socket to a link whose session has begun.
//!
//! Promises: where TLS is wanted nothing is said of who connects before it is spoken, and there is no session without it. A password
//! is told in no way that `proof` does not allow. Knows no address.

use forebay_stream::{Socket, Stream};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::answer::Agreed;
use crate::config::Config;
use crate::error::{ConnectError, LinkError};
use crate::greeting::Greeting;
use crate::link::Link;
use crate::outbox::HEADER_BYTES;
use crate::packet::OkPacket;
use crate::proof::{Method, Prover, refused};
use crate::reader::{Malformed, Reader};
use crate::server_error::ServerError;
use crate::tls::Tls;

/// Longer than any greeting.
const GREETING_BYTES_MAX: usize = 4096;
/// What a row may take that the server sends.
const PACKET_BYTES_MAX: u32 = 1 << 30;
/// utf8mb4_general_ci.
const COLLATION: u8 = 45;

/// Begins a session on a socket.
pub(crate) async fn begin(mut socket: Socket, config: &Config, tls: Option<&Tls>) -> Result<Link, ConnectError> {
    let is_near = match &socket {
        Socket::Unix(_) => true,
        Socket::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
    };
    let greeting = greeting(&mut socket).await?;
    let capabilities = wanted(config, tls.is_some()) & greeting.capabilities;
    let mariadb_capabilities = match capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        true => MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA & greeting.mariadb_capabilities,
        false => MariadbCapabilities::empty(),
    };
    let mut sequence = 1;
    let stream = match tls {
        None => Stream::Clear(socket),
        Some(tls) => {
            if !capabilities.contains(CapabilityFlags::CLIENT_SSL) {
                return Err(ConnectError::Tls("the server has none".to_owned()));
            }
            let request = SslRequest::new(capabilities, PACKET_BYTES_MAX, COLLATION);
            let request = serialized(&request.with_mariadb_capabilities(mariadb_capabilities));
            send(&mut socket, sequence, &request).await?;
            sequence += 1;
            tls.connect(socket).await?
        }
    };
    let agreed = Agreed {
        deprecates_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        caches_metadata: mariadb_capabilities.contains(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
    };
    let prover = Prover {
        config,
        is_private: stream.is_private(),
        is_near,
    };
    // Asked for another one, the server says so.
    let method = match Method::named(&greeting.method) {
        Some(Method::CachingSha2) => Method::CachingSha2,
        _ => Method::Native,
    };
    let proof = prover.proof(method, &greeting.nonce)?;
    let response = HandshakeResponse::new(
        Some(proof),
        // All that there are have this collation.
        (5, 5, 3),
        config.user.as_deref().map(str::as_bytes),
        config.database.as_deref().map(str::as_bytes),
        capabilities
            .contains(CapabilityFlags::CLIENT_PLUGIN_AUTH)
            .then(|| AuthPlugin::from_bytes(method.name().as_bytes())),
        capabilities,
        None,
        PACKET_BYTES_MAX,
    );
    let response = serialized(&response.with_mariadb_ext_capabilities(mariadb_capabilities));
    let mut link = Link::new(stream, &greeting, agreed);
    link.go_on_from(sequence);
    prove(&mut link, &prover, method, greeting.nonce.to_vec(), response).await?;
    Ok(link)
}

/// What is wanted of a server that can.
fn wanted(config: &Config, speaks_tls: bool) -> CapabilityFlags {
    let mut wanted = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_MULTI_STATEMENTS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
        | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    wanted.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, config.database.is_some());
    wanted.set(CapabilityFlags::CLIENT_SSL, speaks_tls);
    wanted
}

fn serialized(packet: &impl MySerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.serialize(&mut bytes);
    bytes
}

/// Reads the server's first packet and not a byte more: what comes behind it is encrypted, or an attacker's.
async fn greeting(socket: &mut Socket) -> Result<Greeting, ConnectError> {
    let lost = |error: std::io::Error| ConnectError::Link(error.into());
    let mut header = [0; HEADER_BYTES];
    socket.read_exact(&mut header).await.map_err(lost)?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    if length == 0 || length > GREETING_BYTES_MAX || header[3] != 0 {
        return Err(LinkError::Protocol("what answers greets as no MariaDB or MySQL does".to_owned()).into());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.map_err(lost)?;
    if body[0] == 0xff {
        return Err(ServerError::read(&body)?.into());
    }
    Ok(Greeting::read(&body)?)
}

async fn send(socket: &mut Socket, sequence: u8, body: &[u8]) -> Result<(), ConnectError> {
    let [a, b, c, ..] = body.len().to_le_bytes();
    let bytes = [&[a, b, c, sequence], body].concat();
    let sent = socket.write_all(&bytes).await;
    sent.map_err(|error| ConnectError::Link(error.into()))
}

/// Says who connects, and proves it, until the server is content.
async fn prove(
    link: &mut Link,
    prover: &Prover<'_>,
    mut method: Method,
    mut nonce: Vec<u8>,
    response: Vec<u8>,
) -> Result<(), ConnectError> {
    let mut was_switched = false;
    let mut said = Some(response);
    loop {
        let body = match said.take() {
            Some(said) => link.exchange(&said).await?,
            None => link.listen().await?,
        };
        match body {
            [0x00, ..] => {
                OkPacket::read(body)?;
                return Ok(());
            }
            [0xff, ..] => return Err(ServerError::read(body)?.into()),
            [0xfe] => {
                return Err(refused(
                    "the server asks for a proof of servers before 4.1, which is not given",
                ));
            }
            [0xfe, rest @ ..] if !was_switched => {
                was_switched = true;
                let mut reader = Reader(rest);
                let name = reader.zero_terminated()?;
                method = Method::named(name).ok_or_else(|| {
                    let name = String::from_utf8_lossy(name);
                    refused(&format!(
                        "the server asks for a proof that cannot be given here: {name}"
                    ))
                })?;
                nonce = reader.0.to_vec();
                said = Some(prover.proof(method, &nonce)?);
            }
            // It remembers the password: its content is said next.
            [0x01, 0x03] if method == Method::CachingSha2 => {}
            [0x01, 0x04] if method == Method::CachingSha2 && prover.tells_password() => {
                said = Some(prover.told_password());
            }
            [0x01, 0x04] if method == Method::CachingSha2 => {
                prover.asks_for_key()?;
                let [0x01, key @ ..] = link.exchange(&[0x02]).await? else {
                    return Err(Malformed.into());
                };
                let over = nonce.get(..20).ok_or(Malformed)?;
                said = Some(prover.encrypted(over, key)?);
            }
            _ => return Err(LinkError::Protocol("a packet came that is of no handshake".to_owned()).into()),
        }
    }
}
