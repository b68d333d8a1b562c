//! Histories of what changes in company while server connections are ended, clients hang up and cancel, and others hold locks: what each
//! client was told is what the tables have in the end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::script::Step;
use crate::{database, front, seeds};

const SCHEMA: &str = "\
CREATE TABLE claims (client int, n int, place int UNIQUE, PRIMARY KEY (client, n));
CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO counters SELECT generate_series(0, 7), 0;
";
const CLIENTS: usize = 24;
const LASTS: Duration = Duration::from_secs(4);
/// So many places there are to claim.
const PLACES: u32 = 2000;

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It is done.
    Done,
    /// It is not: an error of its own.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// What was told of all that was asked.
#[derive(Default)]
struct History {
    /// Of each claim.
    claims: HashMap<(usize, u32), (u32, Told)>,
    /// Of each counter, how often it was counted up for certain, and how often perhaps.
    counters: [(u32, u32); 8],
    /// What a counter was seen at, when it was known to be at this or more.
    went_back: Vec<String>,
}

fn told(answer: &str) -> Told {
    if answer.contains("\nE ") && !answer.contains("FATAL") {
        Told::Refused
    } else if answer.contains("FATAL") || answer.contains("ended: ") {
        Told::Unknown
    } else {
        Told::Done
    }
}

/// What one client does until the time is over.
fn live(number: usize, seed: u64, proxy: &str, database: &str, history: &Mutex<History>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut client = connect(proxy, database);
    let begun = Instant::now();
    let mut n = 0;
    // What this client knows of each counter.
    let mut seen = [0_u32; 8];
    while begun.elapsed() < LASTS {
        let answer = match random.random_range(0..10) {
            0..=4 => {
                n += 1;
                let place = random.random_range(0..PLACES);
                let answer = client.ask(&claim(number, n, place, random.random()));
                history
                    .lock()
                    .unwrap()
                    .claims
                    .insert((number, n), (place, told(&answer)));
                answer
            }
            5..=7 => {
                let counter = random.random_range(0..8_usize);
                let answer = client.ask(&Step::query(&format!(
                    "UPDATE counters SET n = n + 1 WHERE id = {counter}"
                )));
                let mut history = history.lock().unwrap();
                match told(&answer) {
                    Told::Done => {
                        history.counters[counter].0 += 1;
                        seen[counter] += 1;
                    }
                    Told::Unknown => history.counters[counter].1 += 1,
                    Told::Refused => {}
                }
                answer
            }
            8 => {
                // Whoever hangs up in the middle knows nothing of it.
                n += 1;
                let place = random.random_range(0..PLACES);
                for piece in claim(number, n, place, true).pieces() {
                    client.send(piece);
                }
                history
                    .lock()
                    .unwrap()
                    .claims
                    .insert((number, n), (place, Told::Unknown));
                "\nended: it hung up".to_owned()
            }
            _ => {
                let counter = random.random_range(0..8_usize);
                let answer = client.ask(&Step::query(&format!(
                    "SELECT 'at ' || n FROM counters WHERE id = {counter}"
                )));
                if let Some(at) = answer.split("at ").nth(1) {
                    let digits: String = at.chars().take_while(char::is_ascii_digit).collect();
                    let at: u32 = digits.parse().unwrap();
                    if at < seen[counter] {
                        let what = format!("counter {counter} at {at}, known to be at {}", seen[counter]);
                        history.lock().unwrap().went_back.push(what);
                    }
                    seen[counter] = at;
                }
                answer
            }
        };
        if told(&answer) == Told::Unknown {
            client = connect(proxy, database);
        }
    }
}

fn claim(number: usize, n: u32, place: u32, by_messages: bool) -> Step {
    if !by_messages {
        return Step::query(&format!("INSERT INTO claims VALUES ({number}, {n}, {place})"));
    }
    let mut step = Step::new();
    step.parse("", "INSERT INTO claims VALUES ($1, $2, $3) RETURNING place");
    step.bind(
        "",
        "",
        &[&number.to_string(), &n.to_string(), &place.to_string()],
        false,
    );
    step.execute("", 0);
    step.sync();
    step
}

fn connect(proxy: &str, database: &str) -> Client {
    Client::connect(proxy, database, &[])
}

