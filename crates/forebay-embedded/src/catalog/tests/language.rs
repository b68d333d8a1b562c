//! The translator's own promises: refused by name or right; types; no panic, no overflow.

use std::sync::LazyLock;

use postgres_types::Type;
use proptest::prelude::*;
use rusqlite::Connection;

use super::World;
use crate::catalog::{Catalog, CatalogError, runtime_error};
use crate::sql::{Kind, parse_script};

#[test]
fn a_construct_it_does_not_know_is_refused_by_name() {
    let refused = [
        ("SELECT pg_sleep(1) FROM pg_class", "pg_sleep"),
        ("SELECT setseed(1) FROM pg_class", "setseed"),
        ("SELECT 0.1 + 0.2 FROM pg_class", "0.1"),
        ("SELECT relpages * '1.5'::numeric FROM pg_class", "numeric"),
        ("SELECT public.f(oid) FROM pg_class", "public.f"),
        ("SELECT DISTINCT ON (relkind) relname FROM pg_class", "DISTINCT ON"),
        ("SELECT relname FROM pg_class FOR UPDATE", "FOR UPDATE"),
        (
            "SELECT relname FROM pg_class, LATERAL (SELECT relname AS x) s",
            "LATERAL",
        ),
        ("SELECT relname FROM pg_class GROUP BY ROLLUP (relname)", "ROLLUP"),
        ("SELECT relname COLLATE \"en_US\" FROM pg_class", "en_US"),
        ("SELECT relname SIMILAR TO 'a' FROM pg_class", "SIMILAR TO"),
        ("SELECT relname::money FROM pg_class", "money"),
        ("SELECT relname::varchar(3) FROM pg_class", "varchar(3)"),
        ("SELECT 1 / relnatts FROM pg_class", "/"),
        ("SELECT oid = relname FROM pg_class", "comparing"),
        ("SELECT relname + 1 FROM pg_class", "comparing"),
        ("SELECT oid AND true FROM pg_class", "AND"),
        ("SELECT relname FROM pg_class WHERE relnatts", "condition"),
        ("SELECT sum(relname) FROM pg_class", "sum"),
        ("SELECT count(*), unnest(conkey) FROM pg_constraint", "set-returning"),
        ("SELECT relname FROM pg_class WHERE unnest('{1}'::int[]) = 1", "unnest"),
        ("SELECT relname FROM pg_class TABLESAMPLE SYSTEM (1)", "TABLESAMPLE"),
        (
            "SELECT row_number() OVER (ORDER BY oid ROWS 1 PRECEDING) FROM pg_class",
            "frame",
        ),
        ("DELETE FROM pg_class", "not a query"),
        ("SELECT 1; SELECT 2", "several statements"),
        ("SELECT ARRAY[[1],[2]] FROM pg_class", "array"),
        (
            "SELECT relname FROM pg_class WHERE oid = ANY (ARRAY[1]) AND relname < ALL (ARRAY['a'])",
            "ALL",
        ),
    ];
    for (sql, named) in refused {
        match Catalog::translate(sql) {
            Err(error @ CatalogError::Unsupported { .. }) => {
                assert_eq!(error.sqlstate(), "0A000");
                assert!(
                    error.to_string().to_lowercase().contains(&named.to_lowercase()),
                    "{sql}: {error}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn what_does_not_exist_has_postgresqls_sqlstate() {
    let wrong = [
        ("SELECT nothing FROM pg_class", "42703"),
        ("SELECT c.nothing FROM pg_class c", "42703"),
        ("SELECT pg_class.relname FROM pg_class c", "42703"),
        ("SELECT 1 FROM pg_nothing", "42P01"),
        ("SELECT 1 FROM pg_class, tables", "0A000"),
        ("SELECT 1 FROM information_schema.pg_class", "42P01"),
        ("SELECT (", "42601"),
        ("", "42601"),
        ("SELECT 1 FROM pg_class WHERE oid = 'x'", "22P02"),
        ("SELECT 1 FROM pg_class WHERE relhasindex = 'perhaps'", "22P02"),
    ];
    for (sql, state) in wrong {
        assert_eq!(Catalog::translate(sql).unwrap_err().sqlstate(), state, "{sql}");
    }
}

#[test]
fn letters_beyond_ascii_have_two_cases() {
    let world = World::standard();
    assert_eq!(
        world.rows("SELECT lower('É') || upper('é') FROM pg_class LIMIT 1"),
        ["éÉ"]
    );
}

#[test]
fn errors_while_running_carry_their_sqlstate() {
    let world = World::standard();
    let wrong = [
        (
            "SELECT 'nothing'::regclass",
            "42P01",
            "relation \"nothing\" does not exist",
        ),
        ("SELECT 'nothing'::regtype", "42704", "type \"nothing\" does not exist"),
        (
            "SELECT 'nothing'::regnamespace",
            "3F000",
            "schema \"nothing\" does not exist",
        ),
        (
            "SELECT relname::int FROM pg_class",
            "22P02",
            "invalid input syntax for type integer: \"author\"",
        ),
        (
            "SELECT relname ~ '(' FROM pg_class",
            "2201B",
            "invalid regular expression: error: unclosed group",
        ),
        (
            "SELECT relname ~ '\\yauthor' FROM pg_class",
            "0A000",
            "the emulated catalog does not support \\y in a regular expression",
        ),
        (
            "SELECT relname ~ '[a--b]' FROM pg_class",
            "0A000",
            "the emulated catalog does not support -- inside brackets in a regular expression",
        ),
        (
            "SELECT * FROM generate_series(1, 1000000000)",
            "54000",
            "generate_series produces more than 100000 rows",
        ),
    ];
    for (sql, state, message) in wrong {
        let sql = sql.replace("FROM pg_class", "FROM pg_class WHERE relname = 'author'");
        let error = world.run(&Catalog::translate(&sql).unwrap(), &[]).unwrap_err();
        assert_eq!(
            runtime_error(&error),
            Some((state.to_owned(), message.to_owned())),
            "{sql}: {error}"
        );
    }
    assert_eq!(runtime_error(&rusqlite::Error::QueryReturnedNoRows), None);
}

#[test]
fn result_columns_are_named_and_typed_as_by_postgresql() {
    let typed = [
        ("SELECT oid FROM pg_class", "oid", Type::OID),
        ("SELECT relname FROM pg_class", "relname", Type::NAME),
        ("SELECT c.RELKIND FROM pg_class c", "relkind", Type::CHAR),
        ("SELECT relhasindex AS Has FROM pg_class", "has", Type::BOOL),
        ("SELECT relnatts FROM pg_class", "relnatts", Type::INT2),
        ("SELECT reltuples FROM pg_class", "reltuples", Type::FLOAT4),
        ("SELECT indkey FROM pg_index", "indkey", Type::INT2_VECTOR),
        ("SELECT conkey FROM pg_constraint", "conkey", Type::INT2_ARRAY),
        ("SELECT oid::regclass FROM pg_class", "oid", Type::REGCLASS),
        ("SELECT count(*) FROM pg_class", "count", Type::INT8),
        ("SELECT 'x'", "?column?", Type::TEXT),
        ("SELECT NULL", "?column?", Type::TEXT),
        ("SELECT NULL::int8", "int8", Type::INT8),
        ("SELECT relname = 'x' FROM pg_class", "?column?", Type::BOOL),
        ("SELECT true", "?column?", Type::BOOL),
        ("SELECT EXISTS (SELECT 1 FROM pg_class)", "exists", Type::BOOL),
        (
            "SELECT CASE WHEN relhasindex THEN 1 END FROM pg_class",
            "case",
            Type::INT4,
        ),
        ("SELECT ARRAY(SELECT relname FROM pg_class)", "array", Type::NAME_ARRAY),
        ("SELECT pg_catalog.format_type(1, 2)", "format_type", Type::TEXT),
        ("SELECT (SELECT oid FROM pg_class LIMIT 1)", "oid", Type::OID),
        (
            "SELECT x.n FROM (SELECT relnatts FROM pg_class) AS x(n)",
            "n",
            Type::INT2,
        ),
        (
            "WITH t AS (SELECT relname AS r FROM pg_class) SELECT * FROM t",
            "r",
            Type::NAME,
        ),
        (
            "SELECT table_name FROM information_schema.tables",
            "table_name",
            Type::NAME,
        ),
    ];
    for (sql, name, kind) in typed {
        let translation = Catalog::translate(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let [column] = translation.columns.as_slice() else {
            panic!("{sql}")
        };
        assert_eq!((column.name.as_str(), &column.kind), (name, &kind), "{sql}");
    }
}

#[test]
fn parameters_have_the_type_of_what_they_meet_and_keep_their_number() {
    let sql = "SELECT $4 FROM pg_class WHERE relname = $2 AND oid = $1 AND relhasindex = $3 AND relkind = ANY ($5) AND relnatts IN ($6) LIMIT $7";
    let expected = [
        Type::OID,
        Type::NAME,
        Type::BOOL,
        Type::TEXT,
        Type::CHAR_ARRAY,
        Type::INT2,
        Type::INT8,
    ];
    assert_eq!(Catalog::translate(sql).unwrap().parameters, expected);
    let world = World::standard();
    let found = "SELECT relname FROM pg_class WHERE relkind = $2 AND relname = ANY ($1) ORDER BY 1";
    assert_eq!(
        world.rows_with(found, &[&"{book,author,cheap_book}", &"r"]),
        ["author", "book"]
    );
    assert_eq!(
        world.rows_with(
            "SELECT relname FROM pg_class WHERE oid = $1::regclass",
            &[&"public.book"]
        ),
        ["book"]
    );
}

#[test]
fn deep_and_long_queries_are_errors_not_overflows() {
    // The stack of a tokio worker.
    let run = || {
        let nested = format!("SELECT {}1{} FROM pg_class", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(Catalog::translate(&nested).unwrap_err().sqlstate(), "54001");
        let chain = format!(
            "SELECT 1 FROM pg_class WHERE {}",
            vec!["relhasindex"; 5_900].join(" AND ")
        );
        Catalog::translate(&chain).unwrap();
        let long = format!(
            "SELECT 1 FROM pg_class WHERE {}",
            vec!["relhasindex"; 10_000].join(" AND ")
        );
        assert_eq!(Catalog::translate(&long).unwrap_err().sqlstate(), "54001");
        let inside = format!(
            "SELECT relname SIMILAR TO {} FROM pg_class",
            vec!["'a'"; 5_900].join(" || ")
        );
        assert_eq!(Catalog::translate(&inside).unwrap_err().sqlstate(), "0A000");
        let casts = format!("SELECT oid{} FROM pg_class", "::oid".repeat(3_000));
        assert_eq!(Catalog::translate(&casts).unwrap_err().sqlstate(), "54001");
        let unions = vec!["SELECT 1"; 3_000].join(" UNION ALL ");
        assert_eq!(Catalog::translate(&unions).unwrap_err().sqlstate(), "54001");
        let big = format!("SELECT '{}'", "x".repeat(300_000));
        assert_eq!(Catalog::translate(&big).unwrap_err().sqlstate(), "54001");
    };
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn columns_without_an_alias_have_postgresql_s_names() {
    for (expression, expected) in [
        ("relname", "relname"),
        ("oid::regclass", "oid"),
        ("'pg_class'::regclass", "regclass"),
        ("'a'::pg_catalog.text", "text"),
        ("'public'::regnamespace", "regnamespace"),
        ("relname COLLATE \"C\"", "relname"),
        ("CASE WHEN true THEN 1 END", "case"),
        ("CASE WHEN true THEN 1 ELSE oid END", "oid"),
        ("EXISTS (SELECT 1 FROM pg_type)", "exists"),
        ("NOT EXISTS (SELECT 1 FROM pg_type)", "?column?"),
        ("(SELECT max(oid) FROM pg_type)", "max"),
        ("ARRAY[1]", "array"),
        ("1 + 1", "?column?"),
    ] {
        let translation = Catalog::translate(&format!("SELECT {expression} FROM pg_class")).unwrap();
        assert_eq!(translation.columns[0].name, expected, "{expression}");
    }
}

#[test]
fn catalog_queries_are_told_from_queries_of_data() {
    let cases = [
        ("SELECT * FROM pg_catalog.pg_class", true),
        ("SELECT * FROM pg_class c JOIN pg_namespace n ON true", true),
        ("SELECT * FROM information_schema.tables", true),
        ("SELECT * FROM forebay.information_schema.tables", true),
        ("SELECT format_type(20, NULL)", true),
        ("SELECT to_regclass('x')", true),
        ("SELECT 'x'::regclass", true),
        ("SELECT 'x'::pg_catalog.regtype", true),
        ("WITH c AS (SELECT * FROM pg_class) SELECT * FROM c", true),
        ("SELECT 1", false),
        ("SELECT version(), current_schema(), current_user", false),
        ("SELECT pg_backend_pid()", false),
        // Under any name, they are functions that need no catalog.
        ("SELECT pg_catalog.version()", false),
        ("SELECT pg_catalog.generate_series(1, 2)", false),
        ("SELECT * FROM pg_class c, unnest(c.relacl)", true),
        ("SELECT * FROM pg_opfamily", true),
        ("WITH pg_class AS (SELECT * FROM book) SELECT * FROM pg_class", false),
        ("SELECT * FROM book", false),
        ("SELECT * FROM public.pg_class", false),
        ("SELECT * FROM book JOIN pg_class ON true", false),
        ("SELECT * FROM tables", false),
        (
            "SELECT title FROM book WHERE title IN (SELECT relname FROM pg_class)",
            false,
        ),
        ("INSERT INTO book SELECT relname FROM pg_class", false),
        ("WITH pg_class AS (SELECT 1) SELECT * FROM pg_class", false),
        ("SELECT '1'::int", false),
    ];
    for (sql, expected) in cases {
        let statements = parse_script(sql).unwrap();
        assert_eq!(matches!(statements[0].kind, Kind::Catalog), expected, "{sql}");
    }
}

#[test]
fn the_catalog_can_move_between_threads() {
    fn sendable<T: Send>() {}
    sendable::<Catalog>();
}

static CONNECTION: LazyLock<std::sync::Mutex<World>> = LazyLock::new(|| std::sync::Mutex::new(World::standard()));

fn recorded_queries() -> Vec<&'static str> {
    let blocks = include_str!("../data/psql15.txt")
        .split("==== ")
        .skip(1)
        .chain(include_str!("../data/clients15.txt").split("==== ").skip(1));
    blocks
        .map(|block| block.split_once('\n').unwrap().1.split_once("\n----").unwrap().0)
        .collect()
}

/// A recorded query with some of its words replaced by words of another.
fn mutated() -> impl Strategy<Value = String> {
    let queries = recorded_queries();
    let count = queries.len();
    (
        0..count,
        0..count,
        proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8),
            1..6,
        ),
    )
        .prop_map(move |(base, donor, edits)| {
            let mut words: Vec<&str> = queries[base].split_inclusive([' ', '\n', '(', ')', ',']).collect();
            let donors: Vec<&str> = queries[donor].split_inclusive([' ', '\n', '(', ')', ',']).collect();
            for (at, from, edit) in edits {
                if words.is_empty() {
                    break;
                }
                let at = at.index(words.len());
                let word = donors[from.index(donors.len())];
                match edit {
                    0 => words[at] = word,
                    1 => words.insert(at, word),
                    2 => drop(words.remove(at)),
                    _ => {
                        let other = from.index(words.len());
                        words.swap(at, other);
                    }
                }
            }
            words.concat()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn translating_never_panics(sql in mutated()) {
        if let Ok(translation) = Catalog::translate(&sql) {
            // Whatever is translated is SQLite's SQL and reads only; it may still be refused for what only SQLite checks.
            let world = CONNECTION.lock().unwrap();
            let connection: &Connection = world.catalog.connection();
            if let Ok(statement) = connection.prepare(&translation.sql) {
                prop_assert!(statement.readonly());
                prop_assert_eq!(statement.column_count(), translation.columns.len());
                prop_assert_eq!(statement.parameter_count() <= translation.parameters.len(), true);
            } else {
                let error = connection.prepare(&translation.sql).unwrap_err().to_string();
                prop_assert!(!error.contains("syntax error") && !error.contains("no such function") && !error.contains("no such table"), "{error}\n{sql}\n{}", translation.sql);
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(sql in "\\PC{0,80}") {
        let _ = Catalog::translate(&sql);
        let _ = Catalog::translate(&format!("SELECT {sql} FROM pg_class"));
    }
}
