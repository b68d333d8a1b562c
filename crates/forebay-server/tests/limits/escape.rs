//! SQL that reaches beyond the database: files, settings of connections that all share, the schema's own tables.

use rusqlite::Connection;
use testbed::{Folder, Forebay};

use crate::client::Client;
use crate::server;

#[test]
fn nothing_reaches_the_file_system() {
    let server = server(&[]);
    let folder = Folder::new("escape", None).unwrap();
    let target = folder.file("target");
    let path = target.to_str().unwrap();
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    for sql in [
        format!("ATTACH '{path}' AS x"),
        format!("ATTACH DATABASE '{path}' AS x"),
        format!("/* */ aTtAcH '{path}' AS x"),
        format!("VACUUM INTO '{path}'"),
        format!("vacuum main into '{path}'"),
        format!("VACUUM/**/main/**/INTO/**/'{path}'"),
        format!("VACUUM -- \n INTO ('{path}')"),
        "DETACH main".to_owned(),
        format!("SELECT load_extension('{path}')"),
        format!("SELECT LOAD_EXTENSION('{path}', 'x')"),
        format!("SELECT readfile('{path}')"),
        "SELECT readfile('/etc/passwd')".to_owned(),
        format!("SELECT writefile('{path}', 'x')"),
        "SELECT edit('x')".to_owned(),
        "SELECT fts3_tokenizer('simple', x'0000000000000000')".to_owned(),
        "SELECT * FROM fsdir('/')".to_owned(),
        "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')".to_owned(),
        "CREATE VIRTUAL TABLE v USING zipfile('/etc/passwd')".to_owned(),
        format!("PRAGMA temp_store_directory = '{path}'"),
        format!("PRAGMA data_store_directory = '{path}'"),
        "PRAGMA writable_schema = ON".to_owned(),
        "PRAGMA main.writable_schema(1)".to_owned(),
        "PRAGMA journal_mode = DELETE".to_owned(),
        "PRAGMA locking_mode = EXCLUSIVE".to_owned(),
        "PRAGMA query_only = 1".to_owned(),
        "PRAGMA synchronous = OFF".to_owned(),
        "PRAGMA foreign_keys = OFF".to_owned(),
        "PRAGMA max_page_count = 1".to_owned(),
        "PRAGMA hard_heap_limit = 1".to_owned(),
        "PRAGMA trusted_schema = 1".to_owned(),
        "PRAGMA cell_size_check = 1".to_owned(),
        "PRAGMA mmap_size = 1000000000".to_owned(),
        "PRAGMA cache_size = 1".to_owned(),
        "CREATE TEMP TABLE x (a INTEGER)".to_owned(),
        "UPDATE sqlite_schema SET sql = 'CREATE TABLE t (b)'".to_owned(),
        "DELETE FROM sqlite_master".to_owned(),
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 3, 'CREATE TABLE x (a)')".to_owned(),
        "CREATE TABLE sqlite_x (a INTEGER)".to_owned(),
        "SELECT last_insert_rowid()".to_owned(),
        format!("COPY t TO '{path}'"),
        format!("COPY t FROM PROGRAM 'touch {path}'"),
    ] {
        for answer in [client.query(&sql), client.pipeline(&[crate::client::whole(&sql, &[])])] {
            let state = answer.sqlstate();
            assert!(
                state.starts_with("42") || state.starts_with("0A") || state.starts_with("25"),
                "{sql}: {state}"
            );
        }
        assert!(!target.exists(), "{sql}");
        assert_eq!(client.query("ROLLBACK").status, 'I');
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    // The settings of all connections are as they were.
    assert_eq!(client.ask("PRAGMA synchronous"), "2");
    assert_eq!(client.ask("PRAGMA journal_mode"), "wal");
    assert_eq!(client.ask("PRAGMA foreign_keys"), "1");
}

