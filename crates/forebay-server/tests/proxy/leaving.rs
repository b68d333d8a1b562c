//! What a session leaves that is hard to see, on one connection for two: the other one never sees it, and it is neither lost nor kept for longer than it lasts.

use testbed::{Forebay, Postgres};

use crate::client::{Client, bind, close, execute, message, parse, query, sync};
use crate::crowd::until;
use crate::{at, postgres, proxy, started, straight};

/// A database of its own on a server that all share.
struct Stage {
    database: &'static str,
    proxy: Forebay,
}

impl Stage {
    fn of(database: &'static str, connections: &str) -> Self {
        Self::encoded(database, connections, "")
    }

    fn encoded(database: &'static str, connections: &str, how: &str) -> Self {
        straight(postgres()).run(&format!("CREATE DATABASE {database} {how}"));
        let proxy = proxy(
            postgres(),
            &["--max-server-connections", connections, "--admin-users", "postgres"],
        );
        Self { database, proxy }
    }

    fn with(&self, parameters: &[(&str, &str)]) -> Client {
        let all = [&[("user", "postgres"), ("database", self.database)], parameters].concat();
        Client::connect_with(self.proxy.address(), &all).expect("a session")
    }

    fn client(&self) -> Client {
        self.with(&[])
    }

    fn straight(&self) -> Client {
        let who = [("user", "postgres"), ("database", self.database)];
        Client::connect_with(postgres().address(), &who).expect("a session")
    }

    /// Whether a client is kept on the one connection.
    fn is_kept(&self) -> bool {
        let mut admin = self.client();
        let shown = admin.query("SHOW FOREBAY CLIENTS").expect("shown");
        shown
            .rows()
            .iter()
            .any(|row| row.iter().flatten().any(|value| &**value == "pinned"))
    }
}

const LEFT: &str = "SELECT coalesce(current_setting('app.kept', true), '')";

/// None is what all begin as, but for those who begin as another; and an empty value is one, where it began otherwise.
#[test]
fn who_begins_with_something_may_be_without_and_nobody_else_is() {
    let stage = Stage::of("leaving_begins", "1");
    stage.straight().run(
        "CREATE ROLE leaving_role; CREATE ROLE leaving_as LOGIN; GRANT leaving_role TO leaving_as; \
         ALTER ROLE leaving_as SET role = 'leaving_role'; ALTER ROLE leaving_as SET app.base = 'base'",
    );
    let as_it = || {
        [
            stage.with(&[("user", "leaving_as")]),
            stage.with(&[("user", "leaving_as")]),
        ]
    };
    let by_options = || {
        let options = [("options", "-c role=leaving_role -c app.base=base")];
        [stage.with(&options), stage.with(&options)]
    };
    for (number, mut both) in [as_it(), by_options()].into_iter().enumerate() {
        const ASK: &str = "SELECT concat_ws(' ', current_user, '<' || current_setting('app.base') || '>')";
        let without = format!("{} <>", if number == 0 { "leaving_as" } else { "postgres" });
        let [one, other] = &mut both;
        assert_eq!(other.ask(ASK), "leaving_role <base>");
        one.run("SET ROLE NONE");
        one.run("SET app.base = ''");
        for _ in 0..2 {
            assert_eq!(other.ask(ASK), "leaving_role <base>", "{number}");
            assert_eq!(one.ask(ASK), without, "{number}");
        }
        one.run("RESET ROLE; RESET app.base");
        assert_eq!(other.ask(ASK), "leaving_role <base>", "{number}");
        assert_eq!(one.ask(ASK), "leaving_role <base>", "{number}");
    }
    stage.straight().run("DROP ROLE leaving_as, leaving_role");
}

#[test]
fn a_setting_is_the_same_however_its_letters_are_written() {
    let stage = Stage::of("leaving_letters", "1");
    let (mut one, mut other) = (stage.client(), stage.client());
    const ASK: &str = "SELECT coalesce(current_setting('app.tenantid', true), '')";
    one.run("SELECT set_config('app.tenantId', '7', false)");
    assert_eq!(other.ask(ASK), "");
    one.run("SET App.TENANTID = '8'");
    assert_eq!(other.ask(ASK), "");
    other.run("SET app.tenantId = '9'");
    assert_eq!(one.ask(ASK), "8");
    assert_eq!(other.ask(ASK), "9");
    one.run("RESET \"app\".\"tenantId\"");
    assert_eq!(other.ask(ASK), "9");
    assert_eq!(one.ask(ASK), "");
}

