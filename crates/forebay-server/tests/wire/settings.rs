//! Settings: what SET, SHOW, set_config and the start-up message take, and how PostgreSQL 15 spells it. What stands here as an answer
//! is what PostgreSQL answered.

use crate::client::{Client, whole};
use crate::server;

#[test]
fn time_zones_are_taken_and_spelled_as_postgresql_does() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (set, shown) in [
        ("SET TIME ZONE 'europe/berlin'", "Europe/Berlin"),
        ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "<+00>-00"),
        ("SET TIME ZONE INTERVAL '+02:30' HOUR TO MINUTE", "<+02:30>-02:30"),
        ("SET TIME ZONE 2", "<+02>-02"),
        ("SET TIME ZONE -3.5", "<-03:30>+03:30"),
        ("SET TIME ZONE '2'", "<+02>-02"),
        ("SET TIME ZONE LOCAL", "UTC"),
        ("SET TimeZone TO '+02:00'", "+02:00"),
        ("SET timezone = est5edt", "EST5EDT"),
        ("SET TIME ZONE 'foo3'", "FOO3"),
        ("SET TIME ZONE DEFAULT", "UTC"),
    ] {
        let answer = client.run(set);
        assert_eq!(client.ask("SHOW TimeZone"), shown, "{set}");
        let reported = answer.settings();
        assert!(
            reported.contains(&("TimeZone".to_owned(), shown.to_owned())),
            "{set}: {reported:?}"
        );
    }
    for refused in ["x", "", "default", "z"] {
        let error = client.query(&format!("SET TimeZone TO '{refused}'")).error().unwrap();
        assert_eq!(error.sqlstate(), "22023");
        assert_eq!(
            error.message(),
            format!("invalid value for parameter \"TimeZone\": \"{refused}\"")
        );
    }
}

#[test]
fn a_time_zone_is_what_timestamps_are_shown_in() {
    let server = server(&[]);
    let mut client = Client::connect_with(server.address(), &[("TimeZone", "Europe/Berlin")]).unwrap();
    let ask = "SELECT '2024-07-01 12:00:00+00'::timestamptz";
    assert_eq!(client.ask(ask), "2024-07-01 14:00:00+02");
    client.run("BEGIN; SET LOCAL TIME ZONE 'America/New_York'");
    assert_eq!(client.ask(ask), "2024-07-01 08:00:00-04");
    client.run("COMMIT");
    assert_eq!(client.ask(ask), "2024-07-01 14:00:00+02");
    client.run("BEGIN; SET TIME ZONE 2; ROLLBACK");
    assert_eq!(client.ask("SHOW timezone"), "Europe/Berlin");
    client.run("SET TIME ZONE 2");
    assert_eq!(
        client.ask("SELECT '2024-01-01 12:00'::timestamptz"),
        "2024-01-01 12:00:00+02"
    );
    assert_eq!(
        client.ask("SELECT '2024-01-01 12:00'::timestamptz::timestamp::text"),
        "2024-01-01 12:00:00"
    );
    let refused = Client::connect_with(server.address(), &[("TimeZone", "Nowhere/Land")]).unwrap_err();
    assert_eq!(refused.sqlstate(), "22023");
    let mut client = Client::connect_with(server.address(), &[("options", "-c timezone=Asia/Tokyo")]).unwrap();
    assert_eq!(client.ask(ask), "2024-07-01 21:00:00+09");
}

