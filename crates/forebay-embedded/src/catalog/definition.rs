//! What only the text of a CREATE statement tells: names of constraints, CHECK expressions, generated columns, index expressions.
//!
//! Reads with a real parser, or says nothing: a statement that does not parse yields an empty answer, and the catalog falls back
//! to PostgreSQL's default names and to SQLite's own text. Knows no OIDs and no connection.

use std::ops::ControlFlow;

use sqlparser::ast::{ColumnOption, Expr, Ident, IndexColumn, Statement, TableConstraint};

use crate::sql::walk::walk_expressions;
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// What a CREATE TABLE declares beyond what SQLite's pragmas tell.
#[derive(Debug, Default)]
pub(super) struct TableDefinition {
    pub(super) auto_increment: bool,
    pub(super) checks: Vec<Check>,
    /// Named or not, with the folded names of their columns.
    pub(super) uniques: Vec<Named>,
    pub(super) primary_key: Option<Named>,
    pub(super) foreign_keys: Vec<Named>,
    /// Column name (folded) and expression.
    pub(super) generated: Vec<(String, String)>,
    /// The definition in PostgreSQL's terms, of a table that a client made: then nothing else here is looked at.
    pub(super) own: Option<crate::sql::compile::definition::Definition>,
}

#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: Option<String>,
    pub(super) columns: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Check {
    pub(super) name: Option<String>,
    /// Names (as written) of what the expression mentions.
    pub(super) columns: Vec<String>,
    pub(super) expression: String,
}

/// What a CREATE INDEX declares.
#[derive(Debug, Default)]
pub(super) struct IndexDefinition {
    /// Each key as written, without its sort order.
    pub(super) keys: Vec<String>,
    pub(super) predicate: Option<String>,
}

fn parse(sql: &str) -> Option<Statement> {
    let mut statements = Parser::parse_sql(&SQLiteDialect {}, sql).ok()?;
    (statements.len() == 1).then(|| statements.remove(0))
}

pub(super) fn table(sql: &str) -> TableDefinition {
    if let Some(own) = crate::sql::compile::definition::Definition::read(sql) {
        return TableDefinition {
            own: Some(own),
            ..TableDefinition::default()
        };
    }
    let mut definition = TableDefinition {
        auto_increment: has_auto_increment(sql),
        ..TableDefinition::default()
    };
    let Some(Statement::CreateTable(table)) = parse(sql) else {
        return definition;
    };
    for column in &table.columns {
        let columns = vec![column.name.value.to_lowercase()];
        for option in &column.options {
            let name = option.name.as_ref().map(|name| name.value.clone());
            match &option.option {
                ColumnOption::Check(check) => definition
                    .checks
                    .push(check_of(name.or_else(|| value(check.name.as_ref())), &check.expr)),
                ColumnOption::Unique(_) => definition.uniques.push(Named {
                    name,
                    columns: columns.clone(),
                }),
                ColumnOption::PrimaryKey(_) => {
                    definition.primary_key = Some(Named {
                        name,
                        columns: columns.clone(),
                    });
                }
                ColumnOption::ForeignKey(_) => definition.foreign_keys.push(Named {
                    name,
                    columns: columns.clone(),
                }),
                ColumnOption::Generated {
                    generation_expr: Some(expression),
                    ..
                } => {
                    definition
                        .generated
                        .push((column.name.value.to_lowercase(), expression.to_string()));
                }
                _ => {}
            }
        }
    }
    for constraint in &table.constraints {
        match constraint {
            TableConstraint::Check(check) => definition
                .checks
                .push(check_of(value(check.name.as_ref()), &check.expr)),
            TableConstraint::Unique(unique) => {
                definition.uniques.push(Named {
                    name: value(unique.name.as_ref()),
                    columns: key_names(&unique.columns),
                });
            }
            TableConstraint::PrimaryKey(key) => {
                definition.primary_key = Some(Named {
                    name: value(key.name.as_ref()),
                    columns: key_names(&key.columns),
                });
            }
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(|column| column.value.to_lowercase()).collect();
                definition.foreign_keys.push(Named {
                    name: value(key.name.as_ref()),
                    columns,
                });
            }
            _ => {}
        }
    }
    definition
}

pub(super) fn index(sql: &str) -> Option<IndexDefinition> {
    let Some(Statement::CreateIndex(index)) = parse(sql) else {
        return None;
    };
    Some(IndexDefinition {
        keys: index.columns.iter().map(|key| key.column.expr.to_string()).collect(),
        predicate: index.predicate.as_ref().map(ToString::to_string),
    })
}

/// The query of a view, as PostgreSQL prints definitions: with a leading blank and a semicolon.
pub(super) fn view(sql: &str) -> String {
    if let Some(text) = crate::sql::compile::schema::view_text(sql) {
        return format!(" {text};");
    }
    match parse(sql) {
        Some(Statement::CreateView(view)) => format!(" {};", view.query),
        _ => sql.to_owned(),
    }
}

/// When and for what a trigger fires, in the bits of `pg_trigger.tgtype`: 1 row, 2 before, 4 insert, 8 delete, 16 update, 64 instead.
pub(super) fn trigger_bits(sql: &str) -> i64 {
    let mut bits = 1;
    for token in Tokenizer::new(&SQLiteDialect {}, sql).tokenize().unwrap_or_default() {
        let Token::Word(word) = token else { continue };
        if word.quote_style.is_some() {
            continue;
        }
        match word.value.to_ascii_uppercase().as_str() {
            "BEFORE" => bits |= 2,
            "INSTEAD" => bits |= 64,
            "INSERT" => bits |= 4,
            "DELETE" => bits |= 8,
            "UPDATE" => bits |= 16,
            // What follows is the table, then the trigger's body, whose statements are not what it fires for.
            "ON" | "BEGIN" => break,
            _ => {}
        }
    }
    bits
}

/// Whether a default is one string literal and nothing else.
pub(super) fn is_string_literal(text: &str) -> bool {
    match Tokenizer::new(&SQLiteDialect {}, text).tokenize() {
        Ok(tokens) => matches!(tokens.as_slice(), [Token::SingleQuotedString(_)]),
        Err(_) => false,
    }
}

/// AUTOINCREMENT is a reserved word in SQLite: where it stands as a bare word, it is the constraint.
fn has_auto_increment(sql: &str) -> bool {
    Tokenizer::new(&SQLiteDialect {}, sql).tokenize().unwrap_or_default().iter().any(|token| {
        matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("autoincrement"))
    })
}

fn value(name: Option<&Ident>) -> Option<String> {
    name.map(|name| name.value.clone())
}

fn key_names(columns: &[IndexColumn]) -> Vec<String> {
    columns
        .iter()
        .map(|column| match &column.column.expr {
            Expr::Identifier(name) => name.value.to_lowercase(),
            other => other.to_string().to_lowercase(),
        })
        .collect()
}

fn check_of(name: Option<String>, expression: &Expr) -> Check {
    let mut columns: Vec<String> = Vec::new();
    let _ = walk_expressions(expression, |part| {
        if let Expr::Identifier(name) = part
            && !columns.contains(&name.value)
        {
            columns.push(name.value.clone());
        }
        ControlFlow::Continue(())
    });
    Check {
        name,
        columns,
        expression: expression.to_string(),
    }
}
