//! Carrier: takes those who wait in a line to the server, all who are there at once, until nobody waits.
//!
//! Promises: whoever waits is answered, also where there is no server or it is lost: then each goes alone, and meets what there is to be met.
//! A connection is given back when nobody waits, and between two trips where others want one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::ask::Answer;
use super::company::Company;
use super::forms;
use super::learning::learn;
use super::line::Line;
use super::plan::{Kind, Plan};
use super::proving::prove;
use super::restriction::Given;
use super::trip::{Arrival, Asks, Trip, Unknown};
use crate::asking::{Lost, ask};
use crate::memory::does::Does;
use crate::pool::Pool;
use crate::server::Server;
use crate::statements::{Statement, Statements};

/// What nobody waits for any more is cancelled after so long: a connection that was told to cancel is not lent again at once.
pub(super) const UNWANTED_FOR: Duration = Duration::from_millis(100);
/// Another one carries those who come behind a trip of changes that takes longer: than a lock is waited for, by far.
const CHANGE_PATIENCE_MIN: Duration = Duration::from_millis(100);
/// What is asked of the catalog between two trips takes no longer: those who wait for the next one wait for it.
const LEARNT_WITHIN: Duration = Duration::from_millis(100);
/// So often others are let come, while more come.
const GATHERING_MAX: usize = 16;

/// Why a carrier carries no more on this connection.
enum End {
    /// Nobody waits.
    Done,
    /// Others wait for a connection.
    Yields,
    /// Somebody else carries, as this one was held up.
    Replaced,
    /// What those who wait have set cannot be set.
    Refused,
}

/// Carries from now on; the line has counted it.
pub(crate) fn carry(pool: Arc<Pool>, company: Arc<Company>, kind: Kind) {
    tokio::spawn(async move {
        let carrier = Carrier {
            line: Arc::clone(company.line(kind)),
            is_counted: true,
            has_changed: false,
            pool,
            company,
            kind,
        };
        carrier.run().await;
    });
}

struct Carrier {
    pool: Arc<Pool>,
    company: Arc<Company>,
    line: Arc<Line>,
    kind: Kind,
    /// Among those that the line has.
    is_counted: bool,
    /// Rows were changed on the connection that it has.
    has_changed: bool,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // Also where it panics: nobody waits for one that is not there.
        if self.is_counted {
            for job in self.line.give_up() {
                job.answer(Answer::Alone(false));
            }
        }
    }
}

impl Carrier {
    async fn run(mut self) {
        loop {
            // Nobody has a connection meanwhile.
            self.line.is_due().await;
            let Ok(mut server) = self.pool.acquire(&self.company.beginning, None).await else {
                return;
            };
            let end = match self.lead(&mut server).await {
                // It is closed: what is set on it is not known.
                Ok(End::Refused) => return,
                Err(Lost) if self.is_counted => continue,
                Err(Lost) => return,
                Ok(end) => end,
            };
            if !self.has_changed {
                // The last numbers of sequences are still those of whoever had it before.
                server.lent.not_at_all();
            }
            self.pool.release(server);
            match end {
                End::Done | End::Replaced | End::Refused => return,
                End::Yields => self.has_changed = false,
            }
        }
    }

    async fn lead(&mut self, server: &mut Server) -> Result<End, Lost> {
        if !set_as(&self.company, &self.pool, server).await? {
            // Whoever goes alone is told by the server what is wrong.
            return Ok(End::Refused);
        }
        loop {
            self.gather().await;
            if self.line.waits_until().is_some() {
                return Ok(End::Yields);
            }
            let Some(mut taken) = self.line.take() else {
                self.is_counted = false;
                return Ok(End::Done);
            };
            if taken.is_wanted {
                carry(Arc::clone(&self.pool), Arc::clone(&self.company), self.kind);
            }
            let schema_changes = self.pool.effects.schema_changes();
            prove(server, &mut taken.jobs).await?;
            if taken.jobs.is_empty() {
                continue;
            }
            self.has_changed |= self.kind == Kind::Change;
            let mut trip = Trip::new(self.kind, taken.jobs);
            let beside = self.company.beside(&self.pool.statements);
            let asks = Asks {
                statements: &self.pool.statements,
                company: &self.company,
                schema_changes,
            };
            trip.put(server, beside, self.company.terms().lock_timeout_ms, &asks);
            let begun = Instant::now();
            let patience = match (self.kind, trip.read_patience()) {
                (Kind::Change, _) => self.line.patience().max(CHANGE_PATIENCE_MIN),
                (Kind::Read, None) => self.line.patience(),
                (Kind::Read, Some(most)) => self.line.patience().min(most),
            };
            let read = match self.kind {
                Kind::Change => timeout(patience, trip.read_in_time(server)).await,
                Kind::Read => timeout(patience, trip.read(server))
                    .await
                    .map(|read| read.map(|()| false)),
            };
            if let (Kind::Change, Ok(read)) = (self.kind, &read) {
                // Before anybody is told.
                self.have_changed(read.is_ok(), &trip);
            }
            let was_cancelled = match read {
                Ok(read) => read?,
                Err(_) => {
                    drop(taken.on_their_way);
                    self.is_held_up(trip, begun, server).await?;
                    return Ok(End::Replaced);
                }
            };
            let elapsed = begun.elapsed();
            self.line.took(elapsed);
            if trip.is_well() {
                self.was_on_its_way(trip.worked_for(), elapsed, trip.plans());
            }
            trip.took(elapsed);
            let mut arrival = arrive(trip, server)?;
            self.line.ended(arrival.is_well);
            self.line.put_back(arrival.back);
            if !server.is_settled() {
                return Err(Lost);
            }
            if was_cancelled {
                // That may still be on its way to the connection.
                return Ok(End::Yields);
            }
            if !arrival.unknown.is_empty() {
                // All are answered, and others who come are not to wait for them.
                drop(taken.on_their_way);
                learn_forms(&mut arrival.unknown, &self.pool.statements, server).await?;
            }
            if self.pool.wants_back(server) {
                return Ok(End::Yields);
            }
        }
    }

