//! The thread that evicts: ahead of need, so that reads seldom wait for it, and for those that do wait.
//!
//! Promises: it sleeps unless frames run out. It ends when its evictor does. If it is given something to publish, it does that once
//! a second besides.
//!
//! Knows when to evict, not what.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::evictor::Evictor;

/// How often something is published.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// Publishes figures of the pool.
pub(crate) type Publish = Box<dyn Fn(&Evictor) + Send>;

/// Starts the thread.
pub(crate) fn start(evictor: &Arc<Evictor>, publish: Option<Publish>) -> io::Result<()> {
    let weak = Arc::downgrade(evictor);
    let sweeper = thread::Builder::new()
        .name("forebay-sweeper".into())
        .spawn(move || sweep(&weak, publish.as_ref()))?;
    let thread = sweeper.thread().clone();
    evictor.set_sweeper(move || thread.unpark());
    Ok(())
}

fn sweep(evictor: &Weak<Evictor>, publish: Option<&Publish>) {
    let mut published = Instant::now();
    loop {
        match publish {
            None => thread::park(),
            Some(_) => thread::park_timeout(PUBLISH_EVERY.saturating_sub(published.elapsed())),
        }
        let Some(evictor) = evictor.upgrade() else { return };
        guarded(|| evictor.drop_outdated());
        guarded(|| evictor.make_room());
        if let Some(publish) = publish.filter(|_| published.elapsed() >= PUBLISH_EVERY) {
            published = Instant::now();
            guarded(|| publish(&evictor));
        }
    }
}

/// Calls what may end in the user's code: a recorder of metrics, the drop of a checksum function. Reads wait for the memory that the
/// sweeper frees, so that no panic may end it.
fn guarded(work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("the user's code panicked in the sweeper; the sweeper goes on");
    }
}
