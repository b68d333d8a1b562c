//! Statements that the session carries out itself: transactions, settings, `DISCARD`, `LISTEN` and their like.
//!
//! Promises: what PostgreSQL does, inside a transaction and outside of one; a rollback puts settings back. Runs no SQL.

use forebay_write::{CancelToken, Value};
use postgres_types::Type;

use super::Session;
use super::block::Block;
use super::notifications::Intent;
use super::prepared::{Field, Life, Portal};
use super::settings::{Settings, unknown};
use super::stop::Stop;
use crate::sql::{Isolation, Kind, ResetTarget, Statement};
use forebay_pg_wire::backend;
use forebay_pg_wire::error::{Severity, WireError};

/// The most savepoints of one transaction: each is looked through when a name is searched.
const SAVEPOINTS_MAX: usize = 10_000;

/// Whether it begins, ends or marks a transaction, so that no implicit block is to be opened for it.
pub(super) fn is_transaction_control(kind: &Kind) -> bool {
    matches!(kind, Kind::Begin { .. } | Kind::Commit { .. } | Kind::Rollback { .. })
}

/// Whether a failed transaction still takes it.
pub(super) fn ends_failure(kind: &Kind) -> bool {
    matches!(kind, Kind::Commit { .. } | Kind::Rollback { .. } | Kind::RollbackTo(_))
}

/// The columns of what the session itself answers with rows.
pub(super) fn columns(kind: &Kind, settings: &Settings) -> Vec<Field> {
    match kind {
        Kind::Show(name) if name.eq_ignore_ascii_case("all") => ["name", "setting", "description"]
            .map(|column| Field::new(column, Type::TEXT))
            .into(),
        Kind::Show(name) => {
            let spelled = settings
                .all()
                .map(|(spelled, _)| spelled)
                .find(|spelled| spelled.eq_ignore_ascii_case(name));
            vec![Field::new(spelled.unwrap_or(name), Type::TEXT)]
        }
        _ => Vec::new(),
    }
}

/// Takes the settings of the start-up message.
pub(super) fn set_at_start(settings: &mut Settings, parameters: &[(String, String)]) -> Result<(), WireError> {
    for (name, value) in parameters {
        let set = match name.as_str() {
            "user" | "database" => continue,
            "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => continue,
            "replication" => Err(WireError::unsupported("replication connections are not supported")),
            "options" => set_options(settings, value),
            name => settings.set(name, Some(value)).map(|_| ()),
        };
        set.map_err(|error| error.with_severity(Severity::Fatal))?;
    }
    Ok(())
}

/// `-c name=value --name=value`, as libpq's PGOPTIONS has it.
fn set_options(settings: &mut Settings, options: &str) -> Result<(), WireError> {
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let assignment = match word {
            "-c" => words.next().unwrap_or_default(),
            word => word
                .strip_prefix("--")
                .or_else(|| word.strip_prefix("-c"))
                .unwrap_or(word),
        };
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(WireError::new(
                "42601",
                format!("option \"{word}\" is not of the form -c name=value"),
            ));
        };
        settings.set(&name.replace('-', "_"), Some(value))?;
    }
    Ok(())
}

pub(super) fn default_isolation(settings: &Settings) -> Isolation {
    match settings.value("default_transaction_isolation").as_deref() {
        Some("serializable") => Isolation::Serializable,
        Some("repeatable read") => Isolation::RepeatableRead,
        Some("read uncommitted") => Isolation::ReadUncommitted,
        _ => Isolation::ReadCommitted,
    }
}

