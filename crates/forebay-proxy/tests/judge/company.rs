//! Sessions of what travels in company: each its own rows of tables that all share, straight and through the proxy, byte by byte.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::script::Step;
use crate::{database, front, play_at_once, seeds};

/// What may be shared, and beside it what may not: what a neighbour could tell of it is in the answers.
const SCHEMA: &str = "\
CREATE TYPE mood AS ENUM ('calm', 'stormy');
CREATE TABLE wares (session int, id int, label text NOT NULL CHECK (label <> 'bad'), amount numeric(10, 2) DEFAULT 1.5, mood mood DEFAULT 'calm', half int GENERATED ALWAYS AS (id / 2) STORED, made timestamptz DEFAULT '2024-02-03 04:05:06+00', PRIMARY KEY (session, id), UNIQUE (session, label));
CREATE TABLE parts (session int, ware int, n int DEFAULT 7, at timestamptz DEFAULT now(), FOREIGN KEY (session, ware) REFERENCES wares);
CREATE TABLE slow_parts (session int, ware int, FOREIGN KEY (session, ware) REFERENCES wares ON DELETE CASCADE);
CREATE TABLE audited (session int, id int, mark text);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.mark := coalesce(current_setting(''app.who'', true), '''') || coalesce(current_setting(''app.seen'', true), ''''); PERFORM set_config(''app.seen'', new.id::text, true); RETURN new; END';
CREATE TRIGGER audit BEFORE INSERT ON audited FOR EACH ROW EXECUTE FUNCTION audit();
CREATE TABLE deferred (session int, id int, CONSTRAINT one UNIQUE (session, id) DEFERRABLE INITIALLY DEFERRED);
CREATE VIEW shown AS SELECT session, id, label FROM wares;
CREATE FUNCTION doubled(ware wares) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1.id';
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * n';
";

/// Statements: `$s` is the session, other parameters are a number or a text each. How far one gets that fails must not hang on its plan:
/// one that others have executed often enough is planned without its parameters, with or without company.
#[rustfmt::skip]
const TEXTS: [(&str, &[Value]); 33] = [
    ("INSERT INTO wares (session, id, label) VALUES ($s, $1, $2)", &[Value::Id, Value::Label]),
    ("INSERT INTO wares (session, id, label, amount) VALUES ($s, $1, $2, $3) RETURNING id, label, amount, half", &[Value::Id, Value::Label, Value::Number]),
    ("INSERT INTO wares (session, id, label) VALUES ($s, $1, 'bad')", &[Value::Id]),
    ("INSERT INTO wares (session, id, label) VALUES ($s, $1, $2) ON CONFLICT (session, id) DO UPDATE SET label = excluded.label, amount = wares.amount + 1 RETURNING id, label, amount", &[Value::Id, Value::Label]),
    ("INSERT INTO wares (session, id, label, made) VALUES ($s, $1, $2, '2024-03-04 05:06:07+00') ON CONFLICT DO NOTHING RETURNING made", &[Value::Id, Value::Label]),
    ("INSERT INTO wares (session, id, label, mood) VALUES ($s, $1, $2, 'stormy'), ($s, $1 + 1000, $2 || 'x', DEFAULT)", &[Value::Id, Value::Label]),
    ("INSERT INTO wares (session, id) VALUES ($s, $1)", &[Value::Id]),
    ("INSERT INTO wares (session, id, label, nothing) VALUES ($s, $1, 'x', 1)", &[Value::Id]),
    ("INSERT INTO wares VALUES ($s, $1, $2, $3)", &[Value::Id, Value::Label, Value::Number]),
    ("INSERT INTO parts (session, ware) VALUES ($s, $1)", &[Value::Id]),
    ("UPDATE wares SET amount = amount + $2 WHERE session = $s AND id = $1", &[Value::Id, Value::Number]),
    ("UPDATE parts SET n = n + $2 WHERE session = $s AND ware = $1 RETURNING n", &[Value::Id, Value::Id]),
    ("UPDATE parts SET n = 1 / (ware - 3) WHERE session = $s AND ware = $1", &[Value::Id]),
    ("DELETE FROM wares WHERE session = $s AND id = $1", &[Value::Id]),
    ("DELETE FROM parts WHERE session = $s AND ware = $1 RETURNING n", &[Value::Id]),
    ("SELECT id, label, amount, mood FROM wares WHERE session = $s AND id = $1", &[Value::Id]),
    ("SELECT count(*), sum(amount), max(label) FROM wares WHERE session = $s", &[]),
    ("SELECT w.id, p.n FROM wares w LEFT JOIN parts p ON p.session = w.session AND p.ware = w.id WHERE w.session = $s ORDER BY w.id, p.n LIMIT 5", &[]),
    ("SELECT 10 / (id - 3), upper($2) FROM wares WHERE session = $s AND id = $1", &[Value::Id, Value::Label]),
    ("SELECT id FROM wares WHERE session = $s AND label LIKE $1 || '%' ORDER BY 1", &[Value::Label]),
    ("SELECT nothing FROM wares", &[]),
    ("SELECT made, made::date FROM wares WHERE session = $s AND made < '2024-06-01' ORDER BY id", &[]),
    ("SELECT repeat($1, 40000)", &[Value::Label]),
    ("INSERT INTO audited (session, id) VALUES ($s, $1) RETURNING mark", &[Value::Id]),
    ("INSERT INTO deferred VALUES ($s, $1)", &[Value::Id]),
    ("SELECT id, label FROM shown WHERE session = $s ORDER BY id", &[]),
    ("SELECT twice($1)", &[Value::Id]),
    ("SELECT id FROM wares WHERE session = $s AND id = $1 FOR UPDATE", &[Value::Id]),
    ("INSERT INTO slow_parts VALUES ($s, $1)", &[Value::Id]),
    ("MERGE INTO parts p USING (VALUES ($1::int, $2::int)) AS v(ware, n) ON p.session = $s AND p.ware = v.ware WHEN MATCHED AND v.n = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET n = p.n + v.n WHEN NOT MATCHED THEN INSERT (session, ware, n) VALUES ($s, v.ware, v.n)", &[Value::Id, Value::Id]),
    ("MERGE INTO parts p USING wares w ON p.session = w.session AND p.session = $s AND p.ware = $1 WHEN MATCHED THEN DELETE", &[Value::Id]),
    ("VALUES ($1, $2)", &[Value::Id, Value::Label]),
    ("SELECT w.doubled FROM wares w WHERE session = $s AND id = $1", &[Value::Id]),
];

/// What goes between, and goes alone.
const BETWEEN: [&str; 9] = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET app.who = 'somebody'",
    "RESET ALL",
    "SET DateStyle = 'German'",
    "SELECT current_setting('TimeZone')",
    "SET search_path = public",
];

