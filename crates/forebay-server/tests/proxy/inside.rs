//! What is remembered and read inside of transactions, beside the PostgreSQL that would have answered.

use std::time::Duration;

use crate::client::{Answer, Client, bind, close, describe, execute, flush, parse, sync};
use crate::crowd::until;
use crate::memory::{bytes, remembered, remembering, until_remembered};
use crate::windows::pass;
use crate::{as_user, at, postgres, straight};

const RULE: &str =
    "invalidate = \"none\"\n[[rule]]\nname = \"inside\"\ntable = \"inside\"\nfresh = \"1h\"\nin_transactions = true\n";

/// The same read, in the ways that clients ask it.
fn ask(client: &mut Client, way: &str, text: &str) -> Answer {
    match way {
        "text" => client.query(text),
        "prepared" => client.pipeline(&[bind("", "inside", &[]), execute("", 0)]),
        "unnamed" => client.pipeline(&[parse("", text), bind("", "", &[]), describe(b'P', ""), execute("", 0)]),
        _ => unreachable!(),
    }
}

const WAYS: [&str; 3] = ["text", "prepared", "unnamed"];

#[test]
fn by_rule_memory_answers_inside_of_transactions_that_have_only_read() {
    let reloadable = remembering(RULE);
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    for sql in [
        "CREATE TABLE inside (n int)",
        "CREATE TABLE inside_other (n int)",
        "CREATE SEQUENCE inside_numbers",
        "CREATE VIEW inside_view AS SELECT n FROM inside_other",
        "CREATE VIEW inside_sets AS SELECT set_config('timezone', 'Asia/Tokyo', true)",
        "CREATE FUNCTION inside_writes() RETURNS int LANGUAGE sql AS 'UPDATE inside SET n = n RETURNING n'",
        "CREATE VIEW inside_writing AS SELECT inside_writes()",
        "INSERT INTO inside VALUES (1)",
        "INSERT INTO inside_other VALUES (1)",
    ] {
        server.run(sql);
    }
    let (read, begins) = ("SELECT n FROM inside", "SELECT n FROM inside");
    for both in [&mut client, &mut server] {
        both.pipeline(&[parse("inside", read)]);
    }
    // Nobody asks but inside of transactions.
    for way in WAYS {
        let before = remembered(&mut admin, begins).0;
        until(way, || {
            client.run("BEGIN");
            let said = ask(&mut client, way, read);
            client.run("COMMIT");
            server.run("BEGIN");
            let straight = ask(&mut server, way, read);
            assert_eq!((bytes(&said), said.status), (bytes(&straight), 'T'), "{way}");
            server.run("COMMIT");
            remembered(&mut admin, begins).0 > before
        });
    }
    server.run("UPDATE inside SET n = 2");
    let from_memory = |client: &mut Client, way| ask(client, way, read).value().as_deref() == Some("1");
    for (before, is_told) in [
        (&["BEGIN"][..], true),
        (&["begin work isolation level read committed;"], true),
        (&["START TRANSACTION READ ONLY"], true),
        (&["BEGIN", "SELECT n FROM inside_other"], true),
        (
            &["BEGIN", "SELECT count(*), max(n) FROM inside_other WHERE n = 1"],
            true,
        ),
        (&["BEGIN", "SELECT n FROM inside_view"], true),
        (&["BEGIN", "SELECT * FROM inside_sets"], false),
        (&["BEGIN", "SELECT * FROM inside_writing"], false),
        (&["BEGIN ISOLATION LEVEL REPEATABLE READ"], false),
        (&["BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"], false),
        (&["BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"], false),
        (
            &["SET default_transaction_isolation = 'repeatable read'", "BEGIN"],
            false,
        ),
        (&["BEGIN; SELECT 1"], false),
        (&["BEGIN", "INSERT INTO inside_other VALUES (1)"], false),
        (&["BEGIN", "DELETE FROM inside_other WHERE n = 7"], false),
        (&["BEGIN", "SELECT n FROM inside_other FOR UPDATE"], false),
        (&["BEGIN", "SELECT nextval('inside_numbers')"], false),
        (&["BEGIN", "SET LOCAL timezone = 'Asia/Tokyo'"], false),
        (&["BEGIN", "SELECT set_config('timezone', 'Asia/Tokyo', true)"], false),
        (&["BEGIN", "SAVEPOINT one"], false),
        (&["BEGIN", "LOCK TABLE inside_other"], false),
        (&["BEGIN", "COMMIT AND CHAIN"], false),
        (&["BEGIN", "DO $$ BEGIN PERFORM 1; END $$"], false),
    ] {
        // What is not told is not, however often it is asked.
        for way in WAYS.repeat(if is_told { 1 } else { 3 }) {
            let begin = |client: &mut Client| before.iter().for_each(|sql| drop(client.run(sql)));
            begin(&mut client);
            if is_told {
                // The catalog may have to be asked about what comes first.
                until(&format!("{before:?}, {way}"), || {
                    let is_told = from_memory(&mut client, way);
                    if !is_told {
                        client.run("ROLLBACK");
                        begin(&mut client);
                    }
                    is_told
                });
            } else {
                assert!(!from_memory(&mut client, way), "{before:?}, {way}");
            }
            // Whoever was told goes on in his transaction.
            let other = client.query("SELECT count(*) FROM inside_other WHERE n = 1");
            let told = if before.last().is_some_and(|last| last.starts_with("INSERT")) {
                "2"
            } else {
                "1"
            };
            assert_eq!(other.value().as_deref(), Some(told), "{before:?}, {way}");
            client.run("ROLLBACK");
            client.run("RESET ALL");
        }
    }
}

