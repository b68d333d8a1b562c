//! Tries: how many there are, with which seed, how long one may take, and which one it was that failed.

use std::fmt;
use std::time::{Duration, SystemTime};

/// What is received as it comes takes no more at once, whatever its length is said to be: twice what has come, and a mebibyte ahead.
pub(crate) const LARGEST_BYTES_MAX: usize = 5 << 19;
/// So many changes, unless told otherwise.
const CASES: u64 = 4_000;
const SOON: Duration = Duration::from_secs(60);

/// Whether what servers say is recorded anew.
pub(crate) fn is_recording() -> bool {
    number("FOREBAY_RECORD").is_some_and(|number| number > 0)
}

/// How many changes are tried.
pub(crate) fn cases() -> u64 {
    number("FOREBAY_CASES").unwrap_or(CASES)
}

/// The seed that is named, or one of the moment.
pub(crate) fn seed() -> u64 {
    let of_the_moment = || {
        let since = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
        since.as_micros() as u64
    };
    let seed = number("FOREBAY_SEED").unwrap_or_else(of_the_moment);
    println!("FOREBAY_SEED={seed}");
    seed
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

/// What this comes to; nothing waits for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.expect("no wait is for ever")
}

/// What is tried now. It is told if the test fails in the middle of it.
pub(crate) struct Tried(pub(crate) String);

impl fmt::Display for Tried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Drop for Tried {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed: {self}");
        }
    }
}
