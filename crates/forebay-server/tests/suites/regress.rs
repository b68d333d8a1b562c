//! PostgreSQL's regression tests, by its own `pg_regress`.
//!
//! A test passes that prints what PostgreSQL expects, or the very lines that it prints straight; what else differs must be
//! known. The usual form runs the tests of `regress.short`, in their order and groups; the long one the whole schedule.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use testbed::{Account, Error, Folder, Program};

use crate::{
    installed::{below_target, on_path},
    known,
    ways::{Server, Way, both, sources, whole},
};

/// Many times what it takes on a machine that does nothing else.
const ENDS_WITHIN: Duration = Duration::from_secs(900);
const DATABASE: &str = "regression";
/// What `pg_regress` sets for the database where it makes that itself.
const SETTINGS: [&str; 6] = [
    "lc_messages TO 'C'",
    "lc_monetary TO 'C'",
    "lc_numeric TO 'C'",
    "lc_time TO 'C'",
    "bytea_output TO 'hex'",
    "timezone_abbreviations TO 'Default'",
];
/// Whom the server runs as where we are root: what it is to read must be its own.
const ACCOUNTS: &[&str] = &["postgres", "nobody"];

/// What became of one way's tests.
struct Run {
    /// Whether each test printed what is expected.
    as_expected: BTreeMap<String, bool>,
    folder: Folder,
}

impl Run {
    /// The tests that printed something else than is expected.
    fn failing(&self) -> Vec<&str> {
        let failing = self.as_expected.iter().filter(|(_, as_expected)| !**as_expected);
        failing.map(|(test, _)| test.as_str()).collect()
    }

    /// The file of what a test printed; paths are the same in all of them.
    fn printed(&self, test: &str) -> PathBuf {
        let file = self.folder.file(&format!("results/{test}.out"));
        // Not all that is printed is text.
        let bytes = fs::read(&file).unwrap_or_else(|error| panic!("{test} printed nothing: {error}"));
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        fs::write(&file, text.replace(self.folder.path().to_str().unwrap(), "{folder}")).unwrap();
        file
    }
}

pub(crate) fn check() {
    let files = below_target("suites/postgresql");
    let schedule = schedule(&fs::read_to_string(files.join("regress/parallel_schedule")).unwrap());
    let count = schedule.iter().map(Vec::len).sum();
    let [straight, through] = both(|way| run(way, &files, &schedule));
    for run in [&straight, &through] {
        assert_eq!(run.as_expected.len(), count, "not all tests ran: {:?}", run.as_expected);
    }
    let known = known::of("regress");
    let mut told = String::new();
    for test in through.failing() {
        for line in differences(&straight.printed(test), &through.printed(test)) {
            if !known.iter().any(|known| known.allows(test, &line)) {
                told.push_str(&format!("{test} {line}\n"));
            }
        }
    }
    assert!(told.is_empty(), "these lines differ, and are not known to:\n{told}");
    println!(
        "{count} tests; failing straight: {:?}, through the proxy: {:?}",
        straight.failing(),
        through.failing()
    );
}

/// The groups of tests that run at the same time, in order.
fn schedule(all: &str) -> Vec<Vec<String>> {
    let groups = all.lines().filter_map(|line| line.strip_prefix("test: "));
    let groups = groups.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    if whole() {
        return groups.collect();
    }
    let short = fs::read_to_string(sources("regress.short")).unwrap();
    let short: Vec<&str> = short.lines().collect();
    let chosen = |mut group: Vec<String>| {
        group.retain(|test| short.contains(&test.as_str()));
        (!group.is_empty()).then_some(group)
    };
    let chosen: Vec<Vec<String>> = groups.filter_map(chosen).collect();
    let found: Vec<&String> = chosen.iter().flatten().collect();
    assert_eq!(
        found.len(),
        short.len(),
        "not all of regress.short are there: {found:?}"
    );
    chosen
}

fn run(way: Way, files: &Path, schedule: &[Vec<String>]) -> Run {
    let server = Server::start(way);
    let folder = Folder::new("regress", None).unwrap();
    if let Some(account) = Account::is_root().then(|| Account::first_of(ACCOUNTS)).flatten() {
        folder.give_to(account).unwrap();
    }
    let run = |program: Program| program.run(ENDS_WITHIN);
    let words = ["--recursive".into(), files.join("regress"), folder.file("input")];
    run(Program::new(on_path("cp"), words)).unwrap();
    // The server, too, writes there.
    let results = folder.file("results");
    fs::create_dir(&results).unwrap();
    fs::set_permissions(&results, Permissions::from_mode(0o777)).unwrap();
    let lines: Vec<String> = schedule
        .iter()
        .map(|group| format!("test: {}\n", group.join(" ")))
        .collect();
    fs::write(folder.file("schedule"), lines.concat()).unwrap();

    let settings = SETTINGS.map(|setting| format!("ALTER DATABASE {DATABASE} SET {setting}\n"));
    let make = format!("CREATE DATABASE {DATABASE} TEMPLATE template0\n");
    server.execute("postgres", &(make + &settings.concat()));

    let option = |name: &str, value: &Path| OsString::from(format!("--{name}={}", value.display()));
    let mut words = vec![
        "--use-existing".into(),
        format!("--dbname={DATABASE}").into(),
        "--user=postgres".into(),
        format!("--host={}", server.address().ip()).into(),
        format!("--port={}", server.address().port()).into(),
    ];
    words.extend([
        option("bindir", &files.join("bin")),
        option("inputdir", &folder.file("input")),
        option("dlpath", &folder.file("input")),
        option("outputdir", folder.path()),
        option("schedule", &folder.file("schedule")),
    ]);
    let output = match run(Program::new(files.join("pg_regress"), words)) {
        // It fails with any of its tests.
        Ok(output) | Err(Error::Failed { output, .. }) => output,
        Err(error) => panic!("{error}"),
    };
    Run {
        as_expected: output.lines().filter_map(outcome).collect(),
        folder,
    }
}

/// A test and whether it printed what is expected, of a line such as `test boolean      ... ok    12 ms`.
fn outcome(line: &str) -> Option<(String, bool)> {
    let (test, how) = line.split_once(" ... ")?;
    let test = test.trim_start_matches("test ").trim();
    Some((test.to_owned(), how.trim_start().starts_with("ok")))
}

/// The lines in which two files differ, as `diff` shows them.
fn differences(straight: &Path, through: &Path) -> Vec<String> {
    let words = ["--text".as_ref(), straight.as_os_str(), through.as_os_str()];
    match Program::new(on_path("diff"), words).run(ENDS_WITHIN) {
        Ok(_) => Vec::new(),
        Err(Error::Failed { output, .. }) => {
            let is_place = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_digit()) || *line == "---";
            output
                .lines()
                .filter(|line| !is_place(line))
                .map(str::to_owned)
                .collect()
        }
        Err(error) => panic!("{error}"),
    }
}
