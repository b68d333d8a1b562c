//! Aggregates and window functions.
//!
//! Promises: where the order of its rows makes a difference to the result, a call says the order.

use crate::{
    facts::{oid::*, resolve, type_name},
    queries::{KEYS, Maker, one, parts},
    statements::Step,
    tree::{Node, Oid, Part},
};

impl Maker<'_> {
    /// A call of an aggregate, whose result is the same in whatever order its rows come unless it says one.
    pub(crate) fn aggregate(&mut self, index: usize) -> Node {
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
        let is_alone = types.len() == 1 || name == "string_agg";
        let distinct = is_alone && KEYS.contains(&types[0]) && self.make.random.chance(20);
        if distinct {
            call.push("DISTINCT ".into());
        }
        let mut first = None;
        let mut is_made = false;
        for (index, oid) in types.iter().enumerate() {
            if index > 0 {
                call.push(", ".into());
            }
            let depth = usize::from(!distinct && self.make.random.chance(25));
            let argument = if name == "string_agg" && index == 1 && (distinct || *oid == TEXT) {
                Node::leaf(UNKNOWN, *self.make.random.pick(&["','", "''", "' | '"]))
            } else if name.contains("object_agg") && index == 0 {
                Node::leaf(UNKNOWN, "id")
            } else if distinct {
                self.column_of(&[*oid])
                    .map_or_else(|| Node::leaf(INT4, "id"), |column| Node::leaf(column.oid, column.sql))
            } else {
                self.make.expression(*oid, depth)
            };
            let text = argument.rendered(false).sql;
            is_made |= depth > 0 || text == "f4" || text == "f8";
            first = first.or_else(|| Some(argument.clone()));
            call.push(argument.into());
        }
        let order = if distinct {
            first.map(|argument| parts![" ORDER BY ", argument])
        } else {
            Some(parts![" ORDER BY id"])
        };
        // Numbers that may be floats by a cast that is not seen here are added in one order, too.
        let matters = name.ends_with("_agg") || is_made || names.iter().any(|name| name.starts_with("float"));
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

    pub(crate) fn aggregated(&mut self, index: usize) -> Vec<Step> {
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

    pub(crate) fn grouped(&mut self) -> Vec<Step> {
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
        // The same in all its places, also when the statement is made small.
        let key = key.rendered(false).sql;
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

    pub(crate) fn windowed(&mut self, index: usize) -> Vec<Step> {
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
                    Some(INT4) if index > 0 => {
                        let places = ["1", "2", "3", "-2", "NULL", "nullif(id % 3, 0)", "id % 7 - 3"];
                        call.push((*self.make.random.pick(&places)).into());
                    }
                    Some(INT4) if function.arguments.len() == 1 => {
                        call.push((*self.make.random.pick(&["1", "2", "3"])).into());
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
}
