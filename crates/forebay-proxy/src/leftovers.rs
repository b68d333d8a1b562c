//! Leftovers: what a session has left on a server connection, asked of the server itself.
//!
//! Promises: settings are told by name and value, to be set elsewhere; anything else that is left is told as what keeps the
//! session on its connection. Names are looked up in `pg_catalog` alone, whatever the session's search_path is.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::frames;
use crate::settings::{AT_ONCE, STATEMENT_TIMEOUT, Settings, quoted_text};

/// Asks for settings by name, and for whatever else is left, by a name that is NULL: also for what a function has set that may do more than
/// who called it. What is of one transaction is shown behind it as if it were the session's, and begins anew with each.
const ASK: &str = "\
SELECT CASE WHEN context OPERATOR(pg_catalog.=) 'user' OR (SELECT rolsuper FROM pg_catalog.pg_roles \
WHERE rolname OPERATOR(pg_catalog.=) SESSION_USER) THEN name END, setting \
FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session' \
AND name OPERATOR(pg_catalog.<>) ALL (ARRAY['transaction_isolation', 'transaction_read_only', 'transaction_deferrable']) \
UNION ALL SELECT 'session_authorization', CAST(SESSION_USER AS pg_catalog.text) \
UNION ALL SELECT NULL, 'advisory locks' WHERE EXISTS (SELECT FROM pg_catalog.pg_locks \
WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND locktype OPERATOR(pg_catalog.=) 'advisory') \
UNION ALL SELECT NULL, 'temporary schema' WHERE pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 \
UNION ALL SELECT NULL, 'temporary objects' WHERE EXISTS (SELECT FROM pg_catalog.pg_class \
WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) OR EXISTS (SELECT FROM pg_catalog.pg_proc \
WHERE pronamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) OR EXISTS (SELECT FROM pg_catalog.pg_type \
WHERE typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
UNION ALL SELECT NULL, 'channels' WHERE EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) \
UNION ALL SELECT NULL, 'cursors' WHERE EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable) \
UNION ALL SELECT NULL, 'prepared statements' WHERE EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)";

/// Where it is none that is what all begin with, unless something else is said of that.
const ASK_ROLE: &str = "\
 UNION ALL SELECT 'role', pg_catalog.current_setting('role') WHERE pg_catalog.current_setting('role') OPERATOR(pg_catalog.<>) 'none'";
const BEGINS_AS_ANOTHER: &str = "\
 OR EXISTS (SELECT FROM pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) is_set WHERE is_set OPERATOR(pg_catalog.~~) 'role=%')";

/// In front of that, where it took longer than the session's own limit: that is told by itself, and holds no more for the rest.
const ASK_IN_ANY_TIME: &str = "\
SELECT 'statement_timeout', pg_catalog.current_setting('statement_timeout'); SET LOCAL statement_timeout = 0; ";

/// Asks also for settings of the user's own, by these names, which have a dot: no view shows them. What a view shows was asked for, and what
/// it shows otherwise than as set in the session may be nobody's to set. One that was ever set is not NULL any more, and empty may be otherwise than it began.
/// Once more, where there was no answer, it takes whatever time it takes. `may_begin_as`: the session may have said itself as which role it begins.
pub(crate) fn ask(names: &BTreeSet<String>, is_once_more: bool, may_begin_as: bool) -> String {
    let mut text = AT_ONCE.to_owned();
    if is_once_more {
        text.push_str(ASK_IN_ANY_TIME);
    }
    text.push_str(ASK);
    text.push_str(ASK_ROLE);
    text.push_str(if may_begin_as { " OR true" } else { BEGINS_AS_ANOTHER });
    for name in names.iter().filter(|name| name.contains('.')) {
        let name = quoted_text(name);
        let _ = write!(
            text,
            " UNION ALL SELECT {name}, pg_catalog.current_setting({name}, true) \
             WHERE pg_catalog.current_setting({name}, true) IS NOT NULL \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_settings \
             WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower({name}))"
        );
    }
    text
}

/// What was answered.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    pub(crate) settings: Settings,
    /// What keeps the session where it is.
    pub(crate) pins: Vec<String>,
    /// There was none.
    pub(crate) is_refused: bool,
}

impl Leftovers {
    /// Takes a row of the answer: a DataRow from its first byte on. What cannot be read keeps the session where it is.
    /// `user` is whose the connection is; `is_used_up`, whether all was discarded on it, which leaves the schema of temporary objects.
    pub(crate) fn take(&mut self, row: &[u8], user: &str, is_used_up: bool) {
        match columns(&row[frames::HEADER_BYTES..]) {
            // Who may be whom is decided for the user that has logged in: nothing to be set elsewhere.
            Some((Some("session_authorization"), Some(name))) if name == user => {}
            Some((Some("session_authorization"), _)) => self.pins.push("another user's authorization".to_owned()),
            // What was told of it first is so behind the question, too.
            Some((Some(STATEMENT_TIMEOUT), Some(_))) if self.settings.get(STATEMENT_TIMEOUT).is_some() => {}
            Some((Some(name), Some(value))) => self.settings.set(name, value),
            Some((None, Some("temporary schema"))) if is_used_up => {}
            Some((None, Some(what))) => self.pins.push(what.to_owned()),
            _ => self.pins.push("settings".to_owned()),
        }
    }
}

/// A row of two columns, behind its head.
pub(crate) fn columns(body: &[u8]) -> Option<(Option<&str>, Option<&str>)> {
    let rest = body.strip_prefix(&[0, 2])?;
    let (name, rest) = column(rest)?;
    let (value, rest) = column(rest)?;
    rest.is_empty().then_some((name, value))
}

/// A row of one column that is not NULL, behind its head.
pub(crate) fn value(body: &[u8]) -> Option<&str> {
    match column(body.strip_prefix(&[0, 1])?)? {
        (value, []) => value,
        _ => None,
    }
}

fn column(bytes: &[u8]) -> Option<(Option<&str>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        return Some((None, rest));
    };
    let (text, rest) = rest.split_at_checked(length)?;
    Some((Some(std::str::from_utf8(text).ok()?), rest))
}
