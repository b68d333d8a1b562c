//! Opening names the file and the cause; what cannot be written to is read all the same.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use forebay_sqlite::{Sqlite, Synchronous, connection};
use forebay_write::{StatementErrorKind as Kind, WriteError, Writer};

use crate::{Database, Grenade, integers, kind};

#[track_caller]
fn refused(path: &std::path::Path) -> (Kind, String) {
    let error = Sqlite::open(path).map(|_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    (error.cause().kind, text)
}

#[test]
fn a_writer_needs_no_runtime_to_begin_with() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::new(Sqlite::open(folder.path().join("app.db")).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let made = runtime.block_on(writer.execute("CREATE TABLE t (a)", ()));
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn what_is_no_database_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("letter.txt");
    std::fs::write(
        &text,
        "Dear Sir or Madam, this is no database at all, and it is long enough to tell.".repeat(20),
    )
    .unwrap();
    assert_eq!(refused(&text).0, Kind::Corrupt);
    assert_eq!(refused(folder.path()).0, Kind::Io);
    assert_eq!(refused(&folder.path().join("no/such/folder/app.db")).0, Kind::Io);
    for memory in ["", ":memory:"] {
        assert!(Sqlite::open(memory).is_err_and(|error| error.to_string().contains("give a file")));
    }
}

#[test]
fn a_function_that_cannot_be_registered_is_told() {
    let database = Database::new("");
    let failed = database
        .builder(|connection| connection.execute_batch("nonsense"))
        .open();
    assert_eq!(failed.map(|_| ()).unwrap_err().cause().kind, Kind::Text);
    let panicked = database.builder(|_| std::panic::panic_any("as asked")).open();
    assert!(panicked.is_err_and(|error| error.to_string().contains("stopped")));
    // What the panic carries takes nobody along when it is dropped with its thread.
    let panicked = database.builder(|_| std::panic::panic_any(Grenade)).open();
    assert!(panicked.is_err_and(|error| error.to_string().contains("stopped")));
}

#[tokio::test]
async fn what_is_opened_is_durable_and_lets_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let sqlite = Sqlite::open(&path).unwrap();
    assert!(!sqlite.is_read_only());
    assert_eq!(sqlite.path(), path);
    let writer = Writer::new(sqlite);
    let setting = async |sql| writer.execute(sql, ()).await.unwrap().rows.remove(0).remove(0);
    assert_eq!(setting("PRAGMA journal_mode").await.as_text(), Some("wal"));
    assert_eq!(setting("PRAGMA synchronous").await.as_integer(), Some(2), "FULL");
    assert_eq!(setting("PRAGMA foreign_keys").await.as_integer(), Some(1));
    let normal = Sqlite::builder(folder.path().join("normal.db"))
        .synchronous(Synchronous::Normal)
        .open()
        .unwrap();
    let answer = Writer::new(normal).execute("PRAGMA synchronous", ()).await.unwrap();
    assert_eq!(answer.rows, [integers(&[1])]);
}

#[tokio::test]
async fn a_connection_that_may_only_read_refuses_each_write() {
    let database = Database::new("CREATE TABLE t (n)");
    let sqlite = database.open_with(|connection| connection.pragma_update(None, "query_only", true));
    let writer = Writer::new(sqlite.clone());
    assert_eq!(
        kind(&writer.execute("INSERT INTO t VALUES (1)", ()).await),
        Kind::ReadOnly
    );
    assert!(matches!(writer.begin().await, Err(WriteError::Statement(error)) if error.kind == Kind::ReadOnly));
    assert_eq!(
        sqlite.query("SELECT count(*) FROM t", ()).await.unwrap().rows,
        [integers(&[0])]
    );
}

const CHILD: &str = "FOREBAY_TEST_READ_ONLY";