    /// Somebody is slow: another carrier takes those who come, and this one waits. Those who read go alone meanwhile.
    async fn is_held_up(&mut self, mut trip: Trip, begun: Instant, server: &mut Server) -> Result<(), Lost> {
        self.is_counted = false;
        if self.line.is_left_by_one() {
            carry(Arc::clone(&self.pool), Arc::clone(&self.company), self.kind);
        }
        if self.kind == Kind::Change {
            // They have to wait for the commit.
            let read = trip.read_in_time(server).await;
            self.have_changed(read.is_ok(), &trip);
            read?;
            if trip.is_well() {
                self.was_on_its_way(trip.worked_for(), begun.elapsed(), trip.plans());
            }
            trip.took(begun.elapsed());
            for job in arrive(trip, server)?.back {
                job.answer(Answer::Alone(false));
            }
            return if server.is_settled() { Ok(()) } else { Err(Lost) };
        }
        let (count, plans) = (trip.worked_for(), trip.plans().cloned().collect::<Vec<_>>());
        trip.scatter();
        // Nobody wants its answer any more.
        let read = timeout(UNWANTED_FOR, trip.read(server)).await;
        self.was_on_its_way(count, begun.elapsed(), &plans);
        match read {
            Ok(read) => read,
            Err(_) => {
                server.interrupt();
                trip.read(server).await
            }
        }
    }

    /// What those on a trip have changed is done, or may be.
    fn have_changed(&self, is_known: bool, trip: &Trip) {
        if !self.pool.remembers() {
            return;
        }
        let mut does = Does::Nothing;
        let changes = self.pool.effects.schema_changes();
        for job in trip.jobs() {
            let definition = job.statement.as_deref().map(Statement::definition);
            let given = Given::of(&job.ask, definition);
            does.add(job.plan.does(changes, given.as_ref()));
        }
        self.pool.has_changed(if is_known { &does } else { &Does::Anything });
    }

    /// A trip took so long. Where it takes long again and again, whoever was on it is to show that it is not the one.
    fn was_on_its_way<'a>(&self, count: usize, elapsed: Duration, plans: impl IntoIterator<Item = &'a Arc<Plan>>) {
        if self.line.pace.travelled(count, elapsed) {
            plans.into_iter().for_each(|plan| plan.is_to_show_that_it_is_quick());
        }
    }

    /// Lets those come who are about to: whoever was answered just now asks for more in a moment.
    async fn gather(&self) {
        let mut before = self.line.waiting();
        for _ in 0..GATHERING_MAX {
            tokio::task::yield_now().await;
            let now = self.line.waiting();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// Asks whether these statements have a joint form, between two trips.
pub(super) async fn learn_forms(
    unknown: &mut Unknown,
    statements: &Statements,
    server: &mut Server,
) -> Result<(), Lost> {
    if unknown.is_empty() {
        return Ok(());
    }
    if let Ok(learnt) = timeout(LEARNT_WITHIN, forms::learn(unknown, statements, server)).await {
        return learnt;
    }
    // Somebody has a lock. What the connection is at is not known any more.
    server.interrupt();
    Err(Lost)
}

/// Asks the catalog about a statement that is [due](Plan::is_due), on a connection of its own, when there is one.
pub(crate) fn learn_beside(pool: Arc<Pool>, company: Arc<Company>, plan: Arc<Plan>) {
    tokio::spawn(async move { learn_apart(&pool, &company, &plan).await });
}

/// The same, and waits for it.
///
/// # Cancel safety
/// Dropped, nothing is known of it.
pub(super) async fn learn_apart(pool: &Pool, company: &Company, plan: &Arc<Plan>) {
    /// Nothing is known where it comes to nothing.
    struct Due<'a>(Option<&'a Plan>);

    impl Drop for Due<'_> {
        fn drop(&mut self) {
            if let Some(plan) = self.0 {
                plan.learn(None, 0);
            }
        }
    }

    let mut due = Due(Some(plan));
    let Ok(mut server) = pool.acquire(&company.beginning, None).await else {
        return;
    };
    let Ok(true) = set_as(company, pool, &mut server).await else {
        return;
    };
    if let Ok(is_another) = learn(company, plan, &mut server).await {
        due.0 = None;
        if is_another {
            pool.catalog_is_another();
        }
        server.lent.not_at_all();
        pool.release(server);
    }
}

/// Brings a connection to what the company has set; whether that is so.
pub(super) async fn set_as(company: &Company, pool: &Pool, server: &mut Server) -> Result<bool, Lost> {
    server.shown.lend_to(0);
    let settings = &company.settings;
    let before = server.begin_plans(pool.effects.grounds(), settings);
    let is_unchanged = before.is_empty() && Arc::ptr_eq(&server.settings, settings);
    let change = match is_unchanged {
        true => String::new(),
        false => server.settings.change_to(settings, before),
    };
    if !change.is_empty() && ask(server, &change).await?.is_none() {
        return Ok(false);
    }
    server.settings = Arc::clone(settings);
    Ok(true)
}

/// All was answered: what came of it, though the connection's last word may follow.
pub(super) fn arrive(trip: Trip, server: &Server) -> Result<Arrival, Lost> {
    match server.status == b'I' && server.replies.is_empty() {
        true => Ok(trip.arrive()),
        false => Err(Lost),
    }
}
