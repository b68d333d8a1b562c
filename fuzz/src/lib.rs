//! Stage: where bytes are said to a link, or to a reader, as a network would bring them.
//!
//! Promises: the same bytes are parted in the same way each time, by their number; after the last one comes the end. Knows no
//! protocol.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};

/// Longer than anything takes that does not hang.
const SOON: Duration = Duration::from_secs(10);

/// So many bytes come at once: few of few, so that many bytes take no longer.
fn piece_bytes(bytes: &[u8]) -> usize {
    match bytes.len() % 4 {
        0 => bytes.len() / 200 + 1,
        1 => bytes.len() / 30 + 1,
        _ => usize::MAX,
    }
}

/// A server that says what it is given.
#[derive(Debug)]
pub struct Stage {
    runtime: Runtime,
    folder: tempfile::TempDir,
    listener: UnixListener,
}

impl Stage {
    /// With a socket of this name in a folder of its own.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn new(socket: &str) -> Self {
        let runtime = runtime();
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let inside = runtime.enter();
        let listener = UnixListener::bind(folder.path().join(socket)).expect("the folder is new");
        drop(inside);
        Self {
            runtime,
            folder,
            listener,
        }
    }

    /// Where its socket is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its socket is, by the socket's name.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Says these bytes to the one who connects meanwhile.
    ///
    /// # Panics
    /// If that hangs.
    pub fn say(&self, bytes: &[u8], client: impl Future<Output = ()>) {
        let saying = async {
            let (stream, _) = self.listener.accept().await.expect("somebody connects");
            let (mut from, mut to) = stream.into_split();
            let said = async {
                for piece in bytes.chunks(piece_bytes(bytes)) {
                    if to.write_all(piece).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
                drop(to.shutdown().await);
            };
            let mut heard = Vec::new();
            let _ = tokio::join!(said, from.read_to_end(&mut heard));
        };
        self.runtime.block_on(async {
            let both = async { tokio::join!(client, saying) };
            tokio::time::timeout(SOON, both).await.expect("no wait is for ever");
        });
    }
}

/// A runtime of one thread.
///
/// # Panics
/// When the system refuses.
pub fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime is begun")
}

/// Bytes that come in pieces.
#[derive(Debug)]
pub struct Trickle<'a> {
    bytes: &'a [u8],
    piece_bytes: usize,
}

impl<'a> Trickle<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            piece_bytes: piece_bytes(bytes),
        }
    }
}

impl AsyncRead for Trickle<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length = self.bytes.len().min(self.piece_bytes).min(buffer.remaining());
        let (piece, rest) = self.bytes.split_at(length);
        buffer.put_slice(piece);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}
