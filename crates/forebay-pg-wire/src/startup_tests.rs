//! The handshake against every way to begin a connection, against hostile bytes, and with a real client library.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream as ClientTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};

use super::*;
use crate::backend::TransactionStatus;
use crate::gate::Users;
use crate::verifier::{StoredPassword, Verifier};

const ELSEWHERE: Origin = Origin::Address(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
const PATIENCE: Duration = Duration::from_secs(10);

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32 + 8).to_be_bytes().to_vec();
    packet.extend(code.to_be_bytes());
    packet.extend(body);
    packet
}

fn version(minor: u32) -> u32 {
    3 << 16 | minor
}

fn trusting() -> Handshake {
    Handshake::new(Authenticator::trust(), None, PATIENCE)
}

fn of_users<const N: usize>(users: [(String, StoredPassword); N], tls: Option<Tls>) -> Handshake {
    let authenticator = Authenticator::new(Arc::new(Users::new(users)), tls.as_ref());
    Handshake::new(authenticator, tls, PATIENCE)
}

fn anna() -> [(String, StoredPassword); 1] {
    let verifier = Verifier::from_password("correct horse");
    [("anna".to_owned(), StoredPassword::Scram(verifier))]
}

/// A certificate for `localhost` that signs itself: for the server, and in PEM.
fn certificate() -> (Tls, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (Tls::new(config, made.cert.pem().into_bytes()), made.cert.pem())
}

/// What the handshake makes of these bytes, sent at once, and what it answers until it ends.
async fn run(handshake: &Handshake, bytes: &[u8]) -> (Result<Opening<DuplexStream>, StartUpError>, Vec<u8>) {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    let mut opening = handshake.run(server, ELSEWHERE, None).await;
    let mut answer = Vec::new();
    // So that the answer ends.
    match &mut opening {
        Ok(Opening::Client(admitted)) => admitted.frames.stream_mut().shutdown().await.unwrap(),
        Ok(Opening::Cancel { connection, .. }) => {
            let mut room = [0; 1];
            let read = std::pin::pin!(client.read(&mut room));
            let polled = read.poll(&mut Context::from_waker(std::task::Waker::noop()));
            assert!(polled.is_pending(), "who asks waits until it is carried out");
            connection.shutdown().await.unwrap();
        }
        _ => {}
    }
    client.read_to_end(&mut answer).await.unwrap();
    (opening, answer)
}

