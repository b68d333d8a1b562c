//! Deadlines: how long a client may be at what it is at, where that is bounded.
//!
//! Promises: time counts from when the client came to be at it, or the server to be at the next of what was asked. A statement that is cancelled
//! has [`ANSWERED_WITHIN`] to end. Costs nothing where nothing is bounded, and otherwise no timer a statement: one is kept, and looked at when
//! it fires. What others carry for the client is its statement, too: it counts from when it was first sent, on whatever connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A server that was told to cancel a statement and does not end it is of no use.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How long a client may be at something; none: as long as it likes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// The database at one statement, or at all of a pipeline up to its Sync, of which it tells nothing before; then it is cancelled.
    pub statement: Option<Duration>,
    /// At nothing, while a transaction is open.
    pub idle_transaction: Option<Duration>,
    /// At nothing.
    pub idle_session: Option<Duration>,
}

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Nothing.
    Idle,
    /// Nothing, inside of a transaction.
    IdleInTransaction,
    /// Something that is not looked at from here.
    Something,
    /// Waiting for the answer to what was asked behind so many others.
    Statement(u64),
}

/// What has taken too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Idle,
    IdleInTransaction,
    /// It is to be cancelled.
    Statement,
    /// It was cancelled, and goes on.
    Cancelled,
}

