//! What a PostgreSQL might say to a link: from the handshake on, whatever is asked.

#![no_main]

use std::cell::LazyCell;

use forebay_fuzz::Stage;
use forebay_pg_link::{Config, Connector};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/forebay-pg-link/tests/replay/decode.rs"]
mod decode;

/// As PostgreSQL names the socket of this port.
const SOCKET: &str = ".s.PGSQL.5432";
/// So many answers are waited for.
const QUESTIONS: u64 = 12;

thread_local! {
    static STAGE: LazyCell<(Stage, Connector)> = LazyCell::new(|| {
        let stage = Stage::new(SOCKET);
        let text = format!("host={} user=hashed password=s3cret", stage.folder().display());
        let config: Config = text.parse().expect("it is a setting");
        let connector = Connector::new(config).expect("there is nothing to be read");
        (stage, connector)
    });
}

async fn hear(connector: &Connector, discards: bool) {
    let Ok(mut link) = connector.connect().await else {
        return;
    };
    if discards {
        link.discard_rows_beyond(100);
    }
    for _ in 0..QUESTIONS {
        link.outbox().query("").expect("it has no zero byte");
    }
    while link.expected() > 0 {
        // One in some is asked for as those do who skip what answers nothing.
        let message = match link.expected() % 3 {
            0 => link.answer().await,
            _ => link.next().await,
        };
        match message {
            Ok(message) => drop(decode::told(&message)),
            Err(_) => {
                assert!(link.is_over() && !link.is_idle());
                return;
            }
        }
    }
    link.look();
    if link.is_idle() {
        drop(link.into_parts());
    }
}

fuzz_target!(|bytes: &[u8]| {
    STAGE.with(|at| {
        at.0.say(bytes, hear(&at.1, bytes.last().is_some_and(|last| last % 2 == 0)))
    });
});
