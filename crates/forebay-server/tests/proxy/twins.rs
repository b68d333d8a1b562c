//! A session through the proxy and one straight at the server that is asked the very same, one after the other.

use std::net::SocketAddr;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::at_once::told;
use crate::client::{Client, query};
use crate::postgres;

/// A session through the proxy and one beside it.
pub(crate) struct Twins {
    proxied: Client,
    straight: Client,
    is_inside: bool,
    has_failed: bool,
}

impl Twins {
    pub(crate) fn new(address: SocketAddr, database: &str) -> Self {
        let of = |address| Client::connect_with(address, &[("user", "postgres"), ("database", database)]).unwrap();
        Self {
            proxied: of(address),
            straight: of(postgres().address()),
            is_inside: false,
            has_failed: false,
        }
    }

    /// Asks both, and compares what they are told.
    pub(crate) fn ask(&mut self, messages: &[Vec<u8>], said: &str) -> Vec<String> {
        let is_told = |told: &String| !told.starts_with('S') && !told.starts_with('N');
        // Where a transaction has failed it is refused anyway; by what is looked at first hangs on what is prepared there.
        let in_short = |told: String| match self.has_failed && told.starts_with("E ") {
            true => "E".to_owned(),
            false => told,
        };
        let of = |client| {
            told(client, messages)
                .into_iter()
                .filter(is_told)
                .map(in_short)
                .collect()
        };
        let (straight, proxied): (Vec<_>, Vec<_>) = (of(&mut self.straight), of(&mut self.proxied));
        assert_eq!(proxied, straight, "{said}");
        self.is_inside = straight.last().is_none_or(|last| last != "Z I");
        self.has_failed = straight.last().is_some_and(|last| last == "Z E");
        straight
    }
}

const TWINS: usize = 6;
/// No more than this are inside of a transaction, with one connection more for all others.
pub(crate) const INSIDE_MAX: usize = 2;

/// Whoever asks next.
#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) number: usize,
    pub(crate) is_inside: bool,
    pub(crate) may_begin: bool,
    pub(crate) is_nobody_inside: bool,
}

/// So many are asked something in turns, at random: the messages, and what they are in words. Seed and rounds are those of the variables
/// `FOREBAY_NAME_SEED` and `FOREBAY_NAME_ROUNDS`, if they are set. Of a hundred times that somebody has asked something, so many another comes instead.
pub(crate) fn in_turns(
    name: &str,
    make: impl Fn(usize, &mut StdRng) -> Twins,
    goes_in_a_hundred: f64,
    mut something: impl FnMut(&mut StdRng, Asking) -> (Vec<Vec<u8>>, String),
) {
    let variable = |what: &str| std::env::var(format!("FOREBAY_{name}_{what}"));
    let seed = variable("SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let rounds = variable("ROUNDS").map_or(1500, |rounds| rounds.parse().unwrap());
    println!("FOREBAY_{name}_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut all: Vec<Twins> = (0..TWINS).map(|number| make(number, &mut random)).collect();
    let mut rows = 0;
    for round in 0..rounds {
        let inside = all.iter().filter(|twins| twins.is_inside).count();
        let number = random.random_range(0..TWINS);
        let asking = Asking {
            number,
            is_inside: all[number].is_inside,
            may_begin: inside < INSIDE_MAX,
            is_nobody_inside: inside == 0,
        };
        let (messages, words) = something(&mut random, asking);
        let said = format!("seed {seed}, round {round}, client {number}: {words}");
        let told = all[number].ask(&messages, &said);
        rows += told.iter().filter(|told| told.starts_with('D')).count();
        if told.last().is_some_and(|last| last == "Z E") && random.random_bool(0.5) {
            all[number].ask(&[query("ROLLBACK")], "it has failed");
        }
        if random.random_bool(goes_in_a_hundred / 100.0) {
            all[number] = make(number, &mut random);
        }
    }
    assert!(rows > rounds / 10, "{rows} rows in {rounds} rounds");
}
