//! One connection to PostgreSQL: its link, the statements that are prepared on it, and how long is waited for answers.
//!
//! Promises: an answer that does not come within the answer timeout counts as a lost connection; a connection on which a
//! transaction may be open, or an answer still to come, is never used by somebody else. Knows no batch and no outcome.

use std::time::Duration;

use postgres_types::{BorrowToSql, Type};

use super::answered::Answered;
use super::error::{Failure, failure};
use super::pipeline::{Answer, Pipeline, Refusal, Whose};
use super::prepared::{Prepared, Unused};
use super::session::setup;
use super::type_catalog::TypeCatalog;
use forebay_pg_link::{Link, LinkError, Named, ServerError, Tag};
use forebay_remote::answer_timeout::AnswerTimeout;
use forebay_remote::settings::Settings;
use forebay_remote::statements::Statements;

/// A connection, and what is prepared on it.
pub(super) struct Connection {
    link: Link,
    statements: Statements<Prepared>,
    unused: Unused,
    /// How many statements were prepared on it.
    prepared: u64,
    types: TypeCatalog,
    answer_timeout: AnswerTimeout,
    /// The server did not answer in time.
    is_silent: bool,
    /// Its session is not what it was, and could not be made so.
    is_spoilt: bool,
    settings: Settings,
    id: Option<ConnectionId>,
    deadlock_timeout: Option<Duration>,
}

/// What tells a connection from all others at its server, and at that server started again.
#[derive(Debug, Clone)]
pub(super) struct ConnectionId {
    process_id: i32,
    /// In seconds, as the server writes them.
    began: String,
}

/// What asks a server for the id of the connection that asks, and after how long it looks for deadlocks, in seconds.
const FACTS: &str = "SELECT pid, EXTRACT(epoch FROM backend_start)::text, \
         EXTRACT(epoch FROM pg_catalog.current_setting('deadlock_timeout', true)::interval)::float8 \
     FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

impl Connection {
    /// A link's connection, set up.
    pub(super) async fn set_up(link: Link, settings: Settings) -> Result<Self, Failure> {
        let mut connection = Self {
            link,
            // They weigh nothing: there is no bound but their number.
            statements: Statements::new(settings.statement_cache, usize::MAX),
            unused: Unused::default(),
            prepared: 0,
            types: TypeCatalog::default(),
            answer_timeout: AnswerTimeout::new(settings.answer_timeout),
            is_silent: false,
            is_spoilt: false,
            settings,
            id: None,
            deadlock_timeout: None,
        };
        connection.command(&setup(&connection.settings)).await?;
        match connection.prepare(FACTS, &[]).await {
            Ok(prepared) => {
                let answered = connection.execute(Whose::Ours, &prepared, [0_i32; 0], FACTS).await?;
                connection.forget(FACTS);
                let id = (answered.first(0), answered.first(1));
                if let (Some(process_id), Some(began)) = id {
                    connection.id = Some(ConnectionId { process_id, began });
                }
                let seconds: Option<f64> = answered.first(2);
                connection.deadlock_timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            }
            // What speaks as PostgreSQL does and has no such functions: it tells nothing of itself then.
            Err(Failure::Lost(cause)) => return Err(Failure::Lost(cause)),
            Err(_) => {}
        }
        Ok(connection)
    }

    /// Whether it was lost because the server did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// What the server calls it, if it tells.
    pub(super) fn id(&self) -> Option<&ConnectionId> {
        self.id.as_ref()
    }

    /// For how long a transaction on it may wait for a lock while others wait for its own. Who waits for one of those looks for a
    /// deadlock after the server's `deadlock_timeout`, and is its victim: by then this transaction has given way.
    pub(super) fn lock_timeout_in_batch(&self) -> Duration {
        let most = self.deadlock_timeout.map_or(Duration::MAX, |timeout| timeout / 4);
        self.settings.lock_timeout.min(most)
    }

    /// Has the server kill another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    pub(super) async fn kill(&mut self, other: &ConnectionId) -> Result<(), Failure> {
        let kill = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE pid = $1 AND EXTRACT(epoch FROM backend_start)::text = $2";
        let prepared = self.prepare(kill, &[Type::INT4, Type::TEXT]).await?;
        let mut delay = Duration::from_millis(1);
        loop {
            let parameters: [&(dyn postgres_types::ToSql + Sync); 2] = [&other.process_id, &other.began];
            if self
                .execute(Whose::Ours, &prepared, parameters, kill)
                .await?
                .row_count()
                == 0
            {
                return Ok(());
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(Duration::from_millis(50));
        }
    }

    /// Whether it can be handed to somebody else.
    pub(super) fn is_usable(&self) -> bool {
        self.link.is_idle() && !self.is_silent && !self.is_spoilt
    }

    /// As [`is_usable`](Self::is_usable), and looks whether the server has hung up meanwhile.
    pub(super) fn is_still_usable(&mut self) -> bool {
        self.link.look();
        self.is_usable()
    }

