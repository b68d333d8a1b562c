//! Scripts, hints, session commands, catalog queries; and that no text whatever does harm.

use proptest::prelude::*;

use super::{one, parse};
use crate::sql::{Hints, Isolation, Kind, ResetTarget, SqlError, Tag};

fn texts(script: &str) -> Vec<String> {
    parse(script)
        .unwrap()
        .iter()
        .map(|statement| statement.sql.to_string())
        .collect()
}

#[test]
fn scripts_are_cut_at_semicolons_that_end_a_statement() {
    for (script, expected) in [
        ("", vec![]),
        (" ;; ; ", vec![]),
        ("-- nothing\n/* at all */", vec![]),
        ("SELECT 1", vec!["SELECT 1"]),
        ("SELECT 1; SELECT 2;", vec!["SELECT 1", "SELECT 2"]),
        ("/* a */ SELECT 1 /* b */ ; -- c", vec!["SELECT 1"]),
        (
            "SELECT ';', \";\", `;`, [;], x'00' -- ;\n; SELECT 2",
            vec!["SELECT ';', \";\", `;`, [;], x'00'", "SELECT 2"],
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM b; END; SELECT 3",
            vec![
                "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM b; END",
                "SELECT 3",
            ],
        ),
        (
            "CREATE TRIGGER t EXECUTE FUNCTION f(); SELECT 1",
            vec!["CREATE TRIGGER t EXECUTE FUNCTION f()", "SELECT 1"],
        ),
        ("NONSENSE here; SELECT 1", vec!["NONSENSE here", "SELECT 1"]),
        ("\u{feff}SELECT 1", vec!["SELECT 1"]),
    ] {
        assert_eq!(texts(script), expected, "{script}");
    }
    let parsed = parse("SELECT $$;$$; SELECT E'\\';'; SELECT 3").unwrap();
    assert_eq!(parsed.len(), 3);
    assert_eq!(&*parsed[0].sql, "SELECT ';'");
    assert_eq!(&*parsed[1].sql, "SELECT ''';'");
}

#[test]
fn hints_come_from_real_comments_alone() {
    for (script, expected) in [
        ("/* batch:5 */ SELECT 1", Some(5)),
        ("/*batch:5*/ SELECT 1", Some(5)),
        ("SELECT 1 /* file:a.php line:3 batch:7 */", Some(7)),
        ("-- batch:9 file:x\nSELECT 1", Some(9)),
        ("SELECT /* unknown:1 batch:0 other */ 1", Some(0)),
        ("/* a /* batch:4 */ */ SELECT 1", Some(4)),
        ("SELECT 'batch:5'", None),
        ("SELECT '/* batch:5 */'", None),
        ("SELECT \"/* batch:5 */\"", None),
        ("SELECT `-- batch:5`", None),
        ("SELECT $$ /* batch:5 */ $$", None),
        ("SELECT E'\\'/* batch:5 */'", None),
        ("SELECT 1 /* batch:many */", None),
        ("SELECT 1 /* batch:-1 */", None),
        ("SELECT 1 /* minibatch:5 */", None),
        ("SELECT 1; /* batch:5 */", None),
    ] {
        assert_eq!(one(script).hints, Hints { batch_ms: expected }, "{script}");
    }
    let parsed = parse("SELECT 1; /* batch:5 */ SELECT 2; SELECT 3").unwrap();
    let hints: Vec<Option<u64>> = parsed.iter().map(|statement| statement.hints.batch_ms).collect();
    assert_eq!(hints, [None, Some(5), None], "a hint is its own statement's");
}

