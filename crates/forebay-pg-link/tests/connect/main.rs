//! Connecting: every way to be let in and to be encrypted, beside what `psql` says of the same URL.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod hosts;
mod proofs;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use forebay_pg_link::{Config, ConnectError, Link, ServerError, Tag, connect};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use testbed::Postgres;

/// A server with TLS, and who is let in how.
struct Server {
    postgres: Postgres,
    files: tempfile::TempDir,
}

/// Users are named by how they are let in.
const LINES: &str = "
local     all all                      trust
host      all trusted     127.0.0.1/32 trust
host      all scram       127.0.0.1/32 scram-sha-256
hostssl   all scram_tls   127.0.0.1/32 scram-sha-256
host      all hashed      127.0.0.1/32 md5
host      all clear       127.0.0.1/32 password
hostssl   all certified   127.0.0.1/32 cert
hostssl   all encrypted   127.0.0.1/32 trust
hostnossl all unencrypted 127.0.0.1/32 trust
";
const USERS: [&str; 9] = [
    "trusted",
    "scram",
    "scram_tls",
    "hashed",
    "clear",
    "certified",
    "encrypted",
    "unencrypted",
    "nobody",
];
const PASSWORD: &str = "se'cr@t\u{e9}";

impl Server {
    fn start() -> Self {
        let files = tempfile::tempdir().unwrap();
        let (ca, ca_pem) = authority("Forebay's tests");
        let (_, stranger_pem) = authority("somebody else");
        let server = certificate(&ca, "localhost");
        let client = certificate(&ca, "certified");
        for (name, text) in [
            ("ca.pem", &ca_pem),
            ("stranger.pem", &stranger_pem),
            ("client.pem", &client.0),
            ("client.key", &client.1),
        ] {
            std::fs::write(files.path().join(name), text).unwrap();
        }
        // As libpq wants it.
        use std::os::unix::fs::PermissionsExt;
        let key = files.path().join("client.key");
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let postgres = Postgres::builder()
            .tls(&server.0, &server.1)
            .client_roots(&ca_pem)
            .host_based_authentication(LINES)
            .start()
            .expect("PostgreSQL starts");
        Self { postgres, files }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    async fn make_users(&self) {
        let mut link = connect(&self.postgres.url().parse().unwrap()).await.unwrap();
        let password = PASSWORD.replace('\'', "''");
        for user in &USERS[..8] {
            let encryption = if *user == "hashed" { "md5" } else { "scram-sha-256" };
            command(&mut link, &format!("SET password_encryption = '{encryption}'")).await;
            command(&mut link, &format!("CREATE ROLE {user} LOGIN PASSWORD '{password}'")).await;
        }
    }
}

/// One server for all tests of this file.
async fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static USERS_MADE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let server = SERVER.get_or_init(Server::start);
    USERS_MADE.get_or_init(|| server.make_users()).await;
    server
}

fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    (Issuer::new(parameters, key), pem)
}