/// Nothing of ours waits until no transaction may disturb it, as what is asked may by default.
#[test]
fn who_may_have_to_wait_waits_for_nothing_that_he_has_not_asked() {
    let stage = Stage::of("leaving_waits", "1");
    let mut writer = stage.straight();
    writer.run("CREATE TABLE leaving_rows (n int)");
    writer.run(
        "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM leaving_rows; INSERT INTO leaving_rows VALUES (1)",
    );
    let (mut one, mut other) = (stage.client(), stage.client());
    other.run("SET app.kept = 'other'");
    for sets in ["isolation = 'serializable'", "read_only = on", "deferrable = on"] {
        one.run(&format!("SET default_transaction_{sets}"));
    }
    assert_eq!(one.ask("SHOW default_transaction_deferrable"), "on");
    assert_eq!(other.ask("SHOW app.kept"), "other");
    assert_eq!(one.ask("SHOW default_transaction_deferrable"), "on");
    one.run("SET default_transaction_deferrable = off");
    assert_eq!(other.ask("SELECT 1"), "1");
    writer.run("ROLLBACK");
}

/// Nobody is kept for letters, for quotes that only look like something, or for what the server has refused as no SQL.
#[test]
fn nobody_is_kept_for_how_a_text_looks() {
    for (database, how) in [
        ("leaving_utf8", ""),
        (
            "leaving_latin1",
            "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        ),
        (
            "leaving_ascii",
            "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        ),
        (
            "leaving_mule",
            "ENCODING 'MULE_INTERNAL' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        ),
        (
            "leaving_windows",
            "ENCODING 'WIN1252' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        ),
    ] {
        let stage = Stage::encoded(database, "1", how);
        // What leaves something, and is called in letters that not every encoding has.
        if how.is_empty() {
            stage.straight().run(
                "CREATE FUNCTION leaves_\u{e9}() RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.kept'', ''1'', false) /* \u{65e5} */'",
            );
        }
        if database == "leaving_windows" {
            // A letter that there is not, which the server takes all the same.
            let who = [
                ("user", "postgres"),
                ("database", database),
                ("client_encoding", "WIN1252"),
            ];
            let mut itself = Client::connect_with(postgres().address(), &who).expect("a session");
            let makes = b"CREATE FUNCTION of_none() RETURNS int LANGUAGE sql AS 'SELECT 1 /* \x81 */'\0";
            itself.send(&message(b'Q', makes));
            itself.answer();
        }
        let mut other = stage.client();
        let latin1 = |text: &str| {
            let bytes: Vec<u8> = text.chars().map(|letter| u8::try_from(letter).unwrap()).collect();
            message(b'Q', &[&bytes[..], &[0]].concat())
        };
        // Nothing is converted from the one to the other.
        let encodings = match database {
            "leaving_mule" => &[][..],
            "leaving_windows" => &["UTF8"],
            _ => &["UTF8", "LATIN1"],
        };
        assert_eq!(other.ask("SELECT 1"), "1", "{database}");
        assert!(!stage.is_kept(), "{database}");
        for encoding in encodings {
            let mut one = stage.with(&[("client_encoding", encoding)]);
            for text in [
                latin1("SELECT 'caf\u{e9}'"),
                query("SELECT '<a href=\"?a=1&\">'"),
                query("SELECT 'open"),
                query("SELECT 1 /* open"),
                [parse("", "SELECT 'open"), bind("", "", &[]), execute("", 0), sync()].concat(),
            ] {
                one.send(&text);
                one.answer();
                assert_eq!(
                    other.ask("SELECT 1"),
                    "1",
                    "{database} {encoding} {}",
                    text.escape_ascii()
                );
            }
        }
        if how.is_empty() {
            // In its own encoding it is seen all the same.
            let mut one = stage.with(&[("client_encoding", "LATIN1")]);
            one.send(&latin1("SELECT leaves_\u{e9}()"));
            one.answer();
            one.run("RESET ALL");
            assert_eq!(other.ask(LEFT), "");
            other.run("SELECT leaves_\u{e9}()");
            assert_eq!(stage.client().ask(LEFT), "");
            assert_eq!(other.ask(LEFT), "1");
        }
    }
}

/// What the server may have taken for SQL by another setting, and what stands behind more than is counted, is kept in mind.
#[test]
fn who_has_set_what_nobody_knows_is_kept_whatever_is_refused_behind_it() {
    let stage = Stage::of("leaving_refused", "2");
    stage.straight().run(
        "CREATE PROCEDURE sets(k text, v text) LANGUAGE plpgsql AS \
         'BEGIN PERFORM set_config(k, v, false); COMMIT; RAISE syntax_error; END'",
    );
    let mut one = stage.client();
    one.run("SET standard_conforming_strings = off");
    assert_eq!(one.query("CALL sets('app.kept', 'it\\'s')").sqlstate(), "42601");
    assert_eq!(one.ask(LEFT), "it's");
    assert!(stage.is_kept());
    drop(one);
    until("the connection is closed", || !stage.is_kept());
    let mut one = stage.client();
    let sets = |value: usize| query(&format!("SELECT set_config('app.' || 'kept', '{value}', false)"));
    let mut all: Vec<Vec<u8>> = (0..15).map(sets).collect();
    all.extend([
        query("RESET ALL"),
        sets(15),
        query("SELECT set_config('app.' || 'other', '1', false), 'open"),
    ]);
    one.send(&all.concat());
    for _ in &all {
        one.answer();
    }
    assert_eq!(one.ask(LEFT), "15");
    assert!(stage.is_kept());
}

/// `RESET ALL` lets go of who has set what nobody knows, however it is asked, once it is done for good.
#[test]
fn who_resets_all_is_kept_no_longer() {
    let stage = Stage::of("leaving_reset", "2");
    let extended = |text: &str| [parse("", text), bind("", "", &[]), execute("", 0)].concat();
    let mut one = stage.client();
    let sets = |one: &mut Client| {
        one.pipeline(&[
            parse("", "SELECT set_config($1, '1', false)"),
            bind("", "", &["app.kept"]),
            execute("", 0),
        ]);
        assert_eq!(one.ask(LEFT), "1");
        assert!(stage.is_kept());
    };
    for resets in [
        vec![query("RESET ALL")],
        vec![extended("RESET ALL"), sync()],
        vec![query("BEGIN"), query("RESET ALL"), query("COMMIT")],
        vec![query("BEGIN"), extended("RESET ALL"), sync(), query("COMMIT")],
    ] {
        sets(&mut one);
        for text in resets {
            one.send(&text);
            if !matches!(text[0], b'P') || text.ends_with(&sync()) {
                one.answer();
            }
        }
        until("it is kept no longer", || !stage.is_kept());
        assert_eq!(one.ask(LEFT), "");
    }
    for undone in [
        vec![query("BEGIN"), query("RESET ALL"), query("ROLLBACK")],
        vec![[extended("RESET ALL"), extended("SELECT 1/0"), sync()].concat()],
    ] {
        sets(&mut one);
        for text in undone {
            one.send(&text);
            one.answer();
        }
        assert_eq!(one.ask(LEFT), "1");
        assert!(stage.is_kept());
        one.run("RESET ALL");
    }
}

/// What a function or a default sets that is called by way of a text, of another's default, or before anybody has looked.
#[test]
fn what_is_set_by_roundabout_ways_is_no_strangers() {
    let stage = Stage::of("leaving_roundabout", "2");
    stage.straight().run(
        "CREATE FUNCTION sets(text) RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.kept'', $1, false)'; \
         CREATE TABLE set_off (n int); \
         CREATE FUNCTION sets_too() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM sets(''by''); RETURN NEW; END'; \
         CREATE TRIGGER sets BEFORE INSERT ON set_off FOR EACH ROW EXECUTE FUNCTION sets_too(); \
         CREATE FUNCTION dynamic() RETURNS text LANGUAGE plpgsql AS 'DECLARE r text; BEGIN EXECUTE ''SELECT sets($1)'' INTO r USING ''by''; RETURN r; END'; \
         CREATE FUNCTION inserts() RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE ''INSERT INTO set_off VALUES (1)''; END'; \
         CREATE FUNCTION defaults(x text DEFAULT set_config('app.kept', 'by', false)) RETURNS text LANGUAGE sql AS 'SELECT x'; \
         CREATE FUNCTION defaults_too(x text DEFAULT sets('by')) RETURNS text LANGUAGE sql AS 'SELECT x'; \
         CREATE DOMAIN of_default AS text DEFAULT set_config('app.kept', 'by', false); \
         CREATE TABLE of_domain (n int, x of_default)",
    );
    let spelled = [
        "EXECUTE format($q$SET app.kept = %L$q$, 'by')",
        "EXECUTE E'SET app.kept = ''by'''",
        "EXECUTE 'SET\n app.kept = ''by'''",
        "EXECUTE '/* c */ SET app.kept = ''by'''",
    ];
    for (number, spelled) in spelled.iter().enumerate() {
        stage.straight().run(&format!(
            "CREATE FUNCTION spelled_{number}() RETURNS void LANGUAGE plpgsql AS $body$BEGIN {spelled}; END$body$"
        ));
    }
    let made = "FUNCTION made() RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.kept'', ''by'', false)'";
    let texts = [
        vec!["SELECT dynamic()".to_owned()],
        vec!["SELECT inserts()".to_owned()],
        vec!["DO $$BEGIN EXECUTE 'INSERT INTO set_off VALUES (1)'; END$$".to_owned()],
        vec!["SELECT defaults()".to_owned()],
        vec!["SELECT defaults_too()".to_owned()],
        vec!["INSERT INTO of_domain (n) VALUES (1)".to_owned()],
        vec!["SELECT spelled_0()".to_owned()],
        vec!["SELECT spelled_1()".to_owned()],
        vec!["SELECT spelled_2()".to_owned()],
        vec!["SELECT spelled_3()".to_owned()],
        vec![format!("CREATE {made}; SELECT made(); DROP FUNCTION made()")],
        [
            "BEGIN",
            &format!("CREATE {made}"),
            "SELECT made()",
            "DROP FUNCTION made()",
            "COMMIT",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for texts in texts {
        let (mut one, mut other) = (stage.client(), stage.client());
        for text in &texts {
            one.run(text);
        }
        for _ in 0..3 {
            assert_eq!(other.ask(LEFT), "", "{texts:?}");
            assert_eq!(stage.client().ask(LEFT), "", "{texts:?}");
            assert_eq!(one.ask(LEFT), "by", "{texts:?}");
        }
    }
    // By its number.
    let sets: u32 = stage
        .straight()
        .ask("SELECT 'sets(text)'::regprocedure::oid::int")
        .parse()
        .unwrap();
    let (mut one, mut other) = (stage.client(), stage.client());
    let call = [
        &sets.to_be_bytes()[..],
        &[0, 0, 0, 1],
        &2_u32.to_be_bytes(),
        b"by",
        &[0, 0],
    ]
    .concat();
    one.send(&message(b'F', &call));
    one.answer();
    assert_eq!(other.ask(LEFT), "");
    assert_eq!(one.ask(LEFT), "by");
    drop((one, other));
    // Made by one while another is inside of his transaction.
    let (mut one, mut other) = (stage.client(), stage.client());
    one.run("BEGIN");
    other.run(&format!("CREATE {made}"));
    one.run("SELECT made()");
    one.run("COMMIT");
    assert_eq!(other.ask(LEFT), "");
    assert_eq!(stage.client().ask(LEFT), "");
    assert_eq!(one.ask(LEFT), "by");
}

/// Where something that calls functions is locked, nobody is kept for not knowing it.
#[test]
fn nobody_is_kept_for_what_is_locked() {
    let server: Postgres = started();
    let mut itself = straight(&server);
    itself.run(
        "CREATE TABLE locked (n int); CREATE VIEW of_locked AS SELECT n FROM locked; \
         CREATE FUNCTION sets() RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.kept'', ''1'', false)'; \
         CREATE VIEW of_sets AS SELECT sets()",
    );
    let proxy = proxy(&server, &["--max-server-connections", "2"]);
    at(proxy.address()).run("SELECT 1");
    itself.run("BEGIN; ALTER TABLE locked ADD m int");
    // It is looked again behind it.
    at(proxy.address()).run("CREATE FUNCTION another() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    let mut clients: Vec<Client> = (0..4).map(|_| at(proxy.address())).collect();
    for client in &mut clients {
        assert_eq!(client.ask("SELECT 2"), "2");
    }
    // What was known is known all the same.
    clients[0].run("SELECT * FROM of_sets");
    assert_eq!(clients[1].ask(LEFT), "");
    assert_eq!(clients[2].ask(LEFT), "");
    assert_eq!(clients[0].ask(LEFT), "1");
    itself.run("COMMIT");
    for client in &mut clients[1..] {
        client.pipeline(&[
            close(b'S', ""),
            parse("", "SELECT 3"),
            bind("", "", &[]),
            execute("", 0),
        ]);
        assert_eq!(client.ask(LEFT), "");
    }
}

/// Where nothing is known of before, what is locked is asked about again, and known once it is not locked any more.
#[test]
fn what_was_locked_at_first_is_known_once_it_is_not() {
    let server: Postgres = started();
    let (mut itself, mut looks) = (straight(&server), straight(&server));
    itself.run(
        "CREATE TABLE locked (n int); CREATE VIEW of_locked AS SELECT n FROM locked; \
         CREATE FUNCTION sets() RETURNS text LANGUAGE sql AS 'SELECT set_config(''app.kept'', ''1'', false)'; \
         CREATE VIEW of_sets AS SELECT sets()",
    );
    itself.run("BEGIN; ALTER TABLE locked ADD m int");
    let proxy = proxy(&server, &["--max-server-connections", "1"]);
    let mut one = at(proxy.address());
    one.send(&query("SELECT * FROM of_sets"));
    let mut asked_at = || {
        let rows = looks
            .query("SELECT query_start::text FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            .rows();
        rows.first().map(|row| row[0].clone())
    };
    let mut first = None;
    until("it waits for the lock", || {
        first = asked_at();
        first.is_some()
    });
    until("it is refused, and asked again", || {
        asked_at().is_some_and(|next| Some(&next) != first.as_ref())
    });
    itself.run("COMMIT");
    assert_eq!(one.answer().value().as_deref(), Some("1"));
    let mut other = at(proxy.address());
    assert_eq!(other.ask(LEFT), "");
    assert_eq!(one.ask(LEFT), "1");
}
