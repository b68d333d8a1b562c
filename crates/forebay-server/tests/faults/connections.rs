//! Very many clients, and one too many.

use crate::client::Client;
use crate::server;

/// As many files as the system lets this process have; each server has the same.
fn files_max() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live struct of the type the call fills.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to a live struct of the type the call reads.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    usize::try_from(limit.rlim_max).unwrap_or(usize::MAX)
}

#[test]
fn ten_thousand_clients_are_served() {
    // Other tests of this program have files open too.
    let count = 10_000.min(files_max() - 1_000);
    println!("{count} connections");
    let server = server(&[]);
    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect(server.address())).collect();
    clients[0].run("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&crate::client::query(&format!("INSERT INTO t VALUES ({number})")));
    }
    for client in &mut clients {
        client.answer().expect("every client can write");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&crate::client::query(&format!("SELECT a FROM t WHERE a = {number}")));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.answer().value(), Some(number.to_string()));
    }
}

#[test]
fn one_too_many_is_told_so_and_harms_nobody() {
    let server = server(&["--max-connections", "5"]);
    let mut clients: Vec<Client> = (0..5).map(|_| Client::connect(server.address())).collect();
    for _ in 0..20 {
        let refusal = Client::connect_with(server.address(), &[]).unwrap_err();
        assert_eq!((refusal.sqlstate(), refusal.field(b'S')), ("53300", Some("FATAL")));
    }
    for client in &mut clients {
        assert_eq!(client.ask("SELECT 1"), "1");
    }
    // A cancel request gets through: it is how a place may come free.
    clients[0].send(&crate::client::query(
        "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT count(*) FROM s",
    ));
    assert_eq!(clients[0].cancel_until_answered().sqlstate(), "57014");
    drop(clients.pop());
    let mut tries = 0;
    while let Err(refusal) = Client::connect_with(server.address(), &[]) {
        assert_eq!(refusal.sqlstate(), "53300");
        tries += 1;
        assert!(tries < 10_000, "the place that was given back is not given away");
    }
}
