//! INSERT, UPDATE, DELETE and what they return.
//!
//! Promises: all of it happens in a transaction that is rolled back.

use crate::{
    expressions::Visible,
    facts::type_name,
    queries::{Maker, parts, step},
    statements::Step,
    tree::{Node, Oid, Part},
};

impl Maker<'_> {
    /// Rows written, and read again, in a transaction that is rolled back.
    pub(crate) fn changed(&mut self) -> Vec<Step> {
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

    pub(crate) fn assignment_value(&mut self, oid: Oid) -> Node {
        let depth = self.make.random.below(2);
        self.make.expression(oid, depth)
    }

    pub(crate) fn returning(&mut self) -> Node {
        let list = *self
            .make
            .random
            .pick(&["*", "id", "id, s", "id + 1, s || 'x'", "id AS x"]);
        Node::optional("RETURNING", parts![format!(" RETURNING {list}")])
    }

    pub(crate) fn change(&mut self, round: usize) -> Node {
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
                // A query of the table that changes sees it as it was.
                let text = *self.make.random.pick(&[
                    "'new'",
                    "'new'",
                    "(SELECT string_agg(o.s, ',' ORDER BY o.id) FROM d_scratch o WHERE o.id <> d_scratch.id)",
                    "(SELECT max(o.s) FROM d_scratch o) || 'x'",
                ]);
                statement = parts![format!("UPDATE d_scratch SET s = {text}")];
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
