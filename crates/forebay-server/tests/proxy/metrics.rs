//! What the metrics count of statements and errors.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use testbed::{Behaviour, Proxy as Way};

use crate::client::{Client, PATIENCE, bind, execute, parse, query, whole};
use crate::crowd::until;
use crate::hints::until_known;
use crate::reload::{DONE, Reloadable};
use crate::stream::Stage;
use crate::{at, postgres, proxy, proxy_of, straight};

/// A metric with these labels.
fn labelled(proxy: &testbed::Forebay, metric: &str) -> u64 {
    let metrics = proxy.metrics().unwrap();
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

const ALONE: &str = "forebay_statements_total{way=\"alone\"}";
const SHARED: &str = "forebay_statements_total{way=\"shared\"}";

#[test]
fn each_statement_is_counted_once_and_each_error_by_its_code() {
    let mut itself = straight(postgres());
    itself.run("CREATE TABLE counted (a int)");
    let proxy = proxy(postgres(), &[]);
    let mut clients: [Client; 2] = [(); 2].map(|()| at(proxy.address()));
    let [one, other] = &mut clients;
    assert_eq!(one.ask("SELECT 1"), "1");
    assert_eq!(one.pipeline(&[whole("SELECT 2", &[])]).value().as_deref(), Some("2"));
    for (sql, sqlstate) in [("SELECT 1/0", "22012"), ("SELECT 1/0", "22012"), ("SELEC", "42601")] {
        assert_eq!(other.query(sql).sqlstate(), sqlstate);
    }
    assert_eq!((labelled(&proxy, ALONE), labelled(&proxy, SHARED)), (5, 0));
    for (sqlstate, count) in [("22012", 2), ("42601", 1)] {
        let metric = format!("forebay_errors_total{{sqlstate=\"{sqlstate}\"}}");
        assert_eq!(labelled(&proxy, &metric), count, "{sqlstate}");
    }
    // Until some have travelled: what is to be known of the table is learnt meanwhile.
    let mut asked = 5;
    let begun = Instant::now();
    while labelled(&proxy, SHARED) == 0 {
        assert!(begun.elapsed() < PATIENCE, "none has travelled of {asked}");
        for client in [&mut *one, &mut *other] {
            client.send(&query("INSERT INTO counted VALUES (1) /* batch:20 */"));
        }
        for client in [&mut *one, &mut *other] {
            assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
        }
        asked += 2;
        assert_eq!(labelled(&proxy, ALONE) + labelled(&proxy, SHARED), asked);
    }
    let trips = labelled(&proxy, "forebay_trips_total");
    assert!((1..=labelled(&proxy, SHARED)).contains(&trips), "{trips}");
    assert_eq!(labelled(&proxy, "forebay_statements_joined_total"), 0);
    // The proxy's own refusals are errors, too.
    let mut ended = at(proxy.address());
    ended.send(&[&b"Q"[..], &[0xff; 4], b"nonsense"].concat());
    assert_eq!(ended.last_words()[0].failure().sqlstate(), "08P01");
    assert_eq!(labelled(&proxy, "forebay_errors_total{sqlstate=\"08P01\"}"), 1);
    itself.run("DROP TABLE counted");
}

/// All values of a metric, by what stands between its braces.
fn values(proxy: &testbed::Forebay, metric: &str) -> BTreeMap<String, f64> {
    let metrics = proxy.metrics().unwrap();
    let lines = metrics.lines().filter_map(|line| {
        let (labels, value) = line.strip_prefix(metric)?.strip_prefix('{')?.rsplit_once("} ")?;
        Some((labels.to_owned(), value.parse().expect("a number")))
    });
    lines.collect()
}

/// One of them.
fn value(proxy: &testbed::Forebay, metric: &str, labels: &str) -> f64 {
    values(proxy, metric).get(labels).copied().unwrap_or_default()
}

/// A proxy with rules of two names, one of which has what would end a label.
fn with_rules(fresh: &str) -> String {
    format!(
        "upstream = \"postgresql://SERVER/postgres\"\ncache_memory = \"8MiB\"\n\
         [[rule]]\nname = 'a \"figured\" \\ rule'\ntable = \"figured\"\nfresh = \"{fresh}\"\n\
         [[rule]]\nname = \"another\"\ntable = \"figured_other\"\nfresh = \"1h\"\n"
    )
}

#[test]
fn what_is_asked_is_counted_by_rule_caller_and_statement() {
    let mut reloadable = Reloadable::start(&with_rules("1h"), &[]);
    let mut itself = straight(postgres());
    itself.run("CREATE TABLE figured (n int, note text)");
    itself.run("INSERT INTO figured VALUES (1, 'secret')");
    let mut client = at(reloadable.proxy.address());
    let rule = r#"rule="a \"figured\" \\ rule""#;
    let statement = r#"statement="SELECT n FROM figured WHERE note = ?""#;
    let caller = r#"file="shop/app.php",line="42""#;
    let of = |proxy: &testbed::Forebay, kind: &str| {
        let of = [("rule", rule), ("caller", caller), ("statement", statement)];
        of.map(|(of, labels)| value(proxy, &format!("forebay_{of}_{kind}"), labels))
    };
    let mut asked = 0.0;
    let begun = Instant::now();
    until("it is remembered", || {
        assert_eq!(
            client.ask("SELECT n FROM figured WHERE note = 'secret' /* file:shop/app.php line:42 */"),
            "1"
        );
        asked += 1.0;
        of(&reloadable.proxy, "remembered_total") == [3.0; 3]
    });
    let went = |way: &str| value(&reloadable.proxy, "forebay_statements_total", &format!("way=\"{way}\""));
    assert_eq!([went("fetched"), went("shared"), went("remembered")], [1.0, 0.0, 3.0]);
    // The first ones and the fill, which is asked for all who wait.
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(of(&reloadable.proxy, "asked_total"), [asked; 3]);
    let at_database = of(&reloadable.proxy, "database_seconds_total");
    assert!(
        at_database.iter().all(|seconds| *seconds > 0.0 && *seconds < took),
        "{at_database:?} {took}"
    );
    client.ask("SELECT n FROM figured WHERE note = 'secret' /* file:shop/app.php line:42 */");
    assert_eq!(
        of(&reloadable.proxy, "database_seconds_total"),
        at_database,
        "memory costs the database nothing"
    );
    assert_eq!(
        value(&reloadable.proxy, "forebay_rule_asked_total", "rule=\"another\""),
        0.0
    );
    // What is prepared has its caller with it; and is another statement.
    let text = "SELECT n FROM figured WHERE note = $1 /* file:shop/app.php line:7 */";
    client.pipeline(&[parse("named", text)]).expect("prepared");
    for note in ["secret", "secret", "of nobody"] {
        client
            .pipeline(&[bind("", "named", &[note]), execute("", 0)])
            .expect("answered");
    }
    client.pipeline(&[whole(text, &["secret"])]).expect("answered");
    for (metric, labels) in [
        ("forebay_caller_asked_total", r#"file="shop/app.php",line="7""#),
        (
            "forebay_statement_asked_total",
            r#"statement="SELECT n FROM figured WHERE note = $1""#,
        ),
    ] {
        assert_eq!(value(&reloadable.proxy, metric, labels), 4.0, "{metric}");
    }
    // The time is the database's, and not the client's.
    client.run("SELECT pg_sleep(0.2) /* file:slow.php line:1 */");
    client.run("BEGIN /* file:idle.php */");
    itself.run("SELECT pg_sleep(0.4)");
    client.run("COMMIT");
    let seconds = |labels| value(&reloadable.proxy, "forebay_caller_database_seconds_total", labels);
    let (slow, idle) = (
        seconds(r#"file="slow.php",line="1""#),
        seconds(r#"file="idle.php",line="""#),
    );
    assert!((0.2..10.0).contains(&slow) && idle > 0.0 && idle < 0.4, "{slow} {idle}");
    let metrics = reloadable.proxy.metrics().unwrap();
    assert!(
        !metrics.contains("secret") && !metrics.contains("of nobody"),
        "{metrics}"
    );
    // What was known of statements is forgotten with what was said of them, and what was counted is not.
    let before = of(&reloadable.proxy, "asked_total");
    reloadable.place(&with_rules("2h"));
    reloadable.reload(DONE);
    assert_eq!(of(&reloadable.proxy, "asked_total"), before);
    client.run("SELECT n FROM figured WHERE note = 'secret' /* file:shop/app.php line:42 */");
    let one_more = before.map(|count| count + 1.0);
    // Behind the answer's last byte.
    until("it is counted", || of(&reloadable.proxy, "asked_total") == one_more);
    itself.run("DROP TABLE figured");
}

#[test]
fn those_who_ask_most_are_shown_and_all_others_as_one() {
    let proxy = proxy(postgres(), &[]);
    let mut client = at(proxy.address());
    let all = || {
        let callers = values(&proxy, "forebay_caller_asked_total");
        let sum: f64 = callers.values().sum();
        (
            callers.len(),
            sum,
            callers.get(r#"file="other",line="""#).copied().unwrap_or_default(),
        )
    };
    let ask = |client: &mut Client, file: &str| client.run(&format!("SELECT 1 /* file:{file} */"));
    for _ in 0..3 {
        ask(&mut client, "often");
    }
    // Somebody who is called as they are is one of them.
    ask(&mut client, "other");
    for number in 0..300 {
        ask(&mut client, &format!("rare{number}"));
        if number % 100 == 0 {
            all();
        }
    }
    let (count, sum, others) = all();
    assert!((200..=201).contains(&count) && others >= 100.0, "{count} {others}");
    assert_eq!(sum, 304.0);
    assert_eq!(
        value(&proxy, "forebay_caller_asked_total", r#"file="often",line="""#),
        3.0
    );
    for number in 0..250 {
        client.run(&format!("SELECT 1 AS many{number}"));
    }
    let statements = values(&proxy, "forebay_statement_asked_total");
    assert_eq!(statements.len(), 201);
    assert_eq!(statements.values().sum::<f64>(), 304.0 + 250.0);
    assert_eq!(statements[r#"statement="SELECT ?""#], 304.0);
}

/// Those who travel share the time of their trip, which is long where the server is far.
#[test]
fn what_travels_is_counted_by_its_part() {
    const CLIENTS: u32 = 24;
    let way = Way::start(postgres().address()).unwrap();
    let url = format!("postgresql://{}/postgres", way.address());
    let proxy = proxy_of(&url, &["--admin-users", "postgres"]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE figured_trip (n int)");
    let insert = "INSERT INTO figured_trip VALUES (1) /* batch:50 file:trip.php line:1 */";
    let one_way = Duration::from_millis(8);
    way.set(Behaviour::Delay(one_way));
    until_known(&mut admin, "figured_trip", insert);
    let labels = r#"file="trip.php",line="1""#;
    let of = |kind: &str| value(&proxy, &format!("forebay_caller_{kind}"), labels);
    let (asked, seconds) = (of("asked_total"), of("database_seconds_total"));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(proxy.address())).collect();
    let begun = Instant::now();
    for client in &mut clients {
        client.send(&query(insert));
    }
    for client in &mut clients {
        assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
    }
    let took = begun.elapsed().as_secs_f64();
    assert!(labelled(&proxy, SHARED) >= CLIENTS.into(), "they have travelled");
    assert_eq!(of("asked_total"), asked + f64::from(CLIENTS));
    let added = of("database_seconds_total") - seconds;
    assert!(added >= 2.0 * one_way.as_secs_f64() && added < took, "{added} {took}");
    way.set(Behaviour::Pass);
    admin.run("DROP TABLE figured_trip");
}

#[test]
fn the_metrics_tell_how_the_stream_stands() {
    let stage = Stage::new("metered", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE metered (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO metered VALUES (1, 0)");
    let of = |metric: &str| {
        let all = values(&stage.reloadable.proxy, &format!("forebay_stream_{metric}"));
        all.get("database=\"metered\"")
            .copied()
            .unwrap_or_else(|| panic!("{metric}: {all:?}"))
    };
    assert_eq!(
        (of("lag_seconds"), of("tables"), of("beginnings_total")),
        (f64::INFINITY, 0.0, 0.0)
    );
    let read = "/* ttl:3600 */ SELECT n FROM metered";
    stage.until_remembered(&mut client, read, "SELECT n FROM metered");
    assert!(of("lag_seconds") < 60.0);
    assert_eq!((of("tables"), of("beginnings_total")), (1.0, 1.0));
    until("the catalog is looked at", || of("look_seconds") > 0.0);
    let commits = of("commits_total");
    server.run("UPDATE metered SET n = 1");
    until("it is told", || of("commits_total") == commits + 1.0);
    let changes = of("catalog_changes_total");
    server.run("ALTER TABLE metered ADD COLUMN more int");
    until("it is seen", || of("catalog_changes_total") > changes);
    // What is not ended is to be read again from its beginning.
    server.run("BEGIN");
    server.run("INSERT INTO metered SELECT n, n FROM generate_series(2, 2000) n");
    until("some is held back", || of("held_wal_bytes") > 100_000.0);
    server.run("COMMIT");
    stage.straight().run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'metered' AND backend_type = 'walsender'",
    );
    until("it begins anew", || {
        client.run(read);
        of("beginnings_total") == 2.0
    });
}