    /// Whether the server answers.
    pub(super) async fn answers(&mut self) -> bool {
        self.link.outbox().sync();
        matches!(self.link.answer().await, Ok(message) if message.tag() == Tag::READY_FOR_QUERY)
    }

    /// Makes the session what it was when it was new, after a statement that may have changed it; where that fails, nobody
    /// uses the connection again. What is prepared stays.
    pub(super) async fn reset_session(&mut self) {
        if self.is_usable() {
            self.is_spoilt = true;
            let reset = format!(
                "RESET SESSION AUTHORIZATION; RESET ALL; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; UNLISTEN *; \
                 CLOSE ALL; SELECT pg_catalog.setseed(pg_catalog.sin((EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1e6)::float8)); \
                 {}",
                setup(&self.settings)
            );
            self.is_spoilt = self.command(&reset).await.is_err();
        }
    }

    /// The statement, prepared now if it was not before. `types` are those of the first parameters; the server chooses the rest.
    pub(super) async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Prepared, Failure> {
        if let Some(prepared) = self.statements.find(sql) {
            return Ok(prepared);
        }
        self.check()?;
        // Seldom wanted: statements that are prepared have no room for it.
        let preparing = Box::pin(prepare(
            &mut self.link,
            &mut self.types,
            &self.unused,
            format!("s{}", self.prepared),
            sql,
            types,
        ));
        self.prepared += 1;
        let prepared = match self.answer_timeout.wait_for(preparing).await {
            Some(prepared) => prepared?,
            None => return Err(self.silent()),
        };
        // What is dropped is closed before the next is prepared.
        while let Some(old) = self.statements.make_room(0) {
            drop(old);
        }
        self.statements.keep(sql, 0, prepared.clone());
        Ok(prepared)
    }

    /// The statement, if it is prepared.
    pub(super) fn prepared(&mut self, sql: &str) -> Option<Prepared> {
        self.statements.find(sql)
    }

    /// Forgets one statement; whether it was prepared.
    pub(super) fn forget(&mut self, sql: &str) -> bool {
        self.statements.remove(sql).is_some()
    }

    /// Forgets all that is prepared here: the schema has changed.
    pub(super) fn forget_statements(&mut self) {
        self.statements.clear();
        self.types.forget();
    }

    /// Sends a command, or several, without parameters and rows.
    pub(super) async fn command(&mut self, sql: &str) -> Result<(), Failure> {
        let mut answers = self.pipeline(|pipeline| pipeline.command(sql)).await?;
        let answer = answers.pop().expect("one answer a command");
        answer.map(drop).map_err(|refusal| failure(refusal, sql))
    }

    /// Executes one statement.
    pub(super) async fn execute<P: BorrowToSql>(
        &mut self,
        whose: Whose,
        prepared: &Prepared,
        parameters: impl IntoIterator<Item = P, IntoIter: Clone>,
        sql: &str,
    ) -> Result<Answered, Failure> {
        let mut answers = self
            .pipeline(|pipeline| pipeline.execute(whose, prepared, parameters))
            .await?;
        let answer = answers.pop().expect("one answer a statement");
        answer.map_err(|refusal| failure(refusal, sql))
    }

