//! pgx's own tests, of the version that the client tests pin.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use testbed::{Folder, Program};

use crate::{
    installed::{below_target, on_path},
    outcomes::{Outcome, Outcomes, compare, printed},
    ways::{Server, Way, both, whole},
};

/// Those that ask a database, by their folders.
const PACKAGES: [(&str, &str); 6] = [
    ("pgx", "."),
    ("pgconn", "pgconn"),
    ("pgxpool", "pgxpool"),
    ("stdlib", "stdlib"),
    ("pgtype", "pgtype"),
    ("zeronull", "pgtype/zeronull"),
];
/// They end a server's process by its number, which is none of the server's through the proxy, and wait two minutes for what comes of it.
const WAIT_FOR_A_PROCESS: [&str; 2] = ["TestConnCheckConn", "TestConnCopyFromConnectionTerminated"];
/// They take seconds each; the usual form leaves them out.
const SLOW: [&str; 8] = [
    "TestBindBiggerThanMaxMessageBodyLen",
    "TestQueryBiggerThanMaxMessageBodyLen",
    "TestListenNotifyWhileBusyIsSafe",
    "TestConnExecBatchWriteError",
    "TestFatalRxError",
    "TestPoolAfterRelease",
    "TestPoolAcquirePingTimeout",
    "TestPoolAcquireUnlimitedLifetimeDoesNotExpire",
];
/// Of the usual form.
const TESTS_MIN: usize = 700;
/// Of one package, many times what it takes.
const ENDS_WITHIN: Duration = Duration::from_secs(600);
/// As pgx's own tests want their users, who are named by how they are asked; but for the one who says the password in clear, of which
/// the proxy would have nothing to connect with again.
const LINES: &str = "\
local all all trust
host all pgx_md5 127.0.0.1/32 md5
host all pgx_scram 127.0.0.1/32 scram-sha-256
hostssl all pgx_ssl 127.0.0.1/32 scram-sha-256";

pub(crate) fn check() {
    let [straight, through] = both(run);
    compare("pgx", &straight, &through, TESTS_MIN);
}

fn run(way: Way) -> Outcomes {
    let suite = below_target("suites/pgx");
    let server = Server::start_with_tls_and_socket(way, LINES);
    server.execute("postgres", "CREATE DATABASE pgx_test");
    let set_up = suite.join("source/testsetup/postgresql_setup.sql");
    let words = [
        "-qX".into(),
        "-d".into(),
        server.straight_url("pgx_test").into(),
        "-f".into(),
        set_up.into(),
    ];
    let words: [OsString; 5] = words;
    Program::new(on_path("psql"), words).run(ENDS_WITHIN).unwrap();
    let folder = Folder::new("pgx", None).unwrap();
    let mut outcomes = BTreeMap::new();
    for (package, place) in PACKAGES {
        let output = run_package(&suite, package, place, &server, &folder);
        outcomes.extend(
            output
                .lines()
                .filter_map(outcome)
                .map(|(test, outcome)| (format!("{package} {test}"), outcome)),
        );
    }
    outcomes
}

fn run_package(suite: &Path, package: &str, place: &str, server: &Server, folder: &Folder) -> String {
    let mut skipped = WAIT_FOR_A_PROCESS.to_vec();
    if !whole() {
        skipped.extend(SLOW);
    }
    let mut program = Program::new(
        suite.join(format!("programs/{package}.test")),
        ["-test.v".to_owned(), format!("-test.skip=^({})$", skipped.join("|"))],
    );
    program.folder = Some(suite.join("source").join(place));
    let (host, port) = (server.address().ip(), server.address().port());
    let login = |user: &str| format!("host={host} port={port} user={user} password=secret dbname=pgx_test");
    let (certificate, sockets) = server.certificate_and_sockets();
    let (certificate, sockets) = (certificate.display(), sockets.display());
    let by_tls = |user: &str| {
        let login = format!("host=localhost port={port} user={user} password=secret dbname=pgx_test");
        format!("{login} sslmode=verify-full sslrootcert={certificate}")
    };
    for (variable, login) in [
        ("PGX_TEST_DATABASE", login("pgx_md5")),
        ("PGX_TEST_TCP_CONN_STRING", login("pgx_md5")),
        ("PGX_TEST_MD5_PASSWORD_CONN_STRING", login("pgx_md5")),
        (
            "PGX_TEST_SCRAM_PASSWORD_CONN_STRING",
            login("pgx_scram") + " channel_binding=disable",
        ),
        (
            "PGX_TEST_UNIX_SOCKET_CONN_STRING",
            format!("host={sockets} port={port} user=postgres dbname=pgx_test"),
        ),
        (
            "PGX_TEST_TLS_CONN_STRING",
            by_tls("pgx_ssl") + " channel_binding=disable",
        ),
        (
            "PGX_TEST_SCRAM_PLUS_CONN_STRING",
            by_tls("pgx_ssl") + " channel_binding=require",
        ),
    ] {
        program.environment.push((variable.into(), login.into()));
    }
    printed(program, &folder.file(package), ENDS_WITHIN)
}

/// A test and what became of it, of a line such as `--- PASS: TestConnect (0.01s)`; parts of tests are indented.
fn outcome(line: &str) -> Option<(&str, Outcome)> {
    let (word, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let outcome = match word {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    Some((rest.split(' ').next()?, outcome))
}
