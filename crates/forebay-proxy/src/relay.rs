//! Relay: both sockets, driven by the one task that waits.
//!
//! Promises: neither side waits for the other for ever: each is read while the other has room, and what makes room is looked at again. No
//! more is kept of what one side does not take than a bound.

use std::io;
use std::task::{Context, Poll};

use crate::client::Client;
use crate::end::End;
use crate::frames::{self, WHOLE_BYTES_MAX};
use crate::intake::{poll_read, poll_take};
use crate::server::Server;
use crate::state::State;

/// Of what the server has not taken yet no more is read from the client.
const UNSENT_BYTES_MAX: usize = 256 * 1024;

/// Why nothing is to be relayed for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relayed {
    /// The server connection may go back.
    Free,
    /// The session keeps the connection, on which nothing is under way; what the client asks next is a command of the console.
    Command,
}

/// Relays until the server connection is free again, or a command is to be obeyed.
pub(crate) fn poll_relay(
    client: &mut Client,
    state: &mut State,
    server: &mut Server,
    context: &mut Context<'_>,
) -> Poll<Result<Relayed, End>> {
    loop {
        let before = (client.input.len(), client.output.len(), server.output.len());
        let mut has_moved = false;
        // From the client.
        if server.output.len() < UNSENT_BYTES_MAX {
            match state.pass_in(client, server) {
                Ok(()) => {}
                Err(end) => return Poll::Ready(Err(end)),
            }
        }
        let unsent = server.output.len();
        let sent = server.poll_send(context);
        // What waits for all to be sent goes on then.
        has_moved |= server.output.len() < unsent && !client.input.is_empty();
        if let Poll::Ready(Err(error)) = sent {
            // Its last word may still be to be read.
            if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
                return Poll::Ready(Err(End::Server(error)));
            }
            server.output.clear();
        }
        if state.owes_cancel && state.has_taken && server.output.is_empty() {
            state.owes_cancel = false;
            // What was answered meanwhile was too quick for it, as it may be straight.
            if !server.replies.is_empty() {
                server.interrupt();
            }
        }
        // To the client.
        if !client.is_behind() {
            match poll_take(server, context) {
                Poll::Pending => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(End::Server(io::ErrorKind::UnexpectedEof.into()))),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(End::Server(error))),
                Poll::Ready(Ok(_)) => {
                    has_moved = true;
                    if let Err(end) = state.pass_out(client, server) {
                        return Poll::Ready(Err(end));
                    }
                }
            }
        }
        if has_failed(&client.poll_send(context)) {
            return Poll::Ready(Err(End::Client));
        }
        if state.is_free(client, server) {
            return Poll::Ready(Ok(Relayed::Free));
        }
        if state.has_command && state.rests(server) {
            return Poll::Ready(Ok(Relayed::Command));
        }
        // Where one side has made room, the other is to be asked again: it wakes nobody that has not asked.
        if has_moved || before != (client.input.len(), client.output.len(), server.output.len()) {
            continue;
        }
        // What is there and waits needs no more behind it.
        // Who has said that he goes is not to be seen going before he is done.
        let says_farewell =
            frames::begins_with_farewell(&client.input) || (state.is_learning && !client.input.is_empty());
        if !says_farewell && (client.input.len() < WHOLE_BYTES_MAX || !frames::has_message(&client.input)) {
            match poll_read(client, context) {
                Poll::Pending => {}
                Poll::Ready(Ok(1..)) => continue,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(End::Client)),
            }
        }
        return Poll::Pending;
    }
}

/// Whether a poll is over, and badly.
pub(crate) fn has_failed(poll: &Poll<io::Result<()>>) -> bool {
    matches!(poll, Poll::Ready(Err(_)))
}
