//! How things end: clients, the server behind, the proxy.

use std::time::Duration;

use crate::client::PATIENCE;
use crate::{as_user, at, postgres, proxy, started, straight};

/// How many sessions the server has from proxies that run this.
fn sessions_at(server: &testbed::Postgres, what: &str) -> String {
    straight(server).ask(&format!(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{what}%' AND pid <> pg_backend_pid()"
    ))
}

#[test]
fn what_runs_for_a_client_that_has_gone_is_cancelled() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let mut client = at(proxy.address());
    client.send(&crate::client::query("SELECT pg_sleep(600) /* goes */"));
    while sessions_at(server, "/* goes */") != "1" {}
    drop(client);
    while sessions_at(server, "/* goes */") != "0" {}
}

#[test]
fn a_transaction_of_a_client_that_has_gone_is_not_committed_and_holds_nothing() {
    let server = postgres();
    let proxy = proxy(server, &["--max-server-connections", "1"]);
    straight(server).run("CREATE TABLE gone (i int PRIMARY KEY)");
    for _ in 0..10 {
        let mut client = at(proxy.address());
        client.run("BEGIN; INSERT INTO gone VALUES (1)");
        drop(client);
    }
    let mut next = at(proxy.address());
    assert_eq!(next.ask("SELECT count(*) FROM gone"), "0");
    next.run("INSERT INTO gone VALUES (1)");
    straight(server).run("DROP TABLE gone");
}

#[test]
fn a_server_connection_that_is_ended_ends_only_what_ran_on_it() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let (mut hit, mut spared, mut idle) = (at(proxy.address()), at(proxy.address()), at(proxy.address()));
    idle.run("SELECT 1");
    let process = hit.run("BEGIN; SELECT pg_backend_pid()").value().unwrap();
    spared.run("BEGIN");
    straight(server).run(&format!("SELECT pg_terminate_backend({process})"));
    // The server's own last word, as straight, and no other.
    let words = hit.last_words();
    assert_eq!(words.len(), 1, "{words:?}");
    assert_eq!(words[0].failure().sqlstate(), "57P01", "{words:?}");
    assert_eq!(spared.ask("SELECT 1"), "1");
    spared.run("COMMIT");
    assert_eq!(idle.ask("SELECT 1"), "1");
}

