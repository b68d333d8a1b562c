//! Several hosts, and what a session must be like; sockets that are files.

use forebay_pg_link::{Config, ConnectError, connect};
use testbed::{Behaviour, FreePort, Postgres, Proxy};

use super::{connect_to, value};

#[tokio::test]
async fn the_first_host_that_is_as_wanted_is_taken() {
    let primary = Postgres::start().unwrap();
    let standby = Postgres::builder().standby().start().unwrap();
    let reader = Postgres::builder()
        .setting("default_transaction_read_only", "on")
        .start()
        .unwrap();
    let nobody = FreePort::find().unwrap();
    let [primary, standby, reader] = [&primary, &standby, &reader].map(|server| server.address().port());
    let names = |port: u16| match port {
        _ if port == primary => "primary",
        _ if port == standby => "standby",
        _ => "reader",
    };
    let all = [nobody.number(), standby, reader, primary];
    for (hosts, wanted, taken) in [
        (&all[..], "any", Some(standby)),
        (&all, "read-write", Some(primary)),
        (&all, "read-only", Some(standby)),
        (&all, "primary", Some(reader)),
        (&all, "standby", Some(standby)),
        (&all, "prefer-standby", Some(standby)),
        (&[reader, primary], "read-only", Some(reader)),
        (&[nobody.number(), primary], "prefer-standby", Some(primary)),
        (&[primary, nobody.number()], "standby", None),
        (&[standby, reader], "read-write", None),
        (&[nobody.number()], "any", None),
    ] {
        let hosts: Vec<String> = hosts.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let url = format!(
            "postgresql://postgres@{}/postgres?target_session_attrs={wanted}",
            hosts.join(",")
        );
        let found = match connect_to(&url).await {
            Ok(mut link) => Some(value(&mut link, "SHOW port").await.unwrap().parse().unwrap()),
            Err(_) => None,
        };
        assert_eq!(found.map(names), taken.map(names), "{url}");
    }
}

#[tokio::test]
async fn a_host_that_says_nothing_is_passed_over_and_one_that_refuses_the_user_is_not() {
    let server = Postgres::start().unwrap();
    let silent = Proxy::start(server.address()).unwrap();
    silent.set(Behaviour::Stall);
    let both = |database: &str| {
        format!(
            "postgresql://postgres@{},{}/{database}?connect_timeout=1",
            silent.address(),
            server.address()
        )
    };
    connect_to(&both("postgres")).await.unwrap();
    let turned = format!("postgresql://postgres@{},127.0.0.1:1/nowhere", server.address());
    let config: Config = turned.parse().unwrap();
    let refused = connect(&config).await.unwrap_err();
    assert!(
        matches!(&refused, ConnectError::Server(error) if error.code == "3D000"),
        "{refused}"
    );
    assert!(!refused.is_passing());
}

#[tokio::test]
async fn hosts_are_tried_in_an_order_of_chance_if_that_is_wanted() {
    let servers = [Postgres::start().unwrap(), Postgres::start().unwrap()];
    let hosts = servers.each_ref().map(|server| server.address().to_string()).join(",");
    let url = format!("postgresql://postgres@{hosts}/postgres?load_balance_hosts=random");
    let mut found = std::collections::HashSet::new();
    // One order 64 times in a row is one chance in 2^63.
    for _ in 0..64 {
        let mut link = connect_to(&url).await.unwrap();
        found.insert(value(&mut link, "SHOW port").await.unwrap());
    }
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn a_socket_that_is_a_file_is_connected_to() {
    let folder = tempfile::tempdir().unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = folder.path().to_str().unwrap();
    let server = Postgres::builder()
        .setting("unix_socket_directories", path)
        .start()
        .unwrap();
    let port = server.address().port();
    // There is nothing to encrypt, whatever is wanted.
    for sslmode in ["prefer", "verify-full"] {
        let text = format!("host={path} port={port} user=postgres dbname=postgres sslmode={sslmode}");
        let mut link = connect_to(&text).await.unwrap();
        assert_eq!(
            value(&mut link, "SELECT inet_client_addr() IS NULL").await.as_deref(),
            Ok("t")
        );
        let cancel = link.cancel_token();
        cancel.cancel().await.unwrap();
        link.close().await;
    }
    let gone = format!("host={path} port=1 user=postgres");
    let refused = connect(&gone.parse().unwrap()).await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::Unreachable { .. }) && refused.is_passing(),
        "{refused}"
    );
}
