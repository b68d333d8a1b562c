//! The door: clients come in here, whatever they are to find behind it.
//!
//! Promises: there are never more clients than there are places; who is too many is told so, up to a bound; a request to cancel gets
//! through all the same. Once the server drains nobody comes in. Failed logins are logged. Does not know what a session is.

use std::sync::Arc;
use std::time::Duration;

use forebay_pg_wire::error::WireError;
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::{Client, Handshake, Opening, StartUpError};
use forebay_stream::Socket;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::denials::Denials;
use crate::listeners::{Listeners, Peer};

/// Clients that are told they are too many, at a time; those beyond are closed unheard.
const REFUSALS_MAX: usize = 256;

/// Whether somebody is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// Another process lets in whoever comes.
    HandedOver,
    Closed,
}

/// What is behind the door.
pub(crate) trait Behind: Send + Sync + 'static {
    /// Serves a client to its end; or why it is not served, which it has been told.
    fn serve(&self, client: Client<Socket>, peer: Peer) -> impl Future<Output = Result<(), StartUpError>> + Send;

    /// Cancels what runs for the client of this number, if this is its key.
    fn cancel(&self, process_id: i32, secret_key: &[u8]) -> impl Future<Output = ()> + Send;
}

/// Accepts clients until the door is open no more, each by the handshake that holds when it comes, and gives back the sessions that are left.
pub(crate) async fn accept<B: Behind>(
    listeners: Listeners,
    handshake: watch::Receiver<Arc<Handshake>>,
    behind: Arc<B>,
    phase: watch::Receiver<Phase>,
    mut door: watch::Receiver<Door>,
    max_connections: usize,
) -> JoinSet<()> {
    let places = Arc::new(Semaphore::new(max_connections));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let denials = Arc::new(Denials::default());
    let mut sessions = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            closed = door.wait_for(|door| *door != Door::Open) => {
                let is_handed_over = closed.is_ok_and(|door| *door == Door::HandedOver);
                if is_handed_over {
                    listeners.leave();
                }
                return sessions;
            }
            Some(_) = sessions.join_next() => continue,
            accepted = listeners.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, mostly: others must end before it gets better.
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (place, refusal) = match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => (place, None),
            Err(_) => match Arc::clone(&refusals).try_acquire_owned() {
                Ok(place) => {
                    let refusal = WireError::fatal("53300", "sorry, too many clients already").with_hint(format!(
                        "The server takes {max_connections} connections (--max-connections)."
                    ));
                    (place, Some(refusal))
                }
                Err(_) => continue,
            },
        };
        let handshake = Arc::clone(&handshake.borrow());
        let (behind, denials) = (Arc::clone(&behind), Arc::clone(&denials));
        let phase = phase.clone();
        sessions.spawn(async move {
            let _place = place;
            let led_in = lead_in(stream, peer, &handshake, &*behind, phase, refusal).await;
            match led_in {
                Err(StartUpError::Denied { user, error }) => denials.log(&user, peer, &error),
                Err(StartUpError::Tls(error)) => denials.log_certificate(peer, &error),
                _ => {}
            }
        });
    }
}

async fn lead_in(
    stream: Socket,
    peer: Peer,
    handshake: &Handshake,
    behind: &impl Behind,
    mut phase: watch::Receiver<Phase>,
    refusal: Option<WireError>,
) -> Result<(), StartUpError> {
    let opening = tokio::select! {
        biased;
        opening = handshake.run(stream, peer.origin(), refusal) => opening,
        // Whoever is not in yet when the server stops does not come in, and is not waited for.
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => return Ok(()),
    };
    match opening {
        Ok(Opening::Client(client)) => {
            let _open = Open::count();
            behind.serve(*client, peer).await?;
        }
        Ok(Opening::Cancel {
            connection,
            process_id,
            secret_key,
        }) => {
            behind.cancel(process_id, &secret_key).await;
            drop(connection);
        }
        Ok(_) => {}
        Err(error) => {
            tracing::debug!(%error, "no session");
            return Err(error);
        }
    }
    Ok(())
}

/// Counts a session while it lives.
struct Open;

impl Open {
    fn count() -> Self {
        metrics::gauge!("forebay_connections").increment(1);
        metrics::counter!("forebay_connections_total").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("forebay_connections").decrement(1);
    }
}
