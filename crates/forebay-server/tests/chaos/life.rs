//! One client: what it asks, at random, and what it must be told.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr};

use rand::Rng;
use rand::rngs::StdRng;

use crate::client::{Answer, Client, Message, bind, close, execute, message, parse, query, startup, sync};
use crate::fates::{Fate, Fates, text};

/// What a lost connection is told, or nothing: ended by an administrator, by a crash, not ready yet, gone.
const LAST_WORDS: [&str; 5] = ["57P01", "57P02", "57P03", "08006", "08003"];

/// Where all live.
#[derive(Clone, Copy)]
pub(crate) struct World {
    /// Of the proxy.
    pub(crate) address: SocketAddr,
    /// Connections may be lost.
    pub(crate) is_stormy: bool,
}

/// The connection was lost, as it may be.
#[derive(Debug)]
pub(crate) struct Lost;

impl World {
    pub(crate) fn connect(self, who: &[(&str, &str)]) -> Result<Client, Lost> {
        let mut client = Client::raw(self.address);
        let _ = client.stream.write_all(&startup(who));
        let answer = client.try_answer().map_err(|ended| lost(self, ended))?;
        let key = answer
            .messages
            .iter()
            .find(|message| message.kind == b'K')
            .expect("a key");
        client.process = i32::from_be_bytes(key.body[..4].try_into().unwrap());
        client.secret = key.body[4..].to_vec();
        Ok(client)
    }
}

/// A client, through all of its connections.
pub(crate) struct Life {
    pub(crate) number: u64,
    pub(crate) fates: Fates,
    /// Steps that came to their end.
    pub(crate) done: u64,
    world: World,
    rng: StdRng,
    asked: u64,
}

/// What is true of one connection.
#[derive(Default)]
struct Session {
    /// Settings that it has made.
    settings: BTreeMap<&'static str, String>,
    /// What it has prepared, and what that answers.
    prepared: BTreeMap<String, String>,
    /// The open transaction and its savepoints, the last one last; none outside of one.
    pending: Option<Vec<Pending>>,
    has_temporary: bool,
}

/// What may be rolled back.
#[derive(Default)]
struct Pending {
    rows: Vec<u64>,
    /// Settings as they were before.
    settings: BTreeMap<&'static str, String>,
}

impl Session {
    /// From here on all may be rolled back.
    fn mark(&self) -> Pending {
        Pending {
            rows: Vec::new(),
            settings: self.settings.clone(),
        }
    }

    /// The rows of the transaction that ends.
    fn end(&mut self) -> Vec<u64> {
        let all = self.pending.take().unwrap_or_default();
        all.into_iter().flat_map(|pending| pending.rows).collect()
    }
}

impl Life {
    pub(crate) fn new(world: World, number: u64, rng: StdRng) -> Self {
        Self {
            number,
            fates: Fates::default(),
            done: 0,
            world,
            rng,
            asked: 0,
        }
    }

    /// One connection, from its beginning to its end; how many steps it took.
    pub(crate) fn live(&mut self, is_over: impl Fn(usize) -> bool) -> usize {
        let name = format!("client {}", self.number);
        let who = [
            ("user", "postgres"),
            ("database", "postgres"),
            ("application_name", &*name),
        ];
        let mut client = match self.world.connect(&who) {
            Ok(client) => client,
            Err(Lost) => return 0,
        };
        let mut session = Session::default();
        session.settings.insert("application_name", name);
        session.settings.insert("work_mem", "4MB".to_owned());
        let mut steps = 0;
        loop {
            steps += 1;
            let ends = is_over(steps) || self.rng.random_ratio(1, 25);
            let lived = if ends {
                Err(Lost)
            } else {
                self.step(&mut client, &mut session)
            };
            match lived {
                Ok(()) => self.done += 1,
                Err(Lost) => {
                    if ends {
                        self.leave(client, &session);
                    }
                    // What was not committed is not there; what was being committed says so itself.
                    self.fates.set(session.end(), Fate::Absent);
                    return steps;
                }
            }
        }
    }

    /// Goes: politely, at once, or in the middle of something.
    fn leave(&mut self, mut client: Client, session: &Session) {
        match self.rng.random_range(0..3) {
            0 => client.send(&message(b'X', &[])),
            1 => {}
            _ => {
                // Where a transaction is open its end is not among it.
                let row = self.fates.begin();
                let words = match session.pending {
                    Some(_) => {
                        self.fates.set([row], Fate::Absent);
                        [query(&self.insert(row)), parse("", "SELECT 1"), sync()].concat()
                    }
                    None => [query(&self.insert(row)), query("SELECT pg_sleep(0.01)"), query("BEGIN")].concat(),
                };
                let end = self.rng.random_range(0..words.len());
                client.send(&words[..end]);
            }
        }
        if self.rng.random_ratio(1, 2) {
            let _ = client.stream.shutdown(Shutdown::Both);
        }
    }

