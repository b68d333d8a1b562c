//! Keyed: an UPDATE or DELETE of PostgreSQL's of the row that has these values in these columns, and the same of many rows, each with its own.
//!
//! Promises: where there is one row of such values at most, one row is changed at most, and nothing is looked at but that row. The columns that
//! find it are not changed. What is set is computed whenever there is a row, whatever is in it, so that it fails for many where it fails for
//! one. The text for many is the text for one, but for its parameters, which are columns of lists, and for the place in the list, which is told first of
//! each row. Knows no table: whether the columns are a key is to be asked of the catalog.

use std::ops::Range;

use sqlparser::ast;

use super::dialect::Dialect;
use super::lateral::{Parameter, edited, list_of, own_name};
use super::lexer::{Kind, Token};
use super::plain::{end, tokens};
use super::point::{
    Compared, With, compared, conjuncts, count_of_parameters, equality, folded, make_parameters, places_of,
};
use super::syntax;
use super::touches::{deleted_from, only_table, updated};

/// An UPDATE or DELETE of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The table, as it stands in SQL.
    pub table: String,
    /// It goes.
    pub is_deleted: bool,
    /// The row is told.
    pub tells_row: bool,
    /// The columns that find it.
    pub columns: Vec<Compared>,
    /// Which parameters are compared with those: where these differ, as values of their types, so do the rows.
    pub keys: Vec<usize>,
    /// The text, with parameters only.
    pub text: String,
    /// How many parameters that has.
    pub parameters: usize,
    /// Which of the literals of a text without parameters these are, in their order; of a text that has parameters, none.
    pub literals: Vec<usize>,
}

/// What is changed, as the parser has it.
struct Parts<'a> {
    table: &'a ast::TableWithJoins,
    assignments: &'a [ast::Assignment],
    selection: &'a ast::Expr,
    returning: Option<&'a [ast::SelectItem]>,
}

impl<'a> Parts<'a> {
    /// None of a statement that has more than these.
    fn of(parsed: &'a ast::Statement) -> Option<Self> {
        match parsed {
            ast::Statement::Update(update) => Some(Self {
                table: updated(update)?,
                assignments: &update.assignments,
                selection: update.selection.as_ref()?,
                returning: update.returning.as_deref(),
            }),
            ast::Statement::Delete(delete) => Some(Self {
                table: deleted_from(delete)?,
                assignments: &[],
                selection: delete.selection.as_ref()?,
                returning: delete.returning.as_deref(),
            }),
            _ => None,
        }
    }
}

/// Shows that a text changes one row.
#[must_use]
pub fn keyed(sql: &str) -> Option<Keyed> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let parsed = syntax::parse(Dialect::Postgres, sql)?;
    let parts = Parts::of(&parsed)?;
    let table = only_table(parts.table)?;
    if !tells_columns(parts.returning) || all.iter().any(|(_, token)| token.is_word("ONLY")) {
        return None;
    }
    let mut equalities = Vec::new();
    conjuncts(parts.selection, &mut |conjunct| {
        equalities.extend(equality(conjunct));
    });
    let mut is_simple = true;
    for assignment in parts.assignments {
        let ast::AssignmentTarget::ColumnName(target) = &assignment.target else {
            return None;
        };
        let [ast::ObjectNamePart::Identifier(target)] = target.0.as_slice() else {
            return None;
        };
        let target = folded(target)?;
        if equalities.iter().any(|equality| equality.column == target) {
            return None;
        }
        is_simple &= is_computed_for_each(&assignment.value);
    }
    let clause = |word: &str| all.iter().position(|(_, token)| token.is_word(word));
    let set = clause("SET").unwrap_or(0)..clause("WHERE")?;
    let number = |token: &Token<'_>| syntax::parameter(Dialect::Postgres, token.text, 0);
    let (mut parameters, mut elsewhere) = (0, 0);
    for (at, (_, token)) in all.iter().enumerate() {
        if token.kind == Kind::Parameter {
            parameters = parameters.max(number(token)? + 1);
            elsewhere += usize::from(!set.contains(&at));
            if set.contains(&at) && !is_simple {
                return None;
            }
        }
    }
    if elsewhere != count_of_parameters(&equalities) {
        return None;
    }
    let mut text = sql[..end].to_owned();
    let mut literals = Vec::new();
    let mut places = Vec::new();
    if parameters == 0 {
        places = places_of(&all, &equalities)?;
        if is_simple && !parts.assignments.iter().any(|assignment| has_cast(&assignment.value)) {
            places.extend(set.filter(|at| is_literal_by_itself(&all, *at)));
        }
        places.sort_unstable();
        places.dedup();
        parameters = places.len();
        literals = make_parameters(&mut text, &all, &places);
    }
    let columns = compared(&all, &equalities, &places)?;
    let of_key = columns.iter().filter_map(|compared| match compared.with {
        With::Parameter(number) | With::Cast(number, _) => Some(number),
        With::Number | With::String => None,
    });
    let keys: Vec<usize> = of_key.collect();
    (!keys.is_empty()).then(|| Keyed {
        table: table.to_string(),
        is_deleted: parts.assignments.is_empty(),
        tells_row: parts.returning.is_some(),
        columns,
        keys,
        text,
        parameters,
        literals,
    })
}

