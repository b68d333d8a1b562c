//! A case: a schema, and runs of statements with the values of their parameters.
//!
//! Promises: each row that a case writes has a `tag` of its own, so that rows can be told apart whatever they are numbered.
//! Knows no dialect: texts and schemas are the databases' own.

use std::fmt;
use std::sync::Arc;

use forebay::write::{CancelToken, Value, Write};
use proptest::prelude::*;

/// What fills a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The row's own number.
    Tag,
    /// A key: small, and so often there already, unless the run is of keys that differ.
    Key,
    /// A key of a second constraint.
    Other,
    /// A number that is not a key.
    Number,
    /// A short text, mostly.
    Note,
    /// A float.
    Real,
    /// A row of the table of parents, mostly.
    Parent,
    /// An id that is given rather than numbered: below 0, so that no numbering comes to it.
    Id,
}

/// A text, and what its parameters are.
pub(crate) struct Template {
    pub(crate) sql: &'static str,
    pub(crate) slots: &'static [Slot],
    /// Of all texts, how often it is drawn.
    pub(crate) weight: u32,
}

/// Values for one statement's parameters, whichever it has of them; two of each for rows that come in pairs.
#[derive(Debug, Clone)]
struct Values {
    keys: [Value; 2],
    others: [Value; 2],
    numbers: [Value; 2],
    notes: [Value; 2],
    reals: [Value; 2],
    parents: [Value; 2],
    ids: [Value; 2],
    is_cancelled: bool,
    wants_one: bool,
}

/// One statement.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) sql: Arc<str>,
    pub(crate) parameters: Vec<Value>,
    /// Cancelled before anything of it could run.
    pub(crate) is_cancelled: bool,
    /// Its caller takes only an outcome of one row.
    pub(crate) wants_one: bool,
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.sql, self.parameters)?;
        if self.is_cancelled {
            formatter.write_str(", cancelled")?;
        }
        if self.wants_one {
            formatter.write_str(", if it is one row")?;
        }
        Ok(())
    }
}

/// Why a caller that wants one row refuses another count.
pub(crate) const NOT_ONE: &str = "not one row";

impl Step {
    pub(crate) fn write(&self) -> Write {
        let token = CancelToken::new();
        if self.is_cancelled {
            token.cancel();
        }
        let write = Write::new(Arc::clone(&self.sql), self.parameters.clone()).cancel(token);
        if self.wants_one {
            write.accept_if(|outcome| match outcome.rows_affected {
                1 => Ok(()),
                _ => Err(NOT_ONE.to_owned()),
            })
        } else {
            write
        }
    }
}

/// A schema and what is written to it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) schema: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// Of one batch.
    pub(crate) max_items: usize,
}

/// Cases of these schemas and texts.
pub(crate) fn cases(
    schemas: BoxedStrategy<Vec<String>>,
    templates: &'static [Template],
) -> impl Strategy<Value = Case> + use<> {
    let weighted: Vec<usize> = templates
        .iter()
        .enumerate()
        .flat_map(|(position, template)| std::iter::repeat_n(position, template.weight as usize))
        .collect();
    let length = prop_oneof![3 => 1..4_usize, 2 => 4..40_usize, 1 => 40..90_usize];
    let many = length.prop_flat_map(|length| proptest::collection::vec(values(), 1..=length));
    let run = (proptest::sample::select(weighted), any::<bool>(), many);
    let runs = proptest::collection::vec(run, 1..10);
    (schemas, runs, 1..130_usize).prop_map(|(schema, runs, max_items)| {
        let mut steps = Vec::new();
        for (template, is_distinct, many) in runs {
            let template = &templates[template];
            let sql: Arc<str> = template.sql.into();
            for values in many {
                let tag = (steps.len() as i64 + 1) * 10;
                steps.push(Step {
                    sql: Arc::clone(&sql),
                    parameters: values.fill(template.slots, tag, is_distinct),
                    is_cancelled: values.is_cancelled,
                    // What changes the schema is not undone.
                    wants_one: values.wants_one && !template.slots.is_empty(),
                });
            }
        }
        Case {
            schema,
            steps,
            max_items,
        }
    })
}

impl Values {
    fn fill(&self, slots: &[Slot], tag: i64, is_distinct: bool) -> Vec<Value> {
        let mut seen: Vec<Slot> = Vec::with_capacity(slots.len());
        let mut fill = |&slot: &Slot| {
            let nth = seen.iter().filter(|other| **other == slot).count();
            seen.push(slot);
            let key = |value: &Value| match value {
                Value::Integer(small) if is_distinct && (0..100).contains(small) => {
                    Value::Integer(100 + tag + nth as i64)
                }
                other => other.clone(),
            };
            match slot {
                Slot::Tag => Value::Integer(tag + nth as i64),
                Slot::Key => key(&self.keys[nth % 2]),
                Slot::Other => key(&self.others[nth % 2]),
                Slot::Number => self.numbers[nth % 2].clone(),
                Slot::Note => self.notes[nth % 2].clone(),
                Slot::Real => self.reals[nth % 2].clone(),
                Slot::Parent => self.parents[nth % 2].clone(),
                Slot::Id => self.ids[nth % 2].clone(),
            }
        };
        slots.iter().map(&mut fill).collect()
    }
}

fn values() -> impl Strategy<Value = Values> {
    let integers = |most: i64| (0..most).prop_map(Value::Integer);
    let key = || prop_oneof![30 => integers(60), 1 => odd_number()];
    let number = || prop_oneof![30 => integers(60), 2 => (60..120_i64).prop_map(Value::Integer), 1 => odd_number()];
    const TEXTS: [&str; 8] = ["", "a", "it's", "b\\n", "ä☃", "NULL", "{a,b}", "eight---"];
    let note = || {
        prop_oneof![
            30 => proptest::sample::select(&TEXTS[..]).prop_map(Value::from),
            1 => proptest::sample::select(vec![Value::Null, Value::from("more than eight"), Value::Integer(7)]),
        ]
    };
    let real = || {
        prop_oneof![
            20 => (-8..8_i64).prop_map(|quarters| Value::Real(quarters as f64 / 4.0)),
            1 => proptest::sample::select(vec![Value::Null, Value::Integer(3), Value::from("1e3"), Value::from("x")]),
        ]
    };
    let parent = || prop_oneof![20 => integers(6), 1 => integers(9), 1 => Just(Value::Null)];
    let id = || prop_oneof![20 => (-40..0_i64).prop_map(Value::Integer), 1 => Just(Value::Null), 1 => Just(Value::from("x"))];
    let numbers = ([key(), key()], [key(), key()], [number(), number()]);
    let rest = ([note(), note()], [real(), real()], [parent(), parent()], [id(), id()]);
    let caller = (proptest::bool::weighted(0.01), proptest::bool::weighted(0.01));
    (numbers, rest, caller).prop_map(
        |((keys, others, numbers), (notes, reals, parents, ids), caller)| Values {
            keys,
            others,
            numbers,
            notes,
            reals,
            parents,
            ids,
            is_cancelled: caller.0,
            wants_one: caller.1,
        },
    )
}

/// What a column of integers takes in part, or not at all.
fn odd_number() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        Value::Null,
        Value::Null,
        Value::from("x"),
        Value::from("5"),
        Value::from(" 6 "),
        Value::Integer(-1),
        Value::Integer(40_000),
        Value::Integer(5_000_000_000),
        Value::Real(1.5),
    ])
}
