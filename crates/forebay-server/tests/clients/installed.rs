//! Where the programs of other languages are: on the `PATH`, or where `cargo xtask setup` installed them.

use std::{
    env,
    path::{Path, PathBuf},
};

/// A program of the system.
pub(crate) fn on_path(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed; run `cargo xtask setup`"))
}

/// A place below cargo's target folder.
pub(crate) fn below_target(place: &str) -> PathBuf {
    existing(Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(place))
}

/// The path, which must be there.
pub(crate) fn existing(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "{} is not installed; run `cargo xtask setup`",
        path.display()
    );
    path
}
