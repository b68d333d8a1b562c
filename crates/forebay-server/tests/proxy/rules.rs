//! What the configuration says of statements and sessions without touching them.

use std::net::SocketAddr;

use crate::client::{Client, Row, query, sync, whole};
use crate::crowd::until;
use crate::hints::until_known;
use crate::reload::{DONE, Reloadable};
use crate::{at, postgres, straight};

const CLIENTS: usize = 12;

fn with_rules(rules: &str) -> Reloadable {
    Reloadable::start(
        &format!("upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n{rules}"),
        &[],
    )
}

fn named(address: SocketAddr, application: &str) -> Client {
    let who = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("application_name", application),
    ];
    Client::connect_with(address, &who).unwrap_or_else(|error| panic!("refused: {error:?}"))
}

/// What is known of statements that begin like this: how often each travelled, on how many trips, and how often it joined another.
fn known(admin: &mut Client, begins: &str) -> Vec<[u64; 3]> {
    let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
    let number = |text: &Option<String>| text.as_deref().expect("a number").parse().expect("a number");
    let rows = shown.rows().into_iter();
    let of = rows.filter(|row| row[2].as_deref().is_some_and(|text| text.starts_with(begins)));
    of.map(|row| [3, 4, 8].map(|column| number(&row[column]))).collect()
}

/// All ask at the same time.
fn together(clients: &mut [Client], text: &str) {
    for client in &mut *clients {
        client.send(&query(text));
    }
    for client in clients {
        assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
    }
}

const BATCH: &str = "[[rule]]\nname = \"alone\"\nstatement = \"INSERT INTO ruled VALUES (7)\"\nbatch = \"0\"\n\
                     [[rule]]\nname = \"together\"\ntable = \"ruled\"\nbatch = \"400ms\"\n";

#[test]
fn a_rule_says_who_waits_for_company_and_a_hint_goes_before_it() {
    let mut reloadable = with_rules(BATCH);
    let address = reloadable.proxy.address();
    let mut admin = at(address);
    admin.run("CREATE TABLE ruled (n int, m int)");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(address)).collect();
    let by_table = "INSERT INTO ruled (n) VALUES (1)";
    let by_text = "INSERT INTO  ruled VALUES (1) -- of any number";
    until_known(&mut admin, "ruled", by_text);
    together(&mut clients, by_text);
    assert_eq!(known(&mut admin, "INSERT INTO ruled VALUES"), [[0, 0, 0]]);
    until_known(&mut admin, "ruled (n)", &format!("{by_table} /* batch:0 */"));
    together(&mut clients, by_table);
    let [[shared, trips, 0]] = known(&mut admin, "INSERT INTO ruled (n)")[..] else {
        panic!("it is known")
    };
    assert!(shared == CLIENTS as u64 && trips <= 2, "{shared} on {trips}");
    together(&mut clients, &format!("/* batch:0 */ {by_table}"));
    assert_eq!(known(&mut admin, "INSERT INTO ruled (n)"), [[shared, trips, 0]]);
    // Another rule from now on, for clients who stay.
    reloadable.place(
        "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n\
         [[rule]]\nname = \"other\"\nstatement = \"INSERT INTO ruled VALUES (7)\"\nuser = \"postgres\"\nbatch = \"400ms\"\n",
    );
    reloadable.reload(DONE);
    for text in [by_text, by_table] {
        let begins = if text == by_text { "ruled" } else { "ruled (n)" };
        until_known(&mut admin, begins, &format!("{text}/* batch:0 */"));
        together(&mut clients, text);
    }
    let [[shared, trips, 0]] = known(&mut admin, "INSERT INTO ruled VALUES")[..] else {
        panic!("it is known")
    };
    assert!(shared == CLIENTS as u64 && trips <= 2, "{shared} on {trips}");
    assert_eq!(known(&mut admin, "INSERT INTO ruled (n)"), [[0, 0, 0]]);
}

