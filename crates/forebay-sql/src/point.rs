//! Point: a query of PostgreSQL's for the row that has these values in these columns.
//!
//! Promises: where there is one row of such values at most, the query has one row at most, whatever else it asks of it: it reads columns of one
//! table and nothing beside. In what stands instead of it, its text is as it was, but that numbers are parameters: what type a string is of is
//! for its column to say, which may have another by now. Parameters are compared with columns, or bound the rows, and nothing else, so that
//! nothing comes of them where there is no row. Knows no table: whether the columns are a key is to be asked of the catalog.

use std::ops::Range;

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::listed::makes_rows_of_rows;
use super::plain::{end, only_reads, tokens};
use super::syntax;
use super::touches::{clip, name, only_table};

/// A query for one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The table, as it stands in SQL.
    pub table: String,
    /// The columns of which it wants one value each.
    pub columns: Vec<Compared>,
    /// The text, with parameters only.
    pub text: String,
    /// How many parameters that has.
    pub parameters: usize,
    /// Which of the literals of a text without parameters these are, in their order; of a text that has parameters, none.
    pub literals: Vec<usize>,
}

/// A column that is compared with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// As PostgreSQL keeps its name.
    pub column: String,
    /// What it is compared with, in the text with parameters only.
    pub with: With,
}

/// What a column is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// The parameter of this number, from 0 on.
    Parameter(usize),
    /// The same, as a value of the type of this number in every PostgreSQL: it has to be one already.
    Cast(usize, u32),
    /// A whole number.
    Number,
    /// A string, which is of the column's type.
    String,
}

/// A literal of a text, as it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Literal<'t>(pub &'t str);

impl<'t> Literal<'t> {
    pub(super) fn of(token: &Token<'t>) -> Option<Self> {
        matches!(token.kind, Kind::Digits | Kind::Text).then_some(Self(token.text))
    }

    /// The number, where it is written in digits alone; it has no sign.
    #[must_use]
    pub fn digits(&self) -> Option<&'t str> {
        self.0.bytes().all(|byte| byte.is_ascii_digit()).then_some(self.0)
    }

    /// What stands between two quotes, in which a quote is written twice.
    #[must_use]
    pub fn string(&self) -> Option<&'t str> {
        self.0.strip_prefix('\'')?.strip_suffix('\'')
    }
}

/// The literals of a text, in their order. None for a text that a server may read differently.
#[must_use]
pub fn literals(sql: &str) -> Option<Vec<Literal<'_>>> {
    let tokens = tokens(sql)?;
    Some(tokens.iter().filter_map(|(_, token)| Literal::of(token)).collect())
}

/// Shows that a query is one for one row, by a parameter or a literal.
#[must_use]
pub fn point(sql: &str) -> Option<Point> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let parsed = syntax::parse(Dialect::Postgres, sql)?;
    if !only_reads(&parsed) {
        return None;
    }
    let ast::Statement::Query(query) = &parsed else {
        return None;
    };
    let ast::SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let [from] = select.from.as_slice() else { return None };
    let table = only_table(from).filter(|_| is_plain(query, select))?;
    let mut equalities = Vec::new();
    conjuncts(select.selection.as_ref()?, &mut |conjunct| {
        equalities.extend(equality(conjunct));
    });
    let (mut parameters, mut count) = (0, 0);
    for (_, token) in all.iter().filter(|(_, token)| token.kind == Kind::Parameter) {
        parameters = parameters.max(syntax::parameter(Dialect::Postgres, token.text, 0)? + 1);
        count += 1;
    }
    if count != count_of_parameters(&equalities) + usize::from(is_bounded_by_parameter(query)) {
        return None;
    }
    let mut text = sql[..end].to_owned();
    let mut literals = Vec::new();
    let mut places = Vec::new();
    if parameters == 0 {
        places = places_of(&all, &equalities)?;
        parameters = places.len();
        literals = make_parameters(&mut text, &all, &places);
    }
    let columns = compared(&all, &equalities, &places)?;
    (parameters > 0 && !columns.is_empty()).then(|| Point {
        table: table.to_string(),
        columns,
        text,
        parameters,
        literals,
    })
}

