//! The backplane: by it the caches of several processes hear of one another's changes.
//!
//! Promises:
//! - What is inserted, invalidated, marked stale or cleared here, a tag too, reaches the others' memory once the tiers have heard of it: so who
//!   then asks a tier that is shared finds nothing older there. If the tiers have not heard of it in the time of one read, it is sent with the word
//!   that they may not have, and who hears that tells them; it does not read there what is concerned before they have heard.
//! - It is sent until the backplane has taken it, however often that takes; what is sent again is heard again, which does no harm.
//! - **An entry is served no longer than `max_lag` after another process's change of it was sent**, whatever becomes of connections, the
//!   server or this process: while nothing is heard, entries are served until they are so old; and when it is heard again, what was known
//!   before is not believed. A tier that is not shared is a process's memory in this too: its copies count from their fetch, so after a restart
//!   they are fetched anew once others are heard.
//!   A tier that is shared is believed as of now. So the bound is not kept where a change was sent by who cannot tell the tier, is heard by nobody
//!   who can, and somebody reads it there who does not hear the backplane: two servers, each of them away for others. The windows hold.
//!   Nor where such a tier gives no leases ([`lease_for`](super::tier::TierSettings::lease_for)): a process may put there what it fetched before
//!   another's change, behind the deletion that the change has made, if it has not heard of it by then.
//!   A source is believed as of when it was asked, also one that is a cache itself: what that remembers of before a change is not bounded by this
//!   cache's `max_lag`, but by its own, if it has a backplane, and else by its windows.
//! - No value travels, so none can come late: who hears of a change forgets, supersedes its flights, and asks again.
//! - Bounded: where more keys wait than tiers may owe, all are told to forget all.
//!
//! Does not know how changes travel (that is a [`Backplane`]'s), nor what forgetting is.
//!
//! How it is built: `outbox` has what waits to be sent (`pending`), and sends it; `listening` hears, for as long as the cache lives; `redis` carries it.

mod listening;
mod outbox;
mod pending;
#[cfg(feature = "redis")]
pub mod redis;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::tier::TierError;

pub(super) use listening::{Hearing, Listening};
pub(super) use outbox::{Bounds, Outbox, Own};

/// What has changed.
///
/// ```
/// use forebay::cache::backplane::Change;
///
/// // What is sent, and what is heard, are plain data: with the feature `serde` they can be written down.
/// let changes = vec![Change::Key(12), Change::Tag("prices".to_owned())];
/// assert_ne!(changes[0], Change::Stale(12));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Change<K> {
    /// This key's value, or it was invalidated.
    Key(K),
    /// This key was marked stale.
    Stale(K),
    /// This tag was invalidated.
    Tag(String),
    /// All keys.
    All,
    /// Of what is sent with this, tiers that all share may not have heard: who hears it is to tell them.
    Untold,
}

impl<K> Change<K> {
    pub(super) fn is_untold(&self) -> bool {
        matches!(self, Self::Untold)
    }
}

/// Carries changes from each process to all others. [`redis`] has one; this one carries them between caches of the same process:
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Entry, backplane::{Backplane, Change, Ear}, tier::TierError};
/// use futures_util::future::BoxFuture;
/// use tokio::sync::broadcast;
///
/// struct Nearby(broadcast::Sender<Vec<Change<u64>>>);
///
/// impl Backplane<u64> for Nearby {
///     fn send<'a>(&'a self, changes: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
///         drop(self.0.send(changes.to_vec())); // Nobody may listen.
///         Box::pin(async { Ok(()) })
///     }
///
///     fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, max_lag: Duration) -> BoxFuture<'a, TierError> {
///         let mut changes = self.0.subscribe();
///         Box::pin(async move {
///             ear.began();
///             loop {
///                 // What was sent before this moment is in the channel.
///                 let now = ear.now();
///                 while let Ok(changes) = changes.try_recv() {
///                     ear.heard(changes);
///                 }
///                 ear.heard_up_to(now);
///                 match tokio::time::timeout(max_lag / 4, changes.recv()).await {
///                     Ok(Ok(changes)) => ear.heard(changes),
///                     Ok(Err(lost)) => return TierError::failed("listen", lost),
///                     Err(_) => {}
///                 }
///             }
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let all = broadcast::Sender::new(1_000);
/// let member = || {
///     Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///         .backplane(Nearby(all.clone()), Duration::from_secs(5))
///         .build()
/// };
/// let (one, other) = (member(), member());
/// while all.receiver_count() < 2 {
///     tokio::task::yield_now().await; // Until both listen.
/// }
/// other.get(&12).await.unwrap();
/// one.invalidate(&12).await;
/// while other.get_if_fresh(&12) == Some(Entry::Present(144)) {
///     tokio::task::yield_now().await; // Until it has heard.
/// }
/// # }
/// ```
///
/// # What a backplane sees to
/// - What one process sends is heard by every other that [began](Ear::began) to listen before and has not stopped, in the order sent; its own it
///   need not hear.
/// - Its futures do not block the thread.
pub trait Backplane<K>: Send + Sync + 'static {
    /// Sends these.
    ///
    /// # Errors
    /// When others may not hear of some. All are then sent again.
    fn send<'a>(&'a self, changes: &'a [Change<K>]) -> BoxFuture<'a, Result<(), TierError>>;

    /// Listens until it cannot go on; then it is called again after a pause. Tells the ear when it has begun, what it hears, and often within
    /// `max_lag` that it still does.
    fn listen<'a>(&'a self, ear: &'a dyn Ear<K>, max_lag: Duration) -> BoxFuture<'a, TierError>;
}