/// The same for many, of a text that has parameters; of what type each list is, as it stands in SQL.
#[must_use]
pub fn keyed_many(sql: &str, lists: &[String]) -> Option<String> {
    let all = tokens(sql)?;
    let end = end(&all, sql)?;
    let parsed = syntax::parse(Dialect::Postgres, sql)?;
    let parts = Parts::of(&parsed)?;
    let name = own_name(sql);
    let parameters: Vec<Parameter> = lists
        .iter()
        .map(|list| Parameter {
            list: list.clone(),
            is_wrapped: false,
        })
        .collect();
    let keys = list_of(&parameters, &name);
    let place = format!("{name}keys.{name}place");
    let from = if parts.assignments.is_empty() { "USING" } else { "FROM" };
    let (mut edits, mut is_told) = (Vec::new(), false);
    for (at, (range, token)) in all.iter().enumerate().filter(|(_, (range, _))| range.start < end) {
        if token.kind == Kind::Parameter {
            let number = syntax::parameter(Dialect::Postgres, token.text, 0)?;
            lists.get(number)?;
            edits.push((range.clone(), format!("({name}keys.{name}key_{})", number + 1)));
        } else if token.is_word("WHERE") {
            edits.push((range.clone(), format!("{from} {keys} WHERE")));
        } else if token.is_word("RETURNING") {
            is_told = true;
            edits.push((range.clone(), format!("RETURNING {place},")));
        } else if is_told && token.is_symbol("*") && !all[at - 1].1.is_symbol(".") {
            // Columns of the lists are not to be told.
            edits.push((range.clone(), format!("{}.*", called(parts.table)?)));
        }
    }
    if is_told != parts.returning.is_some() {
        return None;
    }
    let text = edited(&sql[..end], &edits);
    Some(match is_told {
        true => text,
        // The text may end in a comment, which the line's end ends.
        false => format!("{text}\nRETURNING {place}"),
    })
}

/// By what name the table's columns are called in the text.
fn called(table: &ast::TableWithJoins) -> Option<String> {
    match &table.relation {
        ast::TableFactor::Table { alias: Some(alias), .. } => Some(alias.name.to_string()),
        ast::TableFactor::Table { name, alias: None, .. } => Some(name.to_string()),
        _ => None,
    }
}

