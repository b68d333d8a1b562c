//! Passwords and TLS.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use testbed::Folder;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, PATIENCE, message, query, startup};
use crate::{PROGRAM, server};

/// A users file with one user.
fn users(folder: &Folder, name: &str, password: &str) -> PathBuf {
    let file = folder.file("users");
    let mut adding = Command::new(PROGRAM)
        .args(["user", "add", name, "--users"])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    adding.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
    assert!(adding.wait().unwrap().success());
    file
}

async fn log_in(address: std::net::SocketAddr, user: &str, password: Option<&str>) -> Result<i64, String> {
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(address.port())
        .user(user)
        .dbname("forebay");
    if let Some(password) = password {
        config.password(password);
    }
    let state = |error: tokio_postgres::Error| {
        error
            .code()
            .map_or_else(|| error.to_string(), |state| state.code().to_owned())
    };
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(state)?;
    tokio::spawn(connection);
    let rows = client.simple_query("SELECT 1").await.map_err(state)?;
    let value = rows.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    value.ok_or_else(|| "no row".to_owned())
}

#[tokio::test]
async fn only_the_right_password_gets_in() {
    let folder = Folder::new("users", None).unwrap();
    let file = users(&folder, "anna", "secret\n");
    let server = server(&["--users", file.to_str().unwrap()]);
    let address = server.address();
    assert_eq!(log_in(address, "anna", Some("secret")).await, Ok(1));
    for (user, password) in [
        ("anna", "Secret"),
        ("anna", ""),
        ("anna", "secret "),
        ("bert", "secret"),
        ("ANNA", "secret"),
    ] {
        // An unknown user and a wrong password are told alike.
        assert_eq!(
            log_in(address, user, Some(password)).await,
            Err("28P01".to_owned()),
            "{user} {password:?}"
        );
    }
    assert!(log_in(address, "anna", None).await.is_err());
    for user in ["anna", "bert"] {
        let begun = std::time::Instant::now();
        // The client is told first, and then the log.
        let line = loop {
            let log = server.output();
            let mut lines = log.lines();
            if let Some(line) = lines.find(|line| line.contains("login failed") && line.contains(user)) {
                break line.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "nobody is told of {user}: {log}");
        };
        assert!(line.contains("WARN") && line.contains("127.0.0.1:"), "{line}");
    }
    // Statements before the password is given; another method than the one that is asked for.
    for bytes in [
        query("SELECT 1"),
        message(b'p', b"secret\0"),
        message(b'p', b"SCRAM-SHA-256-PLUS\0\0\0\0\0"),
        message(b'S', b""),
    ] {
        let mut client = Client::raw(address);
        client.send(&[startup(&[("user", "anna")]), bytes.clone()].concat());
        let words = client.last_words();
        assert!(
            words.iter().all(|word| b"RE".contains(&word.kind)),
            "{bytes:?}: {words:?}"
        );
        assert!(words.iter().any(|word| word.kind == b'E'), "{bytes:?}: {words:?}");
    }
    assert_eq!(log_in(address, "anna", Some("secret")).await, Ok(1));
}

#[test]
fn who_is_not_in_yet_cannot_make_the_server_hold_much() {
    let folder = Folder::new("users", None).unwrap();
    let file = users(&folder, "anna", "secret\n");
    let server = server(&["--users", file.to_str().unwrap()]);
    let mut client = Client::raw(server.address());
    client.send(&startup(&[("user", "anna")]));
    // A password of a gigabyte, announced.
    client.send(b"p\x3f\xff\xff\xff");
    assert!(client.last_words().iter().any(|word| word.kind == b'E'));
}

