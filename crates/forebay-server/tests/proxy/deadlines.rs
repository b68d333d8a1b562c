//! How long a client may be at something, and how many connections there are for those who wait.

use std::time::Duration;

use testbed::Forebay;

use crate::client::{Client, bind, execute, flush, parse, query, sync, whole};
use crate::{at, postgres, proxy, straight};

#[test]
fn a_statement_that_takes_too_long_is_cancelled_and_its_session_goes_on() {
    let proxy = proxy(postgres(), &["--statement-timeout", "300ms"]);
    let mut client = at(proxy.address());
    assert_eq!(client.query("SELECT pg_sleep(60)").sqlstate(), "57014");
    assert_eq!(client.ask("SELECT 1"), "1");
    // In a transaction as well, which has then failed.
    client.run("BEGIN");
    assert_eq!(client.query("SELECT pg_sleep(60)").sqlstate(), "57014");
    assert_eq!(client.query("SELECT 1").sqlstate(), "25P02");
    client.run("ROLLBACK");
    let pipelined = client.pipeline(&[whole("SELECT pg_sleep(60)", &[])]);
    assert_eq!(pipelined.sqlstate(), "57014");
    // Each has its time: many that are short may take long together.
    let one = [whole("SELECT pg_sleep(0.1)", &[]), sync()].concat();
    client.send(&one.repeat(6));
    for _ in 0..6 {
        assert_eq!(client.answer().tags(), ["SELECT 1"]);
    }
}

#[test]
fn a_transaction_that_is_idle_for_too_long_is_rolled_back() {
    let server = postgres();
    straight(server).run("CREATE TABLE idle_too_long (id int)");
    let proxy = proxy(server, &["--idle-transaction-timeout", "200ms"]);
    let mut client = at(proxy.address());
    client.run("BEGIN");
    client.run("INSERT INTO idle_too_long VALUES (1)");
    assert_eq!(ended(&mut client), "25P03");
    let mut other = at(proxy.address());
    assert_eq!(other.ask("SELECT count(*) FROM idle_too_long"), "0");
    // Who is idle outside of one may be.
    assert!(other.read_within(Duration::from_millis(300)).is_none());
    assert_eq!(other.ask("SELECT 1"), "1");
}

/// The transaction of what has no Sync yet is open, too.
#[test]
fn who_owes_a_sync_for_too_long_is_ended() {
    let proxy = proxy(postgres(), &["--idle-transaction-timeout", "200ms"]);
    for (sql, last) in [("SELECT 1", b'C'), ("SELECT 1/0", b'E')] {
        let mut client = at(proxy.address());
        client.send(&[parse("", sql), bind("", "", &[]), execute("", 0), flush()].concat());
        while client.read().unwrap().kind != last {}
        assert_eq!(ended(&mut client), "25P03", "{sql}");
    }
}

#[test]
fn a_session_that_is_idle_for_too_long_ends() {
    let proxy = proxy(postgres(), &["--idle-session-timeout", "300ms"]);
    let mut client = at(proxy.address());
    client.run("BEGIN");
    assert!(client.read_within(Duration::from_millis(400)).is_none());
    client.run("COMMIT");
    // Also on a connection that it keeps.
    let mut pinned = at(proxy.address());
    pinned.run("LISTEN news");
    assert_eq!(ended(&mut client), "57P05");
    assert_eq!(ended(&mut pinned), "57P05");
}

/// With which state a session ends that says nothing.
fn ended(client: &mut Client) -> String {
    let words = client.last_words();
    let [word] = &words[..] else {
        panic!("{} words", words.len())
    };
    assert_eq!(word.failure().field(b'S'), Some("FATAL"));
    word.failure().sqlstate().to_owned()
}

fn wait_for_connections(proxy: &Forebay, count: f64) {
    while proxy.metric("forebay_server_connections").unwrap() != Some(count) {
        std::thread::yield_now();
    }
}

#[test]
fn so_many_connections_are_there_while_there_are_clients() {
    let server = postgres();
    let arguments = ["--min-server-connections", "3", "--server-idle-timeout", "1ms"];
    let proxy = proxy(server, &arguments);
    let mut client = at(proxy.address());
    client.run("SET application_name = 'warmed'");
    wait_for_connections(&proxy, 3.0);
    let ours = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let pid = client.ask("SELECT pg_backend_pid()");
    // One that the server ends is made anew.
    straight(server).query(&format!("SELECT pg_terminate_backend({pid})"));
    while straight(server)
        .query(ours)
        .rows()
        .iter()
        .flatten()
        .any(|one| one.as_deref() == Some(&pid))
    {}
    assert_eq!(client.ask("SELECT 1"), "1");
    wait_for_connections(&proxy, 3.0);
    drop(client);
    wait_for_connections(&proxy, 0.0);
}

#[test]
fn who_has_waited_is_served_from_the_reserve() {
    let arguments = [
        "--max-server-connections",
        "1",
        "--reserve-server-connections",
        "1",
        "--reserve-after",
        "50ms",
    ];
    let proxy = proxy(postgres(), &arguments);
    let mut holds = at(proxy.address());
    holds.run("BEGIN");
    let mut waits = at(proxy.address());
    let mut third = at(proxy.address());
    assert_eq!(waits.ask("SELECT 1"), "1", "served though nothing was given back");
    // A third waits until the reserve is free.
    waits.run("BEGIN");
    third.send(&query("SELECT 2"));
    assert!(third.read_within(Duration::from_millis(200)).is_none());
    waits.run("COMMIT");
    assert_eq!(third.answer().value().as_deref(), Some("2"));
    holds.run("COMMIT");
    wait_for_connections(&proxy, 1.0);
}
