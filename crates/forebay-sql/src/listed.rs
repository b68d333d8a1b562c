//! Listed: a MariaDB or MySQL query for one integer key, made into one for a list of them, each row with its own.
//!
//! Promises:
//! - The query's own text is kept as it stands, but for its parameter: `column = ?` becomes `column IN (?, ?, …)`, and the column
//!   is returned once more, after the query's own columns. Parameters stay parameters, which compare as they did.
//! - Only where the parser has seen that the rows for a list are the rows for each of its numbers: one SELECT whose WHERE has the
//!   comparison as one of its terms, and nothing that looks at more than a row at a time or that is not the same each time.
//! - Only for a text that all servers read alike, whatever their settings; the name that is added is in nobody's text.
//!
//! Does not know types: that the column is of whole numbers, which alone are equal only to themselves, the caller that prepares it
//! must check.

use std::ops::{ControlFlow, Range};

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};
use super::syntax;

/// A query for many keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Up to where the key is compared, with the key's column after the query's own.
    start: String,
    /// What follows the comparison.
    rest: String,
}

impl Listed {
    /// For so many keys. Its last column is the key.
    pub fn sql(&self, keys: usize) -> String {
        let placeholders = vec!["?"; keys].join(", ");
        format!("{} IN ({placeholders}){}", self.start, self.rest)
    }
}

/// Makes a query for one key into one for many.
pub fn listed(sql: &str) -> Option<Listed> {
    let tokens = tokens(sql)?;
    let comparison = comparison(&tokens)?;
    let statement = syntax::parse(Dialect::MySql, sql)?;
    if !is_row_by_row(&statement) || !compares_as_a_term(&statement) {
        return None;
    }
    let mut depth = 0_usize;
    // Where the query's own columns end.
    let mut columns = None;
    let mut before = 0;
    let mut end = sql.len();
    for (range, token) in &tokens {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && token.is_word("FROM") && columns.is_none() {
            columns = Some(before);
        } else if token.is_symbol(";") {
            // The parser has seen one statement.
            end = end.min(range.start);
        }
        before = range.end;
    }
    let columns = columns.filter(|columns| *columns < comparison.column.start)?;
    Some(Listed {
        start: format!(
            "{}, {} AS {}{}",
            &sql[..columns],
            comparison.name,
            own_name(sql),
            &sql[columns..comparison.column.end]
        ),
        rest: sql[comparison.end..end].to_owned(),
    })
}

/// Words after which a text is not looked at any further: what may see several rows at a time, or reads otherwise to the server
/// than to the parser.
const UNFIT: [&str; 14] = [
    "BETWEEN",
    "DISTINCT",
    "DISTINCTROW",
    "FETCH",
    "FOR",
    "GROUP",
    "HAVING",
    "INTO",
    "LIMIT",
    "LOCK",
    "OVER",
    "PROCEDURE",
    "ROWNUM",
    "XOR",
];

