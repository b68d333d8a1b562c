//! New files: under their names whole or not at all.
//!
//! From the ground up: `directory`, in which names become durable; `temporary`, a file before it has its name; `buffer`, what is
//! written at once; `creator`, what new files share; `new_file`, what users hold.
//!
//! Those who publish share: the syncs of their files go to the engine as they come, which runs them side by side, so that the file
//! system's journal commits them together (gathering them first was slower); and one sync of a directory is for all files that were
//! renamed while the one before it ran.
//!
//! Knows nothing of pages in memory.

mod buffer;
pub(crate) mod creator;
pub(crate) mod directory;
pub(crate) mod new_file;
mod temporary;
