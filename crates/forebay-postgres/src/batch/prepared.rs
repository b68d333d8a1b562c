//! Prepared: the texts of a group, on the connection that it runs on.

use std::sync::Arc;

use crate::plan::Plan;
use crate::prepared::Prepared;
use forebay_write::StatementError;

/// The statements of a group, prepared on the connection that it runs on.
#[derive(Default)]
pub(super) struct PreparedTexts {
    /// Few: mostly one.
    texts: Vec<(Arc<Plan>, Result<Prepared, StatementError>)>,
    /// Those that were prepared anew.
    renewed: Vec<Arc<Plan>>,
}

impl PreparedTexts {
    pub(super) fn of(&self, plan: &Arc<Plan>) -> Option<&Result<Prepared, StatementError>> {
        let mut found = self.texts.iter().rev().filter(|(kept, _)| Arc::ptr_eq(kept, plan));
        found.next().map(|(_, prepared)| prepared)
    }

    pub(super) fn keep(&mut self, plan: &Arc<Plan>, prepared: Result<Prepared, StatementError>) {
        self.texts.push((Arc::clone(plan), prepared));
    }

    /// Whether it was prepared anew already.
    pub(super) fn is_new(&self, plan: &Arc<Plan>) -> bool {
        self.renewed.iter().any(|renewed| Arc::ptr_eq(renewed, plan))
    }

    /// Takes the place of what was kept before.
    pub(super) fn renew(&mut self, plan: &Arc<Plan>, prepared: Result<Prepared, StatementError>) {
        self.renewed.push(Arc::clone(plan));
        self.keep(plan, prepared);
    }

    /// The statement of a text that could be prepared.
    pub(super) fn ready(&self, plan: &Arc<Plan>) -> &Prepared {
        match self.of(plan) {
            Some(Ok(prepared)) => prepared,
            _ => unreachable!("what could not be prepared was answered"),
        }
    }
}
