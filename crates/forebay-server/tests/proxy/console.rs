//! What those may ask of the proxy who are named for it.

use std::time::Duration;

use testbed::Forebay;

use crate::client::{Client, Row, close, describe, parse, query, sync, whole};
use crate::crowd::until;
use crate::{as_user, at, postgres, proxy, straight};

fn with_admin(arguments: &[&str]) -> Forebay {
    proxy(postgres(), &[&["--admin-users", "postgres"], arguments].concat())
}

/// A row of what is shown, by the value of its first column that is given.
fn row_of(client: &mut Client, what: &str, column: usize, value: &str) -> Option<Row> {
    let shown = client.query(&format!("SHOW FOREBAY {what}")).expect(what);
    let mut rows = shown.rows().into_iter();
    rows.find(|row| row[column].as_deref() == Some(value))
}

fn texts(row: &Row) -> Vec<&str> {
    row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect()
}

#[test]
fn who_is_not_named_gets_what_the_database_says() {
    let proxy = with_admin(&[]);
    let mut stranger = as_user(proxy.address(), "trusted").unwrap();
    for (sql, sqlstate) in [
        ("SHOW FOREBAY STATUS", "42601"),
        ("PAUSE FOREBAY", "42601"),
        ("KILL FOREBAY 1", "42601"),
    ] {
        let straight = as_user(postgres().address(), "trusted").unwrap().query(sql);
        let through = stranger.query(sql);
        assert_eq!(through.error(), straight.error(), "{sql}");
        assert_eq!(through.sqlstate(), sqlstate);
    }
    let mut admin = at(proxy.address());
    assert_eq!(admin.query("SHOW FOREBAY NONSENSE").sqlstate(), "42601");
    assert_eq!(admin.ask("SELECT 'goes on'"), "goes on");
}

#[test]
fn it_shows_what_is_there() {
    let proxy = with_admin(&["--max-server-connections", "2"]);
    let mut admin = at(proxy.address());
    let who = [
        ("user", "trusted"),
        ("database", "postgres"),
        ("application_name", "shop"),
    ];
    let mut client = Client::connect_with(proxy.address(), &who).unwrap();
    let pid = client.ask("SELECT pg_backend_pid()");
    client
        .pipeline(&[parse("mine", "SELECT 'it is shown'"), describe(b'S', "mine")])
        .expect("prepared");
    let status = |admin: &mut Client, name| row_of(admin, "STATUS", 0, name).unwrap()[1].clone().unwrap();
    assert_eq!(status(&mut admin, "clients"), "2");
    assert_eq!(status(&mut admin, "server_connections"), "2", "one of each user");
    let pool = row_of(&mut admin, "POOLS", 1, "trusted").unwrap();
    assert_eq!(
        texts(&pool),
        ["postgres", "trusted", "transaction", "open", "1", "1", "2", "0", "0"]
    );
    let mine = row_of(&mut admin, "CLIENTS", 2, "trusted").unwrap();
    assert_eq!(texts(&mine)[1..4], ["postgres", "trusted", "shop"]);
    assert_eq!(mine[5].as_deref(), Some("idle"));
    assert!(mine[4].as_deref().unwrap().starts_with("127.0.0.1:"));
    let server = row_of(&mut admin, "SERVERS", 1, "trusted").unwrap();
    assert_eq!(texts(&server)[..4], ["postgres", "trusted", &pid, "NULL"]);
    assert_eq!(server[5].as_deref(), Some("1"), "what is prepared there");
    let statement = row_of(&mut admin, "STATEMENTS", 4, "SELECT 'it is shown'").unwrap();
    assert_eq!(texts(&statement)[..2], ["postgres", "trusted"]);
    assert_eq!(statement[3].as_deref(), Some("1"));
    client.run("BEGIN");
    let number = mine[0].as_deref().unwrap();
    assert_eq!(
        row_of(&mut admin, "CLIENTS", 0, number).unwrap()[5].as_deref(),
        Some("active")
    );
    let server = row_of(&mut admin, "SERVERS", 1, "trusted").unwrap();
    assert_eq!(server[3].as_deref(), Some(number));
    client.run("COMMIT");
    client.run("CREATE TEMP TABLE keeps (a int)");
    // What is left is asked behind the answer.
    while row_of(&mut admin, "CLIENTS", 0, number).unwrap()[5].as_deref() != Some("pinned") {}
    drop(client);
    while row_of(&mut admin, "CLIENTS", 0, number).is_some() {}
    assert!(row_of(&mut admin, "STATEMENTS", 4, "SELECT 'it is shown'").is_none());
}

