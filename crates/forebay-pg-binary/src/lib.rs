//! PostgreSQL's binary formats that a client and a server both need, and that no library has: numeric, between its text and its bytes.
//!
//! Knows no connection, no column and no SQL: who reads or sends the bytes is its user's affair.

pub mod numeric;
