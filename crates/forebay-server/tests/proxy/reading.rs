//! By what settings the constants of a prepared text are read: by those that were in force where its client prepared it, wherever it runs, and whatever others have
//! set. Sessions through the proxy, of few connections, each beside one straight at the server that is asked the very same.

use std::net::SocketAddr;
use std::sync::Once;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::client::{Client, bind, close, describe, execute, parse, query, sync, whole};
use crate::memory::remembering;
use crate::twins::{Asking, INSIDE_MAX, Twins, in_turns};
use crate::{at, postgres, proxy, straight};

/// Each is read in several ways.
const TEXTS: &[&str] = &[
    "SELECT extract(month FROM date '01/02/2020') + $1::int",
    "SELECT extract(epoch FROM timestamptz '2024-01-01 00:00') + $1::int",
    "SELECT count(*) FROM reading_days WHERE d = '01/02/2020' AND id > $1::int",
    "SELECT extract(epoch FROM interval '-1 1:00:00') + $1::int",
    "SELECT length('a\\\\b') + $1::int",
    "SELECT $1::int + 1",
];
const SETTINGS: &[(&str, &[&str])] = &[
    ("DateStyle", &["ISO, MDY", "ISO, DMY"]),
    ("TimeZone", &["UTC", "Asia/Tokyo", "America/New_York"]),
    ("IntervalStyle", &["postgres", "sql_standard"]),
    ("standard_conforming_strings", &["on", "off"]),
];
const NAMES: &[&str] = &["", "a", "b", "c"];
/// Of its own: where somebody makes a schema, the server reads once more what is prepared at that database.
const DATABASE: &str = "reading";

