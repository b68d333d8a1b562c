//! Does: what a statement does to rows, as far as that can be told.
//!
//! Promises: [`Does::Nothing`] is said only of what by its text, and by what is known of the functions in it, changes no row; a table is named
//! only where the catalog has shown that its rows alone are changed. Anything else may do [anything](Does::Anything).

use std::sync::Arc;

use forebay_sql::{Effect, Touches, only_controls};

use crate::sharing::reviewed::is_reviewed;

/// What is done to rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Does {
    #[default]
    Nothing,
    /// Rows of these tables are changed, as they are called without their schemas.
    Changes(Vec<Arc<str>>),
    Anything,
}

impl Does {
    /// This, and that.
    pub(crate) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Nothing) | (Self::Anything, _) => {}
            (Self::Changes(tables), Self::Changes(more)) => {
                for table in more {
                    if !tables.contains(&table) {
                        tables.push(table);
                    }
                }
            }
            (own, other) => *own = other,
        }
    }
}

/// Words that a parenthesis may follow in a query, and that are no functions.
const WORDS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "by",
    "case",
    "cast",
    "cube",
    "distinct",
    "else",
    "except",
    "exists",
    "filter",
    "from",
    "full",
    "group",
    "grouping",
    "having",
    "in",
    "inner",
    "intersect",
    "is",
    "join",
    "lateral",
    "left",
    "like",
    "limit",
    "materialized",
    "not",
    "offset",
    "on",
    "or",
    "order",
    "over",
    "partition",
    "range",
    "right",
    "rollup",
    "row",
    "rows",
    "select",
    "sets",
    "some",
    "table",
    "then",
    "union",
    "using",
    "values",
    "when",
    "where",
    "with",
    "within",
];

/// Functions of PostgreSQL's that change no table, beside those that are [reviewed](crate::sharing) and those that begin with `pg_`.
const KEEPING: &[&str] = &[
    "col_description",
    "currval",
    "current_catalog",
    "current_database",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "format_type",
    "has_column_privilege",
    "has_database_privilege",
    "has_schema_privilege",
    "has_table_privilege",
    "lastval",
    "nextval",
    "obj_description",
    "session_user",
    "set_config",
    "setval",
    "shobj_description",
    "to_regclass",
    "to_regnamespace",
    "to_regproc",
    "to_regtype",
    "txid_current",
    "version",
];

/// What the text of a statement tells: of a change no more than that there is one.
pub(crate) fn does(text: &str, touches: Option<&Touches>) -> Does {
    match touches {
        Some(touches) if touches.effect == Effect::Reads => {
            let keeps = |name: &String| {
                is_reviewed(name)
                    || WORDS.contains(&name.as_str())
                    || KEEPING.contains(&name.as_str())
                    || name.starts_with("pg_")
            };
            match touches.called.iter().all(keeps) {
                true => Does::Nothing,
                false => Does::Anything,
            }
        }
        Some(_) => Does::Anything,
        None if only_controls(text) => Does::Nothing,
        None => Does::Anything,
    }
}

#[cfg(test)]
mod tests {
    use forebay_sql::touches;

    use super::*;

    #[test]
    fn what_changes_nothing_is_told_by_its_text() {
        for text in [
            "SELECT a, count(*) FROM t WHERE b IN (1, 2) GROUP BY a",
            "WITH x AS (SELECT 1) SELECT * FROM x WHERE EXISTS (SELECT FROM t)",
            "SELECT pg_catalog.version()",
            "SELECT current_schema(), set_config('a.b', 'c', false)",
            "SELECT c.relname FROM pg_catalog.pg_class c WHERE pg_catalog.pg_table_is_visible(c.oid)",
            "BEGIN",
            "SHOW search_path",
        ] {
            assert_eq!(does(text, touches(text).ok().as_ref()), Does::Nothing, "{text}");
        }
        for text in [
            "SELECT write_a_row()",
            "SELECT * FROM app.write_a_row(1)",
            "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
            "SELECT * INTO u FROM t",
            "INSERT INTO t VALUES (1)",
            "COPY t FROM STDIN",
            "TRUNCATE t",
            "CALL p()",
            "DO $$BEGIN END$$",
            "EXECUTE p",
            "EXPLAIN ANALYZE DELETE FROM t",
            "COMMIT PREPARED 'x'",
            "CREATE TABLE t (a int)",
            "SELECT 1; DELETE FROM t",
        ] {
            assert_eq!(does(text, touches(text).ok().as_ref()), Does::Anything, "{text}");
        }
    }

    #[test]
    fn what_is_done_adds_up() {
        let tables = |names: &[&str]| Does::Changes(names.iter().map(|&name| name.into()).collect());
        let mut all = Does::Nothing;
        for (does, sum) in [
            (Does::Nothing, Does::Nothing),
            (tables(&["a"]), tables(&["a"])),
            (tables(&["b", "a"]), tables(&["a", "b"])),
            (Does::Nothing, tables(&["a", "b"])),
            (Does::Anything, Does::Anything),
            (tables(&["a"]), Does::Anything),
        ] {
            all.add(does);
            assert_eq!(all, sum);
        }
    }
}
