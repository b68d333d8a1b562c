//! Makes cases: one statement, or several that belong together, around generated expressions.
//!
//! Promises: a case follows from the seed and its number alone; it leaves the tables as it found them; whether its rows have an
//! order is told with it.

use crate::{
    connection::Send, expressions::Generator, facts::Facts, queries::Maker, random::Random, tables::Tables, tree::Node,
};

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) statement: Node,
    /// Whether its rows come in an order that it says.
    pub(crate) ordered: bool,
    pub(crate) is_simple: bool,
    pub(crate) binary: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// What to say to get this one again.
    pub(crate) origin: String,
    pub(crate) steps: Vec<Step>,
}

impl Case {
    pub(crate) fn of_statement(origin: String, statement: Node, ordered: bool) -> Self {
        let step = Step {
            statement,
            ordered,
            is_simple: false,
            binary: false,
        };
        Self {
            origin,
            steps: vec![step],
        }
    }

    pub(crate) fn sends(&self) -> Vec<Send> {
        let send = |step: &Step| Send {
            rendered: step.statement.rendered(!step.is_simple),
            is_simple: step.is_simple,
            binary: step.binary,
        };
        self.steps.iter().map(send).collect()
    }

    pub(crate) fn ordered(&self) -> Vec<bool> {
        self.steps.iter().map(|step| step.ordered).collect()
    }

    pub(crate) fn symbols(&self) -> Vec<&str> {
        self.steps.iter().flat_map(|step| step.statement.symbols()).collect()
    }
}

pub(crate) struct Cases<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) tables: &'a Tables,
    pub(crate) seed: u64,
}

impl Cases<'_> {
    /// The case of that number. Even numbers go through everything that can be called, one after another, beginning somewhere
    /// else with every seed; odd ones are made up.
    pub(crate) fn case(&self, number: u64) -> Case {
        let random = Random::of_case(self.seed, number);
        let mut maker = Maker {
            make: Generator::new(random, self.facts),
            tables: self.tables,
        };
        let mut steps = if number.is_multiple_of(2) {
            self.sweep(&mut maker, number / 2)
        } else {
            maker.made_up()
        };
        let simple = maker.make.random.chance(12);
        let binary = !simple && maker.make.random.chance(8);
        for step in &mut steps {
            step.is_simple = simple;
            step.binary = binary;
        }
        Case {
            origin: format!("FOREBAY_SEED={} FOREBAY_CASE={number}", self.seed),
            steps,
        }
    }

    fn sweep(&self, maker: &mut Maker<'_>, number: u64) -> Vec<Step> {
        let facts = self.facts;
        let kinds = [
            facts.producers.len(),
            facts.aggregates.len(),
            facts.sets.len(),
            facts.windows.len(),
        ];
        let all = kinds.iter().sum::<usize>() as u64;
        let start = Random::of_case(self.seed, u64::MAX).next() % all;
        let mut index = usize::try_from((start + number) % all).expect("it is below the number of facts");
        // Exact types twice out of three times.
        maker.make.stray_percent = if maker.make.random.chance(66) { 0 } else { 35 };
        if index < kinds[0] {
            return maker.swept(facts.producers[index]);
        }
        index -= kinds[0];
        if index < kinds[1] {
            return maker.aggregated(index);
        }
        index -= kinds[1];
        if index < kinds[2] {
            return maker.set(index);
        }
        maker.windowed(index - kinds[2])
    }
}
