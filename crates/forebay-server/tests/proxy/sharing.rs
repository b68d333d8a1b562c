//! Server connections are shared by transaction, bounded, and waited for.

use std::time::Duration;

use crate::client::{Client, parse, query};
use crate::{as_user, at, postgres, proxy};

const WHO: &str = "SELECT pg_backend_pid()";

#[test]
fn a_connection_is_anothers_between_transactions() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let (mut one, mut other) = (at(proxy.address()), at(proxy.address()));
    assert_eq!(one.ask(WHO), other.ask(WHO));
    one.run("BEGIN");
    one.run("SET LOCAL work_mem = '123kB'");
    other.send(&query("SHOW work_mem"));
    assert!(other.read_within(Duration::from_millis(50)).is_none(), "it waits");
    one.run("COMMIT");
    assert_eq!(other.answer().value().as_deref(), Some("4MB"));
    assert_eq!(proxy.metric("forebay_server_connections").unwrap(), Some(1.0));
}

#[test]
fn who_waits_too_long_or_behind_too_many_is_told() {
    let arguments = [
        "--max-server-connections",
        "1",
        "--max-waiting",
        "1",
        "--server-wait-timeout",
        "300ms",
    ];
    let proxy = proxy(postgres(), &arguments);
    let [mut holds, mut waits, mut is_too_many] = [(); 3].map(|()| at(proxy.address()));
    holds.run("BEGIN");
    waits.send(&query(WHO));
    while proxy.metric("forebay_clients_waiting").unwrap() != Some(1.0) {}
    is_too_many.send(&query(WHO));
    let words = is_too_many.last_words();
    assert_eq!(words[0].failure().sqlstate(), "53300");
    let words = waits.last_words();
    let failure = words[0].failure();
    assert_eq!(failure.sqlstate(), "53300");
    assert!(failure.message().contains("within 300ms"), "{failure:?}");
    holds.run("COMMIT");
    assert!(as_user(proxy.address(), "postgres").is_ok());
}

/// Its connection may be one that others had, or where it was never prepared.
#[test]
fn what_was_prepared_by_the_protocol_is_executed_by_sql() {
    let server = postgres();
    let proxy = proxy(server, &["--max-server-connections", "2"]);
    let [mut through, mut stranger] = [(); 2].map(|()| at(proxy.address()));
    let mut itself = crate::straight(server);
    itself.run("CREATE TABLE executed (a int)");
    for client in [&mut through, &mut itself] {
        client
            .pipeline(&[parse("twice", "SELECT 2 * $1::int AS twice")])
            .expect("prepared");
        client
            .pipeline(&[parse("Of It", "INSERT INTO executed VALUES ($1) RETURNING a")])
            .expect("prepared");
        client
            .pipeline(&[parse("sets", "SELECT set_config('work_mem', $1, false)")])
            .expect("prepared");
        client
            .pipeline(&[parse("gone", "SELECT a FROM executed")])
            .expect("prepared");
    }
    let asked = [
        "EXECUTE twice(21)",
        "execute twice (1 + 1);",
        "EXECUTE twice",
        "EXECUTE twice('x')",
        "EXECUTE nobodys(1)",
        "EXECUTE \"Of It\"(7)",
        "BEGIN",
        "EXECUTE \"Of It\"(8)",
        "EXECUTE twice(1/0)",
        "EXECUTE twice(21)",
        "ROLLBACK",
        "EXECUTE sets('123kB')",
        "SHOW work_mem",
    ];
    for (turn, text) in asked.iter().enumerate() {
        // The other connection is the only one left, now and then.
        if turn % 2 == 0 && through.query("SELECT 1").status == 'I' {
            stranger.run("BEGIN");
            stranger.run("COMMIT");
        }
        let expected = itself.query(text);
        let told = through.query(text);
        assert_eq!(told.status, expected.status, "{text}");
        assert_eq!(told.messages, expected.messages, "{text}");
    }
    itself.run("DROP TABLE executed");
    stranger.run("BEGIN");
    let refused = through.query("EXECUTE gone");
    assert_eq!((refused.sqlstate().as_str(), refused.status), ("42P01", 'I'));
    assert_eq!(through.ask("SELECT 'goes on'"), "goes on");
}

#[test]
fn a_cancel_reaches_what_runs_for_its_own_client() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    let (mut one, mut other) = (at(proxy.address()), at(proxy.address()));
    one.send(&query("SELECT pg_sleep(60)"));
    other.send(&query("SELECT pg_sleep(0.2)"));
    assert_eq!(one.cancel_until_answered().sqlstate(), "57014");
    assert_eq!(other.answer().sqlstate(), "00000");
    assert_eq!(one.ask("SELECT 1"), "1");
}

#[test]
fn sessions_that_begin_otherwise_share_the_bound_and_not_the_beginning() {
    let server = postgres();
    let proxy = proxy(server, &["--max-server-connections", "2"]);
    let begun_in = |zone: &str| {
        let parameters = [("user", "postgres"), ("database", "postgres"), ("timezone", zone)];
        Client::connect_with(proxy.address(), &parameters).unwrap()
    };
    let mut clients: Vec<(&str, Client)> = ["UTC", "Asia/Tokyo", "Europe/Berlin", "America/Lima"]
        .map(|zone| (zone, begun_in(zone)))
        .into();
    for round in 0..3 {
        for (zone, client) in &mut clients {
            assert_eq!(client.ask("SHOW timezone"), *zone);
            if round == 1 {
                client.run("SET timezone TO 'Africa/Lagos'");
            }
            client.run("RESET timezone");
            assert_eq!(client.ask("SHOW timezone"), *zone, "what it began with");
        }
        assert!(proxy.metric("forebay_server_connections").unwrap() <= Some(2.0));
    }
    // All of them wait at once, each for its own.
    for (_, client) in &mut clients {
        client.send(&query("SELECT current_setting('timezone') FROM pg_sleep(0.02)"));
    }
    for (zone, client) in &mut clients {
        assert_eq!(client.answer().value().as_deref(), Some(*zone));
    }
}

#[test]
fn connections_that_nobody_uses_or_that_are_too_old_are_closed() {
    for option in ["--server-idle-timeout", "--server-lifetime"] {
        let proxy = proxy(postgres(), &[option, "1ms"]);
        let mut client = at(proxy.address());
        let first = client.ask(WHO);
        while proxy.metric("forebay_server_connections").unwrap() != Some(0.0) {}
        assert_ne!(client.ask(WHO), first);
    }
}
