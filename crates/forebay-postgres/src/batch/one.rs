//! A batch of one statement, as it mostly goes: executed by itself, on a connection on which it is prepared.
//!
//! Promises: an outcome is what the [batch](super) would have told; whatever else happens had no effect, and is the batch's to deal
//! with. Knows no transaction.

use crate::error::{Failure, failure, had_no_effect};
use crate::inner::Inner;
use crate::pipeline::Whose;
use crate::statement::{is_of_types, misfit, outcome, sent, unsendable};
use forebay_remote::backoff::Backoff;
use forebay_remote::connections::Purpose;
use forebay_remote::settled::WriteResult;
use forebay_sql::Role;
use forebay_write::{Write, WriteError};

/// How far it came.
pub(super) enum Tried {
    /// To its end.
    Settled(WriteResult),
    /// It had no effect: a lock was in its way for too long, and it is in nobody's order.
    Locked,
    /// It had no effect.
    Undone,
}

/// Executes it, if it may share a transaction and is prepared.
pub(super) async fn attempt(inner: &Inner, write: &Write, backoff: &mut Backoff) -> Tried {
    let plan = inner.plans.of(write.sql());
    if plan.role != Role::Shares || write.acceptance().is_some() || unsendable(write.parameters()).is_some() {
        return Tried::Undone;
    }
    let mut lease = match inner.connections.take(Purpose::Write, backoff).await {
        Ok(lease) => lease,
        Err(error) => return Tried::Settled(Err(error)),
    };
    let prepared = lease.prepared(&plan.sql);
    let Some(prepared) = prepared.filter(|prepared| misfit(prepared, write.parameters()).is_none()) else {
        return Tried::Undone;
    };
    if let Err(error) = write.claim() {
        return Tried::Settled(Err(error));
    }
    let answered = lease
        .pipeline(|pipeline| pipeline.execute(Whose::Callers, &prepared, sent(write.parameters())))
        .await
        .map(|mut answers| answers.pop().expect("one answer a statement"));
    let unknown = |cause| Tried::Settled(Err(WriteError::OutcomeUnknown { cause }));
    let tried = match answered {
        Ok(Ok(answered)) => match outcome(&prepared, &answered, plan.changes_rows) {
            Ok(outcome) => Tried::Settled(Ok(outcome)),
            // What it returned cannot be read, which is no reason to say that it did nothing.
            Err(error) => unknown(format!("it was executed outside of a transaction: {error}")),
        },
        Ok(Err(refusal)) => {
            let had_no_effect = had_no_effect(&refusal);
            match failure(refusal, &plan.sql) {
                Failure::Lost(_) if had_no_effect => Tried::Undone,
                Failure::Lost(cause) => unknown(cause),
                Failure::Lock(_) if !write.is_ordered() => Tried::Locked,
                Failure::Lock(_) | Failure::Conflict(_) => Tried::Undone,
                Failure::Replan(_) => {
                    lease.forget_statements();
                    Tried::Undone
                }
                // It may be prepared for types that columns had before.
                Failure::Statement(error) if is_of_types(&error) => {
                    lease.forget_statements();
                    Tried::Undone
                }
                other => Tried::Settled(Err(other.statement().into())),
            }
        }
        Err(Failure::Lost(cause)) => unknown(cause),
        Err(_) => unreachable!("only silence is a failure of all"),
    };
    if !lease.is_usable() {
        // What became of it is not known. Nobody has his answer before it is settled.
        drop(Box::pin(inner.connections.kill(lease)).await);
    }
    tried
}
