//! Who travels with whom, as comments and the configuration say it.

use std::process::Command;
use std::time::{Duration, Instant};

use testbed::{Behaviour, Forebay, Proxy as Way};

use crate::client::{Client, bind, execute, message, parse, query, sync, whole};
use crate::{as_user, at, postgres, proxy, proxy_of};

const CLIENTS: usize = 16;

pub(crate) fn with_admin(arguments: &[&str]) -> Forebay {
    proxy(postgres(), &[&["--admin-users", "postgres"], arguments].concat())
}

/// How often inserts into that table travelled, on how many trips, and why they go alone; none before they are known.
fn shown(admin: &mut Client, table: &str) -> Option<(u64, u64, Option<String>)> {
    let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
    let inserts = format!("INSERT INTO {table} ");
    let row = shown
        .rows()
        .into_iter()
        .find(|row| row[2].as_deref().is_some_and(|text| text.contains(&inserts)))?;
    let number = |column: usize| row[column].as_deref().expect("a number").parse().expect("a number");
    Some((number(3), number(4), row[6].clone()))
}

/// Inserts until all is known of it; how often.
pub(crate) fn until_known(admin: &mut Client, table: &str, insert: &str) -> usize {
    let mut alone = 0;
    loop {
        match shown(admin, table) {
            Some((0, 0, None)) => return alone,
            known => assert!(alone < 100, "{known:?}"),
        }
        admin.run(insert);
        alone += 1;
    }
}

/// How often what begins like this travelled, and why it may not.
fn known_of(admin: &mut Client, begins: &str) -> Option<(u64, Option<String>)> {
    let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
    let mut rows = shown.rows().into_iter();
    let row = rows.find(|row| row[2].as_deref().is_some_and(|text| text.starts_with(begins)))?;
    Some((
        row[3].as_deref().expect("a number").parse().expect("a number"),
        row[6].clone(),
    ))
}

/// How often what begins like this travelled.
pub(crate) fn shared_of(admin: &mut Client, begins: &str) -> u64 {
    known_of(admin, begins).expect("it is known").0
}

/// Asks it without company until it may have some.
pub(crate) fn until_shareable(admin: &mut Client, begins: &str, text: &str) {
    let bare = text.split("/*").next().expect("a text");
    let text = format!("{bare}/* batch:0 */");
    for _ in 0..100 {
        if let Some((_, None)) = known_of(admin, begins) {
            return;
        }
        assert_eq!(admin.query(&text).sqlstate(), "00000");
    }
    panic!("{:?}", known_of(admin, begins));
}

/// How often the inserts of clients who come at the same time travelled, on how many trips.
fn insert_together(proxy: &Forebay, table: &str, hint: &str) -> (u64, u64) {
    let mut admin = at(proxy.address());
    admin.run(&format!("CREATE TABLE {table} (n int)"));
    let insert = format!("/* {hint} */ INSERT INTO {table} VALUES (1)");
    let alone = until_known(&mut admin, table, &insert);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(proxy.address())).collect();
    for client in &mut clients {
        client.send(&query(&insert));
    }
    for client in &mut clients {
        assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
    }
    let count = format!("SELECT count(*) FROM {table}");
    assert_eq!(admin.ask(&count), (CLIENTS + alone).to_string());
    let (shared, trips, _) = shown(&mut admin, table).expect("known");
    admin.run(&format!("DROP TABLE {table}"));
    (shared, trips)
}

#[test]
fn who_waits_for_company_has_it_and_who_wants_none_has_none() {
    let proxy = with_admin(&[]);
    let (shared, trips) = insert_together(&proxy, "waits", "file:a.py batch:400");
    assert_eq!(shared, CLIENTS as u64, "few as they are");
    assert!(trips <= 2, "{trips}");
    assert_eq!(insert_together(&proxy, "goes_alone", "batch:0"), (0, 0));
}