#[test]
fn a_rule_says_that_the_name_of_an_application_is_no_matter() {
    for (rule, companies) in [
        ("", CLIENTS),
        ("[[rule]]\nname = \"any\"\napplication_name = \"ignored\"\n", 1),
    ] {
        let batch = "[[rule]]\nname = \"all\"\nbatch = \"400ms\"\n";
        let reloadable = with_rules(&format!("{rule}{batch}"));
        let address = reloadable.proxy.address();
        straight(postgres()).run("DROP TABLE IF EXISTS called;");
        let mut admin = at(address);
        admin.run("CREATE TABLE called (n int)");
        let mut clients: Vec<Client> = (0..CLIENTS)
            .map(|number| named(address, &format!("worker {number}")))
            .collect();
        let insert = "INSERT INTO called VALUES (1)";
        // Each has to find out by itself, or one for all; on a busy machine that takes a while.
        until("all may travel", || {
            for client in &mut clients {
                client.run("INSERT INTO called VALUES (1) /* batch:0 */");
            }
            let shown = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
            let own = |row: &&Vec<Option<String>>| {
                row[2]
                    .as_deref()
                    .is_some_and(|text| text.starts_with("INSERT INTO called"))
            };
            shown.iter().filter(own).all(|row| row[6].is_none())
        });
        together(&mut clients, insert);
        let all = known(&mut admin, insert.split_once(" (").unwrap().0);
        let shared: u64 = all.iter().map(|[shared, ..]| shared).sum();
        assert_eq!((all.len(), shared), (companies, CLIENTS as u64), "{all:?}");
        let trips: u64 = all.iter().map(|[_, trips, _]| trips).sum();
        assert!(companies > 1 || trips <= 2, "{trips}");
        assert_eq!(
            clients[3].ask("SHOW application_name"),
            "worker 3",
            "it is its own still"
        );
    }
}

