//! Disks that are full, files that can only be read.

use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use testbed::{Account, Folder, Forebay};

use crate::PROGRAM;
use crate::client::{Client, query};

/// A file system of a few megabytes in memory; unmounted when dropped.
struct SmallDisk {
    folder: Folder,
}

impl SmallDisk {
    /// Fails where this account may not mount: a test that checks nothing must not pass.
    fn mount(megabytes: u32) -> Self {
        let folder = Folder::new("small-disk", None).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "forebay-test"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        assert!(
            mounted,
            "a small disk cannot be mounted: run this test as root, or in `unshare --user --map-root-user --mount`"
        );
        Self { folder }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

#[test]
fn a_full_disk_fails_writes_and_nothing_else() {
    let disk = SmallDisk::mount(6);
    let ballast = disk.folder.file("ballast");
    std::fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let database = disk.folder.file("x.db");
    let mut server = Forebay::builder(PROGRAM).database(&database).start().unwrap();
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(server.address())).collect();
    clients[0].run("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)");
    let mut acknowledged = Vec::new();
    let mut failed = 0;
    // All at once, so that they share commits when the disk is full.
    for round in 0..400 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&query(&format!(
                "INSERT INTO t VALUES ({}, repeat('x', 4000))",
                round * 8 + number
            )));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            match client.answer().sqlstate().as_str() {
                "00000" => acknowledged.push((round * 8 + number).to_string()),
                "53100" => failed += 1,
                other => panic!("{other}"),
            }
        }
        if failed > 40 {
            break;
        }
    }
    assert!(failed > 40, "the disk was never full");
    let there = |client: &mut Client| -> Vec<String> {
        client
            .run("SELECT a FROM t ORDER BY a")
            .rows()
            .into_iter()
            .map(|row| row[0].clone().unwrap())
            .collect()
    };
    assert_eq!(
        there(&mut clients[0]),
        acknowledged,
        "reads go on, and see what was acknowledged and nothing else"
    );
    let health = server.http_get("/healthz").unwrap();
    assert_eq!(health.status, 503, "no write succeeds: {}", health.body);
    assert!(health.body.contains("full"), "{}", health.body);
    // In a transaction: the block fails, and can be left.
    let answer = clients[1].query("BEGIN; INSERT INTO t VALUES (200000, repeat('x', 20000000))");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("53100", 'E'));
    assert_eq!(clients[1].run("COMMIT").tags(), ["ROLLBACK"]);
    std::fs::remove_file(&ballast).unwrap();
    clients[2].run("INSERT INTO t VALUES (1000000, repeat('x', 4000))");
    acknowledged.push("1000000".to_owned());
    assert_eq!(
        server.http_get("/healthz").unwrap().status,
        200,
        "well as soon as one does"
    );
    server.restart().unwrap();
    let mut client = Client::connect(server.address());
    assert_eq!(there(&mut client), acknowledged);
    assert_eq!(client.ask("PRAGMA integrity_check"), "ok");
    drop(server);
}

/// A program that runs this one as somebody who is not root, for root may write everything.
fn as_nobody(folder: &Folder) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    if !Account::is_root() {
        return PROGRAM.into();
    }
    let wrapper = folder.file("as-nobody");
    let script = format!("#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups {PROGRAM} \"$@\"\n");
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    wrapper
}

fn permit(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_may_not_be_written_is_read() {
    let folder = Folder::new("read-only", None).unwrap();
    let program = as_nobody(&folder);
    let database = folder.file("x.db");
    Connection::open(&database)
        .unwrap()
        .execute_batch("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (7)")
        .unwrap();
    permit(&database, 0o444);
    permit(folder.path(), 0o555);
    let server = Forebay::builder(program).database(&database).start();
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        server.output().contains("read-only"),
        "the banner says so: {}",
        server.output()
    );
    let mut client = Client::connect(server.address());
    assert_eq!(client.ask("SELECT a FROM t"), "7");
    for sql in [
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE u (a INTEGER)",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1); SELECT 1",
    ] {
        let answer = client.query(sql);
        assert_eq!(
            (answer.sqlstate().as_str(), answer.status),
            ("25006", 'I'),
            "{sql}: {:?}",
            answer.error()
        );
    }
    let answer = client.query("BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("25006", 'E'));
    client.run("ROLLBACK");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "1");
    drop(server);
    permit(folder.path(), 0o755);
}
