//! Bytes that are no message, or no sensible one: refused with a word, harming nobody else.

use std::time::{Duration, Instant};

use crate::client::{self, Client, message, startup};
use crate::server;

fn refused_for_good(mut client: Client, bytes: &[u8], sqlstate: &str) {
    client.send(bytes);
    let words = client.last_words();
    let error = words
        .last()
        .unwrap_or_else(|| panic!("nothing said to {bytes:?}"))
        .failure();
    assert_eq!(error.sqlstate(), sqlstate, "{error:?}");
    assert_eq!(error.field(b'S'), Some("FATAL"));
}

#[test]
fn garbage_is_refused_and_the_server_goes_on() {
    let server = server(&[]);
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".as_slice(),
        &[0xff; 64],
        &[0; 64],
        b"\x00\x00\x00\x08\x00\x09\x00\x00",
        &[0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0],
        // A start-up without its end.
        b"\x00\x00\x00\x0d\x00\x03\x00\x00user\x00",
    ] {
        let mut client = Client::raw(server.address());
        client.send(bytes);
        let words = client.last_words();
        assert!(words.iter().all(|word| word.kind == b'E'), "{bytes:?}: {words:?}");
    }
    for (bytes, sqlstate) in [
        // A kind that there is not.
        (message(b'z', b"what"), "08P01"),
        (b"\x00\x00\x00\x00\x00".to_vec(), "08P01"),
        // Two gibibytes, less than a length, a negative length.
        (b"Q\x7f\xff\xff\xff".to_vec(), "54000"),
        (b"Q\x00\x00\x00\x03".to_vec(), "08P01"),
        (b"Q\xff\xff\xff\xff".to_vec(), "08P01"),
        // A Sync as large as a book.
        (b"S\x00\xff\xff\xff".to_vec(), "54000"),
    ] {
        refused_for_good(Client::connect(server.address()), &bytes, sqlstate);
    }
    assert_eq!(Client::connect(server.address()).ask("SELECT 1"), "1");
}

#[test]
fn a_message_that_makes_no_sense_is_refused_and_the_session_goes_on() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (bytes, sqlstate) in [
        // No NUL at the end; one too many; text that is not UTF-8.
        (message(b'Q', b"SELECT 1"), "08P01"),
        (message(b'Q', b"SELECT 1\0\0"), "08P01"),
        (message(b'Q', b"SELECT '\xff\xfe'\0"), "22021"),
        (message(b'F', b"\0\0\0\x01"), "0A000"),
    ] {
        client.send(&bytes);
        let answer = client.answer();
        assert_eq!(
            (answer.sqlstate().as_str(), answer.status),
            (sqlstate, 'I'),
            "{bytes:?}"
        );
    }
    for (bytes, sqlstate) in [
        (message(b'P', b"\0SELECT 1\0"), "08P01"),
        (message(b'P', b"\0SELECT 1\0\xff\xff"), "08P01"),
        (message(b'P', b"\0SELECT '\xc3\x28'\0\0\0"), "22021"),
        (message(b'B', b"\0\0\0\0\0\x05"), "08P01"),
        (message(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"), "08P01"),
        (message(b'D', b"X\0"), "08P01"),
        (message(b'E', b"\0\0"), "08P01"),
        (message(b'C', b""), "08P01"),
    ] {
        let answer = client.pipeline(&[bytes.clone(), client::whole("SELECT 1", &[])]);
        assert_eq!(
            (answer.kinds().as_str(), answer.status),
            ("E", 'I'),
            "skips to Sync: {bytes:?}"
        );
        assert_eq!(answer.sqlstate(), sqlstate, "{bytes:?}");
    }
    // Left over from a COPY: ignored, as PostgreSQL does.
    client.send(&[message(b'd', b"x"), message(b'c', b""), message(b'f', b"why\0")].concat());
    assert_eq!(client.ask("SELECT 1"), "1");
}

#[test]
fn random_bytes_after_the_start_up_end_in_an_error_or_an_answer() {
    let server = server(&[]);
    let kinds = b"QPBDECHSFdcfXz";
    // A fixed sequence, so that a failure comes back.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..60 {
        let mut client = Client::connect(server.address());
        let mut sent = Vec::new();
        for _ in 0..20 {
            let body: Vec<u8> = (0..random() % 40)
                .map(|_| (random() % 256) as u8 & if random() % 3 == 0 { 0 } else { 0x7f })
                .collect();
            sent.extend(message(kinds[(random() % kinds.len() as u64) as usize], &body));
        }
        client.send(&sent);
        client.send(&[client::sync(), message(b'X', b"")].concat());
        let messages = client.last_words_or_answers();
        assert!(
            messages.iter().all(|message| b"EZINtTnCDS123s".contains(&message.kind)),
            "round {round}: {messages:?}"
        );
    }
    assert_eq!(Client::connect(server.address()).ask("SELECT 1"), "1");
}

#[test]
fn slow_start_ups_hinder_nobody_and_end_at_the_timeout() {
    let server = server(&["--startup-timeout", "300ms"]);
    let begun = Instant::now();
    let packet = startup(&[]);
    let mut slow: Vec<Client> = (0..20)
        .map(|count| {
            let mut client = Client::raw(server.address());
            client.send(&packet[..count % packet.len()]);
            client
        })
        .collect();
    assert_eq!(Client::connect(server.address()).ask("SELECT 1"), "1");
    for client in &mut slow {
        client.last_words();
    }
    assert!(begun.elapsed() >= Duration::from_millis(250), "not before their time");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn half_a_message_harms_nobody() {
    let server = server(&[]);
    let mut half = Client::connect(server.address());
    let whole = client::query("SELECT 'whole'");
    half.send(&whole[..7]);
    assert_eq!(Client::connect(server.address()).ask("SELECT 1"), "1");
    half.send(&whole[7..]);
    assert_eq!(half.answer().value().as_deref(), Some("whole"));
}
