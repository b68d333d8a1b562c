//! The same on the databases that are servers: PostgreSQL, MariaDB.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use testbed::{MariaDb, Postgres, Shared};

use crate::program::Web;

static POSTGRES: Shared<Postgres> = Shared::new(Postgres::start);
static MARIADB: Shared<MariaDb> = Shared::new(MariaDb::start);

/// A database of a test's own.
struct Database {
    server: Server,
    name: &'static str,
}

enum Server {
    Postgres(Arc<Postgres>),
    MariaDb(Arc<MariaDb>),
}

impl Database {
    fn on_postgres(name: &'static str) -> Self {
        Self::new(Server::Postgres(POSTGRES.server().unwrap()), "postgres", name)
    }

    fn on_mariadb(name: &'static str) -> Self {
        Self::new(Server::MariaDb(MARIADB.server().unwrap()), "test", name)
    }

    fn new(server: Server, first: &'static str, name: &'static str) -> Self {
        let first = Self { server, name: first };
        first.execute(&format!("CREATE DATABASE {name}"));
        Self { name, ..first }
    }

    fn url(&self) -> String {
        let url = match &self.server {
            Server::Postgres(server) => server.url(),
            Server::MariaDb(server) => server.url(),
        };
        format!("{}/{}", url.rsplit_once('/').unwrap().0, self.name)
    }

    /// What a client prints.
    fn execute(&self, statement: &str) -> String {
        match &self.server {
            Server::Postgres(_) => {
                let options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command"];
                told(Command::new("psql").args(options).args([statement, &self.url()]))
            }
            Server::MariaDb(server) => {
                let port = server.address().port().to_string();
                let options = [
                    "--no-defaults",
                    "--host=127.0.0.1",
                    "--user=root",
                    "--batch",
                    "--skip-column-names",
                ];
                let place = ["--port", &port, "--execute", statement, self.name];
                told(Command::new("mariadb").args(options).args(place))
            }
        }
    }

    /// Rows of id and value.
    fn rows(&self) -> BTreeSet<(i64, i64)> {
        let row = |line: &str| {
            let (id, value) = line.split_once(['|', '\t']).unwrap();
            (id.parse().unwrap(), value.parse().unwrap())
        };
        self.execute("SELECT id, value FROM entry").lines().map(row).collect()
    }
}

fn told(client: &mut Command) -> String {
    let ran = client.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn users_are_found_and_missed(web: &Web) {
    for _ in 0..2 {
        let found = web.get("/user/1000");
        assert_eq!((found.status, &*found.body), (200, r#"{"id":1000,"name":"User 1000"}"#));
        assert_eq!(web.get("/user/1001").status, 404);
    }
}

fn each_visitor_gets_their_own_row(database: &Database) {
    let web = Web::start(&database.url(), &[]);
    let told = web.write_by_all_routes();
    assert_eq!(database.rows(), told);
    users_are_found_and_missed(&web);
    // One that starts again finds its tables.
    drop(web);
    users_are_found_and_missed(&Web::start(&database.url(), &[]));
    assert_eq!(database.rows(), told);
}

fn errors_are_said(database: &Database, words: &str) {
    let web = Web::start(&database.url(), &[]);
    database.execute("DROP TABLE entry");
    database.execute("DROP TABLE users");
    for path in ["/batched?id=1", "/unbatched?id=1", "/unpooled?id=1", "/user/1"] {
        let answer = web.get(path);
        assert!([500, 503].contains(&answer.status), "{path}: {}", answer.status);
        assert!(answer.body.contains(words), "{path}: {}", answer.body);
    }
}

#[test]
fn on_postgres_each_visitor_gets_their_own_row() {
    each_visitor_gets_their_own_row(&Database::on_postgres("own_rows"));
}

#[test]
fn on_mariadb_each_visitor_gets_their_own_row() {
    each_visitor_gets_their_own_row(&Database::on_mariadb("own_rows"));
}

#[test]
fn on_postgres_errors_are_said() {
    errors_are_said(&Database::on_postgres("errors"), "does not exist");
}

#[test]
fn on_mariadb_errors_are_said() {
    errors_are_said(&Database::on_mariadb("errors"), "doesn't exist");
}
