//! Results as JSON, one object a line: what other programs, and the report, read.
//!
//! Promises: the fields `scenario`, `case`, `system`, `metric`, `value` (the median) and `unit` are always there, in this
//! order; `min`, `max` and `rounds` (the raw readings) follow. A file is replaced as a whole or not at all.

use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::measurement::{Measurements, Series};

#[derive(Debug, Serialize)]
struct Record<'a> {
    scenario: &'a str,
    case: &'a str,
    system: &'a str,
    metric: &'a str,
    value: f64,
    unit: &'a str,
    min: f64,
    max: f64,
    rounds: &'a [f64],
}

/// All series of a run, a line each.
pub(crate) fn lines(scenario: &str, measurements: &Measurements) -> String {
    let line = |series: &Series| {
        let record = Record {
            scenario,
            case: &series.case,
            system: &series.system,
            metric: series.metric,
            value: series.median(),
            unit: series.unit,
            min: series.min(),
            max: series.max(),
            rounds: &series.values,
        };
        serde_json::to_string(&record).expect("strings and numbers always serialize") + "\n"
    };
    measurements.series().iter().map(line).collect()
}

/// Writes a file so that nobody ever reads half of it.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |what: &str| Failure::system(format!("{what} {}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    std::fs::write(&unfinished, text).map_err(failed("write"))?;
    std::fs::rename(&unfinished, path).map_err(failed("put in place"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Reading;

    #[test]
    fn a_line_has_the_promised_fields_in_the_promised_order() {
        let mut measurements = Measurements::default();
        for value in [3.0, 1.0, 2.0] {
            measurements.add("forebay", "10 \"callers\"", &[Reading::new("rate", "rows/s", value)]);
        }
        let lines = lines("writes-sqlite", &measurements);
        assert_eq!(
            lines,
            "{\"scenario\":\"writes-sqlite\",\"case\":\"10 \\\"callers\\\"\",\"system\":\"forebay\",\"metric\":\"rate\",\
             \"value\":2.0,\"unit\":\"rows/s\",\"min\":1.0,\"max\":3.0,\"rounds\":[3.0,1.0,2.0]}\n"
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results").join("a.jsonl");
        write_file(&path, "one, and longer").unwrap();
        write_file(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
