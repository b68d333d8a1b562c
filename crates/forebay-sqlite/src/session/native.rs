//! What of SQLite's C interface rusqlite does not offer: memory for small things, the last rowid, the version of the data.
//!
//! Promises: each call is made on an open connection, by the thread that owns it. Knows nothing of sessions.

use rusqlite::{Connection, ffi};

/// Memory of a connection's own for small things that statements need ("lookaside"): a slot's bytes, which is SQLite's default, and how
/// many there are: 120 KB for each connection.
const LOOKASIDE_BYTES: std::ffi::c_int = 1_200;
pub(super) const LOOKASIDE_SLOTS: std::ffi::c_int = 100;

/// A rowid no table can reach by counting: "this statement has inserted nothing yet".
const NO_ROWID: i64 = i64::MIN;

/// Gives a connection memory of its own for small things that statements need: at best, for without it they only take longer. Not while
/// any of it is in use.
pub(super) fn set_lookaside_slots(connection: &Connection, slots: std::ffi::c_int) {
    // SAFETY: the handle is that of an open connection which this thread owns; the operation takes a buffer, null for one that SQLite
    // allocates itself, and two integers.
    let _at_best = unsafe {
        ffi::sqlite3_db_config(
            connection.handle(),
            ffi::SQLITE_DBCONFIG_LOOKASIDE,
            std::ptr::null_mut::<std::ffi::c_void>(),
            LOOKASIDE_BYTES,
            slots,
        )
    };
}

/// So that an upsert which updated, or an insert which was ignored, is not given an id from before.
pub(super) fn forget_last_rowid(connection: &Connection) {
    // SAFETY: the handle is that of an open connection which this thread owns; the call only sets an integer in it.
    unsafe { ffi::sqlite3_set_last_insert_rowid(connection.handle(), NO_ROWID) };
}

pub(super) fn last_rowid(connection: &Connection) -> Option<i64> {
    Some(connection.last_insert_rowid()).filter(|rowid| *rowid != NO_ROWID)
}

/// Counts the changes of the file that this connection has met: what others have committed, and it itself.
pub(super) fn data_version(connection: &Connection) -> u32 {
    let mut version = 0_u32;
    // SAFETY: the handle is that of an open connection which this thread owns; the operation writes one unsigned integer.
    unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_DATA_VERSION,
            (&raw mut version).cast(),
        );
    }
    version
}
