//! Three caches, in which all is changed at once in every way, while their ways to the tier or to one another fail, or the server forgets, or what
//! is there is garbage: no read is older than the bound allows.
//!
//! The seed is printed; `FOREBAY_STORM_SEED` names one, `FOREBAY_STORM_SECONDS` says for how long.

use super::*;
use std::collections::BTreeMap;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::{Behaviour, Proxy};

const LAG: Duration = ms(400);
/// What a reader's own bookkeeping and the clock's grain take.
const GRAIN: Duration = ms(20);
/// Within what a change is sent where the way to the others works: twice the time that the tier is given, and what a slow machine takes.
const SENT_WITHIN: Duration = SECOND;
const KEYS: u64 = 30;
const MEMBERS: usize = 3;

/// Whose ways fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Tiers,
    Backplanes,
    Both,
    Server,
}

/// Versions that are to be known, by key.
#[derive(Default)]
struct Known(Mutex<BTreeMap<u64, Vec<Version>>>);

/// Who has made it, and when all were to be told of it.
struct Version {
    number: u64,
    by: usize,
    settled: Option<Instant>,
}

impl Known {
    fn add(&self, key: u64, number: u64, by: usize, settled: Option<Instant>) {
        let version = Version { number, by, settled };
        self.0.lock().entry(key).or_default().push(version);
    }

    /// The least that `reader` may be told of the key, if it asks now.
    fn least(&self, key: u64, reader: usize) -> u64 {
        let asked = Instant::now();
        let known = self.0.lock();
        let counts = |version: &&Version| match version.settled {
            Some(settled) => asked - settled > LAG + GRAIN,
            None => version.by == reader,
        };
        let versions = known.get(&key).into_iter().flatten().filter(counts);
        versions.map(|version| version.number).max().unwrap_or(0)
    }
}

struct Storm {
    database: Database,
    known: Arc<Known>,
    ends: Instant,
    /// What is changed is sent, whether the tier is told or not.
    is_sent: bool,
    next: Arc<AtomicU64>,
    changes: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
}

impl Storm {
    async fn change(&self, at: usize, member: &Member) {
        let key = rand::random_range(0..KEYS);
        let is_own = key % MEMBERS as u64 == at as u64;
        if key.is_multiple_of(2) && !is_own {
            return;
        }
        // A later version is written later.
        let version = {
            let mut rows = self.database.0.rows.lock();
            let version = self.next.fetch_add(1, SeqCst) + 1;
            rows.insert(key, version);
            version
        };
        let settled = match rand::random_range(0..100) {
            0 => member.clear(),
            1 => member.invalidate_tag("all"),
            2..30 => member.invalidate_tag(&format!("digit{}", key % 10)),
            // The even ones are changed by one of them, which knows their values.
            30..55 if key.is_multiple_of(2) => {
                let said = Fetched::of(version).tag("all").tag(format!("digit{}", key % 10));
                member.insert_fetched(key, said)
            }
            55..60 => {
                drop(member.mark_stale(&key));
                return;
            }
            _ => member.invalidate(&key),
        };
        self.changes.fetch_add(1, SeqCst);
        self.known.add(key, version, at, None);
        let (known, is_sent) = (Arc::clone(&self.known), self.is_sent);
        tokio::spawn(async move {
            if is_sent {
                drop(settled);
                tokio::time::sleep(SENT_WITHIN).await;
            } else {
                settled.await;
            }
            known.add(key, version, at, Some(Instant::now()));
        });
    }

    async fn read(&self, at: usize, member: &Member) {
        self.reads.fetch_add(1, SeqCst);
        let key = rand::random_range(0..KEYS);
        let least = self.known.least(key, at);
        let got = match rand::random_range(0..20) {
            0 => member.refresh(&key).await.unwrap(),
            1 => {
                let keys: Vec<u64> = (0..KEYS).collect();
                let leasts: Vec<u64> = keys.iter().map(|key| self.known.least(*key, at)).collect();
                let got = member.get_many(keys).await;
                for (key, (got, least)) in got.into_iter().zip(leasts).enumerate() {
                    let got = got.unwrap().unwrap_or(0);
                    assert!(got >= least, "{at} read {got} of {key} among many, {least} was there");
                }
                return;
            }
            2 => {
                drop(tokio::time::timeout(ms(1), member.get(&key)).await);
                return;
            }
            _ => member.get(&key).await.unwrap(),
        };
        let got = got.unwrap_or(0);
        assert!(got >= least, "{at} read {got} of {key}, {least} was there");
    }
}