/// One client's.
#[derive(Debug)]
pub(crate) struct Deadlines {
    timeouts: Timeouts,
    at: At,
    since: Instant,
    is_cancelled: bool,
    /// What is asked from this place on has begun already.
    begun: Option<(u64, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadlines {
    /// None where nothing is bounded.
    pub(crate) fn of(timeouts: &Timeouts) -> Option<Box<Self>> {
        (*timeouts != Timeouts::default()).then(|| {
            Box::new(Self {
                timeouts: timeouts.clone(),
                at: At::Idle,
                since: Instant::now(),
                is_cancelled: false,
                begun: None,
                timer: None,
            })
        })
    }

    /// Ready once the client has been at this for too long: again and again, but for a statement, which is cancelled once.
    pub(crate) fn poll(&mut self, at: At, context: &mut Context<'_>) -> Poll<Passed> {
        if at != self.at {
            self.at = at;
            self.since = match (at, self.begun) {
                (At::Statement(place), Some((first, begun))) if place >= first => begun,
                _ => Instant::now(),
            };
            self.is_cancelled = false;
        }
        let (limit, passed) = match at {
            At::Idle => (self.timeouts.idle_session, Passed::Idle),
            At::Something => (None, Passed::Idle),
            At::IdleInTransaction => (self.timeouts.idle_transaction, Passed::IdleInTransaction),
            At::Statement(_) if self.is_cancelled => (Some(ANSWERED_WITHIN), Passed::Cancelled),
            At::Statement(_) => (self.timeouts.statement, Passed::Statement),
        };
        let Some(limit) = limit else { return Poll::Pending };
        let deadline = self.since + limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        // One that is to fire before is left: most never come to matter.
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if Instant::now() >= deadline {
                break;
            }
            timer.as_mut().reset(deadline);
        }
        if passed == Passed::Statement {
            self.is_cancelled = true;
            self.since = Instant::now();
        }
        Poll::Ready(passed)
    }

    /// The client wants something: it is idle no more.
    pub(crate) fn begins(&mut self) {
        self.at = At::Something;
        self.begun = None;
    }

    /// What is asked from this place on has been asked for so long already, in company.
    pub(crate) fn has_begun(&mut self, first: u64, before: Duration) {
        self.begun = Instant::now().checked_sub(before).map(|begun| (first, begun));
    }

    /// Ready once what others carry for the client is not to go on: it was first sent at this time, if it was.
    pub(crate) fn poll_carried(&mut self, sent: Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = self.timeouts.statement else {
            return Poll::Pending;
        };
        loop {
            let now = Instant::now();
            // Who has not been sent is so at this moment, at the earliest.
            let deadline = sent.unwrap_or(now) + limit;
            if sent.is_some() && now >= deadline {
                return Poll::Ready(());
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() > deadline || timer.is_elapsed() {
                timer.as_mut().reset(deadline);
            }
            ready!(timer.as_mut().poll(context));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        statement: Some(Duration::from_secs(5)),
        idle_transaction: Some(Duration::from_secs(2)),
        idle_session: None,
    };

    async fn passed(deadlines: &mut Deadlines, at: At) -> (Passed, u64) {
        let before = Instant::now();
        let passed = poll_fn(|context| deadlines.poll(at, context)).await;
        (passed, before.elapsed().as_secs())
    }

    fn is_pending(deadlines: &mut Deadlines, at: At) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        deadlines.poll(at, &mut context).is_pending()
    }

    #[tokio::test(start_paused = true)]
    async fn each_has_its_own_time_from_when_it_began() {
        let mut deadlines = Deadlines::of(&TIMEOUTS).unwrap();
        assert_eq!(
            passed(&mut deadlines, At::IdleInTransaction).await,
            (Passed::IdleInTransaction, 2)
        );
        assert!(is_pending(&mut deadlines, At::Statement(1)));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(is_pending(&mut deadlines, At::Statement(1)));
        // The next one has as long again.
        assert_eq!(passed(&mut deadlines, At::Statement(2)).await, (Passed::Statement, 5));
        assert_eq!(passed(&mut deadlines, At::Statement(2)).await, (Passed::Cancelled, 10));
        assert!(is_pending(&mut deadlines, At::Idle));
        tokio::time::advance(Duration::from_secs(4000)).await;
        assert!(is_pending(&mut deadlines, At::Idle), "not bounded");
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_fires_too_late_is_set_earlier() {
        let mut deadlines = Deadlines::of(&TIMEOUTS).unwrap();
        assert!(is_pending(&mut deadlines, At::Statement(1)));
        assert_eq!(
            passed(&mut deadlines, At::IdleInTransaction).await,
            (Passed::IdleInTransaction, 2)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_carry_counts_from_when_it_was_sent_also_where_it_goes_on_alone() {
        let mut deadlines = Deadlines::of(&TIMEOUTS).unwrap();
        let advance = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        let mut context = Context::from_waker(std::task::Waker::noop());
        deadlines.begins();
        assert!(deadlines.poll_carried(None, &mut context).is_pending());
        advance(9).await;
        assert!(deadlines.poll_carried(None, &mut context).is_pending(), "it waits");
        let begun = Instant::now();
        let sent = Some(begun);
        advance(2).await;
        assert!(deadlines.poll_carried(sent, &mut context).is_pending());
        poll_fn(|context| deadlines.poll_carried(sent, context)).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
        // What is ours, and what it is to have of its time alone.
        deadlines.begins();
        deadlines.has_begun(7, Duration::from_secs(3));
        assert!(is_pending(&mut deadlines, At::Statement(6)));
        advance(1).await;
        assert_eq!(passed(&mut deadlines, At::Statement(7)).await, (Passed::Statement, 1));
        deadlines.begins();
        assert_eq!(passed(&mut deadlines, At::Statement(8)).await, (Passed::Statement, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_something_is_idle_no_more() {
        let timeouts = Timeouts {
            idle_session: Some(Duration::from_secs(3)),
            ..Timeouts::default()
        };
        let mut deadlines = Deadlines::of(&timeouts).unwrap();
        for _ in 0..3 {
            assert!(is_pending(&mut deadlines, At::Idle));
            tokio::time::advance(Duration::from_secs(2)).await;
            deadlines.begins();
        }
        assert_eq!(passed(&mut deadlines, At::Idle).await, (Passed::Idle, 3));
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_bounded() {
        assert!(Deadlines::of(&Timeouts::default()).is_none());
    }
}
