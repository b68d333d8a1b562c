//! Row: an INSERT of PostgreSQL's of one row of values, and the same of many rows.
//!
//! Promises: each column of the row is given a parameter or a literal and nothing else; nothing is returned, and a conflict is an error. The
//! INSERT of many rows has the text of the one up to its VALUES, and selects lists of what the parameters are, row by row. Knows no
//! table: whether its rows can tell of each other is to be asked of the catalog.

use std::ops::Range;

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::plain::{end, tokens};
use super::point::{Literal, make_parameters};
use super::syntax;
use super::touches::inserted_into;

/// An INSERT of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The table, as it stands in SQL.
    pub table: String,
    /// The text, with parameters where values were.
    pub text: String,
    /// How many parameters that has.
    pub parameters: usize,
    /// Which of the literals of a text without parameters these are, in their order; of a text that has parameters, none.
    pub literals: Vec<usize>,
}

/// Shows that a text is an INSERT of one row.
#[must_use]
pub fn row(sql: &str) -> Option<Row> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let ast::Statement::Insert(insert) = syntax::parse(Dialect::Postgres, sql)? else {
        return None;
    };
    let table = inserted_into(&insert)?;
    if insert.on.is_some() || insert.returning.is_some() || insert.source.is_none() {
        return None;
    }
    let mut parameters = 0;
    for (_, token) in all.iter().filter(|(_, token)| token.kind == Kind::Parameter) {
        parameters = parameters.max(syntax::parameter(Dialect::Postgres, token.text, 0)? + 1);
    }
    let cells = cells(&all, end)?;
    let mut text = sql[..end].to_owned();
    let mut literals = Vec::new();
    if parameters == 0 {
        let values = cells.iter().filter_map(|cell| match &all[cell.clone()] {
            [(_, token)] => Literal::of(token)
                .filter(|literal| literal.digits().or(literal.string()).is_some())
                .map(|_| cell.start),
            _ => None,
        });
        let places: Vec<usize> = values.collect();
        parameters = places.len();
        literals = make_parameters(&mut text, &all, &places);
    }
    (parameters > 0).then(|| Row {
        table: table.to_string(),
        text,
        parameters,
        literals,
    })
}

/// The INSERT of many rows that stands for one of this text, which has parameters; of what type each list is, as it stands in SQL.
#[must_use]
pub fn rows(sql: &str, lists: &[String]) -> Option<String> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let cells = cells(&all, end)?;
    let values = cells.first()?.start.checked_sub(2)?;
    let mut selected = Vec::with_capacity(cells.len());
    for cell in cells {
        let range = all.get(cell.start)?.0.start..all.get(cell.end - 1)?.0.end;
        selected.push(match &all[cell] {
            [(_, token)] if token.kind == Kind::Parameter => {
                let number = syntax::parameter(Dialect::Postgres, token.text, 0)?;
                format!("pg_catalog.unnest(${}::{})", number + 1, lists.get(number)?)
            }
            _ => sql[range].to_owned(),
        });
    }
    Some(format!("{}SELECT {}", &sql[..all[values].0.start], selected.join(", ")))
}

/// The tokens of each value of the one row, where each is a parameter or a literal.
pub(super) fn cells(tokens: &[(Range<usize>, Token<'_>)], end: usize) -> Option<Vec<Range<usize>>> {
    // A column may have that name, too.
    let values = tokens.iter().rposition(|(_, token)| token.is_word("VALUES"))?;
    let last = tokens.iter().rposition(|(range, _)| range.start < end)?;
    let is = |at: usize, symbol: &str| tokens.get(at).is_some_and(|(_, token)| token.is_symbol(symbol));
    if !is(values + 1, "(") || !is(last, ")") {
        return None;
    }
    let mut cells = Vec::new();
    let mut begin = values + 2;
    for at in values + 2..=last {
        let (_, token) = &tokens[at];
        if token.is_symbol(",") || at == last {
            if !is_value(&tokens[begin..at]) {
                return None;
            }
            cells.push(begin..at);
            begin = at + 1;
        } else if matches!(token.text, "(" | ")") {
            return None;
        }
    }
    Some(cells)
}

/// Whether it is a parameter, a string, a number with or without a sign, NULL, or a truth value.
fn is_value(tokens: &[(Range<usize>, Token<'_>)]) -> bool {
    let of_number = |token: &Token<'_>| token.kind == Kind::Digits || token.is_symbol(".");
    match tokens {
        [(_, token)] if token.kind == Kind::Parameter => true,
        [(_, token)] if token.kind == Kind::Text => Literal(token.text).string().is_some(),
        [(_, token)] if token.kind == Kind::Word => ["NULL", "TRUE", "FALSE"].iter().any(|word| token.is_word(word)),
        [(_, sign), rest @ ..] if sign.is_symbol("-") => {
            !rest.is_empty() && rest.iter().all(|(_, token)| of_number(token))
        }
        [] => false,
        all => all.iter().all(|(_, token)| of_number(token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> Option<(String, usize, Vec<usize>)> {
        row(sql).map(|row| (row.text, row.parameters, row.literals))
    }

    #[test]
    fn one_row_of_values_is_a_row() {
        for (sql, text, parameters, literals) in [
            ("INSERT INTO t VALUES ($1)", "INSERT INTO t VALUES ($1)", 1, &[][..]),
            (
                "INSERT INTO s.t (a, values) VALUES ($1, 'x');",
                "INSERT INTO s.t (a, values) VALUES ($1, 'x')",
                1,
                &[],
            ),
            (
                "INSERT INTO t (a, b, c, d) VALUES (5, 'it''s', NULL, -7)",
                "INSERT INTO t (a, b, c, d) VALUES ($1, $2, NULL, -7)",
                2,
                &[0, 1],
            ),
            (
                "insert into t values (1.5, 3) -- of 3",
                "insert into t values (1.5, $1) -- of 3",
                1,
                &[2],
            ),
        ] {
            let wanted = Some((text.to_owned(), parameters, literals.to_vec()));
            assert_eq!(shown(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn nothing_else_is_a_row() {
        for sql in [
            "INSERT INTO t VALUES ($1), ($2)",
            "INSERT INTO t VALUES ($1 + 1)",
            "INSERT INTO t VALUES (now(), $1)",
            "INSERT INTO t VALUES (DEFAULT, $1)",
            "INSERT INTO t VALUES (($1))",
            "INSERT INTO t VALUES ($1::int)",
            "INSERT INTO t VALUES (E'x', $1)",
            "INSERT INTO t VALUES ($1) RETURNING a",
            "INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING",
            "INSERT INTO t SELECT $1",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t VALUES (NULL)",
            "INSERT INTO t VALUES (ARRAY[$1])",
            "WITH c AS (SELECT 1) INSERT INTO t VALUES ($1)",
            "UPDATE t SET a = $1",
            "VALUES ($1)",
        ] {
            assert_eq!(row(sql), None, "{sql}");
        }
    }

    #[test]
    fn many_rows_have_the_same_columns() {
        let lists = ["pg_catalog.int4[]".to_owned(), "pg_catalog.text[]".to_owned()];
        assert_eq!(
            rows("INSERT INTO t (a, b, c) VALUES ($2, 'x', $1) ;", &lists).as_deref(),
            Some(
                "INSERT INTO t (a, b, c) SELECT pg_catalog.unnest($2::pg_catalog.text[]), 'x', pg_catalog.unnest($1::pg_catalog.int4[])"
            )
        );
        assert_eq!(rows("INSERT INTO t VALUES ($3)", &lists), None);
    }
}