/// Some messages of a session that ends with a Sync or is a query, as words too.
fn something(random: &mut StdRng, asking: Asking, is_alone: bool, hint: &str) -> (Vec<Vec<u8>>, String) {
    let one = |random: &mut StdRng, of: &[&'static str]| *of.choose(random).unwrap();
    let name = one(random, NAMES);
    let text = format!("{hint}{}", one(random, TEXTS));
    let (setting, values) = SETTINGS.choose(random).unwrap();
    let value = one(random, values);
    let sets = match random.random_range(0..6) {
        0 => format!("SET LOCAL {setting} = '{value}'"),
        1 => format!("SET {setting} = '{value}'"),
        2 => format!("SELECT set_config('{setting}', '{value}', true) IS NULL"),
        3 => format!("SELECT set_config('{setting}', '{value}', false) IS NULL"),
        // It could set what nobody sees, so its session stays on its connection.
        4 if is_alone => format!(
            "DO $$ BEGIN PERFORM set_config('{setting}', '{value}', {}); END $$",
            random.random::<bool>()
        ),
        _ => format!("RESET {setting}"),
    };
    let ends = match asking.is_inside {
        true => one(
            random,
            &["COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "ROLLBACK TO s"],
        )
        .to_owned(),
        false if asking.may_begin => "BEGIN".to_owned(),
        false => "SELECT 1".to_owned(),
    };
    let as_group = |sql: &str| vec![parse("", sql), bind("", "", &[]), execute("", 0)];
    let run = |random: &mut StdRng, name: &str| {
        let described = random.random_bool(0.3).then(|| describe(b'S', name));
        described
            .into_iter()
            .chain([bind("", name, &["1"]), execute("", 0)])
            .collect()
    };
    let messages: Vec<Vec<u8>> = match random.random_range(0..14) {
        0 | 1 => vec![query(&sets)],
        2 => as_group(&sets),
        3 => vec![query(&ends)],
        4 => as_group(&ends),
        5 => vec![close(b'S', name), parse(name, &text)],
        6 => [
            as_group(&sets),
            vec![close(b'S', name), parse(name, &text)],
            run(random, name),
        ]
        .concat(),
        7 => [
            vec![query(&sets), close(b'S', name), parse(name, &text)],
            run(random, name),
        ]
        .concat(),
        // What it has set is set back with it.
        8 => {
            let prepared = vec![close(b'S', name), parse(name, &text)];
            [as_group(&sets), prepared, as_group("SELECT 1/0")].concat()
        }
        9 => [vec![close(b'S', name), parse(name, &text)], run(random, name)].concat(),
        10 if !name.is_empty() => vec![query(&format!("EXECUTE {name} (1)"))],
        _ => run(random, name),
    };
    let ends_itself = messages.last().is_some_and(|last| last[0] == b'Q');
    let words = format!(
        "{name:?} {text:?} {sets:?} {ends:?} {}",
        messages.concat().escape_ascii()
    );
    (messages.into_iter().chain((!ends_itself).then(sync)).collect(), words)
}

fn everyone_reads_by_his_own(address: SocketAddr, is_alone: bool, hint: &str) {
    // Outside all that it has set may be as at first.
    in_turns(
        "READING",
        |_, _| Twins::new(address, DATABASE),
        1.0,
        |random, asking| something(random, asking, is_alone, hint),
    );
}

fn set_up() {
    static ONCE: Once = Once::new();
    let make = || {
        straight(postgres()).run(&format!("CREATE DATABASE {DATABASE}"));
        let at_it = [("user", "postgres"), ("database", DATABASE)];
        Client::connect_with(postgres().address(), &at_it).unwrap().run(
            "CREATE TABLE reading_days (id int PRIMARY KEY, d date); \
             INSERT INTO reading_days VALUES (2, '2020-01-02'), (3, '2020-02-01'), (4, '2020-02-01')",
        )
    };
    ONCE.call_once(|| drop(make()));
}

#[test]
fn a_text_is_read_as_where_its_client_prepared_it() {
    set_up();
    let connections = (INSIDE_MAX + 1).to_string();
    let proxy = proxy(postgres(), &["--max-server-connections", &connections]);
    everyone_reads_by_his_own(proxy.address(), false, "");
}

#[test]
fn what_is_remembered_was_read_as_where_its_client_prepared_it() {
    set_up();
    let reloadable = remembering("invalidate = \"none\"\n");
    everyone_reads_by_his_own(reloadable.proxy.address(), false, "/* ttl:3600 */ ");
}

/// Where each client has a connection of its own, which others have behind it.
#[test]
fn who_has_the_connection_next_reads_by_his_own() {
    set_up();
    let proxy = proxy(postgres(), &["--max-server-connections", "8", "--pool-mode", "session"]);
    everyone_reads_by_his_own(proxy.address(), true, "");
}

/// The server reads what is prepared once more behind any change of its tables, as one of their statistics is, by what is in force for whoever executes it then.
#[test]
fn what_is_read_once_more_is_read_by_nobody_elses() {
    const TEXT: &str = "SELECT n FROM read_again WHERE at = '2024-01-02 12:00' AND $1 > 0";
    const SETS: &[&str] = &[
        "SET TimeZone TO 'Asia/Tokyo'",
        "BEGIN; SET LOCAL TimeZone TO 'Asia/Tokyo'",
    ];
    let mut server = straight(postgres());
    server.run("CREATE TABLE read_again (n int PRIMARY KEY, at timestamptz)");
    server.run("INSERT INTO read_again VALUES (1, '2024-01-02 12:00+00'), (2, '2024-01-02 12:00+09')");
    let mut alter = {
        let mut statistics = 100;
        move || {
            statistics += 1;
            server.run(&format!("ALTER TABLE read_again ALTER n SET STATISTICS {statistics}"));
        }
    };
    let run = |name| vec![bind("", name, &["1"]), execute("", 0)];
    let in_utc = |address: SocketAddr| {
        let settings = [("user", "postgres"), ("database", "postgres"), ("TimeZone", "UTC")];
        Client::connect_with(address, &settings).unwrap()
    };
    for hint in ["", "/* ttl:3600 */ "] {
        let reloadable = remembering("max_server_connections = 2\n");
        let address = reloadable.proxy.address();
        let text = format!("{hint}{TEXT}");
        let mut other = in_utc(address);
        other.pipeline(&[parse("s", &text)]).expect("prepared");
        for sets in SETS {
            for described in [false, true] {
                let mut holder = in_utc(address);
                let mut client = in_utc(address);
                client.pipeline(&[parse("s", &text)]).expect("prepared");
                client.pipeline(&run("s")).expect("a row");
                client.run(sets);
                alter();
                let looks = described.then(|| describe(b'S', "s"));
                let answer = client.pipeline(&looks.into_iter().chain(run("s")).collect::<Vec<_>>());
                assert!(["1", "2"].map(Some).contains(&answer.value().as_deref()), "{answer:?}");
                client.run("ROLLBACK");
                // On either connection.
                for _ in 0..2 {
                    assert_eq!(other.pipeline(&run("s")).value().as_deref(), Some("1"), "{hint} {sets}");
                    let mut newcomer = in_utc(address);
                    newcomer.pipeline(&[parse("s", &text)]).expect("prepared");
                    assert_eq!(
                        newcomer.pipeline(&run("s")).value().as_deref(),
                        Some("1"),
                        "{hint} {sets}"
                    );
                    holder.run("BEGIN");
                }
                holder.run("ROLLBACK");
            }
        }
    }
    straight(postgres()).run("DROP TABLE read_again");
}

/// What is asked of ours behind a SET takes no snapshot, as straight has none: the transaction sees what is committed before its first query.
#[test]
fn what_is_asked_beside_takes_no_snapshot() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut server = straight(postgres());
    server.run("CREATE TABLE read_later (n int)");
    for (number, sets) in [
        "SET LOCAL TimeZone TO 'Asia/Tokyo'",
        "SET LOCAL standard_conforming_strings TO off",
        "SET LOCAL bytea_output TO escape",
    ]
    .into_iter()
    .enumerate()
    {
        for others in [
            "SET LOCAL app.a = 'x'",
            "SET LOCAL app.a = 'x\\\\y'",
            "LOCK TABLE read_later IN ACCESS SHARE MODE",
        ] {
            for begins in ["BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"] {
                let mut client = at(proxy.address());
                client.run(&format!("{begins}; {sets}"));
                client.pipeline(&[whole(others, &[])]).expect(others);
                server.run(&format!("INSERT INTO read_later VALUES ({number})"));
                if begins == "BEGIN" {
                    client.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT 1");
                }
                let count = format!("SELECT count(*) FROM read_later WHERE n = {number} AND '' = ''");
                let seen = [(); 2].map(|()| client.ask(&count));
                server.run(&format!("DELETE FROM read_later WHERE n = {number}"));
                client.run("COMMIT");
                assert_eq!(seen, ["1", "1"], "{begins}; {sets}; {others}");
            }
        }
    }
}

/// What of ours fails leaves nothing on the connection that the next one trips over.
#[test]
fn what_fails_beside_is_not_left_behind() {
    const NAME: &str = "reading_fails";
    straight(postgres()).run(&format!("CREATE DATABASE {NAME}"));
    let of = |address, user| Client::connect_with(address, &[("user", user), ("database", NAME)]).unwrap();
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut server = of(postgres().address(), "postgres");
    let mut run = |rights: &str, is_refused: bool| {
        server.run(rights);
        let mut client = of(proxy.address(), "trusted");
        client.send(&[parse("a", "SELECT '01/02/2024'::date AS day"), sync()].concat());
        client.answer().expect("prepared");
        client.run("BEGIN; SET LOCAL DateStyle TO 'ISO, DMY'");
        client.send(&[bind("", "a", &[]), execute("", 0), sync()].concat());
        match is_refused {
            true => assert_eq!(client.answer().sqlstate(), "42501"),
            false => assert_eq!(
                client.answer().expect("read").rows()[0][0].as_deref(),
                Some("2024-01-02")
            ),
        }
    };
    run("REVOKE SELECT ON pg_settings FROM public", true);
    run("GRANT SELECT ON pg_settings TO public", false);
}
