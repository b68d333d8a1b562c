//! Executing statements: those that read, up to their first rows ([`reading`](super::reading) goes on), and those that write, with others
//! or in the session's own transaction.
//!
//! Promises: a write is acknowledged when it is durable, or belongs to a transaction that is not committed yet; what cannot be sent to the
//! client is not committed. Knows no messages but those it answers with.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use forebay_sqlite::connection::{self, Session as Connection};
use forebay_write::{CancelToken, Outcome, Parameters, Sql, Value, Write, WriteError};
use parking_lot::Mutex;

use super::Session;
use super::block::Block;
use super::control::Controlled;
use super::plans::Found;
use super::prepared::{OpenCursor, Portal, PortalState, Prepared};
use super::rows::{self, Piece};
use super::stop::Stop;
use super::timeouts::{lock_timed_out, too_old};
use super::violation;
use crate::errors;
use crate::sql::{self, Kind, Locks, Statement, Step, Tag};
use forebay_pg_wire::backend;
use forebay_pg_wire::error::WireError;

/// How often a statement is compiled again because the schema changes under it, before it fails.
pub(super) const COMPILED_AGAIN_MAX: usize = 100;

impl Session {
    /// One statement of a simple query: executed to its end, described if it gives rows. `alone`: it is the whole script.
    pub(super) async fn execute_simple(
        &mut self,
        statement: Statement,
        script: &Arc<str>,
        alone: bool,
    ) -> Result<(), Stop> {
        self.refuse_if_failed(&statement.kind)?;
        let shape = self.shape(&statement, script, &[], alone).await?;
        if !shape.parameters.is_empty() || statement.parameter_count() > 0 {
            return Err(WireError::new("42P02", "there is no parameter $1")
                .with_hint("Parameters need the extended protocol.")
                .into());
        }
        self.execute_to_the_end(Found { statement, shape }, script, Vec::new())
            .await
    }

    /// A statement of a simple query that is compiled.
    pub(super) async fn execute_to_the_end(
        &mut self,
        found: Found,
        script: &Arc<str>,
        parameters: Vec<Value>,
    ) -> Result<(), Stop> {
        let prepared = Prepared {
            statement: Some(found.statement),
            script: Arc::clone(script),
            shape: found.shape,
            from_sql: false,
        };
        let mut portal = Portal::new(Arc::new(prepared), parameters, Vec::new());
        self.stand_in(&mut portal).await?;
        self.execute(&mut portal, u64::MAX, true).await
    }

    /// Executes a portal, or goes on with it, up to `rows_max` rows. In a simple query the columns are described first.
    pub(super) async fn execute(&mut self, portal: &mut Portal, rows_max: u64, describe: bool) -> Result<(), Stop> {
        let prepared = Arc::clone(&portal.prepared);
        let Some(statement) = &prepared.statement else {
            backend::empty_query_response(&mut self.output.pending);
            return Ok(());
        };
        let (token, _running) = self.statement_token();
        if let PortalState::Ready = portal.state {
            self.statements_total.increment(1);
            match self.control(portal, statement, &token).await? {
                Controlled::Done(tag) => {
                    portal.state = PortalState::Done;
                    let rendered = tag.map_or_else(|| statement.tag.render(0), str::to_owned);
                    backend::command_complete(&mut self.output.pending, &rendered);
                    return Ok(());
                }
                Controlled::Counted(count) => {
                    portal.state = PortalState::Done;
                    backend::command_complete(&mut self.output.pending, &statement.tag.render(count));
                    return Ok(());
                }
                Controlled::Rows(rows) => portal.state = PortalState::Gathered { rows: rows.into() },
                Controlled::NotMine => {
                    if let Some(block) = &mut self.block {
                        block.started = true;
                    }
                    if let Kind::Copy(copy) = &statement.kind {
                        let count = self.copy(copy, &token).await?;
                        portal.state = PortalState::Done;
                        backend::command_complete(&mut self.output.pending, &format!("COPY {count}"));
                        return Ok(());
                    }
                    self.start(portal, statement, &token, rows_max, describe).await?;
                    if !matches!(portal.state, PortalState::Gathered { .. }) {
                        return Ok(());
                    }
                }
            }
            if describe {
                let shape = Arc::clone(&portal.prepared.shape);
                self.describe_columns(&shape.columns, &portal.formats)?;
            }
            return self.send_gathered(portal, statement, rows_max).await;
        }
        match &portal.state {
            PortalState::Open(_) => self.go_on_reading(portal, statement, &token, rows_max).await,
            PortalState::Gathered { .. } => self.send_gathered(portal, statement, rows_max).await,
            PortalState::Done if prepared.shape.columns.is_empty() => {
                let message = "portal cannot be run again: its statement was executed to its end";
                Err(WireError::new("55000", message).into())
            }
            PortalState::Expired => Err(too_old().into()),
            PortalState::Failed => Err(WireError::new("55000", "portal cannot be run").into()),
            PortalState::Scrollable { .. } => Err(WireError::unsupported(
                "reading a SCROLL cursor by the protocol is not supported",
            )
            .with_hint("Use FETCH.")
            .into()),
            PortalState::Ready | PortalState::Done => {
                backend::command_complete(&mut self.output.pending, &statement.tag.render(0));
                Ok(())
            }
        }
    }

