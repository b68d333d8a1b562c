//! What changes make old, of what is remembered: by all who have passed the proxy, from their end on, and of no other table.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::client::{Client, bind, describe, execute, flush, parse, query, sync, whole};
use crate::memory::{remembered, remembering, until_remembered};
use crate::{as_user, at, postgres, straight};

/// A function of the user's that is called as one of PostgreSQL's own, or as a word of SQL's, may change rows.
#[test]
fn a_function_that_is_called_as_a_harmless_one_is_known_by_what_it_does() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    for sql in [
        "CREATE SCHEMA called",
        "CREATE TABLE called.rows (n int)",
        "INSERT INTO called.rows VALUES (0)",
        "CREATE FUNCTION called.by_another() RETURNS int LANGUAGE sql AS 'UPDATE called.rows SET n = n + 1 RETURNING n'",
        "CREATE FUNCTION called.log(text) RETURNS int LANGUAGE sql AS 'SELECT called.by_another()'",
        "CREATE FUNCTION called.pg_log(text) RETURNS int LANGUAGE plpgsql AS $$BEGIN EXECUTE 'UPDATE called.rows SET n = n + 1'; RETURN 1; END$$",
        "CREATE FUNCTION called.left(text) RETURNS int LANGUAGE sql AS 'UPDATE called.rows SET n = n + 1 RETURNING n'",
        "CREATE FUNCTION called.upper(text) RETURNS text LANGUAGE sql AS $$SELECT $1 || '!'$$",
    ] {
        admin.run(sql);
    }
    const READ: &str = "/* ttl:3600 */ SELECT n FROM called.rows";
    // Of a schema, and by the search_path alone.
    let in_schema =
        ["log('x')", "pg_log('x')", "\"left\"('x')", "by_another()"].map(|call| format!("SELECT called.{call}"));
    let by_path = ["log('x')", "pg_log('x')", "by_another()"].map(|call| format!("SELECT {call}"));
    let mut caller = at(address);
    caller.run("SET search_path = called, pg_catalog");
    for call in in_schema.iter().chain(&by_path) {
        for number in 0..6 {
            until_remembered(&mut client, &mut admin, READ, "SELECT n FROM called.rows");
            caller.run(call);
            let now = server.ask(READ);
            assert_eq!(client.ask(READ), now, "{call} {number}");
        }
    }
    // What changes nothing makes nothing old.
    until_remembered(&mut client, &mut admin, READ, "SELECT n FROM called.rows");
    let before = server.ask(READ);
    server.run("UPDATE called.rows SET n = n + 100");
    for call in [
        "SELECT upper('x')",
        "SELECT pg_catalog.upper('x'), count(*) FROM called.rows",
    ] {
        caller.run(call);
        assert_eq!(client.ask(READ), before, "{call}");
    }
    server.run("DROP SCHEMA called CASCADE");
}

