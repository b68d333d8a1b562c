//! What is remembered for those who say how old their answers may be, beside the PostgreSQL that would have answered.

use std::time::{Duration, Instant};

use crate::client::{Answer, Client, bind, describe, execute, parse, query, whole};
use crate::crowd::until;
use crate::reload::{DONE, Reloadable};
use crate::{as_user, at, postgres, straight};

/// A proxy that remembers, by these lines.
pub(crate) fn remembering(lines: &str) -> Reloadable {
    Reloadable::start(
        &format!(
            "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\n{lines}"
        ),
        &[],
    )
}

/// How often what begins like this was answered from memory, and why it is not.
pub(crate) fn remembered(admin: &mut Client, begins: &str) -> (u64, Option<String>) {
    let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
    let rows = shown.rows().into_iter();
    let of = rows.filter(|row| row[2].as_deref().is_some_and(|text| text.starts_with(begins)));
    of.fold((0, None), |(sum, _), row| {
        let count: u64 = row[12].as_deref().expect("a number").parse().expect("a number");
        (sum + count, row[13].clone())
    })
}

/// Asks until it is answered from memory, and so does not tell what was changed straight at the server.
pub(crate) fn until_remembered(client: &mut Client, admin: &mut Client, text: &str, begins: &str) {
    let before = remembered(admin, begins).0;
    until("it is remembered", || {
        client.run(text);
        remembered(admin, begins).0 > before
    });
}

/// All that was answered, byte by byte.
pub(crate) fn bytes(answer: &Answer) -> Vec<(u8, &[u8])> {
    answer
        .messages
        .iter()
        .map(|message| (message.kind, &*message.body))
        .collect()
}

#[test]
fn who_says_nothing_is_never_answered_from_memory() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE said (n int)");
    server.run("INSERT INTO said VALUES (1)");
    let hinted = "/* ttl:3600 */ SELECT n FROM said";
    until_remembered(&mut client, &mut admin, hinted, "SELECT n FROM said");
    server.run("UPDATE said SET n = 2");
    assert_eq!(client.ask(hinted), "1", "it is remembered");
    // By any other comment it is the same statement.
    assert_eq!(
        at(address).ask("SELECT n /* file:a.php ttl:3600 */ FROM said -- here"),
        "1"
    );
    for other in [
        "SELECT n FROM said",
        "/* ttl:0 */ SELECT n FROM said",
        "/* stale:3600 */ SELECT n FROM said",
        // Another window is another answer.
        "/* ttl:3601 */ SELECT n FROM said",
        "/* ttl:3600 */ SELECT n FROM said WHERE true",
    ] {
        assert_eq!(client.ask(other), "2", "{other}");
    }
    // Nor is anything that is asked in a transaction.
    client.run("BEGIN");
    assert_eq!(client.ask(hinted), "2");
    client.run("COMMIT");
    assert_eq!(client.ask(hinted), "1");
    server.run("DROP TABLE said");
}

