//! `cargo xtask test`: everything that must hold before a change lands, in the order in which it tells most soonest.
//!
//! Builds are shared: all of the tests, the server, the lab and the client tests come from one build of the whole workspace,
//! so that features, and with them dependencies, are compiled once.

use crate::{
    api, check, circles,
    command::{Command, cargo},
    dependencies,
    frameworks::{LANGUAGES, Language},
    guide,
    install::{self, Client},
    interface,
    report::Outcome,
    steps::{Steps, outcome_of},
    suites::{SUITES, Suite},
    toolchain,
    workspace::{self, LOOM_CFG},
};

/// The rooms that have models.
const MODELLED: &[&str] = &["forebay-batch", "forebay-cache", "forebay-pages"];
/// What is tried on more than one version of PostgreSQL.
const SPEAK_TO_POSTGRESQL: &[&str] = &["forebay-pg-link", "forebay-postgres"];
/// The module of the models.
const LOOM_FILTER: &str = "model::";
/// All tests that need a client installed are in this module of `crates/forebay-server/tests/clients`.
const CLIENT_MODULE: &str = "real_client";
/// All tests that need a framework installed are in this module of `crates/forebay-server/tests/frameworks`.
const FRAMEWORK_MODULE: &str = "real_framework";
/// What frameworks' programs run against, as those tests know it.
const FOREBAY: &str = "forebay";
const THE_PROXY: &str = "proxy";
/// All tests that need a suite of somebody else's are in this module of `crates/forebay-server/tests/suites`.
const SUITE_MODULE: &str = "foreign_suite";
/// All tests that need a browser installed are in this module of `lab/tests/report`.
const BROWSER_MODULE: &str = "real_browser";
/// How many statements the long run compares with PostgreSQL's answers.
const LONG_CASES: &str = "1000000";
/// How long the proxy's clients live in each of the two tests of chaos.
const CHAOS_SECONDS: &str = "300";
/// How many clients make a history of what is shared, and how long.
const HISTORIES: [(&str, &str); 2] = [
    ("FOREBAY_HISTORIES_CLIENTS", "100"),
    ("FOREBAY_HISTORIES_SECONDS", "60"),
];
/// How long it is judged how old answers are that the proxy has remembered, and how many of them are compared with what the database would have sent, by
/// row, by who asks, and by what views read.
const REMEMBERED: [(&str, &str); 4] = [
    ("FOREBAY_FRESHNESS_SECONDS", "600"),
    ("FOREBAY_BY_ROW_ROUNDS", "1500"),
    ("FOREBAY_JUDGED_ROUNDS", "15000"),
    ("FOREBAY_FOLLOWED_ROUNDS", "500"),
];
/// How long caches of several processes are killed, stopped and cut off.
const FLEET_SECONDS: &str = "180";
/// What the lab runs at its usual length in a long run.
const SOAKS: &[&str] = &["cache-soak", "writes-soak"];

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that takes no minutes.
    Quick,
    /// Everything that must hold before a change lands.
    Usual,
    /// Behind that, what takes long by its nature.
    Long,
}

