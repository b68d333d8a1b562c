//! Who is let in: as the database itself says, and nobody by what only the proxy has.

use std::net::SocketAddr;

use testbed::Folder;

use crate::client::{Client, PATIENCE, query};
use crate::crowd::until;
use crate::reload::change_user;
use crate::{PASSWORD, as_user, at, postgres, proxy, proxy_of, started_with_users, straight};

fn config(address: SocketAddr, user: &str, database: &str) -> tokio_postgres::Config {
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(address.port())
        .user(user)
        .dbname(database);
    config
}

/// As whom one is let in, or what one is told.
pub(crate) async fn log_in(
    address: SocketAddr,
    user: &str,
    database: &str,
    password: Option<&str>,
) -> Result<String, String> {
    let mut config = config(address, user, database);
    if let Some(password) = password {
        config.password(password);
    }
    let told = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(error) => format!("{} {} {}", error.severity(), error.code().code(), error.message()),
        None => "its own error".to_owned(),
    };
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(told)?;
    let driven = tokio::spawn(connection);
    let row = client
        .query_one("SELECT current_user::text || ' ' || current_database()", &[])
        .await;
    let whom = row.map(|row| row.get(0)).map_err(told);
    drop(client);
    driven.await.unwrap().unwrap();
    whom
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_let_in_is_as_the_database_says() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    for user in ["scram", "hashed", "trusted", "nobody"] {
        for database in ["postgres", "nowhere"] {
            // Each twice: what was learnt of a user the first time decides the second.
            for password in [Some(PASSWORD), Some("wrong"), Some(PASSWORD), None, Some("")] {
                assert_eq!(
                    log_in(proxy.address(), user, database, password).await,
                    log_in(server.address(), user, database, password).await,
                    "{user} {database} {password:?}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_need_the_password_once() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    // In a transaction each, so that none shares.
    let mut clients = Vec::new();
    for user in ["scram", "hashed"] {
        for _ in 0..5 {
            let mut config = tokio_postgres::Config::new();
            config
                .host("127.0.0.1")
                .port(proxy.address().port())
                .user(user)
                .password(PASSWORD)
                .dbname("postgres");
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute("BEGIN").await.unwrap();
            clients.push(client);
        }
    }
    let open = proxy.metric("forebay_server_connections").unwrap();
    assert_eq!(open, Some(10.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_password_is_asked_for_at_the_database() {
    // Of its own, for it ends connections.
    let server = &started_with_users();
    let proxy = proxy(server, &[]);
    let me = |password: &'static str| log_in(proxy.address(), "changes", "postgres", Some(password));
    assert_eq!(me(PASSWORD).await.as_deref(), Ok("changes postgres"));
    straight(server).run("ALTER ROLE changes PASSWORD 'another'");
    assert_eq!(
        me("another").await.as_deref(),
        Ok("changes postgres"),
        "the new one holds at once"
    );
    assert!(me(PASSWORD).await.is_err(), "and the old one no more");
    straight(server).run("ALTER ROLE changes NOLOGIN");
    straight(server).run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'changes'");
    while straight(server).ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'changes'") != "0" {}
    // There is no connection any more, and none can be made: what was known is forgotten with that.
    let refused = me("another").await.unwrap_err();
    assert!(
        refused.contains("28000") && refused.contains("not permitted to log in"),
        "{refused}"
    );
    assert!(me("another").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_the_database_wants_in_clear_is_not_kept_and_so_refused() {
    let proxy = proxy(postgres(), &[]);
    let refused = log_in(proxy.address(), "clear", "postgres", Some(PASSWORD))
        .await
        .unwrap_err();
    assert!(
        refused.starts_with("FATAL 28000") || refused.starts_with("FATAL 08006"),
        "{refused}"
    );
    assert!(refused.contains("in clear"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_proxy_can_prove_the_client_must_prove_too() {
    let server = postgres();
    let encoded = "se%27cr%40t%C3%A9";
    let url = format!("postgresql://scram:{encoded}@{}/postgres", server.address());
    let proxy = proxy_of(&url, &[]);
    let me = |user: &'static str, password: Option<&'static str>| log_in(proxy.address(), user, "postgres", password);
    assert_eq!(me("scram", Some(PASSWORD)).await.as_deref(), Ok("scram postgres"));
    assert!(me("scram", Some("wrong")).await.unwrap_err().contains("28P01"));
    assert!(me("scram", None).await.is_err());
    // Others are themselves.
    assert_eq!(me("hashed", Some(PASSWORD)).await.as_deref(), Ok("hashed postgres"));
    assert!(me("hashed", None).await.is_err());
    let trusting = proxy_of(&url, &["--trust-loopback"]);
    let whom = log_in(trusting.address(), "scram", "postgres", None).await;
    assert_eq!(whom.as_deref(), Ok("scram postgres"));
    assert!(log_in(trusting.address(), "hashed", "postgres", None).await.is_err());
}

/// Over a socket the server sees who runs the proxy, and not who its client is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_a_socket_lets_in_is_no_proof_of_the_client() {
    let server = testbed::Postgres::builder()
        .setting("unix_socket_directories", ".")
        .start()
        .unwrap_or_else(|error| panic!("{error}"));
    let folder = server.folder().join("data");
    let folder = folder.to_str().unwrap();
    let url = format!("postgresql:///postgres?host={folder}&port={}", server.address().port());
    let proxy = proxy_of(&url, &[]);
    let refused = log_in(proxy.address(), "postgres", "postgres", None).await.unwrap_err();
    assert!(refused.starts_with("FATAL 28000"), "{refused}");
    let trusting = proxy_of(&url, &["--trust-loopback"]);
    let whom = log_in(trusting.address(), "postgres", "postgres", None).await;
    assert_eq!(whom.as_deref(), Ok("postgres postgres"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_its_own_are_proven_and_the_database_asked_by_their_keys() {
    let server = postgres();
    // The verifier that the database itself keeps: no password is in the file.
    let verifier = straight(server).ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'scram'");
    let folder = Folder::new("users", None).unwrap();
    let file = folder.file("users");
    std::fs::write(&file, format!("scram:{verifier}\n")).unwrap();
    let proxy = proxy(server, &["--users", file.to_str().unwrap()]);
    let me = |user: &'static str, password: Option<&'static str>| log_in(proxy.address(), user, "postgres", password);
    assert_eq!(me("scram", Some(PASSWORD)).await.as_deref(), Ok("scram postgres"));
    assert!(me("scram", Some("wrong")).await.unwrap_err().contains("28P01"));
    assert!(
        me("trusted", Some(PASSWORD)).await.unwrap_err().contains("28P01"),
        "not in the file"
    );
}

/// What a client is told that is refused: its SQLSTATE, detail and hint.
async fn refused_with(address: SocketAddr, user: &str, database: &str, password: &str) -> [Option<String>; 3] {
    let mut config = config(address, user, database);
    let Err(error) = config.password(password).connect(tokio_postgres::NoTls).await else {
        panic!("{user} is let in")
    };
    let error = error.as_db_error().expect("the server says why");
    let owned = |text: Option<&str>| text.map(str::to_owned);
    [
        Some(error.code().code().to_owned()),
        owned(error.detail()),
        owned(error.hint()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_the_proxy_lets_in_and_the_database_does_not_is_told_logged_and_counted() {
    let server = postgres();
    let folder = Folder::new("users", None).unwrap();
    let file = folder.file("users");
    // With a password that the database does not know, or as nobody whom it knows.
    for user in ["scram", "infileonly", "trusted"] {
        change_user(&file, "add", user);
    }
    let arguments = ["--users", file.to_str().unwrap(), "--max-user-connections", "1"];
    let mut proxy = proxy(server, &arguments);
    let address = proxy.address();
    let mut failed = 0.0;
    let mut is_counted_and_logged = |proxy: &mut testbed::Forebay, said: &str| {
        failed += 1.0;
        let logged = |output: &str| {
            output
                .lines()
                .any(|line| line.contains("WARN") && line.contains("login failed") && line.contains(said))
                .then_some(())
        };
        proxy.wait_for_output(PATIENCE, logged).unwrap();
        assert_eq!(proxy.metric("forebay_logins_failed_total").unwrap(), Some(failed));
    };
    // Who has proven nothing is told no more than by any server.
    let [code, detail, hint] = refused_with(address, "scram", "postgres", "wrong").await;
    assert_eq!((code.as_deref(), detail, hint), (Some("28P01"), None, None));
    is_counted_and_logged(&mut proxy, "password authentication failed");
    let [code, detail, hint] = refused_with(address, "scram", "postgres", "secret").await;
    assert_eq!(code.as_deref(), Some("28P01"));
    assert!(
        detail
            .unwrap()
            .contains("the database refused the proxy as user \"scram\"")
    );
    assert!(hint.unwrap().contains("rolpassword"));
    is_counted_and_logged(&mut proxy, "the database refused the proxy as \\\"scram\\\"");
    let [code, ..] = refused_with(address, "infileonly", "postgres", "secret").await;
    assert_eq!(code.as_deref(), Some("28000"));
    is_counted_and_logged(&mut proxy, "infileonly");
    let [code, _, hint] = refused_with(address, "trusted", "nowhere", "secret").await;
    assert_eq!((code.as_deref(), hint), (Some("3D000"), None));
    is_counted_and_logged(&mut proxy, "nowhere");
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(address.port())
        .user("trusted")
        .password("secret")
        .dbname("postgres");
    let (_client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let [code, ..] = refused_with(address, "trusted", "postgres", "secret").await;
    assert_eq!(code.as_deref(), Some("53300"));
    is_counted_and_logged(&mut proxy, "too many connections for role");
    // Nor who is let in for where it comes from.
    folder.place("hba.conf", "host all all all trust\n", None).unwrap();
    let file = folder.file("hba.conf");
    let mut trusting = crate::proxy(server, &["--hba-file", file.to_str().unwrap()]);
    let [code, detail, hint] = refused_with(trusting.address(), "scram", "postgres", "secret").await;
    assert_eq!((code.as_deref(), detail, hint), (Some("28000"), None, None));
    let logged = |output: &str| {
        output
            .contains("refused the proxy as \\\"scram\\\": the server asks for a password")
            .then_some(())
    };
    trusting.wait_for_output(PATIENCE, logged).unwrap();
}

#[test]
fn a_session_begins_as_the_servers_own() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let (straight, through) = (straight(server), at(proxy.address()));
    assert_eq!(straight.settings, through.settings);
    let refused = |address| {
        let parameters = [("user", "trusted"), ("database", "postgres"), ("work_mem", "lots")];
        Client::connect_with(address, &parameters).unwrap_err()
    };
    assert_eq!(refused(server.address()).message(), refused(proxy.address()).message());
    assert!(as_user(proxy.address(), "trusted").is_ok());
    // Whose name is told in the encoding that was asked for: one that is not UTF-8.
    let mut itself = self::straight(server);
    itself.run("CREATE ROLE \"ren\u{e9}\" LOGIN");
    let session = |address| {
        let parameters = [
            ("user", "ren\u{e9}"),
            ("database", "postgres"),
            ("client_encoding", "LATIN1"),
        ];
        let mut client = Client::connect_with(address, &parameters).expect("a session");
        let told = client.query("SELECT current_user").messages;
        (client.settings, told)
    };
    assert_eq!(session(server.address()), session(proxy.address()));
    itself.run("DROP ROLE \"ren\u{e9}\"");
}

/// Who logs in is the role that is called so now, whatever role was called so when the connections were made; and who was that one before is told that he is not any more.
#[test]
fn who_logs_in_is_who_is_called_so_now() {
    let server = started_with_users();
    let server = &server;
    let mut itself = straight(server);
    const MINE: &str = "SELECT current_user || ' ' || session_user || ' ' || who FROM called_rows";
    for arguments in [&["--sharing=false"][..], &[]] {
        itself.run("CREATE ROLE called LOGIN; CREATE TABLE called_rows AS SELECT unnest(ARRAY['called', 'called_before']) AS who");
        itself.run("ALTER TABLE called_rows ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON called_rows USING (who = current_user)");
        itself.run("GRANT SELECT ON called_rows TO called");
        let proxy = proxy(server, arguments);
        let address = proxy.address();
        let mut before = as_user(address, "called").unwrap();
        let called = "called called called";
        assert_eq!(before.ask(MINE), called);
        itself.run("ALTER ROLE called RENAME TO called_before");
        // It is so a second later at the latest.
        let refused = || {
            as_user(address, "called")
                .err()
                .map(|failure| failure.sqlstate().to_owned())
        };
        until("nobody is called so", || refused().as_deref() == Some("28000"));
        itself.run("CREATE ROLE called LOGIN; GRANT SELECT ON called_rows TO called");
        let mut now = as_user(address, "called").unwrap();
        assert_eq!(now.ask(MINE), called);
        before.send(&query("SELECT 1"));
        let last = before.last_words().pop().expect("a word").failure();
        assert_eq!(last.sqlstate(), "28000");
        itself.run("DROP OWNED BY called, called_before; DROP ROLE called, called_before");
        itself.run("CREATE ROLE called LOGIN; GRANT SELECT ON called_rows TO called");
        until("it is another", || {
            as_user(address, "called").is_ok_and(|mut client| client.query(MINE).sqlstate() == "00000")
        });
        assert_eq!(as_user(address, "called").unwrap().ask(MINE), called);
        itself.run("DROP TABLE called_rows; DROP ROLE called");
    }
}
