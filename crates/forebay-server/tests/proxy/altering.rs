//! What passes the proxy to alter the catalog or roles, and what is remembered of before: beside the PostgreSQL that would have answered.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::client::{Answer, Client, bind, bind_raw, close, describe, execute, parse, query, sync};
use crate::crowd::until;
use crate::memory::{remembered, remembering, until_remembered};
use crate::reload::Reloadable;
use crate::{at, postgres, proxy, straight};

/// What makes a table, or changes what a view reads, by a statement whose tag does not say so; and what is called by more letters than count.
#[test]
fn what_alters_the_catalog_in_other_words_is_seen_at_once() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    let long = "a".repeat(70);
    for sql in [
        "CREATE SCHEMA altering",
        "CREATE TABLE altering.one (id int PRIMARY KEY, a int)",
        "CREATE TABLE altering.two (id int PRIMARY KEY, a int)",
        "INSERT INTO altering.one VALUES (1, 1)",
        "INSERT INTO altering.two VALUES (1, 2)",
        "CREATE VIEW altering.replaced AS SELECT a FROM altering.one",
        "CREATE VIEW altering.made AS SELECT a FROM altering.one",
        "CREATE VIEW altering.into_made AS SELECT a FROM altering.one",
        &format!("CREATE TABLE altering.{long} (id int PRIMARY KEY, a int)"),
        &format!("INSERT INTO altering.{long} VALUES (1, 1)"),
    ] {
        server.query(sql).expect(sql);
    }
    let of_long = format!("altering.{long}");
    let change_long = format!("UPDATE altering.{long} SET a = a + 1 WHERE id = 1");
    for (name, alter, change) in [
        (
            "altering.replaced",
            "DO $$ BEGIN CREATE OR REPLACE VIEW altering.replaced AS SELECT a FROM altering.two; END $$",
            "UPDATE altering.two SET a = a + 1 WHERE id = 1",
        ),
        (
            "altering.made",
            "DROP VIEW altering.made; CREATE TABLE altering.made AS SELECT 7 AS a",
            "UPDATE altering.made SET a = a + 1",
        ),
        (
            "altering.into_made",
            "DROP VIEW altering.into_made; SELECT 7 AS a INTO altering.into_made",
            "UPDATE altering.into_made SET a = a + 1",
        ),
        (&of_long, "SELECT 1", &change_long),
    ] {
        let read = format!("SELECT a FROM {name}");
        let hinted = format!("/* ttl:3600 */ {read}");
        until_remembered(&mut client, &mut admin, &hinted, &read);
        client.run(alter);
        for _ in 0..6 {
            for _ in 0..4 {
                assert_eq!(client.query(&hinted).value(), server.query(&read).value(), "{alter}");
            }
            client.run(change);
        }
    }
    server.run("DROP SCHEMA altering CASCADE");
}

/// Who has waited behind it for the table does more than he would have done when he asked.
#[test]
fn a_change_that_was_asked_for_before_a_trigger_was_made_and_done_behind_it_may_be_of_anything() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let [mut admin, mut holder, mut client, mut reader] = [(); 4].map(|()| at(address));
    let mut server = straight(postgres());
    for sql in [
        "CREATE TABLE overtaken (id int PRIMARY KEY)",
        "CREATE TABLE overtaken_log (n int)",
        "CREATE FUNCTION overtaken_tells() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN INSERT INTO overtaken_log VALUES (1); RETURN NULL; END$$",
    ] {
        server.run(sql);
    }
    for number in 1..=5 {
        // What it does is known by now.
        client.run(&format!("INSERT INTO overtaken VALUES ({number})"));
    }
    let read = "/* ttl:3600 */ SELECT count(*) FROM overtaken_log";
    until_remembered(&mut reader, &mut admin, read, "SELECT count(*) FROM overtaken_log");
    let wait = |server: &mut Client, count: &str| {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'overtaken'::regclass";
        until("it waits", || server.ask(waiting) == count);
    };
    holder.run("BEGIN; INSERT INTO overtaken VALUES (6)");
    admin.send(&query(
        "CREATE TRIGGER tells AFTER INSERT ON overtaken FOR EACH ROW EXECUTE FUNCTION overtaken_tells()",
    ));
    wait(&mut server, "1");
    client.run("BEGIN");
    client.send(&query("INSERT INTO overtaken VALUES (7)"));
    wait(&mut server, "2");
    holder.run("COMMIT");
    admin.answer();
    client.answer();
    until_remembered(&mut reader, &mut admin, read, "SELECT count(*) FROM overtaken_log");
    assert_eq!(reader.ask(read), "0");
    client.run("COMMIT");
    assert_eq!(reader.ask(read), "1");
    server.run("DROP TABLE overtaken, overtaken_log; DROP FUNCTION overtaken_tells");
}

