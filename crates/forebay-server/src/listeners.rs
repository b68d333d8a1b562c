//! Listeners: where clients connect: an address, and a Unix socket in a folder, named as PostgreSQL's clients look for it.
//!
//! Promises: a socket's file that a server has left behind is replaced, one that somebody listens on is not; it goes with this server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
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
    /// On this listener, and in the folder, if there is one, under the same port; there by the socket that was handed over, if there is one.
    pub(crate) async fn new(
        tcp: TcpListener,
        folder: Option<&Path>,
        handed: Option<std::os::unix::net::UnixListener>,
    ) -> Result<Self, ServeError> {
        let local = match folder {
            None => None,
            Some(folder) => {
                let port = tcp.local_addr().map_or(0, |address| address.port());
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let local = match handed.filter(|handed| is_at(handed, &path)) {
                    Some(handed) => Local::of(handed, &path),
                    None => Local::listen(&path).await,
                };
                Some(local.map_err(|cause| ServeError::Socket { path, cause })?)
            }
        };
        Ok(Self { tcp, local })
    }

    /// The same sockets, to be handed to another process.
    pub(crate) fn sockets(&self) -> io::Result<(std::net::TcpListener, Option<std::os::unix::net::UnixListener>)> {
        let tcp = self.tcp.as_fd().try_clone_to_owned()?.into();
        let local = self
            .local
            .as_ref()
            .map(|local| local.listener.as_fd().try_clone_to_owned());
        Ok((tcp, local.transpose()?.map(Into::into)))
    }

    /// Listens no more, while another process does on the same sockets.
    pub(crate) fn leave(self) {
        if let Some(local) = self.local {
            local.file.leave();
        }
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
    file: SocketFile,
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
            file: SocketFile::of(path)?,
        })
    }

    /// One that another process has made.
    fn of(handed: std::os::unix::net::UnixListener, path: &Path) -> io::Result<Self> {
        handed.set_nonblocking(true)?;
        Ok(Self {
            listener: UnixListener::from_std(handed)?,
            file: SocketFile::of(path)?,
        })
    }
}

fn is_at(listener: &std::os::unix::net::UnixListener, path: &Path) -> bool {
    let at = listener.local_addr();
    at.is_ok_and(|at| at.as_pathname() == Some(path))
}

/// A socket's file, removed when this is dropped, unless another's stands there.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
    is_left: bool,
}

impl SocketFile {
    /// The one that is there.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            inode: std::fs::metadata(path)?.ino(),
            is_left: false,
        })
    }

    /// It is another's from now on.
    fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_left && std::fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // One that stays is replaced by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
