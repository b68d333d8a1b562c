//! Whether what was told, and what is in the tables, is what it would have been alone.
//!
//! Promises: everything is compared, but for the numbers that a database gives by itself: a row that failed on the way may have
//! used one up. Columns whose names end in `_id` hold such numbers; those of one name are the same but for gaps, in the same
//! order, wherever they are told. Ids below 1 were given by a caller, and are the same.

use std::collections::BTreeMap;

use forebay::write::{Outcome, StatementError, Value, WriteError};

pub(crate) type Told = Result<Outcome, WriteError>;

/// Columns and rows, as the database shows them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Table {
    /// By what is the same here and alone, and where that is the same by the numbers, whose order is.
    fn sort(&mut self) {
        let is_number = |column: &String| column.ends_with("_id");
        let numbers: Vec<bool> = self.columns.iter().map(is_number).collect();
        self.rows.sort_by_cached_key(|row| {
            let (mut same, mut given) = (Vec::new(), Vec::new());
            for (value, is_number) in row.iter().zip(&numbers) {
                match value {
                    Value::Integer(number) if *is_number => given.push(*number),
                    value => same.push(format!("{value:?}")),
                }
            }
            (same, given)
        });
    }
}

/// Numbers that rows were given here and alone, by the columns they are in.
#[derive(Default)]
pub(crate) struct Judge {
    numbers: BTreeMap<String, BTreeMap<i64, i64>>,
}

impl Judge {
    /// Whether a caller of that statement was told what it would have been told alone.
    pub(crate) fn told(&mut self, sql: &str, told: &Told, alone: &Told) -> Result<(), String> {
        match (told, alone) {
            (Ok(told), Ok(alone)) => self.outcomes(sql, told, alone),
            (Err(WriteError::Statement(told)), Err(WriteError::Statement(alone))) => errors(told, alone),
            (Err(told), Err(alone)) if told == alone => Ok(()),
            _ => Err(differ("answers", told, alone)),
        }
    }

    fn outcomes(&mut self, sql: &str, told: &Outcome, alone: &Outcome) -> Result<(), String> {
        if told.rows_affected != alone.rows_affected {
            return Err(differ("counts", told, alone));
        }
        match (told.last_insert_id, alone.last_insert_id) {
            (Some(here), Some(there)) => {
                let column = if sql.contains(" INTO log ") { "log_id" } else { "t_id" };
                self.number(column, here, there)?;
            }
            (None, None) => {}
            _ => return Err(differ("ids", told, alone)),
        }
        // A database tells rows that are there in the order in which it finds them: an update may have moved them.
        let has_order = !["UPDATE", "DELETE"].iter().any(|word| sql.starts_with(word));
        let table = |outcome: &Outcome| {
            let mut table = Table {
                columns: outcome.columns.clone(),
                rows: outcome.rows.clone(),
            };
            if !has_order {
                table.sort();
            }
            table
        };
        self.tables(&table(told), &table(alone))
    }