#[test]
fn session_commands_are_understood() {
    let set = |name: &str, value: Option<&str>, local| Kind::Set {
        name: name.into(),
        value: value.map(Into::into),
        local,
    };
    let begin = |isolation, read_only| Kind::Begin { isolation, read_only };
    for (script, kind, tag) in [
        ("BEGIN", begin(None, None), "BEGIN"),
        ("begin work", begin(None, None), "BEGIN"),
        ("BEGIN DEFERRED", begin(None, None), "BEGIN"),
        ("BEGIN IMMEDIATE TRANSACTION", begin(None, Some(false)), "BEGIN"),
        (
            "START TRANSACTION READ ONLY",
            begin(None, Some(true)),
            "START TRANSACTION",
        ),
        (
            "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE, NOT DEFERRABLE",
            begin(Some(Isolation::Serializable), Some(false)),
            "BEGIN",
        ),
        (
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            begin(Some(Isolation::RepeatableRead), None),
            "BEGIN",
        ),
        ("COMMIT", Kind::Commit { chain: false }, "COMMIT"),
        ("END TRANSACTION AND CHAIN", Kind::Commit { chain: true }, "COMMIT"),
        ("ROLLBACK AND NO CHAIN", Kind::Rollback { chain: false }, "ROLLBACK"),
        ("ABORT", Kind::Rollback { chain: false }, "ROLLBACK"),
        ("SAVEPOINT Sp", Kind::Savepoint("sp".into()), "SAVEPOINT"),
        (
            "ROLLBACK TO SAVEPOINT \"Sp\"",
            Kind::RollbackTo("Sp".into()),
            "ROLLBACK",
        ),
        ("ROLLBACK WORK TO a", Kind::RollbackTo("a".into()), "ROLLBACK"),
        ("RELEASE a", Kind::Release("a".into()), "RELEASE"),
        ("RELEASE SAVEPOINT a", Kind::Release("a".into()), "RELEASE"),
        (
            "SET search_path TO public, \"$user\"",
            set("search_path", Some("public, $user"), false),
            "SET",
        ),
        (
            "SET SESSION statement_timeout = 5000",
            set("statement_timeout", Some("5000"), false),
            "SET",
        ),
        ("SET LOCAL x.y = -1.5", set("x.y", Some("-1.5"), true), "SET"),
        ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"), false), "SET"),
        ("SET TimeZone = DEFAULT", set("timezone", None, false), "SET"),
        ("SET NAMES 'utf8'", set("client_encoding", Some("utf8"), false), "SET"),
        (
            "SET standard_conforming_strings = on",
            set("standard_conforming_strings", Some("on"), false),
            "SET",
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            Kind::SetTransaction {
                isolation: Some(Isolation::ReadCommitted),
                read_only: None,
                session: false,
            },
            "SET",
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            Kind::SetTransaction {
                isolation: None,
                read_only: Some(true),
                session: true,
            },
            "SET",
        ),
        ("RESET ALL", Kind::Reset(ResetTarget::All), "RESET"),
        (
            "RESET Statement_Timeout",
            Kind::Reset(ResetTarget::Name("statement_timeout".into())),
            "RESET",
        ),
        ("SHOW server_version", Kind::Show("server_version".into()), "SHOW"),
        (
            "SHOW TRANSACTION ISOLATION LEVEL",
            Kind::Show("transaction_isolation".into()),
            "SHOW",
        ),
        ("SHOW TIME ZONE", Kind::Show("timezone".into()), "SHOW"),
        ("SHOW ALL", Kind::Show("all".into()), "SHOW"),
        ("DISCARD ALL", Kind::Discard { all: true }, "DISCARD ALL"),
        ("DISCARD PLANS", Kind::Discard { all: false }, "DISCARD PLANS"),
        (
            "DEALLOCATE PREPARE s1",
            Kind::Deallocate(Some("s1".into())),
            "DEALLOCATE",
        ),
        ("DEALLOCATE ALL", Kind::Deallocate(None), "DEALLOCATE ALL"),
    ] {
        let statement = one(script);
        assert_eq!(
            (statement.kind, statement.tag),
            (kind, Tag::Words(tag.into())),
            "{script}"
        );
    }
}

#[test]
fn session_commands_that_make_no_sense_say_where() {
    for (script, position) in [
        ("BEGIN ISOLATION LEVEL SNAPSHOT", 23),
        ("SELECT 1; COMMIT please", 18),
        ("SET x", 0),
        ("SET x TO", 0),
        ("ROLLBACK TO 5", 13),
        ("DISCARD EVERYTHING", 9),
        ("/* ä */ START ENGINE", 15),
        ("SELECT 'open", 8),
        ("SELECT 1 /* open /* */", 10),
        ("SELECT $x$ open", 8),
    ] {
        let error = parse(script).expect_err(script);
        assert_eq!(error.sqlstate(), "42601", "{script}: {error}");
        assert_eq!(error.position().unwrap_or(0), position, "{script}: {error}");
    }
}

