//! What is told from memory, judged byte by byte by the PostgreSQL that would have answered: to users of unlike rights and settings, who ask the same
//! texts in unlike ways, by generated cases.
//!
//! For longer, and again: `FOREBAY_JUDGED_ROUNDS`, `FOREBAY_JUDGED_SEED`.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::Postgres;

use crate::client::{Answer, Client, Message, bind_raw, describe, execute, flush, parse_typed};
use crate::memory::{bytes, remembered};
use crate::reload::Reloadable;
use crate::{as_user, at, started, straight};

/// Two schemas whose tables have the same names; rows that are some users' own, or some tenant's.
const PLACE: &[&str] = &[
    "CREATE ROLE judged_one LOGIN",
    "CREATE ROLE judged_two LOGIN",
    "CREATE ROLE judged_many NOLOGIN",
    "GRANT judged_many TO judged_one, judged_two",
    "ALTER ROLE judged_two SET search_path = judged_b",
    "CREATE SCHEMA judged_a",
    "CREATE SCHEMA judged_b",
    "GRANT USAGE ON SCHEMA judged_a TO judged_one, judged_two, judged_many",
    "GRANT USAGE ON SCHEMA judged_b TO judged_two, judged_many",
    "CREATE TYPE judged_mood AS ENUM ('sad', 'glad')",
    "CREATE TABLE judged_a.things AS SELECT n AS id, n * 1.50 AS amount, n / 3::float8 AS part, \
     timestamptz '2020-02-29 12:00:00.123456+00' + n * interval '37 hours' AS at, n * interval '1 month 3 days 04:05:06.7' AS span, \
     decode(repeat('00ff', n), 'hex') AS raw, CASE n % 5 WHEN 0 THEN NULL ELSE repeat('ä\u{20ac}', n) END AS t, \
     (ARRAY['sad', 'glad'])[1 + n % 2]::judged_mood AS mood, ARRAY[n, NULL, -n] AS list, jsonb_build_object('n', n) AS doc, \
     date '1999-12-31' + n AS day, n::text::money AS price, n % 3 = 0 AS is_third FROM generate_series(1, 20) n",
    "CREATE TABLE judged_b.things AS SELECT id, amount + 1000 AS amount, part, at, span, raw, t, mood, list, doc, day, price, is_third \
     FROM judged_a.things WHERE id <= 12",
    "ALTER TABLE judged_a.things ADD PRIMARY KEY (id)",
    "ALTER TABLE judged_b.things ADD PRIMARY KEY (id)",
    "GRANT SELECT ON judged_a.things TO judged_one, judged_two",
    "GRANT SELECT ON judged_b.things TO judged_many",
    "CREATE TABLE judged_a.owned AS SELECT n AS id, (ARRAY['judged_one', 'judged_two', 'judged_many', 'postgres'])[1 + n % 4] AS owner, \
     n % 3 AS tenant FROM generate_series(1, 24) n",
    "ALTER TABLE judged_a.owned ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "CREATE POLICY own ON judged_a.owned USING (owner = current_user OR tenant = nullif(current_setting('app.tenant', true), '')::int)",
    "GRANT SELECT ON judged_a.owned TO judged_one, judged_two, judged_many",
    "CREATE VIEW judged_a.seen AS SELECT t.id, t.amount, o.owner FROM judged_a.things t JOIN judged_a.owned o USING (id)",
    "CREATE VIEW judged_a.own_seen WITH (security_invoker = true) AS SELECT id, owner, tenant FROM judged_a.owned",
    "GRANT SELECT ON judged_a.seen, judged_a.own_seen TO judged_one, judged_two, judged_many",
    "CREATE FUNCTION judged_a.counted(above int) RETURNS bigint STABLE LANGUAGE sql AS \
     'SELECT count(*) FROM judged_a.owned WHERE id > above'",
    "ANALYZE judged_a.things",
];

const SETTINGS: &[&str] = &[
    "SET search_path = judged_a",
    "SET search_path = judged_b",
    "SET search_path = judged_b, judged_a",
    "SET timezone = 'Asia/Tokyo'",
    "SET timezone = 'America/New_York'",
    "SET datestyle = 'German'",
    "SET datestyle = 'SQL, DMY'",
    "SET intervalstyle = 'iso_8601'",
    "SET bytea_output = 'escape'",
    "SET extra_float_digits = 0",
    "SET app.tenant = '1'",
    "SET app.tenant = '2'",
    "SET ROLE judged_many",
    "SET ROLE judged_one",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET row_security = off",
    "SELECT set_config('app.tenant', '1', false)",
    "SET client_encoding = 'UTF8'",
    "RESET ROLE",
    "RESET search_path",
    "RESET ALL",
    "RESET ALL",
    "RESET ALL",
    "RESET ALL",
    "DISCARD ALL",
    "DISCARD ALL",
];

