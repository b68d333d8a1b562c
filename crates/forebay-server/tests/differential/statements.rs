//! Makes cases: one statement, or several that belong together, around generated expressions.
//!
//! Promises: a case follows from the seed and its number alone; it leaves the tables as it found them; whether its rows have an
//! order is told with it.

use crate::{
    connection::Send,
    expressions::{Generator, Visible},
    facts::{Facts, Producer, oid::*, resolve, type_name},
    random::Random,
    tables::Tables,
    tree::{Node, Oid, Part},
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

macro_rules! parts {
    ($($part:expr),* $(,)?) => { vec![$(Part::from($part)),*] };
}

/// Types whose equal values are all written alike, so that it does not matter which of them stands for a group.
const KEYS: &[Oid] = &[
    BOOL,
    INT2,
    INT4,
    INT8,
    TEXT,
    VARCHAR,
    BYTEA,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
];

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
        let mut steps = if number % 2 == 0 {
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

struct Maker<'a> {
    make: Generator<'a>,
    tables: &'a Tables,
}

fn step(statement: Node, ordered: bool) -> Step {
    Step {
        statement,
        ordered,
        is_simple: false,
        binary: false,
    }
}

fn one(statement: Node, ordered: bool) -> Vec<Step> {
    vec![step(statement, ordered)]
}

impl Maker<'_> {
    fn see_everything(&mut self, prefix: &str) {
        self.make.visible = self
            .tables
            .columns
            .iter()
            .map(|column| Visible {
                sql: format!("{prefix}{}", column.sql),
                oid: column.oid,
            })
            .collect();
        self.make.visible.push(Visible {
            sql: format!("{prefix}id"),
            oid: INT4,
        });
    }

    /// An expression by itself: over literals, over a row of the table, or over all of them.
    fn selected(&mut self, make: impl FnOnce(&mut Self) -> Node) -> Vec<Step> {
        match self.make.random.weighted(&[45, 35, 20]) {
            0 => {
                let expression = make(self);
                one(Node::clause("", parts!["SELECT ", expression]), true)
            }
            1 => {
                self.see_everything("");
                self.make.columns_percent = 65;
                let expression = make(self);
                let row = 1 + self.make.random.below(12);
                one(
                    Node::clause(
                        "",
                        parts!["SELECT ", expression, format!(" FROM d_every WHERE id = {row}")],
                    ),
                    true,
                )
            }
            _ => {
                self.see_everything("");
                self.make.columns_percent = 65;
                let expression = make(self);
                one(
                    Node::clause("", parts!["SELECT id, ", expression, " FROM d_every ORDER BY id"]),
                    true,
                )
            }
        }
    }

    fn swept(&mut self, producer: Producer) -> Vec<Step> {
        self.selected(|maker| maker.make.produced(producer, 0))
    }

    fn made_up(&mut self) -> Vec<Step> {
        match self.make.random.weighted(&[30, 12, 12, 8, 8, 6, 6, 8, 6, 4, 12]) {
            0 => {
                let oid = self.make.usual_type();
                let depth = 1 + self.make.random.below(3);
                self.selected(|maker| maker.make.expression(oid, depth))
            }
            1 => self.selected(|maker| maker.make.chain()),
            2 => self.filtered(),
            3 => self.grouped(),
            4 => self.joined(),
            5 => self.combined(),
            6 => self.values(),
            7 => self.subquery(),
            8 => self.with(),
            9 => self.several(),
            _ => self.changed(),
        }
    }

    /// Several expressions in one list: names, and types beside one another.
    fn several(&mut self) -> Vec<Step> {
        let mut list = parts!["SELECT "];
        for index in 0..2 + self.make.random.below(3) {
            let oid = self.make.usual_type();
            let mut expression = parts![self.make.expression(oid, 1)];
            if self.make.random.chance(25) {
                expression.push(
                    (*self
                        .make
                        .random
                        .pick(&[" AS x", " AS \"Two Words\"", " y", " AS value"]))
                    .into(),
                );
            }
            if index > 0 {
                expression.insert(0, ", ".into());
                list.push(Node::optional("", expression).into());
            } else {
                list.extend(expression);
            }
        }
        one(Node::clause("", list), true)
    }

    fn filtered(&mut self) -> Vec<Step> {
        self.see_everything("");
        self.make.columns_percent = 70;
        let mut list = parts!["SELECT "];
        if self.make.random.chance(12) {
            list.push("*".into());
        } else {
            list.push("id".into());
            for _ in 0..1 + self.make.random.below(2) {
                let oid = self.make.usual_type();
                let expression = self.make.expression(oid, 1);
                list.push(Node::optional("", parts![", ", expression]).into());
            }
        }
        list.push(" FROM d_every".into());
        if self.make.random.chance(75) {
            let condition = self.make.condition_of(2);
            list.push(Node::optional("WHERE", parts![" WHERE ", condition]).into());
        }
        list.push(" ORDER BY ".into());
        if self.make.random.chance(70) {
            let oid = self.make.usual_type();
            let depth = usize::from(self.make.random.chance(40));
            let key = self.make.expression(oid, depth);
            let symbol = format!("ORDER BY({})", type_name(oid));
            let mut order = parts!["(", key, ")"];
            order.push(
                (*self
                    .make
                    .random
                    .pick(&["", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST", " NULLS LAST"]))
                .into(),
            );
            order.push(", ".into());
            list.push(Node::optional(&symbol, order).into());
        }
        list.push("id".into());
        if self.make.random.chance(30) {
            let limit = *self.make.random.pick(&[
                " LIMIT 3",
                " LIMIT 2 OFFSET 1",
                " OFFSET 4",
                " LIMIT ALL",
                " LIMIT 0",
                " FETCH FIRST 2 ROWS ONLY",
                " LIMIT NULL",
            ]);
            list.push(Node::optional("LIMIT", parts![limit]).into());
        }
        one(Node::clause("", list), true)
    }

    fn column_of(&mut self, among: &[Oid]) -> Option<Visible> {
        let fitting: Vec<Visible> = self
            .tables
            .columns
            .iter()
            .filter(|column| among.contains(&column.oid))
            .cloned()
            .collect();
        if fitting.is_empty() {
            None
        } else {
            Some(self.make.random.pick(&fitting).clone())
        }
    }

    /// A call of an aggregate, whose result is the same in whatever order its rows come unless it says one.
    fn aggregate(&mut self, index: usize) -> Node {
        let facts = self.make.facts;
        let function = &facts.aggregates[index];
        let name = &function.name;
        let element = self
            .column_of(&[INT4, TEXT, NUMERIC, DATE, JSONB, BOOL, FLOAT8])
            .map(|column| column.oid)
            .or(Some(INT4));
        let types: Vec<Oid> = function
            .arguments
            .iter()
            .map(|oid| resolve(*oid, element).unwrap_or(*oid))
            .collect();
        let names: Vec<String> = types.iter().map(|oid| type_name(*oid)).collect();
        let symbol = format!("{name}({})", names.join(", "));
        let result = resolve(function.result, element).unwrap_or(function.result);
        if types.is_empty() {
            return Node::expression(INT8, "count(*)", parts!["count(*)"]);
        }
        let mut call = parts![format!("{name}(")];
        let distinct = types.len() == 1 && KEYS.contains(&types[0]) && self.make.random.chance(20);
        if distinct {
            call.push("DISTINCT ".into());
        }
        let mut first = None;
        for (index, oid) in types.iter().enumerate() {
            if index > 0 {
                call.push(", ".into());
            }
            let depth = usize::from(!distinct && self.make.random.chance(25));
            let argument = if name == "string_agg" && index == 1 && *oid == TEXT {
                Node::leaf(UNKNOWN, *self.make.random.pick(&["','", "''", "' | '"]))
            } else if name.contains("object_agg") && index == 0 {
                Node::leaf(UNKNOWN, "id")
            } else if distinct {
                self.column_of(&[*oid])
                    .map_or_else(|| Node::leaf(INT4, "id"), |column| Node::leaf(column.oid, column.sql))
            } else {
                self.make.expression(*oid, depth)
            };
            first = first.or_else(|| Some(argument.clone()));
            call.push(argument.into());
        }
        let order = if distinct {
            first.map(|argument| parts![" ORDER BY ", argument])
        } else {
            Some(parts![" ORDER BY id"])
        };
        let matters = name.ends_with("_agg") || names.iter().any(|name| name.starts_with("float"));
        if matters || distinct && self.make.random.chance(30) {
            call.extend(order.unwrap_or_default());
        }
        call.push(")".into());
        if self.make.random.chance(20) {
            let condition = self.make.condition_of(1);
            call.push(Node::optional("FILTER", parts![" FILTER (WHERE ", condition, ")"]).into());
        }
        Node::expression(result, symbol, call)
    }

    fn aggregated(&mut self, index: usize) -> Vec<Step> {
        self.see_everything("");
        self.make.columns_percent = 92;
        let mut list = parts!["SELECT ", self.aggregate(index), " FROM d_every"];
        if self.make.random.chance(60) {
            let condition = *self.make.random.pick(&[
                "id < 5",
                "id > 7",
                "id = 12",
                "id > 100",
                "id IN (1, 2, 3)",
                "id % 2 = 0",
            ]);
            list.push(Node::optional("", parts![format!(" WHERE {condition}")]).into());
        }
        one(Node::clause("", list), true)
    }

    fn grouped(&mut self) -> Vec<Step> {
        self.see_everything("");
        self.make.columns_percent = 85;
        let depth = usize::from(self.make.random.chance(35));
        let oid = *self.make.random.pick(KEYS);
        let mut key = self.make.expression(oid, depth);
        // A constant is no key, and a literal may be taken for a column's number.
        let mut seen = String::new();
        key.visit(&mut |node| seen.push_str(&node.rendered(false).sql));
        let is_exact = KEYS.contains(&key.oid) && self.tables.columns.iter().any(|column| seen == column.sql);
        if !is_exact {
            let modulus = *self.make.random.pick(&["id % 3", "id / 4", "id > 5"]);
            key = Node::leaf(INT4, format!("({modulus})"));
        }
        let index = self.make.random.below(self.make.facts.aggregates.len());
        let mut list = parts!["SELECT ", key.clone(), ", ", self.aggregate(index)];
        if self.make.random.chance(50) {
            list.push(Node::optional("", parts![", count(*)"]).into());
        }
        list.push(" FROM d_every".into());
        if self.make.random.chance(30) {
            let condition = self.make.condition_of(1);
            list.push(Node::optional("WHERE", parts![" WHERE ", condition]).into());
        }
        list.extend(parts![" GROUP BY ", key.clone()]);
        if self.make.random.chance(35) {
            let having = *self.make.random.pick(&[
                "count(*) > 1",
                "count(id) >= 2 AND max(id) < 11",
                "min(id) IS NOT NULL",
                "bool_and(id > 2)",
                "sum(id) BETWEEN 3 AND 20",
            ]);
            list.push(Node::optional("HAVING", parts![format!(" HAVING {having}")]).into());
        }
        list.extend(parts![
            " ORDER BY ",
            key,
            *self.make.random.pick(&["", " DESC", " NULLS FIRST"])
        ]);
        one(Node::clause("GROUP BY", list), true)
    }

    fn joined(&mut self) -> Vec<Step> {
        let kind = *self.make.random.pick(&[
            "JOIN",
            "INNER JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT OUTER JOIN",
            "CROSS JOIN",
            "NATURAL JOIN",
            "NATURAL LEFT JOIN",
            "NATURAL FULL JOIN",
        ]);
        let how = if kind.contains("CROSS") || kind.contains("NATURAL") {
            ""
        } else {
            *self.make.random.pick(&[
                " USING (k)",
                " ON l.k = r.k",
                " ON l.id = r.id",
                " USING (id)",
                " USING (id, k)",
                " ON l.name = r.name",
                " ON l.k < r.k",
                " ON l.amount > r.y",
            ])
        };
        let shared = if how.contains("USING (k)") { "k" } else { "l.k" };
        let list = match self.make.random.below(4) {
            0 => parts!["*"],
            1 => parts!["l.*, r.y"],
            2 => parts![format!("{shared}, l.name, r.name, l.amount * r.y, l.id AS i")],
            _ => {
                self.make.visible = [
                    ("l.id", INT4),
                    ("r.k", INT4),
                    ("l.name", TEXT),
                    ("r.name", VARCHAR),
                    ("l.amount", NUMERIC),
                    ("r.y", FLOAT8),
                    ("l.at", DATE),
                ]
                .map(|(sql, oid)| Visible { sql: sql.into(), oid })
                .to_vec();
                self.make.columns_percent = 90;
                let oid = *self.make.random.pick(&[INT4, TEXT, NUMERIC, FLOAT8, DATE, BOOL]);
                parts![self.make.expression(oid, 1)]
            }
        };
        let mut statement = parts!["SELECT "];
        statement.extend(list);
        statement.push(format!(" FROM d_left AS l {kind} d_right AS r{how}").into());
        if self.make.random.chance(25) {
            statement.push(Node::optional("", parts![" JOIN d_every AS e ON e.id = l.id"]).into());
        }
        if self.make.random.chance(40) {
            let condition = *self.make.random.pick(&[
                "l.amount > 1",
                "r.y IS NULL",
                "l.name <> r.name",
                "l.id + 1 > 3 OR r.id IS NULL",
                "NOT l.amount BETWEEN 0 AND 10",
            ]);
            statement.push(Node::optional("WHERE", parts![format!(" WHERE {condition}")]).into());
        }
        one(Node::clause(&format!("{kind}{how}"), statement), false)
    }

    /// UNION and its like, with branches whose types are made one.
    fn combined(&mut self) -> Vec<Step> {
        let word = *self.make.random.pick(&[
            "UNION ALL",
            "UNION ALL",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "INTERSECT ALL",
            "EXCEPT ALL",
        ]);
        let oid = self.make.usual_type();
        let counted = word != "UNION ALL" && !KEYS.contains(&oid);
        self.make.stray_percent = 30;
        let (first, second) = (self.make.expression(oid, 1), self.make.expression(oid, 1));
        let mut union = parts!["SELECT ", first, format!(" {word} SELECT "), second];
        if self.make.random.chance(30) {
            self.see_everything("");
            self.make.columns_percent = 95;
            let third = self.make.leaf(oid);
            union.push(Node::optional(word, parts![format!(" {word} SELECT "), third, " FROM d_every"]).into());
        }
        let symbol = format!("{word}({})", type_name(oid));
        if counted {
            union.insert(0, "SELECT count(*) FROM (".into());
            union.push(") AS u".into());
        }
        one(Node::clause(&symbol, union), false)
    }

    fn values(&mut self) -> Vec<Step> {
        let types: Vec<Oid> = (0..1 + self.make.random.below(3))
            .map(|_| self.make.usual_type())
            .collect();
        self.make.stray_percent = 20;
        let mut list = parts!["VALUES "];
        for row in 0..1 + self.make.random.below(3) {
            let mut values = parts![if row > 0 { ", (" } else { "(" }];
            for (index, oid) in types.iter().enumerate() {
                if index > 0 {
                    values.push(", ".into());
                }
                values.push(self.make.expression(*oid, 0).into());
            }
            values.push(")".into());
            if row > 0 {
                list.push(Node::optional("", values).into());
            } else {
                list.extend(values);
            }
        }
        let names: Vec<String> = types.iter().map(|oid| type_name(*oid)).collect();
        if self.make.random.chance(50) {
            list.insert(0, "SELECT * FROM (".into());
            list.push(") AS v".into());
            if self.make.random.chance(60) {
                list.push(["(x)", "(x, y)", "(x, y, z)"][types.len() - 1].into());
            }
        }
        one(Node::clause(&format!("VALUES({})", names.join(", ")), list), true)
    }

    fn subquery(&mut self) -> Vec<Step> {
        let oid = self.make.usual_type();
        match self.make.random.below(7) {
            0 => {
                let word = *self
                    .make
                    .random
                    .pick(&["IN", "NOT IN", "= ANY", "<> ALL", "> ALL", "< SOME"]);
                let value = self.make.leaf(oid);
                let column = self
                    .column_of(&[oid])
                    .map_or_else(|| "id".to_owned(), |column| column.sql);
                let inner = Node::loose(
                    BOOL,
                    format!("{word} (SELECT)({})", type_name(oid)),
                    parts![value, format!(" {word} (SELECT {column} FROM d_every WHERE id < 6)")],
                );
                one(Node::clause("", parts!["SELECT ", inner]), true)
            }
            1 => {
                let condition = *self.make.random.pick(&[
                    "r.k = l.k",
                    "r.k > l.k AND r.y IS NOT NULL",
                    "r.name = l.name",
                    "r.id = l.parent",
                ]);
                let word = *self.make.random.pick(&["EXISTS", "NOT EXISTS"]);
                one(
                    Node::clause(
                        word,
                        parts![format!(
                            "SELECT l.id, l.name FROM d_left l WHERE {word} (SELECT 1 FROM d_right r WHERE {condition}) ORDER BY l.id"
                        )],
                    ),
                    true,
                )
            }
            2 => {
                let value = *self.make.random.pick(&[
                    "max(r.y)",
                    "count(*)",
                    "min(r.name)",
                    "string_agg(r.name, ',' ORDER BY r.id)",
                    "avg(r.k)",
                    "sum(r.k)",
                    "array_agg(r.id ORDER BY r.id)",
                ]);
                one(
                    Node::clause(
                        "correlated",
                        parts![format!(
                            "SELECT l.id, (SELECT {value} FROM d_right r WHERE r.k = l.k) FROM d_left l ORDER BY l.id"
                        )],
                    ),
                    true,
                )
            }
            3 => {
                self.see_everything("");
                self.make.columns_percent = 90;
                let inner = self.make.expression(oid, 1);
                let outer = *self
                    .make
                    .random
                    .pick(&["s.*", "x", "s.x IS NULL", "x::text", "count(*) OVER (), x"]);
                one(
                    Node::clause(
                        "FROM (SELECT)",
                        parts![
                            format!("SELECT {outer} FROM (SELECT id, "),
                            inner,
                            " AS x FROM d_every) AS s ORDER BY s.id"
                        ],
                    ),
                    true,
                )
            }
            4 => {
                self.see_everything("");
                self.make.columns_percent = 100;
                // How many distinct ones, because which of several equal ones is shown is not defined.
                let inner = self.make.expression(oid, 1);
                one(
                    Node::clause(
                        &format!("DISTINCT({})", type_name(oid)),
                        parts![
                            "SELECT count(*) FROM (SELECT DISTINCT ",
                            inner,
                            " AS x FROM d_every) AS s"
                        ],
                    ),
                    true,
                )
            }
            5 => one(
                Node::clause(
                    "LATERAL",
                    parts![
                        "SELECT l.id, s.* FROM d_left l, LATERAL (SELECT r.id AS i, r.y FROM d_right r WHERE r.k = l.k ORDER BY r.id LIMIT 1) s ORDER BY l.id"
                    ],
                ),
                true,
            ),
            _ => {
                let column = self
                    .column_of(KEYS)
                    .map_or_else(|| "id".to_owned(), |column| column.sql);
                let rest = *self.make.random.pick(&["", " LIMIT 4", " OFFSET 2"]);
                one(
                    Node::clause(
                        "DISTINCT",
                        parts![format!("SELECT DISTINCT {column} FROM d_every ORDER BY {column}{rest}")],
                    ),
                    true,
                )
            }
        }
    }

    fn with(&mut self) -> Vec<Step> {
        let oid = self.make.usual_type();
        let text = match self.make.random.below(6) {
            0 => {
                let inner = self.make.expression(oid, 1);
                return one(
                    Node::clause(
                        "WITH",
                        parts!["WITH q AS (SELECT ", inner, " AS x) SELECT x, x IS NULL FROM q"],
                    ),
                    true,
                );
            }
            1 => {
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7) SELECT i, i * i, sum(i) OVER (ORDER BY i) FROM n ORDER BY i"
            }
            2 => {
                "WITH RECURSIVE tree AS (SELECT id, name, 1 AS depth, ARRAY[id] AS path FROM d_left WHERE parent IS NULL UNION ALL \
                  SELECT l.id, l.name, t.depth + 1, t.path || l.id FROM d_left l JOIN tree t ON l.parent = t.id) SELECT * FROM tree ORDER BY id"
            }
            3 => {
                "WITH RECURSIVE s(t) AS (SELECT 'a'::text UNION SELECT t || 'b' FROM s WHERE length(t) < 4) SELECT t FROM s ORDER BY 1"
            }
            4 => {
                "WITH a AS (SELECT k, count(*) AS c FROM d_left GROUP BY k), b AS (SELECT k, max(y) AS m FROM d_right GROUP BY k) \
                  SELECT k, c, m FROM a FULL JOIN b USING (k) ORDER BY k NULLS FIRST"
            }
            _ => {
                "WITH q AS MATERIALIZED (SELECT id, amount FROM d_left) SELECT (SELECT max(amount) FROM q), (SELECT sum(amount) FROM q WHERE id < 4)"
            }
        };
        one(Node::clause("WITH", parts![text]), true)
    }

    fn windowed(&mut self, index: usize) -> Vec<Step> {
        self.see_everything("");
        self.make.columns_percent = 95;
        self.make.parameters_percent = 0;
        let facts = self.make.facts;
        let call = if self.make.random.chance(55) {
            let function = &facts.windows[index];
            let oid = self.make.usual_type();
            let mut call = parts![format!("{}(", function.name)];
            for (index, declared) in function.arguments.iter().enumerate() {
                if index > 0 {
                    call.push(", ".into());
                }
                match resolve(*declared, Some(oid)) {
                    Some(INT4) if index > 0 || function.arguments.len() == 1 => {
                        call.push((*self.make.random.pick(&["1", "2", "3"])).into())
                    }
                    Some(oid) => call.push(self.make.leaf(oid).into()),
                    None => call.push("1".into()),
                }
            }
            call.push(")".into());
            Node::expression(0, format!("{}({})", function.name, type_name(oid)), call)
        } else {
            let name = *self.make.random.pick(&[
                "sum",
                "avg",
                "min",
                "max",
                "count",
                "bool_or",
                "string_agg",
                "array_agg",
            ]);
            let oid = match name {
                "bool_or" => BOOL,
                "string_agg" => TEXT,
                "sum" | "avg" => *self.make.random.pick(&[INT4, INT8, INT2, NUMERIC, FLOAT8, INTERVAL]),
                _ => *self.make.random.pick(KEYS),
            };
            let argument = self.make.leaf(oid);
            let tail = if name == "string_agg" { ", ','" } else { "" };
            Node::expression(
                0,
                format!("{name}({}) OVER", type_name(oid)),
                parts![format!("{name}("), argument, format!("{tail})")],
            )
        };
        let partition =
            *self
                .make
                .random
                .pick(&["", "PARTITION BY id % 3 ", "PARTITION BY b ", "PARTITION BY id > 6 "]);
        let partition = if partition.contains(" b ") && self.column_of(&[BOOL]).is_none() {
            ""
        } else {
            partition
        };
        let frame = *self.make.random.pick(&[
            "",
            "",
            "",
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
        ]);
        let order = *self.make.random.pick(&["id", "id DESC", "id"]);
        let over = format!(" OVER ({partition}ORDER BY {order}");
        one(
            Node::clause(
                "OVER",
                parts![
                    "SELECT id, ",
                    call,
                    over,
                    Node::optional("frame", parts![frame]),
                    ") FROM d_every ORDER BY id"
                ],
            ),
            true,
        )
    }

    fn set(&mut self, index: usize) -> Vec<Step> {
        let call = self.make.set_call(index);
        let statement = match self.make.random.below(4) {
            0 => parts!["SELECT ", call],
            1 => parts!["SELECT * FROM ", call, " WITH ORDINALITY"],
            2 => parts!["SELECT count(*) FROM ", call, " AS f"],
            _ => parts!["SELECT * FROM ", call],
        };
        one(Node::clause("", statement), true)
    }

    /// Rows written, and read again, in a transaction that is rolled back.
    fn changed(&mut self) -> Vec<Step> {
        let fixed = |text: &str| step(Node::clause("", parts![text]), true);
        let mut steps = vec![fixed("BEGIN")];
        for round in 0..1 + self.make.random.below(2) {
            self.make.visible.clear();
            let change = self.change(round);
            steps.push(step(change, false));
        }
        steps.push(fixed("SELECT * FROM d_scratch ORDER BY id"));
        steps.push(fixed("ROLLBACK"));
        steps
    }

    fn assignment_value(&mut self, oid: Oid) -> Node {
        let depth = self.make.random.below(2);
        self.make.expression(oid, depth)
    }

    fn returning(&mut self) -> Node {
        let list = *self
            .make
            .random
            .pick(&["*", "id", "id, s", "id + 1, s || 'x'", "id AS x"]);
        Node::optional("RETURNING", parts![format!(" RETURNING {list}")])
    }

    fn change(&mut self, round: usize) -> Node {
        let columns = &self.tables.columns;
        let mut chosen: Vec<Visible> = (0..1 + self.make.random.below(3))
            .map(|_| self.make.random.pick(columns).clone())
            .collect();
        chosen.sort_by(|one, other| one.sql.cmp(&other.sql));
        chosen.dedup_by(|one, other| one.sql == other.sql);
        let names: Vec<&str> = chosen.iter().map(|column| column.sql.as_str()).collect();
        let types: Vec<String> = chosen.iter().map(|column| type_name(column.oid)).collect();
        let (names, types) = (names.join(", "), types.join(", "));
        let kind = self.make.random.below(8);
        self.make.stray_percent = 25;
        let mut statement;
        let symbol;
        match kind {
            0..4 => {
                symbol = format!("INSERT({types})");
                statement = parts![format!("INSERT INTO d_scratch (id, {names}) VALUES ")];
                for row in 0..1 + self.make.random.below(2) {
                    let id = *self.make.random.pick(&["1", "2", "10", "20"]);
                    let id = if kind == 0 {
                        id.to_owned()
                    } else {
                        format!("{}", 50 + 10 * round + row)
                    };
                    let mut values = parts![format!("{}({id}", if row > 0 { ", " } else { "" })];
                    for column in &chosen {
                        let value = self.assignment_value(column.oid);
                        values.extend(parts![", ", value]);
                    }
                    values.push(")".into());
                    if row > 0 {
                        statement.push(Node::optional("", values).into());
                    } else {
                        statement.extend(values);
                    }
                }
                if kind == 0 {
                    let first = &chosen[0].sql;
                    let conflict = match self.make.random.below(4) {
                        0 => " ON CONFLICT DO NOTHING".to_owned(),
                        1 => " ON CONFLICT (id) DO NOTHING".to_owned(),
                        2 => format!(" ON CONFLICT (id) DO UPDATE SET {first} = EXCLUDED.{first}, s = 'changed'"),
                        _ => {
                            format!(" ON CONFLICT (id) DO UPDATE SET {first} = excluded.{first} WHERE d_scratch.id > 1")
                        }
                    };
                    statement.push(Node::optional("ON CONFLICT", parts![conflict]).into());
                }
            }
            4 => {
                symbol = format!("INSERT SELECT({types})");
                self.see_everything("");
                self.make.columns_percent = 80;
                statement = parts![format!(
                    "INSERT INTO d_scratch (id, {names}) SELECT id + {}",
                    100 + 100 * round
                )];
                for column in &chosen {
                    let value = self.assignment_value(column.oid);
                    statement.extend(parts![", ", value]);
                }
                statement.push(" FROM d_every WHERE id < 8".into());
            }
            5 => {
                symbol = format!("UPDATE({types})");
                self.see_everything("");
                self.make.columns_percent = 60;
                statement = parts!["UPDATE d_scratch SET s = 'new'"];
                for column in &chosen {
                    let value = self.assignment_value(column.oid);
                    statement.push(Node::optional("", parts![format!(", {} = ", column.sql), value]).into());
                }
                if self.make.random.chance(60) {
                    statement.push(Node::optional("WHERE", parts![" WHERE id <> 2"]).into());
                }
            }
            6 => {
                symbol = format!("UPDATE FROM({types})");
                self.see_everything("e.");
                self.make.columns_percent = 80;
                let column = &chosen[0];
                let value = self.assignment_value(column.oid);
                statement = parts![
                    format!("UPDATE d_scratch AS t SET {} = ", column.sql),
                    value,
                    " FROM d_every AS e WHERE e.id = t.id + 1"
                ];
                return Node::clause(&symbol, statement);
            }
            _ => {
                symbol = "DELETE".to_owned();
                let text = *self.make.random.pick(&[
                    "DELETE FROM d_scratch WHERE id = 2",
                    "DELETE FROM d_scratch USING d_left l WHERE l.parent = d_scratch.id",
                    "DELETE FROM d_scratch WHERE id IN (SELECT k / 10 FROM d_left)",
                ]);
                statement = parts![text];
                if text.contains("USING") {
                    return Node::clause("DELETE USING", statement);
                }
            }
        }
        if self.make.random.chance(40) {
            statement.push(self.returning().into());
        }
        Node::clause(&symbol, statement)
    }
}