/// Whoever has nothing left on his connection that keeps him there gives it back, also without DISCARD ALL.
#[test]
fn who_has_undone_what_kept_him_gives_the_connection_back() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let address = proxy.address();
    let mut admin = at(address);
    for (keeps, undoes) in [
        ("LISTEN news", "UNLISTEN news"),
        ("SELECT pg_advisory_lock(77)", "SELECT pg_advisory_unlock(77)"),
        ("PREPARE mine AS SELECT 1", "DEALLOCATE mine"),
        (
            "BEGIN; DECLARE mine CURSOR WITH HOLD FOR SELECT 1; COMMIT",
            "CLOSE mine",
        ),
        ("SET SESSION AUTHORIZATION trusted", "RESET SESSION AUTHORIZATION"),
        ("SET idle_session_timeout = '1h'", "RESET idle_session_timeout"),
        (
            "SELECT set_config('app.' || 'kept', '1', false)",
            "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
        ),
    ] {
        let mut client = at(address);
        client.run(keeps);
        let is = |state: &str, admin: &mut Client| {
            let clients = admin.query("SHOW FOREBAY CLIENTS").expect("shown").rows();
            clients.iter().any(|row| row[5].as_deref() == Some(state))
        };
        until(keeps, || is("pinned", &mut admin));
        client.run(undoes);
        until(undoes, || !is("pinned", &mut admin));
        // At once, too, while it is asked what is left.
        client.run(keeps);
        client.run(undoes);
        until(undoes, || !is("pinned", &mut admin));
        assert_eq!(at(address).ask("SELECT 1"), "1", "{undoes}");
        assert_eq!(client.ask("SELECT 2"), "2", "{undoes}");
    }
}

/// The same, where a cursor is closed by a message; and what names all that it sets keeps nobody.
#[test]
fn who_keeps_nothing_is_kept_on_no_connection() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let address = proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    let is_pinned = |admin: &mut Client| {
        let clients = admin.query("SHOW FOREBAY CLIENTS").expect("shown").rows();
        clients.iter().any(|row| row[5].as_deref() == Some("pinned"))
    };
    client.run("BEGIN; DECLARE mine CURSOR WITH HOLD FOR SELECT 1; COMMIT");
    until("it is kept", || is_pinned(&mut admin));
    client.pipeline(&[close(b'P', "mine")]);
    until("it is closed", || !is_pinned(&mut admin));
    client.run("CREATE TABLE keeps_nothing (a int)");
    for text in [
        "DO $$BEGIN UPDATE keeps_nothing SET a = 1; END$$",
        "DO $$BEGIN SET LOCAL app.kept = '1'; END$$",
        "DO $$BEGIN PERFORM set_config('app.kept', '1', false); SET app.also = '2'; END$$",
    ] {
        client.run(text);
        // Whoever comes next has the connection behind what is asked of the one before.
        assert_eq!(
            at(address).ask("SELECT coalesce(current_setting('app.also', true), '')"),
            "",
            "{text}"
        );
        assert!(!is_pinned(&mut admin), "{text}");
    }
    assert_eq!(
        client.ask("SELECT current_setting('app.kept') || current_setting('app.also')"),
        "12"
    );
    client.run("DROP TABLE keeps_nothing");
}

/// What is asked of a session behind its statements takes as long as it takes, whatever it has set for these.
#[test]
fn a_short_time_for_statements_keeps_nobody() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let address = proxy.address();
    let (mut admin, mut client, mut other) = (at(address), at(address), at(address));
    client.run("SET statement_timeout = '1ms'");
    for _ in 0..20 {
        let set = client.query("SET app.hurried = '1'").sqlstate();
        assert!(["00000", "57014"].contains(&set.as_str()), "{set}");
        assert_eq!(other.ask("SHOW statement_timeout"), "0");
    }
    let clients = admin.query("SHOW FOREBAY CLIENTS").expect("shown").rows();
    assert!(clients.iter().all(|row| row[5].as_deref() != Some("pinned")));
    until("it is shown", || {
        let shown = client.query("SHOW statement_timeout");
        assert!(
            shown.sqlstate() == "57014" || shown.value().as_deref() == Some("1ms"),
            "{shown:?}"
        );
        shown.sqlstate() == "00000"
    });
}

