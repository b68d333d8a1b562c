//! The HTTP listener: `/metrics` for Prometheus, `/healthz` and `/readyz` for supervisors and load balancers, and a page that names them.
//!
//! Promises: `/healthz` is 200 while the server takes statements, and 503, with the reason in words, once it drains or cannot
//! write; `/readyz` is 200 while clients should be sent here, which asks also for what is behind. A client can hold little: at most [`CONNECTIONS_MAX`] connections, each for at most [`CONNECTION_TIME_MAX`] whatever
//! it sends or does not, and no request has a body that is read. Does not know what is measured, nor when the server drains.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::Html;
use axum::routing::get;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Most connections at once; the next wait.
pub const CONNECTIONS_MAX: usize = 64;

/// A connection is closed after this time, used or not: longer than any answer takes, and a scraper opens the next without ado.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);

const PAGE: &str = "<!doctype html><meta charset=utf-8><title>Forebay</title><h1>Forebay</h1>\
<ul><li><a href=/metrics>/metrics</a>: for Prometheus<li><a href=/healthz>/healthz</a>: 200 while serving, 503 while draining or unable to write\
<li><a href=/readyz>/readyz</a>: 200 while what is behind can be reached, too</ul>";

/// What somebody asks of the server's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Whether it does what it can by itself.
    Health,
    /// Whether clients are to be sent to it.
    Readiness,
}

/// The pages; `metrics` gives the text for Prometheus, `ailing` says why not, if what is asked is not so.
pub fn router<A>(
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    ailing: impl Fn(Asks) -> A + Clone + Send + Sync + 'static,
) -> Router
where
    A: Future<Output = Option<String>> + Send,
{
    let answering = |asks| {
        let ailing = ailing.clone();
        move || {
            let ailing = ailing(asks);
            async move {
                match ailing.await {
                    Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
                    None => (StatusCode::OK, "ok\n".to_owned()),
                }
            }
        }
    };
    let metrics = move || {
        let text = metrics();
        async move {
            (
                [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
                text,
            )
        }
    };
    Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/healthz", get(answering(Asks::Health)))
        .route("/readyz", get(answering(Asks::Readiness)))
        .route("/metrics", get(metrics))
}

/// Serves the pages until `stop` is done, then answers what was asked and returns.
///
/// # Errors
///
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let bounded = Bounded {
        listener,
        permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
    };
    axum::serve(bounded, router).with_graceful_shutdown(stop).await
}

/// A listener whose connections are few and short.
struct Bounded {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Short;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Short, SocketAddr) {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // Retries by itself when the process is out of file descriptors.
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let end = Box::pin(tokio::time::sleep_until(Instant::now() + CONNECTION_TIME_MAX));
        (
            Short {
                stream,
                end,
                _permit: permit,
            },
            peer,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its time is over.
struct Short {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Short {
    fn over(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.end.as_mut().poll(context).is_ready() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for Short {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.over(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Short {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.over(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.over(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::{oneshot, watch};

    use super::*;

    struct Server {
        address: SocketAddr,
        draining: watch::Sender<bool>,
        stop: oneshot::Sender<()>,
        task: tokio::task::JoinHandle<io::Result<()>>,
    }

    async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::counter!("forebay_tested_total").increment(3);
        });
        let (draining, receiver) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let metrics = recorder.handle();
        let ailing = move |asks| {
            let draining = *receiver.borrow();
            async move { (draining && asks == Asks::Health).then(|| "draining".to_owned()) }
        };
        let router = router(move || metrics.render(), ailing);
        let task = tokio::spawn(serve(listener, router, async move {
            let _ = stopped.await;
        }));
        Server {
            address,
            draining,
            stop,
            task,
        }
    }

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_pages_say_what_they_should() {
        let server = start().await;
        assert!(ask(server.address, "/").await.contains("/metrics"));
        assert!(ask(server.address, "/metrics").await.contains("forebay_tested_total 3"));
        let healthy = ask(server.address, "/healthz").await;
        assert!(
            healthy.starts_with("HTTP/1.1 200") && healthy.ends_with("ok\n"),
            "{healthy}"
        );
        server.draining.send(true).unwrap();
        assert!(ask(server.address, "/healthz").await.starts_with("HTTP/1.1 503"));
        assert!(ask(server.address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(ask(server.address, "/nothing").await.starts_with("HTTP/1.1 404"));
        server.stop.send(()).unwrap();
        server.task.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_closed_and_makes_room() {
        let server = start().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        // All places are taken; the answer comes only because the time of the silent ones ends.
        assert!(ask(server.address, "/healthz").await.starts_with("HTTP/1.1 200"));
        let mut closed = Vec::new();
        let _ = silent[0].read_to_end(&mut closed).await;
        assert!(closed.is_empty());
    }

    #[tokio::test]
    async fn endless_headers_are_refused() {
        let server = start().await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let line = [&b"x: "[..], &[b'a'; 1000], b"\r\n"].concat();
        let mut sent = 0;
        while stream.write_all(&line).await.is_ok() {
            sent += line.len();
            assert!(sent < 64 << 20, "never refused");
        }
    }
}