/// Roles are of all databases of a server.
#[test]
fn who_is_no_member_any_more_is_told_nothing_at_other_databases_either() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let mut server = straight(postgres());
    server.run("CREATE DATABASE member_elsewhere");
    server.run("CREATE ROLE member_of");
    server.run("GRANT member_of TO trusted");
    let at_it = |user| Client::connect_with(address, &[("user", user), ("database", "member_elsewhere")]).unwrap();
    let mut elsewhere = at_it("postgres");
    elsewhere.run("CREATE TABLE members (n int)");
    elsewhere.run("INSERT INTO members VALUES (1)");
    elsewhere.run("GRANT SELECT ON members TO member_of");
    let mut admin = at(address);
    let ask = "/* ttl:3600 */ SELECT n FROM members";
    let in_words = "REVOKE member_of FROM trusted";
    let in_a_block = format!("DO $$BEGIN {in_words}; END$$");
    for (revoke, in_transaction) in [
        (in_words, false),
        (in_words, true),
        (&in_a_block, false),
        (&in_a_block, true),
    ] {
        let mut member = at_it("trusted");
        until_remembered(&mut member, &mut admin, ask, "SELECT n FROM members");
        if in_transaction {
            admin.run("BEGIN");
        }
        admin.run(revoke);
        if in_transaction {
            // Nobody sees it yet, and what is asked now is of before.
            assert_eq!(member.ask(ask), "1");
            admin.run("COMMIT");
        }
        assert_eq!(member.query(ask).sqlstate(), "42501", "{revoke} {in_transaction}");
        admin.run("GRANT member_of TO trusted");
        assert_eq!(member.ask(ask), "1", "and what failed is not remembered");
    }
}

/// Who has prepared a statement, and knows its columns, is not answered from memory by the columns that others have meanwhile.
#[test]
fn what_was_described_before_a_table_was_altered_is_not_told_with_other_columns() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut other) = (at(address), at(address), at(address));
    let mut server = straight(postgres());
    for sql in [
        "CREATE TABLE described (id int PRIMARY KEY, a int)",
        "INSERT INTO described VALUES (1, 1)",
    ] {
        server.run(sql);
    }
    let read = "SELECT * FROM described";
    let hinted = format!("/* ttl:3600 */ {read}");
    let again = [bind("", "one", &[]), execute("", 0)];
    client.pipeline(&[parse("one", &hinted), describe(b'S', "one")]);
    let until_remembered = |client: &mut Client, admin: &mut Client| {
        let before = remembered(admin, read).0;
        until("it is remembered", || {
            assert_eq!(client.pipeline(&again).rows().len(), 1);
            remembered(admin, read).0 > before
        });
    };
    until_remembered(&mut client, &mut admin);
    // What changes nothing of it is looked at once.
    client.run("CREATE TABLE beside ()");
    until_remembered(&mut client, &mut admin);
    other.run("CREATE INDEX ON described (a)");
    until_remembered(&mut client, &mut admin);
    other.run("ALTER TABLE described ADD COLUMN b text");
    for _ in 0..20 {
        assert_eq!(other.query(&hinted).rows()[0].len(), 3);
        assert_eq!(client.pipeline(&again).sqlstate(), "0A000");
    }
    let anew = [
        parse("two", &hinted),
        describe(b'S', "two"),
        bind("", "two", &[]),
        execute("", 0),
    ];
    assert_eq!(client.pipeline(&anew).rows()[0].len(), 3);
    // Also where it was not prepared before, and not for ever there.
    let on_each_connection = |client: &mut Client, is_as_expected: &dyn Fn(&Answer) -> bool| {
        let mut holders = [at(address), at(address), at(address)];
        for holder in 0..=holders.len() {
            for _ in 0..2 {
                let answer = client.pipeline(&again);
                assert!(is_as_expected(&answer), "{holder}: {answer:?}");
            }
            if let Some(holder) = holders.get_mut(holder) {
                holder.run("BEGIN");
            }
        }
    };
    on_each_connection(&mut client, &|answer| answer.sqlstate() == "0A000");
    // As it was.
    other.run("ALTER TABLE described DROP COLUMN b");
    on_each_connection(&mut client, &|answer| answer.rows().len() == 1);
    until_remembered(&mut client, &mut admin);
    assert_eq!(
        client.pipeline(&[bind("", "two", &[]), execute("", 0)]).sqlstate(),
        "0A000"
    );
    server.run("DROP TABLE described, beside");
}