/// What a driver or another hand makes of a statement is the same one; what a rule was of is counted, and each execution once.
#[test]
fn a_rule_is_of_its_statement_however_it_is_written_and_counts_it() {
    let reloadable = with_rules(
        "[[rule]]\nname = \"day\"\nstatement = \"SELECT day, sum(price) FROM Orders WHERE id > 0 GROUP BY day\"\nbatch = \"400ms\"\n\
         [[rule]]\nname = \"joined\"\ntable = \"orders_gate\"\njoin = \"in flight\"\n\
         [[rule]]\nname = \"of nobody\"\nuser = \"nobody\"\nbatch = \"1ms\"\n",
    );
    let address = reloadable.proxy.address();
    let mut stranger = straight(postgres());
    stranger.run("CREATE TABLE orders (id int, day int, price int)");
    stranger.run("CREATE TABLE orders_gate AS SELECT 1 n");
    stranger.run("CREATE TABLE orders_numbers AS SELECT generate_series(1, 900) n");
    let mut admin = at(address);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(address)).collect();
    let texts = [
        "select day,sum(price) from orders where id>0 group by day;",
        "SELECT  DAY , SUM (price) FROM orders WHERE id > -1.5 -- all\n GROUP BY day",
    ];
    let many = CLIENTS as u64;
    let number = |text: &Option<String>| text.as_deref().expect("a number").parse::<u64>().expect("a number");
    let shared_of = |admin: &mut Client| -> u64 {
        let shown = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
        let is_of_it = |row: &&Row| {
            row[2]
                .as_deref()
                .is_some_and(|text| text.to_lowercase().starts_with("select day"))
        };
        shown.iter().filter(is_of_it).map(|row| number(&row[3])).sum()
    };
    // What is quick goes together, and where the machine is busy it is found to be that at another time.
    let mut met = 0;
    let mut by_all = |clients: &mut Vec<Client>, ask: &dyn Fn(&mut Client)| {
        let before = shared_of(&mut admin);
        until("all to go together", || {
            clients.iter_mut().for_each(ask);
            clients
                .iter_mut()
                .for_each(|client| drop(client.answer().expect("answered")));
            met += many;
            shared_of(&mut admin) >= before + many
        });
    };
    for text in texts {
        for _ in 0..6 {
            clients[0].run(&format!("{text} /* batch:0 */"));
        }
        by_all(&mut clients, &|client| client.send(&query(text)));
    }
    let by_driver = "SELECT day, sum(price) FROM orders WHERE id > $1 GROUP BY day";
    let ask = |client: &mut Client| client.send(&[whole(by_driver, &["0"]), sync()].concat());
    for _ in 0..6 {
        ask(&mut clients[0]);
        clients[0].answer().expect("answered");
    }
    by_all(&mut clients, &ask);
    met += 3 * 6;
    // Of one that is only joined.
    let read = &SLOW.replace("gate", "orders_gate").replace("numbers", "orders_numbers");
    for _ in 0..6 {
        admin.run(read);
    }
    stranger.run("BEGIN");
    stranger.run("LOCK TABLE orders_gate");
    let mut probe = straight(postgres());
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'orders_gate'::regclass";
    clients[0].send(&query(read));
    until("one to wait", || probe.ask(waits) == "1");
    for client in &mut clients[1..] {
        client.send(&query(read));
    }
    until("all to ask", || {
        let shown = admin.query("SHOW FOREBAY CLIENTS").expect("shown");
        let rows = shown.rows();
        rows.iter().filter(|row| row[5].as_deref() == Some("waiting")).count() == CLIENTS
    });
    stranger.run("COMMIT");
    clients
        .iter_mut()
        .for_each(|client| drop(client.answer().expect("answered")));
    admin.run("SELECT pg_sleep(0.002)");
    let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
    let counts = |text: &str| {
        let rows = shown.rows();
        let row = rows.iter().find(|row| row[2].as_deref() == Some(text)).expect(text);
        ([3, 5, 8].map(|column| number(&row[column])), row[6].clone())
    };
    // Whoever is joined has gone alone; the others of a statement are each counted once.
    let (of_the_read, why) = counts(&read.replace("> 0", "> ?"));
    assert_eq!(of_the_read, [0, 7, many - 1]);
    assert!(why.is_some_and(|why| why.ends_with("and is only joined")));
    let (of_the_sleep, why) = counts("SELECT pg_sleep(?)");
    assert_eq!(of_the_sleep, [0, 1, 0]);
    assert!(why.is_some_and(|why| why.starts_with("it calls pg_sleep,")));
    let shared = shared_of(&mut admin);
    let totals: Vec<u64> = shown
        .rows()
        .iter()
        .map(|row| [3, 5, 8].map(|at| number(&row[at])).iter().sum())
        .collect();
    assert!(totals.is_sorted_by(|one, next| one >= next), "{totals:?}");
    let rules = admin.query("SHOW FOREBAY RULES").expect("shown").rows();
    let told: Vec<Vec<&str>> = rows(&rules);
    let (met, shared, joined) = (met.to_string(), shared.to_string(), (many - 1).to_string());
    assert_eq!(
        told,
        [
            vec![
                "day",
                "statements like SELECT day, sum(price) FROM Orders WHERE id > ? GROUP BY day wait 400ms for company",
                &met,
                &shared,
                "0",
                "0"
            ],
            vec![
                "joined",
                "statements that name orders_gate join what is on its way",
                &(many + 6).to_string(),
                "0",
                &joined,
                "0"
            ],
            vec![
                "of nobody",
                "statements of nobody wait 1ms for company",
                "0",
                "0",
                "0",
                "0"
            ],
        ]
    );
    admin.run("DROP TABLE orders, orders_gate, orders_numbers");
}

fn rows(rows: &[Row]) -> Vec<Vec<&str>> {
    rows.iter().map(texts).collect()
}

fn texts(row: &Row) -> Vec<&str> {
    row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect()
}

/// Statements of sessions that have set something else stand in rows of their own, and what those have set is said; not to which value.
#[test]
fn rows_of_one_text_say_whose_they_are() {
    let reloadable = with_rules("");
    let address = reloadable.proxy.address();
    let mut admin = named(address, "console");
    let mut web = named(address, "web");
    web.run("SELECT 1 AS whose");
    let mut other = named(address, "other");
    other.run("SET work_mem = '321kB'");
    let mut of = Vec::new();
    // Who asks at once goes on where it has set that.
    until("both to be known", || {
        other.run("SELECT 2 AS whose");
        let shown = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
        let of_it = |row: &Row| row[2].as_deref() == Some("SELECT ? AS whose");
        of = shown.into_iter().filter(of_it).collect::<Vec<Row>>();
        of.len() == 2
    });
    of.sort_by_key(|row| row[10].clone());
    let told: Vec<Vec<&str>> = rows(&of).into_iter().map(|row| row[10..12].to_vec()).collect();
    assert_eq!(told, [["other", "work_mem"], ["web", "NULL"]]);
    assert_ne!(of[0][9], of[1][9]);
}