#[test]
fn values_are_taken_or_refused_as_postgresql_does() {
    let server = server(&[]);
    let mut client = Client::connect_with(server.address(), &[("user", "ann")]).unwrap();
    for (set, setting, shown) in [
        ("SET client_encoding = 'utf-8'", "client_encoding", "UTF8"),
        ("SET NAMES 'UTF8'", "client_encoding", "UTF8"),
        ("SET NAMES", "client_encoding", "UTF8"),
        ("SET client_encoding TO unicode", "client_encoding", "UTF8"),
        (
            "SET search_path TO public, foo, \"Abc\"",
            "search_path",
            "public, foo, \"Abc\"",
        ),
        ("SET search_path = 'a,b'", "search_path", "\"a,b\""),
        (
            "SET search_path TO \"$user\", PUBLIC",
            "search_path",
            "\"$user\", public",
        ),
        ("SET statement_timeout = '1min'", "statement_timeout", "1min"),
        ("SET statement_timeout = 1500", "statement_timeout", "1500ms"),
        ("SET statement_timeout = '1.5s'", "statement_timeout", "1500ms"),
        ("SET statement_timeout = 0", "statement_timeout", "0"),
        ("SET lock_timeout = 3600000", "lock_timeout", "1h"),
        ("SET role = 'ann'", "role", "ann"),
        ("SET ROLE none", "role", "none"),
        ("SET SESSION AUTHORIZATION DEFAULT", "session_authorization", "ann"),
        ("SET SESSION AUTHORIZATION ann", "session_authorization", "ann"),
        ("RESET SESSION AUTHORIZATION", "session_authorization", "ann"),
        ("SET extra_float_digits = 3", "extra_float_digits", "3"),
        ("SET DateStyle TO iso, us", "DateStyle", "ISO, MDY"),
        (
            "SET standard_conforming_strings = tr",
            "standard_conforming_strings",
            "on",
        ),
        (
            "SET default_transaction_isolation = 'Serializable'",
            "default_transaction_isolation",
            "serializable",
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "default_transaction_isolation",
            "read committed",
        ),
        ("SET my.own = Foo", "my.own", "foo"),
    ] {
        client.run(set);
        assert_eq!(client.ask(&format!("SHOW {setting}")), shown, "{set}");
    }
    for (set, sqlstate) in [
        ("SET client_encoding = 'foo'", "22023"),
        ("SET client_encoding = 'latin1'", "0A000"),
        ("SET DateStyle = 'German'", "0A000"),
        ("SET DateStyle = 'foo'", "22023"),
        ("SET IntervalStyle = 'iso_8601'", "0A000"),
        ("SET IntervalStyle = 'foo'", "22023"),
        ("SET bytea_output = escape", "0A000"),
        ("SET bytea_output = foo", "22023"),
        ("SET standard_conforming_strings = off", "0A000"),
        ("SET standard_conforming_strings = maybe", "22023"),
        ("SET extra_float_digits = 5", "22023"),
        ("SET extra_float_digits = 0", "0A000"),
        ("SET statement_timeout = -1", "22023"),
        ("SET statement_timeout = 'soon'", "22023"),
        ("SET default_transaction_isolation = 'foo'", "22023"),
        ("SET role = nobody", "0A000"),
        ("SET nosuch = 1", "42704"),
        ("SET my.own = 1, 2", "22023"),
        ("SELECT set_config('nosuch', '1', false)", "42704"),
        ("SELECT set_config(NULL, '1', false)", "22004"),
        ("SELECT current_setting('my.absent')", "42704"),
    ] {
        assert_eq!(client.query(set).sqlstate(), sqlstate, "{set}");
    }
}

#[test]
fn set_config_sets() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    assert_eq!(client.ask("SELECT set_config('TimeZone', '2', false)"), "<+02>-02");
    assert_eq!(client.ask("SHOW timezone"), "<+02>-02");
    assert_eq!(client.ask("SELECT pg_catalog.set_config('search_path', '', false)"), "");
    let row = client.query("SELECT current_setting('statement_timeout') AS cur, set_config('statement_timeout', '5s', false) AS new, 1 + 1").rows();
    assert_eq!(row, [["0", "5s", "2"].map(|value| Some(value.to_owned()))]);
    client.run("BEGIN");
    client.run("SELECT set_config('app.tenant', 'x' || 7, true)");
    assert_eq!(client.ask("SELECT current_setting('app.tenant')"), "x7");
    client.run("COMMIT");
    assert_ne!(
        client
            .query("SELECT current_setting('app.tenant', true)")
            .value()
            .as_deref(),
        Some("x7")
    );
    // Outside of a transaction it lasts for the statement.
    assert_eq!(
        client.ask("SELECT set_config('application_name', 'short', true)"),
        "short"
    );
    assert_eq!(client.ask("SHOW application_name"), "");
    assert_eq!(
        client
            .query("SELECT 1 + length(set_config('a.b', 'c', false))")
            .sqlstate(),
        "0A000",
        "not inside an expression"
    );
}

