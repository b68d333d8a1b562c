//! LISTEN and NOTIFY between the sessions of this server.
//!
//! Promises: listening and notifications take effect when their transaction commits, and never if it does not; equal notifications of one
//! transaction are sent once. A session receives them between its transactions. In memory: without a listener a notification is lost, and a
//! server that stops forgets them all.
//!
//! A session that does not read its notifications fills its inbox; then those who would send it more fail to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::sync::Notify;

use forebay_pg_wire::backend;
use forebay_pg_wire::error::WireError;

/// What one session may have waiting for it.
const INBOX_BYTES_MAX: usize = 8 << 20;
/// The longest payload, as PostgreSQL has it.
const PAYLOAD_BYTES_MAX: usize = 8_000;
/// The longest name of a channel.
const CHANNEL_BYTES_MAX: usize = 63;

/// Who listens to what.
#[derive(Debug, Default)]
pub struct Channels {
    listeners: Mutex<HashMap<String, HashMap<i32, Arc<Inbox>>>>,
}

/// What waits for one session.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    pub(super) arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: usize,
    told: VecDeque<(i32, String, String)>,
}

/// What is to happen at commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
    Tell { channel: String, payload: String },
}

impl Intent {
    /// NOTIFY, if PostgreSQL takes these words.
    pub(super) fn tell(channel: &str, payload: &str) -> Result<Self, WireError> {
        let refused = |message: &str| Err(WireError::new("22023", message));
        if channel.is_empty() {
            return refused("channel name cannot be empty");
        }
        if channel.len() > CHANNEL_BYTES_MAX {
            return refused("channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES_MAX {
            return refused("payload string too long");
        }
        Ok(Self::Tell {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
        })
    }
}

/// One session's part in it; it listens to nothing any more when it is dropped.
#[derive(Debug)]
pub(super) struct Ears {
    channels: Arc<Channels>,
    session: i32,
    pub(super) inbox: Arc<Inbox>,
    listening: Vec<String>,
    /// What the transaction meant, in order.
    intents: Vec<Intent>,
    /// How many there were at each savepoint.
    savepoints: Vec<usize>,
}

impl Ears {
    pub(super) fn new(channels: Arc<Channels>, session: i32) -> Self {
        Self {
            channels,
            session,
            inbox: Arc::default(),
            listening: Vec::new(),
            intents: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    /// To happen at commit.
    pub(super) fn intend(&mut self, intent: Intent) -> Result<(), WireError> {
        if self.intents.contains(&intent) && matches!(intent, Intent::Tell { .. }) {
            return Ok(());
        }
        if self.intents.len() >= 10_000 {
            return Err(WireError::new("54000", "too many notifications in one transaction"));
        }
        self.intents.push(intent);
        Ok(())
    }

    /// Before the commit: whether those who are to be told have room.
    pub(super) fn check(&self) -> Result<(), WireError> {
        let listeners = self.channels.listeners.lock();
        for intent in &self.intents {
            if let Intent::Tell { channel, .. } = intent
                && let Some(inboxes) = listeners.get(channel)
                && inboxes
                    .values()
                    .any(|inbox| inbox.waiting.lock().bytes > INBOX_BYTES_MAX)
            {
                return Err(WireError::new("54000", "too many notifications in the NOTIFY queue"));
            }
        }
        Ok(())
    }

    /// The transaction has committed.
    pub(super) fn commit(&mut self) {
        self.savepoints.clear();
        if self.intents.is_empty() {
            return;
        }
        for intent in std::mem::take(&mut self.intents) {
            match intent {
                Intent::Listen(channel) => {
                    if !self.listening.contains(&channel) {
                        let mut listeners = self.channels.listeners.lock();
                        let inboxes = listeners.entry(channel.clone()).or_default();
                        inboxes.insert(self.session, Arc::clone(&self.inbox));
                        self.listening.push(channel);
                    }
                }
                Intent::Unlisten(channel) => {
                    self.listening.retain(|known| *known != channel);
                    self.forget(&channel);
                }
                Intent::UnlistenAll => self.unlisten_all(),
                Intent::Tell { channel, payload } => {
                    let listeners = self.channels.listeners.lock();
                    for inbox in listeners.get(&channel).into_iter().flat_map(HashMap::values) {
                        let mut waiting = inbox.waiting.lock();
                        waiting.bytes += channel.len() + payload.len() + size_of::<(i32, String, String)>();
                        waiting.told.push_back((self.session, channel.clone(), payload.clone()));
                        drop(waiting);
                        inbox.arrived.notify_one();
                    }
                }
            }
        }
    }

    /// The transaction was rolled back.
    pub(super) fn roll_back(&mut self) {
        self.intents.clear();
        self.savepoints.clear();
    }

    /// A savepoint is set.
    pub(super) fn savepoint(&mut self) {
        self.savepoints.push(self.intents.len());
    }

    /// There are only so many savepoints any more; what came since the last of them is undone.
    pub(super) fn rolled_back_to(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints);
        if let Some(count) = self.savepoints.last() {
            self.intents.truncate(*count);
        }
    }

    /// There are only so many savepoints any more.
    pub(super) fn released_to(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints);
    }

    /// What has arrived, as messages.
    pub(super) fn hear(&self, out: &mut BytesMut) {
        if self.listening.is_empty() {
            return;
        }
        let mut waiting = self.inbox.waiting.lock();
        for (session, channel, payload) in waiting.told.drain(..) {
            backend::notification_response(out, session, &channel, &payload);
        }
        waiting.bytes = 0;
    }

    /// Whether anything may arrive.
    pub(super) fn is_listening(&self) -> bool {
        !self.listening.is_empty()
    }

    fn unlisten_all(&mut self) {
        for channel in std::mem::take(&mut self.listening) {
            self.forget(&channel);
        }
    }

    fn forget(&self, channel: &str) {
        let mut listeners = self.channels.listeners.lock();
        if let Some(inboxes) = listeners.get_mut(channel) {
            inboxes.remove(&self.session);
            if inboxes.is_empty() {
                listeners.remove(channel);
            }
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.unlisten_all();
    }
}
