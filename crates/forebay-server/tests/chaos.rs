//! Chaos: many clients of the proxy with random sessions, and a model that knows what each must see, while server connections are cut and
//! the server crashes.
//!
//! What each client asks for has its number in it: an answer of another one's cannot pass for its own. Rows that were acknowledged are there
//! once, rows that were refused are not, and of what was under way when a connection was lost either may be true. At the end nothing is left
//! that anybody holds. Seeds are printed; `FOREBAY_CHAOS_SEED` names one, `FOREBAY_CHAOS_SECONDS` says for how long.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

#[path = "wire/client.rs"]
mod client;

#[path = "chaos/fates.rs"]
mod fates;
#[path = "chaos/life.rs"]
mod life;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::{Forebay, Postgres};

use client::Client;
use life::{Life, World};

const PROGRAM: &str = env!("CARGO_BIN_EXE_forebay");
const CLIENTS: u64 = 200;
/// Far fewer than clients.
const CONNECTIONS: &str = "12";
/// Of each client, where no time is given.
const STEPS: usize = 60;

fn at(address: SocketAddr) -> Client {
    Client::connect_with(address, &[("user", "postgres"), ("database", "postgres")]).unwrap()
}

/// For how long: so many steps of each client, or until then.
#[derive(Clone, Copy)]
enum Extent {
    Steps(usize),
    Until(Instant),
}

impl Extent {
    fn is_over(self, steps: usize) -> bool {
        match self {
            Self::Steps(most) => steps >= most,
            Self::Until(end) => Instant::now() >= end,
        }
    }
}

fn extent() -> Extent {
    match std::env::var("FOREBAY_CHAOS_SECONDS") {
        Ok(seconds) => Extent::Until(Instant::now() + Duration::from_secs(seconds.parse().expect("seconds"))),
        Err(_) => Extent::Steps(STEPS),
    }
}

fn seed() -> u64 {
    let seed = match std::env::var("FOREBAY_CHAOS_SEED") {
        Ok(seed) => seed.parse().expect("a seed"),
        Err(_) => rand::rng().random_range(0..1_000_000),
    };
    println!("FOREBAY_CHAOS_SEED={seed}");
    seed
}

/// Clients of one proxy, each with what it knows, until all are done. How much each did.
fn play(server: &Postgres, proxy: &Forebay, seed: u64, is_stormy: bool) -> u64 {
    let world = World {
        address: proxy.address(),
        is_stormy,
    };
    let extent = extent();
    let is_done = AtomicBool::new(false);
    let lives: Vec<Life> = std::thread::scope(|scope| {
        let storm = is_stormy.then(|| scope.spawn(|| storm(server, seed, &is_done)));
        let playing: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || {
                    let mut life = Life::new(world, number, StdRng::seed_from_u64(seed * 1000 + number));
                    let mut steps = 0;
                    while !extent.is_over(steps) {
                        steps += life.live(|more| extent.is_over(steps + more));
                    }
                    life
                })
            })
            .collect();
        let joined: Vec<_> = playing.into_iter().map(ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        if let Some(storm) = storm {
            let strikes = storm.join().unwrap();
            assert!(strikes > 0, "nothing was struck");
            println!("{strikes} server connections were ended");
        }
        joined.into_iter().map(|life| life.unwrap()).collect()
    });
    let mut straight = recovered(server);
    for life in &lives {
        life.fates.check(&mut straight, life.number);
    }
    nothing_is_left(&mut straight, proxy);
    lives.iter().map(|life| life.done).sum()
}

/// A connection to the server itself, which may still be getting over its last crash.
fn recovered(server: &Postgres) -> Client {
    let world = World {
        address: server.address(),
        is_stormy: true,
    };
    let begun = Instant::now();
    loop {
        if let Ok(client) = world.connect(&[("user", "postgres"), ("database", "postgres")]) {
            return client;
        }
        assert!(begun.elapsed() < client::PATIENCE, "{}", server.output());
    }
}

