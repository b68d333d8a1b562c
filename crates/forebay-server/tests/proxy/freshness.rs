//! No answer is older than it may be: judged, while the stream is cut, the server falls over, standbys hold commits back and the catalog is changed.
//!
//! Writers, each of a row of its own, half of them straight at the server; readers of single rows and of their sum. Each writes down what was acknowledged, and
//! when. An answer is wrong if it is less than what had been acknowledged before the asking, less `max_lag`; of what the proxy has written, nothing is taken off;
//! a writer's own is exact. Of what nobody can say whether it was done, it is asked, and then it is taken for done by then.
//!
//! For longer: `FOREBAY_FRESHNESS_SECONDS`, and with the writers and readers of then.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::Postgres;

use crate::client::{Answer, Client, query, startup};
use crate::crowd::until;
use crate::stream::{Stage, started};

const MAX_LAG: Duration = Duration::from_millis(500);
const NAME: &str = "judged";

/// A session that begins anew where it is lost.
struct Session {
    address: SocketAddr,
    client: Client,
}

impl Session {
    fn new(address: SocketAddr) -> Self {
        let client = loop {
            let mut client = Client::raw(address);
            let begun = client
                .stream
                .write_all(&startup(&[("user", "postgres"), ("database", NAME)]));
            if begun.is_ok() && client.try_answer().is_ok() {
                break client;
            }
        };
        Self { address, client }
    }

    /// None where nobody can say what came of it.
    fn try_query(&mut self, sql: &str) -> Option<Answer> {
        let sent = self.client.stream.write_all(&query(sql));
        match sent.ok().and_then(|()| self.client.try_answer().ok()) {
            Some(answer) => answer.error().is_none().then_some(answer),
            None => {
                *self = Self::new(self.address);
                None
            }
        }
    }

    /// A number, however often it has to be asked for.
    fn number(&mut self, sql: &str) -> u64 {
        loop {
            if let Some(value) = self.try_query(sql).and_then(|answer| answer.value()) {
                return value.parse().unwrap();
            }
        }
    }
}

/// Tells all that it is over.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What was acknowledged of a row, and since when.
struct History(Mutex<Vec<(Instant, u64)>>);

impl History {
    fn is(&self, number: u64, since: Instant) {
        self.0.lock().push((since, number));
    }

    /// What had been acknowledged by then.
    fn by(&self, moment: Option<Instant>) -> u64 {
        let all = self.0.lock();
        let last = moment.and_then(|moment| all.iter().rev().find(|(since, _)| *since <= moment));
        last.map_or(0, |(_, number)| *number)
    }
}

/// Each table has two rows, one that is written straight and one through the proxy.
fn table(key: usize) -> String {
    format!("judged_{}", key / 2)
}

fn read(key: usize) -> String {
    format!("/* ttl:3600 */ SELECT n FROM {} WHERE id = {key}", table(key))
}

/// Reads of more than one row, each with the rows whose sum it is.
const SUMS: [(&str, [usize; 2]); 2] = [
    ("/* ttl:3600 */ SELECT sum(n) FROM judged_0", [0, 1]),
    (
        "/* ttl:3600 */ SELECT a.n + b.n FROM judged_0 a, judged_1 b WHERE a.id = 1 AND b.id = 2",
        [1, 2],
    ),
];

fn write(key: usize, is_straight: bool, stage: &Stage, history: &History, is_over: &AtomicBool) {
    let (proxy, server) = (stage.reloadable.proxy.address(), stage.server.address());
    let mut session = Session::new(if is_straight { server } else { proxy });
    for n in 1.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("UPDATE {} SET n = {n} WHERE id = {key}", table(key));
        if session.try_query(&text).is_some() {
            history.is(n, Instant::now());
            if !is_straight && let Some(own) = session.try_query(&read(key)).and_then(|answer| answer.value()) {
                assert_eq!(own, n.to_string(), "key {key}: its own");
            }
        } else {
            let mut straight = Session::new(server);
            // Whatever is under way has its end.
            while straight.number(&read(key)) != n && straight.try_query(&text).is_none() {}
            history.is(n, Instant::now() + MAX_LAG);
        }
        session.try_query(&format!("SELECT pg_sleep({})", 0.01 * (n % 5) as f64));
    }
}

/// To a process of the server that this test has started.
fn signal(process: i32, signal: i32) {
    // SAFETY: it only sends a signal; whether there still is such a process does not matter.
    unsafe { libc::kill(process, signal) };
}