/// Row security decides which rows a change may change, and changes none itself, unless it calls what does.
#[test]
fn a_change_under_row_security_makes_its_own_table_old_alone() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    let mut writer = as_user(address, "trusted").unwrap();
    for sql in [
        "CREATE TABLE apart (id int PRIMARY KEY, tenant text, n int)",
        "CREATE TABLE apart_teams (tenant text)",
        "CREATE TABLE apart_kept (n int)",
        "INSERT INTO apart SELECT n, 'a', 0 FROM generate_series(1, 3) n",
        "INSERT INTO apart_teams VALUES ('a')",
        "INSERT INTO apart_kept VALUES (1)",
        "ALTER TABLE apart ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON apart USING (tenant = current_setting('apart.tenant', true))",
        "CREATE POLICY teams ON apart FOR UPDATE USING (tenant IN (SELECT tenant FROM apart_teams)) WITH CHECK (n IS NOT NULL)",
        "CREATE FUNCTION apart_writes() RETURNS bool LANGUAGE sql SECURITY DEFINER AS 'UPDATE public.apart_kept SET n = n + 1 RETURNING true'",
        "CREATE FUNCTION apart_stable() RETURNS bool STABLE LANGUAGE plpgsql AS 'BEGIN RETURN apart_writes(); END'",
        "GRANT ALL ON apart, apart_teams TO trusted",
    ] {
        admin.run(sql);
    }
    const KEPT: &str = "/* ttl:3600 */ SELECT n FROM apart_kept";
    const OWN: &str = "/* ttl:3600 */ SELECT sum(n), count(*) FROM apart";
    writer.run("SET apart.tenant = 'a'");
    let changes = [
        "UPDATE apart SET n = n + 1 WHERE id = 1",
        "UPDATE apart SET n = n + 1",
        "INSERT INTO apart VALUES (9, 'a', 7)",
        "DELETE FROM apart WHERE id = 9",
    ];
    // The catalog is asked about what was executed some times.
    for _ in 0..8 {
        changes.iter().for_each(|change| drop(writer.run(change)));
    }
    let mut reader = at(address);
    until_remembered(&mut reader, &mut admin, KEPT, "SELECT n FROM apart_kept");
    server.run("UPDATE apart_kept SET n = 2");
    for change in changes {
        writer.run(change);
        assert_eq!(reader.ask(KEPT), "1", "{change} made the answer of another table old");
        let now = server.ask(OWN);
        assert_eq!(reader.ask(OWN), now, "{change}");
        assert_eq!(reader.ask(OWN), now, "{change}");
    }
    // A policy that calls what changes rows, or what does so itself, whatever it is declared to be.
    for condition in ["apart_writes()", "apart_stable()"] {
        admin.run(&format!("CREATE POLICY writes ON apart FOR UPDATE USING ({condition})"));
        for number in 0..8 {
            until_remembered(&mut reader, &mut admin, KEPT, "SELECT n FROM apart_kept");
            writer.run("UPDATE apart SET n = n + 1 WHERE id = 1");
            assert_eq!(reader.ask(KEPT), server.ask(KEPT), "{condition} {number}");
        }
        admin.run("DROP POLICY writes ON apart");
    }
    admin.run("DROP FUNCTION apart_writes, apart_stable; DROP TABLE apart, apart_teams, apart_kept");
}

