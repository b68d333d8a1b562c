//! What is remembered of a database that tells of its changes: whoever makes them, straight at the server as well.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use testbed::Postgres;

use crate::client::{Client, query, whole};
use crate::crowd::until;
use crate::reload::Reloadable;

/// A server that writes its log for subscribers.
pub(crate) fn started(settings: &[(&str, &str)]) -> Postgres {
    let own = [
        ("wal_level", "logical"),
        ("max_wal_senders", "40"),
        ("max_replication_slots", "40"),
        ("max_connections", "300"),
    ];
    let all = own.iter().chain(settings);
    let builder = all.fold(Postgres::builder(), |builder, (name, value)| {
        builder.setting(name, value)
    });
    let lines = "host all,replication all 127.0.0.1/32 trust\n";
    let server = builder.host_based_authentication(lines).start();
    server.unwrap_or_else(|error| panic!("{error}"))
}

fn shared() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| started(&[]))
}

/// A database of its own, and a proxy that listens to it.
pub(crate) struct Stage {
    pub(crate) server: &'static Postgres,
    name: &'static str,
    pub(crate) reloadable: Reloadable,
    /// It needs no server connection once it is there.
    console: Mutex<Client>,
}

impl Stage {
    pub(crate) fn new(name: &'static str, lines: &str) -> Self {
        Self::at(shared(), name, lines)
    }

    pub(crate) fn at(server: &'static Postgres, name: &'static str, lines: &str) -> Self {
        if name != "postgres" {
            connect(server.address(), "postgres", "postgres").run(&format!("CREATE DATABASE {name}"));
        }
        let invalidate = match lines.contains("invalidate") {
            true => "",
            false => "invalidate = \"stream\"\n",
        };
        let text = format!(
            "upstream = \"postgresql://postgres@{}\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\ntrust_loopback = true\n\
             {invalidate}{lines}",
            server.address()
        );
        let reloadable = Reloadable::start(&text, &[]);
        let console = Mutex::new(connect(reloadable.proxy.address(), "postgres", name));
        Self {
            server,
            name,
            reloadable,
            console,
        }
    }

    /// Through the proxy.
    pub(crate) fn client(&self) -> Client {
        connect(self.reloadable.proxy.address(), "postgres", self.name)
    }

    pub(crate) fn straight(&self) -> Client {
        connect(self.server.address(), "postgres", self.name)
    }

    /// How many were told what was remembered since the database was away.
    pub(crate) fn told_while_away(&self) -> String {
        let shown = self.console.lock().query("SHOW FOREBAY STATUS").expect("shown").rows();
        let row = shown
            .into_iter()
            .find(|row| row[0].as_deref() == Some("cache_told_while_away"));
        row.and_then(|row| row[1].clone()).expect("a figure")
    }

    /// Stops the server's process that tells the stream, or has it go on; which that is.
    pub(crate) fn signal_stream(&self, signal: i32) -> i32 {
        let process = self.straight().ask(&format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = '{}' AND backend_type = 'walsender'",
            self.name
        ));
        let process = process.parse().unwrap();
        // SAFETY: it only sends a signal to a process of a server that the tests have started.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
        process
    }

    /// What the console says of it.
    pub(crate) fn status(&self, name: &str) -> String {
        let shown = self.console.lock().query("SHOW FOREBAY STATUS").expect("shown");
        let wanted = format!("{name} {}", self.name);
        let row = shown.rows().into_iter().find(|row| row[0].as_deref() == Some(&*wanted));
        row.and_then(|row| row[1].clone()).unwrap_or_default()
    }

    /// How often what begins like this was answered from memory, and why it is not.
    pub(crate) fn remembered(&self, begins: &str) -> (u64, Option<String>) {
        let shown = self.console.lock().query("SHOW FOREBAY SHARING").expect("shown");
        let rows = shown.rows().into_iter();
        let of = rows.filter(|row| row[2].as_deref().is_some_and(|text| text.starts_with(begins)));
        of.fold((0, None), |(sum, _), row| {
            let count: u64 = row[12].as_deref().expect("a number").parse().expect("a number");
            (sum + count, row[13].clone())
        })
    }

    /// Until the stream is heard up to this position.
    pub(crate) fn until_heard(&self, position: &str) {
        let mut server = self.straight();
        until("it is heard", || {
            let heard = self.status("stream_position");
            server.ask(&format!("SELECT '{heard}'::pg_lsn >= '{position}'::pg_lsn")) == "t"
        });
    }

    pub(crate) fn until_remembered(&self, client: &mut Client, text: &str, begins: &str) {
        let before = self.remembered(begins).0;
        let mut said = None;
        until("it is remembered", || {
            client.run(text);
            let (count, why) = self.remembered(begins);
            if said.as_ref() != Some(&why) {
                println!("{text}: {why:?}; the stream: {}", self.status("stream"));
                said = Some(why);
            }
            count > before
        });
    }
}

pub(crate) fn connect(address: SocketAddr, user: &str, database: &str) -> Client {
    Client::connect_with(address, &[("user", user), ("database", database)]).expect("let in")
}

