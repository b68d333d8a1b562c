//! Histories of what many clients change and read at once, in company and straight beside it, while server connections are ended, clients hang up
//! and cancel, and others hold locks: what each client was told has happened, all of it in one order, and nothing else has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::linear::{self, Asked, Item};
use crate::script::Step;
use crate::{database, front, seeds_until};

const SCHEMA: &str = "\
CREATE TABLE claims (client int, n int, place int UNIQUE, PRIMARY KEY (client, n));
CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE lists (id int PRIMARY KEY, items text NOT NULL);
CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL);
";
const EMPTY: &str = "\
TRUNCATE claims, counters, lists, accounts;
INSERT INTO counters SELECT generate_series(0, 7), 0;
INSERT INTO accounts SELECT generate_series(0, 19), 1000;
";
const CLIENTS: usize = 24;
const SECONDS: u64 = 4;
/// In this many others, one goes straight.
const STRAIGHT: usize = 6;
/// What all accounts have together.
const TOTAL: &str = "at 20000 end";

/// How many clients live for how long.
fn extent() -> (usize, Duration) {
    let number = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().unwrap());
    let clients = number("FOREBAY_HISTORIES_CLIENTS").map_or(CLIENTS, |clients| usize::try_from(clients).unwrap());
    (
        clients,
        Duration::from_secs(number("FOREBAY_HISTORIES_SECONDS").unwrap_or(SECONDS)),
    )
}

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
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
    lists: Vec<Asked>,
    /// Transactions that have moved money.
    moved: u32,
    /// What cannot be.
    wrong: Vec<String>,
}

fn told(answer: &str) -> Told {
    if answer.contains("\nE ") && !answer.contains("FATAL") && !answer.contains("08007") {
        Told::Refused
    } else if answer.contains("FATAL") || answer.contains("08007") || answer.contains("ended: ") {
        Told::Unknown
    } else {
        Told::Done
    }
}

/// Where all of this happens.
#[derive(Clone, Copy)]
struct World {
    /// There are so many places to claim, and so many lists.
    places: u32,
    lists: usize,
    lasts: Duration,
}

/// One client.
struct Life<'a> {
    number: usize,
    random: StdRng,
    address: &'a str,
    client: Client,
    history: &'a Mutex<History>,
    world: World,
    n: u32,
    /// What this client knows of each counter.
    seen: [u32; 8],
}

