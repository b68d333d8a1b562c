//! The FROM clause: relations, joins, subqueries, functions that return rows.
//!
//! Each item adds what it brings to the innermost scope as soon as it is written, so that what follows may refer to it.

use postgres_types::Type;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgumentList, FunctionArguments, JoinConstraint, JoinOperator, ObjectName,
    TableAlias, TableFactor, TableWithJoins,
};

use super::super::error::CatalogError;
use super::super::relations;
use super::piece::quoted;
use super::query::renamed;
use super::scope::{Scope, ScopeColumn, Source};
use super::translator::Translator;
use crate::sql::compile::naming::column_name;
use crate::sql::compile::syntax::{folded, name_parts};

impl Translator {
    /// One item between commas. `beside_others`: there is more than one.
    pub(super) fn table_with_joins(
        &mut self,
        item: &TableWithJoins,
        beside_others: bool,
    ) -> Result<String, CatalogError> {
        let mut sql = self.deeper(|this| this.factor(&item.relation))?;
        let mut outer_to_the_right = false;
        for join in &item.joins {
            if join.global {
                return Err(CatalogError::unsupported("GLOBAL JOIN"));
            }
            let (word, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("JOIN", constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("LEFT JOIN", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT JOIN", constraint),
                JoinOperator::FullOuter(constraint) => ("FULL JOIN", constraint),
                JoinOperator::CrossJoin(constraint @ JoinConstraint::None) => ("CROSS JOIN", constraint),
                _ => return Err(CatalogError::unsupported(join)),
            };
            outer_to_the_right |= matches!(word, "RIGHT JOIN" | "FULL JOIN");
            let relation = self.deeper(|this| this.factor(&join.relation))?;
            let natural = matches!(constraint, JoinConstraint::Natural);
            sql.push_str(&format!(" {}{word} {relation}", if natural { "NATURAL " } else { "" }));
            match constraint {
                JoinConstraint::On(condition) => {
                    sql.push_str(&format!(" ON {}", self.condition(condition)?));
                }
                JoinConstraint::Using(columns) => {
                    let columns: Option<Vec<String>> = columns
                        .iter()
                        .map(|column| {
                            name_parts(column)
                                .filter(|parts| parts.len() == 1)
                                .map(|mut parts| parts.remove(0))
                        })
                        .collect();
                    let columns = columns.ok_or_else(|| CatalogError::unsupported(join))?;
                    let list: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
                    sql.push_str(&format!(" USING ({})", list.join(", ")));
                    self.scope_mut().merged.extend(columns);
                }
                JoinConstraint::Natural => self.scope_mut().natural = true,
                JoinConstraint::None => {}
            }
        }
        // PostgreSQL joins before it puts the items side by side; SQLite goes from left to right, which only these joins can tell.
        Ok(if outer_to_the_right && beside_others {
            format!("({sql})")
        } else {
            sql
        })
    }

    fn scope_mut(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("a FROM clause is walked inside its own scope")
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<String, CatalogError> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                self.relation(name, alias.as_ref())
            }
            TableFactor::Table {
                name,
                alias,
                args: Some(args),
                with_ordinality,
                ..
            } if args.settings.is_none() => self.rows_of_function(name, &args.args, alias.as_ref(), *with_ordinality),
            TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => self.rows_of_function(name, args, alias.as_ref(), *with_ordinality),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => {
                let name = ObjectName::from(vec![sqlparser::ast::Ident::new("unnest")]);
                let args: Vec<FunctionArg> = array_exprs
                    .iter()
                    .map(|array| FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(array.clone())))
                    .collect();
                self.rows_of_function(&name, &args, alias.as_ref(), *with_ordinality)
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                sample: None,
            } => {
                let (text, columns) = self.query(subquery)?;
                let Some(alias) = alias else {
                    let name = self.fresh_name();
                    self.add(Source {
                        alias: name.clone(),
                        columns,
                        oid: None,
                    });
                    return Ok(format!("({text}) AS {}", quoted(&name)));
                };
                let name = checked_alias(alias)?;
                self.derived(&name, &text, columns, Some(alias), None)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => {
                let inside = self.table_with_joins(table_with_joins, false)?;
                Ok(format!("({inside})"))
            }
            TableFactor::Derived { lateral: true, .. } => Err(CatalogError::unsupported("LATERAL subqueries")),
            other => Err(CatalogError::unsupported(other)),
        }
    }

    fn add(&mut self, source: Source) {
        self.scope_mut().sources.push(source);
    }

