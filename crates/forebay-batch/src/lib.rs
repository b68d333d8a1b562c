//! Calls that can share work share it: [`batch`] for any call that is cheaper together, [`load`] for keys.
//!
//! Promises: what [`Batcher`](batch::Batcher) and [`Loader`](load::Loader) promise. No SQL, no C, nothing of this project below.
//!
//! Users have it as `forebay::batch` and `forebay::load`.

pub mod batch;
pub mod load;
#[doc(hidden)]
pub mod panics;
