//! The Writer against a model, on the databases over the network: the same statements in the same order, each by itself in
//! autocommit, sent by a plain driver to a twin of the schema. Every outcome and every table must be the same, however the
//! statements were batched; only the numbers that the database itself gives to rows may be others, in the same order.
//!
//! Schemas and statements are drawn from a grammar, by a seed that a failure tells and `FOREBAY_MODEL_SEED` replays;
//! `FOREBAY_MODEL_SECONDS` searches for longer. What SQLite does is held to the same by the model among the tests
//! of `forebay-sqlite`.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod case;
mod judge;
mod mysql;
mod postgres;
mod search;
