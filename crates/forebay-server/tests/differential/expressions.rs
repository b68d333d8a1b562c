//! Makes expressions of a wanted type, of whatever PostgreSQL has to offer for it.
//!
//! Promises: nothing that depends on the clock, on chance, or on an order that is not defined. Types are meant, not proven: a
//! part of the arguments is on purpose of another type than the one asked for, so that implicit casts, literals of unknown type
//! and ambiguous calls come up.

use crate::{
    facts::{self, Facts, Function, Producer, element_of, oid::*, resolve, type_name},
    literals::quoted,
    random::Random,
    tree::{Node, Oid, Part},
    values,
};

/// A column that can be named where an expression stands.
#[derive(Debug, Clone)]
pub(crate) struct Visible {
    pub(crate) sql: String,
    pub(crate) oid: Oid,
}

pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    pub(crate) facts: &'a Facts,
    pub(crate) visible: Vec<Visible>,
    /// How many of a hundred leaves are columns, where there are some.
    pub(crate) columns_percent: usize,
    pub(crate) parameters_percent: usize,
    /// How many of a hundred arguments are of a type that was not asked for.
    pub(crate) stray_percent: usize,
    /// How many of a hundred operands lose their parentheses.
    pub(crate) bare_percent: usize,
}

/// Types asked for where any would do, the usual ones more often.
const USUAL: &[Oid] = &[
    INT4,
    INT4,
    INT8,
    NUMERIC,
    NUMERIC,
    TEXT,
    TEXT,
    TEXT,
    BOOL,
    FLOAT8,
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
    INTERVAL,
    JSONB,
    JSON,
    UUID,
    INT2,
    FLOAT4,
    VARCHAR,
    BPCHAR,
    BYTEA,
    TIME,
    INT4_ARRAY,
    TEXT_ARRAY,
];

/// Types that PostgreSQL casts to one another when they meet.
const RELATED: &[&[Oid]] = &[
    &[INT2, INT4, INT8, NUMERIC, FLOAT4, FLOAT8],
    &[TEXT, VARCHAR, BPCHAR],
    &[DATE, TIMESTAMP, TIMESTAMPTZ],
    &[TIME, INTERVAL],
    &[JSON, JSONB],
];

impl<'a> Generator<'a> {
    pub(crate) fn new(random: Random, facts: &'a Facts) -> Self {
        Self {
            random,
            facts,
            visible: Vec::new(),
            columns_percent: 50,
            parameters_percent: 12,
            stray_percent: 10,
            bare_percent: 12,
        }
    }

    pub(crate) fn usual_type(&mut self) -> Oid {
        *self.random.pick(USUAL)
    }

    /// Nearly always one whose values can be compared, which those of json cannot.
    pub(crate) fn compared_type(&mut self) -> Oid {
        match self.usual_type() {
            JSON if self.random.chance(85) => JSONB,
            oid => oid,
        }
    }

    /// Another type that may stand where this one is wanted.
    pub(crate) fn stray_type(&mut self, oid: Oid) -> Oid {
        let related = RELATED.iter().find(|group| group.contains(&oid));
        match related {
            Some(group) if self.random.chance(75) => *self.random.pick(group),
            _ => self.usual_type(),
        }
    }

    pub(crate) fn expression(&mut self, oid: Oid, depth: usize) -> Node {
        let oid = if self.random.chance(self.stray_percent) {
            self.stray_type(oid)
        } else {
            oid
        };
        if depth == 0 || self.random.chance(12) {
            return self.leaf(oid);
        }
        if self.random.chance(40) {
            return self.form(oid, depth);
        }
        let facts = self.facts;
        let Some(producers) = facts.by_result.get(&oid) else {
            return self.form(oid, depth);
        };
        // By kind first: there are many more functions than operators.
        let wants_operator = self.random.chance(45);
        let fitting: Vec<&Producer> = producers
            .iter()
            .filter(|producer| matches!(producer, Producer::Operator(..)) == wants_operator)
            .collect();
        match fitting.is_empty() {
            true => self.form(oid, depth),
            false => {
                let producer = **self.random.pick(&fitting);
                self.produced(producer, depth - 1)
            }
        }
    }

