//! What a session is shown of itself: what it has prepared, its cursors, its row of the activity.

use crate::client::{Client, Row, bind, execute, parse, parse_typed, whole};
use crate::server;

fn row(values: &[&str]) -> Row {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[test]
fn a_session_sees_what_it_has_prepared() {
    let server = server(&[]);
    let (mut client, mut other) = (Client::connect(server.address()), Client::connect(server.address()));
    let list = "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements ORDER BY name";
    client.run("PREPARE q (int, timestamptz) AS SELECT $1");
    client
        .pipeline(&[parse_typed("p", "SELECT $1::text", &[25])])
        .expect("prepared");
    assert_eq!(
        client.run(list).rows(),
        [
            row(&["p", "SELECT $1::text", "{text}", "f"]),
            row(&[
                "q",
                "PREPARE q (int, timestamptz) AS SELECT $1",
                "{integer,\"timestamp with time zone\"}",
                "t"
            ]),
        ]
    );
    assert!(other.run(list).rows().is_empty(), "another's are its own");
    client.run("DEALLOCATE q");
    // Nor is the unnamed one among them, which asks.
    let answer = client.pipeline(&[whole("SELECT name FROM pg_prepared_statements", &[])]);
    assert_eq!(answer.rows(), [row(&["p"])]);
    client.run("DEALLOCATE ALL");
    assert_eq!(client.ask("SELECT count(*) FROM pg_prepared_statements"), "0");
}

#[test]
fn a_session_sees_its_cursors() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2)");
    let list = "SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_cursors ORDER BY name";
    client.run("BEGIN");
    client.run("DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t");
    client.run("DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT id FROM t");
    client
        .pipeline(&[parse("", "SELECT id FROM t"), bind("p", "", &[]), execute("p", 1)])
        .expect("a row");
    let held = row(&[
        "h",
        "DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT id FROM t",
        "t",
        "f",
        "t",
    ]);
    assert_eq!(
        client.run(list).rows(),
        [
            row(&["c", "DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t", "f", "f", "f"]),
            held.clone(),
            row(&["p", "SELECT id FROM t", "f", "f", "f"]),
        ]
    );
    client.run("COMMIT");
    assert_eq!(client.run(list).rows(), std::slice::from_ref(&held));
    // The portal that asks is one.
    let answer = client.pipeline(&[parse("", list), bind("asks", "", &[]), execute("asks", 0)]);
    assert_eq!(answer.rows(), [row(&["asks", list, "f", "f", "f"]), held]);
    client.run("CLOSE ALL");
    assert!(client.run(list).rows().is_empty());
}

#[test]
fn a_session_sees_its_activity() {
    let server = server(&[]);
    let (mut client, mut other) = (Client::connect(server.address()), Client::connect(server.address()));
    client.run("SET application_name = 'me'");
    let own = "SELECT pid, usename, application_name, state, query, backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    let process = client.process.to_string();
    assert_eq!(
        client.run(own).rows(),
        [row(&[&process, "test", "me", "active", own, "client backend"])]
    );
    other.run("SELECT * FROM pg_stat_activity");
    let own = "SELECT pid = pg_backend_pid(), datname = current_database(), xact_start IS NOT NULL FROM pg_stat_activity \
               WHERE pid = pg_backend_pid()";
    assert_eq!(client.run(own).rows(), [row(&["t", "t", "t"])]);
    assert_eq!(other.ask("SELECT pid FROM pg_stat_activity"), other.process.to_string());
}