#[test]
fn what_is_refused_is_refused_inside_definitions() {
    let server = server(&[]);
    let folder = Folder::new("escape", None).unwrap();
    let target = folder.file("target");
    let path = target.to_str().unwrap();
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a TEXT)");
    let load = format!("load_extension('{path}')");
    for sql in [
        format!("CREATE VIEW v AS SELECT {load} AS a"),
        format!("CREATE TABLE v (a TEXT DEFAULT ({load}))"),
        format!("CREATE TABLE v (a TEXT CHECK ({load} IS NULL))"),
        format!("CREATE TABLE v (a TEXT, b TEXT GENERATED ALWAYS AS ({load}) STORED)"),
        format!("CREATE TABLE v AS SELECT {load} AS a"),
        format!("CREATE INDEX v ON t (({load}))"),
        format!("CREATE INDEX v ON t (a) WHERE {load} IS NULL"),
        format!("CREATE TRIGGER v AFTER INSERT ON t BEGIN SELECT {load}; END"),
        "CREATE TRIGGER v AFTER INSERT ON t BEGIN UPDATE sqlite_schema SET sql = ''; END".to_owned(),
        "CREATE TRIGGER v AFTER INSERT ON t BEGIN DELETE FROM t; END".to_owned(),
        "CREATE TRIGGER v AFTER INSERT ON t EXECUTE FUNCTION f()".to_owned(),
        "CREATE RULE v AS ON INSERT TO t DO ALSO DELETE FROM t".to_owned(),
        "CREATE FUNCTION v() RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
        "CREATE VIRTUAL TABLE v USING fts5 (a)".to_owned(),
        "CREATE VIEW v AS SELECT sql AS a FROM sqlite_schema".to_owned(),
    ] {
        for answer in [client.query(&sql), client.pipeline(&[crate::client::whole(&sql, &[])])] {
            let state = answer.sqlstate();
            assert!(state.starts_with("42") || state == "0A000", "{sql}: {state}");
        }
        assert_eq!(
            client.ask("SELECT count(*) FROM pg_class WHERE relname = 'v'"),
            "0",
            "{sql}"
        );
    }
    client.run("INSERT INTO t VALUES ('x')");
    assert_eq!(client.ask("SELECT a FROM t"), "x");
    assert_eq!(client.ask("PRAGMA integrity_check"), "ok");
}

#[test]
fn texts_in_definitions_stay_texts() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (number, text) in [
        "*/ SELECT load_extension('x'); --",
        " :forebay */ x",
        "*\u{200b}/ */",
        "/* forebay: {} :forebay */",
        "\"",
    ]
    .into_iter()
    .enumerate()
    {
        let name: String = text.replace('"', "\"\"").chars().take(20).collect();
        client.run(&format!(
            "CREATE VIEW \"v{name}\" AS SELECT '{0}'::text AS \"c{name}\"",
            text.replace('\'', "''")
        ));
        assert_eq!(client.ask(&format!("SELECT \"c{name}\" FROM \"v{name}\"")), text);
        client.run(&format!(
            "CREATE TABLE \"t{name}\" (\"c{name}\" text DEFAULT '{0}' CONSTRAINT \"k{name}\" CHECK (\"c{name}\" = '{0}'), n int DEFAULT {number})",
            text.replace('\'', "''")
        ));
        let answer = client.run(&format!("INSERT INTO \"t{name}\" DEFAULT VALUES RETURNING *"));
        assert_eq!(answer.rows(), [[Some(text.to_owned()), Some(number.to_string())]]);
    }
    // Names that look like the definitions that stand in the file.
    for name in [
        "/* forebay: {\"\"columns\"\":[]} :forebay */",
        "/* forebay view: SELECT 1 AS x :forebay */",
    ] {
        client.run(&format!("CREATE TABLE \"{name}\" (a int, b text)"));
        let answer = client.run(&format!("INSERT INTO \"{name}\" VALUES (1, 'x') RETURNING *"));
        assert_eq!(answer.rows(), [[Some("1".to_owned()), Some("x".to_owned())]]);
        client.run(&format!(
            "CREATE VIEW \"{name} v\" AS SELECT 'x'::text AS \"{name}\", 'y'::text AS b"
        ));
        assert_eq!(client.ask(&format!("SELECT b FROM \"{name} v\"")), "y");
    }
}