/// What a session has set is asked for behind it, and a read that comes meanwhile waits for that: it has no worse answer than one that comes later.
#[test]
fn what_is_asked_right_behind_a_set_is_told_from_memory() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE behind (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO behind VALUES (1, 1), (2, 2)");
    const READ: &str = "/* ttl:3600 */ SELECT n FROM behind WHERE id = 1";
    let prepared = [parse("", READ), bind("", "", &[]), execute("", 0)];
    client.run("SET TimeZone = 'UTC'");
    until_remembered(&mut client, &mut admin, READ, "SELECT n FROM behind");
    client.pipeline(&prepared).expect("it may be read");
    // From here on only memory has it.
    server.run("UPDATE behind SET n = 10 WHERE id = 1");
    for round in 0..5 {
        for sets in [
            "SET TimeZone = 'UTC'",
            "SET TimeZone = 'Asia/Tokyo'; SET TimeZone = 'UTC'",
            "SELECT set_config('TimeZone', 'UTC', false)",
            "LISTEN behind; UNLISTEN behind",
            "UNLISTEN *",
            "RESET work_mem",
        ] {
            client.run(sets);
            assert_eq!(client.ask(READ), "1", "{sets} {round}");
            client.run(sets);
            assert_eq!(
                client.pipeline(&prepared).expect("it may be read").value().as_deref(),
                Some("1"),
                "{sets} {round}"
            );
            // What nobody wants to have remembered goes on where it is.
            client.run(sets);
            assert_eq!(client.ask("SELECT n FROM behind WHERE id = 1"), "10", "{sets} {round}");
        }
    }
    // What it has set is what it is answered by.
    client.run("SET behind.tenant = '1'");
    assert_eq!(client.ask(READ), "10");
    let mut client = at(address);
    client.run("SET TimeZone = 'UTC'");
    assert_eq!(client.ask(READ), "1");
    // Who is kept on a connection has no answer of memory's.
    client.run("LISTEN behind");
    assert_eq!(client.ask(READ), "10");
    server.run("DROP TABLE behind");
}

#[test]
fn an_answer_is_of_those_alone_who_would_have_had_it() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    for sql in [
        "CREATE SCHEMA own_one",
        "CREATE SCHEMA own_two",
        "CREATE TABLE own_one.own (n int, at timestamptz)",
        "CREATE TABLE own_two.own (n int, at timestamptz)",
        "INSERT INTO own_one.own VALUES (1, '2020-01-01 00:00+00')",
        "INSERT INTO own_two.own VALUES (2, '2020-01-01 00:00+00')",
        "GRANT USAGE ON SCHEMA own_one TO public",
        "GRANT SELECT ON own_one.own TO trusted",
    ] {
        server.run(sql);
    }
    let read = "/* ttl:3600 */ SELECT n, at FROM own";
    let settings = [
        "SET search_path = own_one",
        "SET search_path = own_two",
        "SET search_path = own_one; SET timezone = 'Asia/Tokyo'",
        "SET search_path = own_two; SET datestyle = 'German'",
    ];
    let mut clients: Vec<(Client, Client)> = (settings.iter())
        .map(|setting| {
            let mut pair = (at(address), straight(postgres()));
            for sql in setting.split("; ") {
                pair.0.run(sql);
                pair.1.run(sql);
            }
            pair
        })
        .collect();
    for _ in 0..6 {
        for (client, server) in &mut clients {
            assert_eq!(bytes(&client.query(read)), bytes(&server.query(read)));
        }
    }
    assert!(remembered(&mut admin, "SELECT n, at FROM own").0 >= 8);
    let (client, server) = &mut clients[0];
    let prepared = |formats: &[u8], value: &[u8], results: &[u8]| {
        let bound = [
            &b"\0one\0"[..],
            formats,
            &[0, 1],
            &(value.len() as u32).to_be_bytes(),
            value,
            results,
        ]
        .concat();
        crate::client::message(b'B', &bound)
    };
    for client in [&mut *client, &mut *server] {
        client.pipeline(&[parse("one", "/* ttl:3600 */ SELECT n + $1::int4, at FROM own")]);
    }
    let (text, binary) = ([0, 0], [0, 1, 0, 1]);
    for _ in 0..6 {
        for (formats, value, results) in [
            (&text[..], &b"5"[..], &text[..]),
            (&text, b"6", &text),
            (&text, b"5", &binary),
            (&binary, &[0, 0, 0, 5], &text),
            (&binary, &[0, 0, 0, 7], &binary),
        ] {
            for is_described in [false, true] {
                let described = is_described.then(|| describe(b'P', ""));
                let messages = [
                    vec![prepared(formats, value, results)],
                    described.into_iter().collect(),
                    vec![execute("", 0)],
                ];
                let asked: Vec<Vec<u8>> = messages.concat();
                let (told, wanted) = (client.pipeline(&asked), server.pipeline(&asked));
                assert_eq!(bytes(&told), bytes(&wanted));
            }
        }
    }
    // Who may not read it is told so, whatever is known.
    let mut trusted = as_user(address, "trusted").unwrap();
    assert_eq!(trusted.ask("/* ttl:3600 */ SELECT n FROM own_one.own"), "1");
    for _ in 0..4 {
        at(address).run("/* ttl:3600 */ SELECT n FROM own_two.own");
        assert_eq!(
            trusted.query("/* ttl:3600 */ SELECT n FROM own_two.own").sqlstate(),
            "42501"
        );
    }
    straight(postgres()).run("DROP SCHEMA own_one, own_two CASCADE");
}

