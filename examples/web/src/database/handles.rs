//! A database that is open: Forebay's handles on it, and what they are held against.
//!
//! Promises: a row's own id, whichever database it is. Does not know which one it is, nor how it was opened.

use forebay::write::{Outcome, Writer};

use crate::entry::Entry;
use crate::failure::Failure;
use crate::unbatched::Unbatched;
use crate::users::Users;

/// A database that is open, in all the ways that it is written to and read.
pub(crate) struct Database {
    pub(super) name: String,
    pub(super) writer: Writer,
    pub(super) insert: &'static str,
    pub(super) users: Box<dyn Users>,
    pub(super) unbatched: Box<dyn Unbatched>,
}

impl Database {
    /// What it is, for the first line that is printed.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where users are found.
    pub(crate) fn users(&self) -> &dyn Users {
        &*self.users
    }

    /// How to write without Forebay.
    pub(crate) fn unbatched(&self) -> &dyn Unbatched {
        &*self.unbatched
    }

    /// Writes a row by a commit that it shares with whoever writes at the time. Returns the row's id.
    pub(crate) async fn batched(&self, Entry { value, created_at }: Entry) -> Result<i64, Failure> {
        let outcome = self.writer.execute(self.insert, (value, created_at)).await?;
        own_id(&outcome).ok_or_else(|| Failure::broken("the database told no id for the row, which is written"))
    }

    /// Ends when what was taken in is written. Says how.
    pub(crate) async fn drain(&self) -> String {
        self.writer.drain().await;
        let stats = self.writer.stats();
        format!("{} writes shared {} commits", stats.calls, stats.batches)
    }
}

/// Told with the outcome, or by RETURNING where the database tells ids no other way.
fn own_id(outcome: &Outcome) -> Option<i64> {
    let returned = || outcome.rows.first()?.first()?.as_integer();
    outcome.last_insert_id.or_else(returned)
}
