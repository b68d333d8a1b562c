//! Messages that are begun and not finished: bounded over all clients, and in nobody's way for long.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::client::{Client, query};
use crate::{resident_bytes_max, server};

#[test]
fn messages_of_all_clients_together_are_bounded() {
    let server = server(&[
        "--max-message-bytes",
        "8MiB",
        "--max-input-bytes",
        "32MiB",
        "--stall-timeout",
        "6s",
    ]);
    let mut other = Client::connect(server.address());
    other.ask("SELECT 1");
    let before = resident_bytes_max(&server);
    let message = query(&format!("SELECT length('{}')", "x".repeat(8_000_000)));
    let over = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..20)
        .map(|_| {
            let mut client = Client::connect(server.address());
            let (most, over) = (message[..7_900_000].to_vec(), Arc::clone(&over));
            std::thread::spawn(move || {
                // What there is no room for stays with the network, and this waits.
                client.stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
                let _ = client.stream.write_all(&most);
                while !over.load(Ordering::Relaxed) {
                    match client.read_within(Duration::from_millis(100)) {
                        None => {}
                        Some(Ok(word)) => return Some(word.failure().sqlstate().to_owned()),
                        Some(Err(error)) => panic!("closed without a word: {error}"),
                    }
                }
                None
            })
        })
        .collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        assert_eq!(other.ask("SELECT 1"), "1", "small ones always get through");
    }
    // One of middle length has room of its own.
    let middle = Instant::now();
    assert_eq!(
        other.ask(&format!("SELECT length('{}')", "x".repeat(500_000))),
        "500000"
    );
    assert!(middle.elapsed() < Duration::from_secs(2), "{:?}", middle.elapsed());
    let grown = resident_bytes_max(&server).saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {} MiB", grown >> 20);
    // A long one has its turn, for those that have room and send nothing lose it.
    other.send(&message);
    assert_eq!(other.answer().value().as_deref(), Some("8000000"));
    over.store(true, Ordering::Relaxed);
    let told: Vec<String> = senders
        .into_iter()
        .filter_map(|sender| sender.join().unwrap())
        .collect();
    // Those before it; the last ones are in nobody's way.
    assert!(told.len() >= 10, "{}", told.len());
    assert!(told.iter().all(|state| state == "53400"), "{told:?}");
}

#[test]
fn who_sends_too_much_can_read_why() {
    let server = server(&["--max-message-bytes", "100KiB"]);
    let mut client = Client::connect(server.address());
    let sent = client.stream.write_all(&query(&"x".repeat(50_000_000)));
    assert!(sent.is_ok(), "reset before it could read: {sent:?}");
    let words = client.last_words();
    let failure = words.last().expect("the reason").failure();
    assert_eq!((failure.sqlstate(), failure.field(b'S')), ("54000", Some("FATAL")));
}