/// Whether nothing but columns is told.
fn tells_columns(returning: Option<&[ast::SelectItem]>) -> bool {
    returning.unwrap_or_default().iter().all(|item| match item {
        ast::SelectItem::UnnamedExpr(expression) | ast::SelectItem::ExprWithAlias { expr: expression, .. } => {
            matches!(expression, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
        }
        ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => true,
        _ => false,
    })
}

/// Whether all of it is computed for each row: no part hangs on what another one is.
fn is_computed_for_each(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => true,
        ast::Expr::Value(value) => matches!(
            value.value,
            ast::Value::Number(..)
                | ast::Value::SingleQuotedString(_)
                | ast::Value::Boolean(_)
                | ast::Value::Null
                | ast::Value::Placeholder(_)
        ),
        ast::Expr::Nested(inner)
        | ast::Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr: inner,
            ..
        }
        | ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus,
            expr: inner,
        } => is_computed_for_each(inner),
        ast::Expr::BinaryOp {
            left,
            op:
                ast::BinaryOperator::Plus
                | ast::BinaryOperator::Minus
                | ast::BinaryOperator::Multiply
                | ast::BinaryOperator::Divide
                | ast::BinaryOperator::StringConcat,
            right,
        } => is_computed_for_each(left) && is_computed_for_each(right),
        _ => false,
    }
}

/// Whether one of its parts, each of which is [computed for each](is_computed_for_each), is a cast: its type may have numbers, too.
fn has_cast(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Cast { .. } => true,
        ast::Expr::Nested(inner) | ast::Expr::UnaryOp { expr: inner, .. } => has_cast(inner),
        ast::Expr::BinaryOp { left, right, .. } => has_cast(left) || has_cast(right),
        _ => false,
    }
}

