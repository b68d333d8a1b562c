//! Restricted: the rows of one table that a statement is restricted to, by columns that have one of a few values each in all of them.
//!
//! Promises: the answer of a query hangs on no row in which one of the columns has none of its values, and on no row of another table; an UPDATE or
//! DELETE changes no such row, as far as it names rows itself, and an INSERT makes none. What the comparison makes of its two sides
//! is for their types to say. Where a value stands is told by its place in the text, so that it holds for all texts that are alike but for literals.
//! Knows no table: of what types the columns are is to be asked of the catalog.

use std::ops::Range;

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::listed::{has_known_functions, makes_rows_of_rows};
use super::plain::{end, only_reads, tokens};
use super::point::{Equality, Literal, column, conjuncts, equality, folded, literal_at, number_of, place_of};
use super::row::cells;
use super::syntax;
use super::touches::{deleted_from, inserted_into, leaves_rows, name, only_table, updated};

/// The rows that a statement is restricted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restricted {
    /// The table, without its schema, as PostgreSQL keeps its name.
    pub table: String,
    /// The columns that have one of a few values each.
    pub columns: Vec<Restriction>,
    /// The columns that rows of it are given other values in.
    pub assigned: Vec<String>,
    /// A row of its answer shows that there is such a row.
    pub shows_row: bool,
}

/// A column that has one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// As PostgreSQL keeps its name.
    pub column: String,
    /// What they are.
    pub to: Vec<To>,
}

/// Longer lists are none.
const LIST_MAX: usize = 1000;

/// A value, or several, by the place. A parameter that stands elsewhere, too, is none: there it may be of another type than it is compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The parameter of this number, from 0 on.
    Parameter(usize),
    /// The same, as a value of the type of this number in every PostgreSQL.
    Cast(usize, u32),
    /// The [literal](super::literals) of this number, from 0 on.
    Literal(usize),
    /// What is in the array that is the parameter of this number; as values of the type of the second number, if there is one.
    Elements(usize, Option<u32>),
}

type Tokens<'a> = [(Range<usize>, Token<'a>)];

/// Shows which rows of one table a statement is restricted to.
#[must_use]
pub fn restricted(sql: &str) -> Option<Restricted> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let has = |words: &[&str]| {
        all.iter()
            .any(|(_, token)| words.iter().any(|word| token.is_word(word)))
    };
    if has(&["ONLY"]) {
        return None;
    }
    let parsed = syntax::parse(Dialect::Postgres, sql)?;
    match &parsed {
        ast::Statement::Query(query) => {
            let ast::SetExpr::Select(select) = &*query.body else {
                return None;
            };
            let queries = all.iter().filter(|(_, token)| token.is_word("SELECT"));
            if !only_reads(&parsed) || queries.count() != 1 || has(&["TABLE", "VALUES", "WITH"]) {
                return None;
            }
            let [from] = select.from.as_slice() else { return None };
            let found = found(&all, only_table(from)?, select.selection.as_ref()?, &[])?;
            Some(Restricted {
                shows_row: makes_rows_of_rows(select) && has_known_functions(&parsed),
                ..found
            })
        }
        ast::Statement::Update(update) => found(
            &all,
            only_table(updated(update)?)?,
            update.selection.as_ref()?,
            &update.assignments,
        ),
        ast::Statement::Delete(delete) => found(
            &all,
            only_table(deleted_from(delete)?)?,
            delete.selection.as_ref()?,
            &[],
        ),
        ast::Statement::Insert(insert) => made(&all, end, insert),
        _ => None,
    }
}

/// Of rows that are there and fulfil a condition.
fn found(
    tokens: &Tokens<'_>,
    table: &ast::ObjectName,
    condition: &ast::Expr,
    assignments: &[ast::Assignment],
) -> Option<Restricted> {
    let mut columns = Vec::new();
    conjuncts(condition, &mut |conjunct| {
        let one = || equality(conjunct).and_then(|equality| restriction(tokens, &equality));
        columns.extend(
            one()
                .or_else(|| of_list(tokens, conjunct))
                .or_else(|| of_array(tokens, conjunct)),
        );
    });
    let assigned = assignments.iter().map(|assignment| match &assignment.target {
        ast::AssignmentTarget::ColumnName(target) => match target.0.as_slice() {
            [ast::ObjectNamePart::Identifier(target)] => folded(target),
            _ => None,
        },
        ast::AssignmentTarget::Tuple(_) => None,
    });
    shown(table, columns, assigned.collect::<Option<_>>()?)
}

