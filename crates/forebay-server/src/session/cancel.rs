//! Cancel requests: which connection a process id and its secret name, and what it runs right now.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use forebay::write::CancelToken;
use parking_lot::Mutex;
use rand::RngCore;

/// All connections that can be cancelled.
#[derive(Debug, Default)]
pub struct Cancels {
    connections: Mutex<HashMap<i32, Entry>>,
    last_process: AtomicI32,
}

#[derive(Debug)]
struct Entry {
    secret: Vec<u8>,
    running: Arc<Running>,
}

/// What one connection runs: the token of the statement, while there is one.
#[derive(Debug, Default)]
pub struct Running(Mutex<Option<CancelToken>>);

impl Running {
    /// The statement that `token` cancels runs until the guard is dropped.
    pub fn start(self: &Arc<Self>, token: CancelToken) -> RunningGuard {
        *self.0.lock() = Some(token);
        RunningGuard(Arc::clone(self))
    }

    /// Cancels the statement that runs, if one does.
    pub fn cancel(&self) {
        if let Some(token) = &*self.0.lock() {
            token.cancel();
        }
    }
}

/// While it lives, its connection's statement can be cancelled.
#[derive(Debug)]
pub struct RunningGuard(Arc<Running>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// A connection's place in [`Cancels`]; given up when it is dropped.
#[derive(Debug)]
pub struct Registration {
    cancels: Arc<Cancels>,
    /// The number that BackendKeyData calls the process id.
    pub process: i32,
    /// What must come with a cancel request.
    pub secret: Vec<u8>,
    /// Where the connection says what it runs.
    pub running: Arc<Running>,
}

impl Cancels {
    /// Registers a connection whose secret has `secret_bytes` bytes (4 in protocol 3.0).
    pub fn register(self: &Arc<Self>, secret_bytes: usize) -> Registration {
        let mut secret = vec![0; secret_bytes];
        rand::rng().fill_bytes(&mut secret);
        let running = Arc::new(Running::default());
        let mut connections = self.connections.lock();
        let process = loop {
            // Wraps after two billion connections; numbers in use are passed over.
            let process = self.last_process.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
            if process != 0 && !connections.contains_key(&process) {
                break process;
            }
        };
        let entry = Entry {
            secret: secret.clone(),
            running: Arc::clone(&running),
        };
        connections.insert(process, entry);
        drop(connections);
        Registration {
            cancels: Arc::clone(self),
            process,
            secret,
            running,
        }
    }

    /// Cancels what that connection runs. Says nothing about whether there was one: strangers may ask.
    pub fn cancel(&self, process: i32, secret: &[u8]) {
        let running = {
            let connections = self.connections.lock();
            match connections.get(&process) {
                Some(entry) if equal_in_constant_time(&entry.secret, secret) => Arc::clone(&entry.running),
                _ => return,
            }
        };
        running.cancel();
    }

    /// Cancels whatever any connection runs.
    pub fn cancel_all(&self) {
        let all: Vec<Arc<Running>> = self
            .connections
            .lock()
            .values()
            .map(|entry| Arc::clone(&entry.running))
            .collect();
        for running in all {
            running.cancel();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cancels.connections.lock().remove(&self.process);
    }
}

/// Takes as long for a wrong secret whichever byte is wrong.
fn equal_in_constant_time(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && one.iter().zip(two).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_cancels() {
        let cancels = Arc::new(Cancels::default());
        let registration = cancels.register(4);
        let token = CancelToken::new();
        let _running = registration.running.start(token.clone());
        let mut wrong = registration.secret.clone();
        wrong[3] ^= 1;
        cancels.cancel(registration.process, &wrong);
        cancels.cancel(registration.process, &registration.secret[..3]);
        cancels.cancel(registration.process + 1, &registration.secret);
        assert!(!token.is_cancelled());
        cancels.cancel(registration.process, &registration.secret);
        assert!(token.is_cancelled());
    }

    #[test]
    fn a_finished_statement_and_a_gone_connection_are_not_cancelled() {
        let cancels = Arc::new(Cancels::default());
        let registration = cancels.register(4);
        let token = CancelToken::new();
        drop(registration.running.start(token.clone()));
        cancels.cancel(registration.process, &registration.secret);
        assert!(!token.is_cancelled());
        let (process, secret) = (registration.process, registration.secret.clone());
        drop(registration);
        cancels.cancel(process, &secret);
        assert!(cancels.connections.lock().is_empty());
    }
}
