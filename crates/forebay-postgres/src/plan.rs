//! Plan: what is known of a text, and of the table that it inserts into.
//!
//! Promises: nothing here is believed of a table without being read again where it matters (`facts`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;

use super::facts::Facts;
use forebay_sql::{Dialect, Insert, Role, Verb};
use forebay_write::Sql;

/// For so many batches after a conflict the next is looked for.
const WARY_BATCHES: u32 = 64;

/// Plans by text.
pub(super) type Plans = forebay_remote::plans::Plans<Plan>;

/// What is known of one text.
pub(super) struct Plan {
    pub(super) sql: Sql,
    pub(super) role: Role,
    /// Whether the server's count is of rows that were changed.
    pub(super) changes_rows: bool,
    /// Whether it may leave something in the session: a setting, a lock, a temporary table.
    pub(super) changes_session: bool,
    /// Whether it may commit before it has come to its end, so that it is not run again.
    pub(super) may_commit_within: bool,
    /// Its shape, if it is an INSERT of one row.
    pub(super) insert: Option<Insert>,
    /// Of the table it inserts into, as read last.
    facts: Mutex<Option<Facts>>,
    /// Batches to come that expect rows in conflict with others.
    wary: AtomicU32,
    /// Batches to come that do not try a set: it failed where its rows did not.
    distrust: AtomicU32,
    /// Whether rows in conflict may be looked for; not where reading the table is not allowed.
    sifts: AtomicBool,
}

impl Plan {
    pub(super) fn of(sql: &Sql) -> Self {
        let verb = forebay_sql::verb(Dialect::Postgres, sql);
        let changes_session = forebay_sql::changes_session(Dialect::Postgres, sql);
        let role = match (forebay_sql::role(Dialect::Postgres, sql), verb) {
            // What changes the schema may be what the statements after it need to be prepared.
            (Role::Shares, Verb::Other) => Role::Alone,
            // Its neighbours must not see that.
            (Role::Shares, _) if changes_session => Role::Alone,
            (role, _) => role,
        };
        Self {
            sql: sql.clone(),
            role,
            changes_rows: verb == Verb::Changes,
            changes_session,
            may_commit_within: forebay_sql::may_commit_within(sql),
            insert: forebay_sql::insert(Dialect::Postgres, sql),
            facts: Mutex::new(None),
            wary: AtomicU32::new(0),
            distrust: AtomicU32::new(0),
            sifts: AtomicBool::new(true),
        }
    }

    pub(super) fn facts(&self) -> Option<Facts> {
        self.facts.lock().clone()
    }

    pub(super) fn learn(&self, facts: Option<Facts>) {
        *self.facts.lock() = facts;
    }

    /// Rows were in conflict with others.
    pub(super) fn expect_conflicts(&self) {
        self.wary.store(WARY_BATCHES, Ordering::Relaxed);
    }

    /// Whether rows in conflict are to be looked for first; counts a batch.
    pub(super) fn is_wary(&self) -> bool {
        count_down(&self.wary) && self.sifts.load(Ordering::Relaxed)
    }

    /// Rows in conflict cannot be looked for.
    pub(super) fn stop_sifting(&self) {
        self.sifts.store(false, Ordering::Relaxed);
    }

    /// A set failed for a reason that is none of its rows'.
    pub(super) fn distrust_sets(&self) {
        self.distrust.store(WARY_BATCHES, Ordering::Relaxed);
    }

    /// Whether a set may be tried; counts a batch.
    pub(super) fn trusts_sets(&self) -> bool {
        !count_down(&self.distrust)
    }
}

/// Takes one off; whether there was one. Two at a time may both take the last, which harms nobody.
fn count_down(count: &AtomicU32) -> bool {
    let left = count.load(Ordering::Relaxed);
    if left > 0 {
        count.store(left - 1, Ordering::Relaxed);
    }
    left > 0
}
