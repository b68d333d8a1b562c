//! Company: sessions of one user at one database that began alike and have set the same, who may travel together.
//!
//! Promises: whoever is in one company has an equal map of all that it has set. What is kept of statements is bounded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};

use super::beside::Beside;
use super::facts::Terms;
use super::filling::Filling;
use super::flight::Flights;
use super::joint::Joint;
use super::line::Line;
use super::plan::{Kind, Plan};
use super::rules::Rules;
use super::terms::Sharing;
use crate::beginning::Beginning;
use crate::figures::Top;
use crate::memory::question::{Common, Form};
use crate::settings::Settings;
use crate::statements::{Statement, Statements};

/// The setting that says what a session's program is called.
const APPLICATION: &str = "application_name";
/// So many companies a pool has; sessions that have set yet something else go alone.
const COMPANIES_MAX: usize = 256;
/// So many carry those who read at once.
const READ_CARRIERS_MAX: usize = 8;
/// The same, of those who change rows: two commits share a flush of the server's.
const CHANGE_CARRIERS_MAX: usize = 2;
/// So many statements a company knows.
const PLANS_MAX: usize = 1024;

/// So many ways to say how old its answers may be are known of one.
const FORMS_MAX: usize = 8;

/// By the number of a plan, and the types of parameters.
type OfLiterals = HashMap<(u64, Vec<u32>), Arc<Statement>, foldhash::fast::RandomState>;

/// All companies of a pool.
#[derive(Debug)]
pub(crate) struct Companies {
    sharing: Sharing,
    statements: Arc<Top>,
    all: Mutex<Vec<Arc<Company>>>,
    rules: RwLock<Rules>,
    /// How often they have changed.
    generation: AtomicU64,
    join: AtomicBool,
}

/// Sessions that may travel together.
#[derive(Debug)]
pub(crate) struct Company {
    /// What tells it from all others, also of other pools.
    pub(crate) number: u64,
    pub(crate) beginning: Beginning,
    pub(crate) settings: Arc<Settings>,
    /// So many who read or insert a row each are asked as one.
    pub(crate) min_jointly: usize,
    /// What was asked so often is asked about at the catalog.
    pub(crate) min_asked: u64,
    /// What is said of their statements, as it was the so manieth time.
    rules: Rules,
    /// By that, some reads may be answered from memory inside of a transaction.
    pub(crate) is_told_inside: bool,
    pub(crate) generation: u64,
    pub(crate) flights: Arc<Flights>,
    pub(crate) filling: Filling,
    plans: RwLock<HashMap<Box<str>, Arc<Plan>, foldhash::fast::RandomState>>,
    /// What is counted of those of all companies.
    statements: Arc<Top>,
    /// How many who execute a statement are asked as one, by its number.
    joints: Mutex<HashMap<u64, Arc<Joint>, foldhash::fast::RandomState>>,
    /// Statements that are prepared instead of a text with literals, by its plan's number and the parameters' types.
    of_literals: Mutex<OfLiterals>,
    /// What questions have in common that memory has, or that are asked just now, by their plans' numbers.
    forms: RwLock<HashMap<u64, Vec<Weak<Form>>, foldhash::fast::RandomState>>,
    /// What the settings say of sharing; none before the server was asked.
    terms: Mutex<Option<Terms>>,
    /// What its carriers ask beside.
    beside: OnceLock<Beside>,
    pub(crate) reads: Arc<Line>,
    pub(crate) changes: Arc<Line>,
}

impl Companies {
    /// `statements`: where they are counted, by their texts.
    pub(crate) fn new(sharing: Sharing, rules: Rules, statements: Arc<Top>) -> Self {
        Self {
            sharing,
            statements,
            all: Mutex::default(),
            generation: AtomicU64::new(0),
            join: AtomicBool::new(rules.join()),
            rules: RwLock::new(rules),
        }
    }

    /// From now on these rules hold, for statements that are offered from now on.
    pub(crate) fn change(&self, rules: Rules) {
        let mut now = self.rules.write();
        if *now == rules {
            return;
        }
        self.join.store(rules.join(), Ordering::Relaxed);
        *now = rules;
        // What is known of statements is by the rules of before: it is found anew.
        self.generation.fetch_add(1, Ordering::Release);
        self.all.lock().clear();
    }

    /// What holds now.
    pub(crate) fn rules(&self) -> Rules {
        self.rules.read().clone()
    }

    /// How often rules have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether reads may join others that are on their way.
    pub(crate) fn join(&self) -> bool {
        self.join.load(Ordering::Relaxed)
    }