/// The administrator may write to every file, so a child without any rights does what is to be shown.
#[test]
fn a_file_without_the_right_to_write_can_be_read() {
    if let Some(path) = std::env::var_os(CHILD) {
        return read_only_child(path.as_ref());
    }
    let database = Database::new("CREATE TABLE t (n); INSERT INTO t VALUES (7); PRAGMA journal_mode = DELETE");
    let folder = database.path.parent().unwrap();
    let owned_by_us = std::fs::metadata(&database.path).unwrap();
    let administrator = std::os::unix::fs::MetadataExt::uid(&owned_by_us) == 0;
    let rights = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    rights(&database.path, 0o444);
    rights(folder, 0o555);
    // A copy in a place that a user without rights can reach.
    let program = folder.join("test-program");
    rights(folder, 0o755);
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    rights(&program, 0o555);
    rights(folder, 0o555);
    let mut child = Command::new(&program);
    child
        .args([
            "--exact",
            "opening::a_file_without_the_right_to_write_can_be_read",
            "--nocapture",
        ])
        .env(CHILD, &database.path);
    if administrator {
        child.uid(65_534).gid(65_534);
    }
    let output = child.current_dir("/").output().unwrap();
    rights(folder, 0o755);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(database.read("SELECT n FROM t"), ["7"]);
}

fn read_only_child(path: &std::path::Path) {
    assert!(
        std::fs::OpenOptions::new().append(true).open(path).is_err(),
        "the child has no right to write"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let sqlite = Sqlite::open(path).unwrap();
        assert!(sqlite.is_read_only());
        assert_eq!(
            sqlite.query("SELECT n FROM t", ()).await.unwrap().rows,
            [integers(&[7])]
        );
        let writer = Writer::new(sqlite);
        let answer = writer.execute("INSERT INTO t VALUES (8)", ()).await;
        assert_eq!(kind(&answer), Kind::ReadOnly);
        let mut own = writer.begin().await.unwrap();
        assert_eq!(own.query("SELECT n FROM t", ()).await.unwrap().rows, [integers(&[7])]);
        assert_eq!(kind(&own.execute("DELETE FROM t", ()).await), Kind::ReadOnly);
    });
}

#[test]
fn a_limit_of_zero_is_refused_where_it_is_set_by_its_name() {
    type Set = fn();
    let refusals: [(&str, Set); 5] = [
        ("max_items", || drop(Writer::builder().max_items(0))),
        ("max_in_flight", || drop(Writer::builder().max_in_flight(0))),
        ("max_queued", || drop(Writer::builder().max_queued(0))),
        ("max_readers", || drop(Sqlite::builder("a.db").max_readers(0))),
        ("statement_cache", || drop(Sqlite::builder("a.db").statement_cache(0))),
    ];
    for (name, set) in refusals {
        let panic = std::panic::catch_unwind(set).expect_err(name);
        let said = panic.downcast_ref::<&str>().expect("words");
        assert!(said.starts_with(&format!("{name} must be at least 1: ")), "{said}");
    }
}

#[tokio::test]
async fn a_busy_timeout_longer_than_sqlite_counts_is_the_longest() {
    let longest = 24 * 86_400_000;
    for (asked_for, waits_ms) in [
        (Duration::MAX, longest),
        (Duration::from_secs(30 * 86_400), longest),
        (Duration::from_secs(24 * 86_400), longest),
        (Duration::from_millis(1_500), 1_500),
        (Duration::ZERO, 0),
    ] {
        let database = Database::new("CREATE TABLE t (n)");
        let (told, waits) = std::sync::mpsc::channel::<i64>();
        let sqlite = database
            .builder(move |connection| {
                let _ = told.send(connection.query_row("PRAGMA busy_timeout", (), |row| row.get(0))?);
                Ok(())
            })
            .busy_timeout(asked_for)
            .open()
            .unwrap();
        Writer::new(sqlite.clone())
            .execute("INSERT INTO t VALUES (1)", ())
            .await
            .unwrap();
        assert_eq!(
            sqlite.query("SELECT n FROM t", ()).await.unwrap().rows,
            [integers(&[1])]
        );
        let of_both: Vec<_> = waits.try_iter().collect();
        assert_eq!(of_both, [waits_ms, waits_ms], "{asked_for:?}");
    }
}

#[tokio::test]
async fn readers_without_a_limit_are_as_many_as_are_wanted() {
    let database = Database::new("");
    let sqlite = database.builder(|_| Ok(())).max_readers(usize::MAX).open().unwrap();
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(connection::reader(&sqlite).await.unwrap());
    }
    assert!(!sqlite.is_waited_for());
    assert!(readers.iter_mut().all(connection::Reader::step_aside));
    assert_eq!(sqlite.query("SELECT 1", ()).await.unwrap().rows, [integers(&[1])]);
}
