//! How long a client may be at something, and how many connections there are for those who wait.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testbed::Forebay;

use crate::client::{Client, bind, execute, flush, parse, query, sync, whole};
use crate::hints::{shared_of, until_known, until_shareable, with_admin};
use crate::reload::Reloadable;
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

const CLIENTS: usize = 12;
/// In milliseconds. A trip may take an eighth of it.
const TIME: u128 = 3000;
const LATE: u128 = 350;

fn clients(address: SocketAddr) -> Vec<Client> {
    (0..CLIENTS).map(|_| at(address)).collect()
}

/// Each is refused when its time is over, no sooner and not much later, and goes on.
fn are_refused_in_time(clients: &mut [Client], begun: Instant) {
    for client in &mut *clients {
        assert_eq!(client.answer().sqlstate(), "57014");
    }
    let took = begun.elapsed().as_millis();
    assert!((TIME..TIME + LATE).contains(&took), "{took} ms");
    for client in clients {
        assert_eq!(client.ask("SELECT 'goes on'"), "goes on");
    }
}

#[test]
fn those_whose_statements_have_a_time_travel_together_and_each_has_it() {
    let proxy = with_admin(&["--statement-timeout", "3s"]);
    let mut admin = at(proxy.address());
    let mut stranger = straight(postgres());
    stranger.run("CREATE TABLE bounded (id int PRIMARY KEY, n int)");
    stranger.run("INSERT INTO bounded SELECT n, 0 FROM generate_series(1, 12) n");
    let mut clients = clients(proxy.address());
    let read = "SELECT n FROM bounded WHERE id = 7 /* batch:100 */";
    let update = |id: usize, work: u32| {
        let work = format!(" AND factorial({work}) > 0").repeat(6);
        format!("UPDATE bounded SET n = n + 1 WHERE id = {id}{work} /* batch:100 */")
    };
    until_shareable(&mut admin, "SELECT n FROM bounded", read);
    until_shareable(&mut admin, "UPDATE bounded", &update(1, 5));
    stranger.run("UPDATE bounded SET n = 0");
    for client in &mut clients {
        client.send(&query(read));
    }
    for client in &mut clients {
        assert_eq!(client.answer().value().as_deref(), Some("0"));
    }
    assert_eq!(shared_of(&mut admin, "SELECT n FROM bounded"), CLIENTS as u64);
    for (at, client) in clients.iter_mut().enumerate() {
        client.send(&query(&update(at + 1, 5)));
    }
    for client in &mut clients {
        assert_eq!(client.answer().tags(), ["UPDATE 1"]);
    }
    assert_eq!(shared_of(&mut admin, "UPDATE bounded"), CLIENTS as u64);
    stranger.run("UPDATE bounded SET n = 0");
    // One has much to do: he alone is refused, and the others do not lose their time with him.
    let begun = Instant::now();
    for (at, client) in clients.iter_mut().enumerate() {
        client.send(&query(&update(at + 1, if at == 3 { 30000 } else { 5 })));
    }
    let mut slow = clients.remove(3);
    for client in &mut clients {
        assert_eq!(client.answer().tags(), ["UPDATE 1"]);
    }
    let took = begun.elapsed().as_millis();
    assert!(took < TIME * 9 / 10, "{took} ms");
    // What was lost in company is taken off.
    are_refused_in_time(std::slice::from_mut(&mut slow), begun);
    clients.push(slow);
    assert_eq!(
        admin.ask("SELECT string_agg(n::text, '' ORDER BY id) FROM bounded"),
        "111011111111"
    );
    // Nobody gets at the row, and nobody at the table.
    for (lock, text) in [
        (
            "UPDATE bounded SET n = 0 WHERE id = 7",
            update(7, 5).replace("batch:100", "batch:1"),
        ),
        ("LOCK TABLE bounded", read.replace("batch:100", "batch:1")),
    ] {
        stranger.run("BEGIN");
        stranger.run(lock);
        let begun = Instant::now();
        for client in &mut clients {
            client.send(&query(&text));
        }
        are_refused_in_time(&mut clients, begun);
        stranger.run("ROLLBACK");
    }
    assert_eq!(admin.ask("SELECT n FROM bounded WHERE id = 7"), "1");
    admin.run("DROP TABLE bounded");
}

#[test]
fn who_joins_a_read_on_its_way_has_his_own_time() {
    let reloadable = Reloadable::start(
        "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\nstatement_timeout = \"3s\"\n\
         [[rule]]\nname = \"joins\"\ntable = \"timed_join\"\njoin = \"in flight\"\n",
        &[],
    );
    let address = reloadable.proxy.address();
    let (mut admin, mut stranger) = (at(address), straight(postgres()));
    stranger.run("CREATE TABLE timed_join AS SELECT 1 n");
    stranger.run("CREATE TABLE timed_numbers AS SELECT generate_series(1, 900) n");
    // It has too much to do to travel on a trip, and is only joined.
    let read = "SELECT count(*) FROM timed_join, timed_numbers a, timed_numbers b WHERE a.n + b.n > 0";
    for _ in 0..6 {
        assert_eq!(admin.ask(read), "810000");
    }
    let mut clients = clients(address);
    let mut waits = straight(postgres());
    let count = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'timed_join'::regclass";
    let (first, others) = clients.split_at_mut(1);
    stranger.run("BEGIN");
    stranger.run("LOCK TABLE timed_join");
    let begun = Instant::now();
    first[0].send(&query(read));
    while waits.ask(count) != "1" {}
    let later = Duration::from_millis(500);
    assert!(others[0].read_within(later).is_none());
    let joined = Instant::now();
    for client in &mut *others {
        client.send(&query(read));
    }
    are_refused_in_time(first, begun);
    // It goes on for those who have joined it, who are all asked as one.
    assert_eq!(waits.ask(count), "1");
    are_refused_in_time(others, joined);
    while waits.ask(count) != "0" {}
    stranger.run("ROLLBACK");
    admin.run("DROP TABLE timed_join, timed_numbers");
}

/// What others carry for a client is something that it does.
#[test]
fn who_travels_is_not_idle() {
    let proxy = with_admin(&["--idle-session-timeout", "300ms"]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE not_idle (n int)");
    let insert = "INSERT INTO not_idle VALUES (1) /* batch:50 */";
    until_known(&mut admin, "not_idle", insert);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        admin.run(insert);
    }
    assert!(shared_of(&mut admin, "INSERT INTO not_idle") > 3);
    admin.run("DROP TABLE not_idle");
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
