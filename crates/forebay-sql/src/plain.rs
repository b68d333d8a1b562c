//! Plain: texts of PostgreSQL's that all its servers read alike, whatever their settings, and queries that neither write nor lock.
//!
//! Promises: nothing is plain that has a backslash, an escaped name or a hint. A query that only reads was seen to do so in its syntax tree; what a
//! function of it does is not looked at.

use std::ops::{ControlFlow, Range};

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};

/// The tokens and where they stand; none for a text that a server may read differently.
pub(super) fn tokens(sql: &str) -> Option<Vec<(Range<usize>, Token<'_>)>> {
    if sql.contains('\\') {
        return None;
    }
    let mut tokens: Vec<(Range<usize>, Token<'_>)> = Vec::new();
    for token in Lexer::new(Dialect::Postgres, sql) {
        let token = token.ok()?;
        let start = token.text.as_ptr().addr() - sql.as_ptr().addr();
        // U&"…" is a name that may be any other.
        let escapes = tokens.last().is_some_and(|(_, before)| before.is_word("U")) && token.is_symbol("&");
        if escapes || token.kind == Kind::Hint {
            return None;
        }
        tokens.push((start..start + token.text.len(), token));
    }
    Some(tokens)
}

/// Where the query ends, without a `;`.
pub(super) fn end(tokens: &[(Range<usize>, Token<'_>)], sql: &str) -> Option<usize> {
    let ends = tokens.iter().position(|(_, token)| token.is_symbol(";"));
    match ends {
        None => Some(sql.len()),
        Some(at) if tokens[at..].iter().all(|(_, token)| token.is_symbol(";")) => Some(tokens[at].0.start),
        Some(_) => None,
    }
}

/// Whether it is a query that neither writes nor locks, as far as its text tells.
pub(super) fn only_reads(statement: &ast::Statement) -> bool {
    struct Reads;

    impl ast::Visitor for Reads {
        type Break = ();

        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            let reads = query.locks.is_empty() && query.for_clause.is_none() && body_reads(&query.body);
            stop_unless(reads)
        }

        fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
            stop_unless(select.into.is_none())
        }

        fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<()> {
            stop_unless(matches!(statement, ast::Statement::Query(_)))
        }
    }

    fn stop_unless(reads: bool) -> ControlFlow<()> {
        if reads {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn body_reads(body: &ast::SetExpr) -> bool {
        match body {
            ast::SetExpr::Select(_) | ast::SetExpr::Query(_) | ast::SetExpr::Values(_) | ast::SetExpr::Table(_) => true,
            ast::SetExpr::SetOperation { left, right, .. } => body_reads(left) && body_reads(right),
            ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_) | ast::SetExpr::Merge(_) => {
                false
            }
        }
    }

    ast::Visit::visit(statement, &mut Reads).is_continue()
}
