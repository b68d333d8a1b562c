//! What is remembered of one row by its key: made old by what changes that row, however both are written, and by nothing that changes others.
//!
//! For longer, and again: `FOREBAY_BY_ROW_ROUNDS`, `FOREBAY_BY_ROW_SEED`.

use std::sync::OnceLock;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::Postgres;

use crate::client::{Client, bind_raw, describe, execute, parse_typed};
use crate::crowd::until;
use crate::stream::{Stage, started};

/// What is asked: a text, and the type, format and bytes of its parameter, if it has one.
#[derive(Debug, Clone)]
struct Asked {
    text: String,
    bound: Option<(u32, bool, Vec<u8>)>,
}

impl Asked {
    fn send(&self, client: &mut Client) -> (Vec<Vec<Option<String>>>, bool) {
        let answer = match &self.bound {
            None => client.query(&self.text),
            Some((of, is_binary, value)) => client.pipeline(&[
                parse_typed("", &self.text, &[*of]),
                bind_raw("", "", &[u16::from(*is_binary)], &[Some(value)], &[]),
                describe(b'P', ""),
                execute("", 0),
            ]),
        };
        (answer.rows(), answer.error().is_some())
    }
}

/// A table, the type of its key, and values of it.
struct Kind {
    name: &'static str,
    columns: &'static str,
    /// How each value may be written, the first way as a text is stored; the types of parameters that it may be given as.
    values: &'static [&'static [&'static str]],
    types: &'static [u32],
    /// The binary form of a value for parameters of this length, if it has any.
    binary: &'static [(u32, usize)],
    /// Whether an answer by key is told by row.
    is_by_row: bool,
}

const NUMBERS: &[&[&str]] = &[
    &[
        "1",
        "'1'",
        "01",
        "' 1'",
        "1.0",
        "1::int8",
        "1::int2",
        "CAST('1' AS numeric)",
    ],
    &["2", "'2'", "'+2'", "2e0"],
    &["-3", "'-3'", "(-3)"],
];
const INTEGERS: &[u32] = &[0, 21, 23, 20, 1700, 701];
const BINARY: &[(u32, usize)] = &[(21, 2), (23, 4), (20, 8), (0, 4), (701, 8)];

/// A table with a key of numbers, and what else it has.
const fn of_numbers(name: &'static str, columns: &'static str, is_by_row: bool) -> Kind {
    Kind {
        name,
        columns,
        values: NUMBERS,
        types: INTEGERS,
        binary: BINARY,
        is_by_row,
    }
}

const KINDS: &[Kind] = &[
    of_numbers("k_int2", "id int2 PRIMARY KEY", true),
    of_numbers("k_int4", "id int4 PRIMARY KEY", true),
    Kind {
        name: "k_int8",
        columns: "id int8 PRIMARY KEY",
        values: NUMBERS,
        types: INTEGERS,
        binary: &[(20, 8), (0, 8), (23, 4), (701, 8)],
        is_by_row: true,
    },
    Kind {
        name: "k_text",
        columns: "id text PRIMARY KEY",
        values: &[
            &[
                "'a'",
                "'a'::text",
                "$$a$$",
                "E'a'",
                "'a'::varchar",
                "'a'::bpchar",
                "CAST('a ' AS char(2))",
            ],
            &["'A'"],
            &["'a '", "'a '::text"],
            &["'é'", "U&'\\00e9'"],
            &["'it''s'"],
            &["''"],
        ],
        types: &[0, 25, 1043, 1042],
        binary: &[],
        is_by_row: true,
    },
    Kind {
        name: "k_varchar",
        columns: "id varchar(3) PRIMARY KEY",
        values: &[
            &["'a'", "'a'::text"],
            &["'abc'", "'abc'::varchar", "'abc  '"],
            &["'abd'"],
        ],
        types: &[0, 25, 1043, 1042],
        binary: &[],
        is_by_row: true,
    },
    Kind {
        name: "k_uuid",
        columns: "id uuid PRIMARY KEY",
        values: &[
            &[
                "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
                "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
                "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'",
                "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            ],
            &["'00000000-0000-0000-0000-000000000001'"],
        ],
        types: &[0, 2950],
        binary: &[],
        is_by_row: true,
    },
    of_numbers("k_whole", "id int PRIMARY KEY", true),
    of_numbers(
        "k_index",
        "other int PRIMARY KEY DEFAULT (random() * 1e9)::int, id int NOT NULL UNIQUE",
        true,
    ),
    of_numbers(
        "k_not_it",
        "other int PRIMARY KEY DEFAULT (random() * 1e9)::int, id int NOT NULL UNIQUE",
        false,
    ),
    Kind {
        name: "k_bpchar",
        columns: "id char(4) PRIMARY KEY",
        values: &[&["'a'", "'a '", "'a'::text"], &["'b'"]],
        types: &[0, 25, 1042],
        binary: &[],
        is_by_row: false,
    },
    of_numbers("k_numeric", "id numeric PRIMARY KEY", false),
    Kind {
        name: "k_folded",
        columns: "id text COLLATE folded PRIMARY KEY",
        values: &[&["'a'", "'A'"], &["'b'", "'B'"]],
        types: &[0, 25],
        binary: &[],
        is_by_row: false,
    },
    of_numbers("k_heirs", "id int PRIMARY KEY", false),
    of_numbers("k_twice", "id int PRIMARY KEY", false),
    of_numbers("k_parts", "id int PRIMARY KEY", false),
];

/// How a parameter's value is given as a text, of one that is written so; none of what is no literal by itself.
fn text_of(written: &str) -> Option<String> {
    let text = written
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(written);
    (!text.contains("::") && !text.contains(['(', '$', '\\'])).then(|| text.replace("''", "'"))
}

fn binary_of(number: i64, of: u32, length: usize) -> Vec<u8> {
    match (of, length) {
        (701, _) => (number as f64).to_be_bytes().to_vec(),
        (_, length) => number.to_be_bytes()[8 - length..].to_vec(),
    }
}

/// A database of a server that nobody changes the catalog of beside.
fn stage(name: &'static str, lines: &str) -> Stage {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    Stage::at(SERVER.get_or_init(|| started(&[])), name, lines)
}

/// How often the catalog was another one, from when all is seen that this session has changed in it: from then on it is not it that makes answers old.
fn settled(stage: &Stage, server: &mut Client) -> String {
    server.run("SELECT pg_stat_force_next_flush()");
    let looks = || stage.status("stream_catalog_looks").parse::<u64>().unwrap();
    let before = looks();
    until("it is looked at", || looks() > before + 1);
    stage.status("stream_catalog_changes")
}

fn one<'a, T>(random: &mut StdRng, all: &'a [T]) -> &'a T {
    &all[random.random_range(0..all.len())]
}

