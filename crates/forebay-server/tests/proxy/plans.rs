//! By what settings a text is planned that a server connection keeps: by its client's own, in the bodies of functions too. Sessions that each have set something of
//! their own, through the proxy on few connections, each beside one straight at the server that is asked the very same.

use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::client::{Client, bind, close, describe, execute, message, parse, query, sync};
use crate::crowd::until;
use crate::memory::{remembering, until_remembered};
use crate::twins::{Asking, INSIDE_MAX, Twins, in_turns};
use crate::{postgres, proxy, straight};

/// What is folded by PostgreSQL's own functions.
const FOLDED: &[&str] = &[
    "SELECT 0.123456789012345::float8::text, $1::int",
    "SELECT decode('4142', 'hex')::text, $1::int",
    "SELECT quote_ident('abc') WHERE $1 > 0",
    "SELECT x FROM plans_view WHERE $1 > 0",
    "SELECT make_interval(days => -1, hours => 2)::text, $1::int",
];
/// What hangs on bodies of functions.
const CALLED: &[&str] = &[
    "SELECT day(), $1::int",
    "SELECT moment() AT TIME ZONE 'UTC', $1::int",
    "SELECT bytes(), $1::int",
    "SELECT inlined(), $1::int",
    "INSERT INTO plans_table VALUES ($1) RETURNING made",
];
/// What hangs on whatever is set.
const SET: &[&str] = &["SELECT tenant(), $1::int", "SELECT of_tenant(), $1::int"];

const FUNCTIONS: &str = "\
CREATE FUNCTION day() RETURNS date LANGUAGE plpgsql AS $$BEGIN RETURN '01/02/2024'::date; END$$; \
CREATE FUNCTION moment() RETURNS timestamptz LANGUAGE plpgsql AS $$BEGIN RETURN '2024-01-01 00:00'::timestamptz; END$$; \
CREATE FUNCTION bytes() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN decode('4142', 'hex')::text; END$$; \
CREATE FUNCTION inlined() RETURNS date LANGUAGE sql STABLE AS $$SELECT '01/02/2024'::date$$; \
CREATE FUNCTION make() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.made = '03/04/2024'::date; RETURN NEW; END$$; \
CREATE TABLE plans_table (n int, made date); \
CREATE TRIGGER make BEFORE INSERT ON plans_table FOR EACH ROW EXECUTE FUNCTION make();";
const IMMUTABLE_BY_WORD: &str = "\
CREATE FUNCTION tenant() RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT nullif(current_setting('app.tenant', true), '')$$; \
CREATE FUNCTION asked() RETURNS text LANGUAGE plpgsql STABLE AS $$BEGIN RETURN nullif(current_setting('app.tenant', true), ''); END$$; \
CREATE FUNCTION of_tenant() RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN asked(); END$$;";

/// What a session may have of its own, by the settings' names.
const OWN: &[(&str, &[&str])] = &[
    ("DateStyle", &["ISO, MDY", "ISO, DMY"]),
    ("TimeZone", &["UTC", "Asia/Tokyo"]),
    ("IntervalStyle", &["postgres", "iso_8601"]),
    ("bytea_output", &["hex", "escape"]),
    ("extra_float_digits", &["1", "-10"]),
    ("quote_all_identifiers", &["off", "on"]),
    ("app.tenant", &["a", "b", "c"]),
];
const NAMES: &[&str] = &["", "a", "b"];

/// What a session asks: each has set its own for good, or sets it in each of its transactions, by what it has put aside, or has nothing of its own.
fn something(random: &mut StdRng, asking: Asking, texts: &[&str], hint: &str) -> (Vec<Vec<u8>>, String) {
    let text = format!("{hint}{}", texts.choose(random).unwrap());
    let name = *NAMES.choose(random).unwrap();
    let as_group = |sql: &str| vec![parse("", sql), bind("", "", &[]), execute("", 0)];
    let is_local = asking.number % 3 == 1;
    if is_local && !asking.is_inside {
        // It plans nothing outside.
        let sets: Vec<String> = OWN
            .iter()
            .map(|(name, _)| {
                format!(
                    "set_config('{name}', current_setting('own.{}'), true)",
                    name.replace('.', "_")
                )
            })
            .collect();
        let sets = format!("SELECT {}", sets.join(", "));
        let messages = match asking.may_begin {
            false => vec![close(b'S', name), parse(name, &text), sync()],
            true if random.random_bool(0.5) => vec![query(&format!("BEGIN; {sets}"))],
            true => [as_group("BEGIN"), as_group(&sets), vec![sync()]].concat(),
        };
        return (messages, format!("{name:?} {text:?} {sets}"));
    }
    let run = |random: &mut StdRng, name: &str| {
        let described = random.random_bool(0.3).then(|| describe(b'S', name));
        let run = [bind("", name, &["1"]), execute("", 0), sync()];
        described.into_iter().chain(run).collect::<Vec<_>>()
    };
    let prepared = vec![close(b'S', name), parse(name, &text)];
    let messages = match random.random_range(0..10) {
        0 if asking.is_inside => vec![query("COMMIT")],
        1 if asking.is_inside => vec![query("ROLLBACK")],
        2 if asking.is_inside => [as_group("COMMIT"), vec![sync()]].concat(),
        3 if !asking.is_inside && asking.may_begin => vec![query("BEGIN")],
        4 => vec![query(&text.replace("$1", "1"))],
        5..=7 => [prepared, run(random, name)].concat(),
        _ => run(random, name),
    };
    (messages, format!("{name:?} {text:?}"))
}

