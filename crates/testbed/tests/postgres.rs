//! What a user of the testbed sees of PostgreSQL: it starts, answers, survives a crash, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{net::TcpStream, path::Path, process::Command};

use testbed::Postgres;

fn query(postgres: &Postgres, sql: &str) -> String {
    let told = Command::new("psql")
        .args(["-X", "-A", "-t", "-d", &postgres.url(), "-c", sql])
        .output()
        .unwrap();
    assert!(
        told.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&told.stderr),
        postgres.output()
    );
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_server_starts_with_default_durability_survives_a_crash_and_leaves_nothing() {
    let mut postgres = Postgres::builder().setting("max_connections", "23").start().unwrap();
    assert!(postgres.address().ip().is_loopback());
    assert_eq!(query(&postgres, "SHOW max_connections"), "23");
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(query(&postgres, &format!("SHOW {setting}")), "on", "{setting}");
    }
    query(&postgres, "CREATE TABLE kept (id int)");
    query(&postgres, "INSERT INTO kept VALUES (42)");

    postgres.kill9().unwrap();
    assert!(TcpStream::connect(postgres.address()).is_err());
    postgres.restart().unwrap();
    assert_eq!(query(&postgres, "SELECT id FROM kept"), "42");

    let (folder, process, address) = (
        postgres.folder().to_path_buf(),
        postgres.process_id(),
        postgres.address(),
    );
    drop(postgres);
    assert!(!folder.exists());
    assert!(!Path::new(&format!("/proc/{process}")).exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_server_that_cannot_start_shows_its_own_words() {
    let error = Postgres::builder().setting("no_such_setting", "1").start().unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}
