//! Servers that say what they are told to: what no real one says, or says so that it can be split anywhere.

use std::net::SocketAddr;

use forebay_mysql_link::{Config, ConnectError, Link, LinkError, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, yield_now};

use super::answer;

const NONCE: [u8; 20] = *b"abcdefghijklmnopqrst";
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// A packet.
fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let [a, b, c, ..] = body.len().to_le_bytes();
    [&[a, b, c, sequence], body].concat()
}

/// What a MySQL greets with that has all that is wanted of it but TLS.
fn greeting(method: &str) -> Vec<u8> {
    let capabilities: u32 = 0x0108_f7df & !0x0800;
    let [a, b, c, d] = capabilities.to_le_bytes();
    let body = [
        b"\x0a8.0.36\0\x07\0\0\0",
        &NONCE[..8],
        &[0, a, b, 45, 2, 0, c, d, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &NONCE[8..],
        &[0],
        method.as_bytes(),
        &[0],
    ];
    packet(0, &body.concat())
}

/// The body of the client's next packet.
async fn heard(stream: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.unwrap();
    let mut body = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut body).await.unwrap();
    body
}

/// Says this to the first one who connects, once it was answered; all that was heard.
async fn server(method: &str, said: Vec<Vec<u8>>) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let first = greeting(method);
    let talk = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&first).await.unwrap();
        let mut all = Vec::new();
        for said in said {
            all.push(heard(&mut stream).await);
            stream.write_all(&said).await.unwrap();
        }
        // Until the other side goes.
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
        all.push(rest);
        all
    });
    (address, talk)
}

async fn connected(address: SocketAddr, settings: &str) -> Result<Link, ConnectError> {
    let url = format!("mysql://app:s3cret@{address}/d{settings}");
    connect(&url.parse::<Config>().unwrap()).await
}

/// An answer with columns, rows, an error behind them, each as the client must tell it.
fn answers() -> (Vec<u8>, &'static str) {
    // A column without a name, of text.
    let column = b"\x03def\0\0\0\0\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let bodies: [&[u8]; 8] = [
        &[1],
        column,
        b"\x05hello",
        b"\xfb",
        &[0xfe, 0, 0, 10, 0, 0, 0],
        &[0, 3, 9, 10, 0, 0, 0],
        &[0, 0, 0, 10, 0, 0, 0],
        b"\xff\x26\x04#23000twice",
    ];
    let packets = bodies.iter().zip(1..).map(|(body, sequence)| packet(sequence, body));
    (packets.collect::<Vec<_>>().concat(), "TD(hello)D(NULL)EO(3)O(0)X(1062)")
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_it_is_split() {
    let (bytes, expected) = answers();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cuts = bytes.len();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&greeting("mysql_native_password")).await.unwrap();
        heard(&mut stream).await;
        stream.write_all(&packet(2, OK)).await.unwrap();
        for cut in 0..cuts {
            heard(&mut stream).await;
            stream.write_all(&bytes[..cut]).await.unwrap();
            // The other side reads what is there.
            for _ in 0..5 {
                yield_now().await;
            }
            stream.write_all(&bytes[cut..]).await.unwrap();
        }
    });
    let mut link = connected(address, "").await.unwrap();
    for cut in 0..cuts {
        link.outbox().query("SELECT 1").unwrap();
        assert_eq!(answer(&mut link).await.unwrap(), expected, "cut at {cut}");
        assert!(link.is_idle());
    }
}

#[tokio::test]
async fn an_answer_that_has_not_come_whole_is_none() {
    let (bytes, _) = answers();
    for cut in 0..bytes.len() {
        let (address, talk) = server("mysql_native_password", vec![packet(2, OK), bytes[..cut].to_vec()]).await;
        let mut link = connected(address, "").await.unwrap();
        link.outbox().query("SELECT 1").unwrap();
        {
            let mut waiting = std::pin::pin!(answer(&mut link));
            for _ in 0..20 {
                tokio::select! {
                    biased;
                    told = &mut waiting => panic!("cut at {cut}: {told:?}"),
                    () = yield_now() => {}
                }
            }
        }
        assert!(!link.is_idle());
        drop(link);
        let heard = talk.await.unwrap();
        assert_eq!(
            heard.last().unwrap(),
            b"",
            "no leave is taken in the middle of something"
        );
    }
}