/// The tokens and where they stand; none for a text that a server may read differently.
fn tokens(sql: &str) -> Option<Vec<(Range<usize>, Token<'_>)>> {
    if sql.contains('\\') || syntax::quotes_depend_on_settings(Dialect::MySql, sql) {
        return None;
    }
    let mut tokens: Vec<(Range<usize>, Token<'_>)> = Vec::new();
    for token in Lexer::new(Dialect::MySql, sql) {
        let token = token.ok()?;
        let is_unfit = matches!(token.kind, Kind::Hint | Kind::Executable)
            || ["|", "!", "@", ":"].iter().any(|symbol| token.is_symbol(symbol))
            || UNFIT.iter().any(|word| token.is_word(word));
        if is_unfit {
            return None;
        }
        let start = token.text.as_ptr().addr() - sql.as_ptr().addr();
        tokens.push((start..start + token.text.len(), token));
    }
    Some(tokens)
}

/// Where the key is compared.
struct Comparison {
    /// The column, as it stands in the text.
    column: Range<usize>,
    /// The column, without what may stand between its parts.
    name: String,
    /// Where the comparison ends.
    end: usize,
}

/// `column = ?` or `column IN (?)` of the only parameter, with such before and after it as binds less.
fn comparison(tokens: &[(Range<usize>, Token<'_>)]) -> Option<Comparison> {
    let mut parameters = (0..tokens.len()).filter(|at| tokens[*at].1.kind == Kind::Parameter);
    let at = parameters.next()?;
    if parameters.next().is_some() {
        return None;
    }
    let token = |at: usize| tokens.get(at).map(|(_, token)| token);
    let is_in = at >= 3
        && token(at - 1)?.is_symbol("(")
        && token(at - 2)?.is_word("IN")
        && token(at + 1).is_some_and(|token| token.is_symbol(")"));
    let (last, end) = if is_in {
        (at - 3, at + 1)
    } else if at >= 2 && token(at - 1)?.is_symbol("=") {
        (at - 2, at)
    } else {
        return None;
    };
    let is_name = |at: usize| token(at).is_some_and(|token| matches!(token.kind, Kind::Word | Kind::QuotedName));
    let mut first = last;
    while first >= 2 && is_name(first) && token(first - 1)?.is_symbol(".") {
        first -= 2;
    }
    let starts = first
        .checked_sub(1)
        .and_then(token)
        .is_some_and(|before| before.is_symbol("(") || before.is_word("WHERE") || before.is_word("AND"));
    let ends = token(end + 1).is_none_or(|after| {
        after.is_symbol(")") || after.is_symbol(";") || after.is_word("AND") || after.is_word("ORDER")
    });
    if !(is_name(first) && is_name(last) && starts && ends) {
        return None;
    }
    Some(Comparison {
        column: tokens[first].0.start..tokens[last].0.end,
        name: tokens[first..=last].iter().map(|(_, token)| token.text).collect(),
        end: tokens[end].0.end,
    })
}

/// A name that is nowhere in the text.
fn own_name(sql: &str) -> String {
    let sql = sql.to_lowercase();
    let mut name = "forebay_key".to_owned();
    let mut number = 1;
    while sql.contains(&name) {
        number += 1;
        name = format!("forebay{number}_key");
    }
    name
}

/// The SELECT and its ORDER BY, if the statement is nothing else.
fn select(statement: &ast::Statement) -> Option<&ast::Select> {
    let ast::Statement::Query(query) = statement else {
        return None;
    };
    let ast::Query {
        with: None,
        body,
        order_by: _,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = &**query
    else {
        return None;
    };
    match &**body {
        ast::SetExpr::Select(select) if locks.is_empty() && pipe_operators.is_empty() => Some(select),
        _ => None,
    }
}

/// Whether each row of the result is there because of itself, and is the same whatever the others are.
fn is_row_by_row(statement: &ast::Statement) -> bool {
    select(statement).is_some_and(makes_rows_of_rows) && has_known_functions(statement)
}

/// Whether it makes one row of each that it finds, and nothing of several, as far as its clauses tell.
pub(super) fn makes_rows_of_rows(select: &ast::Select) -> bool {
    let is_grouped = match &select.group_by {
        ast::GroupByExpr::All(_) => true,
        ast::GroupByExpr::Expressions(expressions, modifiers) => !expressions.is_empty() || !modifiers.is_empty(),
    };
    !is_grouped
        && select.optimizer_hints.is_empty()
        && select.distinct.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
        && select.flavor == ast::SelectFlavor::Standard
}

/// Functions of one row's values and of nothing else.
const KNOWN: [&str; 22] = [
    "abs",
    "char_length",
    "coalesce",
    "concat",
    "concat_ws",
    "date_format",
    "greatest",
    "hex",
    "if",
    "ifnull",
    "json_extract",
    "json_unquote",
    "json_value",
    "least",
    "left",
    "length",
    "lower",
    "nullif",
    "replace",
    "right",
    "round",
    "upper",
];

/// Whether no function is called, anywhere, but those that are known: others may aggregate, write or change with each call.
pub(super) fn has_known_functions(statement: &ast::Statement) -> bool {
    struct Known;

    impl ast::Visitor for Known {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
            let is_known = match expression {
                ast::Expr::Function(function) => match &*function.name.0 {
                    [ast::ObjectNamePart::Identifier(name)] => {
                        name.quote_style.is_none() && KNOWN.iter().any(|known| name.value.eq_ignore_ascii_case(known))
                    }
                    _ => false,
                },
                ast::Expr::MatchAgainst { .. } => false,
                _ => true,
            };
            if is_known {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        }
    }

    ast::Visit::visit(statement, &mut Known).is_continue()
}

/// Whether the comparison with the only parameter is one of the terms that WHERE joins by AND.
fn compares_as_a_term(statement: &ast::Statement) -> bool {
    let Some(condition) = select(statement).and_then(|select| select.selection.as_ref()) else {
        return false;
    };
    let mut terms = vec![condition];
    while let Some(term) = terms.pop() {
        match term {
            ast::Expr::Nested(inner) => terms.push(inner),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::And,
                right,
            } => terms.extend([&**left, &**right]),
            ast::Expr::BinaryOp {
                left,
                op: ast::BinaryOperator::Eq,
                right,
            } if is_column(left) && is_parameter(right) => return true,
            ast::Expr::InList {
                expr,
                list,
                negated: false,
            } if is_column(expr) && matches!(&**list, [only] if is_parameter(only)) => return true,
            _ => {}
        }
    }
    false
}

fn is_column(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
}

fn is_parameter(expression: &ast::Expr) -> bool {
    matches!(
        expression,
        ast::Expr::Value(ast::ValueWithSpan {
            value: ast::Value::Placeholder(_),
            ..
        })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Option<String> {
        listed(sql).map(|listed| listed.sql(2))
    }

    #[test]
    fn the_query_stands_as_it_is_but_for_its_parameter() {
        for (sql, expected) in [
            (
                "SELECT id, '?' FROM t WHERE id = ?",
                "SELECT id, '?', id AS forebay_key FROM t WHERE id IN (?, ?)",
            ),
            (
                "select * from t where (a > 1) and `t` . `id` in ( ? ) order by 1 desc, b; ",
                "select *, `t`.`id` AS forebay_key from t where (a > 1) and `t` . `id` IN (?, ?) order by 1 desc, b",
            ),
            (
                "SELECT u.name -- who?\nFROM u JOIN p ON p.u = u.id WHERE (u.id = ?) AND p.x -- why?",
                "SELECT u.name, u.id AS forebay_key -- who?\nFROM u JOIN p ON p.u = u.id WHERE (u.id IN (?, ?)) AND p.x -- why?",
            ),
            (
                "SELECT extract(year FROM a) FROM t WHERE id = ?",
                "SELECT extract(year FROM a), id AS forebay_key FROM t WHERE id IN (?, ?)",
            ),
            (
                "SELECT lower(n), (SELECT x FROM u WHERE u.t = t.id) FROM t WHERE id = ?",
                "SELECT lower(n), (SELECT x FROM u WHERE u.t = t.id), id AS forebay_key FROM t WHERE id IN (?, ?)",
            ),
            (
                "SELECT forebay_key FROM t WHERE id = ?",
                "SELECT forebay_key, id AS forebay2_key FROM t WHERE id IN (?, ?)",
            ),
        ] {
            assert_eq!(of(sql).as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn what_looks_at_more_than_a_row_is_not_listed() {
        for sql in [
            "SELECT count(*) FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? LIMIT 1",
            "SELECT a FROM t WHERE id = ? GROUP BY a",
            "SELECT a FROM t WHERE id = ? HAVING a > 1",
            "SELECT DISTINCT a FROM t WHERE id = ?",
            "SELECT DISTINCTROW a FROM t WHERE id = ?",
            "SELECT a, row_number() OVER () FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? UNION SELECT 1",
            "WITH x AS (SELECT 1) SELECT a FROM t WHERE id = ?",
            "SELECT (SELECT max(t.a)) FROM t WHERE id = ?",
            "SELECT rownum() FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? PROCEDURE ANALYSE()",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_is_not_the_same_each_time_is_not_listed() {
        for sql in [
            "SELECT rand() FROM t WHERE id = ?",
            "SELECT my_own(a) FROM t WHERE id = ?",
            "SELECT x.lower(a) FROM t WHERE id = ?",
            "SELECT `lower`(a) FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? ORDER BY rand()",
            "SELECT @n := @n + 1 FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? FOR UPDATE",
            "SELECT a FROM t WHERE id = ? LOCK IN SHARE MODE",
            "SELECT a INTO @x FROM t WHERE id = ?",
            "SELECT NEXT VALUE FOR s FROM t WHERE id = ?",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_is_not_one_term_of_the_condition_is_not_listed() {
        for sql in [
            "SELECT a FROM t WHERE id = ? OR b",
            "SELECT a FROM t WHERE b OR (c AND id = ?)",
            "SELECT a FROM t WHERE NOT id = ?",
            "SELECT a FROM t WHERE NOT (id = ?)",
            "SELECT a FROM t WHERE id <> ?",
            "SELECT a FROM t WHERE id >= ?",
            "SELECT a FROM t WHERE id <=> ?",
            "SELECT a FROM t WHERE id NOT IN (?)",
            "SELECT a FROM t WHERE id IN (?, 1)",
            "SELECT a FROM t WHERE b = id = ?",
            "SELECT a FROM t WHERE b + id = ?",
            "SELECT a FROM t WHERE BINARY id = ?",
            "SELECT a FROM t WHERE id = ? + 1",
            "SELECT a FROM t WHERE id = ? IS TRUE",
            "SELECT a FROM t WHERE id = ? COLLATE x",
            "SELECT a FROM t WHERE b BETWEEN 1 AND id = ?",
            "SELECT a FROM t WHERE id = ? XOR b",
            "SELECT a FROM t WHERE id = ? || b",
            "SELECT a FROM t WHERE id = ? && b",
            "SELECT a FROM t WHERE (id, b) = (?, 1)",
            "SELECT a FROM t WHERE id = ? AND b = ?",
            "SELECT a FROM t WHERE lower(id = ?)",
            "SELECT id = ? FROM t",
            "SELECT a FROM t JOIN u ON u.id = ?",
            "SELECT a FROM (SELECT a FROM t WHERE id = ?) x",
            "SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE id = ?)",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_servers_may_read_otherwise_is_not_listed() {
        for sql in [
            "",
            "SELECT a FROM t WHERE id = ?; DROP TABLE t",
            "SELECT a FROM t WHERE id = ? AND b = \"x\"",
            r"SELECT a FROM t WHERE id = ? AND b = '\'",
            "SELECT a /*! , b */ FROM t WHERE id = ?",
            "SELECT /*+ MRR(t) */ a FROM t WHERE id = ?",
            "SELECT a FROM t WHERE id = ? AND b = 'open",
            "SELECT a FROM t WHERE id = :id",
            "SELECT a FROM t",
            "DELETE FROM t WHERE id = ?",
            "SELEC a FROM t WHERE id = ?",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }
}