/// It is the other one's rows that are told, though nothing of it was changed.
#[test]
fn another_database_of_the_same_name_is_another_one() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    let connect = |address, database| {
        let client = Client::connect_with(address, &[("user", "postgres"), ("database", database)]);
        client.expect("let in")
    };
    for database in ["namesake", "namesake_too"] {
        server.run(&format!("CREATE DATABASE {database}"));
        let mut owner = connect(postgres().address(), database);
        owner.run("CREATE TABLE named (id int PRIMARY KEY, a text)");
        owner.run(&format!("INSERT INTO named VALUES (1, '{database}')"));
    }
    let read = "/* ttl:3600 */ SELECT a FROM named WHERE id = 1";
    let mut client = connect(address, "namesake");
    until_remembered(&mut client, &mut admin, read, "SELECT a FROM named");
    admin.run("DROP DATABASE namesake WITH (FORCE)");
    // Who has made it is told so once all of its sessions are gone.
    until("it is renamed", || {
        let renamed = admin.query("ALTER DATABASE namesake_too RENAME TO namesake");
        renamed.error().is_none()
    });
    let other = [[Some("namesake_too".to_owned())]];
    until("the other one is asked", || {
        connect(address, "namesake").query(read).rows() == other
    });
    for _ in 0..5 {
        assert_eq!(connect(address, "namesake").query(read).rows(), other);
    }
    drop((client, reloadable));
    server.run("DROP DATABASE namesake WITH (FORCE)");
}