/// What goes wrong.
fn disturb(kind: u32, server: SocketAddr, postgres: &Postgres) {
    let mut session = Session::new(server);
    let mut end = |kind: &str| {
        session.try_query(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{NAME}' AND application_name = 'forebay stream' AND \
             backend_type = '{kind}'"
        ));
    };
    let all = |texts: &[&str]| {
        let mut session = Session::new(server);
        for text in texts {
            session.try_query(text);
        }
    };
    match kind {
        0 => end("walsender"),
        1 => end("client backend"),
        2 => all(&[
            "ALTER TABLE judged_0 ADD COLUMN more int DEFAULT 1",
            "ALTER TABLE judged_0 DROP COLUMN more",
        ]),
        // Commits are told, and seen by nobody for a while.
        3 => all(&[
            "SET synchronous_commit = local",
            "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
            "SELECT pg_reload_conf()",
            "SELECT pg_sleep(0.1)",
            "ALTER SYSTEM SET synchronous_standby_names = ''",
            "SELECT pg_reload_conf()",
        ]),
        // A long transaction that the stream has to read whole.
        4 => all(&[
            "INSERT INTO much SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING",
            "TRUNCATE much",
        ]),
        5 => {
            let stopped = Session::new(server).number(&format!(
                "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = '{NAME}' AND backend_type = 'walsender'"
            ));
            let stopped = i32::try_from(stopped).unwrap();
            if stopped > 0 {
                signal(stopped, libc::SIGSTOP);
                Session::new(server).try_query("SELECT pg_sleep(0.7)");
                signal(stopped, libc::SIGCONT);
            }
        }
        // All of it falls over, and recovers.
        _ => {
            let killed = i32::try_from(Session::new(server).number("SELECT pg_backend_pid()")).unwrap();
            assert!(killed > 0 && killed.cast_unsigned() != postgres.process_id());
            signal(killed, libc::SIGKILL);
        }
    }
}

#[test]
fn no_answer_is_older_than_it_may_be() {
    let set = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let long = set("FOREBAY_FRESHNESS_SECONDS").map(Duration::from_secs);
    let seed = set("FOREBAY_FRESHNESS_SEED").unwrap_or_else(rand::random);
    println!("FOREBAY_FRESHNESS_SEED={seed}");
    // So many are answered from memory between two disturbances.
    let (keys, readers, enough) = if long.is_some() { (40, 100, 5_000) } else { (6, 8, 50) };
    let server: &'static Postgres = Box::leak(Box::new(started(&[])));
    let stage = Stage::at(server, NAME, "max_lag = \"500ms\"\nmax_server_connections = 40\n");
    let mut admin = stage.straight();
    for key in 0..keys {
        let table = table(key);
        admin.run(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (id int PRIMARY KEY, n bigint)"
        ));
        admin.run(&format!("INSERT INTO {table} VALUES ({key}, 0)"));
    }
    admin.run("CREATE TABLE much (id int PRIMARY KEY, t text)");
    for (sum, _) in SUMS {
        stage.until_remembered(&mut stage.client(), sum, &sum["/* ttl:3600 */ ".len()..][..12]);
    }
    let is_over = &AtomicBool::new(false);
    let answers = AtomicU64::new(0);
    let histories: Vec<History> = (0..keys).map(|_| History(Mutex::default())).collect();
    let is_straight = |key: usize| key.is_multiple_of(2);
    thread::scope(|scope| {
        for (key, history) in histories.iter().enumerate() {
            let stage = &stage;
            scope.spawn(move || write(key, is_straight(key), stage, history, is_over));
        }
        for reader in 0..readers {
            let (histories, answers) = (&histories, &answers);
            let proxy = stage.reloadable.proxy.address();
            scope.spawn(move || {
                let mut session = Session::new(proxy);
                let mut key = reader;
                while !is_over.load(Ordering::Relaxed) {
                    key += 1;
                    let begun = Instant::now();
                    let of = |key: usize| {
                        histories[key].by(if is_straight(key) {
                            begun.checked_sub(MAX_LAG)
                        } else {
                            Some(begun)
                        })
                    };
                    let (told, due) = match SUMS.get(key % (keys + SUMS.len())) {
                        Some((sum, rows)) => (session.number(sum), rows.iter().map(|&key| of(key)).sum()),
                        None => (session.number(&read(key % keys)), of(key % keys)),
                    };
                    assert!(told >= due, "{key}: {told} where {due} was due");
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Also where a step of it fails.
        let _end = AtTheEnd(is_over);
        let mut random = StdRng::seed_from_u64(seed);
        let begun = Instant::now();
        for round in 0.. {
            match long {
                None if round == 7 => break,
                Some(time) if begun.elapsed() > time => break,
                _ => {}
            }
            let beginnings = stage.status("stream_beginnings");
            let kind = if long.is_some() {
                random.random_range(0..7)
            } else {
                round
            };
            disturb(kind, server.address(), server);
            if matches!(kind, 0 | 1 | 6) {
                until("it begins anew", || stage.status("stream_beginnings") != beginnings);
            }
            let known = stage.remembered("SELECT n FROM judged_").0;
            until("it is remembered again", || {
                stage.remembered("SELECT n FROM judged_").0 > known + enough
            });
        }
    });
    println!(
        "{} answers, {} of single rows from memory; the stream was begun {} times",
        answers.load(Ordering::Relaxed),
        stage.remembered("SELECT n FROM judged_").0,
        stage.status("stream_beginnings")
    );
}