    fn insert(&self, row: u64) -> String {
        let text = text(self.number, row);
        format!("INSERT INTO chaos VALUES ({}, {row}, '{text}')", self.number)
    }

    /// A text that nobody else has, and this one has only once.
    fn own(&mut self) -> String {
        self.asked += 1;
        format!("{} asks {}", self.number, self.asked)
    }

    fn step(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        match self.rng.random_range(0..16) {
            0..3 => self.asks(client),
            3 => self.sets(client, session),
            4 => self.prepares(client, session),
            5 => self.runs_prepared(client, session),
            6..8 => self.begins_or_ends(client, session),
            8..10 => self.writes(client, session),
            10 => self.fails(client, session),
            11 => self.pipelines(client, session),
            12 => self.copies(client, session),
            13 => self.cancels(client, session),
            14 => self.keeps(client, session),
            _ => self.counts(client),
        }?;
        Ok(())
    }

    fn answer(&self, client: &mut Client) -> Result<Answer, Lost> {
        client.try_answer().map_err(|ended| lost(self.world, ended))
    }

    fn query(&self, client: &mut Client, sql: &str) -> Result<Answer, Lost> {
        client.send(&query(sql));
        self.answer(client)
    }

    /// The answer to what must succeed.
    fn run(&self, client: &mut Client, sql: &str) -> Result<Answer, Lost> {
        Ok(self.query(client, sql)?.expect(sql))
    }

    fn asks(&mut self, client: &mut Client) -> Result<(), Lost> {
        let own = self.own();
        let many = if self.rng.random_ratio(1, 10) { 3000 } else { 1 };
        let answer = self.run(client, &format!("SELECT '{own}' FROM generate_series(1, {many})"))?;
        let rows = answer.rows();
        assert_eq!(rows.len(), many);
        assert!(rows.iter().all(|row| row[0].as_ref() == Some(&own)), "{own}: {rows:?}");
        Ok(())
    }

    fn sets(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        if self.rng.random_ratio(1, 2) {
            // An odd number of kilobytes is shown as one.
            let (name, value) = match self.rng.random_range(0..3) {
                0 => (
                    "work_mem",
                    format!("{}kB", 65 + self.number * 20 + 2 * self.rng.random_range(0..10)),
                ),
                1 => ("application_name", self.own()),
                _ => ("app.me", self.own()),
            };
            let local = session.pending.is_some() && self.rng.random_ratio(1, 4);
            if local {
                // It holds to the end of the transaction, as all that is set in one that is rolled back.
                self.run(client, &format!("SET LOCAL {name} = '{value}'"))?;
                let shown = self.run(client, &format!("SHOW {name}"))?.value();
                assert_eq!(shown, Some(value));
                let before = session.settings.get(name).cloned().unwrap_or_default();
                self.run(client, &format!("SET LOCAL {name} = '{before}'"))?;
            } else {
                self.run(client, &format!("SET {name} = '{value}'"))?;
                session.settings.insert(name, value);
            }
        }
        for (name, value) in &session.settings {
            let shown = self.run(client, &format!("SHOW {name}"))?.value();
            assert_eq!(shown.as_ref(), Some(value), "{name} of {}", self.number);
        }
        Ok(())
    }

    fn prepares(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        // Names that others use, too.
        let name = format!("s{}", self.rng.random_range(0..6));
        let forgotten = session.prepared.remove(&name).is_some();
        let own = self.own();
        // Some texts are everybody's: what was prepared for another is then used.
        let sql = match self.rng.random_ratio(1, 2) {
            true => format!("SELECT '{own}' || $1"),
            false => "SELECT $1::text || current_setting('application_name')".to_owned(),
        };
        let mut messages = if forgotten { close(b'S', &name) } else { Vec::new() };
        messages.extend(parse(&name, &sql));
        messages.extend(sync());
        client.send(&messages);
        self.answer(client)?.expect(&sql);
        session
            .prepared
            .insert(name, if sql.contains(&own) { own } else { String::new() });
        Ok(())
    }

    fn runs_prepared(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        let own = self.own();
        for (name, prefix) in &session.prepared {
            client.send(&[bind("", name, &[&own]), execute("", 0), sync()].concat());
            let expected = match prefix.as_str() {
                "" => format!("{own}{}", session.settings["application_name"]),
                prefix => format!("{prefix}{own}"),
            };
            assert_eq!(self.answer(client)?.expect(name).value(), Some(expected));
        }
        if session.pending.is_none() {
            client.send(&[bind("", "never", &[]), execute("", 0), sync()].concat());
            assert_eq!(self.answer(client)?.sqlstate(), "26000");
        }
        Ok(())
    }

