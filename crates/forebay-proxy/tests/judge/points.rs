//! Reads and changes of one row by its key, and INSERTs of one row, straight and through the proxy, byte by byte: there each of them is asked in a
//! form for many.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::script::Step;
use crate::{database, front, play, play_at_once, seeds_until};

/// A key of each type, what is no key, and what is one only as it seems.
const SCHEMA: &str = "\
CREATE TABLE fixed (id int PRIMARY KEY, big bigint UNIQUE, small smallint UNIQUE, name text UNIQUE, code varchar(10) UNIQUE, padded char(6) UNIQUE, day date UNIQUE, made timestamptz UNIQUE, amount numeric(12, 3) UNIQUE, token uuid UNIQUE, flag boolean, note text, ratio float8 UNIQUE, list int[], \"Odd\" int UNIQUE, shown text COLLATE \"C\" UNIQUE);
INSERT INTO fixed SELECT n, n, n, 'n' || n, 'c' || n, 'p' || n, date '2024-01-01' + n, timestamptz '2024-01-01 00:00:00+00' + n * interval '1 hour', n * 1.5, md5(n::text)::uuid, n % 2 = 0, CASE WHEN n % 3 > 0 THEN 'note ' || n % 2 END, n / 4.0, ARRAY[n, NULL], n, CASE n WHEN 3 THEN 'it''s \"quoted\"' WHEN 4 THEN '' WHEN 5 THEN 'Ü' WHEN 6 THEN 'NULL' WHEN 7 THEN '{1,2}' ELSE 's' || n END FROM generate_series(-3, 40) n;
CREATE TABLE pairs (a int, b text, note text, PRIMARY KEY (a, b));
INSERT INTO pairs SELECT n % 5, 'n' || n % 7, 'pair ' || n FROM generate_series(0, 34) n;
CREATE TABLE loose (a int, n int); CREATE INDEX ON loose (a); CREATE UNIQUE INDEX ON loose (n) WHERE n < 5;
INSERT INTO loose SELECT n % 5, n FROM generate_series(1, 40) n;
CREATE TABLE parent (id int PRIMARY KEY, note text);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'parent'), (2, 'parent');
INSERT INTO child VALUES (1, 'child'), (3, 'child');
CREATE TABLE parted (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (-100) TO (10);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (100);
INSERT INTO parted SELECT n, 'part ' || n FROM generate_series(-3, 20) n;
CREATE TABLE kept (session int, id int CHECK (id <> 13), big bigint, small smallint, name text, code varchar(4), padded char(6), day date, made timestamptz, amount numeric(5, 1), token uuid, ratio float8, half real, \"Odd\" int DEFAULT 7, shown text COLLATE \"C\", flag boolean NOT NULL DEFAULT true, raw bytea, doc json, docb jsonb, at time, span interval, list int[], twice int GENERATED ALWAYS AS (id * 2) STORED, UNIQUE (session, id), UNIQUE (session, name));
CREATE TABLE held (id int PRIMARY KEY CHECK (id % 100 <> 13), name text UNIQUE, big bigint, small smallint, code varchar(4), padded char(6), day date, made timestamptz, amount numeric(5, 1), token uuid, ratio float8, \"Odd\" int DEFAULT 7, shown text COLLATE \"C\", flag boolean NOT NULL DEFAULT true, raw bytea, docb jsonb, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE linked (id int PRIMARY KEY, parent int REFERENCES linked);
CREATE TABLE nested (session int, id int, parent int, PRIMARY KEY (session, id), FOREIGN KEY (session, parent) REFERENCES nested);
";

/// Of a row each: its session, and then these columns.
const ROWS: [(&str, &[&str]); 10] = [
    ("INSERT INTO kept (session, {}) VALUES ($s, {})", &["any"]),
    ("INSERT INTO kept (session, {}) VALUES ($s, {})", &["any"]),
    (
        "INSERT INTO public.kept AS k (session, {}, {}) VALUES ($s, {}, {}) ;",
        &["id", "any"],
    ),
    (
        "insert into kept (session, {}, {}, {}, flag) values ($s, {}, {}, {}, NULL)",
        &["any", "id", "shown"],
    ),
    (
        "INSERT INTO kept (session, {}, {}, {}, list) VALUES ($s, {}, {}, {}, '{1,NULL}')",
        &["name", "raw", "doc"],
    ),
    (
        "INSERT INTO kept (session, {}, {}, amount) VALUES ($s, {}, {}, -7.25)",
        &["docb", "span"],
    ),
    (
        "INSERT INTO kept (session, {}, {}, twice) VALUES ($s, {}, {}, 1)",
        &["flag", "at"],
    ),
    ("INSERT INTO nested VALUES ($s, {}, {})", &["id", "big"]),
    ("INSERT INTO kept (session, nothing, {}) VALUES ($s, 5, {})", &["id"]),
    (
        "INSERT INTO kept (session, {}, half) VALUES ($s, {}, 1.5) RETURNING id, twice, half",
        &["id"],
    ),
];

/// Types of the columns that only rows have.
const OTHERS: [(&str, u32); 7] = [
    ("raw", 17),
    ("doc", 114),
    ("docb", 3802),
    ("at", 1083),
    ("span", 1186),
    ("flag", 16),
    ("half", 700),
];

/// Their parameters are of these columns.
const TEXTS: [(&str, &[&str]); 19] = [
    ("SELECT * FROM fixed WHERE {} = {}", &["any"]),
    (
        "SELECT id, name AS other, name, amount FROM fixed WHERE {} = {} LIMIT 21",
        &["any"],
    ),
    (
        "SELECT f.note, f.* FROM public.fixed AS f WHERE f.{} = {} AND (f.flag)",
        &["any"],
    ),
    (
        "SELECT \"fixed\".\"id\", \"fixed\".\"list\" FROM \"fixed\" WHERE \"fixed\".{} = {} AND note = 'note 1' ;",
        &["any"],
    ),
    ("SELECT fixed FROM fixed WHERE {} = {} -- the row", &["any"]),
    ("SELECT ctid FROM fixed WHERE {} = {} OFFSET 0", &["any"]),
    ("SELECT nothing FROM fixed WHERE {} = {}", &["any"]),
    ("SELECT id, nothing AS id FROM fixed WHERE {} = {}", &["id"]),
    ("SELECT note FROM fixed WHERE {} = {} AND {} = {}", &["any", "any"]),
    ("SELECT note FROM fixed WHERE {} = {} AND 10 / (id - 3) > 0", &["id"]),
    ("SELECT note, b, a FROM pairs WHERE {} = {} AND {} = {}", &["a", "b"]),
    ("SELECT note FROM pairs WHERE {} = {}", &["a"]),
    ("SELECT n FROM loose WHERE {} = {}", &["a"]),
    ("SELECT a FROM loose WHERE {} = {}", &["n"]),
    ("SELECT id, note FROM parent WHERE {} = {}", &["id"]),
    ("SELECT * FROM parted WHERE {} = {} ", &["id"]),
    (
        "SELECT fixed.id, fixed.name FROM fixed WHERE fixed.{} = {}::INTEGER",
        &["id"],
    ),
    ("SELECT id FROM fixed WHERE {} = {}::VARCHAR AND fixed.flag", &["name"]),
    ("SELECT id FROM fixed WHERE {} = CAST({} AS bigint) LIMIT 1", &["big"]),
];

/// Of a row each that is changed: of these columns. Each session has rows of its own.
const CHANGES: [(&str, &[&str]); 21] = [
    ("UPDATE held SET {} = {} WHERE {} = {}", &["any", "id"]),
    ("UPDATE held SET {} = {} WHERE {} = {}", &["amount", "id"]),
    ("UPDATE held SET {} = {} WHERE {} = {}", &["code", "id"]),
    (
        "UPDATE held SET {} = {}, {} = {} WHERE {} = {}",
        &["padded", "raw", "name"],
    ),
    (
        "update public.held as h set {} = {}, \"Odd\" = DEFAULT where h.{} = {} and h.flag returning *;",
        &["docb", "id"],
    ),
    (
        "UPDATE held SET {} = {} WHERE {} = {} RETURNING id, name AS other, held.twice -- the row",
        &["small", "id"],
    ),
    ("UPDATE held SET {} = big + {} WHERE {} = {}", &["big", "id"]),
    (
        "UPDATE held SET {} = big - {} * 2 WHERE {} = {} RETURNING held.*",
        &["big", "name"],
    ),
    ("UPDATE held SET {} = shown || {} WHERE {} = {}", &["shown", "id"]),
    ("UPDATE held SET {} = 100 / {} WHERE {} = {}", &["big", "id"]),
    (
        "UPDATE held SET {} = {}::numeric(3, 1) WHERE {} = {}",
        &["amount", "id"],
    ),
    (
        "UPDATE held SET {} = {}, big = held.big + 1 WHERE {} = {} AND {} = {}",
        &["shown", "id", "name"],
    ),
    (
        "UPDATE held SET {} = CASE WHEN flag THEN 1 ELSE 10 / {} END WHERE {} = {}",
        &["big", "id"],
    ),
    (
        "UPDATE held SET {} = {} WHERE {} = {} AND 10 / (id % 100 - 3) < 5",
        &["flag", "id"],
    ),
    ("UPDATE held SET {} = {} WHERE {} = {}", &["nothing", "id"]),
    ("UPDATE held SET {} = {} WHERE {} = {}", &["id", "name"]),
    ("UPDATE linked SET {} = {} WHERE {} = {}", &["parent", "id"]),
    ("DELETE FROM held WHERE {} = {}", &["id"]),
    (
        "UPDATE held SET {} = {}::BIGINT WHERE held.{} = {}::INTEGER",
        &["big", "id"],
    ),
    (
        "DELETE FROM held AS h WHERE h.{} = {} AND h.flag RETURNING *, h.id",
        &["name"],
    ),
    ("DELETE FROM linked WHERE {} = {}", &["id"]),
];

/// Columns, and what their types are called by.
const COLUMNS: [(&str, u32); 13] = [
    ("id", 23),
    ("big", 20),
    ("small", 21),
    ("name", 25),
    ("code", 1043),
    ("padded", 1042),
    ("day", 1082),
    ("made", 1184),
    ("amount", 1700),
    ("token", 2950),
    ("ratio", 701),
    ("\"Odd\"", 23),
    ("shown", 25),
];

const SESSIONS: usize = 12;
const STEPS: usize = 250;

/// A value that may be there, as text.
fn value(column: &str, random: &mut StdRng) -> String {
    let n: i64 = random.random_range(-4..44);
    match column {
        "name" | "b" => format!("n{n}"),
        "code" => format!("c{n}"),
        "padded" => format!("p{n}{}", ["", " ", "   "].choose(random).unwrap()),
        "day" => format!("2024-01-{:02}", n.rem_euclid(31) + 1),
        "made" => format!("2024-01-01 {:02}:00:00+00", n.rem_euclid(24)),
        "amount" => format!("{}", n as f64 * 1.5),
        // Of 3 and of 4.
        "token" => [
            "eccbc87e4b5ce2fe28308fd9f2a7baf3",
            "A87FF679-A2F3-E71D-9181-A67B7542122C",
        ]
        .choose(random)
        .unwrap()
        .to_string(),
        "ratio" => format!("{}", n as f64 / 4.0),
        "shown" => ["it's \"quoted\"", "", "Ü", "NULL", "{1,2}", "s8", " s8", "s\u{1f600}"]
            .choose(random)
            .unwrap()
            .to_string(),
        "a" => (n % 5).to_string(),
        "raw" => [r"\x0102", "abc", r"\001", r"\x1"].choose(random).unwrap().to_string(),
        "doc" | "docb" => [
            r#"{"a": "ü \"x\" ", "b": [1, 2]}"#,
            "null",
            "[1,",
            r#""\u00fc""#,
            "1.50",
        ]
        .choose(random)
        .unwrap()
        .to_string(),
        "at" => format!("{:02}:10:11.5", n.rem_euclid(26)),
        "span" => format!("{n} days 03:00"),
        "flag" => ["true", "f", "on", "maybe"].choose(random).unwrap().to_string(),
        _ => n.to_string(),
    }
}

/// Texts that some type does not take, or takes as it takes another.
const ODD: [&str; 12] = [
    "abc",
    "",
    " 5 ",
    "05",
    "5.0",
    "99999999999999999999",
    "3000000000",
    "-0",
    "NaN",
    "'; DROP TABLE fixed",
    "a,b",
    "infinity",
];

fn binary(number: u32, text: &str) -> Option<Vec<u8>> {
    Some(match number {
        23 => text.parse::<i32>().ok()?.to_be_bytes().to_vec(),
        20 => text.parse::<i64>().ok()?.to_be_bytes().to_vec(),
        21 => text.parse::<i16>().ok()?.to_be_bytes().to_vec(),
        701 => text.parse::<f64>().ok()?.to_be_bytes().to_vec(),
        25 | 1042 | 1043 => text.as_bytes().to_vec(),
        _ => return None,
    })
}

fn step(random: &mut StdRng, session: usize) -> Step {
    if random.random_range(0..12) == 0 {
        return Step::query(&match random.random_range(0..4) {
            0 => format!("SELECT count(*) FROM nested WHERE session = {session}"),
            1 => format!("DELETE FROM kept WHERE session = {session} AND (id > 3 OR id IS NULL)"),
            _ => format!(
                "SELECT id, big, small, name, code, padded, day, made, amount, token, ratio, half, \"Odd\", shown, flag, raw, doc, docb, at, \
                 span, list, twice FROM kept WHERE session = {session} ORDER BY kept::text COLLATE \"C\""
            ),
        });
    }
    let is_row = random.random();
    let form = if is_row { &ROWS } else { &TEXTS[..] }.choose(random).unwrap();
    asked(random, session, form, is_row)
}

/// The number of one of its rows.
fn own_row(session: usize, row: usize) -> usize {
    100 * (session + 1) + row
}

/// One of those who change a row, or what came of them. Their rows are put there again and again.
fn change(random: &mut StdRng, session: usize) -> Step {
    let (first, last) = (own_row(session, 0), own_row(session, 44));
    match random.random_range(0..20) {
        0 => Step::query(&format!(
            "SELECT id, name, big, small, code, padded, day, made, amount, token, ratio, \"Odd\", shown, flag, raw, docb, twice FROM held \
             WHERE id BETWEEN {first} AND {last} ORDER BY id"
        )),
        1 => Step::query(&format!(
            "INSERT INTO held (id, name, big, shown) SELECT n, 'n' || n, n, '' FROM generate_series({first}, {last}) n WHERE n % 100 <> 13 \
             ON CONFLICT DO NOTHING"
        )),
        2 => Step::query(&format!(
            "INSERT INTO linked SELECT n, nullif(n - 1, {first} - 1) FROM generate_series({first}, {last}) n ON CONFLICT DO NOTHING"
        )),
        _ => {
            let form = CHANGES.choose(random).unwrap();
            asked(random, session, form, false)
        }
    }
}

/// A statement of this form, with values and parameters of all kinds.
fn asked(random: &mut StdRng, session: usize, (form, wanted): &(&str, &[&str]), is_row: bool) -> Step {
    let form = form.replace("$s", &session.to_string());
    let columns: Vec<(&str, u32)> = wanted
        .iter()
        .map(|&wanted| match wanted {
            "any" => *COLUMNS.choose(random).unwrap(),
            "b" => ("b", 25),
            other => COLUMNS
                .iter()
                .chain(&OTHERS)
                .find(|(column, _)| *column == other)
                .map_or((other, 23), |(column, number)| (*column, *number)),
        })
        .collect();
    let has_own_rows = ["held", "linked"].iter().any(|table| form.contains(table));
    let one = own_row(session, random.random_range(0..44));
    let values: Vec<String> = columns
        .iter()
        .map(|(column, _)| match (random.random_range(0..12), *column) {
            (spelt, "id" | "parent") if has_own_rows => {
                let other = own_row(session, random.random_range(0..44));
                let row = if *column == "parent" || spelt > 8 { other } else { one };
                match spelt {
                    // No row of another session's.
                    0 => ["abc", "", &format!("{row}.0"), "99999999999999999999", "NaN"]
                        .choose(random)
                        .unwrap()
                        .to_string(),
                    1 => format!(" 0{row} "),
                    _ => row.to_string(),
                }
            }
            (_, "name") if has_own_rows => format!("n{one}"),
            (0, _) => (*ODD.choose(random).unwrap()).to_owned(),
            _ => value(column, random),
        })
        .collect();
    let text = |write: &mut dyn FnMut(usize) -> String| {
        let mut text = String::new();
        let parts: Vec<&str> = form.split("{}").collect();
        for (at, part) in parts.iter().enumerate() {
            text.push_str(part);
            if at + 1 < parts.len() {
                // Of a row all columns stand before all values.
                let (column, is_name) = match is_row {
                    true => (
                        at % columns.len(),
                        at < columns.len() && form.matches("{}").count() > columns.len(),
                    ),
                    false => (at / 2, at % 2 == 0),
                };
                text += &match is_name {
                    true => columns[column].0.to_owned(),
                    false => write(column),
                };
            }
        }
        text
    };
    if random.random_range(0..3) == 0 {
        return Step::query(&text(&mut |at| {
            let value = &values[at];
            let is_number = value.parse::<f64>().is_ok() && !value.starts_with(['N', 'i']);
            match is_number && random.random() {
                true => value.clone(),
                false => format!("'{}'", value.replace('\'', "''")),
            }
        }));
    }
    let mut step = Step::new();
    let sql = text(&mut |at| format!("${}", at + 1));
    let types: Vec<u32> = columns
        .iter()
        .map(|(_, number)| match random.random_range(0..8) {
            0 => *[23, 20, 25, 1700, 701].choose(random).unwrap(),
            1..4 => *number,
            _ => 0,
        })
        .collect();
    match random.random_range(0..4) {
        0 => step.parse_typed("", &sql, &[]),
        _ => step.parse_typed("", &sql, &types),
    }
    if random.random_range(0..6) == 0 {
        step.named(b'D', b'S', "");
    }
    let (mut formats, mut raw) = (Vec::new(), Vec::new());
    for ((_, number), value) in columns.iter().zip(&values) {
        let is_null = random.random_range(0..12) == 0;
        match binary(*number, value).filter(|_| random.random_range(0..3) == 0) {
            Some(bytes) => {
                formats.push(1);
                raw.push((!is_null).then_some(bytes));
            }
            None => {
                formats.push(0);
                raw.push((!is_null).then(|| value.as_bytes().to_vec()));
            }
        }
    }
    match random.random_range(0..10) {
        // As it should not be.
        0 => drop(raw.pop()),
        1 => formats.push(0),
        2 => formats = vec![1],
        3 => formats.clear(),
        _ => {}
    }
    let results: &[u16] = [&[][..], &[0], &[1], &[0, 1], &[1, 0, 1, 1]].choose(random).unwrap();
    step.bind_raw("", &formats, &raw, results);
    if random.random() {
        step.named(b'D', b'P', "");
    }
    step.execute("", 0);
    step.sync();
    step
}

/// How often statements were asked in a form for many whose texts, with an end of line behind them, have this in them.
fn asked_jointly(proxy: &str, database: &str, text: &str) -> u64 {
    let mut admin = Client::connect(proxy, database, &[front::ADMIN]);
    let rows = admin.rows("SHOW FOREBAY SHARING");
    let has_it = |row: &&Vec<Option<String>>| format!("{}\n", row[2].as_deref().unwrap_or_default()).contains(text);
    let number = |row: &Vec<Option<String>>| row[7].as_deref().unwrap_or("0").parse::<u64>().unwrap();
    rows.iter().filter(has_it).map(number).sum()
}

#[test]
fn nobody_can_tell_who_is_asked_as_one() {
    let (one, other) = ("points_straight", "points_proxied");
    let upstream = database(one);
    database(other);
    for database in [one, other] {
        Client::connect(&upstream, database, &[]).run(SCHEMA);
    }
    let proxy = front::start_in_company(&upstream, 6);
    let shared = [
        " FROM fixed WHERE ",
        "FROM pairs WHERE a = $1 AND b",
        "FROM parted",
        "$1::INTEGER",
        "$1::VARCHAR",
        "CAST($1 AS bigint)",
        "INSERT INTO kept (session, ",
        "INSERT INTO kept (session, name, raw, doc, list)",
    ];
    let is_enough = || shared.iter().all(|text| asked_jointly(&proxy, other, text) > 0);
    for seed in seeds_until(4, is_enough) {
        for database in [one, other] {
            Client::connect(&upstream, database, &[]).run("TRUNCATE kept, nested");
        }
        let steps = |seed: u64, number: usize| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..STEPS).map(|_| step(&mut random, number)).collect()
        };
        play_at_once(seed, SESSIONS, (&upstream, one), (&proxy, other), steps);
    }
    // It was not only compared.
    for text in shared {
        assert!(asked_jointly(&proxy, other, text) > 0, "{text}");
    }
    for text in [
        "INTO nested",
        "RETURNING",
        "FROM loose",
        "FROM parent",
        "FROM pairs WHERE a = ?\n",
        "nothing",
    ] {
        assert_eq!(asked_jointly(&proxy, other, text), 0, "{text}");
    }
}

/// Those who change a row each.
#[test]
fn nobody_can_tell_who_changes_as_one() {
    let (one, other) = ("changes_straight", "changes_proxied");
    let upstream = database(one);
    database(other);
    for database in [one, other] {
        let mut client = Client::connect(&upstream, database, &[]);
        client.run(SCHEMA);
        // What is prepared for all is executed often, and planned without its parameters then: constants fail later.
        client.run(&format!(
            "ALTER DATABASE {database} SET plan_cache_mode = force_custom_plan"
        ));
    }
    let proxy = front::start_in_company(&upstream, 6);
    let shared = [
        "UPDATE held SET amount = $1 WHERE id",
        "UPDATE held SET code = ",
        "raw = $2 WHERE name",
        "= DEFAULT",
        "RETURNING id, name AS other",
        "big = big + ",
        "big = big - ",
        "shown = shown || ",
        "big = ? / ",
        "::numeric",
        "held.big + ",
        "$1::BIGINT WHERE held.id = $2::INTEGER",
        "DELETE FROM held WHERE id",
        "RETURNING *, h.id",
    ];
    let is_enough = || shared.iter().all(|text| asked_jointly(&proxy, other, text) > 0);
    for seed in seeds_until(4, is_enough) {
        for database in [one, other] {
            Client::connect(&upstream, database, &[]).run("TRUNCATE held, linked");
        }
        let steps = |seed: u64, number: usize| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..STEPS).map(|_| change(&mut random, number)).collect()
        };
        play_at_once(seed, SESSIONS, (&upstream, one), (&proxy, other), steps);
    }
    for text in shared {
        assert!(asked_jointly(&proxy, other, text) > 0, "{text}");
    }
    for text in ["linked", "ELSE 10 / $1", "nothing"] {
        assert_eq!(asked_jointly(&proxy, other, text), 0, "{text}");
    }
}

