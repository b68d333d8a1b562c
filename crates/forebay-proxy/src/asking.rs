//! Asking: a question of ours, on a server connection that runs nothing for a session.
//!
//! Promises: nothing of the answer is left behind on it, or it is [lost](Lost). Cancel safety: dropped, the connection is of no use any more.

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

use bytes::{Buf, Bytes};

use crate::frames::{self, HEADER_BYTES};
use crate::intake::poll_take;
use crate::server::{Note, Server};

/// The connection is of no use any more.
#[derive(Debug)]
pub(crate) struct Lost;

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a server connection was lost");
        Self
    }
}

/// Asks a query of ours; its rows, or none if it was refused.
pub(crate) async fn ask(server: &mut Server, sql: &str) -> Result<Option<Vec<Bytes>>, Lost> {
    server.ask(sql, Note::Set);
    let mut rows = Vec::new();
    let is_done = read(server, |tag, message| {
        if tag == b'D' {
            rows.push(Bytes::copy_from_slice(message));
        }
    });
    Ok(is_done.await?.then_some(rows))
}

/// Reads the answer to all that was asked, up to ReadyForQuery. False where it has an error in it.
pub(crate) async fn read(server: &mut Server, each: impl FnMut(u8, &[u8])) -> Result<bool, Lost> {
    let is_done = read_first(server, each).await?;
    if server.is_settled() { Ok(is_done) } else { Err(Lost) }
}

/// The same of what was asked first.
pub(crate) async fn read_first(server: &mut Server, mut each: impl FnMut(u8, &[u8])) -> Result<bool, Lost> {
    let mut is_refused = false;
    let mut undone = Vec::new();
    loop {
        fill(server).await?;
        let mut at = 0;
        let mut is_over = false;
        while !is_over {
            let bytes = &server.input[at..];
            let Some(frame) = frames::frame(bytes).map_err(|_| Lost)? else {
                break;
            };
            if bytes.len() < frame.length {
                break;
            }
            if !matches!(frame.tag, b'S' | b'A') {
                let reply = server.replies.receive(frame.tag, &mut undone).map_err(|_| Lost)?;
                if frame.tag == b'E' {
                    is_refused = true;
                    for note in undone.drain(..).chain(reply.failed) {
                        undo(&note, server);
                    }
                }
            }
            let length = frame.length;
            match frame.tag {
                b'S' => {
                    server.input.advance(at);
                    at = 0;
                    server.report(length);
                }
                b'Z' => {
                    server.status = server.input[at + HEADER_BYTES];
                    is_over = true;
                }
                tag => each(tag, &server.input[at..at + length]),
            }
            at += length;
        }
        server.input.advance(at);
        if is_over {
            return Ok(!is_refused);
        }
    }
}

/// Sends what is to be sent and waits for more to come.
pub(crate) async fn fill(server: &mut Server) -> Result<(), Lost> {
    let filled = poll_fn(|context| {
        if let Poll::Ready(Err(error)) = server.poll_send(context) {
            // Its last word may still be to be read.
            if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
                return Poll::Ready(Err(error));
            }
            server.output.clear();
        }
        match ready!(poll_take(server, context))? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(())),
        }
    });
    Ok(filled.await?)
}

/// What was noted did not come about.
pub(crate) fn undo(note: &Note, server: &mut Server) {
    match note {
        Note::Prepared { number } => server.prepared.remove(*number),
        Note::Evicted { number } => server.prepared.put_back(*number),
        _ => {}
    }
}
