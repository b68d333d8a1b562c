//! Insert: one row of parameters and literals, put into the columns of a table.
//!
//! Promises:
//! - What is shown is all that the text says: the syntax tree is taken apart to its last field, and what is shown, written out
//!   again, has the same tokens as the text and the same syntax tree.
//! - Nothing is shown whose meaning hangs on the server's settings (a backslash, MySQL's double quotes), on comments that a
//!   server reads, on variables of a connection (`@name`), or on other rows (functions and queries in RETURNING).
//!
//! Knows no table: whether the columns exist, and what type a literal gets, is for the server to say.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer};
use super::syntax;

/// `INSERT INTO table (columns) VALUES (one row) [RETURNING list]`, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// The table, as it stands in SQL.
    pub table: String,
    /// The columns that are given, each as it stands in SQL.
    pub columns: Vec<String>,
    /// What each of them is given.
    pub cells: Vec<Cell>,
    /// How many parameters the statement has; each stands in the text exactly once.
    pub parameters: usize,
    /// What is to be returned, as it stands in SQL, one text an expression.
    pub returning: Option<Vec<String>>,
}

/// What a column is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A bare parameter, the first is 0.
    Parameter(usize),
    /// A literal, as it stands in SQL.
    Constant(String),
    /// The word DEFAULT.
    Default,
}

/// Shows an INSERT of one row, if the text is that and nothing else.
pub fn insert(dialect: Dialect, sql: &str) -> Option<Insert> {
    if !is_plain(dialect, sql) {
        return None;
    }
    let mut statement = syntax::parse(dialect, sql)?;
    capitalize_default(&mut statement);
    let insert = read(dialect, &statement)?;
    let written = write(dialect, &insert);
    (same_tokens(dialect, sql, &written) && syntax::parse(dialect, &written)? == statement).then_some(insert)
}

/// To the parser DEFAULT is a name, whose letters it compares; it is written in capitals here.
fn capitalize_default(statement: &mut ast::Statement) {
    let _: ControlFlow<()> = ast::visit_expressions_mut(statement, |expression| {
        if let ast::Expr::Identifier(word) = expression
            && is_default(word)
        {
            word.value.make_ascii_uppercase();
        }
        ControlFlow::Continue(())
    });
}

fn is_default(word: &ast::Ident) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("DEFAULT")
}

/// Whether all servers read the text alike, whatever their settings.
fn is_plain(dialect: Dialect, sql: &str) -> bool {
    !sql.contains('\\')
        && !syntax::quotes_depend_on_settings(dialect, sql)
        && Lexer::new(dialect, sql).all(|token| {
            token.is_ok_and(|token| !matches!(token.kind, Kind::Hint | Kind::Executable) && !token.is_symbol("@"))
        })
}

/// Whether both have the same tokens: words in whatever case, and with or without a `;` at the end.
fn same_tokens(dialect: Dialect, sql: &str, written: &str) -> bool {
    let mut sql = Lexer::new(dialect, sql).map(Result::ok);
    for token in Lexer::new(dialect, written) {
        let (Ok(one), Some(Some(other))) = (token, sql.next()) else {
            return false;
        };
        let same = one.kind == other.kind
            && if one.kind == Kind::Word {
                one.text.eq_ignore_ascii_case(other.text)
            } else {
                one.text == other.text
            };
        if !same {
            return false;
        }
    }
    sql.all(|token| token.is_some_and(|token| token.is_symbol(";")))
}

