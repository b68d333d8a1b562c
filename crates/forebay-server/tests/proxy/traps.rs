//! What others have stepped into, and the test that fails where this proxy does.
//!
//! | what was seen elsewhere | test |
//! |---|---|
//! | rows of other queries under overload (PgDog 759) | `each_gets_its_own_and_all_of_it` (chaos), `ten_thousand_…` (crowd) |
//! | unnamed statements of two clients mixed (PgDog 574) | `unnamed_statements_are_each_ones_own` |
//! | a late cancel ends the next client's query (PgBouncer 245, 717); its ReadyForQuery shifts the answers (141) | `a_cancel_that_comes_late_hits_nobody_and_shifts_nothing` |
//! | a Describe by itself where the statement is not prepared (Supavisor 1174) | `a_statement_is_described_where_it_was_not_prepared` |
//! | a name exists only once ParseComplete has come (Supavisor 1175, PgBouncer 1535) | `a_name_that_failed_is_no_name` |
//! | a name that exists ends the connection (PgBouncer 1118) | `a_name_that_exists_is_refused_and_no_more` |
//! | `cached plan must not change result type` for everyone after DDL (PgBouncer 1038) | `what_is_prepared_behind_a_change_of_its_table_is_new` (judge) |
//! | a Sync while it copies in, a late CopyDone (PgBouncer 1025, 1470) | `a_copy_that_fails_is_answered_as_often_as_straight_…` (judge) |
//! | what is said behind a FATAL hangs a pipeline (Odyssey 514) | `a_pipeline_behind_the_last_word_ends` |
//! | `pg_dump`'s `search_path` poisons the pool (PgBouncer 976, 452) | `a_search_path_that_pg_dump_sets_is_no_strangers` |
//! | Close before a Bind that is still held; ParseComplete among rows (`pg_doorman`) | `names_that_come_and_go_in_one_pipeline_are_answered_in_order` |
//! | RESET ALL taken to free advisory locks (`pg_doorman`) | `only_discard_all_gives_locks_back` |
//! | DISCARD ALL keeps LISTENs and locks (PgDog 1475) | `discard_all_ends_listening_and_locks` |
//! | settings concatenated unescaped; SET inside of a transaction missed (pgcat) | `settings_follow_with_their_quotes_and_their_transactions` |
//! | `search_path` while users are looked up (CVE-2025-12819) | `nobodys_names_stand_before_the_catalogs_in_the_query` (access) |
//! | `VALID UNTIL` passed over (CVE-2025-2291) | `a_query_tells_of_users` (access) |
//! | keys of SCRAM do for another verifier, or need no binding | `a_verifier_of_another_salt_is_no_proof_to_the_database` |

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testbed::{Folder, Forebay};

use crate::client::{Answer, Client, bind, bind_raw, close, describe, execute, parse, query, sync};
use crate::login::log_in;
use crate::{PASSWORD, as_user, at, postgres, proxy, started, straight};

fn on_one_connection() -> (Forebay, Client, Client) {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let (one, other) = (at(proxy.address()), at(proxy.address()));
    (proxy, one, other)
}

#[test]
fn unnamed_statements_are_each_ones_own() {
    let (_proxy, mut one, mut other) = on_one_connection();
    for round in 0..20 {
        one.pipeline(&[parse("", &format!("SELECT 'one {round}'"))])
            .expect("one");
        other
            .pipeline(&[parse("", &format!("SELECT 'other {round}'"))])
            .expect("other");
        let run = [bind("", "", &[]), execute("", 0)];
        assert_eq!(one.pipeline(&run).value(), Some(format!("one {round}")));
        assert_eq!(other.pipeline(&run).value(), Some(format!("other {round}")));
    }
}

