//! What a MariaDB might say to a link: from the greeting on, whatever is asked.

#![no_main]

use std::cell::LazyCell;

use forebay_fuzz::Stage;
use forebay_mysql_link::{Config, Connector, Packet, Parameter};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/forebay-mysql-link/tests/replay/decode.rs"]
mod decode;

const SOCKET: &str = "socket";
/// So many answers are waited for.
const QUESTIONS: usize = 20;

thread_local! {
    static STAGE: LazyCell<(Stage, Connector)> = LazyCell::new(|| {
        let stage = Stage::new(SOCKET);
        let text = format!("mysql://switched:s3cret@localhost/test?socket={}", stage.socket(SOCKET).display());
        let config: Config = text.parse().expect("it is a setting");
        let connector = Connector::new(config).expect("there is nothing to be read");
        (stage, connector)
    });
}

/// `prepares`: every third command prepares what the two behind it execute.
async fn hear(connector: &Connector, prepares: bool, discards: bool) {
    let Ok(mut link) = connector.connect().await else {
        return;
    };
    if discards {
        link.discard_rows_beyond(100);
    }
    let (mut described, mut id) = (decode::Described::default(), 0);
    for number in 0..QUESTIONS {
        let (asked, format) = match (prepares, number % 3) {
            (false, _) => (link.outbox().query(""), decode::Format::Text),
            (true, 0) => (link.outbox().prepare(""), decode::Format::Binary),
            (true, _) => {
                let none = std::iter::empty::<()>();
                let executed = link.outbox().execute(id, none, |(), _| Parameter::Null);
                (executed, decode::Format::Binary)
            }
        };
        asked.expect("it is short");
        loop {
            match link.next().await {
                Ok(packet) => {
                    if let Packet::Prepared(prepared) = &packet {
                        id = prepared.id;
                    }
                    drop(described.told(&packet, format));
                }
                Err(_) => {
                    assert!(link.is_over() && !link.is_idle());
                    return;
                }
            }
            if !link.is_in_answer() {
                break;
            }
        }
    }
    link.look();
}

fuzz_target!(|bytes: &[u8]| {
    let last = bytes.last().copied().unwrap_or_default();
    STAGE.with(|at| {
        for prepares in [false, true] {
            at.0.say(bytes, hear(&at.1, prepares, last % 2 == 0));
        }
    });
});