#[test]
fn what_others_change_is_told_by_the_database() {
    let stage = Stage::new("told", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE seen (id int PRIMARY KEY, n int)",
        "CREATE TABLE seen_by (id int PRIMARY KEY REFERENCES seen ON DELETE CASCADE ON UPDATE CASCADE, n int)",
        "CREATE TABLE seen_parts (id int, n int, PRIMARY KEY (id)) PARTITION BY LIST (id)",
        "CREATE TABLE seen_part PARTITION OF seen_parts FOR VALUES IN (1, 2)",
        "CREATE TABLE seen_heir (PRIMARY KEY (id)) INHERITS (seen_by)",
        "INSERT INTO seen VALUES (1, 0)",
        "INSERT INTO seen_by VALUES (1, 0)",
        "INSERT INTO seen_parts VALUES (1, 0)",
        "CREATE FUNCTION seen_write() RETURNS int LANGUAGE sql AS 'UPDATE seen SET n = n + 1 RETURNING n'",
        "CREATE FUNCTION seen_too() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE seen SET n = n + 1; RETURN NEW; END'",
        "CREATE TABLE seen_fires (id int PRIMARY KEY)",
        "CREATE TRIGGER too AFTER INSERT ON seen_fires FOR EACH ROW EXECUTE FUNCTION seen_too()",
        "CREATE VIEW seen_view AS SELECT * FROM seen",
    ] {
        server.run(sql);
    }
    let tables = ["seen", "seen_by", "seen_parts", "seen_part"];
    let reads = tables.map(|table| format!("/* ttl:3600 */ SELECT coalesce(sum(n), -1), count(*) FROM {table}"));
    let mut fires = 0;
    let changes = [
        "UPDATE seen SET n = n + 1 WHERE id = 1",
        "INSERT INTO seen VALUES (9, 5)",
        "WITH x AS (UPDATE seen SET n = n + 1 RETURNING n) SELECT * FROM x",
        "SELECT seen_write()",
        "DO 'BEGIN UPDATE seen SET n = n + 1; END'",
        "INSERT INTO seen_fires VALUES (FIRES)",
        "UPDATE seen_view SET n = n + 1",
        "UPDATE seen SET id = 3 - id WHERE id IN (1, 2)",
        "UPDATE seen_by SET n = n + 3",
        "INSERT INTO seen_heir VALUES (100 + FIRES, 4)",
        "UPDATE seen_heir SET n = n + 1",
        "INSERT INTO seen_part VALUES (2, 9)",
        "UPDATE seen_parts SET n = n + 1",
        "DELETE FROM seen_part WHERE id = 2",
        "MERGE INTO seen USING (VALUES (9)) v(id) ON seen.id = v.id WHEN MATCHED THEN UPDATE SET n = seen.n + 1",
        "DELETE FROM seen WHERE id = 9",
        "BEGIN; SAVEPOINT a; UPDATE seen SET n = n + 2; RELEASE a; COMMIT",
        "TRUNCATE seen_part",
        "INSERT INTO seen_parts VALUES (1, 3)",
        "TRUNCATE seen CASCADE",
        "INSERT INTO seen VALUES (1, 0)",
        "INSERT INTO seen_by VALUES (1, 0)",
        "UPDATE seen SET id = 2",
        "DELETE FROM seen",
        "INSERT INTO seen VALUES (1, 0)",
        "INSERT INTO seen_by VALUES (1, 0)",
    ];
    for read in &reads {
        stage.until_remembered(&mut client, read, "SELECT coalesce");
    }
    let before = stage.remembered("SELECT coalesce").0;
    for _ in 0..3 {
        for change in changes {
            fires += 1;
            for read in &reads {
                client.run(read);
                client.run(read);
            }
            server.run(&change.replace("FIRES", &fires.to_string()));
            for read in &reads {
                let now = server.query(read).rows();
                until(change, || client.query(read).rows() == now);
            }
        }
    }
    let after = stage.remembered("SELECT coalesce").0;
    assert!(after - before >= 200, "{after} {before}");
    assert_eq!(stage.status("stream_beginnings"), "1");
}