#[test]
fn what_connection_pools_send_between_clients_puts_everything_back() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut other = Client::connect(server.address());
    for reset in [
        "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
        "DISCARD ALL",
    ] {
        client.run("SET application_name = 'x'; SET my.own = 1; LISTEN a; SELECT pg_advisory_lock(1)");
        assert_eq!(other.ask("SELECT pg_try_advisory_lock(1)"), "f");
        client.run(reset);
        assert_eq!(client.ask("SHOW application_name"), "");
        assert_eq!(other.ask("SELECT pg_try_advisory_lock(1)"), "t", "{reset}");
        assert_eq!(other.ask("SELECT pg_advisory_unlock(1)"), "t");
        other.run("NOTIFY a");
        let heard = client.run("SELECT 1");
        assert!(!heard.kinds().contains('A'), "{reset}: {}", heard.kinds());
    }
    assert_eq!(client.ask("SELECT * FROM current_schema()"), "public");
    assert_eq!(client.query("SELECT * FROM current_database()").sqlstate(), "00000");
}

#[test]
fn numbers_that_were_drawn_are_forgotten_when_they_are_discarded() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE SEQUENCE s");
    for (discard, is_forgotten) in [
        ("DISCARD PLANS", false),
        ("DISCARD SEQUENCES", true),
        ("DISCARD ALL", true),
    ] {
        let drawn = client.ask("SELECT nextval('s')");
        client.run(discard);
        for asks in ["SELECT lastval()", "SELECT currval('s')"] {
            match is_forgotten {
                true => assert_eq!(client.query(asks).sqlstate(), "55000", "{discard}: {asks}"),
                false => assert_eq!(client.ask(asks), drawn, "{discard}: {asks}"),
            }
        }
    }
}

#[test]
fn foreign_keys_are_looked_at_at_once_behind_truncate_too() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c (a int REFERENCES p); INSERT INTO p VALUES (1)");
    client.run("BEGIN; INSERT INTO c VALUES (1); TRUNCATE p, c");
    assert_eq!(client.query("INSERT INTO c VALUES (99)").sqlstate(), "23503");
    client.run("ROLLBACK");
    client.run("CREATE SCHEMA s; CREATE TABLE s.t (a int)");
    client.run("BEGIN; DROP SCHEMA s CASCADE");
    assert_eq!(client.query("INSERT INTO c VALUES (99)").sqlstate(), "23503");
    client.run("ROLLBACK");
    client.run("CREATE TABLE d (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED); CREATE TABLE u (a int)");
    for clears in [
        "TRUNCATE u",
        "TRUNCATE c",
        "DROP SCHEMA s CASCADE",
        "DROP SCHEMA IF EXISTS nowhere",
    ] {
        client.run("BEGIN; INSERT INTO d VALUES (99)");
        client.run(clears);
        assert_eq!(client.query("COMMIT").sqlstate(), "23503", "{clears}");
    }
    client.run("BEGIN; SAVEPOINT a");
    assert_ne!(client.query("TRUNCATE p").sqlstate(), "00000");
    client.run("ROLLBACK TO a; TRUNCATE p, c, d; ROLLBACK TO a");
    assert_eq!(client.query("INSERT INTO c VALUES (99)").sqlstate(), "23503");
}