#[test]
fn what_passes_to_change_rows_is_seen_by_all_once_it_is_done() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut other) = (at(address), at(address));
    for sql in [
        "CREATE TABLE seen (id int PRIMARY KEY, n int)",
        "CREATE TABLE seen_by (id int REFERENCES seen ON DELETE CASCADE ON UPDATE CASCADE, n int)",
        "CREATE TABLE seen_parts (id int, n int) PARTITION BY LIST (id)",
        "CREATE TABLE seen_part PARTITION OF seen_parts FOR VALUES IN (1)",
        "CREATE TABLE seen_heir () INHERITS (seen_by)",
        "INSERT INTO seen VALUES (1, 0)",
        "INSERT INTO seen_by VALUES (1, 0)",
        "INSERT INTO seen_parts VALUES (1, 0)",
        "CREATE FUNCTION seen_write() RETURNS int LANGUAGE sql AS 'UPDATE seen SET n = n + 1 RETURNING n'",
        "CREATE FUNCTION seen_too() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE seen SET n = n + 1; RETURN NEW; END'",
        "CREATE TABLE seen_fires (n int)",
        "CREATE TRIGGER too AFTER INSERT ON seen_fires FOR EACH ROW EXECUTE FUNCTION seen_too()",
        "CREATE VIEW seen_view AS SELECT * FROM seen",
    ] {
        admin.run(sql);
    }
    let reads = [
        "/* ttl:3600 */ SELECT coalesce(sum(n), -1) FROM seen",
        "/* ttl:3600 */ SELECT coalesce(sum(n), -1) FROM seen_by",
        "/* ttl:3600 */ SELECT coalesce(sum(n), -1) FROM seen_parts",
    ];
    let straightly = |server: &mut Client| reads.map(|read| server.ask(read));
    let mut server = straight(postgres());
    let changes: Vec<Vec<u8>> = [
        "UPDATE seen SET n = n + 1 WHERE id = 1",
        "INSERT INTO seen VALUES (2, 5)",
        "WITH x AS (UPDATE seen SET n = n + 1 RETURNING n) SELECT * FROM x",
        "SELECT seen_write()",
        "SELECT * FROM seen_write()",
        "DO 'BEGIN UPDATE seen SET n = n + 1; END'",
        "INSERT INTO seen_fires VALUES (1)",
        "UPDATE seen_view SET n = n + 1",
        "UPDATE seen SET id = 7 WHERE id = 1",
        "UPDATE seen_by SET n = n + 3",
        "INSERT INTO seen_heir VALUES (7, 4)",
        "UPDATE seen_heir SET n = n + 1",
        "INSERT INTO seen_part VALUES (1, 9)",
        "MERGE INTO seen USING (VALUES (7)) v(id) ON seen.id = v.id WHEN MATCHED THEN UPDATE SET n = seen.n + 1",
        "DELETE FROM seen WHERE id = 7",
        "TRUNCATE seen_parts",
        "BEGIN; INSERT INTO seen VALUES (3, 3); COMMIT",
        "CREATE TABLE seen_new AS SELECT * FROM seen",
        "SELECT * INTO seen_newer FROM seen",
        "ALTER TABLE seen ADD COLUMN m int DEFAULT 1",
        "PREPARE seen_plan AS UPDATE seen SET n = n + 1; EXECUTE seen_plan; DEALLOCATE seen_plan",
        "EXPLAIN ANALYZE UPDATE seen SET n = n + 1",
        "DECLARE seen_cursor CURSOR WITH HOLD FOR SELECT seen_write(); CLOSE seen_cursor",
    ]
    .into_iter()
    .map(query)
    .chain([
        [whole("UPDATE seen SET n = n + $1::int", &["4"]), sync()].concat(),
        [
            parse("", "UPDATE seen SET n = n + $1"),
            bind("", "", &["20"]),
            execute("", 0),
            bind("", "", &["21"]),
            execute("", 0),
            sync(),
        ]
        .concat(),
        [
            parse(
                "",
                "INSERT INTO seen VALUES ($1, 2) ON CONFLICT (id) DO UPDATE SET n = seen.n + 1",
            ),
            bind("", "", &["22"]),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
    ])
    .collect();
    for (number, change) in changes.iter().enumerate() {
        // What the one before has left keeps it on its connection.
        let mut client = at(address);
        // So often that what is known of the change is told by it.
        for round in 0..7 {
            // Asked often enough to be remembered, and to travel.
            for read in reads {
                other.run(read);
                other.run(read);
            }
            client.send(change);
            if client.answer().status == 'E' {
                client.run("ROLLBACK");
            }
            let (told, own) = (straightly(&mut other), straightly(&mut client));
            let wanted = straightly(&mut server);
            assert_eq!(told, wanted, "change {number}, round {round}");
            assert_eq!(own, wanted, "change {number}, round {round}, its own");
        }
    }
    assert!(
        remembered(&mut admin, "SELECT coalesce").0 > 0,
        "some of it was remembered"
    );
    // Both are on their way before the first is answered, and what is remembered behind the first is of before the second.
    server.run("BEGIN");
    server.run("LOCK TABLE seen IN SHARE MODE");
    let mut client = at(address);
    client.send(&[query("SELECT 1"), query("UPDATE seen SET n = n + 1")].concat());
    client.answer();
    until_remembered(&mut other, &mut admin, reads[0], "SELECT coalesce");
    server.run("COMMIT");
    client.answer();
    assert_eq!(straightly(&mut other), straightly(&mut server));
    for sql in [
        "DROP TABLE seen_heir, seen_by, seen_parts, seen_fires, seen_new, seen_newer",
        "DROP VIEW seen_view",
        "DROP TABLE seen",
        "DROP FUNCTION seen_write, seen_too",
    ] {
        server.run(sql);
    }
}

#[test]
fn a_transactions_changes_are_seen_from_its_commit_on() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut other) = (at(address), at(address), at(address));
    admin.run("CREATE TABLE once (n int)");
    admin.run("INSERT INTO once VALUES (0)");
    let read = "/* ttl:3600 */ SELECT n FROM once";
    for round in 1..=5 {
        until_remembered(&mut other, &mut admin, read, "SELECT n FROM once");
        client.run("BEGIN");
        client.run(&format!("UPDATE once SET n = {round}"));
        assert_eq!(client.ask(read), round.to_string(), "its own");
        // What is remembered anew meanwhile is of before.
        until_remembered(&mut other, &mut admin, read, "SELECT n FROM once");
        assert_eq!(other.ask(read), (round - 1).to_string());
        match round {
            1 => {
                client.send(&[whole("COMMIT", &[]), sync()].concat());
                client.answer();
            }
            // The next one begins in the same breath.
            2 => drop(client.query("COMMIT; BEGIN")),
            3 => drop(client.query("COMMIT AND CHAIN")),
            _ => drop(client.run("COMMIT")),
        }
        assert_eq!(other.ask(read), round.to_string());
        client.query("ROLLBACK");
    }
    admin.run("DROP TABLE once");
}

