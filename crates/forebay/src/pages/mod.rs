//! PagePool: neighbouring reads of large files become one I/O, then one copy in memory.

mod checksum;
mod core;
mod create;
mod error;
mod file;
mod files;
mod io;
mod mapping;
mod memory;
mod plan;
mod policy;
mod pool;
mod read;
mod region;
mod run;
mod stats;
mod sweeper;
mod sync;
mod view;
mod word;

pub use checksum::{Checksums, write_side_file};
pub use create::NewFile;
pub use error::PageError;
pub use file::{FileBuilder, PagedFile};
pub use io::{Latencies, LatencyBucket};
pub use pool::{Builder, Io, PagePool};
pub use stats::Stats;
pub use view::View;

/// What tests make go wrong with I/O.
#[doc(hidden)]
pub mod faults {
    pub use super::io::{Fault, Faults};
}
