//! PagePool: neighbouring reads of large files become one I/O, then one copy in memory.

mod error;
mod io;
mod policy;

pub use error::PageError;
#[doc(hidden)]
pub use policy::simulation::Simulation as PolicySimulation;