/// All is reset before what is asked behind that, in one go: what that sets is nobody else's.
#[test]
fn what_is_set_behind_a_reset_stays_ones_own() {
    for resets in ["RESET ALL", "DISCARD ALL"] {
        let proxy = with_admin(&["--max-server-connections", "1", "--server-wait-timeout", "50ms"]);
        let mut client = at(proxy.address());
        client.run("SELECT set_config('app.' || 'kept', '1', false)");
        let sets = query("SELECT set_config('app.' || 'kept', '2', false)");
        client.send(&[query(resets), sets].concat());
        assert_eq!(
            (client.answer().sqlstate(), client.answer().sqlstate()),
            ("00000".into(), "00000".into())
        );
        assert_eq!(client.ask("SELECT current_setting('app.kept')"), "2", "{resets}");
        let mut other = at(proxy.address());
        other.send(&query("SELECT 1"));
        let refused = other.last_words().pop().expect("a word").failure();
        assert_eq!(refused.sqlstate(), "53300", "{resets}: it stays where it is set");
    }
}

/// Whatever code sets a setting of its client's own, wherever its name stands: it is nobody else's, for it goes with him or he keeps the connection.
#[test]
fn what_code_sets_is_no_strangers() {
    let mut itself = straight(postgres());
    itself.run(
        "CREATE FUNCTION code_sets(name text) RETURNS text LANGUAGE sql AS $$SELECT set_config(name, '1', false)$$",
    );
    itself
        .run("CREATE PROCEDURE code_does() LANGUAGE plpgsql AS $$BEGIN DO $a$BEGIN SET app.coded = '1'; END$a$; END$$");
    itself.run(
        "CREATE FUNCTION code_keeps() RETURNS text LANGUAGE sql AS $$SELECT set_config('app.coded', '1', false)$$",
    );
    for texts in [
        &["DO $a$BEGIN DO $b$BEGIN SET app.coded = '1'; END$b$; END$a$"][..],
        &["DO 'BEGIN SET app'\n'.coded = 1; END'"],
        &["DO $$BEGIN SET U&\"app.coded\" = '1'; END$$"],
        &["SET U&\"app.coded\" = '1'"],
        &["DO $$BEGIN EXECUTE 'SE' || 'T app.coded = 1'; END$$"],
        &["DO $$BEGIN PERFORM code_sets('app.coded'); END$$"],
        &["DO $$BEGIN PERFORM code_keeps(); END$$"],
        &["CALL code_does()"],
        &["DO $$BEGIN CALL code_does(); END$$"],
        &[
            "PREPARE sets(text) AS SELECT set_config($1, '1', false)",
            "RESET ALL",
            "EXECUTE sets('app.coded')",
            "DEALLOCATE sets",
        ],
    ] {
        let proxy = with_admin(&["--max-server-connections", "1", "--server-wait-timeout", "50ms"]);
        let mut client = at(proxy.address());
        for text in texts {
            client.run(text);
        }
        let mut other = at(proxy.address());
        other.send(&query("SELECT coalesce(current_setting('app.coded', true), '')"));
        match other.try_answer() {
            Ok(answer) => assert_eq!(answer.value().as_deref(), Some(""), "{texts:?}"),
            Err((_, said)) => assert_eq!(said.last().expect("a word").failure().sqlstate(), "53300", "{texts:?}"),
        }
        assert_eq!(client.ask("SELECT current_setting('app.coded')"), "1", "{texts:?}");
    }
    itself.run("DROP FUNCTION code_sets, code_keeps; DROP PROCEDURE code_does");
}