/// What the catalog alone tells is seen when it is looked at next.
#[test]
fn what_is_altered_or_revoked_elsewhere_is_seen_within_a_second() {
    let stage = Stage::new("altered", "");
    let mut server = stage.straight();
    for sql in [
        "CREATE ROLE altered_reader LOGIN",
        "CREATE TABLE altered (id int PRIMARY KEY, n int)",
        "INSERT INTO altered VALUES (1, 7)",
        "GRANT SELECT ON altered TO altered_reader",
    ] {
        server.run(sql);
    }
    let read = "/* ttl:3600 */ SELECT * FROM altered";
    let begins = "SELECT * FROM altered";
    let mut client = connect(stage.reloadable.proxy.address(), "altered_reader", "altered");
    stage.until_remembered(&mut client, read, begins);
    // Whether it is refused then, and whether it may be remembered.
    for (change, is_refused, is_remembered) in [
        ("ALTER TABLE altered ADD COLUMN more int DEFAULT 5", false, true),
        ("ALTER TABLE altered RENAME COLUMN more TO another", false, true),
        ("ALTER TABLE altered ALTER COLUMN another TYPE text", false, true),
        ("ALTER TABLE altered DROP COLUMN another", false, true),
        ("REVOKE SELECT ON altered FROM altered_reader", true, false),
        ("GRANT SELECT (id, n) ON altered TO altered_reader", false, true),
        ("REVOKE SELECT (n) ON altered FROM altered_reader", true, false),
        ("GRANT pg_read_all_data TO altered_reader", false, true),
        ("REVOKE pg_read_all_data FROM altered_reader", true, false),
        ("ALTER ROLE altered_reader SUPERUSER", false, true),
        ("ALTER ROLE altered_reader NOSUPERUSER", true, false),
        ("GRANT SELECT ON altered TO altered_reader", false, true),
        ("ALTER TABLE altered ENABLE ROW LEVEL SECURITY", false, false),
        ("CREATE POLICY all_of_it ON altered USING (true)", false, false),
        ("ALTER TABLE altered DISABLE ROW LEVEL SECURITY", false, true),
        (
            "ALTER TABLE altered RENAME TO altered_away; CREATE TABLE altered AS TABLE altered_away",
            true,
            false,
        ),
    ] {
        // What is changed back before the next look is another test's.
        let changes = stage.status("stream_catalog_changes");
        server.run(change);
        let begun = Instant::now();
        let mut same = connect(stage.server.address(), "altered_reader", "altered");
        let now = same.query(read);
        assert_eq!(now.error().is_some(), is_refused, "{change}");
        until(change, || {
            let told = client.query(read);
            told.error().is_some() == is_refused && told.rows() == now.rows()
        });
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(3), "{change}: {took:?}");
        until("it is looked at", || stage.status("stream_catalog_changes") != changes);
        if is_remembered {
            stage.until_remembered(&mut client, read, begins);
        }
        // What is learnt anew about the statement is known by now, and nothing that was remembered before is told.
        for _ in 0..10 {
            let told = client.query(read);
            assert_eq!(
                (told.error().is_some(), told.rows()),
                (is_refused, now.rows()),
                "{change}"
            );
        }
    }
}

/// What has just been counted counts the next thing some seconds later.
#[test]
fn what_is_revoked_or_altered_of_the_servers_own_is_seen_within_a_second() {
    let stage = Stage::new("of_its_own", "");
    let mut server = stage.straight();
    for sql in [
        "CREATE ROLE of_its_own_reader LOGIN",
        "CREATE TABLE names (name text PRIMARY KEY)",
        "INSERT INTO names VALUES ('a')",
        "GRANT SELECT ON names TO of_its_own_reader",
    ] {
        server.run(sql);
    }
    let mut client = connect(stage.reloadable.proxy.address(), "of_its_own_reader", "of_its_own");
    for (read, change) in [
        (
            "SELECT upper(name) FROM names",
            "REVOKE EXECUTE ON FUNCTION pg_catalog.upper(text) FROM PUBLIC",
        ),
        (
            "SELECT name COLLATE \"und-x-icu\" FROM names",
            "ALTER COLLATION pg_catalog.\"und-x-icu\" RENAME TO another",
        ),
        (
            "SELECT pg_catalog.lower(name) FROM names",
            "REVOKE USAGE ON SCHEMA pg_catalog FROM PUBLIC",
        ),
    ] {
        stage.until_remembered(&mut client, &format!("/* ttl:3600 */ {read}"), read);
        server.run("SELECT count(*) FROM names");
        server.run(change);
        let begun = Instant::now();
        until(change, || {
            client.query(&format!("/* ttl:3600 */ {read}")).error().is_some()
        });
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(3), "{change}: {took:?}");
    }
}

/// Its owner may have the database tell what is altered: then it is seen as soon as rows are.
#[test]
fn what_is_altered_is_seen_at_once_where_the_database_tells_it() {
    const ROUNDS: u32 = 12;
    let stage = Stage::new("told_altered", "");
    let mut server = stage.straight();
    for sql in [
        "CREATE FUNCTION forebay_altered() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$BEGIN PERFORM pg_logical_emit_message(true, 'forebay altered', ''); END$$",
        "CREATE EVENT TRIGGER forebay_altered ON ddl_command_end EXECUTE FUNCTION forebay_altered()",
        "CREATE ROLE told_altered_reader LOGIN",
        "CREATE TABLE told_altered (id int PRIMARY KEY, n int)",
        "INSERT INTO told_altered VALUES (1, 7)",
        "GRANT SELECT ON told_altered TO told_altered_reader",
    ] {
        server.run(sql);
    }
    let (read, begins) = (
        "/* ttl:3600 */ SELECT * FROM told_altered",
        "SELECT * FROM told_altered",
    );
    let mut client = connect(stage.reloadable.proxy.address(), "told_altered_reader", "told_altered");
    let mut slow = 0;
    for round in 0..ROUNDS {
        for change in [
            format!("ALTER TABLE told_altered ADD COLUMN more{round} int DEFAULT {round}"),
            "REVOKE SELECT ON told_altered FROM told_altered_reader".to_owned(),
        ] {
            stage.until_remembered(&mut client, read, begins);
            server.run(&change);
            let begun = Instant::now();
            let mut same = connect(stage.server.address(), "told_altered_reader", "told_altered");
            let now = same.query(read);
            until(&change, || {
                let told = client.query(read);
                (told.rows(), told.sqlstate()) == (now.rows(), now.sqlstate())
            });
            // By looks each second three of four would take longer.
            slow += u32::from(begun.elapsed() > Duration::from_millis(250));
        }
        server.run("GRANT SELECT ON told_altered TO told_altered_reader");
    }
    assert!(slow < ROUNDS, "{slow} of {} were seen late", 2 * ROUNDS);
}