/// Who was told the columns of a statement is not answered from memory by the columns that it had before, or has since: though nobody tells that a table is
/// altered past the proxy, where answers are remembered by time alone.
#[test]
fn rows_from_memory_have_the_columns_that_whoever_asks_was_told() {
    for (invalidate, table, way) in [
        ("none", "columns_by_time", "named"),
        ("none", "columns_without_a_name", "unnamed"),
        ("none", "columns_prepared_again", "prepared again"),
        ("none", "columns_of_a_portal", "portal"),
        ("own", "columns_by_own", "named"),
    ] {
        let reloadable = remembering(&format!("invalidate = \"{invalidate}\""));
        let address = reloadable.proxy.address();
        let (mut admin, mut before) = (at(address), at(address));
        let mut server = straight(postgres());
        server.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, a int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1, 1), (2, 2)"));
        let read = format!("SELECT * FROM {table} WHERE id < $1");
        let hinted = format!("/* ttl:3600 */ {read}");
        let name = if way == "named" { "one" } else { "" };
        let prepare = |client: &mut Client, text: &str| {
            let messages = match way {
                "portal" => vec![
                    parse("", text),
                    bind("", "", &["2"]),
                    describe(b'P', ""),
                    execute("", 0),
                ],
                _ => vec![parse(name, text), describe(b'S', name)],
            };
            client.pipeline(&messages).expect("described");
        };
        let again = |client: &mut Client, text: &str, value| {
            let mut messages = vec![bind("", name, &[value]), execute("", 0)];
            if way == "prepared again" {
                messages.insert(0, parse("", text));
            }
            client.pipeline(&messages)
        };
        let until_remembered = |client: &mut Client, admin: &mut Client, text: &str, columns| {
            let before = remembered(admin, &read).0;
            until("it is remembered", || {
                assert_eq!(again(client, text, "2").rows()[0].len(), columns);
                remembered(admin, &read).0 > before
            });
        };
        prepare(&mut before, &hinted);
        until_remembered(&mut before, &mut admin, &hinted, 2);
        // It is prepared nowhere else.
        let mut holder = at(address);
        holder.run("BEGIN");
        server.run(&format!("ALTER TABLE {table} ADD COLUMN b text"));
        let other_words = format!("/* somebody else */ {hinted}");
        for text in [&hinted, &other_words] {
            let mut behind = at(address);
            prepare(&mut behind, text);
            for _ in 0..3 {
                assert_eq!(again(&mut behind, text, "2").rows()[0].len(), 3, "{way}: {text}");
            }
            until_remembered(&mut behind, &mut admin, text, 3);
        }
        if way == "named" {
            for _ in 0..3 {
                let told = again(&mut before, &hinted, "2");
                assert!(told.sqlstate() == "0A000" || told.rows()[0].len() == 2, "{told:?}");
            }
            // What was not asked before is asked where it was not prepared before.
            let told = again(&mut before, &hinted, "3");
            assert_eq!(told.sqlstate(), "0A000", "{told:?}");
        }
        server.run(&format!("DROP TABLE {table}"));
    }
}

