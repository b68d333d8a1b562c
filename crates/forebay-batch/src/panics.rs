//! Panics of user code: caught where they are nobody else's business, and put into words where they are.
//!
//! Promises: nothing that is caught here gets out, also not by what a panic carries, which is of the user's types as well and may panic
//! when it is dropped. Knows no part of the library.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs a piece of user code whose panic is nobody else's business (the panic hook has reported it).
pub fn quietly(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        discard(panic);
    }
}

/// Runs a piece of user code: what it returns, or what its panic said.
pub fn or_message<R>(work: impl FnOnce() -> R) -> Result<R, Arc<str>> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic_message(&*panic);
        discard(panic);
        message
    })
}

/// Drops what a panic carried.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(next) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // Its drop may panic with another such one, and so on: this one stays in memory.
        std::mem::forget(next);
    }
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

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    /// What a panic carries, whose drop panics with another such one, so many times.
    struct Grenade(u32);

    impl Drop for Grenade {
        fn drop(&mut self) {
            match self.0.checked_sub(1) {
                Some(left) => panic_any(Self(left)),
                None => panic!("the last one"),
            }
        }
    }

    #[test]
    fn what_a_panic_carries_does_no_harm_when_it_is_dropped() {
        for others in 0..4 {
            quietly(|| panic_any(Grenade(others)));
            let said = or_message(|| panic_any(Grenade(others)));
            assert_eq!(said.map(|()| "nothing"), Err(Arc::from("a panic without a message")));
        }
    }

    #[test]
    fn what_is_returned_or_said_is_told() {
        assert_eq!(or_message(|| 5), Ok(5));
        assert_eq!(
            or_message(|| panic!("as asked")).map(|()| 5),
            Err(Arc::from("as asked"))
        );
        assert_eq!(
            or_message(|| panic!("as asked {}", 5)).map(|()| 5),
            Err(Arc::from("as asked 5"))
        );
    }
}
