//! What a prepared text has for parameters and columns: those that it had where its client prepared it, whatever others have prepared before, and whatever was
//! altered past the proxy. Sessions through the proxy, of few connections, each beside one straight at the server that is asked the very same.

use std::net::SocketAddr;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::client::{Client, bind, close, describe, execute, parse, query, sync};
use crate::crowd::until;
use crate::memory::remembering;
use crate::reload::Reloadable;
use crate::twins::{Asking, INSIDE_MAX, Twins, in_turns};
use crate::{at, postgres, proxy, straight};

/// Of tables that are called alike in other schemas.
const TEXTS: &[&str] = &[
    "SELECT * FROM SCHEMA_t WHERE id = $1",
    "SELECT n FROM SCHEMA_t WHERE id = $1",
    "SELECT id, 7 AS seven FROM SCHEMA_t WHERE id > $1 ORDER BY id",
    "UPDATE SCHEMA_t SET n = n WHERE id = $1 AND false RETURNING *",
    "UPDATE SCHEMA_t SET n = n WHERE id = $1 AND false",
    "EXPLAIN (COSTS OFF) SELECT n FROM SCHEMA_t WHERE id = $1",
];
const NAMES: &[&str] = &["a", "b", "c", "d"];

/// What a session asks up to a Sync, or as a query.
fn group(random: &mut StdRng, asking: Asking, schema: &str, hint: &str) -> Vec<Vec<u8>> {
    let one = |random: &mut StdRng, of: &[&'static str]| *of.choose(random).unwrap();
    let [name, other] = [(); 2].map(|()| one(random, NAMES));
    let text = format!("{hint}{}", one(random, TEXTS).replace("SCHEMA", schema));
    let at = one(random, &["one", "two", "three"]);
    let sets = match random.random_range(0..3) {
        0 => format!("SET search_path = {schema}_{at}"),
        1 => format!("SELECT set_config('search_path', '{schema}_{at}', true)"),
        _ => format!("SET LOCAL search_path = {schema}_{at}"),
    };
    let ends = match asking.is_inside {
        true => one(
            random,
            &[
                "COMMIT",
                "ROLLBACK",
                "COMMIT",
                "ROLLBACK",
                "SAVEPOINT s",
                "ROLLBACK TO s",
            ],
        ),
        false if asking.may_begin => "BEGIN",
        false => "SELECT 1",
    };
    let as_group = |sql: &str| vec![parse("", sql), bind("", "", &[]), execute("", 0)];
    let anew = || vec![close(b'S', name), parse(name, &text)];
    let run = |random: &mut StdRng| {
        let of_statement = random.random_bool(0.2).then(|| describe(b'S', name));
        let of_portal = random.random_bool(0.4).then(|| describe(b'P', ""));
        let bound = of_statement.into_iter().chain([bind("", name, &["1"])]);
        bound.chain(of_portal).chain([execute("", 0)]).collect::<Vec<_>>()
    };
    let messages: Vec<Vec<u8>> = match random.random_range(0..18) {
        0 => return vec![query(&sets)],
        1 => as_group(&sets),
        2 | 3 => return vec![query(ends)],
        4 => as_group(ends),
        5 => anew(),
        6 => [anew(), vec![describe(b'S', name)]].concat(),
        7 => [anew(), run(random)].concat(),
        8 => [anew(), vec![sync()], run(random)].concat(),
        9 => [vec![query(&sets)], anew(), run(random)].concat(),
        10 => {
            let both = [anew(), vec![close(b'S', other), parse(other, &text)]].concat();
            let of_other = vec![describe(b'S', other), bind("", other, &["1"]), execute("", 0)];
            [both, run(random), of_other].concat()
        }
        11 => {
            let unnamed = vec![
                parse("", &text),
                bind("", "", &["1"]),
                describe(b'P', ""),
                execute("", 0),
            ];
            [anew(), unnamed, run(random)].concat()
        }
        12 => vec![describe(b'S', name); random.random_range(1..3)],
        13 => [anew(), as_group("SELECT 1 / 0")].concat(),
        14 => [anew(), run(random), as_group("SELECT 1 / 0")].concat(),
        // What is executed by `EXECUTE` is prepared anew for that, and has the columns of now, which its answer begins with.
        15 => return vec![query(&format!("DEALLOCATE {name}"))],
        _ => run(random),
    };
    messages.into_iter().chain([sync()]).collect()
}

/// What alters a table.
fn alters(random: &mut StdRng, schema: &str) -> String {
    let at = *["one", "two", "three"].choose(random).unwrap();
    let what = *[
        "DROP COLUMN IF EXISTS more",
        "ADD COLUMN IF NOT EXISTS more int",
        "ALTER id TYPE bigint",
        "ALTER id TYPE int",
        "ALTER n TYPE text",
    ]
    .choose(random)
    .unwrap();
    format!("ALTER TABLE {schema}_{at}.{schema}_t {what}")
}

/// Whether tables are altered meanwhile, and what is asked is hinted so.
fn everyone_has_what_he_prepared(address: SocketAddr, schema: &str, is_altered: bool, hint: &str) {
    let mut server = straight(postgres());
    for (at, columns, values) in [
        ("one", "id int, n int", "1, 10"),
        ("two", "id bigint, n text, more int", "1, 'twenty', 2"),
        ("three", "n int, id int", "30, 1"),
    ] {
        server.run(&format!(
            "DROP SCHEMA IF EXISTS {schema}_{at} CASCADE; CREATE SCHEMA {schema}_{at}; \
             CREATE TABLE {schema}_{at}.{schema}_t ({columns}); INSERT INTO {schema}_{at}.{schema}_t VALUES ({values})"
        ));
    }
    let make = |_, _: &mut StdRng| {
        let mut twins = Twins::new(address, "postgres");
        twins.ask(&[query(&format!("SET search_path = {schema}_one"))], "it begins");
        twins
    };
    in_turns("PREPARING", make, 3.0, |random, asking| {
        if is_altered && asking.is_nobody_inside && random.random_bool(0.1) {
            let sql = alters(random, schema);
            server.run(&sql);
        }
        let groups = random.random_range(1..4).min(random.random_range(1..4));
        let mut group = || group(random, asking, schema, hint);
        let messages: Vec<_> = (0..groups).flat_map(|_| group()).collect();
        let words = messages.concat().escape_ascii().to_string();
        (messages, words)
    });
}

#[test]
fn a_text_has_the_columns_that_it_had_where_its_client_prepared_it() {
    let connections = (INSIDE_MAX + 1).to_string();
    let proxy = proxy(postgres(), &["--max-server-connections", &connections]);
    everyone_has_what_he_prepared(proxy.address(), "preparing", false, "");
}

#[test]
fn a_text_has_them_whatever_is_altered_past_the_proxy() {
    let connections = (INSIDE_MAX + 1).to_string();
    let proxy = proxy(postgres(), &["--max-server-connections", &connections]);
    everyone_has_what_he_prepared(proxy.address(), "preparing_altered", true, "");
}

#[test]
fn what_is_remembered_has_them_too() {
    let reloadable = remembering("invalidate = \"none\"\n");
    everyone_has_what_he_prepared(
        reloadable.proxy.address(),
        "preparing_remembered",
        false,
        "/* ttl:3600 */ ",
    );
}

/// Who goes behind what he has prepared leaves nothing behind.
#[test]
fn who_prepares_and_goes_gives_the_connection_back() {
    let reloadable = Reloadable::start(
        "upstream = \"postgresql://SERVER/postgres\"\nmax_server_connections = 1\nadmin_users = [\"postgres\"]\n",
        &[],
    );
    let address = reloadable.proxy.address();
    let terminate = b"X\0\0\0\x04";
    let has_been_taken = |admin: &mut Client| {
        let clients = admin.query("SHOW FOREBAY CLIENTS").expect("shown").rows();
        clients.iter().any(|row| row[5].as_deref() == Some("active"))
    };
    for _ in 0..3 {
        let [mut client, mut admin] = [(); 2].map(|()| at(address));
        client.send(&parse("a", "SELECT 1 AS one"));
        until("it has the connection", || has_been_taken(&mut admin));
        client.send(terminate);
        assert_eq!(at(address).ask("SELECT 7"), "7");
    }
    // What is no command there is told to be none.
    let (mut client, mut admin) = (at(address), at(address));
    client.send(&parse("a", "SELECT 1 AS one"));
    until("it has the connection", || has_been_taken(&mut admin));
    client.send(&query("SHOW FOREBAY STATUS"));
    assert_eq!(client.answer().sqlstate(), "42601");
}

/// Its description does not come in one piece.
#[test]
fn what_has_more_columns_than_come_at_once_is_as_it_was_on_every_connection() {
    let proxy = proxy(postgres(), &["--max-server-connections", "4"]);
    let columns: Vec<_> = (0..1600).map(|number| format!("c{number:x<60} int")).collect();
    let mut server = straight(postgres());
    server.run(&format!("CREATE TABLE preparing_wide ({})", columns.join(", ")));
    server.run("INSERT INTO preparing_wide DEFAULT VALUES");
    for described in [false, true] {
        for round in 0..10 {
            let mut client = at(proxy.address());
            let text = format!("SELECT * FROM preparing_wide /* {described} {round} */");
            let looks = described.then(|| describe(b'S', "wide"));
            let prepared: Vec<_> = [parse("wide", &text)].into_iter().chain(looks).collect();
            client.pipeline(&prepared).expect("prepared");
            let mut holders = [(); 3].map(|()| at(proxy.address()));
            for holder in &mut holders {
                let answer = client.pipeline(&[bind("", "wide", &[]), execute("", 0)]);
                assert_eq!(answer.expect("a row").rows()[0].len(), 1600);
                holder.run("BEGIN");
            }
        }
    }
    server.run("DROP TABLE preparing_wide");
}