/// Cuts server connections, and now and then has the server crash: how often.
fn storm(server: &Postgres, seed: u64, is_done: &AtomicBool) -> u64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut strikes = 0;
    let mut straight = None;
    let world = World {
        address: server.address(),
        is_stormy: true,
    };
    let who = [("user", "postgres"), ("database", "postgres")];
    while !is_done.load(Ordering::Relaxed) {
        let Some(mut client) = straight.take().or_else(|| world.connect(&who).ok()) else {
            continue;
        };
        // In between the others have some time to themselves.
        let some = "SELECT pid FROM pg_sleep(0.2), pg_stat_activity WHERE backend_type = 'client backend' \
                    AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";
        client.send(&client::query(some));
        let Ok(answer) = client.try_answer() else { continue };
        let Some(process) = answer.value() else {
            straight = Some(client);
            continue;
        };
        strikes += 1;
        if rng.random_ratio(1, 10) {
            // One that dies takes all with it: the server starts anew.
            // SAFETY: a signal to a process of the server that this test has started.
            let is_there = unsafe { libc::kill(process.parse().unwrap(), libc::SIGKILL) } == 0;
            if is_there {
                // It is noticed a moment later: who connects before that is cut off, too.
                client.send(&client::query("SELECT pg_sleep(5)"));
                drop(client.try_answer());
            }
        } else {
            client.send(&client::query(&format!("SELECT pg_terminate_backend({process})")));
            if client.try_answer().is_ok() {
                straight = Some(client);
            }
        }
    }
    strikes
}

/// All have gone: no connection is anybody's, and nothing is held on those that are kept.
fn nothing_is_left(straight: &mut Client, proxy: &Forebay) {
    let metric = |name| proxy.metric(name).unwrap();
    let begun = Instant::now();
    let is_left = || {
        metric("forebay_connections") != Some(0.0)
            || metric("forebay_clients_waiting") != Some(0.0)
            || metric("forebay_server_connections") != metric("forebay_server_connections_idle")
    };
    while is_left() {
        assert!(begun.elapsed() < client::PATIENCE, "{}", proxy.metrics().unwrap());
    }
    for (sql, what) in [
        (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle' \
             AND pid <> pg_backend_pid()",
            "sessions at work",
        ),
        (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
            "advisory locks",
        ),
    ] {
        let begun = Instant::now();
        while straight.ask(sql) != "0" {
            assert!(begun.elapsed() < client::PATIENCE, "{what} are left");
        }
    }
    // Whoever comes now finds what a new session has.
    let fresh = "SELECT current_setting('work_mem') || current_setting('application_name') || \
                 (SELECT count(*) FROM pg_listening_channels()) || coalesce(current_setting('app.me', true), '') || pg_my_temp_schema()";
    let expected = straight.ask(fresh);
    let mut all: Vec<Client> = (0..4).map(|_| at(proxy.address())).collect();
    for client in &mut all {
        client.run("BEGIN");
        assert_eq!(client.ask(fresh), expected);
    }
}

fn server() -> Postgres {
    // Far more than the proxy has: those of connections that were closed in the middle, and requests to cancel, take a while to end.
    let server = Postgres::builder().setting("max_connections", "300").start();
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    at(server.address()).run("CREATE TABLE chaos (client int, number int, text text)");
    server
}

fn proxy(server: &Postgres) -> Forebay {
    let arguments = ["--max-server-connections", CONNECTIONS, "--server-wait-timeout", "1min"];
    Forebay::builder(PROGRAM)
        .upstream(format!("postgresql://{}/postgres", server.address()))
        .arguments(arguments)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn each_gets_its_own_and_all_of_it() {
    let (seed, server) = (seed(), server());
    let proxy = proxy(&server);
    let done = play(&server, &proxy, seed, false);
    println!("{done} steps");
}

#[test]
fn what_is_cut_ends_only_what_ran_there_and_what_was_acknowledged_stays() {
    let (seed, server) = (seed(), server());
    let proxy = proxy(&server);
    let done = play(&server, &proxy, seed, true);
    println!("{done} steps");
}
