//! The transaction block a session is in: what BEGIN opened, or what a group of statements opened by itself.
//!
//! The right to write is taken at the first statement that writes, not at BEGIN: until then a block at READ COMMITTED holds
//! nothing, and each of its reads sees what is committed when it begins, exactly as PostgreSQL has it. REPEATABLE READ and
//! SERIALIZABLE blocks hold a snapshot if they only read, and the right to write from their first statement otherwise, so
//! that none of them ever fails to serialize.

use std::sync::Arc;
use std::time::Duration;

use forebay_sqlite::connection::Reader;
use forebay_sqlite::{Sqlite, Transaction};
use forebay_write::{CancelToken, WriteError};

use super::plans::Plans;
use super::settings::Settings;
use super::timeouts::{elapsed, lock_timed_out};
use crate::sql::{self, Isolation};

/// An open transaction block.
pub(super) struct Block {
    /// Opened by a script of several statements or by a pipeline, and ended with it; not by BEGIN.
    pub(super) implicit: bool,
    /// A statement failed: until ROLLBACK nothing is executed.
    pub(super) failed: bool,
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    /// Whether a statement has been executed: the isolation level can no longer be changed.
    pub(super) started: bool,
    /// The transaction, once a statement has written.
    write: Option<Transaction>,
    /// What it reads from, if it must see one state throughout.
    snapshot: Option<Reader>,
    /// How long the snapshot has waited for the client, all in all.
    snapshot_waited: Duration,
    /// The snapshot was given up: what it must see is not to be seen any more.
    expired: bool,
    /// Oldest first.
    savepoints: Vec<Savepoint>,
    /// Tables that it has made or truncated, by their names in the file, and how many savepoints there were then.
    emptied: Vec<(String, usize)>,
    /// Tables whose rows it has changed or added to, by their names in the file; also where that was rolled back to a savepoint.
    changed: Vec<String>,
    /// The same, as statements are told.
    changed_told: String,
    /// What a rollback puts back.
    settings_before: Settings,
    /// When it began, in microseconds since 1970: `now()` for all of it.
    pub(super) began_micros: i64,
    /// A statement in it has changed the schema, which others do not see yet.
    schema_change: Option<SchemaChange>,
    /// SET CONSTRAINTS ALL IMMEDIATE: foreign keys are looked at after each statement, deferred ones too.
    pub(super) constraints_are_immediate: bool,
    /// SET CONSTRAINTS name IMMEDIATE, of some of them.
    pub(super) some_constraints_are_immediate: bool,
    /// Settings that SET LOCAL changed: a commit puts them back too.
    local: Vec<(String, Option<String>)>,
}

/// What a rollback to it puts back, beside what was written.
struct Savepoint {
    name: String,
    settings: Settings,
    local: Vec<(String, Option<String>)>,
    read_only: bool,
    constraints_are_immediate: bool,
    some_constraints_are_immediate: bool,
}

impl Block {
    pub(super) fn open(
        implicit: bool,
        isolation: Isolation,
        read_only: bool,
        settings: &Settings,
        began_micros: i64,
    ) -> Self {
        Self {
            implicit,
            failed: false,
            isolation,
            read_only,
            started: false,
            write: None,
            snapshot: None,
            snapshot_waited: Duration::ZERO,
            expired: false,
            savepoints: Vec::new(),
            emptied: Vec::new(),
            changed: Vec::new(),
            changed_told: sql::SessionContext::changed_tables(&[]),
            settings_before: settings.clone(),
            began_micros,
            schema_change: None,
            constraints_are_immediate: false,
            some_constraints_are_immediate: false,
            local: Vec::new(),
        }
    }

    /// The settings as they were when it began.
    pub(super) fn settings_before(&self) -> &Settings {
        &self.settings_before
    }

    /// A statement in it changes the schema: for others when the block ends, if it is not undone.
    pub(super) fn changes_schema(&mut self, plans: &Arc<Plans>) {
        self.schema_change
            .get_or_insert_with(|| SchemaChange(Arc::clone(plans)));
    }

