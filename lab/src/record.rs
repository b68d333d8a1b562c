//! Results as JSON, one object a line: what other programs, and the report, read.
//!
//! Promises: the fields `scenario`, `case`, `system`, `metric`, `value` (the median) and `unit` are always there, in this
//! order; `min`, `max` and `rounds` (the raw readings) follow. A file is replaced as a whole or not at all. What is read back
//! is what was written: a line that is not is an error that names file and line, never left out. What a run was (machine,
//! commit, goals and what became of them) is kept beside its figures, so that they can be read without its code.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::judged::Judged;
use crate::machine::Header;
use crate::measurement::{CourseOf, Measurements, Series};
use crate::scenario::Yardsticks;

/// A larger file of results was not written by the lab.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Ends the name of a file with figures.
const FIGURES: &str = ".jsonl";
/// Ends the name of a file that says what run they are of.
const RUN: &str = ".run.json";

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
            metric: &series.metric,
            value: series.median(),
            unit: &series.unit,
            min: series.min(),
            max: series.max(),
            rounds: &series.values,
        };
        serde_json::to_string(&record).expect("strings and numbers always serialize") + "\n"
    };
    measurements.series().iter().map(line).collect()
}

/// What a reader must know of a run beside its figures. Files of older labs have the header alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    #[serde(flatten)]
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) yardsticks: Yardsticks,
    pub(crate) goals: Option<Vec<Judged>>,
    /// What could not take part, and why.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// Figures over the time of a turn, which are plotted and are in no table.
    #[serde(default)]
    pub(crate) courses: Vec<CourseOf>,
}

impl Run {
    /// As one object.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers always serialize") + "\n"
    }
}

/// Where a scenario's figures are kept.
pub(crate) fn figures_file(results: &Path, scenario: &str) -> PathBuf {
    results.join(format!("{scenario}{FIGURES}"))
}

/// Where it is kept what run they are of.
pub(crate) fn run_file(results: &Path, scenario: &str) -> PathBuf {
    results.join(format!("{scenario}{RUN}"))
}

/// The scenarios that have figures in this folder, by name.
pub(crate) fn scenarios_in(results: &Path) -> Result<Vec<String>, Failure> {
    let no_results = || Failure::NoResults {
        folder: results.to_owned(),
    };
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(no_results()),
        Err(error) => return Err(Failure::system(format!("read the folder {}", results.display()))(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Failure::system(format!("read the folder {}", results.display())))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(FIGURES).map(str::to_owned));
    }
    names.sort();
    if names.is_empty() { Err(no_results()) } else { Ok(names) }
}

/// The figures of a file, in its order.
pub(crate) fn read_figures(path: &Path) -> Result<Measurements, Failure> {
    let text = read_file(path)?;
    let series = text.lines().enumerate().map(|(index, line)| {
        read_line(line).map_err(|cause| Failure::Unreadable {
            file: path.to_owned(),
            cause: format!("line {}: {cause}", index + 1),
        })
    });
    Ok(Measurements::of(series.collect::<Result<_, _>>()?))
}

fn read_line(line: &str) -> Result<Series, String> {
    /// Median, minimum and maximum are known from the rounds.
    #[derive(Deserialize)]
    struct Kept {
        case: String,
        system: String,
        metric: String,
        unit: String,
        rounds: Vec<f64>,
    }
    let kept: Kept = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if kept.rounds.is_empty() {
        return Err("no rounds".to_owned());
    }
    Ok(Series {
        case: kept.case,
        system: kept.system,
        metric: kept.metric.into(),
        unit: kept.unit.into(),
        values: kept.rounds,
    })
}

/// What run the figures are of; none if that was not kept.
pub(crate) fn read_run(path: &Path) -> Result<Option<Run>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    serde_json::from_str(&read_file(path)?)
        .map(Some)
        .map_err(|error| Failure::Unreadable {
            file: path.to_owned(),
            cause: error.to_string(),
        })
}

fn read_file(path: &Path) -> Result<String, Failure> {
    let failed = |what: &str| Failure::system(format!("{what} {}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(failed("open"))?;
    let mut bounded = file.take(FILE_BYTES_MAX + 1);
    bounded.read_to_string(&mut text).map_err(failed("read"))?;
    if bounded.limit() == 0 {
        return Err(Failure::Unreadable {
            file: path.to_owned(),
            cause: format!("it is larger than {FILE_BYTES_MAX} bytes"),
        });
    }
    Ok(text)
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

    #[test]
    fn what_was_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = figures_file(folder.path(), "writes");
        let mut measurements = Measurements::default();
        for value in [3.0, 1.25e-7, 2e9] {
            measurements.add("a <b>", "10 \"callers\"", &[Reading::new("rate", "rows/s", value)]);
        }
        write_file(&path, &lines("writes", &measurements)).unwrap();
        write_file(&run_file(folder.path(), "unmeasured"), "{}").unwrap();
        assert_eq!(read_figures(&path).unwrap().series(), measurements.series());
        assert_eq!(scenarios_in(folder.path()).unwrap(), ["writes"]);
        assert!(read_run(&run_file(folder.path(), "writes")).unwrap().is_none());
    }

    #[test]
    fn what_the_lab_does_not_write_is_an_error_that_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = figures_file(folder.path(), "a");
        let line = |rounds: &str| {
            format!("{{\"case\":\"c\",\"system\":\"s\",\"metric\":\"m\",\"unit\":\"u\",\"rounds\":{rounds}}}\n")
        };
        for wrong in [line("[]"), line("[null]"), "\n".to_owned(), line("[1").to_owned()] {
            write_file(&path, &(line("[1.0]") + &wrong)).unwrap();
            let error = read_figures(&path).unwrap_err().to_string();
            assert!(error.contains("a.jsonl") && error.contains("line 2"), "{error}");
        }
        let run = run_file(folder.path(), "a");
        write_file(&run, "{\"scenario\":\"a\"}").unwrap();
        assert!(read_run(&run).unwrap_err().to_string().contains("a.run.json"));
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(read_figures(&path).unwrap_err().to_string().contains("larger"));
        let nowhere = scenarios_in(&folder.path().join("nowhere")).unwrap_err();
        assert!(nowhere.to_string().contains("measure first"), "{nowhere}");
    }
}
