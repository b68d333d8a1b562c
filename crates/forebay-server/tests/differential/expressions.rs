//! Makes expressions of a wanted type, of whatever PostgreSQL has to offer for it.
//!
//! Promises: nothing that depends on the clock, on chance, or on an order that is not defined. Types are meant, not proven: a
//! part of the arguments is on purpose of another type than the one asked for, so that implicit casts, literals of unknown type
//! and ambiguous calls come up.

use crate::{
    facts::{self, Facts, Function, JSONPATH, Producer, array_of, element_of, oid::*, resolve, type_name},
    random::Random,
    tree::{Node, Oid, Parameter, Part, Shape},
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

    /// Another type that may stand where this one is wanted.
    fn stray_type(&mut self, oid: Oid) -> Oid {
        let related = RELATED.iter().find(|group| group.contains(&oid));
        match related {
            Some(group) if self.random.chance(75) => *self.random.pick(group),
            _ => self.usual_type(),
        }
    }

    // ---- leaves

    pub(crate) fn leaf(&mut self, oid: Oid) -> Node {
        if oid == JSONPATH || oid == REGTYPE {
            let hints = values::hints("", 0, JSONPATH).expect("paths are listed");
            let text = if oid == JSONPATH {
                *self.random.pick(hints)
            } else {
                "pg_typeof(1)"
            };
            return Node::leaf(oid, text);
        }
        if self.random.chance(self.columns_percent) {
            let fitting: Vec<&Visible> = self.visible.iter().filter(|column| column.oid == oid).collect();
            if !fitting.is_empty() {
                let column = *self.random.pick(&fitting);
                return Node::leaf(column.oid, column.sql.clone());
            }
        }
        if self.random.chance(6) {
            let text = if self.random.chance(50) {
                "NULL".to_owned()
            } else {
                format!("NULL::{}", type_name(oid))
            };
            return if text == "NULL" {
                Node::leaf(UNKNOWN, text)
            } else {
                Node::leaf(oid, format!("({text})"))
            };
        }
        if let Some(element) = element_of(oid) {
            if self.random.chance(45) {
                return self.constructed_array(element, oid);
            }
        }
        let value = self.value(oid);
        if self.random.chance(self.parameters_percent) {
            return self.parameter(oid, &value);
        }
        self.literal(oid, &value)
    }

    /// The text of a value.
    pub(crate) fn value(&mut self, oid: Oid) -> String {
        if let Some(element) = element_of(oid) {
            return self.array_value(element);
        }
        (*self.random.pick(values::of(oid))).to_owned()
    }

    fn array_value(&mut self, element: Oid) -> String {
        let count = self.random.below(4);
        let mut items = Vec::new();
        for _ in 0..count {
            let value = self.value(element);
            items.push(match self.random.below(10) {
                0 => "NULL".to_owned(),
                _ if matches!(element, INT2 | INT4 | INT8 | BOOL | NUMERIC | FLOAT4 | FLOAT8) => value,
                _ => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            });
        }
        let list = format!("{{{}}}", items.join(","));
        if count > 0 && self.random.chance(10) {
            return format!("{{{list},{list}}}");
        }
        list
    }

    fn constructed_array(&mut self, element: Oid, oid: Oid) -> Node {
        let mut parts: Vec<Part> = vec!["ARRAY[".into()];
        for index in 0..1 + self.random.below(3) {
            if index > 0 {
                parts.push(", ".into());
            }
            parts.push(self.leaf(element).into());
        }
        parts.push("]".into());
        Node::expression(oid, format!("ARRAY[{}]", type_name(element)), parts)
    }

    pub(crate) fn parameter(&mut self, oid: Oid, value: &str) -> Node {
        let declared = if self.random.chance(50) { oid } else { 0 };
        let binary = if declared != 0 && self.random.chance(25) {
            binary_of(oid, value)
        } else {
            None
        };
        let is_binary = binary.is_some();
        let value_bytes = if self.random.chance(6) {
            None
        } else {
            Some(binary.unwrap_or_else(|| value.as_bytes().to_vec()))
        };
        let literal = match &value_bytes {
            None => "NULL".to_owned(),
            Some(_) => quoted(value),
        };
        let shape = Shape::Parameter(Parameter {
            declared,
            value: value_bytes,
            is_binary,
        });
        let parameter = Node::new(
            shape,
            if declared == 0 { UNKNOWN } else { oid },
            "",
            vec![literal.into()],
        );
        if declared == 0 && self.random.chance(60) {
            return Node::expression(oid, "", vec![parameter.into(), format!("::{}", type_name(oid)).into()]);
        }
        parameter
    }

    /// One of the ways to write a value.
    pub(crate) fn literal(&mut self, oid: Oid, value: &str) -> Node {
        let name = type_name(oid);
        let is_number = matches!(oid, INT2 | INT4 | INT8 | NUMERIC | FLOAT4 | FLOAT8)
            && value.parse::<f64>().is_ok_and(f64::is_finite)
            && value
                .chars()
                .all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter));
        if is_number && self.random.chance(55) {
            let written = match oid {
                INT4 | NUMERIC if value.contains('.') || oid == INT4 => value.to_owned(),
                _ if self.random.chance(30) => value.to_owned(),
                _ => format!("{value}::{name}"),
            };
            let negative = value.starts_with('-');
            let plain = written == value;
            return if (negative || !plain) && !self.random.chance(10) {
                let inner = if negative && !plain {
                    format!("(({value})::{name})")
                } else {
                    format!("({written})")
                };
                Node::leaf(oid, inner)
            } else {
                Node::leaf(oid, written)
            };
        }
        if oid == BOOL && self.random.chance(60) {
            return Node::leaf(
                oid,
                *self
                    .random
                    .pick(&[value, if value == "true" { "TRUE" } else { "FALSE" }]),
            );
        }
        let text = self.text_literal(value);
        // An array has no typed literal of the form `type 'text'`.
        let ways = if element_of(oid).is_some() || matches!(oid, VARCHAR | BPCHAR) {
            [30, 0, 50, 20]
        } else {
            [30, 20, 35, 15]
        };
        match self.random.weighted(&ways) {
            0 => Node::leaf(UNKNOWN, text),
            1 => Node::leaf(oid, format!("{name} {}", quoted(value))),
            2 => Node::leaf(oid, format!("{text}::{name}")),
            _ => Node::leaf(oid, format!("CAST({text} AS {name})")),
        }
    }

    fn text_literal(&mut self, value: &str) -> String {
        match self.random.below(12) {
            0 => format!("$${value}$$"),
            1 => format!("$q${value}$q$"),
            2 => format!(
                "E'{}'",
                value
                    .replace('\\', "\\\\")
                    .replace('\'', "\\'")
                    .replace('\n', "\\n")
                    .replace('\t', "\\t")
            ),
            3 if value.is_ascii() => format!("U&'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
            _ => quoted(value),
        }
    }

    // ---- expressions

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

    fn argument(&mut self, function: &str, index: usize, oid: Oid, depth: usize) -> Node {
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

    fn operation(
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
            let left_node = self.expression(left, depth);
            parts.extend(self.operand(left_node));
            parts.push(" ".into());
            format!("{name}({}, {})", type_name(left), type_name(right))
        };
        parts.push(format!("{name} ").into());
        parts.extend(self.operand(right_node));
        Node::loose(result, symbol, parts)
    }

    fn operand(&mut self, node: Node) -> Vec<Part> {
        if self.random.chance(self.bare_percent) {
            vec![node.into()]
        } else {
            node.in_parentheses()
        }
    }

    fn call(&mut self, function: &Function, element: Option<Oid>, depth: usize) -> Node {
        let mut types: Vec<Oid> = function.arguments.clone();
        if function.is_variadic {
            let last = types.pop().expect("a variadic function has arguments");
            let each = match last {
                2276 => None,
                2277 | 5078 => element,
                array => element_of(array),
            };
            for _ in 0..1 + self.random.below(3) {
                let each = each.unwrap_or_else(|| *self.random.pick(&[INT4, TEXT, NUMERIC, DATE, BOOL]));
                types.push(each);
            }
        }
        if function.defaults > 0 {
            let left_out = self.random.below(function.defaults + 1);
            types.truncate(types.len() - left_out);
        }
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
            parts.push(self.argument(&function.name, index, *oid, depth).into());
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

    fn modified_name(&mut self, oid: Oid) -> String {
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

    // ---- SQL's own forms

    /// A form of SQL's own that gives this type.
    fn form(&mut self, oid: Oid, depth: usize) -> Node {
        let below = depth - 1;
        match (oid, self.random.below(100)) {
            (BOOL, 0..85) => self.condition(depth),
            (TEXT, 0..45) => self.text_form(below),
            (INT4, 0..15) => {
                let (needle, text) = (self.leaf(TEXT), self.expression(TEXT, below));
                Node::expression(
                    INT4,
                    "POSITION(IN)",
                    vec![
                        "POSITION(".into(),
                        needle.into(),
                        " IN ".into(),
                        text.into(),
                        ")".into(),
                    ],
                )
            }
            (NUMERIC, 0..25) => self.extract(below),
            (TIMESTAMP, 0..30) => self.at_time_zone(TIMESTAMPTZ, TIMESTAMP, below),
            (TIMESTAMPTZ, 0..30) => self.at_time_zone(TIMESTAMP, TIMESTAMPTZ, below),
            (INTERVAL, 0..25) => {
                let text = *self.random.pick(&[
                    "INTERVAL '1' YEAR",
                    "INTERVAL '1-2' YEAR TO MONTH",
                    "INTERVAL '3' DAY",
                    "INTERVAL '4:05' HOUR TO MINUTE",
                    "INTERVAL '1.5' HOUR",
                    "INTERVAL '1 2:03:04.567' DAY TO SECOND",
                    "INTERVAL(2) '1.2345 seconds'",
                    "INTERVAL '5' MINUTE",
                    "INTERVAL '-7' MONTH",
                    "INTERVAL '2' SECOND",
                ]);
                Node::leaf(INTERVAL, text)
            }
            _ => self.choice(oid, below),
        }
    }

    /// CASE, COALESCE and their like, of any type.
    pub(crate) fn choice(&mut self, oid: Oid, below: usize) -> Node {
        let name = type_name(oid);
        match self.random.below(10) {
            0 | 1 => {
                let mut parts: Vec<Part> = vec!["CASE".into()];
                for _ in 0..1 + self.random.below(2) {
                    let arm = vec![
                        " WHEN ".into(),
                        self.condition_of(below).into(),
                        " THEN ".into(),
                        self.expression(oid, below).into(),
                    ];
                    parts.extend(arm);
                }
                if self.random.chance(80) {
                    let otherwise = self.expression(oid, below);
                    parts.push(Node::optional("", vec![" ELSE ".into(), otherwise.into()]).into());
                }
                parts.push(" END".into());
                Node::expression(oid, format!("CASE({name})"), parts)
            }
            2 => {
                let subject = self.usual_type();
                let subject_node = self.expression(subject, below);
                let mut parts: Vec<Part> = vec!["CASE ".into()];
                parts.extend(subject_node.in_parentheses());
                for _ in 0..1 + self.random.below(2) {
                    let when = self.leaf(subject);
                    let then = self.expression(oid, below);
                    parts.extend([" WHEN ".into(), when.into(), " THEN ".into(), then.into()]);
                }
                parts.push(" END".into());
                Node::expression(oid, format!("CASE {} WHEN({name})", type_name(subject)), parts)
            }
            3 | 4 => self.list_call("COALESCE", oid, below),
            5 => {
                let (left, right) = (self.expression(oid, below), self.leaf(oid));
                Node::expression(
                    oid,
                    format!("NULLIF({name})"),
                    vec!["NULLIF(".into(), left.into(), ", ".into(), right.into(), ")".into()],
                )
            }
            6 => self.list_call("GREATEST", oid, below),
            7 => self.list_call("LEAST", oid, below),
            8 => match array_of(oid) {
                Some(array) => {
                    let source = self.expression(array, below);
                    let index = *self.random.pick(&["1", "2", "0", "3", "-1"]);
                    Node::expression(
                        oid,
                        format!("{}[]", type_name(array)),
                        vec!["(".into(), source.into(), format!(")[{index}]").into()],
                    )
                }
                None => self.slice(oid, below),
            },
            _ => {
                let inner = self.expression(oid, below);
                Node::expression(oid, "(SELECT)", vec!["(SELECT ".into(), inner.into(), ")".into()])
            }
        }
    }

    fn slice(&mut self, oid: Oid, below: usize) -> Node {
        let source = self.expression(oid, below);
        let bounds = *self.random.pick(&["1:2", "2:", ":1", "0:1", "2:1"]);
        Node::expression(
            oid,
            format!("{}[:]", type_name(oid)),
            vec!["(".into(), source.into(), format!(")[{bounds}]").into()],
        )
    }

    fn list_call(&mut self, name: &str, oid: Oid, below: usize) -> Node {
        let mut parts: Vec<Part> = vec![format!("{name}(").into(), self.expression(oid, below).into()];
        for _ in 0..1 + self.random.below(2) {
            let next = self.expression(oid, below);
            parts.push(Node::optional("", vec![", ".into(), next.into()]).into());
        }
        parts.push(")".into());
        Node::expression(oid, format!("{name}({})", type_name(oid)), parts)
    }

    fn extract(&mut self, below: usize) -> Node {
        let source = *self.random.pick(&[TIMESTAMP, TIMESTAMPTZ, DATE, TIME, INTERVAL]);
        let unit = self.random.pick(values::UNITS).trim_matches('\'').to_owned();
        let node = self.expression(source, below);
        Node::expression(
            NUMERIC,
            format!("EXTRACT({})", type_name(source)),
            vec![format!("EXTRACT({unit} FROM ").into(), node.into(), ")".into()],
        )
    }

    fn at_time_zone(&mut self, from: Oid, to: Oid, below: usize) -> Node {
        let zone = *self.random.pick(values::ZONES);
        let node = self.expression(from, below);
        let mut parts = node.in_parentheses();
        parts.push(format!(" AT TIME ZONE {zone}").into());
        Node::loose(to, format!("AT TIME ZONE({})", type_name(from)), parts)
    }

    fn text_form(&mut self, below: usize) -> Node {
        let text = self.expression(TEXT, below);
        let number = |random: &mut Random| *random.pick(&["1", "2", "0", "-1", "3", "10"]);
        let (first, second) = (number(&mut self.random), number(&mut self.random));
        match self.random.below(9) {
            0 => Node::expression(
                TEXT,
                "SUBSTRING(FROM FOR)",
                vec![
                    "SUBSTRING(".into(),
                    text.into(),
                    format!(" FROM {first} FOR {second})").into(),
                ],
            ),
            1 => Node::expression(
                TEXT,
                "SUBSTRING(FROM)",
                vec!["SUBSTRING(".into(), text.into(), format!(" FROM {first})").into()],
            ),
            2 => {
                let with = self.leaf(TEXT);
                Node::expression(
                    TEXT,
                    "OVERLAY",
                    vec![
                        "OVERLAY(".into(),
                        text.into(),
                        " PLACING ".into(),
                        with.into(),
                        format!(" FROM {first} FOR {second})").into(),
                    ],
                )
            }
            3 => {
                let side = *self.random.pick(&["BOTH", "LEADING", "TRAILING"]);
                let letters = *self.random.pick(&["'a'", "' '", "'xyz'", "'hH'", "''"]);
                Node::expression(
                    TEXT,
                    format!("TRIM({side})"),
                    vec![format!("TRIM({side} {letters} FROM ").into(), text.into(), ")".into()],
                )
            }
            4 => Node::expression(TEXT, "TRIM", vec!["TRIM(".into(), text.into(), ")".into()]),
            5 => Node::expression(
                TEXT,
                "SUBSTRING(pattern)",
                vec!["SUBSTRING(".into(), text.into(), " FROM '[a-z]+(.)')".into()],
            ),
            6 => {
                let mut parts = text.in_parentheses();
                parts.push(" COLLATE \"C\"".into());
                Node::loose(TEXT, "COLLATE", parts)
            }
            7 => {
                let oid = self.usual_type();
                let other = self.expression(oid, below);
                let mut parts = self.operand(text);
                parts.push(" || ".into());
                parts.extend(self.operand(other));
                Node::loose(TEXT, format!("||(text, {})", type_name(oid)), parts)
            }
            _ => Node::expression(
                TEXT,
                "SUBSTRING(SIMILAR)",
                vec![
                    "SUBSTRING(".into(),
                    text.into(),
                    " SIMILAR '%#\"[a-z]+#\"%' ESCAPE '#')".into(),
                ],
            ),
        }
    }

    /// A condition as WHERE or WHEN takes it.
    pub(crate) fn condition_of(&mut self, depth: usize) -> Node {
        if depth == 0 {
            self.comparison(0)
        } else {
            self.condition(depth)
        }
    }

    fn condition(&mut self, depth: usize) -> Node {
        let below = depth - 1;
        match self.random.below(15) {
            0..3 => self.comparison(below),
            3 => {
                let word = *self.random.pick(&["AND", "OR"]);
                let (left, right) = (self.condition_of(below), self.condition_of(below));
                let mut parts = self.operand(left);
                parts.push(format!(" {word} ").into());
                parts.extend(self.operand(right));
                Node::loose(BOOL, word, parts)
            }
            4 => {
                let inner = self.condition_of(below);
                let mut parts: Vec<Part> = vec!["NOT ".into()];
                parts.extend(self.operand(inner));
                Node::loose(BOOL, "NOT", parts)
            }
            5 => {
                let (oid, word) = match self.random.below(2) {
                    0 => (
                        BOOL,
                        *self.random.pick(&[
                            "IS TRUE",
                            "IS NOT TRUE",
                            "IS FALSE",
                            "IS NOT FALSE",
                            "IS UNKNOWN",
                            "IS NOT UNKNOWN",
                        ]),
                    ),
                    _ => (
                        self.usual_type(),
                        *self.random.pick(&["IS NULL", "IS NOT NULL", "ISNULL", "NOTNULL"]),
                    ),
                };
                let inner = self.expression(oid, below);
                let mut parts = self.operand(inner);
                parts.push(format!(" {word}").into());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            6 => {
                let oid = self.usual_type();
                let word = *self
                    .random
                    .pick(&["BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN SYMMETRIC"]);
                let (subject, low, high) = (
                    self.expression(oid, below),
                    self.expression(oid, 0),
                    self.expression(oid, 0),
                );
                let mut parts = self.operand(subject);
                parts.push(format!(" {word} ").into());
                parts.extend(low.in_parentheses());
                parts.push(" AND ".into());
                parts.extend(high.in_parentheses());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            7 => {
                let oid = self.usual_type();
                let word = *self.random.pick(&["IN", "NOT IN"]);
                let subject = self.expression(oid, below);
                let mut parts = self.operand(subject);
                parts.extend([format!(" {word} (").into(), self.expression(oid, 0).into()]);
                for _ in 0..self.random.below(3) {
                    let next = self.expression(oid, 0);
                    parts.push(Node::optional("", vec![", ".into(), next.into()]).into());
                }
                parts.push(")".into());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            8 | 9 => self.like(below),
            10 => {
                let oid = self.usual_type();
                let word = *self.random.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                let (left, right) = (self.expression(oid, below), self.expression(oid, below));
                let mut parts = left.in_parentheses();
                parts.push(format!(" {word} ").into());
                parts.extend(right.in_parentheses());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            11 => {
                let (first, second) = (self.usual_type(), self.usual_type());
                let operator = *self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let word = *self.random.pick(&["ROW", ""]);
                let mut parts: Vec<Part> = vec![
                    format!("{word}(").into(),
                    self.expression(first, below).into(),
                    ", ".into(),
                    self.expression(second, 0).into(),
                ];
                parts.extend([
                    format!(") {operator} {word}(").into(),
                    self.expression(first, 0).into(),
                    ", ".into(),
                    self.expression(second, 0).into(),
                    ")".into(),
                ]);
                Node::loose(BOOL, format!("ROW {operator}"), parts)
            }
            12 => {
                let oid = *self.random.pick(facts::ELEMENTS);
                let array = array_of(oid).expect("elements have arrays");
                let word = *self.random.pick(&["ANY", "ALL", "SOME"]);
                let operator = *self.random.pick(&["=", "<>", "<", ">="]);
                let (left, right) = (self.expression(oid, below), self.expression(array, 0));
                let mut parts = self.operand(left);
                parts.extend([format!(" {operator} {word} (").into(), right.into(), ")".into()]);
                Node::loose(BOOL, format!("{operator} {word}({})", type_name(array)), parts)
            }
            13 => {
                let oid = *self.random.pick(&[DATE, TIMESTAMP, TIMESTAMPTZ, TIME]);
                let mut parts: Vec<Part> = vec![
                    "(".into(),
                    self.leaf(oid).into(),
                    ", ".into(),
                    self.leaf(oid).into(),
                    ") OVERLAPS (".into(),
                ];
                let last = if self.random.chance(40) { INTERVAL } else { oid };
                parts.extend([self.leaf(oid).into(), ", ".into(), self.leaf(last).into(), ")".into()]);
                Node::loose(BOOL, format!("OVERLAPS({})", type_name(oid)), parts)
            }
            _ => {
                let word = *self.random.pick(&["IS NULL", "IS NOT NULL"]);
                let (first, second) = (self.usual_type(), self.usual_type());
                let parts = vec![
                    "ROW(".into(),
                    self.leaf(first).into(),
                    ", ".into(),
                    self.leaf(second).into(),
                    format!(") {word}").into(),
                ];
                Node::loose(BOOL, format!("ROW {word}"), parts)
            }
        }
    }

    fn like(&mut self, below: usize) -> Node {
        let word = *self.random.pick(&[
            "LIKE",
            "NOT LIKE",
            "ILIKE",
            "NOT ILIKE",
            "SIMILAR TO",
            "NOT SIMILAR TO",
            "~",
            "!~",
            "~*",
        ]);
        let oid = *self.random.pick(&[TEXT, TEXT, VARCHAR, BPCHAR]);
        let pattern = *self.random.pick(&[
            "'a%'",
            "'%b_'",
            "'H%o%'",
            "'%'",
            "''",
            "'_'",
            "'%\\%%'",
            "'(a|b)%'",
            "'[a-z]+'",
            "'h\u{e9}%'",
            "'A.c'",
            "'%\\'",
        ]);
        let text = self.expression(oid, below);
        let mut parts = self.operand(text);
        parts.push(format!(" {word} ").into());
        if self.random.chance(20) {
            let other = self.expression(TEXT, below);
            parts.extend(other.in_parentheses());
        } else {
            parts.push(Node::leaf(UNKNOWN, pattern).into());
        }
        if !word.contains('~') && self.random.chance(15) {
            let escape = *self.random.pick(&["'#'", "''", "'\\'", "'ab'"]);
            parts.push(Node::optional("ESCAPE", vec![format!(" ESCAPE {escape}").into()]).into());
        }
        Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
    }

    fn comparison(&mut self, depth: usize) -> Node {
        let oid = self.usual_type();
        let operator = *self.random.pick(&["=", "<>", "<", "<=", ">", ">=", "!="]);
        let (left, right) = (self.expression(oid, depth), self.expression(oid, depth));
        let mut parts = self.operand(left);
        parts.push(format!(" {operator} ").into());
        parts.extend(self.operand(right));
        Node::loose(
            BOOL,
            format!("{operator}({}, {})", type_name(oid), type_name(oid)),
            parts,
        )
    }

    /// Operators in a row without parentheses: what binds tighter is for the server to know.
    pub(crate) fn chain(&mut self) -> Node {
        const CHAINS: &[(&[&str], &[Oid])] = &[
            (
                &["+", "-", "*", "/", "%", "^", "=", "<", ">=", "<>"],
                &[INT4, NUMERIC, INT8, FLOAT8, INT2],
            ),
            (
                &["AND", "OR", "=", "<>", "IS NOT DISTINCT FROM", "AND NOT", "OR NOT"],
                &[BOOL],
            ),
            (
                &["||", "=", "<", "LIKE", "||", "~", "NOT LIKE", "IN ('a') ="],
                &[TEXT, VARCHAR],
            ),
            (&["+", "-", "<", ">", "="], &[INTERVAL, TIMESTAMP, DATE, INT4]),
            (&["&", "|", "#", "<<", ">>", "+", "*", "-"], &[INT4, INT8]),
            (&["->", "->>", "||", "@>", "#>", "-"], &[JSONB, TEXT]),
        ];
        let (operators, types) = *self.random.pick(CHAINS);
        let mut parts: Vec<Part> = Vec::new();
        let mut is_compared = false;
        for index in 0..3 + self.random.below(3) {
            if index > 0 {
                let mut operator = *self.random.pick(operators);
                // Comparisons in a row are an error of syntax: now and then, not most of the time.
                while is_compared && is_comparison(operator) && !self.random.chance(10) {
                    operator = *self.random.pick(operators);
                }
                is_compared = (is_compared || is_comparison(operator)) && !is_junction(operator);
                let shown = format!(" {operator} ");
                parts.push(shown.into());
            }
            let prefix = match types[0] {
                INT4 if self.random.chance(12) => *self.random.pick(&["- ", "+ ", "~ ", "@ "]),
                BOOL if self.random.chance(15) => "NOT ",
                _ => "",
            };
            let oid = *self.random.pick(types);
            let leaf = self.leaf(oid);
            parts.extend([prefix.into(), leaf.into()]);
            if self.random.chance(8) {
                parts.push(
                    (*self
                        .random
                        .pick(&[" IS NULL", "::text", " COLLATE \"C\"", "::int4", " ISNULL"]))
                    .into(),
                );
            }
        }
        Node::loose(0, "chain of operators", parts)
    }
}

fn is_comparison(operator: &str) -> bool {
    matches!(operator, "=" | "<" | ">" | ">=" | "<>")
        || operator.starts_with("IS ")
        || operator.contains("LIKE")
        || operator.contains("IN ")
}

fn is_junction(operator: &str) -> bool {
    operator.starts_with("AND") || operator.starts_with("OR")
}

/// As a standard literal.
pub(crate) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The binary form of a value, for types where it takes no code to speak of.
fn binary_of(oid: Oid, value: &str) -> Option<Vec<u8>> {
    Some(match oid {
        BOOL => vec![u8::from(value == "true")],
        INT2 => value.parse::<i16>().ok()?.to_be_bytes().to_vec(),
        INT4 => value.parse::<i32>().ok()?.to_be_bytes().to_vec(),
        INT8 => value.parse::<i64>().ok()?.to_be_bytes().to_vec(),
        FLOAT4 => value.parse::<f32>().ok()?.to_be_bytes().to_vec(),
        FLOAT8 => value.parse::<f64>().ok()?.to_be_bytes().to_vec(),
        TEXT | VARCHAR | BPCHAR | JSON => value.as_bytes().to_vec(),
        _ => return None,
    })
}