#[test]
fn what_is_not_remembered_is_told_why() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    for sql in [
        "CREATE TABLE whys (n int, at timestamptz)",
        "CREATE MATERIALIZED VIEW whys_view AS SELECT n FROM whys",
        "CREATE FUNCTION whys_own() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE whys_times (id int, at time)",
        "CREATE TABLE whys_offsets (id int, at timetz)",
        "CREATE DOMAIN whys_list AS int[]",
        "CREATE DOMAIN whys_number AS int",
        "CREATE TYPE whys_kind AS ENUM ('odd')",
    ] {
        admin.run(sql);
    }
    let unsaid = "SELECT n FROM whys WHERE n > 5";
    for _ in 0..5 {
        client.run(unsaid);
    }
    let told = remembered(&mut admin, "SELECT n FROM whys WHERE n >").1;
    assert!(told.is_some_and(|told| told.contains("nothing says how old")));
    for (text, begins, why) in [
        ("SELECT now(), 'whys'", "SELECT now(), ?", "hangs on the time"),
        (
            "SELECT n FROM whys WHERE at < CURRENT_DATE",
            "SELECT n FROM whys WHERE at <",
            "hangs on the time",
        ),
        ("SELECT random(), 'whys'", "SELECT random()", "anew each time"),
        (
            "SELECT xmax, n FROM whys",
            "SELECT xmax, n FROM whys",
            "xmax, which changes where no row does",
        ),
        (
            "SELECT 'whys'::regclass",
            "SELECT ?::regclass",
            "which is of the catalog",
        ),
        (
            "SELECT n FROM whys_view",
            "SELECT n FROM whys_view",
            "the relation whys_view, which is no table",
        ),
        ("SELECT whys_own()", "SELECT whys_own()", "the function whys_own"),
        (
            "SELECT relname FROM pg_class",
            "SELECT relname FROM pg_class",
            "which is of the catalog",
        ),
        (
            "SELECT n FROM whys FOR UPDATE",
            "SELECT n FROM whys FOR UPDATE",
            "locks what it reads",
        ),
        ("INSERT INTO whys VALUES (1)", "INSERT INTO whys", "changes rows"),
        ("SELECT '{1}'::whys_list", "SELECT ?::whys_list", "the type whys_list"),
        (
            "SELECT '{1}'::_whys_number",
            "SELECT ?::_whys_number",
            "the type _whys_number",
        ),
        (
            "SELECT timestamptz 'no'\n'w', n FROM whys",
            "SELECT timestamptz ? ?",
            "not understood",
        ),
        (
            "SELECT at::time with time zone FROM whys",
            "SELECT at::time",
            "hangs on the time",
        ),
        ("SELECT '10:00'::timetz", "SELECT ?::timetz", "hangs on the time"),
        ("SELECT '{10:00}'::_timetz", "SELECT ?::_timetz", "hangs on the time"),
        (
            "SELECT at AT TIME ZONE 'UTC' FROM whys_times",
            "SELECT at AT TIME ZONE",
            "the relation whys_times, which has times of the day",
        ),
        (
            "SELECT id FROM whys_offsets WHERE at > '10:00'",
            "SELECT id FROM whys_offsets",
            "the relation whys_offsets, which has times of the day",
        ),
        (
            "SELECT '(1,10:00)'::whys_offsets",
            "SELECT ?::whys_offsets",
            "the relation whys_offsets, which has times of the day",
        ),
        ("SELECT '{}'::_whys", "SELECT ?::_whys", "the type _whys"),
    ] {
        for _ in 0..5 {
            client.run(&format!("/* ttl:3600 */ {text}"));
        }
        let (count, told) = remembered(&mut admin, begins);
        assert_eq!(count, 0, "{text}");
        assert!(
            told.as_deref().is_some_and(|told| told.contains(why)),
            "{text}: {told:?}"
        );
    }
    for (text, begins) in [
        ("SELECT '{odd}'::_whys_kind", "SELECT ?::_whys_kind"),
        ("SELECT at FROM whys_times", "SELECT at FROM whys_times"),
        (
            "SELECT at AT TIME ZONE 'UTC' FROM whys",
            "SELECT at AT TIME ZONE ? FROM whys",
        ),
        ("SELECT string_agg(n::text, '\n') FROM whys", "SELECT string_agg"),
    ] {
        until_remembered(&mut client, &mut admin, &format!("/* ttl:3600 */ {text}"), begins);
    }
    // Nor what has a word for the moment in a string, or bound.
    for _ in 0..5 {
        client.run("/* ttl:3600 */ SELECT min(n) FROM whys WHERE at = ANY('{now}')");
        client.pipeline(&[whole(
            "/* ttl:3600 */ SELECT min(n) FROM whys WHERE at = ANY('{now}')",
            &[],
        )]);
    }
    assert_eq!(remembered(&mut admin, "SELECT min(n) FROM whys").0, 0);
    client.pipeline(&[parse(
        "moment",
        "/* ttl:3600 */ SELECT count(*) FROM whys WHERE at < $1",
    )]);
    for _ in 0..5 {
        client.pipeline(&[bind("", "moment", &["NOW"]), execute("", 0)]);
    }
    assert_eq!(remembered(&mut admin, "SELECT count(*) FROM whys").0, 0);
    for _ in 0..5 {
        client.pipeline(&[bind("", "moment", &["2020-01-01"]), execute("", 0)]);
    }
    assert!(remembered(&mut admin, "SELECT count(*) FROM whys").0 > 0);
    for sql in [
        "DROP MATERIALIZED VIEW whys_view",
        "DROP TABLE whys, whys_times, whys_offsets",
        "DROP FUNCTION whys_own",
        "DROP DOMAIN whys_list, whys_number",
        "DROP TYPE whys_kind",
    ] {
        admin.run(sql);
    }
}