fn everyone_plans_by_his_own(database: &str, has: &str, texts: &[&[&str]], hint: &str) {
    let at = |database| {
        let who = [("user", "postgres"), ("database", database)];
        Client::connect_with(postgres().address(), &who).unwrap()
    };
    at("postgres").run(&format!("CREATE DATABASE {database}"));
    at(database).run(&format!(
        "CREATE VIEW plans_view AS SELECT decode('4142', 'hex')::text AS x; {has}"
    ));
    let connections = (INSIDE_MAX + 1).to_string();
    let lines = format!("invalidate = \"none\"\nmax_server_connections = {connections}\n");
    let reloadable = (!hint.is_empty()).then(|| remembering(&lines));
    let plain = reloadable
        .is_none()
        .then(|| proxy(postgres(), &["--max-server-connections", &connections]));
    let address = plain
        .as_ref()
        .or(reloadable.as_ref().map(|reloadable| &reloadable.proxy))
        .unwrap()
        .address();
    let texts = texts.concat();
    let make = |number: usize, random: &mut StdRng| {
        let mut twins = Twins::new(address, database);
        let sets = OWN.iter().map(|(name, values)| {
            let value = values.choose(random).unwrap();
            match number % 3 {
                0 => format!("SET {name} = '{value}'"),
                1 => format!("SET own.{} = '{value}'", name.replace('.', "_")),
                _ => String::new(),
            }
        });
        twins.ask(&[query(&sets.collect::<Vec<_>>().join("; "))], "it begins");
        twins
    };
    in_turns("PLANS", make, 1.0, |random, asking| {
        something(random, asking, &texts, hint)
    });
}

#[test]
fn what_is_folded_is_folded_by_ones_own() {
    everyone_plans_by_his_own("plans_folded", "", &[FOLDED], "");
}

#[test]
fn what_functions_have_in_their_bodies_is_read_by_ones_own() {
    everyone_plans_by_his_own("plans_called", FUNCTIONS, &[FOLDED, CALLED], "");
}

#[test]
fn what_is_immutable_by_its_word_alone_is_ones_own() {
    let all = [FUNCTIONS, IMMUTABLE_BY_WORD].concat();
    everyone_plans_by_his_own("plans_set", &all, &[FOLDED, CALLED, SET], "");
}

#[test]
fn what_is_remembered_was_planned_by_ones_own() {
    everyone_plans_by_his_own("plans_remembered", FUNCTIONS, &[FOLDED, CALLED], "/* ttl:3600 */ ");
}

/// Where nothing of the user's but a function is there that is declared immutable and hangs on the time zone.
#[test]
fn what_is_declared_immutable_is_computed_by_ones_own() {
    let functions = "\
        CREATE FUNCTION day_of(timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$SELECT $1::date$$; \
        CREATE FUNCTION that_day() RETURNS date LANGUAGE plpgsql AS $$BEGIN RETURN day_of(to_timestamp(1704125000)); END$$";
    let texts = &[
        "SELECT that_day(), $1::int",
        "SELECT day_of(to_timestamp(1704125000)), $1::int",
    ];
    everyone_plans_by_his_own("plans_immutable", functions, &[texts], "");
}