/// More than anybody who is quick has to do.
const SLOW: &str = "SELECT count(*) FROM gate, numbers a, numbers b WHERE a.n + b.n > 0";

fn gated(name: &str) -> String {
    SLOW.replace("gate", name)
}

#[test]
fn a_read_joins_another_that_is_on_its_way_but_not_past_what_its_client_did() {
    let reloadable = with_rules("[[rule]]\nname = \"slow\"\ntable = \"gate\"\njoin = \"in flight\"\n");
    let address = reloadable.proxy.address();
    let mut stranger = straight(postgres());
    stranger.run("CREATE TABLE gate (n int); CREATE TABLE free (n int);");
    stranger.run("INSERT INTO gate VALUES (1); INSERT INTO free VALUES (1);");
    stranger.run("CREATE TABLE numbers AS SELECT generate_series(1, 900) n;");
    let mut admin = at(address);
    for _ in 0..4 {
        // How long the way is.
        admin.run("SELECT n FROM free");
    }
    for _ in 0..6 {
        assert_eq!(admin.ask(&gated("gate")), "810000");
        assert_eq!(admin.ask(&gated("free")), "810000");
    }
    let joined = |admin: &mut Client, name: &str| known(admin, &format!("SELECT count(*) FROM {name}"))[0][2];
    assert_eq!(joined(&mut admin, "gate"), 0);
    let mut probe = straight(postgres());
    let mut wait_for = |count: &str| {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass";
        until("readers to wait", || probe.ask(waits) == count);
    };
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(address)).collect();
    let mut writer = at(address);
    // Nobody gets what he asks while this is open.
    stranger.run("BEGIN; LOCK TABLE gate;");
    clients[0].send(&query(&gated("gate")));
    wait_for("1");
    writer.run("INSERT INTO free VALUES (2)");
    writer.send(&query(&gated("gate")));
    wait_for("2");
    for client in &mut clients[1..] {
        client.send(&query(&gated("gate")));
    }
    // Who asks something else joins nobody.
    let mut other = at(address);
    other.send(&query(&gated("gate").replace("> 0", "> 1")));
    wait_for("3");
    // He wanted it first, and others still do.
    let mut cancelled = clients.remove(0);

    assert_eq!(cancelled.cancel_until_answered().sqlstate(), "57014");
    stranger.run("COMMIT");
    for client in clients.iter_mut().chain([&mut writer, &mut other]) {
        assert_eq!(client.answer().value().as_deref(), Some("810000"));
    }
    assert_eq!(joined(&mut admin, "gate"), CLIENTS as u64 - 1);
    assert_eq!(joined(&mut admin, "free"), 0);
}

#[test]
fn a_read_that_nobody_wants_any_more_is_ended() {
    let reloadable = with_rules("[[rule]]\nname = \"slow\"\njoin = \"in flight\"\n");
    let address = reloadable.proxy.address();
    let mut stranger = straight(postgres());
    stranger.run("CREATE TABLE left_gate (n int); INSERT INTO left_gate VALUES (1);");
    stranger.run("CREATE TABLE left_numbers AS SELECT generate_series(1, 900) n;");
    let mut admin = at(address);
    let text = SLOW.replace("gate", "left_gate").replace("numbers", "left_numbers");
    for _ in 0..4 {
        admin.run("SELECT n FROM left_gate");
    }
    for _ in 0..6 {
        assert_eq!(admin.ask(&text), "810000");
    }
    stranger.run("BEGIN; LOCK TABLE left_gate;");
    let mut probe = straight(postgres());
    let mut wait_for = |count: &str| {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'left_gate'::regclass";
        until("readers to wait", || probe.ask(waits) == count);
    };
    let mut clients: Vec<Client> = (0..4).map(|_| at(address)).collect();
    for client in &mut clients {
        client.send(&query(&text));
        wait_for("1");
    }
    drop(clients);
    wait_for("0");
    stranger.run("COMMIT");
    assert_eq!(admin.ask(&text), "810000");
}
