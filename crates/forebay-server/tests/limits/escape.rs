//! SQL that reaches beyond the database: files, settings of connections that all share, the schema's own tables.

use std::path::Path;

use testbed::Folder;

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
        "COPY t TO '/tmp/x'".to_owned(),
        "COPY t FROM PROGRAM 'touch /tmp/x'".to_owned(),
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
    assert!(!Path::new("/tmp/x").exists());
}

#[test]
fn what_is_refused_is_refused_inside_views_and_triggers() {
    let server = server(&[]);
    let folder = Folder::new("escape", None).unwrap();
    let target = folder.file("target");
    let path = target.to_str().unwrap();
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a TEXT)");
    for (make, touch) in [
        (
            format!("CREATE VIEW v AS SELECT load_extension('{path}') AS a"),
            "SELECT a FROM v",
        ),
        (
            format!("CREATE TRIGGER v AFTER INSERT ON t BEGIN SELECT load_extension('{path}'); END"),
            "INSERT INTO t VALUES ('x')",
        ),
        (
            format!("CREATE TABLE v (a TEXT DEFAULT (load_extension('{path}')))"),
            "INSERT INTO v DEFAULT VALUES",
        ),
        (
            "CREATE TRIGGER v AFTER INSERT ON t BEGIN UPDATE sqlite_schema SET sql = ''; END".to_owned(),
            "INSERT INTO t VALUES ('x')",
        ),
    ] {
        let made = client.query(&make);
        let touched = client.query(touch);
        assert!(made.error().is_some() || touched.error().is_some(), "{make}");
        for kind in ["TRIGGER", "VIEW", "TABLE"] {
            client.query(&format!("DROP {kind} v"));
        }
    }
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0");
    assert_eq!(client.ask("PRAGMA integrity_check"), "ok");
}

#[test]
fn tables_behind_virtual_tables_cannot_be_forged() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    client.run("CREATE VIRTUAL TABLE f USING fts5 (a)");
    client.run("INSERT INTO f VALUES ('some words')");
    client.run("CREATE VIRTUAL TABLE r USING rtree (id, x0, x1)");
    client.run("INSERT INTO r VALUES (1, 0, 1)");
    for sql in [
        "UPDATE f_data SET block = x'ffffffffffffffffffffffff'",
        "DELETE FROM f_data",
        "DROP TABLE f_data",
        "UPDATE r_node SET data = x'ffff'",
        "INSERT INTO r_node VALUES (99, x'00')",
        "DELETE FROM r_rowid",
    ] {
        assert!(client.query(sql).error().is_some(), "{sql}");
    }
    assert_eq!(client.ask("SELECT count(*) FROM f WHERE f MATCH 'words'"), "1");
    assert_eq!(client.ask("SELECT count(*) FROM r WHERE x0 < 5"), "1");
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
