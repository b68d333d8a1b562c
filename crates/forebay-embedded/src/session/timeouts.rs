//! Time-outs: how one is awaited, and the error that whoever waited gets.
//!
//! Knows nothing of what is waited for.

use std::time::Duration;

use forebay_write::{StatementError, StatementErrorKind, WriteError};

use forebay_pg_wire::error::WireError;

/// A lock was waited for as long as the session's `lock_timeout`: PostgreSQL's words for it. Nothing has happened.
pub(super) fn lock_timed_out() -> WriteError {
    StatementError::new(
        StatementErrorKind::LockTimeout,
        0,
        "canceling statement due to lock timeout",
    )
    .into()
}

/// Completes after that time; never, if there is none.
pub(super) async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// What the owner of a snapshot is told that was given up: PostgreSQL's words for one that it gives up (`old_snapshot_threshold`).
pub(super) fn too_old() -> WireError {
    WireError::new("72000", "snapshot too old")
        .with_detail("It waited for its client for longer than --idle-snapshot-timeout, and kept the write-ahead log from being emptied.")
        .with_hint("Read results to their end sooner, or raise --idle-snapshot-timeout.")
}
