//! Network: a relay that keeps what passes, and a server that says it again, in pieces and up to a place.
//!
//! Promises: what was kept is what was said, each way; what is said again is those bytes and no others, and then the end; what the
//! other side says is heard all the while, so that no end is a reset. Knows no protocol.

use std::net::SocketAddr;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::{JoinHandle, yield_now};

/// The longest of pieces of chance.
const PIECE_BYTES_MAX: usize = 60;

/// What both sides of a connection said.
pub(crate) struct Said {
    pub(crate) by_client: Vec<u8>,
    pub(crate) by_server: Vec<u8>,
}

/// Relays one connection to this server: where it listens, and, when it has ended, what was said.
pub(crate) async fn relay(server: SocketAddr) -> (SocketAddr, JoinHandle<Said>) {
    let listener = listener().await;
    let address = listener.local_addr().unwrap();
    let relaying = tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = tokio::net::TcpStream::connect(server).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (by_client, by_server) = tokio::join!(pass(from_client, to_server), pass(from_server, to_client));
        Said { by_client, by_server }
    });
    (address, relaying)
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        all.extend_from_slice(&piece[..length]);
        if to.write_all(&piece[..length]).await.is_err() {
            break;
        }
    }
    all
}

/// A free port.
pub(crate) async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// How bytes are parted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pieces {
    /// Not at all.
    One,
    Bytes,
    /// By chance, of this seed.
    Random(u64),
}

/// Says this to the next one who connects, and then that it is the end: what was heard until the other side went, too.
pub(crate) async fn say(listener: &TcpListener, bytes: &[u8], pieces: Pieces) -> Vec<u8> {
    let (stream, _) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut from, mut to) = stream.into_split();
    let mut heard = Vec::new();
    let mut random = StdRng::seed_from_u64(match pieces {
        Pieces::Random(seed) => seed,
        _ => 0,
    });
    let saying = async {
        let mut left = bytes;
        while !left.is_empty() {
            let length = match pieces {
                Pieces::One => left.len(),
                Pieces::Bytes => 1,
                Pieces::Random(_) => random.random_range(1..=PIECE_BYTES_MAX),
            };
            let (piece, rest) = left.split_at(length.min(left.len()));
            // Who has heard enough goes.
            if to.write_all(piece).await.is_err() {
                return;
            }
            left = rest;
            // The other side reads what is there.
            for _ in 0..3 {
                yield_now().await;
            }
        }
        drop(to.shutdown().await);
    };
    // A link that ends by an error may leave unread what was said: that is a reset, and nothing is heard after it.
    let (_, _) = tokio::join!(saying, from.read_to_end(&mut heard));
    heard
}