#[test]
fn commands_not_offered_are_named() {
    for (script, what) in [
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("EXECUTE p", "EXECUTE"),
        ("DECLARE c CURSOR FOR SELECT 1", "DECLARE"),
        ("FETCH 1 FROM c", "FETCH"),
        ("CLOSE c", "CLOSE"),
        ("LISTEN x", "LISTEN"),
        ("NOTIFY x", "NOTIFY"),
        ("COPY t FROM STDIN", "COPY"),
        ("TRUNCATE t", "TRUNCATE"),
        ("ATTACH 'x.db' AS x", "ATTACH"),
        ("DETACH x", "DETACH"),
        ("CREATE TEMP TABLE t (a)", "CREATE TEMP TABLE"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "CREATE TEMPORARY VIEW"),
        (
            "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END",
            "CREATE TEMP TRIGGER",
        ),
        ("CREATE TABLE IF NOT EXISTS temp.t (a)", "CREATE of a temporary object"),
        ("CREATE VIEW \"Temp\".v AS SELECT 1", "CREATE of a temporary object"),
        ("CREATE ROLE r", "CREATE ROLE"),
        (
            "CREATE OR REPLACE FUNCTION f() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql",
            "CREATE FUNCTION",
        ),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE OR REPLACE VIEW"),
        ("CREATE EXTENSION IF NOT EXISTS x", "CREATE EXTENSION"),
        ("GRANT ALL ON t TO u", "GRANT"),
        ("VACUUM INTO 'elsewhere.db'", "VACUUM INTO"),
        ("DO $$ BEGIN END $$", "DO"),
    ] {
        let statement = one(script);
        assert!(
            matches!(&statement.kind, Kind::Unsupported { what: named, .. } if named == what),
            "{script}: {statement:?}"
        );
    }
}

#[test]
fn catalog_queries_are_told_from_the_clients_own() {
    for script in [
        "SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default",
        "SELECT oid FROM pg_type WHERE typname = $1",
        "SELECT * FROM information_schema.columns WHERE table_name = 'users'",
        "SELECT * FROM INFORMATION_SCHEMA.Tables",
        "SELECT to_regclass('users')",
        "SELECT 'users'::regclass",
        "SELECT 'users'::regclass::oid, version()",
        "SELECT pg_catalog.format_type(23, NULL)",
        "SELECT current_schemas(true)",
        "WITH t AS (SELECT * FROM pg_class) SELECT * FROM t",
        "SELECT relname FROM pg_class WHERE relkind = ANY(ARRAY['r', 'v'])",
        "SELECT a.attname FROM ONLY pg_catalog.pg_attribute a !! nonsense",
    ] {
        let statement = one(script);
        assert_eq!(statement.kind, Kind::Catalog, "{script}");
        assert_eq!(&*statement.sql, script, "the catalog gets what was written");
        assert!(!statement.rewritten);
    }
    for script in [
        "SELECT * FROM users",
        "SELECT version()",
        "SELECT pg_catalog.version()",
        "SELECT 'pg_catalog.pg_class', \"pg_type\" FROM users",
        "SELECT format_type FROM users",
        "SELECT quote(name) FROM pg_notes",
        "INSERT INTO notes SELECT 'pg_class'",
        "SELECT name, oid FROM users",
        "CREATE TABLE pg_type_log (a)",
    ] {
        assert_eq!(one(script).kind, Kind::Sql, "{script}");
    }
    assert!(
        one("SELECT * FROM pg_class").tree().is_some(),
        "the catalog needs the tree"
    );
}

