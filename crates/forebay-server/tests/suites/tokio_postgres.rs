//! tokio-postgres's own tests, of the version that the project's are built with.

use std::{collections::BTreeMap, time::Duration};

use testbed::{Folder, Program};

use crate::{
    installed::below_target,
    outcomes::{Outcome, Outcomes, compare, printed},
    ways::{Server, Way, both},
};

/// They look for a host that is not there, or ask the machine's own PostgreSQL by its socket.
const ELSEWHERE: [&str; 3] = [
    "runtime::unix_socket",
    "runtime::multiple_hosts_one_port",
    "runtime::multiple_hosts_multiple_ports",
];
const TESTS_MIN: usize = 100;
const ENDS_WITHIN: Duration = Duration::from_secs(300);
/// As its tests want its users.
const LINES: &str = "host all pass_user 127.0.0.1/32 scram-sha-256
host all md5_user 127.0.0.1/32 md5
host all scram_user 127.0.0.1/32 scram-sha-256
host all ssl_user 127.0.0.1/32 reject";
const SET_UP: &str = "SET password_encryption = 'scram-sha-256'
CREATE ROLE pass_user PASSWORD 'password' LOGIN
CREATE ROLE scram_user PASSWORD 'password' LOGIN
CREATE ROLE ssl_user LOGIN
SET password_encryption = 'md5'
CREATE ROLE md5_user PASSWORD 'password' LOGIN
CREATE EXTENSION hstore
CREATE EXTENSION citext
CREATE EXTENSION ltree";

pub(crate) fn check() {
    let [straight, through] = both(run);
    compare("tokio_postgres", &straight, &through, TESTS_MIN);
}

fn run(way: Way) -> Outcomes {
    let server = Server::start_with(way, LINES);
    server.execute("postgres", SET_UP);
    let folder = Folder::new("tokio-postgres", None).unwrap();
    let skipped = ELSEWHERE.iter().flat_map(|test| ["--skip", test]);
    let mut program = Program::new(below_target("suites/tokio-postgres/tests"), skipped);
    let port = server.address().port().to_string();
    program.environment.push(("TEST_PORT".into(), port.into()));
    let output = printed(program, &folder.file("output"), ENDS_WITHIN);
    output.lines().filter_map(outcome).collect::<BTreeMap<_, _>>()
}

/// A test and what became of it, of a line such as `test connect ... ok`.
fn outcome(line: &str) -> Option<(String, Outcome)> {
    let (test, how) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let outcome = match how {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        _ => Outcome::Skipped,
    };
    Some((test.to_owned(), outcome))
}
