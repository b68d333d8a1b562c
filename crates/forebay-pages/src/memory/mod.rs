//! What is in memory, and who holds it.
//!
//! From the ground up: `region`, address space; `uses`, when and how often a page was used; `word`, the state of a page, with its uses; `notes`, how readers tell of uses; `frames`, how much memory there is; `loads`, what is on
//! its way; `tables`, the system's page tables; `mapping`, a file's place in memory, made of these; `pins`, pages that are held; `files`, all mappings of a pool.
//!
//! Knows nothing of I/O, and of which page is evicted when.

pub(crate) mod files;
pub(crate) mod frames;
pub(crate) mod loads;
pub(crate) mod mapping;
pub(crate) mod notes;
pub(crate) mod pins;
pub(crate) mod region;
pub(crate) mod tables;
pub(crate) mod uses;
pub(crate) mod word;