    /// The first step of a statement for the database. Leaves the portal open, gathered or done.
    async fn start(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
        rows_max: u64,
        describe: bool,
    ) -> Result<(), Stop> {
        for _ in 0..COMPILED_AGAIN_MAX {
            if self
                .start_as_planned(portal, statement, token, rows_max, describe)
                .await?
            {
                return Ok(());
            }
            self.recompile(portal, !describe).await?;
        }
        Err(WriteError::SchemaChanged.into())
    }

    /// [`start`](Self::start) by the plan there is; false if that is for another schema than it meets. Nothing was done then.
    async fn start_as_planned(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
        rows_max: u64,
        describe: bool,
    ) -> Result<bool, Stop> {
        let shape = Arc::clone(&portal.prepared.shape);
        if statement.kind == Kind::Catalog {
            let encoding = shape.encoding(&portal.formats, self.value_environment());
            let formats = encoding.columns.iter().map(|(_, format)| *format).collect();
            let rows = self
                .query_catalog(&portal.prepared, statement, &portal.parameters, formats)
                .await?;
            portal.state = PortalState::Gathered { rows: rows.into() };
            return Ok(true);
        }
        if let Some(plan) = shape.plan.as_ref().filter(|plan| !plan.session_columns.is_empty()) {
            // What it does lasts until the end of a transaction, or begins there.
            if self.block.is_none() {
                self.open_implicit_block();
            }
            let row = self
                .session_row(portal, statement, &plan.session_columns, token)
                .await?;
            let Some(row) = row else { return Ok(false) };
            portal.state = PortalState::Gathered { rows: vec![row].into() };
            return Ok(true);
        }
        if let Some(locks) = shape.plan.as_ref().and_then(|plan| plan.locks.as_ref())
            && !self.lock(locks, &statement.tag, shape.read_only, token).await?
        {
            portal.state = PortalState::Gathered { rows: VecDeque::new() };
            return Ok(true);
        }
        if is_lock_table(&statement.tag) {
            portal.state = PortalState::Done;
            backend::command_complete(&mut self.output.pending, statement.tag.words());
            return Ok(true);
        }
        if shape.read_only && !statement.runs_alone {
            return self.read(portal, statement, token, rows_max, describe).await;
        }
        let Some(outcome) = self.write(portal, statement, token).await? else {
            return Ok(false);
        };
        for notice in shape.plan.iter().flat_map(|plan| &plan.notices) {
            self.notice(notice);
        }
        let count = if statement.tag == Tag::Select {
            outcome.rows.len() as u64
        } else {
            outcome.rows_affected
        };
        if shape.columns.is_empty() {
            portal.state = PortalState::Done;
            let filled = shape.plan.as_ref().is_none_or(|plan| plan.steps.len() > 1);
            let tag = match statement.tag {
                // WITH NO DATA was said; or IF NOT EXISTS, and the table was there.
                Tag::CreateTableAs if !filled => Tag::CreateTableAs.words().to_owned(),
                _ => statement.tag.render(count),
            };
            backend::command_complete(&mut self.output.pending, &tag);
        } else {
            portal.state = PortalState::Gathered {
                rows: outcome.rows.into(),
            };
        }
        Ok(true)
    }

