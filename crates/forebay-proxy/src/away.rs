//! Away: whether the server behind could not be asked a moment ago, for those who have something to tell in its place.
//!
//! Promises: it is away once a connection to it could not be made, whoever wanted it, and until somebody is answered: for [`BELIEVED_FOR`], and for as
//! long as somebody tries it again. Who finds that it was away longer ago is the one who tries it, and others wait for nothing. That a
//! statement is refused, or takes long, says nothing of it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use forebay_pg_link::ConnectError;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::reach::{NOT_NOW, is_loss};

/// So long it is not tried again.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// Whether it could be asked.
#[derive(Debug, Default)]
pub(crate) struct Away {
    /// When a connection could not be made last; none once somebody was answered.
    failed: watch::Sender<Option<Instant>>,
    /// The same, for those who only look.
    has_failed: AtomicBool,
    tried: Mutex<Weak<()>>,
}

/// What somebody finds who is about to ask.
#[derive(Debug)]
pub(crate) enum Found {
    There,
    /// Nobody need ask now.
    Away,
    /// He is to try, and keeps this for as long as he waits for a connection.
    Tries(Arc<()>),
}

/// Whether it says that the server could not be asked, by whomever.
pub(crate) fn says_away(error: &ConnectError) -> bool {
    match error {
        ConnectError::Server(said) => said.code == NOT_NOW,
        ConnectError::Setting(_) | ConnectError::Tls(_) => false,
        error => is_loss(error),
    }
}

impl Away {
    /// What came of it when somebody connected.
    pub(crate) fn connected<T>(&self, connected: &Result<T, ConnectError>) {
        match connected {
            Ok(_) => self.answered(),
            Err(error) if says_away(error) => {
                self.has_failed.store(true, Ordering::Release);
                self.failed.send_replace(Some(Instant::now()));
            }
            // It is there, and says so itself.
            Err(_) => self.answered(),
        }
    }

    /// Somebody was answered.
    pub(crate) fn answered(&self) {
        // Mostly it was there before: then nothing is written that others read.
        if self.has_failed.load(Ordering::Acquire) && self.has_failed.swap(false, Ordering::AcqRel) {
            self.failed.send_replace(None);
        }
    }

    /// Whether nobody need ask now.
    pub(crate) fn is_away(&self) -> bool {
        // Mostly it is there.
        if !self.has_failed.load(Ordering::Acquire) {
            return false;
        }
        let failed = *self.failed.borrow();
        failed.is_some_and(|failed| failed.elapsed() < BELIEVED_FOR || self.tried.lock().strong_count() > 0)
    }

    pub(crate) fn find(&self) -> Found {
        if self.is_away() {
            return Found::Away;
        }
        if self.failed.borrow().is_none() {
            return Found::There;
        }
        let mut tried = self.tried.lock();
        // Somebody may have come meanwhile.
        if tried.strong_count() > 0 {
            return Found::Away;
        }
        let trial = Arc::new(());
        *tried = Arc::downgrade(&trial);
        Found::Tries(trial)
    }

    /// Waits until a connection could not be made from now on.
    ///
    /// # Cancel safety
    /// Dropped, nothing changes.
    pub(crate) fn news(&self) -> impl Future<Output = ()> + use<> {
        let mut failed = self.failed.subscribe();
        async move {
            while failed.changed().await.is_ok() {
                if failed.borrow_and_update().is_some() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use forebay_pg_link::{LinkError, ServerError};

    use super::*;

    fn lost() -> Result<(), ConnectError> {
        Err(ConnectError::Link(LinkError::Protocol("nonsense".to_owned())))
    }

    fn error_of(code: &str) -> ServerError {
        ServerError {
            severity: None,
            code: code.to_owned(),
            message: String::new(),
            detail: None,
            hint: None,
            position: None,
            internal_position: None,
            internal_query: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
        }
    }

    fn is_away(away: &Away) -> bool {
        let is_away = away.is_away();
        assert_eq!(matches!(away.find(), Found::Away), is_away);
        is_away
    }

    #[test]
    fn it_is_away_for_a_while_and_then_one_tries() {
        let away = Away::default();
        assert!(matches!(away.find(), Found::There));
        away.connected(&lost());
        assert!(is_away(&away) && is_away(&away));
        let before = away.failed.borrow().unwrap().checked_sub(BELIEVED_FOR);
        away.failed.send_replace(before);
        let Found::Tries(trial) = away.find() else {
            panic!("one tries")
        };
        assert!(is_away(&away) && is_away(&away), "the others do not");
        drop(trial);
        assert!(matches!(away.find(), Found::Tries(_)), "who gave up is no trial");
        away.answered();
        assert!(matches!(away.find(), Found::There));
    }

    #[test]
    fn what_the_server_says_itself_is_not_that_it_is_away() {
        let away = Away::default();
        let said = |code: &str| Err::<(), _>(ConnectError::from(error_of(code)));
        for (connected, is_it) in [
            (lost(), true),
            (said("53300"), false),
            (said("57P03"), true),
            (said("28P01"), false),
            (lost(), true),
            (Ok(()), false),
            (Err(ConnectError::NoPassword), false),
        ] {
            away.connected(&connected);
            assert_eq!(is_away(&away), is_it, "{connected:?}");
        }
    }

    #[test]
    fn who_waits_is_told_of_the_next_failure_and_of_no_other() {
        let away = Away::default();
        away.connected(&lost());
        let mut news = pin!(away.news());
        let mut context = Context::from_waker(Waker::noop());
        let mut is_told = || news.as_mut().poll(&mut context).is_ready();
        assert!(!is_told());
        away.answered();
        assert!(!is_told());
        away.connected(&lost());
        assert!(is_told());
    }
}
