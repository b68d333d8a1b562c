//! How old remembered answers may be, by what rules and hints say of single ones, beside the PostgreSQL that would have answered.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use testbed::Postgres;

use crate::client::{Client, bind, execute, parse};
use crate::crowd::until;
use crate::memory::{remembered, remembering, until_remembered};
use crate::stream::{self, Stage};
use crate::{at, postgres, straight};

/// Waits for a window to pass, which is by the clock.
#[allow(clippy::disallowed_methods, reason = "there is nothing to wait for but the time")]
pub(crate) fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// What the console says of the rules.
fn said_of_rules(admin: &mut Client) -> Vec<String> {
    let shown = admin.query("SHOW FOREBAY RULES").expect("shown").rows();
    shown.iter().map(|row| row[1].clone().expect("a text")).collect()
}

/// Those that are there are remembered for an hour, and those that are not for a second.
#[test]
fn what_has_no_rows_has_a_window_of_its_own() {
    let reloadable = remembering(
        "invalidate = \"none\"\n[[rule]]\nname = \"lookups\"\ntable = \"lookups\"\nfresh = \"1h\"\nstale = \"1h\"\nmissing = \"1s\"\n",
    );
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE lookups (id int, n int)");
    server.run("INSERT INTO lookups VALUES (1, 10)");
    let by_text = |id: u32| format!("SELECT n FROM lookups WHERE id = {id}");
    until_remembered(&mut client, &mut admin, &by_text(1), "SELECT n FROM lookups");
    client.pipeline(&[parse("lookup", "SELECT n, id FROM lookups WHERE id = $1")]);
    let asked = |client: &mut Client, id: &str| {
        let told = client.pipeline(&[bind("", "lookup", &[id]), execute("", 0)]);
        told.value().unwrap_or_default()
    };
    until("it is remembered", || {
        asked(&mut client, "1");
        remembered(&mut admin, "SELECT n, id FROM lookups").0 > 0
    });
    for round in 2..5 {
        let id = round.to_string();
        assert!(client.query(&by_text(round)).rows().is_empty());
        assert_eq!(asked(&mut client, &id), "");
        server.run(&format!("INSERT INTO lookups VALUES ({round}, {round}0)"));
        let begun = Instant::now();
        // Some while it is told again, and not beyond that while somebody asks.
        let before = remembered(&mut admin, "SELECT n").0;
        assert!(client.query(&by_text(round)).rows().is_empty());
        assert_eq!(asked(&mut client, &id), "");
        if begun.elapsed() < Duration::from_millis(500) {
            assert_eq!(remembered(&mut admin, "SELECT n").0, before + 2);
        }
        pass(Duration::from_millis(1100));
        assert_eq!(client.ask(&by_text(round)), format!("{round}0"));
        assert_eq!(asked(&mut client, &id), format!("{round}0"));
        // Now there is something.
        server.run(&format!("UPDATE lookups SET n = 7 WHERE id = {round}"));
        pass(Duration::from_millis(1100));
        assert_eq!(client.ask(&by_text(round)), format!("{round}0"));
        assert_eq!(asked(&mut client, &id), format!("{round}0"));
    }
    let wanted = "statements that name lookups are remembered for 3600s (for 1s without rows), and for 3600s while they are asked again";
    assert_eq!(said_of_rules(&mut admin), [wanted]);
    // By a hint the same, and not at all.
    for (hint, is_told) in [("missing:3600", true), ("missing:0", false)] {
        let read = format!("/* ttl:3600 {hint} */ SELECT id FROM lookups WHERE id = 9");
        for _ in 0..3 {
            assert!(client.query(&read).rows().is_empty());
        }
        server.run("INSERT INTO lookups VALUES (9, 90)");
        for _ in 0..3 {
            assert_eq!(client.query(&read).rows().is_empty(), is_told, "{hint}");
        }
        server.run("DELETE FROM lookups WHERE id = 9");
    }
    server.run("DROP TABLE lookups");
}

