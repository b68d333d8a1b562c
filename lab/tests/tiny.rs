//! Every scenario from end to end, as a user runs it, for a moment: so that none rots.
//!
//! What the figures are does not matter here; that each system took part, that each outcome was right and that the results
//! have the promised form does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs a scenario and gives its report and its results.
fn run(arguments: &[&str]) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.jsonl");
    let ran = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(arguments)
        .arg("--tiny")
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    let report = String::from_utf8(ran.stdout).unwrap();
    let meanwhile = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{report}\n{meanwhile}");
    let results = std::fs::read_to_string(&json).unwrap();
    let results = results
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    (report, results)
}

/// Checks what holds for every scenario, and gives the systems and cases that have figures.
fn check(scenario: &str, report: &str, results: &[Value]) -> BTreeSet<(String, String)> {
    for fact in [
        "command ",
        "commit ",
        "machine ",
        "fdatasync",
        "÷ limit",
        "÷ forebay",
        "load average",
    ] {
        assert!(report.contains(fact), "no {fact:?} in the report:\n{report}");
    }
    results
        .iter()
        .map(|record| {
            let text = |field: &str| record[field].as_str().unwrap_or_else(|| panic!("{field} of {record}"));
            assert_eq!(text("scenario"), scenario);
            assert!(!text("metric").is_empty() && !text("unit").is_empty());
            let value = record["value"].as_f64().unwrap();
            let may_be_nothing = [
                "processor",
                "allocations",
                "allocated",
                "hit rate",
                "hit ratio",
                "database use",
                "wrong answers",
                "wrong outcomes",
                "failed",
                "unknown",
                "cuts",
                "late answers",
                "errors given",
                "faults injected",
                "invalidations",
                "cancelled",
                "longest stall",
                "machine stalled",
                "failed requests",
                "deviation",
                "resident over the cap",
                "processor time a transaction",
                "the proxy's processor time a transaction",
                "the database's processor time a transaction",
                "processor time a login",
                "memory a client",
                "last old answer, median",
                "last old answer, 99th percentile",
            ]
            .contains(&text("metric"));
            assert!(value > 0.0 || may_be_nothing, "{record}");
            assert_eq!(record["rounds"].as_array().unwrap().len(), 1, "{record}");
            (text("system").to_owned(), text("case").to_owned())
        })
        .collect()
}

fn has(seen: &BTreeSet<(String, String)>, system: &str, case: &str) {
    let key = (system.to_owned(), case.to_owned());
    assert!(seen.contains(&key), "no figures of {key:?}: {seen:?}");
}

/// Peers in Go take part wherever Go is.
fn go_is_here() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|ran| ran.status.success())
}