/// What is asked for memory, on a connection that nobody has, is planned by whose answer it is, too.
#[test]
fn what_is_asked_for_memory_is_planned_by_whose_answer_it_is() {
    const NAME: &str = "plans_filled";
    straight(postgres()).run(&format!("CREATE DATABASE {NAME}"));
    let at = |address| Client::connect_with(address, &[("user", "postgres"), ("database", NAME)]).unwrap();
    at(postgres().address()).run(
        "CREATE FUNCTION day_of(n int) RETURNS date STABLE LANGUAGE plpgsql AS $$BEGIN RETURN '01/02/2024'::date + n; END$$; \
         CREATE TABLE days (n int PRIMARY KEY); INSERT INTO days SELECT generate_series(1, 40)",
    );
    let rule = "[[rule]]\nname = \"days\"\nfunction = \"day_of\"\nstable_functions = true\ndepends_on = [\"days\"]\nfresh = \"1h\"\n";
    let reloadable = remembering(&format!("invalidate = \"none\"\nmax_server_connections = 1\n{rule}"));
    let address = reloadable.proxy.address();
    let mut admin = at(address);
    let mut clients = ["ISO, MDY", "ISO, DMY"].map(|style| {
        let mut client = at(address);
        client.run(&format!("SET DateStyle = '{style}'"));
        client
    });
    let read = |n: usize| format!("SELECT n, day_of(0) FROM days WHERE n = {n}");
    for client in &mut clients {
        until_remembered(client, &mut admin, &read(1), "SELECT n, day_of");
    }
    for n in 2..=40 {
        let [months_first, days_first] = [0, 1].map(|at| clients[at].run(&read(n)).rows()[0][1].clone().unwrap());
        assert_eq!((&*months_first, &*days_first), ("2024-01-02", "2024-02-01"), "{n}");
    }
}

/// What is prepared by SQL, or has no name, is read once, as straight.
#[test]
fn what_was_read_stays_as_it_was_read() {
    let proxy = proxy(postgres(), &["--max-server-connections", "2"]);
    const DAY: &str = "SELECT '01/02/2024'::date, $1::int";
    let mut twins = Twins::new(proxy.address(), "postgres");
    let mut ask = |messages: &[Vec<u8>]| drop(twins.ask(messages, &messages.concat().escape_ascii().to_string()));
    let runs = || vec![bind("", "", &["1"]), execute("", 0), sync()];
    for sets in [
        "SET LOCAL bytea_output = 'escape'",
        "SET LOCAL IntervalStyle = 'iso_8601'",
    ] {
        ask(&[query("BEGIN")]);
        ask(&[query(&format!("PREPARE by_sql AS {DAY}"))]);
        ask(&[query("SET LOCAL DateStyle = 'ISO, DMY'")]);
        ask(&[query(sets)]);
        ask(&[query("EXECUTE by_sql (1)")]);
        ask(&[query("ROLLBACK")]);
        ask(&[query("EXECUTE by_sql (1)")]);
        ask(&[query("SET DateStyle = 'ISO, DMY'")]);
        ask(&[query(sets)]);
        ask(&[query("EXECUTE by_sql (1)")]);
        ask(&[query("DISCARD ALL")]);
        ask(&[query("BEGIN")]);
        ask(&[vec![parse("", DAY)], runs()].concat());
        ask(&[vec![
            parse("by_name", sets),
            bind("", "by_name", &[]),
            execute("", 0),
            sync(),
        ]]
        .concat());
        ask(&[
            vec![parse("by_name_too", "SET LOCAL DateStyle = 'ISO, DMY'")],
            vec![bind("", "by_name_too", &[]), execute("", 0), sync()],
        ]
        .concat());
        ask(&runs());
        ask(&[query("ROLLBACK")]);
        ask(&[close(b'S', "by_name"), close(b'S', "by_name_too"), sync()]);
    }
}

/// What is asked beside a client behind a SET is not asked in a transaction that fails meanwhile.
#[test]
fn who_asks_on_behind_an_error_is_answered() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut twins = Twins::new(proxy.address(), "postgres");
    let mut ask = |messages: &[Vec<u8>]| drop(twins.ask(messages, &messages.concat().escape_ascii().to_string()));
    ask(&[parse("day", "SELECT '01/02/2024'::date"), sync()]);
    let runs = || vec![bind("", "day", &[]), execute("", 0), sync()];
    for sets in ["SET LOCAL bytea_output = 'escape'", "SET LOCAL DateStyle = 'ISO, DMY'"] {
        for fails in [
            vec![parse("", "SELECT nope"), sync()],
            vec![query("SELECT 1/0")],
            vec![describe(b'S', "nope"), sync()],
        ] {
            for next in [
                vec![query("SELECT 1")],
                vec![query("EXECUTE day")],
                vec![query("ROLLBACK; SELECT 1")],
                runs(),
            ] {
                ask(&[query("BEGIN")]);
                ask(&[query(sets)]);
                ask(&[fails.clone(), next].concat());
                ask(&[query("ROLLBACK")]);
            }
        }
    }
}

