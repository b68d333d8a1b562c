//! What is told while the database cannot be asked, to those who have said so, beside a PostgreSQL that goes and comes.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use testbed::{Behaviour, Postgres, Proxy};

use crate::client::{Client, bind, execute, parse, query};
use crate::crowd::until;
use crate::memory::{remembered, until_remembered};
use crate::reload::Reloadable;
use crate::stream::{self, Stage};
use crate::windows::pass;
use crate::{at, started, straight};

/// A proxy that remembers, on a way that can be cut.
fn remembering(way: &Proxy, parameters: &str, lines: &str) -> Reloadable {
    let text = format!(
        "upstream = \"postgresql://{}/postgres{parameters}\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\n{lines}",
        way.address()
    );
    Reloadable::start(&text, &[])
}

fn told_while_away(admin: &mut Client) -> u64 {
    let shown = admin.query("SHOW FOREBAY STATUS").expect("shown").rows();
    let row = shown
        .into_iter()
        .find(|row| row[0].as_deref() == Some("cache_told_while_away"));
    row.and_then(|row| row[1].clone())
        .expect("a figure")
        .parse()
        .expect("a number")
}

/// What ends a session that asks for what nobody can answer.
fn refused(client: &mut Client, text: &str) -> bool {
    client.send(&query(text));
    let words = client.last_words();
    words
        .last()
        .is_some_and(|word| word.kind == b'E' && word.failure().sqlstate() == "08006")
}

const RULE: &str = "[[rule]]\nname = \"shop\"\ntable = \"wares\"\nfresh = \"1s\"\nstale_if_away = \"1h\"\n";

#[test]
fn who_said_so_is_told_what_was_remembered_while_the_database_is_away() {
    let mut server = started();
    let way = Proxy::start(server.address()).unwrap();
    let reloadable = remembering(&way, "", RULE);
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    admin.run("CREATE TABLE wares (id int, n int)");
    admin.run("CREATE TABLE changed (id int, n int)");
    admin.run("INSERT INTO wares VALUES (1, 10)");
    admin.run("INSERT INTO changed VALUES (1, 10)");
    let read = "SELECT n FROM wares WHERE id = 1";
    let changed = "/* ttl:1 away:3600 */ SELECT n FROM changed";
    let briefly = "/* ttl:1 away:3 */ SELECT id FROM wares";
    let usual = "/* ttl:1 stale:1 */ SELECT id, n FROM wares";
    until_remembered(&mut client, &mut admin, read, "SELECT n FROM wares");
    until_remembered(&mut client, &mut admin, changed, "SELECT n FROM changed");
    until_remembered(&mut client, &mut admin, briefly, "SELECT id FROM wares");
    until_remembered(&mut client, &mut admin, usual, "SELECT id, n FROM wares");
    client.pipeline(&[parse("read", "SELECT n + $1 FROM wares")]);
    let prepared = |client: &mut Client| {
        let told = client.pipeline(&[bind("", "read", &["5"]), execute("", 0)]);
        told.value().expect("a row")
    };
    until("it is remembered", || {
        prepared(&mut client);
        remembered(&mut admin, "SELECT n + $1").0 > 0
    });
    let mut clients: Vec<Client> = (0..9).map(|_| at(address)).collect();
    // What is known to be of before is told to nobody.
    client.run("UPDATE changed SET n = 11");
    // All of them are asked once more, so that it is known when.
    pass(Duration::from_millis(1100));
    for text in [read, briefly, usual] {
        client.run(text);
    }
    assert_eq!(prepared(&mut client), "15");
    let asked = Instant::now();
    assert_eq!(told_while_away(&mut admin), 0);
    server.kill9().unwrap();
    pass(Duration::from_millis(1100));
    assert_eq!(client.ask(read), "10");
    assert_eq!(prepared(&mut client), "15");
    assert_eq!(client.ask(briefly), "1");
    assert!(asked.elapsed() < Duration::from_secs(4), "it took too long to tell");
    for client in &mut clients[..4] {
        assert_eq!(client.ask(read), "10");
    }
    assert_eq!(told_while_away(&mut admin), 7);
    let metric = reloadable.proxy.metrics().unwrap();
    let told = "forebay_cache_lookups_total{state=\"away\"} 7";
    assert!(metric.lines().any(|line| line == told), "{metric}");
    // Who has not said so is told the truth, and so is who asks for what is of before.
    pass(Duration::from_millis(2500).saturating_sub(asked.elapsed()));
    assert!(refused(&mut clients[4], usual));
    assert!(refused(&mut clients[5], changed));
    assert!(refused(&mut clients[6], "SELECT n FROM wares WHERE id = 2"));
    pass(Duration::from_secs(5).saturating_sub(asked.elapsed()));
    assert!(refused(&mut clients[7], briefly), "it is too old for that, too");
    let behind = format!("{read} /* after:0/1 */");
    assert!(
        refused(&mut clients[8], &behind),
        "it may not have seen what is before that"
    );
    // In a transaction nothing is told from memory.
    let mut begun = clients.remove(0);
    assert!(refused(&mut begun, "BEGIN"));
    server.restart().unwrap();
    way.lead_to(server.address());
    let back = Instant::now();
    let mut itself = straight(&server);
    itself.run("UPDATE wares SET n = 20");
    // It is tried a second later at the latest.
    until("it is back", || client.ask(read) == "20");
    assert!(back.elapsed() < Duration::from_secs(10), "{:?}", back.elapsed());
    assert_eq!(client.ask(usual), "1");
    let shown = admin.query("SHOW FOREBAY RULES").expect("shown").rows();
    let says = "statements that name wares are remembered for 1s, and for 3600s more while the database is away";
    assert_eq!(shown[0][1].as_deref(), Some(says));
}