    /// Locks what a statement locks: what must not change until the transaction ends. Here that is the right to write. False if
    /// another transaction has it, and what it may change is to be skipped.
    pub(super) async fn lock(
        &mut self,
        locks: &Locks,
        tag: &Tag,
        reads: bool,
        token: &CancelToken,
    ) -> Result<bool, Stop> {
        let read_only = self.is_read_only();
        if is_lock_table(tag) {
            if self.block.is_none() {
                let message = "LOCK TABLE can only be used in transaction blocks";
                return Err(WireError::new("25P01", message).into());
            }
        } else if read_only {
            if *tag == Tag::Select {
                let message = "cannot execute SELECT FOR UPDATE in a read-only transaction";
                return Err(WireError::new("25006", message).into());
            }
            return Ok(true);
        }
        // A statement that writes has its turn, and nobody else's comes before its end.
        let has_its_turn = self.block.is_none() && !reads && !matches!(locks, Locks::Refuse(_));
        if has_its_turn {
            return Ok(true);
        }
        if self.block.is_none() {
            self.open_implicit_block();
        }
        let block = self.block.as_mut().expect("it has just been opened");
        match locks {
            Locks::Wait => {
                let _wanting = self.locks.wanting_to_write();
                let lock_timeout = self.settings.lock_timeout();
                block.writing(&self.shared.sqlite, token, lock_timeout).await?;
                Ok(true)
            }
            Locks::Skip => Ok(block.writing_unless_another(&self.shared.sqlite, token).await?),
            Locks::Refuse(what) if !block.writing_unless_another(&self.shared.sqlite, token).await? => {
                Err(WireError::new("55P03", format!("could not obtain lock on {what}")).into())
            }
            Locks::Refuse(_) => Ok(true),
        }
    }

    fn is_read_only(&self) -> bool {
        self.block
            .as_ref()
            .map_or(self.settings.read_only(), |block| block.read_only)
    }

    /// A portal's parameters, with what its statement is told of the session. A portal runs once.
    pub(super) fn take_parameters(&self, portal: &mut Portal) -> Parameters {
        let mut values = std::mem::take(&mut portal.parameters);
        if let Some(plan) = &portal.prepared.shape.plan {
            if plan.environment {
                values.insert(0, Value::Text(self.told()));
            }
            values.truncate(plan.used);
        }
        Parameters::from(values)
    }

    /// What statements are told of this session.
    pub(super) fn told(&self) -> String {
        sql::SessionContext::text(
            self.now_micros(),
            self.drawn.session(),
            self.asked_micros(),
            self.block.as_ref().map_or("[]", Block::changed),
            self.settings.zone_name(),
        )
    }

    /// When the transaction began, or would begin now.
    pub(super) fn now_micros(&self) -> i64 {
        self.block
            .as_ref()
            .map_or_else(|| self.asked_micros(), |block| block.began_micros)
    }

    /// When the client asked for what is carried out now; looked up when it is first wanted.
    pub(super) fn asked_micros(&self) -> i64 {
        match self.asked_micros.load(Ordering::Relaxed) {
            0 => {
                let now = sql::clock_micros();
                self.asked_micros.store(now, Ordering::Relaxed);
                now
            }
            known => known,
        }
    }