/// A database that something else has made, with these definitions in it.
fn brought_along(folder: &Folder, sql: &str) -> std::path::PathBuf {
    let file = folder.file("brought.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(sql).unwrap();
    file
}

#[test]
fn what_is_refused_is_refused_inside_what_a_file_brings_along() {
    let folder = Folder::new("escape", None).unwrap();
    let target = folder.file("target");
    let path = target.to_str().unwrap();
    let file = brought_along(
        &folder,
        &format!(
            "CREATE TABLE t (a TEXT);
             CREATE TABLE s (a TEXT);
             CREATE TABLE d (a TEXT DEFAULT (load_extension('{path}')), b INTEGER);
             CREATE TABLE u (a INTEGER PRIMARY KEY, b TEXT);
             CREATE VIEW v AS SELECT load_extension('{path}') AS a;
             CREATE TRIGGER t_insert AFTER INSERT ON t BEGIN UPDATE sqlite_schema SET sql = ''; END;
             CREATE TRIGGER s_insert AFTER INSERT ON s BEGIN SELECT load_extension('{path}'); END;
             CREATE TRIGGER u_insert AFTER INSERT ON u BEGIN UPDATE u SET b = upper(b) WHERE a = new.a; END;"
        ),
    );
    let server = Forebay::builder(crate::PROGRAM).database(&file).start().unwrap();
    let mut client = Client::connect(server.address());
    for sql in [
        "INSERT INTO t VALUES ('x')",
        "INSERT INTO s VALUES ('x')",
        "INSERT INTO d DEFAULT VALUES",
        "INSERT INTO d (b) VALUES (1)",
        "SELECT a FROM v",
    ] {
        assert!(client.query(sql).error().is_some(), "{sql}");
        assert!(!target.exists(), "{sql}");
    }
    for table in ["t", "s", "d"] {
        assert_eq!(client.ask(&format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    // What harms nobody is carried out.
    client.run("INSERT INTO u VALUES (1, 'x')");
    assert_eq!(client.ask("SELECT b FROM u"), "X");
}

#[test]
fn tables_behind_virtual_tables_cannot_be_forged() {
    let folder = Folder::new("escape", None).unwrap();
    let file = brought_along(
        &folder,
        "CREATE VIRTUAL TABLE f USING fts5 (a);
         INSERT INTO f VALUES ('some words');
         CREATE VIRTUAL TABLE r USING rtree (id, x0, x1);
         INSERT INTO r VALUES (1, 0, 1);",
    );
    let mut server = Forebay::builder(crate::PROGRAM).database(&file).start().unwrap();
    let mut client = Client::connect(server.address());
    for sql in [
        r"UPDATE f_data SET block = '\xffffffffffffffffffffffff'",
        "DELETE FROM f_data",
        "DROP TABLE f_data",
        r"UPDATE r_node SET data = '\xffff'",
        r"INSERT INTO r_node VALUES (99, '\x00')",
        "DELETE FROM r_rowid",
    ] {
        assert!(client.query(sql).error().is_some(), "{sql}");
    }
    assert_eq!(client.ask("SELECT count(*) FROM r WHERE x0 < 5"), "1");
    drop(client);
    server.terminate().unwrap();
    let connection = Connection::open(&file).unwrap();
    for sql in [
        "SELECT count(*) FROM f WHERE f MATCH 'words'",
        "SELECT count(*) FROM r WHERE x0 < 5",
    ] {
        let count: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1, "{sql}");
    }
}

#[test]
fn names_are_no_sql() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    for name in [
        "\"x\"\"; DROP TABLE t; --\"",
        "\"a b\"",
        "\"'; COMMIT; --\"",
        "\"ü\"",
        "\"SELECT\"",
    ] {
        client.run("BEGIN; INSERT INTO t VALUES (1)");
        client.run(&format!("SAVEPOINT {name}"));
        client.run("INSERT INTO t VALUES (2)");
        client.run(&format!("ROLLBACK TO SAVEPOINT {name}"));
        client.run(&format!("RELEASE SAVEPOINT {name}"));
        client.run("ROLLBACK");
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    // Values of settings and names of users come back as they are, as text.
    let evil = "'; DROP TABLE t; --";
    let mut client = Client::connect_with(
        server.address(),
        &[("user", evil), ("database", evil), ("application_name", evil)],
    )
    .unwrap();
    assert_eq!(client.ask("SELECT current_user"), evil);
    assert_eq!(client.ask("SELECT current_database()"), evil);
    assert_eq!(client.ask("SELECT current_setting('application_name')"), evil);
    assert_eq!(client.ask("SHOW application_name"), evil);
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn tables_of_a_file_that_refer_to_one_another_are_changed() {
    let folder = Folder::new("referring", None).unwrap();
    let file = brought_along(
        &folder,
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, n INTEGER);
         CREATE TABLE child (p INTEGER REFERENCES parent ON UPDATE CASCADE);
         INSERT INTO parent VALUES (1, 1);
         INSERT INTO child VALUES (1);",
    );
    let server = Forebay::builder(crate::PROGRAM).database(&file).start().unwrap();
    let mut client = Client::connect(server.address());
    assert_eq!(client.query("UPDATE parent SET n = 2").tags(), ["UPDATE 1"]);
    assert_eq!(client.query("UPDATE parent SET id = 5").tags(), ["UPDATE 1"]);
    assert_eq!(client.ask("SELECT p FROM child"), "5");
}
