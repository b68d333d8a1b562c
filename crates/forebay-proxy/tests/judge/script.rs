//! What a session does, made from a seed: messages of every kind, in groups that are sent together.

use std::fmt;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// What both databases begin with.
pub(crate) const SCHEMA: &str = "\
CREATE TABLE items (session int, id int, label text, amount numeric, PRIMARY KEY (session, id));
CREATE SEQUENCE counted;
CREATE FUNCTION half(n int) RETURNS int LANGUAGE sql AS 'SELECT n / 2';
CREATE TABLE later (session int, id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION remember(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM set_config(''work_mem'', (1024 + n) || ''kB'', false); RETURN n; END';
CREATE VIEW seen AS SELECT remember(7) AS n;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM set_config(''lock_timeout'', (9000 + new.id % 7) || ''ms'', false), set_config(''app.noted'', ''by '' || new.session, false); RETURN new; END';
CREATE TRIGGER noted BEFORE INSERT ON later FOR EACH ROW EXECUTE FUNCTION noted();
";

/// What others do on the same connections meanwhile.
pub(crate) const STRANGE: [&str; 14] = [
    "SET DateStyle = 'German'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET search_path = pg_catalog",
    "SET app.who = 'a stranger'; SET extra_float_digits = -15",
    "PREPARE one AS SELECT 'a stranger''s'; DEALLOCATE one",
    "SELECT set_config('app.who', 'nobody', false)",
    "BEGIN; SET LOCAL work_mem = '1MB'; SELECT 1/0",
    "ROLLBACK",
    "SET ROLE pg_read_all_data; RESET ROLE",
    "SELECT pg_advisory_lock(77); SELECT pg_advisory_unlock(77)",
    "SET standard_conforming_strings = off",
    "DISCARD ALL",
    "SELECT remember(77)",
    "TABLE seen",
];

/// Messages that are sent together.
#[derive(Clone)]
pub(crate) struct Step {
    bytes: Vec<u8>,
    /// Where the bytes are cut: each part is a write of its own.
    cuts: Vec<usize>,
    /// So many ReadyForQuery come.
    pub(crate) ready: usize,
    shown: String,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl Step {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            cuts: Vec::new(),
            ready: 0,
            shown: String::new(),
        }
    }

    pub(crate) fn query(sql: &str) -> Self {
        let mut step = Self::new();
        step.put(b'Q', &[sql.as_bytes(), &[0]], &format!("Q {sql}"));
        step.ready = 1;
        step
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain(std::iter::once(self.bytes.len()));
        begins.zip(ends).map(|(begin, end)| &self.bytes[begin..end])
    }

    fn put(&mut self, tag: u8, parts: &[&[u8]], shown: &str) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.push(tag);
        self.bytes.extend(u32::try_from(length + 4).unwrap().to_be_bytes());
        self.bytes.extend(parts.concat());
        self.shown.push_str(shown);
        self.shown.push_str(" | ");
    }

    pub(crate) fn parse(&mut self, name: &str, sql: &str) {
        let parts: [&[u8]; 4] = [name.as_bytes(), &[0], sql.as_bytes(), &[0, 0, 0]];
        self.put(b'P', &parts, &format!("P {name:?} {sql}"));
    }

    /// Values as texts, results as texts or in binary.
    pub(crate) fn bind(&mut self, portal: &str, name: &str, values: &[&str], is_binary: bool) {
        let mut body = [portal.as_bytes(), &[0], name.as_bytes(), &[0, 0, 0]].concat();
        body.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in values {
            body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
            body.extend(value.as_bytes());
        }
        body.extend(if is_binary { [0, 1, 0, 1] } else { [0, 1, 0, 0] });
        self.put(b'B', &[&body], &format!("B {portal:?} {name:?} {values:?} {is_binary}"));
    }

    /// Parameters of these types.
    pub(crate) fn parse_typed(&mut self, name: &str, sql: &str, types: &[u32]) {
        let count = u16::try_from(types.len()).unwrap().to_be_bytes();
        let types: Vec<u8> = types.iter().flat_map(|number| number.to_be_bytes()).collect();
        let parts: [&[u8]; 5] = [
            name.as_bytes(),
            &[0],
            sql.as_bytes(),
            &[0],
            &[&count[..], &types].concat(),
        ];
        self.put(b'P', &parts, &format!("P {name:?} {sql} {types:?}"));
    }

    /// Values and results in these formats.
    pub(crate) fn bind_raw(&mut self, name: &str, formats: &[u16], values: &[Option<Vec<u8>>], results: &[u16]) {
        let codes = |codes: &[u16]| -> Vec<u8> {
            let count = u16::try_from(codes.len()).unwrap();
            std::iter::once(&count)
                .chain(codes)
                .flat_map(|code| code.to_be_bytes())
                .collect()
        };
        let mut body = [&[0], name.as_bytes(), &[0], &codes(formats)].concat();
        body.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in values {
            match value {
                Some(value) => {
                    body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
                    body.extend(value);
                }
                None => body.extend(u32::MAX.to_be_bytes()),
            }
        }
        body.extend(codes(results));
        self.put(
            b'B',
            &[&body],
            &format!("B {name:?} {formats:?} {values:?} {results:?}"),
        );
    }

    pub(crate) fn named(&mut self, tag: u8, kind: u8, name: &str) {
        let shown = format!("{} {} {name:?}", char::from(tag), char::from(kind));
        self.put(tag, &[&[kind], name.as_bytes(), &[0]], &shown);
    }

    pub(crate) fn execute(&mut self, portal: &str, rows: u32) {
        let parts: [&[u8]; 3] = [portal.as_bytes(), &[0], &rows.to_be_bytes()];
        self.put(b'E', &parts, &format!("E {portal:?} {rows}"));
    }

    pub(crate) fn sync(&mut self) {
        self.put(b'S', &[], "S");
        self.ready += 1;
    }
}

