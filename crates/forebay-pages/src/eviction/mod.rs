//! Which pages leave memory, and when.
//!
//! `policy` says which pages go next; another policy takes its place there. `evictor` makes them leave; `sweeper` is the thread that
//! calls it when frames run out.
//!
//! Knows nothing of I/O, and of how reads wait.

pub(crate) mod evictor;
pub(crate) mod policy;
pub(crate) mod sweeper;