impl Life<'_> {
    fn live(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < self.world.lasts {
            let answer = match self.random.random_range(0..16) {
                0..4 => self.claims(),
                4..7 => self.counts(),
                7 => self.looks_at_a_counter(),
                8..12 => self.appends(),
                12..14 => self.looks_at_a_list(),
                14 => self.moves_money(),
                _ => self.adds_up(),
            };
            if told(&answer) == Told::Unknown {
                self.client = Client::connect(self.address, "histories", &[]);
            }
        }
    }

    /// Asks, and cancels it now and then.
    #[allow(clippy::disallowed_methods, reason = "a client is a thread of its own")]
    fn ask(&mut self, step: &Step) -> String {
        if self.random.random_range(0..30) > 0 {
            return self.client.ask(step);
        }
        for piece in step.pieces() {
            self.client.send(piece);
        }
        std::thread::sleep(Duration::from_micros(self.random.random_range(0..3000)));
        self.client.cancel(self.address);
        self.client.answers(step.ready)
    }

    fn claims(&mut self) -> String {
        self.n += 1;
        let place = self.random.random_range(0..self.world.places);
        let key = (self.number, self.n);
        let step = match self.random.random() {
            true => message(
                "INSERT INTO claims VALUES ($1, $2, $3) RETURNING place",
                &[&key.0.to_string(), &key.1.to_string(), &place.to_string()],
            ),
            false => Step::query(&format!("INSERT INTO claims VALUES ({}, {}, {place})", key.0, key.1)),
        };
        // Whoever hangs up in the middle knows nothing of it.
        let answer = match self.random.random_range(0..8) {
            0 => {
                for piece in step.pieces() {
                    self.client.send(piece);
                }
                "\nended: it hung up".to_owned()
            }
            _ => self.ask(&step),
        };
        self.history.lock().unwrap().claims.insert(key, (place, told(&answer)));
        answer
    }

    fn counts(&mut self) -> String {
        let counter = self.random.random_range(0..8_usize);
        // Two ways to write one key.
        let zero = if self.random.random_range(0..4) == 0 { "0" } else { "" };
        let answer = self.ask(&Step::query(&format!(
            "UPDATE counters SET n = n + 1 WHERE id = {zero}{counter}"
        )));
        let mut history = self.history.lock().unwrap();
        match told(&answer) {
            Told::Done if !answer.contains("UPDATE 1") => history.wrong.push(format!("counted up: {answer}")),
            Told::Done => {
                history.counters[counter].0 += 1;
                self.seen[counter] += 1;
            }
            Told::Unknown => history.counters[counter].1 += 1,
            Told::Refused => {}
        }
        answer
    }

    fn looks_at_a_counter(&mut self) -> String {
        let counter = self.random.random_range(0..8_usize);
        let answer = self.ask(&Step::query(&format!(
            "SELECT 'at ' || n FROM counters WHERE id = {counter}"
        )));
        if let Some(at) = number_behind(&answer, "at ") {
            if at < self.seen[counter] {
                let what = format!("counter {counter} at {at}, known to be at {}", self.seen[counter]);
                self.history.lock().unwrap().wrong.push(what);
            }
            self.seen[counter] = at;
        }
        answer
    }

    fn appends(&mut self) -> String {
        self.n += 1;
        let list = self.random.random_range(0..self.world.lists);
        let item = (self.number, self.n);
        let (text, key) = (format!(";{}.{}", item.0, item.1), list.to_string());
        let step = match self.random.random_range(0..3) {
            0 => Step::query(&format!("UPDATE lists SET items = items || '{text}' WHERE id = {key}")),
            1 => message("UPDATE lists SET items = items || $1 WHERE id = $2", &[&text, &key]),
            _ => message(
                "UPDATE lists SET items = items || $1 WHERE id = $2 RETURNING items",
                &[&text, &key],
            ),
        };
        self.ask_of(list, Some(item), &step)
    }

    fn looks_at_a_list(&mut self) -> String {
        let list = self.random.random_range(0..self.world.lists);
        let step = match self.random.random() {
            true => message("SELECT items FROM lists WHERE id = $1", &[&list.to_string()]),
            false => Step::query(&format!("SELECT items FROM lists WHERE id = {list}")),
        };
        self.ask_of(list, None, &step)
    }

    fn ask_of(&mut self, list: usize, item: Option<Item>, step: &Step) -> String {
        let begun = Instant::now();
        let answer = self.ask(step);
        let ended = Instant::now();
        let seen = items(&answer);
        let mut history = self.history.lock().unwrap();
        if seen.as_ref().is_some_and(|(of, _)| *of != list) {
            history.wrong.push(format!("of list {list}: {answer}"));
        }
        let told = told(&answer);
        if item.is_none() && told == Told::Done && seen.is_none() {
            history.wrong.push(format!("no list {list}: {answer}"));
        }
        history.lists.push(Asked {
            list,
            begun,
            ended,
            item,
            told,
            seen: seen.filter(|_| told == Told::Done).map(|(_, items)| items),
        });
        drop(history);
        answer
    }

    /// In a transaction, which locks the account of the smaller number first: so do all, and nobody waits for anybody in a circle.
    fn moves_money(&mut self) -> String {
        let (one, other) = (self.random.random_range(0..10), self.random.random_range(10..20));
        let amount = self.random.random_range(-50..50);
        for text in [
            "BEGIN".to_owned(),
            format!("UPDATE accounts SET amount = amount - {amount} WHERE id = {one}"),
            format!("UPDATE accounts SET amount = amount + {amount} WHERE id = {other}"),
            "COMMIT".to_owned(),
        ] {
            let answer = self.ask(&Step::query(&text));
            if answer.contains("40P01") {
                self.history.lock().unwrap().wrong.push(answer.clone());
            }
            match told(&answer) {
                Told::Done => {}
                Told::Refused => return self.client.ask(&Step::query("ROLLBACK")),
                Told::Unknown => return answer,
            }
        }
        self.history.lock().unwrap().moved += 1;
        String::new()
    }

    /// Who touches accounts in any order does not matter to those who move money, and the sum is always the same.
    fn adds_up(&mut self) -> String {
        let account = self.random.random_range(0..20);
        let answer = self.ask(&Step::query(&format!(
            "UPDATE accounts SET amount = amount + 0 WHERE id = {account}"
        )));
        if told(&answer) == Told::Unknown {
            return answer;
        }
        let answer = self.ask(&Step::query("SELECT 'at ' || sum(amount) || ' end' FROM accounts"));
        if told(&answer) == Told::Done && !answer.contains(TOTAL) {
            self.history.lock().unwrap().wrong.push(format!("money: {answer}"));
        }
        answer
    }
}

fn message(sql: &str, values: &[&str]) -> Step {
    let mut step = Step::new();
    step.parse("", sql);
    step.bind("", "", values, false);
    step.execute("", 0);
    step.sync();
    step
}