#[test]
fn a_pause_waits_for_transactions_and_those_who_come_wait_for_its_end() {
    let proxy = with_admin(&[]);
    let address = proxy.address();
    let mut admin = at(address);
    let mut busy = as_user(address, "trusted").unwrap();
    busy.run("BEGIN");
    let busy_at = busy.ask("SELECT pg_backend_pid()");
    admin.send(&query("PAUSE FOREBAY"));
    let mut watching = at(address);
    while row_of(&mut watching, "POOLS", 1, "trusted").unwrap()[3].as_deref() != Some("paused") {}
    assert!(
        admin.read_within(Duration::from_millis(50)).is_none(),
        "a transaction is open"
    );
    busy.run("COMMIT");
    assert_eq!(admin.answer().tags(), ["PAUSE"]);
    assert_eq!(
        row_of(&mut watching, "STATUS", 0, "server_connections").unwrap()[1].as_deref(),
        Some("0")
    );
    busy.send(&query("SELECT pg_backend_pid()"));
    while row_of(&mut watching, "CLIENTS", 2, "trusted").unwrap()[5].as_deref() != Some("waiting") {}
    // Who comes meanwhile is let in, and waits with its first statement.
    let mut new = as_user(address, "trusted").unwrap();
    new.send(&query("SELECT 'new'"));
    let pool = |watching: &mut Client| row_of(watching, "POOLS", 1, "trusted").unwrap();
    while pool(&mut watching)[7].as_deref() != Some("2") {}
    assert_eq!(pool(&mut watching)[4].as_deref(), Some("0"));
    assert_eq!(watching.query("RESUME FOREBAY").tags(), ["RESUME"]);
    assert_ne!(busy.answer().value(), Some(busy_at), "what was there was closed");
    assert_eq!(new.answer().value().as_deref(), Some("new"));
}

#[test]
fn a_pause_of_one_database_is_no_other_ones_and_who_gives_up_waiting_does_not_take_it_back() {
    straight(postgres())
        .query("CREATE DATABASE console_other")
        .expect("created");
    let proxy = with_admin(&["--server-wait-timeout", "100ms"]);
    let address = proxy.address();
    let at_other = || Client::connect_with(address, &[("user", "postgres"), ("database", "console_other")]);
    let mut other = at_other().unwrap();
    other.run("BEGIN");
    let mut admin = at(address);
    admin.send(&query("PAUSE FOREBAY console_other"));
    let mut watching = at(address);
    while row_of(&mut watching, "POOLS", 0, "console_other").unwrap()[3].as_deref() != Some("paused") {}
    drop(admin);
    assert_eq!(at(address).ask("SELECT 'served'"), "served");
    // Nor is it lent to somebody of whom it has no pool yet.
    let first = Client::connect_with(address, &[("user", "trusted"), ("database", "console_other")]);
    assert_eq!(first.unwrap_err().sqlstate(), "53300");
    other.run("COMMIT");
    other.send(&query("SELECT 1"));
    let refused = other.last_words();
    let refused = refused
        .iter()
        .find(|word| word.kind == b'E')
        .expect("it waited")
        .failure();
    assert_eq!(refused.sqlstate(), "53300");
    watching.run("RESUME FOREBAY console_other");
    assert_eq!(at_other().unwrap().ask("SELECT 'served'"), "served");
    // One of all that pause, also for whom it has no pool yet.
    watching.run("PAUSE FOREBAY");
    watching.run("RESUME FOREBAY console_other");
    let new = Client::connect_with(address, &[("user", "trusted"), ("database", "console_other")]);
    assert_eq!(new.unwrap().ask("SELECT 'served'"), "served");
    let elsewhere = as_user(address, "trusted");
    assert_eq!(elsewhere.unwrap_err().sqlstate(), "53300");
}

