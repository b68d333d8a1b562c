//! Queries around generated expressions: conditions, orders, joins, sets, subqueries, common table expressions.
//!
//! Promises: a query whose rows are compared in order says which; none depends on an order that it does not say.

use crate::{
    expressions::{Generator, Visible},
    facts::{Producer, oid::*, type_name},
    statements::Step,
    tables::Tables,
    tree::{Node, Oid, Part},
};

macro_rules! parts {
    ($($part:expr),* $(,)?) => { vec![$(Part::from($part)),*] };
}
pub(crate) use parts;

/// Types whose equal values are all written alike, so that it does not matter which of them stands for a group.
pub(crate) const KEYS: &[Oid] = &[
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

/// Makes one case.
pub(crate) struct Maker<'a> {
    pub(crate) make: Generator<'a>,
    pub(crate) tables: &'a Tables,
}

pub(crate) fn step(statement: Node, ordered: bool) -> Step {
    Step {
        statement,
        ordered,
        is_simple: false,
        binary: false,
    }
}

pub(crate) fn one(statement: Node, ordered: bool) -> Vec<Step> {
    vec![step(statement, ordered)]
}

impl Maker<'_> {
    pub(crate) fn see_everything(&mut self, prefix: &str) {
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
    pub(crate) fn selected(&mut self, make: impl FnOnce(&mut Self) -> Node) -> Vec<Step> {
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

    pub(crate) fn swept(&mut self, producer: Producer) -> Vec<Step> {
        self.selected(|maker| maker.make.produced(producer, 0))
    }

    pub(crate) fn made_up(&mut self) -> Vec<Step> {
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
    pub(crate) fn several(&mut self) -> Vec<Step> {
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

    pub(crate) fn filtered(&mut self) -> Vec<Step> {
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

    pub(crate) fn column_of(&mut self, among: &[Oid]) -> Option<Visible> {
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

    pub(crate) fn joined(&mut self) -> Vec<Step> {
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
    pub(crate) fn combined(&mut self) -> Vec<Step> {
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
        // Of equal values that are written differently, such as a char(n)'s, any may stand for the others: then they are counted.
        let counted = word != "UNION ALL" && (!KEYS.contains(&oid) || self.make.random.chance(50));
        self.make.stray_percent = if counted || word == "UNION ALL" { 30 } else { 0 };
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

    pub(crate) fn values(&mut self) -> Vec<Step> {
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

    pub(crate) fn subquery(&mut self) -> Vec<Step> {
        let oid = self.make.usual_type();
        match self.make.random.below(8) {
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
            6 => {
                self.see_everything("");
                self.make.columns_percent = 90;
                let key = self.make.expression(oid, 1);
                let direction = *self.make.random.pick(&["", " DESC", " NULLS FIRST"]);
                one(
                    Node::clause(
                        &format!("DISTINCT ON, ORDER BY {}", type_name(oid)),
                        parts![
                            "SELECT DISTINCT ON (id % 4) id FROM d_every ORDER BY id % 4, ",
                            key,
                            direction,
                            ", id"
                        ],
                    ),
                    true,
                )
            }
            5 => one(
                Node::clause(
                    "LATERAL",
                    parts![*self.make.random.pick(&[
                        "SELECT l.id, s.* FROM d_left l LEFT JOIN LATERAL (SELECT r.id AS i, r.y FROM d_right r WHERE r.k = l.k ORDER BY r.id LIMIT 1) s ON true ORDER BY l.id",
                        "SELECT l.id, s.n, s.y FROM d_left l LEFT JOIN LATERAL (SELECT count(*) AS n, max(r.y) AS y FROM d_right r WHERE r.k = l.k) s ON true ORDER BY s.n, l.id",
                        "SELECT l.id FROM d_left l LEFT JOIN LATERAL (SELECT r.y FROM d_right r WHERE r.k = l.k) s ON true ORDER BY l.id",
                        "SELECT l.id, s.* FROM d_left l, LATERAL (SELECT r.id AS i, r.y FROM d_right r WHERE r.k = l.k ORDER BY r.id LIMIT 1) s ORDER BY l.id",
                    ])],
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

    pub(crate) fn with(&mut self) -> Vec<Step> {
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
                  SELECT k, c, m FROM a FULL JOIN b USING (k) ORDER BY k NULLS FIRST, c, m"
            }
            _ => {
                "WITH q AS MATERIALIZED (SELECT id, amount FROM d_left) SELECT (SELECT max(amount) FROM q), (SELECT sum(amount) FROM q WHERE id < 4)"
            }
        };
        one(Node::clause("WITH", parts![text]), true)
    }

    pub(crate) fn set(&mut self, index: usize) -> Vec<Step> {
        let call = self.make.set_call(index);
        let statement = match self.make.random.below(4) {
            0 => parts!["SELECT ", call],
            1 => parts!["SELECT * FROM ", call, " WITH ORDINALITY"],
            2 => parts!["SELECT count(*) FROM ", call, " AS f"],
            _ => parts!["SELECT * FROM ", call],
        };
        one(Node::clause("", statement), true)
    }
}