#[derive(Clone, Copy)]
enum Value {
    Id,
    Label,
    Number,
}

const SESSIONS: usize = 16;
const STEPS: usize = 150;

fn script(seed: u64, session: usize) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = Vec::new();
    for (number, (text, _)) in TEXTS.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
        let mut step = Step::new();
        step.parse(&format!("s{number}"), &text.replace("$s", &session.to_string()));
        step.sync();
        steps.push(step);
    }
    for _ in 0..STEPS {
        if random.random_range(0..12) == 0 {
            steps.push(Step::query(BETWEEN[random.random_range(0..BETWEEN.len())]));
            continue;
        }
        if random.random_range(0..12) == 0 {
            // What was prepared last without a name, if anything was.
            let mut step = Step::new();
            step.bind("", "", &["3"], false);
            step.execute("", 0);
            step.sync();
            steps.push(step);
            continue;
        }
        let number = random.random_range(0..TEXTS.len());
        let (text, kinds) = TEXTS[number];
        let text = text.replace("$s", &session.to_string());
        let values: Vec<String> = kinds
            .iter()
            .map(|kind| match kind {
                Value::Id => random.random_range(0..12).to_string(),
                Value::Label => ["a", "b", "it's", "long enough", "Ü"][random.random_range(0..5)].to_owned(),
                Value::Number => ["1", "2.25", "99999999.99"][random.random_range(0..3)].to_owned(),
            })
            .collect();
        steps.push(match random.random_range(0..4) {
            0 => in_a_text(&text, kinds, &values),
            form => by_messages(number, &text, &values, form, random.random()),
        });
    }
    steps.push(Step::query("ROLLBACK"));
    steps
}

fn in_a_text(text: &str, kinds: &[Value], values: &[String]) -> Step {
    let mut text = text.to_owned();
    for (at, (kind, value)) in kinds.iter().zip(values).enumerate() {
        let literal = match kind {
            Value::Label => format!("'{}'", value.replace('\'', "''")),
            Value::Id | Value::Number => value.clone(),
        };
        text = text.replace(&format!("${}", at + 1), &literal);
    }
    Step::query(&text)
}