/// The way to the server and the commit are what company saves: they keep nobody out of it, however long they are.
#[test]
fn who_is_far_from_the_server_shares_too() {
    for one_way in [3, 8] {
        let way = Way::start(postgres().address()).unwrap();
        let url = format!("postgresql://{}/postgres", way.address());
        let proxy = proxy_of(&url, &["--admin-users", "postgres"]);
        way.set(Behaviour::Delay(Duration::from_millis(one_way)));
        let (shared, trips) = insert_together(&proxy, &format!("far_{one_way}"), "batch:400");
        assert_eq!(shared, CLIENTS as u64, "{one_way} ms");
        assert!(trips <= 2, "{trips}");
    }
}

/// Those who read or insert a row each are asked as one, once it is known how; each has its own answer, also where one of them fails.
#[test]
fn who_asks_alike_is_asked_as_one() {
    let proxy = with_admin(&[]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE alike (id int PRIMARY KEY, note text)");
    until_known(
        &mut admin,
        "alike",
        "INSERT INTO alike VALUES (-1, 'x') ON CONFLICT DO NOTHING",
    );
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(proxy.address())).collect();
    let mut number = 0;
    let mut insert = |clients: &mut [Client], is_extended: bool| {
        let first = number;
        for client in &mut *clients {
            let id = number.to_string();
            match is_extended {
                true => client.send(
                    &[
                        whole("INSERT INTO alike VALUES ($1, $2) /* batch:400 */", &[&id, "x"]),
                        sync(),
                    ]
                    .concat(),
                ),
                false => client.send(&query(&format!(
                    "INSERT INTO alike VALUES ({id}, 'it''s {id}') /* batch:400 */"
                ))),
            }
            number += 1;
        }
        let answers: Vec<_> = clients.iter_mut().map(Client::answer).collect();
        for (answer, id) in answers.iter().zip(first..) {
            let kinds = if is_extended { "12C" } else { "C" };
            assert_eq!(
                (answer.kinds().as_str(), answer.tags()),
                (kinds, vec!["INSERT 0 1".to_owned()]),
                "{id}"
            );
        }
    };
    let jointly = |admin: &mut Client, begins: &str| -> u64 {
        let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
        let rows = shown.rows().into_iter();
        let of = rows.filter(|row| row[2].as_deref().is_some_and(|text| text.starts_with(begins)));
        of.map(|row| row[7].as_deref().expect("a number").parse::<u64>().expect("a number"))
            .sum()
    };
    // At first it is learnt that it may be shared, that it is quick, and how it is asked as one.
    let begun = Instant::now();
    let is_given_up = || begun.elapsed() > Duration::from_secs(60);
    let mut rounds = 0;
    for (is_extended, begins) in [
        (true, "INSERT INTO alike VALUES ($1"),
        (false, "INSERT INTO alike VALUES (?"),
    ] {
        while jointly(&mut admin, begins) < CLIENTS as u64 {
            assert!(!is_given_up(), "{begins}");
            insert(&mut clients, is_extended);
            rounds += usize::from(is_extended);
        }
    }
    let simple = rounds * CLIENTS;
    // One has what is there already.
    let total = number;
    for (at, client) in clients.iter_mut().enumerate() {
        let id = if at == 5 { 7 } else { total + at };
        client.send(&query(&format!("INSERT INTO alike VALUES ({id}, 'x') /* batch:400 */")));
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let answer = client.answer();
        match at {
            5 => assert_eq!(answer.sqlstate(), "23505"),
            _ => assert_eq!(answer.tags(), ["INSERT 0 1"]),
        }
    }
    let count = admin.ask("SELECT count(*) FROM alike WHERE id >= 0");
    assert_eq!(count, (total + CLIENTS - 1).to_string());
    // Of those that were inserted in the one way and in the other.
    let asked = |at: usize| if at < CLIENTS / 2 { at } else { simple + at };
    while jointly(&mut admin, "SELECT note, id FROM alike") < CLIENTS as u64 {
        assert!(!is_given_up(), "reads");
        for (at, client) in clients.iter_mut().enumerate() {
            let id = asked(at);
            client.send(&query(&format!(
                "SELECT note, id FROM alike WHERE id = {id} /* batch:400 */"
            )));
        }
        for (at, client) in clients.iter_mut().enumerate() {
            let id = asked(at);
            let note = if id < simple {
                "x".to_owned()
            } else {
                format!("it's {id}")
            };
            assert_eq!(client.answer().rows(), [vec![Some(note), Some(id.to_string())]]);
        }
    }
    // Whom some rows do is told that there may be more: he goes with the others by himself.
    let read = "SELECT id, note FROM alike WHERE id = $1";
    let mut ask = |rows_max| {
        for (at, client) in clients.iter_mut().enumerate() {
            let bound = bind("", "", &[&asked(at).to_string()]);
            let text = format!("{read} /* batch:400 */");
            client.send(&[parse("", &text), bound, execute("", rows_max), sync()].concat());
        }
        let answers = clients.iter_mut().map(|client| client.answer().kinds());
        answers.collect::<Vec<_>>()
    };
    while jointly(&mut admin, read) < CLIENTS as u64 {
        assert!(!is_given_up(), "reads by the extended protocol");
        assert_eq!(ask(0), vec!["12DC"; CLIENTS]);
    }
    assert_eq!(ask(1), vec!["12Ds"; CLIENTS]);
    // Whose change stops behind some rows ends no command: nobody in one transaction with him would see it.
    let change = "UPDATE alike SET note = note || 'x' WHERE id = 0 RETURNING id";
    let mut change_it = |rows_max| {
        for client in &mut clients {
            let text = format!("{change} /* batch:100 */");
            client.send(&[parse("", &text), bind("", "", &[]), execute("", rows_max), sync()].concat());
        }
        let answers = clients.iter_mut().map(|client| client.answer().kinds());
        answers.collect::<Vec<_>>()
    };
    let travelled = |admin: &mut Client| {
        let rows = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
        let own = rows
            .iter()
            .find(|row| row[2].as_deref().is_some_and(|text| text.starts_with("UPDATE alike")));
        own.and_then(|row| row[3].clone()).is_some_and(|count| count != "0")
    };
    let mut changes = 0;
    while !travelled(&mut admin) {
        assert!(!is_given_up(), "changes travel");
        assert_eq!(change_it(0), vec!["12DC"; CLIENTS]);
        changes += CLIENTS;
    }
    for _ in 0..5 {
        assert_eq!(change_it(1), vec!["12Ds"; CLIENTS]);
        changes += CLIENTS;
    }
    let length = admin.ask("SELECT length(note) - 1 FROM alike WHERE id = 0");
    assert_eq!(length, changes.to_string());
    admin.run("DROP TABLE alike");
}

