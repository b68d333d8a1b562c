//! What the service does on any database, seen on SQLite, whose lock makes writes wait for as long as a test likes.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::thread;

use rusqlite::Connection;
use testbed::{Program, Response};

use crate::program::{READY_WITHIN, Web};

const SIGTERM: i32 = 15;

/// A service on a file of its own.
struct OnSqlite {
    web: Web,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Deref for OnSqlite {
    type Target = Web;

    fn deref(&self) -> &Web {
        &self.web
    }
}

impl OnSqlite {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web.db");
        Self {
            web: Web::start(&format!("sqlite:{}", file.display()), arguments),
            file,
            _folder: folder,
        }
    }

    fn database(&self) -> Connection {
        Connection::open(&self.file).unwrap()
    }

    fn rows(&self) -> BTreeSet<(i64, i64)> {
        let database = self.database();
        let mut select = database.prepare("SELECT id, value FROM entry").unwrap();
        let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

#[test]
fn each_visitor_gets_the_id_of_the_row_that_was_written_for_them() {
    let web = OnSqlite::start(&[]);
    let told = web.write_by_all_routes();
    assert_eq!(web.rows(), told);
}

#[test]
fn requests_that_come_while_a_commit_runs_share_the_next_one() {
    const VISITORS: usize = 20;
    let web = OnSqlite::start(&["--max-requests", &VISITORS.to_string()]);
    // A commit that takes as long as we like: nobody can write while we hold the lock.
    let database = web.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let visitors: Vec<_> = (0..VISITORS)
            .map(|_| scope.spawn(|| web.get_in_the_end("/batched?id=1")))
            .collect();
        web.wait_until_full();
        database.execute_batch("COMMIT").unwrap();
        for visitor in visitors {
            assert_eq!(visitor.join().unwrap().status, 200);
        }
    });
    web.process.lock().unwrap().stop(SIGTERM).unwrap();
    let output = web.process.lock().unwrap().output();
    let told: Vec<usize> = output
        .lines()
        .last()
        .unwrap()
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    // Three made the tables, one came first, and one or another may have been on its way into the line when it moved.
    assert_eq!(told[0], VISITORS + 3, "{output}");
    assert!(told[1] <= 3 + 4, "{output}");
}

#[test]
fn answers_are_of_one_length_whatever_they_tell() {
    let web = OnSqlite::start(&[]);
    let lengths: BTreeSet<usize> = ["/batched?id=1", "/unbatched?id=-2147483648", "/unwritten?id=2147483647"]
        .map(|path| web.get(path).body.len())
        .into();
    assert_eq!(lengths.len(), 1, "{lengths:?}");
    assert_eq!(web.rows().len(), 2, "/unwritten has written");
}

#[test]
fn users_are_found_and_missed() {
    let web = OnSqlite::start(&[]);
    for _ in 0..2 {
        let found = web.get("/user/1000");
        assert_eq!((found.status, &*found.body), (200, r#"{"id":1000,"name":"User 1000"}"#));
        assert_eq!(web.get("/user/1001").status, 404);
    }
}

#[test]
fn what_does_not_work_is_said_in_words() {
    let web = OnSqlite::start(&[]);
    for route in ["/batched", "/unbatched", "/unpooled"] {
        assert_eq!(web.get(&format!("{route}?id=seven")).status, 400);
        assert_eq!(web.get(&format!("{route}?id=2147483648")).status, 400);
    }
    web.database()
        .execute_batch("DROP TABLE entry; DROP TABLE users")
        .unwrap();
    for path in ["/batched?id=1", "/unbatched?id=1", "/unpooled?id=1", "/user/1"] {
        let answer = web.get(path);
        assert_eq!(answer.status, 500, "{path}");
        assert!(answer.body.contains("no such table"), "{path}: {}", answer.body);
    }
}

#[test]
fn who_comes_over_the_bound_is_told_and_who_is_late_too() {
    let web = OnSqlite::start(&["--max-requests", "1", "--timeout-ms", "1000"]);
    let database = web.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let visitors: Vec<_> = (0..4).map(|_| scope.spawn(|| web.get("/batched?id=1"))).collect();
        let mut answers: Vec<Response> = visitors.into_iter().map(|visitor| visitor.join().unwrap()).collect();
        answers.sort_by_key(|answer| answer.status);
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [503, 503, 503, 504]);
        assert!(answers[0].body.contains("try again"), "{}", answers[0].body);
        assert!(answers[3].body.contains("1000 ms"), "{}", answers[3].body);
    });
    database.execute_batch("COMMIT").unwrap();
    assert_eq!(web.get("/unwritten?id=1").status, 200);
}

#[test]
fn what_was_taken_in_before_the_end_is_answered() {
    let web = OnSqlite::start(&["--max-requests", "1"]);
    let database = web.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let visitor = scope.spawn(|| web.get_in_the_end("/batched?id=5"));
        web.wait_until_full();
        web.process.lock().unwrap().signal(SIGTERM).unwrap();
        database.execute_batch("COMMIT").unwrap();
        assert_eq!(visitor.join().unwrap().status, 200);
    });
    assert!(
        web.process
            .lock()
            .unwrap()
            .wait(READY_WITHIN)
            .unwrap()
            .unwrap()
            .success()
    );
    assert_eq!(web.rows().iter().map(|(_, value)| *value).collect::<Vec<_>>(), [5]);
}

/// What it says when it does not start.
fn refusal(arguments: &[&str]) -> String {
    let program = Program::new(env!("CARGO_BIN_EXE_web"), arguments);
    program.run(READY_WITHIN).unwrap_err().to_string()
}

#[test]
fn a_database_that_cannot_be_opened_ends_the_program_with_its_name() {
    for (url, words) in [
        ("oracle:x", "none of sqlite:PATH"),
        ("sqlite:/no/such/folder/web.db", "/no/such/folder"),
        ("postgresql://app@127.0.0.1:1/there", "app@127.0.0.1:1/there"),
        ("mysql://app@127.0.0.1:1/there", "app@127.0.0.1:1/there"),
        ("mariadb://app@127.0.0.1:1/there", "app@127.0.0.1:1/there"),
        ("mysql://app@127.0.0.1:1", "names no database"),
    ] {
        let error = refusal(&[url]);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn no_error_repeats_a_password() {
    for url in [
        "postgresql://app:secret@127.0.0.1:1/app",
        "postgres//app:secret@127.0.0.1:1/app",
        "mysql://app:secret@127.0.0.1:1/app",
        "mariadb://app:secret@127.0.0.1:1",
        "oracle://app:secret@127.0.0.1:1/app",
    ] {
        // The program's own words: how it was started is known to whoever started it.
        let error = refusal(&[url]).replace(url, "");
        assert!(error.contains("web: ") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("web.db").display());
    let error = refusal(&[&database, "--listen", &address]);
    assert!(error.contains(&format!("cannot listen on {address}")), "{error}");
}
