//! Another process has the file: waited for within bounds, and no harm done.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::client::Client;
use crate::server;

#[test]
fn a_lock_is_waited_for_and_then_said() {
    let server = server(&["--busy-timeout", "300ms"]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    let other = Connection::open(server.database()).unwrap();
    other
        .execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
        .unwrap();
    for sql in [
        "INSERT INTO t VALUES (2)",
        "CREATE TABLE u (a INTEGER)",
        "/* batch:0 */ INSERT INTO t VALUES (3)",
    ] {
        let begun = Instant::now();
        let answer = client.query(sql);
        assert_eq!((answer.sqlstate().as_str(), answer.status), ("55P03", 'I'), "{sql}");
        assert!(
            begun.elapsed() >= Duration::from_millis(250),
            "{sql}: {:?}",
            begun.elapsed()
        );
    }
    client.run("BEGIN");
    let answer = client.query("INSERT INTO t VALUES (4)");
    assert_eq!((answer.sqlstate().as_str(), answer.status), ("55P03", 'E'));
    client.run("ROLLBACK");
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0", "who reads does not wait");
    other.execute_batch("COMMIT").unwrap();
    client.run("INSERT INTO t VALUES (5)");
    assert_eq!(client.ask("SELECT string_agg(a::text, ',' ORDER BY a) FROM t"), "1,5");
}
