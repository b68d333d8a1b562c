//! Phase: the server's life, as its sessions see it.

/// The server's life, as its sessions see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Serving.
    #[default]
    Serving,
    /// Sessions that are idle end; those inside a transaction may finish it.
    Draining,
    /// All sessions end at their next message.
    Stopping,
}
