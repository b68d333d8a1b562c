//! How pages get into memory.
//!
//! From the ground up: `plan`, which I/Os bring the missing pages; `admission`, which large reads may load now; `discard`, the
//! buffer that gaps are read into; `run`, one I/O and what becomes of its pages; `reader`, how a read gets all that it needs.
//!
//! Knows nothing of which page is evicted when, nor of how files are opened.

pub(crate) mod admission;
pub(crate) mod discard;
pub(crate) mod plan;
pub(crate) mod reader;
pub(crate) mod run;
