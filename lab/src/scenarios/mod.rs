//! The scenarios, a folder each: what takes part, and how each system is spoken to.

pub(crate) mod batcher;
pub(crate) mod cache;
pub(crate) mod cache_soak;
pub(crate) mod cold_start;
pub(crate) mod fleet;
pub(crate) mod http_writes;
pub(crate) mod loader;
pub(crate) mod loads;
pub(crate) mod page_policy;
pub(crate) mod pages;
pub(crate) mod proxy;
pub(crate) mod query_cache;
pub(crate) mod server;
pub(crate) mod sharing;
pub(crate) mod writes;
pub(crate) mod writes_soak;
