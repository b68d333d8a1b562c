//! Known: what is known of what is asked, whoever asks, and the question that memory is asked for it.
//!
//! Promises: whoever asks the same in the same company asks the same question. Knows no client.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use forebay_sql::{Hints, mentions_a_moment, without_comments};

use super::company::Company;
use super::fill::Fill;
use super::plan::Plan;
use super::unit::Unit;
use crate::columns::Columns;
use crate::figures::Counting;
use crate::memory::question::{Common, Form, Question, Wording};
use crate::memory::{Memory, Windows};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::statements::{Statement, hints_of, name_of, tells_a_moment, tells_a_moment_by_value, text_of};

thread_local! {
    /// Room for a text without its literals.
    static NORMAL: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What is known of what is asked.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) plan: Arc<Plan>,
    /// By the extended protocol.
    pub(super) statement: Option<Arc<Statement>>,
    pub(super) hints: Hints,
    pub(super) caller: Option<Arc<Counting>>,
    pub(super) may_travel: bool,
    /// The columns that it is to have, as whoever asks was told before; none where he is told anew.
    pub(super) told: Option<Columns>,
}

impl Known {
    /// Of a text that was sent as it is.
    pub(super) fn of_text(text: &[u8], pool: &Pool, company: &Company) -> Option<Self> {
        let (hints, caller) = hints_of(text);
        Some(Self {
            plan: plan_of(company, text)?,
            statement: None,
            hints,
            caller: caller.map(|caller| pool.tops.callers.of(&name_of(caller))),
            may_travel: !tells_a_moment(text),
            told: None,
        })
    }

    /// Of a statement that is executed under these settings, by whom was told that it has these columns.
    pub(super) fn of_statement(
        statement: Arc<Statement>,
        told: Option<Columns>,
        settings: &Arc<Settings>,
        pool: &Pool,
        company: &Company,
    ) -> Option<Self> {
        let text = text_of(statement.definition());
        Some(Self {
            may_travel: statement.was_prepared_under(settings) && !statement.names_a_moment(),
            hints: statement.hints(),
            plan: statement.plan(company.number, || plan_of(company, text))?,
            caller: statement.caller(&pool.tops.callers).cloned(),
            statement: Some(statement),
            told: told.filter(|told| *told != Columns::NONE),
        })
    }

    /// What memory is asked; none where there is nothing that it could have. The server may be at it for as long as `time` says.
    pub(super) fn question(
        &self,
        asked: &Unit<'_>,
        windows: Windows,
        time: Option<Duration>,
        pool: &Arc<Pool>,
        company: &Arc<Company>,
    ) -> Option<(Memory, Question)> {
        let (memory, place) = pool.memory()?;
        let plan = &self.plan;
        let is_hinted = self.hints.ttl.is_some();
        let common = Common {
            company: company.number,
            windows,
            is_hinted,
            // What a statement says itself is no rule's.
            rule: plan.ruled.room.clone().filter(|_| !is_hinted),
            place,
            time,
        };
        let wording = wording_of(asked, self.statement.as_ref(), self.told)?;
        let form = company.form(plan, common, |common| Form::new(common, Fill::new(pool, company, plan)));
        Some((memory, Question::new(form, wording, self.caller.clone())))
    }

    /// Memory has no answer.
    pub(super) fn is_missed(&self) {
        self.plan.is_missed();
        if let Some(caller) = &self.caller {
            caller.was_missed();
        }
    }

    /// Memory had the answer.
    pub(super) fn was_remembered(&self) {
        self.plan.was_remembered();
        if let Some(caller) = &self.caller {
            caller.was_remembered();
        }
    }
}

/// In which words it is asked, whoever asks; none where what it is answered hangs on when it is asked.
fn wording_of(asked: &Unit<'_>, statement: Option<&Arc<Statement>>, told: Option<Columns>) -> Option<Wording> {
    match asked {
        Unit::Simple(text) => {
            let text = std::str::from_utf8(text).ok()?;
            let told = without_comments(text)?;
            if mentions_a_moment(&told) {
                return None;
            }
            // What a planner is told in its comments is a part of it.
            let is_planned = text.contains("/*+");
            Some(Wording::Text(if is_planned { text.into() } else { told.into() }))
        }
        Unit::Extended(extended) => {
            if tells_a_moment_by_value(extended.bound) {
                return None;
            }
            let statement = statement?;
            statement.told_apart_by()?;
            Some(Wording::Bound {
                statement: Arc::clone(statement),
                bound: extended.bound.into(),
                steps: extended.steps,
                told,
            })
        }
    }
}

/// What is known of the statement of this text.
pub(crate) fn plan_of(company: &Company, text: &[u8]) -> Option<Arc<Plan>> {
    let text = std::str::from_utf8(text).ok()?;
    NORMAL.with_borrow_mut(|normal| {
        normal.clear();
        match forebay_sql::normal(text, normal) {
            true => company.plan(text, normal),
            false => None,
        }
    })
}