#[test]
fn peers_in_go_see_wrong_answers() {
    if !go_is_here() {
        return;
    }
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    for command in ["vet", "test"] {
        let ran = Command::new("go")
            .current_dir(&peers)
            .env("CGO_ENABLED", "0")
            .args([command, "-buildvcs=false", "."])
            .output()
            .unwrap();
        let (said, error) = (
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
        assert!(ran.status.success(), "go {command}: {said}{error}");
    }
}

#[test]
fn batcher() {
    let (report, results) = run(&["batcher"]);
    let seen = check("batcher", &report, &results);
    has(&seen, "limit", "1 caller");
    has(&seen, "limit", "10,000 callers");
    has(&seen, "limit", "100,000 callers");
    has(&seen, "2 × mpsc + oneshot", "10,000 callers");
    for case in [
        "1 caller",
        "10 callers",
        "100 callers",
        "1,000 callers",
        "10,000 callers",
        "100,000 callers",
        "1,000 callers, window 100 ms",
        "2,000 callers, window 100 ms",
        "4,000 callers, window 50 ms",
        "6,000 callers, window 10 ms",
        "10,000 callers, window 1 ms",
    ] {
        has(&seen, "forebay", case);
        has(&seen, "mpsc + oneshot", case);
        if go_is_here() {
            has(&seen, "Go, by hand", case);
        }
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

#[test]
fn loader() {
    let (report, results) = run(&["loader"]);
    let seen = check("loader", &report, &results);
    for case in [
        "1,000 callers, batch 100",
        "1,000 callers, batch 1,000",
        "10,000 callers, batch 100",
        "10,000 callers, batch 1,000",
        "100,000 callers, batch 1,000",
    ] {
        for system in ["limit", "forebay", "async-graphql", "dataloader", "ultra-batch"] {
            has(&seen, system, case);
        }
        if go_is_here() {
            has(&seen, "Go, dataloadgen", case);
            has(&seen, "Go, graph-gophers", case);
        }
    }
    for case in [
        "100,000 loads at once, batch 100",
        "500 loads at once, batch 50, source takes 50 ms",
    ] {
        has(&seen, "forebay", case);
        has(&seen, "no batching", case);
    }
    for case in [
        "100 loads at once, batch 1",
        "100 loads at once, batch 100",
        "1,000 loads at once, batch 50",
        "1,000 loads at once, batch 100",
    ] {
        has(&seen, "forebay", case);
    }
    for peer in ["async-graphql", "dataloader", "ultra-batch"] {
        has(&seen, peer, "1,000 loads at once, batch 100");
    }
    for case in [
        "20 loads each 1 ms, source takes 10 ms",
        "20 loads each 20 ms, source takes 1 ms",
    ] {
        for window in [
            "forebay",
            "forebay, window 2 ms",
            "forebay, window 5 ms",
            "forebay, window 10 ms",
        ] {
            has(&seen, window, case);
        }
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

#[test]
fn hit_ratios() {
    let (report, results) = run(&["cache", "--only", " entries"]);
    let seen = check("cache", &report, &results);
    for (trace, capacities) in [
        ("oltp", &["1,000", "2,000", "5,000", "10,000", "15,000", "50,000"][..]),
        ("gli", &["500", "1,000", "1,500", "2,000", "2,500"]),
        ("loop", &["100", "250", "500", "750", "1,000"]),
    ] {
        for capacity in capacities {
            let case = format!("{trace}, {capacity} entries");
            for system in ["limit", "LRU", "quick_cache", "moka", "foyer", "forebay"] {
                has(&seen, system, &case);
            }
            let is_judged = |line: &str| line.contains(&case) && line.contains("the best peer's (at least -1.00): ");
            assert!(report.lines().any(is_judged), "{case}:\n{report}");
        }
    }
}

#[test]
fn page_policy() {
    let (report, results) = run(&["page-policy"]);
    let seen = check("page-policy", &report, &results);
    for case in ["oltp, 5000 pages", "Zipf and a scan in pieces, 1000 pages"] {
        for system in ["limit", "LRU", "CLOCK", "S3-FIFO", "quick_cache", "moka", "forebay"] {
            has(&seen, system, case);
        }
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

#[test]
fn cache() {
    let (report, results) = run(&["cache"]);
    let seen = check("cache", &report, &results);
    for case in ["1 thread", "2 threads"] {
        for system in ["limit", "forebay", "quick_cache", "moka", "foyer"] {
            has(&seen, system, case);
        }
        if go_is_here() {
            for peer in ["Go, otter", "Go, sturdyc", "Go, cachex"] {
                has(&seen, peer, case);
            }
        }
    }
    for system in ["forebay", "quick_cache", "moka", "foyer"] {
        has(&seen, system, "100,000 entries of u64 by u64");
    }
    for entries in ["10,000", "100,000", "1,000,000", "10,000,000"] {
        for system in ["forebay", "quick_cache", "moka"] {
            has(&seen, system, &format!("{entries} of u64 by u64"));
        }
    }
    assert!(
        !go_is_here() || !report.contains("not measured"),
        "every goal is judged:\n{report}"
    );
}

#[test]
fn pages() {
    let (report, results) = run(&["pages"]);
    let seen = check("pages", &report, &results);
    for system in ["forebay", "foyer", "mmap", "pread"] {
        for case in [
            "cold, cache over the file, 10 readers",
            "hot, handed out, 10 readers",
            "hot, touched, 10 readers",
            "hot, 4 KiB reads, 1 reader",
        ] {
            has(&seen, system, case);
        }
    }
    for case in [
        "cold, cache under the file, 1 reader",
        "warm, cache under the file, 10 readers",
    ] {
        has(&seen, "forebay", case);
        has(&seen, "foyer", case);
    }
    for case in [
        "hot, 16 KiB reads, 25 readers, 1 file",
        "hot, 16 KiB reads, 25 readers, 1,000 files",
    ] {
        has(&seen, "pread", case);
        has(&seen, "forebay", case);
    }
    for case in ["100 views held of 1,000 files", "100,000 views held of 1,000 files"] {
        has(&seen, "forebay", case);
    }
    has(&seen, "limit", "hot, touched, 25 readers");
    has(&seen, "limit", "sparse ranges");
    for (page, gap) in [(64, 0), (64, 64), (64, 256), (64, 1024), (4, 0), (4, 16), (4, 256)] {
        let case = format!("sparse ranges, pages of {page} KiB, gap of {gap} KiB");
        has(&seen, "forebay", &case);
    }
    let fio_is_here = Command::new("fio").arg("--version").output().is_ok();
    for case in [
        "file read once, runs of 128 KiB, depth 32",
        "file read once, runs of 1024 KiB, depth 8",
    ] {
        has(&seen, "forebay", case);
        has(&seen, "limit", case);
        if fio_is_here {
            has(&seen, "fio", case);
        }
    }
    assert_eq!(report.contains("left out     fio"), !fio_is_here, "{report}");
}

#[test]
fn cold_start() {
    let (report, results) = run(&["cold-start"]);
    let seen = check("cold-start", &report, &results);
    for case in ["High performance", "Cloud", "Shared", "Constrained"] {
        for system in [
            "forebay",
            "forebay, gathered",
            "forebay, warm",
            "forebay, gathered, warm",
        ] {
            has(&seen, system, case);
        }
        let paused = format!("{case}, 1 ms pauses");
        has(&seen, "forebay", &paused);
        if go_is_here() {
            has(&seen, "Go, cachex", case);
            has(&seen, "Go, cachex", &paused);
        }
    }
    assert!(
        !go_is_here() || !report.contains("not measured"),
        "every goal is judged:\n{report}"
    );
}

#[test]
fn cache_soak() {
    let (report, results) = run(&["cache-soak", "--seed", "7"]);
    let seen = check("cache-soak", &report, &results);
    let wrong = results.iter().filter(|record| record["metric"] == "wrong answers");
    assert!(wrong.clone().count() >= 3 && wrong.clone().all(|record| record["value"] == 0.0));
    for case in ["single", "gathered", "with SQLite"] {
        has(&seen, "forebay", case);
    }
    if Command::new("redis-server").arg("--version").output().is_ok() {
        has(&seen, "forebay", "with Redis");
        assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
    }
    assert!(report.contains("Seed 7."), "{report}");
}

#[test]
fn fleet() {
    let (report, results) = run(&["fleet"]);
    let seen = check("fleet", &report, &results);
    for (system, case) in [
        ("limit", "a change is heard"),
        ("forebay", "a change is heard"),
        ("forebay", "a cold key, ten processes"),
        ("limit", "hits"),
        ("forebay", "hits"),
    ] {
        has(&seen, system, case);
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

#[test]
fn writes_soak() {
    for name in ["postgres", "mariadb"] {
        let (report, results) = run(&["writes-soak", "--database", name, "--seed", "7"]);
        let seen = check(&format!("writes-soak-{name}"), &report, &results);
        has(&seen, "forebay", "300 callers, killed");
        let figure = |metric: &str| {
            let record = results.iter().find(|record| record["metric"] == metric);
            record.and_then(|record| record["value"].as_f64()).unwrap()
        };
        assert!(figure("wrong outcomes") == 0.0 && figure("kills") >= 1.0 && figure("acknowledged") > 0.0);
        assert!(report.contains("Seed 7."), "{report}");
    }
}

#[test]
fn loads() {
    for name in ["postgres", "mariadb"] {
        let (report, results) = run(&["loads", "--database", name]);
        let seen = check(&format!("loads-{name}"), &report, &results);
        for (count, pools) in [
            ("1 caller", &["unbatched"][..]),
            ("10 callers", &["pool of 4", "unbatched"]),
            ("100 callers", &["pool of 4", "pool of 16", "pool of 50"]),
            ("1,000 callers", &["pool of 4", "pool of 16", "pool of 50"]),
        ] {
            for system in pools.iter().chain(&["forebay"]) {
                has(&seen, system, count);
            }
        }
        assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
    }
}

#[test]
fn writes_to_sqlite() {
    let (report, results) = run(&["writes", "--database", "sqlite"]);
    let seen = check("writes-sqlite", &report, &results);
    has(&seen, "limit", "1,000 rows a transaction");
    has(&seen, "one by one", "1 caller");
    has(&seen, "by hand", "10,000 callers");
    forebay_wrote(&seen, &report);
}

/// What Forebay writes to every database, and what is expected to be judged.
fn forebay_wrote(seen: &BTreeSet<(String, String)>, report: &str) {
    for case in [
        "1 caller",
        "10 callers",
        "100 callers",
        "1,000 callers",
        "10,000 callers",
        "10,000 callers, unique column",
        "10,000 callers, unique column, 1 % bad",
    ] {
        has(seen, "forebay", case);
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

/// What row by row and by hand writes to every database over the network.
fn peers_wrote(seen: &BTreeSet<(String, String)>) {
    for (count, pools) in [
        ("1 caller", &["unbatched"][..]),
        ("2 callers", &["unbatched"]),
        ("4 callers", &["unbatched"]),
        ("10 callers", &["unbatched"]),
        ("20 callers", &["pool of 10", "unbatched"]),
        ("50 callers", &["pool of 20", "unbatched"]),
        ("100 callers", &["pool of 20", "pool of 50", "unbatched"]),
        ("1,000 callers", &["pool of 20", "pool of 50", "pool of 100"]),
        ("10,000 callers", &["pool of 50", "pool of 100"]),
    ] {
        for system in pools.iter().chain(&["forebay"]) {
            has(seen, system, count);
        }
    }
    has(seen, "by hand", "10,000 callers");
    has(seen, "by hand", "10,000 callers, unique column, 1 % bad");
}

#[test]
fn writes_to_postgres() {
    let (report, results) = run(&["writes", "--database", "postgres"]);
    let seen = check("writes-postgres", &report, &results);
    has(&seen, "limit", "COPY");
    has(&seen, "unnest", "1,000 rows a statement");
    has(&seen, "pgbench", "50 callers");
    peers_wrote(&seen);
    forebay_wrote(&seen, &report);
    for case in [
        "10,000 callers, ordered by caller",
        "10,000 callers, RETURNING id",
        "10,000 callers, unique column, 1 % bad, RETURNING id",
    ] {
        has(&seen, "forebay", case);
    }
}

#[test]
fn writes_to_mariadb() {
    let (report, results) = run(&["writes", "--database", "mariadb"]);
    let seen = check("writes-mariadb", &report, &results);
    has(&seen, "limit", "1,000 rows a statement");
    has(&seen, "text", "1,000 rows a statement");
    peers_wrote(&seen);
    forebay_wrote(&seen, &report);
    has(&seen, "forebay", "10,000 callers, ordered by caller");
}

#[test]
fn writes_go_to_every_database_unless_one_is_named() {
    let (report, results) = run(&["writes", "--only", "1 caller"]);
    let scenarios: BTreeSet<&str> = results
        .iter()
        .filter_map(|record| record["scenario"].as_str())
        .collect();
    let all = ["writes-mariadb", "writes-postgres", "writes-sqlite"];
    assert_eq!(scenarios, BTreeSet::from(all), "{report}");
}

/// Peers take part wherever they are installed; each case has its figure straight or beside one.
#[test]
fn proxy() {
    // One that the same build has made is taken as it is; else the lab builds one.
    let built = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("forebay");
    let built = built.to_str().unwrap();
    let arguments = ["proxy", "--forebay", built];
    let count = if Path::new(built).is_file() { 3 } else { 1 };
    let (report, results) = run(&arguments[..count]);
    let seen = check("proxy", &report, &results);
    for case in [
        "SELECT, 1 client",
        "INSERT, 500 clients",
        "SELECT, 50 clients, prepared",
        "a result of 1 GB",
        "COPY of 1 GB to the client",
        "COPY of 1 GB from the client",
    ] {
        has(&seen, "forebay", case);
        has(&seen, "limit", case);
    }
    let peers = [("PgBouncer", "/usr/sbin/pgbouncer"), ("pgpool-II", "/usr/sbin/pgpool")];
    for (peer, _) in peers.iter().filter(|(_, program)| Path::new(program).is_file()) {
        has(&seen, peer, "SELECT, 50 clients");
    }
    for case in ["idle clients", "idle clients, TLS", "10,000 clients log in"] {
        has(&seen, "forebay", case);
    }
}

/// Each load by each of the systems that can carry it.
#[test]
fn sharing() {
    let built = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("forebay");
    let built = built.to_str().unwrap();
    let arguments = ["sharing", "--forebay", built];
    let count = if Path::new(built).is_file() { 3 } else { 1 };
    let (report, results) = run(&arguments[..count]);
    let seen = check("sharing", &report, &results);
    for case in [
        "INSERT, 500 clients, prepared",
        "UPDATE, 50 clients, prepared",
        "TPC-B, 50 clients",
        "SELECT by Zipf, 500 clients, prepared",
    ] {
        for system in ["forebay", "forebay, sharing off", "limit"] {
            has(&seen, system, case);
        }
    }
    if Path::new("/usr/sbin/pgbouncer").is_file() {
        has(&seen, "PgBouncer", "TPC-B, 50 clients");
    }
}

/// Each question by each of the systems that can be asked it.
#[test]
fn query_cache() {
    let built = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("forebay");
    let built = built.to_str().unwrap();
    let arguments = ["query-cache", "--forebay", built];
    let count = if Path::new(built).is_file() { 3 } else { 1 };
    let (report, results) = run(&arguments[..count]);
    let seen = check("query-cache", &report, &results);
    for case in [
        "point read, 50 clients, prepared",
        "10 ms query, 100 clients",
        "empty query, 50 clients",
    ] {
        for system in ["forebay", "forebay, no memory", "limit"] {
            has(&seen, system, case);
        }
    }
    for system in ["forebay", "limit"] {
        has(&seen, system, "1,000 clients, one cold key of 100 ms");
    }
    for system in ["forebay", "limit"] {
        has(&seen, system, "product search, cold, 8 connections, 190 ms away");
    }
    has(&seen, "forebay", "a commit past the proxy");
    for system in ["forebay", "nobody listens"] {
        has(&seen, system, "TPC-B straight, 8 clients");
    }
    if Path::new("/usr/sbin/pgpool").is_file() {
        has(&seen, "pgpool-II, memory cache", "10 ms query, 100 clients");
    }
}

#[test]
fn server() {
    // One that the same build has made is taken as it is; else the lab builds one.
    let built = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("forebay");
    let built = built.to_str().unwrap();
    let arguments = ["server", "--forebay", built];
    let count = if Path::new(built).is_file() { 3 } else { 1 };
    let (report, results) = run(&arguments[..count]);
    let seen = check("server", &report, &results);
    for system in ["forebay", "forebay, one a batch", "PostgreSQL"] {
        for case in [
            "50 clients, prepared",
            "50 clients, simple",
            "50 clients, extended",
            "1 client, prepared",
        ] {
            has(&seen, system, case);
        }
    }
    assert!(!report.contains("not measured"), "every goal is judged:\n{report}");
}

#[test]
fn http_writes() {
    // One that the same build has made is taken as it is; else the lab builds one.
    let built = Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name("web");
    let built = built.to_str().unwrap();
    let arguments = ["http-writes", "--web", built];
    let count = if Path::new(built).is_file() { 3 } else { 1 };
    let (report, results) = run(&arguments[..count]);
    let seen = check("http-writes", &report, &results);
    for database in ["MariaDB", "PostgreSQL", "SQLite"] {
        for load in ["100 concurrent", "500 concurrent", "100 concurrent, keep-alive"] {
            let case = format!("{database}, {load}");
            for system in ["limit", "forebay", "pool", "a connection a request"] {
                has(&seen, system, &case);
            }
        }
    }
    for goal in report.lines().filter(|line| line.contains("not measured")) {
        // Of the services without Forebay none may have failed a request, and then nothing is asked.
        assert!(goal.contains("a service that fails requests"), "{goal}:\n{report}");
    }
}

#[test]
fn a_folder_in_memory_is_refused() {
    let shared_memory = Path::new("/dev/shm");
    if !shared_memory.is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in(shared_memory).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["writes", "--tiny", "--folder"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!ran.status.success());
    let error = String::from_utf8(ran.stderr).unwrap();
    assert!(error.contains("tmpfs"), "{error}");
}

#[test]
fn only_what_is_there_can_be_chosen() {
    let ran = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args([
            "writes",
            "--database",
            "sqlite",
            "--tiny",
            "--only",
            "nothing like that",
        ])
        .output()
        .unwrap();
    assert!(!ran.status.success());
    let error = String::from_utf8(ran.stderr).unwrap();
    assert!(error.contains("limit, 1,000 rows a transaction"), "{error}");
}