#[test]
fn what_each_was_told_is_what_is_there() {
    let name = "histories";
    let upstream = database(name);
    Client::connect(&upstream, name, &[]).run(SCHEMA);
    let proxy = front::start_in_company(&upstream, 8);
    for seed in seeds(1) {
        Client::connect(&upstream, name, &[]).run("TRUNCATE claims;\nUPDATE counters SET n = 0");
        let history = Arc::new(Mutex::new(History::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let strangers: Vec<_> = [
            // Ends what serves the proxy, now and then.
            (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'histories' AND pid <> pg_backend_pid() \
                 AND application_name <> 'stranger' ORDER BY random() LIMIT 2",
                "0.15",
            ),
            // Holds a lock for longer than anybody waits in company.
            ("BEGIN; UPDATE counters SET n = n WHERE id < 2; SELECT pg_sleep(0.06); COMMIT", "0.04"),
        ]
        .into_iter()
        .map(|(text, pause_s)| {
            let (upstream, is_over) = (upstream.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut client = Client::connect(&upstream, name, &[("application_name", "stranger")]);
                while !is_over.load(Ordering::Relaxed) {
                    client.ask(&Step::query(text));
                    client.ask(&Step::query(&format!("SELECT pg_sleep({pause_s})")));
                }
            })
        })
        .collect();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (proxy, history) = (proxy.clone(), Arc::clone(&history));
                std::thread::spawn(move || live(number, seed * 1000 + number as u64, &proxy, name, &history))
            })
            .collect();
        let ended: Vec<_> = clients.into_iter().map(std::thread::JoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        for ended in ended
            .into_iter()
            .chain(strangers.into_iter().map(std::thread::JoinHandle::join))
        {
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
        }
        settle(&upstream, name);
        check(&upstream, name, &history.lock().unwrap());
    }
}

/// Whoever hung up may still be served.
fn settle(upstream: &str, name: &str) {
    let mut client = Client::connect(upstream, name, &[("application_name", "stranger")]);
    let begun = Instant::now();
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'histories' AND state <> 'idle' AND pid <> pg_backend_pid()";
    while !client.ask(&Step::query(busy)).contains("x010\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "something runs on");
        client.ask(&Step::query("SELECT pg_sleep(0.02)"));
    }
}

fn check(upstream: &str, name: &str, history: &History) {
    let mut client = Client::connect(upstream, name, &[]);
    let rows = client.ask(&Step::query(
        "SELECT 'row ' || client || ' ' || n || ' ' || place || ' end' FROM claims",
    ));
    let mut there = HashMap::new();
    for row in rows.split("row ").skip(1) {
        let numbers: Vec<u32> = row.split(' ').take(3).map(|number| number.parse().unwrap()).collect();
        there.insert((numbers[0] as usize, numbers[1]), numbers[2]);
    }
    let mut counts = HashMap::new();
    for (claim, (place, told)) in &history.claims {
        *counts.entry(format!("{told:?}")).or_insert(0) += 1;
        match (told, there.remove(claim)) {
            (Told::Done, Some(at)) => assert_eq!(at, *place, "{claim:?}"),
            (Told::Done, None) => panic!("{claim:?} was acknowledged and is not there"),
            (Told::Refused, Some(_)) => panic!("{claim:?} was refused and is there"),
            (Told::Refused, None) | (Told::Unknown, _) => {}
        }
    }
    assert!(there.is_empty(), "nobody asked for {there:?}");
    println!("claims {counts:?}, counters {:?}", history.counters);
    assert!(
        counts["Done"] > 100 && counts["Refused"] > 10,
        "it was tried: {counts:?}"
    );
    for (counter, (certain, perhaps)) in history.counters.iter().enumerate() {
        let answer = client.ask(&Step::query(&format!(
            "SELECT 'at ' || n || ' end' FROM counters WHERE id = {counter}"
        )));
        let at: u32 = answer
            .split("at ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            (*certain..=certain + perhaps).contains(&at),
            "counter {counter} is at {at}; {certain} are certain, and {perhaps} perhaps"
        );
    }
    assert!(history.went_back.is_empty(), "{:?}", history.went_back);
}