#[test]
fn who_is_idle_does_not_notice_that_all_connections_were_lost() {
    let server = started();
    let proxy = proxy(&server, &[]);
    let mut clients: Vec<_> = (0..3).map(|_| at(proxy.address())).collect();
    for client in &mut clients {
        client.run("SELECT 1");
    }
    straight(&server).run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'");
    while straight(&server)
        .ask("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
        != "0"
    {}
    for client in &mut clients {
        assert_eq!(client.ask("SELECT 1"), "1");
    }
}

#[test]
fn a_server_that_is_not_there_is_told_and_noticed_when_it_is_back() {
    let mut server = started();
    let proxy = proxy(&server, &[]);
    let mut client = at(proxy.address());
    client.run("SELECT 1");
    server.kill9().unwrap();
    client.send(&crate::client::query("SELECT 1"));
    let words = client.last_words();
    assert_eq!(words.last().unwrap().failure().sqlstate(), "08006", "{words:?}");
    let refused = as_user(proxy.address(), "postgres").unwrap_err();
    assert_eq!(refused.sqlstate(), "08006");
}

#[test]
fn told_to_stop_the_idle_end_and_transactions_may_finish() {
    let server = postgres();
    let mut proxy = proxy(server, &[]);
    let (mut idle, mut busy, mut listens) = (at(proxy.address()), at(proxy.address()), at(proxy.address()));
    idle.run("SELECT 1");
    listens.run("LISTEN something");
    busy.run("BEGIN");
    proxy.signal(libc::SIGTERM).unwrap();
    for client in [&mut idle, &mut listens] {
        let words = client.last_words();
        assert_eq!(words[0].failure().sqlstate(), "57P01");
    }
    assert_eq!(busy.ask("SELECT 1"), "1");
    busy.run("COMMIT");
    assert_eq!(busy.last_words()[0].failure().sqlstate(), "57P01");
    assert!(proxy.wait(Duration::from_secs(20)).unwrap().unwrap().success());
}

#[test]
fn a_transaction_that_does_not_finish_is_ended() {
    let server = postgres();
    let mut proxy = proxy(server, &["--drain-timeout", "1s"]);
    let mut busy = at(proxy.address());
    busy.run("BEGIN");
    proxy.signal(libc::SIGTERM).unwrap();
    assert_eq!(busy.last_words()[0].failure().sqlstate(), "57P01");
    assert!(proxy.wait(Duration::from_secs(20)).unwrap().unwrap().success());
}

/// As drivers do that send what they have and close: what was asked before the farewell is done.
#[test]
fn what_was_asked_before_the_farewell_is_done() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    straight(server).run("CREATE TABLE farewell (i int)");
    for i in 0..20 {
        let mut client = at(proxy.address());
        let all = [
            crate::client::query(&format!("INSERT INTO farewell VALUES ({i})")),
            crate::client::message(b'X', &[]),
        ];
        client.send(&all.concat());
    }
    while straight(server).ask("SELECT count(*) FROM farewell") != "20" {}
    straight(server).run("DROP TABLE farewell");
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_there() {
    let proxy = proxy(postgres(), &["--max-message-bytes", "100000"]);
    let mut client = at(proxy.address());
    client.send(&[&b"Q"[..], &200_000_u32.to_be_bytes(), b"SELECT "].concat());
    assert_eq!(client.last_words()[0].failure().sqlstate(), "54000");
}

#[test]
fn it_is_ready_while_what_is_behind_can_be_reached() {
    let mut server = started();
    let proxy = proxy(&server, &[]);
    let asked = |path| {
        let answer = proxy.http_get(path).unwrap();
        (answer.status, answer.body)
    };
    let ok = (200, "ok\n".to_owned());
    assert_eq!((asked("/healthz"), asked("/readyz")), (ok.clone(), ok.clone()));
    server.kill9().unwrap();
    // What was found last is good for a second.
    let unready = loop {
        let unready = asked("/readyz");
        if unready.0 != 200 {
            break unready;
        }
    };
    assert_eq!(unready, (503, "cannot be reached: the upstream\n".to_owned()));
    assert_eq!(asked("/healthz"), ok, "it does what it can");
}

#[test]
fn a_database_that_is_lost_is_logged_once_and_once_when_it_is_back() {
    let mut server = started();
    // With users of its own nobody asks the database before.
    let folder = testbed::Folder::new("users", None).unwrap();
    folder.place("hba.conf", "host all all all trust\n", None).unwrap();
    let way = testbed::Proxy::start(server.address()).unwrap();
    let url = format!("postgresql://{}/postgres", way.address());
    let mut proxy = crate::proxy_of(&url, &["--hba-file", folder.file("hba.conf").to_str().unwrap()]);
    at(proxy.address()).run("SELECT 1");
    server.kill9().unwrap();
    let refused = |proxy: &testbed::Forebay| {
        as_user(proxy.address(), "postgres")
            .err()
            .map(|error| error.sqlstate().to_owned())
    };
    while refused(&proxy).as_deref() != Some("08006") {}
    for _ in 0..5 {
        assert_eq!(refused(&proxy).as_deref(), Some("08006"));
    }
    server.restart().unwrap();
    way.lead_to(server.address());
    while as_user(proxy.address(), "postgres").is_err() {}
    let back = |output: &str| output.contains("the database is back").then_some(());
    proxy.wait_for_output(PATIENCE, back).unwrap();
    let output = proxy.output();
    let count = |said: &str| output.matches(said).count();
    assert_eq!(count("the database cannot be reached"), 1, "{output}");
    assert_eq!(count("the database is back"), 1, "{output}");
    assert_eq!(count("login failed"), 0, "{output}");
    let failed = proxy.metric("forebay_logins_failed_total").unwrap();
    assert!(failed >= Some(6.0), "they are counted: {failed:?}");
}

#[test]
fn a_start_with_nobody_behind_says_so_and_when_somebody_is() {
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut proxy = crate::proxy_of(&format!("postgresql://{address}/app"), &[]);
    let told = |said: &'static str| move |output: &str| output.contains(said).then_some(());
    proxy
        .wait_for_output(PATIENCE, told("the database cannot be reached"))
        .unwrap();
    // No client comes meanwhile.
    let _somebody = std::net::TcpListener::bind(address).unwrap();
    proxy.wait_for_output(PATIENCE, told("the database is back")).unwrap();
}

#[test]
fn clients_come_by_a_socket_too() {
    let folder = testbed::Folder::new("socket", None).unwrap();
    let proxy = proxy(postgres(), &["--socket-folder", folder.path().to_str().unwrap()]);
    let path = folder.file(&format!(".s.PGSQL.{}", proxy.address().port()));
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let who = crate::client::startup(&[("user", "trusted"), ("database", "postgres")]);
    let said = [
        who,
        crate::client::query("SELECT 'by socket'"),
        crate::client::message(b'X', b""),
    ]
    .concat();
    std::io::Write::write_all(&mut stream, &said).unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    assert!(answer.windows(9).any(|window| window == b"by socket"), "{answer:?}");
}
