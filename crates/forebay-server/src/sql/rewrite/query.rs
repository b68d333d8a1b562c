//! PostgreSQL's spellings around a query: FETCH FIRST, LIMIT ALL, OFFSET alone or first, `public.`, FOR UPDATE.
//!
//! Contract: the same rows, in SQLite's words; a lock that cannot be taken is refused. Knows nothing of expressions.

use sqlparser::ast::{
    Expr, Fetch, LimitClause, ObjectName, ObjectNamePart, OffsetRows, Query, SelectItem,
    SelectItemQualifiedWildcardKind, Value,
};

use crate::sql::error::SqlError;
use crate::sql::lexer::{Kind, Token};

/// Rewrites one query, not those inside it.
pub(super) fn rewrite(query: &mut Query) -> Result<bool, SqlError> {
    if let Some(lock) = query.locks.first() {
        return Err(SqlError::unsupported_but(
            format!("SELECT … {lock}"),
            "One transaction writes at a time: begin a transaction that writes before it reads, and the rows cannot change.",
        ));
    }
    let mut changed = false;
    if let Some(Fetch {
        with_ties,
        percent,
        quantity,
    }) = query.fetch.take()
    {
        if with_ties || percent {
            return Err(SqlError::unsupported(if with_ties {
                "FETCH FIRST … WITH TIES"
            } else {
                "FETCH FIRST … PERCENT"
            }));
        }
        let wanted = quantity.unwrap_or_else(|| number("1"));
        let offset = match query.limit_clause.take() {
            None => None,
            Some(LimitClause::LimitOffset {
                limit: None,
                offset,
                limit_by,
            }) if limit_by.is_empty() => offset,
            Some(_) => return Err(SqlError::unsupported("both LIMIT and FETCH FIRST")),
        };
        query.limit_clause = Some(LimitClause::LimitOffset {
            limit: Some(wanted),
            offset,
            limit_by: Vec::new(),
        });
        changed = true;
    }
    if let Some(LimitClause::LimitOffset {
        limit,
        offset: Some(offset),
        ..
    }) = &mut query.limit_clause
    {
        if limit.is_none() {
            // SQLite knows OFFSET only behind LIMIT; a negative one is none.
            *limit = Some(Expr::UnaryOp {
                op: sqlparser::ast::UnaryOperator::Minus,
                expr: Box::new(number("1")),
            });
            changed = true;
        }
        if offset.rows != OffsetRows::None {
            offset.rows = OffsetRows::None;
            changed = true;
        }
    }
    Ok(changed)
}

fn number(digits: &str) -> Expr {
    Expr::value(Value::Number(digits.to_owned(), false))
}

/// Spellings the tree no longer shows: LIMIT ALL, and OFFSET before LIMIT. Writing the tree out is what changes them.
pub(super) fn needs_writing_out(script: &str, tokens: &[Token]) -> bool {
    let mut limit_seen = false;
    tokens.windows(2).any(|pair| {
        let word = |word| pair[0].is_word(script, word);
        if word("SELECT") {
            limit_seen = false;
        }
        limit_seen |= word("LIMIT");
        (word("LIMIT") && pair[1].is_word(script, "ALL"))
            || (word("OFFSET")
                && !limit_seen
                && matches!(pair[1].kind, Kind::Number | Kind::Parameter))
    })
}

/// Takes `public.` off a table's name.
pub(super) fn strip_public(name: &mut ObjectName) -> bool {
    let qualified = name.0.len() > 1
        && matches!(&name.0[0], ObjectNamePart::Identifier(schema) if schema.value.eq_ignore_ascii_case("public"));
    if qualified {
        name.0.remove(0);
    }
    qualified
}

/// Takes `public.` off `public.t.*`.
pub(super) fn strip_public_wildcards(items: &mut [SelectItem]) -> bool {
    let mut changed = false;
    for item in items {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
        {
            changed |= strip_public(name);
        }
    }
    changed
}
