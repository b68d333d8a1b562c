//! Cancels of what has no connection yet, and ends of its clients: it waits for company, travels in it, or waits for a connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::{Client, query, sync, whole};
use crate::hints::{until_known, with_admin};
use testbed::{Behaviour, Proxy as Way};

use crate::{at, postgres, proxy, proxy_of, straight};

/// One request, and no other.
fn cancel(client: &Client) {
    client.cancel(&client.secret);
}

/// Far longer than anything takes here, and far shorter than what is waited for.
const SOON: Duration = Duration::from_secs(10);

/// So long it waits for company, and no longer.
const COMPANY: Duration = Duration::from_millis(1000);

/// Has a client's change wait for company, and `ends` it meanwhile; again where the machine was too slow for that. How many were done.
fn end_while_it_waits(address: SocketAddr, insert: &str, ends: impl Fn(&mut Client)) -> usize {
    for slow in 0..5 {
        let mut client = at(address);
        let begun = Instant::now();
        client.send(&query(insert));
        assert!(client.read_within(Duration::from_millis(50)).is_none(), "it waits");
        ends(&mut client);
        let answer = client.read_within(SOON).expect("an answer").expect("a message");
        if begun.elapsed() < COMPANY {
            let sqlstate = answer.failure().sqlstate().to_owned();
            assert!(["57014", "57P01"].contains(&sqlstate.as_str()), "{sqlstate}");
            return slow;
        }
    }
    panic!("it is always answered when it has waited");
}

#[test]
fn a_change_that_waits_for_company_is_withdrawn() {
    let proxy = with_admin(&[]);
    let [mut admin, mut client] = [(); 2].map(|()| at(proxy.address()));
    admin.run("CREATE TABLE withdrawn (n int)");
    let insert = "INSERT INTO withdrawn VALUES (1) /* batch:1000 */";
    let mut done = until_known(&mut admin, "withdrawn", insert);
    done += end_while_it_waits(proxy.address(), insert, |client| cancel(client));
    // The trip that would have taken it.
    client.run(insert);
    assert_eq!(admin.ask("SELECT count(*) FROM withdrawn"), (done + 1).to_string());
    // It was of that statement, and of none behind it.
    client.send(&query(insert));
    assert!(client.read_within(Duration::from_millis(50)).is_none(), "it waits");
    cancel(&client);
    drop(client.answer());
    client.run("DELETE FROM withdrawn");
    client.run(insert);
    assert_eq!(admin.ask("SELECT count(*) FROM withdrawn"), "1");
    admin.run("DROP TABLE withdrawn");
}

/// In company a lock is waited for for a moment, and alone without end: wherever it is found, it is cancelled.
#[test]
fn a_change_behind_a_lock_is_cancelled_on_its_trip_and_behind_it() {
    let proxy = with_admin(&[]);
    let [mut admin, mut client] = [(); 2].map(|()| at(proxy.address()));
    let mut holder = straight(postgres());
    admin.run("CREATE TABLE locked_out (n int PRIMARY KEY)");
    let mut next = 10;
    // Each has its own row.
    let mut insert = || {
        next += 1;
        format!("INSERT INTO locked_out VALUES ({next}) /* batch:2 */")
    };
    for _ in 0..20 {
        admin.run(&insert());
    }
    holder.run("BEGIN");
    holder.run("INSERT INTO locked_out VALUES (1)");
    let mut late = 0;
    for delay in 1..=24 {
        client.send(&query("INSERT INTO locked_out VALUES (1) /* batch:2 */"));
        assert!(
            client.read_within(Duration::from_millis(delay)).is_none(),
            "it is locked"
        );
        cancel(&client);
        // Straight, too, a cancel may come in the moment before the statement does.
        let answer = match client.read_within(SOON) {
            Some(first) => {
                let first = first.expect("the connection stays");
                assert_eq!(client.answer().status, 'I');
                first.failure().sqlstate().to_owned()
            }
            None => {
                late += 1;
                client.cancel_until_answered().sqlstate()
            }
        };
        assert_eq!(answer, "57014", "after {delay} ms");
    }
    assert!(late <= 1, "{late} of 24 were lost");
    holder.run("ROLLBACK");
    assert_eq!(admin.ask("SELECT count(*) FROM locked_out WHERE n = 1"), "0");
    assert_eq!(client.query(&insert()).tags(), ["INSERT 0 1"]);
    admin.run("DROP TABLE locked_out");
}

