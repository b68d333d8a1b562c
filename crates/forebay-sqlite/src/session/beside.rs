//! Beside: what the functions of a statement ask and tell beside their values: whether somebody still waits for it, and which rows it has met.
//!
//! Promises: on a thread without a statement nobody waits for anything less. A statement whose functions count has changed as many rows as
//! they have counted.

use std::cell::{Cell, RefCell};

use forebay_write::CancelToken;

thread_local! {
    static RUNNING: RefCell<Option<CancelToken>> = const { RefCell::new(None) };
    static MET: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether the statement that runs on this thread is to end.
pub fn is_interrupted() -> bool {
    RUNNING.with_borrow(|running| running.as_ref().is_some_and(CancelToken::interrupts))
}

/// The statement that runs on this thread has met one more row: how many by now.
pub fn meet_row() -> u64 {
    let met = MET.get().unwrap_or(0) + 1;
    MET.set(Some(met));
    met
}

/// From now on this is what runs on this thread, or nothing.
pub(super) fn set_running(token: Option<&CancelToken>) {
    RUNNING.set(token.cloned());
}

/// How many rows were met since it was asked last, if any were counted.
pub(super) fn take_met() -> Option<u64> {
    MET.take()
}
