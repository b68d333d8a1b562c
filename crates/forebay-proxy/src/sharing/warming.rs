//! Warming: what was asked for most before is asked anew, as soon as somebody comes who may ask it.
//!
//! Promises: it is asked as those ask who have come, of the database that is theirs, and is answered to nobody but whom it would be answered to otherwise. It
//! takes no more than a [share](SHARE) of a pool's connections at a time. What cannot be remembered, or not [soon](WITHIN), is let be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::sleep;

use super::carrier::learn_apart;
use super::company::Company;
use super::known::Known;
use super::plan::Kind;
use super::unit::{Unit, unit};
use crate::memory::question::Question;
use crate::memory::{Asker, HotQuestion, Memory};
use crate::pool::Pool;

/// Of so many connections one is for that.
const SHARE: usize = 4;
/// So long it may take until a database is listened to, or somebody else has learnt of a statement.
const WITHIN: Duration = Duration::from_secs(30);
/// So often it is looked for that.
const LOOKED_EVERY: Duration = Duration::from_millis(20);

/// Somebody has come to this company: what is awaited of it is asked, and nobody waits for that. The server may be at each for so long.
pub(super) fn warm(pool: &Arc<Pool>, company: &Arc<Company>, time: Option<Duration>) {
    let Some((memory, _)) = pool.memory() else { return };
    let awaited = memory.awaited_of(&Asker {
        whose: pool.whose().clone(),
        beginning: company.beginning.clone(),
        settings: Arc::clone(&company.settings),
    });
    if awaited.is_empty() {
        return;
    }
    let (pool, company) = (Arc::clone(pool), Arc::clone(company));
    tokio::spawn(async move {
        let until = Instant::now() + WITHIN;
        let asked = stream::iter(awaited).for_each_concurrent(pool.limits().max_connections.div_ceil(SHARE), |hot| {
            let (pool, company) = (&pool, &company);
            async move {
                if let Some((memory, question)) = question_of(&hot, pool, company, time, until).await {
                    memory.warm(question, hot.uses).await;
                }
            }
        });
        asked.await;
    });
}

/// What is to be asked, as soon as its answer would be remembered.
async fn question_of(
    hot: &HotQuestion,
    pool: &Arc<Pool>,
    company: &Arc<Company>,
    time: Option<Duration>,
    until: Instant,
) -> Option<(Memory, Question)> {
    let (messages, definition) = hot.messages()?;
    let asked = unit(&messages)?;
    let known = match &asked {
        Unit::Simple(text) => Known::of_text(text, pool, company)?,
        Unit::Extended(_) => {
            let changes = pool.effects.schema_changes();
            let statement = pool.statements.of(&definition?, &company.settings, changes);
            // Where it has others by now it is not remembered.
            Known::of_statement(statement, hot.told(), &company.settings, pool, company)?
        }
    };
    let plan = &known.plan;
    let windows = plan.windows(&known.hints)?;
    if !known.may_travel || plan.touches.is_err() {
        return None;
    }
    loop {
        if plan.is_due(pool.effects.schema_changes()) {
            learn_apart(pool, company, plan).await;
        }
        match plan.may_be_remembered(true).filter(|_| company.may_share(Kind::Read)) {
            Some(of) if pool.hears(&of.tables, windows.max_lag) => {
                return known.question(&asked, windows, time, pool, company);
            }
            // It is not listened yet, or somebody else asks the catalog.
            Some(_) => {}
            None if plan.is_asked_about() => {}
            None => return None,
        }
        if Instant::now() > until {
            return None;
        }
        sleep(LOOKED_EVERY).await;
    }
}