impl Kind {
    fn make(&self, server: &mut Client) {
        let after = match self.name {
            "k_parts" => " PARTITION BY LIST (id)",
            _ => "",
        };
        server.run(&format!(
            "CREATE TABLE {} ({}, n int NOT NULL){after}",
            self.name, self.columns
        ));
        for sql in match self.name {
            "k_whole" => &["ALTER TABLE k_whole REPLICA IDENTITY FULL"][..],
            "k_index" => &["ALTER TABLE k_index REPLICA IDENTITY USING INDEX k_index_id_key"],
            "k_parts" => &["CREATE TABLE k_part PARTITION OF k_parts DEFAULT"],
            "k_heirs" => &[
                "CREATE TABLE k_heir (id int, n int, PRIMARY KEY (n, id)) INHERITS (k_heirs)",
                "INSERT INTO k_heir VALUES (1, 5), (-3, 5)",
            ],
            "k_twice" => &["CREATE SCHEMA twice", "CREATE TABLE twice.k_twice (id int PRIMARY KEY)"],
            _ => &[],
        } {
            server.run(sql);
        }
        for value in self.values {
            server.run(&format!("INSERT INTO {} (id, n) VALUES ({}, 0)", self.name, value[0]));
        }
    }

    /// A statement of this text, where the key is compared with values that are written in some way.
    fn asked(&self, random: &mut StdRng, text: &str) -> Asked {
        if text.contains("LIST") {
            return self.asked_of_list(random, text);
        }
        let ways = one(random, self.values);
        let written = *one(random, ways);
        let text = text.replace("OTHER", one(random, self.values)[0]);
        let with = |written: &str| text.replace("KEY", written).replace("TABLE", self.name);
        let as_text = text_of(written);
        let number: Option<i64> = as_text.as_ref().and_then(|text| text.trim().parse().ok());
        let bound = match (random.random_range(0..3), as_text, number) {
            (0, Some(text), _) => Some((*one(random, self.types), false, text.into_bytes())),
            (1, _, Some(number)) if !self.binary.is_empty() => {
                let (of, length) = *one(random, self.binary);
                Some((of, true, binary_of(number, of, length)))
            }
            _ => None,
        };
        Asked {
            text: with(if bound.is_some() { "$1" } else { written }),
            bound,
        }
    }