/// Who has much to do is in others' way, and they in its: also where it is the only one, so that the server may be far away as well.
#[test]
fn what_has_much_to_do_is_found_out_and_goes_alone() {
    let proxy = with_admin(&["--max-server-connections", "8"]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE much AS SELECT n FROM generate_series(1, 30000) n; ANALYZE much");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(proxy.address())).collect();
    let mut number = 0;
    for (begin, tag) in [
        ("SELECT n FROM much", "SELECT 0"),
        ("UPDATE much SET n = n", "UPDATE 0"),
    ] {
        let mut shown = || {
            let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
            let mut rows = shown.rows().into_iter();
            rows.find(|row| row[2].as_deref().is_some_and(|text| text.contains(begin)))
                .and_then(|row| row[6].clone())
        };
        // A round may share them, or find that they take too long at once; that they are is found in the end.
        let is_found = (0..200).any(|_| {
            for client in &mut clients {
                number += 1;
                client.send(&query(&format!("{begin} WHERE n % 7 < -{number} /* batch:100 */")));
            }
            for client in &mut clients {
                assert_eq!(client.answer().tags(), [tag]);
            }
            shown().is_some_and(|why| why == "it has more to do than others should wait for")
        });
        assert!(is_found, "{:?}", shown());
    }
}

/// What goes with each trip beside the clients' statements is parsed and planned once a connection, which takes longer than most trips.
#[test]
fn a_connection_prepares_what_goes_beside_once() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let mut other = at(proxy.address());
    let prepared = |client: &mut Client| -> u64 {
        // But for what was asked of each table.
        let count = "SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%beside\\_%'";
        client.ask(count).parse().expect("a number")
    };
    let before = prepared(&mut other);
    for round in 0..5 {
        let (shared, _) = insert_together(&proxy, &format!("beside_{round}"), "batch:400");
        assert_eq!(shared, CLIENTS as u64);
    }
    // Simple queries are prepared without a name.
    assert_eq!(prepared(&mut other) - before, 2, "the bound of locks and the guard");
}

