//! Flight: a read that others join, by rule, who ask the very same, also when it has been sent already.
//!
//! Promises: whoever joins has had his last answer before the read was sent, so that he is shown nothing older than what he has seen and done
//! himself. Whoever has joined is told what the read is told; where that is nothing, he goes alone. A read that was sent longer ago than the server
//! may be at one is joined by nobody: who has joined it has his own time, so that it takes no more than twice that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::sent::Sent;

/// Reads that may be joined, by what they ask.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<Ask, Arc<Flight>, foldhash::fast::RandomState>>);

#[derive(Debug, Default)]
struct Flight {
    sent: Sent,
    /// Those who have joined; none once all are told.
    joined: Mutex<Option<Vec<oneshot::Sender<Answer>>>>,
}

/// What somebody is told who asks what may be joined.
#[derive(Debug)]
pub(crate) enum Boarding {
    /// Another one asks it for him, too, and has sent it, or not.
    Joined(oneshot::Receiver<Answer>, Sent),
    /// He asks it, for others, too.
    First(Ticket),
}

/// Of the one who asks; when it is dropped all who have joined are told.
#[derive(Debug)]
pub(crate) struct Ticket {
    flights: Arc<Flights>,
    ask: Ask,
    flight: Arc<Flight>,
}

impl Flights {
    /// Joins who asks this already, or is the first. `answered`: when the client had its last answer, if that is known; `time`: how long the
    /// server may be at it.
    pub(crate) fn board(self: &Arc<Self>, ask: &Ask, answered: Option<Instant>, time: Option<Duration>) -> Boarding {
        let mut all = self.0.lock();
        if let Some(flight) = all.get(ask) {
            let is_new = |sent: Instant| {
                answered.is_some_and(|answered| answered < sent) && time.is_none_or(|time| sent.elapsed() < time)
            };
            if flight.sent.at().is_none_or(is_new)
                && let Some(joined) = &mut *flight.joined.lock()
            {
                let (answer, told) = oneshot::channel();
                joined.push(answer);
                return Boarding::Joined(told, flight.sent.clone());
            }
        }
        let flight = Arc::new(Flight {
            sent: Sent::default(),
            joined: Mutex::new(Some(Vec::new())),
        });
        // Those who have joined the one before are told by it.
        all.insert(ask.clone(), Arc::clone(&flight));
        Boarding::First(Ticket {
            flights: Arc::clone(self),
            ask: ask.clone(),
            flight,
        })
    }
}

impl Ticket {
    /// It is sent now.
    pub(crate) fn is_sent(&self) {
        self.flight.sent.now();
    }

    /// Whether one of those who have joined still waits.
    pub(crate) fn is_wanted(&self) -> bool {
        let joined = self.flight.joined.lock();
        joined.iter().flatten().any(|answer| !answer.is_closed())
    }

    /// Tells all who have joined; how many still wanted it.
    pub(crate) fn tell(&self, answer: &Answer) -> u64 {
        let mut all = self.flights.0.lock();
        if all
            .get(&self.ask)
            .is_some_and(|flight| Arc::ptr_eq(flight, &self.flight))
        {
            all.remove(&self.ask);
        }
        drop(all);
        let joined = self.flight.joined.lock().take().unwrap_or_default();
        let mut count = 0;
        for waiting in joined {
            let told = waiting.send(match answer {
                Answer::Done(said) => Answer::Done(said.clone()),
                Answer::Alone(_) | Answer::Unknown | Answer::Cancelled => Answer::Alone(false),
            });
            count += u64::from(told.is_ok());
        }
        count
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.tell(&Answer::Alone(false));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn first(boarding: Boarding) -> Ticket {
        match boarding {
            Boarding::First(ticket) => ticket,
            Boarding::Joined(..) => panic!("it has joined"),
        }
    }

    fn joined(boarding: Boarding) -> oneshot::Receiver<Answer> {
        match boarding {
            Boarding::Joined(told, _) => told,
            Boarding::First(_) => panic!("it is the first"),
        }
    }

    #[test]
    fn who_was_answered_before_it_was_sent_joins() {
        let flights = Arc::new(Flights::default());
        let ask = Ask::Simple(Bytes::from_static(b"SELECT 1"));
        let other = Ask::Simple(Bytes::from_static(b"SELECT 2"));
        let before = Some(Instant::now());
        let ticket = first(flights.board(&ask, None, None));
        let mut unsent = joined(flights.board(&ask, None, None));
        assert!(ticket.is_wanted());
        ticket.is_sent();
        let mut earlier = joined(flights.board(&ask, before, None));
        drop(first(flights.board(&other, before, None)));
        // Who has seen or done something since is not told what was before it; the next ones join him.
        let next = first(flights.board(&ask, Some(Instant::now()), None));
        let mut later = joined(flights.board(&ask, Some(Instant::now()), None));
        assert_eq!(ticket.tell(&Answer::Done(Bytes::from_static(b"one"))), 2);
        for told in [&mut unsent, &mut earlier] {
            assert!(matches!(told.try_recv(), Ok(Answer::Done(said)) if said == b"one"[..]));
        }
        assert!(later.try_recv().is_err());
        drop(next);
        assert!(
            matches!(later.try_recv(), Ok(Answer::Alone(false))),
            "it came to nothing"
        );
        assert!(flights.0.lock().is_empty());
        drop(first(flights.board(&ask, before, None)));
        let ticket = first(flights.board(&ask, before, None));
        ticket.is_sent();
        drop(joined(flights.board(&ask, before, None)));
        assert!(!ticket.is_wanted(), "he has gone");
        let time = |time| Some(Duration::from_secs(time));
        drop(joined(flights.board(&ask, before, time(3600))));
        drop(first(flights.board(&ask, before, time(0))));
        drop(first(flights.board(&ask, None, None)));
    }
}
