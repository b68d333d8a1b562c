//! fio, run as a user runs it: what it reads from the same disk with the same size of reads and the same depth.
//!
//! Promises: the file is read once, past the kernel's cache, through io_uring, for so long at most; a run that failed or read
//! nothing is a failure. Where fio is missing, it is absent. Knows nothing of pages.

use std::ffi::OsString;
use std::process::Command;

use serde::Deserialize;

use super::material::Material;
use super::ring::Took;
use crate::failure::Failure;
use crate::machine::first_line_of;

/// As a system of the results.
pub(super) const FIO: &str = "fio";
/// A disk that is throttled does not read the file in less; what was read until then counts.
const SECONDS_MAX: u32 = 10;

/// The installed program's version, or why there is none.
pub(super) fn version() -> String {
    first_line_of("fio", &["--version"])
}

/// Whether it is here.
pub(super) fn find() -> Result<(), Failure> {
    let version = version();
    if version.starts_with("fio-") {
        return Ok(());
    }
    Err(Failure::Absent {
        what: "fio".to_owned(),
        cause: version,
        remedy: "the lab's own ring is the limit; install it: apt-get install fio".to_owned(),
    })
}

/// Of its report, what is of use here.
#[derive(Debug, Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    error: i32,
    read: Reads,
}

#[derive(Debug, Deserialize)]
struct Reads {
    io_bytes: u64,
    /// In milliseconds.
    runtime: u64,
    /// Bytes a second.
    bw_bytes: u64,
}

/// Reads the file from its begin to its end.
pub(super) fn read(material: &Material, part: u64, depth: u32) -> Result<Took, Failure> {
    let mut file = OsString::from("--filename=");
    file.push(&material.path);
    let output = Command::new("fio")
        .args(["--name=pages", "--rw=read", "--direct=1", "--ioengine=io_uring"])
        .args(["--output-format=json", "--readonly", "--invalidate=1"])
        .arg(format!("--bs={part}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={SECONDS_MAX}"))
        .arg(file)
        .output()
        .map_err(Failure::system("run fio"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Wrong(format!(
            "fio ended with {}: {}",
            output.status,
            said.trim()
        )));
    }
    took(&String::from_utf8_lossy(&output.stdout))
}

fn took(report: &str) -> Result<Took, Failure> {
    let wrong = |why: String| Failure::Wrong(format!("fio's report: {why}"));
    // Warnings may stand before it.
    let (_, object) = report
        .split_once('{')
        .ok_or_else(|| wrong("there is none".to_owned()))?;
    let report: Report = serde_json::from_str(&format!("{{{object}")).map_err(|error| wrong(error.to_string()))?;
    match &report.jobs[..] {
        [job] if job.error == 0 && job.read.io_bytes > 0 && job.read.bw_bytes > 0 => Ok(Took {
            bytes: job.read.io_bytes,
            // From its rate, which it counts to the microsecond; `runtime` is whole milliseconds.
            seconds: job.read.io_bytes as f64 / job.read.bw_bytes as f64,
        }),
        [job] => Err(wrong(format!(
            "error {}, {} bytes in {} ms",
            job.error, job.read.io_bytes, job.read.runtime
        ))),
        jobs => Err(wrong(format!("{} jobs", jobs.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read_by_names_and_a_failed_job_is_a_failure() {
        let report = |error: i32, bytes: u64| {
            format!(
                "fio: a note\n{{\"fio version\":\"fio-3\",\"jobs\":[{{\"jobname\":\"pages\",\"error\":{error},\"read\":\
                 {{\"io_bytes\":{bytes},\"runtime\":500,\"bw_bytes\":2000,\"iops\":1.5}}}}]}}"
            )
        };
        let read = took(&report(0, 1000)).unwrap();
        assert_eq!((read.bytes, read.seconds), (1000, 0.5));
        for wrong in [
            report(5, 1000),
            report(0, 0),
            "{\"jobs\":[]}".to_owned(),
            "no report".to_owned(),
        ] {
            assert!(took(&wrong).is_err(), "{wrong}");
        }
    }
}