#[test]
fn constraints_are_looked_at_when_they_are_to_be() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    assert_eq!(
        client.run("SET CONSTRAINTS ALL DEFERRED").notice().unwrap().sqlstate(),
        "25P01"
    );
    client.run("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); SET CONSTRAINTS ALL IMMEDIATE");
    assert_eq!(client.query("INSERT INTO c VALUES (2)").sqlstate(), "23503", "at once");
    client.run("ROLLBACK");
    client.run("BEGIN; INSERT INTO c VALUES (1)");
    assert_eq!(client.query("SET CONSTRAINTS ALL IMMEDIATE").sqlstate(), "23503");
    client.run("ROLLBACK");
    client.run("BEGIN; SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (1)");
    assert_eq!(client.query("COMMIT").sqlstate(), "23503");
    client.run("CREATE TABLE d (a int REFERENCES p DEFERRABLE)");
    client.run("BEGIN");
    assert_eq!(
        client.query("SET CONSTRAINTS ALL DEFERRED").sqlstate(),
        "0A000",
        "SQLite cannot defer only that one"
    );
}

#[test]
fn notices_have_postgresqls_codes() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int); CREATE INDEX i ON t (a)");
    client.run("BEGIN");
    for (sql, sqlstate, message) in [
        (
            "CREATE TABLE IF NOT EXISTS t (a int)",
            "42P07",
            "relation \"t\" already exists, skipping",
        ),
        (
            "CREATE INDEX IF NOT EXISTS i ON t (a)",
            "42P07",
            "relation \"i\" already exists, skipping",
        ),
        (
            "DROP TABLE IF EXISTS absent",
            "00000",
            "table \"absent\" does not exist, skipping",
        ),
        (
            "CREATE SCHEMA IF NOT EXISTS public",
            "42P06",
            "schema \"public\" already exists, skipping",
        ),
    ] {
        let notice = client.run(sql).notice().unwrap();
        assert_eq!((notice.sqlstate(), notice.message()), (sqlstate, message));
    }
    client.run("CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE q (id int PRIMARY KEY REFERENCES p)");
    client.run("CREATE TABLE r (id int REFERENCES q)");
    for (sql, messages) in [
        (
            "TRUNCATE p CASCADE",
            ["truncate cascades to table \"q\"", "truncate cascades to table \"r\""],
        ),
        (
            "DROP TABLE IF EXISTS absent, missing",
            [
                "table \"absent\" does not exist, skipping",
                "table \"missing\" does not exist, skipping",
            ],
        ),
    ] {
        let answer = client.run(sql);
        assert_eq!(answer.kinds(), "NNC", "{sql}");
        let told: Vec<String> = answer.messages[..2]
            .iter()
            .map(|notice| notice.failure().message().to_owned())
            .collect();
        assert_eq!(told, messages);
    }
    client.run("SET LOCAL client_min_messages = warning");
    assert!(client.run("DROP TABLE IF EXISTS absent").notice().is_none());
    client.run("COMMIT");
}

#[test]
fn set_holds_behind_a_commit_whatever_set_local_says() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for sets in [
        "SET x.y = '3'; SET LOCAL x.y = '2'",
        "SET LOCAL x.y = '2'; SET x.y = '3'",
        "SET LOCAL x.y = '1'; SET X.Y = '3'; SET LOCAL x.y = '2'",
    ] {
        client.run("SET x.y = '0'");
        client.run(&format!("BEGIN; {sets}; COMMIT"));
        assert_eq!(client.ask("SHOW x.y"), "3", "{sets}");
    }
}

#[test]
fn a_rollback_to_a_savepoint_lets_write_again() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    client.run("BEGIN");
    client.run("SAVEPOINT a");
    client.run("SET TRANSACTION READ ONLY");
    client.run("ROLLBACK TO a");
    client.run("INSERT INTO t VALUES (1)");
    client.run("COMMIT");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "1");
}

