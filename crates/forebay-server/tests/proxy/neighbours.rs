//! What one client sends, or leaves unsaid, is its own matter: those who have its server connection next know nothing of it.

use std::time::Duration;

use crate::client::{Client, message, query, sync, whole};
use crate::crowd::until;
use crate::hints::with_admin;
use crate::{at, postgres, proxy, straight};

const NO_MESSAGE: &[u8] = &[0xaa, 0, 0, 0, 4];

#[test]
fn what_is_no_message_ends_only_who_sent_it() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut other = at(proxy.address());
    for (number, before) in [vec![], query("SELECT 1"), sync()].into_iter().enumerate() {
        for bad in [NO_MESSAGE.to_vec(), message(b'p', b"secret\0")] {
            let sent = [before.clone(), bad].concat();
            for round in 0..5 {
                let mut gone = at(proxy.address());
                gone.send(&sent);
                drop(gone);
                assert_eq!(other.ask(&format!("SELECT {round}")), round.to_string(), "{number}");
            }
            let told = |mut client: Client| {
                client.send(&sent);
                let said = client.last_words_or_answers();
                let last = said.last().expect("a word").failure();
                (last.sqlstate().to_owned(), last.message().to_owned(), said.len())
            };
            let expected = told(straight(postgres()));
            assert_eq!(expected.0, "08P01");
            assert_eq!(told(at(proxy.address())), expected, "{number}");
            assert_eq!(other.ask("SELECT 'on'"), "on");
        }
    }
}

#[test]
fn a_flush_with_something_in_it_is_refused_and_nothing_else_is() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut other = at(proxy.address());
    for before in [vec![], query("SELECT 1")] {
        let bad = [before.clone(), message(b'H', b"x")].concat();
        for _ in 0..5 {
            let mut gone = at(proxy.address());
            gone.send(&bad);
            drop(gone);
            assert_eq!(other.ask("SELECT 2"), "2");
        }
        let told = |mut client: Client| {
            client.send(&bad);
            let first = (!before.is_empty()).then(|| client.answer().kinds());
            // Nothing is answered before the Sync.
            client.send(&[query("SELECT 3"), sync()].concat());
            let second = client.answer();
            (first, second.kinds(), second.sqlstate(), client.ask("SELECT 4"))
        };
        let expected = told(straight(postgres()));
        assert_eq!(expected.2, "08P01");
        assert_eq!(told(at(proxy.address())), expected);
        assert_eq!(other.ask("SELECT 5"), "5");
    }
}

#[test]
fn what_stands_before_a_broken_word_is_done_and_told() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut itself = straight(postgres());
    itself.run("CREATE TABLE before_it (n int)");
    let mut other = at(proxy.address());
    let insert = "INSERT INTO before_it VALUES (1)";
    for (number, sent) in [
        query(insert),
        [query(insert), query(insert)].concat(),
        [whole("INSERT INTO before_it VALUES ($1)", &["1"]), sync()].concat(),
        [query("BEGIN"), query(insert), query("COMMIT")].concat(),
        [query("BEGIN"), query(insert)].concat(),
        [query(insert), query("SELECT pg_sleep(0.1)"), query(insert)].concat(),
    ]
    .into_iter()
    .enumerate()
    {
        let sent = [sent, vec![b'Q', 0, 0, 0, 0]].concat();
        let told = |mut client: Client, itself: &mut Client| {
            client.send(&sent);
            let mut said = client.last_words_or_answers();
            // Straight it is hung up on without a word.
            said.retain(|word| word.kind != b'E');
            let kinds: String = said.iter().map(|word| char::from(word.kind)).collect();
            until("it to be over", || {
                itself.ask("SELECT count(*) FROM pg_locks WHERE relation = 'before_it'::regclass") == "0"
            });
            (kinds, itself.ask("SELECT count(*) FROM before_it"))
        };
        itself.run("TRUNCATE before_it");
        let expected = told(straight(postgres()), &mut itself);
        itself.run("TRUNCATE before_it");
        assert_eq!(told(at(proxy.address()), &mut itself), expected, "{number}");
        assert_eq!(other.ask("SELECT 1"), "1");
    }
}

/// How many locks there are on that table.
fn locks(on: &str) -> String {
    format!("SELECT count(*) FROM pg_locks WHERE relation = '{on}'::regclass")
}

