//! What a real server said, said again: in pieces, cut at every byte, and with errors in it.
//!
//! What it said is in `tests/recorded`, whose README says of which server; to record it anew from the one that is installed:
//!
//! ```text
//! FOREBAY_RECORD=1 cargo test -p forebay-mysql-link --test replay
//! ```
//!
//! `FOREBAY_CASES=1000000` changes it so many times, not a few thousand times; `FOREBAY_SEED=…` with a seed that was told, and
//! `FOREBAY_CASES=1`, is that one case again.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

#[path = "../../../forebay-pg-link/tests/replay/changes.rs"]
mod changes;
mod decode;
#[path = "../../../forebay-pg-link/tests/replay/heap.rs"]
mod heap;
#[path = "../../../forebay-pg-link/tests/replay/network.rs"]
mod network;
mod sessions;
#[path = "../../../forebay-pg-link/tests/replay/tries.rs"]
mod tries;

use std::net::SocketAddr;
use std::path::PathBuf;

use forebay_mysql_link::{Config, ConnectError, Connector, LinkError, Packet};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use testbed::MariaDb;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

use network::{Pieces, relay, say};
use sessions::{End, Heard, SESSIONS, SWITCHED, run};
use tries::{Tried, cases, is_recording, seed, soon};

/// Of the one who needs one.
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
    /// Where each packet begins.
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
    /// All there are; recorded first, if that is asked for.
    async fn all() -> Vec<Self> {
        static RECORDED: OnceCell<()> = OnceCell::const_new();
        if is_recording() {
            RECORDED.get_or_init(record).await;
        }
        SESSIONS.into_iter().map(Self::read).collect()
    }

    fn read(name: &'static str) -> Self {
        let said = std::fs::read(file(&format!("{name}.bin"))).unwrap();
        let (mut starts, mut at) = (Vec::new(), 0);
        while at < said.len() {
            starts.push(at);
            at += 4 + usize::try_from(u32::from_le_bytes([said[at], said[at + 1], said[at + 2], 0])).unwrap();
        }
        assert_eq!(at, said.len(), "{name} ends with a packet");
        let told = std::fs::read_to_string(file(&format!("told/{name}.txt"))).unwrap();
        Self {
            name,
            asked: std::fs::read(file(&format!("asked/{name}.bin"))).unwrap(),
            told: told.lines().map(str::to_owned).collect(),
            // The server says that it is content.
            greeting: 1 + starts.iter().position(|&start| said[start + 4] == 0).unwrap(),
            starts,
            said,
        }
    }

    /// How many packets are whole that end before this place, and what is told of them.
    fn told_before(&self, place: usize) -> (usize, &[String]) {
        let ends = self.starts[1..].iter().copied().chain([self.said.len()]);
        let whole = ends.take_while(|&end| end <= place).count();
        (whole, &self.told[..whole.saturating_sub(self.greeting)])
    }
}

fn connector(session: &str, address: SocketAddr) -> Connector {
    let user = match session {
        SWITCHED => format!("{session}:{PASSWORD}"),
        _ => "root".to_owned(),
    };
    let config: Config = format!("mysql://{user}@{address}/test").parse().unwrap();
    Connector::new(config).unwrap()
}

/// Has the session with who says this.
async fn heard(listener: &TcpListener, session: &str, said: &[u8], pieces: Pieces) -> (Heard, Vec<u8>) {
    let connector = connector(session, listener.local_addr().unwrap());
    soon(async { tokio::join!(run(session, &connector), say(listener, said, pieces)) }).await
}

async fn record() {
    let server = MariaDb::builder()
        .setting("plugin-load-add", "auth_ed25519")
        .start()
        .expect("MariaDB starts");
    let mut link = connector("", server.address()).connect().await.unwrap();
    for sql in [
        format!("CREATE USER {SWITCHED} IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}')"),
        format!("GRANT ALL ON test.* TO {SWITCHED}"),
    ] {
        link.outbox().query(&sql).unwrap();
        assert!(matches!(link.next().await.unwrap(), Packet::Ok(_)), "{sql}");
    }
    for session in SESSIONS {
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
async fn a_packet_that_is_not_in_its_place_is_an_error() {
    let listener = network::listener().await;
    for session in Recorded::all().await {
        for &start in &session.starts[session.greeting..] {
            let tried = Tried(format!("{} with another packet at {start}", session.name));
            let mut said = session.said.clone();
            said[start + 3] ^= 1;
            let (heard, _) = heard(&listener, session.name, &said, Pieces::One).await;
            assert_eq!(heard.lines, session.told_before(start).1, "{tried}");
            // An error out of any exchange is the server's last word.
            let is_told = matches!(heard.end, End::Link(LinkError::Protocol(_) | LinkError::Ended(_)));
            assert!(is_told, "{tried}: {:?}", heard.end);
        }
    }
}

#[tokio::test]
async fn no_change_of_bytes_is_more_than_an_error() {
    let listener = network::listener().await;
    let sessions = Recorded::all().await;
    let seed = seed();
    let mut ends = [0_u64; 5];
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
            End::Link(LinkError::Lost(_)) => 3,
            End::Link(_) => 4,
        }] += 1;
    }
    println!("answered, not connected, protocol, lost, ended: {ends:?}");
    let largest = heap::largest_bytes();
    assert!(
        largest <= tries::LARGEST_BYTES_MAX,
        "{largest} bytes were asked for at once"
    );
}