fn read(dialect: Dialect, statement: &ast::Statement) -> Option<Insert> {
    let ast::Statement::Insert(ast::Insert {
        insert_token: _,
        optimizer_hints,
        or: None,
        ignore: false,
        into: true,
        table: ast::TableObject::TableName(table),
        table_alias: None,
        columns,
        overwrite: false,
        source: Some(source),
        assignments,
        partitioned: None,
        after_columns,
        has_table_keyword: false,
        on: None,
        returning,
        output: None,
        replace_into: false,
        priority: None,
        insert_alias: None,
        settings: None,
        format_clause: None,
        multi_table_insert_type: None,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause: None,
    }) = statement
    else {
        return None;
    };
    let empty = optimizer_hints.is_empty()
        && assignments.is_empty()
        && after_columns.is_empty()
        && multi_table_into_clauses.is_empty()
        && multi_table_when_clauses.is_empty();
    if !empty {
        return None;
    }

    let table: Vec<String> = table.0.iter().map(part).collect::<Option<_>>()?;
    let columns: Vec<String> = columns
        .iter()
        .map(|column| match column.0.as_slice() {
            [only] => part(only),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let row = only_row(source)?;
    if columns.is_empty() || columns.len() != row.len() || !all_differ(&columns) {
        return None;
    }
    let (cells, parameters) = read_cells(dialect, row)?;
    let returning = match returning {
        None => None,
        Some(items) => Some(items.iter().map(returned).collect::<Option<_>>()?),
    };
    Some(Insert {
        table: table.join("."),
        columns,
        cells,
        parameters,
        returning,
    })
}

fn part(part: &ast::ObjectNamePart) -> Option<String> {
    match part {
        ast::ObjectNamePart::Identifier(name) => Some(name.to_string()),
        ast::ObjectNamePart::Function(_) => None,
    }
}

/// Whether no two are the same column, however it is written.
fn all_differ(columns: &[String]) -> bool {
    let mut seen = HashSet::new();
    columns.iter().all(|column| {
        let bare = column.trim_matches(|quote| quote == '"' || quote == '`');
        seen.insert(bare.to_lowercase())
    })
}

/// The row of `VALUES (…)`.
fn only_row(source: &ast::Query) -> Option<&[ast::Expr]> {
    let ast::Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = source
    else {
        return None;
    };
    let ast::SetExpr::Values(ast::Values {
        explicit_row: false,
        value_keyword: false,
        rows,
    }) = &**body
    else {
        return None;
    };
    match rows.as_slice() {
        [
            ast::Parens {
                opening_token: _,
                content,
                closing_token: _,
            },
        ] if locks.is_empty() && pipe_operators.is_empty() => Some(content),
        _ => None,
    }
}

/// The cells, and how many parameters they have: each number exactly once, without a hole.
fn read_cells(dialect: Dialect, row: &[ast::Expr]) -> Option<(Vec<Cell>, usize)> {
    let mut cells = Vec::with_capacity(row.len());
    let mut numbers = Vec::new();
    for expression in row {
        let cell = match expression {
            ast::Expr::Identifier(word) if is_default(word) => Cell::Default,
            ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Placeholder(text),
                span: _,
            }) => {
                let number = syntax::parameter(dialect, text, numbers.len())?;
                numbers.push(number);
                Cell::Parameter(number)
            }
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Minus,
                expr,
            } => match &**expr {
                ast::Expr::Value(value) => Cell::Constant(format!("-{}", number(&value.value)?)),
                _ => return None,
            },
            ast::Expr::Value(value) => Cell::Constant(literal(&value.value)?),
            _ => return None,
        };
        cells.push(cell);
    }
    let count = numbers.len();
    numbers.sort_unstable();
    numbers
        .iter()
        .enumerate()
        .all(|(at, number)| at == *number)
        .then_some((cells, count))
}

fn literal(value: &ast::Value) -> Option<String> {
    match value {
        ast::Value::SingleQuotedString(_) | ast::Value::Boolean(_) | ast::Value::Null => Some(value.to_string()),
        _ => number(value),
    }
}

/// A number as every dialect writes it: `1`, `1.5`, `.5`, `1e-3`.
fn number(value: &ast::Value) -> Option<String> {
    match value {
        ast::Value::Number(digits, false)
            if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
                && digits
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')) =>
        {
            Some(digits.clone())
        }
        _ => None,
    }
}

/// An expression that tells of the row alone, with or without a name.
fn returned(item: &ast::SelectItem) -> Option<String> {
    let tells_of_the_row = match item {
        ast::SelectItem::UnnamedExpr(expression)
        | ast::SelectItem::ExprWithAlias {
            expr: expression,
            alias: _,
        } => of_the_row(expression),
        ast::SelectItem::Wildcard(options) => *options == ast::WildcardAdditionalOptions::default(),
        ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(_), options) => {
            *options == ast::WildcardAdditionalOptions::default()
        }
        ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::Expr(_), _)
        | ast::SelectItem::ExprWithAliases { .. } => false,
    };
    tells_of_the_row.then(|| item.to_string())
}

/// Columns and literals, what they are cast to and what operators make of them. No functions: one may read tables, and would
/// see the neighbours' rows, or not see them.
fn of_the_row(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => true,
        ast::Expr::Value(value) => literal(&value.value).is_some(),
        ast::Expr::Nested(inner) | ast::Expr::IsNull(inner) | ast::Expr::IsNotNull(inner) => of_the_row(inner),
        ast::Expr::UnaryOp { op: _, expr } | ast::Expr::Cast { expr, .. } => of_the_row(expr),
        ast::Expr::BinaryOp { left, op: _, right } => of_the_row(left) && of_the_row(right),
        _ => false,
    }
}

/// The statement, from what is shown of it.
fn write(dialect: Dialect, insert: &Insert) -> String {
    let mut sql = format!("INSERT INTO {} ({}) VALUES (", insert.table, insert.columns.join(", "));
    for (at, cell) in insert.cells.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        sql.push_str(comma);
        match cell {
            Cell::Parameter(number) => sql.push_str(&syntax::write_parameter(dialect, *number)),
            Cell::Constant(text) => sql.push_str(text),
            Cell::Default => sql.push_str("DEFAULT"),
        }
    }
    sql.push(')');
    if let Some(returning) = &insert.returning {
        // Writing to a String cannot fail.
        let _ = write!(sql, " RETURNING {}", returning.join(", "));
    }
    sql
}

#[cfg(test)]
mod tests;