#[test]
fn rules_say_what_is_remembered_and_for_whom() {
    let mut reloadable = remembering(
        "[[rule]]\nname = \"never\"\nfunction = \"max\"\ntable = \"ruled_by\"\nfresh = \"0\"\n\
         [[rule]]\nname = \"of the shop\"\napplication = \"shop\"\ntable = \"ruled_by\"\nfresh = \"1h\"\nstale = \"2h\"\n\
         [[rule]]\nname = \"of one\"\nstatement = \"SELECT min(n) FROM ruled_by\"\nfresh = \"1h\"\n",
    );
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    server.run("CREATE TABLE ruled_by (n int)");
    server.run("INSERT INTO ruled_by VALUES (1)");
    let shop = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("application_name", "shop"),
    ];
    let mut shop = Client::connect_with(address, &shop).unwrap();
    let texts = [
        "SELECT n FROM ruled_by",
        "SELECT min(n) FROM ruled_by",
        "SELECT max(n) FROM ruled_by",
    ];
    for _ in 0..5 {
        for text in texts {
            shop.run(text);
            admin.run(text);
        }
    }
    server.run("UPDATE ruled_by SET n = 2");
    let told = |client: &mut Client| texts.map(|text| client.ask(text));
    assert_eq!(told(&mut shop), ["1", "1", "2"]);
    assert_eq!(told(&mut admin), ["2", "1", "2"]);
    // What a statement says itself goes before that.
    assert_eq!(shop.ask("/* ttl:0 */ SELECT n FROM ruled_by"), "2");
    let shown = admin.query("SHOW FOREBAY RULES").expect("shown").rows();
    let shown: Vec<(&str, u64)> = shown
        .iter()
        .map(|row| (row[1].as_deref().unwrap(), row[5].as_deref().unwrap().parse().unwrap()))
        .collect();
    let [(never, 0), (of_the_shop, shops), (of_one, ones)] = shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(never, "statements that call max that name ruled_by are not remembered");
    assert_eq!(
        of_the_shop,
        "statements of the application shop that name ruled_by are remembered for 3600s, and for 7200s while they are asked again"
    );
    assert_eq!(
        of_one,
        "statements like SELECT min(n) FROM ruled_by are remembered for 3600s"
    );
    assert!(shops > 2 && ones > 2, "{shown:?}");
    let status = admin.query("SHOW FOREBAY STATUS").expect("shown").rows();
    let by = status
        .iter()
        .find(|row| row[0].as_deref() == Some("cache_invalidation"));
    assert_eq!(by.and_then(|row| row[1].as_deref()), Some("own"));
    // Without its rules nobody is answered from memory; with them again, what is known is known no more.
    reloadable
        .place("upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\n");
    reloadable.reload(DONE);
    assert_eq!(told(&mut shop), ["2", "2", "2"]);
    server.run("DROP TABLE ruled_by");
}

