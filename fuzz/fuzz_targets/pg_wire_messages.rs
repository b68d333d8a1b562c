//! What a client might say once it is let in.

#![no_main]

use forebay_fuzz::{Trickle, runtime};
use forebay_pg_wire::frontend::{FrameError, FrameReader};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

const MESSAGE_BYTES_MAX: usize = 100_000;

thread_local! {
    static RUNTIME: Runtime = runtime();
}

async fn read(bytes: &[u8]) {
    let mut frames = FrameReader::new(Trickle::new(bytes), MESSAGE_BYTES_MAX);
    loop {
        let is_there = frames.buffered().is_some();
        match frames.next().await {
            Ok(Some(message)) => drop(format!("{message:?}")),
            Err(FrameError::Refused { .. }) => {}
            Ok(None) => return assert!(!frames.is_inside_message()),
            Err(FrameError::Broken(_) | FrameError::Lost(_)) => return assert!(!is_there),
        }
    }
}

fuzz_target!(|bytes: &[u8]| RUNTIME.with(|runtime| runtime.block_on(read(bytes))));