    fn begins_or_ends(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        let mark = session.mark();
        let Some(pending) = &mut session.pending else {
            assert_eq!(self.run(client, "BEGIN")?.status, 'T');
            session.pending = Some(vec![mark]);
            return Ok(());
        };
        match self.rng.random_range(0..5) {
            0 => {
                self.run(client, &format!("SAVEPOINT s{}", pending.len()))?;
                pending.push(mark);
            }
            1 if pending.len() > 1 => {
                let undone = pending.pop().unwrap();
                let name = format!("s{}", pending.len());
                // Lost now, it is as if it had not been begun.
                self.fates.set(undone.rows, Fate::Absent);
                session.settings = undone.settings;
                let answer = self.run(client, &format!("ROLLBACK TO {name}; RELEASE {name}"))?;
                assert_eq!(answer.status, 'T');
            }
            1 | 2 => {
                session.settings = std::mem::take(&mut pending[0].settings);
                self.fates.set(session.end(), Fate::Absent);
                assert_eq!(self.run(client, "ROLLBACK")?.status, 'I');
            }
            _ => {
                let rows = session.end();
                let answer = self.run(client, "COMMIT")?;
                assert_eq!((answer.tags(), answer.status), (vec!["COMMIT".to_owned()], 'I'));
                self.fates.set(rows, Fate::Present);
            }
        }
        Ok(())
    }

    fn writes(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        let row = self.fates.begin();
        let returning = self.run(client, &format!("{} RETURNING text", self.insert(row)))?;
        assert_eq!(returning.value(), Some(text(self.number, row)));
        self.settle(session, vec![row]);
        Ok(())
    }

    /// Rows that were written, for now.
    fn settle(&mut self, session: &mut Session, rows: Vec<u64>) {
        match &mut session.pending {
            Some(pending) => pending.last_mut().unwrap().rows.extend(rows),
            None => self.fates.set(rows, Fate::Present),
        }
    }

    fn fails(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        let own = self.own();
        let row = self.fates.begin();
        let (is_inside, insert) = (session.pending.is_some(), self.insert(row));
        if is_inside {
            self.run(client, "SAVEPOINT tried")?;
        }
        // All of a simple query is one transaction.
        let failed = self.query(client, &format!("{insert}; SELECT '{own}'::int"))?;
        self.fates.set([row], Fate::Absent);
        let error = failed.error().expect("it is no number");
        assert_eq!(
            (error.sqlstate(), error.message().contains(&own)),
            ("22P02", true),
            "{error:?}"
        );
        if is_inside {
            assert_eq!(failed.status, 'E');
            assert_eq!(self.query(client, "SELECT 1")?.sqlstate(), "25P02");
            self.run(client, "ROLLBACK TO tried; RELEASE tried")?;
        }
        Ok(())
    }

    /// Several groups at once, some of which fail in the middle, with what comes behind the error passed over.
    fn pipelines(&mut self, client: &mut Client, session: &Session) -> Result<(), Lost> {
        let groups: Vec<(String, bool)> = (0..self.rng.random_range(1..8))
            .map(|_| (self.own(), session.pending.is_none() && self.rng.random_ratio(1, 3)))
            .collect();
        let mut messages = Vec::new();
        for (own, fails) in &groups {
            let whole = |sql: &str| [parse("", sql), bind("", "", &[]), execute("", 0)].concat();
            messages.extend(whole(&format!("SELECT '{own}'")));
            messages.extend(whole(if *fails { "SELECT 1/0" } else { "SELECT 1" }));
            messages.extend(whole(&format!("SELECT '{own} behind'")));
            messages.extend(sync());
        }
        client.send(&messages);
        for (own, fails) in groups {
            let answer = self.answer(client)?;
            let expected = match fails {
                true => vec![own.clone()],
                false => vec![own.clone(), "1".to_owned(), format!("{own} behind")],
            };
            let rows: Vec<String> = answer.rows().into_iter().map(|row| row[0].clone().unwrap()).collect();
            assert_eq!((rows, answer.error().is_some()), (expected, fails), "{own}");
        }
        Ok(())
    }

