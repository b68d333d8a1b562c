//! What is shown, and all that is not.

use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn parameters(numbers: &[usize]) -> Vec<Cell> {
    numbers.iter().map(|number| Cell::Parameter(*number)).collect()
}

#[track_caller]
fn shown(dialect: Dialect, sql: &str) -> Insert {
    insert(dialect, sql).unwrap_or_else(|| panic!("not shown: {sql}"))
}

#[track_caller]
fn not_shown(dialect: Dialect, sql: &str) {
    if let Some(insert) = insert(dialect, sql) {
        panic!("shown: {sql}: {insert:?}");
    }
}

#[test]
fn an_insert_of_one_row_is_shown_on_postgres() {
    let sql = "INSERT INTO t (a, b) VALUES ($1, $2)";
    assert_eq!(
        shown(Dialect::Postgres, sql),
        Insert {
            table: "t".to_owned(),
            columns: texts(&["a", "b"]),
            cells: parameters(&[0, 1]),
            parameters: 2,
            returning: None,
        }
    );
    for same in [
        "insert into t(a,b)values($1,$2)",
        "INSERT INTO t (a, b) VALUES ($1, $2);",
        "-- why\nINSERT INTO t (a, /* it's */ b) VALUES ($1, $2) ; ",
    ] {
        assert_eq!(shown(Dialect::Postgres, same), shown(Dialect::Postgres, sql), "{same}");
    }
    assert_eq!(
        shown(
            Dialect::Postgres,
            "INSERT INTO \"S\".\"t\"\"x\" (a, \"A b\", größe, d, e, f, g, h, i) VALUES \
             ($2, DEFAULT, $1, 'it''s', NULL, TRUE, -1.5e-3, 42, '; COMMIT -- $3') RETURNING id, t.\"A b\" AS z, *, a + 1, b::text"
        ),
        Insert {
            table: "\"S\".\"t\"\"x\"".to_owned(),
            columns: texts(&["a", "\"A b\"", "größe", "d", "e", "f", "g", "h", "i"]),
            cells: vec![
                Cell::Parameter(1),
                Cell::Default,
                Cell::Parameter(0),
                Cell::Constant("'it''s'".to_owned()),
                Cell::Constant("NULL".to_owned()),
                Cell::Constant("true".to_owned()),
                Cell::Constant("-1.5e-3".to_owned()),
                Cell::Constant("42".to_owned()),
                Cell::Constant("'; COMMIT -- $3'".to_owned()),
            ],
            parameters: 2,
            returning: Some(texts(&["id", "t.\"A b\" AS z", "*", "a + 1", "b::TEXT"])),
        }
    );
    assert_eq!(shown(Dialect::Postgres, "INSERT INTO t (a) VALUES (1)").parameters, 0);
}

