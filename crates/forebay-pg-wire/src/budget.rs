//! The room for messages that are being received, of all connections together.
//!
//! Promises: messages of up to [`SMALL_BYTES_MAX`] need none and never wait. A longer one takes room for the whole of it before more
//! than its beginning is read, and gives it back when it has arrived; until there is room its bytes stay with the network. Whoever
//! asks first is first; messages of up to [`MEDIUM_BYTES_MAX`] have a quarter of the room for themselves, so that they do not stand
//! behind very long ones. A client that has room and sends nothing while others wait loses its connection. Nobody who waits has room
//! already, so that nobody waits in a circle.
//!
//! Knows numbers of bytes, not messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Messages up to this length take no room: every connection may have one of them.
pub const SMALL_BYTES_MAX: usize = 16 * 1024;

/// Messages up to this length have room of their own.
pub const MEDIUM_BYTES_MAX: usize = 1024 * 1024;

/// Who has room must send this much between two looks while others wait, or all that is missing.
const PROGRESS_BYTES: usize = 256 * 1024;

/// So many looks within the stall timeout: with others waiting there is less patience.
const LOOKS: u32 = 6;

/// A message waits for room at most for this many stall timeouts: longer than a good number of stalled ones are borne in turn.
const WAIT_STALLS: u32 = 4;

/// See the module.
#[derive(Debug)]
pub struct InputBudget {
    medium: Room,
    large: Room,
    stall_timeout: Duration,
}

#[derive(Debug)]
struct Room {
    bytes: usize,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Room for one message, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    budget: Arc<InputBudget>,
    is_medium: bool,
    _permit: OwnedSemaphorePermit,
    /// When its client must have sent more, and how much had arrived at the beginning of that time.
    look_at: Instant,
    arrived: usize,
}

/// There was no room in time.
#[derive(Debug)]
pub struct NoRoom;

impl InputBudget {
    /// Room of `bytes` in all. A message longer than its part of it takes all of that part.
    pub fn new(bytes: usize, stall_timeout: Duration) -> Self {
        let room = |bytes: usize| {
            let bytes = bytes.clamp(1, u32::MAX as usize);
            Room {
                bytes,
                free: Arc::new(Semaphore::new(bytes)),
                waiting: AtomicUsize::new(0),
            }
        };
        Self {
            medium: room(bytes / 4),
            large: room(bytes - bytes / 4),
            stall_timeout,
        }
    }

    /// Room for a message of `bytes`, of which `arrived` are there. Waits its turn.
    ///
    /// # Errors
    /// [`NoRoom`], when it has waited for too long.
    ///
    /// # Cancel safety
    /// Dropped before it completes, it has taken nothing and lost its place.
    pub async fn take(self: &Arc<Self>, bytes: usize, arrived: usize) -> Result<Taken, NoRoom> {
        let is_medium = bytes <= MEDIUM_BYTES_MAX;
        let room = self.room(is_medium);
        let wanted = u32::try_from(bytes.min(room.bytes)).expect("a room has no more bytes than that");
        let free = Arc::clone(&room.free);
        let permit = match Arc::clone(&free).try_acquire_many_owned(wanted) {
            Ok(permit) => permit,
            Err(_) => {
                let _waits = Waits::one(&room.waiting);
                tokio::time::timeout(self.stall_timeout * WAIT_STALLS, free.acquire_many_owned(wanted))
                    .await
                    .map_err(|_| NoRoom)?
                    .map_err(|_| NoRoom)?
            }
        };
        Ok(Taken {
            budget: Arc::clone(self),
            is_medium,
            _permit: permit,
            look_at: Instant::now() + self.stall_timeout / LOOKS,
            arrived,
        })
    }

    fn room(&self, is_medium: bool) -> &Room {
        if is_medium { &self.medium } else { &self.large }
    }
}

impl Taken {
    /// When to ask whether it has stalled.
    pub fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Whether others wait for the room, and next to nothing came into it since the last look. `arrived` is what is there now.
    pub fn has_stalled(&mut self, arrived: usize) -> bool {
        let came = arrived.saturating_sub(self.arrived);
        self.arrived = arrived;
        self.look_at = Instant::now() + self.budget.stall_timeout / LOOKS;
        came < PROGRESS_BYTES && self.budget.room(self.is_medium).waiting.load(Ordering::Relaxed) > 0
    }
}

/// Counts one that waits while it lives.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