    pub(super) fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    pub(super) fn has_changed_schema(&self) -> bool {
        self.schema_change.is_some()
    }

    /// A statement in it has made or truncated these tables.
    pub(super) fn empties(&mut self, tables: &[String]) {
        let savepoints = self.savepoints.len();
        self.emptied
            .extend(tables.iter().map(|table| (table.clone(), savepoints)));
    }

    /// A statement in it has changed rows of these tables.
    pub(super) fn changes(&mut self, tables: &[String]) {
        let before = self.changed.len();
        for table in tables {
            if !self.changed.contains(table) {
                self.changed.push(table.clone());
            }
        }
        if self.changed.len() > before {
            self.changed_told = sql::SessionContext::changed_tables(&self.changed);
        }
    }

    /// The tables whose rows it has changed, as statements are told.
    pub(super) fn changed(&self) -> &str {
        &self.changed_told
    }

    /// Whether that table was made or truncated since the last savepoint.
    pub(super) fn has_emptied(&self, table: &str) -> bool {
        let mut emptied = self.emptied.iter();
        emptied.any(|(name, savepoints)| name == table && *savepoints == self.savepoints.len())
    }

    /// This setting, which has that value, is changed until the end of the block only.
    pub(super) fn remember_local(&mut self, name: &str, value: Option<String>) {
        if !self.local.iter().any(|(local, _)| local == name) {
            self.local.push((name.to_owned(), value));
        }
    }

    /// This setting is changed for good, if the block is committed.
    pub(super) fn forget_local(&mut self, name: &str) {
        self.local.retain(|(local, _)| local != name);
    }

    /// The settings as they are to be after a commit, being `now` before it.
    pub(super) fn settings_after_commit(&self, now: &Settings) -> Settings {
        let mut after = now.clone();
        for (name, before) in &self.local {
            after
                .set(name, before.as_deref())
                .expect("a value it had before is taken again");
        }
        after
    }

    /// The transaction, if one has begun.
    pub(super) fn write(&self) -> Option<&Transaction> {
        self.write.as_ref()
    }

    pub(super) fn snapshot(&self) -> Option<&Reader> {
        self.snapshot.as_ref()
    }

    pub(super) fn hold_snapshot(&mut self, reader: Reader) {
        self.snapshot = Some(reader);
    }

    pub(super) fn snapshot_mut(&mut self) -> Option<&mut Reader> {
        self.snapshot.as_mut()
    }

    /// How long its snapshot has waited for the client; none if it holds none.
    pub(super) fn snapshot_waited(&mut self) -> Option<&mut Duration> {
        self.snapshot.is_some().then_some(&mut self.snapshot_waited)
    }

    /// Gives its snapshot up; it cannot have the same one again.
    pub(super) fn expire(&mut self) {
        self.snapshot = None;
        self.expired = true;
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expired
    }

    /// Whether somebody else may be waiting for what it holds.
    pub(super) fn holds_something(&self) -> bool {
        self.write.is_some() || self.snapshot.is_some()
    }

    /// Whether every statement must see one state.
    pub(super) fn needs_one_state(&self) -> bool {
        matches!(self.isolation, Isolation::RepeatableRead | Isolation::Serializable)
    }

    /// The transaction to write in; begins it, in its turn, if that has not happened yet. Waits for it no longer than `lock_timeout`.
    pub(super) async fn writing(
        &mut self,
        sqlite: &Sqlite,
        token: &CancelToken,
        lock_timeout: Option<Duration>,
    ) -> Result<&mut Transaction, WriteError> {
        if self.write.is_none() {
            let begun = tokio::select! {
                biased;
                begun = sqlite.begin() => begun?,
                error = token.fired() => return Err(error),
                () = elapsed(lock_timeout) => return Err(lock_timed_out()),
            };
            self.write_in(begun).await?;
        }
        Ok(self.write.as_mut().expect("it has just been begun"))
    }

