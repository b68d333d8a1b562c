//! Dial: from an address to a stream that a server answers on, in clear or encrypted.
//!
//! Promises: what is dialled can be dialled [again](Dialler::again), to the same address and as encrypted, for a cancel request.
//! Knows no message but the one that asks for TLS.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use forebay_stream::{Socket, Stream};
use postgres_protocol::message::frontend;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::config::Config;
use crate::error::ConnectError;
use crate::tls::Tls;

/// Where exactly a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Whether TLS is spoken on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// No.
    Clear,
    /// If the server has it.
    Offered,
    /// Yes, or there is no stream.
    Wanted,
    /// Yes, without asking for it.
    Direct,
}

/// How sockets are set up.
#[derive(Debug, Clone)]
pub(crate) struct SocketOptions {
    keepalives: Option<TcpKeepalive>,
    user_timeout: Option<Duration>,
}

impl SocketOptions {
    pub(crate) fn of(config: &Config) -> Self {
        let keepalives = config.keepalives.then(|| {
            let mut keepalive = TcpKeepalive::new();
            if let Some(idle) = config.keepalives_idle {
                keepalive = keepalive.with_time(idle);
            }
            if let Some(interval) = config.keepalives_interval {
                keepalive = keepalive.with_interval(interval);
            }
            match config.keepalives_count {
                Some(count) => keepalive.with_retries(count),
                None => keepalive,
            }
        });
        Self {
            keepalives,
            user_timeout: config.tcp_user_timeout,
        }
    }
}

/// What was dialled, to be dialled again.
#[derive(Debug, Clone)]
pub(crate) struct Dialled {
    pub(crate) host: String,
    address: Address,
    options: SocketOptions,
    encryption: Encryption,
    tls: Option<Tls>,
}

/// Dials one address.
#[derive(Debug)]
pub(crate) struct Dialler<'a> {
    /// For errors.
    pub(crate) host: &'a str,
    pub(crate) address: &'a Address,
    pub(crate) options: &'a SocketOptions,
    pub(crate) encryption: Encryption,
    pub(crate) tls: Option<&'a Tls>,
}

impl Dialler<'_> {
    /// A stream, and what it takes to have such a one again.
    pub(crate) async fn dial(&self) -> Result<(Stream, Dialled), ConnectError> {
        let socket = self.connect().await.map_err(|source| ConnectError::Unreachable {
            host: self.host.to_owned(),
            source,
        })?;
        let stream = self.encrypt(socket).await?;
        let encryption = match (&stream, self.encryption) {
            (Stream::Clear(_), _) => Encryption::Clear,
            #[cfg(feature = "tls")]
            (Stream::Tls(_), Encryption::Direct) => Encryption::Direct,
            #[cfg(feature = "tls")]
            (Stream::Tls(_), _) => Encryption::Wanted,
        };
        let dialled = Dialled {
            host: self.host.to_owned(),
            address: self.address.clone(),
            options: self.options.clone(),
            encryption,
            tls: self.tls.cloned(),
        };
        Ok((stream, dialled))
    }

    /// Another stream to where that one went.
    pub(crate) async fn again(dialled: &Dialled) -> Result<Stream, ConnectError> {
        let dialler = Dialler {
            host: &dialled.host,
            address: &dialled.address,
            options: &dialled.options,
            encryption: dialled.encryption,
            tls: dialled.tls.as_ref(),
        };
        dialler.dial().await.map(|(stream, _)| stream)
    }

    async fn connect(&self) -> io::Result<Socket> {
        match self.address {
            Address::Unix(path) => UnixStream::connect(path).await.map(Socket::Unix),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                let socket = SockRef::from(&stream);
                if let Some(keepalives) = &self.options.keepalives {
                    socket.set_tcp_keepalive(keepalives)?;
                }
                #[cfg(target_os = "linux")]
                if self.options.user_timeout.is_some() {
                    socket.set_tcp_user_timeout(self.options.user_timeout)?;
                }
                Ok(Socket::Tcp(stream))
            }
        }
    }

    async fn encrypt(&self, mut socket: Socket) -> Result<Stream, ConnectError> {
        let tls = match (self.encryption, self.tls) {
            (Encryption::Clear, _) => return Ok(Stream::Clear(socket)),
            (Encryption::Offered, None) => return Ok(Stream::Clear(socket)),
            (Encryption::Wanted | Encryption::Direct, None) => {
                return Err(ConnectError::Tls("there is none on this way".to_owned()));
            }
            (_, Some(tls)) => tls,
        };
        if self.encryption != Encryption::Direct && !asks_for_tls(&mut socket).await? {
            return match self.encryption {
                Encryption::Offered => Ok(Stream::Clear(socket)),
                _ => Err(ConnectError::Tls("the server has none".to_owned())),
            };
        }
        tls.connect(socket).await
    }
}

/// Whether the server speaks TLS from now on.
async fn asks_for_tls(socket: &mut Socket) -> Result<bool, ConnectError> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    let asked = async {
        socket.write_all(&request).await?;
        // One byte and no more: what comes behind it is encrypted, or an attacker's.
        socket.read_u8().await
    };
    match asked.await.map_err(|error| ConnectError::Link(error.into()))? {
        b'S' => Ok(true),
        // An error of a server that has never heard of TLS, or is out of something. It is not shown: anybody may have sent it.
        b'N' | b'E' => Ok(false),
        other => Err(ConnectError::Tls(format!(
            "the server answered {:?} when it was asked for TLS",
            char::from(other)
        ))),
    }
}