    async fn write(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
    ) -> Result<Option<Outcome>, Stop> {
        let prepared = Arc::clone(&portal.prepared);
        let mut schema = prepared.shape.schema;
        let uncompiled;
        let steps: &[Step] = match &prepared.shape.plan {
            Some(plan) => &plan.steps,
            None => {
                uncompiled = [statement.sql.to_string().into()];
                &uncompiled
            }
        };
        let defines = matches!(statement.tag, Tag::Words(_)) || steps.len() != 1;
        let parameters = self.take_parameters(portal);
        let shown = parameters.clone();
        if self.is_read_only() && !matches!(statement.tag.words(), "ANALYZE" | "VACUUM") {
            let message = format!("cannot execute {} in a read-only transaction", statement.tag.words());
            return Err(WireError::new("25006", message).into());
        }
        if let Some(plan) = &prepared.shape.plan {
            self.refuse_if_read(&plan.reshapes, &statement.tag)?;
        }
        // Several steps are one transaction.
        let several = steps.len() > 1;
        if (several || matches!(steps.first(), Some(Step::Edit(_) | Step::DeferForeignKeys))) && self.block.is_none() {
            self.open_implicit_block();
        }
        if self.block.is_some() && !statement.runs_alone {
            self.settle_portals(token).await?;
        }
        // What cannot be sent to the client must not be committed either. In a block the error undoes it.
        let unsendable = (!prepared.shape.columns.is_empty()).then(|| Arc::new(Mutex::new(None)));
        let writer = &self.shared.writer;
        let lock_timeout = self.settings.lock_timeout();
        let _wanting = self.locks.wanting_to_write();
        let written = match &mut self.block {
            Some(_) if statement.runs_alone => {
                let mut command = statement.tag.words().to_owned();
                if command.ends_with(" INDEX") {
                    command.push_str(" CONCURRENTLY");
                }
                let message = format!("{command} cannot run inside a transaction block");
                return Err(WireError::new("25001", message).into());
            }
            Some(block) => {
                if defines {
                    block.changes_schema(&self.shared.plans);
                }
                let mut done = Ok(Outcome::default());
                let mut deferred = false;
                for step in steps {
                    done = match block.writing(&self.shared.sqlite, token, lock_timeout).await {
                        Ok(transaction) => match step {
                            Step::Run { sql, environment } => {
                                // Of several, only those that ask take the one parameter there can be.
                                let given = if several && !environment {
                                    Parameters::default()
                                } else {
                                    parameters.clone()
                                };
                                // What the first one changes of the schema, the others are for.
                                let schema = schema.take();
                                let sql = Sql::from(Arc::clone(sql));
                                transaction.execute_under(schema, sql, given, token.clone()).await
                            }
                            Step::Edit(edit) => {
                                let edit = edit.clone();
                                connection::run(transaction, token, move |connection| connection.edit_schema(&edit))
                                    .await
                                    .and_then(|edited| edited)
                                    .map(|()| Outcome::default())
                            }
                            Step::DeferForeignKeys => {
                                deferred = true;
                                connection::run(transaction, token, |connection| connection.defer_foreign_keys(true))
                                    .await
                                    .and_then(|deferred| deferred)
                                    .map(|()| Outcome::default())
                            }
                        },
                        Err(error) => Err(error),
                    };
                    if done.is_err() {
                        break;
                    }
                }
                if deferred {
                    // Also after an error, behind which ROLLBACK TO goes on; and whatever has been cancelled.
                    let at_once = match block.writing(&self.shared.sqlite, token, lock_timeout).await {
                        Ok(transaction) => {
                            let token = &CancelToken::new();
                            connection::run(transaction, token, |connection| connection.defer_foreign_keys(false))
                                .await
                                .and_then(|set| set)
                        }
                        Err(error) => Err(error),
                    };
                    done = done.and_then(|outcome| at_once.map(|()| outcome));
                }
                done
            }
            None => match steps.first() {
                None | Some(Step::Edit(_) | Step::DeferForeignKeys) => Ok(Outcome::default()),
                Some(Step::Run { sql, .. }) => {
                    let mut write = Write::new(Arc::clone(sql), parameters).cancel(token.clone());
                    if let Some(version) = schema {
                        write = write.under_schema(version);
                    }
                    if let Some(found) = &unsendable {
                        let encoding = prepared.shape.encoding(&portal.formats, self.value_environment());
                        let found = Arc::clone(found);
                        write = write.accept_if(move |outcome| {
                            let mut scratch = BytesMut::new();
                            outcome.rows.iter().try_for_each(|row| {
                                scratch.clear();
                                rows::encode_gathered(row, &encoding, &mut scratch).map_err(|error| {
                                    let reason = error.to_string();
                                    *found.lock() = Some(error);
                                    reason
                                })
                            })
                        });
                    }
                    let window = Duration::from_millis(statement.hints.batch_ms.unwrap_or(0));
                    let written = async {
                        match statement.hints.batch_ms {
                            // A session does one thing at a time.
                            None => writer.submit_in_place(write).await,
                            Some(0) => writer.submit_alone(write).await,
                            Some(_) => writer.submit(write.max_wait(window)).await,
                        }
                    };
                    match lock_timeout {
                        None => written.await,
                        Some(timeout) => begun_within(timeout + window, written, token).await,
                    }
                }
            },
        };
        if defines {
            self.shared.plans.schema_changed();
        }
        let error = match written {
            Ok(outcome) => {
                if let (Some(block), Some(plan)) = (&mut self.block, &portal.prepared.shape.plan) {
                    block.empties(&plan.empties);
                    block.changes(&plan.changes);
                }
                if self.block.as_ref().is_some_and(|block| block.constraints_are_immediate) {
                    self.look_at_constraints(token).await?;
                } else if self
                    .block
                    .as_ref()
                    .is_some_and(|block| block.some_constraints_are_immediate)
                {
                    self.look_at_some_constraints(token).await?;
                }
                return Ok(Some(outcome));
            }
            Err(WriteError::SchemaChanged) => {
                give_back_parameters(portal, &shown);
                return Ok(None);
            }
            Err(error) => error,
        };
        let refused = unsendable.and_then(|found| found.lock().take());
        if let (Some(unsendable), WriteError::Refused { .. }) = (refused, &error) {
            return Err(unsendable.into());
        }
        let violation = violation::Violation::of(&error);
        let answer = errors::write(error, statement, &portal.prepared.script);
        Err(match violation {
            Some(violation) => self
                .explained(answer, violation, &portal.prepared, shown, token)
                .await
                .into(),
            None => answer.into(),
        })
    }