/// Other memory begins empty, and goes on counting.
#[test]
fn what_is_counted_of_memory_never_falls_and_never_stands_still() {
    let mut reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    admin.run("CREATE TABLE counted_on AS SELECT 1 AS n");
    let read = "/* ttl:3600 */ SELECT n FROM counted_on";
    let fresh = |reloadable: &Reloadable| {
        let page = reloadable.proxy.metrics().unwrap();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("forebay_cache_lookups_total{state=\"fresh\"} "));
        line.unwrap().parse::<u64>().unwrap()
    };
    until_remembered(&mut client, &mut admin, read, "SELECT n FROM counted_on");
    for _ in 0..20 {
        client.run(read);
    }
    let before = fresh(&reloadable);
    assert!(before > 20);
    let upstream = "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n";
    reloadable.place(&format!("{upstream}cache_memory = \"9MiB\"\n"));
    reloadable.reload(DONE);
    let between = fresh(&reloadable);
    assert!(between >= before, "{between} {before}");
    let is_counted_on = |client: &mut Client, reloadable: &Reloadable| {
        // What is known of it already is asked for at most four times.
        let mut asked = 0;
        until("it is counted on", || {
            client.run(read);
            asked += 1;
            fresh(reloadable) > between || asked == 10
        });
        fresh(reloadable) - between
    };
    let counted = is_counted_on(&mut client, &reloadable);
    assert!(counted > 0);
    // That is the same memory.
    reloadable.place(&format!(
        "{upstream}cache_memory = \"9MiB\"\n[[rule]]\nname = \"of_none\"\ntable = \"none\"\nfresh = \"1h\"\n"
    ));
    reloadable.reload(DONE);
    assert!(fresh(&reloadable) >= between + counted);
    assert!(
        (counted..between).contains(&is_counted_on(&mut client, &reloadable)),
        "and not once more"
    );
    admin.run("DROP TABLE counted_on");
}

#[test]
fn many_who_ask_for_what_is_cold_ask_once() {
    const CLIENTS: usize = 40;
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut server) = (at(address), straight(postgres()));
    server.run("CREATE TABLE cold (n int)");
    server.run("INSERT INTO cold VALUES (1)");
    let text = |hint: u64| format!("/* ttl:{hint} */ SELECT n FROM cold");
    until_remembered(&mut at(address), &mut admin, &text(3600), "SELECT n FROM cold");
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| at(address)).collect();
    let asked = |server: &mut Client| {
        let count = "SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables WHERE relname = 'cold'";
        server.ask(count).parse::<u64>().unwrap()
    };
    server.run("BEGIN");
    server.run("LOCK TABLE cold");
    for client in &mut clients {
        client.send(&query(&text(60)));
    }
    let waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'cold'::regclass AND NOT granted";
    until("one waits", || server.ask(waiting) == "1");
    until("all have asked", || {
        let shown = admin.query("SHOW FOREBAY CLIENTS").expect("shown").rows();
        shown.iter().filter(|row| row[5].as_deref() == Some("waiting")).count() == CLIENTS
    });
    assert_eq!(server.ask(waiting), "1", "one asks for all");
    server.run("COMMIT");
    for client in &mut clients {
        assert_eq!(client.answer().value().as_deref(), Some("1"));
    }
    // The server's own count comes late.
    let mut counted = 0;
    until("it is counted", || {
        server.run("SELECT pg_stat_clear_snapshot()");
        let now = asked(&mut server);
        std::mem::replace(&mut counted, now) == now && now > 0
    });
    assert!(counted < 20, "{counted} scans for {CLIENTS} clients");
    server.run("DROP TABLE cold");
}

#[test]
fn errors_are_each_clients_own_and_never_remembered() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE fails (n int)");
    server.run("INSERT INTO fails VALUES (1)");
    let text = "/* ttl:3600 */ SELECT 10 / n FROM fails";
    let fresh = "/* ttl:60 */ SELECT 10 / n FROM fails";
    until_remembered(&mut client, &mut admin, text, "SELECT ? / n FROM fails");
    server.run("UPDATE fails SET n = 0");
    assert_eq!(client.ask(text), "10", "it is remembered");
    for _ in 0..5 {
        assert_eq!(client.query(fresh).sqlstate(), "22012");
        assert_eq!(at(address).query(fresh).sqlstate(), "22012");
    }
    server.run("UPDATE fails SET n = 5");
    assert_eq!(client.ask(fresh), "2");
    server.run("DROP TABLE fails");
}

#[test]
fn what_grows_old_is_asked_again() {
    let reloadable = remembering("invalidate = \"none\"\n");
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    admin.run("CREATE TABLE ages (n int)");
    admin.run("INSERT INTO ages VALUES (1)");
    let text = "/* ttl:1 stale:3600 */ SELECT n FROM ages";
    until_remembered(&mut client, &mut admin, text, "SELECT n FROM ages");
    let begun = Instant::now();
    admin.run("UPDATE ages SET n = 2");
    assert_eq!(client.ask(text), "1", "nothing makes it old but its age");
    until("it is asked again", || client.ask(text) == "2");
    assert!(begun.elapsed() < Duration::from_secs(20));
    admin.run("DROP TABLE ages");
}

