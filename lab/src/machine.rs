//! The header of a run: on which machine, of which code, when, and by which command.
//!
//! Promises: the disk's cost of durability is measured where the databases will be; a folder that is kept in memory is
//! refused. What the system does not tell is shown as "unknown", never guessed.

use std::fmt;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::places::workspace;
use crate::scenario::{Scenario, Stage};

/// What a reader must know to judge figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) scenario: String,
    pub(crate) command: String,
    pub(crate) date: String,
    /// With "+ changes" if the source tree differs from it.
    pub(crate) commit: String,
    pub(crate) versions: Vec<(String, String)>,
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory: String,
    pub(crate) kernel: String,
    pub(crate) disk: String,
    pub(crate) fdatasync_us: f64,
    pub(crate) load_average: String,
    pub(crate) rounds: u32,
    pub(crate) seconds_a_measurement: f64,
    pub(crate) warnings: Vec<String>,
}

impl Header {
    /// Reads it all, and measures the disk for a moment.
    pub(crate) fn read(scenario: &dyn Scenario, stage: &Stage<'_>) -> Result<Self, Failure> {
        let (kind, device) = file_system(stage.folder);
        if matches!(&*kind, "tmpfs" | "ramfs") {
            return Err(Failure::NotADisk {
                folder: stage.folder.to_owned(),
                kind,
            });
        }
        // Before the disk is measured, so that it tells of others' work.
        let load_average = Self::load_now();
        let fdatasyncs = if stage.effort.meaningful { 301 } else { 11 };
        let mut versions = vec![
            ("forebay".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("rustc".to_owned(), first_line_of("rustc", &["--version"])),
        ];
        versions.extend(scenario.versions());
        let mut warnings = Vec::new();
        if cfg!(debug_assertions) {
            warnings.push("built without optimization: the figures mean nothing".to_owned());
        }
        if !stage.effort.meaningful {
            warnings.push("a tiny run: the figures mean nothing".to_owned());
        }
        let others = load_average.split(' ').next().and_then(|load| load.parse::<f64>().ok());
        if others.is_some_and(|load| load > 0.5) {
            warnings.push("other work was running on this machine: compare within the run only".to_owned());
        }
        Ok(Self {
            scenario: scenario.name(),
            command: command_line(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            commit: commit(),
            versions,
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: field_of("/proc/cpuinfo", "model name"),
            memory: memory(),
            kernel: format!(
                "{} {}",
                std::env::consts::OS,
                read_or_unknown("/proc/sys/kernel/osrelease")
            ),
            disk: format!("{kind} on {device}"),
            fdatasync_us: fdatasync_us(stage.folder, fdatasyncs)?,
            load_average,
            rounds: stage.effort.rounds,
            seconds_a_measurement: stage.effort.duration.as_secs_f64(),
            warnings,
        })
    }

    /// How busy the machine was before the run.
    pub(crate) fn load(&self) -> &str {
        &self.load_average
    }

    /// How busy it is now: means of 1, 5 and 15 minutes.
    pub(crate) fn load_now() -> String {
        let load = read_or_unknown("/proc/loadavg");
        load.split(' ').take(3).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(what, version)| format!("{what} {version}"))
            .collect();
        writeln!(f, "scenario   {}", self.scenario)?;
        writeln!(f, "command    {}", self.command)?;
        writeln!(f, "date       {}", self.date)?;
        writeln!(f, "commit     {}", self.commit)?;
        writeln!(f, "versions   {}", versions.join(", "))?;
        writeln!(
            f,
            "machine    {} cores, {}, {}, {}",
            self.cores, self.processor, self.memory, self.kernel
        )?;
        writeln!(
            f,
            "disk       {}, 4 KiB write and fdatasync {:.0} µs (median)",
            self.disk, self.fdatasync_us
        )?;
        writeln!(
            f,
            "rounds     {} of {} s a measurement, systems in turns",
            self.rounds, self.seconds_a_measurement
        )?;
        for warning in &self.warnings {
            writeln!(f, "WARNING    {warning}")?;
        }
        Ok(())
    }
}

/// What to type to have this again. A program that was built before is one machine's; without it the lab builds one.
fn command_line() -> String {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--forebay") {
        arguments.drain(at..arguments.len().min(at + 2));
    }
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    format!("cargo run {profile}-p lab -- {}", arguments.join(" "))
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let root = workspace();
        let told = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(told.stdout).ok()?;
        told.status.success().then(|| text.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} + changes"),
    }
}

