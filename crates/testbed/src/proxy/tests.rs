//! The proxy's contract, tried with a server that sends everything back.

use std::{
    io::{ErrorKind, Read, Write},
    time::Instant,
};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// A server that sends everything back, behind a proxy.
fn echo() -> (Proxy, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    // Ends with the test: its connections are cut with the proxy, and the process ends the wait for another.
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let stream = stream.unwrap();
                std::io::copy(&mut &stream, &mut &stream)
            });
        }
    });
    let client = client(&proxy);
    (proxy, client)
}

fn client(proxy: &Proxy) -> TcpStream {
    let client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(SOON)).unwrap();
    client
}

fn ask(client: &mut TcpStream, words: &[u8]) -> std::io::Result<Vec<u8>> {
    client.write_all(words)?;
    let mut answer = vec![0; words.len()];
    client.read_exact(&mut answer)?;
    Ok(answer)
}

#[test]
fn bytes_pass_unchanged() {
    let (proxy, mut client) = echo();
    assert!(proxy.address().ip().is_loopback());
    let words: Vec<u8> = (0..40_000_u32).map(|number| (number % 251) as u8).collect();
    for behaviour in [
        Behaviour::Pass,
        Behaviour::Merge(Duration::from_millis(2)),
        Behaviour::Split,
    ] {
        proxy.set(behaviour);
        // In pieces, because an echo that nobody reads stops reading; each in several writes, and more than a pump reads at a time.
        for piece in words.chunks(20_000) {
            for part in piece.chunks(1_500) {
                client.write_all(part).unwrap();
            }
            let mut answer = vec![0; piece.len()];
            client.read_exact(&mut answer).unwrap();
            assert!(answer == piece, "{behaviour:?}");
        }
    }
}

#[test]
fn what_is_merged_comes_in_one_piece() {
    let (proxy, mut client) = echo();
    proxy.set(Behaviour::Merge(Duration::from_millis(500)));
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut answer = [0; 100];
    for words in [b"one", b"two", b"six"] {
        client.write_all(words).unwrap();
        assert!(client.read(&mut answer).is_err(), "handed on before the time was over");
    }
    client.set_read_timeout(Some(SOON)).unwrap();
    let length = client.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"onetwosix");
    // Who merges no more holds nothing back.
    client.write_all(b"ten").unwrap();
    proxy.set(Behaviour::Pass);
    client.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    let length = client.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"ten");
}

#[test]
fn what_is_split_comes_in_many_pieces() {
    let (proxy, mut client) = echo();
    proxy.set(Behaviour::Split);
    let words = [7; 10_000];
    // Whoever is kept from reading finds more than one piece: not each time.
    let is_split = (0..20).any(|_| {
        client.write_all(&words).unwrap();
        let (mut pieces, mut left) = (0, words.len());
        while left > 0 {
            left -= client.read(&mut [0; 10_000]).unwrap();
            pieces += 1;
        }
        pieces > 100
    });
    assert!(is_split);
}

#[test]
fn a_stall_holds_bytes_back_and_then_hands_them_on() {
    let (proxy, mut client) = echo();
    ask(&mut client, b"before").unwrap();
    proxy.set(Behaviour::Stall);
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    client.write_all(b"during").unwrap();
    let mut answer = [0; 6];
    assert!(client.read_exact(&mut answer).is_err(), "handed on during a stall");
    proxy.set(Behaviour::Pass);
    client.set_read_timeout(Some(SOON)).unwrap();
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"during");
}

#[test]
fn held_connections_are_stalled_and_new_ones_are_not() {
    let (proxy, mut old) = echo();
    ask(&mut old, b"before").unwrap();
    proxy.hold();
    old.write_all(b"held").unwrap();
    let mut new = client(&proxy);
    assert_eq!(ask(&mut new, b"new").unwrap(), b"new");
    old.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut answer = [0; 4];
    assert!(old.read_exact(&mut answer).is_err(), "a held connection answers");
    assert_eq!(proxy.connections(), 2);
    proxy.release();
    old.set_read_timeout(Some(SOON)).unwrap();
    old.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"held");
}

#[test]
fn a_delay_is_each_way() {
    let (proxy, mut client) = echo();
    proxy.set(Behaviour::Delay(Duration::from_millis(30)));
    let begun = Instant::now();
    assert_eq!(ask(&mut client, b"slow").unwrap(), b"slow");
    assert!(begun.elapsed() >= Duration::from_millis(60));
}

#[test]
fn garbage_goes_to_the_client_only() {
    let (proxy, mut client) = echo();
    proxy.set(Behaviour::Garbage);
    // What comes back was garbled once: had the server got garbage, this would look the same, so look at its length too.
    assert_eq!(ask(&mut client, b"hello").unwrap(), [0xFF; 5]);
}

