//! A session through the proxy and one straight at the server that is asked the very same, one after the other.

use std::net::SocketAddr;

use crate::at_once::told;
use crate::client::Client;
use crate::postgres;

/// A session through the proxy and one beside it.
pub(crate) struct Twins {
    proxied: Client,
    straight: Client,
    pub(crate) is_inside: bool,
    has_failed: bool,
}

impl Twins {
    pub(crate) fn new(address: SocketAddr, database: &str) -> Self {
        let of = |address| Client::connect_with(address, &[("user", "postgres"), ("database", database)]).unwrap();
        Self {
            proxied: of(address),
            straight: of(postgres().address()),
            is_inside: false,
            has_failed: false,
        }
    }

    /// Asks both, and compares what they are told.
    pub(crate) fn ask(&mut self, messages: &[Vec<u8>], said: &str) -> Vec<String> {
        let is_told = |told: &String| !told.starts_with('S') && !told.starts_with('N');
        // Where a transaction has failed it is refused anyway; by what is looked at first hangs on what is prepared there.
        let in_short = |told: String| match self.has_failed && told.starts_with("E ") {
            true => "E".to_owned(),
            false => told,
        };
        let of = |client| {
            told(client, messages)
                .into_iter()
                .filter(is_told)
                .map(in_short)
                .collect()
        };
        let (straight, proxied): (Vec<_>, Vec<_>) = (of(&mut self.straight), of(&mut self.proxied));
        assert_eq!(proxied, straight, "{said}");
        self.is_inside = straight.last().is_none_or(|last| last != "Z I");
        self.has_failed = straight.last().is_some_and(|last| last == "Z E");
        straight
    }
}
