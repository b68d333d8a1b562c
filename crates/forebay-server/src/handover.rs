//! Handover: a server that starts takes the sockets of the one that runs, so that nobody who connects is refused.
//!
//! Promises: whoever waits to be accepted is accepted by the one or the other, for the sockets are passed, and never closed. The one that runs
//! goes on as before until the other says that it serves; then it lets nobody in any more, and its clients stay until they go. A cancel that
//! comes to the new one reaches a client of the old one, and of the one before that. Nothing is handed to a process of another user. Knows no session.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use crate::listeners::SocketFile;

/// Only its owner may ask.
const MODE: u32 = 0o600;
/// What is spoken, so that one that speaks otherwise is noticed.
const VERSION: u8 = 1;
const HAS_LOCAL: u8 = 1;
const HAS_HTTP: u8 = 2;
/// What the new one says once it serves.
const SERVES: u8 = b'S';
/// What the old one says behind a cancel.
const DONE: u8 = b'D';
/// What the old one says to the one whose the sockets are now.
const YOURS: u8 = b'Y';
/// It answers at once, if it lives.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// As PostgreSQL's protocol bounds it.
const KEY_BYTES_MAX: usize = 256;

/// What a server listens on.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) tcp: TcpListener,
    pub(crate) local: Option<StdUnixListener>,
    pub(crate) http: Option<TcpListener>,
}

impl Sockets {
    fn header(&self) -> [u8; 2] {
        let has = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
        [
            VERSION,
            has(self.local.is_some(), HAS_LOCAL) | has(self.http.is_some(), HAS_HTTP),
        ]
    }

    async fn send(&self, stream: &UnixStream) -> io::Result<()> {
        let header = self.header();
        let mut sockets = vec![self.tcp.as_fd()];
        sockets.extend(self.local.as_ref().map(AsFd::as_fd));
        sockets.extend(self.http.as_ref().map(AsFd::as_fd));
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
                return Err(io::Error::other("there is no room for so many sockets"));
            }
            let sent = sendmsg(stream, &[IoSlice::new(&header)], &mut ancillary, SendFlags::NOSIGNAL)?;
            (sent == header.len())
                .then_some(())
                .ok_or(io::ErrorKind::WriteZero.into())
        };
        stream.async_io(Interest::WRITABLE, send).await
    }

    async fn receive(stream: &UnixStream) -> io::Result<Self> {
        let (header, sockets) = stream
            .async_io(Interest::READABLE, || {
                let mut header = [0; 2];
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let into = &mut [IoSliceMut::new(&mut header)];
                let received = recvmsg(stream, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
                if received.bytes < 2 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let rights = ancillary.drain().filter_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
                    _ => None,
                });
                Ok((header, rights.flatten().collect::<Vec<OwnedFd>>()))
            })
            .await?;
        if header[0] != VERSION {
            let why = format!(
                "it speaks version {} of the handover, and this one {VERSION}",
                header[0]
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let mut sockets = sockets.into_iter();
        let mut next = || sockets.next().ok_or(io::Error::from(io::ErrorKind::InvalidData));
        Ok(Self {
            tcp: next()?.into(),
            local: if header[1] & HAS_LOCAL == 0 {
                None
            } else {
                Some(next()?.into())
            },
            http: if header[1] & HAS_HTTP == 0 {
                None
            } else {
                Some(next()?.into())
            },
        })
    }

    /// The one that listens there, or anywhere at that address where the port is the system's to choose.
    pub(crate) fn take(listener: TcpListener, wanted: SocketAddr) -> Option<TcpListener> {
        let at = listener.local_addr().ok()?;
        let is_wanted = at.ip() == wanted.ip() && (wanted.port() == 0 || at.port() == wanted.port());
        is_wanted.then_some(listener)
    }
}

/// Where a server that starts will ask the one that runs.
#[derive(Debug)]
pub(crate) struct Offer {
    listener: UnixListener,
    /// Where it listens until it [stands](Self::stand) where it is asked.
    beside: PathBuf,
}

impl Offer {
    /// Beside the path, where nobody asks yet.
    pub(crate) fn beside(path: &Path) -> io::Result<Self> {
        let mut beside = path.to_owned().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&beside)?;
        std::fs::set_permissions(&beside, PermissionsExt::from_mode(MODE))?;
        Ok(Self { listener, beside })
    }

    /// In place of whatever socket is there: who has asked it has been answered.
    pub(crate) fn stand(self, path: &Path) -> io::Result<StandingOffer> {
        std::fs::rename(&self.beside, path)?;
        Ok(StandingOffer {
            listener: self.listener,
            _file: SocketFile::of(path)?,
        })
    }
}

/// Where a server that starts asks the one that runs.
#[derive(Debug)]
pub(crate) struct StandingOffer {
    listener: UnixListener,
    /// Removed when the server ends, unless another's stands there.
    _file: SocketFile,
}

