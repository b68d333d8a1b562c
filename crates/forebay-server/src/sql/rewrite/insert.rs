//! DEFAULT as a value of INSERT, which SQLite does not know.
//!
//! Contract: a column that is DEFAULT in every row is left out, which means the same; anything else with DEFAULT in it is refused.
//! Knows nothing of the table's columns.

use sqlparser::ast::{Expr, Insert, SetExpr, Statement as Tree};

use crate::sql::error::SqlError;

/// Rewrites the statement if it is an INSERT with such values.
pub(super) fn rewrite(tree: &mut Tree) -> Result<bool, SqlError> {
    let Tree::Insert(Insert {
        columns,
        source: Some(source),
        ..
    }) = tree
    else {
        return Ok(false);
    };
    let SetExpr::Values(values) = source.body.as_mut() else {
        return Ok(false);
    };
    if !values
        .rows
        .iter()
        .flat_map(|row| row.iter())
        .any(is_default)
    {
        return Ok(false);
    }
    let refused = |why: &str| {
        Err(SqlError::unsupported_but(
            format!("DEFAULT as a value {why}"),
            "Leave the column out of the INSERT's list of columns.",
        ))
    };
    let width = columns.len();
    if width == 0 {
        return refused("of an INSERT without a list of columns");
    }
    if values.rows.iter().any(|row| row.len() != width) {
        // SQLite says which row it is.
        return Ok(false);
    }
    let mut left_out = vec![false; width];
    for (position, out) in left_out.iter_mut().enumerate() {
        let defaults = values
            .rows
            .iter()
            .filter(|row| is_default(&row[position]))
            .count();
        if defaults != 0 && defaults != values.rows.len() {
            return refused("in some of the rows of an INSERT");
        }
        *out = defaults != 0;
    }
    if left_out.iter().all(|out| *out) {
        return refused("for every column");
    }
    retain(columns, &left_out);
    for row in &mut values.rows {
        retain(&mut row.content, &left_out);
    }
    Ok(true)
}

fn is_default(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

fn retain<T>(items: &mut Vec<T>, left_out: &[bool]) {
    let mut position = 0;
    items.retain(|_| {
        position += 1;
        !left_out[position - 1]
    });
}