#[test]
fn a_rollback_to_a_savepoint_puts_settings_back() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE SCHEMA x");
    client.run("CREATE TABLE x.t (whose text)");
    client.run("CREATE TABLE t (whose text)");
    client.run("INSERT INTO x.t VALUES ('x')");
    client.run("INSERT INTO t VALUES ('public')");
    client.run("BEGIN");
    client.run("SET timezone = 'Asia/Tokyo'");
    client.run("SAVEPOINT s");
    client.run("SET search_path = x");
    client.run("SET timezone = 'Asia/Kolkata'");
    client.run("SET LOCAL timezone = 'Europe/Berlin'");
    assert_eq!(client.ask("SELECT whose FROM t"), "x");
    client.run("ROLLBACK TO s");
    assert_eq!(client.ask("SELECT whose FROM t"), "public");
    assert_eq!(client.ask("SHOW timezone"), "Asia/Tokyo");
    client.run("SAVEPOINT r");
    client.run("SET search_path = x");
    client.run("RELEASE r");
    assert_eq!(client.ask("SELECT whose FROM t"), "x");
    client.run("COMMIT");
    assert_eq!(client.ask("SHOW timezone"), "Asia/Tokyo");
    assert_eq!(client.ask("SELECT whose FROM t"), "x");
}

#[test]
fn a_setting_of_a_group_of_messages_is_put_back_by_its_failure() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let set = whole("SET TIME ZONE 'Asia/Tokyo'", &[]);
    let failed = client.pipeline(&[set.clone(), whole("SELECT 1 / 0", &[])]);
    assert_eq!(failed.sqlstate(), "22012");
    assert_eq!(client.ask("SHOW timezone"), "UTC");
    let local = whole("SET LOCAL TIME ZONE 'Asia/Tokyo'", &[]);
    let shown = client.pipeline(&[local, whole("SHOW timezone", &[])]);
    assert_eq!(shown.value().as_deref(), Some("Asia/Tokyo"));
    assert_eq!(shown.notice().unwrap().sqlstate(), "25P01");
    assert_eq!(client.ask("SHOW timezone"), "UTC");
    client.pipeline(&[set]);
    assert_eq!(client.ask("SHOW timezone"), "Asia/Tokyo");
}

#[test]
fn rows_are_not_locked_where_nothing_may_be_written() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    for locks in [
        "SELECT a FROM t FOR UPDATE",
        "DECLARE c CURSOR FOR SELECT a FROM t FOR SHARE",
    ] {
        client.run("BEGIN READ ONLY");
        assert_eq!(client.query(locks).sqlstate(), "25006", "{locks}");
        client.run("ROLLBACK");
    }
}

#[test]
fn tables_are_locked_and_analyzed_where_nothing_may_be_written() {
    let server = server(&[]);
    let (mut client, mut other) = (Client::connect(server.address()), Client::connect(server.address()));
    client.run("CREATE TABLE t (a int)");
    for locks in ["LOCK TABLE t", "LOCK t IN ACCESS SHARE MODE"] {
        let error = client.query(locks).error().unwrap();
        let message = "LOCK TABLE can only be used in transaction blocks";
        assert_eq!((error.sqlstate(), error.message()), ("25P01", message));
    }
    for (locks, sqlstate) in [("LOCK TABLE nope", "42P01"), ("LOCK TABLE nope.t", "3F000")] {
        client.run("BEGIN");
        assert_eq!(client.query(locks).sqlstate(), sqlstate, "{locks}");
        client.run("ROLLBACK");
    }
    client.run("BEGIN READ ONLY");
    for mode in [
        "",
        "IN ACCESS SHARE MODE",
        "IN ROW EXCLUSIVE MODE",
        "IN SHARE MODE NOWAIT",
    ] {
        assert_eq!(client.query(&format!("LOCK TABLE t {mode}")).tags(), ["LOCK TABLE"]);
    }
    // It is a lock.
    other.run("SET lock_timeout = '50ms'");
    assert_eq!(other.query("INSERT INTO t VALUES (1)").sqlstate(), "55P03");
    assert_eq!(client.query("ANALYZE t").tags(), ["ANALYZE"]);
    assert_eq!(client.query("INSERT INTO t VALUES (1)").sqlstate(), "25006");
    client.run("ROLLBACK");
    other.run("INSERT INTO t VALUES (1)");
    client.run("SET default_transaction_read_only = on");
    assert_eq!(client.query("VACUUM t").tags(), ["VACUUM"]);
    assert_eq!(client.query("ANALYZE").tags(), ["ANALYZE"]);
    assert_eq!(
        client.query("CREATE TABLE IF NOT EXISTS t (a int)").kinds(),
        "E",
        "no notice of what is not done"
    );
}

