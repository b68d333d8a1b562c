//! What a real server said, said again: in pieces, cut at every byte, and with errors in it.
//!
//! What it said is in `tests/recorded`, whose README says of which server; to record it anew from the one that is installed:
//!
//! ```text
//! FOREBAY_RECORD=1 cargo test -p forebay-pg-link --test replay
//! ```
//!
//! `FOREBAY_CASES=1000000` changes it so many times, not a few thousand times; `FOREBAY_SEED=…` with a seed that was told, and
//! `FOREBAY_CASES=1`, is that one case again.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod changes;
mod decode;
mod heap;
mod network;
mod sessions;
mod tries;

use std::net::SocketAddr;
use std::path::PathBuf;

use forebay_pg_link::{Config, ConnectError, Connector, LinkError, Tag};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use testbed::Postgres;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

use network::{Pieces, relay, say};
use sessions::{End, Heard, PROVEN, SESSIONS, run};
use tries::{Tried, cases, is_recording, seed, soon};

/// Of those who need one.
const PASSWORD: &str = "s3cret";

/// A session as it was recorded.
struct Recorded {
    name: &'static str,
    /// What the server said, from its first byte to its last.
    said: Vec<u8>,
    /// What it was asked.
    asked: Vec<u8>,
    /// What was heard of it.
    told: Vec<String>,
    /// Where each message begins.
    starts: Vec<usize>,
    /// So many of them are the handshake's.
    greeting: usize,
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(name)
}

impl Recorded {
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for name in SESSIONS {
            all.push(Self::of(name).await);
        }
        all
    }

    /// The one of this name; recorded first, if that is asked for.
    async fn of(name: &'static str) -> Self {
        static RECORDED: OnceCell<()> = OnceCell::const_new();
        if is_recording() {
            RECORDED.get_or_init(record).await;
        }
        let said = std::fs::read(file(&format!("{name}.bin"))).unwrap();
        let (mut starts, mut at) = (Vec::new(), 0);
        while at < said.len() {
            starts.push(at);
            at += 1 + usize::try_from(u32::from_be_bytes(said[at + 1..at + 5].try_into().unwrap())).unwrap();
        }
        assert_eq!(at, said.len(), "{name} ends with a message");
        let told = std::fs::read_to_string(file(&format!("told/{name}.txt"))).unwrap();
        Self {
            name,
            asked: std::fs::read(file(&format!("asked/{name}.bin"))).unwrap(),
            told: told.lines().map(str::to_owned).collect(),
            greeting: 1 + starts.iter().position(|&start| said[start] == b'Z').unwrap(),
            starts,
            said,
        }
    }

    /// How many messages are whole that end before this place, and what is told of them.
    fn told_before(&self, place: usize) -> (usize, &[String]) {
        let ends = self.starts[1..].iter().copied().chain([self.said.len()]);
        let whole = ends.take_while(|&end| end <= place).count();
        (whole, &self.told[..whole.saturating_sub(self.greeting)])
    }
}

fn connector(session: &str, address: SocketAddr) -> Connector {
    let user = match session {
        "hashed" | PROVEN => format!("{session}:{PASSWORD}"),
        _ => "postgres".to_owned(),
    };
    let config: Config = format!("postgresql://{user}@{address}/postgres?sslmode=disable")
        .parse()
        .unwrap();
    Connector::new(config).unwrap()
}

/// Has the session with who says this.
async fn heard(listener: &TcpListener, session: &str, said: &[u8], pieces: Pieces) -> (Heard, Vec<u8>) {
    let connector = connector(session, listener.local_addr().unwrap());
    soon(async { tokio::join!(run(session, &connector), say(listener, said, pieces)) }).await
}

async fn record() {
    let server = Postgres::builder()
        .host_based_authentication("host all hashed 127.0.0.1/32 md5\nhost all proven 127.0.0.1/32 scram-sha-256")
        .start()
        .expect("PostgreSQL starts");
    let mut link = connector("", server.address()).connect().await.unwrap();
    for (user, encryption) in [("hashed", "md5"), (PROVEN, "scram-sha-256")] {
        let sql = format!("SET password_encryption = '{encryption}'; CREATE USER {user} PASSWORD '{PASSWORD}'");
        link.outbox().query(&sql).unwrap();
        while link.expected() > 0 {
            assert_ne!(link.next().await.unwrap().tag(), Tag::ERROR_RESPONSE, "{sql}");
        }
    }
    for session in SESSIONS.into_iter().chain([PROVEN]) {
        let (address, relaying) = relay(server.address()).await;
        let connector = connector(session, address);
        let heard = run(session, &connector).await;
        assert!(matches!(heard.end, End::Answered), "{heard:?}");
        let said = relaying.await.unwrap();
        std::fs::write(file(&format!("{session}.bin")), said.by_server).unwrap();
        std::fs::write(file(&format!("asked/{session}.bin")), said.by_client).unwrap();
        std::fs::write(file(&format!("told/{session}.txt")), heard.lines.join("\n") + "\n").unwrap();
    }
}