/// Who hears of changes.
///
/// What a [`Backplane`] tells it, here from a list in place of a network:
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Entry, backplane::{Backplane, Change, Ear}, tier::TierError};
/// use futures_util::future::BoxFuture;
/// use tokio::sync::Notify;
///
/// /// Others change these when it is told.
/// struct Others(&'static Notify, Vec<Change<u64>>);
///
/// impl Backplane<u64> for Others {
///     fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
///         Box::pin(async { Ok(()) })
///     }
///
///     fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, _: Duration) -> BoxFuture<'a, TierError> {
///         Box::pin(async move {
///             ear.began(); // First: nothing that comes from now on is missed.
///             loop {
///                 let now = ear.now(); // Before it is asked whether there is anything.
///                 ear.heard_up_to(now);
///                 self.0.notified().await;
///                 ear.heard(self.1.clone());
///             }
///         })
///     }
/// }
///
/// static NOW: Notify = Notify::const_new();
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .backplane(Others(&NOW, vec![Change::Key(12)]), Duration::from_secs(5))
///     .build();
/// squares.get(&12).await?;
/// squares.get(&13).await?;
/// NOW.notify_one();
/// while squares.get_if_fresh(&12).is_some() {
///     tokio::task::yield_now().await; // Until it has heard.
/// }
/// assert_eq!(squares.get_if_fresh(&13), Some(Entry::Present(169)));
/// # Ok(())
/// # }
/// ```
pub trait Ear<K>: Send + Sync {
    /// From now on all that is sent will be heard.
    fn began(&self);
    /// The present moment, for [`heard_up_to`](Self::heard_up_to).
    fn now(&self) -> Moment;
    /// All that was sent before that moment has been heard.
    fn heard_up_to(&self, moment: Moment);
    /// Others have made these changes.
    fn heard(&self, changes: Vec<Change<K>>);
}

/// A moment of a cache's clock.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, backplane::{Backplane, Change, Ear, Moment}, tier::TierError};
/// use futures_util::future::BoxFuture;
/// use tokio::sync::mpsc;
///
/// /// Nobody else is there; it tells which moments it had.
/// struct Alone(mpsc::UnboundedSender<(Moment, Moment)>);
///
/// impl Backplane<u64> for Alone {
///     fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
///         Box::pin(async { Ok(()) })
///     }
///
///     fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, max_lag: Duration) -> BoxFuture<'a, TierError> {
///         Box::pin(async move {
///             ear.began();
///             loop {
///                 let asked = ear.now();
///                 // Here a server would be asked for what it has, and would answer.
///                 ear.heard_up_to(asked); // Not up to the answer: something may have come meanwhile.
///                 let _ = self.0.send((asked, ear.now()));
///                 tokio::time::sleep(max_lag / 4).await;
///             }
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (told, mut moments) = mpsc::unbounded_channel();
/// let _squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .backplane(Alone(told), Duration::from_secs(5))
///     .build();
/// let (asked, answered) = moments.recv().await.unwrap();
/// assert!(asked <= answered);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(super) u64);

/// What a cache was given to carry its changes by.
pub(super) struct Carrier<K> {
    pub(super) backplane: Arc<dyn Backplane<K>>,
    pub(super) max_lag: Duration,
}
