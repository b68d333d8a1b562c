//! Peers written in Go: one program, built once a run, that measures one system in one case and prints what it saw.
//!
//! Promises: the program has as many processors as were asked for; a wrong outcome that it tells of fails the measurement. Where Go, or a module it needs, is missing, the peers are absent and not a failure. Knows no scenario.

use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::closed_loop::Seen;
use crate::failure::Failure;
use crate::machine::first_line_of;
use crate::places::{default_folder, workspace};

/// As many as the tokio runtimes have workers.
const PROCESSORS: u32 = 2;

/// The program with the peers.
#[derive(Debug)]
pub(crate) struct Go {
    program: PathBuf,
}

/// What it prints of a closed loop, on one line.
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

/// The pinned version of a module.
pub(crate) fn module_version(module: &str) -> String {
    let modules = std::fs::read_to_string(sources().join("go.mod")).unwrap_or_default();
    version_in(&modules, module).unwrap_or("unknown").to_owned()
}

fn version_in<'a>(modules: &'a str, module: &str) -> Option<&'a str> {
    modules.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module)).then(|| words.next())?
    })
}

fn sources() -> PathBuf {
    workspace().join("lab").join("peers")
}

impl Go {
    /// Builds the program; Go itself knows whether it has to build anything.
    fn build() -> Result<Self, Failure> {
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

    /// Builds it, or says among what is absent why the peers do not take part.
    pub(crate) fn build_or_note(absent: &mut Vec<Failure>) -> Result<Option<Rc<Self>>, Failure> {
        match Self::build() {
            Ok(go) => Ok(Some(Rc::new(go))),
            Err(missed @ Failure::Absent { .. }) => {
                absent.push(missed);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Runs one closed loop: `arguments` name system and case.
    pub(crate) fn run(&self, callers: u32, arguments: &[String], duration: Duration) -> Result<Seen, Failure> {
        seen(callers, &self.figures(PROCESSORS, callers, arguments, duration)?)
    }

    /// Runs one measurement and gives the figures, which are the scenario's own.
    pub(crate) fn figures<F: DeserializeOwned>(
        &self,
        processors: u32,
        callers: u32,
        arguments: &[String],
        duration: Duration,
    ) -> Result<F, Failure> {
        let ran = Command::new(&self.program)
            .env("GOMAXPROCS", processors.to_string())
            .args(arguments)
            .args(["-callers", &callers.to_string()])
            .args(["-seconds", &duration.as_secs_f64().to_string()])
            .output()
            .map_err(Failure::system(format!("run {}", self.program.display())))?;
        if !ran.status.success() {
            return Err(Failure::Wrong(String::from_utf8_lossy(&ran.stderr).trim().to_owned()));
        }
        read(&ran.stdout, processors)
    }
}

/// Reads figures, and that the program had the processors it was to have.
fn read<F: DeserializeOwned>(line: &[u8], processors: u32) -> Result<F, Failure> {
    let unreadable = |error: serde_json::Error| Failure::Wrong(format!("the Go peer's figures: {error}"));
    let mut printed: serde_json::Map<String, Value> = serde_json::from_slice(line).map_err(unreadable)?;
    let had = printed.remove("processors");
    if had != Some(processors.into()) {
        return Err(Failure::Wrong(format!(
            "the Go peer had {} processors, not {processors}",
            had.unwrap_or_default()
        )));
    }
    serde_json::from_value(Value::Object(printed)).map_err(unreadable)
}

fn seen(callers: u32, printed: &Printed) -> Result<Seen, Failure> {
    if printed.calls == 0 {
        return Err(Failure::Wrong(format!("the Go peer answered nothing: {printed:?}")));
    }
    let calls = printed.calls as f64;
    Ok(Seen {
        callers,
        calls: printed.calls,
        seconds: printed.seconds,
        batches: Some(printed.batches),
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
        let line = |processors: u32, calls: u64| {
            format!(
                "{{\"processors\":{processors},\"calls\":{calls},\"seconds\":0.5,\"batches\":10,\"allocations\":50,\"bytes\":400,\"p50_us\":1.5,\"p99_us\":9}}\n"
            )
        };
        let seen = |line: &str, callers| seen(callers, &read(line.as_bytes(), 2)?);
        assert!(seen(&line(2, 0), 7).is_err());
        assert!(seen(&line(1, 100), 7).is_err(), "half the processors");
        assert!(seen("", 7).is_err());
        assert!(seen("{\"calls\":1}", 7).is_err());
        assert!(seen("{\"processors\":2,\"calls\":1}", 7).is_err());
        let seen = seen(&line(2, 100), 7).unwrap();
        assert_eq!((seen.callers, seen.calls, seen.batches), (7, 100, Some(10)));
        assert_eq!((seen.allocations_a_call, seen.bytes_a_call), (0.5, 4.0));
        assert_eq!(seen.latency_us, Some((1.5, 9.0)));
    }

    #[test]
    fn versions_are_read_from_either_form_of_requirement() {
        let modules = "module peers\n\nrequire a.b/c v1.2.3\n\nrequire (\n\ta.b/d v0.4.0 // indirect\n)\n";
        assert_eq!(version_in(modules, "a.b/c"), Some("v1.2.3"));
        assert_eq!(version_in(modules, "a.b/d"), Some("v0.4.0"));
        assert_eq!(version_in(modules, "a.b"), None);
    }
}