    pub(crate) fn argument(&mut self, function: &str, index: usize, oid: Oid, depth: usize) -> Node {
        if let Some(hints) = values::hints(function, index, oid) {
            return Node::leaf(UNKNOWN, *self.random.pick(hints));
        }
        self.expression(oid, depth)
    }

    /// A call of this operator, function or cast.
    pub(crate) fn produced(&mut self, producer: Producer, depth: usize) -> Node {
        let facts = self.facts;
        match producer {
            Producer::Operator(index, element) => {
                let operator = &facts.operators[index];
                self.operation(
                    &operator.name,
                    operator.left,
                    operator.right,
                    operator.result,
                    element,
                    depth,
                )
            }
            Producer::Function(index, element) => self.call(&facts.functions[index], element, depth),
            Producer::Cast(index) => {
                let cast = facts.casts[index];
                let inner = if cast.from == UNKNOWN {
                    let value = self.value(cast.to);
                    Node::leaf(UNKNOWN, quoted(&value))
                } else {
                    self.expression(cast.from, depth)
                };
                self.cast(inner, cast.to)
            }
        }
    }

    pub(crate) fn operation(
        &mut self,
        name: &str,
        left: Oid,
        right: Oid,
        result: Oid,
        element: Option<Oid>,
        depth: usize,
    ) -> Node {
        let types = |oid: Oid| resolve(oid, element).unwrap_or(oid);
        let (left, right, result) = (types(left), types(right), types(result));
        let shift = matches!(name, "<<" | ">>");
        let right_node = if shift && self.random.chance(80) {
            Node::leaf(INT4, *self.random.pick(&["0", "1", "3", "31", "32", "64", "(-1)"]))
        } else if matches!(name, "->" | "->>") && right == INT4 {
            Node::leaf(INT4, *self.random.pick(&["0", "1", "(-1)", "5"]))
        } else if matches!(name, "->" | "->>" | "?") {
            Node::leaf(UNKNOWN, *self.random.pick(&["'a'", "'b'", "'k'", "'zz'", "'aa'"]))
        } else if matches!(name, "#>" | "#>>" | "#-" | "?|" | "?&") {
            Node::leaf(
                UNKNOWN,
                *self
                    .random
                    .pick(&["'{a}'", "'{b,0}'", "'{a,b,c}'", "ARRAY['a','b']", "'{}'", "'{b,-1}'"]),
            )
        } else if name.contains('~') && matches!(right, TEXT) {
            Node::leaf(
                UNKNOWN,
                *self
                    .random
                    .pick(&["'a%'", "'^a'", "'_b%'", "'[a-c]'", "'%'", "'(b|c)'", "'H.*o'", "'\\d+'"]),
            )
        } else {
            self.expression(right, depth)
        };
        let mut parts: Vec<Part> = Vec::new();
        let symbol = if left == 0 {
            format!("{name}({})", type_name(right))
        } else {
            let mut left_node = self.expression(left, depth);
            if right_node.oid == UNKNOWN && self.random.chance(75) {
                left_node = typed(left_node, left);
            }
            parts.extend(self.operand(left_node));
            parts.push(" ".into());
            format!("{name}({}, {})", type_name(left), type_name(right))
        };
        parts.push(format!("{name} ").into());
        parts.extend(self.operand(right_node));
        Node::loose(result, symbol, parts)
    }

    pub(crate) fn operand(&mut self, node: Node) -> Vec<Part> {
        if self.random.chance(self.bare_percent) {
            vec![node.into()]
        } else {
            node.in_parentheses()
        }
    }

