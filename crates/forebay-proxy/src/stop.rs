//! Stop: what the server's phase asks of a session, looked at where the session waits.
//!
//! Promises: whoever was told that nothing has changed is woken when it does.

use std::pin::Pin;
use std::task::{Context, Poll};

use forebay_pg_wire::phase::Phase;
use tokio::sync::watch;

/// The next change of the phase, with what to wait for the one behind it; none when there is none any more.
type Change = Pin<Box<dyn Future<Output = Option<watch::Receiver<Phase>>> + Send>>;

/// The phase, as one session sees it.
pub(crate) struct Stop {
    seen: Phase,
    /// Waits for another phase. None once there is no other.
    changed: Option<Change>,
}

impl Stop {
    pub(crate) fn of(mut phase: watch::Receiver<Phase>) -> Self {
        let seen = *phase.borrow_and_update();
        Self {
            seen,
            changed: Some(Box::pin(change(phase))),
        }
    }

    /// What is asked; the task is woken when it is something else.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Phase {
        while let Some(changed) = &mut self.changed
            && let Poll::Ready(changed) = changed.as_mut().poll(context)
        {
            self.changed = changed.map(|mut phase| {
                self.seen = *phase.borrow_and_update();
                Box::pin(change(phase)) as _
            });
        }
        self.seen
    }
}

/// Gives the phase back when it has changed; none when it cannot any more.
async fn change(mut phase: watch::Receiver<Phase>) -> Option<watch::Receiver<Phase>> {
    phase.changed().await.ok().map(|()| phase)
}