/// Where the numbers stand that columns are compared with, in order; none where that is not certain.
pub(super) fn places_of(tokens: &[(Range<usize>, Token<'_>)], equalities: &[Equality<'_>]) -> Option<Vec<usize>> {
    let numbers = equalities
        .iter()
        .filter(|equality| matches!(equality.value, ast::Value::Number(..)));
    let mut places = numbers
        .map(|equality| place_of(tokens, equality))
        .collect::<Option<Vec<_>>>()?;
    places.sort_unstable();
    Some(places)
}

/// What each column is compared with, where the literals at these places are parameters.
pub(super) fn compared(
    tokens: &[(Range<usize>, Token<'_>)],
    equalities: &[Equality<'_>],
    places: &[usize],
) -> Option<Vec<Compared>> {
    let each = equalities.iter().map(|equality| {
        let with = match equality.value {
            ast::Value::Placeholder(name) => {
                let number = syntax::parameter(Dialect::Postgres, name, 0)?;
                match equality.cast {
                    Some(cast) => With::Cast(number, cast),
                    None => With::Parameter(number),
                }
            }
            ast::Value::Number(..) if places.is_empty() => With::Number,
            ast::Value::Number(..) => {
                let place = place_of(tokens, equality)?;
                places.binary_search(&place).map_or(With::Number, With::Parameter)
            }
            _ => With::String,
        };
        Some(Compared {
            column: equality.column.clone(),
            with,
        })
    });
    each.collect()
}

/// Makes the literals at these places, which stand in order, into parameters of the text, from `$1` on; which of its literals they were.
pub(super) fn make_parameters(text: &mut String, tokens: &[(Range<usize>, Token<'_>)], places: &[usize]) -> Vec<usize> {
    for (number, place) in places.iter().enumerate().rev() {
        text.replace_range(tokens[*place].0.clone(), &format!("${}", number + 1));
    }
    places.iter().filter_map(|place| literal_at(tokens, *place)).collect()
}

/// Which of the literals stands at this place.
pub(super) fn literal_at(tokens: &[(Range<usize>, Token<'_>)], place: usize) -> Option<usize> {
    Literal::of(&tokens.get(place)?.1)?;
    let before = tokens[..place].iter();
    Some(before.filter(|(_, token)| Literal::of(token).is_some()).count())
}

/// Whether nothing but columns of the table's rows is asked for.
fn is_plain(query: &ast::Query, select: &ast::Select) -> bool {
    let is_column =
        |expression: &ast::Expr| matches!(expression, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_));
    query.with.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty()
        && makes_rows_of_rows(select)
        && select.projection.iter().all(|item| match item {
            ast::SelectItem::UnnamedExpr(expression) | ast::SelectItem::ExprWithAlias { expr: expression, .. } => {
                is_column(expression)
            }
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => true,
            _ => false,
        })
}

/// How many columns are compared with parameters.
pub(super) fn count_of_parameters(equalities: &[Equality<'_>]) -> usize {
    let values = equalities.iter().map(|equality| equality.value);
    values.filter(|value| is_parameter(value)).count()
}

fn is_parameter(value: &ast::Value) -> bool {
    matches!(value, ast::Value::Placeholder(_))
}

/// Whether how many rows there are at most is a parameter.
fn is_bounded_by_parameter(query: &ast::Query) -> bool {
    let Some(ast::LimitClause::LimitOffset {
        limit: Some(limit),
        offset: None,
        ..
    }) = &query.limit_clause
    else {
        return false;
    };
    value_of(limit).is_some_and(|(value, _)| is_parameter(value))
}

/// A value by itself, or a parameter as a value of a type.
fn value_of(expression: &ast::Expr) -> Option<(&ast::Value, Option<u32>)> {
    match expression {
        ast::Expr::Value(value) => Some((&value.value, None)),
        ast::Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr,
            data_type,
            format: None,
            ..
        } => match &**expr {
            ast::Expr::Value(value) if is_parameter(&value.value) => Some((&value.value, Some(number_of(data_type)?))),
            _ => None,
        },
        _ => None,
    }
}

/// The number that a type has in every PostgreSQL.
pub(super) fn number_of(data_type: &ast::DataType) -> Option<u32> {
    match data_type {
        ast::DataType::SmallInt(None) | ast::DataType::Int2(None) => Some(21),
        ast::DataType::Int(None) | ast::DataType::Integer(None) | ast::DataType::Int4(None) => Some(23),
        ast::DataType::BigInt(None) | ast::DataType::Int8(None) => Some(20),
        ast::DataType::Text => Some(25),
        ast::DataType::Varchar(None) | ast::DataType::CharacterVarying(None) => Some(1043),
        ast::DataType::Uuid => Some(2950),
        _ => None,
    }
}

/// What must hold for each row, one by one.
pub(super) fn conjuncts<'a>(condition: &'a ast::Expr, each: &mut impl FnMut(&'a ast::Expr)) {
    match condition {
        ast::Expr::BinaryOp {
            left,
            op: ast::BinaryOperator::And,
            right,
        } => {
            conjuncts(left, each);
            conjuncts(right, each);
        }
        ast::Expr::Nested(inner) => conjuncts(inner, each),
        other => each(other),
    }
}

/// A comparison that is true of one value only.
pub(super) struct Equality<'a> {
    pub(super) column: String,
    pub(super) value: &'a ast::Value,
    /// The parameter is a value of the type of this number.
    pub(super) cast: Option<u32>,
}

/// The comparison of a column with one value.
pub(super) fn equality(condition: &ast::Expr) -> Option<Equality<'_>> {
    let ast::Expr::BinaryOp {
        left,
        op: ast::BinaryOperator::Eq,
        right,
    } = condition
    else {
        return None;
    };
    let column = column(left)?;
    let (value, cast) = value_of(right)?;
    let is_one = match value {
        ast::Value::Placeholder(_) | ast::Value::SingleQuotedString(_) => true,
        ast::Value::Number(digits, is_long) => !is_long && digits.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    is_one.then_some(Equality { column, value, cast })
}

/// The column that an expression is.
pub(super) fn column(expression: &ast::Expr) -> Option<String> {
    match expression {
        ast::Expr::Identifier(column) => folded(column),
        ast::Expr::CompoundIdentifier(names) => folded(names.last()?),
        _ => None,
    }
}

/// Which token the value is: the one that stands behind this column and `=`, where that is certain.
pub(super) fn place_of(tokens: &[(Range<usize>, Token<'_>)], equality: &Equality<'_>) -> Option<usize> {
    let is_it = |at: usize| {
        let [(_, before), (_, equals), (_, token)] = &tokens[at..at + 3] else {
            return false;
        };
        let is_value = match equality.value {
            ast::Value::Number(digits, _) => token.kind == Kind::Digits && token.text == digits,
            ast::Value::SingleQuotedString(text) => {
                let string = Literal::of(token).and_then(|literal| literal.string());
                string.is_some_and(|string| string.replace("''", "'") == *text)
            }
            _ => false,
        };
        is_value && equals.is_symbol("=") && matches!(name(before), Ok(Some(name)) if name == equality.column)
    };
    let mut all = (0..tokens.len().saturating_sub(2))
        .filter(|at| is_it(*at))
        .map(|at| at + 2);
    let place = all.next()?;
    all.next().is_none().then_some(place)
}

/// A name as PostgreSQL keeps it.
pub(super) fn folded(column: &ast::Ident) -> Option<String> {
    let mut name = match column.quote_style {
        Some('"') => column.value.replace("\"\"", "\""),
        None if column.value.is_ascii() => column.value.to_ascii_lowercase(),
        _ => return None,
    };
    clip(&mut name);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = (String, Vec<String>, String, usize, Vec<usize>);

    fn shown(sql: &str) -> Option<Shown> {
        let columns = |point: &Point| point.columns.iter().map(|compared| compared.column.clone()).collect();
        point(sql).map(|point| {
            let columns = columns(&point);
            (point.table, columns, point.text, point.parameters, point.literals)
        })
    }

    #[test]
    fn columns_are_compared_with_parameters_and_literals() {
        for (sql, with) in [
            (
                "SELECT a FROM t WHERE a = $2 AND b = $1 AND c = 'x' AND d = 5",
                [With::Parameter(1), With::Parameter(0), With::String, With::Number],
            ),
            (
                "SELECT a FROM t WHERE a = $2::INTEGER AND b = CAST($1 AS uuid) AND c = $3 AND d = 5 LIMIT $4::INTEGER",
                [With::Cast(1, 23), With::Cast(0, 2950), With::Parameter(2), With::Number],
            ),
            (
                "SELECT a FROM t WHERE a = 7 AND b = 5 AND c = 'x' AND d = 9 LIMIT 3",
                [With::Parameter(0), With::Parameter(1), With::String, With::Parameter(2)],
            ),
        ] {
            let columns = point(sql).unwrap().columns;
            assert!(
                columns.iter().map(|compared| compared.with).eq(with),
                "{sql}: {columns:?}"
            );
        }
    }

    fn is(table: &str, columns: &[&str], text: &str, parameters: usize, literals: &[usize]) -> Option<Shown> {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Some((
            table.to_owned(),
            columns,
            text.to_owned(),
            parameters,
            literals.to_vec(),
        ))
    }

    #[test]
    fn the_row_of_parameters_is_a_point() {
        for (sql, columns, parameters) in [
            ("SELECT a, b AS c FROM s.t WHERE id = $1", &["id"][..], 1),
            (
                "SELECT * FROM s.t x WHERE x.\"Id\" = $1 AND NOT gone LIMIT $2",
                &["Id"],
                2,
            ),
            (
                "SELECT t.* FROM s.t WHERE (kind = 'it' AND (ID = $2)) AND other = $1 AND o > 5",
                &["kind", "id", "other"],
                2,
            ),
            ("SELECT a FROM s.t WHERE n = 5 AND o = $1", &["n", "o"], 1),
        ] {
            assert_eq!(shown(sql), is("s.t", columns, sql, parameters, &[]), "{sql}");
        }
    }

    #[test]
    fn the_row_of_literals_is_a_point_too() {
        for (sql, columns, text, literals) in [
            (
                "SELECT a FROM t WHERE id = 5;",
                &["id"][..],
                "SELECT a FROM t WHERE id = $1",
                &[0][..],
            ),
            (
                "SELECT a FROM t WHERE n > 5 AND id = 5",
                &["id"],
                "SELECT a FROM t WHERE n > 5 AND id = $1",
                &[1],
            ),
            (
                "SELECT a FROM t WHERE id = 'it''s' AND o.n = 5 AND m = 7 LIMIT 21",
                &["id", "n", "m"],
                "SELECT a FROM t WHERE id = 'it''s' AND o.n = $1 AND m = $2 LIMIT 21",
                &[1, 2],
            ),
            (
                "SELECT a FROM t WHERE \"id\" =5 -- of 5",
                &["id"],
                "SELECT a FROM t WHERE \"id\" =$1 -- of 5",
                &[0],
            ),
        ] {
            assert_eq!(shown(sql), is("t", columns, text, literals.len(), literals), "{sql}");
        }
        let told = literals("SELECT 1, 'it''s', E'x', $$y$$ FROM t WHERE id = 5").unwrap();
        let texts: Vec<_> = told.iter().map(|literal| literal.0).collect();
        assert_eq!(texts, ["1", "'it''s'", "E'x'", "$$y$$", "5"]);
        let digits: Vec<_> = told.iter().map(Literal::digits).collect();
        assert_eq!(digits, [Some("1"), None, None, None, Some("5")]);
        let strings: Vec<_> = told.iter().map(Literal::string).collect();
        assert_eq!(strings, [None, Some("it''s"), None, None, None]);
    }

    #[test]
    fn nothing_else_is_a_point() {
        for sql in [
            "SELECT count(*) FROM t WHERE id = $1",
            "SELECT DISTINCT a FROM t WHERE id = $1",
            "SELECT a FROM t WHERE id = $1 GROUP BY a",
            "SELECT a FROM t, u WHERE id = $1",
            "SELECT a FROM t JOIN u USING (id) WHERE id = $1",
            "SELECT a FROM (SELECT * FROM t) t WHERE id = $1",
            "SELECT a FROM f(1) WHERE id = $1",
            "SELECT a FROM t TABLESAMPLE SYSTEM (1) WHERE id = $1",
            "WITH t AS (SELECT 1) SELECT a FROM t WHERE id = $1",
            "SELECT a FROM t WHERE id = $1 UNION SELECT 1",
            "SELECT a FROM t WHERE id = $1 FOR UPDATE",
            "SELECT a FROM t WHERE id = ANY($1)",
            "SELECT a FROM t WHERE id > $1",
            "SELECT a FROM t WHERE id = -5",
            "SELECT a FROM t WHERE id = 5.5",
            "SELECT a FROM t WHERE id = 5 AND id = 5",
            "SELECT a FROM t WHERE id = E'5'",
            "SELECT a FROM t WHERE id = $1::varchar(5)",
            "SELECT a FROM t WHERE id = $1::mood",
            "SELECT a FROM t WHERE id = 5::int",
            "SELECT a FROM t WHERE id = ($1 + 1)::int",
            "SELECT a FROM t WHERE id = $1 AND n > $2",
            "SELECT a FROM t WHERE id = $1 AND name ~ $2",
            "SELECT a FROM t WHERE id = $1 OFFSET $2",
            "SELECT a FROM t WHERE id = 'text'",
            "SELECT a FROM t WHERE id + 1 = $1",
            "SELECT a + 1 FROM t WHERE id = $1",
            "SELECT a FROM t WHERE id IN ($1)",
            "SELECT a FROM t WHERE NOT id = $1",
            "SELECT a FROM t",
            "SELECT a FROM t WHERE id = $1; SELECT 1",
            "UPDATE t SET a = 1 WHERE id = $1",
        ] {
            assert_eq!(point(sql), None, "{sql}");
        }
    }
}
