//! Three processes over one database, Redis as tier and backplane, with leases: killed, stopped, cut off and let back in, under load. What one has
//! invalidated no other serves after the bound; and who invalidated it does not at all.
//!
//! The seed is printed; `FOREBAY_FLEET_SEED` names one, `FOREBAY_FLEET_SECONDS` says for how long.

use super::*;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use forebay_cache::Cache;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::{Behaviour, Process, Program, Proxy};

const FOLDER: &str = "FOREBAY_TEST_FLEET_FOLDER";
const MEMBER: &str = "FOREBAY_TEST_FLEET_MEMBER";
const REDIS: &str = "FOREBAY_TEST_FLEET_REDIS";
const MEMBERS: u64 = 3;
const KEYS: u64 = 12;
const MAX_LAG: Duration = ms(500);
/// What a reader's own bookkeeping and the clock's grain take.
const GRAIN: Duration = ms(20);

#[test]
fn nobody_serves_what_was_invalidated_before_the_bound() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return member(Path::new(&folder));
    }
    let seed = std::env::var("FOREBAY_FLEET_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let seconds = std::env::var("FOREBAY_FLEET_SECONDS").map_or(8, |seconds| seconds.parse().unwrap());
    println!("FOREBAY_FLEET_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    for key in 0..KEYS {
        write_row(folder.path(), key, 0);
    }
    let mut redis = Redis::start().unwrap();
    let proxies: Vec<Proxy> = (0..MEMBERS).map(|_| Proxy::start(redis.address()).unwrap()).collect();
    let start = |member: u64| start_member(folder.path(), member, proxies[member as usize].address());
    let mut members: Vec<Process> = (0..MEMBERS).map(start).collect();
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        rest(ms(random.random_range(50..400)));
        let at = random.random_range(0..MEMBERS) as usize;
        let trouble = ms(random.random_range(100..1_500));
        match random.random_range(0..6) {
            0 => {
                drop(members[at].stop(libc::SIGKILL));
                members[at] = start(at as u64);
            }
            1 => {
                members[at].signal(libc::SIGSTOP).unwrap();
                rest(trouble);
                members[at].signal(libc::SIGCONT).unwrap();
            }
            2 => {
                proxies[at].set(Behaviour::Stall);
                rest(trouble);
                proxies[at].set(Behaviour::Pass);
            }
            3 => {
                proxies[at].set(Behaviour::Refuse);
                rest(trouble);
                proxies[at].set(Behaviour::Pass);
            }
            4 => proxies[at].cut(),
            _ => {
                redis.pause().unwrap();
                rest(trouble / 2);
                redis.resume().unwrap();
            }
        }
    }
    // All is well again, so all that was written is told.
    rest(2 * MAX_LAG);
    for member in &mut members {
        drop(member.stop(libc::SIGKILL));
    }
    drop(members);
    judge(folder.path());
}

/// The trouble lasts, on a thread that has nothing else to do.
#[allow(
    clippy::disallowed_methods,
    reason = "it is the length of the trouble, and no condition that is waited for"
)]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

fn start_member(folder: &Path, member: u64, redis: SocketAddr) -> Process {
    let words = [
        "--exact",
        "processes::nobody_serves_what_was_invalidated_before_the_bound",
        "--nocapture",
    ];
    let mut program = Program::new(std::env::current_exe().unwrap(), words);
    program.environment = vec![
        (FOLDER.into(), folder.into()),
        (MEMBER.into(), member.to_string().into()),
        (REDIS.into(), redis.to_string().into()),
    ];
    program.start().unwrap()
}

/// Microseconds, on a clock that all processes share.
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

fn row(folder: &Path, key: u64) -> PathBuf {
    folder.join(format!("row{key}"))
}

fn write_row(folder: &Path, key: u64, version: u64) {
    let beside = folder.join(format!("new{key}"));
    std::fs::write(&beside, version.to_string()).unwrap();
    std::fs::rename(&beside, row(folder, key)).unwrap();
}

fn read_row(folder: &Path, key: u64) -> u64 {
    std::fs::read_to_string(row(folder, key)).unwrap().parse().unwrap()
}

/// What is noted: `read key version asked answered`, `called key version at`, `settled key version at`.
struct Notes(Mutex<std::fs::File>);

impl Notes {
    fn note(&self, line: std::fmt::Arguments<'_>) {
        let mut text = String::new();
        writeln!(text, "{line}").unwrap();
        self.0.lock().write_all(text.as_bytes()).unwrap();
    }
}

