//! The search for a case that goes wrong: one after another for a while, each by a seed of its own; what is found is made
//! smaller before it is shown.
//!
//! Promises: a failure tells the seed by which it comes again.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::Case;

/// The seed of the only case to run.
const SEED: &str = "FOREBAY_MODEL_SEED";
/// For how long to search.
const SECONDS: &str = "FOREBAY_MODEL_SECONDS";
/// A case takes a second at most, on a machine that does much else.
const CASE_MAX: Duration = Duration::from_secs(30);
const SECONDS_USUAL: u64 = 20;
/// What is found is made smaller for so long.
const SHRINK_FOR: Duration = Duration::from_secs(30);

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs cases until one fails or the time is over; at least one.
pub(crate) fn search(
    database: &str,
    cases: &impl Strategy<Value = Case>,
    run: &mut dyn FnMut(&Case) -> Result<(), String>,
) {
    let only = variable(SEED);
    let first = only.unwrap_or_else(|| u64::from(rand_seed()) << 16);
    let end = Instant::now() + Duration::from_secs(variable(SECONDS).unwrap_or(SECONDS_USUAL));
    println!("{database}: {SEED}={first} and on");
    let (mut seed, mut count, mut statements) = (first, 0, 0);
    loop {
        let case = drawn(cases, seed);
        count += 1;
        statements += case.steps.len();
        if let Err(reason) = run(&case) {
            let (case, reason) = smaller((case, reason), run);
            panic!("{database}, {SEED}={seed}: {reason}\n{}", shown(&case));
        }
        if only.is_some() || Instant::now() >= end {
            break;
        }
        seed += 1;
    }
    println!("{database}: {count} cases, {statements} statements");
}

/// What a case comes to; that it comes to its end is part of it.
pub(crate) async fn in_time(case: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let ended = tokio::time::timeout(CASE_MAX, case).await;
    ended.unwrap_or_else(|_| Err(format!("did not come to its end within {} s", CASE_MAX.as_secs())))
}

/// Another one for each run: time and process differ.
fn rand_seed() -> u32 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.subsec_nanos() ^ std::process::id().rotate_left(16)
}

fn drawn(cases: &impl Strategy<Value = Case>, seed: u64) -> Case {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    cases.new_tree(&mut runner).unwrap().current()
}

/// Without as many of its statements as can be found in time that goes wrong, too.
fn smaller(mut found: (Case, String), run: &mut dyn FnMut(&Case) -> Result<(), String>) -> (Case, String) {
    let end = Instant::now() + SHRINK_FOR;
    let mut length = found.0.steps.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < found.0.steps.len() && Instant::now() < end {
            let mut case = found.0.clone();
            let to = (at + length).min(case.steps.len());
            case.steps.drain(at..to);
            match run(&case) {
                Err(reason) => found = (case, reason),
                Ok(()) => at += length,
            }
        }
        length /= 2;
    }
    found
}

fn shown(case: &Case) -> String {
    let steps: Vec<String> = case
        .steps
        .iter()
        .enumerate()
        .map(|(position, step)| format!("  {position}: {step:?}"))
        .collect();
    format!(
        "schema:\n  {};\nat most {} a batch:\n{}",
        case.schema.join(";\n  "),
        case.max_items,
        steps.join("\n")
    )
}
