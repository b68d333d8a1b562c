//! What a statement is told of its session, since SQLite's functions know none.
//!
//! Promises: functions read back what [`Told::text`] writes.

use std::cell::RefCell;
use std::sync::Arc;

use forebay_pg_values::{Environment, ValueError};
use jiff::tz::TimeZone;

use super::error::raised;

/// What a statement is told of its session, as the text of one parameter: when its transaction began, in microseconds, the
/// session's number, its time zone.
#[derive(Debug, Clone)]
pub struct Told {
    /// For functions of values.
    pub values: Environment,
    /// Whose sequences' values are asked for.
    pub session: u64,
}

impl Told {
    /// The text of the parameter.
    pub fn text(now_micros: i64, session: u64, zone: &str) -> String {
        let (mut now, mut number) = (itoa::Buffer::new(), itoa::Buffer::new());
        [now.format(now_micros), " ", number.format(session), " ", zone].concat()
    }

    /// Only the number of the session that the text tells of.
    pub(super) fn session(text: &str) -> rusqlite::Result<u64> {
        let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
        number.ok_or_else(untold)
    }

    /// `last` is one that was read before: most are of the same zone.
    fn read(text: &str, last: Option<&(String, Arc<Self>)>) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let now_micros = parts.next()?.parse().ok()?;
        let session = parts.next()?.parse().ok()?;
        let name = parts.next()?;
        let zone = match last {
            Some((before, told)) if before.splitn(3, ' ').nth(2) == Some(name) => told.values.zone.clone(),
            _ => zone(name),
        };
        Some(Self {
            values: Environment::new(zone, now_micros),
            session,
        })
    }
}

/// The time zone of a session, by the name that its setting has.
pub fn zone(name: &str) -> TimeZone {
    forebay_pg_values::temporal::parse_zone(name).unwrap_or(TimeZone::UTC)
}

thread_local! {
    /// The text that was told last, with what it says: the same for all rows of a statement.
    static LAST_TOLD: RefCell<Option<(String, Arc<Told>)>> = const { RefCell::new(None) };
}

pub(super) fn told(text: &str) -> rusqlite::Result<Arc<Told>> {
    LAST_TOLD.with_borrow_mut(|last| {
        if let Some((known, told)) = last
            && known == text
        {
            return Ok(Arc::clone(told));
        }
        let read = Arc::new(Told::read(text, last.as_ref()).ok_or_else(untold)?);
        *last = Some((text.to_owned(), Arc::clone(&read)));
        Ok(read)
    })
}

fn untold() -> rusqlite::Error {
    raised(ValueError::new("XX000", "the statement was not told of its session"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_read_alone_is_the_one_that_is_told() {
        for (now_micros, session) in [(-5, 7), (i64::MIN, u64::MAX), (i64::MAX, 0)] {
            let text = Told::text(now_micros, session, "Europe/Berlin");
            let read = Told::read(&text, None).unwrap();
            assert_eq!((read.values.now_micros, read.session), (now_micros, session));
            assert_eq!(Told::session(&text).unwrap(), session);
        }
        assert!(Told::session("7").is_err());
        assert!(Told::session("0 one UTC").is_err());
    }
}