/// What is changed under a form is met as it is straight.
#[test]
fn what_is_asked_as_one_heals() {
    let name = "points_heal";
    let upstream = database(name);
    let proxy = front::start_in_company(&upstream, 4);
    let mut straight = Client::connect(&upstream, name, &[]);
    straight.run("CREATE TABLE t (id int PRIMARY KEY, note text);\nINSERT INTO t VALUES (1, 'one'), (2, 'two')");
    let mut client = Client::connect(&proxy, name, &[]);
    let ask = |client: &mut Client| client.ask(&Step::query("SELECT * FROM t WHERE id = 2"));
    let travels = |client: &mut Client, expected: &str| {
        let (before, begun) = (asked_jointly(&proxy, name, "FROM t"), Instant::now());
        while asked_jointly(&proxy, name, "FROM t") == before {
            let told = ask(client);
            assert!(told.contains(expected), "{told}");
            assert!(begun.elapsed() < Duration::from_secs(20), "it is not asked as one");
        }
    };
    travels(&mut client, "two");
    // Nobody has told the proxy.
    straight.run("ALTER TABLE t ADD COLUMN more text DEFAULT 'added'");
    let told = ask(&mut client);
    assert!(told.contains("two") && told.contains("added"), "{told}");
    straight.run("ALTER TABLE t DROP CONSTRAINT t_pkey;\nINSERT INTO t VALUES (2, 'twice')");
    let told = ask(&mut client);
    assert!(told.contains("two") && told.contains("twice"), "{told}");
    straight.run("DROP TABLE t");
    let told = ask(&mut client);
    assert!(told.contains("42P01"), "{told}");
}