#[test]
fn a_name_that_nobody_uses_is_told_and_what_is_changed_is_logged() {
    let mut proxy = with_admin(&["--server-wait-timeout", "100ms"]);
    let mut admin = at(proxy.address());
    let notice = |answer: &crate::client::Answer| answer.notice().map(|notice| notice.message().to_owned());
    let paused = admin.query("PAUSE FOREBAY nosuch");
    assert_eq!(paused.tags(), ["PAUSE"]);
    assert_eq!(notice(&paused).as_deref(), Some("no database \"nosuch\" is in use"));
    for command in ["RESUME FOREBAY nosuch", "RECONNECT FOREBAY nosuch"] {
        assert!(notice(&admin.query(command)).is_some(), "{command}");
    }
    for command in [
        "PAUSE FOREBAY postgres",
        "RESUME FOREBAY postgres",
        "PAUSE FOREBAY",
        "RESUME FOREBAY",
    ] {
        let done = admin.query(command).expect(command);
        assert_eq!(notice(&done), None, "{command}");
    }
    assert_eq!(admin.query("KILL FOREBAY 2000000000").sqlstate(), "42704");
    admin.run("SHOW FOREBAY STATUS");
    for logged in [
        "on the console: PAUSE FOREBAY \"nosuch\" by=\"postgres@postgres\" address=127.0.0.1:",
        "on the console: RECONNECT FOREBAY \"nosuch\"",
        "on the console: RESUME FOREBAY by",
        "refused on the console: KILL FOREBAY 2000000000",
    ] {
        let told = |output: &str| output.contains(logged).then_some(());
        proxy.wait_for_output(crate::client::PATIENCE, told).expect(logged);
    }
    assert!(
        !proxy.output().contains("SHOW FOREBAY"),
        "what shows something changes nothing"
    );
}

#[test]
fn who_is_ended_is_told_so_wherever_it_is_and_what_it_ran_is_rolled_back() {
    let proxy = with_admin(&[]);
    let mut admin = at(proxy.address());
    admin.run("CREATE TABLE IF NOT EXISTS ended (a int)");
    let mut straight = straight(postgres());
    let number_of = |admin: &mut Client| {
        row_of(admin, "CLIENTS", 2, "postgres_ended").unwrap()[0]
            .clone()
            .unwrap()
    };
    straight.query("CREATE ROLE postgres_ended LOGIN SUPERUSER");
    for busy in [false, true] {
        let mut client = as_user(proxy.address(), "postgres_ended").unwrap();
        if busy {
            client.run("BEGIN");
            client.run("INSERT INTO ended VALUES (1)");
            client.send(&query("SELECT pg_sleep(600)"));
            let runs =
                "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'";
            while straight.ask(runs) != "1" {}
        }
        let number = number_of(&mut admin);
        assert_eq!(admin.query(&format!("KILL FOREBAY {number}")).tags(), ["KILL"]);
        let words = client.last_words();
        let told = words
            .iter()
            .find(|word| word.kind == b'E')
            .expect("it is told")
            .failure();
        assert_eq!((told.sqlstate(), told.field(b'S')), ("57P01", Some("FATAL")));
        while row_of(&mut admin, "CLIENTS", 0, &number).is_some() {}
    }
    let runs = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'";
    while straight.ask(runs) != "0" {}
    assert_eq!(straight.ask("SELECT count(*) FROM ended"), "0");
    assert_eq!(admin.query("KILL FOREBAY 2000000000").sqlstate(), "42704");
    // Also one that waits for a connection.
    let mut waits = as_user(proxy.address(), "postgres_ended").unwrap();
    admin.run("PAUSE FOREBAY");
    waits.send(&query("SELECT 1"));
    let state = |admin: &mut Client| {
        row_of(admin, "CLIENTS", 2, "postgres_ended").unwrap()[5]
            .clone()
            .unwrap()
    };
    while state(&mut admin) != "waiting" {}
    let number = number_of(&mut admin);
    assert_eq!(admin.query(&format!("KILL FOREBAY {number}")).tags(), ["KILL"]);
    assert_eq!(waits.last_words()[0].failure().sqlstate(), "57P01");
    admin.run("RESUME FOREBAY");
}

#[test]
fn after_a_reconnect_nobody_has_what_was_there_before() {
    let proxy = with_admin(&["--max-server-connections", "1"]);
    let mut admin = at(proxy.address());
    let mut client = as_user(proxy.address(), "trusted").unwrap();
    client.run("SET work_mem = '321kB'");
    let before = client.ask("SELECT pg_backend_pid()");
    client.run("BEGIN");
    assert_eq!(admin.query("RECONNECT FOREBAY").tags(), ["RECONNECT"]);
    assert_eq!(
        client.ask("SELECT pg_backend_pid()"),
        before,
        "a transaction ends where it began"
    );
    client.run("COMMIT");
    assert_ne!(client.ask("SELECT pg_backend_pid()"), before);
    assert_eq!(client.ask("SHOW work_mem"), "321kB");
}

