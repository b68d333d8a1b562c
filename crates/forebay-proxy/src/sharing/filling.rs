//! Filling: what is asked for memory. Whoever gets a connection for one question takes those along that ask the same statement and wait for one.
//!
//! Promises: each question waits for a connection in its own right, and is carried once. So many go together as that takes hardly longer than one alone
//! does: where the way is what takes long, many; where the work is, one. Who goes on for longer than that holds up nobody: the others go alone. Where one
//! fails, the others are asked again without it. Where it comes to nothing, whoever waits goes alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ask::Answer;
use super::carrier::{UNWANTED_FOR, arrive, learn_forms, set_as};
use super::company::Company;
use super::job::Job;
use super::learning::first_answer;
use super::plan::{HELD_UP, Kind};
use super::trip::{Asks, Lost, Trip};
use crate::hearing::ASK_SNAPSHOT;
use crate::pool::Pool;
use crate::server::{Note, Server};

/// Most that go together.
const TOGETHER_MAX: usize = 128;
/// So many to begin with, where nothing is known.
const TOGETHER_FIRST: usize = 2;
/// Their answers, at most, in bytes: all are held until all are there.
const ANSWERS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What is no matter of how many go.
const CHANCE: Duration = Duration::from_millis(1);
/// So many times as long as one alone is held up.
const PATIENCE: u32 = 4;
/// Where two take twice as long as one they are not asked together for so long.
const ALONE_FOR: Duration = Duration::from_secs(10);

/// Questions of a company that wait for a connection.
#[derive(Debug, Default)]
pub(crate) struct Filling(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The number of the one that came last.
    last: u64,
    /// In the order in which they came.
    all: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    job: Job,
    /// Dropped when somebody takes it.
    _is_taken: oneshot::Sender<()>,
}

/// Something that waits, as whoever waits for its connection knows it. Dropped, it does not wait any more.
struct Waits {
    company: Arc<Company>,
    number: u64,
    taken: oneshot::Receiver<()>,
}

impl Filling {
    fn enter(&self, job: Job) -> (u64, oneshot::Receiver<()>) {
        let (is_taken, taken) = oneshot::channel();
        let mut waiting = self.0.lock();
        waiting.last += 1;
        let number = waiting.last;
        waiting.all.push_back(Entry {
            number,
            job,
            _is_taken: is_taken,
        });
        (number, taken)
    }

    /// The one of this number, and those behind or before it that ask the same statement, as many as go together. None if somebody was faster.
    fn take(&self, number: u64, may_share: bool) -> Vec<Job> {
        let mut waiting = self.0.lock();
        let Some(own) = waiting.remove(number) else {
            return Vec::new();
        };
        let plan = Arc::clone(&own.plan);
        let most = if may_share { plan.most_together() } else { 1 };
        let mut taken = vec![own];
        let mut at = 0;
        while taken.len() < most && at < waiting.all.len() {
            match Arc::ptr_eq(&waiting.all[at].job.plan, &plan) {
                true => taken.extend(waiting.all.remove(at).map(|entry| entry.job)),
                false => at += 1,
            }
        }
        // Who has gone wants nothing; whoever was taken for himself goes in any case.
        let mut is_first = true;
        taken.retain(|job| std::mem::take(&mut is_first) || !job.is_abandoned());
        taken
    }

    fn leave(&self, number: u64) {
        let left = self.0.lock().remove(number);
        drop(left);
    }
}

