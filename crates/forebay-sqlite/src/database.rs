//! SQLite as the Writer sees it.

use forebay_write::database::{Answer, Database, InFlight, Running};
use forebay_write::{Outcome, Write, WriteError, open_transaction};

use crate::{Sqlite, Transaction};

impl Database for Sqlite {
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
        Box::pin(async move { self.write(batch).await.into_iter().map(Answer::Outcome).collect() })
    }

    fn begin(&self) -> Running<'_, Result<forebay_write::Transaction, WriteError>> {
        Box::pin(async move { self.begin().await.map(forebay_write::Transaction::new) })
    }

    fn write_in_place(&self, write: Write) -> Result<Result<Outcome, WriteError>, Write> {
        self.write_in_place(write)
    }

    /// It has one writer.
    fn in_flight(&self) -> InFlight {
        InFlight { sharing: 1, most: 1 }
    }
}

open_transaction!(Transaction);
