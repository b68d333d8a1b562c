//! Where things are in the source tree, and where the lab puts its own.

use std::path::{Path, PathBuf};

/// On the disk that the program was built on, and cleaned with what was built.
pub(crate) fn default_folder() -> PathBuf {
    workspace().join("target").join("lab")
}

/// Where the last results of all scenarios are.
pub(crate) fn results_folder() -> PathBuf {
    workspace().join("lab").join("results")
}

/// The root of the source tree.
pub(crate) fn workspace() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    lab.parent().unwrap_or(lab).to_owned()
}