    /// The same of several, which stand in the text or are an array.
    fn asked_of_list(&self, random: &mut StdRng, text: &str) -> Asked {
        let written: Vec<&str> = (0..random.random_range(1..=3))
            .map(|_| {
                let ways = *one(random, self.values);
                *one(random, ways)
            })
            .collect();
        let as_texts: Option<Vec<String>> = written.iter().map(|written| text_of(written)).collect();
        let numbers: Option<Vec<i64>> = as_texts
            .iter()
            .flatten()
            .map(|text| text.trim().parse().ok())
            .collect::<Option<_>>()
            .filter(|numbers: &Vec<i64>| !numbers.is_empty());
        let bound = match (random.random_range(0..3), as_texts, numbers) {
            (0, Some(texts), _) => {
                let is_plain = |text: &str| !text.is_empty() && text.chars().all(char::is_alphanumeric);
                let quoted = texts.iter().map(|text| match is_plain(text) {
                    true => text.clone(),
                    false => format!("\"{text}\""),
                });
                let array = format!("{{{}}}", quoted.collect::<Vec<_>>().join(","));
                Some((array_of(*one(random, self.types)), false, array.into_bytes()))
            }
            (1, _, Some(numbers)) if !self.binary.is_empty() => {
                let (of, length) = *one(random, self.binary);
                let own = if of == 0 {
                    [21, 23, 20][length.ilog2() as usize - 1]
                } else {
                    of
                };
                let head = [1, 0, own, u32::try_from(numbers.len()).unwrap(), 1].map(u32::to_be_bytes);
                let mut array = head.concat();
                for number in numbers {
                    array.extend(u32::try_from(length).unwrap().to_be_bytes());
                    array.extend(binary_of(number, of, length));
                }
                Some((array_of(of), true, array))
            }
            _ => None,
        };
        let list = match &bound {
            Some(_) => "= ANY($1)".to_owned(),
            None => format!("IN ({})", written.join(", ")),
        };
        Asked {
            text: text.replace("LIST", &list).replace("TABLE", self.name),
            bound,
        }
    }
}

/// The type of arrays of this one.
fn array_of(of: u32) -> u32 {
    match of {
        0 => 0,
        20 => 1016,
        21 => 1005,
        23 => 1007,
        25 => 1009,
        701 => 1022,
        1042 => 1014,
        1043 => 1015,
        1700 => 1231,
        2950 => 2951,
        other => panic!("no array of {other} is known"),
    }
}