/// What a session begins with and does.
pub(crate) struct Script {
    pub(crate) parameters: Vec<(&'static str, &'static str)>,
    pub(crate) steps: Vec<Step>,
}

const NAMES: [&str; 4] = ["", "one", "two", "a rather long name of a statement"];
/// By SQL, of what may have been prepared by messages.
const DEALLOCATED: [&str; 4] = [
    "DEALLOCATE one",
    "DEALLOCATE PREPARE two;",
    "/* a name in quotes */ deallocate \"a rather long name of a statement\"",
    "DEALLOCATE none",
];
const PORTALS: [&str; 3] = ["", "", "p"];

struct Maker {
    random: StdRng,
    session: usize,
    may_pin: bool,
    next_id: u32,
}

impl Script {
    pub(crate) fn new(seed: u64, session: usize, may_pin: bool, steps: usize) -> Self {
        let mut maker = Maker {
            random: StdRng::seed_from_u64(seed),
            session,
            may_pin,
            next_id: u32::try_from(seed % 1_000_000).unwrap() * 1000 + 10,
        };
        let parameters = match maker.random.random_range(0..4) {
            0 => vec![],
            1 => vec![("extra_float_digits", "0")],
            2 => vec![("DateStyle", "SQL, DMY")],
            _ => vec![("options", "-c work_mem=3MB -c app.who=me -c timezone=Europe/Berlin")],
        };
        let mut all = Vec::new();
        for _ in 0..steps {
            let mut step = maker.step();
            maker.cut(&mut step);
            all.push(step);
        }
        // So that nothing is left open.
        all.push(Step::query("ROLLBACK"));
        Self { parameters, steps: all }
    }
}