async fn refused(bytes: &[u8]) -> WireError {
    let (opening, answer) = run(&trusting(), bytes).await;
    match opening {
        Err(StartUpError::Refused(error)) => {
            let mut told = BytesMut::new();
            error.encode(&mut told);
            assert!(error.is_fatal());
            assert!(answer.ends_with(&told), "the client was told");
            error
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_startup_message_names_user_database_and_parameters() {
    let bytes = packet(version(0), b"user\0anna\0database\0shop\0application_name\0psql\0\0");
    let (Ok(Opening::Client(client)), _) = run(&trusting(), &bytes).await else {
        panic!()
    };
    assert_eq!((client.user.as_str(), client.database.as_str()), ("anna", "shop"));
    assert_eq!(client.parameters, [("application_name".to_owned(), "psql".to_owned())]);
    assert_eq!((client.protocol_minor, client.secret_key_bytes()), (0, 4));
    assert_eq!(
        &client.output[..],
        b"R\0\0\0\x08\0\0\0\0",
        "AuthenticationOk, and no negotiation"
    );
    let (Ok(Opening::Client(client)), _) = run(&trusting(), &packet(version(2), b"user\0anna\0\0")).await else {
        panic!()
    };
    assert_eq!(client.database, "anna", "one's own name if none is given");
    assert_eq!((client.protocol_minor, client.secret_key_bytes()), (2, 32));
    assert_eq!(&client.output[..], b"R\0\0\0\x08\0\0\0\0");
}

#[tokio::test]
async fn names_are_cut_as_postgresql_cuts_them() {
    let [long, cut] = [80, 63].map(|count| "u".repeat(count));
    let umlauts = "ü".repeat(40);
    let bytes = packet(version(0), format!("user\0{long}\0database\0{umlauts}\0\0").as_bytes());
    let (Ok(Opening::Client(client)), _) = run(&trusting(), &bytes).await else {
        panic!()
    };
    assert_eq!((client.user, client.database), (cut, "ü".repeat(31)));
}

#[tokio::test]
async fn newer_minor_versions_and_unknown_options_are_negotiated() {
    let (Ok(Opening::Client(client)), _) = run(&trusting(), &packet(version(9999), b"user\0anna\0\0")).await else {
        panic!()
    };
    assert_eq!(
        &client.output[..],
        b"v\0\0\0\x0c\0\x03\0\x02\0\0\0\0R\0\0\0\x08\0\0\0\0"
    );
    assert_eq!(client.protocol_minor, 2);
    let bytes = packet(version(0), b"user\0anna\0_pq_.new\x001\0\0");
    let (Ok(Opening::Client(client)), _) = run(&trusting(), &bytes).await else {
        panic!()
    };
    assert_eq!(&client.output[..13 + 9], b"v\0\0\0\x15\0\x03\0\0\0\0\0\x01_pq_.new\0");
    assert!(client.parameters.is_empty(), "an unknown option is no parameter");
}

#[tokio::test]
async fn other_versions_and_malformed_packets_are_refused() {
    assert_eq!(refused(&packet(2 << 16, b"user\0anna\0\0")).await.sqlstate, "0A000");
    assert!(
        refused(&packet(2 << 16, b""))
            .await
            .message
            .contains("server supports 3.0 to 3.2")
    );
    assert_eq!(refused(&packet(4 << 16, b"user\0anna\0\0")).await.sqlstate, "0A000");
    for body in [
        &b""[..],
        b"user",
        b"user\0anna",
        b"user\0anna\0",
        b"user\0anna\0\0\0",
        b"user\0anna\0\0x",
    ] {
        assert_eq!(refused(&packet(version(0), body)).await.sqlstate, "08P01", "{body:?}");
    }
    assert_eq!(refused(&packet(version(0), b"\0")).await.sqlstate, "28000", "no user");
    assert_eq!(
        refused(&packet(version(0), b"user\0\0\0")).await.sqlstate,
        "28000",
        "no user"
    );
    assert_eq!(refused(&packet(version(0), b"user\0\xff\0\0")).await.sqlstate, "22021");
    assert_eq!(
        refused(&packet(version(0), b"user\0a\0replication\0database\0\0"))
            .await
            .sqlstate,
        "0A000"
    );
    assert_eq!(
        refused(&[0, 0, 0, 7]).await.sqlstate,
        "08P01",
        "shorter than its own header"
    );
    assert_eq!(refused(&[0, 0, 0x27, 0x11]).await.sqlstate, "08P01", "10,001 bytes");
    assert_eq!(refused(&[0x80, 0, 0, 0]).await.sqlstate, "08P01", "negative");
    assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n").await.sqlstate, "08P01");
    assert_eq!(
        refused(&[0x16, 3, 1, 0, 0, 0, 0]).await.sqlstate,
        "08P01",
        "direct TLS, but there is none"
    );
}

#[tokio::test]
async fn requests_for_encryption_are_answered_once_each() {
    let client = packet(version(0), b"user\0anna\0\0");
    let both = [packet(GSS_REQUEST, b""), packet(SSL_REQUEST, b""), client.clone()].concat();
    let (opening, answer) = run(&trusting(), &both).await;
    assert!(matches!(opening, Ok(Opening::Client(_))));
    assert_eq!(answer, b"NN");
    for request in [SSL_REQUEST, GSS_REQUEST] {
        let twice = [packet(request, b""), packet(request, b""), client.clone()].concat();
        assert_eq!(refused(&twice).await.sqlstate, "08P01", "not for ever");
        assert_eq!(refused(&packet(request, b"x")).await.sqlstate, "08P01", "no body");
    }
}

#[tokio::test]
async fn a_cancel_request_is_handed_on() {
    for key in [&b"\x01\x02\x03\x04"[..], &[7; 32]] {
        let (opening, answer) = run(&trusting(), &packet(CANCEL_REQUEST, &[b"\0\0\0\x2a", key].concat())).await;
        let Ok(Opening::Cancel {
            process_id, secret_key, ..
        }) = opening
        else {
            panic!("{opening:?}")
        };
        assert_eq!((process_id, &secret_key[..]), (42, key));
        assert!(answer.is_empty());
    }
    assert_eq!(
        refused(&packet(CANCEL_REQUEST, b"\0\0\0\x2a\x01")).await.sqlstate,
        "08P01",
        "a short key"
    );
    assert_eq!(
        refused(&packet(CANCEL_REQUEST, &[0; 300])).await.sqlstate,
        "08P01",
        "a long key"
    );
}

#[tokio::test]
async fn a_refusal_is_told_to_clients_but_not_to_cancel_requests() {
    let full = WireError::new(sqlstate::TOO_MANY_CONNECTIONS, "too many clients");
    for (bytes, cancels) in [
        (packet(version(0), b"user\0a\0\0"), false),
        (packet(CANCEL_REQUEST, &[0; 8]), true),
    ] {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        client.write_all(&bytes).await.unwrap();
        match trusting().run(server, ELSEWHERE, Some(full.clone())).await {
            Err(StartUpError::Refused(error)) => assert!(!cancels && error.sqlstate == "53300"),
            Ok(Opening::Cancel { .. }) => assert!(cancels),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_nothing_and_half_a_packet_is_a_loss() {
    assert!(matches!(run(&trusting(), b"").await.0, Ok(Opening::Nothing)));
    let whole = packet(version(0), b"user\0anna\0\0");
    for end in 1..whole.len() {
        assert!(
            matches!(run(&trusting(), &whole[..end]).await.0, Err(StartUpError::Lost(_))),
            "{end}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_packet_is_waited_for_no_longer_than_the_timeout() {
    let (mut client, server) = tokio::io::duplex(64);
    client.write_all(&[0, 0, 0]).await.unwrap();
    let started = tokio::time::Instant::now();
    assert!(matches!(
        trusting().run(server, ELSEWHERE, None).await,
        Err(StartUpError::Timeout(_))
    ));
    assert_eq!(started.elapsed().as_secs(), PATIENCE.as_secs());
    // The password, too: the whole start-up counts.
    let (mut client, server) = tokio::io::duplex(1024);
    client.write_all(&packet(version(0), b"user\0anna\0\0")).await.unwrap();
    let handshake = of_users(anna(), None);
    assert!(matches!(
        handshake.run(server, ELSEWHERE, None).await,
        Err(StartUpError::Timeout(_))
    ));
}

/// A server that greets whoever is let in; returns its port.
async fn serve(handshake: Handshake) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handshake = Arc::new(handshake);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let handshake = Arc::clone(&handshake);
            tokio::spawn(async move {
                let Ok(Opening::Client(mut client)) = handshake.run(stream, ELSEWHERE, None).await else {
                    return;
                };
                backend::parameter_status(
                    &mut client.output,
                    "encrypted",
                    &client.frames.stream_mut().is_tls().to_string(),
                );
                backend::ready_for_query(&mut client.output, TransactionStatus::Idle);
                let Client { frames, output, .. } = &mut *client;
                frames.stream_mut().write_all_buf(output).await.unwrap();
                // Until the client goes.
                while let Ok(Some(_)) = frames.next().await {}
            });
        }
    });
    port
}

fn client_config(port: u16, user: &str, password: &str) -> tokio_postgres::Config {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user(user).password(password);
    config
}

#[tokio::test]
async fn a_real_client_gets_in_with_the_right_password_only() {
    // As a file of users keeps it.
    let kept = anna().map(|(name, verifier)| (name, verifier.to_string().parse().unwrap()));
    let port = serve(of_users(kept, None)).await;
    let right = client_config(port, "anna", "correct horse");
    drop(right.connect(tokio_postgres::NoTls).await.unwrap());
    for (user, password) in [("anna", "wrong"), ("anna", ""), ("nobody", "correct horse")] {
        let error = client_config(port, user, password)
            .connect(tokio_postgres::NoTls)
            .await
            .err()
            .unwrap();
        let error = error.as_db_error().expect("an error of the server");
        assert_eq!(error.code().code(), "28P01");
        assert_eq!(
            error.message(),
            format!("password authentication failed for user \"{user}\"")
        );
    }
    let port = serve(trusting()).await;
    let whoever = client_config(port, "whoever", "whatever");
    drop(whoever.connect(tokio_postgres::NoTls).await.unwrap());
}

#[tokio::test]
async fn a_real_client_proves_a_password_that_is_kept_as_md5_does() {
    // SELECT md5('correct horse' || 'anna')
    let stored = "md58f4f600c0e2df60c43d41be49468430a".parse().unwrap();
    let port = serve(of_users([("anna".to_owned(), stored)], None)).await;
    let right = client_config(port, "anna", "correct horse");
    drop(right.connect(tokio_postgres::NoTls).await.unwrap());
    for user in ["anna", "nobody"] {
        let refused = client_config(port, user, "wrong").connect(tokio_postgres::NoTls).await;
        assert_eq!(refused.err().unwrap().code().unwrap().code(), "28P01");
    }
}

/// Sends a client's first message and returns the server's challenge, without its nonce.
async fn challenge(handshake: &Handshake, user: &str) -> String {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let first = b"n,,n=,r=nonce";
    let body = [&b"SCRAM-SHA-256\0"[..], &(first.len() as u32).to_be_bytes(), first].concat();
    let message = [&b"p"[..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat();
    client
        .write_all(&[packet(version(0), format!("user\0{user}\0\0").as_bytes()), message].concat())
        .await
        .unwrap();
    client.shutdown().await.unwrap();
    let _ = handshake.run(server, ELSEWHERE, None).await;
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer[answer.find(",s=").expect("a challenge")..].to_owned()
}

#[tokio::test]
async fn an_unknown_name_is_challenged_like_a_known_one_and_always_the_same() {
    let users = anna();
    let handshakes = [(); 2].map(|()| of_users(users.clone(), None));
    let known = challenge(&handshakes[0], "anna").await;
    let unknown = challenge(&handshakes[0], "nobody").await;
    assert_eq!(known.len(), unknown.len(), "{known} {unknown}");
    assert!(unknown.ends_with(",i=4096"));
    assert_eq!(unknown, challenge(&handshakes[0], "nobody").await, "each time");
    assert_eq!(
        unknown,
        challenge(&handshakes[1], "nobody").await,
        "and after a restart"
    );
    assert_ne!(
        unknown,
        challenge(&handshakes[0], "somebody").await,
        "but another name has another salt"
    );
}

#[tokio::test]
async fn garbage_instead_of_a_password_is_refused() {
    let handshake = of_users(anna(), None);
    let first = |mechanism: &str, message: &[u8]| {
        [
            mechanism.as_bytes(),
            b"\0",
            &(message.len() as u32).to_be_bytes(),
            message,
        ]
        .concat()
    };
    for body in [
        b"".to_vec(),
        b"SCRAM-SHA-256".to_vec(),
        b"SCRAM-SHA-256\0".to_vec(),
        b"SCRAM-SHA-256\0\xff\xff\xff\xff".to_vec(),
        b"SCRAM-SHA-256\0\0\0\0\x09n,,".to_vec(),
        b"plaintext\0".to_vec(),
        first("MD5", b"n,,n=,r=x"),
        first("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=x"),
        first("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=x"),
        first("SCRAM-SHA-256", b""),
        first("SCRAM-SHA-256", b"\xff\xff"),
        first("SCRAM-SHA-256", b"n,,"),
        first("SCRAM-SHA-256", b"x,,n=,r=x"),
    ] {
        let message = [&b"p"[..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat();
        let (opening, _) = run(&handshake, &[packet(version(0), b"user\0anna\0\0"), message].concat()).await;
        assert!(
            matches!(&opening, Err(StartUpError::Denied { user, error }) if user == "anna" && error.sqlstate == "08P01"),
            "{body:?}: {opening:?}"
        );
    }
    let query = [packet(version(0), b"user\0anna\0\0"), b"Q\0\0\0\x06x\0".to_vec()].concat();
    assert!(
        matches!(run(&handshake, &query).await.0, Err(StartUpError::Denied { .. })),
        "a query before the password"
    );
    let huge = [packet(version(0), b"user\0anna\0\0"), b"Q\0\x10\0\0".to_vec()].concat();
    assert!(
        matches!(run(&handshake, &huge).await.0, Err(StartUpError::Denied { error, .. }) if error.sqlstate == "54000"),
        "a megabyte"
    );
}

/// A TLS client for the client library, with or without channel binding.
#[derive(Clone)]
struct Connector {
    connector: TlsConnector,
    binding: Option<Vec<u8>>,
}

struct Encrypted(tokio_rustls::client::TlsStream<tokio_postgres::Socket>, Option<Vec<u8>>);

impl Connector {
    fn new(certificate: &str, alpn: bool, binding: bool) -> Self {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        if alpn {
            config.alpn_protocols = vec![ALPN.to_vec()];
        }
        let hash = ring::cipher_suite::TLS13_AES_128_GCM_SHA256
            .tls13()
            .unwrap()
            .common
            .hash_provider;
        let binding = binding.then(|| hash.hash(&certificate).as_ref().to_vec());
        Self {
            connector: TlsConnector::from(Arc::new(config)),
            binding,
        }
    }
}

impl MakeTlsConnect<tokio_postgres::Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _: &str) -> io::Result<Self> {
        Ok(self.clone())
    }
}

impl TlsConnect<tokio_postgres::Socket> for Connector {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: tokio_postgres::Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from("localhost").unwrap();
            Ok(Encrypted(self.connector.connect(name, stream).await?, self.binding))
        })
    }
}

impl ClientTls for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        self.1
            .clone()
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_real_client_gets_in_over_tls_with_and_without_channel_binding() {
    use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation};
    let (tls, certificate) = certificate();
    let port = serve(of_users(anna(), Some(tls))).await;
    let mut config = client_config(port, "anna", "correct horse");
    config.ssl_mode(SslMode::Require);
    for (negotiation, alpn) in [
        (SslNegotiation::Postgres, false),
        (SslNegotiation::Postgres, true),
        (SslNegotiation::Direct, true),
    ] {
        for binding in [ChannelBinding::Disable, ChannelBinding::Require] {
            let connector = Connector::new(&certificate, alpn, binding == ChannelBinding::Require);
            config.ssl_negotiation(negotiation).channel_binding(binding);
            let (_client, connection) = config.connect(connector.clone()).await.unwrap();
            assert_eq!(connection.parameter("encrypted"), Some("true"));
            let wrong = config.clone().password("wrong").connect(connector).await.err().unwrap();
            assert_eq!(wrong.code().unwrap().code(), "28P01");
        }
    }
    config
        .ssl_negotiation(SslNegotiation::Direct)
        .channel_binding(ChannelBinding::Disable);
    assert!(
        config
            .connect(Connector::new(&certificate, false, false))
            .await
            .is_err(),
        "direct TLS must name its protocol"
    );
    config
        .ssl_negotiation(SslNegotiation::Postgres)
        .channel_binding(ChannelBinding::Require);
    let mut stranger = Connector::new(&certificate, true, true);
    stranger.binding = Some(vec![7; 32]);
    assert!(
        config.connect(stranger).await.is_err(),
        "bound to another certificate: somebody stands between"
    );
    config
        .ssl_mode(SslMode::Disable)
        .channel_binding(ChannelBinding::Prefer);
    drop(config.connect(tokio_postgres::NoTls).await.unwrap());
}

#[tokio::test]
async fn what_was_sent_in_the_clear_is_never_read_as_if_through_tls() {
    let (tls, _) = certificate();
    let handshake = Handshake::new(Authenticator::trust(), Some(tls), PATIENCE);
    let smuggled = [packet(SSL_REQUEST, b""), packet(version(0), b"user\0mallory\0\0")].concat();
    let (opening, answer) = run(&handshake, &smuggled).await;
    assert!(matches!(opening, Err(StartUpError::Tls(_))), "{opening:?}");
    assert_eq!(answer[0], b'S');
}

#[tokio::test]
async fn the_socket_below_can_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.write_all(&packet(version(0), b"user\0anna\0\0")).await.unwrap();
    let (stream, peer) = listener.accept().await.unwrap();
    let Ok(Opening::Client(mut admitted)) = trusting().run(stream, ELSEWHERE, None).await else {
        panic!()
    };
    assert_eq!(admitted.frames.stream_mut().socket().peer_addr().unwrap(), peer);
}
