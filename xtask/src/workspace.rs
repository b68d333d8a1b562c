//! Where things are in the workspace, and what its manifest promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

/// The `cfg` under which what models check is built on loom's types instead of std's.
pub(crate) const LOOM_CFG: &str = "forebay_loom";

/// The folder with the workspace's `Cargo.toml`, wherever the chore was called from.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
}

/// Where cargo builds to.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |set| root().join(set))
}

/// Where the clients' toolchains and programs are installed; the client tests look here too.
pub(crate) fn clients() -> PathBuf {
    target().join("clients")
}

/// The folder with the client test programs of one language.
pub(crate) fn client_sources(language: &str) -> PathBuf {
    root().join("crates/forebay-server/tests/clients").join(language)
}

/// The packages of the workspace by name, with their folders: those with a manifest one or two folders below the root.
pub(crate) fn packages() -> Result<BTreeMap<String, PathBuf>, String> {
    let mut packages = BTreeMap::new();
    for folder in folders_in(root())? {
        let below = folders_in(&folder)?;
        for folder in below.into_iter().chain([folder]) {
            if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml"))
                && let Some(name) = value_of(&manifest, "name")
            {
                packages.insert(name, folder);
            }
        }
    }
    Ok(packages)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir() && *path != target()).collect())
}

/// The oldest compiler the workspace promises to build with, such as `1.95`.
pub(crate) fn rust_version() -> Option<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).ok()?;
    value_of(&manifest, "rust-version")
}

/// What the package in this folder depends on, but for its tests; as code names it.
pub(crate) fn dependencies(folder: &Path) -> Result<BTreeSet<String>, String> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    Ok(dependencies_in(&text))
}

fn dependencies_in(manifest: &str) -> BTreeSet<String> {
    let mut is_inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            is_inside = line == "[dependencies]" || line.ends_with(".dependencies]");
        } else if is_inside
            && let Some((name, _)) = line.split_once('=')
            && !name.starts_with('#')
        {
            names.insert(name.trim().replace('-', "_"));
        }
    }
    names
}

fn value_of(manifest: &str, name: &str) -> Option<String> {
    let line = manifest
        .lines()
        .find(|line| line.split('=').next().is_some_and(|word| word.trim() == name))?;
    Some(line.split('"').nth(1)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_packages_are_found() {
        let packages = packages().unwrap();
        for (name, folder) in [("xtask", "xtask"), ("forebay-batch", "crates/forebay-batch")] {
            assert_eq!(packages.get(name), Some(&root().join(folder)));
        }
    }

    #[test]
    fn dependencies_are_those_of_the_library() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nforebay-batch = { workspace = true }\n# why\nio-uring = \"1\"\n\
                        [target.'cfg(unix)'.dependencies]\nlibc = \"1\" # why\n[dev-dependencies]\nproptest = \"1\"\n";
        assert_eq!(
            dependencies_in(manifest),
            ["forebay_batch", "io_uring", "libc"].map(str::to_owned).into()
        );
    }

    #[test]
    fn the_promised_compiler_is_read_from_the_manifest() {
        assert_eq!(
            value_of("a = 1\nrust-version = \"1.95\" # why\n", "rust-version").as_deref(),
            Some("1.95")
        );
        assert_eq!(value_of("[package]\n", "rust-version"), None);
        assert!(rust_version().is_some());
    }
}
