//! The example's web service: built, started on a database, stopped when dropped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testbed::{Process, Program};

use crate::failure::Failure;
use crate::places::workspace;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A service that answers.
pub(super) struct Service {
    address: String,
    /// Stopped when dropped.
    _process: Process,
}

impl Service {
    /// Starts it on that database.
    pub(super) fn start(program: &Path, database: &str) -> Result<Self, Failure> {
        let mut process = Program::new(program, [database, "--listen", "127.0.0.1:0"]).start()?;
        let address = process.wait_for_output(READY_WITHIN, address_in)?;
        Ok(Self {
            address,
            _process: process,
        })
    }

    /// Where a row of that value is written by that route.
    pub(super) fn address(&self, route: &str, value: u32) -> String {
        format!("http://{}{route}?id={value}", self.address)
    }
}

fn address_in(output: &str) -> Option<String> {
    let (_, rest) = output.split_once("http://")?;
    Some(rest.split_once('/')?.0.to_owned())
}

/// Builds the program as the lab itself was built, so that what is measured is what the header says.
pub(super) fn build() -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace())
        .args(["build", "--quiet", "--package", "web"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let status = command.status().map_err(Failure::system("run cargo"))?;
    if !status.success() {
        return Err(Failure::Wrong("web does not build; cargo says why above".to_owned()));
    }
    let lab = std::env::current_exe().map_err(Failure::system("find the lab's own program"))?;
    Ok(lab.with_file_name("web"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_one_that_the_service_tells() {
        assert_eq!(
            address_in("SQLite 3\nhttp://127.0.0.1:4711/batched?id=1, until\n").unwrap(),
            "127.0.0.1:4711"
        );
        assert_eq!(address_in("SQLite 3\nhttp://127.0.0.1:47"), None, "half a line");
    }
}
