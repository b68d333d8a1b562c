//! Cache: under construction; for now only the store it will stand on.

#[allow(dead_code)]
mod store;