#[tokio::test]
async fn what_a_server_said_is_heard_the_same_however_it_comes() {
    let seed = seed();
    let listener = network::listener().await;
    for session in Recorded::all().await {
        assert!(session.told.iter().all(|line| !line.ends_with("malformed")));
        let random = (0..20).map(|number| Pieces::Random(seed.wrapping_add(number)));
        for pieces in [Pieces::One, Pieces::Bytes].into_iter().chain(random) {
            let tried = Tried(format!("{} in pieces: {pieces:?}", session.name));
            let (heard, asked) = heard(&listener, session.name, &session.said, pieces).await;
            assert!(matches!(heard.end, End::Answered), "{tried}: {:?}", heard.end);
            assert_eq!(heard.lines, session.told, "{tried}");
            assert!(
                asked == session.asked,
                "{tried}: something else was asked than was recorded"
            );
        }
    }
}

#[tokio::test]
async fn what_is_cut_at_any_byte_is_lost_and_what_came_before_it_is_heard() {
    let listener = network::listener().await;
    for session in Recorded::all().await {
        for cut in 0..session.said.len() {
            let tried = Tried(format!("{} cut behind {cut} bytes", session.name));
            let (heard, _) = heard(&listener, session.name, &session.said[..cut], Pieces::One).await;
            let (whole, told) = session.told_before(cut);
            assert_eq!(heard.lines, told, "{tried}");
            let is_lost = match &heard.end {
                End::NotConnected(ConnectError::Link(LinkError::Lost(_))) => whole < session.greeting,
                End::Link(LinkError::Lost(_)) => whole >= session.greeting,
                _ => false,
            };
            assert!(is_lost, "{tried}: {:?}", heard.end);
        }
    }
}

#[tokio::test]
async fn nobody_is_let_in_by_words_to_another_nonce_however_many_of_them_come() {
    let listener = network::listener().await;
    let session = Recorded::of(PROVEN).await;
    // The server's first message is its second: what is offered comes before it.
    let end = session.starts[2];
    for cut in 0..=session.said.len() {
        let tried = Tried(format!("{} cut behind {cut} bytes", session.name));
        let (heard, _) = heard(&listener, session.name, &session.said[..cut], Pieces::One).await;
        let is_told = match &heard.end {
            End::NotConnected(ConnectError::Link(LinkError::Lost(_))) => cut < end,
            End::NotConnected(ConnectError::Authentication(_)) => cut >= end,
            _ => false,
        };
        assert!(is_told, "{tried}: {:?}", heard.end);
    }
}

#[tokio::test]
async fn a_link_is_over_that_was_told_a_setting_without_an_end() {
    let listener = network::listener().await;
    let mut session = Recorded::of("simple").await;
    let value = b"Europe/Berlin\0";
    let place = session
        .said
        .windows(value.len())
        .position(|part| part == value)
        .unwrap();
    session.said[place + value.len() - 1] = b'!';
    let (heard, _) = heard(&listener, session.name, &session.said, Pieces::One).await;
    assert!(
        matches!(heard.end, End::Link(LinkError::Protocol(_))),
        "{:?}",
        heard.end
    );
    assert_eq!(heard.lines, session.told_before(place).1);
}

#[tokio::test]
async fn no_change_of_bytes_is_more_than_an_error() {
    let listener = network::listener().await;
    let sessions = Recorded::all().await;
    let seed = seed();
    let mut ends = [0_u64; 4];
    for case in 0..cases() {
        let seed = seed.wrapping_add(case);
        let tried = Tried(format!("FOREBAY_SEED={seed} FOREBAY_CASES=1"));
        let mut random = StdRng::seed_from_u64(seed);
        let session = sessions.choose(&mut random).unwrap();
        let (said, first) = changes::changed(&mut random, &session.said, &session.starts);
        let pieces = match seed % 4 {
            0 => Pieces::Random(seed),
            _ => Pieces::One,
        };
        let (heard, _) = heard(&listener, session.name, &said, pieces).await;
        let (_, told) = session.told_before(first);
        assert!(heard.lines.starts_with(told), "{tried}: {heard:#?}");
        ends[match heard.end {
            End::Answered => 0,
            End::NotConnected(_) => 1,
            End::Link(LinkError::Protocol(_)) => 2,
            End::Link(_) => 3,
        }] += 1;
    }
    println!("answered, not connected, protocol, lost: {ends:?}");
    let largest = heap::largest_bytes();
    assert!(
        largest <= tries::LARGEST_BYTES_MAX,
        "{largest} bytes were asked for at once"
    );
}
