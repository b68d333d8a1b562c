//! What SQL has a grammar of its own for: conditions, CASE and its like, EXTRACT, TRIM, and operators in a row.

use crate::{
    expressions::{Generator, typed},
    facts::{self, array_of, oid::*, type_name},
    random::Random,
    tree::{Node, Oid, Part},
    values,
};

impl Generator<'_> {
    /// A form of SQL's own that gives this type.
    pub(crate) fn form(&mut self, oid: Oid, depth: usize) -> Node {
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
                let subject = self.compared_type();
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
                    let source = typed(self.expression(array, below), array);
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

    pub(crate) fn slice(&mut self, oid: Oid, below: usize) -> Node {
        let source = typed(self.expression(oid, below), oid);
        let bounds = *self.random.pick(&["1:2", "2:", ":1", "0:1", "2:1"]);
        Node::expression(
            oid,
            format!("{}[:]", type_name(oid)),
            vec!["(".into(), source.into(), format!(")[{bounds}]").into()],
        )
    }

    pub(crate) fn list_call(&mut self, name: &str, oid: Oid, below: usize) -> Node {
        let mut parts: Vec<Part> = vec![format!("{name}(").into(), self.expression(oid, below).into()];
        for _ in 0..1 + self.random.below(2) {
            let next = self.expression(oid, below);
            parts.push(Node::optional("", vec![", ".into(), next.into()]).into());
        }
        parts.push(")".into());
        Node::expression(oid, format!("{name}({})", type_name(oid)), parts)
    }

    pub(crate) fn extract(&mut self, below: usize) -> Node {
        let source = *self.random.pick(&[TIMESTAMP, TIMESTAMPTZ, DATE, TIME, INTERVAL]);
        let unit = self.random.pick(values::UNITS).trim_matches('\'').to_owned();
        let node = self.expression(source, below);
        Node::expression(
            NUMERIC,
            format!("EXTRACT({})", type_name(source)),
            vec![format!("EXTRACT({unit} FROM ").into(), node.into(), ")".into()],
        )
    }

    pub(crate) fn at_time_zone(&mut self, from: Oid, to: Oid, below: usize) -> Node {
        let zone = *self.random.pick(values::ZONES);
        let node = self.expression(from, below);
        let mut parts = node.in_parentheses();
        parts.push(format!(" AT TIME ZONE {zone}").into());
        Node::loose(to, format!("AT TIME ZONE({})", type_name(from)), parts)
    }

    pub(crate) fn text_form(&mut self, below: usize) -> Node {
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

    pub(crate) fn condition(&mut self, depth: usize) -> Node {
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
                        self.compared_type(),
                        *self.random.pick(&["IS NULL", "IS NOT NULL", "ISNULL", "NOTNULL"]),
                    ),
                };
                let inner = self.expression(oid, below);
                let mut parts = self.operand(inner);
                parts.push(format!(" {word}").into());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            6 => {
                let oid = self.compared_type();
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
                let oid = self.compared_type();
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
                let oid = self.compared_type();
                let word = *self.random.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                let (left, right) = (self.expression(oid, below), self.expression(oid, below));
                let mut parts = left.in_parentheses();
                parts.push(format!(" {word} ").into());
                parts.extend(right.in_parentheses());
                Node::loose(BOOL, format!("{word}({})", type_name(oid)), parts)
            }
            11 => {
                let (first, second) = (self.compared_type(), self.compared_type());
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
                let (first, second) = (self.compared_type(), self.compared_type());
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

    pub(crate) fn like(&mut self, below: usize) -> Node {
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

    pub(crate) fn comparison(&mut self, depth: usize) -> Node {
        let oid = self.compared_type();
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
