//! What somebody writes who knows Rust and not Forebay: it compiles, or the compiler says what to write.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod closures;
mod messages;
mod shown;
