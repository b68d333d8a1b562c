//! UPDATE and DELETE.
//!
//! Promises: new values and conditions see the rows as they were before the statement.

use sqlparser::ast::{Delete, FromTable, ObjectName, TableFactor, TableWithJoins, Update, UpdateTableFromKind};

use super::change::set_list;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::plan::ResultColumn;
use super::schema::Table;
use super::scope::Scope;
use super::sqlite_text::{has_query, identifier};
use super::syntax::folded;

/// An UPDATE or DELETE, understood up to its RETURNING.
pub(super) struct Changing {
    pub(super) table: std::rc::Rc<Table>,
    alias: Option<String>,
    /// The table's name in SQLite's text.
    pub(super) own: String,
    /// The places of the columns that are set, with their values.
    pub(super) values: Vec<(usize, String)>,
    /// The other relations.
    pub(super) others: Option<String>,
    condition: Option<String>,
}

impl Changing {
    /// What follows the table where an UPDATE's rows are read: the other relations, and the condition.
    pub(super) fn met(&self) -> String {
        let others = self.others.as_ref().map(|others| format!(", {others}"));
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE {condition}"));
        format!("{}{}", others.unwrap_or_default(), condition.unwrap_or_default())
    }

    /// The condition of a DELETE's rows, which are the table's alone.
    pub(super) fn meant(&self) -> Option<String> {
        match (&self.others, &self.condition) {
            (None, condition) => condition.clone(),
            (Some(others), condition) => Some(format!(
                "EXISTS (SELECT 1 FROM {others} WHERE {})",
                condition.as_deref().unwrap_or("1")
            )),
        }
    }
}

