//! Connecting: every way to be let in and to be encrypted, beside what the `mariadb` client says of the same.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use forebay_mysql_link::config::{Endpoint, TlsOptions};
use forebay_mysql_link::{Config, ConnectError, Connector, Link, Packet, TextRow, connect};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use testbed::MariaDb;

const PASSWORD: &str = "se'cr@t\u{e9}";
const USERS: [&str; 6] = ["native", "ed25519", "open", "encrypted", "certified", "nobody"];

/// A server with TLS, and users by how they are let in.
struct Server {
    mariadb: MariaDb,
    files: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let files = tempfile::tempdir().unwrap();
        std::fs::set_permissions(files.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (ca, ca_pem) = authority("Forebay's tests");
        let (_, stranger_pem) = authority("somebody else");
        let server = certificate(&ca, "localhost");
        let client = certificate(&ca, "certified");
        for (name, text) in [
            ("ca.pem", &ca_pem),
            ("stranger.pem", &stranger_pem),
            ("server.pem", &server.0),
            ("server.key", &server.1),
            ("client.pem", &client.0),
            ("client.key", &client.1),
        ] {
            std::fs::write(files.path().join(name), text).unwrap();
        }
        let file = |name: &str| files.path().join(name).display().to_string();
        let mariadb = MariaDb::builder()
            .setting("ssl-ca", &file("ca.pem"))
            .setting("ssl-cert", &file("server.pem"))
            .setting("ssl-key", &file("server.key"))
            .setting("plugin-load-add", "auth_ed25519")
            .start()
            .expect("MariaDB starts");
        Self { mariadb, files }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    async fn make_users(&self) {
        let mut link = connect(&self.mariadb.url().parse().unwrap()).await.unwrap();
        let password = PASSWORD.replace('\'', "''");
        for sql in [
            format!("CREATE USER native IDENTIFIED BY '{password}'"),
            format!("CREATE USER ed25519 IDENTIFIED VIA ed25519 USING PASSWORD('{password}')"),
            "CREATE USER open".to_owned(),
            format!("CREATE USER encrypted IDENTIFIED BY '{password}' REQUIRE SSL"),
            format!("CREATE USER certified IDENTIFIED BY '{password}' REQUIRE X509"),
        ] {
            value(&mut link, &sql).await.unwrap();
        }
    }

    fn config(&self, user: &str, host: &str) -> Config {
        let mut config = Config::default();
        config.endpoint = match host {
            "socket" => Endpoint::Unix(self.mariadb.folder().join("data/socket")),
            host => Endpoint::Tcp(host.to_owned(), self.mariadb.address().port()),
        };
        config.user = Some(user.to_owned());
        config.password = (user != "open").then(|| forebay_mysql_link::config::Password(PASSWORD.to_owned()));
        config
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

/// The first value of the first row, or the error's number.
async fn value(link: &mut Link, sql: &str) -> Result<String, u16> {
    link.outbox().query(sql).unwrap();
    let mut told = Ok(String::new());
    loop {
        match link.next().await.unwrap() {
            Packet::Row(bytes) => {
                let value = TextRow::new(bytes, 1).next().unwrap().unwrap().unwrap_or_default();
                told = Ok(String::from_utf8(value.to_vec()).unwrap());
            }
            Packet::Error(error) => told = Err(error.code),
            _ => {}
        }
        if !link.is_in_answer() {
            return told;
        }
    }
}

const SESSION: &str = "SELECT CONCAT(SUBSTRING_INDEX(USER(), '@', 1), ' ', IF(VARIABLE_VALUE = '', 'clear', 'encrypted')) \
     FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'";

/// What the `mariadb` client says: as whom it was let in, and whether encrypted; or nothing.
fn mariadb(config: &Config, options: &[String]) -> Option<String> {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--batch", "--skip-column-names", "--execute", SESSION]);
    match &config.endpoint {
        Endpoint::Tcp(host, port) => command.args(["--protocol=tcp", "--host", host, "--port", &port.to_string()]),
        Endpoint::Unix(file) => command.args(["--protocol=socket", "--socket", &file.display().to_string()]),
    };
    command.args(["--user", config.user.as_deref().unwrap()]);
    if let Some(password) = &config.password {
        command.arg(format!("--password={}", password.0));
    }
    let told = command
        .args(options)
        .env("HOME", "/nonexistent")
        .output()
        .expect("mariadb is installed with MariaDB");
    told.status
        .success()
        .then(|| String::from_utf8(told.stdout).unwrap().trim().to_owned())
}

/// Ways to be encrypted: ours, and the options of the `mariadb` client that say the same.
fn ways(server: &Server) -> Vec<(&'static str, Option<TlsOptions>, Vec<String>)> {
    let file = |name: &str| server.file(name);
    let option = |name: &str, given: &str| format!("--{name}={}", file(given).display());
    let ours = || TlsOptions::new().built_in_roots(false);
    let verify = "--ssl-verify-server-cert".to_owned();
    let certificate = |tls: TlsOptions| tls.client_certificate(file("client.pem"), file("client.key"));
    vec![
        ("clear", None, vec!["--skip-ssl".to_owned()]),
        ("unverified", Some(ours().verify_ca(false)), vec!["--ssl".to_owned()]),
        (
            "of the name",
            Some(ours().root_certificates(file("ca.pem"))),
            vec![option("ssl-ca", "ca.pem"), verify.clone()],
        ),
        (
            "by a stranger",
            Some(ours().root_certificates(file("stranger.pem"))),
            vec![option("ssl-ca", "stranger.pem"), verify.clone()],
        ),
        (
            "with a certificate",
            Some(certificate(ours().root_certificates(file("ca.pem")))),
            vec![
                option("ssl-ca", "ca.pem"),
                option("ssl-cert", "client.pem"),
                option("ssl-key", "client.key"),
                verify,
            ],
        ),
    ]
}

/// Every user and way: who is let in by the `mariadb` client is let in here, encrypted where it is.
#[tokio::test]
async fn who_is_let_in_and_encrypted_is_as_the_mariadb_client_says() {
    let server = server().await;
    let (mut compared, mut let_in, mut different) = (0, 0, Vec::new());
    for host in ["localhost", "127.0.0.1", "socket"] {
        for user in USERS {
            for (way, tls, options) in ways(server) {
                // The client encrypts there as well, where nobody is kept out by that.
                if host == "socket" && way != "clear" {
                    continue;
                }
                let mut config = server.config(user, host);
                config.tls = tls;
                let expected = mariadb(&config, &options);
                let ours = match connect(&config).await {
                    Ok(mut link) => Ok(value(&mut link, SESSION).await.unwrap()),
                    Err(error) => Err(error.to_string()),
                };
                compared += 1;
                let_in += usize::from(expected.is_some());
                if ours.as_ref().ok() != expected.as_ref() {
                    different.push(format!("{host} {user} {way}: mariadb {expected:?}, here {ours:?}"));
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
async fn whose_certificate_it_is_matters_as_far_as_it_is_asked() {
    let server = server().await;
    let trusted = || TlsOptions::new().root_certificates(std::fs::read(server.file("ca.pem")).unwrap());
    for (tls, host, is_let_in) in [
        (trusted(), "localhost", true),
        (trusted(), "127.0.0.1", false),
        (trusted().server_name("localhost"), "127.0.0.1", true),
        (trusted().verify_identity(false), "127.0.0.1", true),
        (TlsOptions::new(), "localhost", false),
        (TlsOptions::new().verify_identity(false), "localhost", false),
        (TlsOptions::new().verify_ca(false), "127.0.0.1", true),
    ] {
        let mut config = server.config("encrypted", host);
        config.tls = Some(tls.clone());
        match connect(&config).await {
            Ok(mut link) => {
                assert!(is_let_in, "{host} {tls:?}");
                assert_eq!(value(&mut link, SESSION).await.unwrap(), "encrypted encrypted");
                // Longer than what TLS sends at once.
                let long = value(&mut link, "SELECT REPEAT('x', 300000)").await.unwrap();
                assert_eq!(long.len(), 300_000);
            }
            Err(error) => assert!(
                !is_let_in && matches!(error, ConnectError::Tls(_)),
                "{host} {tls:?}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn files_that_are_no_certificates_are_named() {
    for file in ["/nonexistent/ca.pem", "/dev/null"] {
        let mut config = Config::default();
        config.tls = Some(TlsOptions::new().root_certificates(file));
        let told = Connector::new(config).unwrap_err();
        assert!(
            matches!(&told, ConnectError::Tls(told) if told.contains(file)),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_in_clear() {
    let plain = MariaDb::builder().setting("ssl", "OFF").start().unwrap();
    let url = format!("{}?require_ssl=true&verify_ca=false", plain.url());
    let told = connect(&url.parse().unwrap()).await;
    assert!(matches!(told, Err(ConnectError::Tls(_))), "{told:?}");
    let told = connect(&"mysql://root@127.0.0.1:1".parse().unwrap()).await.unwrap_err();
    assert!(
        matches!(told, ConnectError::Unreachable(_)) && told.is_passing(),
        "{told:?}"
    );
    let url = plain.url().replace("root@", "nobody:x@");
    let told = connect(&url.parse().unwrap()).await.unwrap_err();
    assert!(
        matches!(&told, ConnectError::Server(error) if error.code == 1045) && !told.is_passing(),
        "{told:?}"
    );
}
