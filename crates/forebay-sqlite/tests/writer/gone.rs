//! A file that is deleted, moved or replaced while it is open takes no more writes, and what it may have taken is not acknowledged.

use std::fs;
use std::path::{Path, PathBuf};

use forebay_sqlite::connection;
use forebay_write::{StatementErrorKind, WriteError, Writer};

use crate::{Answer, Database};

const INSERT: &str = "INSERT INTO t (a) VALUES (?1)";

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Refused, without effect, in words that name the file and what happened.
fn assert_refused(answer: Answer, path: &Path, what: &str) {
    let Err(WriteError::Statement(error)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(error.kind, StatementErrorKind::Io, "{error}");
    assert!(error.message.contains(path.to_str().unwrap()), "{error}");
    assert!(error.message.contains(what), "{error}");
}

#[tokio::test]
async fn nothing_is_acknowledged_that_nobody_will_find() {
    type Harm = fn(&Path);
    let harms: [(Harm, &str, &str); 4] = [
        (|path| fs::remove_file(path).unwrap(), "", "deleted or moved"),
        (
            |path| fs::rename(path, beside(path, ".old")).unwrap(),
            "",
            "deleted or moved",
        ),
        (
            |path| {
                fs::rename(path, beside(path, ".old")).unwrap();
                fs::copy(beside(path, ".old"), path).unwrap();
            },
            "",
            "replaced",
        ),
        (
            |path| fs::remove_file(beside(path, "-wal")).unwrap(),
            "-wal",
            "deleted or moved",
        ),
    ];
    for (harm, ending, what) in harms {
        let database = Database::new("CREATE TABLE t (a INTEGER)");
        let sqlite = database.open();
        let writer = Writer::new(sqlite.clone());
        writer.execute(INSERT, (1,)).await.unwrap();
        sqlite.check_file().unwrap();
        let mut transaction = sqlite.begin().await.unwrap();
        transaction.execute(INSERT, (2,)).await.unwrap();
        harm(&database.path);
        let gone = beside(&database.path, ending);
        assert_refused(
            transaction.commit().await.map(|()| forebay_write::Outcome::default()),
            &gone,
            what,
        );
        for number in 3..10 {
            assert_refused(writer.execute(INSERT, (number,)).await, &gone, what);
        }
        assert_refused(writer.execute("VACUUM", ()).await, &gone, what);
        assert!(sqlite.check_file().is_err());
    }
}

#[tokio::test]
async fn a_file_that_is_put_back_takes_writes_again() {
    let database = Database::new("CREATE TABLE t (a INTEGER)");
    let writer = Writer::new(database.open());
    writer.execute(INSERT, (1,)).await.unwrap();
    fs::rename(&database.path, beside(&database.path, ".old")).unwrap();
    assert_refused(writer.execute(INSERT, (2,)).await, &database.path, "deleted or moved");
    fs::rename(beside(&database.path, ".old"), &database.path).unwrap();
    writer.execute(INSERT, (3,)).await.unwrap();
    assert_eq!(database.read("SELECT a FROM t ORDER BY a"), ["1", "3"]);
}

#[tokio::test]
async fn a_reader_never_opens_another_file_of_the_same_name() {
    let database = Database::new("CREATE TABLE t (a INTEGER)");
    let sqlite = database.open();
    let _first = connection::reader(&sqlite).await.unwrap();
    fs::rename(&database.path, beside(&database.path, ".old")).unwrap();
    fs::copy(beside(&database.path, ".old"), &database.path).unwrap();
    assert!(
        connection::reader(&sqlite).await.is_err(),
        "a second connection opens what is there now"
    );
}