/// Chain and key of a certificate for a name.
fn certificate(authority: &Issuer<'_, KeyPair>, name: &str) -> (String, String) {
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

async fn connect_to(text: &str) -> Result<Link, String> {
    let config: Config = text.parse().map_err(|error| format!("{error}"))?;
    connect(&config).await.map_err(|error| error.to_string())
}

/// The first value of the first row, or the error's code.
async fn value(link: &mut Link, sql: &str) -> Result<String, String> {
    link.outbox().query(sql).unwrap();
    let mut told = Ok(String::new());
    loop {
        let message = link.answer().await.unwrap();
        match message.tag() {
            Tag::DATA_ROW => {
                let value = message.row().unwrap().next().flatten().unwrap_or_default();
                told = Ok(String::from_utf8(value.to_vec()).unwrap());
            }
            Tag::ERROR_RESPONSE => told = Err(ServerError::read(&message).unwrap().code),
            Tag::READY_FOR_QUERY => return told,
            _ => {}
        }
    }
}

async fn command(link: &mut Link, sql: &str) {
    value(link, sql).await.unwrap_or_else(|code| panic!("{sql}: {code}"));
}

const SESSION: &str =
    "SELECT current_user || ' ' || coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)";

/// What psql says of a server: as whom it was let in, and whether encrypted; or nothing.
fn psql(text: &str) -> Option<String> {
    let told = Command::new("psql")
        .args([
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--no-password",
            "--dbname",
            text,
        ])
        .args(["--command", SESSION])
        .env("HOME", "/nonexistent")
        .output()
        .expect("psql is installed with PostgreSQL");
    told.status
        .success()
        .then(|| String::from_utf8(told.stdout).unwrap().trim().to_owned())
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("'{}'", value.to_string().replace('\\', r"\\").replace('\'', r"\'"))
}

/// Every `sslmode`, way to be let in, and choice of certificates: who is let in by `psql` is let in here, encrypted where it is.
#[tokio::test]
async fn who_is_let_in_and_encrypted_is_as_psql_says() {
    let server = server().await;
    let port = server.postgres.address().port();
    let (mut compared, mut let_in, mut different) = (0, 0, Vec::new());
    for host in ["host=localhost hostaddr=127.0.0.1", "host=127.0.0.1"] {
        for user in USERS {
            for sslmode in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
                for roots in [None, Some("ca.pem"), Some("stranger.pem")] {
                    for channel_binding in ["disable", "prefer", "require"] {
                        // Only SCRAM binds, and only its users see a name.
                        let is_scram = user.starts_with("scram");
                        let is_named = host.contains("localhost");
                        if !is_scram && (!is_named || channel_binding == "disable")
                            || !is_named && channel_binding != "prefer"
                        {
                            continue;
                        }
                        let mut text = format!(
                            "{host} port={port} user={user} dbname=postgres sslmode={sslmode} channel_binding={channel_binding} \
                             password={} connect_timeout=20",
                            quoted(PASSWORD)
                        );
                        if let Some(roots) = roots {
                            text += &format!(" sslrootcert={}", quoted(server.file(roots).display()));
                        }
                        if user == "certified" {
                            let (chain, key) = (server.file("client.pem"), server.file("client.key"));
                            text += &format!(" sslcert={} sslkey={}", quoted(chain.display()), quoted(key.display()));
                        }
                        let expected = psql(&text);
                        // psql 15 knows no require_auth, and tells a password in clear.
                        let ours =
                            match connect_to(&format!("{text} require_auth='none,password,md5,scram-sha-256'")).await {
                                Ok(mut link) => Ok(value(&mut link, SESSION).await.unwrap()),
                                Err(error) => Err(error),
                            };
                        compared += 1;
                        let_in += usize::from(expected.is_some());
                        if ours.as_ref().ok() != expected.as_ref() {
                            different.push(format!("{text}\n  psql {expected:?}, here {ours:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(
        different.is_empty(),
        "{} of {compared}:\n{}",
        different.len(),
        different.join("\n")
    );
    assert!(
        let_in > compared / 4 && let_in < compared,
        "{let_in} of {compared} were let in"
    );
}

#[tokio::test]
async fn what_insists_on_tls_gets_it_or_nothing() {
    let plain = Postgres::start().unwrap();
    for sslmode in ["require", "verify-full"] {
        let url = format!("{}?sslmode={sslmode}", plain.url());
        let config: Config = url.parse().unwrap();
        assert!(matches!(connect(&config).await, Err(ConnectError::Tls(_))), "{sslmode}");
    }
    for sslmode in ["disable", "allow", "prefer"] {
        connect_to(&format!("{}?sslmode={sslmode}", plain.url())).await.unwrap();
    }
}

/// Servers know TLS without a question before it from version 17 on; others hang up.
#[tokio::test]
async fn tls_is_spoken_at_once_where_the_server_knows_that() {
    let server = server().await;
    let mut link = connect_to(&server.postgres.url()).await.unwrap();
    let version: u32 = value(&mut link, "SHOW server_version_num")
        .await
        .unwrap()
        .parse()
        .unwrap();
    let (port, ca) = (
        server.postgres.address().port(),
        quoted(server.file("ca.pem").display()),
    );
    let direct = format!(
        "host=localhost hostaddr=127.0.0.1 port={port} user=encrypted dbname=postgres sslmode=verify-full sslrootcert={ca} \
         sslnegotiation=direct"
    );
    match connect_to(&direct).await {
        Ok(mut link) => {
            assert!(version >= 170_000, "{version}");
            assert_eq!(value(&mut link, SESSION).await.unwrap(), "encrypted true");
        }
        Err(error) => assert!(version < 170_000, "{version}: {error}"),
    }
}
