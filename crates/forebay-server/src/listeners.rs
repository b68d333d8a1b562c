//! Listeners: where clients connect: an address, and a Unix socket in a folder, named as PostgreSQL's clients look for it.
//!
//! Promises: a socket's file that a server has left behind is replaced, one that somebody listens on is not; it goes with this server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use forebay_pg_wire::gate::Origin;
use forebay_stream::Socket;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::error::ServeError;

/// Whoever reaches the folder may connect, as with PostgreSQL's own.
const MODE: u32 = 0o777;

/// Where clients connect.
pub(crate) struct Listeners {
    tcp: TcpListener,
    local: Option<Local>,
}

/// From where somebody has connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// An address.
    Address(SocketAddr),
    /// A Unix socket of this machine.
    Local,
}

impl Peer {
    /// As the handshake takes it.
    pub(crate) fn origin(self) -> Origin {
        match self {
            Self::Address(address) => Origin::Address(address.ip()),
            Self::Local => Origin::Socket,
        }
    }

    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::Local => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Local => formatter.write_str("[local]"),
        }
    }
}

impl Listeners {
    /// On this listener, and in the folder, if there is one, under the same port.
    pub(crate) async fn new(tcp: TcpListener, folder: Option<&Path>) -> Result<Self, ServeError> {
        let local = match folder {
            None => None,
            Some(folder) => {
                let port = tcp.local_addr().map_or(0, |address| address.port());
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let local = Local::listen(&path).await;
                Some(local.map_err(|cause| ServeError::Socket { path, cause })?)
            }
        };
        Ok(Self { tcp, local })
    }

    /// The next who connects.
    ///
    /// # Cancel safety
    /// Dropped, nobody is lost.
    pub(crate) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        let local = async {
            match &self.local {
                Some(local) => local.listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.tcp.accept() => {
                let (stream, address) = accepted?;
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "no TCP_NODELAY");
                }
                Ok((Socket::Tcp(stream), Peer::Address(address)))
            }
            accepted = local => Ok((Socket::Unix(accepted?.0), Peer::Local)),
        }
    }
}

/// A Unix socket.
struct Local {
    listener: UnixListener,
    path: PathBuf,
    /// The number of its file: another server's may stand there when this one goes.
    inode: u64,
}

impl Local {
    async fn listen(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                match UnixStream::connect(path).await {
                    Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
                    Ok(_) | Err(_) => return Err(error),
                }
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        std::fs::set_permissions(path, PermissionsExt::from_mode(MODE))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode: std::fs::metadata(path)?.ino(),
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if std::fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // One that stays is replaced by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
