//! Work that waits for the disk, on tokio's threads for blocking.
//!
//! Promises: a panic of the work continues in the caller. Work that the runtime does not run any more ends with [`PageError::Closed`].
//!
//! Knows nothing of the work.

use std::panic::resume_unwind;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::PageError;

/// Runs the work on a thread for blocking.
///
/// # Cancel safety
/// Dropping it leaves the work to run to its end, or to be dropped by the runtime before it has begun.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    joined(spawn_blocking(work)).await
}

/// What the task ends with.
pub(crate) async fn joined<T>(task: JoinHandle<Result<T, PageError>>) -> Result<T, PageError> {
    match task.await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Err(_) => Err(PageError::Closed),
    }
}
