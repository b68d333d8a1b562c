//! Whether the disk takes what is written: what the last write failed with, if it was the disk's fault.
//!
//! Kept by the writing connection, asked by whoever must say whether the database is well. A statement that is wrong leaves no
//! trace here, nor does a commit that changed nothing: it proves nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use forebay_write::{StatementErrorKind, WriteError};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether `fault` holds something; read without the lock.
    failing: AtomicBool,
    fault: Mutex<Option<WriteError>>,
}

impl Health {
    /// A write failed like this.
    pub(super) fn failed(&self, error: &WriteError) {
        let disk = match error {
            WriteError::Statement(error) => matches!(
                error.kind,
                StatementErrorKind::Full | StatementErrorKind::Io | StatementErrorKind::Corrupt
            ),
            WriteError::OutcomeUnknown { .. } => true,
            _ => false,
        };
        if disk {
            *self.fault.lock() = Some(error.clone());
            self.failing.store(true, Ordering::Release);
        }
    }

    /// Something was written and committed.
    pub(super) fn succeeded(&self) {
        if self.failing.load(Ordering::Acquire) {
            *self.fault.lock() = None;
            self.failing.store(false, Ordering::Release);
        }
    }

    /// What the last write failed with, if nothing was committed since.
    pub(super) fn fault(&self) -> Option<WriteError> {
        if self.failing.load(Ordering::Acquire) {
            self.fault.lock().clone()
        } else {
            None
        }
    }
}