/// Straight, too, a query is done whose client says that it goes, and goes.
#[test]
fn what_was_asked_before_a_farewell_is_done() {
    let proxy = with_admin(&[]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE farewells (n int)");
    let insert = "INSERT INTO farewells VALUES (1) /* batch:400 */";
    let alone = until_known(&mut admin, "farewells", insert);
    for count in 1..=3 {
        let mut client = at(proxy.address());
        client.send(&query(insert));
        // It waits for company, and nothing is behind it yet.
        assert!(client.read_within(Duration::from_millis(50)).is_none());
        client.send(&message(b'X', &[]));
        drop(client);
        let begun = Instant::now();
        while admin.ask("SELECT count(*) FROM farewells") != (alone + count).to_string() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{count} is not there");
        }
    }
    admin.run("DROP TABLE farewells");
}

/// Whoever is told something of its text, or could tell that its transaction began before, is as straight.
#[test]
fn notices_and_times_are_as_straight() {
    let proxy = with_admin(&[]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(proxy.address())).collect();
    let name = "n".repeat(70);
    for (sql, notices, value) in [
        (format!("SELECT 7 * 6 AS {name} /* batch:400 */"), true, "42"),
        (
            "SELECT now() = statement_timestamp() /* batch:400 */".to_owned(),
            false,
            "t",
        ),
    ] {
        for _ in 0..20 {
            clients[0].run(&sql);
        }
        for client in &mut clients {
            client.send(&query(&sql));
        }
        for client in &mut clients {
            let answer = client.answer();
            assert_eq!(answer.notice().is_some(), notices, "{sql}");
            assert_eq!(answer.value().as_deref(), Some(value), "{sql}");
        }
    }
}

/// A client may have the server forget what is asked beside: the next trip does without company, and all after it are as before.
#[test]
fn what_the_server_has_forgotten_is_prepared_again() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let mut other = at(proxy.address());
    assert_eq!(insert_together(&proxy, "known", "batch:400").0, CLIENTS as u64);
    other.run("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$");
    insert_together(&proxy, "forgotten", "batch:400");
    assert_eq!(insert_together(&proxy, "known_again", "batch:400").0, CLIENTS as u64);
}