#[test]
fn a_cancel_that_comes_late_hits_nobody_and_shifts_nothing() {
    let (_proxy, mut one, mut other) = on_one_connection();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let told = other.ask(&format!("SELECT {number} FROM pg_sleep(0.001)"));
                assert_eq!(told, number.to_string(), "nobody cancels this one");
            }
        });
        for number in 0..300 {
            one.send(&query(&format!("SELECT {number}")));
            let secret = one.secret.clone();
            // It is done, or about to be: the request comes when another one has the connection.
            one.cancel(&secret);
            let answer = one.answer();
            match answer.sqlstate().as_str() {
                "00000" => assert_eq!(answer.value(), Some(number.to_string())),
                code => assert_eq!(code, "57014"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_statement_is_described_where_it_was_not_prepared() {
    let server = postgres();
    let proxy = proxy(server, &["--max-server-connections", "2"]);
    let mut itself = straight(server);
    let [mut client, mut stranger] = [(); 2].map(|()| at(proxy.address()));
    let text = "SELECT $1::int AS one, 'x'::text AS other";
    for client in [&mut client, &mut itself] {
        client.pipeline(&[parse("named", text)]).expect("prepared");
    }
    // The stranger keeps the connection on which it was.
    stranger.run("BEGIN");
    let described = itself.pipeline(&[describe(b'S', "named")]);
    assert_eq!(described.kinds(), "tT");
    assert_eq!(client.pipeline(&[describe(b'S', "named")]).messages, described.messages);
    stranger.run("COMMIT");
}

/// What one name means is another table from then on, for who prepares it then: whatever made or dropped one, and wherever its transaction ends.
#[test]
fn what_a_name_means_is_what_it_means_when_it_is_prepared() {
    let server = postgres();
    let proxy = proxy(server, &["--max-server-connections", "2"]);
    let mut itself = straight(server);
    for sql in [
        "CREATE SCHEMA meant_first",
        "CREATE SCHEMA meant_then",
        "CREATE TABLE meant_then.meant (a int)",
        "INSERT INTO meant_then.meant VALUES (1)",
        "CREATE TABLE meant_first.other AS SELECT 2 AS a, 3 AS b",
    ] {
        itself.run(sql);
    }
    let make = "CREATE TABLE meant_first.meant AS SELECT 2 AS a, 3 AS b";
    let into = "SELECT 2 AS a, 3 AS b INTO meant_first.meant";
    let made = "CREATE TABLE meant_first.meant (a int, b int)";
    let renamed = "ALTER TABLE meant_first.other RENAME TO meant";
    let filled = "INSERT INTO meant_first.meant VALUES (2, 3)";
    for (number, statements) in [
        &[make][..],
        &[into],
        &["BEGIN", made, filled, "COMMIT"],
        &["BEGIN", made, filled, "COMMIT AND CHAIN"],
        &["BEGIN", into, "COMMIT; BEGIN"],
        &["BEGIN", renamed, "COMMIT AND CHAIN"],
    ]
    .into_iter()
    .enumerate()
    {
        // Each of its own, and whoever has prepared it keeps it.
        let mut all = Vec::new();
        let text = format!("SELECT * FROM meant WHERE a > {number} - {number}");
        let mut ask = || {
            let mut client = at(proxy.address());
            client.run("SET search_path = meant_first, meant_then");
            let messages = [parse("named", &text), bind("", "named", &[]), execute("", 0)];
            let told = client.pipeline(&messages).expect("answered").rows().concat();
            all.push(client);
            told.into_iter().flatten().collect::<String>()
        };
        let mut client = at(proxy.address());
        assert_eq!(ask(), "1");
        for statement in statements {
            client.run(statement);
            if [made, renamed].contains(statement) {
                assert_eq!(ask(), "1", "it is not there yet");
            }
        }
        assert_eq!(ask(), "23", "{statements:?}");
        client.query("ROLLBACK");
        client.run("DROP TABLE meant_first.meant");
        assert_eq!(ask(), "1", "{statements:?}");
    }
    itself.run("DROP SCHEMA meant_first, meant_then CASCADE");
}

#[test]
fn a_name_that_failed_is_no_name() {
    let (_proxy, mut one, mut other) = on_one_connection();
    let failed = one.pipeline(&[parse("named", "SELECT nothing"), bind("", "named", &[]), execute("", 0)]);
    assert_eq!(failed.sqlstate(), "42703");
    other.run("SELECT 1");
    assert_eq!(
        one.pipeline(&[bind("", "named", &[]), execute("", 0)]).sqlstate(),
        "26000"
    );
    let again = one.pipeline(&[parse("named", "SELECT 'now'"), bind("", "named", &[]), execute("", 0)]);
    assert_eq!(again.value().as_deref(), Some("now"));
    // What is passed over behind an error is no name, either.
    let passed = one.pipeline(&[parse("", "SELECT nothing"), parse("passed", "SELECT 1")]);
    assert_eq!(passed.sqlstate(), "42703");
    assert_eq!(
        one.pipeline(&[bind("", "passed", &[]), execute("", 0)]).sqlstate(),
        "26000"
    );
}

#[test]
fn a_name_that_exists_is_refused_and_no_more() {
    let (_proxy, mut one, mut other) = on_one_connection();
    one.pipeline(&[parse("named", "SELECT 'first'")]).expect("prepared");
    other.run("SELECT 1");
    let mut itself = straight(postgres());
    itself.pipeline(&[parse("named", "SELECT 'first'")]).expect("prepared");
    let again = [parse("named", "SELECT 'second'")];
    let expected = itself.pipeline(&again);
    assert_eq!(expected.sqlstate(), "42P05");
    assert_eq!(one.pipeline(&again).messages, expected.messages);
    let first = one.pipeline(&[bind("", "named", &[]), execute("", 0)]);
    assert_eq!(first.value().as_deref(), Some("first"), "it is what it was");
}

#[test]
fn a_pipeline_behind_the_last_word_ends() {
    let (_proxy, mut one, mut other) = on_one_connection();
    let mut all = Vec::new();
    for text in [
        "SELECT 'before'",
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "SELECT 1/0",
        "SELECT 'behind'",
    ] {
        all.extend([parse("", text), bind("", "", &[]), execute("", 0), sync()].concat());
    }
    one.send(&all);
    assert_eq!(one.answer().value().as_deref(), Some("before"));
    let words = one.last_words();
    let last = words.last().expect("a word").failure();
    assert_eq!(
        (last.sqlstate(), last.field(b'S')),
        ("57P01", Some("FATAL")),
        "{words:?}"
    );
    assert_eq!(words.iter().filter(|word| word.kind == b'E').count(), 1, "{words:?}");
    assert_eq!(other.ask("SELECT 'served'"), "served");
}

#[test]
fn a_search_path_that_pg_dump_sets_is_no_strangers() {
    let (_proxy, mut one, mut other) = on_one_connection();
    // As pg_dump says it.
    one.run("SELECT pg_catalog.set_config('search_path', '', false)");
    assert_eq!(other.ask("SHOW search_path"), "\"$user\", public");
    assert_eq!(one.ask("SHOW search_path"), "");
    assert_eq!(other.ask("SHOW search_path"), "\"$user\", public");
}

#[test]
fn names_that_come_and_go_in_one_pipeline_are_answered_in_order() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let (mut client, mut stranger, mut itself) = (at(proxy.address()), at(proxy.address()), straight(postgres()));
    for client in [&mut client, &mut itself] {
        client
            .pipeline(&[parse("a", "SELECT 'old', n FROM generate_series(1, 3) n")])
            .expect("prepared");
    }
    // So that it is to be prepared anew, in front of what runs.
    stranger.run("DISCARD ALL");
    let all = [
        bind("rows", "a", &[]),
        execute("rows", 2),
        close(b'S', "a"),
        parse("a", "SELECT 'new'"),
        execute("rows", 0),
        bind("", "a", &[]),
        describe(b'P', ""),
        execute("", 0),
        close(b'S', "nobody"),
        parse("b", "SELECT $1::text"),
        bind_raw("", "b", &[], &[Some(b"given")], &[]),
        execute("", 0),
    ];
    let expected = itself.pipeline(&all);
    for _ in 0..2 {
        assert_eq!(client.pipeline(&all).messages, expected.messages);
        let back = [
            close(b'S', "a"),
            close(b'S', "b"),
            parse("a", "SELECT 'old', n FROM generate_series(1, 3) n"),
        ];
        client.pipeline(&back).expect("as before");
        stranger.run("SELECT 1");
    }
}

const LOCK: &str = "SELECT pg_try_advisory_lock(18, 181818)";

#[test]
fn only_discard_all_gives_locks_back() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    let [mut one, mut other, mut third] = [(); 3].map(|()| at(proxy.address()));
    assert_eq!(one.ask("SELECT pg_try_advisory_lock(18, 1)"), "t");
    let backend = one.ask("SELECT pg_backend_pid()");
    for keeps in [
        "RESET ALL",
        "DEALLOCATE ALL",
        "DISCARD TEMP",
        "DISCARD PLANS",
        "CLOSE ALL",
        "UNLISTEN *",
    ] {
        // The other connection is taken: whoever comes now would have this one, if it were given back.
        third.run("BEGIN");
        one.run(keeps);
        other.send(&query("SELECT pg_try_advisory_lock(18, 1)"));
        assert!(
            other.read_within(Duration::from_millis(50)).is_none(),
            "{keeps} keeps it"
        );
        assert_eq!(one.ask("SELECT pg_backend_pid()"), backend, "{keeps}");
        third.run("COMMIT");
        assert_eq!(
            other.answer().value().as_deref(),
            Some("f"),
            "{keeps} gives no lock back"
        );
    }
    one.run("DISCARD ALL");
    assert_eq!(other.ask("SELECT pg_try_advisory_lock(18, 1)"), "t");
    other.run("DISCARD ALL");
}

#[test]
fn discard_all_ends_listening_and_locks() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    let [mut one, mut other] = [(); 2].map(|()| at(proxy.address()));
    one.run("LISTEN traps");
    one.run("SELECT pg_advisory_lock(18, 181818)");
    one.run("DISCARD ALL");
    assert_eq!(other.ask(LOCK), "t");
    assert_eq!(one.ask("SELECT count(*) FROM pg_listening_channels()"), "0");
    straight(postgres()).run("NOTIFY traps, 'nobody listens'");
    for client in [&mut one, &mut other] {
        let answer = client.run("SELECT 1");
        assert!(!answer.kinds().contains('A'), "{answer:?}");
        assert!(client.read_within(Duration::from_millis(20)).is_none());
    }
    other.run("DISCARD ALL");
}

