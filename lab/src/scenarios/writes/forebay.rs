//! Forebay as its documentation shows it, with all limits at their defaults, on whichever database.

use forebay::write::{Outcome, StatementErrorKind, Write, WriteError, Writer};

use crate::callers::{Insert, Refused, Row};

/// A writer, and what it is asked.
#[derive(Clone)]
pub(super) struct Forebay {
    pub(super) writer: Writer,
    pub(super) statement: Statement,
    /// Whether a caller's rows keep their order among themselves only, so that several batches may be in flight.
    pub(super) by_caller: bool,
}

/// How a row is inserted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    pub(super) id: Id,
}

/// How a caller is told the id of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    /// The database tells the last id.
    Last,
    /// The statement returns it.
    Returned,
    /// Not at all.
    Untold,
}

impl Forebay {
    /// Of how many statements a commit was shared by, so far.
    pub(super) fn rows_a_commit(&self) -> f64 {
        let stats = self.writer.stats();
        stats.calls as f64 / stats.batches as f64
    }
}

impl Insert for Forebay {
    async fn insert(&self, row: Row) -> Result<Option<i64>, Refused> {
        let parameters = (row.value, row.created_at);
        let outcome = if self.by_caller {
            let write = Write::new(self.statement.sql, parameters).ordered_by(row.caller);
            self.writer.submit(write).await
        } else {
            self.writer.execute(self.statement.sql, parameters).await
        };
        match outcome {
            Ok(outcome) if outcome.rows_affected == 1 => id(self.statement.id, &outcome),
            Ok(outcome) => Err(Refused::Otherwise(format!("{} rows", outcome.rows_affected))),
            Err(WriteError::Statement(error)) if error.kind == StatementErrorKind::Unique => Err(Refused::NotUnique),
            Err(error) => Err(Refused::Otherwise(error.to_string())),
        }
    }
}

/// The id that an outcome tells; nothing is told beyond what was asked.
fn id(id: Id, outcome: &Outcome) -> Result<Option<i64>, Refused> {
    let returned = match &*outcome.rows {
        [] => None,
        [row] => match &**row {
            [value] => value.as_integer(),
            _ => return Err(Refused::Otherwise(format!("a row of {} values", row.len()))),
        },
        rows => return Err(Refused::Otherwise(format!("{} rows for one", rows.len()))),
    };
    let told = if id == Id::Last {
        outcome.last_insert_id
    } else {
        returned
    };
    if told.is_none() && id != Id::Untold {
        return Err(Refused::Otherwise("no id".to_owned()));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use forebay::write::Value;

    use super::*;

    fn outcome(last: Option<i64>, rows: &[&[i64]]) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.last_insert_id = last;
        outcome.rows = rows
            .iter()
            .map(|row| row.iter().copied().map(Value::from).collect())
            .collect();
        outcome
    }

    #[test]
    fn an_id_is_taken_from_where_it_is_told_and_a_missing_one_is_seen() {
        assert_eq!(id(Id::Last, &outcome(Some(3), &[])).unwrap(), Some(3));
        assert_eq!(id(Id::Returned, &outcome(None, &[&[4]])).unwrap(), Some(4));
        assert_eq!(id(Id::Untold, &outcome(None, &[])).unwrap(), None);
        assert!(id(Id::Last, &outcome(None, &[])).is_err());
        assert!(id(Id::Returned, &outcome(Some(3), &[])).is_err());
        assert!(
            id(Id::Returned, &outcome(None, &[&[4], &[5]])).is_err(),
            "a neighbour's row too"
        );
        assert!(id(Id::Returned, &outcome(None, &[&[4, 5]])).is_err());
    }
}