fn by_messages(number: usize, text: &str, values: &[String], form: usize, is_binary: bool) -> Step {
    let mut step = Step::new();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let name = match form {
        1 if number.is_multiple_of(2) => format!("s{number}"),
        _ => String::new(),
    };
    // What has no name is prepared each time.
    if name.is_empty() {
        step.parse("", text);
    }
    if form == 2 {
        step.named(b'D', b'S', "");
    }
    step.bind("", &name, &values, is_binary);
    if form != 2 {
        step.named(b'D', b'P', "");
    }
    step.execute("", 0);
    step.sync();
    step
}

#[test]
fn nobody_can_tell_who_travels_with_whom() {
    let (one, other) = ("wares_straight", "wares_proxied");
    let upstream = database(one);
    database(other);
    for database in [one, other] {
        Client::connect(&upstream, database, &[]).run(SCHEMA);
    }
    let proxy = front::start_in_company(&upstream, 6);
    for seed in seeds(6) {
        for database in [one, other] {
            Client::connect(&upstream, database, &[]).run("TRUNCATE wares, parts, slow_parts, audited, deferred");
        }
        play_at_once(seed, SESSIONS, (&upstream, one), (&proxy, other), script);
    }
    // It was not only compared: it did travel, and what must not did not.
    let travelled = |text: &str| travelled(&proxy, other, text);
    for begins in [
        "INSERT INTO wares",
        "UPDATE parts",
        "MERGE INTO parts p USING (VALUES",
        "SELECT id, label",
        "SELECT count(*)",
    ] {
        assert!(travelled(begins) > 0, "{begins} did not travel");
    }
    for begins in [
        "INSERT INTO audited",
        "INSERT INTO deferred",
        "FROM shown",
        "MERGE INTO parts p USING wares",
        "SELECT twice",
        "SELECT w.doubled",
        "FOR UPDATE",
        "DELETE FROM wares",
    ] {
        assert_eq!(travelled(begins), 0, "{begins} did travel");
    }
}

/// How often statements have travelled whose texts have this in them.
fn travelled(proxy: &str, database: &str, text: &str) -> u32 {
    let mut admin = Client::connect(proxy, database, &[front::ADMIN]);
    let rows = admin.rows("SHOW FOREBAY SHARING");
    let has_it = |row: &&Vec<Option<String>>| row[2].as_deref().is_some_and(|shown| shown.contains(text));
    let times = |row: &Vec<Option<String>>| row[3].as_deref().unwrap_or("0").parse::<u32>().unwrap();
    rows.iter().filter(has_it).map(times).sum()
}

#[test]
fn what_is_done_to_a_table_elsewhere_is_seen_before_the_commit() {
    let name = "edge_mark";
    let upstream = database(name);
    let proxy = front::start_in_company(&upstream, 4);
    let mut straight = Client::connect(&upstream, name, &[]);
    straight.run(
        "CREATE TABLE t (a int);\nCREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
    );
    let mut client = Client::connect(&proxy, name, &[]);
    let insert = Step::query("INSERT INTO t VALUES (1)");
    let begins = "INSERT INTO t VALUES (?)";
    let begun = Instant::now();
    while travelled(&proxy, name, begins) < 3 {
        assert!(client.ask(&insert).contains("INSERT 0 1"));
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not travel");
    }
    for done in [
        "CREATE TRIGGER mark BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION mark()",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE t ADD CONSTRAINT later UNIQUE (a) DEFERRABLE INITIALLY DEFERRED",
    ] {
        straight.run("DELETE FROM t WHERE ctid <> (SELECT min(ctid) FROM t)");
        let before = travelled(&proxy, name, begins);
        straight.run(done);
        client.ask(&insert);
        assert_eq!(travelled(&proxy, name, begins), before, "behind {done}");
        // So that it travels again.
        straight.run("DROP TRIGGER IF EXISTS mark ON t;\nALTER TABLE t DISABLE ROW LEVEL SECURITY;\nALTER TABLE t DROP CONSTRAINT IF EXISTS later");
        // What was refused is asked again behind a change through the proxy.
        client.run("CREATE TABLE other (a int);\nDROP TABLE other");
        let begun = Instant::now();
        while travelled(&proxy, name, begins) == before {
            client.ask(&insert);
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not travel again");
        }
    }
}