#[test]
fn settings_follow_with_their_quotes_and_their_transactions() {
    let (_proxy, mut one, mut other) = on_one_connection();
    let name = "it's \\'; SET work_mem = '7MB'; --";
    let application = name.replace('\'', "''");
    one.run(&format!("SET application_name = '{application}'"));
    one.run("SET app.path = E'a\\\\b''c'");
    for (commits, expected) in [("COMMIT", "5MB"), ("ROLLBACK", "5MB")] {
        one.run("BEGIN");
        one.run(if commits == "COMMIT" {
            "SET work_mem = '5MB'"
        } else {
            "SET work_mem = '6MB'"
        });
        one.run(commits);
        assert_eq!(other.ask("SHOW work_mem"), "4MB");
        let strangers = other.ask("SELECT coalesce(current_setting('app.path', true), '')");
        assert_eq!(strangers, "");
        assert_eq!(one.ask("SHOW work_mem"), expected, "{commits}");
        assert_eq!(one.ask("SHOW application_name"), name);
        assert_eq!(one.ask("SHOW app.path"), "a\\b'c");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verifier_of_another_salt_is_no_proof_to_the_database() {
    let server = postgres();
    let folder = Folder::new("users", None).unwrap();
    // The same password, and keys that are not the database's.
    let verifier = {
        let mut itself = straight(server);
        itself.run("SET password_encryption = 'scram-sha-256'");
        let password = PASSWORD.replace('\'', "''");
        itself.run(&format!("CREATE ROLE salted LOGIN PASSWORD '{password}'"));
        let verifier = itself.ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'salted'");
        itself.run("DROP ROLE salted");
        verifier
    };
    std::fs::write(folder.file("users"), format!("scram:{verifier}\n")).unwrap();
    let file = folder.file("users");
    let proxy = proxy(server, &["--users", file.to_str().unwrap()]);
    let refused = log_in(proxy.address(), "scram", "postgres", Some(PASSWORD))
        .await
        .unwrap_err();
    assert!(refused.contains("28P01"), "{refused}");
}

/// What a transaction is like is shown behind it as if the session had set it, and is nobody's any more, whatever the session itself has set for all of them.
#[test]
fn what_is_of_a_transaction_alone_follows_nobody() {
    let everybodys = [
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET default_transaction_read_only = on",
        "SET default_transaction_deferrable = on",
    ];
    let one_transactions = [
        "BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT 1; COMMIT",
        "BEGIN; SET LOCAL transaction_read_only = on; COMMIT",
        "SET transaction_isolation = 'serializable'",
        "SET transaction_deferrable = on",
        "SELECT set_config('transaction_read_only', 'on', false)",
    ];
    const SHOWS: [&str; 3] = [
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SHOW transaction_deferrable",
    ];
    for set in everybodys {
        for of_one in one_transactions {
            let (_proxy, mut one, mut other) = on_one_connection();
            let mut itself = straight(postgres());
            one.run(set);
            itself.run(set);
            other.run(of_one);
            for _ in 0..2 {
                one.run(of_one);
                itself.run(of_one);
                for show in SHOWS {
                    assert_eq!(one.ask(show), itself.ask(show), "{set}; {of_one}; {show}");
                    let strangers = other.ask(show);
                    assert!(
                        ["read committed", "off"].contains(&strangers.as_str()),
                        "{strangers}: {set}"
                    );
                }
            }
        }
    }
}

/// What is set is what it was, whatever encoding others speak who have the connection in between.
#[test]
fn settings_are_read_in_the_encoding_that_they_were_set_in() {
    const LENGTH: &str = "SELECT length(current_setting('app.of_letters'))::text";
    let (_proxy, mut one, mut other) = on_one_connection();
    one.run("CREATE SCHEMA \"of_letters_\u{e9}\"; CREATE TABLE \"of_letters_\u{e9}\".of_letters AS SELECT 'mine' AS a");
    one.run("SET app.of_letters = '\u{e9}'");
    one.run("SET search_path = \"of_letters_\u{e9}\"");
    for encoding in ["LATIN1", "WIN1252", "SQL_ASCII", "UTF8"] {
        other.run(&format!("SET client_encoding = '{encoding}'"));
        assert_eq!(one.ask(LENGTH), "1", "{encoding}");
        assert_eq!(one.ask("SELECT a FROM of_letters"), "mine", "{encoding}");
        // Two letters of its own, of the same bytes.
        other.run("SET app.of_letters = '\u{e9}'");
        let letters = if ["SQL_ASCII", "UTF8"].contains(&encoding) {
            "1"
        } else {
            "2"
        };
        assert_eq!(other.ask(LENGTH), letters, "{encoding}");
        assert_eq!(one.ask(LENGTH), "1", "{encoding}");
        assert_eq!(other.ask(LENGTH), letters, "{encoding}");
        other.run("RESET app.of_letters");
        assert_eq!(one.ask("SELECT a FROM of_letters"), "mine", "{encoding}");
    }
    one.run("DROP SCHEMA \"of_letters_\u{e9}\" CASCADE");
}

/// What a session has set may not be had any more; nothing of it runs without, also where the connection is asked about functions before.
#[test]
fn what_cannot_be_set_ends_the_session_whatever_is_asked_beside() {
    for learns in [false, true] {
        let (_proxy, mut client, mut other) = on_one_connection();
        let mut itself = straight(postgres());
        itself.run("CREATE ROLE gone_soon");
        client.run("SET ROLE gone_soon");
        assert_eq!(client.ask("SELECT current_user"), "gone_soon");
        assert_eq!(other.ask("SELECT current_user"), "postgres");
        if learns {
            // It leaves something, so that it is asked next who calls it.
            other.run(
                "CREATE FUNCTION leaves_it() RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.left'', ''1'', false)'",
            );
        }
        itself.run("DROP ROLE gone_soon");
        client.send(&query("SELECT current_user"));
        let said = client.last_words();
        assert!(said.iter().all(|message| message.kind != b'D'), "{learns}: {said:?}");
        assert_eq!(said.last().expect("a word").failure().sqlstate(), "08P01", "{learns}");
        itself.run("DROP FUNCTION IF EXISTS leaves_it()");
    }
}

/// What sets something by a function of PostgreSQL's own, where no function of the user's is there.
#[test]
fn what_a_view_a_default_or_a_policy_sets_is_no_strangers() {
    let server = started();
    let mut straight = straight(&server);
    for sql in [
        "CREATE VIEW sets AS SELECT set_config('app.left', 'by a view', false) AS told",
        "CREATE VIEW sets_by_view AS SELECT told FROM sets",
        "CREATE TABLE defaults (n int, told text DEFAULT set_config('app.left', 'by a default', false))",
        "CREATE TABLE secured (n int)",
        "INSERT INTO secured VALUES (1)",
        "CREATE POLICY sets ON secured USING (set_config('app.left', 'by a policy', false) = 'by a policy')",
        "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE secured FORCE ROW LEVEL SECURITY",
        "CREATE ROLE plain LOGIN",
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO plain",
    ] {
        straight.run(sql);
    }
    let proxy = proxy(&server, &["--max-server-connections", "1"]);
    for (text, told) in [
        ("SELECT told FROM sets", "by a view"),
        ("SELECT told FROM sets_by_view", "by a view"),
        ("INSERT INTO defaults (n) VALUES (1)", "by a default"),
        ("SELECT n FROM secured", "by a policy"),
    ] {
        let (mut one, mut other) = (
            as_user(proxy.address(), "plain").unwrap(),
            as_user(proxy.address(), "plain").unwrap(),
        );
        let left = "SELECT coalesce(current_setting('app.left', true), '')";
        one.run("SELECT 1");
        one.run(text);
        assert_eq!(other.ask(left), "", "{text}");
        assert_eq!(one.ask(left), told, "{text}");
        assert_eq!(other.ask(left), "", "{text}");
    }
}

/// What is prepared behind it in one write is not discarded with what was prepared before.
#[test]
fn what_discards_all_by_the_extended_protocol_is_done_before_what_is_prepared_behind_it() {
    let proxy = proxy(postgres(), &[]);
    let (mut client, mut server) = (at(proxy.address()), straight(postgres()));
    for text in ["DISCARD ALL", "DEALLOCATE ALL"] {
        for with_sync in [true, false] {
            let told = [&mut client, &mut server].map(|both| {
                let discard = [parse("", text), bind("", "", &[]), execute("", 0)];
                let end = if with_sync { sync() } else { Vec::new() };
                let prepare = [parse("behind", "SELECT 7"), bind("", "behind", &[]), execute("", 0)];
                both.send(&[&discard[..], &[end], &prepare[..], &[sync()]].concat().concat());
                let mut answers = vec![both.answer()];
                answers.extend(with_sync.then(|| both.answer()));
                answers.push(both.pipeline(&[bind("", "behind", &[]), execute("", 0)]));
                both.pipeline(&[close(b'S', "behind")]);
                let kinds = |answer: &Answer| (answer.kinds(), answer.value());
                answers.iter().map(kinds).collect::<Vec<_>>()
            });
            assert_eq!(told[0], told[1], "{text}, {with_sync}");
        }
    }
}