/// Of a row that stands in an INSERT.
fn made(tokens: &Tokens<'_>, end: usize, insert: &ast::Insert) -> Option<Restricted> {
    // What is found in conflict may be any row.
    let table = inserted_into(insert).filter(|_| leaves_rows(insert))?;
    let end = tokens
        .iter()
        .find(|(_, token)| token.is_word("ON") || token.is_word("RETURNING"))
        .map_or(end, |(range, _)| range.start.min(end));
    let cells = cells(tokens, end)?;
    if cells.len() != insert.columns.len() {
        return None;
    }
    let columns = insert.columns.iter().zip(cells).filter_map(|(column, cell)| {
        let [ast::ObjectNamePart::Identifier(column)] = column.0.as_slice() else {
            return None;
        };
        let [(_, token)] = &tokens[cell.clone()] else {
            return None;
        };
        let to = match token.kind {
            Kind::Parameter => To::Parameter(parameter_alone(tokens, token.text)?),
            _ => To::Literal(literal_at(tokens, cell.start)?),
        };
        let column = folded(column)?;
        Some(Restriction { column, to: vec![to] })
    });
    let columns = columns.collect();
    shown(table, columns, Vec::new())
}

fn shown(table: &ast::ObjectName, columns: Vec<Restriction>, assigned: Vec<String>) -> Option<Restricted> {
    let ast::ObjectNamePart::Identifier(last) = table.0.last()? else {
        return None;
    };
    let table = folded(last)?;
    (!columns.is_empty()).then_some(Restricted {
        table,
        columns,
        assigned,
        shows_row: false,
    })
}

