//! CREATE INDEX.
//!
//! Promises: an index is of values that PostgreSQL would take for one, under the collation of their type.

use sqlparser::ast::{CreateIndex, IndexColumn};

use super::compiler::Compiler;
use super::constraint::check_key_count;
use super::fault::{Fault, Result};
use super::namespace::{parted, plain_name, refuse_separator, stored};
use super::naming::column_name;
use super::scope::{Relation, RelationColumn, Scope};
use super::sqlite_text::{ENVIRONMENT, identifier, refuse_session};
use super::types;
use crate::sql::facts;

impl Compiler<'_> {
    pub(super) fn create_index(&mut self, index: &CreateIndex) -> Result<Vec<String>> {
        if !index.include.is_empty() || index.nulls_distinct == Some(false) {
            return Err(Fault::unsupported("INCLUDE and NULLS NOT DISTINCT of an index"));
        }
        if let Some(using) = &index.using {
            let using = using.to_string().to_ascii_lowercase();
            if !matches!(using.as_str(), "btree" | "hash") {
                return Err(Fault::unsupported(format!("an index USING {using}")));
            }
        }
        self.refuse_missing_schema(&index.table_name)?;
        let table = self.table(&index.table_name)?;
        if table.view.is_some() || table.foreign_view {
            return Err(Fault::new(
                "42809",
                format!("cannot create index on relation \"{}\"", table.shown()),
            )
            .with_detail("This operation is not supported for views."));
        }
        let own = identifier(&table.name);
        let mut scope = Scope::new(None);
        scope.no_aggregates.set(Some("index expressions"));
        scope.no_windows.set(Some("index expressions"));
        scope.relations.push(Relation {
            name: Some(table.shown().to_owned()),
            schema: Some(table.schema().to_owned()),
            table: None,
            columns: table
                .columns
                .iter()
                .map(|column| RelationColumn {
                    name: column.name.clone(),
                    kind: column.kind,
                    sql: identifier(&column.name),
                    not_null: column.not_null,
                })
                .collect(),
            key: Vec::new(),
            merged: Vec::new(),
            is_value: false,
        });
        self.reshapes.push(table.name.clone());
        self.fixed_parameters = true;
        self.kept = true;
        check_key_count(index.columns.len())?;
        let (mut keys, mut names) = (Vec::new(), Vec::new());
        for column in &index.columns {
            let (text, name) = self.index_key(column, &scope)?;
            keys.push(text);
            names.push(name);
        }
        refuse_separator(&names.join("_"))?;
        let name = match &index.name {
            Some(name) => {
                let name = stored(parted(&table.name).0, &plain_name(name)?);
                if let Some(steps) = self.exists_already(&name, index.if_not_exists)? {
                    return Ok(steps);
                }
                name
            }
            None => self.free_name(&table.name, &names.join("_"), "idx")?,
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let mut sql = format!(
            "CREATE {unique}INDEX {} ON {own} ({})",
            identifier(&name),
            keys.join(", ")
        );
        if let Some(predicate) = &index.predicate {
            scope.no_aggregates.set(Some("index predicates"));
            scope.no_windows.set(Some("index predicates"));
            let condition = self.condition(predicate, &scope, "WHERE")?;
            refuse_session(&condition.sql, "the predicate of an index")?;
            sql.push_str(&format!(" WHERE {}", condition.sql));
        }
        self.fixed_parameters = false;
        self.kept = false;
        Ok(vec![sql])
    }

    fn index_key(&mut self, column: &IndexColumn, scope: &Scope<'_>) -> Result<(String, String)> {
        if let Some(class) = &column.operator_class {
            let class = types::object_name(class)?;
            let known = ["varchar_pattern_ops", "text_pattern_ops", "bpchar_pattern_ops"].contains(&class.as_str())
                || class.ends_with("_ops")
                    && !matches!(class.as_str(), "gin_trgm_ops" | "jsonb_path_ops" | "gist_trgm_ops");
            if !known {
                return Err(Fault::unsupported(format!("the operator class {class}")));
            }
        }
        let scalar = self.expression(&column.column.expr, scope)?;
        if scalar.volatile || scalar.sql.contains(ENVIRONMENT) {
            return Err(Fault::new(
                "42P17",
                "functions in index expression must be marked IMMUTABLE",
            ));
        }
        if !types::is_ordered(scalar.oid) {
            return Err(Fault::unsupported(format!(
                "an index of {}",
                facts::display_name(scalar.oid)
            )));
        }
        let descending = if matches!(column.column.options.sort, Some(sqlparser::ast::OrderBySort::Desc)) {
            " DESC"
        } else {
            ""
        };
        let name = column_name(&column.column.expr);
        let name = if name == "?column?" { "expr".to_owned() } else { name };
        Ok((format!("{}{descending}", scalar.compared()), name))
    }
}
