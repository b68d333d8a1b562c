//! Loads that are made up, each for something that real programs do and the traces here do not, or not alone.
//!
//! Promises: the same requests each time. Knows nothing of caches.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEED: u64 = 20;
/// Keys that are drawn by Zipf's law.
const KEYS: u64 = 20_000;
/// Keys from here on are of nothing that is drawn.
const ELSEWHERE: u64 = 1 << 40;

/// 1,000 keys, each twice, and then over and over.
pub(super) fn twice_then_loop() -> Vec<u64> {
    let twice = (0..1_000).flat_map(|key| [key, key]);
    twice.chain((0..200_000).map(|at| at % 1_000)).collect()
}

/// Loops that become longer, and shorter again.
pub(super) fn loops() -> Vec<u64> {
    let lengths = [300, 500, 800, 1_000, 1_300, 2_000, 3_000];
    let there_and_back = lengths.into_iter().chain(lengths.into_iter().rev());
    there_and_back
        .flat_map(|length| (0..30 * length).map(move |at| at % length))
        .collect()
}

/// By Zipf's law.
pub(super) fn zipf(exponent: f64) -> Vec<u64> {
    let mut draw = Zipf::new(exponent);
    (0..300_000).map(|_| draw.key()).collect()
}

/// By Zipf's law; who is asked for often changes slowly.
pub(super) fn drifting_zipf() -> Vec<u64> {
    let mut draw = Zipf::new(0.99);
    (0..400_000)
        .map(|at| draw.key() * 7_919 % (KEYS + 11) + at / 20)
        .collect()
}

/// By Zipf's law, and now and then very many one after the other that nobody asks for again.
pub(super) fn zipf_and_scans() -> Vec<u64> {
    let mut draw = Zipf::new(0.99);
    let mut requests = Vec::new();
    for scan in 0..40 {
        requests.extend((0..5_000).map(|_| draw.key()));
        requests.extend((0..3_000).map(|at| ELSEWHERE + scan * 3_000 + at));
    }
    requests
}

/// One of three is new, the others were asked for not long ago: the sooner, the likelier.
pub(super) fn just_now() -> Vec<u64> {
    let mut dice = StdRng::seed_from_u64(SEED);
    let mut requests: Vec<u64> = Vec::new();
    let mut new = 0;
    for _ in 0..300_000 {
        let ago = (3_000.0 * dice.random::<f64>().powi(3)) as usize;
        match requests.len().checked_sub(ago + 1) {
            Some(at) if dice.random_bool(0.7) => requests.push(requests[at]),
            _ => {
                requests.push(new);
                new += 1;
            }
        }
    }
    requests
}

/// The latest again, a loop, and Zipf's law take turns.
pub(super) fn phases() -> Vec<u64> {
    let mut draw = Zipf::new(0.9);
    let mut requests = Vec::new();
    for phase in 0..4 {
        let first = (phase + 1) * ELSEWHERE;
        requests.extend((0..15_000).map(|at| {
            let newest = first + at / 2 + 500;
            newest - at % 2 * (at * 7_919 % 250)
        }));
        requests.extend((0..15_000).map(|at| first + ELSEWHERE / 2 + at % 750));
        requests.extend((0..15_000).map(|_| first + ELSEWHERE / 4 + draw.key()));
    }
    requests
}

/// Two kinds of keys that take turns: some by Zipf's law, others in a loop.
pub(super) fn zipf_beside_a_loop() -> Vec<u64> {
    let mut draw = Zipf::new(0.99);
    (0..300_000)
        .map(|at| match at % 2 {
            0 => draw.key(),
            _ => ELSEWHERE + at / 2 % 2_000,
        })
        .collect()
}

struct Zipf {
    dice: StdRng,
    weights_up_to: Vec<f64>,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights_up_to = (1..=KEYS).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self {
            weights_up_to: weights_up_to.collect(),
            dice: StdRng::seed_from_u64(SEED),
        }
    }

    fn key(&mut self) -> u64 {
        let sum = self.weights_up_to.last().copied().unwrap_or_default();
        let point = self.dice.random::<f64>() * sum;
        self.weights_up_to.partition_point(|weight| *weight < point) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn loads_are_what_they_are_called() {
        assert_eq!(twice_then_loop()[..4], [0, 0, 1, 1]);
        assert_eq!(twice_then_loop()[2_000..2_003], [0, 1, 2]);
        assert_eq!(loops().into_iter().collect::<HashSet<_>>().len(), 3_000);
        let most_asked_for =
            |requests: Vec<u64>| requests.iter().filter(|key| **key == 0).count() as f64 / requests.len() as f64;
        assert!((0.08..0.11).contains(&most_asked_for(zipf(0.99))));
        assert!((0.01..0.02).contains(&most_asked_for(zipf(0.7))));
        let new = just_now().into_iter().collect::<HashSet<_>>().len();
        assert!((85_000..100_000).contains(&new), "{new}");
        assert_eq!(phases().len(), 180_000);
        assert_eq!(drifting_zipf(), drifting_zipf(), "the same each time");
        assert!(zipf_and_scans().contains(&(ELSEWHERE + 119_999)));
        assert_eq!(zipf_beside_a_loop()[4_001], ELSEWHERE);
    }
}