    /// The one of those who began like this and have set this; none where there are too many.
    pub(crate) fn of(&self, beginning: &Beginning, settings: &Arc<Settings>) -> Option<Arc<Company>> {
        let rules = self.rules.read();
        let settings = match rules.ignore_applications() {
            true => &Arc::new(settings.without(APPLICATION)),
            false => settings,
        };
        let mut all = self.all.lock();
        if let Some(known) = all
            .iter()
            .find(|known| known.settings == *settings && known.beginning == *beginning)
        {
            return Some(Arc::clone(known));
        }
        if all.len() >= COMPANIES_MAX {
            // Those that nobody is in.
            all.retain(|company| Arc::strong_count(company) > 1);
        }
        (all.len() < COMPANIES_MAX).then(|| {
            static LAST: AtomicU64 = AtomicU64::new(0);
            let begun = beginning.settings().iter().find(|(name, _)| name == APPLICATION);
            let application = settings.get(APPLICATION).or(begun.map(|(_, value)| value.as_str()));
            let company = Arc::new(Company {
                number: LAST.fetch_add(1, Ordering::Relaxed),
                beginning: beginning.clone(),
                settings: Arc::clone(settings),
                min_jointly: self.sharing.min_jointly,
                min_asked: self.sharing.min_asked,
                is_told_inside: rules.tell_in_transactions(),
                rules: rules.of_application(application),
                generation: self.generation(),
                flights: Arc::default(),
                filling: Filling::default(),
                plans: RwLock::default(),
                statements: Arc::clone(&self.statements),
                joints: Mutex::default(),
                of_literals: Mutex::default(),
                forms: RwLock::default(),
                terms: Mutex::new(None),
                beside: OnceLock::new(),
                reads: Line::new(self.sharing.max_reads_alone, READ_CARRIERS_MAX, self.sharing.quick),
                changes: Line::new(self.sharing.max_changes_alone, CHANGE_CARRIERS_MAX, self.sharing.quick),
            });
            all.push(Arc::clone(&company));
            company
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Company>> {
        self.all.lock().clone()
    }
}

impl Company {
    /// What is known of the statement of this text; none where too many are known.
    pub(crate) fn plan(&self, text: &str, normal: &str) -> Option<Arc<Plan>> {
        if let Some(known) = self.plans.read().get(normal) {
            return Some(Arc::clone(known));
        }
        let plan = Arc::new(Plan::of(text, &self.rules).counted_in(&self.statements));
        let mut plans = self.plans.write();
        if plans.len() >= PLANS_MAX {
            // A new beginning: what is in use is there again soon.
            plans.clear();
        }
        Some(Arc::clone(plans.entry(normal.into()).or_insert(plan)))
    }

    /// How many who execute this statement are asked as one, as far as is known.
    pub(crate) fn joint(&self, statement: &Statement) -> Arc<Joint> {
        let mut joints = self.joints.lock();
        if joints.len() >= PLANS_MAX && !joints.contains_key(&statement.number()) {
            joints.clear();
        }
        Arc::clone(joints.entry(statement.number()).or_default())
    }

    /// What questions of this plan have in common that are alike in this: one for all of them, as far as there are not too many.
    pub(crate) fn form(&self, plan: &Plan, common: Common, make: impl FnOnce(Common) -> Form) -> Arc<Form> {
        let live = |forms: &Vec<Weak<Form>>| {
            let mut forms = forms.iter().filter_map(Weak::upgrade);
            forms.find(|form| *form.common() == common)
        };
        if let Some(known) = self.forms.read().get(&plan.number).and_then(live) {
            return known;
        }
        let mut forms = self.forms.write();
        if forms.len() >= PLANS_MAX && !forms.contains_key(&plan.number) {
            forms.clear();
        }
        let of_plan = forms.entry(plan.number).or_default();
        if let Some(known) = live(of_plan) {
            return known;
        }
        let form = Arc::new(make(common));
        of_plan.retain(|form| form.strong_count() > 0);
        if of_plan.len() < FORMS_MAX {
            of_plan.push(Arc::downgrade(&form));
        }
        form
    }

    /// The statement with parameters of these types that stands for a text of this form.
    pub(crate) fn statement_of(&self, plan: &Plan, types: Vec<u32>, statements: &Statements) -> Arc<Statement> {
        let (key, changes) = ((plan.number, types), plan.schema_changes());
        let mut known = self.of_literals.lock();
        if let Some(statement) = known.get(&key).filter(|statement| statement.is_of(changes)) {
            return Arc::clone(statement);
        }
        if known.len() >= PLANS_MAX {
            known.clear();
        }
        let statement = statements.ours(plan.text_for_many(), &key.1, &self.settings, changes);
        known.insert(key, Arc::clone(&statement));
        statement
    }

    /// What its sessions' application is called, if that matters.
    pub(crate) fn application(&self) -> Option<&str> {
        self.settings.get(APPLICATION)
    }

    /// The names of what else they have set, as they began and since.
    pub(crate) fn settings_named(&self) -> Vec<&str> {
        let begun = self.beginning.settings().iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = begun.chain(self.settings.names()).collect();
        names.retain(|name| !["user", "database", APPLICATION].contains(name));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All that is known of statements.
    pub(crate) fn plans(&self) -> Vec<Arc<Plan>> {
        self.plans.read().values().cloned().collect()
    }

    pub(crate) fn line(&self, kind: Kind) -> &Arc<Line> {
        match kind {
            Kind::Read => &self.reads,
            Kind::Change => &self.changes,
        }
    }

    /// Whether those of this kind may travel together.
    pub(crate) fn may_share(&self, kind: Kind) -> bool {
        self.terms.lock().is_some_and(|terms| match kind {
            Kind::Read => terms.reads,
            Kind::Change => terms.changes,
        })
    }

    pub(crate) fn beside(&self, statements: &Statements) -> &Beside {
        self.beside.get_or_init(|| Beside::new(statements, &self.settings))
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms.lock().unwrap_or(Terms::NONE)
    }

    pub(crate) fn learn(&self, terms: Terms) {
        *self.terms.lock() = Some(terms);
    }
}
