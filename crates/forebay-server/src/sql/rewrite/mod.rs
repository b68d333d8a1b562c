//! Carries PostgreSQL's spellings over into SQLite's SQL.
//!
//! Contract:
//! - A statement that needs nothing of it keeps its text byte for byte.
//! - One that is changed is written out again from its tree. Nothing may be lost in that: the tree as first parsed must write out all
//!   words of the text, and the text as rewritten must parse back into the rewritten tree. Otherwise it is an error, and nothing runs.
//! - What goes into the schema (tables, indexes, views) is SQLite's own SQL alone, so that the file can be read without this server.
//!
//! Knows nothing of the schema that is there.

mod casts;
mod catalog;
mod expressions;
mod insert;
mod lexical;
mod query;
mod roundtrip;
mod table;

use std::ops::ControlFlow;

use sqlparser::ast::{Statement as Tree, VisitMut, VisitorMut};

use super::error::SqlError;
use super::lexer::{Kind as TokenKind, Token, name_value};
use super::split::{Segment, starts_trigger};
use super::{Environment, Kind, Statement, grammar};

#[cfg(test)]
pub(super) use {lexical::for_grammar, roundtrip::write_out};

/// Fills in the tree, and what SQLite gets.
pub(super) fn rewrite(
    statement: &mut Statement,
    script: &str,
    segment: &Segment,
    environment: &Environment<'_>,
) -> Result<(), SqlError> {
    grammar::check_depth(script, &segment.tokens)?;
    refuse_connection_state(script, &segment.tokens)?;
    if let Some(tree) = catalog::catalog_query(script, segment, &statement.sql)? {
        statement.kind = Kind::Catalog;
        statement.tree = tree.map(Into::into);
        return Ok(());
    }
    if segment
        .tokens
        .iter()
        .any(|token| token.kind == TokenKind::QuotedName && token.text(script) == "[]")
    {
        return Err(SqlError::unsupported_but(
            "an array type",
            "Store the list as JSON, or in a table of its own.",
        ));
    }
    let plain = lexical::plain(script, segment)?;
    let text = plain.as_deref().unwrap_or(&statement.sql);
    let mut tree = None;
    let mut changed_text = None;
    if !starts_trigger(script, &segment.tokens)
        && let readable = lexical::for_grammar(text)?
        && let text = readable.as_deref().unwrap_or(text)
        && let Some(original) = grammar::parse(text)?
    {
        let mut rewritten = original.clone();
        if apply(&mut rewritten, script, &segment.tokens, environment)? {
            changed_text = Some(roundtrip::write_out(text, &original, &rewritten)?);
        }
        tree = Some(original);
    }
    statement.tree = tree.map(Into::into);
    if let Some(changed) = changed_text.or(plain) {
        statement.sql = changed.into();
        statement.rewritten = true;
    }
    Ok(())
}

/// Functions that tell or change what belongs to one connection: clients share them, so the answer would be another client's.
fn refuse_connection_state(script: &str, tokens: &[Token]) -> Result<(), SqlError> {
    if starts_trigger(script, tokens) {
        // A trigger runs within one statement, where last_insert_rowid() and changes() are that statement's.
        return Ok(());
    }
    for (index, token) in tokens.iter().enumerate() {
        let called = tokens
            .get(index + 1)
            .is_some_and(|next| next.kind == TokenKind::Open);
        let bare = tokens
            .get(index + 2)
            .is_some_and(|next| next.kind == TokenKind::Close);
        if !called {
            continue;
        }
        let Some(name) = name_value(token.kind, token.text(script)) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "last_insert_rowid" | "changes" | "total_changes" | "lastval" if bare => {
                return Err(SqlError::unsupported_but(
                    format!("{name}()"),
                    "Connections are shared: use INSERT … RETURNING to get what was written.",
                ));
            }
            "currval" | "nextval" | "setval" if !defines(script, tokens, index) => {
                return Err(SqlError::unsupported_but(
                    format!("{name}()"),
                    "There are no sequences: an INTEGER PRIMARY KEY numbers itself, and INSERT … RETURNING tells the number.",
                ));
            }
            "load_extension" if !defines(script, tokens, index) => {
                return Err(SqlError::unsupported("load_extension()"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the name at this place is a table's or a constraint's, with a list of columns behind it.
fn defines(script: &str, tokens: &[Token], index: usize) -> bool {
    index
        .checked_sub(1)
        .and_then(|before| tokens.get(before))
        .is_some_and(|before| {
            [
                "INTO",
                "TABLE",
                "EXISTS",
                "REFERENCES",
                "ON",
                "INDEX",
                "WITH",
            ]
            .iter()
            .any(|word| before.is_word(script, word))
        })
}

/// Applies every rewriting to the tree; says whether anything changed.
fn apply(
    tree: &mut Tree,
    script: &str,
    tokens: &[Token],
    environment: &Environment<'_>,
) -> Result<bool, SqlError> {
    let mut rewriter = Rewriter {
        environment,
        in_schema: is_schema(tree),
        has_relation: expressions::has_relation(tree),
        changed: query::needs_writing_out(script, tokens),
    };
    if let ControlFlow::Break(error) = tree.visit(&mut rewriter) {
        return Err(error);
    }
    rewriter.changed |= table::rewrite(tree)?;
    Ok(rewriter.changed)
}

/// Whether the statement's expressions are kept in the schema, to be run by whoever opens the file.
fn is_schema(tree: &Tree) -> bool {
    match tree {
        Tree::CreateTable(table) => table.query.is_none(),
        Tree::CreateView(_) | Tree::CreateIndex(_) | Tree::AlterTable(_) => true,
        _ => false,
    }
}

struct Rewriter<'a> {
    environment: &'a Environment<'a>,
    in_schema: bool,
    /// Whether any table is named: only without one is `user` the current user and not a column.
    has_relation: bool,
    changed: bool,
}

impl VisitorMut for Rewriter<'_> {
    type Break = SqlError;

    fn pre_visit_statement(&mut self, statement: &mut Tree) -> ControlFlow<SqlError> {
        match insert::rewrite(statement) {
            Ok(changed) => self.changed |= changed,
            Err(error) => return ControlFlow::Break(error),
        }
        match statement {
            Tree::Insert(insert) => {
                expressions::name_items(insert.returning.iter_mut().flatten(), self)
            }
            Tree::Update(update) => {
                expressions::name_items(update.returning.iter_mut().flatten(), self)
            }
            Tree::Delete(delete) => {
                expressions::name_items(delete.returning.iter_mut().flatten(), self)
            }
            Tree::Drop { names, .. } => {
                for name in names {
                    self.changed |= query::strip_public(name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut sqlparser::ast::Query) -> ControlFlow<SqlError> {
        match query::rewrite(query) {
            Ok(changed) => self.changed |= changed,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut sqlparser::ast::Select) -> ControlFlow<SqlError> {
        self.changed |= query::strip_public_wildcards(&mut select.projection);
        expressions::name_items(select.projection.iter_mut(), self);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(
        &mut self,
        relation: &mut sqlparser::ast::ObjectName,
    ) -> ControlFlow<SqlError> {
        self.changed |= query::strip_public(relation);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut sqlparser::ast::Expr) -> ControlFlow<SqlError> {
        match expressions::rewritten(expression, self) {
            Ok(Some(replacement)) => {
                *expression = replacement;
                self.changed = true;
            }
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
