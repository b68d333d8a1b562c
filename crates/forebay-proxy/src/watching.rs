//! Watching: what a client's own transaction does to rows that answers are remembered of, from what it asks to when it is told that it is done.
//!
//! Promises: memory hears of a change before its client does, and after the server has made it.

use std::sync::Arc;

use forebay_sql::{begins_read_committed, may_make_tables};

use crate::memory::does::Does;
use crate::memory::watch::{Course, Watch};
use crate::sharing::carrier::learn_beside;
use crate::sharing::known::plan_of;
use crate::sharing::plan::{Kind, Plan};
use crate::sharing::restriction::Given;
use crate::state::State;
use crate::statements::{Statement, text_of};

impl State {
    /// A text is sent on to be run.
    pub(crate) fn watch_text(&mut self, text: &[u8]) {
        self.watch.makes_tables |= std::str::from_utf8(text).is_ok_and(may_make_tables);
        if !self.pool.remembers() || self.watch.does == Does::Anything {
            return;
        }
        let plan = self.company().and_then(|company| plan_of(&company, text));
        self.watch_plan(text, plan, Some(&Given::Text(text)));
    }

    /// What was prepared is, with what stands in the body of a Bind behind the name.
    pub(crate) fn watch_statement(&mut self, statement: Option<&Statement>, bound: &[u8]) {
        self.watch.makes_tables |= statement.is_some_and(Statement::may_make_tables);
        if !self.pool.remembers() || self.watch.does == Does::Anything {
            return;
        }
        let plan = statement.and_then(|statement| {
            let company = self.company()?;
            statement.plan(company.number, || plan_of(&company, text_of(statement.definition())))
        });
        let definition = statement.map(Statement::definition);
        let given = definition.map(|definition| Given::Bound { definition, bound });
        let text = statement.map_or(&[][..], |statement| text_of(statement.definition()));
        self.watch_plan(text, plan, given.as_ref());
    }

    fn watch_plan(&mut self, text: &[u8], plan: Option<Arc<Plan>>, given: Option<&Given<'_>>) {
        let changes = self.pool.effects.schema_changes();
        let reads = plan.as_ref().is_some_and(|plan| plan.is_known_to_read(changes));
        if let Some(plan) = plan.as_ref().filter(|_| !reads && self.watch.course == Course::Reads) {
            // It may set something by a view, or write: whoever begins behind it is to know.
            self.learn_of_reading(plan, changes);
        }
        let effects = &self.pool.effects;
        let does = plan.map_or(Does::Anything, |plan| match plan.does(changes, given) {
            Does::Nothing if plan.calls_what_writes(effects) => Does::Anything,
            does => does,
        });
        let to_begin = || std::str::from_utf8(text).is_ok_and(begins_read_committed);
        // What it may leave may be a setting that it has made.
        let to_read = reads && does == Does::Nothing && !self.is_suspect;
        self.watch
            .course
            .asks(self.watch.course == Course::Untouched && to_begin(), to_read);
        if does != Does::Nothing {
            self.watch.judged_at.get_or_insert(changes);
        }
        self.watch.does.add(does);
    }

    /// The catalog is asked about a statement that is asked inside of a transaction in which memory may answer.
    fn learn_of_reading(&mut self, plan: &Arc<Plan>, changes: u64) {
        let company = self.company().filter(|company| company.is_told_inside);
        let company = company.filter(|_| plan.kind() == Some(Kind::Read) && plan.is_due(changes));
        if let Some(company) = company {
            learn_beside(Arc::clone(&self.pool), company, Arc::clone(plan));
        }
    }

    /// Something is sent on of which nothing can be told.
    pub(crate) fn watch_anything(&mut self) {
        self.watch.does = Does::Anything;
        self.watch.course = Course::Other;
    }

    /// The client is about to be told that something is done, or all of it.
    pub(crate) fn has_done(&mut self) {
        if self.watch.makes_tables {
            self.pool.effects.has_made_tables();
        }
        if self.watch.is_of_all_databases
            && let Some((memory, _)) = self.pool.memory()
        {
            memory.all_may_be_others();
        }
        let is_as_judged = || {
            let changes = self.pool.effects.schema_changes();
            self.watch.judged_at.is_none_or(|judged_at| judged_at == changes)
        };
        match (self.watch.is_whole && is_as_judged(), &self.watch.does) {
            (true, Does::Nothing) => {}
            (true, does) => self.pool.has_changed(does),
            (false, _) => self.pool.has_changed(&Does::Anything),
        }
    }

    /// No transaction is under way any more, and nothing is asked.
    pub(crate) fn begins_anew(&mut self) {
        self.watch = Watch {
            does: Does::Nothing,
            is_whole: self.pool.remembers(),
            course: Course::Untouched,
            makes_tables: false,
            is_of_all_databases: false,
            judged_at: None,
        };
    }
}