/// With a parameter, a number.
const READS: &[&str] = &[
    "SELECT * FROM things WHERE id = $1",
    "SELECT amount, part, at FROM things WHERE id <= $1 ORDER BY id",
    "SELECT span, raw, t FROM judged_a.things WHERE id = $1",
    "SELECT mood, list, doc, day, price FROM things WHERE id > $1 ORDER BY id DESC",
    "SELECT count(*), sum(amount), min(at), max(span) FROM things WHERE id < $1",
    "SELECT is_third, string_agg(t, ',' ORDER BY id) FROM things WHERE id <> $1 GROUP BY is_third ORDER BY 1",
    "SELECT amount FROM judged_b.things WHERE id = $1",
    "SELECT owner, tenant FROM judged_a.owned WHERE id > $1 ORDER BY id",
    "SELECT count(*) FROM owned WHERE tenant <> $1",
    "SELECT current_user, session_user, id FROM things WHERE id = $1",
    "SELECT coalesce(current_setting('app.tenant', true), ''), id FROM things WHERE id = $1",
    "SELECT amount, owner FROM judged_a.seen WHERE id > $1 ORDER BY id",
    "SELECT owner, tenant FROM judged_a.own_seen WHERE id > $1 ORDER BY id",
    "SELECT judged_a.counted(id) FROM things WHERE id = $1",
    "SELECT judged_a.counted(id), at < now() FROM seen JOIN things USING (id) WHERE id > $1 ORDER BY id",
    "SELECT id / ($1 - 3) FROM things WHERE id = 7",
    "SELECT t::int FROM things WHERE id = $1",
    "SELECT id, 'it''s', E'a\\\\b' FROM things WHERE id = $1",
];

/// One thing that is asked.
type Ask = Box<dyn Fn(&mut Client) -> Answer>;

/// A client of the proxy, and one of the database that is told the same.
struct Pair {
    client: Client,
    server: Client,
    in_transaction: bool,
}

impl Pair {
    /// What both are told.
    fn ask(&mut self, mut ask: impl FnMut(&mut Client) -> Answer) -> (Answer, Answer) {
        (ask(&mut self.client), ask(&mut self.server))
    }
}

/// A read, in one of the ways that clients ask it.
fn read(random: &mut StdRng) -> (String, Ask) {
    let text = READS[random.random_range(0..READS.len())];
    let hint = ["", "/* ttl:3600 */ ", "/* ttl:3600 file:app.php line:7 */ "][random.random_range(0..3)];
    let value: u32 = random.random_range(2..4);
    let type_of = [0_u32, 20][random.random_range(0..2)];
    let is_binary = type_of != 0 && random.random_bool(0.5);
    let results: Vec<u16> = if random.random_bool(0.5) { vec![] } else { vec![1] };
    let is_described = random.random_bool(0.7);
    if random.random_bool(0.4) {
        let text = format!("{hint}{}", text.replace("$1", &value.to_string()));
        return (text.clone(), Box::new(move |client| client.query(&text)));
    }
    let text = format!("{hint}{text}");
    let bytes = match (is_binary, type_of) {
        (true, 20) => u64::from(value).to_be_bytes().to_vec(),
        (true, _) => value.to_be_bytes().to_vec(),
        _ => value.to_string().into_bytes(),
    };
    // As drivers ask that want the description before they bind; some prepare the same once more behind that.
    let is_described_before = random.random_bool(0.25);
    let is_prepared_again = !is_described_before || random.random_bool(0.5);
    let rows_max = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2][random.random_range(0..10)];
    let goes_on = rows_max > 0 && random.random_bool(0.2);
    let shown = format!(
        "{text} ({value} of {type_of}, binary: {is_binary}, results {results:?}, described {is_described} before {is_described_before}, \
         again {is_prepared_again}, rows {rows_max}, goes on {goes_on})"
    );
    let ask = move |client: &mut Client| {
        let prepare = || parse_typed("", &text, &[type_of]);
        let mut before = Vec::new();
        if is_described_before {
            client.send(&[prepare(), describe(b'S', ""), flush()].concat());
            while before
                .last()
                .is_none_or(|last: &Message| !matches!(last.kind, b'T' | b'n' | b'E'))
            {
                before.push(client.read().expect("an answer"));
            }
        }
        let mut messages = Vec::new();
        messages.extend(is_prepared_again.then(prepare));
        messages.push(bind_raw("", "", &[u16::from(is_binary)], &[Some(&bytes)], &results));
        messages.extend(is_described.then(|| describe(b'P', "")));
        messages.push(execute("", rows_max));
        let mut answer = client.pipeline(&messages);
        answer.messages.splice(0..0, before);
        // A portal that is left in a transaction that has failed can end PostgreSQL 15 itself.
        if goes_on && answer.status != 'E' {
            answer.messages.extend(client.pipeline(&[execute("", 0)]).messages);
        }
        answer
    };
    (shown, Box::new(ask))
}