/// They come and go with sessions, and nothing that is remembered is of them.
#[test]
fn temporary_tables_make_nothing_old() {
    // Roles are of all databases, and other tests change some.
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let stage = Stage::at(SERVER.get_or_init(|| started(&[])), "postgres", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE lasting (id int PRIMARY KEY)");
    let read = "/* ttl:3600 */ SELECT count(*) FROM lasting";
    stage.until_remembered(&mut client, read, "SELECT count(*) FROM lasting");
    // What was changed until now is seen, too.
    let look = || {
        let looks = || stage.status("stream_catalog_looks").parse::<u64>().unwrap();
        let before = looks();
        until("it is looked at", || looks() > before + 1);
        stage.status("stream_catalog_changes")
    };
    let before = look();
    server.run("CREATE TEMPORARY TABLE passing (id int PRIMARY KEY DEFAULT 1, t text UNIQUE CHECK (t <> ''))");
    server.run("CREATE TEMPORARY VIEW passing_view AS SELECT * FROM passing");
    server.run("CREATE INDEX ON passing (t, id)");
    assert_eq!(look(), before);
}

/// Rows of the catalog are then what they were.
#[test]
fn what_is_given_and_taken_again_between_two_looks_is_seen_by_what_is_counted() {
    let stage = Stage::new("taken", "");
    let mut server = stage.straight();
    for sql in [
        "CREATE ROLE taken_reader LOGIN",
        "CREATE TABLE taken (id int PRIMARY KEY)",
        "INSERT INTO taken VALUES (7)",
    ] {
        server.run(sql);
    }
    let read = "/* ttl:3600 */ SELECT * FROM taken";
    stage.until_remembered(&mut stage.client(), read, "SELECT * FROM taken");
    let mut client = connect(stage.reloadable.proxy.address(), "taken_reader", "taken");
    for (given, taken) in [
        (
            "GRANT pg_read_all_data TO taken_reader",
            "REVOKE pg_read_all_data FROM taken_reader",
        ),
        (
            "ALTER ROLE taken_reader SUPERUSER",
            "ALTER ROLE taken_reader NOSUPERUSER",
        ),
    ] {
        for _ in 0..5 {
            server.run(given);
            until("it is let", || client.query(read).error().is_none());
            client.run(read);
            server.run(taken);
            server.run("SELECT pg_stat_force_next_flush()");
            until("it is refused", || client.query(read).error().is_some());
        }
    }
}

/// A published table without a replica identity could not be changed any more.
#[test]
fn no_table_is_published_whose_rows_could_not_be_changed_then() {
    let stage = Stage::new("identity", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE bare (n int)",
        "CREATE TABLE whole (n int)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE loses (n int PRIMARY KEY)",
        "CREATE TABLE deferred (n int PRIMARY KEY DEFERRABLE)",
        "INSERT INTO bare VALUES (1)",
        "INSERT INTO whole VALUES (1)",
        "INSERT INTO loses VALUES (1)",
        "INSERT INTO deferred VALUES (1)",
    ] {
        server.run(sql);
    }
    let read = |table: &str| format!("/* ttl:3600 */ SELECT n FROM {table}");
    for table in ["bare", "deferred"] {
        until("it is asked for", || {
            client.run(&read(table));
            let why = stage.remembered(&format!("SELECT n FROM {table}")).1;
            why.is_some_and(|why| why.contains(&format!("the table {table} is not published")))
        });
    }
    until("the others are remembered", || {
        // All the while.
        server.run("UPDATE bare SET n = n");
        server.run("UPDATE deferred SET n = n");
        let mut is_remembered = |table: &str| {
            client.run(&read(table));
            stage.remembered(&format!("SELECT n FROM {table}")).0 > 0
        };
        let (whole, loses) = (is_remembered("whole"), is_remembered("loses"));
        whole && loses
    });
    for table in ["bare", "whole", "loses", "deferred"] {
        server.run(&format!("UPDATE {table} SET n = n + 1"));
        until(table, || client.ask(&read(table)) == "2");
        assert_eq!(client.ask(&read(table)), "2");
    }
    assert_eq!(stage.remembered("SELECT n FROM bare").0, 0);
    server.run("ALTER TABLE loses DROP CONSTRAINT loses_pkey");
    until("it can be changed again", || {
        server.query("UPDATE loses SET n = 3").error().is_none()
    });
    until("it is seen", || client.ask(&read("loses")) == "3");
    server.run("UPDATE loses SET n = 4");
    assert_eq!(client.ask(&read("loses")), "4", "it is not remembered any more");
}

/// A commit that waits for a standby is in the log, and so in the stream, and is seen by nobody yet.
#[test]
fn an_answer_that_has_not_seen_what_was_told_before_is_not_kept() {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let server = SERVER.get_or_init(|| started(&[]));
    // Who sees what is asked each 20 ms.
    let stage = Stage::at(server, "postgres", "max_lag = \"80ms\"\n");
    let (mut client, mut admin) = (stage.client(), stage.straight());
    admin.run("CREATE TABLE waits (id int PRIMARY KEY, n int)");
    admin.run("INSERT INTO waits VALUES (1, 0)");
    let read = "/* ttl:3600 */ SELECT n FROM waits";
    for round in 1..=3 {
        let set = |admin: &mut Client, names: &str| {
            admin.run(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
            admin.run("SELECT pg_reload_conf()");
        };
        stage.until_remembered(&mut client, read, "SELECT n FROM waits");
        admin.run("SET synchronous_commit = local");
        set(&mut admin, "nobody");
        let mut writer = stage.straight();
        until("it is in force", || {
            writer.ask("SHOW synchronous_standby_names") == "nobody"
        });
        let commits = stage.status("stream_commits");
        writer.send(&query(&format!("UPDATE waits SET n = {round}")));
        until("it is told", || stage.status("stream_commits") != commits);
        let told = Instant::now();
        while told.elapsed() < Duration::from_millis(100) {
            assert_eq!(client.ask(read), (round - 1).to_string(), "nobody sees it yet");
        }
        set(&mut admin, "");
        writer.answer();
        // It was told before it was seen, and is not told again.
        assert_eq!(client.ask(read), round.to_string());
    }
}

#[test]
fn a_stream_that_is_cut_is_begun_anew_and_all_is_old() {
    let stage = Stage::new("cut", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE cut (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO cut VALUES (1, 0)");
    let read = "/* ttl:3600 */ SELECT n FROM cut";
    for round in 1..=4 {
        stage.until_remembered(&mut client, read, "SELECT n FROM cut");
        let beginnings = stage.status("stream_beginnings");
        // The one for the stream, or the one that asks.
        let kind = if round % 2 == 0 { "walsender" } else { "client backend" };
        let ended = server.ask(&format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'forebay stream' \
             AND datname = 'cut' AND backend_type = '{kind}'"
        ));
        assert_eq!(ended, "1");
        server.run(&format!("UPDATE cut SET n = {round}"));
        until("it is seen", || client.ask(read) == round.to_string());
        until("it begins", || stage.status("stream_beginnings") != beginnings);
        // What was remembered before is not, though it was not told.
        stage.until_remembered(&mut client, read, "SELECT n FROM cut");
        assert_eq!(client.ask(read), round.to_string());
    }
}

/// The server's process is stopped, so that nothing is cut and nothing is told.
#[test]
fn a_stream_that_is_behind_is_not_relied_on() {
    let stage = Stage::new("behind", "max_lag = \"200ms\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE behind (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO behind VALUES (1, 0)");
    let read = "/* ttl:3600 */ SELECT n FROM behind";
    stage.until_remembered(&mut client, read, "SELECT n FROM behind");
    for round in 1..=3 {
        stage.signal_stream(libc::SIGSTOP);
        server.run(&format!("UPDATE behind SET n = {round}"));
        let changed = Instant::now();
        until("it is seen", || client.ask(read) == round.to_string());
        let took = changed.elapsed();
        // Where the server's roles change, the catalog is asked about it anew before anything else is told.
        until("it is told why", || {
            client.run(read);
            stage.remembered("SELECT n FROM behind").1.as_deref() == Some("the database's stream is behind")
        });
        stage.signal_stream(libc::SIGCONT);
        assert!(took < Duration::from_secs(1), "{took:?}");
        stage.until_remembered(&mut client, read, "SELECT n FROM behind");
    }
}

#[test]
fn an_idle_database_stays_heard() {
    let stage = Stage::new("idle", "max_lag = \"100ms\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE idle (id int PRIMARY KEY)");
    let read = "/* ttl:3600 */ SELECT count(*) FROM idle";
    stage.until_remembered(&mut client, read, "SELECT count(*) FROM idle");
    let (before, begun) = (stage.remembered("SELECT count(*) FROM idle").0, Instant::now());
    let mut asked = 0;
    while begun.elapsed() < Duration::from_secs(1) {
        client.run(read);
        asked += 1;
    }
    let known = stage.remembered("SELECT count(*) FROM idle").0 - before;
    assert!(known * 10 > asked * 8, "{known} of {asked}");
}

/// The log's end is told behind the header of a page that nothing stands on yet, and the stream ends before it.
#[test]
fn a_log_that_ends_with_a_page_is_heard_to_its_end() {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    // Nobody else writes.
    let server = SERVER.get_or_init(|| started(&[("autovacuum", "off"), ("bgwriter_delay", "10s")]));
    let stage = Stage::at(server, "postgres", "max_lag = \"100ms\"\n");
    let (mut client, mut admin) = (stage.client(), stage.straight());
    admin.run("CREATE TABLE page (id int PRIMARY KEY)");
    let read = "/* ttl:3600 */ SELECT count(*) FROM page";
    for _ in 0..3 {
        stage.until_remembered(&mut client, read, "SELECT count(*) FROM page");
        admin.run(
            "DO $$BEGIN LOOP PERFORM pg_logical_emit_message(false, 'a', 'record'); \
             EXIT WHEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') % 8192 = 24; END LOOP; END$$",
        );
        let lag = || stage.status("stream_lag_ms").parse::<u64>().unwrap();
        // It may have been heard a moment ago.
        let begun = Instant::now();
        until("it is heard", || {
            begun.elapsed() > Duration::from_millis(300) && lag() <= 100
        });
        stage.until_remembered(&mut client, read, "SELECT count(*) FROM page");
    }
}

/// A new file is a new row of the catalog, which is looked at too; but here it is told.
#[test]
fn rows_that_are_all_taken_out_are_told() {
    let stage = Stage::new("emptied", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE emptied (id int PRIMARY KEY)");
    let read = "/* ttl:3600 */ SELECT count(*) FROM emptied";
    for _ in 0..5 {
        server.run("INSERT INTO emptied VALUES (1)");
        until("it is told", || client.ask(read) == "1");
        stage.until_remembered(&mut client, read, "SELECT count(*) FROM emptied");
        let commits = stage.status("stream_commits");
        server.run("TRUNCATE emptied");
        until("it is told", || stage.status("stream_commits") != commits);
        assert_eq!(client.ask(read), "0");
    }
}

/// What it has changed before is told in part, or not at all.
#[test]
fn a_transaction_that_began_before_its_table_was_published_is_waited_for() {
    let stage = Stage::new("before", "");
    let (mut client, mut server, mut writer) = (stage.client(), stage.straight(), stage.straight());
    server.run("CREATE TABLE before_it (id int PRIMARY KEY, n int)");
    server.run("CREATE TABLE first_of_all (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO before_it VALUES (1, 0)");
    let read = "/* ttl:3600 */ SELECT n FROM before_it";
    stage.until_remembered(
        &mut client,
        "/* ttl:3600 */ SELECT n FROM first_of_all",
        "SELECT n FROM first_of_all",
    );
    writer.run("BEGIN");
    writer.run("UPDATE before_it SET n = 1");
    let published = "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'before_it'";
    until("it is published", || {
        client.run(read);
        server.ask(published) == "1"
    });
    // Others are relied on meanwhile, and what is published is looked at again.
    server.run("CREATE TABLE looked_at (n int)");
    let changes = stage.status("stream_catalog_changes");
    until("it is looked at", || stage.status("stream_catalog_changes") != changes);
    stage.until_remembered(
        &mut client,
        "/* ttl:3600 */ SELECT n FROM first_of_all",
        "SELECT n FROM first_of_all",
    );
    for _ in 0..20 {
        assert_eq!(client.ask(read), "0");
    }
    assert_eq!(stage.remembered("SELECT n FROM before_it").0, 0);
    writer.run("COMMIT");
    assert_eq!(client.ask(read), "1");
    stage.until_remembered(&mut client, read, "SELECT n FROM before_it");
    assert_eq!(client.ask(read), "1");
}

#[test]
fn a_row_of_any_length_is_a_change() {
    let stage = Stage::new("long", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE long (id int PRIMARY KEY, n int, t text)");
    server.run("INSERT INTO long VALUES (1, 0, '')");
    let read = "/* ttl:3600 */ SELECT n FROM long";
    for n in 1..=3 {
        stage.until_remembered(&mut client, read, "SELECT n FROM long");
        server.run(&format!("UPDATE long SET n = {n}, t = repeat('{n}', 3000000)"));
        until("it is seen", || client.ask(read) == n.to_string());
    }
    assert_eq!(stage.status("stream_beginnings"), "1");
}

#[test]
fn a_slot_that_holds_back_too_much_of_the_log_is_dropped() {
    let stage = Stage::new("held", "max_wal = \"1MiB\"\n");
    let (mut client, mut server, mut writer) = (stage.client(), stage.straight(), stage.straight());
    server.run("CREATE TABLE held (id int PRIMARY KEY, n text)");
    let read = "/* ttl:3600 */ SELECT count(*) FROM held";
    stage.until_remembered(&mut client, read, "SELECT count(*) FROM held");
    // What is not ended is to be read again from its beginning.
    writer.run("BEGIN");
    writer.run("INSERT INTO held VALUES (0, '')");
    let beginnings = stage.status("stream_beginnings");
    let mut id = 0;
    until("it holds back too much", || {
        id += 1;
        server.run(&format!(
            "INSERT INTO held SELECT {id}, string_agg(md5(random()::text), '') FROM generate_series(1, 3000)"
        ));
        stage
            .status("stream")
            .contains("bytes of the database's log, and may 1048576")
    });
    writer.run("COMMIT");
    until("it begins anew", || stage.status("stream_beginnings") != beginnings);
    stage.until_remembered(&mut client, read, "SELECT count(*) FROM held");
    assert_eq!(client.ask(read), (id + 1).to_string());
}

#[test]
fn of_a_given_publication_that_is_remembered_which_it_tells_whole() {
    let stage = Stage::new("given", "publication = \"some'one's\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE whole (id int PRIMARY KEY, n int)",
        "CREATE TABLE filtered (id int PRIMARY KEY, n int)",
        "CREATE TABLE other (id int PRIMARY KEY, n int)",
        "INSERT INTO whole VALUES (1, 0)",
        "INSERT INTO filtered VALUES (1, 0)",
        "INSERT INTO other VALUES (1, 0)",
    ] {
        server.run(sql);
    }
    let read = |table: &str| format!("/* ttl:3600 */ SELECT n FROM {table}");
    let stands = |client: &mut Client, words: &str| {
        until(words, || {
            client.run(&read("whole"));
            stage.status("stream").contains(words)
        });
    };
    stands(&mut client, "there is no publication \"some'one's\"");
    server.run(
        "CREATE PUBLICATION \"some'one's\" FOR TABLE whole, filtered WHERE (id > 1) WITH (publish = 'insert, update, delete')",
    );
    stands(&mut client, "does not tell all");
    server.run("ALTER PUBLICATION \"some'one's\" SET (publish = 'insert, update, delete, truncate', publish_via_partition_root)");
    stands(&mut client, "does not tell all");
    server.run("ALTER PUBLICATION \"some'one's\" SET (publish_via_partition_root = false)");
    stage.until_remembered(&mut client, &read("whole"), "SELECT n FROM whole");
    for table in ["filtered", "other"] {
        client.run(&read(table));
        client.run(&read(table));
    }
    // Whatever is published of them is known then.
    let looks = || stage.status("stream_catalog_looks").parse::<u64>().unwrap();
    let before = looks();
    until("it is looked at", || looks() > before + 1);
    for n in 1..=5 {
        for table in ["whole", "filtered", "other"] {
            client.run(&read(table));
            client.run(&read(table));
            server.run(&format!("UPDATE {table} SET n = {n}"));
        }
        until("it is told", || client.ask(&read("whole")) == n.to_string());
        assert_eq!(client.ask(&read("filtered")), n.to_string());
        assert_eq!(client.ask(&read("other")), n.to_string());
    }
    for table in ["filtered", "other"] {
        let (count, why) = stage.remembered(&format!("SELECT n FROM {table}"));
        assert_eq!(count, 0, "{table}");
        assert!(why.is_some_and(|why| why.contains("is not published")), "{table}");
    }
    assert_eq!(server.ask("SELECT count(*) FROM pg_publication"), "1", "none is made");
    // What is taken out is not told any more.
    stage.until_remembered(&mut client, &read("whole"), "SELECT n FROM whole");
    server.run("ALTER PUBLICATION \"some'one's\" DROP TABLE whole");
    until("it is seen", || stage.remembered("SELECT n FROM whole").1.is_some());
    server.run("UPDATE whole SET n = 9");
    assert_eq!(client.ask(&read("whole")), "9");
}

/// What a publication does not tell any more makes nothing old: what is known is old as soon as that is seen, however late the stream may be.
#[test]
fn what_is_published_no_more_is_told_by_the_look_at_it() {
    let stage = Stage::new("unpublished", "max_lag = \"8s\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE told (n int PRIMARY KEY); INSERT INTO told VALUES (1)");
    let read = "/* ttl:3600 */ SELECT n FROM told";
    stage.until_remembered(&mut client, read, "SELECT n FROM told");
    server.run("ALTER PUBLICATION forebay SET (publish = 'insert')");
    server.run("UPDATE told SET n = 2");
    let begun = Instant::now();
    until("it is seen", || client.ask(read) == "2");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Whoever can't be listened to is never answered from memory, and is told why.
#[test]
fn who_cannot_listen_remembers_nothing_and_says_why() {
    let server = crate::postgres();
    let text = format!(
        "upstream = \"postgresql://postgres@{}/postgres\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\ntrust_loopback = true\n\
         invalidate = \"stream\"\n",
        server.address()
    );
    let reloadable = Reloadable::start(&text, &[]);
    let mut client = connect(reloadable.proxy.address(), "postgres", "postgres");
    let read = "/* ttl:3600 */ SELECT count(*) FROM (VALUES (1)) v";
    let why = |client: &mut Client| {
        client.run(read);
        let rows = client.query("SHOW FOREBAY SHARING").rows();
        let row = rows
            .into_iter()
            .find(|row| row[2].as_deref().is_some_and(|text| text.contains("VALUES")));
        row.and_then(|row| row[13].clone()).unwrap_or_default()
    };
    until("it says why", || {
        why(&mut client) == "the database's stream: away: wal_level is not \"logical\""
    });
}

const POSITION: &str = "SELECT pg_current_wal_insert_lsn()";

/// Whoever has heard of a position of the log from somebody else, by whatever way.
#[test]
fn what_is_asked_behind_a_position_has_seen_all_before_it() {
    let stage = Stage::new("positions", "max_lag = \"3s\"\n");
    let (mut client, mut other, mut server) = (stage.client(), stage.client(), stage.straight());
    server.run("CREATE TABLE positions (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO positions VALUES (1, 0)");
    let read = "/* ttl:3600 */ SELECT n FROM positions";
    let behind = |position: &str| format!("/* ttl:3600 after:{position} */ SELECT n FROM positions");
    stage.until_remembered(&mut client, read, "SELECT n FROM positions");
    let mut old = 0;
    for round in 1..=400 {
        other.run(read);
        server.run(&format!("UPDATE positions SET n = {round}"));
        let position = server.ask(POSITION);
        if round % 2 == 0 {
            old += u32::from(other.ask(read) != round.to_string());
        }
        let told = match round % 4 < 2 {
            true => client.ask(&behind(&position)),
            false => {
                let told = client.pipeline(&[whole(&behind(&position), &[])]);
                told.value().expect("a row")
            }
        };
        assert_eq!(told, round.to_string(), "behind {position}");
    }
    println!("without a position {old} of 200 were old");
    // Memory answers once it is heard.
    let position = server.ask(POSITION);
    let by = |client: &mut Client| {
        let rows = client.query("SHOW FOREBAY STATUS").expect("shown").rows();
        let row = rows
            .into_iter()
            .find(|row| row[0].as_deref() == Some("last_answered_by"));
        row.and_then(|row| row[1].clone()).expect("somewhere")
    };
    until("memory answers", || {
        assert_eq!(client.ask(&behind(&position)), "400");
        by(&mut client) == "cache"
    });
    // What will be is not heard yet.
    for _ in 0..20 {
        assert_eq!(client.ask(&behind("FFFFFFFF/0")), "400");
        assert_eq!(by(&mut client), "primary");
    }
    // It is a comment like any other.
    client.ask(&behind("nowhere"));
    assert_eq!(by(&mut client), "cache");
    // Where nothing is told: who says nothing of it is answered from memory all the same, for a while.
    stage.signal_stream(libc::SIGSTOP);
    server.run("UPDATE positions SET n = 500");
    let position = server.ask(POSITION);
    let without = client.ask(read);
    let told = [(); 3].map(|()| client.ask(&behind(&position)));
    stage.signal_stream(libc::SIGCONT);
    assert_eq!((&*without, told), ("400", [(); 3].map(|()| "500".to_owned())));
}

/// One that was asked for before is of before, though it is answered behind.
#[test]
fn who_asks_behind_a_position_joins_nobody_who_has_asked_before() {
    let joins = "[[rule]]\nname = \"joins\"\njoin = \"in flight\"\ntable = \"joining\"\n";
    let stage = Stage::new("joining", joins);
    let (mut first, mut second, mut server) = (stage.client(), stage.client(), stage.straight());
    server.run("CREATE TABLE joining (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO joining VALUES (1, 0)");
    for (round, hint) in (1..).zip(["ttl:3600", "", "ttl:3600", ""]) {
        let slow =
            format!("SELECT n, (SELECT count(*) FROM generate_series(1, 1000000)) FROM joining WHERE n >= -{round}");
        let read = format!("/* {hint} */ {slow}");
        for _ in 0..8 {
            first.run(&read);
        }
        server.run(&format!("UPDATE joining SET n = {round}"));
        until("what was told makes it old", || {
            first.query(&read).rows()[0][0] == Some(round.to_string())
        });
        // Nobody has its answer: it is asked of the server.
        server.run(&format!("UPDATE joining SET n = {round} + 100"));
        stage.until_heard(&server.ask(POSITION));
        // Who joins another asks the very same, and that may be what somebody has guessed.
        let guess = format!("/* after:7FFFFFFF/0 */ {slow}");
        first.send(&query(if hint.is_empty() { &guess } else { &read }));
        let runs = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series%' AND pid <> pg_backend_pid()";
        until("it runs", || server.ask(runs) == "1");
        // Nothing is told of it before somebody asks.
        stage.signal_stream(libc::SIGSTOP);
        server.run(&format!("UPDATE joining SET n = {round} + 200"));
        let position = server.ask(POSITION);
        let behind = match hint.is_empty() {
            true => guess,
            false => format!("/* {hint} after:{position} */ {slow}"),
        };
        let told = second.query(&behind).rows();
        stage.signal_stream(libc::SIGCONT);
        assert_eq!(told[0][0], Some((round + 200).to_string()), "round {round}");
        first.answer();
    }
}

/// What sessions begin with may be changed in a file, for all of them that there are.
#[test]
fn what_a_server_reads_of_its_configuration_makes_answers_old() {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let stage = Stage::at(SERVER.get_or_init(|| started(&[])), "configured", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE days (id int PRIMARY KEY, day date)");
    server.run("INSERT INTO days VALUES (1, '2020-03-04')");
    const READ: &str = "/* ttl:3600 */ SELECT day FROM days WHERE id = 1";
    for style in ["German", "SQL, DMY"] {
        stage.until_remembered(&mut client, READ, "SELECT day FROM days");
        server.run(&format!("ALTER SYSTEM SET datestyle = '{style}'"));
        server.run("SELECT pg_reload_conf()");
        until(style, || {
            server.ask(READ) == if style == "German" { "04.03.2020" } else { "04/03/2020" }
        });
        let begun = Instant::now();
        until(style, || client.ask(READ) == server.ask(READ));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}