impl Waiting {
    fn remove(&mut self, number: u64) -> Option<Job> {
        // The first one is the next one, more often than not.
        let at = self.all.iter().position(|entry| entry.number == number)?;
        self.all.remove(at).map(|entry| entry.job)
    }
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
pub(super) async fn lead(
    pool: &Pool,
    company: &Company,
    mut jobs: Vec<Job>,
    back: &mut Vec<Job>,
    server: &mut Server,
) -> Result<bool, Lost> {
    if !set_as(company, server).await? {
        return Ok(false);
    }
    let (plan, count) = (Arc::clone(&jobs[0].plan), jobs.len());
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
        schema_changes: pool.effects.schema_changes(),
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

/// How many who ask one statement go together.
#[derive(Debug)]
pub(super) struct Together {
    most: usize,
    /// Until when one goes alone.
    alone_until: Option<Instant>,
}

impl Default for Together {
    fn default() -> Self {
        Self {
            most: TOGETHER_FIRST,
            alone_until: None,
        }
    }
}

impl Together {
    /// So many at most, where an answer may have so many bytes.
    pub(super) fn most(&mut self, bytes_max: u64, now: Instant) -> usize {
        if self.alone_until.is_some_and(|until| now >= until) {
            *self = Self::default();
        }
        let room = usize::try_from(ANSWERS_BYTES_MAX / bytes_max.max(1)).unwrap_or(usize::MAX);
        self.most.min(room).max(1)
    }

    /// So many took so long, where one takes `alone`; `is_well`: none has failed.
    pub(super) fn took(&mut self, count: usize, elapsed: Duration, alone: Duration, is_well: bool, now: Instant) {
        if is_well && elapsed <= alone + alone / 2 + CHANCE {
            self.most = self.most.max((count * 2).min(TOGETHER_MAX));
        } else if !is_well || elapsed > alone * 7 / 4 + CHANCE {
            self.most = self.most.min(count / 2);
            if self.most < 2 {
                self.alone(now);
            }
        }
    }

    /// They were given up.
    pub(super) fn alone(&mut self, now: Instant) {
        self.most = 1;
        self.alone_until = Some(now + ALONE_FOR);
    }
}

/// How long some may be under way together, where one takes so long alone.
pub(super) fn patience(alone: Duration) -> Duration {
    (alone * PATIENCE).max(alone + HELD_UP * PATIENCE)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::ask::Ask;
    use super::super::plan::Plan;
    use super::super::rules::Rules;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn as_many_go_together_as_take_hardly_longer_than_one() {
        let now = Instant::now();
        let mut together = Together::default();
        // The way takes 190 ms, and each a tenth.
        let takes = |count: usize| MS * 190 + MS * u32::try_from(count).unwrap() / 10;
        for most in [2, 4, 8, 16, 32, 64, 128, 128] {
            let count = together.most(1024, now);
            assert_eq!(count, most);
            together.took(count, takes(count), takes(1), true, now);
        }
        assert_eq!(together.most(1 << 20, now), 8, "their answers are held");
        assert_eq!(together.most(1 << 24, now), 1);
        // It is the work that takes long.
        for most in [64, 32, 16, 8, 4, 2, 1] {
            let count = together.most(1, now);
            together.took(count, MS * 10 * u32::try_from(count).unwrap(), MS * 10, true, now);
            assert_eq!(together.most(1, now), most);
        }
        assert_eq!(together.most(1, now + ALONE_FOR / 2), 1);
        assert_eq!(together.most(1, now + ALONE_FOR), 2, "it is tried again");
    }

    #[test]
    fn what_fails_goes_with_fewer() {
        let now = Instant::now();
        let mut together = Together {
            most: 100,
            alone_until: None,
        };
        together.took(100, MS, MS, false, now);
        assert_eq!(together.most(1, now), 50);
        // What few take says nothing of more.
        together.took(3, MS, MS, true, now);
        assert_eq!(together.most(1, now), 50);
        together.alone(now);
        assert_eq!(together.most(1, now), 1);
    }

    fn job(plan: &Arc<Plan>) -> (Job, oneshot::Receiver<Answer>) {
        Job::new(Arc::clone(plan), Ask::Simple(Bytes::new()), None, None, None)
    }

    #[test]
    fn whoever_has_a_connection_takes_those_along_who_ask_the_same_and_nobody_twice() {
        let filling = Filling::default();
        let plans = ["SELECT a FROM t", "SELECT b FROM t"].map(|text| Arc::new(Plan::of(text, &Rules::default())));
        let mut told = Vec::new();
        let mut entered: Vec<_> = [0, 1, 0, 0, 1]
            .into_iter()
            .map(|of| {
                let (job, receiver) = job(&plans[of]);
                told.push(receiver);
                filling.enter(job)
            })
            .collect();
        plans.iter().for_each(|plan| plan.took(MS, true, false));
        let second = filling.take(entered[1].0, true);
        assert_eq!(second.len(), 2, "both of that statement");
        assert!(filling.take(entered[4].0, true).is_empty(), "it was taken along");
        assert!(
            entered[4]
                .1
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
        );
        assert!(
            entered[0]
                .1
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
        );
        filling.leave(entered[0].0);
        // Who has gone is not carried for others.
        told.remove(3);
        assert_eq!(filling.take(entered[2].0, true).len(), 1);
        assert!(filling.0.lock().all.is_empty());
    }
}
