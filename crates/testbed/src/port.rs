//! Free ports on loopback.
//!
//! A port is free when it is handed out; another program may take it before the server binds it. So a server that takes a
//! port here is tried again on another when it could not listen (see `postgres.rs`), and one that can bind port 0 and say
//! which it got (Forebay) does not need this.

use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// A port of 127.0.0.1 that nobody listens on now.
///
/// # Errors
/// When the machine has none left.
pub fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(Error::system("find a free port on 127.0.0.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound() {
        let port = free_port().unwrap();
        assert_ne!(port, 0);
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
