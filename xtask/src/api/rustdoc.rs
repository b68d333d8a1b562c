//! Rustdoc's JSON of the crates that users see.
//!
//! Promises: made by the compiler that `rust-version` promises, with all features of the facade, into the folder where cargo builds,
//! so that what other steps have compiled is used. Rustdoc makes JSON for those who ask with a variable that would have cargo
//! compile all anew, so only rustdoc is given it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    command::{Command, cargo},
    interface, toolchain, workspace,
};

const FACADE: &str = "forebay";

/// What came of it.
pub(super) enum Documented {
    /// The crates' files.
    Files(BTreeMap<String, PathBuf>),
    /// Why there are none here, and how to have them.
    NotHere(String),
}

/// Makes them.
pub(super) fn document() -> Result<Documented, String> {
    let promised = workspace::rust_version().ok_or("Cargo.toml has no rust-version")?;
    let Some(toolchain) = toolchain::of(&promised) else {
        return Ok(Documented::NotHere(format!(
            "this machine has other compilers; to have it: rustup toolchain install {promised}"
        )));
    };
    let folder = workspace::target().join("api");
    let rooms = interface::rooms()?;
    let features = features()?;
    let mut arguments: Vec<String> = ["doc", "--no-deps", "--lib", "--quiet"].map(str::to_owned).into();
    // The facade says which features its crates have.
    for room in rooms.keys().map(String::as_str).chain([FACADE]) {
        arguments.extend(["--package".to_owned(), room.to_owned()]);
    }
    arguments.extend(["--features".to_owned(), features.join(",")]);
    let document = match &toolchain {
        None => cargo(&arguments),
        Some(name) => Command::new("rustup")
            .arguments(["run", name, "cargo"])
            .arguments(&arguments)
            .set("CARGO_TARGET_DIR", &folder),
    };
    let target = if toolchain.is_some() {
        folder.clone()
    } else {
        workspace::target()
    };
    document
        .set("RUSTDOC", asking_for_json(&folder)?)
        .set(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .run_explained()?;
    let files = rooms.into_keys().map(|room| {
        let file = target.join("doc").join(format!("{}.json", room.replace('-', "_")));
        (room, file)
    });
    Ok(Documented::Files(files.collect()))
}

/// A rustdoc that may be asked for JSON.
fn asking_for_json(folder: &Path) -> Result<PathBuf, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told)?;
    let file = folder.join("rustdoc");
    let text = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    // Cargo asks it for its version again when it has changed.
    if fs::read_to_string(&file).ok().as_deref() != Some(text) {
        fs::write(&file, text).map_err(told)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(told)?;
    }
    Ok(file)
}

/// All that the facade has.
fn features() -> Result<Vec<String>, String> {
    let packages = workspace::packages()?;
    let manifest = packages.get(FACADE).ok_or("there is no facade")?.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    Ok(features_in(&text)
        .into_iter()
        .map(|name| format!("{FACADE}/{name}"))
        .collect())
}

fn features_in(manifest: &str) -> Vec<&str> {
    let after = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let own = after.take_while(|line| !line.starts_with('['));
    own.filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_manifest() {
        let manifest = "[package]\nname = \"x\"\n\n[features]\n# Words.\ndefault = []\nsqlite = [\"dep:a\"]\n\n[dependencies]\nb = \"1\"\n";
        assert_eq!(features_in(manifest), ["default", "sqlite"]);
    }
}