/// Changes that get no answer have to wait for it; those who come behind them do not.
#[test]
fn changes_that_are_held_up_hold_nobody_else_up() {
    let proxy = with_admin(&["--max-server-connections", "3"]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE held_up (n int)");
    let insert = "INSERT INTO held_up VALUES (1) /* batch:400 */";
    let alone = until_known(&mut admin, "held_up", insert);
    let mut clients: Vec<Client> = (0..3 * CLIENTS).map(|_| at(proxy.address())).collect();
    // As many connections as carry changes at once, both idle.
    let processes = {
        let [one, other] = &mut clients[..2] else {
            unreachable!("there are more")
        };
        let both = [one, other].map(|client| {
            client.run("BEGIN");
            client.ask("SELECT pg_backend_pid()")
        });
        clients[..2].iter_mut().for_each(|client| drop(client.run("COMMIT")));
        both
    };
    let signal = |name: &str| {
        let sent = Command::new("kill").arg(name).args(&processes).status();
        assert!(sent.expect("kill is there").success());
    };
    let (held, free) = clients.split_at_mut(2 * CLIENTS);
    for group in held.chunks_mut(CLIENTS) {
        group.iter_mut().for_each(|client| client.send(&query(insert)));
        signal("-STOP");
        // They wait for company no longer, and are on their way.
        assert!(group[0].read_within(Duration::from_millis(600)).is_none());
    }
    free.iter_mut().for_each(|client| client.send(&query(insert)));
    let answered = free
        .iter_mut()
        .all(|client| matches!(client.read_within(Duration::from_secs(20)), Some(Ok(_))));
    signal("-CONT");
    assert!(answered, "they wait behind those that are held up");
    for client in held {
        assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
    }
    let count = admin.ask("SELECT count(*) FROM held_up");
    assert_eq!(count, (3 * CLIENTS + alone).to_string());
    admin.run("DROP TABLE held_up");
}

/// What the proxy asks beside is no client's.
#[test]
fn statements_of_the_proxys_own_are_not_shown() {
    let proxy = with_admin(&[]);
    assert_eq!(insert_together(&proxy, "unseen", "batch:400").0, CLIENTS as u64);
    let shown = at(proxy.address()).query("SHOW FOREBAY STATEMENTS").expect("shown");
    assert_eq!(shown.rows().len(), 0, "{shown:?}");
}

#[test]
fn who_waits_alone_is_answered_when_the_time_is_over() {
    let proxy = with_admin(&[]);
    let mut client = at(proxy.address());
    for _ in 0..20 {
        client.run("SELECT 7 * 6");
    }
    let begun = Instant::now();
    assert_eq!(client.ask("SELECT 7 * 6 /* batch:50 */"), "42");
    let took = begun.elapsed();
    // It knows by now that it may travel; no more is promised than that it does not wait much longer.
    assert!(
        took >= Duration::from_millis(50) && took < Duration::from_secs(5),
        "{took:?}"
    );
    // Whoever comes meanwhile, and waits for nobody, takes it along.
    let mut other = at(proxy.address());
    let begun = Instant::now();
    client.send(&query("SELECT 7 * 6 /* batch:1000 */"));
    // It waits, and nobody has told it to go.
    assert!(client.read_within(Duration::from_millis(50)).is_none());
    other.ask("SELECT 7 * 6");
    assert_eq!(client.answer().value().as_deref(), Some("42"));
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[test]
fn one_user_is_switched_off_or_alone_switched_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forebay.toml");
    for (general, own) in [(true, false), (false, true)] {
        std::fs::write(&file, format!("[[user]]\nname = \"postgres\"\nsharing = {own}\n")).unwrap();
        let sharing = format!("--sharing={general}");
        let proxy = with_admin(&["--config", file.to_str().unwrap(), &sharing]);
        let (sql, normal) = ("SELECT 6 * 7 /* batch:400 */", "SELECT ? * ?");
        for (user, shares) in [("postgres", own), ("trusted", general)] {
            let mut clients: Vec<Client> = (0..CLIENTS).map(|_| as_user(proxy.address(), user).unwrap()).collect();
            let mut admin = at(proxy.address());
            let mut travelled = || {
                let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
                let rows = shown.rows().into_iter();
                // All that this user asks.
                let mut rows = rows.filter(|row| row[1].as_deref() == Some(user) && row[2].as_deref() == Some(normal));
                rows.next().map(|row| {
                    (
                        row[3]
                            .as_deref()
                            .map(|number| number.parse::<usize>().expect("a number")),
                        row[6].clone(),
                    )
                })
            };
            for _ in 0..20 {
                if let Some((_, None)) = travelled() {
                    break;
                }
                clients[0].run(sql);
            }
            let before = travelled();
            for client in &mut clients {
                client.send(&query(sql));
            }
            for client in &mut clients {
                assert_eq!(client.answer().value().as_deref(), Some("42"));
            }
            let together = before
                .zip(travelled())
                .map(|(before, after)| after.0.zip(before.0).map(|(after, before)| after - before));
            assert_eq!(
                together.flatten(),
                shares.then_some(CLIENTS),
                "{user} of {general} and {own}"
            );
        }
    }
}
