//! Values of many megabytes, in a message and out of it: a few copies at a time, and none behind.

use crate::client::{Client, bind, execute, parse, query};
use crate::{resident_bytes, resident_bytes_max, server};

const MEGABYTE: usize = 1 << 20;
const LENGTH: usize = 60 * MEGABYTE;
/// What may be left when it has been given back: what the allocator keeps.
const LEFT_MAX: f64 = 0.5;
/// By so many answers later it has.
const ROUND_TRIPS_MAX: u32 = 200;

/// The most that the server grew by while it did that, and what is left of it, in values of [`LENGTH`].
fn growth(act: impl Fn(&mut Client)) -> (f64, f64) {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a TEXT)");
    client.run("INSERT INTO t VALUES ('x')");
    client.pipeline(&[parse("", "SELECT $1::text"), bind("", "", &["x"]), execute("", 0)]);
    let before = resident_bytes(&server);
    act(&mut client);
    let values = |bytes: usize| bytes.saturating_sub(before) as f64 / LENGTH as f64;
    let most = values(resident_bytes_max(&server));
    // Who is answered goes on at once; the thread that gives the memory back may have its turn behind many others here.
    let mut left = f64::INFINITY;
    for _ in 0..ROUND_TRIPS_MAX {
        client.ask("SELECT 1");
        left = values(resident_bytes(&server));
        if left < LEFT_MAX {
            break;
        }
    }
    (most, left)
}

#[test]
fn a_long_parameter_takes_a_few_copies() {
    let long = "x".repeat(LENGTH);
    for (sql, copies_max) in [
        ("INSERT INTO t VALUES ($1)", 4.5),
        ("SELECT length($1::text)", 4.5),
        ("UPDATE t SET a = $1", 4.5),
        ("SELECT $1::text", 4.5),
    ] {
        let (most, left) = growth(|client| {
            client
                .pipeline(&[parse("", sql), bind("", "", &[&long]), execute("", 0)])
                .expect(sql);
        });
        println!("{sql}: {most:.1} copies, {left:.1} left");
        assert!(
            most < copies_max && left < LEFT_MAX,
            "{sql}: {most:.1} copies, {left:.1} left"
        );
    }
}

#[test]
fn a_long_literal_takes_a_few_copies() {
    let long = "x".repeat(LENGTH);
    for (sql, copies_max) in [
        (format!("INSERT INTO t VALUES ('{long}')"), 4.5),
        (format!("SELECT length('{long}')"), 16.0),
    ] {
        let (most, left) = growth(|client| {
            client.send(&query(&sql));
            client.answer().expect("served");
        });
        println!("{}: {most:.1} copies, {left:.1} left", &sql[..20]);
        assert!(
            most < copies_max && left < LEFT_MAX,
            "{}: {most:.1} copies, {left:.1} left",
            &sql[..20]
        );
    }
}