const READS: &[&str] = &[
    "/* ttl:3600 */ SELECT n FROM TABLE WHERE id = KEY",
    "/* ttl:3600 */ SELECT count(*), sum(n) FROM TABLE WHERE n >= 0 AND id = KEY",
    "/* ttl:3600 */ SELECT n FROM TABLE WHERE id = KEY ORDER BY n LIMIT 5",
    "/* ttl:3600 */ SELECT count(*), coalesce(sum(n), 0) FROM TABLE",
    "/* ttl:3600 */ SELECT n FROM TABLE WHERE id LIST ORDER BY n",
    "/* ttl:3600 */ SELECT count(*) FROM TABLE WHERE n >= 0 AND id LIST",
    "/* ttl:3600 */ SELECT count(*) FROM TABLE AS x (m, id) WHERE id = KEY",
];
const CHANGES: &[&str] = &[
    "UPDATE TABLE SET n = n + 1 WHERE id = KEY",
    "UPDATE TABLE SET n = n + 1 WHERE id = KEY",
    "UPDATE TABLE SET n = n + 1 WHERE id = KEY AND n >= 0 RETURNING n",
    "UPDATE TABLE SET n = n + 1",
    "UPDATE TABLE SET id = KEY WHERE n = (SELECT max(n) FROM TABLE) AND NOT EXISTS (SELECT FROM TABLE o WHERE o.id = KEY)",
    "UPDATE TABLE SET id = OTHER, n = n + 1 WHERE id = KEY",
    "UPDATE TABLE SET n = n + 1 WHERE id LIST",
    "DELETE FROM TABLE WHERE id = KEY",
    "DELETE FROM TABLE WHERE id LIST AND n >= 0",
    "INSERT INTO TABLE (id, n) VALUES (KEY, 7)",
    "INSERT INTO TABLE (n, id) VALUES (8, KEY) ON CONFLICT DO NOTHING",
    "INSERT INTO TABLE (id, n) VALUES (KEY, 9) ON CONFLICT (id) DO UPDATE SET n = TABLE.n + 1",
    "INSERT INTO TABLE (id, n) VALUES (KEY, 7), (OTHER, 8)",
    "INSERT INTO TABLE (id, n) VALUES (OTHER, 7), (KEY, 8) ON CONFLICT DO NOTHING",
    "INSERT INTO TABLE (id, n) VALUES (KEY, 9), (OTHER, 9) ON CONFLICT (id) DO UPDATE SET n = TABLE.n + 1",
];

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Made of values of all kinds, written in many ways, which the database takes for equal or not.
#[test]
fn no_answer_outlives_a_change_of_its_row_however_that_is_written() {
    no_answer_outlives_a_change(&stage("by_row", ""), true);
    // Where nothing else tells it.
    no_answer_outlives_a_change(&stage("by_own_row", "invalidate = \"own\"\n"), false);
}

