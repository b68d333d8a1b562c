//! The examples of the README and of the guide, which are compiled, and run where they need no file, with the other tests of the
//! documentation.
//!
//! Promises: each example is compiled with the features that its document names. `cargo xtask guide` tells of a document with
//! examples that is not here.

#[cfg(feature = "sqlite")]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[doc = include_str!("../../../guide/src/start.md")]
mod start {}

#[doc = include_str!("../../../guide/src/library/batcher.md")]
mod batcher {}

#[cfg(feature = "sqlite")]
#[doc = include_str!("../../../guide/src/library/loader.md")]
mod loader {}

#[cfg(feature = "sqlite")]
#[doc = include_str!("../../../guide/src/library/writer.md")]
mod writer {}

#[cfg(feature = "sqlite")]
#[doc = include_str!("../../../guide/src/library/values.md")]
mod values {}

#[cfg(all(feature = "sqlite", feature = "tier-sqlite"))]
#[doc = include_str!("../../../guide/src/library/cache.md")]
mod cache {}

#[cfg(feature = "pages")]
#[doc = include_str!("../../../guide/src/library/pages.md")]
mod pages {}

#[cfg(all(feature = "postgres", feature = "mysql", feature = "tls"))]
#[doc = include_str!("../../../guide/src/databases.md")]
mod databases {}
