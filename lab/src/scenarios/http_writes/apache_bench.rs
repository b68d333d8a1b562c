//! ApacheBench, run as a user runs it.
//!
//! Promises: figures are read by their names in its report, and quantiles from the table that it writes; a report without one
//! of them is a failure, not a zero. Each request is on a connection of its own unless connections are to be kept. Knows no
//! service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::Program;

use crate::failure::Failure;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::stopwatch::THROUGHPUT;

/// What a run may take: the slowest that is measured needs some ten seconds.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long ab waits for an answer, in seconds; a service that is later than this has failed.
const ANSWER_WITHIN_SECONDS: &str = "60";

pub(super) const MEDIAN: &str = "P50";
pub(super) const P99: &str = "P99";
pub(super) const FAILED: &str = "failed requests";
pub(super) const SLOWEST: &str = "slowest ÷ median";

/// How a service is to be loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Its name in results.
    pub(super) name: &'static str,
    pub(super) concurrent: u32,
    pub(super) keep_alive: bool,
}

/// What ab reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    /// Requests that had an answer, whatever it was.
    complete: u64,
    /// Those that had none, or half of one.
    broken: u64,
    /// Answers with another status than 2xx.
    refused: u64,
    requests_a_second: f64,
    deviation_ms: f64,
    median_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
}

impl Summary {
    /// So many requests, so many of them refused, and no figures.
    #[cfg(test)]
    pub(super) fn of(complete: u64, refused: u64) -> Self {
        Self {
            complete,
            broken: 0,
            refused,
            requests_a_second: 1.0,
            deviation_ms: 1.0,
            median_ms: 1.0,
            p99_ms: 1.0,
            longest_ms: 1.0,
        }
    }

    /// Requests that were told that all went well.
    pub(super) fn answered(&self) -> u64 {
        self.complete.saturating_sub(self.failed())
    }

    /// Requests that were not.
    pub(super) fn failed(&self) -> u64 {
        self.broken + self.refused
    }

    pub(super) fn readings(&self) -> Vec<Reading> {
        vec![
            Reading::new(THROUGHPUT, "requests/s", self.requests_a_second),
            Reading::new("deviation", "ms", self.deviation_ms),
            Reading::new(MEDIAN, "ms", self.median_ms),
            Reading::new(P99, "ms", self.p99_ms),
            Reading::new("longest", "ms", self.longest_ms),
            Reading::new(SLOWEST, "times", self.longest_ms / self.median_ms),
            Reading::new(FAILED, "%", 100.0 * self.failed() as f64 / self.complete.max(1) as f64),
        ]
    }
}

/// The installed program, and where its table goes.
pub(super) struct ApacheBench {
    table: PathBuf,
}

impl ApacheBench {
    /// Finds it; its table goes into `folder`.
    pub(super) fn find(folder: &Path) -> Result<Self, Failure> {
        let version = version();
        if !version.contains("ApacheBench") {
            return Err(Failure::Absent {
                what: "ab".to_owned(),
                cause: version,
                remedy: "install it: apt-get install apache2-utils".to_owned(),
            });
        }
        Ok(Self {
            table: folder.join("quantiles.csv"),
        })
    }

    /// Asks for the address so many times.
    pub(super) fn run(&self, address: &str, requests: u32, load: Load) -> Result<Summary, Failure> {
        let concurrent = load.concurrent.min(requests).to_string();
        // -l: an error is told by its status, not by the length of its text. -r: one connection that breaks is a failed
        // request, not the end.
        let mut arguments: Vec<String> = ["-q", "-l", "-r", "-s", ANSWER_WITHIN_SECONDS]
            .map(str::to_owned)
            .into();
        arguments.extend(["-n".to_owned(), requests.to_string(), "-c".to_owned(), concurrent]);
        if load.keep_alive {
            arguments.push("-k".to_owned());
        }
        arguments.extend(["-e".to_owned(), self.table.display().to_string(), address.to_owned()]);
        let report = Program::new("ab", arguments).run(PATIENCE)?;
        let table = std::fs::read_to_string(&self.table).map_err(Failure::system("read the table that ab writes"))?;
        // The next one must not be taken for a run that wrote none.
        std::fs::remove_file(&self.table).map_err(Failure::system("remove the table that ab wrote"))?;
        read(&report, &table).ok_or_else(|| Failure::Wrong(format!("ab did not report what it should:\n{report}")))
    }
}

/// As it tells it.
pub(super) fn version() -> String {
    first_line_of("ab", &["-V"])
}

fn read(report: &str, table: &str) -> Option<Summary> {
    let words = |name: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace())
    };
    let first = |name: &str| words(name)?.next();
    let quantile = |percent: &str| -> Option<f64> {
        let line = table.lines().find_map(|line| line.strip_prefix(percent))?;
        line.strip_prefix(',')?.parse().ok()
    };
    // Least, mean, deviation, median, most.
    let mut total = words("Total:")?;
    Some(Summary {
        complete: first("Complete requests:")?.parse().ok()?,
        broken: first("Failed requests:")?.parse().ok()?,
        // Left out where there are none.
        refused: first("Non-2xx responses:").map_or(Some(0), |count| count.parse().ok())?,
        requests_a_second: first("Requests per second:")?.parse().ok()?,
        deviation_ms: total.nth(2)?.parse().ok()?,
        longest_ms: total.nth(1)?.parse().ok()?,
        median_ms: quantile("50")?,
        p99_ms: quantile("99")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
Concurrency Level:      100
Time taken for tests:   0.577 seconds
Complete requests:      10000
Failed requests:        3
   (Connect: 0, Receive: 1, Length: 0, Exceptions: 2)
Non-2xx responses:      5
Requests per second:    17337.66 [#/sec] (mean)
Time per request:       5.768 [ms] (mean)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    1   0.5      1       5
Processing:     1    5   1.5      4      11
Waiting:        0    4   1.4      3      10
Total:          1    6   1.7      5      12
";
    const TABLE: &str = "Percentage served,Time in ms\n0,0.9\n5,1.1\n50,5.432\n98,9.0\n99,10.125\n";

    #[test]
    fn a_report_is_read_by_its_names() {
        let summary = read(REPORT, TABLE).unwrap();
        assert_eq!(
            summary,
            Summary {
                complete: 10_000,
                broken: 3,
                refused: 5,
                requests_a_second: 17_337.66,
                deviation_ms: 1.7,
                median_ms: 5.432,
                p99_ms: 10.125,
                longest_ms: 12.0,
            }
        );
        assert_eq!((summary.answered(), summary.failed()), (9_992, 8));
        let none_refused: String = REPORT
            .lines()
            .filter(|line| !line.starts_with("Non-2xx"))
            .fold(String::new(), |report, line| report + line + "\n");
        assert_eq!(read(&none_refused, TABLE).unwrap().failed(), 3);
    }

    #[test]
    fn a_report_that_misses_a_figure_is_refused() {
        for name in ["Complete requests", "Failed requests", "Requests per second", "Total"] {
            assert_eq!(read(&REPORT.replace(name, "Other"), TABLE), None, "{name}");
        }
        for percent in ["50,", "99,"] {
            assert_eq!(read(REPORT, &TABLE.replace(percent, "1,")), None, "{percent}");
        }
    }
}