#[test]
fn anything_else_is_not_shown_on_postgres() {
    for sql in [
        "",
        "SELECT 1",
        "INSERT INTO t VALUES ($1)",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t () VALUES ()",
        "INSERT INTO t (a) VALUES ($1), ($2)",
        "INSERT INTO t (a) VALUES ($1); COMMIT",
        "INSERT INTO t (a, b) VALUES ($1)",
        "INSERT INTO t (a) VALUES ($1, $2)",
        "INSERT INTO t (a, a) VALUES ($1, $2)",
        "INSERT INTO t (a, \"a\") VALUES ($1, $2)",
        "INSERT INTO t (a, A) VALUES ($1, $2)",
        "INSERT INTO t (a, b) VALUES ($1, $1)",
        "INSERT INTO t (a, b) VALUES ($1, $3)",
        "INSERT INTO t (a) VALUES ($2)",
        "INSERT INTO t (a) VALUES ($0)",
        "INSERT INTO t (a) VALUES ($01)",
        "INSERT INTO t (a) VALUES ($99999999999999999999)",
        "INSERT INTO t (a) VALUES (?)",
        "INSERT INTO t (a) VALUES (?1)",
        "INSERT INTO t (a) VALUES (:a)",
        "INSERT INTO t (a) VALUES (@a)",
        "INSERT INTO t (a) VALUES (now())",
        "INSERT INTO t (a) VALUES ($1::int)",
        "INSERT INTO t (a) VALUES (CAST($1 AS int))",
        "INSERT INTO t (a) VALUES ($1 + 1)",
        "INSERT INTO t (a) VALUES (($1))",
        "INSERT INTO t (a) VALUES (+1)",
        "INSERT INTO t (a) VALUES (- -1)",
        "INSERT INTO t (a) VALUES (-'1')",
        "INSERT INTO t (a) VALUES (-$1)",
        "INSERT INTO t (a) VALUES (\"default\")",
        "INSERT INTO t (a) VALUES (current_user)",
        "INSERT INTO t (a) VALUES (b)",
        "INSERT INTO t (a) VALUES (ARRAY[1])",
        "INSERT INTO t (a) VALUES (DATE '2020-01-01')",
        "INSERT INTO t (a) VALUES ((SELECT 1))",
        "INSERT INTO t (a) VALUES (ROW(1))",
        "INSERT INTO t (a) VALUES ROW(1)",
        "INSERT INTO t (a) VALUE ($1)",
        r"INSERT INTO t (a) VALUES ('a\b')",
        r"INSERT INTO t (a) VALUES (E'a\nb')",
        "INSERT INTO t (a) VALUES (E'a')",
        "INSERT INTO t (a) VALUES ($$a$$)",
        "INSERT INTO t (a) VALUES (X'41')",
        "INSERT INTO t (a) VALUES (B'01')",
        "INSERT INTO t (a) VALUES (U&'a')",
        "INSERT INTO t (a) VALUES (0x1F)",
        "INSERT INTO t (a) VALUES (1L)",
        "INSERT INTO t (a) VALUES (1_000)",
        "INSERT INTO t (a) VALUES ('a' COLLATE \"C\")",
        "INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING",
        "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = 1",
        "INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES ($1)",
        "INSERT INTO t (a) OVERRIDING USER VALUE VALUES ($1)",
        "INSERT INTO t AS u (a) VALUES ($1)",
        "INSERT INTO t u (a) VALUES ($1)",
        "INSERT INTO local t (a) VALUES ($1)",
        "INSERT INTO TABLE t (a) VALUES ($1)",
        "INSERT t (a) VALUES ($1)",
        "INSERT OR REPLACE INTO t (a) VALUES ($1)",
        "REPLACE INTO t (a) VALUES ($1)",
        "INSERT OVERWRITE t (a) VALUES ($1)",
        "INSERT INTO t (a.b) VALUES ($1)",
        "INSERT INTO t (a[1]) VALUES ($1)",
        "INSERT INTO t (a) SELECT $1",
        "INSERT INTO t (a) TABLE u",
        "INSERT INTO t (a) (VALUES ($1))",
        "INSERT INTO t (a) VALUES ($1) UNION VALUES (1)",
        "INSERT INTO t (a) VALUES ($1) ORDER BY 1",
        "INSERT INTO t (a) VALUES ($1) LIMIT 1",
        "INSERT INTO t (a) VALUES ($1) OFFSET 1",
        "INSERT INTO t (a) WITH x AS (SELECT 1) VALUES ($1)",
        "WITH x AS (SELECT 1) INSERT INTO t (a) VALUES ($1)",
        "EXPLAIN INSERT INTO t (a) VALUES ($1)",
        "/*+ hint */ INSERT INTO t (a) VALUES ($1)",
        "INSERT INTO t (a) VALUES ($1) RETURNING (SELECT count(*) FROM t)",
        "INSERT INTO t (a) VALUES ($1) RETURNING count_rows(a)",
        "INSERT INTO t (a) VALUES ($1) RETURNING EXISTS (SELECT 1)",
        "INSERT INTO t (a) VALUES ($1) RETURNING a + $2",
        "INSERT INTO t (a) VALUES ($1) RETURNING a b",
        "INSERT INTO t (a) VALUES ($1) RETURNING",
        "INSERT INTO t (a) VALUES ($1",
        "INSERT INTO t (a) VALUES ('$1)",
        "INSERT INTO t (a) VALUES ($1)\u{a0}",
        "INSERT INTO \"t (a) VALUES ($1)",
    ] {
        not_shown(Dialect::Postgres, sql);
    }
}

#[test]
fn long_texts_are_not_parsed() {
    let columns: Vec<String> = (0..1000).map(|n| format!("c{n}")).collect();
    let cells: Vec<String> = (1..=1000).map(|n| format!("${n}")).collect();
    let wide = format!("INSERT INTO t ({}) VALUES ({})", columns.join(","), cells.join(","));
    assert_eq!(shown(Dialect::Postgres, &wide).parameters, 1000);
    let chain = format!("INSERT INTO t (a) VALUES ($1) RETURNING a{}", "+1".repeat(2000));
    assert!(insert(Dialect::Postgres, &chain).is_some());
    let longer = format!("INSERT INTO t (a) VALUES ($1) RETURNING a{}", "+1".repeat(1_000_000));
    not_shown(Dialect::Postgres, &longer);
    let deep = format!("INSERT INTO t (a) VALUES ($1) RETURNING {}a", "(".repeat(1000));
    not_shown(Dialect::Postgres, &deep);
}