    /// Whether the rows are the same, in the same order.
    pub(crate) fn tables(&mut self, here: &Table, alone: &Table) -> Result<(), String> {
        if here.columns != alone.columns || here.rows.len() != alone.rows.len() {
            return Err(differ("rows", here, alone));
        }
        for (one, other) in here.rows.iter().zip(&alone.rows) {
            for ((column, value), expected) in here.columns.iter().zip(one).zip(other) {
                match (value, expected) {
                    (Value::Integer(value), Value::Integer(expected)) if column.ends_with("_id") => {
                        self.number(column, *value, *expected)?;
                    }
                    _ if value == expected => {}
                    _ => return Err(differ(&format!("values of {column}"), one, other)),
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, column: &str, here: i64, alone: i64) -> Result<(), String> {
        if here.min(alone) < 1 {
            return if here == alone {
                Ok(())
            } else {
                Err(differ(column, &here, &alone))
            };
        }
        let numbers = self.numbers.entry(column.to_owned()).or_default();
        match numbers.insert(here, alone) {
            Some(before) if before != alone => Err(format!(
                "{column} {here} is that of two rows, which alone have {before} and {alone}"
            )),
            _ => Ok(()),
        }
    }

    /// Whether rows were numbered in the same order.
    pub(crate) fn order(&self) -> Result<(), String> {
        for (column, numbers) in &self.numbers {
            let alone: Vec<i64> = numbers.values().copied().collect();
            if let Some(pair) = alone.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(format!(
                    "{column}: rows are numbered in another order, around {pair:?}: {numbers:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether both say the same; what was found without asking has only a kind.
fn errors(told: &StatementError, alone: &StatementError) -> Result<(), String> {
    if told.kind != alone.kind {
        return Err(differ("kinds of error", told, alone));
    }
    if told.sqlstate.is_none() && told.code == 0 {
        return Ok(());
    }
    let names = |error: &StatementError| (error.code, error.sqlstate.clone(), error.constraint.clone());
    // What follows in parentheses are details that may name numbers.
    if names(told) != names(alone) || !told.message.starts_with(&alone.message) {
        return Err(differ("errors", told, alone));
    }
    Ok(())
}

fn differ<T: std::fmt::Debug + ?Sized>(what: &str, here: &T, alone: &T) -> String {
    format!("{what} differ:\n  here  {here:?}\n  alone {alone:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ids: &[i64]) -> Table {
        Table {
            columns: vec!["t_id".to_owned(), "tag".to_owned()],
            rows: ids
                .iter()
                .zip(1..)
                .map(|(id, tag)| vec![Value::Integer(*id), Value::Integer(tag)])
                .collect(),
        }
    }

    #[test]
    fn numbers_may_have_other_gaps_but_no_other_order_and_no_other_row() {
        let judged = |here: &[i64], alone: &[i64]| {
            let mut judge = Judge::default();
            judge.tables(&rows(here), &rows(alone)).and_then(|()| judge.order())
        };
        assert_eq!(judged(&[1, 5, 6], &[2, 3, 9]), Ok(()));
        assert!(judged(&[1, 6, 5], &[2, 3, 9]).is_err());
        assert!(judged(&[1, 1, 5], &[2, 3, 9]).is_err());
        assert!(judged(&[1, 2, 5], &[3, 3, 9]).is_err());
        assert!(judged(&[-1, 2], &[-2, 3]).is_err());
        assert!(judged(&[1, 2], &[1]).is_err());
        let mut judge = Judge::default();
        judge.tables(&rows(&[1, 2]), &rows(&[1, 2])).unwrap();
        let told = |id| {
            let mut outcome = Outcome::default();
            (outcome.rows_affected, outcome.last_insert_id) = (1, Some(id));
            Ok(outcome)
        };
        assert!(
            judge
                .told("INSERT INTO t (tag) VALUES (2)", &told(2), &told(1))
                .is_err(),
            "the neighbour's id"
        );
    }

    #[test]
    fn rows_that_were_there_are_told_in_any_order() {
        let told = |ids: &[i64], is_turned: bool| {
            let Table { columns, mut rows } = rows(ids);
            if is_turned {
                rows.reverse();
            }
            let mut outcome = Outcome::default();
            (outcome.rows_affected, outcome.columns, outcome.rows) = (rows.len() as u64, columns, rows);
            Ok(outcome)
        };
        let judged = |sql: &str, here: &[i64]| Judge::default().told(sql, &told(here, true), &told(&[8, 9, 10], false));
        assert_eq!(judged("DELETE FROM t RETURNING t_id, tag", &[8, 9, 10]), Ok(()));
        assert_eq!(judged("UPDATE t SET v = 1 RETURNING t_id, tag", &[18, 19, 30]), Ok(()));
        assert!(judged("DELETE FROM t RETURNING t_id, tag", &[8, 9]).is_err());
        assert!(judged("INSERT INTO t (tag) SELECT 1 RETURNING t_id, tag", &[8, 9, 10]).is_err());
    }
}
