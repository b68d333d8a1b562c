//! One address for a server that is started again on another port each time.
//!
//! Promises: bytes pass unchanged, both ways; a connection ends when either side does, or when all are cut. Where the server is away, a client's
//! connection ends at once. Knows no protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// Dropping it takes no more connections; those there are go on.
pub(super) struct Door {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    /// Counts the cuts.
    cuts: watch::Sender<u64>,
    taking: JoinHandle<()>,
}

impl Door {
    /// In the runtime it is opened in.
    pub(super) async fn open(server: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(Failure::system("listen on 127.0.0.1"))?;
        let address = listener.local_addr().map_err(Failure::system("ask for a port"))?;
        let server = Arc::new(Mutex::new(server));
        let (cuts, cut) = watch::channel(0);
        let taking = tokio::spawn(take(listener, Arc::clone(&server), cut));
        Ok(Self {
            address,
            server,
            cuts,
            taking,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the connections there are, whatever is on its way.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// New connections go there.
    pub(super) fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.taking.abort();
    }
}

async fn take(listener: TcpListener, server: Arc<Mutex<SocketAddr>>, cut: watch::Receiver<u64>) {
    // The clients are a pool of connections: as many as it has.
    while let Ok((mut client, _)) = listener.accept().await {
        let address = *server.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cut = cut.clone();
        cut.mark_unchanged();
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(address).await {
                // Without it small packets wait for one another. Either side's end is the connection's.
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = cut.changed() => {}
                }
            }
        });
    }
}