#[test]
fn an_insert_of_one_row_is_shown_on_mysql() {
    assert_eq!(
        shown(
            Dialect::MySql,
            "insert into `d`.`t``x` (a, `b c`, größe, e, f) values (?, default, ?, 'it''s', -1) returning id, *;"
        ),
        Insert {
            table: "`d`.`t``x`".to_owned(),
            columns: texts(&["a", "`b c`", "größe", "e", "f"]),
            cells: vec![
                Cell::Parameter(0),
                Cell::Default,
                Cell::Parameter(1),
                Cell::Constant("'it''s'".to_owned()),
                Cell::Constant("-1".to_owned()),
            ],
            parameters: 2,
            returning: Some(texts(&["id", "*"])),
        }
    );
    shown(Dialect::MySql, "INSERT INTO t (a) # why\nVALUES (?) -- it's");
}

#[test]
fn anything_else_is_not_shown_on_mysql() {
    for sql in [
        "INSERT INTO t (a) VALUES (?1)",
        "INSERT INTO t (a) VALUES ($1)",
        "INSERT INTO t (a) VALUES (:a)",
        "INSERT INTO t (a) VALUES (@a)",
        "INSERT INTO t (a) VALUES (?), (?)",
        "INSERT INTO t VALUES (?)",
        "INSERT INTO t (a) VALUE (?)",
        "INSERT INTO t (a, a) VALUES (?, ?)",
        "INSERT INTO t (a, `A`) VALUES (?, ?)",
        "INSERT INTO t (t.a) VALUES (?)",
        "INSERT t (a) VALUES (?)",
        "INSERT IGNORE INTO t (a) VALUES (?)",
        "INSERT /*! IGNORE */ INTO t (a) VALUES (?)",
        "INSERT /*!40000 IGNORE */ INTO t (a) VALUES (?)",
        "INSERT /*M! IGNORE */ INTO t (a) VALUES (?)",
        "INSERT /*+ NO_ICP(t) */ INTO t (a) VALUES (?)",
        "INSERT LOW_PRIORITY INTO t (a) VALUES (?)",
        "INSERT DELAYED INTO t (a) VALUES (?)",
        "INSERT HIGH_PRIORITY INTO t (a) VALUES (?)",
        "REPLACE INTO t (a) VALUES (?)",
        "INSERT INTO t SET a = ?",
        "INSERT INTO t PARTITION (p) (a) VALUES (?)",
        "INSERT INTO t (a) PARTITION (p) VALUES (?)",
        "INSERT INTO t (a) VALUES (?) AS new",
        "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 1",
        "INSERT INTO t (a) SELECT ?",
        "INSERT INTO t (a) VALUES (\"text\")",
        "INSERT INTO t (a) VALUES (1) RETURNING \"a\"",
        r"INSERT INTO t (a) VALUES ('\'')",
        r"INSERT INTO t (a) VALUES ('\\')",
        r"INSERT INTO `t\` (a) VALUES (?)",
        "INSERT INTO t (a) VALUES ('a' 'b')",
        "INSERT INTO t (a) VALUES (_utf8mb4'a')",
        "INSERT INTO t (a) VALUES (N'a')",
        "INSERT INTO t (a) VALUES (x'41')",
        "INSERT INTO t (a) VALUES (0x41)",
        "INSERT INTO t (a) VALUES (b'1')",
        "INSERT INTO t (a) VALUES (DEFAULT(a))",
        "INSERT INTO t (a) VALUES (now())",
        "INSERT INTO t (a) VALUES (- ?)",
        "INSERT INTO t (a) VALUES (?) RETURNING ?",
        "INSERT INTO t (a) VALUES (?) RETURNING (SELECT 1)",
        "INSERT INTO t (a) VALUES (?) RETURNING @x := a",
        "INSERT INTO t (a) VALUES (?) RETURNING @x",
        "INSERT INTO t (a) VALUES (1--1)",
    ] {
        not_shown(Dialect::MySql, sql);
    }
}
