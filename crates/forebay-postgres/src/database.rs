//! PostgreSQL as the Writer sees it.

use forebay_sql::Role;
use forebay_write::database::{Answer, Database, InFlight, Running, Sharing};
use forebay_write::{Sql, Write, WriteError, open_transaction};

use crate::{Postgres, Transaction, batch};

impl Database for Postgres {
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
        Box::pin(batch::run(&self.inner, batch))
    }

    fn begin(&self) -> Running<'_, Result<forebay_write::Transaction, WriteError>> {
        Box::pin(async move { self.begin().await.map(forebay_write::Transaction::new) })
    }

    fn in_flight(&self) -> InFlight {
        let most = self.inner.shared();
        InFlight {
            default: most.min(4),
            most,
        }
    }

    /// Soon, as a batch is sent without waiting for answers between.
    fn sharing(&self, sql: &Sql) -> Option<Sharing> {
        let plan = self.inner.plans.of(sql);
        let is_one_row = plan.role == Role::Shares && plan.insert.is_some();
        is_one_row.then_some(Sharing { few: 4, many: 512 })
    }
}

open_transaction!(Transaction);
