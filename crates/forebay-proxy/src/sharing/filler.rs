//! Filler: asks what memory wants to know. Whoever gets a connection for one question takes those along that ask the same statement and
//! [wait](super::filling) for one, [as many](super::together) as go together.
//!
//! Promises: who goes on for longer than the others should wait for holds up nobody: they go alone. Where one fails, the others are asked again without
//! it. Where it comes to nothing, whoever waits goes alone.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ask::Answer;
use super::carrier::{UNWANTED_FOR, arrive, learn_forms, set_as};
use super::company::Company;
use super::job::Job;
use super::learning::first_answer;
use super::plan::Kind;
use super::proving::prove;
use super::together::CHANCE;
use super::trip::{Asks, Trip};
use crate::asking::Lost;
use crate::hearing::ASK_SNAPSHOT;
use crate::pool::Pool;
use crate::server::{Note, Server};

/// Something that waits, as whoever waits for its connection knows it. Dropped, it does not wait any more.
struct Waits {
    company: Arc<Company>,
    number: u64,
    taken: oneshot::Receiver<()>,
}

impl Waits {
    fn enter(company: &Arc<Company>, job: Job) -> Self {
        let (number, taken) = company.filling.enter(job);
        Self {
            company: Arc::clone(company),
            number,
            taken,
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.company.filling.leave(self.number);
    }
}

/// Carries one who reads by himself, as others join him. Who waits for it is answered, or goes alone.
pub(crate) fn carry_one(pool: Arc<Pool>, company: Arc<Company>, job: Job) {
    tokio::spawn(async move {
        // Where there is no connection he is told so when he wants one of his own.
        let Ok(mut server) = pool.acquire(&company.beginning, None).await else {
            return;
        };
        if let Ok(true) = lead(&pool, &company, vec![job], &mut Vec::new(), &mut server).await {
            pool.answered();
            // The last numbers of sequences are still those of whoever had it before.
            server.lent.not_at_all();
            pool.release(server);
        }
    });
}

/// Has it asked, by itself or with others. `has_recourse`: it waits for no connection that cannot be made.
pub(crate) fn fill(pool: Arc<Pool>, company: &Arc<Company>, job: Job, has_recourse: bool) {
    let waits = Waits::enter(company, job);
    tokio::spawn(go(pool, waits, has_recourse));
}

async fn go(pool: Arc<Pool>, mut waits: Waits, has_recourse: bool) {
    let company = Arc::clone(&waits.company);
    let acquired = async {
        match has_recourse {
            true => pool.acquire_unless_away(&company.beginning, None).await,
            false => Some(pool.acquire(&company.beginning, None).await),
        }
    };
    let acquired = tokio::select! {
        biased;
        _ = &mut waits.taken => return,
        acquired = acquired => acquired,
    };
    // Where there is no connection he is told so when he wants one of his own.
    let Some(Ok(mut server)) = acquired else { return };
    let jobs = company.filling.take(waits.number, pool.shares());
    drop(waits);
    let mut back = Vec::new();
    if !jobs.is_empty() {
        let Ok(true) = lead(&pool, &company, jobs, &mut back, &mut server).await else {
            return;
        };
        pool.answered();
    }
    // The last numbers of sequences are still those of whoever had it before.
    server.lent.not_at_all();
    pool.release(server);
    // They are fewer each time.
    for job in back {
        fill(Arc::clone(&pool), &company, job, has_recourse);
    }
}

/// Asks all of these, which are of one statement; whether the connection may be given back. Those that are to be asked again are put `back`.
async fn lead(
    pool: &Pool,
    company: &Company,
    mut jobs: Vec<Job>,
    back: &mut Vec<Job>,
    server: &mut Server,
) -> Result<bool, Lost> {
    if !set_as(company, pool, server).await? {
        return Ok(false);
    }
    let schema_changes = pool.effects.schema_changes();
    prove(server, &mut jobs).await?;
    let Some(first) = jobs.first() else { return Ok(true) };
    let (plan, count) = (Arc::clone(&first.plan), jobs.len());
    let is_seen = jobs.iter().any(|job| job.sees.is_some());
    let mut trip = match (jobs.pop(), jobs.is_empty()) {
        (Some(one), true) => Trip::of_one(one),
        (last, _) => {
            jobs.extend(last);
            // What was not proven to be of tables alone is not asked as one.
            let is_single = !plan.may_be_carried(true);
            jobs.iter_mut().for_each(|job| job.is_single |= is_single);
            Trip::new(Kind::Read, jobs)
        }
    };
    let asks = Asks {
        statements: &pool.statements,
        company,
        schema_changes,
    };
    // In one write with it, and in a transaction of its own: what is seen before is seen behind.
    if is_seen {
        server.ask(ASK_SNAPSHOT, Note::Set);
    }
    trip.put(server, company.beside(&pool.statements), 0, &asks);
    let begun = Instant::now();
    if is_seen {
        trip.sees(first_answer(server).await?);
    }
    let patience = (count > 1).then(|| plan.patience_together());
    loop {
        let most = patience.map_or(UNWANTED_FOR, |patience| {
            let left = patience.saturating_sub(begun.elapsed());
            left.clamp(CHANCE, UNWANTED_FOR)
        });
        match timeout(most, trip.read(server)).await {
            Ok(read) => {
                read?;
                break;
            }
            Err(_) if trip.is_abandoned() => {
                server.interrupt();
                trip.read(server).await?;
                break;
            }
            Err(_) if patience.is_some_and(|patience| begun.elapsed() >= patience) => {
                plan.is_not_asked_together();
                trip.scatter();
                server.interrupt();
                trip.read(server).await?;
                return Ok(server.is_settled());
            }
            Err(_) => {}
        }
    }
    let elapsed = begun.elapsed();
    let is_well = trip.is_well();
    trip.took(elapsed);
    if count == 1 {
        plan.took(elapsed, company.line(Kind::Read).pace.took(elapsed), false);
    } else {
        plan.were_together(count, elapsed, is_well);
    }
    let mut arrival = arrive(trip, server)?;
    match count {
        1 => arrival
            .back
            .into_iter()
            .for_each(|job| job.answer(Answer::Alone(false))),
        _ => back.append(&mut arrival.back),
    }
    if !server.is_settled() {
        return Ok(false);
    }
    learn_forms(&mut arrival.unknown, &pool.statements, server).await?;
    Ok(true)
}