/// Whether the token is a number of digits or a string, and no part of a longer literal. What has a sign is one: of what type it is the two
/// tell together.
fn is_literal_by_itself(tokens: &[(Range<usize>, Token<'_>)], at: usize) -> bool {
    let token = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|(_, token)| token);
    let is_one_of = |token: Option<&Token<'_>>, symbols: &[&str]| {
        token.is_some_and(|token| symbols.iter().any(|symbol| token.is_symbol(symbol)))
    };
    let Some(literal) = token(Some(at)).and_then(super::point::Literal::of) else {
        return false;
    };
    let before = token(at.checked_sub(1));
    let before_that = token(at.checked_sub(2));
    let is_signed = is_one_of(before, &["-", "+"])
        && !before_that
            .is_some_and(|token| matches!(token.kind, Kind::Word | Kind::QuotedName) || token.is_symbol(")"));
    let after = token(Some(at + 1));
    (literal.digits().is_some() || literal.string().is_some())
        && !is_signed
        && is_one_of(before, &["=", "+", "-", "*", "/", "(", "|"])
        && (is_one_of(after, &[",", ")", "+", "-", "*", "/", "|"]) || after.is_some_and(|token| token.is_word("WHERE")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> Option<(String, Vec<usize>, Vec<usize>)> {
        keyed(sql).map(|keyed| (keyed.text, keyed.keys, keyed.literals))
    }

    #[test]
    fn one_row_that_is_changed_is_keyed() {
        for (sql, text, keys, literals) in [
            (
                "UPDATE t SET n = n + 1 WHERE id = $1",
                "UPDATE t SET n = n + 1 WHERE id = $1",
                &[0][..],
                &[][..],
            ),
            (
                "UPDATE s.t AS x SET a = $1, b = x.b || $2::text WHERE x.id = $3 AND owner = $1 RETURNING *",
                "UPDATE s.t AS x SET a = $1, b = x.b || $2::text WHERE x.id = $3 AND owner = $1 RETURNING *",
                &[2, 0],
                &[],
            ),
            ("DELETE FROM t WHERE id = 5;", "DELETE FROM t WHERE id = $1", &[0], &[0]),
            (
                "UPDATE t SET n = 7, a = 'it''s', o = o - 3, m = -4, r = 1.5, at = now() WHERE id = 5",
                "UPDATE t SET n = 7, a = 'it''s', o = o - 3, m = -4, r = 1.5, at = now() WHERE id = $1",
                &[0],
                &[6],
            ),
            (
                "UPDATE t SET n = 7, a = 'it''s', o = o - 3, m = -4, r = 1.5, s = DEFAULT WHERE id = 5 -- of 5",
                "UPDATE t SET n = $1, a = $2, o = o - $3, m = -4, r = 1.5, s = DEFAULT WHERE id = $4 -- of 5",
                &[3],
                &[0, 1, 2, 6],
            ),
            (
                "UPDATE t SET n = '7'::numeric(3, 1) WHERE id = 5",
                "UPDATE t SET n = '7'::numeric(3, 1) WHERE id = $1",
                &[0],
                &[3],
            ),
        ] {
            let wanted = Some((text.to_owned(), keys.to_vec(), literals.to_vec()));
            assert_eq!(shown(sql), wanted, "{sql}");
        }
        let told = keyed("DELETE FROM s.t x WHERE \"Id\" = $1 AND n > 3 RETURNING x.id AS i").unwrap();
        assert!(told.is_deleted && told.tells_row && told.table == "s.t" && told.columns[0].column == "Id");
    }

    #[test]
    fn nothing_else_is_keyed() {
        for sql in [
            "UPDATE t SET id = 5 WHERE id = $1",
            "UPDATE t SET \"id\" = id + 1 WHERE id = $1",
            "UPDATE t SET (a, b) = (1, 2) WHERE id = $1",
            "UPDATE t SET a[1] = 5 WHERE id = $1",
            "UPDATE t SET a = 5",
            "UPDATE t SET a = 5 WHERE id > $1",
            "UPDATE t SET a = 5 WHERE id = $1 AND n > $2",
            "UPDATE t SET a = 5 WHERE id = $1 OR id = $2",
            "UPDATE t SET a = 5 WHERE id = $1 + 1",
            "UPDATE t SET a = coalesce($2, a) WHERE id = $1",
            "UPDATE t SET a = CASE WHEN a > 0 THEN a ELSE $2 END WHERE id = $1",
            "UPDATE t SET a = 5 FROM u WHERE id = $1",
            "UPDATE ONLY t SET a = 5 WHERE id = $1",
            "UPDATE t SET a = 5 WHERE id = $1 RETURNING a + 1",
            "UPDATE t SET a = 5 WHERE id = $1 RETURNING $2",
            "UPDATE t SET n = 5 WHERE id = 5 AND n = 5",
            "UPDATE t SET n = 5 WHERE id = 'x'",
            "DELETE FROM t USING u WHERE id = $1",
            "DELETE FROM t",
            "SELECT a FROM t WHERE id = $1",
            "INSERT INTO t VALUES ($1)",
        ] {
            assert_eq!(keyed(sql), None, "{sql}");
        }
    }

    #[test]
    fn many_are_changed_by_lists() {
        let lists = ["pg_catalog.int4[]".to_owned(), "pg_catalog.text[]".to_owned()];
        let of = |sql: &str| keyed_many(sql, &lists);
        let keys = "unnest($1::pg_catalog.int4[], $2::pg_catalog.text[]) WITH ORDINALITY AS \
                    forebay_keys(forebay_key_1, forebay_key_2, forebay_place)";
        assert_eq!(
            of("UPDATE s.t SET a = $2, n = n * 2 WHERE id = $1 -- it").unwrap(),
            format!(
                "UPDATE s.t SET a = (forebay_keys.forebay_key_2), n = n * 2 FROM {keys} WHERE id = \
                 (forebay_keys.forebay_key_1) -- it\nRETURNING forebay_keys.forebay_place"
            )
        );
        assert_eq!(
            of("DELETE FROM s.t AS \"X\" WHERE id = $1 AND a = $2 RETURNING a, *, \"X\".*;").unwrap(),
            format!(
                "DELETE FROM s.t AS \"X\" USING {keys} WHERE id = (forebay_keys.forebay_key_1) AND a = \
                 (forebay_keys.forebay_key_2) RETURNING forebay_keys.forebay_place, a, \"X\".*, \"X\".*"
            )
        );
        assert_eq!(of("DELETE FROM t WHERE id = $3"), None);
    }
}