    /// As [`writing`](Self::writing), but waits for nobody's transaction: false if another one is in the way.
    pub(super) async fn writing_unless_another(
        &mut self,
        sqlite: &Sqlite,
        token: &CancelToken,
    ) -> Result<bool, WriteError> {
        if self.write.is_some() {
            return Ok(true);
        }
        let begun = tokio::select! {
            biased;
            begun = sqlite.begin_unless_another() => begun?,
            error = token.fired() => return Err(error),
        };
        match begun {
            Some(transaction) => self.write_in(transaction).await.map(|()| true),
            None => Ok(false),
        }
    }

    async fn write_in(&mut self, transaction: Transaction) -> Result<(), WriteError> {
        let transaction = self.write.insert(transaction);
        // Nothing was written before, so all of them mark the same point.
        for place in 0..self.savepoints.len() {
            transaction.savepoint(&mark(place)).await?;
        }
        Ok(())
    }

    /// Nothing more is executed until a rollback. What no rollback to a savepoint can need is given up at once, so that a
    /// client that does nothing about its failed transaction keeps nobody waiting.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        let lost = self.write.as_ref().is_some_and(Transaction::is_lost);
        if lost || self.savepoints.is_empty() {
            self.write = None;
            self.snapshot = None;
            self.savepoints.clear();
        }
    }

    pub(super) async fn savepoint(&mut self, name: String, settings: Settings) -> Result<(), WriteError> {
        if let Some(transaction) = &mut self.write {
            transaction.savepoint(&mark(self.savepoints.len())).await?;
        }
        self.savepoints.push(Savepoint {
            name,
            settings,
            local: self.local.clone(),
            read_only: self.read_only,
            constraints_are_immediate: self.constraints_are_immediate,
            some_constraints_are_immediate: self.some_constraints_are_immediate,
        });
        Ok(())
    }

    /// Undoes what was done since, and gives the settings as they were then; `None` if there is no such savepoint.
    pub(super) async fn rollback_to(&mut self, name: &str) -> Result<Option<Settings>, WriteError> {
        let Some(place) = self.place(name) else {
            return Ok(None);
        };
        if let Some(transaction) = &mut self.write {
            transaction.rollback_to(&mark(place)).await?;
        }
        self.savepoints.truncate(place + 1);
        self.emptied.retain(|(_, savepoints)| *savepoints <= place);
        self.failed = false;
        if let Some(SchemaChange(plans)) = &self.schema_change {
            plans.schema_changed();
        }
        let savepoint = &self.savepoints[place];
        self.local.clone_from(&savepoint.local);
        self.read_only = savepoint.read_only;
        self.constraints_are_immediate = savepoint.constraints_are_immediate;
        self.some_constraints_are_immediate = savepoint.some_constraints_are_immediate;
        Ok(Some(savepoint.settings.clone()))
    }

    /// Forgets the savepoint and those after it; false if there is no such savepoint.
    pub(super) async fn release(&mut self, name: &str) -> Result<bool, WriteError> {
        let Some(place) = self.place(name) else {
            return Ok(false);
        };
        if let Some(transaction) = &mut self.write {
            transaction.release(&mark(place)).await?;
        }
        self.savepoints.truncate(place);
        for (_, savepoints) in &mut self.emptied {
            *savepoints = place.min(*savepoints);
        }
        Ok(true)
    }

    pub(super) fn savepoint_count(&self) -> usize {
        self.savepoints.len()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name)
    }

    /// Commits what was written, if anything was.
    pub(super) async fn commit(mut self) -> Result<(), WriteError> {
        match self.write.take() {
            Some(transaction) => transaction.commit().await,
            None => Ok(()),
        }
    }

    /// Rolls back, and waits until it is done, so that whoever writes next finds nothing of it.
    pub(super) async fn rollback(mut self) -> Result<(), WriteError> {
        match self.write.take() {
            Some(transaction) => transaction.rollback().await,
            None => Ok(()),
        }
    }
}

/// What was compiled in a block that changes the schema, or beside it, is not to be used behind it.
struct SchemaChange(Arc<Plans>);

impl Drop for SchemaChange {
    fn drop(&mut self) {
        self.0.schema_changed();
    }
}

/// The savepoint's name in SQLite, which does not tell "a" from "A".
fn mark(place: usize) -> String {
    format!("block_{place}")
}