/// What the console says of whoever asks it.
pub(crate) fn status_of(client: &mut Client, name: &str) -> Option<String> {
    let shown = client.query("SHOW FOREBAY STATUS").expect("shown");
    let row = shown.rows().into_iter().find(|row| row[0].as_deref() == Some(name));
    row.expect(name)[1].clone()
}

#[test]
fn who_asks_the_console_is_told_where_his_last_answer_came_from() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut client, mut admin, mut server) = (at(address), at(address), straight(postgres()));
    server.run("CREATE TABLE whence (n int)");
    server.run("INSERT INTO whence VALUES (1)");
    let by = |client: &mut Client| status_of(client, "last_answered_by");
    let age = |client: &mut Client| -> Option<u64> {
        let age = status_of(client, "last_answer_age_ms")?;
        Some(age.parse().expect("milliseconds"))
    };
    assert_eq!(
        (by(&mut client), age(&mut client)),
        (None, None),
        "it has asked nothing"
    );
    let primary = Some("primary".to_owned());
    client.run("SELECT 1");
    assert_eq!((by(&mut client), age(&mut client)), (primary.clone(), None));
    let read = "/* ttl:3600 */ SELECT n FROM whence";
    until_remembered(&mut client, &mut admin, read, "SELECT n FROM whence");
    assert_eq!(by(&mut client).as_deref(), Some("cache"));
    assert_eq!(
        by(&mut client).as_deref(),
        Some("cache"),
        "what the console says is none"
    );
    assert_ne!(by(&mut admin).as_deref(), Some("cache"), "each has his own");
    let first = age(&mut client).expect("it has one");
    until("it is older", || {
        client.ask(read);
        age(&mut client).is_some_and(|age| age > first + 20)
    });
    client.run("SELECT n FROM whence");
    assert_eq!((by(&mut client), age(&mut client)), (primary.clone(), None));
    // By the extended protocol, and in company.
    client.pipeline(&[whole(read, &[])]).expect("answered");
    until("it is remembered", || {
        client.pipeline(&[whole(read, &[])]).expect("answered");
        by(&mut client).as_deref() == Some("cache")
    });
    for _ in 0..10 {
        client.run("SELECT n FROM whence /* batch:1 */");
        assert_eq!(by(&mut client), primary);
    }
    let stale = "/* ttl:1 stale:3600 */ SELECT n FROM whence WHERE n > 0";
    until("it is stale", || {
        client.ask(stale);
        by(&mut client).as_deref() == Some("cache (stale)")
    });
    assert!(age(&mut client).is_some_and(|age| age >= 1000));
    client.ask(read);
    client.run("BEGIN");
    client.ask(read);
    client.run("COMMIT");
    assert_eq!(by(&mut client), primary);
    client.ask(read);
    // It keeps its connection from here on.
    client.run("LISTEN whence");
    client.ask(read);
    assert_eq!((by(&mut client), age(&mut client)), (primary, None));
    server.run("DROP TABLE whence");
}