    pub(crate) fn call(&mut self, function: &Function, element: Option<Oid>, depth: usize) -> Node {
        let mut types: Vec<Oid> = function.arguments.clone();
        if function.is_variadic {
            let last = types.pop().expect("a variadic function has arguments");
            let each = match last {
                2276 => None,
                2277 | 5078 => element,
                array => element_of(array),
            };
            let mut count = 1 + self.random.below(3);
            // Names and values in turn.
            if function.name.ends_with("build_object") && self.random.chance(90) {
                count = 2 * (1 + self.random.below(2));
            }
            for _ in 0..count {
                let each = each.unwrap_or_else(|| *self.random.pick(&[INT4, TEXT, NUMERIC, DATE, BOOL]));
                types.push(each);
            }
        }
        if function.defaults > 0 {
            let left_out = self.random.below(function.defaults + 1);
            types.truncate(types.len() - left_out);
        }
        let polymorphic: Vec<bool> = types.iter().map(|oid| facts::is_polymorphic(*oid)).collect();
        let types: Vec<Oid> = types
            .into_iter()
            .map(|oid| resolve(oid, element).unwrap_or(oid))
            .collect();
        let names: Vec<String> = types.iter().map(|oid| type_name(*oid)).collect();
        let result = resolve(function.result, element).unwrap_or(function.result);
        let mut parts: Vec<Part> = vec![format!("{}(", function.name).into()];
        for (index, oid) in types.iter().enumerate() {
            if index > 0 {
                parts.push(", ".into());
            }
            let mut argument = self.argument(&function.name, index, *oid, depth);
            if polymorphic[index] && self.random.chance(75) {
                argument = typed(argument, *oid);
            }
            parts.push(argument.into());
        }
        parts.push(")".into());
        Node::expression(result, format!("{}({})", function.name, names.join(", ")), parts)
    }

    /// A set-returning function's call.
    pub(crate) fn set_call(&mut self, index: usize) -> Node {
        let facts = self.facts;
        let element = Some(*self.random.pick(&[INT4, TEXT, NUMERIC]));
        self.call(&facts.sets[index], element, 0)
    }

    /// One of the spellings of a cast, sometimes with a length or precision.
    pub(crate) fn cast(&mut self, inner: Node, to: Oid) -> Node {
        let from = inner.oid;
        let name = self.modified_name(to);
        let symbol = format!("{}::{}", type_name(from), name.split('(').next().unwrap_or(&name));
        match self.random.below(3) {
            0 => Node::expression(
                to,
                symbol,
                vec!["CAST(".into(), inner.into(), format!(" AS {name})").into()],
            ),
            1 if matches!(to, INT2 | INT4 | INT8 | FLOAT4 | FLOAT8 | TEXT | DATE) => Node::expression(
                to,
                format!("{}({})", type_name(to), type_name(from)),
                vec![format!("{}(", type_name(to)).into(), inner.into(), ")".into()],
            ),
            _ => {
                let mut parts = inner.in_parentheses();
                parts.push(format!("::{name}").into());
                Node::expression(to, symbol, parts)
            }
        }
    }

    pub(crate) fn modified_name(&mut self, oid: Oid) -> String {
        let name = type_name(oid);
        let bare = self.random.chance(60);
        let choices: &[&str] = match oid {
            VARCHAR => &["varchar(1)", "varchar(3)", "character varying(10)", "varchar(5)"],
            BPCHAR => &["char(1)", "char(3)", "character(10)", "char", "bpchar(4)"],
            NUMERIC => &[
                "numeric(5,2)",
                "numeric(10)",
                "decimal(12,4)",
                "numeric(3,0)",
                "dec(4,1)",
            ],
            TIMESTAMP => &["timestamp(0)", "timestamp(3)", "timestamp(2) without time zone"],
            TIMESTAMPTZ => &["timestamptz(0)", "timestamptz(3)", "timestamp with time zone"],
            TIME => &["time(0)", "time(2)", "time without time zone"],
            INTERVAL => &[
                "interval(0)",
                "interval day to second",
                "interval year",
                "interval hour",
            ],
            INT4 => &["int", "integer"],
            INT8 => &["bigint"],
            INT2 => &["smallint"],
            FLOAT8 => &["double precision", "float", "float(53)"],
            FLOAT4 => &["real", "float(10)"],
            BOOL => &["boolean"],
            _ => return name,
        };
        if bare {
            name
        } else {
            (*self.random.pick(choices)).to_owned()
        }
    }
}

/// With a cast, where the type would have to be guessed.
pub(crate) fn typed(node: Node, oid: Oid) -> Node {
    if node.oid != UNKNOWN {
        return node;
    }
    let cast = format!("::{}", type_name(oid));
    Node::expression(oid, "", vec![node.into(), cast.into()])
}