/// They are made together, and asked again one after the other.
#[test]
fn what_is_remembered_together_is_not_asked_again_together() {
    const KEYS: u32 = 40;
    let reloadable = remembering(
        "invalidate = \"none\"\n[[rule]]\nname = \"spread\"\ntable = \"spread\"\nfresh = \"8s\"\njitter = 1.0\n\
         [[rule]]\nname = \"even\"\ntable = \"even\"\nfresh = \"8s\"\n",
    );
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    for table in ["spread", "even"] {
        server.run(&format!(
            "CREATE TABLE {table} AS SELECT id, 1 n FROM generate_series(1, {KEYS}) id"
        ));
        let first = format!("SELECT n FROM {table} WHERE id = 0");
        until_remembered(&mut client, &mut admin, &first, &format!("SELECT n FROM {table}"));
    }
    let asked = |client: &mut Client, table: &str| {
        let told = (1..=KEYS).map(|id| client.ask(&format!("SELECT n FROM {table} WHERE id = {id}")));
        told.filter(|told| told == "2").count()
    };
    let begun = Instant::now();
    for table in ["spread", "even"] {
        assert_eq!(asked(&mut client, table), 0);
        server.run(&format!("UPDATE {table} SET n = 2"));
    }
    // Who finds one that is not fresh is told it, and has it asked again.
    pass(Duration::from_secs(4).saturating_sub(begun.elapsed()));
    let mut again = 0;
    for _ in 0..3 {
        again = asked(&mut client, "spread");
    }
    let even = asked(&mut client, "even");
    assert!(begun.elapsed() < Duration::from_secs(8), "it took too long to tell");
    assert!((1..KEYS as usize).contains(&again), "{again} of {KEYS}");
    assert_eq!(even, 0);
    until("all are asked again", || {
        asked(&mut client, "spread") + asked(&mut client, "even") == 2 * KEYS as usize
    });
    server.run("DROP TABLE spread, even");
}

/// Rules that bear less than the option says, and more; the server's process that tells the stream is stopped, so that nothing is told.
#[test]
fn a_rule_says_how_late_the_stream_may_be() {
    // Roles are of all databases, other tests change some, and then all is old.
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let stage = Stage::at(
        SERVER.get_or_init(|| stream::started(&[])),
        "postgres",
        "max_lag = \"3s\"\n[[rule]]\nname = \"tight\"\ntable = \"tight\"\nfresh = \"1h\"\nmax_lag = \"200ms\"\n\
         [[rule]]\nname = \"loose\"\ntable = \"loose\"\nfresh = \"1h\"\nmax_lag = \"1h\"\n",
    );
    let (mut client, mut server) = (stage.client(), stage.straight());
    let tables = ["tight", "usual", "loose"];
    let read = |table: &str| format!("SELECT n FROM {table}");
    let asked = |table: &str| match table {
        "usual" => format!("/* ttl:3600 */ {}", read(table)),
        table => read(table),
    };
    for table in tables {
        server.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, n int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1, 0)"));
    }
    // What is published for one makes the answers of all old.
    for table in tables.iter().chain(&tables) {
        stage.until_remembered(&mut client, &asked(table), &read(table));
    }
    let looks = || stage.status("stream_catalog_looks").parse::<u64>().unwrap();
    let before = looks();
    until("it is looked at", || looks() > before + 1);
    for table in tables {
        stage.until_remembered(&mut client, &asked(table), &read(table));
    }
    // The log's end is asked for often enough for the least of them.
    let (before, begun, mut count) = (stage.remembered(&read("tight")).0, Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(2) {
        client.run(&asked("tight"));
        count += 1;
    }
    let known = stage.remembered(&read("tight")).0 - before;
    assert!(known * 10 > count * 8, "{known} of {count}");
    stage.signal_stream(libc::SIGSTOP);
    let stopped = Instant::now();
    for table in tables {
        server.run(&format!("UPDATE {table} SET n = 1"));
    }
    until("the one that bears least is asked of the database", || {
        client.ask(&asked("tight")) == "1"
    });
    let (usual, took) = (client.ask(&asked("usual")), stopped.elapsed());
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(usual, "0");
    let why = stage.remembered(&read("tight")).1;
    assert_eq!(why.as_deref(), Some("the database's stream is behind"));
    until("the others too", || client.ask(&asked("usual")) == "1");
    // And the one that bears most is told from memory, and what comes meanwhile is remembered.
    assert_eq!(client.ask(&asked("loose")), "0");
    assert_eq!(stage.remembered(&read("loose")).1, None);
    let meanwhile = "SELECT n, id FROM loose";
    for _ in 0..60 {
        client.run(meanwhile);
    }
    let known = stage.remembered(meanwhile).0;
    assert!(known >= 50, "{known}");
    stage.signal_stream(libc::SIGCONT);
    until("it is told", || client.ask(&asked("loose")) == "1");
    let shown = said_of_rules(&mut client);
    assert_eq!(
        shown[0],
        "statements that name tight are remembered for 3600s, where the stream is 200ms behind at the most"
    );
}

