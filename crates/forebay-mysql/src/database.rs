//! MariaDB as the Writer sees it.

use forebay_sql::Role;
use forebay_write::database::{Answer, Database, InFlight, Running, Sharing};
use forebay_write::{Sql, Write, WriteError, open_transaction};

use crate::{MySql, Transaction, batch};

impl Database for MySql {
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
        Box::pin(batch::run(&self.inner, batch))
    }

    fn begin(&self) -> Running<'_, Result<forebay_write::Transaction, WriteError>> {
        Box::pin(async move { self.begin().await.map(forebay_write::Transaction::new) })
    }

    fn in_flight(&self) -> InFlight {
        let most = self.inner.links.writers_max();
        InFlight {
            default: most.min(4),
            most,
        }
    }

    /// Statements of a batch go one after the other here, unless they are enough for a set; alone they go on several connections,
    /// whose commits the server puts together.
    fn sharing(&self, sql: &Sql) -> Option<Sharing> {
        let plan = self.inner.plans.of(sql);
        let set = plan.set.as_ref().filter(|_| plan.role == Role::Shares)?;
        // Sets with rows in conflict wait for one another's locks.
        let many = if set.expects_conflicts() { usize::MAX } else { 512 };
        Some(Sharing { few: 16, many })
    }
}

open_transaction!(Transaction);