impl StandingOffer {
    /// Waits for one that has taken the sockets and serves: of several, the first that says so. Who says nothing keeps nobody from them.
    ///
    /// # Cancel safety
    /// Dropped, those that are about to take them hear no answer, and do not start.
    pub(crate) async fn successor(self, sockets: Sockets) -> Successor {
        let sockets = Arc::new(sockets);
        let mut asked = JoinSet::new();
        loop {
            let taken = tokio::select! {
                Some(taken) = asked.join_next() => taken.map_err(io::Error::from).flatten(),
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        asked.spawn(hand_over(stream, Arc::clone(&sockets)));
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            let told = match taken {
                Ok(Some(mut stream)) => stream.write_u8(YOURS).await.map(|()| Some(Successor(stream))),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            match told {
                Ok(Some(successor)) => return successor,
                Ok(None) => tracing::warn!("somebody of another user has asked for the sockets"),
                Err(error) => tracing::warn!(%error, "a server that has asked for the sockets does not serve"),
            }
        }
    }
}

/// None for another user's process.
async fn hand_over(mut stream: UnixStream, sockets: Arc<Sockets>) -> io::Result<Option<UnixStream>> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    sockets.send(&stream).await?;
    match stream.read_u8().await? {
        SERVES => Ok(Some(stream)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The one that has taken the sockets.
#[derive(Debug)]
pub(crate) struct Successor(UnixStream);

impl Successor {
    /// Carries out the cancels that it passes on, for as long as it lives.
    ///
    /// # Cancel safety
    /// Dropped, none is carried out any more.
    pub(crate) async fn serve(mut self, cancel: impl AsyncFn(i32, &[u8])) {
        let served: io::Result<()> = async {
            loop {
                let process_id = self.0.read_i32().await?;
                let length = usize::from(self.0.read_u16().await?);
                if length > KEY_BYTES_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let mut key = vec![0; length];
                self.0.read_exact(&mut key).await?;
                cancel(process_id, &key).await;
                self.0.write_u8(DONE).await?;
            }
        }
        .await;
        if let Err(error) = served {
            tracing::debug!(%error, "the server that has taken over passes on no more");
        }
    }
}

/// The one whose sockets were taken.
#[derive(Debug)]
pub(crate) struct Predecessor {
    path: PathBuf,
    to: Mutex<OwnedWriteHalf>,
    /// What it says; closed when it has ended.
    said: Mutex<mpsc::Receiver<u8>>,
    ended: watch::Receiver<()>,
}

impl Predecessor {
    /// Asks the one that runs, if one does, for its sockets. It serves on until it [is told](Self::succeed).
    pub(crate) async fn ask(path: &Path) -> io::Result<Option<(Self, Sockets)>> {
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let sockets = in_time(Sockets::receive(&stream)).await?;
        let (mut from, to) = stream.into_split();
        let (says, said) = mpsc::channel(1);
        let (lives, ended) = watch::channel(());
        tokio::spawn(async move {
            let _lives = lives;
            while let Ok(word) = from.read_u8().await {
                if says.send(word).await.is_err() {
                    break;
                }
            }
        });
        Ok(Some((
            Self {
                path: path.to_owned(),
                to: Mutex::new(to),
                said: Mutex::new(said),
                ended,
            },
            sockets,
        )))
    }

    /// From now on this one serves, and the other lets nobody in.
    ///
    /// # Errors
    /// Where the other has ended, or handed its sockets to another.
    pub(crate) async fn succeed(&self) -> io::Result<()> {
        self.to.lock().await.write_u8(SERVES).await?;
        let answer = async {
            self.said
                .lock()
                .await
                .recv()
                .await
                .ok_or(io::ErrorKind::UnexpectedEof.into())
        };
        match in_time(answer).await? {
            YOURS => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Passes a cancel on; ready when it is carried out. Nothing where the other has ended.
    ///
    /// # Cancel safety
    /// Dropped, whoever comes next may be told too early.
    pub(crate) async fn cancel(&self, process_id: i32, key: &[u8]) {
        let Ok(length) = u16::try_from(key.len()) else { return };
        let mut said = self.said.lock().await;
        let message = [&process_id.to_be_bytes()[..], &length.to_be_bytes(), key].concat();
        let passed = self.to.lock().await.write_all(&message).await;
        if passed.is_err() || said.recv().await.is_none() {
            tracing::debug!(path = %self.path.display(), "the server before has ended");
        }
    }

    /// Ready once the other has ended, and has no clients any more.
    pub(crate) async fn ended(&self) {
        // Nothing is ever sent.
        while self.ended.clone().changed().await.is_ok() {}
    }
}

/// One that hangs is not waited for.
async fn in_time<T>(answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(ANSWERS_WITHIN, answer).await.unwrap_or_else(|_| {
        let why = format!("the server that runs does not answer within {ANSWERS_WITHIN:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}
