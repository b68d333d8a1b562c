//! The compilers of this machine, by their versions. Knows nothing of what they are for.

use crate::command::Command;

/// What rustup calls this version of the compiler, none inside if it is the one in use; none if it is not here.
pub(crate) fn of(version: &str) -> Option<Option<String>> {
    let used = Command::new("rustc")
        .arguments(["--version"])
        .told()
        .unwrap_or_default();
    if is_release_of(&used, version) {
        return Some(None);
    }
    let toolchains = Command::new("rustup")
        .arguments(["toolchain", "list"])
        .told()
        .unwrap_or_default();
    let toolchain = toolchains.lines().find(|name| is_toolchain_of(name, version))?;
    Some(toolchain.split(' ').next().map(str::to_owned))
}

/// Whether `rustc --version` tells of a release of this version: `rustc 1.95.0 (…)` of `1.95`.
fn is_release_of(told: &str, promised: &str) -> bool {
    told.split(' ')
        .nth(1)
        .is_some_and(|version| is_version(version, promised))
}

/// Whether a toolchain's name, such as `1.95.0-x86_64-unknown-linux-gnu`, is of this version.
fn is_toolchain_of(name: &str, promised: &str) -> bool {
    name.split(['-', ' '])
        .next()
        .is_some_and(|version| is_version(version, promised))
}

fn is_version(version: &str, promised: &str) -> bool {
    version == promised || version.strip_prefix(promised).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_whole() {
        assert!(is_release_of("rustc 1.95.0 (59807616e 2026-04-14)", "1.95"));
        assert!(!is_release_of("rustc 1.95.0 (59807616e 2026-04-14)", "1.9"));
        assert!(!is_release_of("", "1.95"));
        assert!(is_toolchain_of("1.95.0-x86_64-unknown-linux-gnu (active)", "1.95"));
        assert!(is_toolchain_of("1.95-x86_64-unknown-linux-gnu", "1.95"));
        assert!(!is_toolchain_of("stable-x86_64-unknown-linux-gnu", "1.95"));
    }
}