/// What was asked for the first time is asked about behind its answer; the next statement waits for that.
#[test]
fn a_statement_behind_one_that_is_new_is_cancelled() {
    let proxy = with_admin(&[]);
    let [mut admin, mut client] = [(); 2].map(|()| at(proxy.address()));
    let mut holder = straight(postgres());
    admin.run("CREATE TABLE behind_new (n int PRIMARY KEY)");
    let insert = "INSERT INTO behind_new VALUES (1)";
    until_known(
        &mut admin,
        "behind_new",
        "INSERT INTO behind_new VALUES (0) ON CONFLICT DO NOTHING",
    );
    holder.run("BEGIN");
    holder.run(insert);
    let mut late = 0;
    for number in 1..=20 {
        assert_eq!(client.ask(&format!("SELECT 7 AS new_{number}")), "7");
        client.send(&query(insert));
        assert!(
            client.read_within(Duration::from_micros(500 * number)).is_none(),
            "it is locked"
        );
        cancel(&client);
        if client.read_within(Duration::from_secs(2)).is_none() {
            late += 1;
            assert_eq!(client.cancel_until_answered().sqlstate(), "57014");
        } else {
            assert_eq!(client.answer().status, 'I');
        }
    }
    assert!(late <= 1, "{late} of 20 were lost");
    holder.run("ROLLBACK");
    assert_eq!(admin.ask("SELECT count(*) FROM behind_new WHERE n = 1"), "0");
    admin.run("DROP TABLE behind_new");
}

#[test]
fn who_waits_for_a_connection_is_cancelled() {
    for arguments in [&[][..], &["--sharing=false"], &["--pool-mode", "session"]] {
        let proxy = proxy(postgres(), &[&["--max-server-connections", "1"], arguments].concat());
        let [mut holder, mut client] = [(); 2].map(|()| at(proxy.address()));
        holder.run("BEGIN");
        for text in ["SELECT 6 * 7", "SELECT pg_sleep(0)", "SELECT 6 * 7"] {
            client.send(&query(text));
            while proxy.metric("forebay_clients_waiting").unwrap() != Some(1.0) {}
            cancel(&client);
            assert_eq!(client.answer().sqlstate(), "57014", "{text} {arguments:?}");
            assert_eq!(proxy.metric("forebay_clients_waiting").unwrap(), Some(0.0));
        }
        holder.run("COMMIT");
        drop(holder);
        assert_eq!(client.ask("SELECT 6 * 7"), "42");
    }
}

/// Several statements in one go: whatever runs of them is cancelled once it runs, and nothing behind them is.
#[test]
fn a_pipeline_that_waits_for_a_connection_is_cancelled() {
    let mut late = 0;
    for arguments in [&[][..], &["--sharing=false"], &["--pool-mode", "session"]] {
        let proxy = proxy(postgres(), &[&["--max-server-connections", "1"], arguments].concat());
        let mut runs_behind_what_is_cancelled = || {
            let [mut holder, mut client] = [(); 2].map(|()| at(proxy.address()));
            holder.run("BEGIN");
            let pipeline = [query("SELECT pg_sleep(60)"), query("SELECT 6 * 7")].concat();
            client.send(&pipeline);
            while proxy.metric("forebay_clients_waiting").unwrap() != Some(1.0) {}
            cancel(&client);
            assert!(client.read_within(Duration::from_millis(20)).is_none(), "it waits on");
            holder.run("COMMIT");
            drop(holder);
            let before = late;
            assert_eq!(refusal(&mut client, &mut late), "57014", "{arguments:?}");
            let behind = client.answer();
            match behind.value() {
                Some(value) => assert_eq!(value, "42", "{arguments:?}"),
                None => assert_eq!(behind.sqlstate(), "57014", "{arguments:?}"),
            }
            // Where a cancel was lost others were sent, of which one may come for this.
            behind.value().is_some() || late > before
        };
        // The server signals a process, and then its group (`signal_child` in `postmaster.c`): where much is to be done, the second signal may
        // come for what is behind.
        assert!((0..3).any(|_| runs_behind_what_is_cancelled()), "{arguments:?}");
    }
    assert!(late <= 1, "{late} of 3 were lost");
}

/// The SQLSTATE of an answer to what was cancelled. Straight, too, a cancel may come in the moment before the statement does.
fn refusal(client: &mut Client, late: &mut u32) -> String {
    let Some(mut message) = client.read_within(Duration::from_secs(3)) else {
        *late += 1;
        return client.cancel_until_answered().sqlstate();
    };
    // Of the extended protocol it may be told before that it was parsed.
    loop {
        let seen = message.expect("the connection stays");
        if seen.kind == b'E' {
            assert_eq!(client.answer().status, 'I');
            return seen.failure().sqlstate().to_owned();
        }
        assert_ne!(seen.kind, b'Z', "it was not cancelled");
        message = client.read_within(SOON).expect("an answer");
    }
}

