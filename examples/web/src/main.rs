//! A web service that writes a row a request: with Forebay, and as it would be without.
//!
//! Promises: an answer of 200 means that the row is committed with the database's full durability, and `id` is that row's own;
//! an error is a 5xx whose text says what happened and whether the row may be there. Requests and their time are bounded; on
//! Ctrl-C and SIGTERM all that was taken in is answered.
//!
//! `cargo run --release -p web -- [sqlite:PATH | postgresql://… | mysql://… | mariadb://…]`
//!
//! | request | answer |
//! |---|---|
//! | `GET /batched?id=7` | Forebay's Writer: requests that come while a commit runs share the next one |
//! | `GET /unbatched?id=7` | a commit of its own, by a pool of prepared connections |
//! | `GET /unpooled?id=7` | a commit of its own, by a connection of its own |
//! | `GET /unwritten?id=7` | nothing is written: what the web server alone can do |
//! | `GET /user/7` | Forebay's Cache, over a Loader over a query |
//!
//! The service is in `service`, what it does with a database in `database`, what Forebay is held against in `unbatched`.

mod database;
mod entry;
mod failure;
mod service;
mod unbatched;
mod users;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use self::service::{Limits, Service};

/// A web service that writes a row a request: with Forebay, and as it would be without.
#[derive(Debug, Parser)]
struct Arguments {
    /// The database: `sqlite:PATH`, `postgresql://…`, `mysql://…` or `mariadb://…`. The tables `entry` and `users` are made where they are not there.
    #[arg(default_value = "sqlite:web.db")]
    database: String,
    /// Where to listen; port 0 is any free one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// Connections of /unbatched. Default: as many as the database does best with.
    #[arg(long)]
    pool: Option<usize>,
    #[command(flatten)]
    limits: Limits,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("web: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    allow_many_connections();
    let database = database::open(&arguments.database, arguments.pool).await?;
    // Before anybody is told that we are here: a signal must find us listening to it.
    let stop = stop_signal()?;
    let listener = TcpListener::bind(arguments.listen).await.map_err(|cause| {
        format!(
            "cannot listen on {}: {cause}; --listen chooses another address",
            arguments.listen
        )
    })?;
    println!(
        "{}\nhttp://{}/batched?id=1, until Ctrl-C",
        database.name(),
        listener.local_addr()?
    );
    std::io::stdout().flush()?;
    let written = Service::new(database, arguments.limits).serve(listener, stop).await?;
    println!("stopped; {written}");
    Ok(())
}

/// Every visitor is a file to the system, and so is every connection to the database.
fn allow_many_connections() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    // Where that is not allowed there are fewer, and errors that say so.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Ends at the first Ctrl-C or SIGTERM.
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