/// Where nobody listens to the database it is not known what memory has seen.
#[test]
fn who_asks_behind_a_position_is_answered_by_the_database() {
    let mut server = straight(postgres());
    server.run("CREATE TABLE positioned (n int)");
    server.run("INSERT INTO positioned VALUES (0)");
    for invalidate in ["own", "none"] {
        let reloadable = remembering(&format!("invalidate = \"{invalidate}\"\n"));
        let address = reloadable.proxy.address();
        let (mut client, mut admin) = (at(address), at(address));
        server.run("UPDATE positioned SET n = 0");
        let read = "/* ttl:3600 */ SELECT n FROM positioned";
        until_remembered(&mut client, &mut admin, read, "SELECT n FROM positioned");
        for round in 1..=5 {
            server.run(&format!("UPDATE positioned SET n = {round}"));
            let position = client.ask("SHOW FOREBAY LSN");
            assert_eq!(
                client.ask(read),
                "0",
                "it is remembered, also when somebody asks where the log is"
            );
            let behind = format!("/* ttl:3600 after:{position} */ SELECT n FROM positioned");
            assert_eq!(client.ask(&behind), round.to_string());
            assert_eq!(
                client.ask(&behind.replace('/', "-").replace("-*", "/*").replace("*-", "*/")),
                "0",
                "no position"
            );
        }
    }
    server.run("DROP TABLE positioned");
}

/// One behind the other, as sessions come and go: what is remembered for those of before is in nobody's way.
#[test]
fn there_is_no_end_to_settings_that_are_remembered_for() {
    let reloadable = remembering("");
    let address = reloadable.proxy.address();
    let (mut admin, mut client) = (at(address), at(address));
    admin.run("CREATE TABLE by_setting (n int)");
    admin.run("INSERT INTO by_setting VALUES (1)");
    let read = "SELECT n FROM by_setting";
    let hinted = format!("/* ttl:3600 */ {read}");
    for tenant in 0..300 {
        client.run(&format!("SET app.tenant = '{tenant}'"));
        until("it is remembered", || {
            client.run(&hinted);
            let row = client.query("SHOW FOREBAY STATUS").expect("shown").rows();
            row.iter()
                .any(|row| row[0].as_deref() == Some("last_answered_by") && row[1].as_deref() == Some("cache"))
        });
    }
}

/// As programs do when they begin: what is set is asked for while the next message comes.
#[test]
fn what_is_prepared_right_behind_a_setting_is_remembered() {
    let reloadable = remembering("");
    let mut admin = at(reloadable.proxy.address());
    admin.run("CREATE TABLE set_first (n int)");
    admin.run("INSERT INTO set_first VALUES (1)");
    for work_mem in 100..120 {
        let mut client = at(reloadable.proxy.address());
        client.run(&format!("SET work_mem = {work_mem}"));
        let sql = "SELECT n + $1::int /* ttl:3600 */ FROM set_first";
        client.pipeline(&[parse("one", sql)]).expect("prepared");
        until("it is remembered", || {
            let run = client.pipeline(&[bind("", "one", &["1"]), execute("", 0)]);
            assert_eq!(run.value().as_deref(), Some("2"));
            status_of(&mut client, "last_answered_by").as_deref() == Some("cache")
        });
    }
    admin.run("DROP TABLE set_first");
}

/// In company first, and then no second time.
#[test]
fn who_asks_what_nobody_knows_waits_for_a_connection_as_long_as_all_do() {
    let reloadable = remembering("max_server_connections = 1\nserver_wait_timeout = \"500ms\"\n");
    let address = reloadable.proxy.address();
    let (mut holder, mut client) = (at(address), at(address));
    client.run("CREATE TABLE waited_for (n int)");
    let ask = |n: usize| format!("/* ttl:3600 */ SELECT count(*) FROM waited_for WHERE n > {n}");
    let mut asked = 0;
    until("it is asked for memory", || {
        asked += 1;
        client.run(&ask(asked % 2));
        status_of(&mut client, "last_answered_by").as_deref() == Some("cache")
    });
    holder.run("BEGIN");
    holder.run("SELECT 1");
    let begun = Instant::now();
    client.send(&query(&ask(1_000)));
    let said = client.last_words();
    let waited = begun.elapsed();
    assert!(!said.is_empty(), "it is told so");
    let most = Duration::from_millis(950);
    assert!(waited >= Duration::from_millis(500) && waited < most, "{waited:?}");
    holder.run("COMMIT");
    holder.run("DROP TABLE waited_for");
}