/// What its session has set is set first, and what a change of the schema may have brought is looked for; that takes time where the way is long.
#[test]
fn what_waits_for_its_connection_to_be_set_is_cancelled() {
    let way = Way::start(postgres().address()).unwrap();
    let url = format!("postgresql://{}/postgres", way.address());
    let proxy = proxy_of(&url, &["--max-server-connections", "1"]);
    let [mut other, mut client] = [(); 2].map(|()| at(proxy.address()));
    client.run("SET application_name = 'its own'");
    let sets = |client: &mut Client, other: &mut Client| {
        assert_eq!(other.ask("SHOW application_name"), "");
        client.send(&query("SELECT pg_sleep(60)"));
    };
    let learns = |client: &mut Client, other: &mut Client| {
        other.run("CREATE OR REPLACE FUNCTION set_up_late() RETURNS int LANGUAGE sql AS 'SELECT 1'");
        client.send(&query("SELECT pg_sleep(60)"));
    };
    let extended = |client: &mut Client, other: &mut Client| {
        assert_eq!(other.ask("SHOW application_name"), "");
        client.send(&[whole("SELECT pg_sleep(60)", &[]), sync()].concat());
    };
    let mut late = 0;
    for (name, send) in [
        ("sets", &sets as &dyn Fn(&mut Client, &mut Client)),
        ("learns", &learns),
        ("extended", &extended),
    ] {
        way.set(Behaviour::Delay(Duration::from_millis(100)));
        send(&mut client, &mut other);
        assert!(client.read_within(Duration::from_millis(50)).is_none(), "{name}");
        cancel(&client);
        assert_eq!(refusal(&mut client, &mut late), "57014", "{name}");
        way.set(Behaviour::Pass);
        // It was of that statement, and of none behind it.
        assert_eq!(client.ask("SELECT 6 * 7"), "42", "{name}");
    }
    assert!(late <= 1, "{late} of 3 were lost");
}

#[test]
fn a_change_that_waits_for_company_is_not_done_for_who_is_told_to_go() {
    let proxy = with_admin(&[]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE told_to_go (n int)");
    let insert = "INSERT INTO told_to_go VALUES (1) /* batch:1000 */";
    let mut done = until_known(&mut admin, "told_to_go", insert);
    // Nothing about it is unknown.
    done += end_while_it_waits(proxy.address(), insert, |client| {
        let kill = format!("KILL FOREBAY {}", client.process);
        at(proxy.address()).run(&kill);
    });
    admin.run(insert);
    assert_eq!(admin.ask("SELECT count(*) FROM told_to_go"), (done + 1).to_string());
    admin.run("DROP TABLE told_to_go");
}

/// Whatever moment it is: who is told to go is told no less than what became of what it had asked.
#[test]
fn who_is_told_to_go_is_told_the_truth() {
    let proxy = with_admin(&[]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE told_the_truth (n int)");
    let texts = [
        "INSERT INTO told_the_truth VALUES ($) /* batch:0 */",
        "BEGIN; INSERT INTO told_the_truth VALUES ($); COMMIT",
        "INSERT INTO told_the_truth SELECT $ FROM generate_series(1, 100)",
        "INSERT INTO told_the_truth SELECT $ FROM pg_sleep(60)",
    ];
    for number in 0..60 {
        let text = texts[number % texts.len()].replace('$', &number.to_string());
        let mut client = at(proxy.address());
        client.send(&query(&text));
        // A little later each time.
        let later = client.read_within(Duration::from_micros(1 + 100 * (number as u64 / 4)));
        let process = client.process;
        assert_eq!(admin.query(&format!("KILL FOREBAY {process}")).tags(), ["KILL"]);
        let mut words: Vec<_> = later.map(|first| first.expect("a message")).into_iter().collect();
        words.extend(client.last_words_or_answers());
        let tags = words.iter().filter(|word| word.kind == b'C').count();
        let failures: Vec<_> = words.iter().filter(|word| word.kind == b'E').collect();
        let [failure] = failures[..] else {
            panic!("{text}: {words:?}");
        };
        let is_done = match failure.failure().sqlstate() {
            "57P01" => tags == text.split(';').count(),
            "08007" => continue,
            other => panic!("{text}: {other}"),
        };
        let count = admin.ask(&format!("SELECT count(*) FROM told_the_truth WHERE n = {number}"));
        assert_eq!(count != "0", is_done, "{text}: {words:?}");
    }
    admin.run("DROP TABLE told_the_truth");
}
