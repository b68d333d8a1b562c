//! The backend of io_uring.
use std::io;
use std::sync::Arc;
use super::engine::{Settings, Shared};
pub(super) fn start(_shared: &Arc<Shared>, _settings: &Settings) -> io::Result<()> {
    Err(io::Error::other("not yet"))
}
