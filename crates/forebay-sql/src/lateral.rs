//! Lateral: a PostgreSQL query for one key, made into one for many keys, each with its place.
//!
//! Promises:
//! - The query's own text is kept as it stands, but for its parameters: `$1` becomes a column of the keys, of the same type, so
//!   that it means what it meant. A row says which key it belongs to by the key's place in the list, never by a value.
//! - Rows of one key have a number where their order may have been asked for.
//! - Only for what a parser has seen to be one query that reads, in a text that all servers read alike, whatever their settings;
//!   the names that are added are in nobody's text.
//!
//! Does not know types. What the server takes for an error in the new text (an aggregate of nothing but the key) is not lateral
//! either; the caller that prepares it must check.

use std::fmt::Write as _;
use std::ops::Range;

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::plain::{end, only_reads, tokens};
use super::syntax;

/// What a parameter of the query for one key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The type of the list of its values, as it stands in SQL.
    pub list: String,
    /// Whether the query wants the key as a list of one: `= ANY($1)`.
    pub is_wrapped: bool,
}

/// A query for many keys. Parameter n is the list of what parameter n is for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lateral {
    /// Its columns: the key's place, counted from 1; the row's number, if rows are numbered; then the query's own.
    pub sql: String,
    /// Whether rows are numbered, and come in the order of place and number.
    pub is_ordered: bool,
}

/// Makes a query for one key into one for many.
pub fn lateral(sql: &str, parameters: &[Parameter]) -> Option<Lateral> {
    let tokens = tokens(sql)?;
    let end = end(&tokens, sql)?;
    if !syntax::parse(Dialect::Postgres, sql).is_some_and(|statement| only_reads(&statement)) {
        return None;
    }
    let name = own_name(sql);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (at, (range, token)) in tokens.iter().enumerate() {
        if token.kind != Kind::Parameter {
            continue;
        }
        let number = syntax::parameter(Dialect::Postgres, token.text, 0)?;
        let column = format!("{name}keys.{name}key_{}", number + 1);
        let edit = if !parameters.get(number)?.is_wrapped {
            (range.clone(), format!("({column})"))
        } else if let Some(any) = plain_any(&tokens, at) {
            (any, column)
        } else {
            (range.clone(), format!("(ARRAY[{column}])"))
        };
        edits.push(edit);
    }
    let query = edited(&sql[..end], &edits);
    let is_ordered = tokens.iter().any(|(_, token)| token.is_word("ORDER"));
    Some(Lateral {
        sql: written(&query, parameters, &name, is_ordered),
        is_ordered,
    })
}

/// A beginning of names that is nowhere in the text.
pub(super) fn own_name(sql: &str) -> String {
    let sql = sql.to_lowercase();
    let mut name = "forebay_".to_owned();
    let mut number = 1;
    while sql.contains(&name) {
        number += 1;
        name = format!("forebay{number}_");
    }
    name
}

/// The tokens of `ANY($n)`, where the parameter at `at` stands so that `column = ANY($n)` can be `column = key`: what is
/// before and after binds less than both, for `ANY` binds more than `=` alone. Planners like it better.
fn plain_any(tokens: &[(Range<usize>, Token<'_>)], at: usize) -> Option<Range<usize>> {
    let token = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|(_, token)| token);
    let is_any = token(at.checked_sub(2)).is_some_and(|word| word.is_word("ANY") || word.is_word("SOME"))
        && token(at.checked_sub(1)).is_some_and(|symbol| symbol.is_symbol("("))
        && token(Some(at + 1)).is_some_and(|symbol| symbol.is_symbol(")"))
        && token(at.checked_sub(3)).is_some_and(|symbol| symbol.is_symbol("="));
    let follows = token(Some(at + 2)).is_none_or(|after| {
        after.is_symbol(")")
            || after.is_symbol(";")
            || ["AND", "OR", "ORDER", "GROUP", "LIMIT", "HAVING", "UNION"]
                .iter()
                .any(|word| after.is_word(word))
    });
    let has_between = tokens.iter().any(|(_, token)| token.is_word("BETWEEN"));
    if !is_any || !follows || has_between {
        return None;
    }
    // The column: names and the dots between them.
    let mut before = at.checked_sub(4)?;
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::QuotedName);
    while is_name(&tokens[before].1) && before >= 2 && tokens[before - 1].1.is_symbol(".") {
        before -= 2;
    }
    let starts = token(before.checked_sub(1)).is_some_and(|word| {
        word.is_symbol("(") || ["WHERE", "AND", "OR", "ON"].iter().any(|start| word.is_word(start))
    });
    (is_name(&tokens[before].1) && starts).then(|| tokens[at - 2].0.start..tokens[at + 1].0.end)
}

