//! Sessions straight to PostgreSQL and through the proxy, byte by byte: whatever a session does, the client cannot tell.
//!
//! Each session plays the same messages on two connections, in two databases that began alike: one straight, one through the proxy,
//! among other sessions on fewer server connections than there are sessions. All that comes back is compared, but for what differs
//! between any two sessions: process numbers, numbers of tables, and when a setting is reported.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod client;
mod company;
mod edges;
mod front;
mod histories;
mod linear;
mod points;
mod script;
mod tenants;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use client::Client;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use script::{Script, Step};
use testbed::{ForTests, Postgres};

fn server_url() -> String {
    static SERVER: OnceLock<ForTests<Postgres>> = OnceLock::new();
    SERVER
        .get_or_init(|| Postgres::for_tests().expect("PostgreSQL starts"))
        .url()
}

/// A database of its own, and the server's address.
fn database(name: &str) -> String {
    let url = server_url();
    let mut client = Client::connect(&address(&url), "postgres", &[]);
    client.run(&format!("DROP DATABASE IF EXISTS {name}"));
    client.run(&format!("CREATE DATABASE {name}"));
    address(&url)
}

fn address(url: &str) -> String {
    let rest = url.split_once('@').unwrap().1;
    rest.split('/').next().unwrap().to_owned()
}

/// Plays a script on both, step by step.
fn play(seed: u64, steps: &[Step], straight: &mut Client, proxied: &mut Client) {
    let mut before = Vec::new();
    for step in steps {
        let expected = straight.ask(step);
        let told = proxied.ask(step);
        before.push(format!("{step}"));
        assert_eq!(
            expected,
            told,
            "left straight, right through the proxy; FOREBAY_JUDGE_SEED={seed}, after\n  {}",
            before.join("\n  ")
        );
        assert_eq!(
            straight.settings(),
            proxied.settings(),
            "settings; FOREBAY_JUDGE_SEED={seed}, after\n  {}",
            before.join("\n  ")
        );
    }
}

/// So many sessions at once, each with its own steps, straight to the one database and through the proxy to the other.
fn play_at_once(
    seed: u64,
    sessions: usize,
    (upstream, one): (&str, &str),
    (proxy, other): (&str, &str),
    steps: impl Fn(u64, usize) -> Vec<Step> + Sync,
) {
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..sessions)
            .map(|number| {
                let steps = &steps;
                scope.spawn(move || {
                    let seed = seed * 1000 + number as u64;
                    let mut straight = Client::connect(upstream, one, &[]);
                    let mut proxied = Client::connect(proxy, other, &[]);
                    play(seed, &steps(seed, number), &mut straight, &mut proxied);
                })
            })
            .collect();
        for player in players {
            if let Err(panic) = player.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

fn judge(name: &str, start: fn(&str, usize) -> String, connections: usize, seeds: impl Iterator<Item = u64>) {
    let (one, other) = (format!("{name}_straight"), format!("{name}_proxied"));
    let upstream = database(&one);
    database(&other);
    for database in [&one, &other] {
        let mut client = Client::connect(&upstream, database, &[]);
        client.run(script::SCHEMA);
    }
    // The last ones never do what keeps a connection, and share what is left.
    let pinning = SESSIONS / 2;
    let proxy = start(&upstream, connections);
    for seed in seeds {
        let is_over = Arc::new(AtomicBool::new(false));
        let stranger = {
            let (proxy, other, is_over) = (proxy.clone(), other.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let mut client = Client::connect(&proxy, &other, &[("application_name", "stranger")]);
                while !is_over.load(Ordering::Relaxed) {
                    let text = script::STRANGE[random.random_range(0..script::STRANGE.len())];
                    client.ask(&Step::query(text));
                }
            })
        };
        let players: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let (upstream, proxy) = (upstream.clone(), proxy.clone());
                let (one, other) = (one.clone(), other.clone());
                std::thread::spawn(move || {
                    let seed = seed * 1000 + number as u64;
                    let script = Script::new(seed, number, number < pinning, STEPS);
                    let parameters: Vec<(&str, &str)> =
                        script.parameters.iter().map(|(name, value)| (*name, *value)).collect();
                    let mut straight = Client::connect(&upstream, &one, &parameters);
                    let mut proxied = Client::connect(&proxy, &other, &parameters);
                    assert_eq!(straight.settings(), proxied.settings(), "at the beginning");
                    play(seed, &script.steps, &mut straight, &mut proxied);
                })
            })
            .collect();
        let ended: Vec<_> = players.into_iter().map(std::thread::JoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        stranger.join().unwrap();
        for ended in ended {
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

const SESSIONS: usize = 8;
const STEPS: usize = 60;

/// Where to begin, and how many seeds.
fn seeds(rounds: u64) -> std::ops::Range<u64> {
    let named = std::env::var("FOREBAY_JUDGE_SEED")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap() / 1000);
    let rounds = std::env::var("FOREBAY_JUDGE_ROUNDS").map_or(rounds, |rounds| rounds.parse().unwrap());
    let first = named.unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    println!("FOREBAY_JUDGE_SEED={}", first * 1000);
    first..first + if named.is_some() { 1 } else { rounds }
}

/// The same, and further ones until it is enough, ten times as many at most: what is shared by chance may not have been yet.
fn seeds_until(rounds: u64, is_enough: impl Fn() -> bool) -> impl Iterator<Item = u64> {
    let seeds = seeds(rounds);
    let further = seeds.end..seeds.end + 9 * rounds;
    seeds.chain(further.take_while(move |_| !is_enough()))
}

#[test]
fn nobody_can_tell() {
    judge("judge", front::start, 24, seeds(10));
}

/// Sessions begin in four ways: most that are lent a connection find one that began otherwise, and none for them.
#[test]
fn nobody_can_tell_where_connections_are_few() {
    judge("few", front::start, SESSIONS / 2 + 2, seeds(5));
}

/// Each transaction runs on another connection, which strangers have had in between, and where what was prepared by name is not known.
#[test]
fn nobody_can_tell_where_the_pool_is_hostile() {
    judge("hostile", front::start_straying, 24, seeds(5));
}

/// Whatever may travel in company does.
#[test]
fn nobody_can_tell_in_company() {
    judge("company", front::start_in_company, 24, seeds(5));
}
