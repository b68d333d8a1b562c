//! How long answers may be that are remembered, and what they take of the proxy's memory on their way.

use testbed::Forebay;

use crate::client::{Client, bind, execute, parse, query};
use crate::crowd::until;
use crate::memory::{bytes, remembered, remembering, until_remembered};
use crate::{at, postgres, straight};

const MIB: usize = 1 << 20;

/// The most memory that the process has had, in bytes.
fn resident_bytes_max(proxy: &Forebay) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

fn rule(table: &str, max_answer: &str) -> String {
    format!("[[rule]]\nname = \"{table}\"\ntable = \"{table}\"\nfresh = \"1h\"\nmax_answer = \"{max_answer}\"\n")
}

#[test]
fn a_rule_says_how_long_an_answer_may_be() {
    let rules =
        ["sizes_long", "sizes_short"].map(|table| rule(table, if table == "sizes_long" { "3MiB" } else { "1KiB" }));
    let reloadable = remembering(&format!("invalidate = \"none\"\n{}", rules.concat()));
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    for table in ["sizes_long", "sizes_short", "sizes_usual"] {
        server.run(&format!("CREATE TABLE {table} (n int, t text)"));
        server.run(&format!(
            "INSERT INTO {table} SELECT n, repeat('x', 1000) FROM generate_series(1, 4000) n"
        ));
        server.run(&format!("INSERT INTO {table} VALUES (0, repeat('y', 2 << 20))"));
    }
    let read = |table: &str, most: u32| format!("SELECT n, t FROM {table} WHERE n BETWEEN 1 AND {most} ORDER BY n");
    let one = |table: &str| format!("SELECT t FROM {table} WHERE n = 0");
    for (table, most, is_remembered) in [
        ("sizes_long", 2_500, true),
        ("sizes_usual", 25, true),
        ("sizes_short", 1, false),
        ("sizes_usual", 40, false),
        ("sizes_long", 3_500, false),
    ] {
        let (text, begins) = (read(table, most), format!("SELECT n, t FROM {table}"));
        let text = format!("/* ttl:3600 */ {text}");
        let before = remembered(&mut admin, &begins).0;
        let straight = server.query(&text);
        if is_remembered {
            until_remembered(&mut client, &mut admin, &text, &begins);
        }
        for _ in 0..8 {
            assert_eq!(bytes(&client.query(&text)), bytes(&straight), "{text}");
        }
        let told = remembered(&mut admin, &begins);
        assert_eq!(told.0 >= before + 8, is_remembered, "{text}: {told:?}");
        assert!(
            is_remembered || told.1.is_some_and(|why| why.contains("its answers have more than")),
            "{text}"
        );
    }
    // A single row may be as long.
    server.run("CREATE TABLE sizes_row AS SELECT 0 AS n, repeat('z', 2 << 20) AS t");
    let rules = rule("sizes_row", "3MiB");
    drop(reloadable);
    let reloadable = remembering(&format!("invalidate = \"none\"\n{rules}"));
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    let text = one("sizes_row");
    until_remembered(&mut client, &mut admin, &text, "SELECT t FROM sizes_row");
    client.pipeline(&[parse("row", &text)]);
    server.pipeline(&[parse("row", &text)]);
    for _ in 0..8 {
        assert_eq!(bytes(&client.query(&text)), bytes(&server.query(&text)));
        let ask = |client: &mut Client| client.pipeline(&[bind("", "row", &[]), execute("", 0)]);
        assert_eq!(bytes(&ask(&mut client)), bytes(&ask(&mut server)));
    }
}

/// Each has but a share of it.
#[test]
fn many_who_are_told_a_long_answer_have_no_copies() {
    let reloadable = remembering(&format!("invalidate = \"none\"\n{}", rule("sizes_many", "5MiB")));
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE sizes_many AS SELECT n, repeat('x', 1000) AS t FROM generate_series(1, 4000) n");
    let text = "SELECT n, t FROM sizes_many ORDER BY n";
    until_remembered(&mut client, &mut admin, text, text);
    let mut clients: Vec<Client> = (0..60).map(|_| at(address)).collect();
    let (told, before) = (remembered(&mut admin, text).0, resident_bytes_max(&reloadable.proxy));
    for client in &mut clients {
        client.send(&query(text));
    }
    until("all are told", || remembered(&mut admin, text).0 == told + 60);
    let grown = resident_bytes_max(&reloadable.proxy) - before;
    assert!(grown < 60 * MIB, "{} MiB for 60 times 4 MiB", grown / MIB);
    let straight = server.query(text);
    for client in &mut clients {
        assert_eq!(bytes(&client.answer()), bytes(&straight));
        // What comes behind it is behind it.
        assert_eq!(client.ask("SELECT 7"), "7");
    }
}

#[test]
fn who_takes_nothing_is_told_no_more() {
    const ASKED: usize = 8_000;
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE sizes_unread AS SELECT n, repeat('x', 1000) AS t FROM generate_series(1, 30) n");
    let text = "/* ttl:3600 */ SELECT n, t FROM sizes_unread ORDER BY n";
    until_remembered(&mut client, &mut admin, text, "SELECT n, t FROM sizes_unread");
    let before = resident_bytes_max(&reloadable.proxy);
    client.send(&query(text).repeat(ASKED));
    let told = |admin: &mut Client| remembered(admin, "SELECT n, t FROM sizes_unread").0;
    let mut last = told(&mut admin);
    until("nothing more is told", || {
        crate::windows::pass(std::time::Duration::from_millis(200));
        let now = told(&mut admin);
        std::mem::replace(&mut last, now) == now
    });
    let grown = resident_bytes_max(&reloadable.proxy) - before;
    assert!(
        grown < 30 * MIB,
        "{} MiB for 240 MiB that nobody has taken",
        grown / MIB
    );
    let straight = server.query(text);
    for _ in 0..ASKED {
        assert_eq!(bytes(&client.answer()), bytes(&straight));
    }
}