/// Who was told the columns of what he has prepared is told no rows of others, on whatever connection he is, alone or in company, and though nobody has said that
/// the table is altered.
#[test]
fn what_was_described_has_the_columns_of_then_on_each_connection_or_fails_as_straight() {
    let rule = "[[rule]]\nname = \"all\"\nbatch = \"1ms\"\n";
    for (table, rule, way) in [("told_alone", "", "alone"), ("told_in_company", rule, "shared")] {
        let lines = format!("upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n{rule}");
        let reloadable = Reloadable::start(&lines, &[]);
        let address = reloadable.proxy.address();
        let (mut admin, mut told, mut server) = (at(address), at(address), straight(postgres()));
        server.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, a int, b int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1, 10, 20)"));
        let read = format!("SELECT * FROM {table} WHERE id = $1");
        let again = [bind("", "one", &["1"]), execute("", 0)];
        told.pipeline(&[parse("one", &read), describe(b'S', "one")])
            .expect("described");
        let counted = |admin: &mut Client| {
            let rows = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
            let own = rows.into_iter().find(|row| row[2].as_deref() == Some(&read));
            let count = |at: usize| {
                own.as_ref()
                    .and_then(|row| row[at].clone())
                    .map_or(0, |count| count.parse().unwrap())
            };
            [count(3), count(4)] as [u64; 2]
        };
        until("it goes so", || {
            let before = counted(&mut admin);
            assert_eq!(told.pipeline(&again).rows()[0].len(), 3);
            let after = counted(&mut admin);
            (after[0] > before[0]) == (way == "shared")
        });
        // It is prepared on none that is free.
        let mut holders = [(); 3].map(|()| at(address));
        holders.iter_mut().for_each(|holder| drop(holder.run("BEGIN")));
        server.run(&format!("ALTER TABLE {table} RENAME a TO c"));
        server.run(&format!("ALTER TABLE {table} RENAME b TO a"));
        server.run(&format!("ALTER TABLE {table} RENAME c TO b"));
        for _ in 0..4 {
            let answer = told.pipeline(&again);
            assert_eq!(answer.sqlstate(), "0A000", "{way}: {answer:?}");
        }
        // Nor where somebody has it by the columns of now, who was not told of them.
        let mut untold = at(address);
        untold.pipeline(&[parse("one", &read)]).expect("prepared");
        for _ in 0..4 {
            assert_eq!(untold.pipeline(&again).rows()[0].len(), 3, "{way}");
            assert_eq!(told.pipeline(&again).sqlstate(), "0A000", "{way}");
        }
        // Who prepares it behind that is told so, and has them wherever others have prepared it before.
        let mut behind = at(address);
        behind
            .pipeline(&[parse("one", &read), describe(b'S', "one")])
            .expect("described");
        drop(holders);
        let mut holders = [(); 4].map(|()| at(address));
        for holder in 0..=holders.len() {
            for _ in 0..3 {
                assert_eq!(behind.pipeline(&again).rows()[0].len(), 3, "{way}");
            }
            assert_eq!(told.pipeline(&again).sqlstate(), "0A000", "{way}");
            if let Some(holder) = holders.get_mut(holder) {
                holder.run("BEGIN");
            }
        }
        drop(holders);
        server.run(&format!("DROP TABLE {table}"));
    }
}

/// Memory tells columns as the server does.
#[test]
fn whom_memory_has_told_the_columns_is_told_no_rows_of_others() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    for (past, table) in [(true, "told_by_memory"), (false, "told_by_memory_too")] {
        let (mut admin, mut others, mut server) = (at(address), at(address), straight(postgres()));
        server.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, a int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1, 10)"));
        let read = format!("SELECT * FROM {table} WHERE id = $1");
        let hinted = format!("/* ttl:3600 */ {read}");
        let ways = [
            vec![bind("", "one", &["1"]), describe(b'P', ""), execute("", 0)],
            vec![describe(b'S', "one"), bind("", "one", &["1"]), execute("", 0)],
        ];
        for way in &ways {
            others.pipeline(&[parse("one", &hinted)]);
            let before = remembered(&mut admin, &read).0;
            until("it is remembered", || {
                assert_eq!(others.pipeline(way).rows()[0].len(), 2);
                remembered(&mut admin, &read).0 > before
            });
            others.pipeline(&[close(b'S', "one")]);
        }
        let mut told: Vec<Client> = ways
            .iter()
            .map(|way| {
                let mut client = at(address);
                client.pipeline(&[parse("one", &hinted)]);
                let before = remembered(&mut admin, &read).0;
                client.pipeline(way).expect("rows");
                assert!(remembered(&mut admin, &read).0 > before, "memory has told it");
                client
            })
            .collect();
        let mut holders = [(); 3].map(|()| at(address));
        holders.iter_mut().for_each(|holder| drop(holder.run("BEGIN")));
        let alter = format!("ALTER TABLE {table} ADD COLUMN z int DEFAULT 9");
        if past {
            server.run(&alter)
        } else {
            others.run(&alter)
        };
        for client in &mut told {
            for _ in 0..3 {
                let answer = client.pipeline(&[bind("", "one", &["1"]), execute("", 0)]);
                assert!(
                    answer.sqlstate() == "0A000" || answer.rows()[0].len() == 2,
                    "{answer:?}"
                );
            }
        }
        drop(holders);
        server.run(&format!("DROP TABLE {table}"));
    }
}