#[test]
fn a_command_is_one_whatever_the_session_keeps_and_whatever_it_asked_just_before() {
    for mode in ["transaction", "session"] {
        let proxy = with_admin(&["--pool-mode", mode]);
        let mut admin = at(proxy.address());
        // What is left behind these is looked for once they are answered.
        for sql in [
            "CREATE TABLE IF NOT EXISTS just_before (a int)",
            "SET work_mem = '321kB'",
            "CREATE TEMP TABLE kept (a int)",
            "SELECT count(*) FROM kept",
        ] {
            admin.run(sql);
            let shown = admin.query("SHOW FOREBAY STATUS").expect(sql);
            assert!(shown.rows().len() > 3, "{mode}: {sql}");
        }
        let pid = admin.ask("SELECT pg_backend_pid()");
        // Several at once, each in its turn.
        admin.send(
            &[
                query("SELECT 'before'"),
                query("SHOW FOREBAY CLIENTS"),
                query("SELECT 'after'"),
            ]
            .concat(),
        );
        assert_eq!(admin.answer().value().as_deref(), Some("before"));
        assert_eq!(admin.answer().expect("shown").rows().len(), 1);
        assert_eq!(admin.answer().value().as_deref(), Some("after"));
        let pipeline = [whole("SELECT 'before'", &[]), sync(), query("SHOW FOREBAY CLIENTS")].concat();
        admin.send(&pipeline);
        assert_eq!(admin.answer().value().as_deref(), Some("before"));
        assert_eq!(admin.answer().expect("shown").rows().len(), 1);
        // It would wait for itself.
        assert_eq!(admin.query("PAUSE FOREBAY").sqlstate(), "55006");
        assert_eq!(admin.query("RESUME FOREBAY").tags(), ["RESUME"]);
        // In a transaction it is for the database.
        admin.run("BEGIN");
        assert_eq!(admin.query("SHOW FOREBAY STATUS").sqlstate(), "42601");
        admin.run("ROLLBACK");
        assert_eq!(admin.ask("SELECT pg_backend_pid()"), pid, "it kept what it has");
        admin.run("DROP TABLE kept");
    }
}

/// Whoever it is: the database tells it to everybody.
#[test]
fn anybody_is_told_where_the_log_of_his_database_is() {
    for (mode, user) in [
        ("transaction", "trusted"),
        ("transaction", "postgres"),
        ("session", "trusted"),
    ] {
        let proxy = with_admin(&["--pool-mode", mode]);
        let mut client = as_user(proxy.address(), user).unwrap();
        let mut straight = straight(postgres());
        straight.run("CREATE TABLE IF NOT EXISTS logged (n int)");
        straight.run("GRANT ALL ON logged TO public");
        let mut is_behind = |position: &str, before: &str| {
            let now = "pg_current_wal_insert_lsn()";
            straight.ask(&format!(
                "SELECT '{position}'::pg_lsn > '{before}' AND '{position}' <= {now}"
            )) == "t"
        };
        let mut before = client.ask("SHOW FOREBAY LSN");
        for asked in ["SHOW FOREBAY LSN", "show forebay lsn;", " SHOW\n FOREBAY LSN ; "] {
            client.run("INSERT INTO logged VALUES (1)");
            let told = client.query(asked).expect(asked);
            assert_eq!(
                (told.kinds().as_str(), told.tags()),
                ("TDC", vec!["SELECT 1".to_owned()])
            );
            let position = told.value().expect("a position");
            assert!(is_behind(&position, &before), "{position} {before}");
            before = position;
        }
        // In a transaction, on a connection that is kept, and behind what is asked in the same breath.
        client.run("BEGIN");
        client.run("INSERT INTO logged VALUES (1)");
        assert!(is_behind(&client.ask("SHOW FOREBAY LSN"), &before));
        client.run("COMMIT");
        client.run("LISTEN logged");
        client.send(&[query("INSERT INTO logged VALUES (1)"), query("SHOW FOREBAY LSN")].concat());
        client.answer();
        assert!(is_behind(&client.answer().value().expect("a position"), &before));
        assert_eq!(client.query("SHOW FOREBAY LSN now").sqlstate(), "42601");
        straight.run("DROP TABLE logged");
    }
}
