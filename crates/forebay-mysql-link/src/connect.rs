//! Connect: each address of a server in turn, until one answers.
//!
//! Promises: addresses are tried in their order; the error is that of the last one. One that answers and does not let the user in
//! ends the search.

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use std::io;
use std::net::SocketAddr;

use forebay_stream::Socket;

use crate::config::{Config, Endpoint};
use crate::error::ConnectError;
use crate::handshake;
use crate::link::Link;
use crate::tls::Tls;

/// Connects once.
///
/// # Errors
/// [`ConnectError`].
///
/// # Cancel safety
/// Dropped before it completes, there is no connection.
pub async fn connect(config: &Config) -> Result<Link, ConnectError> {
    Connector::new(config.clone())?.connect().await
}

/// Connects as often as it is asked to, and reads certificates once.
#[derive(Debug, Clone)]
pub struct Connector {
    config: Config,
    tls: Option<Tls>,
}

impl Connector {
    /// Of a config; reads its certificates.
    ///
    /// # Errors
    /// [`ConnectError::Tls`] if they cannot be used.
    pub fn new(config: Config) -> Result<Self, ConnectError> {
        let tls = match (&config.endpoint, &config.tls) {
            (Endpoint::Tcp(host, _), Some(options)) => Some(Tls::new(options, host)?),
            // Whoever can read a socket's file is on this machine: there is nothing to encrypt.
            _ => None,
        };
        Ok(Self { config, tls })
    }

    /// What it connects to.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Connects.
    ///
    /// # Errors
    /// [`ConnectError`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, there is no connection.
    pub async fn connect(&self) -> Result<Link, ConnectError> {
        let connecting = async {
            let socket = self.socket().await.map_err(ConnectError::Unreachable)?;
            handshake::begin(socket, &self.config, self.tls.as_ref()).await
        };
        let Some(waited) = self.config.connect_timeout else {
            return connecting.await;
        };
        match tokio::time::timeout(waited, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Silent(waited)),
        }
    }

    async fn socket(&self) -> io::Result<Socket> {
        match &self.config.endpoint {
            Endpoint::Unix(file) => UnixStream::connect(file).await.map(Socket::Unix),
            Endpoint::Tcp(host, port) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in lookup_host((&**host, *port)).await? {
                    match self.tcp(address).await {
                        Ok(stream) => return Ok(Socket::Tcp(stream)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    async fn tcp(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(self.config.tcp_nodelay)?;
        if let Some(idle) = self.config.tcp_keepalive {
            SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))?;
        }
        Ok(stream)
    }
}