impl Maker {
    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.random.random_range(0..from.len())]
    }

    /// Now and then the bytes come in several writes, cut anywhere.
    fn cut(&mut self, step: &mut Step) {
        if self.random.random_range(0..4) == 0 {
            let count = self.random.random_range(1..4);
            step.cuts = (0..count)
                .map(|_| self.random.random_range(0..=step.bytes.len()))
                .collect();
            step.cuts.sort_unstable();
        }
    }

    fn step(&mut self) -> Step {
        match self.random.random_range(0..21) {
            0..=7 => Step::query(&self.sql()),
            8 | 9 => Step::query(&self.several()),
            10 | 11 => self.copy_in(),
            12 => Step::query(self.pick(&DEALLOCATED)),
            _ => self.pipeline(),
        }
    }

    fn several(&mut self) -> String {
        let count = self.random.random_range(2..4);
        let parts: Vec<String> = (0..count).map(|_| self.sql()).collect();
        parts.join("; ")
    }

    fn id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    fn sql(&mut self) -> String {
        let session = self.session;
        let id = self.id();
        let near = id - self.random.random_range(0..5);
        match self.random.random_range(0..if self.may_pin { 47 } else { 39 }) {
            0 | 1 => "BEGIN".into(),
            2 | 3 => "COMMIT".into(),
            4 => "ROLLBACK".into(),
            5 => "SAVEPOINT s".into(),
            6 => "ROLLBACK TO s".into(),
            7 => "RELEASE s".into(),
            8 => "SELECT 1/0".into(),
            9 => "SELECT nothing".into(),
            10 => format!("INSERT INTO items VALUES ({session}, {id}, 'l', 1.50) RETURNING id, amount"),
            11 => format!("INSERT INTO items VALUES ({session}, {near}, 'again', 2)"),
            12 => format!("UPDATE items SET amount = amount + 1 WHERE session = {session} AND id > {near}"),
            13 => format!("SELECT count(*), sum(amount) FROM items WHERE session = {session}"),
            14 => format!("DELETE FROM items WHERE session = {session} AND id = {near}"),
            15 => "SET DateStyle = 'ISO, DMY'".into(),
            16 => "SET TimeZone = 'America/New_York'".into(),
            17 => "SET LOCAL TimeZone = 'Asia/Kolkata'".into(),
            18 => "SELECT '2024-03-04 05:06:07+00'::timestamptz, '2024-03-04'::date, 1.1::float8".into(),
            19 => "SET work_mem = '5MB'; SET app.who = 'it''s me'".into(),
            // A setting that was ever set on a connection is empty there for ever, and not unknown.
            20 => "SELECT current_setting('work_mem'), coalesce(current_setting('app.who', true), '')".into(),
            21 => "RESET ALL".into(),
            22 => "SELECT set_config('app.who', 'set', false), half(9)".into(),
            23 => "SET search_path = public, pg_catalog".into(),
            24 => "DO $$BEGIN RAISE NOTICE 'told'; END$$".into(),
            25 => "COPY (SELECT generate_series(1, 3)) TO STDOUT".into(),
            26 => "SELECT repeat('x', 100000)".into(),
            27 => "SHOW application_name".into(),
            28 => "SET application_name = 'renamed'".into(),
            29 => "".into(),
            30 => "SELECT 'a\\b', current_user, session_user".into(),
            31 => format!("INSERT INTO later VALUES ({session}, {near})"),
            32 => "DECLARE c CURSOR FOR SELECT generate_series(1, 5)".into(),
            33 => "FETCH 2 FROM c".into(),
            34 => "DEALLOCATE ALL".into(),
            35 => "SELECT name, statement FROM pg_prepared_statements WHERE from_sql ORDER BY 1".into(),
            36 => format!("SELECT remember({})", near % 9),
            37 => "TABLE seen".into(),
            38 => "SELECT current_setting('work_mem'), current_setting('lock_timeout'), coalesce(current_setting('app.noted', true), '')".into(),
            39 => format!("CREATE TEMP TABLE mine (a int); INSERT INTO mine VALUES ({session})"),
            40 => "SELECT * FROM mine".into(),
            41 => "DROP TABLE mine".into(),
            42 => "DECLARE h CURSOR WITH HOLD FOR SELECT generate_series(1, 4)".into(),
            43 => "FETCH 1 FROM h".into(),
            44 => format!("LISTEN mine_{session}; NOTIFY mine_{session}, 'x'"),
            45 => "PREPARE made AS SELECT 'made'; EXECUTE made".into(),
            _ => "DISCARD ALL".into(),
        }
    }

    fn copy_in(&mut self) -> Step {
        let (session, id) = (self.session, self.id());
        let rows = match self.random.random_range(0..4) {
            // Bad in the middle.
            0 => format!("{session}\t{id}\tok\t1\n{session}\tbad\tx\t1\n"),
            _ => format!("{session}\t{id}\tcopied\t1\n{session}\t{}\tcopied\t2\n", self.id()),
        };
        let end = self.random.random_range(0..5);
        let mut step = Step::new();
        step.put(b'Q', &[b"COPY items FROM STDIN\0"], "Q COPY items FROM STDIN");
        for row in rows.split_inclusive('\n') {
            step.put(b'd', &[row.as_bytes()], &format!("d {row:?}"));
        }
        if end == 0 {
            step.put(b'f', &[b"given up\0"], "f");
        } else {
            step.put(b'c', &[], "c");
        }
        step.ready = 1;
        step
    }

    /// Messages of the extended protocol, in one to three groups that end with a Sync.
    fn pipeline(&mut self) -> Step {
        let mut step = Step::new();
        for _ in 0..self.random.random_range(1..4) {
            for _ in 0..self.random.random_range(1..4) {
                self.messages(&mut step);
            }
            step.sync();
        }
        step
    }

    fn messages(&mut self, step: &mut Step) {
        let (name, portal) = (self.pick(&NAMES), self.pick(&PORTALS));
        let is_binary = self.random.random_range(0..3) == 0;
        match self.random.random_range(0..13) {
            0..=2 => {
                let mut sql = self.sql();
                if sql.starts_with("DEALLOCATE") || sql.starts_with("DISCARD") {
                    sql = "SELECT 5".into();
                }
                step.parse(name, &sql);
                if self.random.random() {
                    step.named(b'D', b'S', name);
                }
            }
            3 | 4 => {
                step.parse(name, "SELECT $1::text || 'x', $2::int + 1");
                step.bind(portal, name, &["a", "41"], is_binary);
                step.execute(portal, 0);
            }
            5..=7 => {
                step.bind(portal, name, &[], is_binary);
                if self.random.random() {
                    step.named(b'D', b'P', portal);
                }
                step.execute(portal, self.random.random_range(0..3));
            }
            8 => {
                step.bind(portal, name, &["b", "1"], false);
                step.execute(portal, 1);
            }
            9 => step.named(b'C', if self.random.random() { b'S' } else { b'P' }, name),
            10 => step.named(b'D', b'S', name),
            11 => {
                step.parse(name, self.pick(&DEALLOCATED));
                step.bind(portal, name, &[], false);
                step.execute(portal, 0);
            }
            _ => {
                step.parse("", "SELECT generate_series(1, 4)");
                step.bind(portal, "", &[], is_binary);
                step.execute(portal, 2);
                step.execute(portal, 0);
            }
        }
    }
}