fn isolation_words(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "read uncommitted",
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

fn no_block(command: &str) -> WireError {
    WireError::new("25P01", format!("{command} can only be used in transaction blocks"))
}

fn no_savepoint(name: &str) -> WireError {
    WireError::new("3B001", format!("savepoint \"{name}\" does not exist"))
}

/// What carrying out a command gave.
pub(super) enum Controlled {
    /// Done; this is the tag's own, where it differs from the statement's.
    Done(Option<&'static str>),
    /// Done, with so many rows.
    Counted(u64),
    /// Rows to send.
    Rows(Vec<Vec<Value>>),
    /// Not the session's business.
    NotMine,
}

impl Session {
    /// Carries the command out, if it is one for the session itself.
    pub(super) async fn control(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
    ) -> Result<Controlled, Stop> {
        let kind = &statement.kind;
        if self.block.is_none() && matches!(kind, Kind::Listen(_) | Kind::Unlisten(_) | Kind::Notify { .. }) {
            self.open_implicit_block();
        }
        match kind {
            Kind::Sql | Kind::Catalog | Kind::Copy(_) => return Ok(Controlled::NotMine),
            Kind::Begin { isolation, read_only } => self.begin(*isolation, *read_only)?,
            Kind::Commit { chain } => {
                let tag = self.end(*chain, true).await?;
                return Ok(Controlled::Done(Some(tag)));
            }
            Kind::Rollback { chain } => {
                self.end(*chain, false).await?;
            }
            Kind::Savepoint(name) => match &mut self.block {
                Some(block) if !block.implicit && block.savepoint_count() >= SAVEPOINTS_MAX => {
                    let message = format!("a transaction has at most {SAVEPOINTS_MAX} savepoints");
                    return Err(WireError::new("53400", message)
                        .with_hint("Release those that are no longer needed.")
                        .into());
                }
                Some(block) if !block.implicit => {
                    block.savepoint(name.clone(), self.settings.clone()).await?;
                    self.locks.savepoint();
                    self.ears.savepoint();
                }
                _ => return Err(no_block("SAVEPOINT").into()),
            },
            Kind::RollbackTo(name) => {
                self.settle_portals(token).await?;
                match &mut self.block {
                    Some(block) if !block.implicit => {
                        let Some(settings) = block.rollback_to(name).await? else {
                            return Err(no_savepoint(name).into());
                        };
                        let left = block.savepoint_count();
                        self.locks.rolled_back_to(left);
                        self.ears.rolled_back_to(left);
                        self.portals
                            .retain(|_, portal| portal.life == Life::Held || portal.savepoints < left);
                        self.restore_settings(settings);
                    }
                    _ => return Err(no_block("ROLLBACK TO SAVEPOINT").into()),
                }
            }
            Kind::Release(name) => match &mut self.block {
                Some(block) if !block.implicit => {
                    if !block.release(name).await? {
                        return Err(no_savepoint(name).into());
                    }
                    let left = block.savepoint_count();
                    self.locks.released_to(left);
                    self.ears.released_to(left);
                    for portal in self.portals.values_mut() {
                        portal.savepoints = portal.savepoints.min(left);
                    }
                }
                _ => return Err(no_block("RELEASE SAVEPOINT").into()),
            },
            Kind::SetTransaction {
                isolation,
                read_only,
                session,
            } => {
                self.set_transaction(*isolation, *read_only, *session)?;
            }
            Kind::Set { name, value, local } => self.set(name, value.as_deref(), *local)?,
            Kind::Reset(ResetTarget::Name(name)) => self.set(name, None, false)?,
            Kind::Reset(ResetTarget::All) => {
                let mut settings = self.settings.clone();
                settings.reset_all();
                self.restore_settings(settings);
            }
            Kind::Show(name) if name.eq_ignore_ascii_case("all") => {
                let rows = self
                    .settings
                    .all()
                    .map(|(name, value)| vec![name.into(), value.into(), "".into()]);
                return Ok(Controlled::Rows(rows.collect()));
            }
            Kind::Show(name) => {
                let value = self.setting(name).ok_or_else(|| unknown(name))?;
                return Ok(Controlled::Rows(vec![vec![value.into()]]));
            }
            Kind::Discard { all, sequences } => {
                if self.block.is_some() && *all {
                    let error = WireError::new("25001", "DISCARD ALL cannot run inside a transaction block");
                    return Err(error.into());
                }
                if *sequences {
                    self.drawn.forget();
                }
                if *all {
                    self.statements.clear();
                    self.portals.clear();
                    self.ears.intend(Intent::UnlistenAll)?;
                    self.ears.commit();
                    self.locks.give_back_session();
                    let mut settings = self.settings.clone();
                    settings.reset_all();
                    self.restore_settings(settings);
                }
            }
            Kind::Prepare { name, types } => {
                self.refuse_prepared(name, portal.prepared.script.len())?;
                let carried = statement.carried().expect("a PREPARE carries what is prepared");
                self.prepare(
                    name.clone(),
                    Some((**carried).clone()),
                    &portal.prepared.script,
                    types,
                    true,
                )
                .await?;
            }
            Kind::Execute(_) => unreachable!("its portal stands for what it executes"),
            Kind::Declare { name, scroll, hold } => {
                self.declare(portal, statement, name, (*scroll, *hold), token).await?;
            }
            Kind::Fetch { name, direction, moves } => {
                return self.fetch_from(portal, name, *direction, *moves, token).await;
            }
            Kind::Deallocate(None) => self.statements.clear(),
            Kind::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    return Err(WireError::new("26000", message).into());
                }
            }
            Kind::SetConstraints { names, deferred } => self.set_constraints(names, *deferred, token).await?,
            Kind::Listen(channel) => self.ears.intend(Intent::Listen(channel.clone()))?,
            Kind::Unlisten(Some(channel)) => self.ears.intend(Intent::Unlisten(channel.clone()))?,
            Kind::Unlisten(None) => self.ears.intend(Intent::UnlistenAll)?,
            Kind::Notify { channel, payload } => self.ears.intend(Intent::tell(channel, payload)?)?,
            Kind::Close(None) => self.portals.clear(),
            Kind::Close(Some(name)) => {
                if self.portals.remove(name).is_none() {
                    return Err(WireError::new("34000", format!("cursor \"{name}\" does not exist")).into());
                }
            }
            Kind::Unsupported { what, hint } => {
                let error = WireError::unsupported(format!("{what} is not supported"));
                return Err(match hint {
                    Some(hint) => error.with_hint(hint.as_str()),
                    None => error,
                }
                .into());
            }
        }
        Ok(Controlled::Done(None))
    }

    fn begin(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) -> Result<(), WireError> {
        match &self.block {
            Some(block) => {
                if !block.implicit {
                    self.warn("25001", "there is already a transaction in progress");
                }
                self.set_modes(isolation, read_only)?;
                if let Some(block) = &mut self.block {
                    block.implicit = false;
                }
            }
            None => {
                let isolation = isolation.unwrap_or_else(|| default_isolation(&self.settings));
                let read_only = read_only.unwrap_or_else(|| self.settings.read_only());
                self.block = Some(Block::open(
                    false,
                    isolation,
                    read_only,
                    &self.settings,
                    self.asked_micros(),
                ));
            }
        }
        Ok(())
    }

    /// Ends the block by COMMIT or ROLLBACK; a failed one is always rolled back. Gives the tag.
    async fn end(&mut self, chain: bool, commit: bool) -> Result<&'static str, Stop> {
        if chain && self.block.as_ref().is_none_or(|block| block.implicit) {
            return Err(no_block(if commit {
                "COMMIT AND CHAIN"
            } else {
                "ROLLBACK AND CHAIN"
            })
            .into());
        }
        let commits = commit && self.block.as_ref().is_some_and(|block| !block.failed);
        let kept = if commits { self.keep_holdable().await } else { Ok(()) };
        self.close_portals();
        let Some(block) = self.block.take() else {
            self.warn("25P01", "there is no transaction in progress");
            return Ok(if commit { "COMMIT" } else { "ROLLBACK" });
        };
        if block.implicit {
            self.warn("25P01", "there is no transaction in progress");
        }
        let (isolation, read_only) = (block.isolation, block.read_only);
        if commits && kept.is_ok() {
            self.commit(block).await?;
        } else {
            self.ears.roll_back();
            self.locks.end_transaction();
            self.restore_settings(block.settings_before().clone());
            block.rollback().await?;
            kept?;
        }
        if chain {
            self.block = Some(Block::open(
                false,
                isolation,
                read_only,
                &self.settings,
                self.asked_micros(),
            ));
        }
        Ok(if commits { "COMMIT" } else { "ROLLBACK" })
    }

    pub(super) async fn commit(&mut self, block: Block) -> Result<(), Stop> {
        let before = block.settings_before().clone();
        let local = block.settings_after_commit(&self.settings);
        if let Err(error) = self.ears.check() {
            self.ears.roll_back();
            self.locks.end_transaction();
            self.restore_settings(before);
            block.rollback().await?;
            return Err(error.into());
        }
        let committed = block.commit().await;
        self.locks.end_transaction();
        match committed {
            Ok(()) => {
                self.ears.commit();
                self.restore_settings(local);
                Ok(())
            }
            Err(error) => {
                self.ears.roll_back();
                self.restore_settings(before);
                Err(error.into())
            }
        }
    }

    fn set_transaction(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
        session: bool,
    ) -> Result<(), WireError> {
        if session {
            if let Some(isolation) = isolation {
                self.settings
                    .set("default_transaction_isolation", Some(isolation_words(isolation)))?;
            }
            if let Some(read_only) = read_only {
                let value = if read_only { "on" } else { "off" };
                self.set("default_transaction_read_only", Some(value), false)?;
            }
            return Ok(());
        }
        if self.is_outside_of_a_block() {
            self.warn("25P01", "SET TRANSACTION can only be used in transaction blocks");
        }
        self.set_modes(isolation, read_only)
    }

    /// The modes of the transaction that is open, if one is.
    fn set_modes(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) -> Result<(), WireError> {
        match &mut self.block {
            Some(block) if block.started && isolation.is_some_and(|isolation| isolation != block.isolation) => {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                Err(WireError::new("25001", message))
            }
            Some(block)
                if block.has_savepoints() && isolation.is_some_and(|isolation| isolation != block.isolation) =>
            {
                let message = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction";
                Err(WireError::new("25001", message))
            }
            Some(block) if block.has_savepoints() && block.read_only && read_only == Some(false) => {
                let message = "cannot set transaction read-write mode inside a read-only transaction";
                Err(WireError::new("25001", message))
            }
            Some(block) if block.started && block.read_only && read_only == Some(false) => {
                let message = "transaction read-write mode must be set before any query";
                Err(WireError::new("25001", message))
            }
            Some(block) => {
                block.isolation = isolation.unwrap_or(block.isolation);
                block.read_only = read_only.unwrap_or(block.read_only);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether a warning is due to what is said of the transaction only: in a group of messages it holds to the group's end all the same.
    pub(super) fn is_outside_of_a_block(&self) -> bool {
        self.block.as_ref().is_none_or(|block| block.implicit && self.in_group)
    }

    pub(super) fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), WireError> {
        match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" => {
                let isolation = match value.unwrap_or_default().to_ascii_lowercase().as_str() {
                    "serializable" => Isolation::Serializable,
                    "repeatable read" => Isolation::RepeatableRead,
                    "read uncommitted" => Isolation::ReadUncommitted,
                    _ => Isolation::ReadCommitted,
                };
                return self.set_transaction(Some(isolation), None, false);
            }
            "transaction_read_only" => {
                let read_only = matches!(value, Some("on" | "true" | "1" | "yes"));
                return self.set_transaction(None, Some(read_only), false);
            }
            _ => {}
        }
        let before = self.settings.value(name);
        if local && self.is_outside_of_a_block() {
            self.warn("25P01", "SET LOCAL can only be used in transaction blocks");
            if self.block.is_none() {
                return Ok(());
            }
        }
        let reported = self.settings.set(name, value)?;
        match &mut self.block {
            Some(block) if local => block.remember_local(&name.to_ascii_lowercase(), before),
            Some(block) => block.forget_local(&name.to_ascii_lowercase()),
            None => {}
        }
        if let Some((name, value)) = reported {
            backend::parameter_status(&mut self.output.pending, name, &value);
        }
        Ok(())
    }

    /// The value of a setting, of the transaction or of the session.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" => {
                let isolation = match &self.block {
                    Some(block) => block.isolation,
                    None => default_isolation(&self.settings),
                };
                Some(isolation_words(isolation).to_owned())
            }
            "transaction_read_only" => {
                let read_only = match &self.block {
                    Some(block) => block.read_only,
                    None => self.settings.read_only(),
                };
                Some(if read_only { "on" } else { "off" }.to_owned())
            }
            name => self.settings.value(name),
        }
    }

    /// Puts settings back, and reports those that change by it.
    pub(super) fn restore_settings(&mut self, settings: Settings) {
        for ((name, now), (_, then)) in self.settings.reported().zip(settings.reported()) {
            if now != then {
                backend::parameter_status(&mut self.output.pending, name, &then);
            }
        }
        self.settings = settings;
    }

    /// Tells the client what it may want to know.
    pub(super) fn notice(&mut self, message: &str) {
        if !self.settings.wants_notices().0 {
            return;
        }
        let words: Vec<&str> = message.split(' ').collect();
        let sqlstate = match (words.first(), message.ends_with(" already exists, skipping")) {
            (Some(&"relation"), true) => "42P07",
            (Some(&"schema"), true) => "42P06",
            (Some(&"column"), true) => "42701",
            _ => "00000",
        };
        WireError::new(sqlstate, message)
            .with_severity(Severity::Notice)
            .encode(&mut self.output.pending);
    }

    pub(super) fn warn(&mut self, sqlstate: &'static str, message: &str) {
        if !self.settings.wants_notices().1 {
            return;
        }
        WireError::new(sqlstate, message)
            .with_severity(Severity::Warning)
            .encode(&mut self.output.pending);
    }

    pub(super) fn open_implicit_block(&mut self) {
        let isolation = default_isolation(&self.settings);
        self.block = Some(Block::open(
            true,
            isolation,
            self.settings.read_only(),
            &self.settings,
            self.asked_micros(),
        ));
    }
}
