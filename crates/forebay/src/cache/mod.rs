//! Cache: what was fetched a moment ago is not fetched again. Its [`tier`]s keep values outside this process's memory.

#[allow(dead_code, unused_imports, reason = "what stands above the tiers uses them")]
pub mod tier;