#[tokio::test]
async fn a_file_of_this_machines_is_not_given() {
    let (address, _talk) = server(
        "mysql_native_password",
        vec![packet(2, OK), packet(1, b"\xfb/etc/passwd")],
    )
    .await;
    let mut link = connected(address, "").await.unwrap();
    link.outbox().query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t").unwrap();
    let told = answer(&mut link).await;
    assert!(matches!(told, Err(LinkError::Protocol(_))), "{told:?}");
    assert!(link.is_over());
}

#[tokio::test]
async fn what_comes_unasked_ends_the_link() {
    let farewell = packet(0, b"\xff\xbf\x0f#HY000idle for too long");
    let (address, _talk) = server("mysql_native_password", vec![[packet(2, OK), farewell].concat()]).await;
    let mut link = connected(address, "").await.unwrap();
    assert!(!link.is_idle(), "something is there");
    link.outbox().query("SELECT 1").unwrap();
    let told = answer(&mut link).await;
    assert!(
        matches!(&told, Err(LinkError::Ended(error)) if error.code == 4031),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_password_is_not_told_in_clear_where_others_can_listen() {
    let switch = |sequence, method: &str| {
        packet(
            sequence,
            &[b"\xfe", method.as_bytes(), b"\0", &NONCE[..], &[0]].concat(),
        )
    };
    for (settings, method) in [
        ("", "mysql_clear_password"),
        ("?enable_cleartext_plugin=true", "mysql_clear_password"),
        ("", "mysql_old_password"),
        ("", "dialog"),
    ] {
        let (address, talk) = server("mysql_native_password", vec![switch(2, method)]).await;
        let refused = connected(address, settings).await;
        assert!(
            matches!(refused, Err(ConnectError::Authentication(_))),
            "{method}: {refused:?}"
        );
        let heard = talk.await.unwrap().concat();
        assert!(!heard.windows(6).any(|part| part == b"s3cret"), "{method}");
    }
    // TLS that cannot be had: nothing is said at all.
    let (address, talk) = server("mysql_native_password", Vec::new()).await;
    let refused = connected(address, "?require_ssl=true").await;
    assert!(matches!(refused, Err(ConnectError::Tls(_))), "{refused:?}");
    assert_eq!(talk.await.unwrap().concat(), b"");
}

#[tokio::test]
async fn a_server_that_remembers_the_password_is_not_told_it_and_one_that_does_not_gets_it_encrypted() {
    let remembers = [packet(2, &[1, 3]), packet(3, OK)].concat();
    let (address, talk) = server("caching_sha2_password", vec![remembers]).await;
    drop(connected(address, "").await.unwrap());
    assert_eq!(talk.await.unwrap().len(), 2);

    let key = [&[1], &include_bytes!("public_key.pem")[..]].concat();
    let said = vec![packet(2, &[1, 4]), packet(4, &key), packet(6, OK)];
    let (address, talk) = server("caching_sha2_password", said).await;
    drop(connected(address, "").await.unwrap());
    let heard = talk.await.unwrap();
    assert_eq!((&*heard[1], heard[2].len()), (&[2][..], 256));
    assert!(!heard.concat().windows(6).any(|part| part == b"s3cret"));

    let said = vec![packet(2, &[1, 4]), packet(4, b"\x01no key")];
    let (address, _talk) = server("caching_sha2_password", said).await;
    let refused = connected(address, "").await;
    assert!(matches!(refused, Err(ConnectError::Authentication(_))), "{refused:?}");
}
