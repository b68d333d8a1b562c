//! Peers written in Go: one program, built once a run, that measures one system in one case and prints what it saw.
//!
//! Promises: the program has as many processors as the tokio runtimes have workers; a wrong outcome that it tells of fails
//! the measurement. Where Go, or a module it needs, is missing, the peers are absent and not a failure. Knows no scenario.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::bench::{default_folder, workspace};
use crate::closed_loop::Seen;
use crate::failure::Failure;
use crate::machine::first_line_of;

/// The program with the peers.
#[derive(Debug)]
pub(crate) struct Go {
    program: PathBuf,
}

/// What it prints, on one line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    calls: u64,
    seconds: f64,
    batches: u64,
    allocations: u64,
    bytes: u64,
    p50_us: f64,
    p99_us: f64,
}

/// The version of Go that builds them.
pub(crate) fn version() -> String {
    let line = first_line_of("go", &["env", "GOVERSION"]);
    line.strip_prefix("go").unwrap_or(&line).to_owned()
}

fn sources() -> PathBuf {
    workspace().join("lab").join("peers")
}

impl Go {
    /// Builds the program; Go itself knows whether it has to build anything.
    pub(crate) fn build() -> Result<Self, Failure> {
        let program = default_folder().join("peers");
        let absent = |cause: String| Failure::Absent {
            what: "Go, for the peers written in it,".to_owned(),
            cause,
            remedy: "measured without them".to_owned(),
        };
        let built = Command::new("go")
            .current_dir(sources())
            .env("CGO_ENABLED", "0")
            .args(["build", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .output()
            .map_err(|error| absent(error.to_string()))?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            return Err(absent(said.trim().replace('\n', "; ")));
        }
        Ok(Self { program })
    }

    /// Runs one measurement: `arguments` name system and case.
    pub(crate) fn run(&self, callers: u32, arguments: &[String], duration: Duration) -> Result<Seen, Failure> {
        let ran = Command::new(&self.program)
            .env("GOMAXPROCS", "2")
            .args(arguments)
            .args(["-callers", &callers.to_string()])
            .args(["-seconds", &duration.as_secs_f64().to_string()])
            .output()
            .map_err(Failure::system(format!("run {}", self.program.display())))?;
        if !ran.status.success() {
            return Err(Failure::Wrong(String::from_utf8_lossy(&ran.stderr).trim().to_owned()));
        }
        read(&ran.stdout, callers)
    }
}

fn read(line: &[u8], callers: u32) -> Result<Seen, Failure> {
    let printed: Printed =
        serde_json::from_slice(line).map_err(|error| Failure::Wrong(format!("the Go peer's figures: {error}")))?;
    if printed.calls == 0 || printed.batches == 0 {
        return Err(Failure::Wrong(format!("the Go peer answered nothing: {printed:?}")));
    }
    let calls = printed.calls as f64;
    Ok(Seen {
        callers,
        calls: printed.calls,
        seconds: printed.seconds,
        shared: Some(calls / printed.batches as f64),
        allocations_a_call: printed.allocations as f64 / calls,
        bytes_a_call: printed.bytes as f64 / calls,
        latency_us: (printed.p99_us > 0.0).then_some((printed.p50_us, printed.p99_us)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_none_at_all_are_a_failure() {
        let line = |calls: u64| {
            format!(
                "{{\"calls\":{calls},\"seconds\":0.5,\"batches\":10,\"allocations\":50,\"bytes\":400,\"p50_us\":1.5,\"p99_us\":9}}\n"
            )
        };
        let seen = read(line(100).as_bytes(), 7).unwrap();
        assert_eq!((seen.callers, seen.calls, seen.shared), (7, 100, Some(10.0)));
        assert_eq!((seen.allocations_a_call, seen.bytes_a_call), (0.5, 4.0));
        assert_eq!(seen.latency_us, Some((1.5, 9.0)));
        assert!(read(line(0).as_bytes(), 7).is_err());
        assert!(read(b"", 7).is_err());
        assert!(read(b"{\"calls\":1}", 7).is_err());
    }
}
