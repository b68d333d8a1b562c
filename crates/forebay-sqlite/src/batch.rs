//! A batch of writes in as few transactions as can be, so that each has the outcome it would have had alone.
//!
//! All statements run in arrival order inside one transaction. A statement that fails undoes only itself. Where a failure
//! takes the transaction with it (an interrupt, ON CONFLICT ROLLBACK, a full disk), or leaves something in it that only a
//! rollback removes (a foreign key left open, an error that SQLite did not foresee), the failing one is answered and the
//! others are run again: those before it commit first, then the rest go on in a transaction of their own. If the commit
//! itself fails, the transaction is run again in halves, down to the failing one.
//!
//! Nobody is answered before the commit. Why it is done so: `docs/decisions/0003-shared-transactions.md`.

use std::rc::Rc;

use super::program::Program;
use super::session::{Failure, Prepared, Session, Transaction, Uncommitted};
use forebay_write::{Outcome, Sql, Write, WriteError};

type Outcomes = Vec<Option<Result<Outcome, WriteError>>>;

/// Runs the batch; one outcome a write, in order.
pub(super) fn run(session: &mut Session, batch: &[Write]) -> Vec<Result<Outcome, WriteError>> {
    let mut outcomes: Outcomes = vec![None; batch.len()];
    run_groups(session, batch, vec![(0..batch.len()).collect()], &mut outcomes);
    outcomes.into_iter().map(answered).collect()
}

/// Runs one write by itself; none if another process has the file's lock: it is not waited for, and nothing was done.
pub(super) fn run_unless_locked(session: &mut Session, write: &Write) -> Option<Result<Outcome, WriteError>> {
    match session.begin_unless_locked() {
        Ok(()) => {}
        Err(Failure {
            error: WriteError::Busy { .. },
            ..
        }) => return None,
        Err(failure) => return Some(Err(failure.error)),
    }
    let batch = std::slice::from_ref(write);
    let (mut outcomes, mut groups) = (vec![None], Vec::new());
    run_begun(session, batch, &[0], &mut outcomes, &mut groups);
    run_groups(session, batch, groups, &mut outcomes);
    outcomes.pop().map(answered)
}

fn answered(outcome: Option<Result<Outcome, WriteError>>) -> Result<Outcome, WriteError> {
    outcome.expect("every write of every group is answered")
}

/// Runs all groups, the last one first, and those that come of them.
fn run_groups(session: &mut Session, batch: &[Write], mut groups: Vec<Vec<usize>>, outcomes: &mut Outcomes) {
    while let Some(group) = groups.pop() {
        if !group.is_empty() {
            run_group(session, batch, &group, outcomes, &mut groups);
        }
        debug_assert!(session.is_autocommit(), "a group ends with its transaction");
    }
}

/// How a group's statements went before its commit.
enum Ran {
    /// All were executed; those that failed, failed alone.
    Whole,
    /// The statement at this position of the group took the transaction with it. It has its outcome.
    Spoiled { position: usize },
    /// The statement at this position must run outside a transaction. Those before it are executed, not committed.
    Alone { position: usize },
}

fn run_group(
    session: &mut Session,
    batch: &[Write],
    group: &[usize],
    outcomes: &mut Outcomes,
    groups: &mut Vec<Vec<usize>>,
) {
    if let Err(failure) = session.begin() {
        for &index in group {
            outcomes[index] = Some(Err(failure.error.clone()));
        }
        return;
    }
    run_begun(session, batch, group, outcomes, groups);
}

/// Runs a group in the transaction that was begun for it.
fn run_begun(
    session: &mut Session,
    batch: &[Write],
    group: &[usize],
    outcomes: &mut Outcomes,
    groups: &mut Vec<Vec<usize>>,
) {
    let ran = execute(session, batch, group, outcomes);
    let executed = match &ran {
        Ran::Whole => group,
        Ran::Alone { position } => &group[..*position],
        Ran::Spoiled { position } => {
            session.rollback();
            groups.push(group[position + 1..].to_vec());
            // Those before it are innocent and had been told nothing yet. Those among them that failed are run again too:
            // what they failed on may be gone, if its caller has cancelled meanwhile.
            groups.push(group[..*position].to_vec());
            return;
        }
    };
    if let Err(uncommitted) = session.commit() {
        match (&ran, &uncommitted) {
            // Not even an empty transaction commits: nothing would become of running it again.
            (Ran::Alone { position: 0 }, Uncommitted::ByAll(failure) | Uncommitted::BySome(failure)) => {
                outcomes[group[0]] = Some(Err(failure.clone()));
                groups.push(group[1..].to_vec());
            }
            (Ran::Alone { position }, _) => groups.push(group[*position..].to_vec()),
            _ => {}
        }
        let lost = executed
            .iter()
            .filter(|&&index| matches!(outcomes[index], Some(Ok(_))))
            .count();
        let shared_failure = match uncommitted {
            Uncommitted::ByAll(failure) => Some(failure),
            // Nobody to part it from.
            Uncommitted::BySome(failure) if lost == 1 => Some(failure),
            Uncommitted::BySome(_) => None,
        };
        match shared_failure {
            Some(failure) => {
                for &index in executed {
                    if matches!(outcomes[index], Some(Ok(_))) {
                        outcomes[index] = Some(Err(failure.clone()));
                    }
                }
            }
            None if lost > 0 => {
                let (first, second) = executed.split_at(executed.len() / 2);
                groups.push(second.to_vec());
                groups.push(first.to_vec());
            }
            None => {}
        }
        return;
    }
    if let Ran::Alone { position } = ran {
        let write = &batch[group[position]];
        outcomes[group[position]] = Some(session.execute_alone(write.sql(), write.parameters(), write.cancel_token()));
        groups.push(group[position + 1..].to_vec());
    }
}

/// Executes a group's statements in order, inside the transaction that is open.
fn execute(session: &mut Session, batch: &[Write], group: &[usize], outcomes: &mut Outcomes) -> Ran {
    let connection = session.shared_connection();
    // Neighbours mostly are the same statement: compiled and looked at once.
    let mut current: Option<(&Sql, Prepared<'_>, Rc<Program>)> = None;
    for (position, &index) in group.iter().enumerate() {
        let write = &batch[index];
        if let Err(error) = session.is_under(write.schema()) {
            outcomes[index] = Some(Err(error));
            continue;
        }
        if current.as_ref().is_none_or(|(sql, ..)| **sql != *write.sql()) {
            // The old one first, so that it is back in the cache.
            current = None;
            let compiled = session.prepare(&connection, write.sql()).and_then(|statement| {
                let program = session.program(write.sql(), &statement)?;
                Ok((write.sql(), statement, program))
            });
            match compiled {
                Ok(compiled) => current = Some(compiled),
                Err(failure) => {
                    outcomes[index] = Some(Err(failure.error));
                    continue;
                }
            }
        }
        let Some((_, statement, program)) = current.as_mut() else {
            unreachable!("it has just been compiled");
        };
        if !program.shares {
            return Ran::Alone { position };
        }
        let result = session.execute_prepared(
            statement,
            program,
            write.parameters(),
            write.cancel_token(),
            write.acceptance(),
            Transaction::Shared,
        );
        if program.changes_schema {
            current = None;
        }
        match result {
            Ok(outcome) => outcomes[index] = Some(Ok(outcome)),
            Err(failure) => {
                outcomes[index] = Some(Err(failure.error));
                if failure.spoils_transaction {
                    return Ran::Spoiled { position };
                }
            }
        }
    }
    Ran::Whole
}
