//! Databases by the names that a file gives them, and for how long their connections are lent.

use std::time::Duration;

use testbed::{Folder, Forebay, Postgres};

use crate::client::{Client, bind, describe, execute, parse, query};
use crate::login::log_in;
use crate::{PASSWORD, PROGRAM, at, postgres, proxy, straight};

/// A proxy of the databases that this file names.
fn proxy_of_databases(server: &Postgres, text: &str) -> Forebay {
    let folder = Folder::new("databases", None).unwrap();
    let text = text.replace("SERVER", &server.address().to_string());
    folder.place("forebay.toml", &text, None).unwrap();
    Forebay::builder(PROGRAM)
        .databases_of(folder.file("forebay.toml"))
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_leads_to_what_the_file_says_or_nowhere() {
    let server = postgres();
    for database in ["there", "elsewhere"] {
        straight(server)
            .query(&format!("CREATE DATABASE {database}"))
            .expect(database);
    }
    let named = "\
        [[database]]\nname = \"shop\"\nurl = \"postgresql://SERVER/there\"\n\
        [[database]]\nname = \"elsewhere\"\nurl = \"postgresql://SERVER\"\n";
    let only = proxy_of_databases(server, named);
    let all = proxy_of_databases(server, &format!("upstream = \"postgresql://SERVER/postgres\"\n{named}"));
    for (user, password) in [("trusted", None), ("scram", Some(PASSWORD))] {
        for proxy in [&only, &all] {
            let me = |database: &'static str| log_in(proxy.address(), user, database, password);
            assert_eq!(me("shop").await, Ok(format!("{user} there")));
            assert_eq!(me("elsewhere").await, Ok(format!("{user} elsewhere")));
        }
        let straight = log_in(server.address(), user, "nowhere", password).await;
        for proxy in [&only, &all] {
            assert_eq!(log_in(proxy.address(), user, "nowhere", password).await, straight);
        }
        let there = log_in(all.address(), user, "postgres", password).await;
        assert_eq!(there, Ok(format!("{user} postgres")));
        let told = log_in(only.address(), user, "postgres", password).await.unwrap_err();
        assert!(told.starts_with("FATAL 3D000"), "{told}");
    }
}

#[test]
fn each_database_has_its_own_limits() {
    let proxy = proxy_of_databases(
        postgres(),
        "max_server_connections = 2\nserver_wait_timeout = \"100ms\"\n\
         [[database]]\nname = \"few\"\nurl = \"postgresql://SERVER/postgres\"\nmax_server_connections = 1\n\
         [[database]]\nname = \"more\"\nurl = \"postgresql://SERVER/postgres\"\n",
    );
    let begin = |database| {
        let who = [("user", "postgres"), ("database", database)];
        let mut client = Client::connect_with(proxy.address(), &who).unwrap();
        client.send(&query("BEGIN"));
        client
    };
    let mut all = [begin("few"), begin("more"), begin("more")];
    for client in &mut all {
        client.answer().expect("there is one for it");
    }
    for database in ["few", "more"] {
        let words = begin(database).last_words();
        assert_eq!(words[0].failure().sqlstate(), "53300", "{database}");
    }
}

#[test]
fn numbers_that_were_drawn_stay_known_where_that_is_wished() {
    let arguments = ["--max-server-connections", "2", "--session-functions", "pin"];
    let proxy = proxy(postgres(), &arguments);
    // Somebody had the connection before.
    let mut before = at(proxy.address());
    for _ in 0..3 {
        before.run("BEGIN; COMMIT");
    }
    let mut straight = straight(postgres());
    straight.run("CREATE TABLE kept (a serial PRIMARY KEY, b int)");
    straight.run("CREATE FUNCTION drawn() RETURNS bigint LANGUAGE sql AS $$SELECT lastval()$$");
    straight.run("CREATE FUNCTION next_one() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('kept_a_seq')$$");
    let mut one = at(proxy.address());
    for (what, is_prepared) in [
        ("INSERT INTO kept DEFAULT VALUES", false),
        ("UPDATE kept SET a = DEFAULT", false),
        ("SELECT nextval('kept_a_seq')", false),
        ("SELECT NextVal('kept_a_seq')", true),
        ("INSERT INTO kept (b) VALUES (1 / (random() * 0)::int)", true),
        ("DO $$BEGIN PERFORM next_one(); END$$", false),
    ] {
        let _ = match is_prepared {
            true => one.pipeline(&[parse("", what), bind("", "", &[]), execute("", 0)]),
            false => one.query(what),
        };
        let drawn = one.ask("SELECT lastval()");
        // It is nobody else's, however many come, and they have none.
        let mut strangers = [at(proxy.address()), at(proxy.address())];
        for turn in 0..6 {
            let stranger = &mut strangers[turn % 2];
            assert_eq!(stranger.query("SELECT drawn()").sqlstate(), "55000", "{what}");
            stranger.run("DISCARD SEQUENCES");
        }
        assert_eq!(one.ask("SELECT drawn()"), drawn, "{what}");
        // What was drawn is forgotten, and the connection is anybody's again.
        one.run("DISCARD SEQUENCES");
        for stranger in &mut strangers {
            stranger.run("BEGIN");
        }
    }
}

#[test]
fn in_session_mode_a_connection_is_a_clients_until_it_goes_and_clean_for_the_next() {
    let arguments = ["--max-server-connections", "1", "--pool-mode", "session"];
    let proxy = proxy(postgres(), &arguments);
    let mut one = at(proxy.address());
    let it = one.ask("SELECT pg_backend_pid()");
    one.run("CREATE TABLE IF NOT EXISTS numbered (a serial)");
    for sql in [
        "SET work_mem = '123kB'",
        "CREATE TEMP TABLE mine (a int)",
        "SELECT pg_advisory_lock(5)",
        "LISTEN news",
        "PREPARE made AS SELECT 1",
        "INSERT INTO numbered DEFAULT VALUES",
    ] {
        one.query(sql).expect(sql);
    }
    one.pipeline(&[parse("named", "SELECT 'named'"), describe(b'S', "named")])
        .expect("prepared");
    assert_eq!(one.ask("SELECT pg_backend_pid()"), it);
    let mut other = at(proxy.address());
    other.send(&query("SELECT pg_backend_pid()"));
    while proxy.metric("forebay_clients_waiting").unwrap() != Some(1.0) {}
    one.send(b"X\0\0\0\x04");
    assert_eq!(other.answer().value().as_ref(), Some(&it), "it is lent on");
    assert_eq!(other.ask("SHOW work_mem"), "4MB");
    for (sql, sqlstate) in [
        ("SELECT * FROM mine", "42P01"),
        ("EXECUTE made", "26000"),
        ("SELECT lastval()", "55000"),
    ] {
        assert_eq!(other.query(sql).sqlstate(), sqlstate, "{sql}");
    }
    assert_eq!(other.ask("SELECT count(*) FROM pg_listening_channels()"), "0");
    assert_eq!(other.ask("SELECT count(*) FROM pg_prepared_statements"), "0");
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    assert_eq!(other.ask(locks), "0");
    let named = other.pipeline(&[bind("", "named", &[]), execute("", 0)]);
    assert_eq!(named.sqlstate(), "26000");
    // Who goes within a transaction leaves no connection.
    other.run("BEGIN");
    drop(other);
    let mut third = at(proxy.address());
    assert_ne!(third.ask("SELECT pg_backend_pid()"), it);
    third.send(&query("SELECT 1"));
    assert!(third.read_within(Duration::from_secs(10)).is_some());
}
