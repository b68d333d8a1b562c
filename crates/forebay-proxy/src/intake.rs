//! Intake: what has come for a socket, taken through room that all sessions of a thread share.

use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

use crate::client::Client;
use crate::server::Server;

/// So much is read at once.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    static ROOM: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Reads what the client has sent, through room that all clients of a thread share.
pub(crate) fn poll_read(client: &mut Client, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    ROOM.with_borrow_mut(|room| client.poll_read(context, room))
}

/// Takes what the server has sent, through the same.
pub(crate) fn poll_take(server: &mut Server, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    ROOM.with_borrow_mut(|room| {
        let read = server.poll_read(context, room);
        if let Poll::Ready(Ok(count)) = read {
            server.input.extend_from_slice(&room[..count]);
        }
        read
    })
}
