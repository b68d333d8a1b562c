//! Edges that no generated session reaches: each was a fault once.

use std::time::Duration;

use crate::client::Client;
use crate::{database, front};

fn message(tag: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag], &length[..], &body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), &[0]])
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), &[0], text.as_bytes(), &[0, 0, 0]])
}

fn bind(portal: &str, name: &str) -> Vec<u8> {
    message(b'B', &[portal.as_bytes(), &[0], name.as_bytes(), &[0; 7]])
}

fn execute(portal: &str, rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0], &rows.to_be_bytes()])
}

const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
const FLUSH: [u8; 5] = [b'H', 0, 0, 0, 4];

/// A proxy of so many connections in front of a database of its own.
fn proxy(name: &str, connections: usize) -> (String, String) {
    let upstream = database(name);
    (front::start(&upstream, connections), name.to_owned())
}

#[test]
fn what_is_flushed_and_not_synced_is_one_transaction_still() {
    let (proxy, database) = proxy("edge_flush", 2);
    let mut client = Client::connect(&proxy, &database, &[]);
    let mut stranger = Client::connect(&proxy, &database, &[]);
    client.run("CREATE TABLE t (a int)");
    client.send(
        &[
            parse("", "INSERT INTO t VALUES (1)"),
            bind("", ""),
            execute("", 0),
            FLUSH.to_vec(),
        ]
        .concat(),
    );
    assert!(client.until(b'C').contains("INSERT"));
    for _ in 0..2 {
        stranger.send(&query("SELECT count(*) FROM t"));
        let told = stranger.until(b'Z');
        assert!(told.contains("D "), "{told}");
    }
    client.send(&[parse("", "SELECT 1/0"), bind("", ""), execute("", 0), SYNC.to_vec()].concat());
    client.until(b'Z');
    stranger.send(&query("SELECT 'none' WHERE NOT EXISTS (SELECT FROM t)"));
    let told = stranger.until(b'Z');
    assert!(told.contains("none"), "what failed is there: {told}");
}