    /// Sends what `ask` asks, all at once, and waits for all answers for as long as is waited for one.
    pub(super) async fn pipeline(&mut self, ask: impl FnOnce(&mut Pipeline<'_>)) -> Result<Vec<Answer>, Failure> {
        self.check()?;
        let mut pipeline = Pipeline::new(&mut self.link, self.settings.max_rows_bytes);
        ask(&mut pipeline);
        match self.answer_timeout.wait_for(pipeline.run()).await {
            Some(answers) => Ok(answers),
            None => Err(self.silent()),
        }
    }

    /// Answers that somebody did not wait for are nobody else's.
    fn check(&self) -> Result<(), Failure> {
        match self.link.expected() {
            0 => Ok(()),
            _ => Err(Failure::Lost("an answer of the server's was not waited for".to_owned())),
        }
    }

    /// Tells the server that nobody waits any more for what it is at, then closes the connection.
    pub(super) async fn cancel(self) {
        // Closed only afterwards: the server looks whether its client is there only when it has something to say. If it cannot be
        // told to stop, it will stop then.
        if let Err(error) = self.link.cancel_token().cancel().await {
            tracing::debug!(%error, "a statement could not be cancelled");
        }
    }

    /// The server says nothing: whatever it does, nobody will hear of it on this connection.
    fn silent(&mut self) -> Failure {
        self.is_silent = true;
        Failure::Lost(format!(
            "no answer within {} s",
            self.settings.answer_timeout.as_secs_f32()
        ))
    }
}

/// Prepares a statement under that name. Those that nobody uses any more are closed on the way.
async fn prepare(
    link: &mut Link,
    types: &mut TypeCatalog,
    unused: &Unused,
    name: String,
    sql: &str,
    first: &[Type],
) -> Result<Prepared, Failure> {
    let lost = |error: LinkError| Failure::lost(&error);
    let unsendable = |error| failure(Refusal::Unsendable(Box::new(error)), sql);
    let outbox = link.outbox();
    for old in unused.take() {
        outbox.close(Named::Statement(&old)).map_err(unsendable)?;
    }
    let oids: Vec<u32> = first.iter().map(Type::oid).collect();
    let asked = outbox
        .parse(&name, sql, &oids)
        .and_then(|()| outbox.describe(Named::Statement(&name)));
    // Also where nothing was asked: what was closed is to be answered.
    outbox.sync();
    let (mut parameters, mut columns, mut refused) = (Vec::new(), Vec::new(), None);
    loop {
        let message = link.answer().await.map_err(lost)?;
        let malformed = |malformed: forebay_pg_link::Malformed| lost(malformed.into());
        match message.tag() {
            Tag::PARAMETER_DESCRIPTION => parameters = message.parameter_types().map_err(malformed)?,
            Tag::ROW_DESCRIPTION => {
                let described = message.columns().map_err(malformed)?;
                columns = described
                    .iter()
                    .map(|column| (column.name.to_owned(), column.type_oid))
                    .collect();
            }
            Tag::ERROR_RESPONSE => refused = Some(ServerError::read(&message).map_err(malformed)?),
            Tag::READY_FOR_QUERY => break,
            _ => {}
        }
    }
    asked.map_err(unsendable)?;
    if let Some(error) = refused {
        return Err(failure(Refusal::Server(Box::new(error)), sql));
    }
    let oids = parameters.iter().copied().chain(columns.iter().map(|(_, oid)| *oid));
    types.learn(link, oids).await?;
    // One that has just been dropped: it is nobody's to read or write.
    let of = |oid: u32| types.find(oid).unwrap_or(Type::UNKNOWN);
    let parameters = parameters.into_iter().map(of).collect();
    let columns = columns.into_iter().map(|(name, oid)| (name, of(oid))).collect();
    Ok(Prepared::new(name, unused, parameters, columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::connection;

    const COUNT: &str = "SELECT count(*) FROM pg_catalog.pg_prepared_statements";

    async fn count(connection: &mut Connection, sql: &str) -> i64 {
        let prepared = connection.prepare(sql, &[]).await.unwrap_or_else(|_| panic!("{sql}"));
        let none = [0_i32; 0];
        let answered = connection.execute(Whose::Ours, &prepared, none, sql).await.unwrap();
        answered.first(0).unwrap()
    }

    #[tokio::test]
    async fn the_server_forgets_what_is_forgotten_here_and_not_what_is_still_used() {
        let (mut connection, _server) = connection().await;
        let kept = connection
            .prepare("SELECT 'kept'", &[])
            .await
            .unwrap_or_else(|_| panic!());
        for number in 0..1_000 {
            connection
                .prepare(&format!("SELECT {number}"), &[])
                .await
                .unwrap_or_else(|_| panic!());
        }
        let known = i64::try_from(connection.settings.statement_cache).unwrap();
        let prepared = count(&mut connection, COUNT).await;
        // The one that is kept was evicted, and is known as long as somebody has it.
        assert!(prepared <= known + 2, "{prepared} of {known}");
        let none = [0_i32; 0];
        connection
            .execute(Whose::Callers, &kept, none, "SELECT 'kept'")
            .await
            .unwrap();
        drop(kept);
        connection.forget_statements();
        assert_eq!(count(&mut connection, COUNT).await, 1);
    }

    #[tokio::test]
    async fn a_connection_whose_answer_was_not_waited_for_is_nobody_elses() {
        let (mut connection, _server) = connection().await;
        {
            let mut waiting = std::pin::pin!(connection.command("SELECT pg_sleep(0.01)"));
            let polled = std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context))).await;
            assert!(polled.is_pending());
        }
        assert!(!connection.is_still_usable());
        assert!(matches!(connection.command("SELECT 1").await, Err(Failure::Lost(_))));
        assert!(matches!(
            connection.prepare("SELECT 1", &[]).await,
            Err(Failure::Lost(_))
        ));
    }

    #[tokio::test]
    async fn what_the_server_reports_unasked_costs_no_connection() {
        let (mut connection, _server) = connection().await;
        let (mut other, _server) = self::connection().await;
        connection.command("LISTEN forebay_unasked").await.unwrap();
        for sql in [
            "NOTIFY forebay_unasked",
            "ALTER SYSTEM SET DateStyle = 'German'",
            "SELECT pg_reload_conf()",
            "ALTER SYSTEM RESET DateStyle",
            "SELECT pg_reload_conf()",
        ] {
            other.command(sql).await.unwrap();
        }
        for _ in 0..1_000 {
            assert!(connection.is_still_usable());
            tokio::task::yield_now().await;
        }
        connection.command("SELECT 1").await.unwrap();
    }
}
