//! The routes, and the bounds on who is let in.
//!
//! Promises: no more requests are worked on at a time than [`Limits`] says, and none for longer; who is over either is told so.
//! Once told to stop, no connection is taken, and what was taken in is answered before `serve` returns.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::database::Database;
use crate::entry::Entry;
use crate::failure::Failure;

/// How much is taken in.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limits {
    /// Requests that may be worked on at a time; those over it get 503.
    #[arg(long, default_value_t = 10_000)]
    max_requests: usize,
    /// The longest that a request may take, in milliseconds; then it gets 504. Longer than the 10 s for which Forebay tries to
    /// reach the database: its own answer, which knows whether the row is there, then comes first.
    #[arg(long, default_value_t = 15_000)]
    timeout_ms: u64,
}

/// Shared by all requests.
struct Shared {
    database: Database,
    limits: Limits,
    room: Semaphore,
}

/// The service, which has yet to be served.
pub(crate) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(crate) fn new(database: Database, limits: Limits) -> Self {
        let room = Semaphore::new(limits.max_requests);
        Self {
            shared: Arc::new(Shared { database, limits, room }),
        }
    }

    /// Answers requests until `stop` ends, and those that have come until then. Says what was written.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<String> {
        let router = Router::new()
            .route("/batched", get(batched))
            .route("/unbatched", get(unbatched))
            .route("/unpooled", get(unpooled))
            .route("/unwritten", get(unwritten))
            .route("/user/{id}", get(user))
            .layer(from_fn_with_state(Arc::clone(&self.shared), within_limits))
            .with_state(Arc::clone(&self.shared));
        axum::serve(listener, router).with_graceful_shutdown(stop).await?;
        Ok(self.shared.database.drain().await)
    }
}

async fn within_limits(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let Limits {
        max_requests,
        timeout_ms,
    } = shared.limits;
    let Ok(_permit) = shared.room.try_acquire() else {
        let cause = format_args!("nothing was done, {max_requests} requests are being worked on; try again");
        return Failure::try_later(cause).into_response();
    };
    match timeout(Duration::from_millis(timeout_ms), next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let cause = format_args!("no outcome after {timeout_ms} ms: what was to be written may be there or not");
            Failure::late(cause).into_response()
        }
    }
}

/// What a visitor wants to be written.
#[derive(Debug, Deserialize)]
struct Wanted {
    id: i32,
}

async fn batched(State(shared): State<Arc<Shared>>, Query(wanted): Query<Wanted>) -> Result<Response, Failure> {
    let entry = Entry::now(wanted.id);
    Ok(written(shared.database.batched(entry).await?, entry))
}

async fn unbatched(State(shared): State<Arc<Shared>>, Query(wanted): Query<Wanted>) -> Result<Response, Failure> {
    let entry = Entry::now(wanted.id);
    Ok(written(shared.database.unbatched().pooled(entry).await?, entry))
}

async fn unpooled(State(shared): State<Arc<Shared>>, Query(wanted): Query<Wanted>) -> Result<Response, Failure> {
    let entry = Entry::now(wanted.id);
    Ok(written(shared.database.unbatched().unpooled(entry).await?, entry))
}

async fn unwritten(Query(wanted): Query<Wanted>) -> Response {
    written(0, Entry::now(wanted.id))
}

/// Always as long: ApacheBench takes an answer that is longer or shorter than the first one for a failed request.
fn written(id: i64, Entry { value, created_at }: Entry) -> Response {
    let json = format!("{{\"id\": {id:>19}, \"value\": {value:>11}, \"created_at\": {created_at:>13}}}\n");
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

async fn user(State(shared): State<Arc<Shared>>, Path(id): Path<i64>) -> Result<Response, Failure> {
    Ok(match shared.database.users().user(id).await? {
        Some(user) => Json(user).into_response(),
        None => (StatusCode::NOT_FOUND, format!("there is no user {id}\n")).into_response(),
    })
}
