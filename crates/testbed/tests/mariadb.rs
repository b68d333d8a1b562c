//! What a user of the testbed sees of MariaDB: it starts, lets root in, survives a crash, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{net::TcpStream, path::Path, process::Command};

use testbed::MariaDb;

fn query(mariadb: &MariaDb, sql: &str) -> String {
    let port = mariadb.address().port().to_string();
    let told = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--user=root",
            "--batch",
            "--skip-column-names",
        ])
        .args(["--port", &port, "--execute", sql, "test"])
        .output()
        .unwrap();
    assert!(
        told.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&told.stderr),
        mariadb.output()
    );
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_server_starts_with_default_durability_survives_a_crash_and_leaves_nothing() {
    let mut mariadb = MariaDb::builder().setting("max_connections", "23").start().unwrap();
    assert_eq!(mariadb.url(), format!("mysql://root@{}/test", mariadb.address()));
    assert!(mariadb.address().ip().is_loopback());
    assert_eq!(query(&mariadb, "SELECT @@max_connections"), "23");
    for (setting, default) in [
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", "1"),
        ("sync_binlog", "0"),
        ("log_bin", "0"),
        ("default_storage_engine", "InnoDB"),
    ] {
        assert_eq!(query(&mariadb, &format!("SELECT @@{setting}")), default, "{setting}");
    }
    query(&mariadb, "CREATE TABLE kept (id INT)");
    query(&mariadb, "INSERT INTO kept VALUES (42)");

    mariadb.kill9().unwrap();
    assert!(TcpStream::connect(mariadb.address()).is_err());
    mariadb.restart().unwrap();
    assert_eq!(query(&mariadb, "SELECT id FROM kept"), "42");
    // Also one that was not killed first.
    mariadb.restart().unwrap();
    assert_eq!(query(&mariadb, "SELECT id FROM kept"), "42");

    let (folder, process, address) = (mariadb.folder().to_path_buf(), mariadb.process_id(), mariadb.address());
    drop(mariadb);
    assert!(!folder.exists());
    assert!(!Path::new(&format!("/proc/{process}")).exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn one_that_survives_kills_leaves_no_write_to_the_kernel() {
    let ask = |mariadb: &MariaDb| query(mariadb, "SELECT @@innodb_use_native_aio");
    assert_eq!(ask(&MariaDb::builder().survives_kills().start().unwrap()), "0");
}

#[test]
fn a_server_keeps_its_files_where_it_is_told_to() {
    let parent = tempfile::tempdir().unwrap();
    // The account it runs as has to get in.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(parent.path(), permissions).unwrap();
    let mariadb = MariaDb::builder().folder_in(parent.path()).start().unwrap();
    assert!(mariadb.folder().starts_with(parent.path()));
    let data = query(&mariadb, "SELECT @@datadir");
    assert!(Path::new(&data).starts_with(mariadb.folder()), "{data}");
}

#[test]
fn a_server_that_cannot_start_shows_its_own_words() {
    let error = MariaDb::builder().setting("no_such_setting", "1").start().unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn servers_that_start_at_the_same_moment_do_not_disturb_one_another() {
    // Each removes what it takes for left-overs of its own from its folder for temporary files.
    let started: Vec<_> = (0..4).map(|_| std::thread::spawn(MariaDb::start)).collect();
    for server in started {
        assert_eq!(query(&server.join().unwrap().unwrap(), "SELECT 1"), "1");
    }
}