/// Runs everything to that extent and returns whether the run passed.
pub(crate) fn run(extent: Extent) -> bool {
    let mut steps = Steps::default();
    check::format_and_lints(&mut steps);
    steps.step("circles of files", circles::step);
    steps.step("names of other crates", interface::step);
    steps.step("sources of dependencies", dependencies::sources);
    steps.step("licences of dependencies", dependencies::licences);
    steps.step("unused dependencies", dependencies::unused);
    steps.command("build", cargo(["build", "--workspace", "--all-targets", "--quiet"]));
    // Tests that need a server fail without it: what could be installed is, before them.
    steps.step("set-up of servers", || {
        // Each is tried, so that one run tells of all that are missing.
        let missing: Vec<String> = [
            install::servers(),
            install::mariadb(),
            install::redis(),
            install::load_generators(),
        ]
        .into_iter()
        .filter_map(Result::err)
        .collect();
        if missing.is_empty() {
            Outcome::Passed
        } else {
            Outcome::DidNotRun(missing.join("; "))
        }
    });
    let tests = [
        "test",
        "--workspace",
        "--all-targets",
        "--no-fail-fast",
        "--quiet",
        "--",
        "--skip",
        CLIENT_MODULE,
        "--skip",
        FRAMEWORK_MODULE,
        "--skip",
        SUITE_MODULE,
        "--skip",
        BROWSER_MODULE,
    ];
    steps.command("tests", cargo(tests));
    steps.command(
        "documentation tests",
        cargo(["test", "--workspace", "--doc", "--quiet"]),
    );
    check::documentation(&mut steps);
    steps.step("interface", api::step);
    steps.step("guide", guide::step);
    if extent != Extent::Quick {
        steps.step("promised compiler", promised_compiler);
        steps.step("models", models);
        steps.step("PostgreSQL 18", postgresql_18);
        for client in install::CLIENTS {
            steps.step(&format!("client {}", client.name), || real_client(client));
        }
        for language in LANGUAGES {
            steps.step(&format!("frameworks: {}", language.name), || {
                real_frameworks(language, FOREBAY)
            });
        }
        for language in LANGUAGES {
            steps.step(&format!("frameworks through the proxy: {}", language.name), || {
                real_frameworks(language, THE_PROXY)
            });
        }
        for suite in SUITES {
            steps.step(&format!("suite {}", suite.name), || foreign_suite(suite, extent));
        }
        steps.step("report in a browser", report_in_a_browser);
    }
    if extent == Extent::Long {
        steps.step("a million statements", a_million_statements);
        steps.step("ten minutes of chaos", ten_minutes_of_chaos);
        steps.step("a minute of histories", a_minute_of_histories);
        steps.step("a fleet of caches", a_fleet_of_caches);
        steps.step("ten minutes of remembered answers", ten_minutes_of_remembered_answers);
        for soak in SOAKS {
            steps.command(
                soak,
                cargo(["run", "--release", "--quiet", "--package", "lab", "--", soak]),
            );
        }
    }
    steps.run()
}

/// The workspace builds with the compiler that `rust-version` promises.
fn promised_compiler() -> Outcome {
    let Some(promised) = workspace::rust_version() else {
        return Outcome::Failed("Cargo.toml has no rust-version".into());
    };
    let toolchain = match toolchain::of(&promised) {
        Some(Some(toolchain)) => toolchain,
        Some(None) => {
            println!("{promised} is what all of this was built with");
            return Outcome::Passed;
        }
        None => {
            return Outcome::OptionalDidNotRun(format!(
                "this machine has other compilers; to have it: rustup toolchain install {promised}"
            ));
        }
    };
    let check = [
        "run",
        &toolchain,
        "cargo",
        "check",
        "--workspace",
        "--all-targets",
        "--quiet",
    ];
    outcome_of(
        &Command::new("rustup")
            .arguments(check)
            .set("CARGO_TARGET_DIR", workspace::target().join("promised")),
    )
}

/// The models: every order in which their threads can meet. Optimised, or they take an hour; built apart,
/// because the `cfg` changes every crate.
fn models() -> Outcome {
    let failed = MODELLED.iter().find_map(|room| {
        let models = cargo(["test", "--package", room, "--lib", "--release", "--quiet"])
            .arguments(["--target-dir".into(), workspace::target().join("loom")])
            .set("RUSTFLAGS", format!("--cfg {LOOM_CFG}"));
        match run_tests(&models, &[LOOM_FILTER]) {
            Outcome::Passed => None,
            failed => Some(failed),
        }
    });
    failed.unwrap_or(Outcome::Passed)
}

/// What speaks to PostgreSQL, on a newer one than the system's packages bring.
fn postgresql_18() -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Outcome::OptionalDidNotRun("there is a package of it for Linux on x86-64 only".into());
    }
    let programs = match install::postgresql_18() {
        Ok(programs) => programs,
        Err(why) => return Outcome::DidNotRun(why),
    };
    let rooms = SPEAK_TO_POSTGRESQL.iter().flat_map(|room| ["--package", room]);
    let test = cargo(["test", "--all-targets", "--all-features", "--no-fail-fast", "--quiet"]).arguments(rooms);
    outcome_of(&test.set("FOREBAY_POSTGRES_PROGRAMS", programs))
}

/// Runs the tests that the filter picks; that it picks none is a failure, which cargo would pass over.
fn run_tests(test: &Command, filter: &[&str]) -> Outcome {
    let filtered = test.clone().arguments(["--"]).arguments(filter.iter().copied());
    match outcome_of(&filtered) {
        Outcome::Passed => {}
        failed => return failed,
    }
    let listed = filtered.arguments(["--list"]).told().unwrap_or_default();
    if listed.lines().any(|line| line.ends_with(": test")) {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("no test is called {}", filter.join(" ")))
    }
}