#[test]
fn connections_are_cut_and_refused() {
    let (proxy, mut connected) = echo();
    ask(&mut connected, b"before").unwrap();
    proxy.cut();
    assert!(ask(&mut connected, b"after").is_err(), "a cut connection answers");
    let mut again = client(&proxy);
    ask(&mut again, b"again").unwrap();
    proxy.set(Behaviour::Refuse);
    assert!(ask(&mut again, b"after").is_err(), "a refused connection answers");
    assert!(ask(&mut client(&proxy), b"new").is_err(), "a new connection answers");
    proxy.set(Behaviour::Pass);
    ask(&mut client(&proxy), b"passes").unwrap();
    assert_eq!(proxy.accepted(), 4);
}

#[test]
fn a_dropped_proxy_listens_no_more() {
    let (proxy, mut connected) = echo();
    ask(&mut connected, b"before").unwrap();
    let address = proxy.address();
    drop(proxy);
    assert!(ask(&mut connected, b"after").is_err());
    assert!(TcpStream::connect(address).is_err());
}

fn asked() -> Vec<u8> {
    b"COMMIT".to_vec()
}

/// A server that counts what it gets and answers each read with as much, behind a proxy.
fn counting() -> (Proxy, TcpStream, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    let (told, got) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let told = told.clone();
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut chunk = vec![0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut chunk) {
                    told.send(chunk[..length].to_vec()).unwrap();
                    // Its end may have gone; what it got is told.
                    let _ = stream.write_all(&chunk[..length]);
                }
                told.send(b"end".to_vec()).unwrap();
            });
        }
    });
    let client = client(&proxy);
    (proxy, client, got)
}

#[test]
fn what_is_trapped_when_asked_never_reaches_the_server() {
    for ending in [Ending::Close, Ending::Reset] {
        let (proxy, mut client, got) = counting();
        ask(&mut client, b"before").unwrap();
        proxy.trap(Moment::Asked(asked()), Deed::End(ending), 1);
        assert!(ask(&mut client, b"now COMMIT").is_err());
        assert_eq!(got.recv_timeout(SOON).unwrap(), b"before");
        assert_eq!(got.recv_timeout(SOON).unwrap(), b"end");
        assert_eq!(proxy.sprung(), 1);
    }
}

#[test]
fn what_is_trapped_when_handed_on_or_answered_reaches_the_server_and_no_answer_the_client() {
    for moment in [Moment::HandedOn(asked()), Moment::Answered(asked())] {
        let (proxy, mut connected, got) = counting();
        ask(&mut connected, b"before").unwrap();
        proxy.trap(moment.clone(), Deed::End(Ending::Close), 1);
        connected.write_all(b"now COMMIT").unwrap();
        let mut answer = Vec::new();
        // It ends with or without an error; what matters is that nothing comes.
        let _ = connected.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{moment:?}");
        assert_eq!(got.recv_timeout(SOON).unwrap(), b"before");
        assert_eq!(got.recv_timeout(SOON).unwrap(), b"now COMMIT", "{moment:?}");
        // Once: the next connection passes.
        assert_eq!(ask(&mut client(&proxy), b"COMMIT").unwrap(), b"COMMIT");
    }
}

#[test]
fn a_trap_stalls_its_own_connection_until_it_is_released() {
    let (proxy, mut caught) = echo();
    proxy.trap(Moment::Asked(asked()), Deed::Stall, 1);
    caught.write_all(b"COMMIT").unwrap();
    let mut other = client(&proxy);
    while proxy.sprung() == 0 {
        thread::yield_now();
    }
    assert_eq!(ask(&mut other, b"COMMIT").unwrap(), b"COMMIT");
    caught.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut answer = [0; 6];
    assert!(caught.read_exact(&mut answer).is_err(), "handed on");
    proxy.release();
    caught.set_read_timeout(Some(SOON)).unwrap();
    caught.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"COMMIT");
}

#[test]
fn a_connection_ends_after_so_many_bytes() {
    let (proxy, mut client) = echo();
    proxy.trap(Moment::Passed(Side::Server, 4), Deed::End(Ending::Close), 1);
    client.write_all(b"0123456789").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"0123");
}

#[test]
fn a_reset_is_told_from_an_end() {
    for (ending, is_reset) in [(Ending::Close, false), (Ending::Reset, true)] {
        let (proxy, mut client) = echo();
        ask(&mut client, b"before").unwrap();
        proxy.cut_with(ending);
        let read = client.read(&mut [0; 1]);
        let was_reset = read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert_eq!(was_reset, is_reset);
    }
}

#[test]
fn a_slow_connection_takes_its_time() {
    let (proxy, mut client) = echo();
    proxy.set(Behaviour::Slow(1000));
    let begun = Instant::now();
    let words = [7; 100];
    assert_eq!(ask(&mut client, &words).unwrap(), words);
    assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_moved_is_reached_by_new_connections() {
    let (proxy, mut old) = echo();
    let (other, mut first) = echo();
    ask(&mut old, b"before").unwrap();
    ask(&mut first, b"before").unwrap();
    proxy.lead_to(other.address());
    ask(&mut client(&proxy), b"new").unwrap();
    assert_eq!(other.accepted(), 2);
    ask(&mut old, b"old").unwrap();
    assert_eq!(other.accepted(), 2);
}
