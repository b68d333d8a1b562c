//! Results that no run has given: as many systems and cases as the lab may ever have, with figures that follow from their
//! names, so that they are the same on every machine.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A system, and how much faster than the slowest it is.
pub(crate) type System = (&'static str, f64);

/// Peers of the scenario `batcher`.
pub(crate) const BATCHERS: &[System] = &[
    ("limit", 23.0),
    ("forebay", 11.2),
    ("mpsc + oneshot", 4.0),
    ("mpsc + oneshot, a queue per core", 7.6),
    ("Go fan-in", 1.0),
    ("Go channels", 0.62),
];
/// Peers of the scenario `loader`.
pub(crate) const LOADERS: &[System] = &[
    ("forebay", 16.0),
    ("vikstrous/dataloadgen", 3.1),
    ("graph-gophers/dataloader", 1.2),
    ("async-graphql", 2.1),
    ("dataloader", 1.6),
    ("ultra-batch", 1.9),
];
/// A name that would be markup if it were not escaped.
pub(crate) const HOSTILE: &str = "</title><script>alert(\"1\")</script>&amp;'{{style}}";

const ROUNDS: [f64; 5] = [1.0, 0.94, 1.07, 0.99, 1.02];

struct Figures {
    scenario: &'static str,
    lines: String,
}

impl Figures {
    fn new(scenario: &'static str) -> Self {
        Self {
            scenario,
            lines: String::new(),
        }
    }

    fn add(&mut self, system: &str, case: &str, metric: &str, unit: &str, median: f64) {
        let rounds: Vec<f64> = ROUNDS.iter().map(|factor| factor * median).collect();
        let (min, max) = (median * 0.94, median * 1.07);
        let line = json!({
            "scenario": self.scenario, "case": case, "system": system, "metric": metric, "value": median, "unit": unit,
            "min": min, "max": max, "rounds": rounds,
        });
        self.lines += &format!("{line}\n");
    }

    fn write(&self, folder: &Path, run: Option<&Value>) {
        fs::write(folder.join(format!("{}.jsonl", self.scenario)), &self.lines).unwrap();
        if let Some(run) = run {
            fs::write(folder.join(format!("{}.run.json", self.scenario)), run.to_string()).unwrap();
        }
    }
}

fn grouped(number: u32) -> String {
    match number {
        1000.. => format!("{},{:03}", number / 1000, number % 1000),
        _ => number.to_string(),
    }
}

/// What a run is told with.
pub(crate) fn run(scenario: &str, commit: &str, goals: &Value) -> Value {
    json!({
        "scenario": scenario,
        "command": format!("cargo run --release -p lab -- {scenario} --quick"),
        "date": "2026-11-20 10:00 UTC",
        "commit": commit,
        "versions": [["forebay", "0.1.0"], ["rustc", "rustc 1.95.0 (59807616e 2026-04-14)"], ["go", "go1.25.3"]],
        "cores": 2, "processor": "AMD EPYC", "memory": "23.5 GiB", "kernel": "linux 6.18", "disk": "ext4 on /dev/vda",
        "fdatasync_us": 113.04, "load_average": "0.27 0.44 0.50", "rounds": 5, "seconds_a_measurement": 3.0,
        "warnings": ["other work was running on this machine: compare within the run only"],
        "about": "Many callers, one no-op call: each task calls in a loop and checks its own answer.\nlimit: tasks that only \
            yield. forebay: Batcher, one batch in flight.\nmpsc + oneshot: a channel and a oneshot a call, as one writes by hand.",
        "yardsticks": {"limit": {"system": "limit", "case": "10,000 tasks"}, "forebay": null},
        "goals": goals,
        "left_out": ["Go is not here (no such program); install Go 1.25 or newer"],
        "courses": [{"system": "forebay", "case": format!("10 callers of {scenario}"), "metric": "resident memory",
            "unit": "MiB", "bound": ["cap", 64.0], "points": [[0.0, 0.0], [0.5, 63.0], [1.0, 60.0]]}],
    })
}

fn goal(text: &str, wanted: &str, bound: f64, measured: Option<f64>, unit: &str) -> Value {
    json!({"text": text, "wanted": {wanted: bound}, "measured": measured, "unit": unit})
}

fn batcher(folder: &Path) {
    let mut figures = Figures::new("batcher");
    let throughput = |speed: f64, callers: u32| speed * 1e6 * f64::from(callers) / (f64::from(callers) + 60.0);
    for (system, speed) in BATCHERS {
        if *system == "limit" {
            figures.add(system, "10,000 tasks", "throughput", "calls/s", speed * 1e6);
            continue;
        }
        for callers in [1, 10, 100, 1000, 10_000] {
            let word = if callers == 1 { "caller" } else { "callers" };
            let case = format!("{} {word}", grouped(callers));
            let rate = throughput(*speed, callers);
            figures.add(system, &case, "throughput", "calls/s", rate);
            figures.add(system, &case, "latency p50", "µs", 1e6 * f64::from(callers) / rate);
            figures.add(system, &case, "latency p99", "µs", 2.6e6 * f64::from(callers) / rate);
            let allocations = if *system == "forebay" { 0.0 } else { 24.0 / speed / 3.0 };
            figures.add(system, &case, "allocations per call", "allocations", allocations);
        }
        for (window, callers) in [(100, 1000), (100, 2000), (50, 4000), (10, 6000), (1, 10_000)] {
            let case = format!("window {window} ms, {} callers", grouped(callers));
            figures.add(
                system,
                &case,
                "throughput",
                "calls/s",
                throughput(*speed, callers) * 0.5,
            );
            figures.add(system, &case, "latency p50", "µs", 1000.0 * f64::from(window));
        }
    }
    let goals = json!([
        goal(
            "10,000 callers: calls a second",
            "at_least",
            1e7,
            Some(1.11e7),
            "calls/s"
        ),
        goal("10,000 callers ÷ mpsc + oneshot", "at_least", 2.5, Some(2.8), ""),
        goal("10,000 callers ÷ limit", "at_least", 0.45, Some(0.41), ""),
        goal("allocations a call", "at_most", 0.1, Some(0.0), "allocations"),
        goal("one lone caller over calling directly", "at_most", 2.0, None, "µs"),
    ]);
    figures.write(folder, Some(&run("batcher", "0123456789ab", &goals)));
}

fn loader(folder: &Path) {
    let mut figures = Figures::new("loader");
    for (system, speed) in LOADERS {
        for callers in [1000, 10_000] {
            let case = format!("{} callers", grouped(callers));
            figures.add(system, &case, "throughput", "loads/s", speed * 1e6);
            figures.add(system, &case, "allocations per load", "allocations", 3.2 / speed);
            figures.add(system, &case, "bytes per load", "bytes", 900.0 / speed);
        }
        for (case, fetches) in [
            ("100,000 loads, batch 1", 100_000.0),
            ("100,000 loads, batch 100", 1000.0),
            ("1,000 concurrent, batch 50", 20.0),
            ("1,000 concurrent, batch 100", 10.0),
        ] {
            figures.add(system, case, "fetches", "fetches", fetches);
        }
    }
    for (window, keys) in [(2, 31.0), (5, 64.0), (10, 97.0)] {
        for (system, share) in [("forebay", 1.0), ("vikstrous/dataloadgen", 0.93)] {
            let case = format!("bursts, window {window} ms");
            figures.add(system, &case, "keys per fetch", "keys", keys * share);
            figures.add(system, &case, "latency p50", "ms", f64::from(window) * 1.1 / share);
        }
    }
    figures.add("forebay", "bursts, natural", "keys per fetch", "keys", 101.0);
    figures.add("forebay", "bursts, natural", "latency p50", "ms", 0.9);
    let goals = json!([
        goal("1,000 callers ÷ the fastest peer", "at_least", 5.0, Some(5.16), ""),
        goal("allocations a load", "at_most", 0.2, Some(0.21), "allocations"),
    ]);
    let mut run = run("loader", "ba9876543210 + changes", &goals);
    run["processor"] = json!("Another processor");
    run["date"] = json!("2026-11-19 10:00 UTC");
    run["warnings"] = json!([]);
    run["left_out"] = json!([]);
    figures.write(folder, Some(&run));
}

/// What is odd: hostile names, a single figure, zeros, figures far apart, no run kept, more bars than are drawn.
fn odd(folder: &Path) {
    let mut figures = Figures::new("odd");
    figures.add(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1.0);
    figures.add("forebay", HOSTILE, HOSTILE, HOSTILE, 0.0);
    figures.add("forebay", "the only case", "a metric of its own", "things", 0.0);
    for (case, value) in [("nothing", 1e-9), ("everything", 1e12)] {
        figures.add("forebay", case, "span", "s", value);
        figures.add("limit", case, "span", "s", value / 3.0);
    }
    for index in 0..70 {
        let case = format!(
            "case {}{}",
            char::from(b'a' + index % 26),
            "x".repeat(usize::from(index / 26) + 1)
        );
        figures.add(
            "a peer with a name that is longer than any place for it could be",
            &case,
            "many",
            "s",
            f64::from(index),
        );
    }
    figures.write(folder, None);
}

/// Writes them all into the folder.
pub(crate) fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    batcher(folder);
    loader(folder);
    odd(folder);
}