/// One process: it writes the keys that are its own, and reads all.
fn member(folder: &Path) {
    let number: u64 = std::env::var(MEMBER).unwrap().parse().unwrap();
    let redis: SocketAddr = std::env::var(REDIS).unwrap().parse().unwrap();
    let name = format!("notes.{number}.{}", now_us());
    let notes = Arc::new(Notes(Mutex::new(std::fs::File::create(folder.join(name)).unwrap())));
    let folder = folder.to_path_buf();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let rows = folder.clone();
        let source = move |key: u64| {
            let version = read_row(&rows, key);
            let takes = ms(rand::random_range(0..5));
            async move {
                tokio::time::sleep(takes).await;
                Ok::<_, Infallible>(Fetched::of(version).tag(format!("key{key}")))
            }
        };
        let mut settings = leasing(ms(200));
        settings.pause = (ms(50), ms(100));
        settings.timeout = ms(100);
        let cache = Cache::builder(source)
            .fresh_for(HOUR)
            .tier(tier(redis))
            .tier_settings(settings)
            .backplane(backplane(redis), MAX_LAG)
            .build();
        for _ in 0..4 {
            let (cache, notes) = (cache.clone(), Arc::clone(&notes));
            tokio::spawn(async move {
                loop {
                    let key = rand::random_range(0..KEYS);
                    let asked = now_us();
                    let version = cache.get(&key).await.unwrap().unwrap();
                    notes.note(format_args!("read {key} {version} {asked} {}", now_us()));
                    tokio::time::sleep(ms(1)).await;
                }
            });
        }
        loop {
            let key = rand::random_range(0..KEYS / MEMBERS) * MEMBERS + number;
            let version = read_row(&folder, key) + 1;
            write_row(&folder, key, version);
            let settled = match rand::random_range(0..3) {
                0 => cache.invalidate(&key),
                1 => cache.invalidate_tag(&format!("key{key}")),
                _ => cache.insert_fetched(key, Fetched::of(version).tag(format!("key{key}"))),
            };
            notes.note(format_args!("called {key} {version} {}", now_us()));
            let noted = Arc::clone(&notes);
            tokio::spawn(async move {
                settled.await;
                noted.note(format_args!("settled {key} {version} {}", now_us()));
            });
            tokio::time::sleep(ms(rand::random_range(5..60))).await;
        }
    });
}

/// Holds what all have noted against the bound.
fn judge(folder: &Path) {
    // By key and version: when all had to have heard of it.
    let mut settled: HashMap<(u64, u64), u64> = HashMap::new();
    // By process, key and version: from when on it had to know itself.
    let mut called: HashMap<(String, u64, u64), u64> = HashMap::new();
    let mut reads = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if !name.starts_with("notes.") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        // The last line may have been cut by the kill.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            match words[0] {
                "read" => reads.push((name.clone(), number(1), number(2), number(3))),
                "called" => drop(called.insert((name.clone(), number(1), number(2)), number(3))),
                "settled" => drop(settled.insert((number(1), number(2)), number(3))),
                other => panic!("{other}"),
            }
        }
    }
    let bound_us = (MAX_LAG + GRAIN).as_micros() as u64;
    let mut violations = Vec::new();
    let mut late_us = 0;
    for (name, key, version, asked) in &reads {
        for newer in version + 1.. {
            let Some(settled) = settled.get(&(*key, newer)) else {
                if newer > version + 50 {
                    break;
                }
                continue;
            };
            if settled + bound_us < *asked {
                violations.push(format!(
                    "{name}: key {key} was {version} {} ms after {newer} was settled",
                    (asked - settled) / 1_000
                ));
            } else if *settled < *asked {
                late_us = late_us.max(asked - settled);
            }
            break;
        }
        for newer in version + 1..version + 10 {
            if called
                .get(&(name.clone(), *key, newer))
                .is_some_and(|called| called < asked)
            {
                violations.push(format!(
                    "{name}: key {key} was {version} after it had made it {newer} itself"
                ));
            }
        }
    }
    println!(
        "{} reads, {} changes, {} settled; the oldest answer came {} ms after its change had settled",
        reads.len(),
        called.len(),
        settled.len(),
        late_us / 1_000
    );
    assert!(
        violations.is_empty(),
        "{} violations:\n{}",
        violations.len(),
        violations[..violations.len().min(20)].join("\n")
    );
    assert!(
        reads.len() > 1_000 && settled.len() > 50,
        "{} reads, {} settled",
        reads.len(),
        settled.len()
    );
}
