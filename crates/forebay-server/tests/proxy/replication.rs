//! Sessions for the database's log, by the programs that ask for it.

use std::path::Path;
use std::process::{Command, Output};

use testbed::{Folder, Postgres};

use crate::login::log_in;
use crate::{PASSWORD, proxy, straight};

/// Of its own: the shared one writes no log for subscribers.
fn logging() -> Postgres {
    Postgres::builder()
        .setting("wal_level", "logical")
        .host_based_authentication(
            "local all all trust
host all,replication replicator 127.0.0.1/32 scram-sha-256
host all,replication all 127.0.0.1/32 trust
",
        )
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(program: &str, port: u16, arguments: &[&str]) -> Output {
    let programs = Path::new("/usr/lib/postgresql/15/bin");
    let at = programs.join(program);
    let program = if at.exists() { at } else { program.into() };
    Command::new(program)
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .env("PGPASSWORD", PASSWORD)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_base_backup_and_what_subscribers_read_come_through() {
    let server = logging();
    let mut itself = straight(&server);
    let password = PASSWORD.replace('\'', "''");
    itself
        .query(&format!(
            "CREATE ROLE replicator REPLICATION LOGIN PASSWORD '{password}'"
        ))
        .expect("a role");
    itself
        .query("CREATE TABLE stock (id int PRIMARY KEY, name text)")
        .expect("a table");
    itself
        .query("SELECT pg_create_logical_replication_slot('subscriber', 'test_decoding')")
        .expect("a slot");
    itself
        .query("INSERT INTO stock VALUES (1, 'nut'), (2, 'bolt')")
        .expect("rows");
    let end = itself.ask("SELECT pg_current_wal_lsn()");
    let proxy = proxy(&server, &[]);
    let port = proxy.address().port();
    for user in ["postgres", "replicator"] {
        let folder = Folder::new("backup", None).unwrap();
        let backup = folder.file(user);
        let done = run(
            "pg_basebackup",
            port,
            &["-U", user, "-X", "stream", "-D", backup.to_str().unwrap()],
        );
        assert!(done.status.success(), "{user}: {}", text(&done));
        // The manifest has a check sum of each file.
        let verified = Command::new("/usr/lib/postgresql/15/bin/pg_verifybackup")
            .arg(&backup)
            .output()
            .unwrap();
        assert!(verified.status.success(), "{user}: {}", text(&verified));
    }
    let arguments = [
        "-U",
        "replicator",
        "-d",
        "postgres",
        "--slot",
        "subscriber",
        "--start",
        "-f",
        "-",
        "--endpos",
        &end,
    ];
    let read = run("pg_recvlogical", port, &[&arguments[..], &["--no-loop"]].concat());
    assert!(read.status.success(), "{}", text(&read));
    assert!(
        text(&read).contains("INSERT: id[integer]:2 name[text]:'bolt'"),
        "{}",
        text(&read)
    );
    // They were no connections of any pool.
    assert_eq!(proxy.metric("forebay_server_connections").unwrap(), Some(0.0));
}

#[test]
fn who_may_not_replicate_straight_may_not_through_the_proxy() {
    let server = logging();
    straight(&server).query("CREATE ROLE plain LOGIN").expect("a role");
    let proxy = proxy(&server, &[]);
    for (user, replication) in [("plain", "true"), ("plain", "database"), ("plain", "maybe")] {
        let told = |address| {
            let parameters = [("user", user), ("database", "postgres"), ("replication", replication)];
            crate::client::Client::connect_with(address, &parameters)
                .map(drop)
                .map_err(|error| (error.sqlstate().to_owned(), error.message().to_owned()))
        };
        let straight = told(server.address());
        assert_eq!(told(proxy.address()), straight, "{user} {replication}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_beside_it_are_as_before() {
    let server = logging();
    let proxy = proxy(&server, &[]);
    let parameters = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("replication", "database"),
    ];
    let mut replicating = crate::client::Client::connect_with(proxy.address(), &parameters).unwrap();
    let identified = replicating.query("IDENTIFY_SYSTEM").expect("a command of replication");
    assert_eq!(identified.rows()[0].len(), 4);
    assert_eq!(replicating.ask("SELECT 1"), "1");
    // A cancel reaches it.
    replicating.send(&crate::client::query("SELECT pg_sleep(60)"));
    assert_eq!(replicating.cancel_until_answered().sqlstate(), "57014");
    assert_eq!(
        log_in(proxy.address(), "postgres", "postgres", None).await.as_deref(),
        Ok("postgres postgres")
    );
    let mut proxy = proxy;
    let ended = proxy.terminate().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}