    fn copies(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        let own = self.own();
        let out = self.run(
            client,
            &format!("COPY (SELECT '{own}' FROM generate_series(1, 50)) TO STDOUT"),
        )?;
        let data: Vec<&Message> = out.messages.iter().filter(|message| message.kind == b'd').collect();
        assert_eq!(data.len(), 50);
        assert!(data.iter().all(|line| line.body == format!("{own}\n").as_bytes()));
        let gives_up = session.pending.is_none() && self.rng.random_ratio(1, 3);
        let rows: Vec<u64> = (0..self.rng.random_range(1..20)).map(|_| self.fates.begin()).collect();
        let mut messages = query("COPY chaos FROM STDIN");
        for row in &rows {
            let line = format!("{}\t{row}\t{}\n", self.number, text(self.number, *row));
            messages.extend(message(b'd', line.as_bytes()));
        }
        messages.extend(match gives_up {
            true => message(b'f', b"given up\0"),
            false => message(b'c', &[]),
        });
        client.send(&messages);
        let answer = self.answer(client)?;
        if gives_up {
            assert_eq!(answer.sqlstate(), "57014");
            self.fates.set(rows, Fate::Absent);
        } else {
            assert_eq!(answer.expect("copied").tags(), [format!("COPY {}", rows.len())]);
            self.settle(session, rows);
        }
        Ok(())
    }

    fn cancels(&mut self, client: &mut Client, session: &Session) -> Result<(), Lost> {
        if session.pending.is_some() {
            return Ok(());
        }
        let own = self.own();
        client.send(&query(&format!("SELECT '{own}' FROM pg_sleep(0.02)")));
        let secret = client.secret.clone();
        for _ in 0..self.rng.random_range(1..3) {
            client.cancel(&secret);
        }
        let answer = self.answer(client)?;
        match answer.error() {
            Some(error) => assert_eq!(error.sqlstate(), "57014"),
            None => assert_eq!(answer.value(), Some(own)),
        }
        // It hits nothing that comes later.
        self.asks(client)
    }

    /// What keeps a session on its connection.
    fn keeps(&mut self, client: &mut Client, session: &mut Session) -> Result<(), Lost> {
        if session.pending.is_some() {
            return Ok(());
        }
        if session.has_temporary {
            let kept = self.run(client, "SELECT text FROM kept")?.value();
            assert_eq!(kept, Some(format!("of {}", self.number)));
            self.run(client, "DISCARD ALL")?;
            *session = Session::default();
            session
                .settings
                .insert("application_name", format!("client {}", self.number));
            session.settings.insert("work_mem", "4MB".to_owned());
            // What it begins with is the connection's own: see the guide.
            let name = session.settings["application_name"].clone();
            self.run(client, &format!("SET application_name = '{name}'"))?;
            return Ok(());
        }
        let channel = format!("c{}", self.number);
        let locked = self.run(client, &format!("SELECT pg_try_advisory_lock({})", self.number))?;
        assert_eq!(locked.value().as_deref(), Some("t"), "nobody else has it");
        let notified = self.run(client, &format!("LISTEN {channel}; NOTIFY {channel}, 'mine'"))?;
        let news: Vec<&Message> = notified
            .messages
            .iter()
            .filter(|message| message.kind == b'A')
            .collect();
        assert_eq!(news.len(), 1);
        self.run(client, "DISCARD ALL")?;
        *session = Session::default();
        session.settings.insert("work_mem", "4MB".to_owned());
        let name = format!("client {}", self.number);
        self.run(client, &format!("SET application_name = '{name}'"))?;
        session.settings.insert("application_name", name);
        self.run(
            client,
            &format!("CREATE TEMP TABLE kept AS SELECT 'of {}' AS text", self.number),
        )?;
        session.has_temporary = true;
        Ok(())
    }

    /// Sees what it has written.
    fn counts(&mut self, client: &mut Client) -> Result<(), Lost> {
        let (least, most) = self.fates.bounds();
        let sql = format!("SELECT count(*) FROM chaos WHERE client = {}", self.number);
        let count: u64 = self.run(client, &sql)?.value().unwrap().parse().unwrap();
        assert!(
            (least..=most).contains(&count),
            "{count} rows of {}, not {least} to {most}",
            self.number
        );
        Ok(())
    }
}

/// A connection that has ended: whether it may, and with what it has said.
fn lost(world: World, (error, said): (io::Error, Vec<Message>)) -> Lost {
    let waited = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    assert!(!waited, "no answer, after {said:?}");
    let errors: Vec<_> = said
        .iter()
        .filter(|message| message.kind == b'E')
        .map(Message::failure)
        .collect();
    assert!(world.is_stormy, "{error}, after {errors:?}");
    if let Some(last) = errors.last() {
        let is_known = LAST_WORDS.contains(&last.sqlstate()) && last.field(b'S') == Some("FATAL");
        assert!(is_known, "{last:?}");
    }
    Lost
}