#[test]
fn who_is_told_inside_of_a_transaction_is_where_the_server_would_have_left_him() {
    let reloadable = remembering(&RULE.replace("table = \"inside\"", "table = \"inside_left\""));
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE inside_left (n int)");
    server.run("INSERT INTO inside_left VALUES (1)");
    let read = "SELECT n FROM inside_left WHERE n = $1";
    let ask = |client: &mut Client| {
        let told = client.pipeline(&[
            parse("", read),
            bind("", "", &["1"]),
            describe(b'P', ""),
            execute("", 0),
        ]);
        told.value()
    };
    until("it is remembered", || {
        client.run("BEGIN");
        client.run("SELECT 1");
        ask(&mut client);
        client.run("COMMIT");
        remembered(&mut admin, read).0 > 0
    });
    server.run("UPDATE inside_left SET n = n + 1");
    client.run("BEGIN");
    client.run("SELECT 1");
    assert_eq!(ask(&mut client).as_deref(), Some("1"), "from memory");
    // What he has prepared without a name is there, though the server had not heard of it.
    let again = client.pipeline(&[bind("", "", &["2"]), execute("", 0)]);
    assert_eq!(again.value().as_deref(), Some("2"), "by the server");
    // From his own write on he sees it, in his transaction and behind it.
    client.run("UPDATE inside_left SET n = 1");
    let own = client.query("SELECT n FROM inside_left");
    assert_eq!(own.value().as_deref(), Some("1"));
    client.run("UPDATE inside_left SET n = 5");
    assert_eq!(ask(&mut client), None, "there is none by now");
    client.run("ROLLBACK");
    client.run("BEGIN");
    assert_eq!(ask(&mut client).as_deref(), Some("1"), "from memory, as it was undone");
    // What has failed answers nothing any more.
    assert!(client.query("SELECT 1 / 0").error().is_some());
    assert!(ask(&mut client).is_none());
    client.run("ROLLBACK");
}

#[test]
fn memory_does_not_answer_inside_of_transactions_unless_a_rule_says_so() {
    // Others may be answered so.
    let rules = format!("{RULE}[[rule]]\nname = \"outside\"\ntable = \"outside\"\nfresh = \"1h\"\n");
    let reloadable = remembering(&rules);
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE outside (n int)");
    server.run("INSERT INTO outside VALUES (1)");
    for read in ["SELECT n FROM outside", "/* ttl:3600 */ SELECT n FROM outside"] {
        until_remembered(&mut client, &mut admin, read, "SELECT n FROM outside");
        client.run("BEGIN");
        server.run("UPDATE outside SET n = n + 1");
        let now = server.query("SELECT n FROM outside").value();
        for _ in 0..5 {
            assert_eq!(client.query(read).value(), now, "{read}");
        }
        client.run("COMMIT");
    }
}