/// Many answers of one rule push out one another, and none of the others.
#[test]
fn a_rule_has_room_of_its_own_and_no_more() {
    const ROOM: u64 = 64 << 10;
    let reloadable = remembering(
        "invalidate = \"own\"\n[[rule]]\nname = \"pages\"\ntable = \"pages\"\nfresh = \"1h\"\ncapacity = \"64KiB\"\n\
         [[rule]]\nname = \"prices\"\ntable = \"prices\"\nfresh = \"1h\"\n",
    );
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    for table in ["pages", "prices"] {
        server.run(&format!(
            "CREATE TABLE {table} AS SELECT id, 1 n, repeat('x', 1000) t FROM generate_series(1, 400) id"
        ));
        let first = format!("SELECT n, t FROM {table} WHERE id = 1");
        until_remembered(&mut client, &mut admin, &first, &format!("SELECT n, t FROM {table}"));
    }
    let mut figure = |name: &str| -> u64 {
        let shown = admin.query("SHOW FOREBAY STATUS").expect("shown").rows();
        let row = shown.into_iter().find(|row| row[0].as_deref() == Some(name));
        row.and_then(|row| row[1].clone()).expect("a figure").parse().unwrap()
    };
    let asked = |client: &mut Client, table: &str, count: u32| {
        let told = (1..=count).map(|id| client.ask(&format!("SELECT n, t FROM {table} WHERE id = {id}")));
        told.filter(|told| told == "1").count()
    };
    assert_eq!(figure("cache_max_bytes"), 8 << 20, "it is of the whole");
    asked(&mut client, "prices", 20);
    let of_prices = figure("cache_bytes");
    asked(&mut client, "pages", 400);
    let of_both = figure("cache_bytes");
    assert!(of_both <= of_prices + ROOM, "{of_both} {of_prices}");
    assert!(of_both > of_prices + ROOM / 2, "{of_both} {of_prices}");
    // Another, who says how old it may be himself, has it where there is room for all.
    let hinted = |client: &mut Client| {
        let told = (1..=100).map(|id| client.ask(&format!("/* ttl:3600 */ SELECT n, t FROM pages WHERE id = {id}")));
        told.filter(|told| told == "1").count()
    };
    assert_eq!(hinted(&mut client), 100);
    for table in ["pages", "prices"] {
        server.run(&format!("UPDATE {table} SET n = 2"));
    }
    assert_eq!((asked(&mut client, "prices", 20), hinted(&mut client)), (20, 100));
    // Asked in their order each would push out the next.
    let kept = (1..=400)
        .rev()
        .take_while(|id| client.ask(&format!("SELECT n, t FROM pages WHERE id = {id}")) == "1")
        .count();
    assert!(kept < 64, "{kept}");
    // What passes makes all of them old.
    client.run("UPDATE pages SET n = 3");
    client.run("UPDATE prices SET n = 3");
    for (table, count) in [("pages", 400), ("prices", 20)] {
        assert_eq!(asked(&mut client, table, count), 0, "{table}");
    }
    assert_eq!(hinted(&mut client), 0);
    let says = "statements that name pages are remembered for 3600s, in 65536 bytes of their own";
    assert_eq!(said_of_rules(&mut admin)[0], says);
    server.run("DROP TABLE pages, prices");
}
