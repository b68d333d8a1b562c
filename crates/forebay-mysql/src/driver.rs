//! Driver: the library's connection, closed at once where it is dropped in the middle of a command.
//!
//! The library would first read what is still to come, and only then say good-bye, in a task that nobody waits for: with a silent
//! server it would wait for ever, and what is open there would stay open. Knows no statement.

use std::ops::{Deref, DerefMut};

use mysql_async::Conn;

/// The library's connection.
pub(super) struct Driver {
    /// None only when it is dropped.
    conn: Option<Conn>,
    /// A command is on its way. Dropped now, it is closed without waiting for the answer.
    pub(super) is_cut_off: bool,
}

impl Driver {
    pub(super) fn new(conn: Conn) -> Self {
        Self {
            conn: Some(conn),
            is_cut_off: false,
        }
    }
}

impl Deref for Driver {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        self.conn.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Driver {
    fn deref_mut(&mut self) -> &mut Conn {
        self.conn.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.is_cut_off
            && let Some(conn) = self.conn.take()
        {
            // Where there is no runtime the library has nothing to begin that task with. Without a thread it is the library's to
            // close, as ever.
            let _ = std::thread::Builder::new()
                .name("forebay-closer".to_owned())
                .spawn(move || drop(conn));
        }
    }
}