/// A real client's own program against the server.
fn real_client(client: &Client) -> Outcome {
    let environment = match client.prepare() {
        Ok(environment) => environment,
        Err(why) => return Outcome::DidNotRun(why),
    };
    let module = format!("{CLIENT_MODULE}::{}", client.name);
    let test = cargo(["test", "--workspace", "--test", "clients", "--quiet"]);
    let test = environment
        .iter()
        .fold(test, |test, (name, value)| test.set(name, value));
    run_tests(&test, &["--exact", &module])
}

/// The programs of one language's frameworks against that server, as many at a time as there are processors.
fn real_frameworks(language: &Language, server: &str) -> Outcome {
    if let Err(why) = language.prepare() {
        return Outcome::DidNotRun(why);
    }
    let module = format!("{FRAMEWORK_MODULE}::{}::", language.name);
    let test = cargo(["test", "--workspace", "--test", "frameworks", "--quiet"]);
    run_tests(&test.set("FOREBAY_CLIENTS_AGAINST", server), &[&module])
}

/// A suite of somebody else's, straight and through the proxy; in a long run all of it.
fn foreign_suite(suite: &Suite, extent: Extent) -> Outcome {
    if let Err(why) = suite.prepare() {
        return Outcome::DidNotRun(why);
    }
    let module = format!("{SUITE_MODULE}::{}", suite.name);
    let test = cargo(["test", "--workspace", "--test", "suites", "--quiet"]);
    let test = match extent {
        Extent::Long => test.set("FOREBAY_SUITES_WHOLE", "1"),
        Extent::Quick | Extent::Usual => test,
    };
    run_tests(&test, &["--exact", &module, "--nocapture"])
}

/// Clients of the proxy against their model, of a seed that they print: in calm, and behind that in a storm.
fn ten_minutes_of_chaos() -> Outcome {
    let test = cargo(["test", "--release", "--package", "forebay-server", "--test", "chaos"]);
    run_tests(
        &test.set("FOREBAY_CHAOS_SECONDS", CHAOS_SECONDS),
        &["--nocapture", "--test-threads=1"],
    )
}

/// What many clients change and read at once, in company and straight, of a seed that they print.
fn a_minute_of_histories() -> Outcome {
    let test = cargo(["test", "--release", "--package", "forebay-proxy", "--test", "judge"]);
    let test = HISTORIES.iter().fold(test, |test, (name, value)| test.set(name, value));
    run_tests(&test, &["--nocapture", "histories::"])
}

/// The differential test at its full length, of a seed that it prints; optimised, or it takes four times as long.
fn a_million_statements() -> Outcome {
    let test = [
        "test",
        "--release",
        "--package",
        "forebay-server",
        "--test",
        "differential",
    ];
    let test = cargo(test).set("FOREBAY_CASES", LONG_CASES);
    run_tests(&test, &["generated_statements", "--nocapture"])
}

/// Answers that the proxy has remembered, of seeds that are printed: of a database that tells of its changes, while all of it is disturbed; by row; and byte by byte.
fn ten_minutes_of_remembered_answers() -> Outcome {
    let test = cargo(["test", "--release", "--package", "forebay-server", "--test", "proxy"]);
    let test = REMEMBERED
        .iter()
        .fold(test, |test, (name, value)| test.set(name, value));
    run_tests(
        &test,
        &["freshness::", "by_row::", "judged::", "followed::", "--nocapture"],
    )
}

/// Caches of several processes, of a seed that they print: what one has invalidated no other serves after the bound.
fn a_fleet_of_caches() -> Outcome {
    let test = cargo([
        "test",
        "--release",
        "--package",
        "forebay-cache",
        "--test",
        "cache_fleet",
    ]);
    run_tests(
        &test.set("FOREBAY_FLEET_SECONDS", FLEET_SECONDS),
        &["--nocapture", "processes::"],
    )
}

/// The lab's report as its readers see it.
fn report_in_a_browser() -> Outcome {
    if let Err(why) = install::browser() {
        return Outcome::DidNotRun(why);
    }
    let test = cargo(["test", "--workspace", "--test", "report", "--quiet"]);
    run_tests(&test, &[BROWSER_MODULE])
}
