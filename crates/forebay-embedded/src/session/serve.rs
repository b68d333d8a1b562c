//! The loop of a session: message after message, each answered in its turn, until the client leaves or is sent away.
//!
//! Promises: an error in the extended protocol skips to Sync; ReadyForQuery tells the true status; statements of one simple query, or
//! between two Syncs, are one transaction unless they say otherwise.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use super::stop::{Stop, shut_down};
use super::waiting::Event;
use super::{Session, control, output};
use forebay_pg_wire::backend::{self, TransactionStatus};
use forebay_pg_wire::error::{Severity, WireError, sqlstate};
use forebay_pg_wire::frontend::{FrameError, Frontend};
use forebay_pg_wire::phase::Phase;

/// Errors of running a statement tell where in a text of that length at most.
const POSITIONED_BYTES_MAX: usize = 64 * 1024;

impl Session {
    /// Serves the client until it leaves, breaks the protocol, or is sent away. `parameters` are the settings it begins with.
    ///
    /// In a box, for else every program that awaits it would be compiled with all that a session does.
    pub fn run(self, parameters: &[(String, String)]) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.run_to_its_end(parameters))
    }

    async fn run_to_its_end(mut self, parameters: &[(String, String)]) {
        let served = match self.greet(parameters) {
            Ok(()) => self.serve().await,
            Err(error) => Err(error.into()),
        };
        // Nobody waits for what it holds while its last words are on their way.
        self.portals.clear();
        drop(self.block.take());
        self.locks.end_transaction();
        self.locks.give_back_session();
        match served {
            // What was asked before the farewell is answered.
            Ok(()) => self.output.close(self.input.stream_mut()).await,
            Err(Stop::Error(error)) => {
                error.with_severity(Severity::Fatal).encode(&mut self.output.pending);
                self.output.close(self.input.stream_mut()).await;
                if self.input.is_inside_message() {
                    let mut phase = self.shared.phase.clone();
                    tokio::select! {
                        () = output::let_finish(self.input.stream_mut()) => {}
                        _ = phase.wait_for(|phase| *phase != Phase::Serving) => {}
                    }
                }
            }
            Err(Stop::Gone(error)) => tracing::debug!(%error, "client gone"),
        }
    }

    /// What a client is told before its first message.
    fn greet(&mut self, parameters: &[(String, String)]) -> Result<(), WireError> {
        control::set_at_start(&mut self.settings, parameters)?;
        for (name, value) in self.settings.reported() {
            backend::parameter_status(&mut self.output.pending, name, &value);
        }
        backend::backend_key_data(
            &mut self.output.pending,
            self.registration.process,
            &self.registration.secret,
        )?;
        self.ready();
        Ok(())
    }

    async fn serve(&mut self) -> Result<(), Stop> {
        loop {
            // What is pipelined is answered together.
            if self.input.buffered().is_none() {
                self.send().await?;
            } else {
                self.send_if_large().await?;
            }
            let message = match self.next_event(self.patience()).await {
                Event::End(error) => return Err(Stop::Error(error)),
                Event::Message(Ok(None | Some(Frontend::Terminate))) => return Ok(()),
                Event::Message(Ok(Some(message))) => message,
                Event::Message(Err(FrameError::Refused { error, kind })) => {
                    self.refuse(error, kind).await?;
                    continue;
                }
                Event::Message(Err(error)) => return Err(error.into()),
            };
            if self.skipping && !matches!(message, Frontend::Sync) {
                continue;
            }
            self.handle(message).await?;
        }
    }

    async fn handle(&mut self, message: Frontend) -> Result<(), Stop> {
        *self.asked_micros.get_mut() = 0;
        match message {
            Frontend::Query(script) => {
                let result = self.simple_query(script).await;
                self.answer(result).await?;
                self.ready();
                Ok(())
            }
            Frontend::Sync => self.sync().await,
            Frontend::Flush => self.send().await,
            Frontend::FunctionCall => {
                let refused = WireError::unsupported("function calls by message are not supported; use SELECT");
                self.answer(Err(refused.into())).await?;
                self.ready();
                Ok(())
            }
            // PostgreSQL ignores them too: they may be left over from a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Password(_) => Err(Stop::Error(
                WireError::protocol("a password after authentication").with_severity(Severity::Fatal),
            )),
            extended => {
                self.in_group = true;
                let result = self.extended(extended).await;
                self.skipping = matches!(result, Err(Stop::Error(_)));
                self.answer(result).await
            }
        }
    }

    /// A message that arrived whole and made no sense.
    async fn refuse(&mut self, error: WireError, kind: u8) -> Result<(), Stop> {
        if self.skipping && kind != b'S' {
            return Ok(());
        }
        self.answer(Err(Stop::Error(error))).await?;
        match kind {
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => (self.skipping, self.in_group) = (true, true),
            b'S' => self.sync().await?,
            _ => self.ready(),
        }
        Ok(())
    }

    /// Tells the client an error, and fails the transaction it happened in.
    async fn answer(&mut self, result: Result<(), Stop>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Error(error)) if error.is_fatal() => Err(Stop::Error(error)),
            // Nobody is left to be told, nor to be served what was sent behind it.
            Err(Stop::Error(_)) if self.registration.running.is_gone() => {
                Err(Stop::Gone(io::ErrorKind::ConnectionReset.into()))
            }
            // Not its client has cancelled it.
            Err(Stop::Error(error)) if error.sqlstate == sqlstate::QUERY_CANCELED && self.is_stopping() => {
                Err(Stop::Error(shut_down()))
            }
            Err(Stop::Error(error)) => {
                metrics::counter!("forebay_errors_total", "sqlstate" => error.sqlstate).increment(1);
                error.encode(&mut self.output.pending);
                self.fail().await
            }
            Err(gone) => Err(gone),
        }
    }

    /// Whether the server cancels whatever runs.
    fn is_stopping(&self) -> bool {
        *self.shared.phase.borrow() == Phase::Stopping
    }

    async fn fail(&mut self) -> Result<(), Stop> {
        match &mut self.block {
            Some(block) if block.implicit => {
                self.close_portals();
                self.ears.roll_back();
                self.locks.end_transaction();
                if let Some(block) = self.block.take() {
                    self.restore_settings(block.settings_before().clone());
                    block.rollback().await?;
                }
            }
            Some(block) => {
                block.fail();
                self.locks.fail();
                let whole = block.savepoint_count() == 0;
                if whole {
                    self.fail_portals();
                }
            }
            None => {}
        }
        Ok(())
    }

    /// ReadyForQuery with the true status.
    fn ready(&mut self) {
        self.in_group = false;
        let status = match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::Open,
        };
        if self.block.is_none() {
            self.ears.hear(&mut self.output.pending);
        }
        backend::ready_for_query(&mut self.output.pending, status);
    }

    /// The unnamed statement does not outlive it, whatever it is; nor the unnamed portal, if it is a statement.
    async fn simple_query(&mut self, script: String) -> Result<(), Stop> {
        self.statements.remove("");
        if let Some((found, parameters)) = self.known_or_lifted(&script).await? {
            self.portals.remove("");
            self.refuse_if_failed(&found.statement.kind)?;
            // Of a long one the parameters have what is long.
            let text = if script.len() > POSITIONED_BYTES_MAX {
                Arc::clone(&found.statement.sql)
            } else {
                script.as_str().into()
            };
            drop(script);
            self.execute_to_the_end(found, &text, parameters).await?;
            return self.end_simple_query().await;
        }
        let mut script = self.understand(script.into()).await?;
        if script.statement_count() == 0 {
            backend::empty_query_response(&mut self.output.pending);
            return Ok(());
        }
        self.portals.remove("");
        let mut left = script.statement_count();
        let several = left > 1;
        while let Some(statement) = self.next_statement(&mut script)? {
            if several && self.block.is_none() && !control::is_transaction_control(&statement.kind) {
                self.open_implicit_block();
            }
            self.execute_simple(statement, script.text(), !several).await?;
            left -= 1;
            if left > 0 {
                self.send_if_large().await?;
            }
        }
        self.end_simple_query().await
    }

    /// That the last statement is complete is told only if what it did is committed.
    async fn end_simple_query(&mut self) -> Result<(), Stop> {
        let ended = self.end_implicit_block().await;
        if ended.is_err() {
            self.output.take_back_completion();
        }
        ended
    }

    async fn sync(&mut self) -> Result<(), Stop> {
        self.skipping = false;
        let ended = self.end_implicit_block().await;
        self.answer(ended).await?;
        if self.block.is_none() {
            self.close_portals();
        }
        self.ready();
        Ok(())
    }

    /// Commits what a group of statements did together.
    async fn end_implicit_block(&mut self) -> Result<(), Stop> {
        if !self.block.as_ref().is_some_and(|block| block.implicit) {
            return Ok(());
        }
        self.keep_holdable().await?;
        match self.block.take() {
            Some(block) => {
                self.close_portals();
                self.commit(block).await
            }
            None => Ok(()),
        }
    }
}
