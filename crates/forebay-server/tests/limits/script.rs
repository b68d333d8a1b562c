//! Scripts of very many statements in one message: understood one after another, and all or nothing.

use crate::client::Client;
use crate::{resident_bytes, resident_bytes_max, server};

#[test]
fn a_long_script_takes_little_memory_and_gives_it_back() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(&"SELECT 1;".repeat(100));
    let before = resident_bytes_max(&server);
    assert_eq!(client.run(&"SELECT 1;".repeat(40_000)).tags().len(), 40_000);
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 48 << 20, "grew by {} MiB", grown >> 20);
    let left = resident_bytes(&server).saturating_sub(before);
    assert!(left < 32 << 20, "{} MiB are left", left >> 20);
}

#[test]
fn a_dump_of_very_many_inserts_is_taken() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    // More than a million words and signs in all, and few in each statement.
    let script = "INSERT INTO t VALUES (1);".repeat(150_000);
    let before = resident_bytes_max(&server);
    assert_eq!(client.run(&script).tags().len(), 150_000);
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {} MiB", grown >> 20);
    assert_eq!(client.ask("SELECT count(*) FROM t"), "150000");
    let list = "1,".repeat(500_001);
    assert_eq!(client.query(&format!("SELECT {list}1")).sqlstate(), "54001");
}

#[test]
fn very_many_joins_are_refused_before_they_are_compiled() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let joined = |count: usize| {
        let joins: String = (1..count)
            .map(|number| format!(" JOIN (SELECT 1) t{number} ON true"))
            .collect();
        format!("SELECT 7 FROM (SELECT 1) t0{joins}")
    };
    assert_eq!(client.ask(&joined(50)), "7");
    // Compiling all of it would take longer than the client waits.
    assert_eq!(client.query(&joined(60_000)).sqlstate(), "54001");
}

#[test]
fn an_error_anywhere_stops_all_before_the_first() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a INTEGER)");
    for count in [1, 15, 16, 17, 100] {
        let script = format!(
            "{}SELECT 'open",
            "BEGIN; INSERT INTO t VALUES (1); COMMIT;".repeat(count)
        );
        assert_eq!(client.query(&script).sqlstate(), "42601", "{count}");
        assert_eq!(client.ask("SELECT count(*) FROM t"), "0", "{count}");
    }
    // Each is the one that it is, in order, also behind those that are understood once.
    let script: String = (0..100).map(|number| format!("SELECT {number} /* ; */ ;; ")).collect();
    let values: Vec<String> = client
        .run(&script)
        .rows()
        .into_iter()
        .map(|row| row[0].clone().unwrap())
        .collect();
    assert_eq!(values, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
}