/// The number of a parameter that stands nowhere else.
fn parameter_alone(tokens: &Tokens<'_>, name: &str) -> Option<usize> {
    let is_it = |(_, token): &&(Range<usize>, Token<'_>)| token.kind == Kind::Parameter && token.text == name;
    let is_alone = tokens.iter().filter(is_it).count() == 1;
    is_alone
        .then(|| syntax::parameter(Dialect::Postgres, name, 0))
        .flatten()
}

fn restriction(tokens: &Tokens<'_>, equality: &Equality<'_>) -> Option<Restriction> {
    let to = match (equality.value, equality.cast) {
        (ast::Value::Placeholder(name), cast) => {
            let number = parameter_alone(tokens, name)?;
            cast.map_or(To::Parameter(number), |cast| To::Cast(number, cast))
        }
        _ => To::Literal(literal_at(tokens, place_of(tokens, equality)?)?),
    };
    Some(Restriction {
        column: equality.column.clone(),
        to: vec![to],
    })
}

/// By a list that stands in the text.
fn of_list(tokens: &Tokens<'_>, condition: &ast::Expr) -> Option<Restriction> {
    let ast::Expr::InList {
        expr,
        list,
        negated: false,
    } = condition
    else {
        return None;
    };
    let column = column(expr).filter(|_| list.len() <= LIST_MAX)?;
    let begins = |at: &usize| {
        let [(_, before), (_, is_in), (_, opens)] = &tokens[*at..at + 3] else {
            return false;
        };
        is_in.is_word("IN") && opens.is_symbol("(") && matches!(name(before), Ok(Some(name)) if name == column)
    };
    let mut all = (0..tokens.len().saturating_sub(2)).filter(begins);
    let mut at = all.next()? + 3;
    if all.next().is_some() {
        return None;
    }
    let mut to = Vec::with_capacity(list.len());
    loop {
        let (_, token) = tokens.get(at)?;
        to.push(match token.kind {
            Kind::Parameter => To::Parameter(parameter_alone(tokens, token.text)?),
            _ => {
                let literal = Literal::of(token)?;
                literal.digits().or(literal.string())?;
                To::Literal(literal_at(tokens, at)?)
            }
        });
        let (_, behind) = tokens.get(at + 1)?;
        match behind.is_symbol(",") {
            true => at += 2,
            false if behind.is_symbol(")") => break,
            false => return None,
        }
    }
    (to.len() == list.len()).then_some(Restriction { column, to })
}

/// By an array that is a parameter.
fn of_array(tokens: &Tokens<'_>, condition: &ast::Expr) -> Option<Restriction> {
    let ast::Expr::AnyOp {
        left,
        compare_op: ast::BinaryOperator::Eq,
        right,
        is_some: _,
    } = condition
    else {
        return None;
    };
    let (array, cast) = match &**right {
        ast::Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr,
            data_type: ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(of, None)),
            format: None,
            ..
        } => (&**expr, Some(number_of(of)?)),
        array => (array, None),
    };
    let ast::Expr::Value(ast::ValueWithSpan {
        value: ast::Value::Placeholder(name),
        ..
    }) = array
    else {
        return None;
    };
    let to = To::Elements(parameter_alone(tokens, name)?, cast);
    Some(Restriction {
        column: column(left)?,
        to: vec![to],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = (String, Vec<(String, Vec<To>)>, Vec<String>);

    fn shown(sql: &str) -> Option<Shown> {
        restricted(sql).map(|shown| {
            let columns = shown.columns.into_iter().map(|one| (one.column, one.to));
            (shown.table, columns.collect(), shown.assigned)
        })
    }

    #[test]
    fn what_holds_of_every_row_is_told() {
        for (sql, table, columns) in [
            ("SELECT * FROM s.t WHERE id = $2", "t", &[("id", To::Parameter(1))][..]),
            (
                "SELECT count(*), max(a) FROM \"T\" x WHERE x.id = 5 AND (b = 'it''s' AND c > 7) GROUP BY d ORDER BY 1 LIMIT 3",
                "T",
                &[("id", To::Literal(0)), ("b", To::Literal(1))],
            ),
            (
                "SELECT 7, 'x' FROM t WHERE \"Id\" = $1::int8;",
                "t",
                &[("Id", To::Cast(0, 20))],
            ),
            (
                "SELECT 7, 'x' FROM t WHERE NOT gone AND id = 7",
                "t",
                &[("id", To::Literal(2))],
            ),
            (
                "DELETE FROM t WHERE id = $1 RETURNING *",
                "t",
                &[("id", To::Parameter(0))],
            ),
            ("INSERT INTO t (a, b, c, d) VALUES ($1, now, DEFAULT, 'x')", "", &[]),
            (
                "INSERT INTO t (a, b, c) VALUES ($1, -5, 'x') ON CONFLICT DO NOTHING RETURNING a",
                "t",
                &[("a", To::Parameter(0)), ("c", To::Literal(1))],
            ),
        ] {
            let columns: Vec<_> = columns
                .iter()
                .map(|(name, to)| ((*name).to_owned(), vec![*to]))
                .collect();
            let told = (!columns.is_empty()).then(|| (table.to_owned(), columns, vec![]));
            assert_eq!(shown(sql), told, "{sql}");
        }
        let (_, columns, assigned) = shown("UPDATE t SET a = $1, \"B\" = b + 1 WHERE id = $2 AND a = 5").unwrap();
        assert_eq!(
            columns,
            [
                ("id".to_owned(), vec![To::Parameter(1)]),
                ("a".to_owned(), vec![To::Literal(1)])
            ]
        );
        assert_eq!(assigned, ["a", "B"]);
    }

    #[test]
    fn a_column_may_have_one_of_several_values() {
        for (sql, to) in [
            ("SELECT * FROM t WHERE id IN (5)", &[To::Literal(0)][..]),
            (
                "DELETE FROM \"t\" WHERE \"t\".\"id\" IN ($2, 'x', 7) AND a = 3",
                &[To::Parameter(1), To::Literal(0), To::Literal(1)],
            ),
            ("SELECT 7 FROM t WHERE id = ANY($1)", &[To::Elements(0, None)]),
            (
                "UPDATE t SET a = 1 WHERE b AND id = ANY ($1::bigint[])",
                &[To::Elements(0, Some(20))],
            ),
        ] {
            let (_, columns, _) = shown(sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!(columns[0], ("id".to_owned(), to.to_vec()), "{sql}");
        }
        let long = |count: usize| format!("DELETE FROM t WHERE id IN (1{})", ", 1".repeat(count - 1));
        assert!(restricted(&long(LIST_MAX)).is_some() && restricted(&long(LIST_MAX + 1)).is_none());
    }

    #[test]
    fn an_answer_shows_a_row_where_each_of_its_rows_is_one_of_the_table() {
        for (sql, shows) in [
            ("SELECT * FROM t WHERE id = 5", true),
            (
                "SELECT lower(a) || 'x' FROM t WHERE id = $1 AND b > 7 ORDER BY c LIMIT 1",
                true,
            ),
            ("SELECT count(*) FROM t WHERE id = 5", false),
            ("SELECT 1 FROM t WHERE id = 5 GROUP BY GROUPING SETS (())", false),
            ("SELECT 1 FROM t WHERE id = 5 HAVING true", false),
            ("DELETE FROM t WHERE id = 5 RETURNING *", false),
            ("INSERT INTO t (id) VALUES (5) RETURNING *", false),
        ] {
            assert_eq!(restricted(sql).map(|shown| shown.shows_row), Some(shows), "{sql}");
        }
    }

    #[test]
    fn what_may_be_of_other_rows_is_not_told() {
        for sql in [
            "SELECT * FROM t",
            "SELECT * FROM t WHERE id = 5 OR a",
            "SELECT * FROM t WHERE NOT (id = 5)",
            "SELECT * FROM t WHERE id > 5 AND id = a AND id = 5.5 AND id = -5",
            "SELECT * FROM t WHERE id NOT IN (5, 6)",
            "SELECT * FROM t WHERE id IN (5, -6)",
            "SELECT * FROM t WHERE id IN (5, 6.5)",
            "SELECT * FROM t WHERE id IN (5, 6e1)",
            "SELECT * FROM t WHERE id IN (5, a)",
            "SELECT * FROM t WHERE id IN (5, $1::int8)",
            "SELECT * FROM t WHERE id IN ('a', E'b')",
            "SELECT * FROM t WHERE id IN ($1, $1)",
            "SELECT * FROM t WHERE id IN (1) OR id IN (2)",
            "SELECT * FROM t WHERE id IN (1) AND (a OR id IN (2))",
            "SELECT * FROM t WHERE (id, a) IN ((1, 2))",
            "SELECT * FROM t WHERE id <> ANY($1)",
            "SELECT * FROM t WHERE id = ALL($1)",
            "SELECT * FROM t WHERE id = ANY('{1}')",
            "SELECT * FROM t WHERE id = ANY(ARRAY[$1])",
            "SELECT * FROM t WHERE id = ANY($1::numeric[])",
            "SELECT $1 FROM t WHERE id = ANY($1)",
            "SELECT * FROM t WHERE id = 5 COLLATE \"x\"",
            "SELECT * FROM t WHERE id = $1 + 1",
            "SELECT a, $1::float8 FROM t WHERE id = $1",
            "SELECT a FROM t WHERE id = $1::int8 AND a > $1",
            "INSERT INTO t (id, a) VALUES ($1, $1)",
            "SELECT CASE WHEN id = 5 THEN 1 END FROM t WHERE id = 5",
            "SELECT * FROM t, u WHERE id = 5",
            "SELECT * FROM t JOIN u ON true WHERE id = 5",
            "SELECT * FROM t WHERE id = 5 AND EXISTS (SELECT FROM t)",
            "SELECT * FROM t WHERE id = 5 AND EXISTS (TABLE t)",
            "SELECT * FROM t WHERE id = 5 UNION SELECT * FROM t",
            "WITH x AS (SELECT 1) SELECT * FROM t WHERE id = 5",
            "SELECT * FROM ONLY t WHERE id = 5",
            "SELECT * FROM t TABLESAMPLE SYSTEM (5) WHERE id = 5",
            "SELECT * FROM t WHERE id = 5 FOR UPDATE",
            "SELECT * FROM f(5) WHERE id = 5",
            "SELECT 1; SELECT * FROM t WHERE id = 5",
            "UPDATE t SET a = 1 FROM u WHERE id = 5",
            "UPDATE t SET (id, a) = (1, 2) WHERE id = 5",
            "DELETE FROM t USING u WHERE id = 5",
            "INSERT INTO t VALUES (5)",
            "INSERT INTO t (id) VALUES (5), (6)",
            "INSERT INTO t (id) VALUES (5) ON CONFLICT (a) DO UPDATE SET b = 1",
            "INSERT INTO t (id) SELECT 5",
            "INSERT INTO t (id) VALUES (f(5))",
            "MERGE INTO t USING (VALUES (1)) v (id) ON t.id = v.id WHEN MATCHED THEN DELETE",
        ] {
            assert_eq!(restricted(sql), None, "{sql}");
        }
    }
}