#[test]
fn what_is_told_from_memory_is_what_the_database_would_have_sent() {
    let set = |name| {
        std::env::var(name)
            .ok()
            .map(|set| set.parse::<u64>().expect("a number"))
    };
    let seed = set("FOREBAY_JUDGED_SEED").unwrap_or_else(rand::random);
    println!("FOREBAY_JUDGED_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = set("FOREBAY_JUDGED_ROUNDS").unwrap_or(600);
    let database: Postgres = started();
    let mut owner = straight(&database);
    for sql in PLACE {
        owner.query(sql).expect(sql);
    }
    let rule = "[[rule]]\nname = \"all\"\nfresh = \"1h\"\nin_transactions = true\nrow_security = true\nstable_functions = true\n";
    let upstream = format!("upstream = \"postgresql://{}/postgres\"", database.address());
    let lines = format!("{upstream}\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\n{rule}");
    let reloadable = Reloadable::start(&lines, &[]);
    let address = reloadable.proxy.address();
    let mut admin = at(address);
    let mut pairs: Vec<Pair> = [
        "postgres",
        "judged_one",
        "judged_two",
        "judged_one",
        "judged_two",
        "judged_two",
    ]
    .map(|user| Pair {
        client: as_user(address, user).unwrap(),
        server: as_user(database.address(), user).unwrap(),
        in_transaction: false,
    })
    .into();
    let mut log = Vec::new();
    let mut asked = 0;
    for round in 0..rounds {
        let number = random.random_range(0..pairs.len());
        let step = random.random_range(0..100);
        let (shown, ask): (String, Ask) = match step {
            0..5 => {
                let local = if step < 1 { "SET LOCAL" } else { "SET" };
                let setting = SETTINGS[random.random_range(0..SETTINGS.len())];
                let text = match setting.strip_prefix("SET ") {
                    Some(rest) if !rest.starts_with("SESSION") => format!("{local} {rest}"),
                    _ => setting.to_owned(),
                };
                (text.clone(), Box::new(move |client| client.query(&text)))
            }
            5..15 => {
                let text = match (pairs[number].in_transaction, step) {
                    (true, 5..10) => "COMMIT",
                    (true, _) => "ROLLBACK",
                    (false, 5) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
                    (false, _) => "BEGIN",
                };
                pairs[number].in_transaction = text.starts_with("BEGIN");
                (text.to_owned(), Box::new(move |client| client.query(text)))
            }
            _ => read(&mut random),
        };
        // What is read is read by all, some twice, for whom it may be another thing.
        let who = if step < 15 {
            vec![number]
        } else {
            (0..pairs.len()).chain([number, number]).collect()
        };
        for number in who {
            let (told, wanted) = pairs[number].ask(|client| ask(client));
            asked += u64::from(step >= 15);
            log.push(format!("{number}: {shown}"));
            let same = (bytes(&told), told.status) == (bytes(&wanted), wanted.status);
            assert!(
                same,
                "round {round}: {}\nwas told {:?} {:?}\nwanted {:?} {:?}",
                log[log.len().saturating_sub(60)..].join("\n"),
                told.rows(),
                told.error(),
                wanted.rows(),
                wanted.error()
            );
        }
    }
    let count = remembered(&mut admin, "").0;
    println!("{count} of {asked} answers were told from memory");
    assert!(count > asked / 20, "{count} of {asked} answers were told from memory");
}
