//! What the proxy is told on its command line.

use std::process::Command;

use crate::{PROGRAM, postgres, proxy};

#[test]
fn options_of_the_other_kind_are_refused_by_name() {
    let refused = |arguments: &[&str]| {
        let ended = Command::new(PROGRAM).arg("serve").args(arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(ended.stderr).unwrap()
    };
    let url = "postgresql://127.0.0.1/app";
    for (arguments, named) in [
        (
            &["--upstream", url, "--database", "x.db"][..],
            "database: is of the embedded database",
        ),
        (
            &["--upstream", url, "--synchronous", "off"],
            "synchronous: is of the embedded database",
        ),
        (
            &["--max-server-connections", "3"],
            "max_server_connections: means something only with upstream",
        ),
        (
            &["--trust-loopback"],
            "trust_loopback: means something only with upstream",
        ),
        (
            &["--upstream", url, "--max-server-connections", "0"],
            "max_server_connections: 0 is not from 1",
        ),
        (
            &["--upstream", url, "--server-wait-timeout", "0"],
            "server_wait_timeout: must not be 0",
        ),
        (&["--upstream", "postgresql://127.0.0.1:x/app"], "upstream: "),
        (&["--upstream", "mysql://127.0.0.1/app"], "upstream: "),
        (
            &["--upstream", url, "--listen", "0.0.0.0:0"],
            "listen: clients beyond this machine",
        ),
        (
            &["--upstream", url, "--http", "0.0.0.0:0"],
            "http = 0.0.0.0:0 can be reached from other machines",
        ),
    ] {
        let told = refused(arguments);
        assert!(told.starts_with(&format!("forebay: {named}")), "{arguments:?}: {told}");
    }
}

#[test]
fn a_password_in_the_url_is_in_no_message() {
    let ended = Command::new(PROGRAM)
        .args(["serve", "--upstream", "postgresql://anna:hush@127.0.0.1:x/app"])
        .output()
        .unwrap();
    assert!(!String::from_utf8(ended.stderr).unwrap().contains("hush"));
}

#[test]
fn the_banner_says_how_to_begin() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let (banner, address) = (proxy.output(), proxy.address());
    assert!(
        banner.contains(&format!("proxy of PostgreSQL at {}", server.address())),
        "{banner}"
    );
    assert!(
        banner.contains(&format!("psql -h 127.0.0.1 -p {} -U NAME postgres", address.port())),
        "{banner}"
    );
    assert_eq!(proxy.http_get("/healthz").unwrap().status, 200);
}