async fn weather(trouble: Trouble) {
    let seed = std::env::var("FOREBAY_STORM_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let seconds = std::env::var("FOREBAY_STORM_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    println!("FOREBAY_STORM_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut redis = Redis::start().unwrap();
    let proxies = || -> Vec<Proxy> { (0..MEMBERS).map(|_| Proxy::start(redis.address()).unwrap()).collect() };
    let (to_tier, to_others) = (proxies(), proxies());
    let storm = Arc::new(Storm {
        database: Database::default(),
        known: Arc::default(),
        ends: Instant::now() + Duration::from_secs(seconds),
        is_sent: trouble == Trouble::Tiers,
        next: Arc::default(),
        changes: Arc::default(),
        reads: Arc::default(),
    });
    storm.database.take(ms(3));
    let mut tasks = Vec::new();
    let mut members = Vec::new();
    for at in 0..MEMBERS {
        let mut settings = leasing(ms(200));
        settings.timeout = ms(60);
        settings.change_timeout = ms(150);
        settings.pause = (ms(20), ms(100));
        settings.retry_after = (ms(20), ms(100));
        settings.max_owed = 12;
        let builder = storm.database.cache().tier(tier(to_tier[at].address()));
        let carrier = backplane(to_others[at].address());
        let member = builder.tier_settings(settings).backplane(carrier, LAG).build();
        members.push(member.clone());
        for reads in [false, true, true] {
            let (storm, member) = (Arc::clone(&storm), member.clone());
            tasks.push(tokio::spawn(async move {
                while Instant::now() < storm.ends {
                    if reads {
                        storm.read(at, &member).await;
                    } else {
                        storm.change(at, &member).await;
                        tokio::time::sleep(ms(rand::random_range(0..100))).await;
                    }
                    tokio::time::sleep(ms(1)).await;
                }
            }));
        }
    }
    while Instant::now() < storm.ends {
        let lasts = ms(random.random_range(20..2_000));
        let at = random.random_range(0..MEMBERS);
        let ways = match trouble {
            Trouble::Tiers => vec![&to_tier[at]],
            Trouble::Backplanes => vec![&to_others[at]],
            Trouble::Both => vec![&to_tier[at], &to_others[at]],
            Trouble::Server => {
                let key = format!("fleet:{}", random.random_range(0..KEYS));
                let tag = format!("fleet;tag:digit{}", random.random_range(0..10));
                let commands: &[&[&str]] = &[
                    &["FLUSHALL"],
                    &["PUBLISH", "fleet;changes;0", "garbage"],
                    &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
                    &["CLIENT", "KILL", "TYPE", "pubsub"],
                    &["SET", &key, "garbage"],
                    &["DEL", &tag],
                    &["DEL", "fleet;moment"],
                    &["DEL", "fleet;forgotten"],
                    &["SET", "fleet;forgotten", "a text"],
                    &["SET", "fleet;moment", "a text"],
                    &["RPUSH", "fleet;lease:3", "a list"],
                    &["CONFIG", "SET", "maxmemory", "1"],
                    &["CONFIG", "SET", "maxmemory", "0"],
                    &["DEBUG", "SLEEP", "0.1"],
                ];
                match random.random_range(0..commands.len() + 2) {
                    which if which < commands.len() => drop(redis.command(commands[which])),
                    which if which == commands.len() => {
                        redis.pause().unwrap();
                        tokio::time::sleep(lasts / 2).await;
                        redis.resume().unwrap();
                    }
                    _ => {
                        redis.kill9().unwrap();
                        redis.restart().unwrap();
                    }
                }
                tokio::time::sleep(lasts / 8).await;
                continue;
            }
        };
        for way in &ways {
            match random.random_range(0..4) {
                0 => way.set(Behaviour::Stall),
                1 => way.set(Behaviour::Delay(ms(40))),
                2 => way.cut(),
                _ => {
                    way.set(Behaviour::Refuse);
                    way.cut();
                }
            }
        }
        tokio::time::sleep(lasts).await;
        for way in ways {
            way.set(Behaviour::Pass);
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    println!(
        "{trouble:?}: {} changes, {} reads, {} fetches, {} by the tier",
        storm.changes.load(SeqCst),
        storm.reads.load(SeqCst),
        storm.database.fetches(),
        members.iter().map(|member| member.stats().flights_by_tier).sum::<u64>(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_ways_to_the_tier_fail() {
    weather(Trouble::Tiers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_ways_to_one_another_fail() {
    weather(Trouble::Backplanes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_both_fail() {
    weather(Trouble::Both).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_fails() {
    weather(Trouble::Server).await;
}
