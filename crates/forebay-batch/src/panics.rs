//! Panics of user code: caught where they are nobody else's business, and put into words where they are. Knows no part of the library.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs a piece of user code whose panic is nobody else's business (the panic hook has reported it).
pub fn quietly(work: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(work)));
}

/// What a panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> Arc<str> {
    if let Some(message) = panic.downcast_ref::<&'static str>() {
        Arc::from(*message)
    } else if let Some(message) = panic.downcast_ref::<String>() {
        Arc::from(message.as_str())
    } else {
        Arc::from("a panic without a message")
    }
}
