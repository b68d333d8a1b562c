//! A proxy of this process, on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use forebay_pg_wire::authentication::Authenticator;
use forebay_pg_wire::gate::Origin;
use forebay_pg_wire::startup::{Handshake, Opening};
use forebay_proxy::pool::{Limits, Sharing};
use forebay_proxy::{Clients, Databases, Identity, Session, UpstreamOptions};
use forebay_stream::Socket;
use tokio::net::{TcpListener, TcpStream};

/// Who says that this is its name may look at what the proxy does.
pub(crate) const ADMIN: (&str, &str) = ("application_name", "the judge's own");

/// Serves in front of this address for as long as the process lives; where it does.
pub(crate) fn start(upstream: &str, connections: usize) -> String {
    start_with(upstream, connections, false, Sharing::default())
}

/// The same; each transaction runs on another connection than the one before, if there is one.
pub(crate) fn start_straying(upstream: &str, connections: usize) -> String {
    start_with(upstream, connections, true, Sharing::default())
}

/// The same; all that may travel in company does, also where there is nobody else.
pub(crate) fn start_in_company(upstream: &str, connections: usize) -> String {
    let sharing = Sharing {
        max_reads_alone: 0,
        max_changes_alone: 0,
        quick: Duration::from_secs(60),
        min_jointly: 1,
        min_asked: 0,
        ..Sharing::default()
    };
    start_with(upstream, connections, false, sharing)
}

fn start_with(upstream: &str, connections: usize, strays: bool, sharing: Sharing) -> String {
    let limits = Limits {
        sharing,
        max_connections: connections,
        max_waiting: 1000,
        max_wait: Duration::from_secs(60),
        strays,
        ..Limits::default()
    };
    let config = format!("postgresql://{upstream}?sslmode=disable").parse().unwrap();
    let databases = Arc::new(Databases::new([], Some(UpstreamOptions::new(config, limits)), None).unwrap());
    let (told, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap().to_string()).unwrap();
            let handshake = Arc::new(Handshake::new(Authenticator::trust(), None, Duration::from_secs(10)));
            let clients = Arc::new(Clients::default());
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let parts = (Arc::clone(&handshake), Arc::clone(&databases), Arc::clone(&clients));
                tokio::spawn(serve(stream, parts));
            }
        });
    });
    address.recv().unwrap()
}

async fn serve(stream: TcpStream, (handshake, databases, clients): (Arc<Handshake>, Arc<Databases>, Arc<Clients>)) {
    match handshake.run(Socket::Tcp(stream), Origin::Socket, None).await {
        Ok(Opening::Client(client)) => {
            let mut parameters = client.parameters.iter();
            let is_judge = parameters.any(|(name, value)| (name.as_str(), value.as_str()) == ADMIN);
            let identity = Identity {
                secret_bytes: client.secret_key_bytes(),
                proof: client.proof,
                replication: client.replication,
                user: client.user,
                database: client.database,
                parameters: client.parameters,
                address: None,
                is_admin: is_judge,
            };
            let (stream, input) = client.frames.into_parts();
            let begun = Session::begin(stream, input, client.output, &identity, &databases, &clients).await;
            if let Ok(session) = begun {
                session.run().await;
            }
        }
        Ok(Opening::Cancel {
            connection,
            process_id,
            secret_key,
        }) => {
            clients.cancel(process_id, &secret_key).await;
            drop(connection);
        }
        Ok(_) | Err(_) => {}
    }
}