/// A table that somebody has a lock on holds up those who ask it, and no others who go the same way.
#[test]
fn who_is_to_be_looked_at_on_a_connection_behind_a_lock_keeps_no_others_waiting() {
    let lines = "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n[[rule]]\nname = \"all\"\nbatch = \"20ms\"\n";
    let reloadable = Reloadable::start(lines, &[]);
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    let again = [bind("", "one", &["1"]), execute("", 0)];
    let tables = ["looked_at_locked", "looked_at_free"];
    let reads = tables.map(|table| format!("SELECT n FROM {table} WHERE id = $1"));
    let mut clients = [at(address), at(address)];
    for ((table, read), client) in tables.iter().zip(&reads).zip(&mut clients) {
        server.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, n int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1, 7)"));
        client
            .pipeline(&[parse("one", read), describe(b'S', "one")])
            .expect("described");
        until("it travels", || {
            client.pipeline(&again).expect("a row");
            let rows = admin.query("SHOW FOREBAY SHARING").expect("shown").rows();
            let own = rows.iter().find(|row| row[2].as_deref() == Some(read));
            own.is_some_and(|row| row[3].as_deref() > Some("0"))
        });
    }
    let mut holders = [(); 3].map(|()| at(address));
    holders.iter_mut().for_each(|holder| drop(holder.run("BEGIN")));
    server.run("BEGIN; LOCK TABLE looked_at_locked");
    let [locked, free] = &mut clients;
    for client in [&mut *locked, &mut *free] {
        client.send(&[&again[..], &[sync()]].concat().concat());
    }
    assert_eq!(free.answer().value().as_deref(), Some("7"));
    server.run("COMMIT");
    assert_eq!(locked.answer().value().as_deref(), Some("7"));
    drop(holders);
    server.run("DROP TABLE looked_at_locked, looked_at_free");
}

