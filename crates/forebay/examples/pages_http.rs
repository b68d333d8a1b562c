//! Ranges of a large file over HTTP, from a page pool: a request with `Range: bytes=0-99` is answered with those bytes, from
//! memory where they are there, without a copy between the pool and the socket's buffers.
//!
//! `cargo run --release -p forebay --example pages_http -- FILE`, and in another terminal:
//! `curl -s -r 0-99 http://127.0.0.1:3000/ | xxd`, `curl -sI -r -5 http://127.0.0.1:3000/`.
//!
//! One range a request, as `bytes=first-last`, `bytes=first-` or `bytes=-count`; others get the whole file, which HTTP allows.
//! What is longer than a piece is sent in pieces, so that a slow client holds no more than one of them in memory.

use std::error::Error;
use std::ops::Range;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::get;
use forebay::pages::{PageError, PagePool, PagedFile};
use futures_util::stream::{self, StreamExt};

/// As much of a response is held at once.
const PIECE: u64 = 1 << 20;

/// What a `Range` header asks for in a file of this length: `None` if it is to be left aside, an error if there is no such range.
fn wanted(value: &str, length: u64) -> Option<Result<Range<u64>, ()>> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", count) => length.saturating_sub(count.parse().ok()?)..length,
        (first, "") => first.parse().ok()?..length,
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if range.is_empty() { Err(()) } else { Ok(range) })
}

async fn serve(State(file): State<PagedFile>, headers: HeaderMap) -> Response {
    let length = file.len();
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match asked.and_then(|value| wanted(value, length)) {
        None => (StatusCode::OK, 0..length),
        Some(Ok(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Err(())) => {
            let headers = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response();
        }
    };
    let mut headers = vec![
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        headers.push((header::CONTENT_RANGE, format!("bytes {}-{}/{length}", range.start, range.end - 1)));
    }
    // The first piece is had before anything is said, so that what fails can be told.
    let first = match piece(&file, &range).await {
        Ok(first) => first,
        Err(error) => return refusal(&error),
    };
    let rest = range.start + first.len() as u64..range.end;
    let rest = stream::try_unfold((file, rest), |(file, rest)| async move {
        if rest.is_empty() {
            return Ok::<_, PageError>(None);
        }
        let bytes = piece(&file, &rest).await?;
        let rest = rest.start + bytes.len() as u64..rest.end;
        Ok(Some((bytes, (file, rest))))
    });
    let body = stream::iter([Ok(first)]).chain(rest);
    (status, AppendHeaders(headers), Body::from_stream(body)).into_response()
}

/// The first bytes of a range, not copied: they are held until they are sent.
async fn piece(file: &PagedFile, range: &Range<u64>) -> Result<Bytes, PageError> {
    let view = file.read(range.start..range.end.min(range.start + PIECE)).await?;
    Ok(view.into())
}

fn refusal(error: &PageError) -> Response {
    let status = match error {
        // Too many slow clients hold too much: later there is room.
        PageError::Full { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string()).into_response()
}

/// The service for a file.
pub(crate) async fn service(pool: &PagePool, path: &str) -> Result<Router, PageError> {
    let file = pool.open(path).await?;
    Ok(Router::new().route("/", get(serve)).with_state(file))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: pages_http FILE")?;
    let pool = PagePool::builder().memory(256 << 20).build()?;
    let service = service(&pool, &path).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("ranges of {path} at http://{}/", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