/// Tables of one name each, and where the same text is to mean something else.
const APART: &str = "\
CREATE TABLE t (id int PRIMARY KEY, a text, name text, at timestamp);
INSERT INTO t SELECT n, 'a' || n, CASE n % 3 WHEN 0 THEN 'x' WHEN 1 THEN '$$x$$' ELSE 'NULL' END, '2024-01-01' FROM generate_series(1, 20) n;
CREATE TABLE names (name text PRIMARY KEY, n int);
INSERT INTO names VALUES ('NULL', 1), ('x', 2);
CREATE TABLE spans (id int PRIMARY KEY, h interval hour, m interval minute to second, y interval year);
CREATE SCHEMA one;
CREATE TABLE one.kept (k char(5) PRIMARY KEY, v text);
CREATE SCHEMA two;
CREATE TABLE two.kept (k text PRIMARY KEY, v text);
INSERT INTO one.kept VALUES ('ab', 'of one');
INSERT INTO two.kept VALUES ('ab', 'of two'), ('ab ', 'of two, with a blank');
CREATE TABLE two.moved (id int PRIMARY KEY, v text);
INSERT INTO two.moved VALUES (1, 'of two');
CREATE COLLATION nothing_matters (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE TABLE coarse (id bigint UNIQUE, name varchar(9) UNIQUE, at timestamp UNIQUE, said text COLLATE nothing_matters, n int DEFAULT 0);
CREATE UNIQUE INDEX ON coarse (said COLLATE \"C\");
INSERT INTO coarse VALUES (9007199254740992, 'a', '2024-03-31 02:30:00', 'x'), (9007199254740993, 'a ', '2024-03-31 03:30:00', 'X');
";

fn extended(sql: &str, values: &[Option<&str>]) -> Step {
    let mut step = Step::new();
    step.parse("", sql);
    let values: Vec<_> = values
        .iter()
        .map(|value| value.map(|value| value.as_bytes().to_vec()))
        .collect();
    step.bind_raw("", &[], &values, &[]);
    step.execute("", 0);
    step.sync();
    step
}

/// What a review and attacks have found: each was told otherwise than straight.
#[test]
fn what_looks_alike_is_told_apart() {
    let (one, other) = ("apart_straight", "apart_proxied");
    let upstream = database(one);
    database(other);
    for database in [one, other] {
        Client::connect(&upstream, database, &[]).run(APART);
    }
    let proxy = front::start_in_company(&upstream, 3);
    let long = "n".repeat(70);
    let long = long.as_str();
    let mut next = 100;
    let mut id = || {
        next += 1;
        next
    };
    type Parameters = [(&'static str, &'static str)];
    let mut rounds: Vec<(&Parameters, Vec<Step>)> = Vec::new();
    // Each often enough that it is known how it is asked as one, by the first or by the next.
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(Step::query("SELECT a FROM t WHERE id = 4 AND name <> '$$x$$'"));
        all.push(Step::query("SELECT a FROM t WHERE id = 5 AND name <> '$$x$$'"));
        all.push(Step::query("SELECT a FROM t WHERE id = 4 AND name <> $$x$$"));
        all.push(Step::query("SELECT a FROM t WHERE id = 3 AND name <> $$x$$"));
        all.push(Step::query("SELECT\u{b}a FROM t WHERE id = 6 AND name <> 'y'"));
        all.push(Step::query("SELECT a FROM t WHERE id = 6 AND name <> 'y'"));
        all.push(Step::query(&format!("SELECT a AS {long} FROM t WHERE id = 6")));
        all.push(extended(
            "SELECT a FROM t WHERE id = $1 AND name ~ $2",
            &[Some("3"), Some("x")],
        ));
        all.push(extended(
            "SELECT a FROM t WHERE id = $1 AND name ~ $2",
            &[Some("99"), Some("(")],
        ));
        all.push(extended(
            "SELECT a FROM t WHERE id = $1 LIMIT $2",
            &[Some("99"), Some("-1")],
        ));
        all.push(Step::query(&format!(
            "INSERT INTO spans VALUES ({}, '5', '1:30', '2')",
            id()
        )));
        all.push(Step::query("SELECT h, m, y FROM spans ORDER BY id"));
        all.push(Step::query(&format!(
            "INSERT INTO t (id, {long}) VALUES ({}, 'x')",
            id()
        )));
    }
    rounds.push((&[], all));
    // A key is no key to a comparison that takes more for one than its own.
    let mut all = vec![Step::query("SET TimeZone = 'Europe/Berlin'")];
    for (condition, number, value) in [
        ("id = $1", 701, "9007199254740992"),
        ("name = $1", 1042, "a"),
        ("at = $1", 1184, "2024-03-31 03:30:00"),
        ("said = $1", 25, "x"),
        ("id = $1", 20, "9007199254740992"),
        ("id = $1", 1700, "9007199254740993"),
    ] {
        for text in [
            format!("UPDATE coarse SET n = n + 1 WHERE {condition}"),
            format!("SELECT id, n FROM coarse WHERE {condition}"),
        ] {
            let mut step = Step::new();
            step.parse_typed("", &text, &[number]);
            step.bind_raw("", &[], &[Some(value.as_bytes().to_vec())], &[]);
            step.execute("", 0);
            step.sync();
            all.extend(std::iter::repeat_n(step, 4));
        }
    }
    // What is prepared for all would be of the moment at which it was.
    for step in [
        extended("SELECT 'now'::timestamptz = now()", &[]),
        extended(
            "SELECT a FROM t WHERE id = $1 AND ' NOW'::timestamptz = now()",
            &[Some("3")],
        ),
        Step::query("SELECT a FROM t WHERE id = 3 AND timestamptz 'now' = now()"),
    ] {
        all.extend(std::iter::repeat_n(step, 4));
    }
    rounds.push((&[], all));
    let mut all = vec![Step::query("SET array_nulls = off")];
    for _ in 0..4 {
        all.push(extended("SELECT n FROM names WHERE name = $1", &[Some("x")]));
        all.push(extended("SELECT n FROM names WHERE name = $1", &[None]));
        let id = id().to_string();
        all.push(extended("INSERT INTO t (id, name) VALUES ($1, $2)", &[Some(&id), None]));
        all.push(Step::query("SELECT name FROM t WHERE id > 100 ORDER BY id"));
    }
    rounds.push((&[], all));
    for begins in [&[("options", "-csearch_path=one")], &[("options", "-csearch_path=two")]] {
        let ask = || extended("SELECT v FROM kept WHERE k = $1", &[Some("ab ")]);
        rounds.push((begins, (0..4).map(|_| ask()).collect()));
    }
    for (number, (begins, steps)) in rounds.iter().enumerate() {
        let mut straight = Client::connect(&upstream, one, begins);
        let mut proxied = Client::connect(&proxy, other, begins);
        play(number as u64, steps, &mut straight, &mut proxied);
    }
    // What is changed elsewhere, of which the proxy is not told.
    let insert = |id: i32| {
        Step::query(&format!(
            "INSERT INTO t (id, at) VALUES ({id}, '2020-01-01 00:00:00+00')"
        ))
    };
    let by_string = || Step::query("SELECT id FROM t WHERE id = 7 AND at = '2024-01-01 00:00:00-05'");
    let mut pair = [
        Client::connect(&upstream, one, &[]),
        Client::connect(&proxy, other, &[]),
    ];
    let mut both = |steps: &[Step]| {
        let [straight, proxied] = &mut pair;
        play(0, steps, straight, proxied);
    };
    // A table that is found first from now on.
    both(&[Step::query("SET search_path = one, two, public")]);
    let moved = || {
        [
            Step::query("SELECT v FROM moved WHERE id = 1"),
            extended("SELECT v FROM moved WHERE id = $1", &[Some("1")]),
        ]
    };
    both(&[(); 4].map(|()| moved()).concat());
    for database in [one, other] {
        Client::connect(&upstream, database, &[])
            .run("CREATE TABLE one.moved (id int PRIMARY KEY, v text);\nINSERT INTO one.moved VALUES (1, 'of one')");
    }
    both(&moved()[..1]);
    both(&[Step::query("SET search_path = public")]);
    both(&[Step::query("SET TimeZone = 'America/New_York'")]);
    for (number, change) in [
        "ALTER TABLE t ALTER at TYPE timestamptz",
        "CREATE FUNCTION public.unnest(int[]) RETURNS SETOF int LANGUAGE sql AS 'SELECT 0'",
    ]
    .into_iter()
    .enumerate()
    {
        let steps = |from: i32| -> Vec<Step> {
            let each =
                (from..from + 4).flat_map(|id| [insert(id), by_string(), Step::query("SELECT a FROM t WHERE id = 3")]);
            each.chain([Step::query("SELECT id, at FROM t WHERE id > 1000 ORDER BY id")])
                .collect()
        };
        let from = 1000 + 100 * i32::try_from(number).unwrap();
        both(&steps(from + 10));
        for database in [one, other] {
            Client::connect(&upstream, database, &[]).run(change);
        }
        both(&steps(from + 50));
    }
}