/// What a session has by itself may be what an answer hangs on: a setting of a name that is not known, which a policy looks at; and a table.
#[test]
fn who_keeps_his_connection_is_told_nothing_from_memory_inside_of_transactions_either() {
    let policy = "row_security = true\nstable_functions = true\n";
    let rule = |name: &str, more: &str| {
        format!("[[rule]]\nname = \"{name}\"\ntable = \"{name}\"\nfresh = \"1h\"\nin_transactions = true\n{more}")
    };
    let reloadable = remembering(&[rule("kept_of", policy), rule("kept_from", "")].concat());
    let address = reloadable.proxy.address();
    let mut server = straight(postgres());
    for sql in [
        "CREATE TABLE kept_of (id int, tenant text)",
        "INSERT INTO kept_of VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE kept_of ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY by_tenant ON kept_of USING (coalesce(current_setting('app.kept', true), '') IN ('', tenant))",
        "GRANT SELECT ON kept_of TO trusted",
        "CREATE TABLE kept_from (n int)",
        "INSERT INTO kept_from VALUES (1)",
        "GRANT SELECT ON kept_from TO trusted",
    ] {
        server.run(sql);
    }
    let [mut admin, mut client, mut other] =
        ["postgres", "trusted", "trusted"].map(|user| as_user(address, user).unwrap());
    let mut of_all = |client: &mut Client, read: &str| {
        let begins = read.strip_suffix(" ORDER BY 1").unwrap_or(read);
        until_remembered(client, &mut admin, read, begins);
        client.run("BEGIN");
        let before = remembered(&mut admin, begins).0;
        client.run(read);
        assert!(
            remembered(&mut admin, begins).0 > before,
            "others are told from memory inside"
        );
        client.run("COMMIT");
    };
    let read = "SELECT id FROM kept_of ORDER BY 1";
    of_all(&mut other, read);
    client.pipeline(&[
        parse("", "SELECT set_config($1, $2, false)"),
        bind("", "", &["app.kept", "b"]),
        execute("", 0),
    ]);
    client.run("BEGIN");
    assert_eq!(client.query(read).rows().concat(), [Some("2".to_owned())]);
    client.run("COMMIT");
    let read = "SELECT n FROM kept_from";
    of_all(&mut other, read);
    client.run("CREATE TEMPORARY TABLE kept_from AS SELECT 7 AS n");
    client.run("BEGIN");
    assert_eq!(client.ask(read), "7");
    client.run("COMMIT");
    server.run("DROP TABLE kept_of, kept_from");
}

/// A server that hears nothing may take a transaction for idle.
#[test]
fn the_server_hears_of_who_is_told_inside_of_a_transaction() {
    let reloadable = remembering(&RULE.replace("table = \"inside\"", "table = \"inside_heard\""));
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE inside_heard (n int)");
    server.run("INSERT INTO inside_heard VALUES (1)");
    let read = "SELECT n FROM inside_heard";
    client.run("SET idle_in_transaction_session_timeout = '2s'");
    until("it is remembered", || {
        client.run("BEGIN");
        client.run(read);
        client.run("COMMIT");
        remembered(&mut admin, read).0 > 0
    });
    let before = remembered(&mut admin, read).0;
    client.run("BEGIN");
    for _ in 0..30 {
        client.run(read);
        pass(Duration::from_millis(100));
    }
    client.run("COMMIT");
    let told = remembered(&mut admin, read).0 - before;
    assert!((10..30).contains(&told), "{told} of 30 were told from memory");
}