#[test]
fn tags_are_the_words_clients_read() {
    for (script, rendered) in [
        ("SELECT 1", "SELECT 3"),
        ("VALUES (1)", "SELECT 3"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT 3"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "INSERT 0 3"),
        ("with a as (delete from x returning y) update t set a = 1", "UPDATE 3"),
        ("INSERT INTO t VALUES (1)", "INSERT 0 3"),
        ("REPLACE INTO t VALUES (1)", "INSERT 0 3"),
        ("UPDATE OR FAIL t SET a = 1", "UPDATE 3"),
        ("DELETE FROM t", "DELETE 3"),
        ("CREATE TABLE t (a)", "CREATE TABLE"),
        ("CREATE UNIQUE INDEX i ON t (a)", "CREATE INDEX"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", "CREATE TABLE"),
        ("drop view v", "DROP VIEW"),
        ("ALTER TABLE t ADD COLUMN b", "ALTER TABLE"),
        ("VACUUM", "VACUUM"),
        ("ANALYZE", "ANALYZE"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
    ] {
        assert_eq!(one(script).tag.render(3), rendered, "{script}");
    }
}

#[test]
fn what_must_run_alone_says_so() {
    for (script, alone) in [
        ("VACUUM", true),
        ("PRAGMA wal_checkpoint(TRUNCATE)", true),
        ("PRAGMA optimize", true),
        ("PRAGMA user_version = 5", true),
        ("PRAGMA user_version", false),
        ("CREATE TABLE t (a)", false),
        ("SELECT 1", false),
    ] {
        assert_eq!(one(script).runs_alone, alone, "{script}");
    }
}

#[test]
fn statements_may_go_to_any_thread() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<crate::sql::Statement>();
}

#[test]
fn parameters_count_by_the_highest_number() {
    for (script, count) in [
        ("SELECT 1", 0),
        ("SELECT $1", 1),
        ("SELECT $2, $1", 2),
        ("SELECT ?3", 3),
        ("SELECT ?, ?", 2),
        ("SELECT '$9', \"$8\" /* $7 */", 0),
        ("SELECT $$ $5 $$, $1", 1),
        ("SELECT $1::int", 1),
    ] {
        assert_eq!(one(script).parameter_count(), count, "{script}");
    }
    for (script, name, position) in [
        ("SELECT :name", ":name", 8),
        ("SELECT ä, @name", "@name", 11),
        ("SELECT $name", "$name", 8),
        ("SELECT $0", "$0", 8),
        ("SELECT $99999", "$99999", 8),
        ("SELECT $99999999999999999999", "$99999999999999999999", 8),
    ] {
        let error = parse(script).expect_err(script);
        assert_eq!(
            (error.sqlstate(), error.position()),
            ("42P02", Some(position)),
            "{script}"
        );
        assert!(error.to_string().contains(name), "{script}: {error}");
    }
}

#[test]
fn positions_are_characters_of_the_script_and_only_where_it_was_not_rewritten() {
    let script = "SELECT 'ä'; SELECT 'ö', nothing";
    let parsed = parse(script).unwrap();
    assert_eq!(parsed[1].offset, 13);
    let byte = parsed[1].sql.find("nothing").unwrap();
    assert_eq!(parsed[1].position(script, byte), Some(25));
    let rewritten = one("SELECT now(), nothing");
    assert!(rewritten.rewritten);
    assert_eq!(rewritten.position("SELECT now(), nothing", 5), None);
}

#[test]
fn deep_statements_are_errors_and_the_deepest_allowed_are_not() {
    let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
    let subqueries = |depth: usize| format!("{}SELECT 1{}", "SELECT * FROM (".repeat(depth), ")".repeat(depth));
    let chain = |operator: &str, length: usize| format!("SELECT 1{}", format!(" {operator} 1").repeat(length));
    let deep = [
        nested(10_000),
        nested(1_000_000),
        subqueries(10_000),
        chain("+", 1_000_000),
        chain("OR", 100_000),
        format!("SELECT {}1", "NOT ".repeat(100_000)),
        format!("SELECT {}1", "- ".repeat(100_000)),
        format!("SELECT 1{}", "::int".repeat(100_000)),
        format!("SELECT {}", "CASE WHEN 1 THEN ".repeat(100_000)),
        format!("SELECT CAST(1 AS {}int", "ARRAY<".repeat(100_000)),
        format!("SELECT 1{}", " UNION SELECT 1, 2".repeat(100_000)),
        format!("SELECT 1{}", " COLLATE nocase".repeat(100_000)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(100_000)),
        format!("SELECT * FROM pg_class WHERE oid = {}1", "(".repeat(100_000)),
    ];
    for script in &deep {
        let error = parse(script).expect_err(&script[..40]);
        assert!(
            matches!(error, SqlError::TooComplex { .. }),
            "{}: {error}",
            &script[..40]
        );
        assert_eq!(error.sqlstate(), "54001");
    }
    // On a thread with as little stack as any that runs statements; nothing may need more.
    let allowed = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        for script in [
            nested(200),
            subqueries(60),
            chain("+", 900),
            chain("OR", 900),
            format!("SELECT {}1", "NOT ".repeat(200)),
            format!("{} FETCH FIRST 1 ROWS ONLY", chain("+", 2_400)),
            format!("SELECT 1{} OFFSET 1", " UNION SELECT 1".repeat(400)),
        ] {
            let statement = one(&script);
            let connection = super::database();
            match crate::sql::describe(&connection, &statement, &[]) {
                Ok(_) => {}
                Err(error) => assert!(error.to_string().contains("maximum depth"), "{error}"),
            }
            drop(statement);
        }
    });
    allowed.unwrap().join().unwrap();
}

