//! Cancels: which client may cancel what runs for it.
//!
//! Promises: a request reaches what runs for the client whose key it brings, or nothing: never what runs on the same server
//! connection for the next one, which is not given away while a request is under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_pg_link::CancelToken;
use parking_lot::Mutex;
use rand::RngCore;

/// What each client may cancel.
#[derive(Debug, Default)]
pub struct Cancels {
    by_process: Mutex<HashMap<i32, (Bytes, Arc<Running>), foldhash::fast::RandomState>>,
    last: AtomicI32,
}

/// What runs for one client.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<Option<Target>>);

/// A server connection, as a request finds it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) token: CancelToken,
    /// Requests that are under way to it.
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Running {
    pub(crate) fn set(&self, target: Option<Target>) {
        *self.0.lock() = target;
    }
}

impl Cancels {
    /// A client of its own process number and key.
    pub(crate) fn register(self: &Arc<Self>, secret_bytes: usize) -> Registration {
        let mut secret = vec![0; secret_bytes];
        rand::rng().fill_bytes(&mut secret);
        let secret = Bytes::from(secret);
        let running = Arc::new(Running::default());
        let mut by_process = self.by_process.lock();
        let process_id = loop {
            let next = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            // As a process has it: not 0, not negative.
            if next > 0 && !by_process.contains_key(&next) {
                break next;
            }
        };
        by_process.insert(process_id, (secret.clone(), Arc::clone(&running)));
        Registration {
            cancels: Arc::clone(self),
            process_id,
            secret,
            running,
        }
    }

    /// Cancels what runs for the client of this number, if this is its key.
    pub async fn cancel(&self, process_id: i32, secret: &[u8]) {
        let running = {
            let by_process = self.by_process.lock();
            match by_process.get(&process_id) {
                // No timing tells how much of a key was right: it is of use for one number, on one try each.
                Some((known, running)) if known == secret => Arc::clone(running),
                _ => return,
            }
        };
        let target = {
            let target = running.0.lock();
            let Some(target) = &*target else { return };
            target.requests.fetch_add(1, Ordering::AcqRel);
            target.clone()
        };
        if let Err(error) = target.token.cancel().await {
            tracing::debug!(%error, "a cancel request did not reach the server");
        }
        target.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A client that may cancel, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    cancels: Arc<Cancels>,
    pub(crate) process_id: i32,
    pub(crate) secret: Bytes,
    pub(crate) running: Arc<Running>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cancels.by_process.lock().remove(&self.process_id);
    }
}