fn no_answer_outlives_a_change(stage: &Stage, is_heard: bool) {
    let seed = set("FOREBAY_BY_ROW_SEED").unwrap_or_else(rand::random);
    println!("FOREBAY_BY_ROW_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = set("FOREBAY_BY_ROW_ROUNDS").unwrap_or(150);
    let (mut client, mut server, mut judge) = (stage.client(), stage.straight(), stage.straight());
    server.run("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    for kind in KINDS {
        kind.make(&mut server);
        let scan = READS[3].replace("TABLE", kind.name);
        stage.until_remembered(&mut client, &scan, "SELECT count(*), coalesce");
    }
    let catalog_changes = is_heard.then(|| settled(stage, &mut server));
    if !is_heard {
        // Of others it hears nothing.
        server = stage.client();
    }
    let (mut hits, mut refused) = (0, 0);
    for _ in 0..rounds {
        let kind = one(&mut random, KINDS);
        let (text, is_own) = (*one(&mut random, CHANGES), !is_heard || random.random_bool(0.5));
        // What it does is known after some of them.
        for _ in 0..if is_own { 3 } else { 0 } {
            kind.asked(&mut random, text).send(&mut client);
        }
        if is_own && text.starts_with("INSERT") && random.random_bool(0.5) {
            // It finds none.
            client.run(&format!("DELETE FROM {}", kind.name));
        }
        let reads: Vec<Asked> = (0..6)
            .map(|_| {
                let text = *one(&mut random, READS);
                kind.asked(&mut random, text)
            })
            .collect();
        // So often that each is remembered, if it can be.
        for read in reads.iter().cycle().take(4 * reads.len()) {
            read.send(&mut client);
        }
        let change = kind.asked(&mut random, text);
        let (_, is_refused) = change.send(if is_own { &mut client } else { &mut server });
        refused += u64::from(is_refused);
        let before = stage.remembered("SELECT").0;
        for read in &reads {
            let now = read.send(&mut judge);
            match is_own {
                true => assert_eq!(read.send(&mut client), now, "{change:?} {read:?}"),
                false => until(&format!("{change:?} {read:?}"), || read.send(&mut client) == now),
            }
        }
        hits += stage.remembered("SELECT").0 - before;
        if kind.values.len() * 4 < usize::from(random.random::<u8>()) {
            continue;
        }
        for value in kind.values {
            drop(server.query(&format!("INSERT INTO {} (id, n) VALUES ({}, 0)", kind.name, value[0])));
        }
        // What is told of them is told before what comes next.
        let scan = READS[3].replace("TABLE", kind.name);
        let now = judge.query(&scan).rows();
        until("all of it is told", || client.query(&scan).rows() == now);
    }
    println!("{hits} answers from memory, {refused} changes of {rounds} refused");
    let since = is_heard.then(|| stage.status("stream_catalog_changes"));
    assert_eq!(since, catalog_changes, "nothing else was to make answers old");
    // More is changed through the proxy where all of it is, and what a statement does is not always known: a fifth of the rounds, and by chance an eighth at times.
    let share = if is_heard { 2 } else { 15 };
    assert!(hits > rounds / share && refused < rounds / 2);
}

/// Straight at the server, and by somebody through the proxy.
#[test]
fn what_is_known_of_one_row_outlives_changes_of_others() {
    // Nothing is to be asked anew because the stream is behind.
    let stage = stage("others", "max_lag = \"4s\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    let read = |kind: &Kind, value: usize| {
        format!(
            "/* ttl:3600 */ SELECT n FROM {} WHERE id = {}",
            kind.name, kind.values[value][0]
        )
    };
    let begins_of = |kind: &Kind| format!("SELECT n FROM {} WHERE", kind.name);
    for kind in KINDS {
        kind.make(&mut server);
        stage.until_remembered(&mut client, &read(kind, 0), &begins_of(kind));
    }
    let catalog_changes = settled(&stage, &mut server);
    for kind in KINDS {
        let (this, other, begins) = (read(kind, 0), read(kind, 1), begins_of(kind));
        let mut by_way = |name: &str, change: &mut dyn FnMut(&str)| {
            // What was changed before is told by now, of this one too.
            let now = server.query(&other).rows();
            until(name, || client.query(&other).rows() == now);
            stage.until_remembered(&mut client, &this, &begins);
            stage.until_remembered(&mut client, &other, &begins);
            let commits = || stage.status("stream_commits").parse::<u64>().unwrap();
            let told = commits();
            change(&format!(
                "UPDATE {} SET n = n + 1 WHERE id = {}",
                kind.name, kind.values[1][0]
            ));
            until("its commit is told", || commits() > told);
            let now = server.query(&other).rows();
            until(name, || client.query(&other).rows() == now);
            let before = stage.remembered(&begins).0;
            client.run(&this);
            stage.remembered(&begins).0 > before
        };
        let (mut straight, mut another) = (stage.straight(), stage.client());
        let is_kept = by_way("straight", &mut |change| drop(straight.run(change)));
        assert_eq!(is_kept, kind.is_by_row, "{}", kind.name);
        let mut is_kept = false;
        // What the change does is known after some of them.
        for _ in 0..5 {
            is_kept = by_way("through the proxy", &mut |change| drop(another.run(change)));
        }
        assert_eq!(is_kept, kind.is_by_row, "{}, through the proxy", kind.name);
    }
    assert_eq!(
        stage.status("stream_catalog_changes"),
        catalog_changes,
        "nothing else was to make answers old"
    );
}

/// Of those whose keys are not in the text, as where a sequence makes them. Straight at the server, and by somebody through the proxy.
#[test]
fn what_is_known_of_a_row_that_is_there_outlives_rows_that_are_made() {
    made(&stage("made", "max_lag = \"4s\"\n"), true);
    made(&stage("made_own", "invalidate = \"own\"\n"), false);
}

fn made(stage: &Stage, is_heard: bool) {
    let (mut client, mut another, mut server) = (stage.client(), stage.client(), stage.straight());
    server.run("CREATE TABLE made (id serial PRIMARY KEY, n int NOT NULL)");
    server.run("INSERT INTO made (n) VALUES (1), (2)");
    let there = "/* ttl:3600 */ SELECT n FROM made WHERE id = 1 LIMIT 1";
    let there_begins = "SELECT n FROM made WHERE id";
    let others = |next: &str| {
        [
            // Of one that is not there, or that may be told of where it is not.
            (format!("SELECT n, id FROM made WHERE id = {next}"), "SELECT n, id"),
            (
                format!("SELECT count(*) FROM made WHERE id = {next}"),
                "SELECT count(*) FROM made",
            ),
            (
                format!("SELECT n + 1 FROM made WHERE id = {next} LIMIT 0"),
                "SELECT n + ",
            ),
            (
                format!("SELECT id FROM made WHERE id IN (1, {next}) ORDER BY id"),
                "SELECT id FROM",
            ),
            ("SELECT max(id) FROM made".to_owned(), "SELECT max(id)"),
        ]
    };
    for insert in [
        "INSERT INTO made (n) VALUES (5)",
        "INSERT INTO made (n) VALUES (6), (7)",
        "INSERT INTO made (n) VALUES (8) ON CONFLICT DO NOTHING",
        "INSERT INTO made VALUES (DEFAULT, 9) RETURNING id",
    ] {
        let mut is_kept = false;
        // What it does is known after some of them.
        for _ in 0..5 {
            let next = server.ask("SELECT last_value + 1 FROM made_id_seq");
            for (text, begins) in others(&next) {
                stage.until_remembered(&mut client, &format!("/* ttl:3600 */ {text}"), begins);
            }
            stage.until_remembered(&mut client, there, there_begins);
            let commits = || stage.status("stream_commits").parse::<u64>().unwrap_or_default();
            let told = commits();
            another.run(insert);
            let before = stage.remembered(there_begins).0;
            client.run(there);
            is_kept = stage.remembered(there_begins).0 > before;
            for (text, _) in others(&next) {
                let said = client.query(&format!("/* ttl:3600 */ {text}")).rows();
                assert_eq!(said, server.query(&text).rows(), "{insert}: {text}");
            }
            if is_heard {
                until("its commit is told", || commits() > told);
                client.run(there);
                is_kept &= stage.remembered(there_begins).0 > before + 1;
            }
        }
        assert!(is_kept, "{insert}");
    }
    // A change of rows that are there, of which ones is not known.
    for change in [
        "INSERT INTO made (id, n) VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET n = made.n + 1",
        "UPDATE made SET n = n + 1 WHERE n > 0",
    ] {
        for _ in 0..5 {
            stage.until_remembered(&mut client, there, there_begins);
            another.run(change);
            assert_eq!(client.ask(there), server.ask(there), "{change}");
        }
    }
}

/// What is remembered by one way to write a row's key is of the row that another way to write it changes, though it was not there.
#[test]
fn a_row_is_the_same_however_its_key_is_written_and_wherever_it_was() {
    rows_are_the_same(&stage("same_row", ""), false);
    // Where nothing else tells it.
    rows_are_the_same(&stage("same_own_row", "invalidate = \"own\"\n"), true);
}

fn rows_are_the_same(stage: &Stage, is_own: bool) {
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE r_int (id int PRIMARY KEY, n int DEFAULT 0)",
        "CREATE UNIQUE INDEX ON r_int (n) WHERE n = 16777216",
        "CREATE TABLE r_whole (id int PRIMARY KEY, n int DEFAULT 0)",
        "ALTER TABLE r_whole REPLICA IDENTITY FULL",
        "CREATE TABLE r_big (id int8 PRIMARY KEY, n int DEFAULT 0)",
        "CREATE TABLE r_text (id varchar(3) PRIMARY KEY, n int DEFAULT 0)",
        "CREATE TABLE r_two (id int, kind text, n int DEFAULT 0, PRIMARY KEY (kind, id))",
        "CREATE TABLE r_made (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY, n int DEFAULT 0)",
        "INSERT INTO r_made VALUES (1)",
        "INSERT INTO r_int (id) VALUES (1), (16777216)",
        "INSERT INTO r_whole VALUES (1)",
        "INSERT INTO r_big VALUES (2)",
        "INSERT INTO r_two VALUES (1, 'a')",
    ] {
        server.run(sql);
    }
    for table in ["r_int", "r_whole", "r_big", "r_text", "r_two", "r_made"] {
        let read = format!("/* ttl:3600 */ SELECT count(*) FROM {table}");
        stage.until_remembered(&mut client, &read, &read["/* ttl:3600 */ ".len()..]);
    }
    let catalog_changes = (!is_own).then(|| settled(stage, &mut server));
    let mut other = if is_own { stage.client() } else { stage.straight() };
    let by_value = |of: u32, value: &str| Asked {
        text: "/* ttl:3600 */ SELECT n FROM r_int WHERE id = $1".to_owned(),
        bound: Some((of, false, value.as_bytes().to_vec())),
    };
    let by_text = |table: &str, which: &str| Asked {
        text: format!("/* ttl:3600 */ SELECT n FROM {table} WHERE {which}"),
        bound: None,
    };
    for (read, change, back) in [
        // float4, which has no 16777217.
        (
            by_value(700, "16777217"),
            "UPDATE r_int SET n = n + 1 WHERE id = 16777216",
            "",
        ),
        (
            by_value(0, "16777216"),
            "UPDATE r_int SET n = n + 1 WHERE id = 16777216.0",
            "",
        ),
        // Of the type that it has where it stands first.
        (
            Asked {
                text: "/* ttl:3600 */ SELECT n, $1::float8 FROM r_big WHERE id = $1".to_owned(),
                bound: Some((0, true, 2.0_f64.to_be_bytes().to_vec())),
            },
            "UPDATE r_big SET n = n + 1 WHERE id = 2",
            "",
        ),
        (
            by_text("r_int", "id = 2"),
            "UPDATE r_int SET id = 2 WHERE id = 1",
            "UPDATE r_int SET id = 1 WHERE id = 2",
        ),
        (
            by_text("r_int", "id = 1"),
            "UPDATE r_int SET id = 2 WHERE id = 1",
            "UPDATE r_int SET id = 1 WHERE id = 2",
        ),
        (
            by_text("r_whole", "id = 2"),
            "UPDATE r_whole SET id = 2 WHERE id = 1",
            "UPDATE r_whole SET id = 1 WHERE id = 2",
        ),
        (
            by_text("r_text", "id = 'abc'"),
            "INSERT INTO r_text (id) VALUES ('abc  ')",
            "DELETE FROM r_text WHERE id = 'abc'",
        ),
        (
            by_text("r_two", "id = 1 AND kind = 'b'"),
            "UPDATE r_two SET kind = 'b' WHERE id = 1 AND kind = 'a'",
            "UPDATE r_two SET kind = 'a' WHERE kind = 'b' AND id = 1",
        ),
        (
            by_text("r_two", "kind = 'a'"),
            "UPDATE r_two SET n = n + 1 WHERE kind = 'a' AND id = 1",
            "UPDATE r_two SET kind = 'a'",
        ),
        (
            by_text("r_made", "id = 50"),
            "UPDATE r_made SET a = 49 WHERE id = 2",
            "UPDATE r_made SET a = 1 WHERE id = 50",
        ),
        // Which of its columns is called so is another one.
        (
            by_text("r_int AS x (n, id)", "id = 77"),
            "UPDATE r_int SET n = 77 WHERE id = 16777216",
            "UPDATE r_int SET n = 0 WHERE id = 16777216",
        ),
        (
            by_text("r_int", "id = 7"),
            "INSERT INTO r_int (id) VALUES (7)",
            "DELETE FROM r_int WHERE id = 7",
        ),
        (
            by_text("r_int", "id = 1"),
            "INSERT INTO r_int (id, n) VALUES (8, 16777216) ON CONFLICT (n) WHERE n = 16777216 DO UPDATE SET n = 5",
            "DELETE FROM r_int; INSERT INTO r_int (id, n) VALUES (1, 16777216)",
        ),
    ] {
        let begins: String = read.text["/* ttl:3600 */ ".len()..].chars().take(20).collect();
        // What the proxy's own change does is known after some of them.
        for _ in 0..if is_own { 6 } else { 1 } {
            if !back.is_empty() {
                other.query(back);
            }
            let now = read.send(&mut server);
            until(back, || read.send(&mut client) == now);
            let before = stage.remembered(&begins).0;
            until("it is remembered", || {
                read.send(&mut client);
                stage.remembered(&begins).0 > before
            });
            other.run(change);
            let changed = read.send(&mut server);
            assert_ne!(changed, now, "{change}");
            match is_own {
                true => assert_eq!(read.send(&mut client), changed, "{change}"),
                false => until(change, || read.send(&mut client) == changed),
            }
        }
    }
    if let Some(before) = catalog_changes {
        assert_eq!(
            stage.status("stream_catalog_changes"),
            before,
            "nothing else was to make answers old"
        );
    }
}

