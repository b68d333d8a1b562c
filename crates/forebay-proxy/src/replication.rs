//! Replication: a session that is for the database's log, on a connection of its own from its beginning to its end.
//!
//! Promises: bytes pass as they are, both ways, and slow readers are waited for. A cancel of the client's reaches its connection. It ends at once
//! when it is told to go, as its messages may be of any length. Takes no place in any pool.

use std::sync::Arc;

use bytes::BytesMut;
use forebay_pg_link::{ConnectError, Link};
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::Connection;
use forebay_stream::Socket;
use tokio::io::{AsyncWriteExt, copy_bidirectional};

use crate::clients::{Clients, Doing, Registration, Target};
use crate::credentials::secret_of;
use crate::databases::Databases;
use crate::end::put_refusal;
use crate::frames;
use crate::refusal::Refusal;
use crate::session::{Identity, registered};
use crate::upstream::Upstream;

/// Serves a client that has logged in to replicate, until it goes or is [told](Clients::tell) to: `output` is what is due to it before its
/// settings.
///
/// # Errors
/// Why it was refused, for the log: it has been told.
///
/// # Cancel safety
/// Dropped, the client is hung up on, and so is the server.
pub async fn replicate(
    mut stream: Connection<Socket>,
    input: BytesMut,
    mut output: BytesMut,
    identity: &Identity,
    databases: &Arc<Databases>,
    clients: &Arc<Clients>,
) -> Result<(), WireError> {
    let found = databases.of(&identity.database);
    let let_in = found.and_then(|upstream| Ok((registered(clients, identity, &upstream)?, upstream)));
    let connected = match let_in {
        Ok((registration, upstream)) => match connect(&upstream, identity).await {
            Ok(link) => Ok((registration, link)),
            Err(error) => {
                let is_proven = identity.proof.is_some();
                Err(Refusal::of(
                    &error.into(),
                    &identity.user,
                    is_proven,
                    &upstream.settings(),
                ))
            }
        },
        Err(error) => Err(Refusal::from(error)),
    };
    let (served, outcome) = match connected {
        Ok((registration, link)) => (relay(&mut stream, input, output, &registration, link).await, Ok(())),
        Err(refusal) => {
            put_refusal(&mut output, &refusal.told);
            (stream.write_all_buf(&mut output).await, Err(refusal.logged))
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a session of replication has ended");
    }
    // It may have gone.
    drop(stream.shutdown().await);
    outcome
}

async fn connect(upstream: &Upstream, identity: &Identity) -> Result<Link, ConnectError> {
    let settings = upstream.settings();
    let mut parameters = identity.parameters.clone();
    parameters.extend(identity.replication.parameter());
    let secret = match settings.own_verifier(&identity.user) {
        Some(_) => None,
        None => identity
            .proof
            .as_ref()
            .map(secret_of)
            .or_else(|| upstream.credentials.secret(&identity.user)),
    };
    let connector = settings.connector(&identity.user, &identity.database)?;
    let connected = connector.beginning(&parameters, secret).connect().await;
    upstream.connected(&connected);
    connected
}

async fn relay(
    stream: &mut Connection<Socket>,
    input: BytesMut,
    mut output: BytesMut,
    registration: &Registration,
    link: Link,
) -> std::io::Result<()> {
    let mut parts = link.into_parts();
    let entry = &registration.entry;
    output.extend_from_slice(&parts.greeting);
    for (name, value) in &parts.parameters {
        frames::put(&mut output, b'S', &[name.as_bytes(), &[0], value, &[0]]);
    }
    frames::put(&mut output, b'K', &[&entry.process_id.to_be_bytes(), &entry.secret]);
    frames::put(&mut output, b'Z', &[b"I"]);
    output.extend_from_slice(&parts.unread);
    entry.set_running(Some(Target {
        token: parts.cancel,
        requests: Arc::default(),
    }));
    entry.set_doing(Doing::Pinned);
    stream.write_all_buf(&mut output).await?;
    stream.flush().await?;
    parts.stream.write_all(&input).await?;
    let told = std::future::poll_fn(|context| match entry.poll_phase(context) {
        Phase::Serving => std::task::Poll::Pending,
        Phase::Draining | Phase::Stopping => std::task::Poll::Ready(()),
    });
    tokio::select! {
        copied = copy_bidirectional(stream, &mut parts.stream) => copied.map(drop),
        () = told => Ok(()),
    }
}