/// Who has prepared it behind that meets nothing of those who did before.
#[test]
fn what_has_other_columns_on_a_connection_is_prepared_there_anew_for_who_was_not_told() {
    let lines = "upstream = \"postgresql://SERVER/postgres\"\nmax_server_connections = 1\n";
    let reloadable = Reloadable::start(lines, &[]);
    let address = reloadable.proxy.address();
    let (mut told, mut untold, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE prepared_anew (id int PRIMARY KEY)");
    server.run("INSERT INTO prepared_anew VALUES (1)");
    let read = "SELECT * FROM prepared_anew WHERE id = $1";
    let again = [bind("", "one", &["1"]), execute("", 0)];
    told.pipeline(&[parse("one", read), describe(b'S', "one")])
        .expect("described");
    assert_eq!(told.pipeline(&again).rows()[0].len(), 1);
    server.run("ALTER TABLE prepared_anew ADD COLUMN a int");
    untold.pipeline(&[parse("one", read)]).expect("prepared");
    let described = [bind("", "one", &["1"]), describe(b'P', ""), execute("", 0)];
    for _ in 0..3 {
        assert_eq!(untold.pipeline(&described).rows()[0].len(), 2);
        assert_eq!(untold.pipeline(&again).rows()[0].len(), 2);
        assert_eq!(told.pipeline(&again).sqlstate(), "0A000");
    }
    server.run("DROP TABLE prepared_anew");
}

/// What a statement has instead may be so under what somebody has set, or for a moment: nobody is refused for that behind it.
#[test]
fn who_is_refused_for_other_columns_is_not_once_they_are_those_that_he_was_told() {
    for connections in [1, 2] {
        let lines = format!("upstream = \"postgresql://SERVER/postgres\"\nmax_server_connections = {connections}\n");
        let reloadable = Reloadable::start(&lines, &[]);
        let address = reloadable.proxy.address();
        let (mut client, mut other, mut server) = (at(address), at(address), straight(postgres()));
        for sql in [
            "CREATE SCHEMA refused_elsewhere",
            "CREATE TABLE refused (id int PRIMARY KEY)",
            "CREATE TABLE refused_elsewhere.refused (id int, a int)",
            "INSERT INTO refused VALUES (1)",
            "INSERT INTO refused_elsewhere.refused VALUES (1, 2)",
        ] {
            server.run(sql);
        }
        let read = "SELECT * FROM refused WHERE id = $1";
        let again = [bind("", "one", &["1"]), execute("", 0)];
        for both in [&mut client, &mut other] {
            both.pipeline(&[parse("one", read), describe(b'S', "one")])
                .expect("described");
        }
        let holds = |clients: [&mut Client; 2]| {
            for client in clients {
                for _ in 0..2 {
                    assert_eq!(client.pipeline(&again).rows(), [vec![Some("1".to_owned())]]);
                }
            }
        };
        holds([&mut client, &mut other]);
        client.run("BEGIN");
        client.run("SET LOCAL search_path = refused_elsewhere");
        assert_eq!(client.pipeline(&again).sqlstate(), "0A000");
        client.run("ROLLBACK");
        holds([&mut client, &mut other]);
        client.run("SET search_path = refused_elsewhere");
        assert_eq!(client.pipeline(&again).sqlstate(), "0A000");
        client.run("RESET search_path");
        holds([&mut client, &mut other]);
        // Past the proxy, and back.
        server.run("ALTER TABLE refused ADD COLUMN b text");
        for both in [&mut client, &mut other] {
            assert_eq!(both.pipeline(&again).sqlstate(), "0A000");
        }
        server.run("ALTER TABLE refused DROP COLUMN b");
        holds([&mut client, &mut other]);
        client.run("BEGIN");
        client.run("SAVEPOINT before");
        client.run("ALTER TABLE refused ADD COLUMN b text");
        assert_eq!(client.pipeline(&again).sqlstate(), "0A000");
        client.run("ROLLBACK TO SAVEPOINT before");
        assert_eq!(client.pipeline(&again).rows(), [vec![Some("1".to_owned())]]);
        client.run("ROLLBACK");
        holds([&mut client, &mut other]);
        server.run("DROP SCHEMA refused_elsewhere CASCADE; DROP TABLE refused");
    }
}

/// The server looks at nothing behind a statement that names a cursor, or another statement.
#[test]
fn what_fetches_from_a_cursor_has_the_columns_of_the_cursor() {
    let reloadable = Reloadable::start("upstream = \"postgresql://SERVER/postgres\"\n", &[]);
    let address = reloadable.proxy.address();
    let (mut client, mut server) = (at(address), straight(postgres()));
    let fetch = [bind("", "one", &[]), describe(b'P', ""), execute("", 0)];
    let told = [&mut client, &mut server].map(|both| {
        both.pipeline(&[parse("one", "FETCH 2 FROM cursor_of_any")]);
        let mut answers = Vec::new();
        // Each on another connection.
        let mut holders = Vec::new();
        for query in ["SELECT 1 AS a", "SELECT 2 AS b, 3 AS c", "SELECT 'x' AS d"] {
            both.run("BEGIN");
            both.run(&format!("DECLARE cursor_of_any CURSOR FOR {query}"));
            let answer = both.pipeline(&fetch);
            answers.push((answer.kinds(), answer.rows()));
            both.run("COMMIT");
            answers.push((both.pipeline(&fetch).sqlstate(), Vec::new()));
            let mut holder = at(address);
            holder.run("BEGIN");
            holders.push(holder);
        }
        answers
    });
    assert_eq!(told[0], told[1]);
}

/// Whichever portal has told them, and in whatever encoding.
#[test]
fn columns_are_told_by_portals_with_names_too_and_are_the_same_in_every_encoding() {
    let reloadable = Reloadable::start("upstream = \"postgresql://SERVER/postgres\"\n", &[]);
    let address = reloadable.proxy.address();
    let (mut client, mut other, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE portals_tell (id int PRIMARY KEY, bé int)");
    server.run("INSERT INTO portals_tell VALUES (1, 2)");
    let read = "SELECT * FROM portals_tell WHERE id = $1";
    let again = [bind("", "one", &["1"]), execute("", 0)];
    let mut holders = [(); 3].map(|()| at(address));
    let tells = [
        parse("one", read),
        bind("portal", "one", &["1"]),
        describe(b'P', "portal"),
        execute("portal", 0),
    ];
    for both in [&mut client, &mut other] {
        both.pipeline(&tells).expect("rows");
    }
    client.run("SET client_encoding = 'LATIN1'");
    for holder in &mut holders {
        for both in [&mut client, &mut other] {
            assert_eq!(both.pipeline(&again).rows()[0].len(), 2);
        }
        holder.run("BEGIN");
    }
    client.run("RESET client_encoding");
    assert_eq!(client.pipeline(&again).rows()[0].len(), 2);
    server.run("ALTER TABLE portals_tell ADD COLUMN c int");
    drop(holders);
    for _ in 0..3 {
        assert_eq!(other.pipeline(&again).sqlstate(), "0A000");
    }
    server.run("DROP TABLE portals_tell");
}

/// A client gives its parameters as the types are that it was told, which may be others than those that are told to who comes behind an `ALTER`.
#[test]
fn what_a_client_was_told_of_its_parameters_is_what_they_are_read_by() {
    const TIMESTAMP: u32 = 1114;
    const TIMESTAMPTZ: u32 = 1184;
    const MIDNIGHT: i64 = (24 * 365 + 6) * 86_400 * 1_000_000;
    /// Tokyo is ahead of UTC.
    const AHEAD: i64 = 9 * 3_600 * 1_000_000;
    fn in_tokyo(address: SocketAddr) -> Client {
        let settings = [
            ("user", "postgres"),
            ("database", "postgres"),
            ("TimeZone", "Asia/Tokyo"),
        ];
        Client::connect_with(address, &settings).unwrap()
    }
    /// As a driver would write the same value.
    fn written(of: u32) -> Vec<u8> {
        match of {
            20 => 7_i64.to_be_bytes().to_vec(),
            23 => 7_i32.to_be_bytes().to_vec(),
            TIMESTAMP => MIDNIGHT.to_be_bytes().to_vec(),
            TIMESTAMPTZ => (MIDNIGHT - AHEAD).to_be_bytes().to_vec(),
            other => panic!("told {other}"),
        }
    }
    struct Told(Client, u32);
    impl Told {
        fn new(address: SocketAddr, text: &str) -> Self {
            let mut client = in_tokyo(address);
            let answer = client.pipeline(&[parse("s", text), describe(b'S', "s")]);
            let told = answer
                .messages
                .iter()
                .find(|message| message.kind == b't')
                .expect("told");
            let of = u32::from_be_bytes(told.body[2..6].try_into().unwrap());
            Self(client, of)
        }

        fn ask(&mut self) -> Answer {
            let value = written(self.1);
            self.0
                .pipeline(&[bind_raw("", "s", &[1], &[Some(&value)], &[]), execute("", 0)])
        }
    }
    let mut server = straight(postgres());
    for (number, (from, to)) in [
        ("id int", "bigint"),
        ("id timestamp", "timestamptz USING id AT TIME ZONE 'Asia/Tokyo'"),
    ]
    .into_iter()
    .enumerate()
    {
        let values = match number {
            0 => "(7, 'it'), (8, 'another')",
            _ => "('2024-01-01 00:00', 'it'), ('2024-01-01 09:00', 'another'), ('2023-12-31 15:00', 'another')",
        };
        for (is_past, hint) in [
            (true, ""),
            (false, ""),
            (true, "/* ttl:3600 */ "),
            (false, "/* ttl:3600 */ "),
        ] {
            let remembers = (!hint.is_empty()).then(|| remembering("max_server_connections = 6\n"));
            let plain = hint
                .is_empty()
                .then(|| proxy(postgres(), &["--max-server-connections", "6"]));
            let address = match (&remembers, &plain) {
                (Some(reloadable), _) => reloadable.proxy.address(),
                (None, plain) => plain.as_ref().unwrap().address(),
            };
            let name = format!("of_types_{number}");
            server.run(&format!("DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({from} PRIMARY KEY, name text); INSERT INTO {name} VALUES {values}"));
            let text = format!("{hint}SELECT name FROM {name} WHERE id = $1");
            let change = format!("UPDATE {name} SET name = name WHERE id = $1");
            let told = |text: &str| Told::new(address, text);
            let mut all: Vec<Told> = [&text, &text, &text, &change].map(|text| told(text)).into();
            let ask_all = |all: &mut [Told]| {
                for told in all {
                    let answer = told.ask().expect(&format!("{from} {is_past} {hint} told {}", told.1));
                    let is_it = match answer.tags()[0].as_str() {
                        "UPDATE 1" => true,
                        _ => answer.value().as_deref() == Some("it"),
                    };
                    assert!(is_it, "{from} {is_past} {hint} told {}: {answer:?}", told.1);
                }
            };
            ask_all(&mut all);
            let mut admin = at(address);
            let by = if is_past { &mut server } else { &mut admin };
            by.run(&format!("ALTER TABLE {name} ALTER id TYPE {to}"));
            for _ in 0..4 {
                // On whatever connections, the last of which is a new one.
                let mut holders = [(); 5].map(|()| in_tokyo(address));
                for holder in &mut holders {
                    holder.run("BEGIN");
                    all.extend([&text, &change].map(|text| told(text)));
                    ask_all(&mut all);
                }
                for holder in &mut holders {
                    holder.run("COMMIT");
                    ask_all(&mut all);
                }
            }
            let kinds: BTreeSet<_> = all.iter().map(|told| told.1).collect();
            assert_eq!(kinds.len(), 2, "some were told of others: {kinds:?}");
        }
        server.run(&format!("DROP TABLE of_types_{number}"));
    }
}

/// Who has not asked for the types meets nothing of it when they are told to somebody else for the first time, also just then.
#[test]
fn who_is_looked_at_while_the_types_are_told_to_another_is_not_refused() {
    let lines = "upstream = \"postgresql://SERVER/postgres\"\nmax_server_connections = 2\n";
    let reloadable = Reloadable::start(lines, &[]);
    let address = reloadable.proxy.address();
    let [mut client, mut other, mut holder] = [(); 3].map(|()| at(address));
    let mut server = straight(postgres());
    for sql in [
        "CREATE TABLE told_meanwhile (id int PRIMARY KEY, n int)",
        "INSERT INTO told_meanwhile VALUES (1, 7)",
        "CREATE SCHEMA told_elsewhere",
        "CREATE TABLE told_elsewhere.told_meanwhile (id bigint PRIMARY KEY, n int)",
    ] {
        server.run(sql);
    }
    for (at_it, name) in [("public", "same"), ("told_elsewhere", "others")] {
        let read = format!("SELECT n AS {name} FROM told_meanwhile WHERE id = $1");
        client.run("BEGIN");
        client.pipeline(&[parse(name, &read)]).expect("prepared");
        let told = [bind("", name, &["1"]), describe(b'P', ""), execute("", 0)];
        assert_eq!(client.pipeline(&told).value().as_deref(), Some("7"));
        // He is on the other connection from here on.
        other.run("BEGIN");
        client.run("COMMIT");
        holder.run("BEGIN; LOCK TABLE told_meanwhile");
        other.run("COMMIT");
        client.send(&[bind("", name, &["1"]), execute("", 0), sync()].concat());
        until("it is looked at", || {
            let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'told_meanwhile'::regclass";
            server.ask(waiting) == "1"
        });
        holder.run(&format!("SET LOCAL search_path TO {at_it}"));
        let d = holder
            .pipeline(&[parse(name, &read), describe(b'S', name)])
            .expect("described");
        eprintln!("{d:?}");
        holder.run("COMMIT");
        assert_eq!(client.answer().expect(name).value().as_deref(), Some("7"));
    }
    server.run("DROP TABLE told_meanwhile; DROP SCHEMA told_elsewhere CASCADE");
}