/// A host that takes connections and says nothing is away once somebody has waited for as long as he waits.
#[test]
fn a_host_that_is_silent_keeps_one_waiting_and_not_all() {
    const CLIENTS: usize = 120;
    let server = started();
    let way = Proxy::start(server.address()).unwrap();
    let reloadable = remembering(&way, "?connect_timeout=2", RULE);
    let address = reloadable.proxy.address();
    let (mut admin, mut itself) = (at(address), straight(&server));
    itself.run(&format!(
        "CREATE TABLE wares AS SELECT id, 10 n FROM generate_series(0, {CLIENTS}) id"
    ));
    let read = |id: usize| format!("SELECT n FROM wares WHERE id = {id}");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(address)).collect();
    until_remembered(&mut clients[0], &mut admin, &read(0), "SELECT n FROM wares");
    for (id, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&read(id)), "10");
    }
    pass(Duration::from_millis(1100));
    // Nothing is handed on, and who is connected is not any more.
    way.set(Behaviour::Stall);
    way.cut();
    let round = |clients: &mut [Client]| {
        let begun = Instant::now();
        for (at, client) in clients.iter_mut().enumerate() {
            client.send(&query(&read(CLIENTS - 1 - at)));
        }
        let mut took = Vec::new();
        for client in clients {
            assert_eq!(client.answer().value().as_deref(), Some("10"));
            took.push(begun.elapsed());
        }
        took.into_iter().max().expect("some")
    };
    let first = round(&mut clients);
    assert!(first < Duration::from_secs(4), "all waited for one: {first:?}");
    let at_once = round(&mut clients);
    assert!(at_once < Duration::from_millis(900), "{at_once:?}");
    // One of them tries again, and the others need not wait for it.
    pass(Duration::from_millis(1100));
    let before = way.accepted();
    clients[0].send(&query(&read(0)));
    until("it is tried", || way.accepted() > before);
    let others = round(&mut clients[1..]);
    assert!(others < Duration::from_millis(900), "{others:?}");
    assert_eq!(way.accepted(), before + 1, "one tries");
    assert_eq!(clients[0].answer().value().as_deref(), Some("10"));
    // Nor who asks for the same.
    pass(Duration::from_millis(1100));
    let before = way.accepted();
    clients[0].send(&query(&read(0)));
    until("it is tried", || way.accepted() > before);
    let begun = Instant::now();
    for client in &mut clients[1..] {
        assert_eq!(client.ask(&read(0)), "10");
    }
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    assert_eq!(clients[0].answer().value().as_deref(), Some("10"));
    let told = told_while_away(&mut admin);
    assert!(told >= 3 * CLIENTS as u64, "{told}");
    way.set(Behaviour::Pass);
    itself.run("UPDATE wares SET n = 20");
    until("it is back", || clients[0].ask(&read(0)) == "20");
    for (id, client) in clients.iter_mut().enumerate() {
        until("all are asked again", || client.ask(&read(id)) == "20");
    }
}