fn number_behind(answer: &str, words: &str) -> Option<u32> {
    let digits = answer.split(words).nth(1)?;
    let end = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The list in an answer, and its number: `list=7:` and `;client.n` for each.
fn items(answer: &str) -> Option<(usize, Vec<Item>)> {
    let (number, rest) = answer.split("list=").nth(1)?.split_once(':')?;
    let end = rest.find(|sign: char| !matches!(sign, '0'..='9' | '.' | ';'));
    let items = rest[..end.unwrap_or(rest.len())].split(';').skip(1).map(|item| {
        let (client, n) = item.split_once('.').unwrap();
        (client.parse().unwrap(), n.parse().unwrap())
    });
    Some((number.parse().unwrap(), items.collect()))
}

#[test]
fn what_each_was_told_is_what_is_there() {
    let name = "histories";
    let upstream = database(name);
    Client::connect(&upstream, name, &[]).run(SCHEMA);
    let proxy = front::start_in_company(&upstream, 8);
    let (clients, lasts) = extent();
    let seconds = u32::try_from(lasts.as_secs()).unwrap();
    let world = World {
        places: 500 * seconds,
        // No list is to become too long to travel.
        lists: usize::try_from(seconds).unwrap() * 8,
        lasts,
    };
    // Each of what is to be shared, and how often it was.
    let shared = || {
        let rows = Client::connect(&proxy, name, &[front::ADMIN]).rows("SHOW FOREBAY SHARING");
        [
            ("UPDATE lists SET items = items || $1 WHERE id = $2", 7),
            ("UPDATE counters SET n = n + ?", 7),
            ("SELECT items FROM lists", 7),
            ("n FROM counters", 4),
        ]
        .map(|(text, column)| {
            let of = |row: &&Vec<Option<String>>| row[2].as_deref().is_some_and(|shown| shown.contains(text));
            let counts = rows.iter().filter(of).map(|row| row[column].as_deref().unwrap_or("0"));
            let count: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
            (text, count, rows.clone())
        })
    };
    for seed in seeds_until(1, || shared().iter().all(|(_, count, _)| *count > 10)) {
        let mut admin = Client::connect(&upstream, name, &[]);
        admin.run(EMPTY);
        admin.run(&format!(
            "INSERT INTO lists SELECT n, 'list=' || n || ':' FROM generate_series(0, {}) n",
            world.lists - 1
        ));
        let history = Arc::new(Mutex::new(History::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let strangers: Vec<_> = [
            // Ends what serves the proxy, or somebody who goes straight, now and then.
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
        let clients: Vec<_> = (0..clients)
            .map(|number| {
                let address = if number % STRAIGHT == 0 { &upstream } else { &proxy };
                let (address, history) = (address.clone(), Arc::clone(&history));
                std::thread::spawn(move || {
                    let mut life = Life {
                        number,
                        random: StdRng::seed_from_u64(seed * 1000 + number as u64),
                        client: Client::connect(&address, name, &[]),
                        address: &address,
                        history: &history,
                        world,
                        n: 0,
                        seen: [0; 8],
                    };
                    life.live();
                })
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
        check(&upstream, name, world, &history.lock().unwrap());
    }
    for (text, count, rows) in shared() {
        assert!(count > 10, "{text}: {rows:?}");
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

fn check(upstream: &str, name: &str, world: World, history: &History) {
    assert!(history.wrong.is_empty(), "{:?}", history.wrong);
    let mut client = Client::connect(upstream, name, &[]);
    let rows = client.rows("SELECT client || ' ' || n, place::text FROM claims");
    let mut there: HashMap<(usize, u32), u32> = HashMap::new();
    for row in rows {
        let (client, n) = row[0].as_deref().unwrap().split_once(' ').unwrap();
        let key = (client.parse().unwrap(), n.parse().unwrap());
        there.insert(key, row[1].as_deref().unwrap().parse().unwrap());
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
    println!(
        "claims {counts:?}, counters {:?}, {} of lists, {} moved money",
        history.counters,
        history.lists.len(),
        history.moved
    );
    assert!(
        counts["Done"] > 100 && counts["Refused"] > 10 && history.lists.len() > 100 && history.moved > 10,
        "it was tried: {counts:?}"
    );
    for (counter, (certain, perhaps)) in history.counters.iter().enumerate() {
        let answer = client.ask(&Step::query(&format!(
            "SELECT 'at ' || n || ' end' FROM counters WHERE id = {counter}"
        )));
        let at = number_behind(&answer, "at ").unwrap();
        assert!(
            (*certain..=certain + perhaps).contains(&at),
            "counter {counter} is at {at}; {certain} are certain, and {perhaps} perhaps"
        );
    }
    let mut lists = vec![Vec::new(); world.lists];
    for row in client.rows("SELECT items FROM lists") {
        let (list, items) = items(row[0].as_deref().unwrap()).unwrap();
        lists[list] = items;
    }
    if let Err(why) = linear::check(&lists, &history.lists) {
        panic!("{why}");
    }
}
