//! What functions may know of the session that calls them: SQLite's functions know none, so that each call brings it as a
//! parameter.
//!
//! Promises: functions read back what [`SessionContext::text`] writes.

use std::cell::RefCell;
use std::sync::Arc;

use forebay_pg_values::{Environment, ValueError};
use jiff::tz::TimeZone;

use super::error::raised;

/// How many parts the text has; the last one is the zone.
const PARTS: usize = 5;

/// What a statement's functions may know of its session, as the text of one parameter: when its transaction began, in microseconds, the
/// session's number, when the client asked for the statement, which tables its transaction has changed before, its time zone.
#[derive(Debug, Clone)]
pub struct SessionContext {
    /// For functions of values.
    pub values: Environment,
    /// Whose sequences' values are asked for.
    pub session: u64,
    /// When the client asked for the statement.
    pub asked_micros: i64,
}

impl SessionContext {
    /// The text of the parameter. `changed`: of [`changed_tables`](Self::changed_tables).
    pub fn text(now_micros: i64, session: u64, asked_micros: i64, changed: &str, zone: &str) -> String {
        let (mut now, mut number, mut asked) = (itoa::Buffer::new(), itoa::Buffer::new(), itoa::Buffer::new());
        [
            now.format(now_micros),
            " ",
            number.format(session),
            " ",
            asked.format(asked_micros),
            " ",
            changed,
            " ",
            zone,
        ]
        .concat()
    }

    /// The part of the text that tells of these tables, by their names in the file.
    pub fn changed_tables(tables: &[String]) -> String {
        let names = serde_json::Value::from_iter(tables.iter().map(String::as_str));
        // Between names JSON has no space here; inside of them it may be written like this.
        names.to_string().replace(' ', "\\u0020")
    }

    /// Only whether the text tells that the transaction has changed this table.
    pub(super) fn has_changed(text: &str, table: &str) -> rusqlite::Result<bool> {
        let part = text.split(' ').nth(3).ok_or_else(without_session)?;
        let names: Vec<String> = serde_json::from_str(part).map_err(|_| without_session())?;
        // As names are told apart in the file.
        Ok(names.iter().any(|name| name.eq_ignore_ascii_case(table)))
    }

    /// Only the number of the session that the text tells of.
    pub(super) fn session(text: &str) -> rusqlite::Result<u64> {
        let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
        number.ok_or_else(without_session)
    }

    /// `last` is one that was read before: most are of the same zone.
    fn read(text: &str, last: Option<&(String, Arc<Self>)>) -> Option<Self> {
        let mut parts = text.splitn(PARTS, ' ');
        let now_micros = parts.next()?.parse().ok()?;
        let session = parts.next()?.parse().ok()?;
        let asked_micros = parts.next()?.parse().ok()?;
        let _changed = parts.next()?;
        let name = parts.next()?;
        let zone = match last {
            Some((before, context)) if before.splitn(PARTS, ' ').last() == Some(name) => context.values.zone.clone(),
            _ => zone(name),
        };
        Some(Self {
            values: Environment::new(zone, now_micros),
            session,
            asked_micros,
        })
    }
}

/// The time zone of a session, by the name that its setting has.
pub fn zone(name: &str) -> TimeZone {
    forebay_pg_values::temporal::parse_zone(name).unwrap_or(TimeZone::UTC)
}

thread_local! {
    /// The text that was read last, with what it says: the same for all rows of a statement.
    static LAST_READ: RefCell<Option<(String, Arc<SessionContext>)>> = const { RefCell::new(None) };
}

/// What the text of the parameter says.
pub(super) fn session_context(text: &str) -> rusqlite::Result<Arc<SessionContext>> {
    LAST_READ.with_borrow_mut(|last| {
        if let Some((known, context)) = last
            && known == text
        {
            return Ok(Arc::clone(context));
        }
        let read = Arc::new(SessionContext::read(text, last.as_ref()).ok_or_else(without_session)?);
        *last = Some((text.to_owned(), Arc::clone(&read)));
        Ok(read)
    })
}

fn without_session() -> rusqlite::Error {
    raised(ValueError::new(
        "XX000",
        "the statement does not say what session it is of",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_read_alone_is_the_one_that_the_text_names() {
        for (now_micros, session) in [(-5, 7), (i64::MIN, u64::MAX), (i64::MAX, 0)] {
            let changed = ["a b".to_owned(), "\"c,\u{fc}\"".to_owned()];
            let text = SessionContext::text(
                now_micros,
                session,
                5,
                &SessionContext::changed_tables(&changed),
                "Europe/Berlin",
            );
            for (table, is_changed) in [("a b", true), ("a", false), ("\"c,\u{fc}\"", true)] {
                assert_eq!(
                    SessionContext::has_changed(&text, table).unwrap(),
                    is_changed,
                    "{table}"
                );
            }
            let read = SessionContext::read(&text, None).unwrap();
            assert_eq!(read.values.zone.iana_name(), Some("Europe/Berlin"));
            assert_eq!((read.values.now_micros, read.session), (now_micros, session));
            assert_eq!(read.asked_micros, 5);
            assert_eq!(SessionContext::session(&text).unwrap(), session);
        }
        assert!(SessionContext::session("7").is_err());
        assert!(SessionContext::session("0 one UTC").is_err());
    }
}
