//! Free ports on loopback.
//!
//! A port is free when it is handed out; another program may take it before the server binds it. So a server that takes a
//! port here is tried again on another when it could not listen (see `start.rs`), and one that can bind port 0 and say
//! which it got (Forebay) does not need this.
//!
//! Promises that nobody else is handed the same port while a [`FreePort`] lives, in no process of this machine: two servers of
//! one kind that start at once would else both be taken for ready when the faster one answers, and two tests would have
//! one database. What stands for the port meanwhile is a UDP socket of the same number, which is in the way of no TCP
//! server and is gone with its process.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
};

use crate::Error;

/// Others hold ports for as long as a server takes to start, so a few of many thousands.
const PORTS_TRIED_MAX: usize = 1_000;

/// A port that is handed out to nobody else as long as this lives.
#[derive(Debug)]
pub struct FreePort {
    port: u16,
    _stands_for_it: UdpSocket,
}

impl FreePort {
    /// A port of 127.0.0.1 that nobody listens on now.
    ///
    /// # Errors
    /// When the machine has none left.
    pub fn find() -> Result<Self, Error> {
        let mut found = Err(io::ErrorKind::AddrInUse.into());
        for _ in 0..PORTS_TRIED_MAX {
            found = Self::try_one();
            if !matches!(&found, Err(error) if error.kind() == io::ErrorKind::AddrInUse) {
                break;
            }
        }
        found.map_err(Error::system("find a free port on 127.0.0.1"))
    }

    fn try_one() -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Self::of(port)
    }

    fn of(port: u16) -> io::Result<Self> {
        let stands_for_it = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
        Ok(Self {
            port,
            _stands_for_it: stands_for_it,
        })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound_and_nobody_else_is_handed_it() {
        let port = FreePort::find().unwrap();
        assert_ne!(port.number(), 0);
        TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
        let again = FreePort::of(port.number()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        let number = port.number();
        drop(port);
        assert_eq!(FreePort::of(number).unwrap().number(), number);
    }
}