#[test]
fn whoever_has_settings_of_its_own_is_served_among_many() {
    let (proxy, database) = proxy("edge_served", 1);
    let clients: Vec<_> = (0..6)
        .map(|number| {
            let (proxy, database) = (proxy.clone(), database.clone());
            std::thread::spawn(move || {
                let mut client = Client::connect(&proxy, &database, &[("application_name", &format!("c{number}"))]);
                client.wait_at_most(Duration::from_secs(10));
                for _ in 0..20 {
                    client.send(&[parse("", "SELECT 1"), bind("", ""), execute("", 0), SYNC.to_vec()].concat());
                    let told = client.until(b'Z');
                    assert!(told.contains("SELECT 1"), "{told}");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}

/// Of settings that the client may not set none is set for it, whatever it has tried; what a function has set that may keeps it where it is.
#[test]
fn what_a_client_may_not_set_is_not_set_for_it_again() {
    let upstream = database("edge_may_not");
    let through = front::start(&upstream, 2);
    let mut itself = Client::connect(&upstream, "edge_may_not", &[]);
    itself.run("DO $$BEGIN CREATE ROLE edge_plain LOGIN; EXCEPTION WHEN duplicate_object THEN END$$");
    itself.run(
        "CREATE FUNCTION sets() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$SELECT set_config('log_statement', 'ddl', false)$$",
    );
    let plain = || Client::connect(&through, "edge_may_not", &[("user", "edge_plain")]);
    for (tries, setting) in [
        ("SELECT set_config('compute_query_id', 'on', false)", "compute_query_id"),
        ("SELECT set_config('seed', '0.5', false)", "seed"),
        ("SELECT sets()", "log_statement"),
    ] {
        let mut client = plain();
        client.send(&query(tries));
        client.until(b'Z');
        let shows = query(&format!("SHOW {setting}"));
        client.send(&shows);
        let shown = client.until(b'Z');
        // Strangers have both connections, one after the other.
        let mut strangers = [plain(), plain()];
        for turn in 0..6 {
            let stranger = &mut strangers[turn % 2];
            stranger.send(&query("SET work_mem = '1MB'"));
            stranger.until(b'Z');
            client.send(&shows);
            assert_eq!(client.until(b'Z'), shown, "{tries}");
        }
    }
}

#[test]
fn a_cancel_keeps_no_connection_from_others() {
    let upstream = database("edge_cancel");
    let (proxy, database) = (front::start(&upstream, 1), "edge_cancel");
    let mut watcher = Client::connect(&upstream, database, &[]);
    let sleeps = "SELECT 'sleeps' FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = 'edge_cancel'";
    let mut client = Client::connect(&proxy, database, &[]);
    let mut stranger = Client::connect(&proxy, database, &[]);
    stranger.wait_at_most(Duration::from_secs(10));
    for _ in 0..10 {
        client.send(&query("SELECT pg_sleep(20)"));
        // What has not begun cannot be cancelled.
        loop {
            watcher.send(&query(sleeps));
            if watcher.until(b'Z').contains("sleeps\nC") {
                break;
            }
        }
        client.cancel(&proxy);
        let told = client.until(b'Z');
        assert!(told.contains("57014"), "{told}");
        stranger.send(&query("SELECT 1"));
        let told = stranger.until(b'Z');
        assert!(told.contains("SELECT 1"), "{told}");
    }
}

/// By the words of a text that is put together nobody sees what it deallocates.
#[test]
fn what_strangers_destroy_or_alter_heals() {
    let (proxy, database) = proxy("edge_heals", 1);
    let mut client = Client::connect(&proxy, &database, &[]);
    let mut stranger = Client::connect(&proxy, &database, &[]);
    client.run("CREATE TABLE t (a int)");
    let prepared = |name: &str| {
        [
            parse(name, "SELECT * FROM t"),
            bind("", name),
            execute("", 0),
            SYNC.to_vec(),
        ]
        .concat()
    };
    let again = |name: &str| [bind("", name), execute("", 0), SYNC.to_vec()].concat();
    let ask = |client: &mut Client, bytes: &[u8]| {
        client.send(bytes);
        client.until(b'Z')
    };
    assert!(ask(&mut client, &prepared("one")).contains("SELECT 0"));
    stranger.run("DO $$BEGIN EXECUTE 'deallocate ' || 'all'; END$$");
    assert!(ask(&mut client, &again("one")).contains("26000"), "it is found out");
    assert!(ask(&mut client, &again("one")).contains("SELECT 0"));
    // Prepared before, as straight; prepared anew, it is new.
    stranger.run("ALTER TABLE t ADD COLUMN b int");
    assert!(ask(&mut client, &again("one")).contains("0A000"));
    assert!(ask(&mut client, &again("one")).contains("0A000"));
    assert!(ask(&mut client, &prepared("two")).contains("SELECT 0"));
    assert!(ask(&mut stranger, &prepared("three")).contains("SELECT 0"));
}

/// Who prepares what others have prepared gets the columns that there are now, whether or not those have failed with it.
#[test]
fn what_is_prepared_behind_a_change_of_its_table_is_new() {
    let (proxy, database) = proxy("edge_changes", 1);
    let mut client = Client::connect(&proxy, &database, &[]);
    let mut stranger = Client::connect(&proxy, &database, &[]);
    client.run("CREATE TABLE t (first int)");
    let ask = |client: &mut Client, messages: &[Vec<u8>]| {
        client.send(&messages.concat());
        client.until(b'Z')
    };
    let prepared = |name: &str| {
        let describe = message(b'D', &[b"S", name.as_bytes(), b"\0"]);
        [
            parse(name, "SELECT * FROM t"),
            describe,
            bind("", name),
            execute("", 0),
            SYNC.to_vec(),
        ]
    };
    assert!(ask(&mut client, &prepared("one")).contains("first"));
    stranger.run("ALTER TABLE t ADD COLUMN second int");
    let told = ask(&mut stranger, &prepared("one"));
    assert!(told.contains("second") && told.contains("SELECT 0"), "{told}");
    // In its own transaction, which nobody else sees yet.
    client.run("BEGIN");
    client.run("ALTER TABLE t ADD COLUMN third int");
    let told = ask(&mut client, &prepared("two"));
    assert!(told.contains("third") && told.contains("SELECT 0"), "{told}");
    client.run("COMMIT");
    let told = ask(&mut stranger, &prepared("three"));
    assert!(told.contains("third") && told.contains("SELECT 0"), "{told}");
}

/// Of errors, what they are and what they say. Of parameters' types, those that were told before, and not in front of an error that comes sooner through the
/// proxy: of what cannot be prepared any more.
fn comparable(told: &str, types_were_told: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in told.lines().filter(|line| types_were_told || !line.starts_with("t ")) {
        let Some(error) = line.strip_prefix("E ") else {
            lines.push(line.to_owned());
            continue;
        };
        lines.pop_if(|before| before.starts_with("t ") && !error.contains("C0A000"));
        let fields = error.split("\\x00").filter(|field| field.starts_with(['C', 'M']));
        lines.push(fields.collect::<Vec<_>>().join(" "));
    }
    lines.join("\n")
}

/// A statement whose client knows its columns, on a connection where it has yet to be prepared: it fails, or not, as it does straight.
#[test]
fn what_was_described_before_a_table_was_altered_fails_as_straight_on_any_connection() {
    let upstream = database("edge_described");
    let through = front::start(&upstream, 2);
    let mut server = Client::connect(&upstream, "edge_described", &[]);
    let tables = ["straight", "through"];
    let statements = [
        "SELECT * FROM t ORDER BY 1",
        "SELECT a FROM t WHERE a = $1",
        "SELECT b FROM t WHERE a = $1",
        "INSERT INTO t (a) VALUES ($1) RETURNING *",
        "UPDATE t SET a = a WHERE a = $1",
        "VALUES (1, 2)",
    ];
    let changes: [&[&str]; 9] = [
        &["ALTER TABLE t ADD COLUMN c text"],
        &["ALTER TABLE t DROP COLUMN b"],
        &["ALTER TABLE t RENAME COLUMN b TO c"],
        &["ALTER TABLE t ALTER COLUMN b TYPE varchar(9)"],
        &["ALTER TABLE t ALTER COLUMN a TYPE int8"],
        &["CREATE INDEX ON t (a)"],
        &["ALTER TABLE t ADD COLUMN c text", "ALTER TABLE t DROP COLUMN c"],
        &["DROP TABLE t"],
        &["CREATE TABLE s ()", "DROP TABLE s"],
    ];
    let mut differed = 0;
    for (text, has_parameter) in statements.map(|text| (text, text.contains('$'))) {
        for change in changes {
            // What has no columns is described by its parameters alone, of whatever is there; through the proxy it has to be prepared for that.
            if text.starts_with("UPDATE") && change == ["DROP TABLE t"] {
                continue;
            }
            for described in ["S", "P"] {
                let what = format!("{text}; {change:?}; {described}");
                let mut told = [&upstream, &through].map(|address| {
                    let place = tables[usize::from(address == &through)];
                    server.run(&format!("DROP SCHEMA IF EXISTS {place} CASCADE"));
                    server.run(&format!("CREATE SCHEMA {place}"));
                    server.run(&format!("CREATE TABLE {place}.t (a int, b text)"));
                    server.run(&format!("INSERT INTO {place}.t VALUES (1, 'one')"));
                    let new = || {
                        let mut client = Client::connect(address, "edge_described", &[]);
                        client.run(&format!("SET search_path = {place}"));
                        client
                    };
                    let [mut client, mut stranger, mut other] = [new(), new(), new()];
                    let mut told = String::new();
                    let bind = match has_parameter {
                        true => message(b'B', &[b"\0one\0", &[0, 0, 0, 1, 0, 0, 0, 1, b'1', 0, 0]]),
                        false => bind("", "one"),
                    };
                    let describe = message(b'D', &[b"Sone\0"]);
                    let ask = |client: &mut Client, messages: &[&[u8]]| {
                        client.send(&[messages.concat(), SYNC.to_vec()].concat());
                        client.answers(1)
                    };
                    let first = match described {
                        "S" => [parse("one", text), describe.clone()].concat(),
                        _ => [parse("one", text), bind.clone(), message(b'D', &[b"P\0"])].concat(),
                    };
                    told += &ask(&mut client, &[&first]);
                    for sql in change {
                        stranger.run(sql);
                    }
                    // Whoever has connections holds one of them, in turn.
                    for turn in 0..3 {
                        let holder = if turn == 1 { &mut other } else { &mut stranger };
                        holder.run("BEGIN");
                        for _ in 0..2 {
                            told += &ask(&mut client, &[&bind, &execute("", 0)]);
                        }
                        told += &ask(&mut client, &[&describe]);
                        told += &ask(&mut client, &[&bind, &execute("", 0), &bind, &execute("", 0)]);
                        holder.run("COMMIT");
                    }
                    // In a transaction that it ends.
                    client.run("BEGIN");
                    told += &ask(&mut client, &[&bind, &execute("", 0)]);
                    client.send(&query("SELECT 1"));
                    told += &client.answers(1);
                    client.run("ROLLBACK");
                    // Anew it has the columns that there are.
                    told += &ask(&mut client, &[&message(b'C', &[b"Sone\0"])]);
                    told += &ask(&mut client, &[&parse("one", text), &describe, &bind, &execute("", 0)]);
                    told
                });
                differed += usize::from(told[0].contains("0A000"));
                told.iter_mut()
                    .for_each(|told| *told = comparable(told, described == "S"));
                assert_eq!(told[1], told[0], "{what}");
            }
        }
    }
    assert!(differed > 10, "{differed}");
}

/// What we ask of the database stands behind nobody's locks: a client that needs none of them is not held up.
#[test]
fn ddl_that_is_open_elsewhere_holds_nobody_up() {
    let upstream = database("edge_locks");
    let through = front::start(&upstream, 2);
    let mut itself = Client::connect(&upstream, "edge_locks", &[]);
    itself.run("CREATE TABLE t (a int)");
    itself.run("CREATE VIEW v AS SELECT a FROM t");
    itself.run("CREATE FUNCTION sets() RETURNS text LANGUAGE sql AS $$ SELECT set_config('app.x', 'y', false) $$");
    itself.run("BEGIN");
    itself.run("LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    let mut client = Client::connect(&through, "edge_locks", &[]);
    client.wait_at_most(Duration::from_secs(20));
    client.send(&query("SELECT 'served'"));
    let told = client.until(b'Z');
    assert!(told.contains("served"), "{told}");
    itself.run("COMMIT");
    // What could not be read is taken for the worst, and nobody meets what is left.
    client.run("SELECT sets()");
    let mut stranger = Client::connect(&through, "edge_locks", &[]);
    stranger.send(&query("SELECT current_setting('app.x', true)"));
    let told = stranger.until(b'Z');
    assert!(!told.contains('y'), "{told}");
}

/// The server passes over the Sync behind the beginning of a copy, and answers it where the copy has failed before it read anything.
#[test]
fn a_copy_that_fails_is_answered_as_often_as_straight_and_the_session_goes_on() {
    let upstream = database("edge_copies");
    let through = front::start(&upstream, 1);
    let mut itself = Client::connect(&upstream, "edge_copies", &[]);
    itself.run("CREATE TABLE t (a int)");
    itself.run("CREATE TABLE guarded (a int)");
    itself.run("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never'; END $$");
    itself.run("CREATE TRIGGER no BEFORE INSERT ON guarded FOR EACH STATEMENT EXECUTE FUNCTION no()");
    let begin = |table: &str| {
        let text = format!("COPY {table} FROM STDIN");
        [parse("", &text), bind("", ""), execute("", 0), SYNC.to_vec()].concat()
    };
    let rows = |rows: &str| [message(b'd', &[rows.as_bytes()]), message(b'c', &[]), SYNC.to_vec()].concat();
    let fail = [message(b'f', &[b"given up\0"]), SYNC.to_vec()].concat();
    let behind = [
        query("SELECT 'behind'"),
        parse("", "SELECT 'last'"),
        bind("", ""),
        execute("", 0),
        SYNC.to_vec(),
    ]
    .concat();
    for (what, table, sent, waits) in [
        ("good", "t", rows("1\n2\n"), true),
        ("bad", "t", rows("1\nx\n"), true),
        ("given up", "t", fail.clone(), true),
        ("refused when it begins", "guarded", rows("1\n"), true),
        ("refused before", "nowhere", rows("1\n"), false),
        ("good, at once", "t", rows("1\n2\n"), false),
        ("bad, at once", "t", rows("1\nx\n"), false),
        ("given up, at once", "t", fail, false),
    ] {
        let [straight, through] = [&upstream, &through].map(|address| {
            let mut client = Client::connect(address, "edge_copies", &[]);
            // Twice, so that what the first one leaves would be seen.
            let mut told = String::new();
            for _ in 0..2 {
                client.send(&begin(table));
                if waits {
                    told += &client.until(b'G');
                }
                if what == "refused when it begins" {
                    told += &client.until(b'Z');
                }
                client.send(&sent);
                client.send(&behind);
                while !told.ends_with("last\nC SELECT 1\0\n") {
                    let more = client.until(b'C');
                    assert!(!more.contains("ended: "), "{what}: {told}{more}");
                    told += &more;
                }
                told += &client.until(b'Z');
            }
            told
        });
        assert_eq!(through, straight, "{what}");
    }
    assert!(
        itself
            .ask(&crate::script::Step::query("SELECT count(*) FROM t"))
            .contains("8")
    );
}

/// The server ends a session that sends anything else in the midst of a copy.
#[test]
fn what_does_not_belong_into_a_copy_ends_the_session_as_straight() {
    let upstream = database("edge_no_copy");
    let through = front::start(&upstream, 1);
    Client::connect(&upstream, "edge_no_copy", &[]).run("CREATE TABLE t (a int)");
    let by_query = query("COPY t FROM STDIN");
    let by_execute = [
        parse("", "COPY t FROM STDIN"),
        bind("", ""),
        execute("", 0),
        SYNC.to_vec(),
    ]
    .concat();
    for (begin, what) in [
        (&by_query, bind("", "")),
        (&by_query, parse("", "SELECT 1")),
        (&by_query, message(b'D', &[b"S\0"])),
        (&by_query, message(b'C', &[b"S\0"])),
        (&by_query, execute("", 0)),
        (&by_query, query("SELECT 1")),
        (&by_execute, bind("", "")),
        (&by_execute, query("SELECT 1")),
        (&by_execute, parse("", "SELECT 1")),
    ] {
        for waits in [false, true] {
            let [straight, through] = [&upstream, &through].map(|address| {
                let mut client = Client::connect(address, "edge_no_copy", &[]);
                client.send(begin);
                let begun = if waits { client.until(b'G') } else { String::new() };
                client.send(&message(b'd', &[b"1\n"]));
                client.send(&what);
                client.send(&SYNC);
                let told = begun + &client.until(b'!');
                // Whether it has read the rest of what it was sent is chance.
                told.replace("ended: ConnectionReset", "ended: UnexpectedEof")
            });
            assert!(straight.contains("ended: "), "{straight}");
            assert_eq!(through, straight, "{}, waits: {waits}", char::from(what[0]));
        }
    }
}

/// What stands in one write behind a copy, and is one or says its words.
#[test]
fn several_copies_in_one_write_are_answered_as_straight() {
    let upstream = database("edge_many_copies");
    let through = front::start(&upstream, 1);
    Client::connect(&upstream, "edge_many_copies", &[]).run("CREATE TABLE t (a text)");
    let run = |text: &str| [parse("", text), bind("", ""), execute("", 0)].concat();
    let copy = run("COPY t FROM STDIN");
    let [row, end, flush] = [message(b'd', &[b"1\n"]), message(b'c', &[]), message(b'H', &[])];
    let fail = message(b'f', &[b"given up\0"]);
    let sync = SYNC.to_vec();
    let refused = run("COPY nowhere FROM STDIN");
    let mentions = run("INSERT INTO t VALUES ('copy from stdin')");
    let [by_query, no_column] = ["COPY t FROM STDIN", "COPY t (b) FROM STDIN"].map(query);
    let pipelines: [(&str, &[&Vec<u8>]); 9] = [
        ("one that is refused", &[&copy, &end, &sync, &refused, &sync]),
        ("words", &[&copy, &row, &end, &sync, &mentions, &sync]),
        (
            "early Syncs",
            &[&copy, &sync, &row, &end, &sync, &copy, &sync, &row, &end, &sync],
        ),
        (
            "and one refused",
            &[&copy, &sync, &row, &end, &sync, &refused, &sync, &row, &end, &sync],
        ),
        ("failed", &[&copy, &fail, &sync, &copy, &row, &end, &sync]),
        (
            "query",
            &[&no_column, &row, &copy, &sync, &row, &flush, &fail, &sync, &sync],
        ),
        (
            "behind a query",
            &[&query("SELECT 1"), &copy, &sync, &row, &fail, &sync, &sync],
        ),
        (
            "behind its own",
            &[&by_query, &row, &end, &copy, &sync, &row, &end, &sync],
        ),
        (
            "in one group",
            &[&copy, &row, &end, &copy, &row, &end, &mentions, &sync],
        ),
    ];
    for (what, pipeline) in pipelines {
        let [straight, through] = [&upstream, &through].map(|address| {
            let mut client = Client::connect(address, "edge_many_copies", &[]);
            client.wait_at_most(Duration::from_secs(20));
            let mut told = String::new();
            for _ in 0..2 {
                let bytes: Vec<u8> = pipeline.iter().flat_map(|part| part.iter().copied()).collect();
                client.send(&[bytes, query("SELECT 'behind ' || count(*) FROM t")].concat());
                while !told.contains("behind ") {
                    let more = client.until(b'D');
                    assert!(!more.contains("ended: "), "{what}: {told}{more}");
                    told += &more;
                }
                told = told.replace("behind ", "was behind");
                told += &client.until(b'Z');
            }
            client.run("TRUNCATE t");
            told
        });
        assert_eq!(through, straight, "{what}");
    }
}

/// The server passes over a Sync among rows, but one behind the row that fails; which one that was nobody is told.
#[test]
fn who_sends_a_sync_among_rows_that_fail_is_told_that_nobody_knows_its_answer() {
    let upstream = database("edge_late_syncs");
    let through = front::start(&upstream, 1);
    Client::connect(&upstream, "edge_late_syncs", &[]).run("CREATE TABLE t (a int)");
    let row = |row: &str| message(b'd', &[row.as_bytes()]);
    for begin in [
        query("COPY t FROM STDIN"),
        [parse("", "COPY t FROM STDIN"), bind("", ""), execute("", 0)].concat(),
    ] {
        for (rows, is_good) in [(["1\n", "2\n"], true), (["1\n", "x\n"], false)] {
            let mut client = Client::connect(&through, "edge_late_syncs", &[]);
            let sync = SYNC.to_vec();
            let end = message(b'c', &[]);
            client.send(
                &[&begin, &row(rows[0]), &sync, &row(rows[1]), &sync, &end, &sync]
                    .map(|part| &part[..])
                    .concat(),
            );
            let told = client.until(if is_good { b'Z' } else { b'!' });
            assert!(told.contains(if is_good { "COPY 2" } else { "08P01" }), "{told}");
        }
    }
}

/// Time in which the proxy takes what was sent, and asks what it asks: no client sees when it has.
#[allow(
    clippy::disallowed_methods,
    reason = "on the test's own thread, and there is nothing to wait for"
)]
fn let_the_proxy_read() {
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn half_a_message_keeps_no_connection_from_others() {
    let (proxy, database) = proxy("edge_half", 1);
    let mut client = Client::connect(&proxy, &database, &[]);
    let mut stranger = Client::connect(&proxy, &database, &[]);
    stranger.wait_at_most(Duration::from_secs(10));
    let whole = query("SELECT 'whole'");
    for before in [vec![], query("SELECT 1")] {
        client.send(&[&before[..], &whole[..9]].concat());
        if !before.is_empty() {
            client.until(b'Z');
        }
        let_the_proxy_read();
        stranger.send(&query("SELECT 1"));
        let told = stranger.until(b'Z');
        assert!(told.contains("SELECT 1"), "{told}");
        client.send(&whole[9..]);
        assert!(client.until(b'Z').contains("whole"));
    }
}

#[test]
fn what_only_another_role_may_set_is_set_before_the_role() {
    let (proxy, database) = proxy("edge_role", 1);
    let mut client = Client::connect(&proxy, &database, &[]);
    client
        .run("DROP ROLE IF EXISTS edge_role;\nCREATE ROLE edge_role;\nSET log_statement = 'all';\nSET ROLE edge_role");
    let mut stranger = Client::connect(&proxy, &database, &[]);
    for _ in 0..2 {
        for (of, user) in [(&mut stranger, "postgres"), (&mut client, "edge_role")] {
            of.send(&query("SELECT 'as ' || current_user"));
            let told = of.until(b'Z');
            assert!(told.contains(&format!("as {user}")), "{told}");
        }
    }
}

#[test]
fn what_is_left_is_asked_where_statements_have_no_time() {
    let (proxy, database) = proxy("edge_timeout", 2);
    let mut client = Client::connect(&proxy, &database, &[]);
    client.run("SET statement_timeout = '1ms'");
    client.send(&query("SELECT pg_sleep(1)"));
    let told = client.until(b'Z');
    assert!(told.contains("57014"), "{told}");
}

#[test]
fn settings_of_the_users_own_by_any_way_are_no_strangers() {
    let call = |name: &str| {
        let parts = [name, "leak", "f"].map(|part| {
            let length = u32::try_from(part.len()).unwrap().to_be_bytes();
            [&length[..], part.as_bytes()].concat()
        });
        message(
            b'F',
            &[&2078_u32.to_be_bytes(), &[0, 1, 0, 0, 0, 3], &parts.concat(), &[0, 0]],
        )
    };
    let (proxy, database) = proxy("edge_own", 6);
    for set in [
        query("SET \"app.x\" = 'leak'"),
        query("SET app.x.y = 'leak'"),
        query("DO $$BEGIN SET\tapp.x = 'leak'; END$$"),
        query("SELECT query_to_xml('SELECT set_config(''app.x'',''leak'',false)', true, false, '')"),
        call("app.x"),
    ] {
        let mut client = Client::connect(&proxy, &database, &[]);
        client.send(&set);
        client.until(b'Z');
        // What is left is asked behind the answer.
        let_the_proxy_read();
        let mut stranger = Client::connect(&proxy, &database, &[]);
        stranger.send(&query(
            "SELECT 'sees ' || coalesce(current_setting('app.x', true), '') || coalesce(current_setting('app.x.y', true), '')",
        ));
        let told = stranger.until(b'Z');
        assert!(!told.contains("leak"), "{set:?}: {told}");
        drop(client);
    }
}

/// By what is no SET and no set_config: a view that can be written, functions of extensions, and those that read whatever there is.
#[test]
fn what_is_set_in_passing_is_no_strangers() {
    let upstream = database("edge_passing");
    let through = front::start(&upstream, 8);
    let mut itself = Client::connect(&upstream, "edge_passing", &[]);
    itself.run("CREATE EXTENSION tablefunc; CREATE EXTENSION pg_trgm");
    itself.run("CREATE SCHEMA one");
    itself.run("CREATE VIEW one.sets AS SELECT set_config('lock_timeout', '79', false)");
    itself.run("SELECT pg_replication_origin_create('edge_passing')");
    for (sets, shows) in [
        (
            "UPDATE pg_settings SET setting = 'evil' WHERE name = 'search_path'",
            "SHOW search_path",
        ),
        ("SELECT set_limit(0.9)", "SELECT show_limit()"),
        (
            "SELECT crosstab2($$SELECT set_config('lock_timeout', '79', false), 'a', 'b'$$)",
            "SHOW lock_timeout",
        ),
        ("SELECT schema_to_xml('one', true, false, '')", "SHOW lock_timeout"),
        ("SELECT table_to_xml('one.sets', true, false, '')", "SHOW lock_timeout"),
        (
            "SELECT pg_replication_origin_session_setup('edge_passing')",
            "SELECT pg_replication_origin_session_is_setup()",
        ),
        (
            "SELECT pg_create_physical_replication_slot('edge_passing', true, true)",
            "SELECT count(*) FROM pg_replication_slots WHERE active_pid = pg_backend_pid()",
        ),
    ] {
        let ask = |client: &mut Client, text: &str| {
            client.send(&query(text));
            client.until(b'Z')
        };
        let mut client = Client::connect(&through, "edge_passing", &[]);
        let before = ask(&mut client, shows);
        ask(&mut client, sets);
        let set = ask(&mut client, shows);
        assert_ne!(set, before, "{sets}");
        // What is left is asked behind the answer.
        let_the_proxy_read();
        let mut stranger = Client::connect(&through, "edge_passing", &[]);
        assert_eq!(ask(&mut stranger, shows), before, "{sets}");
        assert_eq!(ask(&mut client, shows), set, "{sets}");
        ask(&mut client, "DISCARD ALL");
    }
    itself.run("SELECT pg_replication_origin_drop('edge_passing')");
}

/// Behind an error the server passes over all up to the Sync, also what would discard what is prepared.
#[test]
fn what_is_passed_over_is_not_waited_for() {
    let upstream = database("edge_passed");
    let through = front::start(&upstream, 1);
    Client::connect(&upstream, "edge_passed", &[]).run("CREATE TABLE t (a int)");
    let failing = bind("", "nowhere");
    let select = [parse("", "SELECT 'last'"), bind("", ""), execute("", 0)].concat();
    let copy = [parse("", "COPY t FROM STDIN"), bind("", ""), execute("", 0)].concat();
    let row = message(b'd', &[b"1\n"]);
    let sync = SYNC.to_vec();
    let pipelines: [&[&[u8]]; 4] = [
        &[&failing, &query("SET work_mem = '5MB'"), &select, &sync],
        &[&failing, &query("DISCARD ALL"), &select, &sync],
        &[
            &query("SELECT 1/0"),
            &row,
            &copy,
            &sync,
            &row,
            &message(b'f', &[b"no\0"]),
            &sync,
            &sync,
        ],
        &[
            &query("COPY nowhere FROM STDIN"),
            &row,
            &copy,
            &sync,
            &message(b'f', &[b"no\0"]),
            &sync,
        ],
    ];
    for pipeline in pipelines {
        for waits in [false, true] {
            let [straight, through] = [&upstream, &through].map(|address| {
                let mut client = Client::connect(address, "edge_passed", &[]);
                client.wait_at_most(Duration::from_secs(20));
                for part in pipeline {
                    client.send(part);
                    if waits {
                        let_the_proxy_read();
                    }
                }
                client.send(&query("SELECT 'behind'"));
                let mut told = String::new();
                while !told.contains("behind") {
                    let more = client.until(b'D');
                    assert!(!more.contains("ended: "), "{told}{more}");
                    told += &more;
                }
                told + &client.until(b'Z')
            });
            assert_eq!(through, straight, "waits: {waits}");
        }
    }
}

#[test]
fn nobody_has_anothers_numbers() {
    let ask = |of: &mut Client, bytes: &[u8]| {
        of.send(bytes);
        of.until(b'Z')
    };
    let (draw, last) = (
        query("INSERT INTO t DEFAULT VALUES"),
        query("SELECT 'last ' || lastval()"),
    );
    let prepared = [
        parse("", "SELECT 'last ' || currval('t_a_seq')"),
        bind("", ""),
        execute("", 0),
        SYNC.to_vec(),
    ]
    .concat();
    for (database, asked) in [("edge_lastval", &last), ("edge_currval", &prepared)] {
        let (proxy, database) = proxy(database, 1);
        let mut client = Client::connect(&proxy, &database, &[]);
        let mut stranger = Client::connect(&proxy, &database, &[]);
        client.run("CREATE TABLE t (a serial)");
        ask(&mut client, &draw);
        assert!(ask(&mut stranger, asked).contains("55000"));
        assert!(ask(&mut client, asked).contains("55000"), "others had the connection");
        ask(&mut client, &draw);
        assert!(ask(&mut client, asked).contains("last "), "nobody has");
        assert!(ask(&mut stranger, asked).contains("55000"));
        // Also where a transaction has begun before it asks.
        ask(&mut client, &draw);
        ask(&mut stranger, &query("BEGIN"));
        assert!(ask(&mut stranger, asked).contains("55000"));
        ask(&mut stranger, &query("ROLLBACK; BEGIN"));
        ask(&mut stranger, &draw);
        assert!(ask(&mut stranger, asked).contains("last "));
        ask(&mut stranger, &query("COMMIT"));
    }
}

#[test]
fn nobody_has_anothers_statements() {
    let (proxy, database) = proxy("edge_names", 1);
    let mut client = Client::connect(&proxy, &database, &[]);
    let mut stranger = Client::connect(&proxy, &database, &[]);
    client.send(&[parse("mine", "SELECT 'secret'"), SYNC.to_vec()].concat());
    client.until(b'Z');
    for number in 1..9 {
        let name = format!("forebay:{number}");
        stranger.send(&[bind("", &name), execute("", 0), SYNC.to_vec()].concat());
        let told = stranger.until(b'Z');
        assert!(told.contains("26000") && !told.contains("secret"), "{told}");
        stranger.send(&[message(b'C', &[b"S", name.as_bytes(), &[0]]), SYNC.to_vec()].concat());
        stranger.until(b'Z');
    }
    client.send(&[bind("", "mine"), execute("", 0), SYNC.to_vec()].concat());
    let told = client.until(b'Z');
    assert!(told.contains("secret"), "{told}");
}
