//! What keeps the program from starting: one line that says so, exit status 1.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use testbed::{Folder, Forebay, Program};

use crate::PROGRAM;

/// Its one line.
fn refusal(arguments: &[&str]) -> String {
    let mut process = Program::new(PROGRAM, arguments).start().unwrap();
    let status = process
        .wait(Duration::from_secs(20))
        .unwrap()
        .expect("it ends by itself");
    let output = process.output();
    assert_eq!(status.code(), Some(1), "{output}");
    assert_eq!(output.trim_end().lines().count(), 1, "one line: {output}");
    assert!(output.starts_with("forebay: "), "{output}");
    output
}

fn refusal_of_database(path: &Path) -> String {
    let path = path.to_str().unwrap();
    let output = refusal(&["serve", "--database", path, "--listen", "127.0.0.1:0", "--http", "off"]);
    assert!(output.contains(path), "names the file: {output}");
    output
}

#[test]
fn a_file_that_cannot_be_a_database_is_named() {
    let folder = Folder::new("start", None).unwrap();
    let text = folder.file("text.db");
    std::fs::write(
        &text,
        "this is no database, and long enough to be looked at: ".repeat(100),
    )
    .unwrap();
    assert!(refusal_of_database(&text).contains("not a database"));
    assert_eq!(std::fs::read(&text).unwrap().len(), 5400, "left as it was");
    let directory = folder.file("directory.db");
    std::fs::create_dir(&directory).unwrap();
    refusal_of_database(&directory);
    refusal_of_database(&folder.file("missing/folder/x.db"));
    // A database with a torn end, or a torn header.
    let torn = folder.file("torn.db");
    std::fs::write(&torn, b"SQLite format 3\0torn").unwrap();
    refusal_of_database(&torn);
}

#[test]
fn an_address_that_is_taken_or_open_to_all_is_named() {
    let folder = Folder::new("start", None).unwrap();
    let database = folder.file("x.db");
    let database = database.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (listen, http) in [(address.as_str(), "off"), ("127.0.0.1:0", address.as_str())] {
        let line = refusal(&["serve", "--database", database, "--listen", listen, "--http", http]);
        assert!(line.contains(&address), "{line}");
        assert!(!Path::new(database).exists(), "no file is left behind");
    }
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let line = refusal(&["serve", "--database", database, "--listen", listen, "--http", "off"]);
        assert!(line.contains("forebay user add"), "says what to do: {line}");
    }
    let line = refusal(&[
        "serve",
        "--database",
        database,
        "--listen",
        "127.0.0.1:0",
        "--http",
        "0.0.0.0:0",
    ]);
    assert!(line.contains("http"), "{line}");
}

#[test]
fn a_database_that_another_server_has_is_named() {
    let folder = Folder::new("start", None).unwrap();
    let database = folder.file("x.db");
    let mut server = Forebay::builder(PROGRAM).database(&database).start().unwrap();
    let other_name = folder.file("y.db");
    std::os::unix::fs::symlink(&database, &other_name).unwrap();
    for name in [&database, &other_name] {
        let line = refusal_of_database(name);
        assert!(
            line.contains("another server has it") && line.contains("x.db-lock"),
            "{line}"
        );
    }
    // Another program may read and write it beside the server.
    let beside = rusqlite::Connection::open(&database).unwrap();
    beside
        .execute_batch("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
        .unwrap();
    drop(beside);
    server.kill9().unwrap();
    server.restart().expect("nobody has it any more");
    assert_eq!(
        crate::client::Client::connect(server.address()).ask("SELECT a FROM t"),
        "1"
    );
}
