//! Does: what a statement does to rows, as far as that can be told.
//!
//! Promises: [`Does::Nothing`] is said only of what by its text, and by what is known of the functions in it, changes no row; a table is named
//! only where the catalog has shown that its rows alone are changed. Anything else may do [anything](Does::Anything).

use std::sync::Arc;

use forebay_sql::{Effect, Touches, calls_in_a_schema, only_controls};

use crate::sharing::reviewed::is_reviewed;

/// What has changed more rows of a table has changed any of them.
const ROWS_MAX: usize = 1000;
/// What has changed more tables has changed anything.
const TABLES_MAX: usize = 1000;

/// What is done to rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Does {
    #[default]
    Nothing,
    /// Rows of these tables are changed; each stands there once.
    Changes(Vec<Changed>),
    Anything,
}

/// A table of which rows are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    /// As it is called without its schema.
    pub(crate) table: Arc<str>,
    pub(crate) rows: Rows,
}

/// So are all rows called together that are not there, as far as is known.
pub(crate) const ABSENT: &str = "\0";

/// Which rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rows {
    Any,
    /// Those that are [called](super::key) so.
    Only(Vec<Arc<str>>),
}

impl Does {
    /// Any rows of this table are changed.
    pub(crate) fn changes(table: Arc<str>) -> Self {
        let rows = Rows::Any;
        Self::Changes(vec![Changed { table, rows }])
    }

    /// Those rows of it are that are called so.
    pub(crate) fn changes_rows(table: Arc<str>, rows: Vec<Arc<str>>) -> Self {
        let rows = Rows::Only(rows);
        Self::Changes(vec![Changed { table, rows }])
    }

    /// Rows of it are made, and those that were there before are left as they were.
    pub(crate) fn makes_rows(table: Arc<str>) -> Self {
        Self::changes_rows(table, vec![ABSENT.into()])
    }

    /// The row of it that is called so is; none: it may be any.
    pub(crate) fn changes_row(table: Arc<str>, row: Option<Arc<str>>) -> Self {
        let rows = row.map_or(Rows::Any, |row| Rows::Only(vec![row]));
        Self::Changes(vec![Changed { table, rows }])
    }

    /// This, and that.
    pub(crate) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::Nothing) | (Self::Anything, _) => {}
            (Self::Changes(tables), Self::Changes(more)) => {
                for changed in more {
                    // The last one is the next one, more often than not.
                    match tables.iter_mut().rev().find(|known| known.table == changed.table) {
                        Some(known) => known.rows.add(changed.rows),
                        None => tables.push(changed),
                    }
                }
                if tables.len() > TABLES_MAX {
                    *self = Self::Anything;
                }
            }
            (own, other) => *own = other,
        }
    }

    /// Whether it is known already that any row of this table may be changed; false where that takes a search.
    pub(crate) fn may_change_any_row_of(&self, table: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Changes(tables) => tables
                .last()
                .is_some_and(|last| last.rows == Rows::Any && *last.table == *table),
            Self::Anything => true,
        }
    }

    /// Which rows of its tables are changed is not known.
    pub(crate) fn may_change_any_row(&mut self) {
        if let Self::Changes(tables) = self {
            tables.iter_mut().for_each(|changed| changed.rows = Rows::Any);
        }
    }
}

impl Rows {
    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Any, _) => {}
            (Self::Only(rows), Self::Only(more)) if rows.len() + more.len() <= ROWS_MAX => {
                for row in more {
                    if rows.last() != Some(&row) {
                        rows.push(row);
                    }
                }
            }
            _ => *self = Self::Any,
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

/// What it changes is what all sessions begin with.
const RELOADING: &str = "pg_reload_conf";

/// What the text of a statement tells: of a change no more than that there is one.
pub(crate) fn does(text: &str, touches: Option<&Touches>) -> Does {
    match touches {
        Some(touches) if touches.effect == Effect::Reads => {
            let keeps = |name: &String| {
                is_reviewed(name)
                    || WORDS.contains(&name.as_str())
                    || KEEPING.contains(&name.as_str())
                    || (name.starts_with("pg_") && name != RELOADING)
            };
            // A schema has functions of its own, whatever they are called.
            match touches.called.iter().all(keeps) && !calls_in_a_schema(text) {
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
            "SELECT pg_reload_conf()",
            "SELECT * FROM app.write_a_row(1)",
            "SELECT audit.log('x')",
            "SELECT audit.pg_archive()",
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
        let row = |table: &str, row: &str| Does::changes_row(table.into(), Some(row.into()));
        let all = |does: &[Does]| {
            let mut all = Does::Nothing;
            does.iter().for_each(|does| all.add(does.clone()));
            all
        };
        let changed = |table: &str, rows: Option<&[&str]>| Changed {
            table: table.into(),
            rows: rows.map_or(Rows::Any, |rows| {
                Rows::Only(rows.iter().map(|&row| row.into()).collect())
            }),
        };
        assert_eq!(all(&[Does::Nothing]), Does::Nothing);
        let two = [
            row("a", "1"),
            Does::Nothing,
            row("b", "1"),
            row("a", "1"),
            row("a", "2"),
        ];
        let sum = [changed("a", Some(&["1", "2"])), changed("b", Some(&["1"]))];
        assert_eq!(all(&two), Does::Changes(sum.into()));
        for more in [Does::changes("a".into()), Does::changes_row("a".into(), None)] {
            let sum = Does::Changes(vec![changed("a", None), changed("b", Some(&["1"]))]);
            assert_eq!(all(&[all(&two), more, row("a", "3")]), sum);
        }
        assert_eq!(all(&[Does::Anything, row("a", "1")]), Does::Anything);
        assert_eq!(all(&[row("a", "1"), Does::Anything]), Does::Anything);
        let last = all(&[row("b", "1"), Does::changes("a".into())]);
        assert!(last.may_change_any_row_of("a") && !last.may_change_any_row_of("b"));
        assert!(Does::Anything.may_change_any_row_of("a") && !all(&two).may_change_any_row_of("b"));
        let mut any = all(&two);
        any.may_change_any_row();
        assert_eq!(any, Does::Changes(vec![changed("a", None), changed("b", None)]));
    }

    #[test]
    fn there_is_an_end_to_what_is_told_by_row_and_table() {
        let mut does = Does::Nothing;
        for number in 0..ROWS_MAX {
            does.add(Does::changes_row("a".into(), Some(number.to_string().into())));
        }
        assert!(
            matches!(&does, Does::Changes(tables) if matches!(&tables[0].rows, Rows::Only(rows) if rows.len() == ROWS_MAX))
        );
        does.add(Does::changes_row("a".into(), Some("more".into())));
        assert_eq!(does, Does::changes("a".into()));
        for number in 1..=TABLES_MAX {
            assert_ne!(does, Does::Anything);
            does.add(Does::changes(number.to_string().into()));
        }
        assert_eq!(does, Does::Anything);
    }
}