#[test]
fn tls_is_spoken_where_there_is_a_certificate() {
    let folder = Folder::new("tls", None).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.file("certificate.pem"), folder.file("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = server(&[
        "--tls-certificate",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let config = Arc::new(
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    );
    let ssl_request = [0, 0, 0, 8, 4, 210, 22, 47];
    let encrypted = |sent_ahead: &[u8]| {
        let mut client = Client::raw(server.address());
        client.send(&[&ssl_request, sent_ahead].concat());
        let mut answer = [0];
        std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
        assert_eq!(&answer, b"S");
        let connection = ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(connection, client.stream)
    };
    let mut stream = encrypted(b"");
    stream
        .write_all(&[startup(&[]), query("SELECT 'over TLS'"), message(b'X', b"")].concat())
        .unwrap();
    let mut answer = Vec::new();
    // The server hangs up behind Terminate; how politely is of no interest.
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert!(answer.windows(8).any(|window| window == b"over TLS"), "{answer:?}");
    // Sent in the clear behind the request, as a man in the middle would: never read as if it had come through TLS.
    let mut stream = encrypted(&[startup(&[]), query("CREATE TABLE injected (a INTEGER)")].concat());
    assert!(stream.write_all(&startup(&[])).and_then(|()| stream.flush()).is_err());
    // Without TLS too, and garbage in its place harms nobody.
    let mut garbage = Client::raw(server.address());
    garbage.send(&[&[0x16, 3, 1, 255, 255], &[7; 300][..]].concat());
    let mut client = Client::connect(server.address());
    assert_eq!(client.query("SELECT * FROM injected").sqlstate(), "42P01");
    // Where TLS is required, it works and nothing else does; a cancel request is nobody's secret.
    let strict = crate::server(&[
        "--tls-certificate",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
        "--require-tls",
    ]);
    let refusal = Client::connect_with(strict.address(), &[]).unwrap_err();
    assert_eq!((refusal.sqlstate(), refusal.field(b'S')), ("28000", Some("FATAL")));
    assert!(refusal.message().contains("TLS"), "{refusal:?}");
    let mut client = Client::raw(strict.address());
    client.send(&ssl_request);
    let mut answer = [0];
    std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
    let connection = ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, client.stream);
    stream
        .write_all(&[startup(&[]), query("SELECT 'strictly'"), message(b'X', b"")].concat())
        .unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert!(answer.windows(8).any(|window| window == b"strictly"), "{answer:?}");
    // Where there is no certificate the request is declined, and the client may go on in the clear.
    let plain = crate::server(&[]);
    let mut client = Client::raw(plain.address());
    client.send(&ssl_request);
    let mut answer = [0];
    std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
    assert_eq!(&answer, b"N");
    client.send(&startup(&[]));
    client.answer();
    assert_eq!(client.ask("SELECT 1"), "1");
}

#[test]
fn a_certificate_is_read_anew_and_who_is_connected_stays() {
    let folder = Folder::new("tls", None).unwrap();
    let (certificate, key) = (folder.file("certificate.pem"), folder.file("key.pem"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        Arc::new(config.with_no_client_auth())
    };
    let first = renew();
    let mut server = server(&[
        "--tls-certificate",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    let address = server.address();
    let connect = |config: &Arc<ClientConfig>| {
        let mut client = Client::raw(address);
        client.send(&[0, 0, 0, 8, 4, 210, 22, 47]);
        let mut answer = [0];
        std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
        let connection = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, client.stream);
        stream.write_all(&startup(&[])).and_then(|()| stream.flush())?;
        // The end of the handshake is in what comes.
        std::io::Read::read_exact(&mut stream, &mut answer)?;
        std::io::Result::Ok(stream)
    };
    let mut stays = connect(&first).unwrap();
    let second = renew();
    assert!(connect(&second).is_err(), "not before it is told");
    server.signal(libc::SIGHUP).unwrap();
    let done = |output: &str| output.contains("options are read anew").then_some(());
    server.wait_for_output(PATIENCE, done).unwrap();
    assert!(connect(&first).is_err());
    assert!(connect(&second).is_ok());
    stays
        .write_all(&[query("SELECT 'as before'"), message(b'X', b"")].concat())
        .unwrap();
    let mut answer = Vec::new();
    // The server hangs up behind Terminate; how politely is of no interest.
    let _ = std::io::Read::read_to_end(&mut stays, &mut answer);
    assert!(answer.windows(9).any(|window| window == b"as before"), "{answer:?}");
}
