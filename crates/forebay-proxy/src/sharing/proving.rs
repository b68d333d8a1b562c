//! Proving: whether a statement has the columns on a connection that those were told who ask it.
//!
//! Promises: once a statement was looked at on a connection, it costs nothing there: the server takes it by no other columns from then on. Nobody waits for
//! long for one whose table is locked.

use std::time::Duration;

use tokio::time::timeout;

use super::ask::Answer;
use super::job::Job;
use super::learning::describe;
use crate::asking::Lost;
use crate::columns::Columns;
use crate::server::Server;
use crate::statements::Shape;

/// So long those who go together wait until one of them is looked at: many times the way to a server.
const PROVEN_WITHIN: Duration = Duration::from_millis(250);

/// Sees to it that what these ask has the columns on this connection that they were told before; who was told others goes alone, and is told so there.
pub(super) async fn prove(server: &mut Server, jobs: &mut Vec<Job>) -> Result<(), Lost> {
    let has = |server: &Server, job: &Job| match (&job.statement, job.ask.told()) {
        (Some(statement), Some(told)) => server.prepared.is_as_told(statement, told),
        _ => true,
    };
    let unproven = |server: &Server, jobs: &[Job], from: usize| {
        let at = jobs[from..].iter().position(|job| !has(server, job))?;
        Some(from + at)
    };
    let mut from = 0;
    while let Some(at) = unproven(server, jobs, from) {
        let job = &jobs[at];
        let statement = job.statement.as_ref().expect("it is unproven");
        let number = statement.number();
        server.forget(number);
        let Ok(described) = timeout(PROVEN_WITHIN, describe(server, statement)).await else {
            // Somebody has a lock. What the connection is at is not known any more.
            job.plan.ban();
            server.interrupt();
            return Err(Lost);
        };
        let columns = described?.and_then(|(_, columns)| match columns.is_empty() {
            true => Some(Columns::NONE),
            false => Columns::by(b'T', &columns),
        });
        let shape = columns.map_or(Shape::Unknown, Shape::Known);
        server.prepared.set_shape(number, shape);
        from = at + 1;
    }
    // All at once: one that was looked at for somebody else since may have others.
    for job in jobs.extract_if(.., |job| !has(server, job)) {
        job.answer(Answer::Alone(false));
    }
    Ok(())
}