#[test]
fn hostile_scripts_take_no_more_than_linear_time() {
    for script in [
        "(".repeat(200_000),
        "[".repeat(200_000),
        "$a".repeat(200_000),
        "/*".repeat(200_000),
        "'".repeat(200_001),
        format!("CREATE TRIGGER t BEGIN {}", "x;".repeat(100_000)),
        format!("CREATE TRIGGER {} BEGIN {}", "x ".repeat(100_000), ";".repeat(100_000)),
        "SELECT 1;".repeat(20_000),
        format!("INSERT INTO t VALUES {}", "(1),".repeat(50_000)),
        ";".repeat(2_000_000),
    ] {
        let started = std::time::Instant::now();
        let _ = parse(&script);
        // Quadratic time would take minutes.
        assert!(
            started.elapsed() < std::time::Duration::from_secs(30),
            "{}",
            &script[..20]
        );
    }
}

/// Pieces of which statements are made, so that arbitrary texts reach deeper than the first word.
const PIECES: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT INTO",
    "VALUES",
    "t",
    "a",
    "*",
    ",",
    "(",
    ")",
    "'x'",
    "E'\\n'",
    "$$y$$",
    "$1",
    "?",
    "::int",
    "::",
    "now()",
    "=",
    "IS NOT",
    "ILIKE",
    "||",
    "->",
    "1",
    "1.5",
    "0x1F",
    "x'00'",
    ";",
    "--c\n",
    "/* batch:1 */",
    "/* /* */ */",
    "BEGIN",
    "COMMIT",
    "SET",
    "CREATE TABLE",
    "CREATE TRIGGER",
    "END",
    "serial PRIMARY KEY",
    "DEFAULT",
    "public.",
    "LIMIT ALL",
    "OFFSET",
    "FETCH FIRST 1 ROWS ONLY",
    "RETURNING",
    "ON CONFLICT",
    "WITH",
    "AS",
    "CASE",
    "WHEN",
    "THEN",
    "pg_class",
    "::regclass",
    "PRAGMA",
    "table_info",
    "\"q\"",
    "[b]",
    "`c`",
    "NOT",
    "NULL",
    "CAST(",
    "AS date)",
    "BETWEEN",
    "AND",
    "IN",
    "UNION",
    "ä",
    "\u{1F600}",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_pieces_make_it_panic_and_describing_neither(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14)) {
        let script = pieces.join(" ");
        if let Ok(statements) = parse(&script) {
            let connection = super::database();
            connection.execute_batch("CREATE TABLE t (a INT, b TEXT)").unwrap();
            for statement in &statements {
                prop_assert!(statement.rewritten || script[statement.offset..].starts_with(&*statement.sql));
                let _ = crate::sql::describe(&connection, statement, &[]);
            }
        }
    }

    #[test]
    fn tokens_are_in_order_with_nothing_but_white_space_between(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..20)) {
        let script = pieces.concat();
        if let Ok(tokens) = crate::sql::lexer::tokens(&script, 1_000) {
            let mut done = 0;
            for token in &tokens {
                prop_assert!(script[done..token.range.start].trim().is_empty());
                prop_assert!(!token.range.is_empty());
                done = token.range.end;
            }
            prop_assert!(script[done..].trim().is_empty());
        }
    }

    #[test]
    fn hints_never_come_from_literals(before in "[a-z ]{0,8}", tag in "[a-z]{0,3}") {
        let hint = format!("{before} /* batch:5 */ -- batch:6 ");
        for literal in [format!("'{hint}'"), format!("\"{hint}\""), format!("[{hint}]"), format!("`{hint}`"),
            format!("E'\\'{hint}'"), format!("${tag}${hint}${tag}$")] {
            let script = format!("SELECT {literal}, 'it''s' /* batch:7 */");
            prop_assert_eq!(one(&script).hints.batch_ms, Some(7));
            prop_assert_eq!(one(&format!("SELECT {literal}")).hints.batch_ms, None);
        }
    }

    #[test]
    fn strings_mean_the_same_however_they_are_quoted(value in "\\PC{0,20}") {
        let connection = super::database();
        let escaped = value.replace('\\', "\\\\").replace('\'', "\\'");
        prop_assert_eq!(super::value(&connection, &format!("SELECT E'{escaped}'")), super::text(&value));
        if !value.contains('$') {
            prop_assert_eq!(super::value(&connection, &format!("SELECT $q${value}$q$")), super::text(&value));
        }
        // A literal in a statement that is written out again.
        let quoted = value.replace('\'', "''");
        prop_assert_eq!(super::value(&connection, &format!("SELECT '{quoted}' OFFSET 0 ROWS")), super::text(&value));
        prop_assert_eq!(super::value(&connection, &format!("SELECT '{quoted}'::text")), super::text(&value));
    }
}