/// As drivers ask that prepare without a name, and wait for the description before they bind: the connection is theirs meanwhile.
#[test]
fn what_was_described_with_a_flush_is_answered_from_memory_and_the_server_ends_it() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE flushed (id int PRIMARY KEY, n int)");
    server.run("CREATE TABLE flushed_other (n int)");
    server.run("INSERT INTO flushed VALUES (1, 1), (2, 2)");
    let read = "SELECT n FROM flushed WHERE id = $1";
    let hinted = format!("/* ttl:3600 */ {read}");
    let described = |client: &mut Client, name: &str| {
        client.send(&[parse(name, &hinted), describe(b'S', name), flush()].concat());
        let said = ["1", "t", "T"].map(|_| client.read().unwrap());
        said.map(|message| (message.kind, message.body))
    };
    let bound = |name: &str| [bind("", name, &["1"]), execute("", 0)];
    for name in ["", "one"] {
        let before = remembered(&mut admin, read).0;
        until("it is remembered", || {
            assert_eq!(described(&mut client, name), described(&mut server, name));
            let said = client.pipeline(&bound(name));
            let straight = server.pipeline(&bound(name));
            assert_eq!((bytes(&said), said.status), (bytes(&straight), 'I'));
            for both in [&mut client, &mut server] {
                both.pipeline(&[close(b'S', name)]);
            }
            remembered(&mut admin, read).0 > before
        });
    }
    server.run("UPDATE flushed SET n = 7 WHERE id = 1");
    let stale = |client: &mut Client| {
        described(client, "");
        client.pipeline(&bound("")).value().as_deref() == Some("1")
    };
    assert!(stale(&mut client), "it is from memory");
    // The connection is free, and what comes next is asked of the server.
    assert_eq!(client.ask("SELECT n FROM flushed WHERE id = 1"), "7");
    // The portal that nobody has made is none.
    described(&mut client, "");
    client.send(&[&bound("")[..], &[flush(), sync()]].concat().concat());
    assert_eq!(
        client.answer().value().as_deref(),
        Some("7"),
        "with a Flush it is no unit"
    );
    client.run("BEGIN");
    assert!(!stale(&mut client), "no rule tells it inside of transactions");
    client.run("ROLLBACK");
    // A query ends what was described as well, and is asked of the server.
    let query = format!("/* ttl:3600 */ {}", read.replace("$1", "2"));
    until_remembered(&mut client, &mut admin, &query, "SELECT n FROM flushed WHERE id =");
    server.run("UPDATE flushed SET n = 8 WHERE id = 2");
    described(&mut client, "");
    assert_eq!(client.ask(&query), "8");
    assert!(stale(&mut client));
    // Where anything was run before, or bound, the server answers.
    let run = |text| vec![parse("other", text), bind("", "other", &[]), execute("", 0)];
    for (before, last) in [
        (run("SELECT n FROM flushed_other"), 'C'),
        (vec![parse("other", "SELECT 1"), bind("kept", "other", &[])], '2'),
        // What it may change is not known before it is run.
        (run("UPDATE flushed_other SET n = n"), 'C'),
    ] {
        assert!(stale(&mut client));
        client.send(&[&before[..], &[flush()]].concat().concat());
        while char::from(client.read().unwrap().kind) != last {}
        assert!(!stale(&mut client), "{before:?}");
        client.pipeline(&[close(b'S', "other")]);
    }
    server.run("DROP TABLE flushed, flushed_other");
}

/// More of its rows can be asked for as long as the transaction lasts.
#[test]
fn who_asks_for_some_rows_inside_of_a_transaction_may_go_on() {
    let reloadable = remembering(&RULE.replace("table = \"inside\"", "table = \"inside_some\""));
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE inside_some (n int)");
    server.run("INSERT INTO inside_some VALUES (1), (2), (3)");
    let read = "SELECT n FROM inside_some ORDER BY n";
    let some = [parse("", read), bind("", "", &[]), execute("", 2)];
    // Outside it is answered from memory.
    let before = remembered(&mut admin, read).0;
    until("it is remembered", || {
        assert_eq!(bytes(&client.pipeline(&some)), bytes(&server.pipeline(&some)));
        remembered(&mut admin, read).0 > before
    });
    for both in [&mut client, &mut server] {
        both.run("BEGIN");
    }
    for messages in [&some[..], &[execute("", 0)], &some[..], &[execute("", 1)]] {
        assert_eq!(bytes(&client.pipeline(messages)), bytes(&server.pipeline(messages)));
    }
    client.run("COMMIT");
    server.run("DROP TABLE inside_some");
}