/// Where a group fails, what was to discard plans of before is passed over with it, and asked again for what stands behind its Sync.
#[test]
fn who_asks_on_behind_a_failed_group_is_planned_by_his_own() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let runs = || vec![bind("", "a", &[]), execute("", 0), sync()];
    let prepared = || {
        vec![
            parse("a", "SELECT decode('4142', 'hex')::text, 0.1::float8::text"),
            sync(),
        ]
    };
    for sets in ["SET bytea_output = 'escape'", "SET extra_float_digits = -14"] {
        for fails in [
            execute("nope", 0),
            describe(b'P', "nope"),
            bind("", "nope", &[]),
            query("SELECT 1/0"),
        ] {
            let [mut before, mut now] = [(); 2].map(|()| Twins::new(proxy.address(), "postgres"));
            let said = |messages: &[Vec<u8>]| messages.concat().escape_ascii().to_string();
            let ask = |twins: &mut Twins, messages: Vec<Vec<u8>>| drop(twins.ask(&messages, &said(&messages)));
            // Plans that another one has left, on the one connection that there is.
            ask(&mut now, prepared());
            ask(&mut before, [prepared(), runs()].concat());
            ask(&mut now, [vec![query(sets), fails], runs(), runs(), runs()].concat());
            ask(&mut before, runs());
        }
    }
}

/// A query may stand behind messages that no Sync ends: what is asked beside it is answered all the same.
#[test]
fn who_asks_on_without_a_sync_is_answered() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let mut twins = Twins::new(proxy.address(), "postgres");
    let mut ask = |messages: &[Vec<u8>]| drop(twins.ask(messages, &messages.concat().escape_ascii().to_string()));
    let extended = |text: &str| vec![parse("", text), bind("", "", &[]), execute("", 0)];
    let pi = || vec![message(b'F', &[&1610_u32.to_be_bytes()[..], &[0; 6]].concat())];
    for sets in [
        "SET bytea_output = 'escape'",
        "SET DateStyle = 'ISO, DMY'",
        "DISCARD PLANS",
    ] {
        for between in [vec![], extended("SELECT 1"), vec![parse("a", "SELECT 7")]] {
            for next in [vec![query("SELECT 5")], pi(), vec![query("VACUUM"), query("SELECT 5")]] {
                ask(&[extended(sets), between.clone(), next, vec![sync()]].concat());
                ask(&[query("DEALLOCATE ALL")]);
            }
        }
    }
}

/// Rows are shown by rights that a new session has, as straight: those that were taken away past the proxy are gone a second later.
#[test]
fn rows_are_shown_by_the_rights_of_now() {
    const NAME: &str = "plans_rights";
    straight(postgres()).run(&format!("CREATE DATABASE {NAME}"));
    let at = |address, user| Client::connect_with(address, &[("user", user), ("database", NAME)]).unwrap();
    let mut server = at(postgres().address(), "postgres");
    server.run(
        "CREATE ROLE plans_sees_less LOGIN; CREATE ROLE plans_sees_all; \
         CREATE TABLE seen (id int PRIMARY KEY); INSERT INTO seen VALUES (1), (2); GRANT SELECT ON seen TO public; \
         ALTER TABLE seen ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON seen USING (id = 1); \
         CREATE POLICY all_of_them ON seen TO plans_sees_all USING (true)",
    );
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let ask = |client: &mut Client| {
        let messages = [
            parse("a", "SELECT count(*) FROM seen WHERE id > $1"),
            bind("", "a", &["0"]),
            execute("", 0),
        ];
        client.pipeline(&messages).expect("it may be read").value().unwrap()
    };
    let seen = || ask(&mut at(proxy.address(), "plans_sees_less"));
    for (gives, takes) in [
        (
            "ALTER ROLE plans_sees_less BYPASSRLS",
            "ALTER ROLE plans_sees_less NOBYPASSRLS",
        ),
        (
            "ALTER ROLE plans_sees_less SUPERUSER",
            "ALTER ROLE plans_sees_less NOSUPERUSER",
        ),
        (
            "GRANT plans_sees_all TO plans_sees_less",
            "REVOKE plans_sees_all FROM plans_sees_less",
        ),
    ] {
        server.run(gives);
        // What is given and taken between two looks at roles is as if it had not been.
        let begun = Instant::now();
        until(gives, || seen() == "2" && begun.elapsed() > Duration::from_millis(1100));
        // Whoever has it prepared still keeps it there.
        let mut before = at(proxy.address(), "plans_sees_less");
        ask(&mut before);
        server.run(takes);
        let begun = Instant::now();
        until(takes, || seen() == "1");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
