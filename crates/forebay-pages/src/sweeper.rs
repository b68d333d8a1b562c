//! The thread that evicts: ahead of need, so that reads seldom wait for it, and for those that do.
//!
//! Promises: it sleeps unless frames run out. While somebody waits for frames it goes on until there are enough, or nothing
//! can be evicted; then the next pin that is given back, and the next page that lands, wakes it. It ends with its pool. Where the
//! pool has a name it publishes its figures once a second besides.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use super::core::Core;
use super::events;

/// So many bytes are given back to the system at a time: a reader that wants one of these pages again waits that long.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

pub(crate) fn start(core: &Arc<Core>) -> io::Result<()> {
    let weak = Arc::downgrade(core);
    let sweeper = thread::Builder::new()
        .name("forebay-sweeper".into())
        .spawn(move || sweep(&weak))?;
    let thread = sweeper.thread().clone();
    core.memory.sweeper_is_woken_by(move || thread.unpark());
    Ok(())
}

fn sweep(core: &Weak<Core>) {
    let Some(name) = core.upgrade().map(|core| core.settings.name.clone()) else {
        return;
    };
    let mut told = Instant::now();
    loop {
        match &name {
            None => thread::park(),
            Some(_) => thread::park_timeout(events::PERIOD.saturating_sub(told.elapsed())),
        }
        let Some(core) = core.upgrade() else { return };
        clear_outdated(&core);
        make_room(&core);
        if let Some(name) = name.as_ref().filter(|_| told.elapsed() >= events::PERIOD) {
            events::tell(name, &core.stats());
            told = Instant::now();
        }
    }
}

/// Pages of retired mappings are no use to anybody once they are not held.
fn clear_outdated(core: &Core) {
    for (mapping, pages) in core.outdated.take() {
        core.drop_pages(&mapping, pages);
        core.forget_if_idle(mapping);
    }
}

fn make_room(core: &Core) {
    let batch = (BATCH_BYTES / core.settings.page_size).max(1);
    loop {
        let lacking = core.memory.lacking().min(batch);
        if lacking == 0 {
            core.memory.is_fed();
            return;
        }
        if core.evict(lacking) > 0 {
            continue;
        }
        if !core.memory.is_wanted() {
            return;
        }
        core.memory.starve();
        // A pin may have gone just before that was said.
        if core.evict(lacking) == 0 {
            return;
        }
    }
}
