//! Clients that go while their statements run or wait: nobody else waits for what nobody will read.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::client::{Client, bind, execute, message, parse, query, startup, sync};
use crate::server;

const FOREVER: &str = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT";

/// Far less than any time-out, far more than it takes.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_statement_ends_with_its_client() {
    let server = server(&["--readers", "1"]);
    let mut other = Client::connect(server.address());
    other.run("CREATE TABLE t (a INTEGER)");
    let pipelined = |sql: &str| [parse("", sql), bind("", "", &[]), execute("", 0), sync()].concat();
    let reads = format!("{FOREVER} count(*) FROM s");
    let writes = format!("INSERT INTO t {FOREVER} n FROM s");
    for (place, statement) in [
        query(&reads),
        query(&writes),
        pipelined(&reads),
        pipelined(&writes),
        // More waits behind it, which is not a client that is there.
        [query(&writes), query("INSERT INTO t VALUES (1)")].concat(),
        [query("BEGIN"), query("INSERT INTO t VALUES (1)"), query(&reads)].concat(),
    ]
    .into_iter()
    .enumerate()
    {
        for reset in [false, true] {
            let mut client = Client::connect(server.address());
            client.send(&statement);
            // It runs.
            while client.read_within(Duration::from_millis(100)).is_some() {}
            if reset {
                let linger = libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                // SAFETY: the pointer is to a live struct of the type and length that the option takes.
                let set = unsafe {
                    libc::setsockopt(
                        std::os::fd::AsRawFd::as_raw_fd(&client.stream),
                        libc::SOL_SOCKET,
                        libc::SO_LINGER,
                        (&raw const linger).cast(),
                        size_of::<libc::linger>() as libc::socklen_t,
                    )
                };
                assert_eq!(set, 0);
            }
            drop(client);
            let begun = Instant::now();
            assert_eq!(other.ask("SELECT count(*) FROM t"), "0");
            other.run("INSERT INTO t VALUES (2); DELETE FROM t WHERE a = 2");
            let took = begun.elapsed();
            assert!(took < SOON, "{place} {reset}: {took:?}");
        }
    }
}

#[test]
fn a_client_that_only_sends_no_more_is_answered() {
    let server = server(&[]);
    Client::connect(server.address()).run("CREATE TABLE t (a INTEGER)");
    // Long enough to be looked at several times.
    let long =
        "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 8000000) SELECT count(*) FROM s";
    for tail in [&b""[..], &query("INSERT INTO t VALUES (1)"), &message(b'X', b"")] {
        let mut client = Client::raw(server.address());
        client
            .stream
            .write_all(&[&startup(&[])[..], &query(long), tail].concat())
            .unwrap();
        client.stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        client.stream.read_to_end(&mut all).unwrap();
        let found = all.windows(7).any(|window| window == b"8000000");
        assert!(found, "{}", String::from_utf8_lossy(&all));
    }
    assert_eq!(Client::connect(server.address()).ask("SELECT count(*) FROM t"), "1");
}
