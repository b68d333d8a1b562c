//! A caller that is alone: it processes its item itself, where it stands, and no runner has to be woken for it.
//!
//! Promises: only where nothing is in line, no batch runs and no company is expected. For as long as it lasts it counts as a batch that
//! runs: what arrives meanwhile waits behind it, and so does a drain. Knows nothing of what is done with the item.

use std::fmt;
use std::sync::Arc;

use super::line::InOrder;
use super::runner::Shared;

/// The leave that [`Batcher::alone`](super::Batcher::alone) gives. Others wait until it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::batch::Batcher;
///
/// let doubled = Batcher::new(async |items: Vec<u32>| Ok::<_, Infallible>(items.into_iter().map(|item| 2 * item).collect()));
/// assert!(doubled.alone().is_none()); // others may be about to call
/// for item in 0..20 {
///     doubled.call(item).await?; // one by one
/// }
/// let alone = doubled.alone().expect("calls have long come one by one");
/// let own = 2 * 20; // here, with no task between
/// alone.processed();
/// assert_eq!((own, doubled.stats().batches), (40, 21));
/// # Ok(())
/// # }
/// ```
#[must_use = "it is over when it is dropped"]
pub struct Alone<'a, I, O, E> {
    shared: &'a Arc<Shared<I, O, E, InOrder>>,
    processed: bool,
}

impl<'a, I, O, E> Alone<'a, I, O, E> {
    pub(super) fn of(shared: &'a Arc<Shared<I, O, E, InOrder>>) -> Option<Self> {
        shared.intake.try_alone().then(|| Self {
            shared,
            processed: false,
        })
    }

    /// The item was processed: it counts as a call and as a batch. Otherwise it was not one.
    pub fn processed(mut self) {
        self.processed = true;
    }
}

impl<I, O, E> Drop for Alone<'_, I, O, E> {
    fn drop(&mut self) {
        let todo = self.shared.intake.end_alone(self.processed);
        self.shared.carry_out(todo);
    }
}

impl<I, O, E> fmt::Debug for Alone<'_, I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alone")
            .field("processed", &self.processed)
            .finish_non_exhaustive()
    }
}