    async fn read(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
        rows_max: u64,
        describe: bool,
    ) -> Result<bool, Stop> {
        self.next_cursor += 1;
        let number = self.next_cursor;
        let source = self.source(token).await?;
        let encoding = portal
            .prepared
            .shape
            .encoding(&portal.formats, self.value_environment());
        let sql = portal.prepared.shape.query(statement);
        let parameters = self.take_parameters(portal);
        let job = {
            let (token, encoding) = (token.clone(), encoding);
            let (parameters, schema) = (parameters.clone(), portal.prepared.shape.schema);
            move |connection: &mut Connection| {
                let opened = connection.open_cursor(number, &sql, &parameters);
                let piece = opened.map(|()| rows::fetch(connection, number, &token, &encoding, rows_max));
                rows::under_schema(connection, number, schema)?;
                piece
            }
        };
        let piece: Result<Piece, WriteError> = self.on_source(&source, token, job).await?;
        if matches!(piece, Err(WriteError::SchemaChanged)) {
            give_back_parameters(portal, &parameters);
            return Ok(false);
        }
        let piece = piece.map_err(|error| errors::write(error, statement, &portal.prepared.script))?;
        let shape = Arc::clone(&portal.prepared.shape);
        if describe && !shape.columns.is_empty() {
            self.describe_columns(&shape.columns, &portal.formats)?;
        }
        let cursor = OpenCursor {
            number,
            source,
            waited: Duration::ZERO,
        };
        self.send_pieces(portal, statement, cursor, piece, token, rows_max)
            .await
            .map(|()| true)
    }
}

fn is_lock_table(tag: &Tag) -> bool {
    matches!(tag, Tag::Words(words) if words == "LOCK TABLE")
}

/// The outcome of a statement that `token` cancels; withdrawn, if it has not begun after that time.
async fn begun_within(
    time: Duration,
    written: impl Future<Output = Result<Outcome, WriteError>>,
    token: &CancelToken,
) -> Result<Outcome, WriteError> {
    tokio::pin!(written);
    tokio::select! {
        biased;
        written = &mut written => return written,
        () = tokio::time::sleep(time) => {}
    }
    if token.withdraw() {
        return Err(lock_timed_out());
    }
    written.await
}

/// What was [taken](Session::take_parameters), without what was told of the session: the portal has not run.
pub(super) fn give_back_parameters(portal: &mut Portal, taken: &Parameters) {
    let plan = portal.prepared.shape.plan.as_ref();
    let told = usize::from(plan.is_some_and(|plan| plan.environment));
    portal.parameters = taken.values().iter().skip(told).cloned().collect();
}