/// By the extended protocol a statement is told to be complete before its transaction is committed.
#[test]
fn what_is_complete_and_not_committed_is_not_there_yet() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut other) = (at(address), at(address), at(address));
    admin.run("CREATE TABLE complete (n int)");
    admin.run("INSERT INTO complete VALUES (0)");
    let read = "/* ttl:3600 */ SELECT n FROM complete";
    for (round, rows_max) in (1..=4).zip([0, 1, 0, 1]) {
        let change = format!("UPDATE complete SET n = {round} RETURNING n");
        let messages = [parse("", &change), bind("", "", &[]), execute("", rows_max), flush()];
        client.send(&messages.concat());
        // Complete, or with more to tell.
        while !matches!(client.read().unwrap().kind, b'C' | b's') {}
        until_remembered(&mut other, &mut admin, read, "SELECT n FROM complete");
        assert_eq!(other.ask(read), (round - 1).to_string());
        client.pipeline(&[]);
        assert_eq!(other.ask(read), round.to_string());
    }
    admin.run("DROP TABLE complete");
}

/// Writers and readers through the proxy: who asks is told nothing that is older than what had been acknowledged when he asked.
#[test]
fn nobody_is_told_what_was_changed_before_he_asked() {
    const ROWS: u64 = 4;
    const ANSWERS: u64 = 5_000;
    let reloadable = remembering("");
    let address: SocketAddr = reloadable.proxy.address();
    let mut admin = at(address);
    admin.run("CREATE TABLE checked (id int PRIMARY KEY, n bigint)");
    for id in 0..ROWS {
        admin.run(&format!("INSERT INTO checked VALUES ({id}, 0)"));
    }
    let acknowledged: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let answers = AtomicU64::new(0);
    thread::scope(|scope| {
        for id in 0..ROWS {
            let (acknowledged, is_over, answers) = (&acknowledged[id as usize], &is_over, &answers);
            scope.spawn(move || {
                let mut client = at(address);
                client.pipeline(&[parse("change", "UPDATE checked SET n = n + 1 WHERE id = $1")]);
                for number in 1_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    match number % 5 {
                        // In company.
                        4 => drop(client.run(&format!("/* batch:1 */ UPDATE checked SET n = n + 1 WHERE id = {id}"))),
                        0 => drop(client.run(&format!("UPDATE checked SET n = n + 1 WHERE id = {id}"))),
                        1 => drop(client.pipeline(&[bind("", "change", &[&id.to_string()]), execute("", 0)])),
                        2 => {
                            client.run("BEGIN");
                            client.run(&format!("UPDATE checked SET n = n + 1 WHERE id = {id}"));
                            client.run("COMMIT");
                        }
                        _ => drop(client.run(&format!(
                            "WITH x AS (UPDATE checked SET n = n + 1 WHERE id = {id} RETURNING n) SELECT * FROM x"
                        ))),
                    }
                    acknowledged.store(number, Ordering::SeqCst);
                    // Readers are to have the same answer more than once.
                    let told = answers.load(Ordering::Relaxed) + 20;
                    while answers.load(Ordering::Relaxed) < told && !is_over.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                }
            });
        }
        let readers: Vec<_> = (0..8)
            .map(|reader: u64| {
                let (acknowledged, is_over, answers) = (&acknowledged, &is_over, &answers);
                scope.spawn(move || {
                    let mut client = at(address);
                    client.pipeline(&[parse("read", "/* ttl:3600 */ SELECT n FROM checked WHERE id = $1")]);
                    for number in reader.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let id = number % ROWS;
                        let before = acknowledged[id as usize].load(Ordering::SeqCst);
                        let told = match number % 3 {
                            0 => client.ask(&format!("/* ttl:3600 */ SELECT n FROM checked WHERE id = {id}")),
                            _ => {
                                let asked = [bind("", "read", &[&id.to_string()]), execute("", 0)];
                                client.pipeline(&asked).value().expect("a row")
                            }
                        };
                        let told: u64 = told.parse().unwrap();
                        assert!(told >= before, "row {id}: told {told}, and {before} was acknowledged");
                        answers.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while answers.load(Ordering::Relaxed) < ANSWERS && !readers.iter().any(thread::ScopedJoinHandle::is_finished) {
            thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("nothing old was told");
        }
    });
    let known = remembered(&mut admin, "SELECT n FROM checked").0;
    let answers = answers.load(Ordering::Relaxed);
    assert!(known * 10 > answers, "{known} of {answers} were remembered");
    admin.run("DROP TABLE checked");
}