/// The first line that a program prints, or that it is not there.
pub(crate) fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let told = Command::new(program).args(arguments).output().ok();
    // Some tell it where others tell what is wrong.
    let text = told.and_then(|told| String::from_utf8([told.stdout, told.stderr].concat()).ok());
    let line = text.and_then(|text| Some(text.lines().next()?.trim().to_owned()));
    line.unwrap_or_else(|| "not installed".to_owned())
}

fn read_or_unknown(path: &str) -> String {
    std::fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The value of the first `name : value` line.
fn field_of(path: &str, name: &str) -> String {
    let text = read_or_unknown(path);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| "unknown".to_owned())
}

fn memory() -> String {
    let total = field_of("/proc/meminfo", "MemTotal");
    let kib = total.strip_suffix(" kB").and_then(|kib| kib.parse::<f64>().ok());
    kib.map_or(total, |kib| format!("{:.1} GiB", kib / 1_048_576.0))
}

/// Kind and device of the file system that a folder is on.
fn file_system(folder: &Path) -> (String, String) {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    find_mount(&read_or_unknown("/proc/mounts"), &folder)
        .unwrap_or_else(|| ("unknown".to_owned(), "unknown".to_owned()))
}

/// The longest mount point above the folder; of equals the last, which hides those before it.
fn find_mount(mounts: &str, folder: &Path) -> Option<(String, String)> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(point).then_some((point.len(), device, kind))
    });
    let (_, device, kind) = mounts.max_by_key(|(length, ..)| *length)?;
    Some((kind.to_owned(), device.to_owned()))
}

/// What it costs to have a small write on the disk.
fn fdatasync_us(folder: &Path, count: usize) -> Result<f64, Failure> {
    let path = folder.join("fdatasync");
    let failed = |what: &str| Failure::system(format!("{what} {}", path.display()));
    let mut file = File::create(&path).map_err(failed("make"))?;
    // Written before, so that the size of the file does not change while it is measured.
    file.write_all(&vec![1; 4096 * count]).map_err(failed("write"))?;
    file.sync_all().map_err(failed("sync"))?;
    file.seek(SeekFrom::Start(0)).map_err(failed("seek in"))?;
    let mut took_us = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(&[2; 4096]).map_err(failed("write"))?;
        file.sync_data().map_err(failed("sync"))?;
        took_us.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&path).map_err(failed("remove"))?;
    took_us.sort_by(f64::total_cmp);
    Ok(took_us[count / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_that_holds_a_folder_is_found() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nnone /a overlay rw 0 0\n/dev/vdb /a xfs rw 0 0";
        let found = |folder: &str| find_mount(mounts, Path::new(folder)).unwrap();
        assert_eq!(found("/tmp/x"), ("tmpfs".to_owned(), "tmpfs".to_owned()));
        assert_eq!(found("/tmpx"), ("ext4".to_owned(), "/dev/vda".to_owned()));
        assert_eq!(found("/a/b"), ("xfs".to_owned(), "/dev/vdb".to_owned()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_is_known() {
        assert_ne!(memory(), "unknown");
        assert!(memory().ends_with(" GiB"));
        assert_ne!(field_of("/proc/cpuinfo", "processor"), "unknown");
        assert_eq!(field_of("/proc/cpuinfo", "no such thing"), "unknown");
        let folder = tempfile::tempdir().unwrap();
        assert!(fdatasync_us(folder.path(), 3).unwrap() > 0.0);
    }
}
