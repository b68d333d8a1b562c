//! What is shown of handles: who has one as a field can derive `Debug`, and no password gets into a log.

use forebay::mysql::MySql;
use forebay::postgres::Postgres;
use forebay::sqlite::Sqlite;
use forebay::write::Writer;

#[derive(Debug)]
#[expect(dead_code, reason = "shown, and never read")]
struct Application {
    database: Sqlite,
    writer: Writer,
}

#[tokio::test]
async fn handles_and_what_has_one_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(folder.path().join("app.db")).unwrap();
    let writer = Writer::new(database.clone());
    let transaction = writer.begin().await.unwrap();
    assert_eq!(format!("{transaction:?}"), "Transaction { is_lost: false, .. }");
    let application = Application { database, writer };
    let shown = format!("{application:?}");
    assert!(shown.contains("app.db") && shown.contains("in_flight"), "{shown}");
}

#[test]
fn no_password_is_shown() {
    let postgres = Postgres::builder("postgresql://app:secret@127.0.0.1/app").unwrap();
    let mysql = MySql::builder("mariadb://app:secret@127.0.0.1/app").unwrap();
    for shown in [format!("{postgres:?}"), format!("{mysql:?}")] {
        assert!(shown.contains("Builder") && !shown.contains("secret"), "{shown}");
    }
}
