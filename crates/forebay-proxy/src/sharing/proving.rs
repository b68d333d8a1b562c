//! Proving: whether a statement has the columns on a connection that those were told who ask it.
//!
//! Promises: once a statement was looked at on a connection, it costs nothing there: the server takes it by no other columns from then on. Nobody waits for
//! long for one whose table is locked.

use std::time::Duration;

use tokio::time::timeout;

use super::ask::Answer;
use super::job::Job;
use super::learning::describe;
use super::trip::Lost;
use crate::columns::Columns;
use crate::server::Server;
use crate::statements::Shape;

/// So long those who go together wait until one of them is looked at: many times the way to a server.
const PROVEN_WITHIN: Duration = Duration::from_millis(250);

/// Sees to it that what these ask has the columns on this connection that they were told before; who was told others goes alone, and is told so there. After
/// so many changes of tables.
pub(super) async fn prove(server: &mut Server, jobs: &mut Vec<Job>, schema_changes: u64) -> Result<(), Lost> {
    let mut at = 0;
    while let Some(job) = jobs.get(at) {
        let (Some(statement), Some(told)) = (&job.statement, job.ask.told()) else {
            at += 1;
            continue;
        };
        let number = statement.number();
        let holds = match server.prepared.holds(number, told, schema_changes) {
            Some(holds) => holds,
            None => {
                server.forget(number);
                let Ok(described) = timeout(PROVEN_WITHIN, describe(server, statement)).await else {
                    // Somebody has a lock. What the connection is at is not known any more.
                    job.plan.ban();
                    server.interrupt();
                    return Err(Lost);
                };
                let columns = described?.map(|(_, columns)| match columns.is_empty() {
                    true => Some(Columns::NONE),
                    false => Columns::by(b'T', &columns),
                });
                let columns = columns.flatten().unwrap_or(Columns::NONE);
                let shape = Shape::Known(columns, Some(schema_changes));
                server.prepared.set_shape(number, shape);
                columns == told
            }
        };
        match holds {
            true => at += 1,
            false => jobs.remove(at).answer(Answer::Alone(false)),
        }
    }
    Ok(())
}