/// The text with these ranges replaced; they stand in order.
pub(super) fn edited(sql: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut query = String::with_capacity(sql.len() + 64);
    let mut done = 0;
    for (range, replacement) in edits {
        query.push_str(&sql[done..range.start]);
        query.push_str(replacement);
        done = range.end;
    }
    query.push_str(&sql[done..]);
    query
}

/// The lists that are parameters, as a table with a row for each place, its columns and that.
pub(super) fn list_of(parameters: &[Parameter], name: &str) -> String {
    // Of several lists it is the server's own whatever others there are, and of one if it is named so.
    let schema = if parameters.len() == 1 { "pg_catalog." } else { "" };
    let mut sql = format!("{schema}unnest(");
    let mut columns = String::new();
    for (number, parameter) in (1..).zip(parameters) {
        let comma = if number == 1 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(sql, "{comma}${number}::{}", parameter.list);
        let _ = write!(columns, "{name}key_{number}, ");
    }
    let _ = write!(sql, ") WITH ORDINALITY AS {name}keys({columns}{name}place)");
    sql
}

fn written(query: &str, parameters: &[Parameter], name: &str, is_ordered: bool) -> String {
    let keys = list_of(parameters, name);
    let mut sql = format!("SELECT {name}keys.{name}place, {name}rows.* FROM {keys} CROSS JOIN LATERAL (");
    // The text may end in a comment, which the line's end ends.
    if is_ordered {
        // A subquery with ORDER BY is never merged into what is around it, and a window without an order numbers rows as they
        // come. So the numbers are the query's order.
        let _ = write!(
            sql,
            "SELECT row_number() OVER () AS {name}row, {name}query.* FROM ({query}\n) AS {name}query) AS {name}rows \
             ORDER BY {name}keys.{name}place, {name}rows.{name}row"
        );
    } else {
        let _ = write!(sql, "{query}\n) AS {name}rows");
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str, wrapped: &[bool]) -> Option<String> {
        let parameters: Vec<Parameter> = wrapped
            .iter()
            .map(|&is_wrapped| Parameter {
                list: "_int8".to_owned(),
                is_wrapped,
            })
            .collect();
        lateral(sql, &parameters).map(|lateral| lateral.sql)
    }

    #[test]
    fn the_query_stands_as_it_is_but_for_its_parameters() {
        assert_eq!(
            of("SELECT a, '$1' FROM t WHERE b = $1 -- $1 ;", &[false]).unwrap(),
            "SELECT forebay_keys.forebay_place, forebay_rows.* FROM pg_catalog.unnest($1::_int8) WITH ORDINALITY AS \
             forebay_keys(forebay_key_1, forebay_place) CROSS JOIN LATERAL (SELECT a, '$1' FROM t WHERE b = \
             (forebay_keys.forebay_key_1) -- $1 ;\n) AS forebay_rows"
        );
        assert_eq!(
            of("SELECT a FROM t WHERE (b, c) = ($2, $1) ORDER BY a;", &[false, false]).unwrap(),
            "SELECT forebay_keys.forebay_place, forebay_rows.* FROM unnest($1::_int8, $2::_int8) WITH ORDINALITY AS \
             forebay_keys(forebay_key_1, forebay_key_2, forebay_place) CROSS JOIN LATERAL (SELECT row_number() OVER () AS \
             forebay_row, forebay_query.* FROM (SELECT a FROM t WHERE (b, c) = ((forebay_keys.forebay_key_2), \
             (forebay_keys.forebay_key_1)) ORDER BY a\n) AS forebay_query) AS forebay_rows ORDER BY \
             forebay_keys.forebay_place, forebay_rows.forebay_row"
        );
    }

    #[test]
    fn any_is_a_comparison_where_it_binds_alike_and_a_list_of_one_elsewhere() {
        for plain in [
            "SELECT a FROM t WHERE b = ANY($1)",
            "SELECT a FROM t WHERE t.\"b\" = some ( $1 ) AND c",
            "SELECT a FROM t JOIN u ON (s.t.b = ANY($1)) ORDER BY a",
        ] {
            let sql = of(plain, &[true]).unwrap();
            assert!(sql.contains("= forebay_keys.forebay_key_1"), "{sql}");
            assert!(!sql.contains("ARRAY"), "{sql}");
        }
        for list in [
            "SELECT a FROM t WHERE b = ANY($1::bigint[])",
            "SELECT a FROM t WHERE b >= ANY($1)",
            "SELECT a FROM t WHERE b = ALL($1)",
            "SELECT a FROM t WHERE b + 1 = ANY($1)",
            "SELECT a FROM t WHERE c = b = ANY($1)",
            "SELECT a FROM t WHERE b = ANY($1) || 'x'",
            "SELECT a FROM t WHERE b = ANY($1) = true",
            "SELECT a FROM t WHERE b = ANY($1) IS TRUE",
            "SELECT a FROM t WHERE NOT b = ANY($1)",
            "SELECT a FROM t WHERE c BETWEEN d AND b = ANY($1)",
            "SELECT b = ANY($1) FROM t",
            "SELECT cardinality($1) FROM t",
        ] {
            let sql = of(list, &[true]).unwrap();
            assert!(sql.contains("(ARRAY[forebay_keys.forebay_key_1])"), "{sql}");
        }
    }

    #[test]
    fn names_that_are_added_are_in_nobodys_text() {
        let sql = of("SELECT forebay_key_1 FROM \"FOREBAY2_t\" WHERE a = $1", &[false]).unwrap();
        assert!(sql.contains("a = (forebay3_keys.forebay3_key_1)"), "{sql}");
    }

    #[test]
    fn what_is_not_one_query_that_reads_is_not_lateral() {
        for sql in [
            "",
            "SELECT a FROM t WHERE b = $1 FOR UPDATE",
            "SELECT a FROM (SELECT * FROM t FOR SHARE) t WHERE b = $1",
            "SELECT a INTO u FROM t WHERE b = $1",
            "SELECT a FROM t WHERE b = $1; SELECT 1",
            "SELECT a FROM t WHERE b = $1; DROP TABLE t",
            "SELECT a FROM t WHERE b = $2",
            "SELECT a FROM t WHERE b = $0",
            "WITH x AS (DELETE FROM t WHERE a = $1 RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO t VALUES ($1) RETURNING *) SELECT * FROM x",
            "WITH x AS (UPDATE t SET a = $1 RETURNING *) SELECT * FROM x",
            "INSERT INTO t VALUES ($1)",
            "DELETE FROM t WHERE a = $1",
            "EXPLAIN SELECT $1",
            "SHOW search_path",
            r"SELECT a FROM t WHERE b = $1 AND c = '\'",
            "SELECT U&\"a\" FROM t WHERE b = $1",
            "SELECT a FROM t WHERE b = $1 AND c = 'open",
            "SELEC a FROM t WHERE b = $1",
            "SELECT a FROM t WHERE b = $1) AS x, (SELECT 1",
        ] {
            assert_eq!(of(sql, &[false]), None, "{sql}");
        }
        assert!(
            of(
                "WITH x AS (SELECT 1) SELECT * FROM x WHERE a = $1 UNION VALUES (2)",
                &[false]
            )
            .is_some()
        );
    }
}
