//! What happens to the tiers while caches use them: a Redis that crashes, hangs or is cut off, a SQLite file that is locked.
//!
//! Promises: what happens follows from the seed; each disturbance is over before the next and before the run's end. It runs in
//! a thread of its own, for starting and stopping servers blocks. Knows no cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::{Behaviour, Proxy, Redis};

use crate::failure::Failure;

/// Between two disturbances, and how long one takes, at most.
const PAUSE_MAX: Duration = Duration::from_millis(2_000);
const TAKES_MAX: Duration = Duration::from_millis(1_000);

/// A running disturbance.
pub(crate) struct Disturbance {
    thread: Option<JoinHandle<Result<u64, Failure>>>,
    is_over: Arc<AtomicBool>,
}

impl Disturbance {
    /// Disturbs nothing.
    pub(crate) fn none(is_over: &Arc<AtomicBool>) -> Self {
        Self {
            thread: None,
            is_over: Arc::clone(is_over),
        }
    }

    /// Disturbs that Redis, and the way to it.
    pub(crate) fn of_redis(
        mut redis: Redis,
        proxy: Proxy,
        seed: u64,
        is_over: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        Self::begin(seed, is_over, move |random, pause| {
            match random.random_range(0..7) {
                0 => {
                    redis.kill9()?;
                    pause(random, TAKES_MAX);
                    redis.restart()?;
                }
                1 => {
                    redis.pause()?;
                    pause(random, TAKES_MAX);
                    redis.resume()?;
                }
                2 => {
                    proxy.cut();
                }
                3 => {
                    // What is on its way when a connection is held arrives later, when new ones have said more.
                    proxy.hold();
                    pause(random, TAKES_MAX);
                    proxy.release();
                }
                other => {
                    proxy.set(match other {
                        4 => Behaviour::Garbage,
                        5 => Behaviour::Refuse,
                        _ => Behaviour::Stall,
                    });
                    pause(random, TAKES_MAX);
                    proxy.set(Behaviour::Pass);
                    // What had half of an answer is of no use any more.
                    proxy.cut();
                }
            }
            Ok(())
        })
    }

    /// Locks those SQLite files against all who write.
    pub(crate) fn of_files(files: &[impl AsRef<Path>], seed: u64, is_over: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for file in files {
            let connection = rusqlite::Connection::open(file)?;
            connection.busy_timeout(TAKES_MAX)?;
            connections.push(connection);
        }
        Self::begin(seed, is_over, move |random, pause| {
            for connection in &connections {
                match connection.execute_batch("BEGIN IMMEDIATE") {
                    Ok(()) => {
                        pause(random, TAKES_MAX);
                        connection.execute_batch("ROLLBACK")?;
                    }
                    // The tier's own writer was quicker.
                    Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
    }

    fn begin(
        seed: u64,
        is_over: &Arc<AtomicBool>,
        mut disturb: impl FnMut(&mut StdRng, &dyn Fn(&mut StdRng, Duration)) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        let ends = Arc::clone(is_over);
        let thread = thread::Builder::new().name("disturbance".to_owned());
        #[allow(
            clippy::disallowed_methods,
            reason = "a thread of its own, which has nothing to do until the time has come"
        )]
        let thread = thread.spawn(move || {
            let mut random = StdRng::seed_from_u64(seed);
            let pause = |random: &mut StdRng, most: Duration| {
                let until = Instant::now() + most.mul_f64(random.random_range(0.05..1.0));
                while !ends.load(Relaxed) && Instant::now() < until {
                    thread::sleep(Duration::from_millis(5));
                }
            };
            let mut disturbances = 0;
            loop {
                pause(&mut random, PAUSE_MAX);
                if ends.load(Relaxed) {
                    return Ok(disturbances);
                }
                disturb(&mut random, &pause)?;
                disturbances += 1;
            }
        });
        Ok(Self {
            thread: Some(thread.map_err(Failure::system("start a thread"))?),
            is_over: Arc::clone(is_over),
        })
    }

    /// Waits for its end, and tells how often it disturbed.
    pub(crate) fn end(mut self) -> Result<u64, Failure> {
        self.is_over.store(true, Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(0),
            Some(Ok(disturbances)) => disturbances,
            Some(Err(_)) => Err(Failure::Wrong("the disturbance panicked".to_owned())),
        }
    }
}

impl Drop for Disturbance {
    /// Also where the run fails: no server may be left behind.
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A drop has nobody to tell.
            let _ = thread.join();
        }
    }
}
