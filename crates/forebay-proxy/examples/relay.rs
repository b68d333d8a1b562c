//! The proxy alone, to be measured: `relay LISTEN UPSTREAM [WORKERS]`.
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use forebay_pg_wire::authentication::{Authenticator, Origin};
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::{Handshake, Opening};
use forebay_proxy::pool::Limits;
use forebay_proxy::{Cancels, Identity, Session, Upstream, UpstreamOptions};
use tokio::sync::watch;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let workers: usize = arguments.get(3).map_or(Ok(0), |text| text.parse())?;
    let runtime = match workers {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        workers => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build(),
    }?;
    runtime.block_on(serve(&arguments[1], &arguments[2]))
}

async fn serve(listen: &str, upstream: &str) -> Result<(), Box<dyn Error>> {
    let limits = Limits {
        max_connections: std::env::var("POOL").map_or(Ok(20), |text| text.parse())?,
        max_waiting: 100_000,
        max_wait: Duration::from_secs(120),
        ..Limits::default()
    };
    let upstream = Arc::new(Upstream::new(UpstreamOptions::new(upstream.parse()?, limits)));
    let cancels = Arc::new(Cancels::default());
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let handshake = Arc::new(Handshake::new(Authenticator::trust(), None, Duration::from_secs(10)));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (upstream, cancels, handshake) = (Arc::clone(&upstream), Arc::clone(&cancels), Arc::clone(&handshake));
        tokio::spawn(async move {
            match handshake.run(stream, Origin::Here, None).await {
                Ok(Opening::Client(client)) => {
                    let identity = Identity {
                        secret_bytes: client.secret_key_bytes(),
                        keys: client.keys,
                        user: client.user,
                        database: client.database,
                        parameters: client.parameters,
                    };
                    let (stream, input) = client.frames.into_parts();
                    if let Some(session) =
                        Session::begin(stream, input, client.output, &identity, &upstream, &cancels).await
                    {
                        session.run(watch::channel(Phase::Serving).1).await;
                    }
                }
                Ok(Opening::Cancel { process_id, secret_key }) => cancels.cancel(process_id, &secret_key).await,
                _ => {}
            }
        });
    }
}