impl Compiler<'_> {
    pub(super) fn update(&mut self, update: &Update, with: &str) -> Result<(String, Vec<ResultColumn>)> {
        let Changing {
            table,
            alias,
            own,
            values,
            others,
            condition,
        } = self.updating(update)?;
        let along = self.changed_along(&table, Some(&values))?;
        let comes_back = along.contains(&table.name.to_ascii_lowercase());
        self.changes.extend(along);
        let mut sql = format!(
            "{with}UPDATE {} AS {own} SET {}",
            identifier(&table.name),
            set_list(&values, &table)
        );
        // SQLite looks for all new values before it changes the first row only where there is a FROM.
        let asks = values.iter().any(|(_, sql)| has_query(sql)) || comes_back;
        if let Some(others) = others.or_else(|| asks.then(|| "(SELECT 1)".to_owned())) {
            sql.push_str(&format!(" FROM {others}"));
        }
        if let Some(condition) = condition {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        if update.returning.is_some() && comes_back {
            return Err(
                Fault::unsupported("RETURNING of an UPDATE of a key that its own table follows")
                    .with_hint("Ask for the rows in a SELECT before or after."),
            );
        }
        let columns = self.returning(
            update.returning.as_deref(),
            &table,
            alias.as_deref(),
            update.from.is_some(),
            &mut sql,
        )?;
        Ok((sql, columns))
    }

    /// The name of the table that is changed inside SQLite, and a scope whose first relation it is.
    fn changed_scope(&mut self, table: &Table, alias: Option<&String>) -> Result<(String, Scope<'static>)> {
        self.names += 1;
        let own = format!("\"r{}\"", self.names);
        let mut scope = Scope::new(None);
        let mut relation = self.base_relation(table, &own, None)?;
        if let Some(alias) = alias {
            relation.name = Some(alias.clone());
        }
        scope.relations.push(relation);
        Ok((own, scope))
    }

    /// An UPDATE up to its RETURNING.
    pub(super) fn updating(&mut self, update: &Update) -> Result<Changing> {
        if update.or.is_some() || update.limit.is_some() || !update.order_by.is_empty() || update.output.is_some() {
            return Err(Fault::unsupported("UPDATE with OR, ORDER BY or LIMIT"));
        }
        let (name, alias) = plain_table(&update.table, "UPDATE")?;
        let table = self.changed_table(name, "UPDATE of")?;
        let (own, mut scope) = self.changed_scope(&table, alias.as_ref())?;
        let others = match &update.from {
            None => None,
            Some(UpdateTableFromKind::AfterSet(items)) => Some(self.from(items, &mut scope)?),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(Fault::unsupported("FROM before SET")),
        };
        scope.no_aggregates.set(Some("UPDATE"));
        scope.no_windows.set(Some("UPDATE"));
        let values = self.assignments(&update.assignments, &table, &scope)?;
        let condition = match &update.selection {
            None => None,
            Some(selection) => {
                scope.no_aggregates.set(Some("WHERE"));
                Some(self.filter_condition(selection, &scope, "WHERE")?.sql)
            }
        };
        if values.is_empty() {
            return Err(Fault::unsupported("an UPDATE of generated columns alone"));
        }
        Ok(Changing {
            table,
            alias,
            own,
            values,
            others,
            condition,
        })
    }

    pub(super) fn delete(&mut self, delete: &Delete, with: &str) -> Result<(String, Vec<ResultColumn>)> {
        let deleting = self.deleting(delete)?;
        let Changing { table, alias, own, .. } = &deleting;
        let mut sql = format!("{with}DELETE FROM {} AS {own}", identifier(&table.name));
        let meant = deleting.meant();
        let protection = self.protection(table, own, meant.as_deref())?;
        let condition = match (meant, protection) {
            (Some(condition), Some(protection)) => Some(format!("({condition}) AND {protection}")),
            (condition, protection) => condition.or(protection),
        };
        if self
            .changed_along(table, None)?
            .contains(&table.name.to_ascii_lowercase())
        {
            // A row that another one's deletion takes along is gone when its turn comes, and has been meant all the same.
            let met = match delete.returning {
                Some(_) => "forebay_met_once",
                None => "forebay_met",
            };
            let condition = condition
                .map(|condition| format!(" WHERE {condition}"))
                .unwrap_or_default();
            sql.push_str(&format!(
                " WHERE rowid IN (SELECT \"{met}\"({own}.rowid) FROM {} AS {own}{condition})",
                identifier(&table.name)
            ));
        } else if let Some(condition) = condition {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        let columns = self.returning(
            delete.returning.as_deref(),
            table,
            alias.as_deref(),
            delete.using.is_some(),
            &mut sql,
        )?;
        Ok((sql, columns))
    }

    /// The tables, in lower case, whose rows are changed along with others of the same statement: by foreign keys that lead to the table.
    /// Of an UPDATE, only if it sets what others refer to. The table itself is one of them where they lead from it back to it.
    fn changed_along(&self, table: &Table, set: Option<&[(usize, String)]>) -> Result<Vec<String>> {
        const FOLLOWING: &str = "\
            WITH RECURSIVE follows (child, parent, column, at_update) AS MATERIALIZED ( \
                SELECT lower(m.name), lower(k.\"table\"), k.\"to\", k.on_update NOT IN ('NO ACTION', 'RESTRICT') \
                FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS k WHERE m.type = 'table' AND instr(lower(m.sql), 'references') \
                AND (k.on_update NOT IN ('NO ACTION', 'RESTRICT') OR k.on_delete NOT IN ('NO ACTION', 'RESTRICT'))), \
            reached (name) AS ( \
                SELECT child FROM follows WHERE parent = lower(?1) AND (?2 IS NULL OR at_update AND (column IS NULL \
                    OR lower(column) IN (SELECT lower(value) FROM json_each(?2)))) \
                UNION SELECT child FROM follows, reached WHERE parent = name) \
            SELECT name FROM reached";
        let set: Option<String> = set.map(|set| {
            let names = set.iter().map(|(place, _)| table.columns[*place].name.as_str());
            serde_json::Value::from_iter(names).to_string()
        });
        let connection = self.schema.connection();
        let found = connection
            .prepare_cached(FOLLOWING)
            .and_then(|mut statement| statement.query_map((&table.name, set), |row| row.get(0))?.collect());
        found.map_err(|error| Fault::new("XX000", format!("the schema cannot be read: {error}")))
    }

    /// A DELETE up to its RETURNING.
    pub(super) fn deleting(&mut self, delete: &Delete) -> Result<Changing> {
        if !delete.tables.is_empty() || delete.limit.is_some() || !delete.order_by.is_empty() || delete.output.is_some()
        {
            return Err(Fault::unsupported("DELETE with ORDER BY or LIMIT"));
        }
        let FromTable::WithFromKeyword(tables) = &delete.from else {
            return Err(Fault::new("42601", "DELETE needs FROM"));
        };
        let [table] = tables.as_slice() else {
            return Err(Fault::new("42601", "DELETE takes one table"));
        };
        let (name, alias) = plain_table(table, "DELETE")?;
        let table = self.changed_table(name, "DELETE from")?;
        let (own, mut scope) = self.changed_scope(&table, alias.as_ref())?;
        let others = match &delete.using {
            None => None,
            Some(items) => Some(self.from(items, &mut scope)?),
        };
        scope.no_aggregates.set(Some("WHERE"));
        scope.no_windows.set(Some("WHERE"));
        let condition = match &delete.selection {
            None => None,
            Some(selection) => Some(self.filter_condition(selection, &scope, "WHERE")?.sql),
        };
        Ok(Changing {
            table,
            alias,
            own,
            values: Vec::new(),
            others,
            condition,
        })
    }
}

fn plain_table<'a>(table: &'a TableWithJoins, verb: &str) -> Result<(&'a ObjectName, Option<String>)> {
    match &table.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            version: None,
            with_ordinality: false,
            json_path: None,
            sample: None,
            ..
        } if table.joins.is_empty() => {
            if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                return Err(Fault::new("42601", "a target's alias has no columns"));
            }
            Ok((name, alias.as_ref().map(|alias| folded(&alias.name))))
        }
        other => Err(Fault::unsupported(format!("{verb} of {other}"))),
    }
}
