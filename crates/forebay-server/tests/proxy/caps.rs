//! How many connections one server is given, of all users and databases.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use testbed::{Forebay, Postgres};

use crate::client::{Client, Failure, query};
use crate::{proxy, started_with_users, straight};

fn capped(server: &Postgres, cap: &str, arguments: &[&str]) -> Forebay {
    proxy(server, &[&["--max-upstream-connections", cap], arguments].concat())
}

fn client(proxy: &Forebay, user: &str, database: &str) -> Result<Client, Failure> {
    Client::connect_with(proxy.address(), &[("user", user), ("database", database)])
}

const CLIENTS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

#[test]
fn what_is_idle_makes_room_for_other_users_and_databases() {
    let server = started_with_users();
    let mut watching = straight(&server);
    watching.run("CREATE DATABASE other");
    let proxy = capped(&server, "2", &[]);
    let connections = |proxy: &Forebay| proxy.metric("forebay_server_connections").unwrap();
    let mut clients = Vec::new();
    for (user, database) in [
        ("postgres", "postgres"),
        ("trusted", "postgres"),
        ("postgres", "other"),
        ("trusted", "other"),
    ] {
        let mut client = client(&proxy, user, database).unwrap();
        for _ in 0..3 {
            assert_eq!(client.ask("SELECT current_database()"), database);
        }
        clients.push(client);
        assert!(connections(&proxy) <= Some(2.0));
    }
    // Each again, from the first on: none of them has a connection to come back to.
    for client in &mut clients {
        client.run("SELECT 1");
    }
    assert_eq!(connections(&proxy), Some(2.0));
    while watching.ask(CLIENTS) != "2" {}
}

#[test]
fn who_finds_all_in_use_waits_for_the_first_that_is_free_and_not_for_ever() {
    let server = started_with_users();
    let proxy = capped(&server, "1", &["--server-wait-timeout", "200ms"]);
    let mut busy = client(&proxy, "postgres", "postgres").unwrap();
    busy.run("BEGIN");
    let refused = client(&proxy, "trusted", "postgres").unwrap_err();
    assert_eq!(refused.sqlstate(), "53300");
    busy.run("COMMIT");
    let mut other = client(&proxy, "trusted", "postgres").unwrap();
    other.run("BEGIN");
    drop(proxy);
    let proxy = capped(&server, "1", &[]);
    let mut busy = client(&proxy, "postgres", "postgres").unwrap();
    let mut waits = client(&proxy, "trusted", "postgres").unwrap();
    busy.run("BEGIN");
    waits.send(&query("SELECT 'served'"));
    assert!(waits.read_within(std::time::Duration::from_millis(50)).is_none());
    busy.run("COMMIT");
    assert_eq!(waits.answer().value().as_deref(), Some("served"));
}

/// Many of one user at work, who hand one another what there is: another one gets his turn all the same.
#[test]
fn nobody_is_kept_out_by_those_who_are_many() {
    let server = started_with_users();
    let proxy = capped(&server, "2", &[]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = client(&proxy, "postgres", "postgres").unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    client.run("SELECT 1");
                }
            });
        }
        let mut few = client(&proxy, "trusted", "postgres").unwrap();
        for _ in 0..20 {
            few.run("SELECT 1");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(proxy.metric("forebay_server_connections").unwrap() <= Some(2.0));
}

#[test]
fn those_of_one_pool_hand_on_what_there_is() {
    let server = started_with_users();
    let proxy = capped(&server, "2", &[]);
    let processes = Mutex::new(BTreeSet::new());
    // Who logs in is asked about on a connection that counts, too: an idle one may be closed for it.
    let clients: Vec<_> = (0..8)
        .map(|_| client(&proxy, "postgres", "postgres").unwrap())
        .collect();
    std::thread::scope(|scope| {
        for mut client in clients {
            let processes = &processes;
            scope.spawn(move || {
                for _ in 0..50 {
                    let process = client.ask("SELECT pg_backend_pid()");
                    processes.lock().unwrap().insert(process);
                }
            });
        }
    });
    let processes = processes.into_inner().unwrap();
    assert!(processes.len() <= 2, "{} connections were made", processes.len());
}