#[test]
fn who_goes_in_the_middle_of_a_word_or_of_a_copy_leaves_nothing() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    let mut itself = straight(postgres());
    itself.run("CREATE TABLE left_alone (n int)");
    let is_locked = |itself: &mut Client| itself.ask(&locks("left_alone")) != "0";
    for pieces in [
        &[&b"X"[..]][..],
        &[b"X", &[0, 0, 0, 4]],
        &[&[b'X', 0, 0, 0, 9]],
        &[&[b'X', 0, 0, 0, 4]],
    ] {
        let mut gone = at(proxy.address());
        gone.run("BEGIN");
        gone.run("LOCK left_alone");
        assert!(is_locked(&mut itself));
        for piece in pieces {
            gone.send(piece);
            assert!(
                gone.read_within(Duration::from_millis(50))
                    .is_none_or(|read| read.is_err())
            );
        }
        drop(gone);
        until("the lock to be gone", || !is_locked(&mut itself));
    }
    for behind in [message(b'X', b""), [message(b'd', b"1\n"), message(b'X', b"")].concat()] {
        let mut gone = at(proxy.address());
        gone.run("BEGIN");
        gone.send(&query("COPY left_alone FROM STDIN"));
        assert_eq!(gone.read().unwrap().kind, b'G');
        gone.send(&behind);
        drop(gone);
        until("the copy to be gone", || !is_locked(&mut itself));
    }
    let mut other = at(proxy.address());
    assert_eq!(other.ask("SELECT count(*) FROM left_alone"), "0");
    // Who stays to hear it is told what it is told straight.
    let told = |mut client: Client| {
        client.send(&query("COPY left_alone FROM STDIN"));
        assert_eq!(client.read().unwrap().kind, b'G');
        client.send(&message(b'X', b""));
        let said = client.last_words();
        said.iter()
            .map(|word| word.failure().message().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(told(at(proxy.address())), told(straight(postgres())));
}

#[test]
fn who_wants_to_be_ended_when_idle_is_and_nobody_else() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    let mut other = at(proxy.address());
    let by_set = {
        let mut client = at(proxy.address());
        client.run("SET idle_session_timeout = '150ms'");
        client
    };
    let options = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("options", "-c idle-session-timeout=150ms"),
    ];
    for mut wants in [Some(by_set), None] {
        let mut client = wants.take().unwrap_or_else(|| {
            let mut client = Client::connect_with(proxy.address(), &options).expect("let in");
            client.run("SELECT 1");
            client
        });
        // All that time there are two connections, and one of them may be ended.
        let mut ended = None;
        let begun = std::time::Instant::now();
        while ended.is_none() {
            assert!(begun.elapsed() < crate::client::PATIENCE, "it is not ended");
            assert_eq!(other.ask("SELECT 1"), "1");
            ended = client.read_within(Duration::from_millis(1));
        }
        let last = ended.expect("a word").expect("a word").failure();
        assert_eq!(last.sqlstate(), "57P05");
    }
}

#[test]
fn what_comes_once_is_asked_about_nowhere() {
    let proxy = with_admin(&[]);
    let mut client = at(proxy.address());
    let mut why = |text: &str| {
        let shown = client.query("SHOW FOREBAY SHARING").expect("shown");
        let row = shown.rows().into_iter().find(|row| row[2].as_deref() == Some(text));
        row.expect("known")[6].clone()
    };
    let mut asker = at(proxy.address());
    let text = "SELECT ? AS once";
    for times in 1..4 {
        asker.run("SELECT 1 AS once");
        let why = why(text);
        let is_told = |why: &String| why.starts_with("the catalog has not been asked about it");
        assert!(why.as_ref().is_some_and(is_told), "{times}: {why:?}");
    }
    asker.run("SELECT 1 AS once");
    until("the catalog to be asked", || why(text).is_none());
}

/// Of two who change a row in one transaction neither could tell by the time that the other one has.
#[test]
fn who_changes_a_row_by_the_time_goes_alone() {
    let proxy = with_admin(&[]);
    let mut client = at(proxy.address());
    client.run("CREATE TABLE timed (id int PRIMARY KEY, at timestamptz DEFAULT now(), n int)");
    client.run("INSERT INTO timed (id) VALUES (1)");
    for (text, goes_alone) in [
        ("UPDATE timed SET at = now() WHERE id = 1", true),
        ("UPDATE timed SET at = CURRENT_TIMESTAMP WHERE id = 1", true),
        ("UPDATE timed SET at = DEFAULT WHERE id = 1", true),
        (
            "INSERT INTO timed (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET at = now()",
            true,
        ),
        ("DELETE FROM timed WHERE at > now() + interval '1 day'", true),
        ("UPDATE timed SET n = DEFAULT WHERE id = 1", true),
        ("UPDATE timed SET n = 5 WHERE id = 1", false),
        (
            "INSERT INTO timed (id, at) VALUES (1, now()) ON CONFLICT DO NOTHING",
            true,
        ),
        ("SELECT id FROM timed WHERE at < now() AND id = 1", false),
    ] {
        // As it is shown: without its literals.
        let parts: Vec<&str> = text.split('\'').step_by(2).collect();
        let normal = parts.join("?").replace(['1', '5'], "?");
        // On a busy machine any statement may be slow for a while.
        until(text, || {
            client.run(text);
            let shown = client.query("SHOW FOREBAY SHARING").expect("shown");
            let row = shown.rows().into_iter().find(|row| row[2].as_deref() == Some(&normal));
            match row.expect("known")[6].as_deref() {
                None => !goes_alone,
                Some(why) => goes_alone && !why.contains("has not been asked") && !why.contains("more to do"),
            }
        });
    }
}
