//! Role: which role of the server's a pool's user is.
//!
//! Promises: behind the login of a client it is asked which role the user is, and whether it is still called so, at most once in [a second](LOOKED_AT_FOR); that it is
//! another, or has another name, is told once. Those who have logged in before can see that by a number.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::frames::HEADER_BYTES;
use crate::leftovers;

/// What a user is elsewhere made, dropped or renamed to is seen so much later at the latest, by the next client who logs in.
const LOOKED_AT_FOR: Duration = Duration::from_secs(1);

/// Asks a connection since when its server runs, and for the number of the role that has logged in on it, and the bytes of the role's name: a server connection stays
/// that role's, whatever becomes of the name. It is to be asked [at once](crate::settings::AT_ONCE).
pub(crate) const ASK: &str = "\
SET LOCAL search_path = pg_catalog; SET LOCAL statement_timeout = 0; \
SELECT concat_ws(' ', CAST(date_part('epoch', pg_postmaster_start_time()) AS text), CAST(usesysid AS text), \
(SELECT encode(convert_to(CAST(rolname AS text), getdatabaseencoding()), 'hex') FROM pg_roles r WHERE r.oid = usesysid)) \
FROM pg_stat_get_activity(pg_backend_pid())";

/// What was answered, if it was: of a DataRow from its first byte on.
pub(crate) fn told(row: &[u8]) -> Option<String> {
    leftovers::value(row.get(HEADER_BYTES..)?).map(str::to_owned)
}

/// Which role the user is, as was seen last.
#[derive(Debug, Default)]
pub(crate) struct Role {
    seen: Mutex<Seen>,
    /// It is to be looked at.
    is_due: AtomicBool,
    /// How often it was another.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Seen {
    /// Since when its server runs, and its number.
    role: Option<(String, String)>,
    at: Option<Instant>,
}

impl Role {
    /// A client logs in.
    pub(crate) fn logs_in(&self) {
        let at = self.seen.lock().at;
        if at.is_none_or(|at| at.elapsed() >= LOOKED_AT_FOR) {
            self.is_due.store(true, Ordering::Release);
        }
    }

    /// Whether whoever is told so has to ask now.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire) && self.is_due.swap(false, Ordering::AcqRel)
    }

    /// What was answered, if it was; whether connections that there are may be another role's than the one that this user is called. Of another server than before none is there.
    pub(crate) fn learn(&self, role: Option<String>, user: &str) -> bool {
        let Some(role) = role else { return false };
        let mut parts = role.split(' ').map(str::to_owned);
        let (Some(since), Some(number)) = (parts.next(), parts.next()) else {
            return false;
        };
        let hex: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        let has_its_name = parts.next().is_some_and(|name| name == hex);
        let mut seen = self.seen.lock();
        seen.at = Some(Instant::now());
        let is_of_another_number = (seen.role.as_ref()).is_some_and(|(of, before)| *of == since && *before != number);
        let is_another = !has_its_name || is_of_another_number;
        // Who is asked next says who it is.
        seen.role = has_its_name.then_some((since, number));
        if is_another {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        is_another
    }

    /// How often it was another.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_behind_a_login() {
        let role = Role::default();
        assert!(!role.is_due(), "nobody has logged in");
        role.logs_in();
        assert!(role.is_due() && !role.is_due());
        role.learn(Some("1.5 10 61".into()), "a");
        role.logs_in();
        assert!(!role.is_due(), "it was looked at a moment ago");
    }

    #[test]
    fn it_is_another_by_its_number_and_by_its_name() {
        let learn = |before: Option<&str>, now: Option<&str>| {
            let role = Role::default();
            assert!(!role.learn(before.map(str::to_owned), "a b"));
            let is_another = role.learn(now.map(str::to_owned), "a b");
            assert_eq!(role.changes(), u64::from(is_another));
            is_another
        };
        assert!(!learn(None, Some("1.5 10 612062")));
        assert!(!learn(Some("1.5 10 612062"), Some("1.5 10 612062")));
        assert!(!learn(Some("1.5 10 612062"), None), "it cannot be told");
        assert!(
            learn(Some("1.5 10 612062"), Some("1.5 11 612062")),
            "another has its name"
        );
        assert!(
            !learn(Some("1.5 10 612062"), Some("2.5 11 612062")),
            "the server is another"
        );
        assert!(learn(None, Some("1.5 10 63")), "it is called otherwise");
        assert!(learn(Some("1.5 10 612062"), Some("1.5 10")), "it is dropped");
    }
}