#[test]
fn a_schema_that_is_missing_is_another_error_than_a_table() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (sqlstate, sql) in [
        ("3F000", "CREATE INDEX ON nope.t (a)"),
        ("3F000", "TRUNCATE nope.t"),
        ("3F000", "COMMENT ON TABLE nope.t IS 'x'"),
        ("3F000", "COPY nope.t TO STDOUT"),
        ("3F000", "CREATE TABLE nope.t (a int)"),
        ("3F000", "SELECT nextval('nope.s')"),
        ("3F000", "SELECT 'nope.t'::regclass"),
        ("42P01", "SELECT 'public.nope'::regclass"),
        ("42P01", "SELECT 'pg_catalog.nope'::regclass"),
        ("42P01", "SELECT * FROM nope.t"),
        ("42P01", "INSERT INTO nope.t VALUES (1)"),
        ("42P01", "COPY nope TO STDOUT"),
    ] {
        assert_eq!(client.query(sql).sqlstate(), sqlstate, "{sql}");
    }
}

#[test]
fn reset_time_zone_puts_it_back() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let before = client.ask("SHOW TIME ZONE");
    client.run("SET TIME ZONE 'Europe/Berlin'");
    assert_eq!(client.query("reset time zone").tags(), ["RESET"]);
    assert_eq!(client.ask("SHOW TIME ZONE"), before);
}

#[test]
fn what_a_second_begin_says_of_the_transaction_holds() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a int)");
    client.run("BEGIN; BEGIN READ ONLY");
    assert_eq!(client.query("INSERT INTO t VALUES (1)").sqlstate(), "25006");
    client.run("ROLLBACK");
    client.run("BEGIN; BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(client.ask("SHOW transaction_isolation"), "repeatable read");
    client.run("ROLLBACK; BEGIN; SELECT 1");
    assert_eq!(client.query("BEGIN ISOLATION LEVEL SERIALIZABLE").sqlstate(), "25001");
    assert_eq!(client.query("SELECT 1").sqlstate(), "25P02");
    client.run("ROLLBACK; BEGIN READ ONLY; SAVEPOINT a");
    assert_eq!(client.query("SET TRANSACTION READ WRITE").sqlstate(), "25001");
    client.run("ROLLBACK; BEGIN; SAVEPOINT a");
    assert_eq!(
        client.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").sqlstate(),
        "25001"
    );
    client.run("ROLLBACK");
}

#[test]
fn tables_go_together_whatever_their_rows_refer_to() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE m (a int PRIMARY KEY, up int REFERENCES m ON DELETE RESTRICT)");
    client.run("INSERT INTO m VALUES (0, NULL), (1, 0), (2, 1); DROP TABLE m");
    client.run(
        "CREATE TABLE e (a int PRIMARY KEY, w int); CREATE TABLE f (a int PRIMARY KEY REFERENCES e ON DELETE RESTRICT)",
    );
    client.run("INSERT INTO e VALUES (1, 1); INSERT INTO f VALUES (1)");
    client.run("ALTER TABLE e ADD FOREIGN KEY (w) REFERENCES f ON DELETE RESTRICT; DROP TABLE e, f");
    assert_eq!(client.query("SELECT 1 FROM e").sqlstate(), "42P01");
}
