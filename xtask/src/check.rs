//! The fast part of the tests, for while one writes: format, circles of files, names of other crates in the facade,
//! lints, types, documentation.

use crate::{circles, command::cargo, interface, steps::Steps};

/// Runs it and returns whether all is well.
pub(crate) fn run() -> bool {
    let mut steps = Steps::default();
    steps.step("circles of files", circles::step);
    steps.step("names of other crates", interface::step);
    format_and_lints(&mut steps);
    steps.command("types", cargo(["check", "--workspace", "--all-targets", "--quiet"]));
    documentation(&mut steps);
    steps.run()
}

/// The steps that `test` begins with as well.
pub(crate) fn format_and_lints(steps: &mut Steps<'_>) {
    steps.command("format", cargo(["fmt", "--all", "--", "--check", "--files-with-diff"]));
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--keep-going",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    steps.command("lints", cargo(lints));
}

/// What rustdoc warns of, links that lead nowhere above all.
pub(crate) fn documentation(steps: &mut Steps<'_>) {
    let documentation = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    steps.command("documentation", cargo(documentation).set("RUSTDOCFLAGS", "-D warnings"));
}