/// The stream is what is late, and the database is asked; and where that is away, what it said last is told, but nothing that is known to be of before.
#[test]
fn a_stream_that_is_late_is_no_database_that_is_away() {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let server = SERVER.get_or_init(|| stream::started(&[]));
    let stage = Stage::at(server, "postgres", "max_lag = \"200ms\"\n");
    let (mut client, mut other, mut itself) = (stage.client(), stage.client(), stage.straight());
    for table in ["late", "heard"] {
        itself.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, n int)"));
        itself.run(&format!("INSERT INTO {table} VALUES (1, 0)"));
    }
    let late = "/* ttl:3600 away:3600 */ SELECT n FROM late";
    let kept = "/* ttl:3600 away:3600 */ SELECT id FROM late";
    let heard = "/* ttl:3600 away:3600 */ SELECT n FROM heard";
    for _ in 0..2 {
        stage.until_remembered(&mut client, late, "SELECT n FROM late");
        stage.until_remembered(&mut client, kept, "SELECT id FROM late");
        stage.until_remembered(&mut client, heard, "SELECT n FROM heard");
    }
    let looks = || stage.status("stream_catalog_looks").parse::<u64>().unwrap();
    let before = looks();
    until("it is looked at", || looks() > before + 1);
    for (text, begins) in [
        (late, "SELECT n FROM late"),
        (kept, "SELECT id FROM late"),
        (heard, "SELECT n FROM heard"),
    ] {
        stage.until_remembered(&mut client, text, begins);
    }
    // One change is told, and what is asked of it is not asked again.
    let commits = stage.status("stream_commits");
    itself.run("UPDATE heard SET n = 1");
    until("it is told", || stage.status("stream_commits") != commits);
    let process = stage.signal_stream(libc::SIGSTOP);
    itself.run("UPDATE late SET n = 1");
    until("the database is asked", || client.ask(late) == "1");
    // Not only once, and by all.
    itself.run("UPDATE late SET n = 2");
    assert_eq!((client.ask(late), other.ask(late)), ("2".to_owned(), "2".to_owned()));
    assert_eq!(stage.told_while_away(), "0");
    // SAFETY: it only sends a signal to a process of the server that this test has started.
    let signal = |process: i32, signal| assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    signal(i32::try_from(server.process_id()).unwrap(), libc::SIGKILL);
    // Its processes go one after the other.
    until("it is away", || {
        assert_eq!(client.ask(late), "2", "what it said last");
        stage.told_while_away() != "0"
    });
    for _ in 0..3 {
        assert_eq!((client.ask(late), other.ask(kept)), ("2".to_owned(), "1".to_owned()));
    }
    assert!(refused(&mut other, heard), "it is known to be of before");
    signal(process, libc::SIGKILL);
}

/// A commit that waits for a standby is told, and is seen by nobody yet: what is answered then is of before it.
#[test]
fn what_has_not_seen_a_change_that_was_told_is_not_told_while_away() {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let server = SERVER.get_or_init(|| stream::started(&[]));
    let stage = Stage::at(server, "postgres", "max_lag = \"80ms\"\n");
    let (mut client, mut itself) = (stage.client(), stage.straight());
    itself.run("CREATE TABLE unseen (id int PRIMARY KEY, n int)");
    itself.run("INSERT INTO unseen VALUES (1, 0)");
    let read = "/* ttl:3600 away:3600 */ SELECT n FROM unseen";
    stage.until_remembered(&mut client, read, "SELECT n FROM unseen");
    itself.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    itself.run("SELECT pg_reload_conf()");
    let mut writer = stage.straight();
    until("it is in force", || {
        writer.ask("SHOW synchronous_standby_names") == "nobody"
    });
    stage.until_remembered(&mut client, read, "SELECT n FROM unseen");
    let commits = stage.status("stream_commits");
    writer.send(&query("UPDATE unseen SET n = 1"));
    until("it is told", || stage.status("stream_commits") != commits);
    for _ in 0..3 {
        assert_eq!(client.ask(read), "0", "nobody sees it yet");
    }
    let process = i32::try_from(server.process_id()).unwrap();
    // SAFETY: it only sends a signal to a process of the server that this test has started.
    assert_eq!(unsafe { libc::kill(process, libc::SIGKILL) }, 0);
    // Its processes go one after the other.
    let who = [("user", "postgres"), ("database", "postgres")];
    until("it is away", || {
        Client::connect_with(stage.reloadable.proxy.address(), &who).is_err()
    });
    assert!(refused(&mut client, read));
    assert_eq!(stage.told_while_away(), "0");
}
