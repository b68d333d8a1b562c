//! The names of the peers, in results and of their packages.

pub(super) const QUICK_CACHE: &str = "quick_cache";
pub(super) const MOKA: &str = "moka";
pub(super) const FOYER: &str = "foyer";
/// Of foyer, what keeps entries in memory.
pub(super) const FOYER_PACKAGE: &str = "foyer-memory";
/// Also the peer of a cold start.
pub(crate) const CACHEX: &str = "Go, cachex";
pub(crate) const CACHEX_MODULE: &str = "github.com/theplant/cachex";