    fn derived(
        &mut self,
        name: &str,
        text: &str,
        columns: Vec<ScopeColumn>,
        alias: Option<&TableAlias>,
        oid: Option<u32>,
    ) -> Result<String, CatalogError> {
        let renames = alias.is_some_and(|alias| !alias.columns.is_empty());
        let columns = match alias {
            Some(alias) => renamed(columns, alias)?,
            None => columns,
        };
        let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
        self.add(Source {
            alias: name.to_owned(),
            columns,
            oid,
        });
        let name = quoted(name);
        // SQLite names the columns of a subquery in WITH only. VALUES has names of its own there, which nobody promises.
        let needs_names = renames || text.starts_with("VALUES");
        Ok(if needs_names {
            format!(
                "(WITH {name}({}) AS ({text}) SELECT * FROM {name}) AS {name}",
                list.join(", ")
            )
        } else {
            format!("({text}) AS {name}")
        })
    }

    fn relation(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<String, CatalogError> {
        let undefined = || CatalogError::UndefinedTable { name: name.to_string() };
        let parts = name_parts(name).ok_or_else(undefined)?;
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table.as_str()),
            // A database may stand before the schema; there is only one.
            [schema, table] | [_, schema, table] => (Some(schema.as_str()), table.as_str()),
            _ => return Err(undefined()),
        };
        let common = if schema.is_none() {
            self.common_tables.iter().rev().find(|common| common.name == table)
        } else {
            None
        };
        let (reference, columns, oid) = match common {
            Some(common) => (quoted(table), common.columns.clone(), None),
            None => {
                let relation = relations::find(schema, table).ok_or_else(|| {
                    // A table of the client's, perhaps: those are in the file, and the catalog is in memory.
                    if matches!(schema, None | Some("public")) && !table.starts_with("pg_") {
                        CatalogError::unsupported(format!("\"{name}\" beside its own relations"))
                    } else {
                        undefined()
                    }
                })?;
                let columns = relation
                    .columns
                    .iter()
                    .map(|column| ScopeColumn {
                        modifier: column.modifier,
                        ..ScopeColumn::plain(column.name, column.kind.clone())
                    })
                    .collect();
                (
                    format!("\"{}\".\"{}\"", relation.schema, relation.name),
                    columns,
                    Some(relation.oid),
                )
            }
        };
        let name = alias
            .map(checked_alias)
            .transpose()?
            .unwrap_or_else(|| table.to_owned());
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            return self.derived(&name, &format!("SELECT * FROM {reference}"), columns, alias, oid);
        }
        self.add(Source {
            alias: name.clone(),
            columns,
            oid,
        });
        Ok(format!("{reference} AS {}", quoted(&name)))
    }

    /// A function in FROM: a set-returning one becomes rows of `json_each`, any other one row.
    fn rows_of_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        ordinality: bool,
    ) -> Result<String, CatalogError> {
        let function = Function {
            name: name.clone(),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: args.to_vec(),
                clauses: Vec::new(),
            }),
            within_group: Vec::new(),
            filter: None,
            null_treatment: None,
            over: None,
        };
        let own_name = column_name(&Expr::Function(function.clone()));
        let alias_name = alias
            .map(checked_alias)
            .transpose()?
            .unwrap_or_else(|| own_name.clone());
        let Some(set) = self.set_of(&function)? else {
            if ordinality {
                return Err(CatalogError::unsupported(
                    "WITH ORDINALITY of a function that returns one row",
                ));
            }
            let piece = self.expression(&Expr::Function(function))?;
            let text = format!("SELECT {} AS {}", piece.sql, quoted(&alias_name));
            return self.derived(
                &alias_name,
                &text,
                vec![ScopeColumn::plain(alias_name.clone(), piece.kind)],
                alias,
                None,
            );
        };
        let rows = quoted(&alias_name);
        let mut columns: Vec<ScopeColumn> = match set.fields.as_slice() {
            // The one column of a function is called as the function is.
            [] => vec![ScopeColumn {
                name: alias_name.clone(),
                kind: set.element.clone(),
                modifier: -1,
                sql: Some(format!("{rows}.\"value\"")),
            }],
            fields => fields
                .iter()
                .map(|(field, kind, path)| ScopeColumn {
                    name: (*field).to_owned(),
                    kind: kind.clone(),
                    modifier: -1,
                    sql: Some(format!("json_extract({rows}.\"value\", '{path}')")),
                })
                .collect(),
        };
        if ordinality {
            columns.push(ScopeColumn {
                name: "ordinality".to_owned(),
                kind: Type::INT8,
                modifier: -1,
                sql: Some(format!("({rows}.\"key\" + 1)")),
            });
        }
        if let Some(alias) = alias {
            columns = renamed(columns, alias)?;
        }
        self.add(Source {
            alias: alias_name,
            columns,
            oid: None,
        });
        Ok(format!("json_each({}) AS {rows}", set.json))
    }
}

fn checked_alias(alias: &TableAlias) -> Result<String, CatalogError> {
    if alias.at.is_some() || alias.columns.iter().any(|column| column.data_type.is_some()) {
        return Err(CatalogError::unsupported(alias));
    }
    Ok(folded(&alias.name))
}
