//! What one session may gather: prepared statements, portals, savepoints, settings.

use crate::client::{Client, bind, execute, flush, parse, query, sync};
use crate::{resident_bytes_max, server};

#[test]
fn prepared_statements_are_bounded_in_number() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let mut refused = None;
    for hundred in 0..1_000 {
        let batch: Vec<Vec<u8>> = (0..100)
            .map(|number| parse(&format!("s{}", hundred * 100 + number), "COMMIT"))
            .collect();
        let answer = client.pipeline(&batch);
        if let Some(error) = answer.error() {
            refused = Some((hundred, error));
            break;
        }
    }
    let (hundred, error) = refused.expect("a hundred thousand are too many");
    assert_eq!((hundred, error.sqlstate()), (100, "53400"));
    assert_eq!(
        client
            .pipeline(&[parse("", "SELECT 1"), bind("", "", &[]), execute("", 0)])
            .value()
            .as_deref(),
        Some("1")
    );
    client.run("DEALLOCATE ALL");
    assert_eq!(client.pipeline(&[parse("s", "SELECT 1")]).sqlstate(), "00000");
}

#[test]
fn prepared_statements_and_portals_are_bounded_in_bytes() {
    let server = server(&["--max-message-bytes", "1MiB"]);
    let mut client = Client::connect(server.address());
    client.ask("SELECT 1");
    let before = resident_bytes_max(&server);
    let long = "x".repeat(500_000);
    for number in 0..200 {
        let answer = client.pipeline(&[parse(&format!("s{number}"), &format!("SELECT '{long}'"))]);
        assert_eq!(
            answer.sqlstate(),
            if number < 2 { "00000" } else { "53400" },
            "{number}"
        );
    }
    client.run("DEALLOCATE ALL");
    client
        .pipeline(&[parse("s", "SELECT $1::text")])
        .expect("there is room again");
    client.run("BEGIN");
    for number in 0..2 {
        client
            .pipeline(&[bind(&format!("p{number}"), "s", &[&long])])
            .expect("bound");
    }
    assert_eq!(client.pipeline(&[bind("p2", "s", &[&long])]).sqlstate(), "53400");
    client.run("ROLLBACK");
    client.run("BEGIN");
    // Small ones are bounded in number.
    let mut bound = 0;
    while client
        .pipeline(&[bind(&format!("p{bound}"), "s", &["x"])])
        .error()
        .is_none()
    {
        bound += 1;
        assert!(bound <= 1_000);
    }
    assert_eq!(bound, 1_000);
    client.run("ROLLBACK");
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 32 << 20, "grew by {} MiB", grown >> 20);
}

#[test]
fn savepoints_and_settings_are_bounded() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("BEGIN");
    let script = |from: usize| {
        (from..from + 1_000)
            .map(|number| format!("SAVEPOINT s{number};"))
            .collect::<String>()
    };
    let refused = (0..100).find_map(|thousand| client.query(&script(thousand * 1_000)).error());
    assert_eq!(refused.expect("savepoints are bounded").sqlstate(), "53400");
    client.run("ROLLBACK");
    let script = |from: usize| {
        (from..from + 1_000)
            .map(|number| format!("SET my.setting{number} = 'x';"))
            .collect::<String>()
    };
    let refused = (0..100).find_map(|thousand| client.query(&script(thousand * 1_000)).error());
    assert_eq!(refused.expect("settings are bounded").sqlstate(), "53400");
    let refused = client
        .query(&format!("SET application_name = '{}'", "x".repeat(1 << 20)))
        .error();
    assert_eq!(
        refused.expect("a setting is no place for a megabyte").sqlstate(),
        "22023"
    );
    let long = client
        .query(&format!("SET my.long = '{}'", "x".repeat(1 << 20)))
        .error();
    assert_eq!(long.expect("a setting is no place for a megabyte").sqlstate(), "22023");
    client.run("RESET ALL");
    client.run("SET my.own = 'x'");
    // The same one again and again in one transaction takes no more than once.
    client.run("BEGIN");
    client.run(&"SET LOCAL my.own = 'y';".repeat(5_000));
    client.run("COMMIT");
    assert_eq!(client.ask("SHOW my.own"), "x");
}

#[test]
fn a_script_of_very_many_statements_is_served_in_bounded_memory() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.ask("SELECT 1");
    let before = resident_bytes_max(&server);
    // More than a million words and signs in all: served, and beside it others are.
    client.send(&query(&"SELECT 1,1,1,1,1,1,1,1,1,1;".repeat(60_000)));
    let mut other = Client::connect(server.address());
    assert_eq!(other.ask("SELECT 1"), "1");
    assert_eq!(client.answer().tags().len(), 60_000);
    // Sixteen megabytes in one statement: refused.
    client.send(&query(&format!("SELECT {}1", "1,".repeat(8_000_000))));
    assert_eq!(other.ask("SELECT 1"), "1");
    assert_eq!(client.answer().sqlstate(), "54001");
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 300 << 20, "grew by {} MiB", grown >> 20);
}

#[test]
fn a_pipeline_is_answered_while_it_is_sent() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.ask("SELECT 1");
    let before = resident_bytes_max(&server);
    // A hundred megabytes of messages whose answers nobody reads until they are all sent would stop both sides; a thread reads.
    let mut stream = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let long = "x".repeat(100_000);
        let step = [
            parse("", &format!("SELECT '{long}'")),
            bind("", "", &[]),
            execute("", 0),
            flush(),
        ]
        .concat();
        for _ in 0..500 {
            std::io::Write::write_all(&mut stream, &step).unwrap();
        }
        std::io::Write::write_all(&mut stream, &sync()).unwrap();
    });
    let answer = client.answer();
    sending.join().unwrap();
    assert_eq!(answer.rows().len(), 500);
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 32 << 20, "grew by {} MiB", grown >> 20);
}
