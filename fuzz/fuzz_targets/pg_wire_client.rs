//! What a client might say from its first byte on: to a server that trusts it, and to one that asks for its password.

#![no_main]

use std::cell::LazyCell;
use std::sync::Arc;

use forebay_fuzz::{Trickle, runtime};
use forebay_pg_wire::authentication::Authenticator;
use forebay_pg_wire::gate::{Gate, Origin, Trust, Users};
use forebay_pg_wire::startup::{Handshake, Opening, START_UP_TIMEOUT};
use forebay_pg_wire::verifier::{StoredPassword, Verifier};
use libfuzzer_sys::fuzz_target;
use tokio::io::{join, sink};
use tokio::runtime::Runtime;

/// Of some password.
const HASH: &str = "md50123456789abcdef0123456789abcdef";

thread_local! {
    static AT: LazyCell<(Runtime, [Handshake; 2])> = LazyCell::new(|| {
        let proven = StoredPassword::Scram(Verifier::from_password("password"));
        let hashed = HASH.parse().expect("it is a hash");
        let users = Users::new([("postgres".to_owned(), proven), ("hashed".to_owned(), hashed)]);
        let gates: [Arc<dyn Gate>; 2] = [Arc::new(Trust), Arc::new(users)];
        let handshakes = gates.map(|gate| Handshake::new(Authenticator::new(gate, None), None, START_UP_TIMEOUT));
        (runtime(), handshakes)
    });
}

async fn led_in(handshake: &Handshake, bytes: &[u8]) {
    let stream = join(Trickle::new(bytes), sink());
    let Ok(Opening::Client(mut client)) = handshake.run(stream, Origin::Socket, None).await else {
        return;
    };
    client.frames.set_max_message_bytes(100_000);
    while let Ok(Some(message)) = client.frames.next().await {
        drop(format!("{message:?}"));
    }
}

fuzz_target!(|bytes: &[u8]| {
    AT.with(|at| {
        for handshake in &at.1 {
            at.0.block_on(led_in(handshake, bytes));
        }
    });
});