/// The stream has told of a table before anybody has asked for it.
#[test]
fn a_table_that_was_told_of_before_is_told_by_row_too() {
    let stage = stage("before", "publication = \"of_all\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE PUBLICATION of_all FOR ALL TABLES",
        "CREATE TABLE first (id int PRIMARY KEY)",
        "CREATE TABLE b (id int PRIMARY KEY, n int)",
        "INSERT INTO b VALUES (1, 0), (2, 0)",
    ] {
        server.run(sql);
    }
    stage.until_remembered(
        &mut client,
        "/* ttl:3600 */ SELECT id FROM first",
        "SELECT id FROM first",
    );
    server.run("UPDATE b SET n = 1");
    let [this, other] = [1, 2].map(|id| format!("/* ttl:3600 */ SELECT n FROM b WHERE id = {id}"));
    let begins = "SELECT n FROM b";
    for n in 0..3 {
        stage.until_remembered(&mut client, &this, begins);
        server.run(&format!("UPDATE b SET n = {n} WHERE id = 2"));
        until("it is told", || client.ask(&other) == n.to_string());
        let before = stage.remembered(begins).0;
        client.run(&this);
        assert!(stage.remembered(begins).0 > before);
    }
}

/// By what rows are told is another thing then, on both sides.
#[test]
fn a_table_that_gets_another_key_is_told_by_that() {
    let stage = stage("another_key", "");
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE k (a int NOT NULL, b int NOT NULL UNIQUE, n int, PRIMARY KEY (a))");
    server.run("CREATE UNIQUE INDEX k_a_key ON k (a)");
    server.run("INSERT INTO k SELECT i, 10 - i, 0 FROM generate_series(1, 9) i");
    let reads =
        ["a = 3", "b = 3", "a = 3 AND b = 7"].map(|which| format!("/* ttl:3600 */ SELECT n FROM k WHERE {which}"));
    for round in 0..3 {
        for key in [
            "DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (b)",
            "DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (a, b)",
            "REPLICA IDENTITY FULL",
            "REPLICA IDENTITY USING INDEX k_b_key",
            "ALTER a TYPE int8, REPLICA IDENTITY USING INDEX k_a_key",
            "DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (a), ALTER a TYPE int4, REPLICA IDENTITY DEFAULT",
        ] {
            for read in &reads {
                stage.until_remembered(&mut client, read, "SELECT n FROM k");
            }
            let looked = stage.status("stream_catalog_changes");
            server.run(&format!("ALTER TABLE k {key}"));
            for (number, change) in ["a = 3", "b = 3", "true", "b = 7"].into_iter().enumerate() {
                for read in reads.iter().cycle().take(9) {
                    client.run(read);
                }
                // The stream has told of the table with its new key before that is known, and after.
                if round == 0 && number == 1 {
                    until("it is looked at", || stage.status("stream_catalog_changes") != looked);
                }
                if number > 0 {
                    for read in &reads {
                        stage.until_remembered(&mut client, read, "SELECT n FROM k");
                    }
                }
                server.run(&format!("UPDATE k SET n = n + 1 WHERE {change}"));
                for read in &reads {
                    let now = server.query(read).rows();
                    until(&format!("{round}, {key}: {change}, {read}"), || {
                        client.query(read).rows() == now
                    });
                }
            }
        }
    }
}
